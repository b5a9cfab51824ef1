//! The names and groups of all nodes, as this node knows them.
//!
//! Each node owns the names and the memberships of its own processes, and feeds the others: all of
//! them when a session begins, and then each change. A change is set or unset, so one that comes
//! twice does no harm. When a session ends, the names of the other node are forgotten.
//!
//! 1. A name is registered by a node that knows no other process with it. Two nodes may do so at
//!    once, or on two sides of a split. Then the name is that of the node with the older
//!    incarnation, and the other node takes its own registration back, and tells so. Nodes that
//!    know the same registrations find the same process.
//! 2. A frame of the feed is queued under the lock, in the order of the changes.
//! 3. A process of the scheduler, the registrar, monitors the processes of this node that have
//!    names or are members, and takes them out when they end.
use crate::{
    change::NodeChange,
    decode_error::DecodeError,
    identity::{Identities, Incarnation},
    wire::{Decoder, Encoder},
};
use process_scheduler::Pid;
use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The frames of the feed, to all other nodes or to one.
pub(crate) trait Feed {
    fn send(&self, body: &[u8]);
    fn identities(&self) -> &Identities;
}

/// The processes that the registrar is to monitor.
pub(crate) enum Watch {
    Process(Pid),
    /// All processes in the directory.
    All,
}

/// The most bytes of a name.
pub(crate) const MOST: usize = 1_000;

/// Why a process has not got a name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegisterError {
    /// This process has the name.
    Taken(Pid),
    /// This node has no such process: a name is registered on the node of its process.
    NotHere,
    /// The name has more than 1,000 bytes.
    TooLong,
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken(pid) => write!(f, "process {pid} has the name"),
            Self::NotHere => f.write_str("this node has no such process"),
            Self::TooLong => write!(f, "the name has more than {MOST} bytes"),
        }
    }
}

impl std::error::Error for RegisterError {}

#[derive(Default)]
pub(crate) struct Directory {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// The registrations of a name, which are several only until one is taken back.
    names: HashMap<String, Vec<(Incarnation, Pid)>>,
    groups: HashMap<String, HashSet<Pid>>,
}

/// A change that a frame of the feed tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Registers,
    Unregisters,
    Joins,
    Leaves,
}

impl Change {
    fn body(self, name: &str, pid: Pid, feed: &impl Feed) -> Vec<u8> {
        let mut out = Encoder::new(feed.identities());
        out.u8(self as u8);
        out.str(name);
        out.u64(pid.to_bits() as u64);
        out.bytes
    }
}

impl Inner {
    /// Applies a change. Returns whether it was one.
    fn apply(&mut self, change: Change, name: &str, of: Incarnation, pid: Pid) -> bool {
        match change {
            Change::Registers => {
                let entries = self.names.entry(name.to_owned()).or_default();
                let is_new = !entries.contains(&(of, pid));
                if is_new {
                    entries.push((of, pid));
                    entries.sort_unstable();
                }
                is_new
            }
            Change::Unregisters => {
                let Some(entries) = self.names.get_mut(name) else {
                    return false;
                };
                let before = entries.len();
                entries.retain(|entry| *entry != (of, pid));
                let changed = entries.len() < before;
                if entries.is_empty() {
                    self.names.remove(name);
                }
                changed
            }
            Change::Joins => self.groups.entry(name.to_owned()).or_default().insert(pid),
            Change::Leaves => {
                let Some(members) = self.groups.get_mut(name) else {
                    return false;
                };
                let changed = members.remove(&pid);
                if members.is_empty() {
                    self.groups.remove(name);
                }
                changed
            }
        }
    }
}

impl Directory {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies a change of a process of this node, and feeds the others. `may` looks before, under
    /// the lock.
    fn change<E>(
        &self,
        feed: &impl Feed,
        change: Change,
        name: &str,
        pid: Pid,
        may: impl FnOnce(&Inner) -> Result<(), E>,
    ) -> Result<bool, E> {
        let mut inner = self.lock();
        may(&inner)?;
        let changed = inner.apply(change, name, feed.identities().own(), pid);
        if changed {
            feed.send(&change.body(name, pid, feed));
        }
        Ok(changed)
    }

    pub(crate) fn register(
        &self,
        feed: &impl Feed,
        name: &str,
        pid: Pid,
    ) -> Result<(), RegisterError> {
        self.change(feed, Change::Registers, name, pid, |inner| {
            let taken = inner.names.get(name).and_then(|entries| entries.first());
            taken.map_or(Ok(()), |(_, pid)| Err(RegisterError::Taken(*pid)))
        })?;
        Ok(())
    }

    /// Takes a name away from a process of this node. Returns whether one had it.
    pub(crate) fn unregister(&self, feed: &impl Feed, name: &str) -> bool {
        let own = feed.identities().own();
        let holder = {
            let inner = self.lock();
            let entries = inner.names.get(name).into_iter().flatten();
            entries
                .filter(|entry| entry.0 == own)
                .map(|entry| entry.1)
                .next()
        };
        let unregister = |pid| {
            let may = |_: &Inner| Ok::<_, ()>(());
            self.change(feed, Change::Unregisters, name, pid, may)
        };
        holder.is_some_and(|pid| unregister(pid) == Ok(true))
    }

    pub(crate) fn whereis(&self, name: &str) -> Option<Pid> {
        let inner = self.lock();
        inner.names.get(name)?.first().map(|(_, pid)| *pid)
    }

