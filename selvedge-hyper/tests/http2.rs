//! Tests of the server over HTTP/2. In two tests the client is hyper's, over selvedge's sockets. In
//! the others a plain socket of the standard library sends frames that the test puts together.
mod common;

use bytes::Bytes;
use common::{Client, Server};
use http_body_util::{BodyExt, Full};
use hyper::{Request, client::conn::http2};
use hyper::{
    Response,
    body::{Body, Frame},
    rt::{Read, ReadBufCursor, Write},
    service::service_fn,
};
use net_driver::{Driver, time::ClockHold};
use selvedge::{
    net::{TcpStream, UnixStream},
    time,
};
use selvedge_hyper::{
    LimitWrites, Listener, SelvedgeExecutor, SelvedgeIo, SelvedgeTimer, WriteTimedOut, serve,
};
use std::{
    convert::Infallible,
    error::Error,
    io::{self, IoSlice, Read as _, Write as _},
    iter,
    os::unix::net,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll},
    time::Duration,
};

/// Returns the bytes of a frame of HTTP/2.
///
/// The kinds that these tests use are 0 (`DATA`), 1 (`HEADERS`), 4 (`SETTINGS`), 6 (`PING`), 7
/// (`GOAWAY`) and 8 (`WINDOW_UPDATE`). The flag 1 ends a stream, and the flag 4 ends its headers.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let head = [0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream];
    [&head, payload].concat()
}

// Fails if the write timeout does not end the connection of a client that never reads, or if
// `on_error` receives another error than the docs of `write_timeout` promise.
#[test]
fn write_timeout_error_has_promised_kind_and_text() {
    let runtime = selvedge::Runtime::new().unwrap();
    let listener = runtime.block_on(selvedge::net::TcpListener::bind("127.0.0.1:0"));
    let listener = listener.unwrap();
    let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let body = Bytes::from(vec![0; 128 << 20]);
    let service = service_fn(move |_| {
        let body = Full::new(body.clone());
        async { Ok::<_, Infallible>(Response::new(body)) }
    });
    let (failed, errors) = async_channel::unbounded();
    let serve = serve(listener, service)
        .http2_only(|http2| http2)
        .write_timeout(Duration::from_millis(20))
        .on_error(move |error| _ = failed.try_send(error));
    runtime.spawn_detached(serve.into_future());
    // The client opens the largest windows, and sends the request `GET http://a/`.
    let bytes = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(4, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]),
        frame(8, 0, 0, &[0x7f, 0xff, 0, 0]),
        frame(1, 5, 1, &[0x82, 0x86, 0x84, 0x41, 1, b'a']),
    ];
    client.write_all(&bytes.concat()).unwrap();
    let error = errors.recv_blocking().unwrap();
    assert!(WriteTimedOut::of(&error).is_none());
    let source = error.source().unwrap().downcast_ref::<io::Error>().unwrap();
    assert_eq!(source.kind(), io::ErrorKind::TimedOut);
    assert_eq!(source.to_string(), "the peer took no byte for 20ms");
}

// Fails if an endless limit is added to the present time.
#[test]
fn endless_limits_serve_http2() {
    let server = Server::with(|serve| {
        serve
            .http2_only(|http2| http2)
            .header_read_timeout(Duration::MAX)
            .write_timeout(Duration::MAX)
            .shutdown_timeout(Duration::MAX)
    });
    server.runtime.block_on(async {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let io = SelvedgeIo::new(stream);
        let handshake = http2::handshake::<_, _, Full<Bytes>>(SelvedgeExecutor, io);
        let (mut sender, connection) = handshake.await.unwrap();
        let connection = selvedge::spawn(connection);
        let request = Request::get("http://a/").body(Full::default()).unwrap();
        let response = sender.send_request(request).await.unwrap();
        let body = response.into_body().collect().await.unwrap();
        assert_eq!(body.to_bytes(), "hello");
        drop(sender);
        connection.await.unwrap().unwrap();
    });
    server.end().unwrap();
}

