//! The calls with paths.
use super::{
    Ino, ROOT, Volume,
    data::PAGE,
    names::Renaming,
    opened::Access,
    tree::{Ends, Inode, Last, Node, Place, Times},
};
use crate::errno::{Done, Errno};
use std::{collections::BTreeMap, time::Duration};

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Directory,
    Link,
}

/// The answer of `stat`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stats {
    pub(crate) ino: Ino,
    pub(crate) kind: Kind,
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
    pub(crate) links: u64,
    pub(crate) len: u64,
    /// The number of blocks of 512 bytes.
    pub(crate) blocks: u64,
    pub(crate) times: Times,
}

impl Volume {
    fn add(&mut self, place: (Ino, Vec<u8>), node: Node, mode: u32, now: Duration) -> Done<Ino> {
        if self.inode(place.0).names == 0 {
            return Err(Errno::NoEntry);
        }
        self.last_ino += 1;
        let ino = self.last_ino;
        let inode = Inode {
            node,
            mode,
            owner: (0, 0),
            names: 0,
            opens: 0,
            times: Times {
                born: now,
                read: now,
                written: now,
                changed: now,
            },
        };
        self.inodes.insert(ino, inode);
        self.renamed(Renaming {
            ino,
            lost: None,
            new: Some(place.clone()),
            needs: Vec::new(),
        });
        self.insert(place, ino, now);
        Ok(ino)
    }

    /// Gives a file a name in the cache.
    fn insert(&mut self, (directory, name): (Ino, Vec<u8>), ino: Ino, now: Duration) {
        self.change_entries(directory, now, |entries| _ = entries.insert(name, ino));
        let inode = self.inode_mut(ino);
        inode.names += 1;
        inode.times.changed = now;
        if let Node::Directory { parent, .. } = &mut inode.node {
            *parent = directory;
        }
    }

    /// Takes a name from the cache. The file may be over then.
    fn remove(&mut self, directory: Ino, name: &[u8], now: Duration) -> Option<Ino> {
        let mut removed = None;
        self.change_entries(directory, now, |entries| removed = entries.remove(name));
        let inode = self.inode_mut(removed?);
        inode.names -= 1;
        inode.times.changed = now;
        removed
    }

    fn change_entries(
        &mut self,
        directory: Ino,
        now: Duration,
        change: impl FnOnce(&mut BTreeMap<Vec<u8>, Ino>),
    ) {
        let inode = self.inode_mut(directory);
        (inode.times.written, inode.times.changed) = (now, now);
        if let Node::Directory { entries, .. } = &mut inode.node {
            change(entries);
        }
    }

    /// Opens a file: returns its number. The file counts as open then.
    pub(crate) fn open(
        &mut self,
        start: Ino,
        path: &[u8],
        access: Access,
        mode: u32,
        now: Duration,
    ) -> Done<Ino> {
        if access.creates && path.ends_with(b"/") {
            let place = self.walk(start, path, Ends::Stay)?;
            if place.last == Last::Name {
                return Err(Errno::IsDirectory);
            }
        }
        let follows = access.follows && !(access.creates && access.is_new);
        let place = self.walk(start, path, Ends::following(follows))?;
        let ino = match place.found {
            Some(_) if access.creates && access.is_new => return Err(Errno::Exists),
            Some(ino) => {
                self.check_open(&place, ino, access)?;
                ino
            }
            None if !access.creates => return Err(Errno::NoEntry),
            None => self.add((place.directory, place.name), Node::file(), mode, now)?,
        };
        self.inode_mut(ino).opens += 1;
        if access.truncates {
            // A failure is not possible: a shorter file takes no pages.
            _ = self.set_len(ino, 0, now);
        }
        Ok(ino)
    }

    /// Checks whether a file that there is may be opened.
    fn check_open(&self, place: &Place, ino: Ino, access: Access) -> Done<()> {
        let is_directory = self.is_directory(ino);
        if access.creates && (is_directory || place.has_slash) {
            return Err(Errno::IsDirectory);
        }
        if (access.is_directory || place.has_slash) && !is_directory {
            return Err(Errno::NotDirectory);
        }
        if self.target(ino).is_some() {
            return Err(Errno::Loop);
        }
        if is_directory && (access.writes || access.truncates) {
            return Err(Errno::IsDirectory);
        }
        Ok(())
    }

