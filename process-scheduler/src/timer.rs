//! Deadlines: a wheel of wakers, and one thread that fires them. The thread starts with the first
//! deadline.
//!
//! 1. A tick is a millisecond. Deadlines are rounded up and the present down, so that no deadline
//!    fires early.
//! 2. The wheel is under a lock. The timer's thread waits for the next deadline on a condition
//!    variable, and notes the tick of that deadline (`sleeps_until`). A thread that arms an earlier
//!    deadline notifies the timer's thread. A deadline that is disarmed may still end the wait.
//! 3. Wakers are woken and dropped outside of the lock.
//! 4. `fired` is a tick: an entry of a later tick is still in the wheel, with its waker. The
//!    timer's thread stores `fired` before it wakes a task. So the woken task sees that value in
//!    its next poll.
//! 5. A worker keeps the last entry that it would disarm. The next deadline that is made on this
//!    worker takes the entry over, if the entry comes no later. If both are of the same task, the
//!    entry wakes the task too early, and the task then arms another entry. Otherwise the new
//!    deadline arms an entry of its own. So a process that makes one call after another arms the
//!    timer once, and takes no lock. A kept entry keeps the memory of its task up to a minute.
//! 6. A clone and a drop of a waker are user code, which may panic. So a deadline forgets an entry
//!    before it disarms the entry, and does neither if the clone of the next waker panics. A
//!    deadline that is dropped guards the drops of wakers: its owner drops other values beside it.
//! 7. The wheel has entries only while there is a thread. If no thread can be started, a deadline
//!    wakes its task at once, at each poll until its time is over. Such a deadline comes, and not
//!    early, but its task takes processor time meanwhile. Each poll tries again to start the
//!    thread.
use crate::guard::{WakerId, drop_guarded, wake};
use std::{
    cell::RefCell,
    fmt,
    future::Future,
    io, mem,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, Instant},
};
use sync_shim::sync::{Condvar, Mutex};
use timer_wheel::{Key, Timers};

/// A worker keeps only entries of deadlines that were made with at most this time (rule 5).
const KEEP_WITHIN: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub(crate) struct Timer(Arc<Shared>);

struct Shared {
    start: Instant,
    /// Starts the thread.
    spawn: fn(Timer) -> io::Result<()>,
    inner: Mutex<Inner>,
    changed: Condvar,
    /// Rule 4. Written under the lock.
    fired: AtomicU64,
}

struct Inner {
    timers: Timers<Waker>,
    /// The tick for which the thread waits.
    sleeps_until: u64,
    has_thread: bool,
    is_stopped: bool,
}

/// An entry of the wheel.
struct Armed {
    key: Key,
    /// The deadline for which the entry was armed.
    at: Instant,
    /// The tick of `at`.
    tick: u64,
    waker: WakerId,
}

/// The outcome of [`Timer::arm`].
enum Arm {
    Armed(Armed),
    /// The timer has ended.
    Stopped,
    /// No thread can be started. The task was woken (rule 7).
    NoThread,
}

impl Timer {
    pub(crate) fn new() -> Self {
        Self::with_spawn(|timer| {
            let thread = thread::Builder::new().name("process-timer".to_owned());
            thread.spawn(move || timer.run()).map(drop)
        })
    }

    fn with_spawn(spawn: fn(Self) -> io::Result<()>) -> Self {
        let inner = Inner {
            timers: Timers::new(),
            sleeps_until: u64::MAX,
            has_thread: false,
            is_stopped: false,
        };
        Self(Arc::new(Shared {
            start: Instant::now(),
            spawn,
            inner: Mutex::new(inner),
            changed: Condvar::new(),
            fired: AtomicU64::new(0),
        }))
    }

    fn tick(&self, at: Instant) -> u64 {
        let after = at.saturating_duration_since(self.0.start);
        let millis = u64::from(after.subsec_nanos().div_ceil(1_000_000));
        after.as_secs().saturating_mul(1_000).saturating_add(millis)
    }

