//! Tests of the server over HTTP/1.1, by a client that uses only the standard library.
mod common;

use common::{Client, Server, read_response};
use selvedge::{net::TcpListener, time};
use selvedge_hyper::Listener;
use std::{
    collections::VecDeque,
    io::{self, BufReader, ErrorKind, Read, Write},
    net::{Shutdown, TcpStream},
    sync::atomic::Ordering::SeqCst,
    task::{Context, Poll},
    thread,
    time::Duration,
};

#[test]
fn kept_connection_serves_each_request() {
    let server = Server::new();
    let mut client = server.connect();
    for _ in 0..3 {
        assert_eq!(client.get("/"), "hello");
    }
    assert_eq!(server.state.made.load(SeqCst), 1);
    drop(client);
    server.end().unwrap();
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = Server::new();
    let mut client = server.connect();
    let mut requests = String::new();
    for n in 100..200 {
        requests += &format!("POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\n{n}");
    }
    client.send(&requests);
    for n in 100..200 {
        assert_eq!(client.response().1, n.to_string());
    }
    drop(client);
    server.end().unwrap();
}

#[test]
fn chunked_body_is_echoed() {
    let server = Server::new();
    let mut client = server.connect();
    client.send("POST /echo HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n");
    client.send("5\r\nhello\r\n");
    client.send("7\r\n, world\r\n0\r\n\r\n");
    let (head, body) = client.response();
    assert!(head.contains("transfer-encoding: chunked"), "{head}");
    assert_eq!(body, "hello, world");
    assert_eq!(client.get("/"), "hello");
    drop(client);
    server.end().unwrap();
}

#[test]
fn large_body_is_echoed_while_it_is_sent() {
    const LEN: usize = 8 << 20;
    let server = Server::new();
    let stream = TcpStream::connect(server.address).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let sender = thread::spawn(move || {
        let mut stream = stream;
        write!(
            stream,
            "POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: {LEN}\r\n\r\n"
        )
        .unwrap();
        let letters: Vec<u8> = (0..LEN).map(|n| b'a' + (n % 26) as u8).collect();
        stream.write_all(&letters).unwrap();
    });
    let (_, body) = read_response(&mut reader);
    sender.join().unwrap();
    assert_eq!(body.len(), LEN);
    assert!((body.bytes().enumerate()).all(|(n, letter)| letter == b'a' + (n % 26) as u8));
    drop(reader);
    server.end().unwrap();
}

// A paused clock stands still while a thread runs in `block_on`. As soon as everything in the
// runtime waits, the clock jumps to the next deadline.

#[test]
fn slow_header_times_out_and_others_are_served() {
    let server = Server::with(|serve| serve.header_read_timeout(Duration::from_secs(10)));
    let mut slow = server.connect();
    server.runtime.block_on(async {
        time::pause();
        slow.send("GET / HTTP/1.1\r\nhost:");
        let mut quick = server.connect();
        for _ in 0..3 {
            assert_eq!(quick.get("/"), "hello");
        }
    });
    assert!(slow.is_closed());
    let error = server.state.errors.1.recv_blocking().unwrap();
    assert!(error.is_timeout(), "{error:?}");
    server.runtime.block_on(async {
        assert_eq!(server.connect().get("/"), "hello");
    });
    server.end().unwrap();
}

#[test]
fn idle_connection_times_out() {
    let server = Server::with(|serve| serve.header_read_timeout(Duration::from_secs(10)));
    let mut client = server.runtime.block_on(async {
        time::pause();
        // This puts the paused clock a day ahead of the system's clock. hyper must set its
        // deadlines by the paused clock: by the system's clock, they would have passed already.
        time::advance(Duration::from_secs(86_400)).await;
        let mut client = server.connect();
        for _ in 0..3 {
            assert_eq!(client.get("/"), "hello");
        }
        client
    });
    assert!(client.is_closed());
    server.end().unwrap();
}

#[test]
fn head_of_a_mebibyte_is_refused() {
    let server = Server::new();
    let mut client = server.connect();
    let head = format!("GET / HTTP/1.1\r\na: {}", "b".repeat(1 << 20));
    // The write may fail: the server closes the connection before it has read the whole head.
    let _ = client.0.get_mut().write_all(head.as_bytes());
    let error = server.state.errors.1.recv_blocking().unwrap();
    assert!(error.is_parse_too_large(), "{error:?}");
    assert_eq!(server.connect().get("/"), "hello");
    server.end().unwrap();
}

