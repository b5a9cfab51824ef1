//! The end of a process, as a future.
use crate::{ExitReason, Handle, Pid, oneshot, watcher::Watcher};
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use worker_idle::park::{ThreadPark, block_on};

/// The future of [`Handle::exit_of`].
///
/// ```
/// use process_scheduler::{ExitReason, Flow, Scheduler};
///
/// let scheduler = Scheduler::new();
/// let once = scheduler.spawn_fn(|_: u8, _| Flow::Stop).unwrap();
/// let exit = scheduler.exit_of(once.pid());
/// once.try_send(1).unwrap();
/// assert_eq!(exit.wait(), ExitReason::Normal);
/// ```
#[must_use = "the reason is in the future"]
pub struct Exit {
    receiver: oneshot::Receiver<ExitReason>,
}

impl Exit {
    /// Blocks the thread until the process has ended.
    pub fn wait(self) -> ExitReason {
        block_on(&mut ThreadPark::new(), self)
    }
}

impl Future for Exit {
    type Output = ExitReason;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<ExitReason> {
        let reason = self.receiver.poll(cx);
        reason.map(|reason| reason.unwrap_or(ExitReason::NoProcess))
    }
}

impl fmt::Debug for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Exit")
    }
}

impl Handle {
    /// Returns a future of the reason for which a process ends. The reason is
    /// [`ExitReason::NoProcess`] if this node has no such process.
    pub fn exit_of(&self, pid: Pid) -> Exit {
        let (sender, receiver) = oneshot::channel();
        let watcher = Watcher::Thread(sender);
        if let Some(cell) = self.registry().get(pid) {
            drop(cell.watch(watcher));
        }
        Exit { receiver }
    }

    /// Blocks the thread until a process has ended, and returns the reason. The reason is
    /// [`ExitReason::NoProcess`] if this node has no such process.
    ///
    /// A process must not wait here, because the wait would block the process's worker. A process
    /// calls [`monitor`](Self::monitor) instead.
    pub fn wait(&self, pid: Pid) -> ExitReason {
        self.exit_of(pid).wait()
    }
}