    pub(crate) fn stats(&self, ino: Ino) -> Stats {
        let inode = self.inode(ino);
        let (kind, len, pages) = match &inode.node {
            Node::File { cache, .. } => (Kind::File, cache.len(), cache.pages()),
            Node::Directory { .. } => (Kind::Directory, PAGE, 1),
            Node::Link(target) => (Kind::Link, target.len() as u64, 0),
        };
        let links = match &inode.node {
            Node::Directory { entries, .. } if inode.names > 0 => {
                let below = entries.values().filter(|ino| self.is_directory(**ino));
                2 + below.count() as u64
            }
            _ => inode.names,
        };
        Stats {
            ino,
            kind,
            mode: inode.mode,
            owner: inode.owner,
            links,
            len,
            blocks: pages * (PAGE / 512),
            times: inode.times,
        }
    }

    /// Returns the file of a path.
    pub(crate) fn look_up(&self, start: Ino, path: &[u8], follows: bool) -> Done<Ino> {
        self.find(start, path, follows)
    }

    pub(crate) fn make_directory(
        &mut self,
        start: Ino,
        path: &[u8],
        mode: u32,
        now: Duration,
    ) -> Done<()> {
        let place = self.walk(start, path, Ends::Stay)?;
        let (directory, name) = place.free()?;
        let node = Node::directory(directory);
        self.add((directory, name), node, mode, now).map(drop)
    }

    pub(crate) fn make_link(
        &mut self,
        target: &[u8],
        start: Ino,
        path: &[u8],
        now: Duration,
    ) -> Done<()> {
        if target.is_empty() {
            return Err(Errno::NoEntry);
        }
        let place = self.walk(start, path, Ends::Stay)?;
        let has_slash = place.has_slash;
        let place = place.free()?;
        if has_slash {
            return Err(Errno::NoEntry);
        }
        self.add(place, Node::Link(target.to_vec()), 0o777, now)
            .map(drop)
    }

    pub(crate) fn read_link(&self, start: Ino, path: &[u8]) -> Done<Vec<u8>> {
        let ino = self.find(start, path, false)?;
        self.target(ino).map(<[u8]>::to_vec).ok_or(Errno::Invalid)
    }

    /// Gives a file one more name.
    pub(crate) fn link(
        &mut self,
        (from, old): (Ino, &[u8]),
        (to, new): (Ino, &[u8]),
        follows: bool,
        now: Duration,
    ) -> Done<()> {
        let ino = self.find(from, old, follows)?;
        let place = self.walk(to, new, Ends::Stay)?;
        let has_slash = place.has_slash;
        let place = place.free()?;
        if has_slash {
            return Err(Errno::NoEntry);
        }
        if self.is_directory(ino) {
            return Err(Errno::NotPermitted);
        }
        if self.inode(ino).names == 0 || self.inode(place.0).names == 0 {
            return Err(Errno::NoEntry);
        }
        self.renamed(Renaming {
            ino,
            lost: None,
            new: Some(place.clone()),
            needs: self.up_from(place.0),
        });
        self.insert(place, ino, now);
        Ok(())
    }

    /// Removes the name of a file.
    pub(crate) fn unlink(&mut self, start: Ino, path: &[u8], now: Duration) -> Done<()> {
        let place = self.walk(start, path, Ends::Stay)?;
        if place.last != Last::Name {
            return Err(Errno::IsDirectory);
        }
        let ino = place.found.ok_or(Errno::NoEntry)?;
        if self.is_directory(ino) {
            return Err(Errno::IsDirectory);
        }
        if place.has_slash {
            return Err(Errno::NotDirectory);
        }
        self.take_name(place.directory, place.name, now);
        Ok(())
    }

    /// Removes a directory.
    pub(crate) fn remove_directory(&mut self, start: Ino, path: &[u8], now: Duration) -> Done<()> {
        let place = self.walk(start, path, Ends::Stay)?;
        match place.last {
            Last::Dot if place.found == Some(ROOT) => return Err(Errno::Busy),
            Last::Dot => return Err(Errno::Invalid),
            Last::DotDot => return Err(Errno::DirectoryNotEmpty),
            Last::Name => {}
        }
        let ino = place.found.ok_or(Errno::NoEntry)?;
        if !self.entries(ino)?.is_empty() {
            return Err(Errno::DirectoryNotEmpty);
        }
        self.take_name(place.directory, place.name, now);
        Ok(())
    }

