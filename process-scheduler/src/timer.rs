//! Deadlines: a wheel of wakers, and one thread that fires them. The thread starts with the first
//! deadline.
//!
//! 1. A tick is a millisecond. Deadlines are rounded up and the present down: none fires early.
//! 2. The wheel is under a lock. The thread waits for the next deadline on a condition variable;
//!    whoever arms an earlier one notifies it.
//! 3. Wakers are woken and dropped outside of the lock.
use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, Instant},
};
use sync_shim::sync::{Condvar, Mutex};
use timer_wheel::{Key, Timers};

#[derive(Clone)]
pub(crate) struct Timer(Arc<Shared>);

struct Shared {
    start: Instant,
    inner: Mutex<Inner>,
    changed: Condvar,
}

struct Inner {
    timers: Timers<Waker>,
    has_thread: bool,
    is_stopped: bool,
}

impl Timer {
    pub(crate) fn new() -> Self {
        let inner = Inner {
            timers: Timers::new(),
            has_thread: false,
            is_stopped: false,
        };
        Self(Arc::new(Shared {
            start: Instant::now(),
            inner: Mutex::new(inner),
            changed: Condvar::new(),
        }))
    }

    fn arm(&self, at: Instant, waker: Waker) -> Option<Key> {
        let after = at.saturating_duration_since(self.0.start);
        let tick = u64::try_from(after.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        let mut inner = self.0.inner.lock();
        if inner.is_stopped {
            drop(inner);
            drop(waker);
            return None;
        }
        let first = inner.timers.next_bound();
        let key = inner.timers.insert(tick, waker);
        if !inner.has_thread {
            let timer = self.clone();
            let name = "process-timer".to_owned();
            // If there is no thread to be had, the next deadline tries again.
            let spawned = thread::Builder::new().name(name).spawn(move || timer.run());
            inner.has_thread = spawned.is_ok();
        } else if first.is_none_or(|first| tick < first) {
            self.0.changed.notify_one();
        }
        Some(key)
    }

    fn disarm(&self, key: Key) {
        let waker = self.0.inner.lock().timers.remove(key);
        drop(waker);
    }

    fn run(self) {
        let mut inner = self.0.inner.lock();
        while !inner.is_stopped {
            let now = self.0.start.elapsed();
            if let Some(expired) = inner.timers.pop_expired(now.as_millis() as u64) {
                drop(inner);
                // A waker of somebody else may panic; the others' deadlines must not go with it.
                let wake = || expired.value.wake();
                drop(std::panic::catch_unwind(std::panic::AssertUnwindSafe(wake)));
                inner = self.0.inner.lock();
                continue;
            }
            let next = inner.timers.next_expiration();
            inner = match next {
                None => self.0.changed.wait(inner),
                Some(tick) => {
                    let wait = Duration::from_millis(tick).saturating_sub(now);
                    self.0.changed.wait_timeout(inner, wait).0
                }
            };
        }
    }

    /// Ends the thread, and drops the wakers.
    pub(crate) fn stop(&self) {
        let mut inner = self.0.inner.lock();
        inner.is_stopped = true;
        let timers = std::mem::take(&mut inner.timers);
        drop(inner);
        self.0.changed.notify_one();
        drop(timers);
    }
}

/// A deadline, which is armed by its first poll that finds it ahead.
pub(crate) struct Deadline {
    timer: Timer,
    at: Option<Instant>,
    armed: Option<(Key, Waker)>,
}

impl Deadline {
    /// A time that the clock cannot say never comes.
    pub(crate) fn new(timer: &Timer, within: Duration) -> Self {
        Self {
            timer: timer.clone(),
            at: Instant::now().checked_add(within),
            armed: None,
        }
    }

    /// Returns whether the deadline has passed. If not, it wakes the task then.
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> bool {
        let Some(at) = self.at else {
            return false;
        };
        if at <= Instant::now() {
            return true;
        }
        let armed = self.armed.as_ref();
        if armed.is_some_and(|(_, waker)| waker.will_wake(cx.waker())) {
            return false;
        }
        self.disarm();
        let key = self.timer.arm(at, cx.waker().clone());
        self.armed = key.map(|key| (key, cx.waker().clone()));
        false
    }

    fn disarm(&mut self) {
        if let Some((key, _)) = self.armed.take() {
            self.timer.disarm(key);
        }
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.disarm();
    }
}

/// The future of [`Handle::sleep`](crate::Handle::sleep).
#[must_use = "nothing sleeps until the future is awaited"]
pub struct Sleep(pub(crate) Deadline);

impl Unpin for Sleep {}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.0.poll(cx) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sleep")
    }
}
