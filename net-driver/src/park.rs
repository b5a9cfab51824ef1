//! How a worker parks: on its thread's futex, or in the reactor. The worker with the poller role
//! parks until the next deadline at most (see `role.rs`).
//!
//! A park only collects wakers. `deliver` calls them, when the worker counts as awake.
//!
//! Before a worker waits in the reactor, it looks there for a while, where trials say that such
//! looks cost the process no processor time ([`Backoff`]). During these looks the worker
//! has the role and its token is `EMPTY`, so an unpark costs no system call. The looks take their
//! time off the limit of the wait, so that they make no sleep late. While the events of a wait wake
//! many tasks, the worker waits without a look: looks would find the events in smaller batches, and
//! each look is a system call.
use crate::{
    driver::{Driver, Inner},
    poller::wake_all,
    threads::LeaveRole,
    time::slack,
    token::{Token, Waited},
};
use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    mem,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};
use sync_shim::panics::contain;
use worker_idle::{Backoff, Wait, park::Park};

/// The largest number of timers that a park collects at once. The next look collects further timers
/// that are due. Together with the events of sockets they fit into a ring of 256 tasks: tasks for
/// which a ring has no room would wait behind all other tasks.
const MAX_TIMERS: usize = 128;

/// The [`Park`] of one worker, made by [`Driver::park`].
///
/// The worker parks in this parker until another thread unparks the worker. One parked worker of
/// the runtime also waits for the sockets and for the first timer. Until the runtime has a timer or
/// a socket, this parker behaves as a [`ThreadPark`](worker_idle::park::ThreadPark).
///
/// A wake by its waker costs one read-modify-write. If the worker waits on its thread, the wake
/// also costs std's unpark; if the worker waits in the reactor, a system call.
///
/// A worker that has parked either parks again, looks at the driver between its tasks
/// ([`Driver::is_due`]), or drops its park. Otherwise it can happen that no worker waits for the
/// sockets and the timers. The end of a [`block_on`](Self::block_on) counts as a drop: another
/// parked worker then waits for them.
///
/// The drop of a park wakes the tasks whose events and timers the park has collected. The drop of a
/// driver's last park [shuts the driver down](Driver::shutdown). A drop catches the panics of
/// wakers.
///
/// ```
/// use net_driver::Driver;
/// use worker_idle::park::Park;
///
/// let driver = Driver::new(1);
/// let mut park = driver.park(0);
/// park.waker().wake();
/// park.park(); // Takes the token.
/// assert!(!park.has_events());
/// ```
pub struct WorkerPark {
    driver: Driver,
    token: Arc<Token>,
    worker: usize,
    /// Whether the threads that park are the runtime's own.
    own_threads: bool,
    /// How long to look in the reactor before a wait there. `None` for a guest: the workers' rule.
    rule: Option<Wait>,
    /// The number of wakers that this worker has collected between its parks.
    polled: usize,
    /// Whether the worker has parked under the rules of the role since it retired last, and so may
    /// be responsible for the role (rule 4 of `role.rs`).
    may_owe_role: bool,
    /// Whether the last wait as the poller collected as much as it may.
    was_full: bool,
    collected: VecDeque<Waker>,
}

impl Driver {
    /// Returns the parker of the worker with this index. A worker has one parker at a time.
    ///
    /// # Panics
    /// If there is no such worker, or if an earlier parker of the worker was not dropped yet or was
    /// forgotten. Also if the workers park in parkers of their own
    /// ([`with_wakers`](Self::with_wakers)).
    #[track_caller]
    pub fn park(&self, worker: usize) -> WorkerPark {
        self.threads().assert_worker(worker);
        assert!(
            !self.threads().parks_elsewhere(),
            "the workers of this driver park in parkers of their own: use `Driver::timers`"
        );
        WorkerPark::new(self.clone(), worker)
    }
}

impl WorkerPark {
    #[track_caller]
    pub(crate) fn new(driver: Driver, worker: usize) -> Self {
        let token = driver.threads().tokens[worker].clone();
        driver.inner().add_park(worker);
        Self::with(driver, token, worker)
    }