    /// Takes a name from its file, which may be over then.
    fn take_name(&mut self, directory: Ino, name: Vec<u8>, now: Duration) {
        if let Some(ino) = self.remove(directory, &name, now) {
            self.renamed(Renaming {
                ino,
                lost: Some((directory, name)),
                new: None,
                needs: Vec::new(),
            });
            self.release(ino);
        }
    }

    /// Renames a file. `replaces` says whether the new name may be that of another one.
    pub(crate) fn rename(
        &mut self,
        (from, old): (Ino, &[u8]),
        (to, new): (Ino, &[u8]),
        replaces: bool,
        now: Duration,
    ) -> Done<()> {
        let old = self.walk(from, old, Ends::Stay)?;
        let new = self.walk(to, new, Ends::Stay)?;
        if old.last != Last::Name || new.last != Last::Name {
            let is_taken = old.last == Last::Name && !replaces;
            return Err(if is_taken { Errno::Exists } else { Errno::Busy });
        }
        let ino = old.found.ok_or(Errno::NoEntry)?;
        if !replaces && new.found.is_some() {
            return Err(Errno::Exists);
        }
        let is_directory = self.is_directory(ino);
        if !is_directory && (old.has_slash || new.has_slash) {
            return Err(Errno::NotDirectory);
        }
        if self.is_within(new.directory, ino) {
            return Err(Errno::Invalid);
        }
        if new
            .found
            .is_some_and(|found| self.is_within(old.directory, found))
        {
            return Err(Errno::DirectoryNotEmpty);
        }
        if new.found == Some(ino) {
            return Ok(());
        }
        if let Some(found) = new.found {
            match (is_directory, self.is_directory(found)) {
                (true, false) => return Err(Errno::NotDirectory),
                (false, true) => return Err(Errno::IsDirectory),
                (true, true) if !self.entries(found)?.is_empty() => {
                    return Err(Errno::DirectoryNotEmpty);
                }
                _ => {}
            }
        }
        if self.inode(new.directory).names == 0 {
            return Err(Errno::NoEntry);
        }
        self.remove(old.directory, &old.name, now);
        let replaced = self.remove(new.directory, &new.name, now);
        let place = (new.directory, new.name);
        self.renamed(Renaming {
            ino,
            lost: Some((old.directory, old.name)),
            new: Some(place.clone()),
            needs: self.up_from(place.0),
        });
        self.insert(place, ino, now);
        if let Some(replaced) = replaced {
            self.release(replaced);
        }
        Ok(())
    }

    /// Returns whether `ino` is this directory, or one above it.
    fn is_within(&self, mut directory: Ino, ino: Ino) -> bool {
        while directory != ino {
            if directory == ROOT {
                return false;
            }
            directory = self.parent(directory);
        }
        true
    }

    /// Returns the whole path of a file, without symbolic links.
    pub(crate) fn real_path(&self, start: Ino, path: &[u8]) -> Done<Vec<u8>> {
        // The C library looks at one part after the other, so the path may be long.
        let place = self.walk_on(start, path, Ends::Follow, &mut 0)?;
        let found = place.found.ok_or(Errno::NoEntry)?;
        if place.has_slash && !self.is_directory(found) {
            return Err(Errno::NotDirectory);
        }
        Ok(self.path_of(&place))
    }

    pub(crate) fn set_mode(&mut self, ino: Ino, mode: u32, now: Duration) {
        let inode = self.inode_mut(ino);
        inode.mode = mode & 0o7777;
        inode.times.changed = now;
    }

    /// Sets the owner and the group, or one of them.
    pub(crate) fn set_owner(
        &mut self,
        ino: Ino,
        (user, group): (Option<u32>, Option<u32>),
        now: Duration,
    ) {
        let inode = self.inode_mut(ino);
        inode.owner = (
            user.unwrap_or(inode.owner.0),
            group.unwrap_or(inode.owner.1),
        );
        inode.times.changed = now;
    }

    /// Sets the times of the last read and of the last write.
    pub(crate) fn set_times(
        &mut self,
        ino: Ino,
        (read, written): (Option<Duration>, Option<Duration>),
        now: Duration,
    ) {
        let times = &mut self.inode_mut(ino).times;
        times.read = read.unwrap_or(times.read);
        times.written = written.unwrap_or(times.written);
        times.changed = now;
    }
}
