//! The allocation of a process, and the way in which a worker runs the process.
//!
//! | field | who touches it |
//! |---|---|
//! | `core` | all threads: see `core.rs` |
//! | `inner` | the owner of the token |
//! | `related` | all threads, under its lock |
//! | the others | written once |
//!
//! # Rules
//!
//! 1. The token of a process is its [`Runnable`], an `Arc` of the cell: its owner may run the
//!    process. A cell is freed when the token, the registry's `Arc`, and all addresses, wakers and
//!    completers are gone.
//! 2. `inner` belongs to the owner of the token. User code that runs meanwhile reaches the cell
//!    only through `core` and `related`.
//! 3. A body is moved out of `inner` once, and is then closed and dropped.
//! 4. User code (a step, a close, a drop, a handler, a waker, a relay) runs under `catch_unwind`,
//!    and outside of every lock.
use crate::{
    Handle, Pid, SendError,
    address::Receive,
    core::Core,
    error::{ExitReason, InitError, SpawnError},
    guard::{drop_guarded, guarded},
    handler::{CommandError, Complete, Completer, HandlerOf},
    lane::{Key, Mailbox, Refused, Taken},
    oneshot,
    process::{
        BoxProcess, CancelReason, Context, CoreOf, Events, Input, Pending, Process, Step,
        StepOutput, Urgent,
    },
    relay::Signal,
    state::{Phase, Wait},
    supervisor::Policy,
    worker::{Runnable, Slice},
};
use queue_global::mpsc::Batch;
use std::{
    any::Any,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::{Poll, Wake, Waker},
};
use sync_shim::{cell::UnsafeCell, sync::Mutex};
use waker_vtable::WakerRef;

pub(crate) struct Cell<P: Process> {
    core: CoreOf<P::Message, P::Output, P::Error>,
    inner: UnsafeCell<Inner<P>>,
    related: Mutex<Related>,
    handle: Handle,
    handler: Option<HandlerOf<P>>,
    pid: Pid,
    traps_exits: bool,
}

// SAFETY: the core is `Sync`. The owner of the token alone touches `inner`, whose parts are `Send`
// (rule 2). The others are `Sync`.
unsafe impl<P: Process> Sync for Cell<P> {}
// SAFETY: a cell owns its parts, which are `Send`.
unsafe impl<P: Process> Send for Cell<P> {}

struct Inner<P: Process> {
    body: Body<P>,
    pending: Pending<P::Message, P::Output, P::Error>,
    waits: Option<Wait>,
    cancelled: bool,
    restart: Option<Box<Restart<P>>>,
}

enum Body<P: Process> {
    Own(P),
    Upgraded(BoxProcess<P::Message, P::Cmd, P::Output, P::Error>),
    Closed,
}

/// How a supervisor restarts a process.
pub(crate) struct Restart<P> {
    pub(crate) supervisor: Pid,
    pub(crate) policy: Policy,
    pub(crate) keep_mail: bool,
    pub(crate) make: Arc<dyn Fn() -> P + Send + Sync>,
    pub(crate) method: String,
    pub(crate) input: Option<Arc<dyn Fn() -> Input + Send + Sync>>,
    /// The reason of its last end.
    pub(crate) last: ExitReason,
}

/// The relations of a process to other processes.
enum Related {
    None,
    Some(Box<More>),
    Ended,
}

#[derive(Default)]
struct More {
    links: Vec<Pid>,
    watchers: Vec<Watcher>,
    /// The processes that this one watches.
    monitored: Vec<Pid>,
    names: Vec<String>,
    groups: Vec<String>,
    killed: Option<ExitReason>,
    supervisor: Option<Pid>,
}

impl More {
    /// Takes out the threads that wait no longer, whenever the list would grow. Then half of its
    /// room is free, so that the cost of a look is spread over as many new watchers.
    fn take_abandoned(&mut self) -> Vec<Watcher> {
        if self.watchers.len() < self.watchers.capacity() {
            return Vec::new();
        }
        let all = mem::take(&mut self.watchers).into_iter();
        let (abandoned, mut rest): (_, Vec<_>) = all.partition(Watcher::is_abandoned);
        rest.reserve(rest.len() + 1);
        self.watchers = rest;
        abandoned
    }
}

