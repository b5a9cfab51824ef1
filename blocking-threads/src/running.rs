//! A closure on another thread, and the future of its result.
//!
//! The job and the future share a *slot*, which holds at most one of these, under its lock:
//!
//! | the slot holds | set by |
//! |---|---|
//! | nothing | the start, and the future when it takes the result |
//! | the waker of the future's last poll | the future |
//! | the result: the closure's value, its panic, or that the job was dropped unrun | the job, once |
//!
//! The job takes the waker in the critical section in which it sets the result, and wakes it
//! afterwards. So a poll either sees the result, or leaves a waker that the job sees.
//!
//! Wakers, values and payloads are user code: they are called, cloned and dropped without the lock.
//! The job contains the panics of the waker and of the drop of a result that nobody takes, as the
//! threads of an executor may not catch panics. No panic continues while the drop of a closure
//! unwinds.
use crate::pool::Boxed;
use std::{
    any::Any,
    error, fmt,
    future::Future,
    mem,
    panic::{RefUnwindSafe, UnwindSafe, resume_unwind},
    pin::Pin,
    task::{Context, Poll, Waker},
};
use sync_shim::{
    panics::{catch, contain},
    sync::{Arc, Mutex},
};

/// The result of a closure that runs in another thread.
/// [`CurrentPool::run`](crate::CurrentPool::run) makes it.
///
/// The future is ready with the closure's value, or with [`Dropped`] if the closure was dropped
/// unrun, because its pool is closed or can start no thread. If the closure panicked, the poll
/// resumes that panic.
///
/// If the future is dropped, the closure still runs, and its value is dropped in its thread.
///
/// # Panics
/// A poll panics if the future was ready before.
#[must_use = "a future does nothing unless it is awaited; the closure runs all the same"]
pub struct Running<T>(Arc<Slot<T>>);

type Outcome<T> = Result<T, Option<Box<dyn Any + Send>>>;

struct Slot<T>(Mutex<State<T>>);

enum State<T> {
    Waits(Option<Waker>),
    Ended(Outcome<T>),
    Taken,
}

impl<T> State<T> {
    fn take_waker(&mut self) -> Option<Waker> {
        match self {
            Self::Waits(waker) => waker.take(),
            Self::Ended(_) | Self::Taken => None,
        }
    }
}

/// The job's side. Its drop sets that the job was dropped, unless a result is set before.
struct Finish<T>(Option<Arc<Slot<T>>>);

impl<T> Finish<T> {
    fn set(&mut self, outcome: Outcome<T>) {
        let Some(slot) = self.0.take() else { return };
        let mut state = slot.0.lock();
        let waker = state.take_waker();
        *state = State::Ended(outcome);
        drop(state);
        contain(|| waker.into_iter().for_each(Waker::wake));
        // If the future is gone, this drops the result.
        contain(|| drop(slot));
    }
}

impl<T> Drop for Finish<T> {
    fn drop(&mut self) {
        self.set(Err(None));
    }
}

/// Makes a job of a closure, and the future of its result.
pub(crate) fn new<T: Send + 'static>(
    f: impl FnOnce() -> T + Send + 'static,
) -> (Boxed, Running<T>) {
    let slot = Arc::new(Slot(Mutex::new(State::Waits(None))));
    let mut finish = Finish(Some(slot.clone()));
    let job = move || {
        // The panic goes on in the code that awaits the future.
        let outcome = catch(f);
        finish.set(outcome.map_err(Some));
    };
    (Box::new(job), Running(slot))
}

impl<T> Future for Running<T> {
    type Output = Result<T, Dropped>;

