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
//!    half, and then looks once more for the process of the first half. The thread can look only on
//!    the node of that process. There, no half that the thread adds names an ended process forever.
//!    A third node that links processes of two others cannot look. If the first process ends
//!    meanwhile, the second one gets its exit, but may keep its half until it ends itself or the
//!    node is lost.
//! 3. The table of remote relations (`remote.rs`) has an entry for each process on another node
//!    that a process here monitors or is linked to. So the process here is also notified if that
//!    node is down. The table also notes the watchers on other nodes, which are removed when their
//!    node is down. The entry notes the link, the monitors and the watcher of the pair separately,
//!    because each of them ends at a time of its own. If there are several monitors, each has a
//!    note of its own.
//! 4. Each node notes the links and the watchers of its own processes, whichever node makes them. A
//!    relation is noted before the process here has its half, so that the end of this process,
//!    which takes the half, removes the note too. A thread that adds a half looks for the note
//!    again, and removes the half if it misses the note. A thread that removes a half looks for
//!    the note again, too, and removes both if it finds one. So neither is left without the other.
//! 5. A monitor is made and ended on the node of the process that monitors. That node has the
//!    `monitored` of the process, and notes the target in its table. Another node passes the call
//!    on, as a `Watch` or an `Unwatch`. So the second process of each entry is always one of this
//!    node.
//! 6. `node_down` takes the notes, and notifies their processes. It may do so while a thread makes
//!    the relation:
//!    - Before the process here has its half: the thread misses the note (rule 4). It hands the
//!      signal back, as if there were no such process, since no other thread notifies the process
//!      of the other half.
//!    - Before the remote process has its half: the thread looks for the note again after the
//!      remote process has its half, and removes that half.
//!    - Before the remote process refuses its half: the process here gets one exit. Of `node_down`
//!      and the thread that gets the refusal, the one that takes the note sends that exit.
//! 7. These cases are left. If a thread makes a relation again that `node_down` or the end of the
//!    remote process is about to end, both may end with one exit. If `node_down` ends them, the
//!    remote process may keep its half. If a process ends while another node makes a link to it,
//!    and a node is lost at the same time, the remote process may get two exits.
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
        self.add_monitor(by, target, || {
            self.route(target, Signal::Monitor { by }).is_err()
        });
    }

    /// Adds the half of `by`, a process here, and then that of the target by `refuses`, which
    /// returns whether that half is refused. Returns false if there is no process `by`.
    fn add_monitor(&self, by: Pid, target: Pid, refuses: impl FnOnce() -> bool) -> bool {
        let Some(watcher) = self.registry().get(by) else {
            return false;
        };
        let is_remote = target.node != self.node();
        if is_remote {
            self.shared.remote.note(target, by, Relation::Monitor);
        }
        if !watcher.monitors(target) {
            self.forget_relation(target, by, Relation::Monitor);
            return false;
        }
        let is_refused = refuses();
        if is_refused && (!is_remote || self.forget_relation(target, by, Relation::Monitor)) {
            // Not by `signal_here`, which would remove the note of one more monitor.
            drop(self.signal_cell(by, self.no_process(target, false)));
        } else if is_refused
            || self.registry().get(by).is_none()
            || (is_remote && !self.has_note(target, by, Relation::Monitor))
        {
            // The end of `by` may have removed the monitor before the target had it, or `node_down`
            // the note (rule 6).
            self.demonitor(by, target);
        }
        true
    }

    /// Gives a process here its half of a monitor of a remote process, whose node has made the
    /// other half: for a relay that spawns processes on other nodes. The relay calls this before it
    /// delivers an exit of the target.
    ///
    /// ```
    /// # let scheduler = process_scheduler::Scheduler::new();
    /// # let by = scheduler.spawn_fn(|_: u8, _| ()).unwrap().pid();
    /// scheduler.node_up(7, "store");
    /// scheduler.complete_monitor(by, by.with_node(7));
    /// # scheduler.node_down(7);
    /// ```
    pub fn complete_monitor(&self, by: Pid, target: Pid) {
        let is_lost = || !self.shared.nodes.has(target.node);
        if !self.add_monitor(by, target, is_lost) {
            drop(self.route(target, Signal::Demonitor { by }));
        }
    }

    /// Gives a process here its half of a link to a remote process, whose node has made the other
    /// half: see [`complete_monitor`](Self::complete_monitor).
    ///
    /// ```
    /// # let scheduler = process_scheduler::Scheduler::new();
    /// # let near = scheduler.spawn_fn(|_: u8, _| ()).unwrap().pid();
    /// scheduler.node_up(7, "store");
    /// scheduler.complete_link(near, near.with_node(7));
    /// # scheduler.node_down(7);
    /// ```
    pub fn complete_link(&self, near: Pid, far: Pid) {
        let is_lost = || !self.shared.nodes.has(far.node);
        if self.add_link(near, far) && is_lost() && self.forget_relation(far, near, Relation::Link)
        {
            drop(self.signal_cell(near, self.no_process(far, true)));
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
        loop {
            while self.forget_relation(target, by, Relation::Monitor) {}
            if let Some(by) = self.registry().get(by) {
                by.unmonitor(target);
            }
            drop(self.route(target, Signal::Demonitor { by }));
            // Rule 4.
            if !self.has_note(target, by, Relation::Monitor) {
                return;
            }
        }
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
        let is_lost = || {
            let is_noted = a.node == self.node() && b.node != self.node();
            is_noted && !self.has_note(b, a, Relation::Link)
        };
        if self.add_link(a, b) && self.add_link(b, a) && (has_ended(a) || is_lost()) {
            // `a` ended between the two halves, or lost its half by `node_down` (rule 6). `b` was
            // notified perhaps before it had its half, which nothing else would remove.
            drop(self.route(b, Signal::Unlink { with: a }));
        }
    }

    /// Adds one half of a link: `one` will notify `other`. Returns false if there is no process
    /// `one`. In this case `other` is notified, and thereby removes its half.
    fn add_link(&self, one: Pid, other: Pid) -> bool {
        let added = self.route(one, Signal::Link { with: other }).is_ok();
        if !added {
            let has_note = other.node == self.node() && one.node != self.node();
            // Rule 6.
            if !has_note || self.forget_relation(one, other, Relation::Link) {
                drop(self.route(other, self.no_process(one, true)));
            }
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
        if let Signal::Exit {
            pid, linked: false, ..
        } = signal
        {
            self.forget_relation(pid, to, Relation::Monitor);
        }
        match half_of(&signal) {
            Some(half) if half.other.node == self.node() => self.signal_cell(to, signal),
            Some(half) if half.is_added => self.add_remote(to, signal, half),
            Some(half) => self.remove_remote(to, signal, half),
            None => self.signal_cell(to, signal),
        }
    }

    /// Gives a process here its half of a relation to a remote process (rule 4).
    fn add_remote(&self, to: Pid, signal: Signal, half: Half) -> Result<(), Signal> {
        let Half {
            other, relation, ..
        } = half;
        let remote = &self.shared.remote;
        let losses = remote.note(other, to, relation);
        let added = self.signal_cell(to, signal.clone());
        if added.is_err() {
            remote.forget(other, to, relation);
            return added;
        }
        if remote.has(other, to, relation) {
            return Ok(());
        }
        drop(self.signal_cell(to, half.removal));
        // The end of `to` notifies the other process, and an `Unlink` or a `Demonitor` need not.
        // But `node_down` notifies only `to` (rule 6).
        if remote.losses() == losses {
            Ok(())
        } else {
            Err(signal)
        }
    }

    /// Takes a half of a relation to a remote process from a process here, which may have ended
    /// (rule 4).
    fn remove_remote(&self, to: Pid, signal: Signal, half: Half) -> Result<(), Signal> {
        let Half {
            other, relation, ..
        } = half;
        let remote = &self.shared.remote;
        remote.forget(other, to, relation);
        let result = self.signal_cell(to, signal);
        while remote.forget(other, to, relation) {
            drop(self.signal_cell(to, half.removal.clone()));
        }
        result
    }

    pub(crate) fn signal_cell(&self, to: Pid, signal: Signal) -> Result<(), Signal> {
        match self.registry().get(to) {
            Some(cell) => cell.signal(signal),
            None => Err(signal),
        }
    }

    /// Returns whether a process here waits for the exit of a remote one.
    pub(crate) fn awaits_exit(&self, local: Pid, remote: Pid, linked: bool) -> bool {
        let relation = match linked {
            true => Relation::Link,
            false => Relation::Monitor,
        };
        self.has_note(remote, local, relation)
    }

    /// Returns the exit for a process that is related to one that does not exist, or whose node is
    /// not reached.
    fn no_process(&self, pid: Pid, linked: bool) -> Signal {
        let is_there = pid.node == self.node() || self.shared.nodes.has(pid.node);
        Signal::Exit {
            pid,
            reason: match is_there {
                true => ExitReason::NoProcess,
                false => ExitReason::NodeDown,
            },
            linked,
        }
    }

    fn has_note(&self, remote: Pid, local: Pid, relation: Relation) -> bool {
        remote.node != self.node() && self.shared.remote.has(remote, local, relation)
    }

    /// Removes a relation of a pair from the table: of several monitors, one. Returns whether the
    /// table had it.
    pub(crate) fn forget_relation(&self, remote: Pid, local: Pid, relation: Relation) -> bool {
        remote.node != self.node() && self.shared.remote.forget(remote, local, relation)
    }

    /// Removes all relations of a pair, one of which has ended, from the table.
    pub(crate) fn forget_remote(&self, remote: Pid, local: Pid) {
        if remote.node != self.node() {
            self.shared.remote.forget_all(remote, local);
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
        // Before the notes are taken: see `monitor_node`.
        self.shared.nodes.remove(node);
        for (pid, local, relations) in self.shared.remote.take_node(node) {
            let exit = |linked| Signal::Exit {
                pid,
                reason: ExitReason::NodeDown,
                linked,
            };
            if relations.is_watched {
                drop(self.signal_here(local, Signal::Demonitor { by: pid }));
            }
            if relations.is_linked {
                drop(self.signal_here(local, exit(true)));
            }
            for _ in 0..relations.monitors {
                // Not by `signal_here`, which would remove the note of a later monitor.
                drop(self.signal_cell(local, exit(false)));
            }
        }
    }
}

/// One half of a relation, which a signal adds or removes.
struct Half {
    other: Pid,
    relation: Relation,
    is_added: bool,
    /// The signal that removes the half.
    removal: Signal,
}

/// Returns the half that a signal adds or removes. Signals do so for links and watchers.
fn half_of(signal: &Signal) -> Option<Half> {
    let is_added = matches!(signal, Signal::Link { .. } | Signal::Monitor { .. });
    let (other, relation, removal) = match *signal {
        Signal::Link { with }
        | Signal::Unlink { with }
        | Signal::Exit {
            pid: with,
            linked: true,
            ..
        } => (with, Relation::Link, Signal::Unlink { with }),
        Signal::Monitor { by } | Signal::Demonitor { by } => {
            (by, Relation::Watcher, Signal::Demonitor { by })
        }
        _ => return None,
    };
    Some(Half {
        other,
        relation,
        is_added,
        removal,
    })
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