/// A process or thread that is notified of the process's end.
pub(crate) enum Watcher {
    Process(Pid),
    Thread(oneshot::Sender<ExitReason>),
}

impl Watcher {
    fn is_abandoned(&self) -> bool {
        matches!(self, Self::Thread(sender) if sender.is_abandoned())
    }
}

/// The state of any process. See [`Handle::inspect`].
///
/// ```
/// use process_scheduler::{Phase, Scheduler, Spawn};
///
/// let scheduler = Scheduler::new();
/// let spawn = Spawn::new().name("clerk");
/// let clerk = scheduler.spawn_with(spawn, |_: u8, _| ()).unwrap();
/// let info = scheduler.inspect(clerk.pid()).unwrap();
/// assert_eq!(info.names, ["clerk"]);
/// assert_ne!(info.phase, Phase::Done);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Info {
    /// The pid.
    pub pid: Pid,
    /// The phase of its life.
    pub phase: Phase,
    /// The name of its type, before upgrades.
    pub kind: &'static str,
    /// Its names.
    pub names: Vec<String>,
    /// Its groups.
    pub groups: Vec<String>,
    /// The processes that it is linked to.
    pub links: Vec<Pid>,
    /// Its supervisor.
    pub supervisor: Option<Pid>,
    /// The number of messages in its mailbox. `None` if the mailbox is unbounded and not empty.
    pub messages: Option<usize>,
    /// The number of its restarts.
    pub restarts: u32,
}

/// The cell of a process of any type.
pub(crate) trait AnyCell: Send + Sync {
    /// Runs the process until it waits, ends, or has used up the slice. In the last case it returns
    /// the token.
    fn run(self: Arc<Self>, slice: &mut Slice<'_>) -> Option<Runnable>;
    /// Restarts a stopped process.
    fn revive(self: Arc<Self>);
    fn pid(&self) -> Pid;
    /// Takes the message out, if the process accepts its type.
    fn send_any(&self, message: &mut dyn Any) -> Option<Result<(), Refused<()>>>;
    /// Hands the message back if it is not accepted.
    fn send_boxed(&self, message: Box<dyn Any + Send>) -> Result<(), Box<dyn Any + Send>>;
    /// A boxed `Arc<dyn Receive<M>>`.
    fn receiver(self: Arc<Self>) -> Box<dyn Any>;
    /// Hands the signal back if the process has ended.
    fn signal(&self, signal: Signal) -> Result<(), Signal>;
    fn kill(&self, reason: ExitReason, is_final: bool);
    /// Hands the watcher back if the process has ended.
    fn watch(&self, watcher: Watcher) -> Result<(), Watcher>;
    /// Notes that this process monitors another. False if it has ended.
    fn monitors(&self, target: Pid) -> bool;
    fn unmonitor(&self, target: Pid);
    fn name(&self, name: String, is_group: bool) -> bool;
    fn unname(&self, name: &str);
    fn leave(&self, group: &str);
    fn info(&self) -> Info;
}

/// The parts of a new cell.
pub(crate) struct Parts<P: Process> {
    pub(crate) body: P,
    /// The node of its pid.
    pub(crate) node: u32,
    pub(crate) handle: Handle,
    pub(crate) handler: Option<HandlerOf<P>>,
    pub(crate) mailbox: Mailbox,
    pub(crate) traps_exits: bool,
    pub(crate) restart: Option<Box<Restart<P>>>,
}

impl<P: Process> Cell<P> {
    pub(crate) fn new(parts: Parts<P>) -> Arc<Self> {
        let related = match &parts.restart {
            None => Related::None,
            Some(restart) => Related::Some(Box::new(More {
                supervisor: Some(restart.supervisor),
                ..More::default()
            })),
        };
        Arc::new(Self {
            core: CoreOf::<P::Message, P::Output, P::Error>::new(parts.mailbox),
            inner: UnsafeCell::new(Inner {
                body: Body::Own(parts.body),
                pending: Pending {
                    urgent: Batch::default(),
                    messages: Taken::default(),
                },
                waits: None,
                cancelled: false,
                restart: parts.restart,
            }),
            related: Mutex::new(related),
            handle: parts.handle,
            handler: parts.handler,
            pid: Pid::none(parts.node),
            traps_exits: parts.traps_exits,
        })
    }

