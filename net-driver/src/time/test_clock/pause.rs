//! Pausing the clock of a driver, and setting it forward.
use super::{Reading, clock};
use crate::{Driver, driver, poller};
use std::{fmt, future::poll_fn, task::Poll, time::Duration};
use sync_shim::atomic::{
    Ordering::{Relaxed, Release, SeqCst},
    fence,
};

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
        let threads = self.threads();
        assert!(!threads.clock.is_paused(), "the clock is paused already");
        clock::start();
        let shown = threads.clock.now().into_std();
        *threads.clock.reading.lock() = Some(Reading { shown, since: None });
        // Ordering: Relaxed, as in `now`. The fence follows.
        threads.clock.is_used.store(true, Relaxed);
        // Ordering: SeqCst pairs with the fence of `Role::publish_until`: if `holder` does not see
        // a worker that takes the role now, that worker sees the pause.
        fence(SeqCst);
        threads.unpark_poller();
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
        let threads = self.threads();
        assert!(threads.clock.is_paused(), "the clock is not paused");
        if let Some(reading) = &mut *threads.clock.reading.lock() {
            reading.since = Some(sync_shim::time::now());
        }
        // Unparks all threads, because one of them may have to stand by from now on.
        threads.unpark_all();
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
        self.threads().clock.holds.fetch_add(1, Relaxed);
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
        let threads = self.0.threads();
        // Ordering: Release pairs with the load of `holds` in `if_idle_but`.
        threads.clock.holds.fetch_sub(1, Release);
        threads.began_to_wait();
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

/// Pauses the clock of the current driver: [`Instant::now`](crate::time::Instant::now) stands still, and so do the sleeps of
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
/// The clock ends 584 years after its start, and an advance stops 36 years before that end. An
/// advance that begins later than that moves the clock by at most half of the time that is left. So
/// a sleep that begins afterwards can still end. A sleep beyond the end keeps waiting.
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
    assert!(inner.threads.clock.is_paused(), "the clock is not paused");
    let now = inner.threads.clock.now().into_std();
    inner
        .threads
        .clock
        .jump_to(now + clock::limit_advance(now, span));
    let mut wakers = std::collections::VecDeque::new();
    let wheel = driver::with_current(|_, wheel| wheel).unwrap_or(0);
    inner
        .timers
        .collect_due(wheel, usize::MAX, || inner.threads.now(), &mut wakers);
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