    #[track_caller]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // No waker is cloned for a result that is there, or for a task that waits already.
        let mut waker = None;
        loop {
            let mut state = self.0.0.lock();
            let outcome = match &mut *state {
                State::Waits(Some(before)) if before.will_wake(cx.waker()) => return Poll::Pending,
                State::Waits(before) if waker.is_some() => {
                    mem::swap(before, &mut waker);
                    drop(state);
                    return Poll::Pending; // This drops the waker of the poll before.
                }
                State::Waits(_) => {
                    drop(state);
                    waker = Some(cx.waker().clone());
                    continue;
                }
                _ => mem::replace(&mut *state, State::Taken),
            };
            drop(state);
            return match outcome {
                State::Ended(Ok(value)) => Poll::Ready(Ok(value)),
                State::Ended(Err(None)) => Poll::Ready(Err(Dropped(()))),
                State::Ended(Err(Some(panic))) => resume_unwind(panic),
                _ => panic!("a Running was polled after it was ready"),
            };
        }
    }
}

/// Drops the waker of the last poll: the closure may run for long, and its end has nobody to wake.
impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        let mut state = self.0.0.lock();
        let waker = state.take_waker();
        drop(state);
        drop(waker);
    }
}

// No user code runs under the lock. A poll that panics has taken the result.
impl<T> UnwindSafe for Running<T> {}
impl<T> RefUnwindSafe for Running<T> {}

/// Error of [`Running`]: the closure was dropped, and did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped(());

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the pool for calls that block is closed, or can start no thread")
    }
}

impl error::Error for Dropped {}

impl<T> fmt::Debug for Running<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Running")
    }
}

#[cfg(all(test, not(selvedge_count)))]
mod models {
    use super::new;
    use std::{
        future::Future,
        pin::pin,
        task::{Context, Poll, Wake, Waker},
    };
    use sync_shim::{
        atomic::{AtomicBool, Ordering::SeqCst},
        model,
        sync::Arc,
        thread,
    };

    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: std::sync::Arc<Self>) {
            // Ordering: SeqCst, so that the model depends on the slot's lock alone.
            self.0.store(true, SeqCst);
        }
    }

    /// Polls while another thread runs the job or drops it. Fails if a poll that finds no result
    /// leaves no waker, or if the job sets its result and does not look for the waker.
    fn poll_races(runs: bool) {
        model(move || {
            let (job, running) = new(|| 7);
            let other = thread::spawn(move || if runs { job() } else { drop(job) });
            let woken = std::sync::Arc::new(Woken(AtomicBool::new(false)));
            let waker = Waker::from(woken.clone());
            let mut cx = Context::from_waker(&waker);
            let mut running = pin!(running);
            let mut polled = running.as_mut().poll(&mut cx);
            other.join().unwrap();
            if polled.is_pending() {
                // Ordering: SeqCst, as above.
                assert!(woken.0.load(SeqCst), "the result came without a wake");
                polled = running.poll(&mut cx);
            }
            match polled {
                Poll::Ready(Ok(value)) => assert!(runs && value == 7),
                Poll::Ready(Err(_)) => assert!(!runs),
                Poll::Pending => panic!("the job has ended"),
            }
        });
    }

    #[test]
    fn poll_races_with_the_end_of_the_closure() {
        poll_races(true);
    }

    #[test]
    fn poll_races_with_the_drop_of_the_closure() {
        poll_races(false);
    }

    /// Drops a waiting future while the job ends. Fails if a value or a waker stays, or is
    /// dropped twice.
    #[test]
    fn drop_of_the_future_races_with_the_end_of_the_closure() {
        model(|| {
            let value = Arc::new(());
            let output = value.clone();
            let (job, mut running) = new(move || output);
            let woken = std::sync::Arc::new(Woken(AtomicBool::new(false)));
            let waker = Waker::from(woken.clone());
            let polled = pin!(&mut running).poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
            drop(waker);
            let other = thread::spawn(job);
            drop(running);
            other.join().unwrap();
            assert_eq!(Arc::strong_count(&value), 1);
            assert_eq!(std::sync::Arc::strong_count(&woken), 1);
        });
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle, selvedge_count))))]
mod tests {
    use super::{Running, new};
    use std::{
        future::Future,
        panic::{AssertUnwindSafe, catch_unwind},
        pin::pin,
        sync::Arc,
        task::{Context, Poll, Wake, Waker},
    };