    /// Sets the pid of a new cell, before anything but the registry has it.
    pub(crate) fn set_pid(&mut self, pid: Pid) {
        self.pid = pid;
    }

    /// Returns the pid of a cell that has a slot.
    pub(crate) fn own_pid(&self) -> Pid {
        self.pid
    }

    fn submit(&self, token: Option<Runnable>) {
        if let Some(token) = token {
            self.handle.submit(token);
        }
    }

    /// Calls the body's `init`. Only the owner of the token calls this.
    fn init(
        self: &Arc<Self>,
        inner: &mut Inner<P>,
        method: &str,
        input: Input,
    ) -> Result<(), SpawnError> {
        let cx = Context {
            pid: self.pid,
            handle: &self.handle,
            receiver: self.clone(),
            method: std::marker::PhantomData,
        };
        let Body::Own(body) = &mut inner.body else {
            return Err(SpawnError::Closed);
        };
        match catch_unwind(AssertUnwindSafe(|| body.init(&cx, method, input))) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(InitError::UnknownMethod)) => Err(SpawnError::UnknownMethod(method.to_owned())),
            Ok(Err(InitError::Failed(why))) => Err(SpawnError::Init(why)),
            Err(panic) => {
                let ExitReason::Panicked(why) = panicked(panic) else {
                    unreachable!("it panicked")
                };
                Err(SpawnError::Panicked(why))
            }
        }
    }

    /// Ends a new process that was never started: the caller has the token.
    pub(crate) fn abandon(self: Arc<Self>) {
        self.core.state.begin();
        let inner = self.inner.with_mut(|inner| inner);
        // SAFETY: rule 2: a new cell's token is with the caller.
        let inner = unsafe { &mut *inner };
        drop_guarded(inner.restart.take());
        close(inner);
        self.end(inner, ExitReason::NoProcess);
    }

    /// Starts a new process: the caller has the token, which this submits.
    pub(crate) fn start(
        self: Arc<Self>,
        handle: &Handle,
        method: &str,
        input: Input,
    ) -> Result<(), SpawnError> {
        let inner = self.inner.with_mut(|inner| inner);
        // SAFETY: rule 2: a new cell's token is with the caller.
        let inner = unsafe { &mut *inner };
        if let Err(error) = self.init(inner, method, input) {
            self.core.state.begin();
            close(inner);
            // If `init` fails, the spawner gets the error, and the supervisor does not restart the
            // process.
            drop_guarded(inner.restart.take());
            self.end(inner, ExitReason::failed(&error));
            return Err(error);
        }
        handle.submit(Runnable(self));
        Ok(())
    }

    /// Ends this incarnation, and closes the body (rule 3). Then the supervisor may restart the
    /// process.
    ///
    /// # Safety
    /// The caller has the token, which this takes over, and uses no reference to `inner` any more.
    /// The process runs.
    unsafe fn finish(self: Arc<Self>, reason: ExitReason) {
        let inner = self.inner.with_mut(|inner| inner);
        // SAFETY: rule 2: the caller's promise.
        let Some(supervisor) = self.close(unsafe { &mut *inner }, &reason) else {
            // SAFETY: as above.
            return self.end(unsafe { &mut *inner }, reason);
        };
        let (handle, pid) = (self.handle.clone(), self.pid);
        let this = Arc::as_ptr(&self);
        // SAFETY: the token, which is this thread's, keeps the cell live.
        let core = unsafe { &raw const (*this).core };
        // SAFETY: as above. `this` is not used after `None`.
        if let Some(token) = unsafe { Core::stop(core, Runnable(self)) } {
            // SAFETY: the token keeps the cell live.
            let this = unsafe { &*this };
            // SAFETY: rule 2: this has the token.
            this.end(unsafe { &mut *inner }, reason);
            drop(token);
            return;
        }
        let exit = Signal::Exit {
            pid,
            reason,
            linked: false,
        };
        // The supervisor is a process of this scheduler, so `route` takes a lock of the registry,
        // after the stop and before the load of `is_closed`. A shutdown takes all these locks
        // between its store and its look for stopped processes. So one of the two sees the other.
        let routed = guarded(|| handle.route(supervisor, exit).is_ok());
        if routed != Some(true) || handle.is_closed() {
            // Nobody is left to restart it.
            handle.kill_for_good(pid, ExitReason::Killed);
        }
    }

    /// Closes the body. Returns the supervisor if it may restart the process.
    fn close(&self, inner: &mut Inner<P>, reason: &ExitReason) -> Option<Pid> {
        if !matches!(inner.body, Body::Closed) {
            self.handle.counters().exited(reason);
        }
        close(inner);
        let supervised = inner.restart.as_mut();
        let restart = supervised.filter(|restart| restart.policy != Policy::Temporary)?;
        if self.core.state.is_final() {
            return None;
        }
        restart.last = reason.clone();
        let (supervisor, keep_mail) = (restart.supervisor, restart.keep_mail);
        if !keep_mail {
            mem::take(&mut inner.pending.messages).for_each(|message| self.dead_letter(message));
            let mut left = Taken::default();
            self.core.messages.take(&mut left);
            left.for_each(|message| self.dead_letter(message));
        }
        drop_guarded(mem::take(&mut inner.pending.urgent));
        Some(supervisor)
    }

    fn dead_letter(&self, message: P::Message) {
        self.handle.counters().dead_letter();
        drop_guarded(message);
    }

    /// Ends the process for good. Only the owner of the token calls this.
    fn end(&self, inner: &mut Inner<P>, reason: ExitReason) {
        let (urgent, messages) = self.core.end();
        drop_guarded(urgent);
        drop_guarded(mem::take(&mut inner.pending.urgent));
        mem::take(&mut inner.pending.messages).for_each(|message| self.dead_letter(message));
        messages.for_each(|message| self.dead_letter(message));
        let restart = inner.restart.take();
        let supervisor = restart.as_ref().map(|restart| restart.supervisor);
        drop_guarded(restart);
        let related = mem::replace(&mut *self.related.lock(), Related::Ended);
        let mut watchers = Vec::new();
        let mut links = Vec::new();
        let mut monitored = Vec::new();
        if let Related::Some(more) = related {
            for name in more.names {
                self.handle.unname(&name, self.pid);
            }
            for group in more.groups {
                self.handle.ungroup(&group, self.pid);
            }
            watchers = more.watchers;
            links = more.links;
            monitored = more.monitored;
        }
        self.handle.registry().remove(self.pid);
        let pid = self.pid;
        let exit = |linked| Signal::Exit {
            pid,
            reason: reason.clone(),
            linked,
        };
        for linked in links {
            self.handle.forget_remote(linked, pid);
            guarded(|| drop(self.handle.route(linked, exit(true))));
        }
        for target in monitored {
            guarded(|| self.handle.demonitor(pid, target));
        }
        for watcher in watchers {
            match watcher {
                Watcher::Process(by) => {
                    guarded(|| drop(self.handle.route(by, exit(false))));
                }
                Watcher::Thread(sender) => drop(sender.send(reason.clone())),
            }
        }
        if let Some(supervisor) = supervisor {
            guarded(|| drop(self.handle.route(supervisor, exit(false))));
        }
        self.handle.ended();
    }

    /// Changes the relations by `f`. `None` if the process has ended.
    fn relate<R>(&self, f: impl FnOnce(&mut More) -> R) -> Option<R> {
        let mut related = self.related.lock();
        if let Related::None = *related {
            *related = Related::Some(Box::default());
        }
        match &mut *related {
            Related::Some(more) => Some(f(more)),
            _ => None,
        }
    }

    /// The reason of a kill.
    fn killed(&self) -> ExitReason {
        let killed = self.relate(|more| more.killed.take()).flatten();
        killed.unwrap_or(ExitReason::Killed)
    }

    /// Hands the commands of a step to the handler.
    fn dispatch(self: &Arc<Self>, commands: Vec<(u64, P::Cmd)>, incarnation: u32) {
        for (tag, command) in commands {
            let Some(handler) = &self.handler else {
                drop_guarded(command);
                let result = Err(CommandError::NoHandler);
                drop(Complete::complete(&**self, tag, incarnation, result));
                continue;
            };
            let completer = Completer {
                target: Some(self.clone()),
                pid: self.pid,
                tag,
                incarnation,
            };
            guarded(|| handler.handle(command, completer));
        }
    }
}