/// Starts a server of HTTP/2 whose shutdown waits for the connections without limit. The clock of
/// the server's runtime is paused. When the returned guard is dropped, the clock begins to skip the
/// time in which nothing happens.
fn paused_server() -> (Server, ClockHold) {
    let server = Server::with(|serve| serve.http2_only(|http2| http2).shutdown_timeout(None));
    let hold = server.runtime.block_on(async {
        time::pause();
        hold_clock()
    });
    (server, hold)
}

/// Returns a guard that keeps the paused clock from jumping. The tests keep the guard while a
/// packet may be on its way, because the runtime does not see packets and may count as idle.
fn hold_clock() -> ClockHold {
    Driver::current().unwrap().hold_clock()
}

// Fails if a client that never sends HTTP/2 keeps its connection, or if such a client makes the
// server's shutdown wait without end.
#[test]
fn client_that_never_sends_http2_is_dropped() {
    let (server, hold) = paused_server();
    drop(hold);
    let mut client = server.connect();
    // The client reads the server's settings, and then the end of the connection.
    client.0.read_to_end(&mut Vec::new()).unwrap();

    // The connection of another such client may still exist when the shutdown begins.
    let mut client = server.connect();
    client.0.read_exact(&mut [0; 9]).unwrap();
    server.end().unwrap();
    let _ = client.0.read_to_end(&mut Vec::new());
}

/// Reads a frame, and returns its kind and its payload, or `None` at the end of the connection.
fn next_frame(from: &mut impl io::Read) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 9];
    from.read_exact(&mut head).ok()?;
    let len = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; len as usize];
    from.read_exact(&mut payload).ok()?;
    Some((head[3], payload))
}

/// Reads a frame, and returns its kind, or `None` at the end of the connection.
fn kind_of_frame(from: &mut impl io::Read) -> Option<u8> {
    Some(next_frame(from)?.0)
}

/// Reads frames up to the first one of the kind `kind`, and returns the payload of that frame.
#[track_caller]
fn frame_of_kind(kind: u8, from: &mut impl io::Read) -> Vec<u8> {
    let mut frames = iter::from_fn(|| next_frame(from));
    let found = frames.find(|frame| frame.0 == kind);
    found
        .expect("the connection ended before a frame of that kind")
        .1
}

// Fails if the server waits without end for the answer to its own ping. h2 sends that ping with the
// first `GOAWAY`, and this client does not answer it.
#[test]
fn client_without_request_gets_goaway_and_is_dropped() {
    let (server, hold) = paused_server();
    let mut client = server.connect();
    let bytes = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(4, 0, 0, &[]),
        frame(6, 0, 0, &[0; 8]),
    ];
    client.0.get_mut().write_all(&bytes.concat()).unwrap();
    // The server's answer to the ping of the client.
    frame_of_kind(6, &mut client.0);
    drop(hold);
    let kinds: Vec<u8> = iter::from_fn(|| kind_of_frame(&mut client.0)).collect();
    assert!(kinds.contains(&7), "no GOAWAY: {kinds:?}");
    server.end().unwrap();
}

// Fails if the server ends a connection whose request takes an hour, or if the server never ends
// the connection after that request.
#[test]
fn request_of_an_hour_keeps_its_connection() {
    let (server, hold) = paused_server();
    server.runtime.block_on(async {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let mut builder = http2::Builder::new(SelvedgeExecutor);
        builder.timer(SelvedgeTimer);
        let (mut sender, connection) = builder.handshake(SelvedgeIo::new(stream)).await.unwrap();
        let connection = selvedge::spawn(connection);
        let wait = Request::get("http://a/wait").body(Full::<Bytes>::default());
        let waiting = selvedge::spawn(sender.send_request(wait.unwrap()));
        server.state.begun.1.recv().await.unwrap();
        drop(hold);
        time::sleep(Duration::from_secs(3_600)).await;
        let hold = hold_clock();
        server.state.gate.0.send(()).await.unwrap();
        let response = waiting.await.unwrap().unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, "waited");
        drop(hold);
        // The server ends the connection, although the client still has a `sender` for requests.
        let _ = connection.await.unwrap();
        assert!(sender.is_closed());
    });
    server.end().unwrap();
}

