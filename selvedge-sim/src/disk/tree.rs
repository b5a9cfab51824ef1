//! The files of a disk, and how a path leads to them.
use super::{Ino, ROOT, Volume, changes::Changes, data::Data};
use crate::errno::{Done, Errno};
use std::{collections::BTreeMap, time::Duration};

/// The most bytes of a name.
const LONGEST_NAME: usize = 255;
/// The most bytes of a path, with its end.
const LONGEST_PATH: usize = 4_096;
/// The most symbolic links that a path leads through.
const MOST_LINKS: u32 = 40;

/// A file, directory or symbolic link.
#[derive(Debug)]
pub(super) struct Inode {
    pub(super) node: Node,
    /// The permissions. Nothing here checks them, as for the user root.
    pub(super) mode: u32,
    pub(super) owner: (u32, u32),
    /// The number of names, in the cache. A directory has one.
    pub(super) names: u64,
    /// The number of open files.
    pub(super) opens: u64,
    pub(super) times: Times,
}

/// The times of a file, since 1970.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    pub(crate) born: Duration,
    pub(crate) read: Duration,
    pub(crate) written: Duration,
    pub(crate) changed: Duration,
}

#[derive(Debug)]
pub(super) enum Node {
    File {
        /// The bytes that programs read.
        cache: Data,
        /// The bytes that a crash leaves in any case.
        durable: Data,
        /// The changes between them.
        changes: Changes,
    },
    Directory {
        entries: BTreeMap<Vec<u8>, Ino>,
        durable: BTreeMap<Vec<u8>, Ino>,
        parent: Ino,
    },
    Link(Vec<u8>),
}

impl Node {
    pub(super) fn directory(parent: Ino) -> Self {
        Self::Directory {
            entries: BTreeMap::new(),
            durable: BTreeMap::new(),
            parent,
        }
    }

    pub(super) fn file() -> Self {
        Self::File {
            cache: Data::default(),
            durable: Data::default(),
            changes: Vec::new(),
        }
    }
}

/// The last part of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Last {
    /// There is a name.
    Name,
    /// `.`, or nothing: the mount point.
    Dot,
    /// `..`.
    DotDot,
}

/// The meaning of a symbolic link at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// It is followed.
    Follow,
    /// It is followed if the path ends with a slash.
    Slash,
    /// It is the end.
    Stay,
}

impl Ends {
    pub(super) fn following(follows: bool) -> Self {
        if follows { Self::Follow } else { Self::Slash }
    }
}

/// The end of a path: a name in a directory, and the file that has it.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) directory: Ino,
    pub(super) name: Vec<u8>,
    pub(super) last: Last,
    pub(super) found: Option<Ino>,
    /// The path ends with a slash.
    pub(super) has_slash: bool,
}

impl Place {
    /// Returns the name that gets a new file.
    pub(super) fn free(self) -> Done<(Ino, Vec<u8>)> {
        match self.found {
            Some(_) => Err(Errno::Exists),
            None => Ok((self.directory, self.name)),
        }
    }
}

impl Volume {
    pub(super) fn inode(&self, ino: Ino) -> &Inode {
        &self.inodes[&ino]
    }

    pub(super) fn inode_mut(&mut self, ino: Ino) -> &mut Inode {
        let inode = self.inodes.get_mut(&ino);
        inode.expect("a name or an open file keeps its file")
    }

    pub(super) fn is_directory(&self, ino: Ino) -> bool {
        matches!(self.inode(ino).node, Node::Directory { .. })
    }

    pub(super) fn entries(&self, ino: Ino) -> Done<&BTreeMap<Vec<u8>, Ino>> {
        match &self.inode(ino).node {
            Node::Directory { entries, .. } => Ok(entries),
            _ => Err(Errno::NotDirectory),
        }
    }

    /// Returns the directory above one. That of a directory which was removed may be gone: then it
    /// is the mount point.
    pub(super) fn parent(&self, ino: Ino) -> Ino {
        match &self.inode(ino).node {
            Node::Directory { parent, .. } if self.inodes.contains_key(parent) => *parent,
            _ => ROOT,
        }
    }