/// The drop of a handler is user code, and the last `Arc` may be a worker's.
impl<P: Process> Drop for Cell<P> {
    fn drop(&mut self) {
        drop_guarded(self.handler.take());
    }
}

/// Rule 3: closes and drops the body, once.
fn close<P: Process>(inner: &mut Inner<P>) {
    match mem::replace(&mut inner.body, Body::Closed) {
        Body::Own(mut body) => {
            guarded(|| body.close());
            drop_guarded(body);
        }
        Body::Upgraded(mut body) => {
            guarded(|| body.close());
            drop_guarded(body);
        }
        Body::Closed => {}
    }
}

/// The reason of a panic. Its payload is dropped, and leaks if that panics too.
fn panicked(panic: Box<dyn Any + Send>) -> ExitReason {
    let reason = ExitReason::panicked(&*panic);
    drop_guarded(panic);
    reason
}

impl<P: Process> AnyCell for Cell<P> {
    fn run(self: Arc<Self>, slice: &mut Slice<'_>) -> Option<Runnable> {
        let woken = self.core.state.begin();
        let inner = self.inner.with_mut(|inner| inner);
        // SAFETY: rule 2: the caller gave the token. The reference is not used after the token has
        // left.
        let inner = unsafe { &mut *inner };
        let incarnation = self.core.state.incarnation();
        let mut must_step = woken || inner.waits.is_none();
        loop {
            if self.core.state.is_killed() {
                let reason = self.killed();
                let reason = match (&inner.body, &inner.restart) {
                    // The process had ended before, and is not restarted any more.
                    (Body::Closed, Some(restart)) => restart.last.clone(),
                    _ => reason,
                };
                // SAFETY: this has the token, and `inner` is not used any more.
                unsafe { self.finish(reason) };
                return None;
            }
            let has_urgent = !inner.pending.urgent.is_empty() || self.core.has_urgent();
            let has_messages = |inner: &Inner<P>| {
                !inner.pending.messages.is_empty() || !self.core.messages.is_empty()
            };
            let may_wait = match inner.waits {
                Some(Wait::Blocked) => !has_urgent,
                _ => !has_urgent && !has_messages(inner),
            };
            if let (Some(wait), true, false) = (inner.waits, may_wait, must_step) {
                let this = Arc::as_ptr(&self);
                // SAFETY: the token, which is this thread's, keeps the cell live.
                let core = unsafe { &raw const (*this).core };
                // SAFETY: as above. `core` and `inner` are not used any more.
                return unsafe { Core::suspend(core, Runnable(self), wait) };
            }
            must_step = false;
            slice.steps_left -= 1;
            slice.count_step();
            let waker = WakerRef::from_wake(&self);
            let mut events = Events {
                core: &self.core,
                pending: &mut inner.pending,
                incarnation,
                messages_left: slice.messages,
                delivered: 0,
                cancelled: &mut inner.cancelled,
            };
            let mut output = StepOutput {
                commands: Vec::new(),
                pid: self.pid,
                handle: &self.handle,
                waker: &waker,
            };
            let stepped = catch_unwind(AssertUnwindSafe(|| match &mut inner.body {
                Body::Own(body) => body.step(&mut events, &mut output),
                Body::Upgraded(body) => body.step(&mut events, &mut output),
                Body::Closed => Step::Done,
            }));
            slice.count_delivered(events.delivered);
            let commands = output.commands;
            if !commands.is_empty() {
                self.dispatch(commands, incarnation);
            }
            let reason = match stepped {
                Ok(Step::Idle) => {
                    inner.waits = Some(Wait::Idle);
                    None
                }
                Ok(Step::Blocked) => {
                    inner.waits = Some(Wait::Blocked);
                    None
                }
                Ok(Step::Continue) => {
                    inner.waits = None;
                    must_step = true;
                    None
                }
                Ok(Step::Upgrade(body)) => {
                    close(inner);
                    inner.body = Body::Upgraded(body);
                    inner.waits = None;
                    must_step = true;
                    None
                }
                Ok(Step::Done) if inner.cancelled => Some(ExitReason::Cancelled),
                Ok(Step::Done) => Some(ExitReason::Normal),
                Ok(Step::Failed(reason)) => Some(reason),
                Err(panic) => {
                    slice.count_panic();
                    Some(panicked(panic))
                }
            };
            if let Some(reason) = reason {
                // SAFETY: this has the token, and `inner` is not used any more.
                unsafe { self.finish(reason) };
                return None;
            }
            if slice.steps_left == 0 {
                self.core.state.requeue();
                return Some(Runnable(self));
            }
        }
    }

