//! The time limit for HTTP/2 connections without a request.
//!
//! hyper has no such limit: a client that connects and sends nothing, or one that only answers
//! pings, would keep its connection. A sleep of the connection's task ends after each span of the
//! limit. The task then asks whether the connection had a request, at that time or since the task
//! last asked:
//!
//! 1. If so, it waits for another span. So a connection without a request ends after one to two
//!    spans; one that never had a request ends after the first.
//! 2. If not, it closes the connection gracefully, and waits for another span: a request that was
//!    on its way is answered. hyper ends the connection when the client has answered.
//! 3. If the connection has had no request and is still there, the task drops it.
//!
//! A shutdown of the server is rule 2 at once, with shorter spans from then on. A connection
//! without a time limit has its first span then.
//!
//! [`requests`](crate::requests) says when a connection has a request.
use crate::{
    connection::Graceful,
    executor::spawned,
    requests::{self, Counted, RequestToken},
};
use pin_project_lite::pin_project;
use selvedge::{
    task::coop,
    time::{self, Instant, Sleep},
};
use std::{
    future::Future,
    pin::{Pin, pin},
    task::{Context, Poll, ready},
    time::Duration,
};

/// The shortest span. After a shorter one, the task of a connection that has a request would only
/// ask again, and too often.
const MIN_SPAN: Duration = Duration::from_millis(10);

/// The longest span after the server's shutdown, less than the shutdown's own limit.
const SHUTDOWN_SPAN: Duration = Duration::from_secs(10);

pin_project! {
    /// A connection that ends when it has had no request for some time.
    pub(crate) struct LimitIdle<C> {
        #[pin]
        connection: C,
        idle: Idle,
    }
}

impl<C> LimitIdle<C> {
    pub(crate) fn new(connection: C, idle: Idle) -> Self {
        Self { connection, idle }
    }
}

impl<C: Graceful> Future for LimitIdle<C> {
    type Output = hyper::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        let mut this = self.project();
        let before = spawned();
        if let Poll::Ready(ended) = this.connection.as_mut().poll(cx) {
            return Poll::Ready(ended);
        }
        if spawned() != before {
            this.idle.was_busy = true;
        }
        match ready!(this.idle.poll(cx)) {
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
        let this = self.project();
        this.connection.close();
        this.idle.shut_down();
    }
}

/// The time limit of a connection.
pub(crate) struct Idle {
    span: Duration,
    /// `None` while there is no limit.
    sleep: Option<Pin<Box<Sleep>>>,
    token: RequestToken,
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
    /// Returns the limit of a connection, and the connection's service. Without a `limit` the
    /// connection has no time limit until the server's shutdown.
    pub(crate) fn new<S>(limit: Option<Duration>, service: S) -> (Self, Counted<S>) {
        let span = limit.map_or(SHUTDOWN_SPAN, |limit| limit.max(MIN_SPAN));
        let token = RequestToken::default();
        let idle = Self {
            span,
            sleep: limit.map(|_| Box::pin(time::sleep(span))),
            token: token.clone(),
            was_busy: false,
            is_closing: false,
        };
        (idle, Counted::new(service, token))
    }

    /// Waits until the connection has had no request for the limit.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        while let Some(sleep) = &mut self.sleep {
            // Without charge: a client whose pings use up the task's budget has a limit, too.
            ready!(pin!(coop::unconstrained(sleep.as_mut())).poll(cx));
            sleep.set(time::sleep(self.span));
            let is_busy = self.is_busy();
            if is_busy || self.was_busy {
                self.was_busy = is_busy;
                continue;
            }
            if self.is_closing {
                return Poll::Ready(Step::Drop);
            }
            self.is_closing = true;
            return Poll::Ready(Step::Close);
        }
        Poll::Pending
    }

    /// Begins a span for a connection that is closing. If the connection has no request at the end
    /// of the span, it is dropped.
    fn shut_down(&mut self) {
        self.is_closing = true;
        self.was_busy = false;
        self.span = self.span.min(SHUTDOWN_SPAN);
        match &mut self.sleep {
            Some(sleep) => sleep.as_mut().reset(Instant::now() + self.span),
            None => self.sleep = Some(Box::pin(time::sleep(self.span))),
        }
    }

    fn is_busy(&self) -> bool {
        requests::has_request(&self.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge::{task::coop, time::Instant};
    use std::future::poll_fn;

    const LIMIT: Duration = Duration::from_secs(30);

    fn paused<F: Future>(future: F) -> F::Output {
        let builder = selvedge::Builder::new_current_thread();
        builder.start_paused(true).build().unwrap().block_on(future)
    }

    fn limited(limit: Duration) -> (Idle, Counted<()>) {
        Idle::new(Some(limit), ())
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
            let request = service.token.clone();
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

    // Fails if a connection without a request keeps a shutdown waiting.
    #[test]
    fn shutdown_leaves_a_silent_client_a_short_span() {
        paused(async {
            let (mut idle, service) = limited(LIMIT);
            let request = service.token.clone();
            time::sleep(LIMIT - SHUTDOWN_SPAN / 10).await;
            let begun = Instant::now();
            idle.shut_down();
            selvedge::spawn_detached(async {
                time::sleep(9 * SHUTDOWN_SPAN / 2).await;
                drop(request);
            });
            assert_eq!(step(&mut idle).await, Step::Drop);
            assert_eq!(begun.elapsed(), 6 * SHUTDOWN_SPAN);

            let (mut idle, _service) = limited(LIMIT);
            idle.was_busy = true;
            let begun = Instant::now();
            idle.shut_down();
            assert_eq!(step(&mut idle).await, Step::Drop);
            assert_eq!(begun.elapsed(), SHUTDOWN_SPAN);
        });
    }

    // Fails if a connection without a limit closes before the shutdown, or if the shutdown waits
    // without end for its client. The request ends just after the end of a span.
    #[test]
    fn shutdown_limits_a_connection_without_a_limit() {
        paused(async {
            let (mut idle, service) = Idle::new(None, ());
            assert!(time::timeout(LIMIT, step(&mut idle)).await.is_err());
            let (begun, request) = (Instant::now(), service.token.clone());
            idle.shut_down();
            selvedge::spawn_detached(async {
                time::sleep(11 * SHUTDOWN_SPAN / 10).await;
                drop(request);
            });
            assert_eq!(step(&mut idle).await, Step::Drop);
            assert_eq!(begun.elapsed(), 3 * SHUTDOWN_SPAN);
        });
    }

    // Fails if a client can evade the limit by pings whose reads use up the task's budget.
    #[test]
    fn span_ends_though_the_budget_is_used_up() {
        paused(async {
            let (mut idle, _service) = limited(LIMIT);
            time::sleep(LIMIT).await;
            poll_fn(|cx| {
                while let Poll::Ready(charge) = coop::poll_proceed(cx) {
                    charge.made_progress();
                }
                assert_eq!(idle.poll(cx), Poll::Ready(Step::Close));
                Poll::Ready(())
            })
            .await;
        });
    }

    // Fails if a poll beside a request never returns.
    #[test]
    fn limit_of_zero_is_pending_beside_a_request() {
        paused(async {
            let (mut idle, service) = limited(Duration::ZERO);
            let _request = service.token.clone();
            for _ in 0..3 {
                let is_pending = poll_fn(|cx| Poll::Ready(idle.poll(cx).is_pending()));
                assert!(is_pending.await);
                time::sleep(Duration::from_secs(1)).await;
            }
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
