//! The pooling client of hyper-util, over the sockets of Selvedge.
use crate::{
    Attempts, SelvedgeExecutor, SelvedgeIo, SelvedgeTimer,
    attempts::{Race, alternate},
};
use hyper::{Uri, body::Body};
use hyper_util::client::legacy::{
    Builder, Client,
    connect::{Connected, Connection},
};
#[cfg(unix)]
use selvedge::net::UnixStream;
use selvedge::{
    net::{TcpStream, lookup_host},
    time::{self, Instant},
};
use std::{
    error::Error,
    fmt,
    future::{Future, poll_fn},
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tower_service::Service;

/// Returns hyper-util's client with a pool of connections, over [`Connector`].
///
/// The client speaks HTTP/1.1 to `http:` URIs. For other protocols and options see
/// [`client_builder`]. A clone of the client shares the pool.
///
/// ```
/// use bytes::Bytes;
/// use http_body_util::{BodyExt, Empty, Full};
/// use hyper::{Request, Response, body::Incoming, service::service_fn};
/// use selvedge::net::TcpListener;
/// use std::convert::Infallible;
///
/// async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
///     Ok(Response::new(Full::new(Bytes::from("hello"))))
/// }
///
/// let runtime = selvedge::Runtime::new()?;
/// runtime.block_on(async {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let uri = format!("http://{}/", listener.local_addr()?).parse()?;
///     selvedge::spawn_detached(selvedge_hyper::serve(listener, service_fn(hello)).into_future());
///
///     let client = selvedge_hyper::client::<Empty<Bytes>>();
///     let response = client.get(uri).await?;
///     assert_eq!(response.into_body().collect().await?.to_bytes(), "hello");
///     Ok::<(), Box<dyn std::error::Error>>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// A request panics outside a runtime, as [`selvedge::spawn_detached`] does.
pub fn client<B>() -> Client<Connector, B>
where
    B: Body<Data: Send> + Send,
{
    client_builder().build(Connector::new())
}

/// Returns a builder of hyper-util's client, with our executor and timer.
///
/// The timer is the pool's, too: idle connections are closed after 90 seconds, or after the
/// builder's `pool_idle_timeout`. Pass a connector to the builder's `build`: ours, or a connector
/// that wraps ours for TLS.
///
/// ```
/// use bytes::Bytes;
/// use http_body_util::Empty;
/// use selvedge_hyper::{Connector, client_builder};
/// use std::time::Duration;
///
/// let connector = Connector::new().connect_timeout(Duration::from_secs(5));
/// let client = client_builder().pool_max_idle_per_host(8).build::<_, Empty<Bytes>>(connector);
/// # drop(client);
/// ```
pub fn client_builder() -> Builder {
    let mut builder = Client::builder(SelvedgeExecutor);
    builder.timer(SelvedgeTimer).pool_timer(SelvedgeTimer);
    builder
}

/// Opens a TCP connection to the host of a URI, for [`client_builder`] and other clients that take
/// a connector, such as that of `tonic`.
///
/// The connector looks the host up on the threads of [`selvedge::spawn_blocking`]. It tries the
/// addresses as [RFC 8305](https://www.rfc-editor.org/rfc/rfc8305) says ("Happy Eyeballs"): IPv6
/// and IPv4 in turn, at most 8 at a time. Each attempt starts 250 ms after the start of the last
/// one, or as soon as an attempt fails. The first connection wins, and the other attempts are
/// dropped. There is one lookup for both families: the system's resolver returns their addresses
/// together. The family of the first address is tried first.
///
/// If the URI names no port, the port is 443 for `https:` and `wss:`, else 80. A port that is no
/// number up to 65,535 is [an error](ConnectError::Port). A connection costs one allocation for the
/// future, some for the lookup and the list of attempts, one for each attempt, and the system call
/// for `TCP_NODELAY`.
///
/// A connector that wraps this one for TLS needs [`enforce_http(false)`](Self::enforce_http).
///
/// ```
/// use hyper::Uri;
/// use selvedge::net::TcpListener;
/// use selvedge_hyper::{ConnectError, Connector};
/// use std::time::Duration;
/// use tower_service::Service;
///
/// selvedge::Runtime::new()?.block_on(async {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let address = listener.local_addr()?;
///     let mut connector = Connector::new().connect_timeout(Duration::from_secs(5));
///     let io = connector.call(format!("http://{address}/").parse()?).await?;
///     assert_eq!(io.inner().peer_addr()?, address);
///
///     let secret = Uri::from_static("https://a/");
///     let error = connector.call(secret).await.unwrap_err();
///     assert!(matches!(error, ConnectError::Scheme(uri) if uri == "https://a/"));
///     Ok::<(), Box<dyn std::error::Error>>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Connector {
    enforce_http: bool,
    nodelay: bool,
    limit: Option<Duration>,
}

