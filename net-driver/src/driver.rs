//! A runtime's driver, and how the code of a task finds it.
//!
//! A runtime makes one [`Driver`] and gives each worker a [`WorkerPark`] of that driver. While a
//! thread runs tasks, the runtime sets that thread's *current driver*, and the index of its worker.
//! A sleep uses the current driver of the thread that polls it first. A socket uses the current
//! driver of the thread that makes it.
//!
//! A *frame* records the driver of one scope or guard. A thread-local points to the innermost
//! frame, and each frame points to the next outer frame. The rules of this list are:
//!
//! 1. The current driver is the driver of the innermost frame.
//! 2. The frame of a [`scope`](Driver::scope) is on the stack of that function. The function takes
//!    the frame out of the list before it returns or unwinds. The function also holds a clone of
//!    the driver: the caller's driver may be in a thread-local, and `process::exit` runs the
//!    destructors of thread-locals while frames are in the list. The caller of a
//!    [`borrowed_scope`](Driver::borrowed_scope) keeps the driver alive itself.
//! 3. The frame of an [`Entered`] is in a box, together with a clone of the driver. The drop of the
//!    guard takes the frame out of the list from any position, because guards may be dropped in any
//!    order. The frame of a leaked guard stays in the list, and its box is never freed.
//! 4. Each thread has a list of its own, which no other thread uses. The thread-local that points
//!    to the list has no destructor, because the destructors of other thread-locals may use the
//!    list.
#[cfg(feature = "test-util")]
use crate::time::Clock;
use crate::{
    guest::Guests,
    over::WorkerTimers,
    park::{Token, WorkerPark},
    poller::{self, Poller, Polling},
    role::Role,
    time::{Instant, Timers, clock},
};
use std::{
    cell::Cell,
    collections::VecDeque,
    fmt,
    panic::{RefUnwindSafe, UnwindSafe},
    ptr::{self, NonNull},
    sync::{Arc, OnceLock, Weak},
    task::Waker,
    time::Duration,
};
use sync_shim::{
    atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    panics::contain,
};

/// The timers and sockets of one runtime, driven by its idle workers.
///
/// A clone is a handle of the same driver. The drop of the last handle [shuts the driver
/// down](Driver::shutdown), and catches the panics of wakers.
///
/// ```
/// use net_driver::{Driver, time};
/// use std::time::Duration;
///
/// let driver = Driver::new(1);
/// let begun = time::Instant::now();
/// // A worker whose only task is this one:
/// driver.park(0).block_on(time::sleep(Duration::from_millis(5)));
/// assert!(begun.elapsed() >= Duration::from_millis(5));
/// ```
#[derive(Clone)]
pub struct Driver(Arc<Inner>);

/// A reference that does not keep its driver alive.
#[derive(Debug)]
pub(crate) struct WeakDriver(Weak<Inner>);

impl WeakDriver {
    /// Returns the driver, unless its last handle was dropped.
    pub(crate) fn upgrade(&self) -> Option<Driver> {
        self.0.upgrade().map(Driver)
    }
}

/// The state that the clones of a driver, its parks and its frames share.
pub(crate) struct Inner {
    pub(crate) role: Role,
    /// The tokens of the workers.
    pub(crate) tokens: Box<[Arc<Token>]>,
    /// The wakers of workers that park in parkers of their own. Empty if the workers park in a
    /// [`WorkerPark`].
    wakers: Box<[Waker]>,
    /// The number of [`WorkerPark`]s and [`WorkerTimers`] of workers that were made and not dropped
    /// yet.
    parks: AtomicUsize,
    /// For each worker, whether one of them is the worker's.
    has_park: Box<[AtomicBool]>,
    pub(crate) guests: Guests,
    pub(crate) timers: Timers,
    pub(crate) poller: Arc<Poller>,
    /// The function that the executor has set by [`Driver::on_first_use`].
    first_use: OnceLock<FirstUse>,
    #[cfg(feature = "test-util")]
    pub(crate) clock: Clock,
}

// The state is whole after a panic of a function that an executor or a program has set: it is
// called outside of every lock.
impl UnwindSafe for Inner {}
impl RefUnwindSafe for Inner {}

/// A function that the first timer or socket calls.
type FirstUse = Box<dyn Fn() + Send + Sync>;

/// The work that is left after a timer was armed.
pub(crate) enum Armed {
    /// It is the first timer of a driver without sockets.
    First,
    /// The poller, which has this index, parks beyond the timer's deadline.
    Unpark(usize),
}

