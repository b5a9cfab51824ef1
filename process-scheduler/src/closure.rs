//! The process of a closure. The closure is called with each message.
use crate::{
    Address, Event, EventsOf, ExitReason, Handle, NoCommand, OutputOf, Pid, Process, Spawn,
    SpawnError, Step, StepOf,
};
use std::{fmt, marker::PhantomData};

/// The result of a closure, or of an `async` block.
///
/// `()` is `Continue` for a closure, and `Stop` for an `async` block.
///
/// ```
/// use process_scheduler::{ExitReason, Flow, Scheduler};
///
/// let scheduler = Scheduler::new();
/// let strict = scheduler
///     .spawn_fn(|n: i32, _| if n < 0 { Flow::fail("negative") } else { Flow::Continue })
///     .unwrap();
/// let exit = scheduler.exit_of(strict.pid());
/// strict.try_send(-1).unwrap();
/// assert_eq!(exit.wait(), ExitReason::failed("negative"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Wait for the next message.
    Continue,
    /// End.
    Stop,
    /// End as a failure.
    Fail(ExitReason),
}

impl Flow {
    /// Makes a failure.
    pub fn fail(why: impl fmt::Display) -> Self {
        Self::Fail(ExitReason::failed(why))
    }
}

impl From<()> for Flow {
    fn from((): ()) -> Self {
        Self::Continue
    }
}

impl<E: fmt::Display> From<Result<(), E>> for Flow {
    fn from(result: Result<(), E>) -> Self {
        match result {
            Ok(()) => Self::Continue,
            Err(error) => Self::fail(error),
        }
    }
}

/// The context of a closure: see [`Handle::spawn_fn`].
///
/// ```
/// # let scheduler = process_scheduler::Scheduler::new();
/// let shy = scheduler
///     .spawn_fn(|_: u8, cx| {
///         let me = cx.pid();
///         cx.handle().cancel(me);
///     })
///     .unwrap();
/// shy.try_send(1).unwrap();
/// scheduler.wait(shy.pid());
/// ```
#[derive(Debug)]
pub struct Cx<'a> {
    pid: Pid,
    handle: &'a Handle,
}

impl Cx<'_> {
    /// Returns the pid of the process.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns the process's scheduler.
    pub fn handle(&self) -> &Handle {
        self.handle
    }
}

/// The process of a closure: see [`from_fn`].
pub struct FnProcess<M, F, R> {
    f: F,
    marker: PhantomData<fn(M) -> R>,
}

impl<M, F, R> fmt::Debug for FnProcess<M, F, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FnProcess")
    }
}

/// Makes a process that calls a closure with each message. A cancel ends the process.
///
/// Use the process in a [`Child`](crate::Child), or spawn it with [`Handle::spawn_process`].
///
/// ```
/// use process_scheduler::{Scheduler, from_fn};
///
/// let scheduler = Scheduler::new();
/// let mut sum = 0;
/// let adder = scheduler.spawn(from_fn(move |n: u64, _| sum += n)).unwrap();
/// adder.try_send(7).unwrap();
/// ```
pub fn from_fn<M, F, R>(f: F) -> FnProcess<M, F, R>
where
    M: Send + 'static,
    F: FnMut(M, &mut Cx<'_>) -> R + Send + 'static,
    R: Into<Flow> + 'static,
{
    FnProcess {
        f,
        marker: PhantomData,
    }
}

impl<M, F, R> Process for FnProcess<M, F, R>
where
    M: Send + 'static,
    F: FnMut(M, &mut Cx<'_>) -> R + Send + 'static,
    R: Into<Flow> + 'static,
{
    type Message = M;
    type Cmd = NoCommand;
    type Output = ();
    type Error = ();

    fn step(&mut self, events: &mut EventsOf<Self>, out: &mut OutputOf<Self>) -> StepOf<Self> {
        let (pid, handle) = (out.pid(), out.handle());
        for event in events {
            match event {
                Event::Message(message) => {
                    match (self.f)(message, &mut Cx { pid, handle }).into() {
                        Flow::Continue => {}
                        Flow::Stop => return Step::Done,
                        Flow::Fail(reason) => return Step::Failed(reason),
                    }
                }
                Event::Cancel(_) => return Step::Done,
                _ => {}
            }
        }
        Step::Idle
    }
}

impl Handle {
    /// Spawns a process that calls a closure with each message. A cancel ends the process.
    ///
    /// # Errors
    /// As [`spawn_process`](Self::spawn_process).
    #[track_caller]
    pub fn spawn_fn<M, F, R>(&self, f: F) -> Result<Address<M>, SpawnError>
    where
        M: Send + 'static,
        F: FnMut(M, &mut Cx<'_>) -> R + Send + 'static,
        R: Into<Flow> + 'static,
    {
        self.spawn(from_fn(f))
    }

    /// Spawns as [`spawn_fn`](Self::spawn_fn) does, with the settings `spawn`.
    ///
    /// # Errors
    /// As [`spawn_process`](Self::spawn_process).
    #[track_caller]
    pub fn spawn_with<M, F, R>(&self, spawn: Spawn, f: F) -> Result<Address<M>, SpawnError>
    where
        M: Send + 'static,
        F: FnMut(M, &mut Cx<'_>) -> R + Send + 'static,
        R: Into<Flow> + 'static,
    {
        self.spawn_process(from_fn(f), spawn)
    }
}
