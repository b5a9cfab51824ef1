//! The threads that wait in a driver, and how they are unparked.
//!
//! This is the part of a driver that its timers know: a thread that arms a timer may have to unpark
//! the poller.
#[cfg(feature = "test-util")]
use crate::time::Clock;
use crate::{
    guests::Guests,
    poller::Poller,
    role::{LeaveDuty, Role},
    time::Instant,
    token::Token,
};
use std::{
    panic::{RefUnwindSafe, UnwindSafe},
    sync::{Arc, OnceLock},
    task::Waker,
};
use sync_shim::panics::contain;

/// The workers and the guests of a driver, and the role that one of them has.
pub(crate) struct Threads {
    pub(crate) role: Role,
    /// The tokens of the workers.
    pub(crate) tokens: Box<[Arc<Token>]>,
    /// The wakers of workers that park in parkers of their own. Empty if the workers park in a
    /// [`WorkerPark`](crate::WorkerPark).
    wakers: Box<[Waker]>,
    pub(crate) guests: Guests,
    /// The function that the executor has set by
    /// [`Driver::on_first_use`](crate::Driver::on_first_use).
    first_use: OnceLock<FirstUse>,
    #[cfg(feature = "test-util")]
    pub(crate) clock: Clock,
}

/// A function that the first timer or socket calls.
pub(crate) type FirstUse = Box<dyn Fn() + Send + Sync>;

// An executor or a program may set functions, which may panic. They are called outside of every
// lock, so a panic leaves the state whole.
impl UnwindSafe for Threads {}
impl RefUnwindSafe for Threads {}

/// The duty of a thread that has armed a timer.
pub(crate) enum ArmedDuty {
    /// To unpark all threads: it is the first timer of a driver without sockets.
    FirstUse,
    /// To unpark the poller, which has this index, as it parks beyond the timer's deadline.
    Unpark(usize),
}

impl Threads {
    pub(crate) fn new(workers: usize, wakers: Box<[Waker]>, poller: &Arc<Poller>) -> Self {
        let tokens: Box<[_]> = (0..workers)
            .map(|_| Arc::new(Token::new(poller.clone())))
            .collect();
        #[cfg(feature = "test-util")]
        let wakers = mark_tokens(wakers, &tokens);
        Self {
            role: Role::new(),
            tokens,
            wakers,
            guests: Guests::new(),
            first_use: OnceLock::new(),
            #[cfg(feature = "test-util")]
            clock: Clock::new(workers),
        }
    }

    /// Sets the function that the first timer or socket calls. Only the first call counts.
    pub(crate) fn set_first_use(&self, f: FirstUse) {
        let _ = self.first_use.set(f); // The error of a later call hands back its `f`.
    }

    /// # Panics
    /// If there is no such worker.
    #[inline]
    #[track_caller]
    pub(crate) fn assert_worker(&self, worker: usize) {
        let workers = self.tokens.len();
        assert!(
            worker < workers,
            "there is no worker {worker}: the driver has {workers}"
        );
    }

