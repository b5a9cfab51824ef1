//! Files: what descriptors lead to.
use super::{
    Done, ERR, Errno, FileId, HUP, HostId, IN, Moment, Network, OUT,
    datagrams::Datagrams,
    epoll::Poll,
    local::{Local, LocalListener},
    streams::{Listener, Stream},
};
use crate::disk::Opened;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(crate) struct File {
    pub(crate) host: HostId,
    /// The number of descriptors.
    descriptors: u32,
    pub(crate) blocks: bool,
    /// The entries of epolls for this file: the epoll, and the descriptor.
    pub(super) watchers: Vec<(FileId, i32)>,
    /// The options that have no effect here, by level and name.
    pub(super) options: BTreeMap<(i32, i32), i32>,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Poll(Poll),
    /// An eventfd.
    Counter(u64),
    Stream(Stream),
    Listener(Listener),
    Datagrams(Datagrams),
    Local(Local),
    LocalListener(LocalListener),
    OnDisk(Opened),
}

impl Network {
    pub(super) fn add_file(&mut self, host: HostId, blocks: bool, kind: Kind) -> Done<usize> {
        let id = self.add_unopened(host, kind);
        let opened = self.open(host, id, blocks);
        if opened.is_err() {
            self.files.remove(&id);
        }
        opened
    }

    /// Adds a file without a descriptor.
    pub(super) fn add_unopened(&mut self, host: HostId, kind: Kind) -> FileId {
        self.last_file += 1;
        let file = File {
            host,
            descriptors: 0,
            blocks: true,
            watchers: Vec::new(),
            options: BTreeMap::new(),
            kind,
        };
        self.files.insert(self.last_file, file);
        self.last_file
    }

    /// Gives a file a descriptor.
    pub(super) fn open(&mut self, host: HostId, id: FileId, blocks: bool) -> Done<usize> {
        let at = self.add_descriptor(host, id)?;
        let file = self.file(id);
        (file.descriptors, file.blocks) = (1, blocks);
        Ok(at)
    }

    /// Returns the file of a descriptor.
    pub(crate) fn file_of(&mut self, host: HostId, at: usize) -> Done<FileId> {
        self.place_of(host, at)?.ok_or(Errno::BadDescriptor)
    }

    pub(super) fn file(&mut self, id: FileId) -> &mut File {
        self.files
            .get_mut(&id)
            .expect("a descriptor keeps its file")
    }

    pub(crate) fn has_file(&self, id: FileId) -> bool {
        self.files.contains_key(&id)
    }

    pub(crate) fn is_counter(&mut self, id: FileId) -> bool {
        matches!(self.file(id).kind, Kind::Counter(_))
    }

    pub(crate) fn blocks(&mut self, id: FileId) -> bool {
        self.file(id).blocks
    }

    pub(crate) fn set_blocks(&mut self, host: HostId, at: usize, blocks: bool) -> Done<()> {
        let id = self.file_of(host, at)?;
        self.file(id).blocks = blocks;
        Ok(())
    }

    /// Makes another descriptor of a file.
    pub(crate) fn duplicate(&mut self, host: HostId, at: usize) -> Done<usize> {
        let id = self.file_of(host, at)?;
        let new = self.add_descriptor(host, id)?;
        self.file(id).descriptors += 1;
        Ok(new)
    }

    /// Closes a descriptor, and its file if it was the last one.
    pub(crate) fn close(&mut self, host: HostId, at: usize, moment: Moment<'_>) -> Done<()> {
        let id = self.file_of(host, at)?;
        *self.place_of(host, at)? = None;
        let file = self.file(id);
        file.descriptors -= 1;
        if file.descriptors > 0 {
            return Ok(());
        }
        let Some(file) = self.files.remove(&id) else {
            return Ok(());
        };
        for (poll, at) in file.watchers {
            if let Some(poll) = self.poll_of(poll) {
                poll.remove(at, id);
            }
        }
        self.unbind(host, id);
        // Threads that wait for the file find that it is gone.
        self.out.wakes.push((id, true));
        match file.kind {
            Kind::Poll(poll) => {
                for watched in poll.files() {
                    if let Some(file) = self.files.get_mut(&watched) {
                        file.watchers.retain(|(by, _)| *by != id);
                    }
                }
            }
            Kind::Counter(_) | Kind::Datagrams(_) => {}
            Kind::Stream(stream) => self.close_stream(&stream, moment),
            Kind::Listener(_) => self.close_listener(id, moment),
            Kind::Local(local) => self.close_local(host, local),
            Kind::LocalListener(listener) => self.close_local_listener(host, listener),
            Kind::OnDisk(opened) => {
                self.release_lock((opened.disk, opened.ino), id);
                self.disks.volume(opened.disk).close(opened.ino);
            }
        }
        Ok(())
    }

    /// Returns the states of a file.
    pub(crate) fn states(&mut self, id: FileId) -> u32 {
        let Some(file) = self.files.get_mut(&id) else {
            return 0;
        };
        match &mut file.kind {
            Kind::Poll(poll) => u32::from(poll.has_ready()) * IN,
            Kind::Counter(0) => OUT,
            Kind::Counter(_) => OUT | IN,
            Kind::Stream(stream) => match stream.end {
                None => OUT | HUP,
                Some(end) => match self.ends.get_mut(&end) {
                    Some(placed) => placed.end.states(),
                    None => OUT | HUP | ERR,
                },
            },
            Kind::Listener(listener) => u32::from(!listener.queue.is_empty()) * IN,
            Kind::Datagrams(datagrams) => datagrams.states(),
            Kind::LocalListener(listener) => u32::from(!listener.queue.is_empty()) * IN,
            Kind::Local(_) => self.states_of_local(id),
            Kind::OnDisk(_) => IN | OUT,
        }
    }
}
