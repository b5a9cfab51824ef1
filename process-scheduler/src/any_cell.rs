//! A process as it looks to a thread that has only its pid: the registry keeps each process as an
//! [`AnyCell`].
use crate::{ExitReason, Info, Pid, SendError, Signal, runnable::Run, watcher::Watcher};
use std::{any::Any, sync::Arc};

/// A message of any type.
pub(crate) type BoxedMessage = Box<dyn Any + Send>;

/// The cell of a process of any type.
pub(crate) trait AnyCell: Run {
    /// Restarts a stopped process.
    fn revive(self: Arc<Self>);
    fn pid(&self) -> Pid;
    /// Sends the message in `message`, which is an `Option<M>`. A message that is not accepted
    /// stays in the `Option`. An empty `Option` is refused as a message of another type is.
    fn send_any(&self, message: &mut dyn Any) -> Result<(), SendError<()>>;
    fn send_boxed(&self, message: BoxedMessage) -> Result<(), SendError<BoxedMessage>>;
    /// Returns a boxed `Arc<dyn Receive<M>>`.
    fn receiver(self: Arc<Self>) -> Box<dyn Any>;
    /// Passes a signal to the process. Hands the signal back if the process has ended.
    fn signal(&self, signal: Signal) -> Result<(), Signal>;
    fn kill(&self, reason: ExitReason, is_final: bool);
    /// Returns whether the process was killed for good, or has ended.
    fn ends_for_good(&self) -> bool;
    /// Adds a watcher. Hands the watcher back if the process has ended.
    fn watch(&self, watcher: Watcher) -> Result<(), Watcher>;
    /// Notes that this process monitors another. False if this process has ended.
    fn monitors(&self, target: Pid) -> bool;
    /// Removes all monitors of the target.
    fn unmonitor(&self, target: Pid);
    /// Adds a name or a group. False if the process has ended, and for a group also if it was
    /// killed for good.
    fn name(&self, name: String, is_group: bool) -> bool;
    fn unname(&self, name: &str);
    fn leave(&self, group: &str);
    fn groups(&self) -> Vec<String>;
    /// Returns the supervisor. `None` if there is none, or the process has ended.
    fn supervisor(&self) -> Option<Pid>;
    fn info(&self) -> Info;
}
