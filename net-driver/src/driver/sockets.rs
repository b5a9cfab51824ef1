//! The sockets' half of a driver: which thread looks for their events, by the rules of
//! [`poller`](crate::poller).
use super::{Driver, Inner};
use crate::{
    poller::{Polling, wake_all},
    reactor::{Reactor, shut_down_error},
    sys::{MAX_EVENTS_PER_WAIT, Os},
};
use std::{collections::VecDeque, io, task::Waker, time::Duration};
use sync_shim::sync::Arc;

impl Inner {
    /// If a busy worker is to poll now (rule 2), collects events without a wait: up to `max`, and
    /// no more than one wait takes.
    pub(crate) fn poll_if_due(&self, max: usize, out: &mut VecDeque<Waker>) {
        let poller = &self.poller;
        let Some(reactor) = poller.workers_reactor() else {
            return;
        };
        if poller.begin_if_due() {
            self.look_beside(reactor, max.min(poller.max_events()), out);
        }
    }

    /// Collects all events that have come, without a wait, even if a thread has just polled.
    pub(crate) fn poll_all(&self, out: &mut VecDeque<Waker>) {
        if let Some(reactor) = self.poller.workers_reactor() {
            self.poller.note_end();
            let was_woken = reactor.collect_all(self.poller.max_events(), out);
            self.pass_wake_on(reactor, was_woken);
        }
    }

    /// Collects up to `max` events without a wait, beside a thread that may wait in the reactor. If
    /// the look takes a wake that was meant for that thread, this function wakes the reactor again
    /// (rule 6).
    pub(crate) fn look_beside(&self, reactor: &Reactor<Os>, max: usize, out: &mut VecDeque<Waker>) {
        // This ignores an error: the parked worker gets it too.
        let was_woken = reactor.collect(Some(Duration::ZERO), max, out);
        self.pass_wake_on(reactor, was_woken.unwrap_or(false));
    }

    /// Wakes the reactor again, if a look has taken a wake that was meant for a waiting thread
    /// (rule 6).
    fn pass_wake_on(&self, reactor: &Reactor<Os>, was_woken: bool) {
        // `is_held` sees that the waiting thread has the role: that thread took the role before it
        // was unparked, and the kernel orders the wake of that unpark before this.
        if was_woken && (self.threads.role.is_held() || self.threads.parks_elsewhere()) {
            reactor.wake();
        }
    }

    /// Returns the reactor, for a socket. Opens it if it is not open yet.
    pub(crate) fn open_reactor(&self) -> io::Result<Arc<Reactor<Os>>> {
        let reactor = self.poller.open(self.has_polling_thread())?;
        if self.poller.begin_use() && !self.has_polling_thread() {
            // Each worker is unparked here, whether or not a timer has activated the role before.
            if self.threads.role.activate() {
                self.threads.first_used();
            } else {
                self.threads.unpark_all();
            }
        }
        Ok(reactor.clone())
    }

    /// Returns whether a thread of the driver polls the sockets (rule 3).
    fn has_polling_thread(&self) -> bool {
        self.threads.parks_elsewhere() || self.poller.has_thread()
    }
}

impl Driver {
    /// Creates the driver of a runtime with this many workers, whose sockets are polled as
    /// `polling` says.
    ///
    /// # Panics
    /// If `workers` is 0.
    #[track_caller]
    pub fn with_polling(workers: usize, polling: Polling) -> Self {
        Self::with(workers, [].into(), polling)
    }

    /// Makes the kernel objects that sockets need. Without this call, the first socket makes them.
    ///
    /// ```
    /// net_driver::Driver::new(1).open()?;
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// If the kernel refuses the objects or the thread of [`Polling::Thread`], or if the driver has
    /// shut down.
    pub fn open(&self) -> io::Result<()> {
        let inner = self.inner();
        inner.poller.open(inner.has_polling_thread())?;
        if inner.poller.is_shut_down() {
            return Err(shut_down_error());
        }
        Ok(())
    }