#[test]
fn connections_stay_below_the_limit() {
    let server = Server::with(|serve| serve.connection_limit(2));
    let address = server.address;
    let clients: Vec<_> = (0..8)
        .map(|_| {
            thread::spawn(move || {
                for _ in 0..5 {
                    let mut client = Client::new(TcpStream::connect(address).unwrap());
                    assert_eq!(client.get("/"), "hello");
                }
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
    assert_eq!(server.state.made.load(SeqCst), 40);
    assert!(server.state.most.load(SeqCst) <= 2);
    server.end().unwrap();
}

// Fails if hyper adds a limit to the present time that is beyond the range of the clock.
#[test]
fn endless_limits_serve_requests() {
    let server = Server::with(|serve| {
        serve
            .header_read_timeout(Duration::MAX)
            .write_timeout(Duration::MAX)
            .shutdown_timeout(Duration::MAX)
    });
    let mut client = server.connect();
    for _ in 0..3 {
        assert_eq!(client.get("/"), "hello");
    }
    drop(client);
    server.end().unwrap();
}

// Fails if a connection that panics, in hyper or in its service, ends without a report. hyper
// panics here at a limit that the server does not see.
#[test]
fn panic_of_a_connection_is_reported() {
    let server =
        Server::with(|serve| serve.http1(|http1| http1.header_read_timeout(Duration::MAX)));
    assert!(server.connect().is_closed());
    let error = server.state.errors.1.recv_blocking().unwrap();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("panicked: overflow"), "{source}");
    server.end().unwrap();

    let server = Server::new();
    let mut client = server.connect();
    client.send("GET /panic HTTP/1.1\r\nhost: a\r\n\r\n");
    assert!(client.is_closed());
    let error = server.state.errors.1.recv_blocking().unwrap();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("panicked: "), "{source}");
    server.end().unwrap();
}

#[test]
fn panic_of_a_service_frees_its_place() {
    let server = Server::with(|serve| serve.connection_limit(1));
    let mut client = server.connect();
    client.send("GET /panic HTTP/1.1\r\nhost: a\r\n\r\n");
    assert!(client.is_closed());
    assert_eq!(server.connect().get("/"), "hello");
    server.end().unwrap();
}

#[test]
fn shutdown_finishes_the_request_that_runs() {
    // The runtime has one worker, so no poll of `running` overlaps the poll that closes `idle`. So
    // after that close, every poll of `running` sees the shutdown.
    let runtime = selvedge::Builder::new().workers(1).build().unwrap();
    let server = Server::on(runtime, |listener| listener, |serve| serve);
    let mut idle = server.connect();
    assert_eq!(idle.get("/"), "hello");
    let mut running = server.connect();
    running.send("GET /wait HTTP/1.1\r\nhost: a\r\n\r\n");
    server.state.begun.1.recv_blocking().unwrap();

    server.stop();
    assert!(idle.is_closed());
    assert_eq!(
        TcpStream::connect(server.address).unwrap_err().kind(),
        ErrorKind::ConnectionRefused
    );
    assert!(!server.ended.is_finished());
    server.state.gate.0.send_blocking(()).unwrap();
    let (head, body) = running.response();
    assert!(head.contains("connection: close"), "{head}");
    assert_eq!(body, "waited");
    assert!(running.is_closed());
    server.end().unwrap();
}

#[test]
fn shutdown_timeout_cuts_connections_off() {
    let server = Server::with(|serve| serve.shutdown_timeout(Duration::from_millis(20)));
    let mut client = server.connect();
    client.send("GET /wait HTTP/1.1\r\nhost: a\r\n\r\n");
    server.state.begun.1.recv_blocking().unwrap();
    let state = server.state.clone();
    let error = server.end().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!(state.open.load(SeqCst), 0);
    assert!(client.is_closed());
}

#[test]
fn dropped_server_lets_requests_finish() {
    let server = Server::new();
    let mut client = server.connect();
    client.send("GET /wait HTTP/1.1\r\nhost: a\r\n\r\n");
    server.state.begun.1.recv_blocking().unwrap();
    server.ended.abort();
    assert!(server.runtime.block_on(server.ended).is_err());
    server.state.gate.0.send_blocking(()).unwrap();
    assert_eq!(client.response().1, "waited");
    assert!(client.is_closed());
}

#[test]
fn client_that_leaves_cancels_its_request() {
    let server = Server::new();
    let mut client = server.connect();
    client.send("GET /wait HTTP/1.1\r\nhost: a\r\n\r\n");
    server.state.begun.1.recv_blocking().unwrap();
    drop(client);
    let error = server.state.errors.1.recv_blocking().unwrap();
    assert!(error.is_incomplete_message(), "{error:?}");
    // The test never opens the gate: without the cancellation the server would not end.
    server.end().unwrap();
}

#[test]
fn upgraded_connection_belongs_to_the_service() {
    let server = Server::new();
    let mut client = server.connect();
    client
        .send("GET /upgrade HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: bare\r\n\r\nab");
    assert!(client.response().0.starts_with("http/1.1 101"));
    client.send("cd");
    let mut echoed = [0; 4];
    client.0.read_exact(&mut echoed).unwrap();
    assert_eq!(&echoed, b"abcd");
    server.end().unwrap();
}

#[test]
fn half_closed_client_gets_its_answer() {
    let server = Server::with(|serve| serve.http1(|http1| http1.half_close(true)));
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    client.0.get_ref().shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.response().1, "hello");
    assert!(client.is_closed());
    server.end().unwrap();
}

/// A listener that first fails with each of these errors, and then accepts.
struct Failing(TcpListener, VecDeque<io::Error>);

impl Listener for Failing {
    type Io = <TcpListener as Listener>::Io;

    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Self::Io>> {
        match self.1.pop_front() {
            Some(error) => Poll::Ready(Err(error)),
            None => Listener::poll_accept(&mut self.0, cx),
        }
    }
}

#[test]
fn shortage_of_descriptors_does_not_end_the_server() {
    const EMFILE: i32 = 24;
    let shortage = || io::Error::from_raw_os_error(EMFILE);
    let server = Server::over(
        |listener| Failing(listener, [shortage(), shortage()].into()),
        |serve| serve,
    );
    assert_eq!(server.connect().get("/"), "hello");
    server.end().unwrap();
}

#[test]
fn broken_listener_ends_the_server() {
    let broken = || io::Error::new(ErrorKind::NotFound, "broken");
    let server = Server::over(
        |listener| Failing(listener, [broken()].into()),
        |serve| serve,
    );
    let ended = server.runtime.block_on(server.ended).unwrap();
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::NotFound);
}
