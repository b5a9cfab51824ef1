//! A time limit for clients that stop reading.
//!
//! The limit is part of the connection's I/O, and not a layer around it. So an upgrade hands out
//! the type of I/O that the listener returns.
use net_driver::Driver;
use selvedge::time::{self, Instant, Sleep};
use std::{
    error::Error,
    fmt,
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

/// I/O whose writes can have a time limit, for
/// [`Serve::write_timeout`](crate::Serve::write_timeout).
///
/// [`SelvedgeIo`](crate::SelvedgeIo) implements it. For I/O of your own, keep a [`WriteLimit`] in
/// it and apply that to the result of each write, flush and shutdown:
///
/// ```
/// use hyper::rt;
/// use selvedge_hyper::{LimitWrites, WriteLimit};
/// use std::{io, pin::Pin, task::{Context, Poll}, time::Duration};
///
/// struct Io<T> {
///     stream: T,
///     limit: Option<WriteLimit>,
/// }
///
/// impl<T> LimitWrites for Io<T> {
///     fn limit_writes(&mut self, limit: Duration) {
///         self.limit = Some(WriteLimit::new(limit));
///     }
/// }
///
/// impl<T> Io<T> {
///     fn limited<R>(
///         &mut self,
///         cx: &mut Context<'_>,
///         done: Poll<io::Result<R>>,
///     ) -> Poll<io::Result<R>> {
///         match &mut self.limit {
///             None => done,
///             Some(limit) => limit.apply(cx, done),
///         }
///     }
/// }
///
/// impl<T: rt::Write + Unpin> rt::Write for Io<T> {
///     fn poll_write(
///         mut self: Pin<&mut Self>,
///         cx: &mut Context<'_>,
///         from: &[u8],
///     ) -> Poll<io::Result<usize>> {
///         let written = Pin::new(&mut self.stream).poll_write(cx, from);
///         self.limited(cx, written)
///     }
///
///     // A stream that encrypts, for example, has bytes of its own to write here.
///     fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
///         let flushed = Pin::new(&mut self.stream).poll_flush(cx);
///         self.limited(cx, flushed)
///     }
///
///     fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
///         let shut_down = Pin::new(&mut self.stream).poll_shutdown(cx);
///         self.limited(cx, shut_down)
///     }
/// }
/// ```
pub trait LimitWrites {
    /// Sets how long a write may wait before it fails with [`WriteTimedOut`].
    fn limit_writes(&mut self, limit: Duration);
}

/// The time limit for the writes of one connection: [`LimitWrites`] has an example.
///
/// The time counts while an operation is pending. An operation that is ready ends the wait, and the
/// next wait begins anew. The first wait allocates a sleep, which later waits reset.
///
/// A socket's write is pending until the system reports room. The system may report room only when
/// a third of the send buffer is free. A slow client that reads all the time may need half a minute
/// or more for that, so choose minutes. ([`SelvedgeIo`](crate::SelvedgeIo) tries the write once
/// more when the time is up, so its limit can be shorter.)
#[derive(Debug)]
pub struct WriteLimit {
    limit: Duration,
    /// The sleep of the wait in progress, or of an earlier one.
    sleep: Option<Pin<Box<Sleep>>>,
    waits: bool,
}

impl WriteLimit {
    /// Creates a limit.
    pub const fn new(limit: Duration) -> Self {
        Self {
            limit,
            sleep: None,
            waits: false,
        }
    }

    /// Returns `done`, the result of a write, a flush or a shutdown, or [`WriteTimedOut`] if `done`
    /// is pending and the time is up. The task of a pending operation is woken when the time is up.
    /// If `done` is ready, this costs a test.
    ///
    /// Outside a runtime there is no timer, so a pending operation has no limit there. An upgraded
    /// connection is outside a runtime if another executor polls it.
    ///
    /// # Errors
    /// The error of the operation, or one of the kind `TimedOut` that holds a [`WriteTimedOut`].
    pub fn apply<T>(
        &mut self,
        cx: &mut Context<'_>,
        done: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.waits = false;
            return done;
        }
        if Driver::current().is_none() {
            return done;
        }
        let limit = self.limit;
        let sleep = match &mut self.sleep {
            Some(sleep) => {
                if !self.waits {
                    match Instant::now().checked_add(limit) {
                        Some(deadline) => sleep.as_mut().reset(deadline),
                        None => sleep.set(time::sleep(limit)),
                    }
                }
                sleep
            }
            none => none.insert(Box::pin(time::sleep(limit))),
        };
        self.waits = true;
        sleep.as_mut().poll(cx).map(|()| {
            self.waits = false;
            let error = WriteTimedOut { limit };
            Err(io::Error::new(io::ErrorKind::TimedOut, error))
        })
    }
}

