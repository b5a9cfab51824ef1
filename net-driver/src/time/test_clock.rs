//! A clock that tests pause, with the feature `test-util`.
//!
//! While the clock is paused, no time passes except by [`advance`], or when the whole runtime is
//! idle: then the clock jumps to the next deadline. The runtime is *idle* if no worker runs, no
//! thread in a `block_on` of the driver runs, and no [`ClockHold`] exists.
//!
//! 1. The poller decides whether the runtime is idle. It looks at the tokens of all other threads,
//!    which say whether those threads wait. A thread that was unparked counts as running from that
//!    moment, as its token is `NOTIFIED`. The poller itself also counts as running after an unpark:
//!    its park then ends without a jump, and the executor looks for tasks. A worker whose thread
//!    has not started counts as waiting: it has no task yet. An executor that starts such a thread
//!    for a task keeps a [`ClockHold`] until the worker has entered the driver.
//! 2. A thread that begins to wait unparks the poller afterwards, so that the poller looks again.
//!    Between the start of its wait and that unpark, the thread passes a `SeqCst` fence. The poller
//!    takes the role, passes the fence of `Role::publish_until`, and then looks. So either the
//!    poller sees that the thread waits, or the thread sees the poller and unparks it. An unpark
//!    ends the poller's park: the executor looks for tasks, and then the poller parks again.
//! 3. The poller looks at one token after the other. Say that the poller has seen that a thread
//!    waits. Another thread may then unpark that thread, and wait itself before the poller looks at
//!    it. So a thread adds to `waits` before it counts as waiting, and the poller's look is void if
//!    `waits` has changed during the look. A thread may also unpark the poller and then wait. So
//!    the poller reads its own token, too, between the two loads of `waits`.
//! 4. A thread may enter a `block_on`, and arm a timer there, after the poller has looked. So a
//!    thread also adds to `waits` when it enters or leaves a `block_on`, or when it starts as a
//!    worker. The poller reads the next deadline before its second load of `waits`.
//! 5. With this feature a tick is a nanosecond, so that a paused sleep takes exactly its time.
use super::{Instant, clock};
use crate::{
    Driver,
    driver::{self, Inner},
    park::Token,
    poller,
};
use std::{fmt, future::poll_fn, task::Poll, time::Duration};
use sync_shim::{
    atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{Acquire, Relaxed, Release, SeqCst},
        fence,
    },
    sync::Mutex,
};

/// The clock of a driver, and the threads and guards that keep it from jumping.
pub(crate) struct Clock {
    /// Whether the clock was ever paused.
    is_used: AtomicBool,
    reading: Mutex<Option<Reading>>,
    /// For each worker, whether its thread has run.
    started: Box<[AtomicBool]>,
    holds: AtomicUsize,
    /// Counts the waits that were about to begin, and the threads that entered or left a `block_on`
    /// or started as a worker (rules 3 and 4).
    waits: AtomicUsize,
}

/// The state of a clock that was paused at least once.
#[derive(Clone, Copy)]
struct Reading {
    /// The time that the clock showed at `since`, or shows now if it is paused.
    shown: std::time::Instant,
    /// The time when the clock was resumed last. `None` while the clock is paused.
    since: Option<std::time::Instant>,
}

impl Reading {
    fn now(self) -> std::time::Instant {
        match self.since {
            None => self.shown,
            Some(since) => self.shown + since.elapsed(),
        }
    }
}

impl Clock {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            is_used: AtomicBool::new(false),
            reading: Mutex::new(None),
            started: (0..workers).map(|_| AtomicBool::new(false)).collect(),
            holds: AtomicUsize::new(0),
            waits: AtomicUsize::new(0),
        }
    }

    pub(crate) fn now(&self) -> Instant {
        // Ordering: Relaxed: the lock orders the reading. The flag is visible to the thread that
        // paused the clock, and to each thread that learned of the pause. For the poller, the
        // fences of rule 2 order the flag.
        let paused_once = self.is_used.load(Relaxed);
        let reading = paused_once.then(|| *self.reading.lock()).flatten();
        Instant::from_std(reading.map_or_else(std::time::Instant::now, Reading::now))
    }

    pub(crate) fn is_paused(&self) -> bool {
        // Ordering: Relaxed, as in `now`.
        self.is_used.load(Relaxed) && self.reading.lock().is_some_and(|r| r.since.is_none())
    }

    pub(crate) fn set_started(&self, worker: usize) {
        if let Some(started) = self.started.get(worker) {
            // Ordering: Relaxed. The poller's look may miss a worker that starts meanwhile, as if
            // the worker started after the look. If the poller sees a timer of that worker,
            // `will_wait` makes the look void.
            if !started.load(Relaxed) {
                // Ordering: as above.
                started.store(true, Relaxed);
                self.will_wait();
            }
        }
    }

    /// Records that a thread is about to count as waiting, has entered a `block_on` or is about to
    /// leave one, or has started as a worker (rules 3 and 4).
    pub(crate) fn will_wait(&self) {
        // Ordering: Release pairs with the first load of `if_idle_but`: the poller sees that this
        // thread has unparked others.
        self.waits.fetch_add(1, Release);
        // Ordering: Release pairs with the fence in `if_idle_but`: a poller that sees this thread
        // waiting, or its timers, sees the count.
        fence(Release);
    }

    /// Sets the clock forward to `time`, but not beyond `clock::end`. Does nothing if the clock is
    /// not paused, or already shows a later time.
    fn jump_to(&self, time: std::time::Instant) {
        if let Some(reading) = &mut *self.reading.lock() {
            if reading.since.is_none() {
                reading.shown = reading.shown.max(time.min(clock::end()));
            }
        }
    }
}

