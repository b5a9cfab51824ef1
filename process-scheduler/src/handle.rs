//! The shared handle of a scheduler: signals by pid, and looks at processes.
//!
//! The other methods of the handle are in `spawn.rs`, `send.rs`, `names.rs`, `links.rs`, `exit.rs`,
//! `closure.rs` and `task.rs`.
//!
//! No lock is held while user code runs. An `Arc` of a cell is dropped after the lock is released,
//! since this drop may run user code. No lock is held while another is taken, except in `names.rs`.
use crate::{
    CancelReason, ExitReason, Info, Metrics, Parcel, Pid, Relay, Signal, Sleep, Tree,
    deadline::Deadline, guard::Guarded, metrics::Counters, registry::Registry, remote::Relation,
    shared::Shared,
};
use std::{
    fmt,
    sync::{Arc, PoisonError},
    time::Duration,
};

/// A handle of a scheduler, for any thread and any process. Cheap to clone.
///
/// A handle does not keep the workers alive: they end with the [`Scheduler`](crate::Scheduler).
///
/// ```
/// use process_scheduler::{Handle, Scheduler};
///
/// let scheduler = Scheduler::new();
/// let handle: Handle = scheduler.handle();
/// let echo = handle.spawn_fn(|n: u32, cx| println!("{} got {n}", cx.pid())).unwrap();
/// handle.try_send(echo.pid(), 1_u32).unwrap(); // By pid: looked up, and checked for its type.
/// handle.address::<u32>(echo.pid()).unwrap().try_send(2).unwrap();
/// assert_eq!(handle.list(), [echo.pid()]);
/// ```
#[derive(Clone)]
pub struct Handle {
    pub(crate) shared: Arc<Shared>,
}

impl Handle {
    /// Returns another handle.
    pub fn handle(&self) -> Handle {
        self.clone()
    }

    /// Asks a process to clean up and to end. Returns whether there is such a process.
    ///
    /// ```
    /// use process_scheduler::{ExitReason, Scheduler};
    ///
    /// let scheduler = Scheduler::new();
    /// let idle = scheduler.spawn_fn(|_: u8, _| ()).unwrap();
    /// let exit = scheduler.exit_of(idle.pid());
    /// assert!(scheduler.cancel(idle.pid()));
    /// assert_eq!(exit.wait(), ExitReason::Cancelled);
    /// assert!(!scheduler.cancel(idle.pid()));
    /// ```
    pub fn cancel(&self, pid: Pid) -> bool {
        self.cancel_for(pid, CancelReason::Requested)
    }

    pub(crate) fn cancel_for(&self, pid: Pid, reason: CancelReason) -> bool {
        self.route(pid, Signal::Cancel(reason)).is_ok()
    }

    /// Ends a process before its next step. Returns whether there is such a process.
    ///
    /// A step that runs is not interrupted. A supervisor may restart the process.
    ///
    /// ```
    /// use process_scheduler::{ExitReason, Scheduler};
    ///
    /// let scheduler = Scheduler::new();
    /// let idle = scheduler.spawn_fn(|_: u8, _| ()).unwrap();
    /// let exit = scheduler.exit_of(idle.pid());
    /// assert!(scheduler.kill(idle.pid()));
    /// assert_eq!(exit.wait(), ExitReason::Killed);
    /// ```
    pub fn kill(&self, pid: Pid) -> bool {
        self.route(pid, Signal::Kill).is_ok()
    }

    /// Kills a process for good, also a stopped one, and takes it out of its groups. Takes three
    /// locks, and three more for each group.
    pub(crate) fn kill_for_good(&self, pid: Pid, reason: ExitReason) {
        if let Some(cell) = self.registry().get(pid) {
            cell.kill(reason, true);
            for group in cell.groups() {
                self.leave(&group, pid);
            }
        }
    }

    /// Restarts a stopped process, unless the scheduler shuts down.
    pub(crate) fn revive(&self, pid: Pid) {
        if self.is_closed() {
            return self.kill_for_good(pid, ExitReason::Killed);
        }
        if let Some(cell) = self.registry().get(pid) {
            self.shared.counters.restarted();
            cell.revive();
        }
    }