    /// Returns the time of the driver's clock.
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        cfg_if::cfg_if! {
            if #[cfg(feature = "test-util")] {
                self.clock.now()
            } else {
                Instant::from_std(sync_shim::time::now())
            }
        }
    }

    /// Returns whether a test has paused the clock.
    pub(crate) fn is_clock_paused(&self) -> bool {
        cfg_if::cfg_if! {
            if #[cfg(feature = "test-util")] {
                self.clock.is_paused()
            } else {
                false
            }
        }
    }

    /// Returns the duty of the caller, which has armed a timer for `tick`, the first deadline of
    /// the timer's wheel. The caller [does](Self::do_duty) it when it no longer borrows the frame,
    /// because an unpark may run user code.
    #[inline]
    #[must_use = "threads must be unparked"]
    pub(crate) fn duty_after_arming(&self, tick: u64) -> Option<ArmedDuty> {
        if self.role.activate() {
            return Some(ArmedDuty::FirstUse);
        }
        self.role.must_unpark(tick).map(ArmedDuty::Unpark)
    }

    /// Unparks the threads that must know of an armed timer.
    #[cold]
    pub(crate) fn do_duty(&self, duty: ArmedDuty) {
        match duty {
            ArmedDuty::FirstUse => self.first_used(),
            ArmedDuty::Unpark(poller) => self.unpark(poller),
        }
    }

    /// Unparks all threads after the first timer, or the first socket that workers poll: from now
    /// on they park under the rules of the role. Calls the function of
    /// [`set_first_use`](Self::set_first_use).
    pub(crate) fn first_used(&self) {
        self.unpark_all();
        if let Some(first_use) = self.first_use.get() {
            first_use();
        }
    }

    /// Returns whether the workers park in parkers of their own, which do not wait for sockets.
    pub(crate) fn parks_elsewhere(&self) -> bool {
        !self.wakers.is_empty()
    }

    /// Returns a waker that ends the present or the next park of a worker.
    pub(crate) fn waker(&self, worker: usize) -> Waker {
        match self.wakers.get(worker) {
            None => Waker::from(self.tokens[worker].clone()),
            Some(waker) => waker.clone(),
        }
    }

    /// Ends the present or the next park of the worker or guest with this index.
    #[cold]
    pub(crate) fn unpark(&self, index: usize) {
        match (self.wakers.get(index), self.tokens.get(index)) {
            (Some(waker), _) => waker.wake_by_ref(),
            (None, Some(token)) => token.unpark(),
            (None, None) => {
                let guest = self.guests.token(index - self.tokens.len());
                guest.into_iter().for_each(|token| token.unpark());
            }
        }
    }

    /// Ends the present or the next park of each worker and guest.
    pub(crate) fn unpark_all(&self) {
        (0..self.tokens.len()).for_each(|worker| self.unpark(worker));
        let guests = self.guests.tokens();
        guests.iter().for_each(|token| token.unpark());
    }

    /// Hands the role over, when the worker with this index stops parking (rule 4 of `role.rs`).
    pub(crate) fn retire(&self, worker: usize) {
        if !self.parks_elsewhere() {
            return self.hand_over();
        }
        // This check needs no fence, since no check of tokens follows: all other workers are
        // unparked, whatever their tokens are. If this thread was the last to leave the role, the
        // check finds the role vacant.
        if !self.role.is_held() {
            for other in (0..self.tokens.len()).filter(|other| *other != worker) {
                contain(|| self.unpark(other));
            }
        }
    }

    /// Unparks a worker that waits on its thread, so that it takes the role (rule 4 of
    /// `poller.rs`). Does nothing if a worker has the role. The caller has left the role.
    #[cold]
    pub(crate) fn hand_over(&self) {
        if self.role.is_still_held() {
            return;
        }
        let sleeper = self.tokens.iter().find(|token| token.is_in_thread());
        if let Some(sleeper) = sleeper {
            sleeper.unpark();
        }
    }
}

/// Leaves the role when this value is dropped, also if a parker panics.
pub(crate) struct LeaveRole<'a>(pub(crate) &'a Threads);

impl Drop for LeaveRole<'_> {
    fn drop(&mut self) {
        match self.0.role.leave() {
            LeaveDuty::Nothing => {}
            LeaveDuty::UnparkStandby(standby) => self.0.unpark(standby),
            LeaveDuty::RecruitStandby => {
                self.0.recruit_standby();
            }
        }
    }
}

/// Makes each waker mark its worker's token before it wakes the worker, for the test clock.
#[cfg(feature = "test-util")]
fn mark_tokens(wakers: Box<[Waker]>, tokens: &[Arc<Token>]) -> Box<[Waker]> {
    struct MarkingWaker {
        token: Arc<Token>,
        waker: Waker,
    }
    impl std::task::Wake for MarkingWaker {
        fn wake(self: Arc<Self>) {
            self.wake_by_ref();
        }

        fn wake_by_ref(self: &Arc<Self>) {
            self.token.unpark();
            self.waker.wake_by_ref();
        }
    }
    let pairs = wakers.into_iter().zip(tokens);
    let marking = pairs.map(|(waker, token)| {
        let token = token.clone();
        Arc::new(MarkingWaker { token, waker }).into()
    });
    marking.collect()
}