    fn revive(self: Arc<Self>) {
        // Under one lock, as in `kill`: the bit goes with its reason.
        let token = self.relate(|more| {
            let token = self.core.revive()?;
            more.killed = None;
            Some(token)
        });
        let Some(token) = token.flatten() else {
            return;
        };
        self.core.state.begin();
        let inner = self.inner.with_mut(|inner| inner);
        // SAFETY: rule 2: this has the token.
        let inner = unsafe { &mut *inner };
        inner.waits = None;
        inner.cancelled = false;
        let Some(restart) = &inner.restart else {
            unreachable!("a process that is not supervised does not stop")
        };
        let (make, method) = (restart.make.clone(), restart.method.clone());
        let input = restart.input.clone();
        let made = catch_unwind(AssertUnwindSafe(move || {
            (make(), input.map_or_else(Input::none, |input| input()))
        }));
        let started = match made {
            Ok((body, input)) => {
                inner.body = Body::Own(body);
                let started = self.init(inner, &method, input);
                started.map_err(|error| ExitReason::failed(&error))
            }
            Err(panic) => Err(panicked(panic)),
        };
        match started {
            Ok(()) => {
                self.core.state.requeue();
                self.submit(Some(token));
            }
            Err(reason) => {
                // The other `Arc` of the same token.
                drop(token);
                // SAFETY: this has the token, and `inner` is not used any more.
                unsafe { self.finish(reason) };
            }
        }
    }