impl Connector {
    /// Returns a connector for `http:` URIs, with `TCP_NODELAY` and no time limit but the system's.
    pub const fn new() -> Self {
        Self {
            enforce_http: true,
            nodelay: true,
            limit: None,
        }
    }

    /// Sets whether a URI that names a scheme other than `http:` is refused: by default it is.
    pub const fn enforce_http(mut self, enforce: bool) -> Self {
        self.enforce_http = enforce;
        self
    }

    /// Sets how long the lookup and all attempts may take together: `None` for any time, which is
    /// the default. The system gives up an attempt after about two minutes.
    pub fn connect_timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.limit = limit.into();
        self
    }

    /// Sets whether connections send small packets at once (`TCP_NODELAY`): by default they do.
    pub const fn nodelay(mut self, nodelay: bool) -> Self {
        self.nodelay = nodelay;
        self
    }
}

impl Default for Connector {
    fn default() -> Self {
        Self::new()
    }
}

impl Service<Uri> for Connector {
    type Response = SelvedgeIo<TcpStream>;
    type Error = ConnectError;
    type Future = Connecting;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Connecting {
        Connecting(Box::pin(self.clone().connect(uri)))
    }
}

impl Connector {
    async fn connect(self, uri: Uri) -> Result<SelvedgeIo<TcpStream>, ConnectError> {
        let scheme = uri.scheme_str();
        if self.enforce_http && scheme.is_some_and(|scheme| scheme != "http") {
            return Err(ConnectError::Scheme(uri));
        }
        let Some(host) = uri.host().filter(|host| !host.is_empty()) else {
            return Err(ConnectError::Host(uri));
        };
        let port = match uri.port_u16() {
            Some(port) => port,
            None if names_port(&uri) => return Err(ConnectError::Port(uri)),
            None if matches!(scheme, Some("https" | "wss")) => 443,
            None => 80,
        };
        // In a URI, an IPv6 address is in brackets.
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let host = bare.unwrap_or(host).to_owned();
        let begun = self.limit.map(|limit| (Instant::now(), limit));
        let left = || begun.map(|(begun, limit)| limit.saturating_sub(begun.elapsed()));
        let found = match within(left(), lookup_host((host, port))).await {
            Some(found) => found.map_err(|error| ConnectError::Lookup(uri.clone(), error))?,
            None => return Err(self.timed_out(uri, Attempts::default())),
        };
        let mut race = Race::new(alternate(found), TcpStream::connect);
        let stream = match within(left(), poll_fn(|cx| race.poll(cx))).await {
            Some(Some(stream)) => stream,
            Some(None) => return Err(ConnectError::Connect(uri, race.into_attempts())),
            None => return Err(self.timed_out(uri, race.into_attempts())),
        };
        drop(race);
        // A connection that refuses the option has ended; its first read says so.
        let _ = stream.set_nodelay(self.nodelay);
        Ok(SelvedgeIo::new(stream))
    }

    fn timed_out(&self, uri: Uri, attempts: Attempts) -> ConnectError {
        ConnectError::TimedOut(uri, self.limit.unwrap_or_default(), attempts)
    }
}

/// Returns whether there is text after the host's colon, be it a port or not.
fn names_port(uri: &Uri) -> bool {
    let text = uri.authority().map_or("", |authority| authority.as_str());
    // The colons of a password and of an IPv6 address are before these characters.
    let after_host = text.rsplit(['@', ']']).next().unwrap_or(text);
    after_host
        .split_once(':')
        .is_some_and(|(_, port)| !port.is_empty())
}

/// Awaits a future, for at most `limit` if there is one. Returns `None` when that time is up.
async fn within<F: Future>(limit: Option<Duration>, future: F) -> Option<F::Output> {
    match limit {
        None => Some(future.await),
        Some(limit) => time::timeout(limit, future).await.ok(),
    }
}

/// The future of a [`Connector`]'s call.
///
/// ```
/// use selvedge_hyper::{Connecting, Connector};
/// use tower_service::Service;
///
/// let runtime = selvedge::Runtime::new()?;
/// let connecting: Connecting = Connector::new().call(hyper::Uri::from_static("/"));
/// assert!(runtime.block_on(connecting).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "futures do nothing unless they are awaited"]
pub struct Connecting(
    Pin<Box<dyn Future<Output = Result<SelvedgeIo<TcpStream>, ConnectError>> + Send>>,
);

impl Future for Connecting {
    type Output = Result<SelvedgeIo<TcpStream>, ConnectError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for Connecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connecting").finish_non_exhaustive()
    }
}

