//! A server under test, and a client of the standard library that speaks HTTP/1.1 to it.
#![allow(dead_code, reason = "each test program uses a part")]
use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::{Request, Response, body::Incoming, service::Service};
use selvedge::{JoinHandle, Runtime, net::TcpListener};
use selvedge_hyper::{Listener, SelvedgeIo, Serve, serve_with};
use std::{
    convert::Infallible,
    future::Future,
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

pub type Answer = Response<Either<Full<Bytes>, Incoming>>;

pub fn text(text: &'static str) -> Answer {
    Response::new(Either::Left(Full::new(Bytes::from_static(text.as_bytes()))))
}

/// Counts of a server's services, the gate by which a test holds up a request, and errors.
pub struct State {
    /// Number of connections that have a service now.
    pub open: AtomicUsize,
    /// The largest value of `open` so far.
    pub most: AtomicUsize,
    /// Number of services that were made.
    pub made: AtomicUsize,
    /// A request of `/wait` first sends a message here.
    pub begun: (async_channel::Sender<()>, async_channel::Receiver<()>),
    /// Then the request of `/wait` waits for a message here.
    pub gate: (async_channel::Sender<()>, async_channel::Receiver<()>),
    /// The errors of connections.
    pub errors: (
        async_channel::Sender<hyper::Error>,
        async_channel::Receiver<hyper::Error>,
    ),
}

impl State {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            open: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            made: AtomicUsize::new(0),
            begun: async_channel::unbounded(),
            gate: async_channel::unbounded(),
            errors: async_channel::unbounded(),
        })
    }
}

/// The service of one connection.
pub struct Site(Arc<State>);

impl Site {
    fn new(state: &Arc<State>) -> Self {
        state.made.fetch_add(1, SeqCst);
        let open = state.open.fetch_add(1, SeqCst) + 1;
        state.most.fetch_max(open, SeqCst);
        Self(state.clone())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, SeqCst);
    }
}

impl Service<Request<Incoming>> for Site {
    type Response = Answer;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let state = self.0.clone();
        Box::pin(async move {
            if request.uri().host() == Some("tunnel") {
                return Ok(tunnel(request, state));
            }
            Ok(match request.uri().path() {
                "/echo" => Response::new(Either::Right(request.into_body())),
                "/wait" => {
                    state.begun.0.send(()).await.unwrap();
                    state.gate.1.recv().await.unwrap();
                    text("waited")
                }
                "/panic" => panic!("the test's panic"),
                "/upgrade" => upgrade(request),
                _ => text("hello"),
            })
        })
    }
}

/// Opens a tunnel (`CONNECT` of HTTP/2), and ends it when the gate opens.
fn tunnel(mut request: Request<Incoming>, state: Arc<State>) -> Answer {
    let upgraded = hyper::upgrade::on(&mut request);
    selvedge::spawn_detached(async move {
        let tunnel = upgraded.await.unwrap();
        state.begun.0.send(()).await.unwrap();
        state.gate.1.recv().await.unwrap();
        drop(tunnel);
    });
    text("")
}

/// Answers 101, and then echoes four bytes on the bare stream.
fn upgrade(mut request: Request<Incoming>) -> Answer {
    use futures_lite::{AsyncReadExt, AsyncWriteExt};

    let upgraded = hyper::upgrade::on(&mut request);
    selvedge::spawn_detached(async move {
        let parts = upgraded.await.unwrap();
        let parts = parts.downcast::<SelvedgeIo<selvedge::net::TcpStream>>();
        let parts = parts.unwrap();
        let mut stream = parts.io.into_inner();
        let mut bytes = parts.read_buf.to_vec();
        let early = bytes.len();
        bytes.resize(4, 0);
        stream.read_exact(&mut bytes[early..]).await.unwrap();
        stream.write_all(&bytes).await.unwrap();
    });
    let mut answer = text("");
    *answer.status_mut() = hyper::StatusCode::SWITCHING_PROTOCOLS;
    let headers = answer.headers_mut();
    headers.insert("connection", "upgrade".parse().unwrap());
    headers.insert("upgrade", "bare".parse().unwrap());
    answer
}