    /// Sets how the driver runs closures that block, such as the lookup of a host's name. A runtime
    /// usually has threads for such closures. Without this call, each closure runs on a new thread.
    /// Only the first call counts.
    ///
    /// ```
    /// use std::sync::{Arc, atomic::{AtomicU32, Ordering::Relaxed}};
    ///
    /// let (driver, jobs) = (net_driver::Driver::new(1), Arc::new(AtomicU32::new(0)));
    /// let count = jobs.clone();
    /// driver.set_blocking(move |job| {
    ///     count.fetch_add(1, Relaxed);
    ///     std::thread::spawn(job);
    /// });
    /// let looked_up = driver.park(0).block_on(async {
    ///     net_driver::net::lookup_host("localhost:80").await.map(Iterator::count)
    /// });
    /// assert_eq!(jobs.load(Relaxed), 1);
    /// # drop(looked_up);
    /// ```
    pub fn set_blocking(&self, run: impl Fn(Box<dyn FnOnce() + Send>) + Send + Sync + 'static) {
        self.inner().poller.set_blocking(Box::new(run));
    }

    /// Sets how many events of sockets a thread collects at once: the length of the list that the
    /// kernel fills. 64 by default. Further events wait for the next look. A number above 65,536
    /// counts as that number.
    ///
    /// A small number lets the tasks of the first events run earlier, and a large one saves system
    /// calls. A [`poll`](crate::Park::poll) of a parker has a limit of its own, and takes no more.
    ///
    /// Each wait and look of a worker takes the number that was set last. The thread of
    /// [`Polling::Thread`] takes the number that is set when the first socket starts that thread: a
    /// later call does not change it. Above 64, the driver keeps the list that the last wait has
    /// used.
    ///
    /// ```
    /// net_driver::Driver::new(1).set_max_events(1_024);
    /// ```
    ///
    /// # Panics
    /// If `max` is 0.
    #[track_caller]
    pub fn set_max_events(&self, max: usize) {
        assert!(max > 0, "a look takes at least 1 event, not 0");
        self.inner()
            .poller
            .set_max_events(max.min(MAX_EVENTS_PER_WAIT));
    }

    /// Does nothing unless the driver [is due](Self::is_due), and has been so for the time `late`:
    /// a timer is due for that long, or no thread has polled the sockets for that long. If a thread
    /// has fired timers after a timer's deadline, that timer counts as due for up to half of `late`
    /// less. Collects the timers that are due, and the events of sockets. Wakes the tasks of both
    /// on this thread, and returns the number of wakes.
    ///
    /// This is for a thread that watches a runtime, such as a monitor: all of the workers may be in
    /// long polls. A worker calls [`poll`](crate::Park::poll) of its parker instead. If there is
    /// nothing to do, this costs a few loads and perhaps a reading of the clock.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// assert_eq!(net_driver::Driver::new(1).poll_overdue(Duration::ZERO), 0);
    /// ```
    ///
    /// # Panics
    /// If a waker panics.
    pub fn poll_overdue(&self, late: Duration) -> usize {
        let (driver, mut out) = (self.inner(), VecDeque::new());
        if !driver.threads.role.is_active() || !driver.is_due_for(late) {
            return 0;
        }
        driver.poll_if_due(usize::MAX, &mut out);
        let no_worker = driver.threads.tokens.len();
        driver
            .timers
            .collect_due(no_worker, usize::MAX, || driver.threads.now(), &mut out);
        let count = out.len();
        wake_all(&mut out);
        count
    }

    /// Returns the time until [`poll_overdue`](Self::poll_overdue) has something to do, unless a
    /// worker looks at timers and sockets before. `None` if a parked worker waits for them, or if
    /// there are none.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// assert_eq!(net_driver::Driver::new(1).until_overdue(Duration::ZERO), None);
    /// ```
    pub fn until_overdue(&self, late: Duration) -> Option<Duration> {
        let driver = self.inner();
        driver
            .threads
            .role
            .is_active()
            .then(|| driver.until_due_for(late))?
    }

    /// Returns the number of sockets, or other sources, that are registered. Costs a lock.
    ///
    /// ```
    /// assert_eq!(net_driver::Driver::new(1).sources(), 0);
    /// ```
    pub fn sources(&self) -> usize {
        self.inner()
            .poller
            .reactor()
            .map_or(0, |reactor| reactor.registered())
    }
}
