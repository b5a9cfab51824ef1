//! A process: a state machine that a worker steps with events.
use crate::{Context, Events, ExitReason, Handler, InitError, Input, StepOutput};
use std::{fmt, sync::Arc};

/// A state machine with a mailbox, which workers step with events.
///
/// One worker at a time steps a process. Most processes are shorter to write as a closure
/// ([`spawn_fn`](crate::Handle::spawn_fn)) or as an `async` block
/// ([`spawn_async`](crate::Handle::spawn_async)).
///
/// ```
/// use process_scheduler::{
///     Event, EventsOf, NoCommand, OutputOf, Process, Scheduler, Step, StepOf,
/// };
///
/// struct Sum(u64);
///
/// impl Process for Sum {
///     type Message = u64;
///     type Cmd = NoCommand;
///     type Output = ();
///     type Error = ();
///
///     fn step(&mut self, events: &mut EventsOf<Self>, _: &mut OutputOf<Self>) -> StepOf<Self> {
///         for event in events {
///             match event {
///                 Event::Message(n) => self.0 += n,
///                 Event::Cancel(_) => return Step::Done,
///                 _ => {}
///             }
///         }
///         Step::Idle
///     }
///
///     fn close(&mut self) {
///         println!("{}", self.0);
///     }
/// }
///
/// let scheduler = Scheduler::new();
/// let sum = scheduler.spawn(Sum(0)).unwrap();
/// sum.try_send(7).unwrap();
/// assert_eq!(scheduler.shutdown().graceful, 1);
/// ```
pub trait Process: Send + 'static {
    /// The messages that other processes send.
    type Message: Send + 'static;
    /// The commands for the process's [`Handler`](crate::Handler): [`NoCommand`] if the process
    /// gives none.
    type Cmd: Send + 'static;
    /// The result of a command.
    type Output: Send + 'static;
    /// The error of a command.
    type Error: Send + 'static;

    /// Prepares the process before its first step, on the thread that spawns or restarts it.
    ///
    /// The default implementation accepts the empty method, which is the default of a spawn, and no
    /// other.
    ///
    /// # Errors
    /// [`InitError::UnknownMethod`] if the process does not know the method. After any error, the
    /// scheduler closes the process.
    fn init(
        &mut self,
        cx: &Context<'_, Self::Message>,
        method: &str,
        input: Input,
    ) -> Result<(), InitError> {
        let _ = (cx, input);
        match method {
            "" => Ok(()),
            _ => Err(InitError::UnknownMethod),
        }
    }

    /// Takes events, and returns the state of the process after this step. A panic ends the
    /// process.
    ///
    /// Events that the step does not take stay for the next step.
    fn step(
        &mut self,
        events: &mut Events<'_, Self::Message, Self::Output, Self::Error>,
        output: &mut StepOutput<'_, Self::Cmd>,
    ) -> Step<Self::Message, Self::Cmd, Self::Output, Self::Error>;

    /// Releases what the process holds. If `init` was called, or if the process is an upgrade
    /// ([`Step::Upgrade`]), this is called exactly once before the drop, also after a panic.
    ///
    /// A process that is refused before its `init` is dropped without a close. This happens if the
    /// spawn fails with [`Closed`], [`Full`] or [`NameTaken`], if the handler is for other
    /// commands, or if the closure of the input panics.
    ///
    /// [`Closed`]: crate::SpawnError::Closed
    /// [`Full`]: crate::SpawnError::Full
    /// [`NameTaken`]: crate::SpawnError::NameTaken
    fn close(&mut self) {}
}

/// A boxed process, as [`Step::Upgrade`] takes it.
pub type BoxProcess<M, C, O, E> = Box<dyn Process<Message = M, Cmd = C, Output = O, Error = E>>;

/// The [`Events`] of a process.
pub type EventsOf<'a, P> =
    Events<'a, <P as Process>::Message, <P as Process>::Output, <P as Process>::Error>;

/// The [`StepOutput`] of a process.
pub type OutputOf<'a, P> = StepOutput<'a, <P as Process>::Cmd>;

/// The [`Step`] of a process.
pub type StepOf<P> = Step<
    <P as Process>::Message,
    <P as Process>::Cmd,
    <P as Process>::Output,
    <P as Process>::Error,
>;

/// The handler of a process's commands.
pub(crate) type HandlerOf<P> =
    Arc<dyn Handler<<P as Process>::Cmd, <P as Process>::Output, <P as Process>::Error>>;

/// The command of a process that gives none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoCommand {}

/// The state of a process after a step. See [`Process`].
#[non_exhaustive]
pub enum Step<M, C, O, E> {
    /// It steps again at once. After [`Builder::step_budget`](crate::Builder::step_budget) steps,
    /// the other ready processes have their turn first.
    Continue,
    /// It waits for a completion, a signal or its waker. Messages wait in the mailbox.
    Blocked,
    /// It waits for any event.
    Idle,
    /// It ends. A child of a supervisor stops: see [`Failed`](Self::Failed).
    Done,
    /// It has failed, and ends. Processes that are linked to it end too, and its monitors are
    /// notified.
    ///
    /// A child of a supervisor only stops, unless it is [temporary](crate::Policy::Temporary): the
    /// supervisor may restart it. Its links and monitors stay, and a restart does not notify them.
    /// They are notified if the supervisor does not restart the child, which then ends for good.
    Failed(ExitReason),
    /// Another process takes over the pid, the mailbox and the commands, and steps at once. The
    /// scheduler closes the old process, and does not call `init` of the new one.
    ///
    /// ```
    /// use process_scheduler::{
    ///     EventsOf, NoCommand, OutputOf, Process, Scheduler, Step, StepOf,
    /// };
    ///
    /// struct Version(u32);
    ///
    /// impl Process for Version {
    ///     type Message = std::sync::mpsc::Sender<u32>;
    ///     type Cmd = NoCommand;
    ///     type Output = ();
    ///     type Error = ();
    ///     fn step(
    ///         &mut self,
    ///         events: &mut EventsOf<Self>,
    ///         _: &mut OutputOf<Self>,
    ///     ) -> StepOf<Self> {
    ///         if self.0 == 1 {
    ///             return Step::Upgrade(Box::new(Version(2)));
    ///         }
    ///         for event in events {
    ///             if let Some(answer) = event.into_message() {
    ///                 answer.send(self.0).unwrap();
    ///             }
    ///         }
    ///         Step::Idle
    ///     }
    /// }
    ///
    /// let scheduler = Scheduler::new();
    /// let (sender, answer) = std::sync::mpsc::channel();
    /// scheduler.spawn(Version(1)).unwrap().try_send(sender).unwrap();
    /// assert_eq!(answer.recv(), Ok(2));
    /// ```
    Upgrade(BoxProcess<M, C, O, E>),
}

impl<M, C, O, E> Step<M, C, O, E> {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Continue => "Continue",
            Self::Blocked => "Blocked",
            Self::Idle => "Idle",
            Self::Done => "Done",
            Self::Failed(_) => "Failed",
            Self::Upgrade(_) => "Upgrade",
        }
    }
}

impl<M, C, O, E> fmt::Debug for Step<M, C, O, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Continue => f.write_str("Continue"),
            Self::Blocked => f.write_str("Blocked"),
            Self::Idle => f.write_str("Idle"),
            Self::Done => f.write_str("Done"),
            Self::Failed(reason) => f.debug_tuple("Failed").field(reason).finish(),
            Self::Upgrade(_) => f.write_str("Upgrade(..)"),
        }
    }
}