    fn arm(&self, at: Instant, waker: Waker) -> Arm {
        let tick = self.tick(at);
        let id = WakerId::of(&waker);
        let mut inner = self.0.inner.lock();
        if inner.is_stopped {
            drop(inner);
            drop(waker);
            return Arm::Stopped;
        }
        let key = inner.timers.insert(tick, waker);
        if !inner.has_thread {
            inner.has_thread = (self.0.spawn)(self.clone()).is_ok();
            if !inner.has_thread {
                // Rule 7.
                let waker = inner.timers.remove(key);
                drop(inner);
                waker.into_iter().for_each(wake);
                return Arm::NoThread;
            }
        } else if tick < inner.sleeps_until {
            self.0.changed.notify_one();
        }
        Arm::Armed(Armed {
            key,
            at,
            tick,
            waker: id,
        })
    }

    /// Returns whether an entry may have left the wheel (rule 4).
    fn may_have_fired(&self, armed: &Armed) -> bool {
        // Ordering: Relaxed. The wake that leads to the task's next poll orders this load: rule 4.
        self.0.fired.load(Relaxed) >= armed.tick
    }

    fn disarm(&self, armed: &Armed) {
        let waker = self.0.inner.lock().timers.remove(armed.key);
        drop(waker);
    }

    /// Disarms an entry for an owner that is dropped, or for nobody (rule 6).
    fn disarm_guarded(&self, armed: &Armed) {
        let waker = self.0.inner.lock().timers.remove(armed.key);
        waker.into_iter().for_each(drop_guarded);
    }

    fn run(self) {
        let mut inner = self.0.inner.lock();
        while !inner.is_stopped {
            let now = self.0.start.elapsed();
            let tick = now.as_millis() as u64;
            // Ordering: Relaxed, as in `may_have_fired`.
            self.0.fired.store(tick, Relaxed);
            if let Some(expired) = inner.timers.pop_expired(tick) {
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

    /// Ends the timer's thread. From then on all deadlines count as passed.
    pub(crate) fn stop(&self) {
        let mut inner = self.0.inner.lock();
        inner.is_stopped = true;
        // Ordering: Relaxed, as in `may_have_fired`.
        self.0.fired.store(u64::MAX, Relaxed);
        let mut timers = mem::take(&mut inner.timers);
        drop(inner);
        self.0.changed.notify_one();
        while let Some(expired) = timers.pop_expired(u64::MAX) {
            wake(expired.value);
        }
    }
}

/// The entry that a worker keeps (rule 5).
enum Kept {
    /// This thread is no worker.
    Nothing,
    None,
    Some(Timer, Armed),
}

thread_local! {
    static KEPT: RefCell<Kept> = const { RefCell::new(Kept::Nothing) };
}

/// Sets whether this thread keeps entries from now on. Disarms an entry that the thread kept,
/// outside of the borrow, because the drop of the entry's waker may run user code.
pub(crate) fn keep_entries(keeps: bool) {
    let now = if keeps { Kept::None } else { Kept::Nothing };
    if let Kept::Some(timer, armed) = KEPT.replace(now) {
        timer.disarm_guarded(&armed);
    }
}

/// Takes the kept entry, if it is of this timer and comes no later than `at`. The comparison is of
/// instants, since the tick of `at` would cost a division.
fn take_kept(timer: &Timer, at: Instant) -> Option<(Timer, Armed)> {
    let taken = KEPT.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        let fits = match &*kept {
            Kept::Some(own, armed) => Arc::ptr_eq(&own.0, &timer.0) && armed.at <= at,
            _ => false,
        };
        match fits.then(|| mem::replace(&mut *kept, Kept::None)) {
            Some(Kept::Some(timer, armed)) => Some((timer, armed)),
            _ => None,
        }
    });
    taken.ok().flatten()
}

/// Keeps an entry if this thread keeps entries, and disarms it otherwise. Disarms the entry that
/// was kept before.
fn keep_or_disarm(timer: Timer, armed: Armed) {
    let mut entry = Some((timer, armed));
    let before = KEPT.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        if matches!(*kept, Kept::Nothing) {
            return Kept::Nothing;
        }
        match entry.take() {
            Some((timer, armed)) => mem::replace(&mut *kept, Kept::Some(timer, armed)),
            None => Kept::Nothing,
        }
    });
    if let Ok(Kept::Some(timer, armed)) = before {
        timer.disarm_guarded(&armed);
    }
    if let Some((timer, armed)) = entry {
        timer.disarm_guarded(&armed);
    }
}

/// A deadline, which is armed by its first poll.
pub(crate) struct Deadline {
    /// `None` once the deadline's drop has begun.
    timer: Option<Timer>,
    at: Option<Instant>,
    armed: Option<Armed>,
    may_be_kept: bool,
}

