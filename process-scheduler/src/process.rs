//! A process: a state machine that a worker steps with events.
use crate::{
    Address, Handle, Pid,
    core::Core,
    error::{ExitReason, InitError},
    guard::drop_guarded,
    handler::CommandError,
    lane::Taken,
    pool::Kept,
    worker::Runnable,
};
use queue_global::mpsc::Batch;
use std::{any::Any, fmt, marker::PhantomData, mem, sync::Arc, task::Waker};

/// A state machine with a mailbox, which workers step with events.
///
/// One worker at a time steps a process. Most processes are shorter to write as a closure
/// ([`Handle::spawn_fn`]) or as an `async` block ([`Handle::spawn_async`]).
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

    /// Takes events and says what to do next. A panic ends the process.
    ///
    /// Events that the step does not take stay for the next step.
    fn step(
        &mut self,
        events: &mut Events<'_, Self::Message, Self::Output, Self::Error>,
        output: &mut StepOutput<'_, Self::Cmd>,
    ) -> Step<Self::Message, Self::Cmd, Self::Output, Self::Error>;

    /// Releases what the process holds. It is called exactly once before the drop, also after a
    /// panic, if `init` was called or the process is an upgrade ([`Step::Upgrade`]).
    ///
    /// A process that is refused before its `init` is dropped without a close: if the spawn fails
    /// with [`Closed`], [`Full`] or [`NameTaken`], or because its handler is for other commands, or
    /// if the closure of the input panics.
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

/// The source of a request that a process should end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CancelReason {
    /// A call of [`Handle::cancel`].
    Requested,
    /// The shutdown of the scheduler.
    Shutdown,
    /// The supervisor of the process.
    Supervisor,
}

/// An event of a process.
///
/// ```
/// use process_scheduler::{Event, Scheduler};
///
/// let event: Event<u32, (), ()> = Event::Message(7);
/// assert_eq!(event.into_message(), Some(7));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<M, O = (), E = ()> {
    /// A message. The messages of one sender arrive in order.
    Message(M),
    /// A command is complete.
    YieldComplete {
        /// The tag that the process gave the command.
        tag: u64,
        /// The result of the command.
        result: Result<O, CommandError<E>>,
    },
    /// The process should clean up and end.
    Cancel(CancelReason),
    /// A process that this one monitors, supervises, or is linked to has ended.
    Exit {
        /// The process that has ended.
        pid: Pid,
        /// The reason of its end.
        reason: ExitReason,
    },
}

impl<M, O, E> Event<M, O, E> {
    /// Returns the message, if the event is one.
    pub fn into_message(self) -> Option<M> {
        match self {
            Self::Message(message) => Some(message),
            _ => None,
        }
    }
}

/// An entry of the urgent lane.
pub(crate) enum Urgent<O, E> {
    Complete {
        tag: u64,
        incarnation: u32,
        result: Result<O, CommandError<E>>,
    },
    Cancel {
        reason: CancelReason,
        incarnation: u32,
    },
    Exit {
        pid: Pid,
        reason: ExitReason,
    },
}

impl<O, E> Urgent<O, E> {
    /// Returns the only incarnation that may get this event. `None` if any incarnation may: a
    /// cancel that is not the supervisor's is for the pid.
    fn only_for(&self) -> Option<u32> {
        match self {
            Self::Complete { incarnation, .. } => Some(*incarnation),
            Self::Cancel {
                reason: CancelReason::Supervisor,
                incarnation,
            } => Some(*incarnation),
            Self::Cancel { .. } | Self::Exit { .. } => None,
        }
    }
}

/// The signals and the messages that a process has taken from its lanes, and not yet handled.
pub(crate) struct Pending<M, O, E> {
    pub(crate) urgent: Batch<Urgent<O, E>, Kept>,
    pub(crate) messages: Taken<M>,
}

pub(crate) type CoreOf<M, O, E> = Core<M, Urgent<O, E>, Runnable>;