/// Lets the clock skip the time `span`. Drops `hold` for that, and returns a new guard.
fn skip(server: &Server, hold: ClockHold, span: Duration) -> ClockHold {
    server.runtime.block_on(async {
        drop(hold);
        time::sleep(span).await;
        hold_clock()
    })
}

// Fails if the server counts a response as sent while h2 still holds a part of it, because the
// client's window has no room. The server would then end the connection as one without a request.
#[test]
fn client_that_takes_minutes_gets_its_whole_response() {
    const BODY: &[u8] = b"one byte every 25 seconds";
    let (server, mut hold) = paused_server();
    let mut client = server.connect();
    // The client opens a window of one byte for each stream, and sends `POST http://a/echo`.
    let bytes = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(4, 0, 0, &[0, 4, 0, 0, 0, 1]),
        frame(1, 4, 1, b"\x83\x86\x04\x05/echo\x41\x01a"),
        frame(0, 1, 1, BODY),
    ];
    client.0.get_mut().write_all(&bytes.concat()).unwrap();
    let mut body = frame_of_kind(0, &mut client.0);
    while body.len() < BODY.len() {
        hold = skip(&server, hold, Duration::from_secs(25));
        let window = frame(8, 0, 1, &[0, 0, 0, 1]);
        client.0.get_mut().write_all(&window).unwrap();
        body.extend(frame_of_kind(0, &mut client.0));
    }
    assert_eq!(body, BODY);
    drop(hold);
    server.end().unwrap();
}

/// Connects to the server, sends a `CONNECT` for `host`, and waits for the answer. For the host
/// `tunnel` the service opens a tunnel. For any other host it answers as for any other request.
fn connect_to(host: &str, server: &Server) -> Client {
    let mut client = server.connect();
    let headers = [
        &b"\x02\x07CONNECT\x01"[..],
        &[host.len() as u8],
        host.as_bytes(),
    ];
    let bytes = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(4, 0, 0, &[]),
        frame(1, 4, 1, &headers.concat()),
    ];
    client.0.get_mut().write_all(&bytes.concat()).unwrap();
    frame_of_kind(1, &mut client.0);
    client
}

// Fails if a client can keep its connection by a `CONNECT` that the service answers like any other
// request, without taking the tunnel.
#[test]
fn connect_without_a_tunnel_keeps_no_connection() {
    let (server, hold) = paused_server();
    let mut client = connect_to("a", &server);
    drop(hold);
    let kinds: Vec<u8> = iter::from_fn(|| kind_of_frame(&mut client.0)).collect();
    assert!(kinds.contains(&7), "no GOAWAY: {kinds:?}");
    server.end().unwrap();
}

// Fails if the server ends a connection whose tunnel is open for an hour, or if the server never
// ends the connection after that tunnel.
#[test]
fn tunnel_of_an_hour_keeps_its_connection() {
    let (server, hold) = paused_server();
    let mut client = connect_to("tunnel", &server);
    server.state.begun.1.recv_blocking().unwrap();
    let hold = skip(&server, hold, Duration::from_secs(3_600));
    server.state.gate.0.send_blocking(()).unwrap();
    assert_eq!(frame_of_kind(0, &mut client.0), b"");
    drop(hold);
    let kinds: Vec<u8> = iter::from_fn(|| kind_of_frame(&mut client.0)).collect();
    assert!(kinds.contains(&7), "no GOAWAY: {kinds:?}");
    server.end().unwrap();
}

