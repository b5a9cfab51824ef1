//! The calls with open files.
use super::{
    Ino, Volume,
    changes::{self, Change},
    data::PAGE,
    paths::Kind,
    tree::Node,
};
use crate::{
    choice::Dice,
    errno::{Done, Errno},
};
use std::{mem, time::Duration};

/// The most bytes of a file, as ext4 has it.
const LONGEST: u64 = (1 << 44) - PAGE;

/// The most bytes of a read or a write, as Linux has it.
const MOST: u64 = 0x7fff_f000;

/// How a program opens a file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Access {
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    pub(crate) appends: bool,
    pub(crate) creates: bool,
    /// The file must be new.
    pub(crate) is_new: bool,
    pub(crate) truncates: bool,
    pub(crate) is_directory: bool,
    pub(crate) follows: bool,
    /// Each write is a sync, too.
    pub(crate) syncs: bool,
}

/// An open file.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    pub(crate) disk: usize,
    pub(crate) ino: Ino,
    /// The place of the next read or write.
    pub(crate) at: u64,
    pub(crate) access: Access,
}

/// From where a seek counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Whence {
    Start,
    Here,
    End,
}

/// A sync that has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Syncing {
    ino: Ino,
    until: u64,
    takes: Duration,
}

impl Syncing {
    /// Returns how long it takes.
    pub(crate) fn takes(&self) -> Duration {
        self.takes
    }
}

impl Volume {
    /// Returns how long a read or write takes, beside its copy.
    pub(crate) fn access_time(&self, dice: &dyn Dice) -> Duration {
        Self::choose_time(&self.settings.access_time, dice)
    }

    fn fail_sometimes(&self, dice: &dyn Dice) -> Done<()> {
        match dice.once(self.settings.errors) {
            true => Err(Errno::Io),
            false => Ok(()),
        }
    }

    /// Reads at a place. `to` gets the bytes in parts.
    pub(crate) fn read_at(
        &mut self,
        file: &Opened,
        at: u64,
        most: u64,
        to: impl FnMut(&[u8]),
        (now, dice): (Duration, &dyn Dice),
    ) -> Done<u64> {
        if !file.access.reads {
            return Err(Errno::BadDescriptor);
        }
        if self.is_directory(file.ino) {
            return Err(Errno::IsDirectory);
        }
        self.fail_sometimes(dice)?;
        let inode = self.inode_mut(file.ino);
        inode.times.read = now;
        match &inode.node {
            Node::File { cache, .. } => Ok(cache.read(at, most.min(MOST), to)),
            _ => Err(Errno::Invalid),
        }
    }

    pub(crate) fn read(
        &mut self,
        file: &mut Opened,
        most: u64,
        to: impl FnMut(&[u8]),
        moment: (Duration, &dyn Dice),
    ) -> Done<u64> {
        let count = self.read_at(file, file.at, most, to, moment)?;
        file.at += count;
        Ok(count)
    }

    /// Writes at a place, or at the end of a file that is open for that. Returns the place behind
    /// the bytes that were written, and their number: fewer than all if the disk is full.
    pub(crate) fn write_at(
        &mut self,
        file: &Opened,
        at: u64,
        from: &[&[u8]],
        (now, dice): (Duration, &dyn Dice),
    ) -> Done<(u64, u64)> {
        if !file.access.writes {
            return Err(Errno::BadDescriptor);
        }
        let mut bytes = from.concat();
        bytes.truncate(MOST as usize);
        self.fail_sometimes(dice)?;
        let room = self.free_pages();
        let loses = self.settings.loses;
        let Node::File { cache, .. } = &self.inode(file.ino).node else {
            return Err(Errno::Invalid);
        };
        let at = if file.access.appends { cache.len() } else { at };
        if bytes.is_empty() {
            return Ok((at, 0));
        }
        if at >= LONGEST {
            return Err(Errno::FileTooLarge);
        }
        bytes.truncate((LONGEST - at) as usize);
        // A disk without room for all takes the bytes up to the end of a page.
        let mut len = bytes.len() as u64;
        while cache.missing_pages(at, len) > room {
            let page_end = (at + len - 1) / PAGE * PAGE;
            len = page_end.saturating_sub(at);
            if len == 0 {
                return Err(Errno::NoSpace);
            }
        }
        bytes.truncate(len as usize);
        let count = bytes.len() as u64;
        let number = self.next_change();
        let inode = self.inode_mut(file.ino);
        (inode.times.written, inode.times.changed) = (now, now);
        if let Node::File { cache, changes, .. } = &mut inode.node {
            cache.write(at, &bytes);
            if loses {
                changes.push((number, Change::Write { at, bytes }));
            }
        }
        Ok((at + count, count))
    }

    pub(crate) fn write(
        &mut self,
        file: &mut Opened,
        from: &[&[u8]],
        moment: (Duration, &dyn Dice),
    ) -> Done<u64> {
        let (at, count) = self.write_at(file, file.at, from, moment)?;
        if count > 0 {
            file.at = at;
        }
        Ok(count)
    }

