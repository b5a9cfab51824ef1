//! The stream sockets of Unix: two files of one host, each with the bytes for the other one's
//! reads.
//!
//! Bytes arrive at once, and none is lost. A name lasts as long as its listener.
use super::{
    Done, ERR, Errno, FileId, HUP, HostId, IN, Network, OUT, RDHUP, files::Kind, tcp::BUFFER,
};
use std::collections::VecDeque;

/// The name of a socket: a path, or an abstract name with its zero byte.
pub(crate) type LocalName = Vec<u8>;

/// A socket that does not listen.
#[derive(Debug, Default)]
pub(crate) struct Local {
    name: LocalName,
    peer_name: LocalName,
    /// The other side. `None` before the connection, and once the other side is closed.
    peer: Option<FileId>,
    was_connected: bool,
    inbox: VecDeque<u8>,
    /// The other side writes no more.
    has_end: bool,
    ends: bool,
    lacks_space: bool,
    /// The other side was closed with bytes unread.
    was_reset: bool,
}

/// A listener.
#[derive(Debug)]
pub(crate) struct LocalListener {
    name: LocalName,
    pub(super) queue: VecDeque<FileId>,
    pub(super) backlog: usize,
}

impl Network {
    fn local(&mut self, id: FileId) -> Done<&mut Local> {
        match self.files.get_mut(&id).map(|file| &mut file.kind) {
            Some(Kind::Local(local)) => Ok(local),
            _ => Err(Errno::NotSupported),
        }
    }

    fn peer_of(&mut self, id: FileId) -> Option<FileId> {
        self.local(id).ok()?.peer
    }

    /// Makes two sockets that are connected.
    pub(crate) fn make_pair(&mut self, host: HostId, blocks: bool) -> Done<(usize, usize)> {
        let one = self.add_file(host, blocks, Kind::Local(Local::default()))?;
        let first = self.last_file;
        let other = self.add_file(host, blocks, Kind::Local(Local::default()))?;
        self.join(first, self.last_file);
        Ok((one, other))
    }

    fn join(&mut self, one: FileId, other: FileId) {
        for (one, other) in [(one, other), (other, one)] {
            if let Ok(local) = self.local(one) {
                (local.peer, local.was_connected) = (Some(other), true);
            }
        }
    }

    pub(crate) fn bind_local(&mut self, host: HostId, id: FileId, name: LocalName) -> Done<()> {
        if name.is_empty() {
            return Err(Errno::Invalid);
        }
        if self.hosts[host].local_names.contains_key(&name) {
            return Err(Errno::AddressInUse);
        }
        let local = self.local(id)?;
        if !local.name.is_empty() {
            return Err(Errno::Invalid);
        }
        local.name.clone_from(&name);
        self.hosts[host].local_names.insert(name, id);
        Ok(())
    }

    pub(super) fn listen_local(&mut self, id: FileId, backlog: usize) -> Done<()> {
        let local = self.local(id)?;
        if local.name.is_empty() || local.was_connected {
            return Err(Errno::Invalid);
        }
        let name = std::mem::take(&mut local.name);
        self.file(id).kind = Kind::LocalListener(LocalListener {
            name,
            queue: VecDeque::new(),
            backlog,
        });
        Ok(())
    }

    /// Connects to a listener, whose queue takes the other side at once.
    pub(crate) fn connect_local(&mut self, host: HostId, id: FileId, name: &LocalName) -> Done<()> {
        let local = self.local(id)?;
        if local.was_connected {
            return Err(Errno::IsConnected);
        }
        let own_name = local.name.clone();
        let listener = *self.hosts[host]
            .local_names
            .get(name)
            .ok_or(Errno::NoEntry)?;
        let Kind::LocalListener(queue) = &self.file(listener).kind else {
            return Err(Errno::ConnectionRefused);
        };
        if queue.queue.len() > queue.backlog {
            return Err(Errno::Again);
        }
        let other = self.add_unopened(
            host,
            Kind::Local(Local {
                name: name.clone(),
                peer_name: own_name,
                ..Local::default()
            }),
        );
        self.join(id, other);
        self.local(id)?.peer_name.clone_from(name);
        if let Kind::LocalListener(listener) = &mut self.file(listener).kind {
            listener.queue.push_back(other);
        }
        self.announce(listener, IN);
        self.announce(id, OUT);
        Ok(())
    }

    /// Accepts a connection. Returns its descriptor.
    pub(crate) fn accept_local(&mut self, host: HostId, id: FileId, blocks: bool) -> Done<usize> {
        let Kind::LocalListener(listener) = &self.file(id).kind else {
            return Err(Errno::Invalid);
        };
        let first = *listener.queue.front().ok_or(Errno::Again)?;
        let at = self.open(host, first, blocks)?;
        if let Kind::LocalListener(listener) = &mut self.file(id).kind {
            listener.queue.pop_front();
        }
        Ok(at)
    }

