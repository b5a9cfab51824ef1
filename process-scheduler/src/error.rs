//! The errors. The error of a send hands back the message.
use crate::oneshot::NoValue;
use std::{error::Error, fmt, sync::Arc};

/// The error of a message that was not accepted. It hands back the message.
///
/// Every send has this error: by address, by pid, through a [`Relay`](crate::Relay), and the
/// request of a call ([`CallError::Refused`]).
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
    /// There is no such process, or it takes messages of another type, or no
    /// [`Relay`](crate::Relay) reaches its node.
    NotFound(M),
    /// The process has ended.
    Closed(M),
    /// The mailbox is full, or the way to the node of the process.
    Full(M),
    /// The way to the node has no room now. A [`Relay`](crate::Relay) returns this, and a sender
    /// gets [`Full`](Self::Full), or waits for room.
    NoRoom(M),
    /// The [`Relay`](crate::Relay) does not reach the node of the process now.
    NodeDown(M),
    /// The [`Relay`](crate::Relay) cannot carry this message: it has no codec for the type, or the
    /// message is too large.
    NotCarried(M),
}

impl<M> SendError<M> {
    /// Returns the message.
    pub fn into_inner(self) -> M {
        match self {
            Self::NotFound(message)
            | Self::Closed(message)
            | Self::Full(message)
            | Self::NoRoom(message)
            | Self::NodeDown(message)
            | Self::NotCarried(message) => message,
        }
    }

    /// Returns the same error, with the message that `f` makes of this one.
    ///
    /// ```
    /// use process_scheduler::SendError;
    ///
    /// assert_eq!(SendError::Full("7").map(str::len), SendError::Full(1));
    /// ```
    pub fn map<N>(self, f: impl FnOnce(M) -> N) -> SendError<N> {
        match self {
            Self::NotFound(message) => SendError::NotFound(f(message)),
            Self::Closed(message) => SendError::Closed(f(message)),
            Self::Full(message) => SendError::Full(f(message)),
            Self::NoRoom(message) => SendError::NoRoom(f(message)),
            Self::NodeDown(message) => SendError::NodeDown(f(message)),
            Self::NotCarried(message) => SendError::NotCarried(f(message)),
        }
    }

    /// Returns the same error without the message.
    ///
    /// ```
    /// use process_scheduler::SendError;
    ///
    /// assert_eq!(SendError::Closed("hello").kind(), SendError::Closed(()));
    /// ```
    pub fn kind(&self) -> SendError<()> {
        match self {
            Self::NotFound(_) => SendError::NotFound(()),
            Self::Closed(_) => SendError::Closed(()),
            Self::Full(_) => SendError::Full(()),
            Self::NoRoom(_) => SendError::NoRoom(()),
            Self::NodeDown(_) => SendError::NodeDown(()),
            Self::NotCarried(_) => SendError::NotCarried(()),
        }
    }
}

impl<M> fmt::Debug for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFound(_) => "NotFound(..)",
            Self::Closed(_) => "Closed(..)",
            Self::Full(_) => "Full(..)",
            Self::NoRoom(_) => "NoRoom(..)",
            Self::NodeDown(_) => "NodeDown(..)",
            Self::NotCarried(_) => "NotCarried(..)",
        })
    }
}

impl<M> fmt::Display for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFound(_) => "there is no such process, or it takes messages of another type",
            Self::Closed(_) => "the process has ended",
            Self::Full(_) => "the mailbox is full",
            Self::NoRoom(_) => "the way to the node has no room",
            Self::NodeDown(_) => "the node of the process is not reached",
            Self::NotCarried(_) => "the relay cannot carry the message",
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
    /// The request was not accepted. It was dropped, with its place for the answer.
    Refused(SendError<()>),
    /// The request was dropped without an answer: for example, the process ended.
    Dropped,
    /// The deadline has passed.
    Timeout,
    /// The node that had the request cannot be reached any more.
    NodeDown,
}

impl From<NoValue> for CallError {
    fn from(none: NoValue) -> Self {
        match none {
            NoValue::Dropped => Self::Dropped,
            NoValue::NodeDown => Self::NodeDown,
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refused) => refused.fmt(f),
            Self::Dropped => f.write_str("the request was dropped without an answer"),
            Self::Timeout => f.write_str("the deadline has passed"),
            Self::NodeDown => f.write_str("the node that had the request is not reached"),
        }
    }
}

impl Error for CallError {}
