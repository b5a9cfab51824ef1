//! The disks of simulated hosts.
//!
//! A disk has two states of each file and directory: that of the page cache, which programs see,
//! and the durable one. They are apart only if a crash may lose something (`Disk::lost_unsynced`).
//!
//! 1. *Content.* A write changes the cache. It is also a [`Change`](changes::Change) with a number,
//!    in the list of its file. A sync of the file applies the changes with numbers up to that of
//!    its begin to the durable content, when its time is over. So a crash during a sync finds them
//!    as before it.
//! 2. *Names.* A new name, a lost one, or a rename is a change in a list of the disk (`names`). A
//!    sync of the directory applies those that concern it, and the earlier ones that these need: of
//!    the same name, or of the same file. A sync of a file does not, unless metadata is ordered.
//! 3. *A crash* chooses for each list what is left of it. The changes of one sector, of one name
//!    and of one file's names are left from the first one on. Then the cache becomes a copy of the
//!    durable state, and all files without a durable name are gone.
//! 4. *The end of a file.* A file is freed if it has no name, is not open, has no durable name, and
//!    no change names it.
//! 5. Modes, owners and times are durable at once.
//! 6. *Errors* are choices. After a failed sync of a file its changes are no longer in the list: a
//!    part of them is durable, as after a crash, and the cache stays.
mod changes;
mod data;
mod locks;
mod names;
mod opened;
mod paths;
mod tree;

pub(crate) use opened::{Access, Opened, Syncing, Whence};
pub(crate) use paths::{Kind, Stats};
pub(crate) use tree::Times;

use crate::{choice::Dice, disk_settings::Disk};
use locks::Lock;
use names::Renaming;
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    time::Duration,
};
use tree::{Inode, Node};

/// The number of a file on a disk.
pub(crate) type Ino = u64;

/// The directory at the mount point.
pub(crate) const ROOT: Ino = 1;

/// The disks of all hosts.
#[derive(Debug, Default)]
pub(crate) struct Disks {
    all: Vec<Mounted>,
    locks: BTreeMap<(usize, Ino), Lock>,
}

#[derive(Debug)]
struct Mounted {
    host: usize,
    volume: Volume,
}

/// A disk.
#[derive(Debug)]
pub(crate) struct Volume {
    settings: Disk,
    /// The path of the mount point.
    mounted_at: Vec<u8>,
    inodes: BTreeMap<Ino, Inode>,
    renamings: Vec<(u64, Renaming)>,
    last_ino: Ino,
    last_change: u64,
}

/// Returns the rest of a path that leads below `prefix`.
fn strip<'p>(prefix: &[u8], path: &'p [u8]) -> Option<&'p [u8]> {
    let mut rest = path.strip_prefix(b"/")?;
    for part in prefix
        .split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty())
    {
        while let Some(after) = rest.strip_prefix(b"/") {
            rest = after;
        }
        rest = rest.strip_prefix(part)?;
        if !rest.is_empty() && !rest.starts_with(b"/") {
            return None;
        }
    }
    Some(rest)
}

impl Disks {
    pub(crate) fn mount(&mut self, host: usize, at: &str, settings: Disk) {
        let volume = Volume::new(at.as_bytes().to_vec(), settings);
        self.all.push(Mounted { host, volume });
    }

    /// Returns the disk of a path, and the rest of the path. The deepest mount point counts.
    pub(crate) fn find<'p>(&self, host: usize, path: &'p [u8]) -> Option<(usize, &'p [u8])> {
        let own = self
            .all
            .iter()
            .enumerate()
            .filter(|(_, disk)| disk.host == host);
        let found = own.filter_map(|(at, disk)| Some((at, strip(&disk.volume.mounted_at, path)?)));
        found.min_by_key(|(_, rest)| rest.len())
    }

    pub(crate) fn volume(&mut self, disk: usize) -> &mut Volume {
        &mut self.all[disk].volume
    }

    /// A host crashes. Returns how many changes its disks have lost.
    pub(crate) fn crash(&mut self, host: usize, dice: &dyn Dice) -> u64 {
        self.locks
            .retain(|(disk, _), _| self.all[*disk].host != host);
        let own = self.all.iter_mut().filter(|disk| disk.host == host);
        own.map(|disk| disk.volume.crash(dice)).sum()
    }
}