// Fails if a client without a request keeps a shutdown waiting until the shutdown's time limit,
// with or without a limit for heads.
#[test]
fn shutdown_drops_silent_clients_before_its_limit() {
    for head_limit in [Some(Duration::from_secs(30)), None] {
        let server = Server::with(|serve| {
            serve
                .http2_only(|http2| http2)
                .header_read_timeout(head_limit)
        });
        let hold = server.runtime.block_on(async {
            time::pause();
            hold_clock()
        });
        // Each client reads something from the server before the shutdown, so the server has
        // accepted both. `silent` sends nothing. `idle` sends its settings and a ping, but no
        // request.
        let (mut silent, mut idle) = (server.connect(), server.connect());
        silent.0.read_exact(&mut [0; 9]).unwrap();
        let bytes = [
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            frame(4, 0, 0, &[]),
            frame(6, 0, 0, &[0; 8]),
        ];
        idle.0.get_mut().write_all(&bytes.concat()).unwrap();
        frame_of_kind(6, &mut idle.0);
        server.stop();
        drop(hold);
        server.end().unwrap();
    }
}

/// A body without end. It counts the bytes that it has made.
struct Endless(Arc<AtomicUsize>);

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        const PIECE: &[u8] = &[0; 16 << 10];
        self.0.fetch_add(PIECE.len(), SeqCst);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(PIECE)))))
    }
}

// Fails if a client that opens the largest windows for all its streams, and reads nothing, makes
// the server buffer more than `max_send_buf_size` for each stream.
#[test]
fn streams_that_nobody_reads_fill_only_their_buffers() {
    const STREAMS: u8 = 100;
    const BUFFER: usize = 64 << 10;
    let runtime = selvedge::Builder::new_current_thread().build().unwrap();
    let made = Arc::new(AtomicUsize::new(0));
    let (mut client, near) = net::UnixStream::pair().unwrap();
    let mut bytes = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(4, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]),
        frame(8, 0, 0, &[0x7f, 0xff, 0, 0]),
    ]
    .concat();
    for n in 0..STREAMS {
        bytes.extend(frame(1, 5, 2 * n + 1, &[0x82, 0x86, 0x84, 0x41, 1, b'a']));
    }
    client.write_all(&bytes).unwrap();
    let stall = Duration::from_millis(20);
    let (failed, errors) = async_channel::unbounded();
    runtime.block_on(async {
        near.set_nonblocking(true).unwrap();
        let listener = Counting {
            stream: Some(UnixStream::from_std(near).unwrap()),
            writes: Arc::default(),
        };
        let answer = made.clone();
        let service = service_fn(move |_| {
            let body = Endless(answer.clone());
            async { Ok::<_, Infallible>(Response::new(body)) }
        });
        let server = serve(listener, service)
            .http2_only(|http2| http2.max_send_buf_size(BUFFER))
            .write_timeout(stall)
            .on_error(move |error| _ = failed.try_send(error));
        selvedge::spawn_detached(server.into_future());
        errors.recv().await.unwrap();
    });
    // The bound allows each stream two pieces beyond its buffer, and 4 MiB for the bytes that the
    // socket takes.
    let most = usize::from(STREAMS) * (BUFFER + (32 << 10)) + (4 << 20);
    let made = made.load(SeqCst);
    assert!(made > 0 && made < most, "{made} bytes");
}

fn post(body: String) -> Request<Full<Bytes>> {
    let request = Request::post("http://a/echo");
    request.body(Full::new(Bytes::from(body))).unwrap()
}