    /// Polls once, without a waker.
    fn poll<T>(running: &mut Running<T>) -> Poll<Result<T, super::Dropped>> {
        pin!(running).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn panic_of_the_closure_goes_on_where_the_future_is_awaited() {
        let (job, mut running) = new(|| panic!("on purpose"));
        job();
        let panic = catch_unwind(AssertUnwindSafe(|| poll(&mut running).is_pending()));
        assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"on purpose"));
        let again = catch_unwind(AssertUnwindSafe(|| poll(&mut running).is_pending()));
        assert!(again.is_err(), "it was ready before");
    }

    #[test]
    fn closure_that_is_dropped_unrun_is_an_error() {
        let (job, mut running) = new(|| 7);
        drop(job);
        assert!(matches!(poll(&mut running), Poll::Ready(Err(_))));
    }

    /// Panics where it is dropped.
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("on purpose");
        }
    }

    /// Panics in its wake.
    struct Broken;

    impl Wake for Broken {
        fn wake(self: Arc<Self>) {
            panic!("on purpose");
        }
    }

    /// Polls once, by a waker that panics.
    fn poll_broken<T>(running: &mut Running<T>) {
        let waker = Waker::from(Arc::new(Broken));
        let polled = pin!(running).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
    }

    /// Fails if a job unwinds into the thread that runs it: an executor's own threads may not catch
    /// panics.
    #[test]
    fn job_contains_the_panics_of_wakers_and_results() {
        let (job, mut running) = new(|| 7);
        poll_broken(&mut running);
        job();
        assert!(matches!(poll(&mut running), Poll::Ready(Ok(7))));

        let (job, running) = new(|| Bomb);
        drop(running);
        job();
        let (job, running) = new(|| std::panic::panic_any(Bomb));
        drop::<Running<()>>(running);
        job();
    }

    /// Fails if the process aborts: the waker must not unwind while the closure's drop does.
    #[test]
    fn panics_of_a_dropped_closure_and_of_its_waker_do_not_meet() {
        let bomb = Bomb;
        let (job, mut running) = new(move || drop(bomb));
        poll_broken(&mut running);
        catch_unwind(AssertUnwindSafe(|| drop(job))).unwrap_err();
        assert!(matches!(poll(&mut running), Poll::Ready(Err(_))));
    }

    /// Takes the lock of a slot in its wake and in its drop.
    struct Locks(Arc<super::Slot<u8>>);

    impl Wake for Locks {
        fn wake(self: Arc<Self>) {
            drop(self.0.0.lock());
        }
    }

    impl Drop for Locks {
        fn drop(&mut self) {
            drop(self.0.0.lock());
        }
    }

    /// Fails if a waker is called or dropped under the lock: it waits for the lock forever.
    #[test]
    fn wakers_may_use_the_future() {
        let (job, mut running) = new(|| 7);
        for _ in 0..2 {
            let waker = Waker::from(Arc::new(Locks(running.0.clone())));
            let polled = pin!(&mut running).poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
        }
        job();
        assert!(matches!(poll(&mut running), Poll::Ready(Ok(7))));
        let (_job, mut running) = new(|| 7);
        let waker = Waker::from(Arc::new(Locks(running.0.clone())));
        assert!(
            pin!(&mut running)
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        drop(waker);
        drop(running);
    }

    /// Fails if the waker stays until the closure ends, which may be never.
    #[test]
    fn dropped_future_keeps_no_waker() {
        let (job, mut running) = new(|| 7);
        let wake = Arc::new(Nothing);
        let waker = Waker::from(wake.clone());
        assert!(
            pin!(&mut running)
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        drop((running, waker));
        assert_eq!(Arc::strong_count(&wake), 1);
        job();
    }

    struct Nothing;

    impl Wake for Nothing {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn empty_and_large_values_are_returned() {
        let (job, mut running) = new(|| ());
        job();
        assert!(matches!(poll(&mut running), Poll::Ready(Ok(()))));
        let big = [7_u8; 16 * 1024];
        let (job, mut running) = new(move || big);
        job();
        assert!(matches!(poll(&mut running), Poll::Ready(Ok(same)) if same == big));
    }
}