    fn pid(&self) -> Pid {
        self.pid
    }

    fn send_any(&self, message: &mut dyn Any) -> Option<Result<(), Refused<()>>> {
        let place = message.downcast_mut::<Option<P::Message>>()?;
        let message = place.take()?;
        Some(self.send(message).map_err(|refused| {
            let (kind, message) = match refused {
                SendError::Full(message) => (Refused::Full(()), message),
                SendError::Closed(message) | SendError::NotFound(message) => {
                    (Refused::Closed(()), message)
                }
            };
            *place = Some(message);
            kind
        }))
    }

    fn send_boxed(&self, message: Box<dyn Any + Send>) -> Result<(), Box<dyn Any + Send>> {
        let message: Box<P::Message> = message.downcast()?;
        match self.send(*message) {
            Ok(()) => Ok(()),
            Err(refused) => Err(Box::new(refused.into_inner())),
        }
    }

    fn receiver(self: Arc<Self>) -> Box<dyn Any> {
        let receiver: Arc<dyn Receive<P::Message>> = self;
        Box::new(receiver)
    }

    fn signal(&self, signal: Signal) -> Result<(), Signal> {
        let urgent = match signal {
            Signal::Kill => {
                self.kill(ExitReason::Killed, false);
                return Ok(());
            }
            Signal::Monitor { by } => {
                let watched = self.watch(Watcher::Process(by));
                return watched.map_err(|_| Signal::Monitor { by });
            }
            Signal::Demonitor { by } => {
                self.relate(|more| {
                    let is_by = |w: &Watcher| matches!(w, Watcher::Process(pid) if *pid == by);
                    more.watchers.retain(|watcher| !is_by(watcher));
                });
                return Ok(());
            }
            Signal::Link { with } => {
                let linked = self.relate(|more| {
                    if !more.links.contains(&with) {
                        more.links.push(with);
                    }
                });
                return linked.ok_or(Signal::Link { with });
            }
            Signal::Unlink { with } => {
                self.relate(|more| more.links.retain(|pid| *pid != with));
                return Ok(());
            }
            Signal::Exit {
                pid,
                reason,
                linked,
            } => {
                if linked {
                    self.relate(|more| more.links.retain(|other| *other != pid));
                    if !self.traps_exits {
                        if reason.is_abnormal() {
                            self.kill(reason, false);
                        }
                        return Ok(());
                    }
                } else {
                    self.unmonitor(pid);
                }
                Urgent::Exit { pid, reason }
            }
            Signal::Cancel(reason) => Urgent::Cancel(reason),
        };
        match self.core.signal(urgent) {
            Ok(token) => {
                self.submit(token);
                Ok(())
            }
            Err(Urgent::Exit { pid, reason }) => Err(Signal::Exit {
                pid,
                reason,
                linked: false,
            }),
            Err(_) => Err(Signal::Cancel(CancelReason::Requested)),
        }
    }

