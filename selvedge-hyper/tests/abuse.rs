//! Clients that want too much: they are slow, send too much, or never read. The server's memory
//! stays bounded, and meanwhile the server serves other clients.
//!
//! The memory is the process's peak of resident pages, which includes the memory of the clients.
//! These tests are a program of their own, so that the memory of no other test counts.
mod common;

use bytes::Bytes;
use common::{Client, read_response};
use http_body_util::{BodyExt, Either, Full};
use hyper::{
    Request, Response, StatusCode,
    body::{Body, Frame, Incoming},
    service::service_fn,
};
use selvedge::{JoinHandle, Runtime, net::TcpListener, time};
use selvedge_hyper::{WriteTimedOut, serve};
use std::{
    convert::Infallible,
    fs,
    io::{self, BufReader, ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    task::{Context, Poll},
    thread,
    time::Duration,
};

const GIBIBYTE: u64 = 1 << 30;

/// All tests of the program together may add this much to the process's peak.
const MOST: u64 = 96 << 20;

/// The most bytes of a head that the server buffers. It refuses a head that fills them.
const HEAD: usize = 64 << 10;

/// A part of a body. It takes no memory of the heap.
static PIECE: [u8; 16 << 10] = [b'a'; 16 << 10];

/// A body of a gibibyte, in pieces that are made as the connection asks for them.
struct Gibibyte {
    left: u64,
    made: Arc<AtomicU64>,
}

impl Body for Gibibyte {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        self.left -= PIECE.len() as u64;
        self.made.fetch_add(PIECE.len() as u64, SeqCst);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&PIECE)))))
    }
}

type Answer = Response<Either<Full<Bytes>, Gibibyte>>;

async fn answer(request: Request<Incoming>, made: Arc<AtomicU64>) -> Result<Answer, hyper::Error> {
    let text = |text: String| Response::new(Either::Left(Full::new(Bytes::from(text))));
    Ok(match request.uri().path() {
        "/drain" => {
            let mut body = request.into_body();
            let mut bytes = 0;
            while let Some(frame) = body.frame().await {
                bytes += frame?.data_ref().map_or(0, Bytes::len);
            }
            text(bytes.to_string())
        }
        "/refuse" => {
            let mut answer = text("too large".into());
            *answer.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
            answer
        }
        "/gibibyte" => {
            let left = GIBIBYTE;
            Response::new(Either::Right(Gibibyte { left, made }))
        }
        "/piece" => Response::new(Either::Left(Full::new(Bytes::from_static(&PIECE)))),
        _ => text("hello".into()),
    })
}

struct Server {
    runtime: Runtime,
    address: SocketAddr,
    /// Number of bytes of `/gibibyte` that were made.
    made: Arc<AtomicU64>,
    /// The errors of connections.
    errors: async_channel::Receiver<hyper::Error>,
    stop: async_channel::Sender<()>,
    ended: JoinHandle<io::Result<()>>,
}

impl Server {
    fn new() -> Self {
        Self::with_shutdown(None)
    }

    fn with_shutdown(limit: Option<Duration>) -> Self {
        Self::with_limits(limit, None)
    }

    fn with_limits(shutdown: Option<Duration>, write: Option<Duration>) -> Self {
        base();
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let made = Arc::new(AtomicU64::new(0));
        let (stop, stopped) = async_channel::bounded::<()>(1);
        let (failed, errors) = async_channel::unbounded();
        let service = {
            let made = made.clone();
            service_fn(move |request| answer(request, made.clone()))
        };
        let serve = serve(listener, service)
            .http1(|http1| http1.max_buf_size(HEAD))
            .header_read_timeout(Duration::from_secs(10))
            .shutdown_timeout(shutdown)
            .write_timeout(write)
            .on_error(move |error| _ = failed.try_send(error))
            .shutdown_on(async move { _ = stopped.recv().await });
        let ended = runtime.spawn(serve.into_future());
        Self {
            runtime,
            address,
            made,
            errors,
            stop,
            ended,
        }
    }

    fn connect(&self) -> Client {
        Client::new(TcpStream::connect(self.address).unwrap())
    }

    /// Checks that another client is served.
    #[track_caller]
    fn expect_hello(&self) {
        assert_eq!(self.connect().get("/"), "hello");
    }

    fn end(self) -> io::Result<()> {
        let _ = self.stop.try_send(());
        let ended = self.runtime.block_on(self.ended).unwrap();
        expect_bounded_memory();
        ended
    }
}

/// Returns the process's peak of resident memory, in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kibibytes = line.unwrap().split_whitespace().nth(1).unwrap();
    kibibytes.parse::<u64>().unwrap() << 10
}

/// Returns the peak before the first server.
fn base() -> u64 {
    static BASE: OnceLock<u64> = OnceLock::new();
    *BASE.get_or_init(peak)
}

