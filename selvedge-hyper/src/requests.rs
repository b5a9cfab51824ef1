//! Counts the requests of a connection, so that the idle timeout knows whether there is one.
//!
//! A request lasts from the call of the service until its response has left the connection. The
//! parts of a request hold clones of an [`Arc`], so the `Arc`'s count tells whether there is a
//! request. These are the parts:
//!
//! - the service's future, and then the response's body;
//! - each piece of that body: h2 drops a piece once it is written. This may be after the body has
//!   ended, because hyper hands h2 whole pieces, even if the client's window has room for one byte
//!   only;
//! - after a `CONNECT`, the task in which hyper writes the bytes that the service sends through the
//!   tunnel.
//!
//! Only the connection's task starts requests, so that task never misses a new one when it reads
//! the count. h2 also keeps bytes that this count leaves out: heads, trailers, and the last write
//! of a tunnel.
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

/// The requests of a connection: the idle timeout has one clone, the service another, and each part
/// of a request one more.
pub(crate) type Requests = Arc<()>;

/// Returns whether the connection has a request, for the idle timeout, which has a clone.
pub(crate) fn has_request(requests: &Requests) -> bool {
    Arc::strong_count(requests) > 2
}

thread_local! {
    /// While hyper spawns a tunnel's task: the tunnel's request. The spawned task takes it, and
    /// holds it until the task ends.
    static TUNNEL: Cell<Option<Requests>> = const { Cell::new(None) };
}

/// Takes the request of the tunnel that is being spawned, if any.
pub(crate) fn take_tunnel() -> Option<Requests> {
    TUNNEL.take()
}

/// A service that counts its requests.
pub(crate) struct Counted<S> {
    service: S,
    pub(crate) requests: Requests,
}

impl<S> Counted<S> {
    pub(crate) fn new(service: S, requests: Requests) -> Self {
        Self { service, requests }
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
            request: Some(self.requests.clone()),
        }
    }
}

pin_project! {
    /// The service's future, which counts as a part of the request.
    pub(crate) struct CountedFuture<F> {
        #[pin]
        future: F,
        is_connect: bool,
        // The response's body takes the request out.
        request: Option<Requests>,
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
        let request = this.request.take();
        let opens_tunnel = *this.is_connect && response.status().is_success();
        let tunnel = opens_tunnel.then(|| Tunnel::announce(request.clone()));
        Poll::Ready(Ok(response.map(|body| CountedBody {
            body,
            request,
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
    fn announce(request: Option<Requests>) -> Self {
        TUNNEL.set(request);
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
        request: Option<Requests>,
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
        let count = |data| CountedData {
            data,
            _request: this.request.clone(),
        };
        Poll::Ready(frame.map(|frame| Ok(frame?.map_data(count))))
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
    _request: Option<Requests>,
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