    fn kill(&self, reason: ExitReason, is_final: bool) {
        // Under one lock, as in `revive`: the bit has this reason, or an earlier one.
        let token = self.relate(|more| {
            more.killed.get_or_insert(reason);
            self.core.kill(is_final)
        });
        self.submit(token.flatten());
    }

    fn watch(&self, watcher: Watcher) -> Result<(), Watcher> {
        let mut watcher = Some(watcher);
        let abandoned = self.relate(|more| {
            let abandoned = more.take_abandoned();
            more.watchers.extend(watcher.take());
            abandoned
        });
        drop(abandoned);
        watcher.map_or(Ok(()), Err)
    }

    fn monitors(&self, target: Pid) -> bool {
        self.relate(|more| more.monitored.push(target)).is_some()
    }

    fn unmonitor(&self, target: Pid) {
        if let Related::Some(more) = &mut *self.related.lock() {
            more.monitored.retain(|pid| *pid != target);
        }
    }

    fn name(&self, name: String, is_group: bool) -> bool {
        self.relate(|more| match is_group {
            true => more.groups.push(name),
            false => more.names.push(name),
        })
        .is_some()
    }

    fn unname(&self, name: &str) {
        self.relate(|more| more.names.retain(|other| other != name));
    }

    fn leave(&self, group: &str) {
        self.relate(|more| more.groups.retain(|name| name != group));
    }

    fn info(&self) -> Info {
        let mut info = Info {
            pid: self.pid,
            phase: self.core.state.phase(),
            kind: std::any::type_name::<P>(),
            names: Vec::new(),
            groups: Vec::new(),
            links: Vec::new(),
            supervisor: None,
            messages: self.core.messages.len(),
            restarts: self.core.state.incarnation(),
        };
        if let Related::Some(more) = &*self.related.lock() {
            info.names.clone_from(&more.names);
            info.groups.clone_from(&more.groups);
            info.links.clone_from(&more.links);
            info.supervisor = more.supervisor;
        }
        info
    }
}

