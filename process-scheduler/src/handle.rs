//! The shared handle of a scheduler: spawn, send, signals, names and groups.
//!
//! 1. No lock is held while user code runs, or while another lock is taken, but for rule 2. An
//!    `Arc` of a cell is dropped after the lock, since its drop may run user code.
//! 2. The table of names, or of groups, and the process change under the lock of the table: so the
//!    two agree. A process that ends first refuses names and groups, and then takes its own out of
//!    the tables. So an ended process is in no table.
use crate::{
    Address, CancelReason, ExitReason, Handler, Mailbox, Metrics, Parcel, Pid, Process, SendError,
    Signal, SpawnError,
    address::Receive,
    cell::{Cell, Info, Parts, Restart, Watcher},
    handler::HandlerOf,
    lane::Refused,
    metrics::Counters,
    oneshot,
    process::Input,
    registry::Registry,
    relay::Remote,
    scheduler::Shared,
    timer::{Deadline, Sleep, Timer},
    tree::Tree,
    worker::{self, Runnable},
};
use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::Ordering::Relaxed},
    task::{Context, Poll},
    time::Duration,
};
use worker_idle::park::{ThreadPark, block_on};

/// Settings of a new process.
///
/// ```
/// use process_scheduler::{Mailbox, Scheduler, Spawn};
///
/// let scheduler = Scheduler::new();
/// let spawn = Spawn::new().name("teller").group("bank").mailbox(Mailbox::Bounded(100));
/// let teller = scheduler.spawn_with(spawn, |n: u32, _| println!("{n}")).unwrap();
/// assert_eq!(scheduler.whereis("teller"), Some(teller.pid()));
/// assert_eq!(scheduler.members("bank"), [teller.pid()]);
/// ```
#[derive(Clone, Default)]
#[must_use = "settings do nothing until a process is spawned with them"]
pub struct Spawn {
    name: Option<String>,
    groups: Vec<String>,
    mailbox: Option<Mailbox>,
    method: String,
    input: Option<Arc<dyn Fn() -> Input + Send + Sync>>,
    handler: Option<Arc<dyn Any + Send + Sync>>,
    traps_exits: bool,
}

impl Spawn {
    /// Creates the default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers the process under a name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Adds the process to a group.
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.groups.push(group.into());
        self
    }

    /// Sets the mailbox: by default, that of [`Builder::mailbox`](crate::Builder::mailbox).
    pub fn mailbox(mut self, mailbox: Mailbox) -> Self {
        self.mailbox = Some(mailbox);
        self
    }

    /// Sets the method of [`Process::init`]: the empty one by default.
    ///
    /// ```
    /// use process_scheduler::{Scheduler, Spawn, SpawnError, from_fn};
    ///
    /// let scheduler = Scheduler::new();
    /// let spawned = scheduler.spawn_process(from_fn(|_: u8, _| ()), Spawn::new().method("bake"));
    /// assert!(matches!(spawned, Err(SpawnError::UnknownMethod(_))));
    /// ```
    pub fn method(mut self, method: impl Into<String>) -> Self {
        self.method = method.into();
        self
    }

    /// Sets the input of [`Process::init`]: none by default. A restart makes another.
    ///
    /// ```
    /// use process_scheduler::{Input, Spawn};
    ///
    /// let spawn = Spawn::new().method("serve").input(|| Input::new(8080_u16));
    /// # let _ = spawn;
    /// ```
    pub fn input(mut self, input: impl Fn() -> Input + Send + Sync + 'static) -> Self {
        self.input = Some(Arc::new(input));
        self
    }

    /// Sets the handler of the process's commands: by default, that of
    /// [`Builder::handler`](crate::Builder::handler).
    ///
    /// ```
    /// use process_scheduler::{Completer, Spawn};
    ///
    /// let spawn = Spawn::new().handler(|n: u32, completer: Completer<u32, ()>| {
    ///     drop(completer.complete(Ok(n + 1)));
    /// });
    /// # let _ = spawn;
    /// ```
    pub fn handler<C, O, E>(mut self, handler: impl Handler<C, O, E>) -> Self
    where
        C: 'static,
        O: 'static,
        E: 'static,
    {
        let handler: Arc<dyn Handler<C, O, E>> = Arc::new(handler);
        self.handler = Some(Arc::new(handler));
        self
    }

    /// Sets whether the end of a linked process is an event. By default, an abnormal one ends this
    /// process too.
    ///
    /// ```
    /// use process_scheduler::Spawn;
    ///
    /// let spawn = Spawn::new().trap_exits(true);
    /// # let _ = spawn;
    /// ```
    pub fn trap_exits(mut self, traps: bool) -> Self {
        self.traps_exits = traps;
        self
    }
}