struct Frame {
    driver: *const Inner,
    /// The index of the wheel for this thread's timers: the index of the worker, or the number of
    /// workers if the thread is not a worker.
    wheel: usize,
    outer: Cell<*const Frame>,
}

sync_shim::thread_local! {
    static INNERMOST: Cell<*const Frame> = const { Cell::new(ptr::null()) };
}

impl Driver {
    /// Creates the driver of a runtime with this many workers.
    ///
    /// # Panics
    /// If `workers` is 0.
    pub fn new(workers: usize) -> Self {
        Self::with(workers, [].into(), Polling::default())
    }

    /// Creates the driver of a runtime whose workers park in parkers of their own. There is one
    /// waker for each worker, in the order of the workers' indices. It must end the park of that
    /// worker.
    ///
    /// Each worker drives its timers over its own parker, by the handle that
    /// [`timers`](Self::timers) returns.
    ///
    /// ```
    /// use net_driver::Driver;
    /// use worker_idle::park::{self, Park, ThreadPark};
    ///
    /// let park = ThreadPark::new();
    /// let driver = Driver::with_wakers([park.waker()]);
    /// driver.scope(Some(0), || assert!(Driver::current().is_some()));
    /// ```
    ///
    /// # Panics
    /// If there is no waker.
    #[track_caller]
    pub fn with_wakers(wakers: impl IntoIterator<Item = Waker>) -> Self {
        let wakers: Box<[_]> = wakers.into_iter().collect();
        Self::with(wakers.len(), wakers, Polling::default())
    }

    #[track_caller]
    pub(crate) fn with(workers: usize, wakers: Box<[Waker]>, polling: Polling) -> Self {
        assert!(workers > 0, "a driver has at least one worker");
        let poller = Arc::new(Poller::new(polling, workers));
        let tokens: Box<[_]> = (0..workers)
            .map(|_| Arc::new(Token::new(poller.clone())))
            .collect();
        #[cfg(feature = "test-util")]
        let wakers = mark_tokens(wakers, &tokens);
        Self(Arc::new_cyclic(|driver| Inner {
            role: Role::new(),
            tokens,
            wakers,
            parks: AtomicUsize::new(0),
            has_park: (0..workers).map(|_| AtomicBool::new(false)).collect(),
            guests: Guests::new(),
            first_use: OnceLock::new(),
            timers: Timers::new(workers, driver),
            poller,
            #[cfg(feature = "test-util")]
            clock: Clock::new(workers),
        }))
    }

    /// Returns the parker of the worker with this index. A worker has one parker at a time.
    ///
    /// # Panics
    /// If there is no such worker, or if an earlier parker of the worker was not dropped yet or was
    /// forgotten. Also if the workers park in parkers of their own
    /// ([`with_wakers`](Self::with_wakers)).
    #[track_caller]
    pub fn park(&self, worker: usize) -> WorkerPark {
        self.0.assert_worker(worker);
        assert!(
            !self.0.parks_elsewhere(),
            "the workers of this driver park in parkers of their own: use `Driver::timers`"
        );
        WorkerPark::new(self.clone(), worker)
    }

    /// Returns a handle that drives the timers of the worker with this index over the worker's own
    /// parker: see [`with_wakers`](Self::with_wakers). A worker has one handle at a time. The drop
    /// of a handle may call the wakers of the other workers: hold no lock then that a waker takes.
    ///
    /// # Panics
    /// If there is no such worker, or if an earlier handle of the worker was not dropped yet or was
    /// forgotten. Also if the driver was not made by [`with_wakers`](Self::with_wakers): it could
    /// not end the parks of a parker that it does not know.
    #[track_caller]
    pub fn timers(&self, worker: usize) -> WorkerTimers {
        self.0.assert_worker(worker);
        assert!(
            self.0.parks_elsewhere(),
            "the workers of this driver park in its own parkers: use `Driver::park`, or make the \
             driver by `Driver::with_wakers`"
        );
        WorkerTimers::new(self.clone(), worker)
    }