    /// Makes the park of a worker, or of a guest, with this index.
    pub(crate) fn with(driver: Driver, token: Arc<Token>, worker: usize) -> Self {
        Self {
            driver,
            token,
            worker,
            own_threads: false,
            rule: None,
            polled: 0,
            may_owe_role: false,
            was_full: false,
            collected: VecDeque::new(),
        }
    }

    pub(crate) fn driver(&self) -> &Driver {
        &self.driver
    }

    pub(crate) fn index(&self) -> usize {
        self.worker
    }

    /// Returns whether the last wait as the poller has left events behind, as it seems.
    pub(crate) fn had_full_batch(&self) -> bool {
        self.was_full
    }

    /// Declares that the threads that park with this are the runtime's own, so that the driver may
    /// change their attributes. On Linux the driver then sets the timer slack of a thread to 1 µs
    /// when the thread first waits for a timer. Without this, a sleep on an idle worker ends some
    /// 50 µs later.
    ///
    /// ```
    /// let driver = net_driver::Driver::new(1);
    /// std::thread::spawn(move || {
    ///     let mut park = driver.park(0).on_own_threads();
    ///     park.block_on(net_driver::time::sleep(std::time::Duration::from_millis(1)));
    /// });
    /// ```
    #[must_use]
    pub fn on_own_threads(mut self) -> Self {
        self.own_threads = true;
        self
    }

    /// Sets how long this worker looks for events before it waits in the reactor.
    ///
    /// ```
    /// use worker_idle::Wait;
    ///
    /// let mut park = net_driver::Driver::new(1).park(0).with_wait(Wait::Power);
    /// park.block_on(net_driver::time::sleep(std::time::Duration::from_millis(1)));
    /// ```
    #[must_use]
    pub fn with_wait(mut self, wait: Wait) -> Self {
        self.rule = Some(wait);
        self
    }