    /// Sends a signal to a process on this node or another one.
    pub(crate) fn route(&self, to: Pid, signal: Signal) -> Result<(), Signal> {
        if to.node == self.node() {
            return self.signal_here(to, signal);
        }
        if to.is_of_node() {
            // It has no halves of relations: see `nodes.rs`.
            return Ok(());
        }
        if let Signal::Exit { pid, linked, .. } = signal {
            if !linked {
                // `pid` has ended, so `to` monitors it no longer.
                self.forget_relation(to, pid, Relation::Watcher);
            }
        }
        let Some(relay) = self.relay() else {
            return Err(signal);
        };
        match relay.deliver(to, Parcel::Signal(signal)) {
            Ok(()) => Ok(()),
            Err(refused) => match refused.into_inner() {
                Parcel::Signal(signal) => Err(signal),
                // A relay that hands back something else has lost the signal.
                Parcel::Message(_) => Ok(()),
            },
        }
    }

    /// Returns the number of this node.
    pub fn node(&self) -> u32 {
        self.registry().node()
    }

    /// Returns the live processes, in no order.
    pub fn list(&self) -> Vec<Pid> {
        let all = self.registry().all();
        all.iter().map(|cell| cell.pid()).collect()
    }

    /// Returns the state of a process on this node. `None` if there is no such process.
    pub fn inspect(&self, pid: Pid) -> Option<Info> {
        self.registry().get(pid).map(|cell| cell.info())
    }

    /// Returns the tree of supervision, to be displayed.
    ///
    /// ```
    /// let scheduler = process_scheduler::Scheduler::new();
    /// let clerk = scheduler.spawn_fn(|_: u8, _| ()).unwrap();
    /// scheduler.register("clerk", clerk.pid());
    /// assert!(scheduler.tree().to_string().contains("clerk"));
    /// ```
    pub fn tree(&self) -> Tree {
        let all = self.registry().all();
        Tree::new(all.iter().map(|cell| cell.info()).collect())
    }

    /// Returns a future that is ready after a time, for processes and for other tasks.
    ///
    /// A sleeping worker waits for the first deadline of the scheduler. If all workers are busy,
    /// each of them looks at the deadlines between runs of processes: up to
    /// [`step_budget`](crate::Builder::step_budget) steps of one process. So a deadline may come
    /// late while *all* workers are in long runs: it waits until the first of these runs ends.
    /// [`Call::wait`](crate::Call::wait) ends in time in any case.
    ///
    /// The end of a shutdown makes each sleep ready at once, however much of its time is left, and
    /// from then on a sleep is ready at its first poll. So a task of another runtime that sleeps
    /// again and again must not outlive the scheduler: it would never wait. Only a sleep beyond the
    /// clock's range is never ready.
    ///
    /// ```
    /// use process_scheduler::{Inbox, Scheduler};
    /// use std::time::Duration;
    ///
    /// let scheduler = Scheduler::new();
    /// let handle = scheduler.handle();
    /// let napping = scheduler
    ///     .spawn_async(move |_: Inbox<()>| async move {
    ///         handle.sleep(Duration::from_millis(2)).await;
    ///     })
    ///     .unwrap();
    /// scheduler.wait(napping.pid());
    /// ```
    pub fn sleep(&self, time: Duration) -> Sleep {
        Sleep(Deadline::new(&self.shared, time))
    }

    /// Returns the counters.
    pub fn metrics(&self) -> Metrics {
        let (live, begun) = (self.shared.live(), self.shared.begun());
        self.shared.counters.snapshot(begun, live)
    }

    /// Sets the relay for pids of other nodes, unless there is one: for a relay that needs a handle
    /// of its scheduler. A [`Builder`](crate::Builder::relay) may set the relay, too.
    ///
    /// # Errors
    /// Hands the relay back if there is one already.
    pub fn set_relay<R: Relay>(&self, relay: R) -> Result<(), R> {
        let mut place = self
            .shared
            .relay
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if place.is_some() {
            drop(place);
            return Err(relay);
        }
        *place = Some(Arc::new(Guarded::new(relay)));
        Ok(())
    }

    /// Takes the relay away: from now on no other node is reached. Returns whether there was one.
    pub fn remove_relay(&self) -> bool {
        let mut place = self
            .shared
            .relay
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let relay = place.take();
        drop(place);
        relay.is_some()
    }

    pub(crate) fn relay(&self) -> Option<Arc<dyn Relay>> {
        let place = self
            .shared
            .relay
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        place.clone()
    }

    #[inline]
    pub(crate) fn registry(&self) -> &Registry {
        &self.shared.registry
    }

    pub(crate) fn report_panic(&self, process: &Info, text: &str) {
        self.shared.report_panic(process, text);
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    pub(crate) fn ended(&self) {
        self.shared.ended();
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("node", &self.node())
            .field("processes", &self.shared.live())
            .finish_non_exhaustive()
    }
}
