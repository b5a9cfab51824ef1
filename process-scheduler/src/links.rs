//! Links and monitors, here and across nodes.
//!
//! Each process of a link has the other among its `links`. A process that monitors a target has the
//! target among its `monitored`, and the target has that process among its `watchers`.
//!
//! 1. A relation has two halves, which are added one after the other, without a lock of both. Each
//!    half names the process that has the other half. A process that ends removes these other
//!    halves.
//! 2. If one half is refused, the other is removed, or not added. The process of the first half may
//!    end before the second half is there. So the thread that makes the relation adds the second
//!    half, and then looks once more for the process of the first half. Thus no half names an ended
//!    process forever.
//! 3. The table of remote relations (`remote.rs`) has an entry for each process on another node
//!    that a process here monitors or is linked to. So the process here is also notified if that
//!    node is down. The table also notes the watchers on other nodes, which are removed then. The
//!    entry has the link, the monitors and the watcher of the pair apart, because each of them has
//!    an end of its own.
//! 4. Each node notes the links and the watchers of its own processes, whichever node makes them. A
//!    relation is noted before the process here has its half, so that the end of this process,
//!    which takes the half, removes the note too. If `node_down` takes the note before the half is
//!    there, the thread that adds the half misses the note, and removes the half.
//! 5. A monitor is made and ended on the node of the process that monitors. That node has the
//!    `monitored` of the process, and notes the target in its table. Another node passes the call
//!    on, as a `Watch` or an `Unwatch`. So `by` in the table is always a process here.
use crate::{ExitReason, Handle, Pid, Signal, remote::Relation};

impl Handle {
    /// Sends `by` an [`Event::Exit`](crate::Event::Exit) when `target` ends. If there is no
    /// `target`, `by` gets the event at once, with [`ExitReason::NoProcess`].
    ///
    /// A process that its supervisor restarts has not ended.
    ///
    /// ```
    /// use process_scheduler::{
    ///     Event, EventsOf, ExitReason, NoCommand, OutputOf, Process, Scheduler, Step, StepOf,
    /// };
    ///
    /// struct Widow;
    ///
    /// impl Process for Widow {
    ///     type Message = ();
    ///     type Cmd = NoCommand;
    ///     type Output = ();
    ///     type Error = ();
    ///     fn step(
    ///         &mut self,
    ///         events: &mut EventsOf<Self>,
    ///         _: &mut OutputOf<Self>,
    ///     ) -> StepOf<Self> {
    ///         match events.next() {
    ///             Some(Event::Exit { reason, .. }) => Step::Failed(reason),
    ///             _ => Step::Idle,
    ///         }
    ///     }
    /// }
    ///
    /// let scheduler = Scheduler::new();
    /// let widow = scheduler.spawn(Widow).unwrap();
    /// let other = scheduler.spawn_fn(|_: u8, _| ()).unwrap();
    /// let end = scheduler.exit_of(widow.pid());
    /// scheduler.monitor(widow.pid(), other.pid());
    /// scheduler.kill(other.pid());
    /// assert_eq!(end.wait(), ExitReason::Killed);
    /// ```
    pub fn monitor(&self, by: Pid, target: Pid) {
        if by.node != self.node() {
            // Rule 5.
            drop(self.route(by, Signal::Watch { target }));
            return;
        }
        let watcher = self.registry().get(by);
        if !watcher.is_some_and(|watcher| watcher.monitors(target)) {
            return;
        }
        if target.node != self.node() {
            self.shared.remote.note(target, by, Relation::Monitor);
        }
        if self.route(target, Signal::Monitor { by }).is_err() {
            self.forget_relation(target, by, Relation::Monitor);
            self.no_process(by, target, false);
        } else if self.registry().get(by).is_none() {
            // The end of `by` may have removed the monitor before the target had it.
            self.demonitor(by, target);
        }
    }

    /// Ends a [`monitor`](Self::monitor).
    ///
    /// ```
    /// # let scheduler = process_scheduler::Scheduler::new();
    /// # let a = scheduler.spawn_fn(|_: u8, _| ()).unwrap().pid();
    /// # let b = scheduler.spawn_fn(|_: u8, _| ()).unwrap().pid();
    /// scheduler.monitor(a, b);
    /// scheduler.demonitor(a, b);
    /// ```
    pub fn demonitor(&self, by: Pid, target: Pid) {
        if by.node != self.node() {
            // Rule 5.
            drop(self.route(by, Signal::Unwatch { target }));
            return;
        }
        self.forget_relation(target, by, Relation::Monitor);
        if let Some(by) = self.registry().get(by) {
            by.unmonitor(target);
        }
        drop(self.route(target, Signal::Demonitor { by }));
    }

