//! `serve` makes a server from a listener and a service.
#[cfg(feature = "http2")]
use crate::idle::{Idle, LimitIdle};
use crate::{
    LimitWrites, Listener, SelvedgeTimer,
    connection::{Connection, OnError},
    connections::Connections,
};
use hyper::{
    Request, Response,
    body::{Body, Incoming},
    server::conn::http1,
    service::Service,
};
use selvedge::time::{self, Sleep};
use std::{
    error::Error,
    fmt,
    future::{Future, IntoFuture, pending, poll_fn},
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

/// How long the server waits after an error of `accept`.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// The longest limit that hyper gets. hyper adds the limit to the present time, and the sum with
/// this one is within the range of the clock.
const LONGEST: Duration = Duration::from_secs(30 * 365 * 86_400);

/// How long a client may take for the head of a request, unless [`Serve::header_read_timeout`] sets
/// another limit.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// How long connections may take to finish in a shutdown, unless [`Serve::shutdown_timeout`] sets
/// another limit.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);

/// A function that sets the time limit for the writes of a connection.
type SetLimit<L> = fn(&mut <L as Listener>::Io, Duration);

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

#[cfg(feature = "http2")]
type Http2 = hyper::server::conn::http2::Builder<crate::SelvedgeExecutor>;

/// Serves HTTP on each connection of `listener`, by a clone of `service`.
///
/// Set options on the returned [`Serve`], and await it. It runs until its shutdown, or until the
/// listener fails. Each connection is a task of the current runtime.
///
/// ```no_run
/// use bytes::Bytes;
/// use http_body_util::Full;
/// use hyper::{Request, Response, body::Incoming, service::service_fn};
/// use selvedge::net::TcpListener;
/// use std::convert::Infallible;
///
/// async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
///     Ok(Response::new(Full::new(Bytes::from("hello\n"))))
/// }
///
/// let runtime = selvedge::Runtime::new()?;
/// runtime.block_on(async {
///     let listener = TcpListener::bind("127.0.0.1:8080").await?;
///     selvedge_hyper::serve(listener, service_fn(hello)).await
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn serve<L, S>(listener: L, service: S) -> Serve<L, impl FnMut(&L::Io) -> S + use<L, S>>
where
    L: Listener,
    S: Clone,
{
    serve_with(listener, move |_: &L::Io| service.clone())
}

/// Serves HTTP on each connection of `listener`, by a service that `make` makes for the connection.
///
/// `make` sees the connection, for example its peer's address. `make` runs in the server's task, so
/// it should be quick. A panic in `make` ends the server.
///
/// ```no_run
/// use bytes::Bytes;
/// use http_body_util::Full;
/// use hyper::{Request, Response, body::Incoming, service::service_fn};
/// use selvedge::net::{TcpListener, TcpStream};
/// use selvedge_hyper::{SelvedgeIo, serve_with};
/// use std::convert::Infallible;
///
/// let runtime = selvedge::Runtime::new()?;
/// runtime.block_on(async {
///     let listener = TcpListener::bind("127.0.0.1:8080").await?;
///     serve_with(listener, |io: &SelvedgeIo<TcpStream>| {
///         let peer = io.inner().peer_addr();
///         let page = Bytes::from(format!("you are {peer:?}\n"));
///         service_fn(move |_: Request<Incoming>| {
///             let body = Full::new(page.clone());
///             async { Ok::<_, Infallible>(Response::new(body)) }
///         })
///     })
///     .await
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn serve_with<L, M, S>(listener: L, make: M) -> Serve<L, M>
where
    L: Listener,
    M: FnMut(&L::Io) -> S,
{
    let mut http1 = http1::Builder::new();
    http1.timer(SelvedgeTimer).header_read_timeout(HEAD_TIMEOUT);
    Serve {
        listener,
        make,
        shutdown: None,
        limit_writes: None,
        options: Options {
            http1,
            #[cfg(feature = "http2")]
            http2: None,
            #[cfg(feature = "http2")]
            idle_timeout: Some(HEAD_TIMEOUT),
            connection_limit: usize::MAX,
            shutdown_timeout: Some(SHUTDOWN_TIMEOUT),
            on_error: None,
        },
    }
}

/// A server that [`serve`] returns: set its options, and await it.
///
/// The awaited server returns when it has shut down and all its connections have ended. If the
/// server is dropped earlier, the connections still finish their requests, but nothing waits for
/// them.
///
/// An HTTP/1 connection that was upgraded (`CONNECT`, WebSocket) belongs to the service from then
/// on: it no longer counts as a connection of the server, and a shutdown does not end it. Over
/// HTTP/2 a tunnel is a stream of its connection, which still counts. A shutdown waits for the
/// tunnel, and after the [`shutdown_timeout`](Self::shutdown_timeout) cuts it off.
///
/// ```
/// use bytes::Bytes;
/// use http_body_util::Full;
/// use hyper::{Request, Response, body::Incoming, service::service_fn};
/// use selvedge::net::TcpListener;
/// use std::{convert::Infallible, io::{Read, Write}, net::TcpStream, time::Duration};
///
/// let runtime = selvedge::Runtime::new()?;
/// runtime.block_on(async {
///     let service = service_fn(|_: Request<Incoming>| async {
///         Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("hello"))))
///     });
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let address = listener.local_addr()?;
///     let client = selvedge::spawn_blocking(move || {
///         let mut stream = TcpStream::connect(address)?;
///         stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")?;
///         let mut response = String::new();
///         stream.read_to_string(&mut response)?;
///         Ok::<_, std::io::Error>(response)
///     });
///     selvedge_hyper::serve(listener, service)
///         .connection_limit(10_000)
///         .header_read_timeout(Duration::from_secs(10))
///         .http1(|http1| http1.max_buf_size(64 * 1024))
///         .on_error(|error| eprintln!("{error}"))
///         .shutdown_timeout(Duration::from_secs(5))
///         .shutdown_on(async move {
///             let response = client.await.unwrap().unwrap();
///             assert!(response.ends_with("\r\n\r\nhello"));
///         })
///         .await
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// The error of the listener, if it ended the server, or the error of listening for Ctrl-C.
/// `TimedOut` if the [`shutdown_timeout`](Self::shutdown_timeout) cut connections off.
///
/// # Panics
/// A server that is awaited outside a runtime panics, as [`selvedge::spawn_detached`] does.
#[must_use = "a server does nothing unless it is awaited"]
pub struct Serve<L, M>
where
    L: Listener,
{
    listener: L,
    make: M,
    shutdown: Option<BoxFuture<io::Result<()>>>,
    /// The time limit for a connection's writes, and the function that sets it. `None` if there is
    /// no limit.
    limit_writes: Option<(Duration, SetLimit<L>)>,
    options: Options,
}

struct Options {
    http1: http1::Builder,
    #[cfg(feature = "http2")]
    http2: Option<Http2>,
    /// How long an HTTP/2 connection may have no request.
    #[cfg(feature = "http2")]
    idle_timeout: Option<Duration>,
    connection_limit: usize,
    shutdown_timeout: Option<Duration>,
    on_error: Option<OnError>,
}

impl<L: Listener, M> Serve<L, M> {
    /// Sets how many connections may be open at a time. At the limit the server accepts no
    /// connection: new ones wait in the listener's backlog.
    ///
    /// Without this limit, only the process's limit of descriptors applies.
    ///
    /// # Panics
    /// If it is zero.
    #[track_caller]
    pub fn connection_limit(mut self, limit: usize) -> Self {
        assert!(limit > 0, "the limit of connections is zero");
        self.options.connection_limit = limit;
        self
    }

    /// Sets how long a client may take for the head of a request: 30 seconds by default, or without
    /// limit for `None`.
    ///
    /// Over HTTP/1 the time begins with the connection, and again with the end of each response; so
    /// it limits idle connections too.
    ///
    /// Over HTTP/2 this is a limit for connections without a request, also those whose client never
    /// sends HTTP/2, or only pings. A connection that never had a request closes after the limit;
    /// any other closes one to two limits after the end of its last response. The server first
    /// sends `GOAWAY`, and still answers requests that were on their way. If the client does not
    /// end the connection within one to two limits more, the server drops it; that is no error.
    ///
    /// After a shutdown the server drops an HTTP/2 connection within 10 to 20 seconds, or one to
    /// two limits if these are shorter, from the end of its last response or from the shutdown.
    /// This also holds without a limit.
    ///
    /// A request lasts until the connection has written its response, however slowly the client
    /// opens its window. A tunnel (a successful `CONNECT`) lasts until the service closes its side
    /// or the client resets it. The limit does not count the following, and may cut them off if
    /// they take longer than it:
    ///
    /// - the body of a request that the service still reads when its response has been written. So
    ///   answer at the end of a long upload.
    /// - bytes that the client sends into a tunnel after the service has closed its side, and the
    ///   service's last write into a tunnel.
    ///
    /// A limit below 10 ms counts as 10 ms over HTTP/2. A limit of more than 30 years counts as 30
    /// years.
    pub fn header_read_timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        // hyper adds the limit to the present time, and panics if the sum is beyond the range.
        let limit = limit.into().map(|limit| limit.min(LONGEST));
        self.options.http1.header_read_timeout(limit);
        #[cfg(feature = "http2")]
        {
            self.options.idle_timeout = limit;
        }
        self
    }

    /// Sets how long a client may take no byte of a response before its connection ends: without
    /// limit by default. The connection's error is [`WriteTimedOut`](crate::WriteTimedOut).
    ///
    /// The time counts only while a write is pending. It begins anew with each write of which the
    /// client takes a part, so a slow client is served for any time. A client that stops in the
    /// middle may have left room in the send buffer. Then its connection ends after up to twice the
    /// limit. Bytes that fit in the system's buffers count as taken, so a short response never
    /// waits. The limit continues after an upgrade, until
    /// [`SelvedgeIo::into_inner`](crate::SelvedgeIo::into_inner). For I/O other than
    /// [`SelvedgeIo`](crate::SelvedgeIo) choose minutes: see [`WriteLimit`](crate::WriteLimit).
    ///
    /// Over HTTP/2 the error's source is an [`io::Error`] of the kind `TimedOut`, with the text of
    /// `WriteTimedOut`. A client of HTTP/2 that reads, but opens no window for a response, makes no
    /// write pending, so this limit does not end its connection. The options `keep_alive_interval`
    /// and `keep_alive_timeout` of HTTP/2 end the connection of a client that answers no ping.
    ///
    /// A pending write costs a sleep: an allocation for the connection's first pending write, and
    /// a reset for each later one. Any other write costs a test.
    ///
    /// ```no_run
    /// # use bytes::Bytes;
    /// # use http_body_util::Full;
    /// # use hyper::{Request, Response, body::Incoming, service::service_fn};
    /// # use selvedge::net::TcpListener;
    /// # use std::{convert::Infallible, time::Duration};
    /// # async fn run(listener: TcpListener) -> std::io::Result<()> {
    /// # let service = service_fn(|_: Request<Incoming>| async {
    /// #     Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("hello"))))
    /// # });
    /// selvedge_hyper::serve(listener, service)
    ///     .write_timeout(Duration::from_secs(60))
    ///     .on_error(|error| match selvedge_hyper::WriteTimedOut::of(&error) {
    ///         Some(stalled) => eprintln!("a client reads nothing: {stalled}"),
    ///         None => {}
    ///     })
    ///     .await
    /// # }
    /// ```
    pub fn write_timeout(mut self, limit: impl Into<Option<Duration>>) -> Self
    where
        L::Io: LimitWrites,
    {
        let set: SetLimit<L> = LimitWrites::limit_writes;
        self.limit_writes = limit.into().map(|limit| (limit, set));
        self
    }

    /// Sets other options of HTTP/1.
    ///
    /// Keep the builder's timer: without one, hyper's timeouts do not work. Give the builder no
    /// endless spans: hyper adds a span to the present time, and panics in each connection if the
    /// sum is beyond the range of [`Instant`](std::time::Instant).
    pub fn http1(mut self, set: impl FnOnce(&mut http1::Builder) -> &mut http1::Builder) -> Self {
        set(&mut self.options.http1);
        self
    }

    /// Serves only HTTP/2, to clients that begin with it: a connection cannot change from HTTP/1 to
    /// HTTP/2. `set` sets the options of HTTP/2, with no endless spans, as for
    /// [`http1`](Self::http1).
    ///
    /// Each request is a task. If the [`shutdown_timeout`](Self::shutdown_timeout) cuts off the
    /// request's connection, the task continues.
    ///
    /// ```no_run
    /// # use bytes::Bytes;
    /// # use http_body_util::Full;
    /// # use hyper::{Request, Response, body::Incoming, service::service_fn};
    /// # use selvedge::net::TcpListener;
    /// # use std::convert::Infallible;
    /// # async fn run(listener: TcpListener) -> std::io::Result<()> {
    /// # let service = service_fn(|_: Request<Incoming>| async {
    /// #     Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("hello"))))
    /// # });
    /// selvedge_hyper::serve(listener, service)
    ///     .http2_only(|http2| http2.max_concurrent_streams(100))
    ///     .await
    /// # }
    /// ```
    #[cfg(feature = "http2")]
    pub fn http2_only(mut self, set: impl FnOnce(&mut Http2) -> &mut Http2) -> Self {
        let mut http2 = Http2::new(crate::SelvedgeExecutor);
        http2.timer(SelvedgeTimer);
        set(&mut http2);
        self.options.http2 = Some(http2);
        self
    }

    /// Sets a function that receives the errors of connections. The function runs in the
    /// connection's task.
    ///
    /// Most of these errors come from clients that disconnected. Without such a function, the
    /// server ignores them.
    ///
    /// A connection that panics is reported too: its error has the panic's message in its source.
    /// Over HTTP/1 that may be a panic of the service. Over HTTP/2 each request is a task of its
    /// own, and a panic there ends that request alone, without a report.
    pub fn on_error(mut self, f: impl Fn(hyper::Error) + Send + Sync + 'static) -> Self {
        self.options.on_error = Some(Arc::new(f));
        self
    }

    /// Shuts the server down when `signal` is ready.
    ///
    /// The server closes its listener. A connection that waits for a request ends at once. Any
    /// other connection ends after it has answered its request.
    pub fn shutdown_on(mut self, signal: impl Future<Output = ()> + Send + 'static) -> Self {
        self.shutdown = Some(Box::pin(async {
            signal.await;
            Ok(())
        }));
        self
    }

    /// Shuts the server down at the next SIGINT, which Ctrl-C sends.
    ///
    /// ```no_run
    /// # use bytes::Bytes;
    /// # use http_body_util::Full;
    /// # use hyper::{Request, Response, body::Incoming, service::service_fn};
    /// # use selvedge::net::TcpListener;
    /// # use std::convert::Infallible;
    /// # async fn run(listener: TcpListener) -> std::io::Result<()> {
    /// # let service = service_fn(|_: Request<Incoming>| async {
    /// #     Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("hello"))))
    /// # });
    /// selvedge_hyper::serve(listener, service).shutdown_on_ctrl_c().await
    /// # }
    /// ```
    pub fn shutdown_on_ctrl_c(mut self) -> Self {
        self.shutdown = Some(Box::pin(selvedge::signal::ctrl_c()));
        self
    }

    /// Sets how long a shutdown waits for connections before it cuts them off: 30 seconds by
    /// default, or without limit for `None`.
    pub fn shutdown_timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.options.shutdown_timeout = limit.into();
        self
    }
}