    /// Returns a waker that ends the present or the next park of the worker with this index.
    ///
    /// For a driver made by [`with_wakers`](Self::with_wakers) this is the waker that the caller
    /// gave. With the feature `test-util` the waker also marks the worker as busy, so that a paused
    /// clock does not jump. The clock does not know of an unpark by other means: then it may jump
    /// before the unparked worker has looked for tasks.
    ///
    /// ```
    /// use net_driver::Driver;
    /// use worker_idle::park::{self, Park, ThreadPark};
    ///
    /// let mut park = ThreadPark::new();
    /// let driver = Driver::with_wakers([park.waker()]);
    /// driver.waker(0).wake();
    /// driver.timers(0).over(&mut park).park(); // Returns at once.
    /// ```
    ///
    /// # Panics
    /// If there is no such worker.
    #[track_caller]
    pub fn waker(&self, worker: usize) -> Waker {
        self.0.assert_worker(worker);
        match self.0.wakers.get(worker) {
            None => Waker::from(self.0.tokens[worker].clone()),
            Some(waker) => waker.clone(),
        }
    }

    /// Sets a function that the first timer of the driver calls, or the first socket that workers
    /// poll. Only the first call of this method counts.
    ///
    /// A runtime may start the thread that calls [`poll_overdue`](Self::poll_overdue) there: until
    /// then there is nothing to poll. The function runs on the thread that arms the timer or makes
    /// the socket, where this driver is current. It must not block.
    ///
    /// ```
    /// use net_driver::{Driver, time};
    /// use std::{sync::mpsc, time::Duration};
    ///
    /// let (driver, (sender, used)) = (Driver::new(1), mpsc::channel());
    /// driver.on_first_use(move || sender.send(()).unwrap());
    /// assert!(used.try_recv().is_err());
    /// driver.park(0).block_on(time::sleep(Duration::from_millis(1)));
    /// assert!(used.try_recv().is_ok());
    /// ```
    pub fn on_first_use(&self, f: impl Fn() + Send + Sync + 'static) {
        let _ = self.0.first_use.set(Box::new(f));
    }

    /// Returns whether a busy worker should call [`poll`](crate::Park::poll) of its parker soon.
    /// This is so if no parked worker waits for timers and sockets, and if either a timer is due or
    /// no thread has polled the sockets for 500 µs (or for 100 µs, if the driver has one worker).
    /// With [`Polling::EveryQuota`] the sockets may be due although a parked worker waits for them.
    ///
    /// Before the first timer or socket this costs one load, and no reading of the clock.
    ///
    /// ```
    /// assert!(!net_driver::Driver::new(1).is_due());
    /// ```
    #[inline]
    pub fn is_due(&self) -> bool {
        self.0.role.is_active() && self.0.is_due_for(Duration::ZERO)
    }

    /// Makes this the thread's current driver while `f` runs, so that `f` may poll sleeps and make
    /// sockets. `worker` is the index of the worker that runs on this thread, or `None` if none
    /// does.
    ///
    /// Costs two read-modify-writes, which count the driver, and two stores to a thread-local.
    ///
    /// # Panics
    /// If there is no such worker, or `f` panics.
    #[inline]
    #[track_caller]
    pub fn scope<R>(&self, worker: Option<usize>, f: impl FnOnce() -> R) -> R {
        let counted = self.clone();
        // SAFETY: `counted` stays in this function until the scope has ended. If `f` calls
        // `process::exit`, `counted` is never dropped.
        unsafe { Self::borrowed_scope(Some(&counted), worker, f) }
    }