    /// Links two processes. If one ends abnormally, the other ends for the same reason. If the
    /// other [traps exits](crate::Spawn::trap_exits), it does not end, but gets an
    /// [`Event::Exit`](crate::Event::Exit) at any end of the first one. If one process has ended
    /// before the call, the reason is [`ExitReason::NoProcess`].
    ///
    /// ```
    /// use process_scheduler::{ExitReason, Scheduler};
    ///
    /// let scheduler = Scheduler::new();
    /// let [a, b] = [(); 2].map(|()| scheduler.spawn_fn(|_: u8, _| ()).unwrap());
    /// let end = scheduler.exit_of(b.pid());
    /// scheduler.link(a.pid(), b.pid());
    /// scheduler.kill(a.pid());
    /// assert_eq!(end.wait(), ExitReason::Killed);
    /// ```
    pub fn link(&self, a: Pid, b: Pid) {
        // A process here is the first one, because this thread can look whether it has ended.
        let (a, b) = if a.node == self.node() {
            (a, b)
        } else {
            (b, a)
        };
        let has_ended = |pid: Pid| pid.node == self.node() && self.registry().get(pid).is_none();
        if self.add_link(a, b) && self.add_link(b, a) && has_ended(a) {
            // `a` ended between the two halves. Its end has notified `b`, perhaps before `b` had
            // its half, which nothing else would remove.
            drop(self.route(b, Signal::Unlink { with: a }));
        }
    }

    /// Adds one half of a link: `one` will notify `other`. Returns false if there is no process
    /// `one`. In this case `other` is notified, and thereby removes its half.
    fn add_link(&self, one: Pid, other: Pid) -> bool {
        let added = self.route(one, Signal::Link { with: other }).is_ok();
        if !added {
            self.no_process(other, one, true);
        }
        added
    }

    /// Ends a [`link`](Self::link).
    ///
    /// ```
    /// # let scheduler = process_scheduler::Scheduler::new();
    /// # let a = scheduler.spawn_fn(|_: u8, _| ()).unwrap().pid();
    /// # let b = scheduler.spawn_fn(|_: u8, _| ()).unwrap().pid();
    /// scheduler.link(a, b);
    /// scheduler.unlink(a, b);
    /// ```
    pub fn unlink(&self, a: Pid, b: Pid) {
        for (one, other) in [(a, b), (b, a)] {
            drop(self.route(one, Signal::Unlink { with: other }));
        }
    }

    fn no_process(&self, to: Pid, pid: Pid, linked: bool) {
        let reason = ExitReason::NoProcess;
        let exit = Signal::Exit {
            pid,
            reason,
            linked,
        };
        drop(self.route(to, exit));
    }

    /// Passes a signal to a process here. If the signal adds or removes one half of a relation to
    /// a remote process, changes the table too (rule 3).
    pub(crate) fn signal_here(&self, to: Pid, signal: Signal) -> Result<(), Signal> {
        match signal {
            Signal::Watch { target } if self.registry().get(to).is_some() => {
                self.monitor(to, target);
                return Ok(());
            }
            Signal::Unwatch { target } if self.registry().get(to).is_some() => {
                self.demonitor(to, target);
                return Ok(());
            }
            _ => {}
        }
        if let Some((other, relation)) = removed_by(&signal) {
            // The relation is removed also if `to` has ended.
            self.forget_relation(other, to, relation);
        }
        match added_by(&signal) {
            Some(added) if added.other.node != self.node() => self.add_remote(to, signal, added),
            _ => self.signal_cell(to, signal),
        }
    }

    /// Gives a process here its half of a relation to a remote process (rule 4).
    fn add_remote(&self, to: Pid, signal: Signal, added: Added) -> Result<(), Signal> {
        let Added {
            other, relation, ..
        } = added;
        self.shared.remote.note(other, to, relation);
        let result = self.signal_cell(to, signal);
        if result.is_err() {
            self.forget_relation(other, to, relation);
        } else if !self.shared.remote.has(other, to, relation) {
            drop(self.signal_cell(to, added.removal));
        }
        result
    }

    fn signal_cell(&self, to: Pid, signal: Signal) -> Result<(), Signal> {
        match self.registry().get(to) {
            Some(cell) => cell.signal(signal),
            None => Err(signal),
        }
    }