/// The events of a step: signals and completions first, then messages. See [`Process::step`].
///
/// The first message takes all messages out of the mailbox, by one read-modify-write, or under the
/// lock of a bounded mailbox. The first signal does the same with all signals. The events that were
/// taken together cost no further read-modify-write. A step gets up to
/// [`Builder::messages`](crate::Builder::messages) messages; the others stay for the next step. No
/// message is taken out of the mailbox while some of those are left.
///
/// ```
/// use process_scheduler::{EventsOf, NoCommand, OutputOf, Process, Step, StepOf};
///
/// /// Handles one event a step.
/// struct Slow;
///
/// impl Process for Slow {
///     type Message = u32;
///     type Cmd = NoCommand;
///     type Output = ();
///     type Error = ();
///     fn step(&mut self, events: &mut EventsOf<Self>, _: &mut OutputOf<Self>) -> StepOf<Self> {
///         match events.next() {
///             Some(_) => Step::Continue,
///             None => Step::Idle,
///         }
///     }
/// }
/// ```
pub struct Events<'a, M, O, E> {
    pub(crate) core: &'a CoreOf<M, O, E>,
    pub(crate) pending: &'a mut Pending<M, O, E>,
    pub(crate) incarnation: u32,
    pub(crate) messages_left: u32,
    pub(crate) delivered: u32,
    pub(crate) cancelled: &'a mut bool,
}

impl<M, O, E> Events<'_, M, O, E> {
    #[cold]
    fn next_urgent(&mut self) -> Option<Event<M, O, E>> {
        loop {
            let urgent = match self.pending.urgent.next() {
                Some(urgent) => urgent,
                None if self.core.has_urgent() => {
                    self.pending.urgent = self.core.take_urgent();
                    continue;
                }
                None => return None,
            };
            if urgent
                .only_for()
                .is_some_and(|only| only != self.incarnation)
            {
                // The event is for an earlier incarnation, which a restart has replaced. A panic of
                // the event's drop is not a panic of this step.
                drop_guarded(urgent);
                continue;
            }
            return Some(match urgent {
                Urgent::Complete { tag, result, .. } => Event::YieldComplete { tag, result },
                Urgent::Cancel { reason, .. } => {
                    *self.cancelled = true;
                    Event::Cancel(reason)
                }
                Urgent::Exit { pid, reason } => Event::Exit { pid, reason },
            });
        }
    }

    /// Returns the next signal or completion.
    #[inline]
    pub(crate) fn next_signal(&mut self) -> Option<Event<M, O, E>> {
        if self.pending.urgent.is_empty() && !self.core.has_urgent() {
            return None;
        }
        self.next_urgent()
    }

    /// Takes all messages out of the mailbox, if no message of an earlier take is left.
    pub(crate) fn take_mail(&mut self) {
        if self.pending.messages.is_empty() {
            self.core.messages.take(&mut self.pending.messages);
        }
    }

    /// Lends the messages that were taken out of the mailbox.
    pub(crate) fn lend(&mut self) -> Lent<M> {
        Lent {
            messages: mem::take(&mut self.pending.messages),
            left: self.messages_left,
            received: 0,
        }
    }

    /// Takes back what `lend` has returned.
    pub(crate) fn take_back(&mut self, lent: Lent<M>) {
        self.pending.messages = lent.messages;
        self.messages_left = lent.left;
        self.delivered += lent.received;
    }
}

/// Messages that a step lends to the inbox of an `async` process, while it polls the future.
pub(crate) struct Lent<M> {
    messages: Taken<M>,
    /// How many messages the step may still receive.
    left: u32,
    received: u32,
}

impl<M> Lent<M> {
    /// Returns the next message, which the step has received then.
    pub(crate) fn receive(&mut self) -> Option<M> {
        if self.left == 0 {
            return None;
        }
        let message = self.messages.next()?;
        self.left -= 1;
        self.received += 1;
        Some(message)
    }

    /// Counts a message that the step has received, and which an earlier one had handed over.
    pub(crate) fn count_received(&mut self) {
        self.received += 1;
    }

