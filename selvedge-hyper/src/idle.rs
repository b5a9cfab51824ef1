//! The time limit for HTTP/2 connections without a request.
//!
//! hyper has none: a client that connects and sends nothing, or one that only answers pings, would
//! keep its connection. A sleep of the connection's task ends after each span of the limit. The
//! task then asks whether the connection had a request, at that time or since it last asked:
//!
//! 1. If so, it waits for another span. So a connection without a request ends after one to two
//!    spans; one that never had a request ends after the first.
//! 2. If not, it closes the connection gracefully, and waits for another span: a request that was
//!    on its way is answered. hyper ends the connection when the client has answered.
//! 3. If the connection has had no request and is still there, the task drops it.
//!
//! A request lasts from the call of the service to the drop of the response's body. Each holds a
//! clone of an [`Arc`], so that the `Arc`'s count tells whether there is one. Only the connection's
//! task begins requests; so it sees each of them.
use crate::{connection::Graceful, executor::spawned};
use hyper::{
    Method, Request, Response,
    body::{Body, Frame, Incoming, SizeHint},
    service::Service,
};
use pin_project_lite::pin_project;
use selvedge::time::{self, Sleep};
use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll, ready},
    time::Duration,
};

pin_project! {
    /// A connection that ends when it has had no request for some time.
    pub(crate) struct LimitIdle<C> {
        #[pin]
        connection: C,
        idle: Option<Idle>,
    }
}

impl<C> LimitIdle<C> {
    pub(crate) fn new(connection: C, idle: Option<Idle>) -> Self {
        Self { connection, idle }
    }
}

impl<C: Graceful> Future for LimitIdle<C> {
    type Output = hyper::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        let mut this = self.project();
        let before = spawned();
        let ended = this.connection.as_mut().poll(cx);
        let Some(idle) = this.idle.as_mut().filter(|_| ended.is_pending()) else {
            return ended;
        };
        if spawned() != before {
            idle.was_busy = true;
        }
        match ready!(idle.poll(cx)) {
            Step::Drop => Poll::Ready(Ok(())),
            Step::Close => {
                this.connection.close();
                // The next poll of the connection sends the end.
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}

impl<C: Graceful> Graceful for LimitIdle<C> {
    fn close(self: Pin<&mut Self>) {
        self.project().connection.close();
    }
}

/// The requests of a connection. The value is set if one of them has become a tunnel, by `CONNECT`:
/// hyper drives it, so nothing shows its end.
type Requests = Arc<OnceLock<()>>;

/// The time limit of a connection.
pub(crate) struct Idle {
    limit: Duration,
    sleep: Pin<Box<Sleep>>,
    requests: Requests,
    /// There was a request since the last span.
    was_busy: bool,
    /// The connection was told to end.
    is_closing: bool,
}

/// The next step of a connection whose span has ended.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Close,
    Drop,
}

impl Idle {
    /// Returns the limit of a connection, if there is one, and the connection's service.
    pub(crate) fn new<S>(limit: Option<Duration>, service: S) -> (Option<Self>, Counted<S>) {
        let requests = Requests::default();
        let idle = limit.map(|limit| Self {
            limit,
            sleep: Box::pin(time::sleep(limit)),
            requests: requests.clone(),
            was_busy: false,
            is_closing: false,
        });
        (idle, Counted { service, requests })
    }

    /// Waits until the connection has had no request for the limit.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        loop {
            ready!(self.sleep.as_mut().poll(cx));
            self.sleep.set(time::sleep(self.limit));
            let is_busy = self.is_busy();
            if is_busy || self.was_busy {
                self.was_busy = is_busy;
                continue;
            }
            return Poll::Ready(match self.is_closing {
                true => Step::Drop,
                false => {
                    self.is_closing = true;
                    Step::Close
                }
            });
        }
    }

    fn is_busy(&self) -> bool {
        // The limit and the service have one each.
        Arc::strong_count(&self.requests) > 2 || self.requests.get().is_some()
    }
}

