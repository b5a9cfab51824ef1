//! The changes of names that no sync has made durable, and what a crash leaves of them.
use super::{Ino, ROOT, Volume, tree::Node};
use crate::choice::Dice;
use std::collections::BTreeSet;

/// A change of names. A rename is one change, so it is durable as a whole.
#[derive(Clone, Debug)]
pub(super) struct Renaming {
    /// The file that gets a name, or loses it.
    pub(super) ino: Ino,
    /// The name that is lost.
    pub(super) lost: Option<Name>,
    /// The name that is new.
    pub(super) new: Option<Name>,
    /// The directories without which an old file would have no name: that of the new name, and
    /// those above it.
    pub(super) needs: Vec<Ino>,
}

/// A name in a directory.
pub(super) type Name = (Ino, Vec<u8>);

impl Renaming {
    fn names(&self) -> impl Iterator<Item = &Name> {
        self.lost.iter().chain(&self.new)
    }

    fn is_in(&self, directory: Ino) -> bool {
        self.names().any(|(of, _)| *of == directory)
    }
}

/// The names and files of some changes. Changes that share one stay in their order.
#[derive(Default)]
struct Touched(BTreeSet<Name>, BTreeSet<Ino>);

impl Touched {
    fn add(&mut self, change: &Renaming) {
        self.0.extend(change.names().cloned());
        self.1.insert(change.ino);
    }

    fn meets(&self, change: &Renaming) -> bool {
        self.1.contains(&change.ino) || change.names().any(|name| self.0.contains(name))
    }

    fn has_any(&self, files: &[Ino]) -> bool {
        files.iter().any(|ino| self.1.contains(ino))
    }
}

impl Volume {
    /// Records a change of names.
    pub(super) fn renamed(&mut self, renaming: Renaming) {
        if self.settings.loses {
            let change = self.next_change();
            self.renamings.push((change, renaming));
        }
    }

    /// Returns a directory and those above it, but for the mount point.
    pub(super) fn up_from(&self, directory: Ino) -> Vec<Ino> {
        let mut all = Vec::new();
        let mut next = directory;
        while next != ROOT {
            all.push(next);
            next = self.parent(next);
        }
        all
    }

    fn make_durable(&mut self, change: Renaming) {
        for (name, ino) in [(change.lost, None), (change.new, Some(change.ino))] {
            let Some((directory, name)) = name else {
                continue;
            };
            let Some(inode) = self.inodes.get_mut(&directory) else {
                continue;
            };
            if let Node::Directory { durable, .. } = &mut inode.node {
                match ino {
                    Some(ino) => durable.insert(name, ino),
                    None => durable.remove(&name),
                };
            }
        }
    }

    /// Makes the names of a directory durable: the changes up to this one, and those which they
    /// need.
    pub(super) fn sync_names(&mut self, directory: Ino, until: u64) {
        let mut needed = Touched::default();
        let mut durable = Vec::new();
        for at in (0..self.renamings.len()).rev() {
            let (change, renaming) = &self.renamings[at];
            if *change <= until && (renaming.is_in(directory) || needed.meets(renaming)) {
                needed.add(renaming);
                needed.1.extend(&renaming.needs);
                durable.push(self.renamings.remove(at).1);
            }
        }
        durable
            .into_iter()
            .rev()
            .for_each(|one| self.make_durable(one));
    }

    /// Makes all names durable: the changes up to this one.
    pub(super) fn sync_all_names(&mut self, until: u64) {
        let later = self
            .renamings
            .partition_point(|(change, _)| *change <= until);
        let rest = self.renamings.split_off(later);
        let durable = std::mem::replace(&mut self.renamings, rest);
        durable
            .into_iter()
            .for_each(|(_, one)| self.make_durable(one));
    }

    /// A crash leaves some of the changes. Returns how many are lost.
    pub(super) fn leave_names(&mut self, dice: &dyn Dice) -> u64 {
        let changes = std::mem::take(&mut self.renamings);
        if changes.is_empty() {
            return 0;
        }
        let count = changes.len() as u32;
        let (kept, scatters) = match self.settings.is_ordered {
            true => (count - dice.below(count + 1), false),
            false => [(count, false), (0, false), (0, true)][dice.below(3) as usize],
        };
        let mut lost = Touched::default();
        let mut count = 0;
        for (at, (_, change)) in (0_u32..).zip(changes) {
            let is_needed = || lost.meets(&change) || lost.has_any(&change.needs);
            let may_stay = scatters && !is_needed();
            if at < kept || may_stay && dice.below(2) == 0 {
                self.make_durable(change);
            } else {
                lost.add(&change);
                count += 1;
            }
        }
        count
    }
}