    /// Blocks this thread until a future is ready, as the worker whose park this is. Returns the
    /// future's output. Allocates nothing.
    ///
    /// The driver is current while the future is polled, and while wakers are called. This is for
    /// an executor of one task, or of one thread.
    ///
    /// ```
    /// use net_driver::{Driver, time};
    /// use std::time::Duration;
    ///
    /// let mut park = Driver::new(1).park(0);
    /// park.block_on(async {
    ///     let limit = Duration::from_millis(5);
    ///     assert!(time::timeout(limit, std::future::pending::<()>()).await.is_err());
    /// });
    /// ```
    ///
    /// # Panics
    /// If the future or a waker panics.
    pub fn block_on<F: Future>(&mut self, future: F) -> F::Output {
        let (driver, worker) = (self.driver.clone(), self.worker);
        let mut future = pin!(future);
        let waker = self.waker();
        let mut cx = Context::from_waker(&waker);
        let park = Retire(self);
        let run = || {
            loop {
                if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                    return output;
                }
                // An earlier call leaves wakers behind if one of them panics.
                if !park.0.has_events() {
                    park.0.park();
                }
                if driver.lacks_standby() {
                    driver.recruit_standby();
                }
                park.0.deliver();
            }
        };
        // SAFETY: `driver` is a counted clone. It stays in this function, also if `run` ends the
        // process.
        unsafe { Driver::borrowed_scope(Some(&driver), Some(worker), run) }
    }

    /// Collects all timers that are due and all events of sockets that have come, without a wait.
    ///
    /// [`poll`](Park::poll) collects no events of sockets if somebody has just looked for them
    /// ([`Driver::is_due`] says when). This function looks nevertheless. It costs one system call
    /// for each 64 events ([`Driver::set_max_events`]), and one more. With
    /// [`Polling::Thread`](crate::Polling::Thread) it collects timers alone.
    ///
    /// ```
    /// use net_driver::{Driver, time};
    /// use std::{task::{Context, Waker}, time::Duration};
    /// use worker_idle::park::Park;
    ///
    /// let mut park = Driver::new(1).park(0);
    /// let sleep = park.block_on(async {
    ///     let mut sleep = Box::pin(time::sleep(Duration::from_millis(1)));
    ///     let _ = sleep.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    ///     sleep
    /// });
    /// while !sleep.is_elapsed() {
    ///     park.poll_all(); // Here a real loop does other work, too.
    ///     park.deliver();
    /// }
    /// ```
    pub fn poll_all(&mut self) {
        let driver = self.driver.inner();
        if driver.threads.role.is_active() {
            driver.poll_all(&mut self.collected);
            self.collect(usize::MAX);
        }
    }

    fn wait(&mut self, limit: Option<Duration>) {
        if self.is_guest() {
            return self.wait_as_guest();
        }
        self.may_owe_role |= self.driver.threads().role.is_active();
        if self.may_owe_role {
            let role = &self.driver.threads().role;
            while !role.try_take(self.worker) {
                match self.wait_beside_poller(limit) {
                    Waited::Refused => {}
                    Waited::Unparked | Waited::TimedOut => return,
                }
            }
            self.wait_as_poller(limit);
        } else {
            self.wait_in_thread_if(limit, || true);
            // The role may have become active meanwhile, and another worker may have handed it over
            // to this one: then it has unparked this one.
            self.may_owe_role = self.driver.threads().role.is_active();
        }
    }

    pub(crate) fn wait_in_thread_if(
        &self,
        limit: Option<Duration>,
        may_wait: impl FnOnce() -> bool,
    ) -> Waited {
        #[cfg(feature = "test-util")]
        self.driver.threads().clock.will_wait();
        self.token.wait_in_thread_if(limit, || {
            let waits = may_wait();
            #[cfg(feature = "test-util")]
            if waits {
                self.driver.threads().began_to_wait();
            }
            waits
        })
    }

    /// Waits for the sockets and the first timer. The thread has taken the role, and leaves it.
    pub(crate) fn wait_as_poller(&mut self, limit: Option<Duration>) {
        let driver = self.driver.inner();
        let role = LeaveRole(&driver.threads);
        let poller = &driver.poller;
        // If nobody has polled for long, this worker may also be away for long after this park.
        let hands_over = poller.is_overdue();
        let next = driver.until_next_deadline();
        #[cfg(feature = "test-util")]
        let next = if driver.threads.clock.is_paused() {
            let out = &mut self.collected;
            if !driver.threads.parks_elsewhere() {
                driver.poller.wait(Some(Duration::ZERO), out);
            }
            let jumped = out.is_empty() && driver.jump_if_idle(self.worker);
            (jumped || !out.is_empty()).then_some(Duration::ZERO)
        } else {
            next
        };
        if self.own_threads && next.is_some() {
            slack::shorten();
        }
        let limit = [limit, next].into_iter().flatten().min();
        // A guest may be the poller of workers that park elsewhere. A thread polls the sockets
        // then.
        if poller.workers_reactor().is_some() && !driver.threads.parks_elsewhere() {
            let out = &mut self.collected;
            let before = out.len();
            let mut looks = poller.looks();
            if let Some(rule) = self.rule {
                looks.backoff = looks.backoff.with(rule);
            }
            let many = looks.batch.is_large();
            let look = look(driver, &self.token, limit, many, &mut looks.backoff, out);
            if let Look::InVain(left) = look {
                let waited = self.token.wait_in_reactor(|| poller.wait(left, out));
                if !waited {
                    // Without this, a worker that is unparked before each park would never look.
                    driver.poll_if_due(usize::MAX, out);
                }
            }
            looks.record(out.len() - before, mem::take(&mut self.polled));
        } else if limit != Some(Duration::ZERO) {
            self.token.wait_in_thread(limit);
            poller.note_end();
        } else {
            // A park without a wait takes the token too: a token that stays keeps a paused clock
            // from jumping.
            self.token.take();
        }
        drop(role);
        self.collect(MAX_TIMERS);
        self.was_full = self.collected.len() >= self.driver.inner().poller.max_events();
        if hands_over && !self.collected.is_empty() {
            self.driver.threads().hand_over();
        }
    }

    /// Collects up to `max` timers that are due: those of this worker's wheel, and then those of
    /// the other wheels.
    fn collect(&mut self, max: usize) {
        let driver = self.driver.inner();
        // The guests have one wheel, behind those of the workers.
        let wheel = self.worker.min(driver.threads.tokens.len());
        driver
            .timers
            .collect_due(wheel, max, || driver.threads.now(), &mut self.collected);
    }
}

