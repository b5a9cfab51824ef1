//! The nodes that the relay reaches.
//!
//! A node that a process monitors is a remote process to the table of remote relations
//! (`remote.rs`): its pid is [`Pid::of_node`]. So `node_down` sends that exit with those of the
//! node's processes, and rule 6 of `links.rs` holds for it.
use crate::{ExitReason, Handle, Node, Pid, Signal, remote::Relation};

impl Handle {
    /// Notes that this node is reached from now on, until a call of
    /// [`node_down`](Self::node_down). A [`Relay`](crate::Relay) calls this.
    ///
    /// A node that was started again is another node: its relay gives it a number that no node had
    /// before, so that no pid of the old one names a process of the new one.
    ///
    /// ```
    /// let scheduler = process_scheduler::Scheduler::new();
    /// scheduler.node_up(7, "store");
    /// assert_eq!(scheduler.nodes()[0].name, "store");
    /// scheduler.node_down(7);
    /// assert!(scheduler.nodes().is_empty());
    /// ```
    pub fn node_up(&self, number: u32, name: impl Into<String>) {
        self.shared.nodes.insert(number, name.into());
    }

    /// Returns the nodes that are reached, in the order of their numbers.
    pub fn nodes(&self) -> Vec<Node> {
        self.shared.nodes.all()
    }

    /// Sends a process of this node an [`Event::Exit`](crate::Event::Exit) with the pid
    /// [`Pid::of_node`] when the node is down, at once if it is not reached now. Each call gives
    /// one event. There is none for this node itself.
    ///
    /// ```
    /// use process_scheduler::{ExitReason, Inbox, Pid, Scheduler};
    ///
    /// let scheduler = Scheduler::new();
    /// scheduler.node_up(7, "store");
    /// let (sender, seen) = std::sync::mpsc::channel();
    /// let guard = scheduler
    ///     .spawn_async(move |mut inbox: Inbox<()>| async move {
    ///         inbox.handle().monitor_node(inbox.pid(), 7);
    ///         sender.send(None).unwrap();
    ///         inbox.event().await;
    ///         sender.send(inbox.next_exit()).unwrap();
    ///     })
    ///     .unwrap();
    /// assert_eq!(seen.recv(), Ok(None));
    /// scheduler.node_down(7);
    /// assert_eq!(seen.recv(), Ok(Some((Pid::of_node(7), ExitReason::NodeDown))));
    /// # scheduler.wait(guard.pid());
    /// ```
    pub fn monitor_node(&self, by: Pid, node: u32) {
        let Some(watcher) = self.registry().get(by) else {
            return;
        };
        if node == self.node() {
            return;
        }
        let target = Pid::of_node(node);
        // The process has its half before there is a note, so that the exit finds the half. A
        // process that ends has given its halves away before this call, or forgets the note below.
        if !watcher.monitors(target) {
            return;
        }
        self.shared.remote.note(target, by, Relation::Monitor);
        // Either this thread sees the node down, or `node_down` finds the note. The one that takes
        // the note sends the exit.
        let is_up = self.shared.nodes.has(node);
        if !is_up && self.forget_relation(target, by, Relation::Monitor) {
            let exit = Signal::Exit {
                pid: target,
                reason: ExitReason::NodeDown,
                linked: false,
            };
            drop(self.signal_cell(by, exit));
        }
        // A process that has ended meanwhile has perhaps looked for the note before it was there.
        if self.registry().get(by).is_none() {
            self.demonitor_node(by, node);
        }
    }

    /// Ends the calls of [`monitor_node`](Self::monitor_node) of this process and node.
    pub fn demonitor_node(&self, by: Pid, node: u32) {
        let target = Pid::of_node(node);
        while self.forget_relation(target, by, Relation::Monitor) {}
        if let Some(by) = self.registry().get(by) {
            by.unmonitor(target);
        }
    }
}