/// The error of a connection whose client took no byte of a response for the whole
/// [`write_timeout`](crate::Serve::write_timeout).
///
/// Over HTTP/1 it is among the sources of the `hyper::Error` that
/// [`on_error`](crate::Serve::on_error) receives. Over HTTP/2 it is not: there the source is an
/// [`io::Error`] of the kind `TimedOut` with this error's text, and [`of`](Self::of) returns
/// `None`.
///
/// ```
/// use selvedge_hyper::WriteTimedOut;
///
/// fn report(error: hyper::Error) {
///     match WriteTimedOut::of(&error) {
///         Some(stalled) => eprintln!("a client reads nothing: {stalled}"),
///         None => eprintln!("{error}"),
///     }
/// }
/// # let _ = report;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteTimedOut {
    limit: Duration,
}

impl WriteTimedOut {
    /// Returns the time limit.
    pub const fn limit(&self) -> Duration {
        self.limit
    }

    /// Returns the `WriteTimedOut` that `error` is, that it wraps, or that is among its sources.
    pub fn of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            // The `source` of an `io::Error` is not the error that it holds, but the source of that
            // error.
            let inner = error
                .downcast_ref::<io::Error>()
                .and_then(io::Error::get_ref);
            let found = error.downcast_ref::<Self>();
            if let Some(found) = found.or_else(|| inner?.downcast_ref()) {
                return Some(found);
            }
            next = error.source();
        }
        None
    }
}

impl fmt::Display for WriteTimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the peer took no byte for {:?}", self.limit)
    }
}

impl Error for WriteTimedOut {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    fn paused<F: Future>(future: F) -> F::Output {
        let builder = selvedge::Builder::new_current_thread();
        builder.start_paused(true).build().unwrap().block_on(future)
    }

    const LIMIT: Duration = Duration::from_secs(12);

    async fn stall(limit: &mut WriteLimit) -> io::Error {
        poll_fn(|cx| limit.apply::<usize>(cx, Poll::Pending))
            .await
            .unwrap_err()
    }

    /// Applies the limit to a pending operation, and returns whether the result is pending, too.
    async fn is_pending(limit: &mut WriteLimit) -> bool {
        poll_fn(|cx| Poll::Ready(limit.apply::<()>(cx, Poll::Pending).is_pending())).await
    }

    #[test]
    fn pending_write_times_out_after_the_limit() {
        paused(async {
            let (mut limit, begun) = (WriteLimit::new(LIMIT), Instant::now());
            let error = stall(&mut limit).await;
            assert_eq!(
                (error.kind(), begun.elapsed()),
                (io::ErrorKind::TimedOut, LIMIT)
            );
            assert_eq!(WriteTimedOut::of(&error).unwrap().limit(), LIMIT);
            // A writer that ignores the error waits again.
            drop(stall(&mut limit).await);
            assert_eq!(begun.elapsed(), 2 * LIMIT);
        });
    }

    // Fails if progress does not begin the time anew, or if a second poll of a pending write begins
    // it anew.
    #[test]
    fn each_byte_begins_the_time_anew() {
        paused(async {
            let (mut limit, begun) = (WriteLimit::new(LIMIT), Instant::now());
            for _ in 0..3 {
                for _ in 0..2 {
                    assert!(is_pending(&mut limit).await);
                    time::sleep(LIMIT / 3).await;
                }
                let written = poll_fn(|cx| limit.apply(cx, Poll::Ready(Ok(1)))).await;
                assert_eq!(written.unwrap(), 1);
            }
            assert_eq!(begun.elapsed(), 2 * LIMIT);
            drop(stall(&mut limit).await);
            assert_eq!(begun.elapsed(), 3 * LIMIT);
        });
    }

    // Fails if the second wait adds the limit to the present time: the sum would overflow.
    #[test]
    fn longest_limit_waits_twice_without_overflow() {
        paused(async {
            let mut limit = WriteLimit::new(Duration::MAX);
            for _ in 0..2 {
                assert!(is_pending(&mut limit).await);
                poll_fn(|cx| limit.apply(cx, Poll::Ready(Ok(()))))
                    .await
                    .unwrap();
            }
        });
    }

    // Fails if a poll outside a runtime panics, or ends the wait that began inside a runtime.
    #[test]
    fn wait_outside_a_runtime_has_no_limit() {
        let runtime = selvedge::Builder::new_current_thread();
        let runtime = runtime.start_paused(true).build().unwrap();
        let mut limit = WriteLimit::new(LIMIT);
        for _ in 0..2 {
            assert!(futures_lite::future::block_on(is_pending(&mut limit)));
            runtime.block_on(async {
                assert!(is_pending(&mut limit).await);
                time::sleep(LIMIT / 2).await;
            });
            assert!(futures_lite::future::block_on(is_pending(&mut limit)));
            runtime.block_on(async {
                let begun = Instant::now();
                drop(stall(&mut limit).await);
                assert_eq!(begun.elapsed(), LIMIT / 2);
            });
        }
    }

    #[test]
    fn error_of_another_kind_is_no_write_timeout() {
        let error = io::Error::new(io::ErrorKind::TimedOut, "other");
        assert!(WriteTimedOut::of(&error).is_none());
        assert!(WriteTimedOut::of(&io::Error::from(io::ErrorKind::TimedOut)).is_none());
        let shown = WriteTimedOut { limit: LIMIT }.to_string();
        assert_eq!(shown, "the peer took no byte for 12s");
    }
}