/// A service that counts its requests.
pub(crate) struct Counted<S> {
    service: S,
    requests: Requests,
}

impl<S, B> Service<Request<Incoming>> for Counted<S>
where
    S: Service<Request<Incoming>, Response = Response<B>>,
{
    type Response = Response<CountedBody<B>>;
    type Error = S::Error;
    type Future = CountedFuture<S::Future>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let is_connect = request.method() == Method::CONNECT;
        let requests = Some(self.requests.clone());
        CountedFuture {
            future: self.service.call(request),
            is_connect,
            requests,
        }
    }
}

pin_project! {
    /// The service's future.
    pub(crate) struct CountedFuture<F> {
        #[pin]
        future: F,
        is_connect: bool,
        // The body takes it.
        requests: Option<Requests>,
    }
}

impl<F, B, E> Future for CountedFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<CountedBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let response = ready!(this.future.poll(cx))?;
        let requests = this.requests.take();
        if let Some(requests) = &requests
            && *this.is_connect
            && response.status().is_success()
        {
            let _ = requests.set(());
        }
        Poll::Ready(Ok(response.map(|body| CountedBody { body, requests })))
    }
}

pin_project! {
    /// The body of a response.
    pub(crate) struct CountedBody<B> {
        #[pin]
        body: B,
        requests: Option<Requests>,
    }
}

impl<B: Body> Body for CountedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.project().body.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge::time::Instant;
    use std::future::poll_fn;

    const LIMIT: Duration = Duration::from_secs(30);

    fn paused<F: Future>(future: F) -> F::Output {
        let builder = selvedge::Builder::new_current_thread();
        builder.start_paused(true).build().unwrap().block_on(future)
    }

    fn limited(limit: Duration) -> (Idle, Counted<()>) {
        let (idle, service) = Idle::new(Some(limit), ());
        (idle.unwrap(), service)
    }

    async fn step(idle: &mut Idle) -> Step {
        poll_fn(|cx| idle.poll(cx)).await
    }

    #[test]
    fn connection_without_request_closes_and_then_drops() {
        paused(async {
            let (begun, (mut idle, _service)) = (Instant::now(), limited(LIMIT));
            assert_eq!(step(&mut idle).await, Step::Close);
            assert_eq!(begun.elapsed(), LIMIT);
            assert_eq!(step(&mut idle).await, Step::Drop);
            assert_eq!(begun.elapsed(), 2 * LIMIT);
        });
    }

    // Fails if a request that ends just before the span leaves no time for the next one, or if a
    // short request between two spans is not seen.
    #[test]
    fn request_leaves_a_whole_limit_for_the_next_one() {
        paused(async {
            let (begun, (mut idle, service)) = (Instant::now(), limited(LIMIT));
            let request = service.requests.clone();
            let ends = async {
                time::sleep(3 * LIMIT - LIMIT / 10).await;
                drop(request);
            };
            selvedge::spawn_detached(ends);
            assert_eq!(step(&mut idle).await, Step::Close);
            assert_eq!(begun.elapsed(), 4 * LIMIT);
            idle.was_busy = true;
            assert_eq!(step(&mut idle).await, Step::Drop);
            assert_eq!(begun.elapsed(), 6 * LIMIT);
        });
    }

    #[test]
    fn tunnel_keeps_the_connection() {
        paused(async {
            let (mut idle, service) = limited(LIMIT);
            service.requests.set(()).unwrap();
            let limit = time::timeout(100 * LIMIT, step(&mut idle));
            assert!(limit.await.is_err());
        });
    }

    #[test]
    fn longest_limit_does_not_overflow() {
        paused(async {
            let (mut idle, _service) = limited(Duration::MAX);
            assert!(time::timeout(LIMIT, step(&mut idle)).await.is_err());
        });
    }
}