    /// Removes one kind of relation of a pair from the table.
    pub(crate) fn forget_relation(&self, remote: Pid, by: Pid, relation: Relation) {
        if remote.node != self.node() {
            self.shared.remote.forget(remote, by, relation);
        }
    }

    /// Removes all relations of a pair, one of which has ended, from the table.
    pub(crate) fn forget_remote(&self, remote: Pid, by: Pid) {
        if remote.node != self.node() {
            self.shared.remote.forget_all(remote, by);
        }
    }

    /// Sends an exit to each process here that monitors a process of `node` or is linked to one.
    /// The reason is [`ExitReason::NodeDown`]. From then on, no process of `node` monitors one
    /// here. A [`Relay`](crate::Relay) calls this.
    ///
    /// ```
    /// # let scheduler = process_scheduler::Scheduler::new();
    /// scheduler.node_down(7);
    /// ```
    pub fn node_down(&self, node: u32) {
        for (pid, by, relations) in self.shared.remote.take_node(node) {
            let exit = |linked| Signal::Exit {
                pid,
                reason: ExitReason::NodeDown,
                linked,
            };
            if relations.is_watched {
                drop(self.route(by, Signal::Demonitor { by: pid }));
            }
            if relations.is_linked {
                drop(self.route(by, exit(true)));
            }
            for _ in 0..relations.monitors {
                drop(self.route(by, exit(false)));
            }
        }
    }
}

/// One half of a relation, which a signal adds.
struct Added {
    other: Pid,
    relation: Relation,
    /// The signal that removes the half.
    removal: Signal,
}

/// Returns the half that a signal adds.
fn added_by(signal: &Signal) -> Option<Added> {
    let (other, relation, removal) = match *signal {
        Signal::Link { with } => (with, Relation::Link, Signal::Unlink { with }),
        Signal::Monitor { by } => (by, Relation::Watcher, Signal::Demonitor { by }),
        _ => return None,
    };
    Some(Added {
        other,
        relation,
        removal,
    })
}

/// Returns the other process and the relation of which a signal removes one half.
fn removed_by(signal: &Signal) -> Option<(Pid, Relation)> {
    match *signal {
        Signal::Unlink { with } => Some((with, Relation::Link)),
        Signal::Demonitor { by } => Some((by, Relation::Watcher)),
        Signal::Exit { pid, linked, .. } if linked => Some((pid, Relation::Link)),
        Signal::Exit { pid, .. } => Some((pid, Relation::Monitor)),
        _ => None,
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests {
    use crate::{Loopback, Pid, Scheduler};

    fn still(scheduler: &Scheduler) -> Pid {
        scheduler.spawn_fn(|_: u8, _| ()).unwrap().pid()
    }

    fn end(scheduler: &Scheduler, pid: Pid) {
        let end = scheduler.exit_of(pid);
        scheduler.cancel(pid);
        end.wait();
    }

    fn connected(loopback: &Loopback) -> [Scheduler; 2] {
        [1, 2].map(|node| {
            let builder = Scheduler::builder().workers(1).node(node);
            let scheduler = builder.relay(loopback.clone()).build();
            loopback.connect(&scheduler);
            scheduler
        })
    }

    /// Fails if the table of a node keeps a relation of a process that has ended, here or there.
    #[test]
    fn ended_process_leaves_no_relation_to_remote_ones() {
        let loopback = Loopback::new();
        let [here, there] = connected(&loopback);
        let relate: [fn(&Scheduler, Pid, Pid); 3] = [
            |here, near, far| here.link(near, far),
            |here, near, far| here.link(far, near),
            |here, near, far| here.monitor(near, far),
        ];
        let noted = || [&here, &there].map(|node| node.shared.remote.len());
        for relate in relate {
            let (near, far) = (still(&here), still(&there));
            relate(&here, near, far);
            assert_eq!(noted(), [1, 1]);
            end(&here, near);
            assert_eq!(noted(), [0, 0]);
            relate(&here, near, far);
            assert_eq!(noted(), [0, 0]);
            let (near, far) = (still(&here), still(&there));
            relate(&here, near, far);
            assert_eq!(noted(), [1, 1]);
            end(&there, far);
            assert_eq!(noted(), [0, 0]);
            relate(&here, near, far);
            assert_eq!(noted(), [0, 0]);
        }
        // The loopback and the schedulers keep each other in memory.
        [1, 2].iter().for_each(|&node| loopback.disconnect(node));
    }
}