impl Deadline {
    /// Makes a deadline. If it is beyond the clock's range, it never comes.
    pub(crate) fn new(timer: &Timer, within: Duration) -> Self {
        let at = Instant::now().checked_add(within);
        let kept = at.and_then(|at| take_kept(timer, at));
        let (timer, armed) = match kept {
            Some((timer, armed)) => (timer, Some(armed)),
            None => (timer.clone(), None),
        };
        Self {
            timer: Some(timer),
            at,
            armed,
            may_be_kept: within <= KEEP_WITHIN,
        }
    }

    /// Returns whether the deadline has passed. If it has not, the task is woken when it has.
    ///
    /// A first poll without a kept entry does not read the clock: it arms the timer, which fires at
    /// once if the deadline is due.
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> bool {
        let (Some(at), Some(timer)) = (self.at, &self.timer) else {
            return false;
        };
        if let Some(armed) = &self.armed {
            let may_have_fired = timer.may_have_fired(armed);
            if !may_have_fired && armed.waker == WakerId::of(cx.waker()) {
                return false;
            }
            if at <= Instant::now() {
                return true;
            }
        }
        // Rule 6: the clone first, and `armed` is `None` before the drop of the old waker.
        let waker = cx.waker().clone();
        if let Some(armed) = self.armed.take() {
            timer.disarm(&armed);
        }
        match timer.arm(at, waker) {
            Arm::Armed(armed) => {
                self.armed = Some(armed);
                false
            }
            // Nobody would wake the task, so the deadline counts as passed.
            Arm::Stopped => true,
            Arm::NoThread => at <= Instant::now(),
        }
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        if let (Some(timer), Some(armed)) = (self.timer.take(), self.armed.take()) {
            if timer.may_have_fired(&armed) {
                // The timer's thread drops the waker of the entry.
                return;
            }
            match self.may_be_kept {
                true => keep_or_disarm(timer, armed),
                false => timer.disarm_guarded(&armed),
            }
        }
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

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests {
    use super::*;
    use std::{
        sync::{atomic::AtomicBool, mpsc},
        task::Wake,
    };

    /// A test that waits this long has failed.
    const LIMIT: Duration = Duration::from_secs(600);

    /// A waker that reports its wake.
    struct Reports(mpsc::SyncSender<()>);

    impl Wake for Reports {
        fn wake(self: Arc<Self>) {
            let _ = self.0.try_send(());
        }
    }

    fn reports() -> (Waker, mpsc::Receiver<()>) {
        let (sender, woken) = mpsc::sync_channel(1);
        (Arc::new(Reports(sender)).into(), woken)
    }

    /// No thread can be started: the deadline wakes its task at each poll until its time is over.
    ///
    /// Fails if the task waits for a timer that has no thread, or if the deadline comes early.
    #[test]
    fn deadline_without_a_thread_wakes_until_it_is_due() {
        let timer = Timer::with_spawn(|_| Err(io::ErrorKind::WouldBlock.into()));
        let (waker, woken) = reports();
        let cx = Context::from_waker(&waker);
        let (start, time) = (Instant::now(), Duration::from_millis(20));
        let mut deadline = Deadline::new(&timer, time);
        while !deadline.poll(&cx) {
            assert_eq!(woken.try_recv(), Ok(()), "nobody wakes the task");
        }
        assert!(start.elapsed() >= time);
        assert_eq!(timer.0.inner.lock().timers.next_expiration(), None);
    }

    /// Only the second start of a thread succeeds.
    ///
    /// Fails if a deadline does not try again to start the thread, or if its first try leaves an
    /// entry in the wheel.
    #[test]
    fn deadline_starts_the_thread_at_a_later_poll() {
        static IS_SECOND: AtomicBool = AtomicBool::new(false);
        let timer = Timer::with_spawn(|timer| {
            // Ordering: Relaxed, one thread.
            if !IS_SECOND.swap(true, Relaxed) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            thread::Builder::new().spawn(move || timer.run()).map(drop)
        });
        let (waker, woken) = reports();
        let cx = Context::from_waker(&waker);
        let mut deadline = Deadline::new(&timer, Duration::from_millis(50));
        while !deadline.poll(&cx) {
            assert_eq!(woken.recv_timeout(LIMIT), Ok(()));
        }
        assert_eq!(timer.0.inner.lock().timers.next_expiration(), None);
        timer.stop();
    }
}
