//! Commands, and their completions: each command is completed once.
use crate::{Pid, guard::Guarded};
use std::{error::Error, fmt, mem, sync::Arc};

/// Performs the commands of processes. A closure may be a handler.
///
/// A handler runs on the worker, after the step that gave the command, so it must not block. The
/// handler starts the work, on any thread or runtime. The code that ends the work completes the
/// command.
///
/// ```
/// use process_scheduler::{Completer, Handler};
/// use std::{thread, time::Duration};
///
/// struct Sleep;
///
/// impl Handler<Duration, (), ()> for Sleep {
///     fn handle(&self, command: Duration, completer: Completer<(), ()>) {
///         thread::spawn(move || {
///             thread::sleep(command);
///             drop(completer.complete(Ok(())));
///         });
///     }
/// }
/// ```
pub trait Handler<C, O, E>: Send + Sync + 'static {
    /// Begins a command. A panic here drops the completer.
    fn handle(&self, command: C, completer: Completer<O, E>);
}

impl<C, O, E, F> Handler<C, O, E> for F
where
    F: Fn(C, Completer<O, E>) + Send + Sync + 'static,
{
    fn handle(&self, command: C, completer: Completer<O, E>) {
        self(command, completer);
    }
}

/// Makes a handler whose drop is guarded, whichever thread drops it.
pub(crate) fn guarded_handler<C, O, E>(
    handler: impl Handler<C, O, E>,
) -> Arc<dyn Handler<C, O, E>> {
    let handler = Guarded::new(handler);
    Arc::new(move |command: C, completer: Completer<O, E>| handler.handle(command, completer))
}

/// Why a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommandError<E> {
    /// The handler completed the command with this error.
    Failed(E),
    /// The handler dropped the completer.
    Dropped,
    /// The process has no handler.
    NoHandler,
}

impl<E: fmt::Display> fmt::Display for CommandError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::Dropped => f.write_str("the handler dropped the command"),
            Self::NoHandler => f.write_str("the process has no handler"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> Error for CommandError<E> {}

pub(crate) trait Complete<O, E>: Send + Sync {
    fn complete(
        &self,
        tag: u64,
        incarnation: u32,
        result: Result<O, CommandError<E>>,
    ) -> Result<(), Result<O, CommandError<E>>>;
}

/// Completes one command, once, from any thread. The drop of an unused completer completes the
/// command with [`CommandError::Dropped`].
///
/// A completer does not keep its process from ending. Once the process has ended, the completer
/// keeps as much of it as an [`Address`](crate::Address) does.
///
/// ```
/// use process_scheduler::Completer;
///
/// fn handle(path: String, completer: Completer<usize, std::io::Error>) {
///     println!("for {} with tag {}", completer.pid(), completer.tag());
///     if let Err(stale) = completer.complete(std::fs::read(path).map(|bytes| bytes.len())) {
///         println!("too late: {:?}", stale.0);
///     }
/// }
/// ```
pub struct Completer<O, E> {
    pub(crate) target: Option<Arc<dyn Complete<O, E>>>,
    pub(crate) pid: Pid,
    pub(crate) tag: u64,
    pub(crate) incarnation: u32,
}

impl<O, E> Completer<O, E> {
    /// Completes the command. The process gets [`Event::YieldComplete`](crate::Event) and steps.
    ///
    /// # Errors
    /// Hands the result back if the process has ended, or was restarted after it gave the command.
    pub fn complete(mut self, result: Result<O, E>) -> Result<(), Stale<Result<O, E>>> {
        let Some(target) = mem::take(&mut self.target) else {
            return Err(Stale(result));
        };
        let result = result.map_err(CommandError::Failed);
        let sent = target.complete(self.tag, self.incarnation, result);
        sent.map_err(|result| {
            Stale(match result {
                Ok(output) => Ok(output),
                Err(CommandError::Failed(error)) => Err(error),
                Err(_) => unreachable!("it was given a result of the handler"),
            })
        })
    }

    /// Returns the process that gave the command.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns the tag that the process gave the command.
    pub fn tag(&self) -> u64 {
        self.tag
    }
}

impl<O, E> Drop for Completer<O, E> {
    fn drop(&mut self) {
        if let Some(target) = mem::take(&mut self.target) {
            let dropped = Err(CommandError::Dropped);
            drop(target.complete(self.tag, self.incarnation, dropped));
        }
    }
}

impl<O, E> fmt::Debug for Completer<O, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completer")
            .field("pid", &self.pid)
            .field("tag", &self.tag)
            .finish_non_exhaustive()
    }
}

/// A completion that came too late: its process has ended or was restarted. It holds the result.
///
/// ```
/// use process_scheduler::{Completer, Stale};
///
/// fn log(completer: Completer<u8, ()>) {
///     if let Err(Stale(result)) = completer.complete(Ok(7)) {
///         println!("too late: {result:?}");
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale<R>(pub R);

impl<R> fmt::Display for Stale<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the process has ended or was restarted")
    }
}

impl<R: fmt::Debug> Error for Stale<R> {}