#[track_caller]
fn expect_bounded_memory() {
    if cfg!(selvedge_plain_alloc) {
        return; // A sanitizer keeps freed memory for some time, to find later uses of it.
    }
    let more = peak() - base();
    assert!(more < MOST, "{more} bytes more");
}

// Fails if a byte extends the time for a head, or if a slow client holds others up.
#[test]
fn hundred_slow_clients_time_out_and_others_are_served() {
    let server = Server::new();
    let mut slow: Vec<Client> = (0..100).map(|_| server.connect()).collect();
    // The clock stands still in here.
    server.runtime.block_on(async {
        time::pause();
        for part in ["GET / H", "TTP/1.1\r", "\nhost: a"] {
            for client in &mut slow {
                client.send(part);
            }
            server.expect_hello();
        }
    });
    for client in &mut slow {
        assert!(client.is_closed());
    }
    server.runtime.block_on(async { server.expect_hello() });
    server.end().unwrap();
}

// Fails if the server keeps the heads: they are 200 MiB together.
#[test]
fn heads_of_a_mebibyte_leave_no_memory() {
    let server = Server::new();
    let head = format!("GET / HTTP/1.1\r\na: {}", "b".repeat(1 << 20));
    for _ in 0..200 {
        // The write may fail: the server closes the connection before it has read the whole head.
        let _ = server.connect().0.get_mut().write_all(head.as_bytes());
    }
    server.expect_hello();
    server.end().unwrap();
}

// The clients send no more than the server reads. With unread bytes, the server's close would reset
// the connection, and the answer could be lost.
#[test]
fn head_of_the_limit_is_answered_with_431() {
    let server = Server::new();
    let mut head = String::from("GET / HTTP/1.1\r\na: ");
    head.extend((head.len()..HEAD).map(|_| 'b'));
    let mut client = server.connect();
    client.send(&head);
    let (answer, _) = client.response();
    assert!(answer.starts_with("http/1.1 431 "), "{answer}");
    assert!(client.is_closed());

    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\n");
    client.send(&"a: b\r\n".repeat(101));
    client.send("\r\n");
    let (answer, _) = client.response();
    assert!(answer.starts_with("http/1.1 431 "), "{answer}");
    server.expect_hello();
    server.end().unwrap();
}

