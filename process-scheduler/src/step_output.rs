//! The context of a step.
use crate::{Handle, Pid};
use std::{fmt, task::Waker};

/// The context of a step: takes the step's commands, and returns the process's pid, scheduler and
/// waker.
///
/// ```
/// use process_scheduler::{
///     Completer, Event, EventsOf, OutputOf, Process, Scheduler, Spawn, Step, StepOf,
/// };
///
/// /// Asks for two squares at once.
/// struct Asks(Vec<u64>);
///
/// impl Process for Asks {
///     type Message = ();
///     type Cmd = u64;
///     type Output = u64;
///     type Error = String;
///
///     fn step(&mut self, events: &mut EventsOf<Self>, out: &mut OutputOf<Self>) -> StepOf<Self> {
///         for event in events {
///             match event {
///                 Event::Message(()) => {
///                     out.command(3, 3);
///                     out.command(4, 4);
///                 }
///                 Event::YieldComplete { tag, result } => {
///                     assert_eq!(result, Ok(tag * tag));
///                     self.0.push(tag);
///                 }
///                 _ => {}
///             }
///         }
///         if self.0.len() == 2 { Step::Done } else { Step::Idle }
///     }
/// }
///
/// let scheduler = Scheduler::new();
/// let squares = |n: u64, completer: Completer<u64, String>| drop(completer.complete(Ok(n * n)));
/// let options = Spawn::new().handler(squares);
/// let asks = scheduler.spawn_process(Asks(Vec::new()), options).unwrap();
/// asks.try_send(()).unwrap();
/// scheduler.wait(asks.pid());
/// ```
pub struct StepOutput<'a, C> {
    pub(crate) commands: Vec<(u64, C)>,
    pub(crate) pid: Pid,
    pub(crate) handle: &'a Handle,
    pub(crate) waker: &'a Waker,
}

impl<C> StepOutput<'_, C> {
    /// Passes a command to the process's handler after the step. The command's completion has this
    /// tag.
    pub fn command(&mut self, tag: u64, command: C) {
        self.commands.push((tag, command));
    }

    /// Returns the pid of the process.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns the process's scheduler.
    pub fn handle(&self) -> &Handle {
        self.handle
    }

    /// Returns a waker: a wake makes the process run one more step. A step may poll futures with
    /// this waker.
    pub fn waker(&self) -> &Waker {
        self.waker
    }
}

impl<C> fmt::Debug for StepOutput<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepOutput")
            .field("pid", &self.pid)
            .field("commands", &self.commands.len())
            .finish_non_exhaustive()
    }
}
