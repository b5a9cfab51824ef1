//! `timeout`: a limit for a future.
use super::{Instant, Sleep};
use pin_project_lite::pin_project;
use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

/// Limits how long to wait for a future.
///
/// The time counts from the first poll in which the future has to wait: that poll fixes the
/// deadline. So a future that is ready at once costs no reading of the clock, and no timer. In
/// tokio the call of `timeout` fixes the deadline. So the limit may come later here than in tokio,
/// but never earlier. For a deadline that the call fixes, use [`timeout_at`].
///
/// The future is polled first. So if it is ready at the deadline, the output is the future's.
///
/// ```
/// use net_driver::{Driver, time};
/// use std::{future::pending, time::Duration};
///
/// Driver::new(1).park(0).block_on(async {
///     let second = Duration::from_secs(1);
///     assert_eq!(time::timeout(second, async { 7 }).await, Ok(7));
///
///     let soon = Duration::from_millis(1);
///     assert!(time::timeout(soon, pending::<()>()).await.is_err());
/// });
/// ```
///
/// # Errors
/// The output is [`Elapsed`] if the time has passed and the future still waits.
///
/// # Panics
/// A poll that has to wait panics where a poll of a [`Sleep`] would.
pub fn timeout<F: IntoFuture>(limit: Duration, future: F) -> Timeout<F::IntoFuture> {
    Timeout {
        future: future.into_future(),
        limit: Limit::Span { span: limit },
    }
}

/// Limits a future by a deadline. This is [`timeout`] with a deadline that the caller chooses.
///
/// ```
/// use net_driver::{Driver, time};
///
/// Driver::new(1).park(0).block_on(async {
///     let now = time::Instant::now();
///     assert!(time::timeout_at(now, std::future::pending::<()>()).await.is_err());
/// });
/// ```
///
/// # Errors
/// The output is [`Elapsed`] if the time has passed and the future still waits.
pub fn timeout_at<F: IntoFuture>(deadline: Instant, future: F) -> Timeout<F::IntoFuture> {
    Timeout {
        future: future.into_future(),
        limit: Limit::Until {
            sleep: Sleep::new(deadline),
        },
    }
}

pin_project! {
    /// The future of [`timeout`] and [`timeout_at`].
    ///
    /// ```
    /// use net_driver::time::{Timeout, timeout};
    /// use std::time::Duration;
    ///
    /// let limited: Timeout<_> = timeout(Duration::from_secs(1), std::future::ready(7));
    /// assert_eq!(limited.into_inner().into_inner(), 7);
    /// ```
    #[must_use = "a future does nothing unless it is polled"]
    pub struct Timeout<F> {
        #[pin]
        future: F,
        #[pin]
        limit: Limit,
    }
}

pin_project! {
    #[project = LimitProjection]
    enum Limit {
        /// The span begins at the first poll that has to wait.
        Span { span: Duration },
        Until { #[pin] sleep: Sleep },
    }
}

/// Access to the future that is limited.
///
/// ```
/// use net_driver::time::{Duration, timeout};
/// use std::future::{Ready, ready};
///
/// let mut limited = timeout(Duration::from_secs(1), ready(7));
/// let _: &Ready<u32> = limited.get_ref();
/// *limited.get_mut() = ready(8);
/// assert_eq!(limited.into_inner().into_inner(), 8);
/// ```
impl<F> Timeout<F> {
    /// Borrows the future.
    pub fn get_ref(&self) -> &F {
        &self.future
    }

    /// Borrows the future mutably.
    pub fn get_mut(&mut self) -> &mut F {
        &mut self.future
    }

    /// Returns the future, without a limit.
    pub fn into_inner(self) -> F {
        self.future
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Elapsed>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        match this.future.poll(cx) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            // The limit is not charged to the budget: the timeout must end in time although the
            // task has used up its budget.
            Poll::Pending => {
                let mut limit = this.limit;
                let polled = limit.as_mut().poll(cx);
                if polled.is_pending() {
                    coop_budget::note_wait(|| limit.as_ref().get_ref().waits_on());
                }
                polled.map(|()| Err(Elapsed(())))
            }
        }
    }
}

impl Limit {
    /// Says what a limit that was polled waits for, to a dump of tasks.
    #[cold]
    fn waits_on(&self) -> coop_budget::WaitsOn {
        match self {
            Self::Until { sleep } => sleep.waits_on(),
            Self::Span { .. } => "a timer".into(),
        }
    }

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.as_mut().project() {
            LimitProjection::Until { sleep } => {
                sleep.poll_timer(cx.waker(), |deadline| Instant::now() >= deadline)
            }
            LimitProjection::Span { span } => {
                let span = *span;
                self.set(Self::Until {
                    sleep: Sleep::new(Instant::now().after(span)),
                });
                match self.project() {
                    LimitProjection::Until { sleep } => {
                        sleep.poll_timer(cx.waker(), |_| span.is_zero())
                    }
                    LimitProjection::Span { .. } => unreachable!("it was just replaced"),
                }
            }
        }
    }
}

impl<F: fmt::Debug> fmt::Debug for Timeout<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeout")
            .field("future", &self.future)
            .finish_non_exhaustive()
    }
}

/// The error of a [`timeout`] whose time has passed.
///
/// ```
/// use net_driver::{Driver, time::{self, Elapsed}};
/// use std::{future::pending, time::Duration};
///
/// let waits = time::timeout(Duration::ZERO, pending::<()>());
/// let elapsed: Elapsed = Driver::new(1).park(0).block_on(waits).unwrap_err();
/// let error = std::io::Error::from(elapsed);
/// assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed(());

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the time has passed")
    }
}

impl std::error::Error for Elapsed {}

impl From<Elapsed> for std::io::Error {
    fn from(elapsed: Elapsed) -> Self {
        Self::new(std::io::ErrorKind::TimedOut, elapsed)
    }
}
