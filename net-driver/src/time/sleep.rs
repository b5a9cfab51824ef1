//! `sleep`: a future that waits until a time.
use super::{
    Instant, clock,
    entry::{Closed, Reset, Timer, TimerState},
    wheels::WheelCell,
};
use crate::driver::{self, Inner};
use coop_budget::WaitsOn;
use pin_project_lite::pin_project;
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

/// Waits until this duration has passed since the call.
///
/// The future is never ready early. It is late by a tick of 16 µs at most. To this comes the time
/// until the system has woken an idle worker, or until a busy worker looks at the timers. If sleeps
/// end less than 131 µs after each other, an idle worker may wake up once for several of them. An
/// idle worker that waits for sockets too wakes up to a millisecond late on a Linux without
/// `epoll_pwait2` (before 5.11, or if a filter forbids that system call). A duration that ends
/// beyond the range of the clock never ends.
///
/// This function may be called anywhere. The first poll must be in a task, or elsewhere where a
/// driver is current: see [`Sleep`].
///
/// ```
/// use net_driver::{Driver, time};
/// use std::time::Duration;
///
/// Driver::new(1).park(0).block_on(async {
///     let begun = time::Instant::now();
///     time::sleep(Duration::from_millis(2)).await;
///     assert!(begun.elapsed() >= Duration::from_millis(2));
/// });
/// ```
pub fn sleep(span: Duration) -> Sleep {
    Sleep::new(Instant::now().after(span))
}

/// Waits until this time, as [`sleep`] does. The future is ready at once if the time has passed.
///
/// ```
/// use net_driver::{Driver, time};
///
/// Driver::new(1).park(0).block_on(time::sleep_until(time::Instant::now()));
/// ```
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep::new(deadline)
}

pin_project! {
    /// The future of [`sleep`] and [`sleep_until`].
    ///
    /// The first poll that has to wait arms a timer in the wheel of the worker that polls the
    /// sleep. This takes the wheel's lock. Other threads rarely take that lock: to fire the timers
    /// of a busy worker, or to drop or reset one of these timers. Later polls by the same task cost
    /// a load. A drop before the deadline takes the lock again, on any thread. Nothing is
    /// allocated: the timer is a part of the future, which must therefore be pinned. The future has
    /// 72 bytes on a 64-bit target.
    ///
    /// ```
    /// use net_driver::{Driver, time};
    /// use std::{pin::pin, time::Duration};
    ///
    /// Driver::new(1).park(0).block_on(async {
    ///     let mut sleep = pin!(time::sleep(Duration::from_secs(3_600)));
    ///     assert!(!sleep.is_elapsed());
    ///     sleep.as_mut().reset(time::Instant::now() + Duration::from_millis(1));
    ///     sleep.as_mut().await;
    ///     assert!(sleep.is_elapsed());
    /// });
    /// ```
    ///
    /// # Panics
    /// A poll that has to arm the timer panics if no driver is current, or if the current driver
    /// has shut down.
    #[must_use = "a future does nothing unless it is polled"]
    pub struct Sleep {
        deadline: Instant,
        #[pin]
        timer: Timer,
    }
}

/// The deadline has 2 words. The timer has 7: its state, and 6 for its node, its waker and its
/// wheel.
#[cfg(all(
    target_pointer_width = "64",
    target_os = "linux",
    not(any(selvedge_loom, selvedge_shuttle, selvedge_count))
))]
const _: () = assert!(size_of::<Sleep>() == 72);

impl Sleep {
    pub(super) fn new(deadline: Instant) -> Self {
        Self {
            deadline,
            timer: Timer::new(),
        }
    }

    /// Returns the time until which this sleep waits.
    ///
    /// ```
    /// use net_driver::time;
    ///
    /// let deadline = time::Instant::now() + time::Duration::from_secs(1);
    /// assert_eq!(time::sleep_until(deadline).deadline(), deadline);
    /// ```
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns whether a poll has found, or a worker has noticed, that the time has passed.
    ///
    /// ```
    /// use net_driver::{Driver, time};
    ///
    /// let mut sleep = Box::pin(time::sleep_until(time::Instant::now()));
    /// assert!(!sleep.is_elapsed()); // It was not polled.
    /// Driver::new(1).park(0).block_on(sleep.as_mut());
    /// assert!(sleep.is_elapsed());
    /// ```
    pub fn is_elapsed(&self) -> bool {
        self.timer.is_fired()
    }