/// The outcome of the looks before a wait in the reactor.
#[derive(Debug, PartialEq, Eq)]
enum Look {
    /// Events came.
    Found,
    /// No events came, or there was no look. Holds the rest of the limit of the park.
    InVain(Option<Duration>),
}

/// Looks in the reactor for a while, if such looks pay. `many` says that events come in large
/// batches: then there is no look.
fn look(
    driver: &Inner,
    token: &Token,
    limit: Option<Duration>,
    many: bool,
    backoff: &mut Backoff,
    out: &mut VecDeque<Waker>,
) -> Look {
    // Correctness does not depend on these looks, so the models leave them out. Under a paused
    // clock they are left out too, because the clock does not know whether a worker looks.
    let may = cfg!(not(any(selvedge_loom, selvedge_shuttle))) && limit != Some(Duration::ZERO);
    if !may || driver.threads.is_clock_paused() || !backoff.is_due() || many {
        return Look::InVain(limit);
    }
    let limited = limit.map(|limit| (limit, sync_shim::time::now()));
    let found = backoff.wait_for(limit.unwrap_or(Duration::MAX), || {
        driver.poller.look(out);
        !out.is_empty() || token.is_notified()
    });
    if !out.is_empty() {
        driver.poller.note_end();
    }
    if found && !out.is_empty() {
        return Look::Found;
    }
    Look::InVain(limited.map(|(limit, begun)| limit.saturating_sub(sync_shim::time::since(begun))))
}

/// Ends a `block_on`: the worker retires when this value is dropped.
struct Retire<'a>(&'a mut WorkerPark);

impl Drop for Retire<'_> {
    fn drop(&mut self) {
        if mem::take(&mut self.0.may_owe_role) {
            self.0.driver.threads().retire(self.0.worker);
        }
    }
}

impl Park for WorkerPark {
    fn park(&mut self) {
        self.wait(None);
    }

    fn park_timeout(&mut self, limit: Duration) {
        self.wait(Some(limit));
    }

    fn poll(&mut self, max: usize) {
        let driver = self.driver.inner();
        if driver.threads.role.is_active() {
            let before = self.collected.len();
            if !driver.threads.role.is_held() {
                driver.poll_if_due(max, &mut self.collected);
            }
            self.polled += self.collected.len() - before;
            self.collect(max);
        }
    }

    fn has_events(&self) -> bool {
        !self.collected.is_empty()
    }

    fn deliver(&mut self) {
        // Each waker is taken out before it is called: if it panics, the other wakers stay for the
        // next `deliver`.
        while let Some(waker) = self.collected.pop_front() {
            waker.wake();
        }
    }

    fn waker(&self) -> Waker {
        Waker::from(self.token.clone())
    }
}

impl Drop for WorkerPark {
    fn drop(&mut self) {
        let driver = self.driver.inner();
        if self.is_guest() {
            // Its events were delivered, unless a panic of its future unwinds.
            contain(|| wake_all(&mut self.collected));
            return driver.threads.remove_guest(self.worker);
        }
        driver.remove_park(self.worker, self.may_owe_role, &mut self.collected);
    }
}

impl fmt::Debug for WorkerPark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerPark")
            .field("worker", &self.worker)
            .finish_non_exhaustive()
    }
}

/// In the models, a kernel made for models stands for the system's.
#[cfg(all(test, selvedge_loom))]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