#[test]
fn hundred_streams_share_a_connection_until_the_shutdown() {
    let server = Server::with(|serve| {
        serve.http2_only(|http2| http2.keep_alive_interval(Duration::from_secs(60)))
    });
    server.runtime.block_on(async {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let mut builder = http2::Builder::new(SelvedgeExecutor);
        builder.timer(SelvedgeTimer);
        let (sender, connection) = builder.handshake(SelvedgeIo::new(stream)).await.unwrap();
        let connection = selvedge::spawn(connection);
        let mut streams = selvedge::JoinSet::new();
        for n in 0..100 {
            let mut sender = sender.clone();
            streams.spawn(async move {
                let response = sender.send_request(post(n.to_string())).await.unwrap();
                let body = response.into_body().collect().await.unwrap().to_bytes();
                assert_eq!(body, n.to_string());
            });
        }
        streams.join_all().await;
        // The server makes one service for each connection, so there was one connection.
        assert_eq!(server.state.made.load(SeqCst), 1);

        // The server shuts down while a stream is in progress, and still answers its request.
        let mut last = sender.clone();
        let wait = Request::get("http://a/wait").body(Full::default()).unwrap();
        let waiting = selvedge::spawn(async move { last.send_request(wait).await });
        server.state.begun.1.recv().await.unwrap();
        server.stop();
        server.state.gate.0.send(()).await.unwrap();
        let response = waiting.await.unwrap().unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, "waited");
        drop(sender);
        connection.await.unwrap().unwrap();
    });
    server.end().unwrap();
}

/// A listener that accepts one connection, and counts the writes of that connection.
struct Counting {
    stream: Option<UnixStream>,
    writes: Arc<AtomicUsize>,
}

/// The I/O of that connection.
struct CountingIo(SelvedgeIo<UnixStream>, Arc<AtomicUsize>);

impl Listener for Counting {
    type Io = CountingIo;

    fn poll_accept(&mut self, _: &mut Context<'_>) -> Poll<io::Result<CountingIo>> {
        match self.stream.take() {
            Some(stream) => {
                let io = SelvedgeIo::new(stream);
                Poll::Ready(Ok(CountingIo(io, self.writes.clone())))
            }
            None => Poll::Pending,
        }
    }
}

impl LimitWrites for CountingIo {
    fn limit_writes(&mut self, limit: Duration) {
        self.0.limit_writes(limit);
    }
}

impl Read for CountingIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, to)
    }
}

impl Write for CountingIo {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.1.fetch_add(1, SeqCst);
        Pin::new(&mut self.0).poll_write(cx, from)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.1.fetch_add(1, SeqCst);
        Pin::new(&mut self.0).poll_write_vectored(cx, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// The one thread of a runtime serves 100 requests that arrive in one piece.
///
/// Each request is answered by a task of its own. Fails if the connection's task runs between these
/// tasks, and so writes each answer alone.
#[test]
fn answers_of_requests_that_came_together_share_writes() {
    const REQUESTS: u32 = 100;
    let (mut client, server) = net::UnixStream::pair().unwrap();
    let mut requests = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    requests.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]);
    for n in 0..REQUESTS {
        requests.extend([0, 0, 6, 1, 5]);
        requests.extend((2 * n + 1).to_be_bytes());
        requests.extend(b"\x82\x86\x84\x01\x01a");
    }
    client.write_all(&requests).unwrap();
    let client = move || {
        let (mut answers, mut ended) = (client, 0);
        while ended < REQUESTS {
            let mut head = [0; 9];
            answers.read_exact(&mut head).unwrap();
            let len = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            answers.read_exact(&mut vec![0; len as usize]).unwrap();
            let has_ended = head[3] == 0 && head[4] & 1 != 0;
            ended += u32::from(has_ended);
        }
    };
    let writes = Arc::new(AtomicUsize::new(0));
    let runtime = selvedge::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        server.set_nonblocking(true).unwrap();
        let listener = Counting {
            stream: Some(UnixStream::from_std(server).unwrap()),
            writes: writes.clone(),
        };
        let service = service_fn(|_| async {
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("hello"))))
        });
        let client = selvedge::spawn_blocking(client);
        let server = serve(listener, service).http2_only(|http2| http2);
        let server = server.shutdown_on(async { client.await.unwrap() });
        server.await.unwrap();
    });
    let writes = writes.load(SeqCst);
    assert!(writes < REQUESTS as usize / 4, "{writes} writes");
}