    /// Takes the next message out, for code that is not in the step.
    pub(crate) fn take(&mut self) -> Option<M> {
        self.messages.next()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Returns whether the step may receive more messages, and has none.
    pub(crate) fn needs_mail(&self) -> bool {
        self.left > 0 && self.is_empty()
    }

    /// Returns the messages. If there are none, the step may take others out of the mailbox.
    pub(crate) fn messages_mut(&mut self) -> &mut Taken<M> {
        &mut self.messages
    }
}

impl<M> Default for Lent<M> {
    fn default() -> Self {
        Self {
            messages: Taken::default(),
            left: 0,
            received: 0,
        }
    }
}

impl<M, O, E> Iterator for Events<'_, M, O, E> {
    type Item = Event<M, O, E>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if let Some(urgent) = self.next_signal() {
            return Some(urgent);
        }
        if self.messages_left == 0 {
            return None;
        }
        let message = match self.pending.messages.next() {
            Some(message) => message,
            None => {
                self.core.messages.take(&mut self.pending.messages);
                self.pending.messages.next()?
            }
        };
        self.messages_left -= 1;
        self.delivered += 1;
        Some(Event::Message(message))
    }
}

impl<M, O, E> fmt::Debug for Events<'_, M, O, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

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

    /// Returns a waker that makes the process step once more. A step may poll futures with this
    /// waker.
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

/// The context of a process at its start. See [`Process::init`].
///
/// ```
/// use process_scheduler::{
///     Address, Context, EventsOf, InitError, Input, NoCommand, OutputOf, Process, Step, StepOf,
/// };
///
/// struct Narcissus(Option<Address<()>>);
///
/// impl Process for Narcissus {
///     type Message = ();
///     type Cmd = NoCommand;
///     type Output = ();
///     type Error = ();
///     fn init(&mut self, cx: &Context<'_, ()>, _: &str, _: Input) -> Result<(), InitError> {
///         assert_eq!(cx.address().pid(), cx.pid());
///         self.0 = Some(cx.address());
///         cx.handle().monitor(cx.pid(), cx.pid());
///         Ok(())
///     }
///     fn step(&mut self, _: &mut EventsOf<Self>, _: &mut OutputOf<Self>) -> StepOf<Self> {
///         Step::Idle
///     }
/// }
/// ```
pub struct Context<'a, M> {
    pub(crate) pid: Pid,
    pub(crate) handle: &'a Handle,
    pub(crate) receiver: Arc<dyn crate::address::Receive<M>>,
    pub(crate) method: PhantomData<&'a ()>,
}

impl<M: Send + 'static> Context<'_, M> {
    /// Returns the pid of the process.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns the process's scheduler.
    pub fn handle(&self) -> &Handle {
        self.handle
    }

    /// Returns the process's own address. If the process keeps it, the process's memory is not
    /// freed before the process ends.
    pub fn address(&self) -> Address<M> {
        Address::new(self.receiver.clone())
    }
}

impl<M> fmt::Debug for Context<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("pid", &self.pid)
            .finish_non_exhaustive()
    }
}

/// The input of a process's start: a value of any type, or none.
///
/// ```
/// use process_scheduler::Input;
///
/// assert_eq!(Input::new(7_u32).take::<u32>(), Some(7));
/// assert_eq!(Input::none().take::<u32>(), None);
/// ```
#[derive(Debug, Default)]
pub struct Input(Option<Box<dyn Any + Send>>);

impl Input {
    /// Makes an input that holds a value.
    pub fn new(value: impl Any + Send) -> Self {
        Self(Some(Box::new(value)))
    }

    /// Makes an input that holds nothing. Allocates nothing.
    pub fn none() -> Self {
        Self(None)
    }

    /// Takes the value, if it has the type `T`.
    pub fn take<T: Any>(mut self) -> Option<T> {
        let value = self.0.take()?.downcast().ok()?;
        Some(*value)
    }
}

/// The scheduler may drop an input beside other values of the user.
impl Drop for Input {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(drop_guarded);
    }
}