impl Inner {
    /// Returns the result of `read`, if all threads except that of `worker` wait during this call,
    /// and no thread has unparked `worker` (rules 1 and 4). The worker has taken the role, and then
    /// called `Role::publish_until`, which contains the fence of rule 2.
    fn if_idle_but<R>(&self, worker: usize, read: impl FnOnce() -> R) -> Option<R> {
        let clock = &self.clock;
        // Ordering: Acquire pairs with `will_wait`.
        let waits = clock.waits.load(Acquire);
        let mut workers = self.tokens.iter().zip(&clock.started).enumerate();
        // Ordering: Acquire pairs with the drop of a hold: if its holder unparked a thread before
        // the drop, this look sees that thread as running.
        let all_wait = clock.holds.load(Acquire) == 0
            && workers.all(|(index, (token, started))| match index == worker {
                true => !token.is_notified(),
                // Ordering: Relaxed, as in `set_started`.
                false => !started.load(Relaxed) || token.is_waiting(),
            })
            && self.guests.all(Token::is_waiting);
        let result = all_wait.then(read);
        // Ordering: Acquire pairs with the fence in `will_wait`.
        fence(Acquire);
        // Ordering: Relaxed, after the fence.
        result.filter(|_| clock.waits.load(Relaxed) == waits)
    }

    /// Lets the poller look again, after a thread has begun to wait (rule 2).
    pub(crate) fn began_to_wait(&self) {
        // Ordering: SeqCst pairs with the fence of `Role::publish_until`, and with the fence of a
        // pause.
        fence(SeqCst);
        if self.clock.is_paused() {
            self.unpark_poller();
        }
    }

    /// Unparks the poller. The caller's fence orders the load of the holder.
    fn unpark_poller(&self) {
        if let Some(poller) = self.role.holder() {
            self.unpark(poller);
        }
    }

    /// Sets a paused clock to the next deadline, if the runtime is idle. Returns whether the
    /// runtime was idle and there was a deadline.
    pub(crate) fn jump_if_idle(&self, poller: usize) -> bool {
        let next = self.if_idle_but(poller, || self.timers.next_exact());
        if let Some(tick) = next.flatten() {
            self.clock.jump_to(clock::time_of(tick));
        }
        next.flatten().is_some()
    }
}

impl Driver {
    /// Pauses the clock of this driver: see [`pause`].
    ///
    /// ```
    /// let driver = net_driver::Driver::new(1);
    /// driver.pause();
    /// driver.park(0).block_on(async {
    ///     let begun = net_driver::time::Instant::now();
    ///     net_driver::time::sleep(std::time::Duration::from_secs(3_600)).await; // At once.
    ///     assert_eq!(begun.elapsed().as_secs(), 3_600);
    /// });
    /// ```
    ///
    /// # Panics
    /// If the clock is paused already.
    #[cfg_attr(not(selvedge_loom), track_caller)]
    pub fn pause(&self) {
        let inner = self.inner();
        assert!(!inner.clock.is_paused(), "the clock is paused already");
        clock::start();
        let shown = inner.clock.now().into_std();
        *inner.clock.reading.lock() = Some(Reading { shown, since: None });
        // Ordering: Relaxed, as in `now`. The fence follows.
        inner.clock.is_used.store(true, Relaxed);
        // Ordering: SeqCst pairs with the fence of `Role::publish_until`: if `holder` does not see
        // a worker that takes the role now, that worker sees the pause.
        fence(SeqCst);
        inner.unpark_poller();
    }

    /// Lets the clock of this driver go on: see [`resume`].
    ///
    /// ```
    /// let driver = net_driver::Driver::new(1);
    /// driver.pause();
    /// driver.resume();
    /// ```
    ///
    /// # Panics
    /// If the clock is not paused.
    #[track_caller]
    pub fn resume(&self) {
        let inner = self.inner();
        assert!(inner.clock.is_paused(), "the clock is not paused");
        if let Some(reading) = &mut *inner.clock.reading.lock() {
            reading.since = Some(std::time::Instant::now());
        }
        // All threads, because one of them may have to stand by from now on.
        inner.unpark_all();
    }