/// The README names both bounds, for hyper's default limit.
#[test]
fn head_below_the_limit_passes_and_one_of_twice_it_does_not() {
    let server = Server::new();
    let head = |bytes: usize| {
        let begin = "GET / HTTP/1.1\r\na: ";
        let end = "\r\n\r\n";
        let value = "b".repeat(bytes - begin.len() - end.len());
        format!("{begin}{value}{end}")
    };
    let mut client = server.connect();
    client.send(&head(HEAD - 1));
    let (answer, _) = client.response();
    assert!(answer.starts_with("http/1.1 200 "), "{answer}");

    // The server's close may reset the connection, so the client gets the refusal or nothing.
    let mut stream = TcpStream::connect(server.address).unwrap();
    let _ = stream.write_all(head(2 * HEAD + 1).as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 431 "));
    server.expect_hello();
    server.end().unwrap();
}

/// The README says that the service must check `Host`.
#[test]
fn requests_with_no_host_and_with_two_reach_the_service() {
    let server = Server::new();
    for hosts in ["", "host: a\r\nhost: b\r\n"] {
        let mut client = server.connect();
        client.send(&format!("GET / HTTP/1.1\r\n{hosts}\r\n"));
        let (answer, _) = client.response();
        assert!(answer.starts_with("http/1.1 200 "), "{hosts:?}: {answer}");
    }
    server.end().unwrap();
}

/// Sends bytes of a body until the server takes no more, and returns their number.
fn send_body(stream: &mut TcpStream, mut left: u64) -> u64 {
    let mut sent = 0;
    while left > 0 {
        match stream.write(&PIECE[..PIECE.len().min(left as usize)]) {
            Ok(count) => {
                sent += count as u64;
                left -= count as u64;
            }
            Err(_) => break,
        }
    }
    sent
}

// Fails if hyper reads ahead of the service.
#[test]
fn gibibyte_is_read_in_bounded_memory() {
    let server = Server::new();
    let mut client = server.connect();
    client.send(&format!(
        "POST /drain HTTP/1.1\r\nhost: a\r\ncontent-length: {GIBIBYTE}\r\n\r\n"
    ));
    let mut stream = client.0.get_ref().try_clone().unwrap();
    let sender = thread::spawn(move || send_body(&mut stream, GIBIBYTE));
    for _ in 0..100 {
        server.expect_hello();
    }
    assert_eq!(sender.join().unwrap(), GIBIBYTE);
    assert_eq!(client.response().1, GIBIBYTE.to_string());
    assert_eq!(client.get("/"), "hello");
    drop(client);
    server.end().unwrap();
}

// Fails if the server reads, or keeps, a body that its service refused.
#[test]
fn refused_body_closes_the_connection() {
    let server = Server::new();
    let mut client = server.connect();
    client.send(&format!(
        "POST /refuse HTTP/1.1\r\nhost: a\r\ncontent-length: {GIBIBYTE}\r\n\r\n"
    ));
    let (head, _) = client.response();
    assert!(head.starts_with("http/1.1 413 "), "{head}");
    assert!(send_body(client.0.get_mut(), GIBIBYTE) < GIBIBYTE / 8);
    server.expect_hello();
    server.end().unwrap();
}

// Fails if the body is made faster than the client reads.
#[test]
fn client_that_never_reads_holds_up_only_itself() {
    let server = Server::with_shutdown(Some(Duration::from_millis(20)));
    let mut client = server.connect();
    client.send("GET /gibibyte HTTP/1.1\r\nhost: a\r\n\r\n");
    while server.made.load(SeqCst) == 0 {
        thread::yield_now();
    }
    for _ in 0..100 {
        server.expect_hello();
    }
    // The bytes so far are in hyper's buffer and in the system's buffers of the two sockets.
    assert!(server.made.load(SeqCst) < GIBIBYTE / 8);
    // Only the time limit of the shutdown ends this connection.
    assert_eq!(server.end().unwrap_err().kind(), ErrorKind::TimedOut);
    let read = io::copy(&mut client.0.get_mut().take(GIBIBYTE), &mut io::sink());
    assert!(read.is_err() || read.unwrap() < GIBIBYTE);
}

// Fails if a client that never reads keeps its connection. The shutdown waits without limit, so
// only the limit for writes can end the connection.
#[test]
fn client_that_never_reads_is_cut_off_after_the_limit() {
    let limit = Duration::from_millis(20);
    let server = Server::with_limits(None, Some(limit));
    let mut client = server.connect();
    client.send("GET /gibibyte HTTP/1.1\r\nhost: a\r\n\r\n");
    let error = server.errors.recv_blocking().unwrap();
    assert_eq!(WriteTimedOut::of(&error).unwrap().limit(), limit, "{error}");
    assert!(server.made.load(SeqCst) < GIBIBYTE / 8);
    server.expect_hello();
    let read = io::copy(&mut client.0.get_mut().take(GIBIBYTE), &mut io::sink());
    assert!(read.is_err() || read.unwrap() < GIBIBYTE);
    server.end().unwrap();
}

// Fails if the limit counts the time of the whole response.
#[test]
fn client_that_reads_on_is_not_cut_off() {
    const PART: u64 = 64 << 20;
    let server = Server::with_limits(None, Some(Duration::from_secs(600)));
    let mut client = server.connect();
    // In here only the test moves the clock.
    server.runtime.block_on(async {
        time::pause();
        client.send("GET /gibibyte HTTP/1.1\r\nhost: a\r\n\r\n");
        for _ in 0..3 {
            // `PART` is more than the system's buffers hold, so the server writes meanwhile.
            let part = &mut client.0.get_mut().take(PART);
            assert_eq!(io::copy(part, &mut io::sink()).unwrap(), PART);
            assert!(server.errors.is_empty());
            time::advance(Duration::from_secs(400)).await;
        }
        drop(client);
    });
    server.end().unwrap();
}

// Fails if requests, or the answers to them, queue in the server without bound.
#[test]
fn client_that_only_pipelines_is_stopped() {
    let server = Server::new();
    let client = TcpStream::connect(server.address).unwrap();
    client.set_nonblocking(true).unwrap();
    let requests = "GET /piece HTTP/1.1\r\nhost: a\r\n\r\n".repeat(32);
    let (mut sent, mut refused) = (0, 0);
    // The loop ends when 100 writes in a row have found the buffers full. If it ends too early, the
    // test only checks less.
    while refused < 100 {
        match (&client).write(&requests.as_bytes()[sent % requests.len()..]) {
            Ok(count) => (sent, refused) = (sent + count, 0),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                refused += 1;
                server.expect_hello();
            }
            Err(error) => panic!("{error} after {sent} bytes"),
        }
        // The answers to this many bytes of requests would be 64 GiB.
        assert!(sent < 128 << 20, "the server reads on");
    }
    expect_bounded_memory();
    client.set_nonblocking(false).unwrap();
    // The client can still read its first answer, whole.
    let (_, piece) = read_response(&mut BufReader::new(&client));
    assert_eq!(piece.as_bytes(), PIECE);
    drop(client);
    server.end().unwrap();
}