impl Volume {
    fn new(mounted_at: Vec<u8>, settings: Disk) -> Self {
        let root = Inode {
            node: Node::directory(ROOT),
            mode: 0o755,
            owner: (0, 0),
            names: 1,
            opens: 0,
            times: Times::default(),
        };
        Self {
            settings,
            mounted_at,
            inodes: BTreeMap::from([(ROOT, root)]),
            renamings: Vec::new(),
            last_ino: ROOT,
            last_change: 0,
        }
    }

    fn next_change(&mut self) -> u64 {
        self.last_change += 1;
        self.last_change
    }

    /// Frees the files that nothing leads to (rule 4).
    fn free_unused(&mut self) {
        let is_over = |inode: &Inode| inode.names == 0 && inode.opens == 0;
        loop {
            let mut over: BTreeSet<Ino> = BTreeSet::new();
            over.extend(
                self.inodes
                    .iter()
                    .filter(|(_, inode)| is_over(inode))
                    .map(|(ino, _)| ino),
            );
            if over.is_empty() {
                return;
            }
            for inode in self.inodes.values() {
                if let Node::Directory { durable, .. } = &inode.node {
                    durable.values().for_each(|ino| _ = over.remove(ino));
                }
            }
            for (_, renaming) in &self.renamings {
                over.remove(&renaming.ino);
            }
            if over.is_empty() {
                return;
            }
            for ino in over {
                self.inodes.remove(&ino);
            }
        }
    }

    /// Frees a file if nothing leads to it.
    fn release(&mut self, ino: Ino) {
        let inode = self.inode(ino);
        if inode.names > 0 || inode.opens > 0 {
            return;
        }
        match self.settings.loses {
            true => self.free_unused(),
            false => _ = self.inodes.remove(&ino),
        }
    }

    /// The host crashes (rule 3).
    fn crash(&mut self, dice: &dyn Dice) -> u64 {
        self.inodes.values_mut().for_each(|inode| inode.opens = 0);
        if !self.settings.loses {
            self.inodes.retain(|_, inode| inode.names > 0);
            return 0;
        }
        let mut lost = 0;
        let tears = self.settings.tears;
        for inode in self.inodes.values_mut() {
            if let Node::File {
                cache,
                durable,
                changes,
            } = &mut inode.node
            {
                lost += changes::leave(durable, changes, tears, dice);
                changes.clear();
                *cache = durable.clone();
            }
        }
        lost += self.leave_names(dice);
        self.rebuild();
        lost
    }

    /// Makes the cache of directories that of the durable names.
    fn rebuild(&mut self) {
        self.inodes.values_mut().for_each(|inode| inode.names = 0);
        let mut next = vec![(ROOT, ROOT)];
        while let Some((ino, above)) = next.pop() {
            let inode = self.inode_mut(ino);
            inode.names += 1;
            let Node::Directory {
                entries,
                durable,
                parent,
            } = &mut inode.node
            else {
                continue;
            };
            *parent = above;
            // The changes of one file's names are left in their order, so a directory has one name.
            entries.clone_from(durable);
            next.extend(durable.values().map(|entry| (*entry, ino)));
        }
        self.inodes.retain(|_, inode| inode.names > 0);
    }

    fn choose_time(span: &Range<Duration>, dice: &dyn Dice) -> Duration {
        // A choice is a number of microseconds.
        let spread = span.end.saturating_sub(span.start).as_micros();
        match u32::try_from(spread).unwrap_or(u32::MAX) {
            0 | 1 => span.start,
            spread => span.start + Duration::from_micros(dice.below(spread).into()),
        }
    }
}