impl<L: Listener, M> fmt::Debug for Serve<L, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = &self.options;
        f.debug_struct("Serve")
            .field("connection_limit", &options.connection_limit)
            .field("shutdown_timeout", &options.shutdown_timeout)
            .finish_non_exhaustive()
    }
}

impl<L, M, S, B> IntoFuture for Serve<L, M>
where
    L: Listener + Send + 'static,
    M: FnMut(&L::Io) -> S + Send + 'static,
    S: Service<Request<Incoming>, Response = Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    type Output = io::Result<()>;
    type IntoFuture = BoxFuture<io::Result<()>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(run(self))
    }
}

/// Lets the connections finish, also if the server is dropped or panics.
struct CloseOnDrop(Arc<Connections>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

async fn run<L, M, S, B>(serve: Serve<L, M>) -> io::Result<()>
where
    L: Listener + Send + 'static,
    M: FnMut(&L::Io) -> S + Send + 'static,
    S: Service<Request<Incoming>, Response = Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let Serve {
        mut listener,
        mut make,
        shutdown,
        limit_writes,
        options,
    } = serve;
    let connections = Arc::new(Connections::default());
    let close = CloseOnDrop(connections.clone());
    let mut shutdown = shutdown.unwrap_or_else(|| Box::pin(pending()));
    let mut accept = Accept::default();
    let ended = poll_fn(|cx| {
        if let Poll::Ready(ended) = shutdown.as_mut().poll(cx) {
            return Poll::Ready(ended);
        }
        loop {
            ready!(connections.poll_at_most(options.connection_limit - 1, cx));
            let mut io = ready!(accept.poll(&mut listener, cx))?;
            if let Some((limit, set)) = limit_writes {
                set(&mut io, limit);
            }
            let service = make(&io);
            let guard = connections.open();
            let on_error = options.on_error.clone();
            #[cfg(feature = "http2")]
            if let Some(http2) = &options.http2 {
                let (idle, service) = Idle::new(options.idle_timeout, service);
                let connection = LimitIdle::new(http2.serve_connection(io, service), idle);
                selvedge::spawn_detached(Connection::new(connection, guard, on_error));
                continue;
            }
            let connection = options.http1.serve_connection(io, service);
            let connection = connection.with_upgrades();
            selvedge::spawn_detached(Connection::new(connection, guard, on_error));
        }
    })
    .await;
    drop(listener);
    drop(close);
    let cut = end_connections(&connections, options.shutdown_timeout).await;
    ended.and(cut)
}

