//! Counts the requests of a connection, so that the idle timeout knows whether there is one.
//!
//! A request lasts from the call of the service until its response has left the connection. Each
//! part of a request holds a clone of the connection's [`RequestToken`], so the number of clones
//! tells whether there is a request. These are the parts:
//!
//! - the service's future, and then the response's body;
//! - each piece of that body: h2 drops a piece once it is written. This may be after the body has
//!   ended, because hyper hands h2 whole pieces, even if the client's window has room for one byte
//!   only;
//! - after a `CONNECT`, the task in which hyper writes the bytes that the service sends through the
//!   tunnel.
//!
//! Only the connection's task starts requests, so that task never misses a new one when it counts
//! the clones. h2 also keeps bytes without a clone: heads, trailers, and the last write of a
//! tunnel.
use hyper::{
    Method, Request, Response,
    body::{Body, Buf, Frame, Incoming, SizeHint},
    service::Service,
};
use pin_project_lite::pin_project;
use std::{
    cell::Cell,
    future::Future,
    io::IoSlice,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

/// The token of a connection: its idle timeout has one clone, its service another, and each part of
/// a request one more.
pub(crate) type RequestToken = Arc<()>;

/// Returns whether the connection of this token has a request. The caller is the idle timeout, and
/// the service lives.
pub(crate) fn has_request(token: &RequestToken) -> bool {
    Arc::strong_count(token) > 2
}

thread_local! {
    /// While hyper spawns a tunnel's task: the token of the tunnel's request. The spawned task
    /// takes it, and holds it until the task ends.
    static TUNNEL: Cell<Option<RequestToken>> = const { Cell::new(None) };
}

/// Takes the token for the tunnel that is being spawned, if any.
pub(crate) fn take_tunnel_token() -> Option<RequestToken> {
    TUNNEL.take()
}

/// A service that gives each of its requests a token.
pub(crate) struct Counted<S> {
    service: S,
    pub(crate) token: RequestToken,
}

impl<S> Counted<S> {
    pub(crate) fn new(service: S, token: RequestToken) -> Self {
        Self { service, token }
    }
}

impl<S, B> Service<Request<Incoming>> for Counted<S>
where
    S: Service<Request<Incoming>, Response = Response<B>>,
    B: Body,
{
    type Response = Response<CountedBody<B>>;
    type Error = S::Error;
    type Future = CountedFuture<S::Future>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let is_connect = request.method() == Method::CONNECT;
        CountedFuture {
            future: self.service.call(request),
            is_connect,
            token: Some(self.token.clone()),
        }
    }
}

pin_project! {
    /// The service's future, a part of the request.
    pub(crate) struct CountedFuture<F> {
        #[pin]
        future: F,
        is_connect: bool,
        // The response's body takes the token out.
        token: Option<RequestToken>,
    }
}

impl<F, B, E> Future for CountedFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body,
{
    type Output = Result<Response<CountedBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let response = ready!(this.future.poll(cx))?;
        let token = this.token.take();
        let opens_tunnel = *this.is_connect && response.status().is_success();
        let tunnel = opens_tunnel.then(|| Tunnel::announce(token.clone()));
        Poll::Ready(Ok(response.map(|body| CountedBody {
            body,
            token,
            _tunnel: tunnel,
        })))
    }
}

/// While this value lives, the next task that hyper spawns on this thread is a tunnel.
///
/// hyper drops the body of a response that opens a tunnel, and with it this value, in the poll that
/// returns the response. If hyper spawns the tunnel's task at all, it does so before that drop.
struct Tunnel;

impl Tunnel {
    fn announce(token: Option<RequestToken>) -> Self {
        TUNNEL.set(token);
        Self
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        TUNNEL.set(None);
    }
}

pin_project! {
    /// The body of a response.
    pub(crate) struct CountedBody<B> {
        // Dropped first: the drop of the body may spawn.
        _tunnel: Option<Tunnel>,
        #[pin]
        body: B,
        token: Option<RequestToken>,
    }
}

impl<B: Body> Body for CountedBody<B> {
    type Data = CountedData<B::Data>;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, B::Error>>> {
        let this = self.project();
        let frame = ready!(this.body.poll_frame(cx));
        let with_token = |data| CountedData {
            data,
            _token: this.token.clone(),
        };
        Poll::Ready(frame.map(|frame| Ok(frame?.map_data(with_token))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A piece of a body, which h2 drops when it has written it.
pub(crate) struct CountedData<D> {
    data: D,
    _token: Option<RequestToken>,
}

impl<D: Buf> Buf for CountedData<D> {
    fn remaining(&self) -> usize {
        self.data.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.data.chunk()
    }

    fn chunks_vectored<'a>(&'a self, to: &mut [IoSlice<'a>]) -> usize {
        self.data.chunks_vectored(to)
    }

    fn advance(&mut self, count: usize) {
        self.data.advance(count);
    }
}