    /// Runs `f` in the [scope](Self::scope) of a driver without counting that driver. If `driver`
    /// is `None`, the current driver stays as it is. This is for an executor that keeps the driver
    /// alive itself, and some of whose runtimes may have no driver.
    ///
    /// ```
    /// use net_driver::Driver;
    ///
    /// let driver = Driver::new(1);
    /// // SAFETY: the driver is a local variable, which `Driver::current` does not drop.
    /// let current = unsafe { Driver::borrowed_scope(Some(&driver), None, Driver::current) };
    /// assert!(current.is_some());
    /// ```
    ///
    /// # Safety
    /// A clone of the driver exists until this function returns. If the function never returns,
    /// because `f` calls [`process::exit`](std::process::exit), a clone exists until the process
    /// has ended. (That call runs the destructors of thread-locals. One destructor may drop the
    /// caller's driver, and a later destructor may still find that driver by
    /// [`current`](Self::current).)
    ///
    /// # Panics
    /// As [`scope`](Self::scope).
    #[inline]
    #[track_caller]
    pub unsafe fn borrowed_scope<R>(
        driver: Option<&Self>,
        worker: Option<usize>,
        f: impl FnOnce() -> R,
    ) -> R {
        struct Leave<'a>(&'a Option<Frame>);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                if let Some(frame) = self.0 {
                    frame.leave();
                }
            }
        }
        let frame = driver.map(|driver| driver.frame(worker));
        if let Some(frame) = &frame {
            // SAFETY: the frame stays in this function until `leave` takes it out of the list, and
            // the caller keeps the driver alive.
            unsafe { frame.enter() };
        }
        let _leave = Leave(&frame);
        f()
    }

    /// Makes this the thread's current driver until the guard is dropped. `worker` has the same
    /// meaning as in [`scope`](Self::scope). Costs an allocation.
    ///
    /// ```
    /// let driver = net_driver::Driver::new(1);
    /// let entered = driver.enter(None);
    /// assert!(net_driver::Driver::current().is_some());
    /// drop(entered);
    /// assert!(net_driver::Driver::current().is_none());
    /// ```
    ///
    /// # Panics
    /// If there is no such worker.
    #[track_caller]
    pub fn enter(&self, worker: Option<usize>) -> Entered {
        let boxed = Box::new((self.frame(worker), self.clone()));
        let entered = Entered(NonNull::from(Box::leak(boxed)));
        // SAFETY: the frame stays in its box until the guard's drop takes it out of the list. The
        // drop is on this thread, because an `Entered` is not `Send`. The box also keeps the driver
        // alive.
        unsafe { entered.frame().enter() };
        entered
    }

    /// Returns the thread's current driver. Costs one read-modify-write.
    ///
    /// ```
    /// let driver = net_driver::Driver::new(1);
    /// assert!(driver.scope(None, || net_driver::Driver::current().is_some()));
    /// ```
    pub fn current() -> Option<Self> {
        with_frame(|frame| {
            // SAFETY: an `Arc` made the pointer, which is valid while its frame is in the list.
            unsafe { Arc::increment_strong_count(frame.driver) };
            // SAFETY: the count was just added.
            Self(unsafe { Arc::from_raw(frame.driver) })
        })
    }

    /// Ends the sockets and the timers: wakes the tasks that wait for them, and refuses new sockets
    /// and timers.
    ///
    /// A runtime calls this when the runtime shuts down. The drop of the last park does the same,
    /// and so does the drop of the last handle. The next operation on a socket fails. The next poll
    /// of a sleep that waits in this driver panics, and so does the first poll of a new sleep. Such
    /// a poll does not panic if the sleep's deadline has passed, or if another driver is current.
    ///
    /// ```
    /// use std::{future::Future, pin::pin, task::{Context, Waker}, time::Duration};
    ///
    /// let driver = net_driver::Driver::new(1);
    /// driver.shutdown();
    /// let mut sleep = pin!(net_driver::time::sleep(Duration::from_secs(9)));
    /// let mut poll = || sleep.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    /// let poll = || driver.scope(None, || poll());
    /// assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(poll)).is_err());
    /// ```
    ///
    /// # Panics
    /// If a waker panics, after all wakers were called.
    pub fn shutdown(&self) {
        let mut wakers = VecDeque::new();
        self.0.shut_down(&mut wakers);
        poller::wake_all(&mut wakers);
    }

    pub(crate) fn downgrade(&self) -> WeakDriver {
        WeakDriver(Arc::downgrade(&self.0))
    }

    #[inline]
    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }

    #[inline]
    #[track_caller]
    fn frame(&self, worker: Option<usize>) -> Frame {
        if let Some(worker) = worker {
            self.0.assert_worker(worker);
        }
        #[cfg(feature = "test-util")]
        if let Some(worker) = worker {
            self.0.clock.set_started(worker);
        }
        Frame {
            driver: Arc::as_ptr(&self.0),
            wheel: worker.unwrap_or(self.0.tokens.len()),
            outer: Cell::new(ptr::null()),
        }
    }
}

