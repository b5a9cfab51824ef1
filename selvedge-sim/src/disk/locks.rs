//! The locks of files, as `flock` has them.
use super::{Disks, Ino};

/// The number of an open file.
type Holder = u64;

/// The lock of a file.
#[derive(Debug, Default)]
pub(crate) struct Lock {
    holders: Vec<Holder>,
    is_exclusive: bool,
    waiting: Vec<Holder>,
}

impl Lock {
    /// Takes the lock for an open file. A lock that it has had is over then. Returns false if
    /// others hold it.
    pub(crate) fn take(&mut self, by: Holder, is_exclusive: bool) -> bool {
        self.holders.retain(|holder| *holder != by);
        let is_free = self.holders.is_empty() || !is_exclusive && !self.is_exclusive;
        if is_free {
            self.holders.push(by);
            self.is_exclusive = is_exclusive;
        } else {
            self.waiting.push(by);
        }
        is_free
    }

    /// Returns the open files whose threads are to be woken, as for the network.
    pub(crate) fn take_waiting(&mut self) -> Vec<(Holder, bool)> {
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_iter().map(|holder| (holder, true)).collect()
    }
}

impl Disks {
    pub(crate) fn lock(&mut self, file: (usize, Ino)) -> &mut Lock {
        self.locks.entry(file).or_default()
    }

    /// Ends the lock of an open file. Returns those whose threads are to be woken.
    pub(crate) fn unlock(&mut self, file: (usize, Ino), by: Holder) -> Vec<(Holder, bool)> {
        let Some(lock) = self.locks.get_mut(&file) else {
            return Vec::new();
        };
        lock.holders.retain(|holder| *holder != by);
        let waiting = lock.take_waiting();
        if lock.holders.is_empty() {
            self.locks.remove(&file);
        }
        waiting
    }
}