impl fmt::Debug for Spawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawn")
            .field("name", &self.name)
            .field("groups", &self.groups)
            .field("mailbox", &self.mailbox)
            .finish_non_exhaustive()
    }
}

/// How a supervisor keeps a process: see [`Restart`].
pub(crate) struct Supervised<P> {
    pub(crate) supervisor: Pid,
    pub(crate) policy: crate::supervisor::Policy,
    pub(crate) keep_mail: bool,
    pub(crate) make: Arc<dyn Fn() -> P + Send + Sync>,
}

/// A scheduler, for any thread and any process. Cheap to clone.
///
/// It does not keep the workers: they end with the [`Scheduler`](crate::Scheduler).
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

    /// Spawns a process with the default settings.
    ///
    /// # Errors
    /// As [`spawn_process`](Self::spawn_process).
    pub fn spawn<P: Process>(&self, process: P) -> Result<Address<P::Message>, SpawnError> {
        self.spawn_process(process, Spawn::new())
    }

    /// Spawns a process. Its `init` runs before this returns, its first step on a worker.
    ///
    /// One allocation, if it has neither name nor group.
    ///
    /// # Errors
    /// If the scheduler shuts down or is full, the name is taken, or the process's `init` fails.
    pub fn spawn_process<P: Process>(
        &self,
        process: P,
        spawn: Spawn,
    ) -> Result<Address<P::Message>, SpawnError> {
        self.spawn_supervised(process, spawn, None)
    }

    pub(crate) fn spawn_supervised<P: Process>(
        &self,
        process: P,
        spawn: Spawn,
        supervised: Option<Supervised<P>>,
    ) -> Result<Address<P::Message>, SpawnError> {
        // Before the process is in any table: this may panic.
        let input = spawn
            .input
            .as_ref()
            .map_or_else(Input::none, |input| input());
        let cell = self.prepare(process, &spawn, supervised)?;
        let receiver: Arc<dyn Receive<P::Message>> = cell.clone();
        cell.start(self, &spawn.method, input)?;
        // Ordering: Relaxed, as the other counters.
        self.shared.counters.spawned.fetch_add(1, Relaxed);
        Ok(Address::new(receiver))
    }

    /// Makes a process with a pid and its names, which does not run yet.
    fn prepare<P: Process>(
        &self,
        process: P,
        spawn: &Spawn,
        supervised: Option<Supervised<P>>,
    ) -> Result<Arc<Cell<P>>, SpawnError> {
        let handler = self.handler_of::<P>(spawn)?;
        if !self.shared.begin() {
            return Err(SpawnError::Full);
        }
        let restart = supervised.map(|supervised| {
            Box::new(Restart {
                supervisor: supervised.supervisor,
                policy: supervised.policy,
                keep_mail: supervised.keep_mail,
                make: supervised.make,
                method: spawn.method.clone(),
                input: spawn.input.clone(),
                last: ExitReason::Killed,
            })
        });
        let cell = Cell::new(Parts {
            body: process,
            node: self.node(),
            handle: self.clone(),
            handler,
            mailbox: spawn.mailbox.unwrap_or(self.shared.config.mailbox),
            traps_exits: spawn.traps_exits,
            restart,
        });
        let inserted = self.registry().insert(cell, Cell::set_pid);
        let cell = inserted.inspect_err(|_| self.ended())?;
        let pid = cell.own_pid();
        if let Some(name) = &spawn.name {
            if !self.register(name, pid) {
                cell.abandon();
                return Err(SpawnError::NameTaken(name.clone()));
            }
        }
        for group in &spawn.groups {
            self.join(group, pid);
        }
        Ok(cell)
    }

    fn handler_of<P: Process>(&self, spawn: &Spawn) -> Result<Option<HandlerOf<P>>, SpawnError> {
        if let Some(handler) = &spawn.handler {
            let wrong = || SpawnError::Init("the handler is one for other commands".to_owned());
            let handler = handler.downcast_ref::<HandlerOf<P>>();
            return handler.cloned().map(Some).ok_or_else(wrong);
        }
        if self.shared.handlers.is_empty() {
            return Ok(None);
        }
        let key = TypeId::of::<(P::Cmd, P::Output, P::Error)>();
        let handler = self.shared.handlers.get(&key);
        Ok(handler
            .and_then(|any| any.downcast_ref::<HandlerOf<P>>())
            .cloned())
    }

    /// Returns the address of a process by its pid. `None` if there is no such process, or if it
    /// takes other messages. The address of a process on another node is not checked.
    pub fn address<M: Send + 'static>(&self, pid: Pid) -> Option<Address<M>> {
        if pid.node != self.node() {
            let handle = self.clone();
            return Some(Address::new(Arc::new(Remote { pid, handle })));
        }
        let receiver = self.registry().get(pid)?.receiver();
        let receiver = receiver.downcast::<Arc<dyn Receive<M>>>().ok()?;
        Some(Address::new(*receiver))
    }

    /// Sends a message by pid, and never waits. An [`Address`] saves the look-up.
    ///
    /// # Errors
    /// [`SendError::NotFound`] if there is no such process, or it takes other messages.
    /// [`SendError::Full`] if its mailbox is full.
    pub fn try_send<M: Send + 'static>(&self, to: Pid, message: M) -> Result<(), SendError<M>> {
        if to.node != self.node() {
            return self.send_away(to, message);
        }
        let Some(cell) = self.registry().get(to) else {
            return Err(SendError::NotFound(message));
        };
        let mut message = Some(message);
        let sent = cell.send_any(&mut message);
        match (sent, message) {
            (Some(Err(Refused::Full(()))), Some(message)) => Err(SendError::Full(message)),
            (Some(Err(Refused::Closed(()))), Some(message)) => Err(SendError::Closed(message)),
            (None, Some(message)) => Err(SendError::NotFound(message)),
            _ => Ok(()),
        }
    }

    fn send_away<M: Send + 'static>(&self, to: Pid, message: M) -> Result<(), SendError<M>> {
        let Some(relay) = &self.shared.relay else {
            return Err(SendError::NotFound(message));
        };
        match relay.deliver(to, Parcel::Message(Box::new(message))) {
            Ok(()) => Ok(()),
            Err(Parcel::Message(message)) => match message.downcast() {
                Ok(message) => Err(SendError::NotFound(*message)),
                // A relay that hands back something else has lost the message.
                Err(_) => Ok(()),
            },
            Err(_) => Ok(()),
        }
    }

    /// Asks a process to clean up and to end. Returns whether it is there.
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

    /// Ends a process before its next step. Returns whether it is there.
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

    pub(crate) fn kill_for_good(&self, pid: Pid, reason: ExitReason) {
        if let Some(cell) = self.registry().get(pid) {
            cell.kill(reason, true);
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

    /// Tells `by` when `target` ends, by [`Event::Exit`](crate::Event::Exit): with
    /// [`ExitReason::NoProcess`] if it is not there.
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
        let is_here = by.node == self.node();
        if is_here
            && !self
                .registry()
                .get(by)
                .is_some_and(|by| by.monitors(target))
        {
            return;
        }
        if target.node != self.node() {
            self.note_remote(target, by, false);
        }
        if self.route(target, Signal::Monitor { by }).is_err() {
            self.forget_remote(target, by);
            self.no_process(by, target, false);
        } else if is_here && self.registry().get(by).is_none() {
            // Its end has perhaps demonitored the target before the target knew of it.
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
        self.forget_remote(target, by);
        if let Some(by) = self.registry().get(by) {
            by.unmonitor(target);
        }
        drop(self.route(target, Signal::Demonitor { by }));
    }

    /// Links two processes: if one ends abnormally, the other ends for the same reason, or gets
    /// [`Event::Exit`](crate::Event::Exit) if it [traps exits](Spawn::trap_exits). If one has ended
    /// already, the reason is [`ExitReason::NoProcess`].
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
        if self.add_link(a, b) && self.add_link(b, a) && !self.may_notify(a, b) {
            // `a` ended between the two halves. Its end has notified `b`, perhaps before `b` had
            // its half, which nothing else would remove.
            self.forget_remote(b, a);
            drop(self.route(b, Signal::Unlink { with: a }));
        }
    }

    /// Adds one half of a link: `one` will notify `other`. If `one` is not there, notifies `other`,
    /// which removes its half, and returns false.
    fn add_link(&self, one: Pid, other: Pid) -> bool {
        if one.node != self.node() {
            self.note_remote(one, other, true);
        }
        let added = self.route(one, Signal::Link { with: other }).is_ok();
        if !added {
            self.forget_remote(one, other);
            self.forget_remote(other, one);
            self.no_process(other, one, true);
        }
        added
    }

    /// Whether the end of `one` is still to come, of which `other` is to be notified by a link. An
    /// end leaves the registry, and that of a remote process the table, before it notifies.
    fn may_notify(&self, one: Pid, other: Pid) -> bool {
        if one.node == self.node() {
            return self.registry().get(one).is_some();
        }
        let table = self.shared.remote.lock();
        let noted = table.get(&one);
        noted.is_some_and(|watchers| watchers.contains(&(other, true)))
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
            self.forget_remote(one, other);
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

    fn note_remote(&self, remote: Pid, by: Pid, linked: bool) {
        let mut table = self.shared.remote.lock();
        table.entry(remote).or_default().push((by, linked));
    }

    pub(crate) fn forget_remote(&self, remote: Pid, by: Pid) {
        if remote.node == self.node() {
            return;
        }
        let mut table = self.shared.remote.lock();
        if let Some(watchers) = table.get_mut(&remote) {
            watchers.retain(|(pid, _)| *pid != by);
            if watchers.is_empty() {
                table.remove(&remote);
            }
        }
    }

    /// Sends a signal to a process, here or elsewhere.
    pub(crate) fn route(&self, to: Pid, signal: Signal) -> Result<(), Signal> {
        if to.node == self.node() {
            return match self.registry().get(to) {
                Some(cell) => cell.signal(signal),
                None => Err(signal),
            };
        }
        let Some(relay) = &self.shared.relay else {
            return Err(signal);
        };
        match relay.deliver(to, Parcel::Signal(signal)) {
            Err(Parcel::Signal(signal)) => Err(signal),
            _ => Ok(()),
        }
    }

    /// Takes a parcel of another node: what a [`Relay`](crate::Relay) calls.
    ///
    /// ```
    /// use process_scheduler::{Parcel, Scheduler};
    ///
    /// let scheduler = Scheduler::new();
    /// let counter = scheduler.spawn_fn(|_: u32, _| ()).unwrap();
    /// scheduler.deliver(counter.pid(), Parcel::Message(Box::new(7_u32))).unwrap();
    /// assert!(scheduler.deliver(counter.pid(), Parcel::Message(Box::new("text"))).is_err());
    /// ```
    ///
    /// # Errors
    /// Hands the parcel back if there is no such process here, if it takes other messages, or if
    /// its mailbox is full.
    pub fn deliver(&self, to: Pid, parcel: Parcel) -> Result<(), Parcel> {
        if let Parcel::Signal(Signal::Exit { pid, .. }) = &parcel {
            // Also if `to` has ended.
            self.forget_remote(*pid, to);
        }
        let Some(cell) = self.registry().get(to) else {
            return Err(parcel);
        };
        match parcel {
            Parcel::Signal(signal) => cell.signal(signal).map_err(Parcel::Signal),
            Parcel::Message(message) => match cell.send_boxed(message) {
                Ok(()) => Ok(()),
                Err(message) => Err(Parcel::Message(message)),
            },
        }
    }

    /// Tells all processes that monitor or are linked to one of that node that it is down: what a
    /// [`Relay`](crate::Relay) calls.
    ///
    /// ```
    /// # let scheduler = process_scheduler::Scheduler::new();
    /// scheduler.node_down(7);
    /// ```
    pub fn node_down(&self, node: u32) {
        let mut table = self.shared.remote.lock();
        let of_node = |pid: &&Pid| pid.node == node;
        let pids: Vec<_> = table.keys().filter(of_node).copied().collect();
        let taken = pids.into_iter().filter_map(|pid| table.remove_entry(&pid));
        let down: Vec<_> = taken.collect();
        drop(table);
        for (pid, watchers) in down {
            for (by, linked) in watchers {
                let reason = ExitReason::NodeDown;
                let exit = Signal::Exit {
                    pid,
                    reason,
                    linked,
                };
                drop(self.route(by, exit));
            }
        }
    }

    /// Returns this node.
    pub fn node(&self) -> u32 {
        self.registry().node()
    }

    /// Gives a process a name. False if the name is taken, or the process is not here.
    ///
    /// ```
    /// let scheduler = process_scheduler::Scheduler::new();
    /// let [a, b] = [(); 2].map(|()| scheduler.spawn_fn(|_: u8, _| ()).unwrap());
    /// assert!(scheduler.register("primary", a.pid()));
    /// assert!(!scheduler.register("primary", b.pid()));
    /// assert!(scheduler.named::<u8>("primary").is_some());
    /// assert!(scheduler.unregister("primary"));
    /// assert!(scheduler.register("primary", b.pid()));
    /// ```
    pub fn register(&self, name: &str, pid: Pid) -> bool {
        let Some(cell) = self.registry().get(pid) else {
            return false;
        };
        let mut names = self.shared.names.lock();
        let added = !names.contains_key(name) && cell.name(name.to_owned(), false);
        if added {
            names.insert(name.to_owned(), pid);
        }
        added
    }

    /// Removes a registered name. False if no process has it.
    pub fn unregister(&self, name: &str) -> bool {
        let cell;
        let mut names = self.shared.names.lock();
        let Some(pid) = names.remove(name) else {
            return false;
        };
        cell = self.registry().get(pid);
        cell.iter().for_each(|cell| cell.unname(name));
        true
    }

    /// Returns the process with a name.
    pub fn whereis(&self, name: &str) -> Option<Pid> {
        self.shared.names.lock().get(name).copied()
    }

    /// Returns the address of the process with a name, if it takes such messages.
    pub fn named<M: Send + 'static>(&self, name: &str) -> Option<Address<M>> {
        self.address(self.whereis(name)?)
    }

    pub(crate) fn unname(&self, name: &str, pid: Pid) {
        let mut names = self.shared.names.lock();
        if names.get(name) == Some(&pid) {
            names.remove(name);
        }
    }

    /// Adds a process to a group. False if it is not here.
    ///
    /// ```
    /// let scheduler = process_scheduler::Scheduler::new();
    /// let (sender, seen) = std::sync::mpsc::channel();
    /// for _ in 0..3 {
    ///     let sender = sender.clone();
    ///     let reader = scheduler.spawn_fn(move |n: u32, _| sender.send(n).unwrap()).unwrap();
    ///     assert!(scheduler.join("readers", reader.pid()));
    /// }
    /// assert_eq!(scheduler.publish("readers", &7_u32), 3);
    /// assert_eq!(seen.iter().take(3).sum::<u32>(), 21);
    /// let first = scheduler.members("readers")[0];
    /// scheduler.leave("readers", first);
    /// assert_eq!(scheduler.members("readers").len(), 2);
    /// ```
    pub fn join(&self, group: &str, pid: Pid) -> bool {
        let Some(cell) = self.registry().get(pid) else {
            return false;
        };
        let mut groups = self.shared.groups.lock();
        if groups.get(group).is_some_and(|pids| pids.contains(&pid)) {
            return true;
        }
        let added = cell.name(group.to_owned(), true);
        if added {
            groups.entry(group.to_owned()).or_default().push(pid);
        }
        added
    }

    /// Takes a process out of a group.
    pub fn leave(&self, group: &str, pid: Pid) {
        let cell = self.registry().get(pid);
        let mut groups = self.shared.groups.lock();
        remove_member(&mut groups, group, pid);
        cell.iter().for_each(|cell| cell.leave(group));
    }

    pub(crate) fn ungroup(&self, group: &str, pid: Pid) {
        remove_member(&mut self.shared.groups.lock(), group, pid);
    }

    /// Returns the processes of a group.
    pub fn members(&self, group: &str) -> Vec<Pid> {
        let groups = self.shared.groups.lock();
        groups.get(group).cloned().unwrap_or_default()
    }

    /// Sends a copy of a message to each process of a group that takes such messages. Returns how
    /// many accepted it.
    pub fn publish<M: Clone + Send + 'static>(&self, group: &str, message: &M) -> usize {
        let members = self.members(group).into_iter();
        let sent = members.filter(|pid| self.try_send(*pid, message.clone()).is_ok());
        sent.count()
    }

    /// Returns the live processes, in no order.
    pub fn list(&self) -> Vec<Pid> {
        let all = self.registry().all();
        all.iter().map(|cell| cell.pid()).collect()
    }

    /// Says what can be said of a process here.
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

    /// Returns a future of a process's end: [`ExitReason::NoProcess`] if it is not here.
    pub fn exit_of(&self, pid: Pid) -> Exit {
        let (sender, receiver) = oneshot::channel();
        let watcher = Watcher::Thread(sender);
        if let Some(cell) = self.registry().get(pid) {
            drop(cell.watch(watcher));
        }
        Exit { receiver }
    }

    /// Blocks the thread until a process has ended: [`ExitReason::NoProcess`] if it is not here.
    ///
    /// Not for processes, whose worker it would block: they [`monitor`](Self::monitor).
    pub fn wait(&self, pid: Pid) -> ExitReason {
        self.exit_of(pid).wait()
    }

    /// Returns a future that is ready after a time, for processes and for other tasks.
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
        Sleep(Deadline::new(self.timer(), time))
    }

    /// Returns the counters.
    pub fn metrics(&self) -> Metrics {
        self.shared.counters.snapshot(self.shared.live())
    }

    #[inline]
    pub(crate) fn submit(&self, runnable: Runnable) {
        worker::submit(&self.shared, runnable);
    }

    #[inline]
    pub(crate) fn registry(&self) -> &Registry {
        &self.shared.registry
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    pub(crate) fn timer(&self) -> &Timer {
        &self.shared.timer
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    pub(crate) fn ended(&self) {
        self.shared.ended();
    }
}

fn remove_member(groups: &mut HashMap<String, Vec<Pid>>, group: &str, pid: Pid) {
    if let Some(members) = groups.get_mut(group) {
        members.retain(|member| *member != pid);
        if members.is_empty() {
            groups.remove(group);
        }
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

/// The future of [`Handle::exit_of`].
///
/// ```
/// use process_scheduler::{ExitReason, Flow, Scheduler};
///
/// let scheduler = Scheduler::new();
/// let once = scheduler.spawn_fn(|_: u8, _| Flow::Stop).unwrap();
/// let exit = scheduler.exit_of(once.pid());
/// once.try_send(1).unwrap();
/// assert_eq!(exit.wait(), ExitReason::Normal);
/// ```
#[must_use = "the reason is in the future"]
pub struct Exit {
    receiver: oneshot::Receiver<ExitReason>,
}

impl Exit {
    /// Blocks the thread until the process has ended.
    pub fn wait(self) -> ExitReason {
        block_on(&mut ThreadPark::new(), self)
    }
}

impl Future for Exit {
    type Output = ExitReason;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<ExitReason> {
        let reason = self.receiver.poll(cx);
        reason.map(|reason| reason.unwrap_or(ExitReason::NoProcess))
    }
}

impl fmt::Debug for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Exit")
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

    /// Fails if the table of relations to remote processes keeps a local process that has ended.
    #[test]
    fn ended_process_leaves_no_relation_to_remote_ones() {
        let loopback = Loopback::new();
        let [here, there] = [1, 2].map(|node| {
            let builder = Scheduler::builder().workers(1).node(node);
            let scheduler = builder.relay(loopback.clone()).build();
            loopback.connect(&scheduler);
            scheduler
        });
        let relate: [fn(&Scheduler, Pid, Pid); 3] = [
            |here, near, far| here.link(near, far),
            |here, near, far| here.link(far, near),
            |here, near, far| here.monitor(near, far),
        ];
        for relate in relate {
            let (near, far) = (still(&here), still(&there));
            relate(&here, near, far);
            assert_eq!(here.shared.remote.lock().len(), 1);
            end(&here, near);
            assert_eq!(here.shared.remote.lock().len(), 0);
            relate(&here, near, far);
            assert_eq!(here.shared.remote.lock().len(), 0);
        }
    }
}