    pub(crate) fn join(&self, feed: &impl Feed, group: &str, pid: Pid) {
        let may = |_: &Inner| Ok::<_, ()>(());
        let _ = self.change(feed, Change::Joins, group, pid, may);
    }

    pub(crate) fn leave(&self, feed: &impl Feed, group: &str, pid: Pid) -> bool {
        let may = |_: &Inner| Ok::<_, ()>(());
        pid.node() == feed.identities().own_number()
            && self.change(feed, Change::Leaves, group, pid, may) == Ok(true)
    }

    /// Returns the members of a group, in the order of their pids.
    pub(crate) fn members(&self, group: &str) -> Vec<Pid> {
        let inner = self.lock();
        let members = inner.groups.get(group).into_iter().flatten();
        let mut members: Vec<_> = members.copied().collect();
        members.sort_unstable();
        members
    }

    /// Returns the members of a group that are of this node.
    pub(crate) fn own_members(&self, feed: &impl Feed, group: &str) -> Vec<Pid> {
        let own = feed.identities().own_number();
        let mut members = self.members(group);
        members.retain(|pid| pid.node() == own);
        members
    }

    /// Returns the processes of this node that have names or are members.
    pub(crate) fn own_processes(&self, feed: &impl Feed) -> HashSet<Pid> {
        let own = feed.identities().own_number();
        let inner = self.lock();
        let named = inner.names.values().flatten().map(|(_, pid)| pid);
        let all = named.chain(inner.groups.values().flatten());
        all.filter(|pid| pid.node() == own).copied().collect()
    }

    /// Takes a process of this node that has ended out of everything.
    pub(crate) fn forget_process(&self, feed: &impl Feed, pid: Pid) {
        self.forget_if(feed, |own| own == pid);
    }

    /// Takes all processes of this node out of everything.
    pub(crate) fn forget_own(&self, feed: &impl Feed) {
        self.forget_if(feed, |_| true);
    }

    fn forget_if(&self, feed: &impl Feed, is_gone: impl Fn(Pid) -> bool) {
        let (own, number) = (feed.identities().own(), feed.identities().own_number());
        let mut inner = self.lock();
        let mut changes = Vec::new();
        for (name, entries) in &inner.names {
            let gone = entries
                .iter()
                .filter(|(of, pid)| *of == own && is_gone(*pid));
            changes.extend(gone.map(|(_, pid)| (Change::Unregisters, name.clone(), *pid)));
        }
        for (group, members) in &inner.groups {
            let gone = members
                .iter()
                .filter(|pid| pid.node() == number && is_gone(**pid));
            changes.extend(gone.map(|pid| (Change::Leaves, group.clone(), *pid)));
        }
        for (change, name, pid) in changes {
            if inner.apply(change, &name, own, pid) {
                feed.send(&change.body(&name, pid, feed));
            }
        }
    }

    /// Feeds all of this node's names and members to a peer whose session has begun.
    pub(crate) fn send_all(&self, feed: &impl Feed) {
        let (own, number) = (feed.identities().own(), feed.identities().own_number());
        let inner = self.lock();
        for (name, entries) in &inner.names {
            for (_, pid) in entries.iter().filter(|entry| entry.0 == own) {
                feed.send(&Change::Registers.body(name, *pid, feed));
            }
        }
        for (group, members) in &inner.groups {
            for pid in members.iter().filter(|pid| pid.node() == number) {
                feed.send(&Change::Joins.body(group, *pid, feed));
            }
        }
    }

    /// Forgets the names and members of a node that is lost.
    pub(crate) fn forget_node(&self, number: u32) {
        let mut inner = self.lock();
        inner.names.retain(|_, entries| {
            entries.retain(|(_, pid)| pid.node() != number);
            !entries.is_empty()
        });
        inner.groups.retain(|_, members| {
            members.retain(|pid| pid.node() != number);
            !members.is_empty()
        });
    }

    /// Takes a frame of another node's feed. Returns the loss of a name of this node. `node` runs
    /// under the lock: a node that it returns was not forgotten yet.
    pub(crate) fn take(
        &self,
        feed: &impl Feed,
        node: impl Fn() -> Option<u32>,
        mut input: Decoder<'_>,
    ) -> Result<Option<NodeChange>, DecodeError> {
        let change = match input.u8()? {
            0 => Change::Registers,
            1 => Change::Unregisters,
            2 => Change::Joins,
            3 => Change::Leaves,
            _ => return Err(DecodeError::Invalid),
        };
        let name = input.str()?;
        let pid = Pid::from_bits(input.u64()?.into()).ok_or(DecodeError::Invalid)?;
        input.end()?;
        if name.len() > MOST {
            return Err(DecodeError::Invalid);
        }
        let mut inner = self.lock();
        let Some(node) = node() else {
            return Ok(None);
        };
        let (of, own) = (
            feed.identities().incarnation_of(node),
            feed.identities().own(),
        );
        inner.apply(change, name, of, pid.with_node(node));
        // Rule 1.
        let entries = inner.names.get(name).map_or(&[][..], Vec::as_slice);
        let ours = entries.iter().find(|entry| entry.0 == own).copied();
        let is_older = entries.first().is_some_and(|first| first.0 < own);
        if let Some((_, lost)) = ours.filter(|_| is_older) {
            inner.apply(Change::Unregisters, name, own, lost);
            feed.send(&Change::Unregisters.body(name, lost, feed));
            return Ok(Some(NodeChange::NameLost {
                name: name.to_owned(),
                pid: lost,
            }));
        }
        Ok(None)
    }
}