impl<P: Process> Receive<P::Message> for Cell<P> {
    fn send(&self, message: P::Message) -> Result<(), SendError<P::Message>> {
        match self.core.send(message) {
            Ok(sent) => {
                self.submit(sent.submit);
                if let Some(dropped) = sent.dropped {
                    self.dead_letter(dropped);
                }
                Ok(())
            }
            Err(Refused::Closed(message)) => Err(SendError::Closed(message)),
            Err(Refused::Full(message)) => Err(SendError::Full(message)),
        }
    }

    fn poll_send(
        &self,
        message: &mut Option<P::Message>,
        key: &mut Option<Key>,
        waker: &Waker,
    ) -> Poll<Result<(), SendError<P::Message>>> {
        let sent = self.core.poll_send(message, key, waker);
        sent.map(|sent| match sent {
            Ok(sent) => {
                self.submit(sent.submit);
                sent.dropped.into_iter().for_each(|m| self.dead_letter(m));
                Ok(())
            }
            Err(Refused::Closed(message)) => Err(SendError::Closed(message)),
            Err(Refused::Full(message)) => Err(SendError::Full(message)),
        })
    }

    fn forget_send(&self, key: Key) {
        self.core.messages.forget(key);
    }

    fn pid(&self) -> Pid {
        self.pid
    }

    fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl<P: Process> Complete<P::Output, P::Error> for Cell<P> {
    fn complete(
        &self,
        tag: u64,
        incarnation: u32,
        result: Result<P::Output, CommandError<P::Error>>,
    ) -> Result<(), Result<P::Output, CommandError<P::Error>>> {
        if self.core.state.incarnation() != incarnation {
            return Err(result);
        }
        let urgent = Urgent::Complete {
            tag,
            incarnation,
            result,
        };
        match self.core.signal(urgent) {
            Ok(token) => {
                self.submit(token);
                Ok(())
            }
            Err(Urgent::Complete { result, .. }) => Err(result),
            Err(_) => unreachable!("it was given a completion"),
        }
    }
}

impl<P: Process> Wake for Cell<P> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.submit(self.core.wake());
    }
}

/// The bytes that an idle process without state takes.
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
pub(crate) const fn bytes_of<P: Process>() -> usize {
    size_of::<Cell<P>>()
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests {
    use super::*;
    use crate::from_fn;

    fn bytes<P: Process>(_: &P) -> usize {
        bytes_of::<P>()
    }

    /// Fails if the end of a process leaves it among the watchers of others, or the drop of the
    /// future of an end leaves the future there.
    #[test]
    fn watchers_that_are_gone_do_not_pile_up() {
        let handle = crate::scheduler::models::without_threads();
        let [server, live] = [(); 2].map(|()| models::spawn(&handle, None));
        let watchers = || server.relate(|more| more.watchers.len());
        handle.monitor(live.pid, server.pid);
        for _ in 0..100 {
            let client = models::spawn(&handle, None);
            handle.monitor(client.pid, server.pid);
            let gone = client.pid;
            client.abandon();
            handle.monitor(gone, server.pid);
        }
        assert_eq!(watchers(), Some(1));
        for _ in 0..100 {
            drop(handle.exit_of(server.pid));
        }
        assert!(watchers() < Some(10));
        server.abandon();
        assert_eq!(live.core.take_urgent().count(), 1);
        assert_eq!(live.relate(|more| more.monitored.len()), Some(0));
        live.abandon();
    }

    /// The cell with the two counts of its `Arc`, and the slot of the registry. A block of glibc's
    /// allocator adds 8 to 16 bytes.
    #[test]
    fn idle_process_takes_at_most_400_bytes() {
        let process = from_fn(|_: u64, _| ());
        let counts = 2 * size_of::<usize>();
        let bytes = bytes(&process) + counts + 24 + 16;
        println!("{bytes} bytes an idle process");
        assert!(bytes <= 400, "{bytes}");
    }
}

#[cfg(test)]
mod models;