/// Waits until all connections have ended. After the time limit, ends those that are left.
async fn end_connections(connections: &Connections, limit: Option<Duration>) -> io::Result<()> {
    let all_ended = || poll_fn(|cx| connections.poll_at_most(0, cx));
    let Some(limit) = limit else {
        all_ended().await;
        return Ok(());
    };
    if time::timeout(limit, all_ended()).await.is_ok() {
        return Ok(());
    }
    let left = connections.count();
    connections.abort();
    all_ended().await;
    let message = format!("the shutdown cut {left} connections off");
    Err(io::Error::new(io::ErrorKind::TimedOut, message))
}

/// Accepts connections, with a pause after an error.
#[derive(Default)]
struct Accept {
    pause: Option<Pin<Box<Sleep>>>,
}

impl Accept {
    fn poll<L: Listener>(
        &mut self,
        listener: &mut L,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<L::Io>> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(cx));
                self.pause = None;
            }
            match ready!(listener.poll_accept(cx)) {
                Err(error) if !is_fatal(&error) => {
                    self.pause = Some(Box::pin(time::sleep(ACCEPT_PAUSE)));
                }
                accepted => return Poll::Ready(accepted),
            }
        }
    }
}

/// Returns whether the listener itself has failed. Any other error comes from a single connection,
/// or from a shortage, for example of descriptors.
fn is_fatal(error: &io::Error) -> bool {
    #[cfg(unix)]
    const CODES: [i32; 3] = [libc::EBADF, libc::EINVAL, libc::ENOTSOCK];
    /// `WSAEBADF`, `WSAEINVAL` and `WSAENOTSOCK`.
    #[cfg(windows)]
    const CODES: [i32; 3] = [10_009, 10_022, 10_038];
    error
        .raw_os_error()
        .is_none_or(|code| CODES.contains(&code))
}