    /// Waits for another time instead, even after the first one has passed.
    ///
    /// If the sleep waits, the task that polled it last is woken at the new time. Otherwise the
    /// sleep must be polled again. A reset to a later time costs one compare-and-swap, for example
    /// in a timeout that each message restarts. A reset to an earlier time reads the clock, and
    /// takes the lock of the timer's wheel; if that time has passed, the sleep is ready at its next
    /// poll.
    ///
    /// ```
    /// use net_driver::{Driver, time};
    /// use std::{pin::pin, time::Duration};
    ///
    /// Driver::new(1).park(0).block_on(async {
    ///     let mut idle = pin!(time::sleep(Duration::from_millis(5)));
    ///     for _message in 0..3 {
    ///         idle.as_mut().reset(time::Instant::now() + Duration::from_millis(5));
    ///     }
    ///     idle.await;
    /// });
    /// ```
    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        let this = self.project();
        *this.deadline = deadline;
        let tick = clock::tick_of(deadline);
        let has_passed = |cell: &WheelCell| cell.threads().is_some_and(|t| t.now() >= deadline);
        match this.timer.reset(tick, has_passed) {
            Reset::Done => {}
            Reset::Fired(waker) => waker.wake(),
            Reset::IsNext(cell) => {
                if let Some(threads) = cell.threads() {
                    if let Some(duty) = threads.duty_after_arming(tick) {
                        threads.do_duty(duty);
                    }
                }
            }
        }
    }

    /// Polls without a charge to the task's budget. `has_passed` says whether the deadline has
    /// passed; the closure reads the clock unless the caller knows the answer.
    #[inline]
    pub(super) fn poll_timer(
        self: Pin<&mut Self>,
        waker: &Waker,
        has_passed: impl FnOnce(Instant) -> bool,
    ) -> Poll<()> {
        match self.try_poll_timer(waker, has_passed) {
            Ok(polled) => polled,
            Err(unarmed) => unarmed.panic(),
        }
    }

    /// Says what the sleep waits for, to a dump of tasks.
    #[cold]
    pub(super) fn waits_on(&self) -> WaitsOn {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let deadline = self.deadline.into_std();
        WaitsOn::Time { deadline, left }
    }

    /// Polls without a charge to the task's budget. Fails where a poll of the future panics.
    pub(crate) fn try_poll(self: Pin<&mut Self>, waker: &Waker) -> Result<Poll<()>, Unarmed> {
        self.try_poll_timer(waker, |deadline| Instant::now() >= deadline)
    }

    #[inline]
    fn try_poll_timer(
        self: Pin<&mut Self>,
        waker: &Waker,
        has_passed: impl FnOnce(Instant) -> bool,
    ) -> Result<Poll<()>, Unarmed> {
        let mut this = self.project();
        match this.timer.as_mut().poll(waker) {
            TimerState::Fired => Ok(Poll::Ready(())),
            TimerState::Armed => Ok(Poll::Pending),
            TimerState::Idle if has_passed(*this.deadline) => {
                this.timer.set_fired();
                Ok(Poll::Ready(()))
            }
            TimerState::Idle => {
                arm(this.timer, *this.deadline, waker.clone())?;
                Ok(Poll::Pending)
            }
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let progress = ready!(coop_budget::poll_proceed(cx));
        let polled = self
            .as_mut()
            .poll_timer(cx.waker(), |deadline| Instant::now() >= deadline);
        if polled.is_pending() {
            let sleep = self.into_ref().get_ref();
            progress.waits_for(move || sleep.waits_on());
            return Poll::Pending;
        }
        progress.made_progress();
        Poll::Ready(())
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep")
            .field("deadline", &self.deadline)
            .field("is_elapsed", &self.is_elapsed())
            .finish()
    }
}

/// The reason for which a timer was not armed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unarmed {
    /// There is no current driver.
    NoDriver,
    /// The current driver has shut down.
    ShutDown,
}

impl Unarmed {
    #[cold]
    fn panic(self) -> ! {
        match self {
            Self::NoDriver => panic!(
                "a sleep was polled outside of a runtime with a driver of net-driver, so nothing \
                 would wake it (a runtime of another crate, such as tokio, has none): poll it in a \
                 task of selvedge, inside the runtime's block_on, or after Handle::enter"
            ),
            Self::ShutDown => panic!(
                "a sleep was polled in a runtime that has shut down, so nothing would wake it: \
                 end the futures that sleep before their runtime, or poll them in another one"
            ),
        }
    }
}

/// Arms a timer in the current driver.
///
/// # Errors
/// If there is no current driver, or the current driver has shut down. The waker is dropped before
/// this returns, as the caller may panic because of the error. If the waker were dropped during
/// that panic, and its drop (user code) panicked, the process would abort.
fn arm(timer: Pin<&mut Timer>, deadline: Instant, waker: Waker) -> Result<(), Unarmed> {
    let tick = clock::tick_of(deadline);
    let armed = driver::with_current(|driver: &Inner, wheel| {
        let wheel = driver.timers.wheel(wheel);
        let is_next = timer.arm(wheel, tick, waker)?;
        let threads = &driver.threads;
        let duty = is_next.then(|| threads.duty_after_arming(tick)).flatten();
        Ok(duty.map(|duty| (threads.clone(), duty)))
    });
    match armed {
        Some(Ok(None)) => Ok(()),
        Some(Ok(Some((threads, duty)))) => {
            threads.do_duty(duty);
            Ok(())
        }
        Some(Err(Closed(waker))) => {
            drop(waker);
            Err(Unarmed::ShutDown)
        }
        None => Err(Unarmed::NoDriver),
    }
}
