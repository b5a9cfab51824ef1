//! Spawns: settings, and the way of a new process into the tables and to its first step.
use crate::{
    Address, ExitReason, Handle, Handler, Input, Mailbox, Pid, Process, SpawnError,
    address::Receive,
    cell::{CellParts, ProcessCell},
    guard::{Guarded, drop_guarded},
    handler::guarded_handler,
    process::HandlerOf,
    supervised::{Restart, RestartSettings},
};
use std::{
    any::{Any, TypeId},
    fmt,
    panic::Location,
    sync::Arc,
};

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

    /// Sets the method that [`Process::init`] gets: the empty one by default.
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

    /// Sets the closure that makes the input of [`Process::init`]: no input by default. Each
    /// restart calls the closure again.
    ///
    /// ```
    /// use process_scheduler::{Input, Spawn};
    ///
    /// let spawn = Spawn::new().method("serve").input(|| Input::new(8080_u16));
    /// # let _ = spawn;
    /// ```
    pub fn input(mut self, input: impl Fn() -> Input + Send + Sync + 'static) -> Self {
        let input = Guarded::new(input);
        self.input = Some(Arc::new(move || (*input)()));
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
        self.handler = Some(Arc::new(guarded_handler(handler)));
        self
    }

    /// Sets whether the end of a linked process is an event for this process. By default it is not,
    /// and an abnormal end of a linked process ends this process too.
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

impl Handle {
    /// Spawns a process with the default settings.
    ///
    /// # Errors
    /// As [`spawn_process`](Self::spawn_process).
    #[track_caller]
    pub fn spawn<P: Process>(&self, process: P) -> Result<Address<P::Message>, SpawnError> {
        self.spawn_process(process, Spawn::new())
    }

    /// Spawns a process. Its `init` runs before this function returns. Its first step runs on a
    /// worker.
    ///
    /// A spawn costs one allocation, if the process has neither name nor group.
    ///
    /// # Errors
    /// If the scheduler shuts down or is full, the name is taken, the handler of `spawn` is for
    /// commands of another type, or the process's `init` fails.
    #[track_caller]
    pub fn spawn_process<P: Process>(
        &self,
        process: P,
        spawn: Spawn,
    ) -> Result<Address<P::Message>, SpawnError> {
        self.spawn_supervised(process, spawn, None, |_| ())
    }

    /// Spawns a process as [`spawn_process`](Self::spawn_process) does, and calls `then` after its
    /// `init` and before its first step. So a link or a monitor that `then` makes misses no exit. A
    /// panic of `then` is dropped.
    ///
    /// ```
    /// use process_scheduler::{ExitReason, Scheduler, Spawn, from_async};
    ///
    /// let scheduler = Scheduler::new();
    /// let guard = scheduler.spawn_fn(|_: u8, _| ()).unwrap();
    /// let end = scheduler.exit_of(guard.pid());
    /// let brief = from_async(|_: process_scheduler::Inbox<u8>| async { Err::<(), _>("too brief") });
    /// scheduler
    ///     .spawn_process_then(brief, Spawn::new(), |pid| scheduler.link(guard.pid(), pid))
    ///     .unwrap();
    /// assert_eq!(end.wait(), ExitReason::failed("too brief"));
    /// ```
    ///
    /// # Errors
    /// As `spawn_process`. `then` is not called.
    #[track_caller]
    pub fn spawn_process_then<P: Process>(
        &self,
        process: P,
        spawn: Spawn,
        then: impl FnOnce(Pid),
    ) -> Result<Address<P::Message>, SpawnError> {
        self.spawn_supervised(process, spawn, None, then)
    }

    #[track_caller]
    pub(crate) fn spawn_supervised<P: Process>(
        &self,
        process: P,
        spawn: Spawn,
        settings: Option<RestartSettings<P>>,
        then: impl FnOnce(Pid),
    ) -> Result<Address<P::Message>, SpawnError> {
        let made_at = settings.as_ref().map(|settings| settings.made_at);
        let made_at = made_at.unwrap_or(Location::caller());
        // If the spawn is refused, or the closure of the input panics, the process is dropped under
        // a guard of its own. That closure runs before the process is in any table.
        let process = Guarded::new(process);
        let input = spawn
            .input
            .as_ref()
            .map_or_else(Input::none, |input| input());
        let handler = self.handler_of::<P>(&spawn)?;
        let refused = |_: &SpawnError| self.counters().refused();
        let cell = self.prepare(process, &spawn, handler, settings);
        let cell = cell.inspect_err(refused)?;
        let receiver: Arc<dyn Receive<P::Message>> = cell.clone();
        let (name, method) = (spawn.name.as_deref(), &*spawn.method);
        let started = cell.start(self, name, method, input, made_at, then);
        started.inspect_err(refused)?;
        Ok(Address::new(receiver))
    }

    /// Makes a process with its pid, its name and its groups. The process does not run yet.
    fn prepare<P: Process>(
        &self,
        process: Guarded<P>,
        spawn: &Spawn,
        handler: Option<HandlerOf<P>>,
        settings: Option<RestartSettings<P>>,
    ) -> Result<Arc<ProcessCell<P>>, SpawnError> {
        if !self.shared.begin() {
            return Err(SpawnError::Full);
        }
        let restart = settings.map(|child| {
            Box::new(Restart {
                child,
                method: spawn.method.clone(),
                input: spawn.input.clone(),
                last_exit: ExitReason::Killed,
            })
        });
        let cell = ProcessCell::new(CellParts {
            body: process.into_inner(),
            node: self.node(),
            handle: self.clone(),
            handler,
            mailbox: spawn.mailbox.unwrap_or(self.shared.config.mailbox),
            traps_exits: spawn.traps_exits,
            restart,
        });
        let inserted = self.registry().insert(cell, ProcessCell::set_pid);
        let cell = inserted.map_err(|(cell, error)| {
            // The count first: the drop is user code, which may take long.
            self.ended();
            drop_guarded(cell);
            error
        })?;
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
        if self.shared.config.handlers.is_empty() {
            return Ok(None);
        }
        let key = TypeId::of::<(P::Cmd, P::Output, P::Error)>();
        let handler = self.shared.config.handlers.get(&key);
        Ok(handler
            .and_then(|any| any.downcast_ref::<HandlerOf<P>>())
            .cloned())
    }
}
