//! The relations of a process to others: links, monitors, names, groups, its supervisor, and the
//! reason of its kill. Most processes have none of these, so the first relation of a process
//! allocates the place for all of them.
use crate::{ExitReason, Pid, watcher::Watcher};
use std::mem;

/// The relations of a process to other processes.
pub(super) enum Related {
    None,
    Some(Box<RelationLists>),
    Ended,
}

#[derive(Default)]
pub(super) struct RelationLists {
    pub(super) links: Vec<Pid>,
    pub(super) watchers: Vec<Watcher>,
    /// The processes that this one watches.
    pub(super) monitored: Vec<Pid>,
    pub(super) names: Vec<String>,
    pub(super) groups: Vec<String>,
    pub(super) killed: Option<ExitReason>,
    pub(super) supervisor: Option<Pid>,
}

impl RelationLists {
    /// Takes the threads that wait no longer out of the list of watchers, if the list is full. Then
    /// reserves room for as many new watchers as are left in the list. So the list is full, and is
    /// searched again, only after that many additions.
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