/// The error of a [`Connector`], with the URI.
///
/// In the error of hyper-util's client this error is the [`source`](Error::source):
///
/// ```
/// use bytes::Bytes;
/// use http_body_util::Empty;
/// use hyper::Uri;
/// use selvedge_hyper::ConnectError;
/// use std::{error::Error, io, net::TcpListener};
///
/// // A port where nobody listens any more.
/// let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
/// let uri: Uri = format!("http://{address}/").parse().unwrap();
/// selvedge::Runtime::new()?.block_on(async {
///     let client = selvedge_hyper::client::<Empty<Bytes>>();
///     let error = client.get(uri).await.unwrap_err();
///     assert!(error.is_connect());
///     let error: &ConnectError = error.source().unwrap().downcast_ref().unwrap();
///     assert_eq!(error.uri().port_u16(), Some(address.port()));
///     match error {
///         ConnectError::Connect(_, attempts) => {
///             let error = attempts.last_error().unwrap();
///             assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused)
///         }
///         other => panic!("{other}"),
///     }
/// });
/// # Ok::<(), io::Error>(())
/// ```
#[non_exhaustive]
pub enum ConnectError {
    /// The URI's scheme is not `http`.
    Scheme(Uri),
    /// The URI has no host.
    Host(Uri),
    /// The text after the host's colon is no port: a number up to 65,535.
    Port(Uri),
    /// The lookup of the host failed.
    Lookup(Uri, io::Error),
    /// No address of the host took the connection. The attempts name each address and its error.
    Connect(Uri, Attempts),
    /// The [`connect_timeout`](Connector::connect_timeout) passed. The attempts are those that were
    /// begun before: none if the lookup took the whole time.
    TimedOut(Uri, Duration, Attempts),
}

impl ConnectError {
    /// Returns the URI of the attempt.
    pub fn uri(&self) -> &Uri {
        match self {
            Self::Scheme(uri)
            | Self::Host(uri)
            | Self::Port(uri)
            | Self::Lookup(uri, _)
            | Self::Connect(uri, _)
            | Self::TimedOut(uri, _, _) => uri,
        }
    }
}

/// Shows the fields, but of the URI only `scheme://host:port`: so a log gets no user, password,
/// path or query.
impl fmt::Debug for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = Origin(self.uri());
        match self {
            Self::Scheme(_) => f.debug_tuple("Scheme").field(&origin).finish(),
            Self::Host(_) => f.debug_tuple("Host").field(&origin).finish(),
            Self::Port(_) => f.debug_tuple("Port").field(&origin).finish(),
            Self::Lookup(_, error) => {
                let mut tuple = f.debug_tuple("Lookup");
                tuple.field(&origin).field(error).finish()
            }
            Self::Connect(_, attempts) => {
                let mut tuple = f.debug_tuple("Connect");
                tuple.field(&origin).field(attempts).finish()
            }
            Self::TimedOut(_, limit, attempts) => {
                let mut tuple = f.debug_tuple("TimedOut");
                tuple.field(&origin).field(limit).field(attempts).finish()
            }
        }
    }
}

/// Shows the parts of a URI that are no secret: scheme, host and port.
struct Origin<'a>(&'a Uri);

impl fmt::Debug for Origin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(scheme) = self.0.scheme_str() {
            write!(f, "{scheme}://")?;
        }
        f.write_str(self.0.host().unwrap_or_default())?;
        match self.0.port() {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

/// Shows a message without the URI's user and password. The message does not repeat that of the
/// [`source`](Error::source).
impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.uri().host().unwrap_or_default();
        match self {
            Self::Scheme(uri) => {
                let scheme = uri.scheme_str().unwrap_or_default();
                write!(f, "the scheme of {scheme}://{host} is not http")
            }
            Self::Host(_) => f.write_str("the URI has no host"),
            Self::Port(_) => write!(f, "the port of {host} is no number up to 65535"),
            Self::Lookup(..) => write!(f, "the lookup of {host} failed"),
            Self::Connect(..) => write!(f, "no connection to {host}"),
            Self::TimedOut(_, limit, _) => write!(f, "no connection to {host} within {limit:?}"),
        }
    }
}

impl Error for ConnectError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Lookup(_, error) => Some(error),
            Self::TimedOut(_, _, attempts) if attempts.is_empty() => None,
            Self::Connect(_, attempts) | Self::TimedOut(_, _, attempts) => Some(attempts),
            Self::Scheme(_) | Self::Host(_) | Self::Port(_) => None,
        }
    }
}

/// Tells hyper-util's client that the connection is not proxied, and negotiated no protocol.
impl Connection for SelvedgeIo<TcpStream> {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

/// Tells hyper-util's client that the connection is not proxied, and negotiated no protocol.
#[cfg(unix)]
impl Connection for SelvedgeIo<UnixStream> {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}
