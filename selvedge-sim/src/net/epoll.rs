//! Epoll, and the counters that end its waits.
//!
//! An entry is in the list of ready ones at most once. A wait takes it from there, and reports it
//! with the states that it has at that time, unless it has none. An edge-triggered entry then stays
//! away until news of its file come.
use super::{Done, ERR, Errno, FileId, HUP, HostId, IN, Network, files::Kind};
use std::collections::{BTreeMap, VecDeque};

const EDGE: u32 = 1 << 31;
const ONCE: u32 = 1 << 30;

#[derive(Debug, Default)]
pub(crate) struct Poll {
    entries: BTreeMap<(i32, FileId), Entry>,
    ready: VecDeque<(i32, FileId)>,
}

#[derive(Debug)]
struct Entry {
    interest: u32,
    token: u64,
    is_ready: bool,
}

/// A change of an epoll's entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Add,
    Modify,
    Delete,
}

impl Poll {
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    pub(super) fn files(&self) -> impl Iterator<Item = FileId> {
        self.entries.keys().map(|(_, file)| *file)
    }

    pub(super) fn remove(&mut self, at: i32, file: FileId) {
        self.entries.remove(&(at, file));
        self.ready.retain(|key| *key != (at, file));
    }

    /// Puts an entry into the list, if its interest meets the news. Returns whether it is new
    /// there.
    fn announce(&mut self, key: (i32, FileId), news: u32) -> bool {
        let Some(entry) = self.entries.get_mut(&key) else {
            return false;
        };
        if entry.interest & news == 0 || entry.is_ready {
            return false;
        }
        entry.is_ready = true;
        self.ready.push_back(key);
        true
    }
}

impl Network {
    pub(crate) fn make_poll(&mut self, host: HostId) -> Done<usize> {
        self.add_file(host, true, Kind::Poll(Poll::default()))
    }

    pub(crate) fn make_counter(&mut self, host: HostId, first: u64, blocks: bool) -> Done<usize> {
        self.add_file(host, blocks, Kind::Counter(first))
    }

    pub(super) fn poll_of(&mut self, id: FileId) -> Option<&mut Poll> {
        match &mut self.files.get_mut(&id)?.kind {
            Kind::Poll(poll) => Some(poll),
            _ => None,
        }
    }

    /// Tells the pollers, and the threads that wait for this file, of states that have begun.
    pub(super) fn announce(&mut self, file: FileId, news: u32) {
        if news == 0 {
            return;
        }
        self.out.wakes.push((file, true));
        let Some(watched) = self.files.get(&file) else {
            return;
        };
        for (poll, at) in watched.watchers.clone() {
            let poll_id = poll;
            if self
                .poll_of(poll)
                .is_some_and(|poll| poll.announce((at, file), news))
            {
                self.out.wakes.push((poll_id, false));
            }
        }
    }

    /// Changes an entry of an epoll. `at` is the descriptor as the program knows it.
    pub(crate) fn control(
        &mut self,
        host: HostId,
        poll: usize,
        change: Change,
        (index, at): (usize, i32),
        (interest, token): (u32, u64),
    ) -> Done<()> {
        let (poll, file) = (self.file_of(host, poll)?, self.file_of(host, index)?);
        if self.is_on_disk(file) {
            return Err(Errno::NotPermitted);
        }
        let entries = &mut self.poll_of(poll).ok_or(Errno::Invalid)?.entries;
        let is_known = entries.contains_key(&(at, file));
        match change {
            Change::Add if is_known => return Err(Errno::Exists),
            Change::Modify | Change::Delete if !is_known => return Err(Errno::NoEntry),
            _ => {}
        }
        if change == Change::Delete {
            if let Some(poll) = self.poll_of(poll) {
                poll.remove(at, file);
            }
            let watchers = &mut self.file(file).watchers;
            watchers.retain(|watcher| *watcher != (poll, at));
            return Ok(());
        }
        let entry = entries.entry((at, file)).or_insert(Entry {
            interest: 0,
            token: 0,
            is_ready: false,
        });
        (entry.interest, entry.token) = (interest | ERR | HUP, token);
        if change == Change::Add {
            self.file(file).watchers.push((poll, at));
        }
        let states = self.states(file);
        let is_new = |poll: &mut Poll| poll.announce((at, file), states);
        if self.poll_of(poll).is_some_and(is_new) {
            self.out.wakes.push((poll, false));
        }
        Ok(())
    }

    /// Takes up to `max` events.
    pub(crate) fn take_events(&mut self, id: FileId, max: usize) -> Done<Vec<(u32, u64)>> {
        let mut events = Vec::new();
        let mut again = Vec::new();
        while events.len() < max {
            let poll = self.poll_of(id).ok_or(Errno::Invalid)?;
            let Some(key) = poll.ready.pop_front() else {
                break;
            };
            let states = self.states(key.1);
            let Some(entry) = self.poll_of(id).and_then(|poll| poll.entries.get_mut(&key)) else {
                continue;
            };
            entry.is_ready = false;
            let states = states & entry.interest;
            if states == 0 {
                continue;
            }
            events.push((states, entry.token));
            if entry.interest & ONCE != 0 {
                entry.interest = 0;
            } else if entry.interest & EDGE == 0 {
                entry.is_ready = true;
                again.push(key);
            }
        }
        if let Some(poll) = self.poll_of(id) {
            poll.ready.extend(again);
        }
        Ok(events)
    }

    /// Adds to a counter, which is an edge each time.
    pub(crate) fn add_to_counter(&mut self, id: FileId, number: u64) -> Done<()> {
        let Kind::Counter(count) = &mut self.file(id).kind else {
            return Err(Errno::Invalid);
        };
        match count.checked_add(number).filter(|sum| *sum < u64::MAX) {
            Some(sum) => *count = sum,
            None => return Err(Errno::Again),
        }
        self.announce(id, IN);
        Ok(())
    }

    pub(crate) fn take_counter(&mut self, id: FileId) -> Done<u64> {
        match &mut self.file(id).kind {
            Kind::Counter(0) => Err(Errno::Again),
            Kind::Counter(count) => Ok(std::mem::take(count)),
            _ => Err(Errno::Invalid),
        }
    }
}