    /// Returns the name of this side, or of the other one. `None` if the file is another kind of
    /// socket.
    pub(crate) fn local_name(&mut self, id: FileId, is_remote: bool) -> Option<Done<LocalName>> {
        match &self.file(id).kind {
            Kind::LocalListener(_) if is_remote => Some(Err(Errno::NotConnected)),
            Kind::LocalListener(listener) => Some(Ok(listener.name.clone())),
            Kind::Local(local) if !is_remote => Some(Ok(local.name.clone())),
            Kind::Local(local) if local.was_connected => Some(Ok(local.peer_name.clone())),
            Kind::Local(_) => Some(Err(Errno::NotConnected)),
            _ => None,
        }
    }

    pub(super) fn write_local(&mut self, id: FileId, from: &[&[u8]]) -> Done<usize> {
        let local = self.local(id)?;
        if !local.was_connected {
            return Err(Errno::NotConnected);
        }
        let peer = local.peer.filter(|_| !local.ends).ok_or(Errno::Pipe)?;
        let inbox = &mut self.local(peer)?.inbox;
        let room = BUFFER.saturating_sub(inbox.len());
        let wanted = from.iter().map(|part| part.len()).sum::<usize>();
        let mut left = room;
        for part in from {
            let taken = &part[..part.len().min(left)];
            inbox.extend(taken);
            left -= taken.len();
        }
        let count = room - left;
        self.local(id)?.lacks_space |= count < wanted;
        if count > 0 {
            self.announce(peer, IN);
        }
        match count {
            0 if wanted > 0 => Err(Errno::Again),
            count => Ok(count),
        }
    }

    pub(super) fn read_local(
        &mut self,
        id: FileId,
        (most, peeks): (usize, bool),
        mut to: impl FnMut(&[u8]),
    ) -> Done<(usize, usize)> {
        let local = self.local(id)?;
        if !local.was_connected {
            return Err(Errno::Invalid);
        }
        let count = most.min(local.inbox.len());
        if count == 0 && most > 0 {
            if std::mem::take(&mut local.was_reset) {
                return Err(Errno::ConnectionReset);
            }
            return if local.has_end {
                Ok((0, 1))
            } else {
                Err(Errno::Again)
            };
        }
        let (front, back) = local.inbox.as_slices();
        let first = count.min(front.len());
        to(&front[..first]);
        to(&back[..count - first]);
        if !peeks {
            local.inbox.drain(..count);
        }
        let left = local.inbox.len();
        if let Some(peer) = local.peer.filter(|_| left <= BUFFER / 2) {
            if std::mem::take(&mut self.local(peer)?.lacks_space) {
                self.announce(peer, OUT);
            }
        }
        Ok((count, left))
    }

    pub(super) fn shut_down_local(
        &mut self,
        id: FileId,
        (reads, writes): (bool, bool),
    ) -> Done<()> {
        let local = self.local(id)?;
        let peer = local.peer.ok_or(Errno::NotConnected)?;
        local.has_end |= reads;
        local.ends |= writes;
        let other = self.local(peer)?;
        other.has_end |= writes;
        other.ends |= reads;
        for one in [id, peer] {
            self.announce(one, IN | OUT | RDHUP | HUP);
        }
        Ok(())
    }

    /// The last descriptor of a socket was closed.
    pub(super) fn close_local(&mut self, host: HostId, local: Local) {
        self.hosts[host].local_names.remove(&local.name);
        if let Some(peer) = local.peer {
            if let Ok(other) = self.local(peer) {
                (other.peer, other.has_end) = (None, true);
                other.was_reset |= !local.inbox.is_empty();
            }
            self.announce(peer, IN | OUT | RDHUP | HUP | ERR);
        }
    }

    pub(super) fn close_local_listener(&mut self, host: HostId, listener: LocalListener) {
        self.hosts[host].local_names.remove(&listener.name);
        for waiting in listener.queue {
            if let Some(Kind::Local(mut local)) = self.files.remove(&waiting).map(|file| file.kind)
            {
                // The name is the listener's.
                local.name.clear();
                self.close_local(host, local);
            }
        }
    }

    pub(super) fn states_of_local(&mut self, id: FileId) -> u32 {
        let room = self.peer_of(id).and_then(|peer| {
            let peer = self.local(peer).ok()?;
            Some(peer.inbox.len() <= BUFFER / 2)
        });
        let Ok(local) = self.local(id) else {
            return 0;
        };
        if !local.was_connected {
            return OUT | HUP;
        }
        let is_gone = local.peer.is_none();
        let mut states = 0;
        if !local.inbox.is_empty() || local.has_end || is_gone {
            states |= IN;
        }
        if local.has_end || is_gone {
            states |= RDHUP;
        }
        if is_gone || local.has_end && local.ends {
            states |= HUP;
        }
        if local.was_reset {
            states |= ERR;
        }
        if room.unwrap_or(true) {
            states |= OUT;
        } else {
            local.lacks_space = true;
        }
        states
    }
}