    /// Returns how many pages have room. Those of a file that is over have it, even if its end is
    /// not durable.
    fn free_pages(&self) -> u64 {
        let Some(capacity) = self.settings.capacity else {
            return u64::MAX;
        };
        let pages = self.inodes.values().map(|inode| match &inode.node {
            Node::File { cache, .. } if inode.names > 0 || inode.opens > 0 => cache.pages(),
            _ => 0,
        });
        (capacity / PAGE).saturating_sub(pages.sum())
    }

    pub(crate) fn seek(&mut self, file: &mut Opened, from: Whence, by: i64) -> Done<u64> {
        let base = match (from, &self.inode(file.ino).node) {
            (Whence::Start, _) => 0,
            (Whence::Here, _) => file.at,
            (Whence::End, Node::File { cache, .. }) => cache.len(),
            (Whence::End, _) => return Err(Errno::Invalid),
        };
        let at = base.checked_add_signed(by).filter(|at| *at <= LONGEST);
        file.at = at.ok_or(Errno::Invalid)?;
        Ok(file.at)
    }

    /// Sets the length of a file.
    pub(crate) fn set_len(&mut self, ino: Ino, len: u64, now: Duration) -> Done<()> {
        if len > LONGEST {
            return Err(Errno::FileTooLarge);
        }
        let number = self.next_change();
        let loses = self.settings.loses;
        let inode = self.inode_mut(ino);
        let Node::File { cache, changes, .. } = &mut inode.node else {
            return Err(Errno::Invalid);
        };
        let from = cache.len();
        (inode.times.written, inode.times.changed) = (now, now);
        if from == len {
            return Ok(());
        }
        cache.set_len(len);
        if loses {
            changes.push((number, Change::Length { from, to: len }));
        }
        Ok(())
    }

    /// Reserves room for bytes, and makes the file as long as these need.
    pub(crate) fn allocate(
        &mut self,
        file: &Opened,
        (at, len): (u64, u64),
        keeps_len: bool,
        now: Duration,
    ) -> Done<()> {
        if !file.access.writes {
            return Err(Errno::BadDescriptor);
        }
        let Node::File { cache, .. } = &self.inode(file.ino).node else {
            return Err(Errno::Invalid);
        };
        let end = at.checked_add(len).filter(|end| *end <= LONGEST);
        let end = end.ok_or(Errno::FileTooLarge)?;
        if cache.missing_pages(at, len) > self.free_pages() {
            return Err(Errno::NoSpace);
        }
        if end > cache.len() && !keeps_len {
            self.set_len(file.ino, end, now)?;
        }
        Ok(())
    }

    /// Begins a sync.
    pub(crate) fn begin_sync(&self, ino: Ino, dice: &dyn Dice) -> Syncing {
        Syncing {
            ino,
            until: self.last_change,
            takes: Self::choose_time(&self.settings.fsync_time, dice),
        }
    }

    /// Ends a sync: what was changed before its begin is durable.
    pub(crate) fn end_sync(&mut self, sync: Syncing, dice: &dyn Dice) -> Done<()> {
        let fails = self.fail_sometimes(dice);
        let (tears, is_ordered) = (self.settings.tears, self.settings.is_ordered);
        let Some(inode) = self.inodes.get_mut(&sync.ino) else {
            return fails;
        };
        let is_directory = match &mut inode.node {
            Node::File {
                durable, changes, ..
            } => {
                let later = changes.partition_point(|(number, _)| *number <= sync.until);
                let rest = changes.split_off(later);
                let now = mem::replace(changes, rest);
                match fails {
                    Ok(()) => now.iter().for_each(|(_, change)| change.apply(durable)),
                    Err(_) => _ = changes::leave(durable, &now, tears, dice),
                }
                false
            }
            Node::Directory { .. } => true,
            Node::Link(_) => false,
        };
        fails?;
        if is_ordered {
            self.sync_all_names(sync.until);
        } else if is_directory {
            self.sync_names(sync.ino, sync.until);
        }
        self.free_unused();
        Ok(())
    }

    /// Makes all durable at once.
    pub(crate) fn sync_all(&mut self) {
        for inode in self.inodes.values_mut() {
            if let Node::File {
                durable, changes, ..
            } = &mut inode.node
            {
                let all = mem::take(changes);
                all.iter().for_each(|(_, change)| change.apply(durable));
            }
        }
        self.sync_all_names(u64::MAX);
        self.free_unused();
    }

    /// An open file is closed: all of its descriptors.
    pub(crate) fn close(&mut self, ino: Ino) {
        if let Some(inode) = self.inodes.get_mut(&ino) {
            inode.opens -= 1;
            self.release(ino);
        }
    }

    /// Returns the entries of a directory, in an order that the choices make: names, and files.
    pub(crate) fn list(&self, ino: Ino, dice: &dyn Dice) -> Done<Vec<(Vec<u8>, Ino, Kind)>> {
        let entry = |(name, ino): (&[u8], Ino)| (name.to_vec(), ino, self.stats(ino).kind);
        let own = [(&b"."[..], ino), (&b".."[..], self.parent(ino))];
        let entries = self
            .entries(ino)?
            .iter()
            .map(|(name, ino)| (&name[..], *ino));
        let mut list: Vec<_> = own.into_iter().chain(entries).map(entry).collect();
        for at in 2..list.len() {
            let other = at + dice.below((list.len() - at) as u32) as usize;
            list.swap(at, other);
        }
        Ok(list)
    }
}