impl Inner {
    /// # Panics
    /// If there is no such worker.
    #[inline]
    #[track_caller]
    fn assert_worker(&self, worker: usize) {
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
                Instant::from_std(std::time::Instant::now())
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

    /// Returns the work that is left after the caller has armed a timer for `tick`, the first
    /// deadline of the timer's wheel. The caller [finishes](Self::finish) it when it no longer
    /// borrows the frame, because an unpark may run user code.
    #[inline]
    #[must_use = "threads must be unparked"]
    pub(crate) fn armed(&self, tick: u64) -> Option<Armed> {
        if self.role.activate() {
            return Some(Armed::First);
        }
        self.role.must_unpark(tick).map(Armed::Unpark)
    }

    /// Unparks the threads that must know of a timer.
    #[cold]
    pub(crate) fn finish(&self, armed: Armed) {
        match armed {
            Armed::First => self.first_used(),
            Armed::Unpark(poller) => self.unpark(poller),
        }
    }

    /// Unparks all threads after the first timer, or the first socket that workers poll: from now
    /// on they park under the rules of the role. Calls the function of
    /// [`on_first_use`](Driver::on_first_use).
    pub(crate) fn first_used(&self) {
        self.unpark_all();
        if let Some(first_use) = self.first_use.get() {
            first_use();
        }
    }

    /// Adds the park of a worker to the count of parks.
    ///
    /// # Panics
    /// If the worker has a park already.
    #[track_caller]
    pub(crate) fn add_park(&self, worker: usize) {
        // Ordering: Relaxed. It only finds a mistake of the caller. The parks of a worker share the
        // worker's token and the role, which synchronise by themselves.
        let has_park = self.has_park[worker].swap(true, Relaxed);
        assert!(
            !has_park,
            "worker {worker} has a park already: drop that first"
        );
        // Ordering: Relaxed. It is only a count: the drop of the last park takes it to 0.
        self.parks.fetch_add(1, Relaxed);
    }

    /// Calls the wakers that a dropped park has collected, and takes one from the count of parks.
    /// Shuts the driver down after the last park. After another park the worker retires, if it
    /// `may_owe_role`. Catches the panics of wakers, because any thread may drop the park of a
    /// worker that was never started.
    pub(crate) fn remove_park(
        &self,
        worker: usize,
        may_owe_role: bool,
        collected: &mut VecDeque<Waker>,
    ) {
        contain(|| poller::wake_all(collected));
        // Ordering: Relaxed, as in `add_park`.
        self.has_park[worker].store(false, Relaxed);
        // Ordering: Relaxed: the count only says which park is the last. The shutdown synchronises
        // by the lock under which the reactor is opened, and by the locks of the wheels.
        if self.parks.fetch_sub(1, Relaxed) == 1 {
            self.end();
        } else if may_owe_role {
            self.retire(worker);
        }
    }

    /// Hands the role over, when the worker with this index stops parking (rule 4 of `role.rs`).
    pub(crate) fn retire(&self, worker: usize) {
        if !self.parks_elsewhere() {
            return self.hand_over();
        }
        // A fence would order this look before a look at tokens. Here all others are unparked,
        // whatever their tokens are. The look finds the role vacant if this thread left it last.
        if !self.role.is_held() {
            for other in (0..self.tokens.len()).filter(|other| *other != worker) {
                contain(|| self.unpark(other));
            }
        }
    }

    /// Shuts the driver down, and takes the wakers of the tasks that wait for it.
    fn shut_down(&self, wakers: &mut VecDeque<Waker>) {
        self.poller.shut_down(wakers);
        self.timers.shutdown(wakers);
    }

    /// Shuts the driver down, and wakes the tasks that wait for it. Catches the panics of wakers.
    #[cold]
    #[inline(never)]
    fn end(&self) {
        let mut wakers = VecDeque::new();
        self.shut_down(&mut wakers);
        contain(|| poller::wake_all(&mut wakers));
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

    /// Returns the time until [`is_due_for`](Self::is_due_for) will be true of `late`, unless a
    /// thread looks at timers and sockets before. `None` if a parked thread waits for them, or if
    /// there are none.
    pub(crate) fn until_due_for(&self, late: Duration) -> Option<Duration> {
        if self.role.is_held() || self.is_clock_paused() {
            return None;
        }
        let next = self.timers.next();
        let timer =
            (next != u64::MAX).then(|| clock::span_until(next, self.now()).saturating_add(late));
        let poll = (!self.parks_elsewhere()).then(|| self.poller.until_due_for(late));
        [timer, poll.flatten()].into_iter().flatten().min()
    }

    /// Returns whether timers or sockets have been due for the time `late`, once there has been a
    /// timer or a socket: a timer has been due for that long, or nobody has polled the sockets for
    /// that long. Zero asks whether they are due now.
    pub(crate) fn is_due_for(&self, late: Duration) -> bool {
        if self.role.is_held() {
            return self.poller.polls_every_quota() && self.poller.is_due_for(late);
        }
        let next = self.timers.next();
        let late_ticks = if self.is_clock_paused() {
            0 // The clock stands still, so no timer would ever be due for long.
        } else {
            clock::ticks(u64::try_from(late.as_nanos()).unwrap_or(u64::MAX))
        };
        let timer_is_due =
            next != u64::MAX && next.saturating_add(late_ticks) <= clock::tick_at(self.now());
        // A thread of the driver polls for workers that park elsewhere.
        timer_is_due || !self.parks_elsewhere() && self.poller.is_due_for(late)
    }

    /// Returns whether the workers park in parkers of their own, which do not wait for sockets.
    pub(crate) fn parks_elsewhere(&self) -> bool {
        !self.wakers.is_empty()
    }

    /// Publishes the next deadline (rule 2 of `role.rs`). Then returns how long the poller may
    /// park, or `None` if there is no timer.
    pub(crate) fn until_next_deadline(&self) -> Option<Duration> {
        let mut next = self.timers.next();
        loop {
            self.role.publish_until(next);
            let again = self.timers.next();
            if again >= next {
                break;
            }
            next = again;
        }
        (next != u64::MAX).then(|| clock::span_until(self.timers.park_until(next), self.now()))
    }
}

impl Drop for Inner {
    /// Shuts the driver down, because it may never have had a park. No other thread would fire its
    /// timers or end its polling thread. That thread, the sockets and the armed timers hold no
    /// handle of the driver, so they do not keep it from being dropped.
    fn drop(&mut self) {
        self.end();
    }
}

/// Makes each waker mark its worker's token before it wakes the worker, for the test clock.
#[cfg(feature = "test-util")]
fn mark_tokens(wakers: Box<[Waker]>, tokens: &[Arc<Token>]) -> Box<[Waker]> {
    struct Marks(Arc<Token>, Waker);
    impl std::task::Wake for Marks {
        fn wake(self: Arc<Self>) {
            self.wake_by_ref();
        }

        fn wake_by_ref(self: &Arc<Self>) {
            self.0.unpark();
            self.1.wake_by_ref();
        }
    }
    let pairs = wakers.into_iter().zip(tokens);
    let marking = pairs.map(|(waker, token)| Arc::new(Marks(token.clone(), waker)).into());
    marking.collect()
}

/// Runs `f` on the thread's current driver, with the index of the wheel for the thread's timers.
/// Returns `None` without a current driver.
#[inline]
pub(crate) fn with_current<R>(f: impl FnOnce(&Inner, usize) -> R) -> Option<R> {
    // SAFETY: the driver is valid while its frame is in the list, and the frame stays there while
    // `f` runs.
    with_frame(|frame| f(unsafe { &*frame.driver }, frame.wheel))
}

/// Runs `f` on the innermost frame. Returns `None` if the list is empty.
///
/// `f` must not leave a scope, and must drop no [`Entered`].
#[inline]
fn with_frame<R>(f: impl FnOnce(&Frame) -> R) -> Option<R> {
    let frame = INNERMOST.try_with(Cell::get).unwrap_or(ptr::null());
    // SAFETY: the pointer is null, or points to a frame of the list, which is valid
    // (`Frame::enter`).
    unsafe { frame.as_ref() }.map(f)
}

impl Frame {
    /// Puts the frame at the front of this thread's list.
    ///
    /// # Safety
    /// The frame is in no list. Until this thread [leaves](Self::leave) it, neither the frame nor
    /// its driver is moved or freed.
    #[inline]
    unsafe fn enter(&self) {
        INNERMOST.with(|innermost| self.outer.set(innermost.replace(self)));
    }

    /// Takes the frame out of the list, from any position.
    #[inline]
    fn leave(&self) {
        INNERMOST.with(|innermost| {
            let mut at = innermost;
            while !ptr::eq(at.get(), self) {
                // SAFETY: this frame was entered, so it is further down the list, and all frames of
                // the list are valid (`enter`).
                at = &unsafe { &*at.get() }.outer;
            }
            at.set(self.outer.get());
        });
    }
}

/// Makes a [`Driver`] the thread's current one until this guard is dropped: see [`Driver::enter`].
///
/// ```
/// let (one, other) = (net_driver::Driver::new(1), net_driver::Driver::new(1));
/// let entered: net_driver::Entered = one.enter(None);
/// let inner = other.enter(None);
/// drop(entered); // In any order.
/// drop(inner);
/// assert!(net_driver::Driver::current().is_none());
/// ```
#[must_use = "the driver is current until the guard is dropped"]
pub struct Entered(NonNull<(Frame, Driver)>);

impl Entered {
    fn frame(&self) -> &Frame {
        // SAFETY: only the drop of this guard frees the box.
        &unsafe { self.0.as_ref() }.0
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.frame().leave();
        // SAFETY: the frame was made from a box, and is in no list by now.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("workers", &self.0.tokens.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Entered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entered")
    }
}
