//! The events of a process, one by one.
use crate::{CancelReason, CommandError, ExitReason, Pid};

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
    pub(crate) fn only_for(&self) -> Option<u32> {
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
