//! The relations of a process to others: links, monitors, names, groups, its supervisor, and the
//! reason of its kill. Most processes have none of these, so the first relation of a process
//! allocates the place for all of them.
use super::Cell;
use crate::{ExitReason, Pid, Process, oneshot};
use std::mem;

/// The relations of a process to other processes.
pub(super) enum Related {
    None,
    Some(Box<More>),
    Ended,
}

#[derive(Default)]
pub(super) struct More {
    pub(super) links: Vec<Pid>,
    pub(super) watchers: Vec<Watcher>,
    /// The processes that this one watches.
    pub(super) monitored: Vec<Pid>,
    pub(super) names: Vec<String>,
    pub(super) groups: Vec<String>,
    pub(super) killed: Option<ExitReason>,
    pub(super) supervisor: Option<Pid>,
}

impl More {
    /// Takes the threads that wait no longer out of the list of watchers, if the list is full. Then
    /// reserves room for as many new watchers as are left: the next look comes only after those.
    pub(super) fn take_abandoned(&mut self) -> Vec<Watcher> {
        if self.watchers.len() < self.watchers.capacity() {
            return Vec::new();
        }
        let all = mem::take(&mut self.watchers).into_iter();
        let (abandoned, mut rest): (_, Vec<_>) = all.partition(Watcher::is_abandoned);
        rest.reserve(rest.len() + 1);
        self.watchers = rest;
        abandoned
    }
}

/// A process or thread that is notified when the process of a cell ends.
pub(crate) enum Watcher {
    Process(Pid),
    Thread(oneshot::Sender<ExitReason>),
}

impl Watcher {
    fn is_abandoned(&self) -> bool {
        matches!(self, Self::Thread(sender) if sender.is_abandoned())
    }
}

impl<P: Process> Cell<P> {
    /// Changes the relations by `f`. `None` if the process has ended.
    pub(super) fn relate<R>(&self, f: impl FnOnce(&mut More) -> R) -> Option<R> {
        let mut related = self.related.lock();
        if let Related::None = *related {
            *related = Related::Some(Box::default());
        }
        match &mut *related {
            Related::Some(more) => Some(f(more)),
            _ => None,
        }
    }

    /// Takes out the reason of the kill. Returns `Killed` if there is none.
    pub(super) fn killed(&self) -> ExitReason {
        let killed = self.relate(|more| more.killed.take()).flatten();
        killed.unwrap_or(ExitReason::Killed)
    }
}