pub struct Server {
    pub runtime: Runtime,
    pub address: SocketAddr,
    pub state: Arc<State>,
    stop: async_channel::Sender<()>,
    pub ended: JoinHandle<io::Result<()>>,
}

type Make<L> = Box<dyn FnMut(&<L as Listener>::Io) -> Site + Send>;

impl Server {
    pub fn new() -> Self {
        Self::with(|serve| serve)
    }

    pub fn with(
        set: impl FnOnce(Serve<TcpListener, Make<TcpListener>>) -> Serve<TcpListener, Make<TcpListener>>,
    ) -> Self {
        Self::over(|listener| listener, set)
    }

    /// Starts a server over a listener that `wrap` returns.
    pub fn over<L: Listener<Io: 'static> + Send + 'static>(
        wrap: impl FnOnce(TcpListener) -> L,
        set: impl FnOnce(Serve<L, Make<L>>) -> Serve<L, Make<L>>,
    ) -> Self {
        Self::on(Runtime::new().unwrap(), wrap, set)
    }

    /// Starts a server on a runtime.
    pub fn on<L: Listener<Io: 'static> + Send + 'static>(
        runtime: Runtime,
        wrap: impl FnOnce(TcpListener) -> L,
        set: impl FnOnce(Serve<L, Make<L>>) -> Serve<L, Make<L>>,
    ) -> Self {
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let state = State::new();
        let (stop, stopped) = async_channel::bounded::<()>(1);
        let (made, errors) = (state.clone(), state.errors.0.clone());
        let make: Make<L> = Box::new(move |_| Site::new(&made));
        let serve = serve_with(wrap(listener), make)
            .on_error(move |error| drop(errors.try_send(error)))
            .shutdown_on(async move { _ = stopped.recv().await });
        let serve = set(serve);
        let ended = runtime.spawn(serve.into_future());
        Self {
            runtime,
            address,
            state,
            stop,
            ended,
        }
    }

    pub fn connect(&self) -> Client {
        Client::new(TcpStream::connect(self.address).unwrap())
    }

    /// Requests the shutdown of the server.
    pub fn stop(&self) {
        let _ = self.stop.try_send(());
    }

    /// Requests the shutdown, and waits until the server has ended.
    pub fn end(self) -> io::Result<()> {
        self.stop();
        self.runtime.block_on(self.ended).unwrap()
    }
}

pub struct Client(pub BufReader<TcpStream>);

impl Client {
    pub fn new(stream: TcpStream) -> Self {
        Self(BufReader::new(stream))
    }

    pub fn send(&mut self, bytes: &str) {
        self.0.get_mut().write_all(bytes.as_bytes()).unwrap();
    }

    /// Requests a page, and returns the body.
    pub fn get(&mut self, path: &str) -> String {
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n"));
        self.response().1
    }

    /// Reads a response: its head and its body.
    pub fn response(&mut self) -> (String, String) {
        read_response(&mut self.0)
    }

    /// Waits for a byte or the end of the connection. Returns whether there was no byte.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.0.read(&mut [0]), Ok(0) | Err(_))
    }
}

pub fn read_response(from: &mut impl BufRead) -> (String, String) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(
            from.read_line(&mut head).unwrap(),
            0,
            "closed after: {head}"
        );
    }
    let head = head.to_lowercase();
    let mut body = Vec::new();
    if let Some((_, rest)) = head.split_once("content-length: ") {
        let len = rest.split("\r\n").next().unwrap().parse().unwrap();
        body.resize(len, 0);
        from.read_exact(&mut body).unwrap();
    } else if head.contains("transfer-encoding: chunked") {
        loop {
            let mut line = String::new();
            from.read_line(&mut line).unwrap();
            let len = usize::from_str_radix(line.trim_end(), 16).unwrap();
            let old = body.len();
            body.resize(old + len, 0);
            from.read_exact(&mut body[old..]).unwrap();
            from.read_exact(&mut [0; 2]).unwrap();
            if len == 0 {
                break;
            }
        }
    }
    (head, String::from_utf8(body).unwrap())
}
