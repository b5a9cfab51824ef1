//! Deadlines: a wheel of wakers, and one thread that fires them. The thread starts with the first
//! deadline.
//!
//! 1. A tick is a millisecond. Deadlines are rounded up and the present down: none fires early.
//! 2. The wheel is under a lock. The thread waits for the next deadline on a condition variable,
//!    and notes until when (`sleeps_until`). A thread that arms an earlier one notifies it. A
//!    deadline that is disarmed may still end the wait.
//! 3. Wakers are woken and dropped outside of the lock.
use crate::guard::wake;
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
    /// The tick for which the thread waits.
    sleeps_until: u64,
    has_thread: bool,
    is_stopped: bool,
}

impl Timer {
    pub(crate) fn new() -> Self {
        let inner = Inner {
            timers: Timers::new(),
            sleeps_until: u64::MAX,
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
        let key = inner.timers.insert(tick, waker);
        if !inner.has_thread {
            let timer = self.clone();
            let name = "process-timer".to_owned();
            // If no thread can be started, the next deadline tries again.
            let spawned = thread::Builder::new().name(name).spawn(move || timer.run());
            inner.has_thread = spawned.is_ok();
        } else if tick < inner.sleeps_until {
            self.0.changed.notify_one();
        }
        Some(key)
    }

    /// Returns whether a deadline is armed with a waker of the same task.
    fn is_armed(&self, key: Key, waker: &Waker) -> bool {
        let inner = self.0.inner.lock();
        let armed = inner.timers.get(key);
        armed.is_some_and(|armed| armed.will_wake(waker))
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
                wake(expired.value);
                inner = self.0.inner.lock();
                continue;
            }
            let next = inner.timers.next_expiration();
            inner.sleeps_until = next.unwrap_or(u64::MAX);
            inner = match next {
                None => self.0.changed.wait(inner),
                Some(tick) => {
                    let wait = Duration::from_millis(tick).saturating_sub(now);
                    self.0.changed.wait_timeout(inner, wait).0
                }
            };
        }
    }

    /// Ends the thread. All deadlines have passed then.
    pub(crate) fn stop(&self) {
        let mut inner = self.0.inner.lock();
        inner.is_stopped = true;
        let mut timers = std::mem::take(&mut inner.timers);
        drop(inner);
        self.0.changed.notify_one();
        while let Some(expired) = timers.pop_expired(u64::MAX) {
            wake(expired.value);
        }
    }
}

/// A deadline, which is armed by its first poll.
pub(crate) struct Deadline {
    timer: Timer,
    at: Option<Instant>,
    armed: Option<Key>,
}

impl Deadline {
    /// Makes a deadline. If it is beyond the clock's range, it never comes.
    pub(crate) fn new(timer: &Timer, within: Duration) -> Self {
        Self {
            timer: timer.clone(),
            at: Instant::now().checked_add(within),
            armed: None,
        }
    }

    /// Returns whether the deadline has passed. If not, it wakes the task then.
    ///
    /// The first poll does not read the clock: it arms the timer, which fires at once if it is due.
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> bool {
        let Some(at) = self.at else {
            return false;
        };
        if let Some(key) = self.armed {
            if self.timer.is_armed(key, cx.waker()) {
                return false;
            }
            if at <= Instant::now() {
                return true;
            }
            self.disarm();
        }
        self.armed = self.timer.arm(at, cx.waker().clone());
        // Without a timer nobody would wake the task, so its time is over.
        self.armed.is_none()
    }

    fn disarm(&mut self) {
        if let Some(key) = self.armed.take() {
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