    /// Follows a path from a directory, up to its last part.
    pub(super) fn walk(&self, start: Ino, path: &[u8], ends: Ends) -> Done<Place> {
        if path.len() >= LONGEST_PATH {
            return Err(Errno::NameTooLong);
        }
        self.walk_on(start, path, ends, &mut 0)
    }

    pub(super) fn walk_on(
        &self,
        start: Ino,
        path: &[u8],
        ends: Ends,
        links: &mut u32,
    ) -> Done<Place> {
        let has_slash = path.last() == Some(&b'/');
        let mut parts = path
            .split(|byte| *byte == b'/')
            .filter(|part| !part.is_empty());
        let mut parts = std::iter::from_fn(|| parts.next()).peekable();
        let mut place = Place {
            directory: start,
            name: Vec::new(),
            last: Last::Dot,
            found: Some(start),
            has_slash,
        };
        while let Some(part) = parts.next() {
            let directory = place.found.ok_or(Errno::NoEntry)?;
            let entries = self.entries(directory)?;
            if part.len() > LONGEST_NAME {
                return Err(Errno::NameTooLong);
            }
            let (last, found) = match part {
                b"." => (Last::Dot, Some(directory)),
                b".." => (Last::DotDot, Some(self.parent(directory))),
                _ => (Last::Name, entries.get(part).copied()),
            };
            place = Place {
                directory,
                name: part.to_vec(),
                last,
                found,
                has_slash,
            };
            let is_last = parts.peek().is_none();
            let Some(target) = found.and_then(|found| self.target(found)) else {
                continue;
            };
            let stays = match ends {
                Ends::Follow => false,
                Ends::Slash => !has_slash,
                Ends::Stay => true,
            };
            if is_last && stays {
                continue;
            }
            *links += 1;
            if *links > MOST_LINKS {
                return Err(Errno::Loop);
            }
            let (start, target) = self.start_of(directory, target)?;
            let led = self.walk_on(start, target, Ends::Follow, links)?;
            place = Place {
                has_slash: has_slash || led.has_slash,
                ..led
            };
        }
        Ok(place)
    }

    /// Returns the text of a symbolic link.
    pub(super) fn target(&self, ino: Ino) -> Option<&[u8]> {
        match &self.inode(ino).node {
            Node::Link(target) => Some(target),
            _ => None,
        }
    }

    /// Returns where the text of a symbolic link begins, and the rest of it.
    fn start_of<'a>(&self, directory: Ino, target: &'a [u8]) -> Done<(Ino, &'a [u8])> {
        if !target.starts_with(b"/") {
            return Ok((directory, target));
        }
        // A link that leads away from the disk leads nowhere.
        let rest = super::strip(&self.mounted_at, target).ok_or(Errno::NoEntry)?;
        Ok((ROOT, rest))
    }

    /// Returns the file at the end of a path.
    pub(super) fn find(&self, start: Ino, path: &[u8], follows: bool) -> Done<Ino> {
        let place = self.walk(start, path, Ends::following(follows))?;
        let found = place.found.ok_or(Errno::NoEntry)?;
        if place.has_slash && !self.is_directory(found) {
            return Err(Errno::NotDirectory);
        }
        Ok(found)
    }

    /// Returns the path of a directory, or of a name in it, with that of the disk.
    pub(super) fn path_of(&self, place: &Place) -> Vec<u8> {
        let mut names: Vec<&[u8]> = Vec::new();
        let mut at = match place.last {
            Last::Name => {
                names.push(&place.name);
                place.directory
            }
            Last::Dot | Last::DotDot => place.found.unwrap_or(place.directory),
        };
        while at != ROOT {
            let parent = self.parent(at);
            let entries = self.entries(parent).into_iter().flatten();
            let name = entries.into_iter().find(|(_, ino)| **ino == at);
            names.push(name.map_or(b"", |(name, _)| name));
            at = parent;
        }
        let mut path = self.mounted_at.clone();
        for name in names.into_iter().rev() {
            path.push(b'/');
            path.extend(name);
        }
        path
    }
}
