//! The reasons for which processes end, and the errors. The error of a send hands back the message.
use std::{error::Error, fmt, sync::Arc};

/// The reason for which a process ended, or for which it was not found.
///
/// ```
/// use process_scheduler::ExitReason;
///
/// assert!(!ExitReason::Normal.is_abnormal());
/// assert!(ExitReason::Killed.is_abnormal());
/// assert_eq!(ExitReason::failed("no route").to_string(), "failed: no route");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExitReason {
    /// It completed.
    Normal,
    /// It completed after it was cancelled.
    Cancelled,
    /// It was killed, or ignored the cancel of a shutdown.
    Killed,
    /// It failed. The text is the process's own description of the failure.
    Failed(Arc<str>),
    /// It panicked. The text is the panic's message.
    Panicked(Arc<str>),
    /// There was no such process.
    NoProcess,
    /// Its node cannot be reached.
    NodeDown,
}

impl ExitReason {
    /// Makes the reason of a failure.
    pub fn failed(why: impl fmt::Display) -> Self {
        Self::Failed(why.to_string().into())
    }

    /// Returns whether, after an end for this reason, linked processes end too and a transient
    /// child is restarted.
    pub fn is_abnormal(&self) -> bool {
        !matches!(self, Self::Normal | Self::Cancelled)
    }

    pub(crate) fn panicked(panic: &(dyn std::any::Any + Send)) -> Self {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
        Self::Panicked(said.unwrap_or("a value that is not a string").into())
    }
}

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Normal => f.write_str("normal"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Killed => f.write_str("killed"),
            Self::Failed(why) => write!(f, "failed: {why}"),
            Self::Panicked(why) => write!(f, "panicked: {why}"),
            Self::NoProcess => f.write_str("no such process"),
            Self::NodeDown => f.write_str("node down"),
        }
    }
}

/// The error of a message that was not accepted. It hands back the message.
///
/// ```
/// use process_scheduler::{Inbox, Mailbox, Scheduler, SendError};
///
/// let scheduler = Scheduler::builder().mailbox(Mailbox::Bounded(1)).build();
/// // A process that does not receive.
/// let deaf = scheduler.spawn_async(|_: Inbox<u8>| std::future::pending::<()>()).unwrap();
/// let refused = loop {
///     if let Err(refused) = deaf.try_send(7) {
///         break refused;
///     }
/// };
/// assert!(matches!(refused, SendError::Full(_)));
/// assert_eq!(refused.into_inner(), 7);
/// scheduler.kill(deaf.pid());
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError<M> {
    /// There is no such process, or it takes messages of another type. Also the error of each
    /// message that a [`Relay`](crate::Relay) hands back.
    NotFound(M),
    /// The process has ended.
    Closed(M),
    /// The mailbox is full.
    Full(M),
}

impl<M> SendError<M> {
    /// Returns the message.
    pub fn into_inner(self) -> M {
        match self {
            Self::NotFound(message) | Self::Closed(message) | Self::Full(message) => message,
        }
    }
}

impl<M> fmt::Debug for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFound(_) => "NotFound(..)",
            Self::Closed(_) => "Closed(..)",
            Self::Full(_) => "Full(..)",
        })
    }
}

impl<M> fmt::Display for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFound(_) => "there is no such process, or it takes messages of another type",
            Self::Closed(_) => "the process has ended",
            Self::Full(_) => "the mailbox is full",
        })
    }
}

impl<M> Error for SendError<M> {}

/// Why a process was not spawned.
///
/// ```
/// use process_scheduler::{Scheduler, Spawn, SpawnError};
///
/// let scheduler = Scheduler::new();
/// let named = || Spawn::new().name("the one");
/// let _first = scheduler.spawn_with(named(), |_: u8, _| ()).unwrap();
/// let second = scheduler.spawn_with(named(), |_: u8, _| ());
/// assert!(matches!(second, Err(SpawnError::NameTaken(_))));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpawnError {
    /// The scheduler is shutting down.
    Closed,
    /// There are as many processes as [`Builder::max_processes`](crate::Builder::max_processes)
    /// allows, or the registry has no slot left.
    Full,
    /// Another process has the name.
    NameTaken(String),
    /// The process knows no such method.
    UnknownMethod(String),
    /// [`Process::init`](crate::Process::init) failed. The text describes the failure.
    Init(String),
    /// [`Process::init`](crate::Process::init) panicked. The text is the panic's message.
    Panicked(Arc<str>),
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the scheduler is shutting down"),
            Self::Full => f.write_str("there are too many processes"),
            Self::NameTaken(name) => write!(f, "another process has the name {name:?}"),
            Self::UnknownMethod(method) => write!(f, "the process knows no method {method:?}"),
            Self::Init(why) => write!(f, "the process failed to start: {why}"),
            Self::Panicked(why) => write!(f, "the process panicked at its start: {why}"),
        }
    }
}

impl Error for SpawnError {}

/// Why a process refuses to start: the error of [`Process::init`](crate::Process::init).
///
/// ```
/// use process_scheduler::InitError;
///
/// fn check(method: &str) -> Result<(), InitError> {
///     match method {
///         "" | "serve" => Ok(()),
///         _ => Err(InitError::UnknownMethod),
///     }
/// }
/// assert_eq!(check("bake"), Err(InitError::UnknownMethod));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InitError {
    /// There is no such method.
    UnknownMethod,
    /// The start failed for another reason, which the text describes.
    Failed(String),
}

impl fmt::Display for InitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownMethod => f.write_str("there is no such method"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl Error for InitError {}

/// Why a call got no answer.
///
/// ```
/// use process_scheduler::{CallError, Reply, Scheduler};
/// use std::time::Duration;
///
/// let scheduler = Scheduler::new();
/// let forgetful = scheduler.spawn_fn(|_: Reply<u8>, _| ()).unwrap(); // Drops the reply.
/// let answer = forgetful.call(|reply| reply, Duration::from_secs(9)).wait();
/// assert!(matches!(answer, Err(CallError::Dropped)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallError {
    /// There is no such process, or it has ended.
    Closed,
    /// The mailbox is full.
    Full,
    /// The request was dropped without an answer: for example, the process ended.
    Dropped,
    /// The deadline has passed.
    Timeout,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "the process has ended",
            Self::Full => "the mailbox is full",
            Self::Dropped => "the request was dropped without an answer",
            Self::Timeout => "the deadline has passed",
        })
    }
}

impl Error for CallError {}