    /// Keeps a paused clock from jumping, until the guard is dropped. Use the guard while a thread
    /// that is unknown to the driver does some work.
    ///
    /// ```
    /// let driver = net_driver::Driver::new(1);
    /// let hold: net_driver::time::ClockHold = driver.hold_clock();
    /// std::thread::spawn(move || drop(hold)).join().unwrap();
    /// ```
    pub fn hold_clock(&self) -> ClockHold {
        // Ordering: Relaxed: the caller's next wait publishes the count (rule 3).
        self.inner().clock.holds.fetch_add(1, Relaxed);
        ClockHold(self.clone())
    }
}

/// A guard that keeps a paused clock from jumping: see [`Driver::hold_clock`].
///
/// ```
/// use net_driver::{Driver, time};
/// use std::{sync::mpsc, thread, time::Duration};
///
/// let driver = Driver::new(1);
/// driver.pause();
/// let hold: time::ClockHold = driver.hold_clock();
/// let (sender, results) = mpsc::channel();
/// let works = thread::spawn(move || {
///     sender.send(7).unwrap();
///     drop(hold); // From here on the clock may jump.
/// });
/// driver.park(0).block_on(async {
///     time::sleep(Duration::from_secs(3_600)).await;
///     assert_eq!(results.try_recv(), Ok(7));
/// });
/// works.join().unwrap();
/// ```
pub struct ClockHold(Driver);

impl Drop for ClockHold {
    fn drop(&mut self) {
        let inner = self.0.inner();
        // Ordering: Release pairs with the load of `holds` in `if_idle_but`.
        inner.clock.holds.fetch_sub(1, Release);
        inner.began_to_wait();
    }
}

impl fmt::Debug for ClockHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClockHold")
    }
}

#[track_caller]
fn current() -> Driver {
    match Driver::current() {
        Some(driver) => driver,
        None => panic!(
            "this thread is in no runtime of ours, so there is no clock to pause: call this in a task, \
             inside the runtime's block_on, or after Handle::enter"
        ),
    }
}

/// Pauses the clock of the current driver: [`Instant::now`] stands still, and so do the sleeps of
/// that driver.
///
/// When all threads of the runtime wait, the clock jumps to the next deadline, however many workers
/// there are. So a test of long sleeps takes no time, and the sleeps end in their order. The clock
/// does not wait for sockets, nor for threads that the runtime does not know of: see
/// [`Driver::hold_clock`]. A worker that parks in a parker of its own counts as waiting until
/// [`Driver::waker`] unparks it.
///
/// ```
/// use net_driver::{Driver, time};
/// use std::time::Duration;
///
/// Driver::new(1).park(0).block_on(async {
///     time::pause();
///     let begun = time::Instant::now();
///     time::sleep(Duration::from_secs(86_400)).await; // At once.
///     assert_eq!(begun.elapsed(), Duration::from_secs(86_400));
/// });
/// ```
///
/// # Panics
/// If the clock is paused already, or no driver is current.
#[track_caller]
pub fn pause() {
    current().pause();
}

/// Lets the clock of the current driver go on from the time that it shows.
///
/// ```
/// use net_driver::{Driver, time};
///
/// Driver::new(1).park(0).block_on(async {
///     time::pause();
///     time::resume();
/// });
/// ```
///
/// # Panics
/// If the clock is not paused, or no driver is current.
#[track_caller]
pub fn resume() {
    current().resume();
}

/// Sets the paused clock of the current driver forward, wakes the tasks whose timers are due by
/// then, and yields.
///
/// The clock ends 584 years after its start, and an advance stops 36 years before that end. Beyond
/// that it moves the clock by half of the time that is left, at most. So a sleep that begins
/// afterwards can still end. A sleep beyond the end keeps waiting.
///
/// ```
/// use net_driver::{Driver, time};
/// use std::time::Duration;
///
/// Driver::new(1).park(0).block_on(async {
///     time::pause();
///     let begun = time::Instant::now();
///     time::advance(Duration::from_secs(5)).await;
///     assert_eq!(begun.elapsed(), Duration::from_secs(5));
/// });
/// ```
///
/// # Panics
/// If the clock is not paused, or no driver is current.
pub async fn advance(span: Duration) {
    let driver = current();
    let inner = driver.inner();
    assert!(inner.clock.is_paused(), "the clock is not paused");
    let now = inner.clock.now().into_std();
    inner.clock.jump_to(now + clock::limit_advance(now, span));
    let mut wakers = std::collections::VecDeque::new();
    let wheel = driver::with_current(|_, wheel| wheel).unwrap_or(0);
    inner
        .timers
        .collect_due(wheel, usize::MAX, || inner.now(), &mut wakers);
    poller::wake_all(&mut wakers);
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
