//! The sockets of TCP: their files, and the segments that arrive for them.
use super::{
    Done, Errno, FileId, HostId, IN, Moment, Network,
    files::Kind,
    hosts::Protocol,
    packet::{Kind as SegmentKind, Packet, Segment},
    tcp::{BUFFER, Effects, End, State},
    wire::Event,
};
use std::{collections::VecDeque, net::SocketAddr};

/// An end of a connection, and where it belongs.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(super) host: HostId,
    pub(super) end: End,
    /// The file, if a program has a descriptor.
    file: Option<FileId>,
    /// The listener, if no program has accepted the connection.
    listener: Option<FileId>,
    /// Whether the end is over, and only answers what comes again.
    lingers: bool,
}

/// The name of an end: its host, the number of the connection, and the address of this side.
pub(super) type Name = (HostId, u64, SocketAddr);

/// How long an end answers after it is over, in nanoseconds.
const LINGER: u64 = 60_000_000_000;

impl Placed {
    fn name(&self) -> Name {
        (self.host, self.end.number, self.end.local)
    }
}

/// A socket that does not listen.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(super) is_ipv6: bool,
    pub(super) local: Option<SocketAddr>,
    pub(super) end: Option<u64>,
    /// Whether a call has said that the connection is there.
    is_known: bool,
    /// The sizes of the buffers for what goes out, and for what comes in.
    pub(super) sizes: (usize, usize),
    pub(super) resets_at_close: bool,
}

#[derive(Debug)]
pub(crate) struct Listener {
    pub(super) local: SocketAddr,
    /// The connections to accept.
    pub(super) queue: VecDeque<u64>,
    pub(super) backlog: usize,
    sizes: (usize, usize),
}

impl Listener {
    /// Returns whether the queue has no room: as on Linux, it takes one more than its length.
    fn is_full(&self) -> bool {
        self.queue.len() > self.backlog
    }

    pub(super) fn sizes(&self) -> (usize, usize) {
        self.sizes
    }

    pub(super) fn set_sizes(&mut self, sizes: (usize, usize)) {
        self.sizes = sizes;
    }
}

impl Stream {
    pub(super) fn new(is_ipv6: bool) -> Self {
        Self {
            is_ipv6,
            local: None,
            end: None,
            is_known: false,
            sizes: (BUFFER, BUFFER),
            resets_at_close: false,
        }
    }
}

impl Network {
    fn add_end(&mut self, placed: Placed) -> u64 {
        self.last_end += 1;
        self.names.insert(placed.name(), self.last_end);
        self.ends.insert(self.last_end, placed);
        self.last_end
    }

    pub(super) fn forget_end(&mut self, id: u64) {
        if let Some(placed) = self.ends.remove(&id) {
            self.names.remove(&placed.name());
        }
    }

    /// Does what an end has left to its caller, and forgets the end if it is over.
    fn apply(&mut self, id: u64, effects: Effects, moment: Moment<'_>) {
        let Some(placed) = self.ends.get(&id) else {
            return;
        };
        let (host, to, file) = (placed.host, placed.end.remote, placed.file);
        let is_refused = placed.end.state == State::Dead && placed.file.is_none();
        let is_queued = placed
            .listener
            .is_some_and(|listener| self.is_in_queue(listener, id));
        if placed.end.is_over() || is_refused && !is_queued {
            let is_dead = placed.end.state == State::Dead;
            let lingers = placed.lingers;
            if is_dead {
                self.forget_end(id);
            } else if !lingers {
                // The other side may lack the last answer.
                self.queue
                    .add(moment.now.saturating_add(LINGER), Event::Forget(id));
            }
            if let Some(placed) = self.ends.get_mut(&id) {
                placed.lingers = true;
            }
        } else if let Some((after, number)) = effects.timer {
            let at = moment.now.saturating_add(after);
            self.queue.add(at, Event::Timer(id, number));
        }
        for segment in effects.segments {
            self.send(host, to, Packet::Tcp(segment), moment);
        }
        if let Some(file) = file {
            self.announce(file, effects.news);
        }
    }

    fn is_in_queue(&self, listener: FileId, end: u64) -> bool {
        match self.files.get(&listener).map(|file| &file.kind) {
            Some(Kind::Listener(listener)) => listener.queue.contains(&end),
            _ => false,
        }
    }

    pub(super) fn has_timer(&self, end: u64, number: u64) -> bool {
        let placed = self.ends.get(&end);
        placed.is_some_and(|placed| placed.end.has_timer(number))
    }

    pub(super) fn time_out(&mut self, end: u64, number: u64, moment: Moment<'_>) {
        if !self.has_timer(end, number) {
            return;
        }
        self.with_end(end, moment, |end, effects| {
            end.time_out(moment.dice, effects);
        });
    }

    /// Calls `f` with an end, and does what it leaves to do.
    pub(super) fn with_end<R>(
        &mut self,
        id: u64,
        moment: Moment<'_>,
        f: impl FnOnce(&mut End, &mut Effects) -> R,
    ) -> Option<R> {
        let mut effects = Effects::default();
        let result = f(&mut self.ends.get_mut(&id)?.end, &mut effects);
        self.apply(id, effects, moment);
        Some(result)
    }

    fn find_end(&self, host: HostId, segment: &Segment) -> Option<u64> {
        let name = (host, segment.number, segment.to);
        let id = *self.names.get(&name)?;
        (self.ends[&id].end.remote == segment.from).then_some(id)
    }

    /// Takes a segment that has arrived at a host.
    pub(super) fn receive(&mut self, host: HostId, segment: Segment, moment: Moment<'_>) {
        let Some(id) = self.find_end(host, &segment) else {
            return self.receive_first(host, segment, moment);
        };
        let placed = &self.ends[&id];
        let begins = placed.end.state == State::Accepting
            && matches!(segment.kind, SegmentKind::Data | SegmentKind::Probe);
        let listener = placed.listener.filter(|_| begins);
        if let Some(listener) = listener {
            // The client counts as connected. Its segment is dropped while there is no room, and
            // comes again.
            if self
                .listener(listener)
                .is_none_or(|listener| listener.is_full())
            {
                return;
            }
        }
        self.with_end(id, moment, |end, effects| {
            end.receive(segment, moment.dice, effects);
        });
        if let Some(file) = listener {
            if let Some(listener) = self.listener(file) {
                listener.queue.push_back(id);
                self.announce(file, IN);
            }
        }
    }

    fn listener(&mut self, id: FileId) -> Option<&mut Listener> {
        match &mut self.files.get_mut(&id)?.kind {
            Kind::Listener(listener) => Some(listener),
            _ => None,
        }
    }

    /// Takes a segment of a connection that this host does not have.
    fn receive_first(&mut self, host: HostId, segment: Segment, moment: Moment<'_>) {
        let file = self.bound_to(host, Protocol::Tcp, segment.to);
        let file = file.filter(|_| segment.kind == SegmentKind::Syn);
        let listener = file.and_then(|file| self.listener(file));
        let (Some(file), Some(listener)) = (file, listener) else {
            if segment.kind != SegmentKind::Reset {
                let (to, reset) = (segment.from, End::refuse(&segment));
                self.send(host, to, Packet::Tcp(reset), moment);
            }
            return;
        };
        if listener.is_full() {
            return self.note(host, "queue full", u64::from(segment.to.port()));
        }
        let sizes = listener.sizes;
        let mut effects = Effects::default();
        let end = End::accept(&segment, self.round_trip(), sizes, &mut effects);
        let id = self.add_end(Placed {
            host,
            end,
            file: None,
            listener: Some(file),
            lingers: false,
        });
        self.apply(id, effects, moment);
    }

    fn round_trip(&self) -> u64 {
        self.wires.longest().saturating_mul(2)
    }

    pub(super) fn close_stream(&mut self, stream: &Stream, moment: Moment<'_>) {
        if let Some(end) = stream.end {
            let resets = stream.resets_at_close;
            if let Some(placed) = self.ends.get_mut(&end) {
                placed.file = None;
            }
            self.with_end(end, moment, |end, effects| {
                end.close(resets, moment.dice, effects);
            });
        }
    }

    /// Resets the connections that nobody will accept.
    pub(super) fn close_listener(&mut self, id: FileId, moment: Moment<'_>) {
        let left = self.ends.iter();
        let left = left.filter(|(_, placed)| placed.listener == Some(id));
        let left: Vec<_> = left.map(|(id, _)| *id).collect();
        for end in left {
            self.with_end(end, moment, |end, effects| {
                end.close(true, moment.dice, effects);
            });
        }
    }

    /// Makes a socket listen.
    pub(crate) fn listen(&mut self, host: HostId, at: usize, backlog: usize) -> Done<()> {
        let id = self.file_of(host, at)?;
        if let Some(listener) = self.listener(id) {
            listener.backlog = backlog;
            return Ok(());
        }
        let stream = match &mut self.file(id).kind {
            Kind::Stream(stream) => stream,
            Kind::LocalListener(listener) => {
                listener.backlog = backlog;
                return Ok(());
            }
            Kind::Local(_) => return self.listen_local(id, backlog),
            Kind::OnDisk(_) => return Err(Errno::NotSocket),
            _ => return Err(Errno::NotSupported),
        };
        if stream.end.is_some() {
            return Err(Errno::Invalid);
        }
        let (sizes, is_ipv6) = (stream.sizes, stream.is_ipv6);
        let local = match stream.local {
            Some(local) => local,
            None => self.bind_file(host, Protocol::Tcp, any(is_ipv6), id)?,
        };
        self.file(id).kind = Kind::Listener(Listener {
            local,
            queue: VecDeque::new(),
            backlog,
            sizes,
        });
        Ok(())
    }

    /// Begins a connection, or says how far it has come.
    pub(super) fn connect_stream(
        &mut self,
        host: HostId,
        id: FileId,
        to: SocketAddr,
        moment: Moment<'_>,
    ) -> Done<()> {
        let Kind::Stream(stream) = &mut self.file(id).kind else {
            return Err(Errno::IsConnected);
        };
        if to.is_ipv6() != stream.is_ipv6 {
            return Err(Errno::FamilyNotSupported);
        }
        let (end, local, sizes) = (stream.end, stream.local, stream.sizes);
        if let Some(end) = end {
            let is_known = stream.is_known;
            let end = &mut self.ends.get_mut(&end).ok_or(Errno::NotConnected)?.end;
            return match (end.error.take(), end.state) {
                (Some(error), _) => Err(error),
                (None, State::Connecting | State::Accepting) => Err(Errno::Already),
                (None, State::Open) if is_known => Err(Errno::IsConnected),
                (None, State::Open) => {
                    self.note_connected(id);
                    Ok(())
                }
                (None, State::Dead) => Err(Errno::NotConnected),
            };
        }
        let source = self.source_of(host, to.ip())?;
        let mut to = to;
        if to.ip().is_unspecified() {
            to.set_ip(source);
        }
        let local = match local {
            None => self.bind_file(host, Protocol::Tcp, SocketAddr::new(source, 0), id)?,
            Some(bound) if bound.ip().is_unspecified() => SocketAddr::new(source, bound.port()),
            Some(bound) => bound,
        };
        self.last_connection += 1;
        let (number, round_trip) = (self.last_connection, self.round_trip());
        let mut effects = Effects::default();
        let end = End::connect((local, to), number, round_trip, sizes, &mut effects);
        let end = self.add_end(Placed {
            host,
            end,
            file: Some(id),
            listener: None,
            lingers: false,
        });
        if let Kind::Stream(stream) = &mut self.file(id).kind {
            (stream.local, stream.end) = (Some(local), Some(end));
        }
        self.note(host, "connect", number);
        self.apply(end, effects, moment);
        Err(Errno::InProgress)
    }

    /// Notes that a call has said that the connection is there.
    pub(crate) fn note_connected(&mut self, id: FileId) {
        if let Kind::Stream(stream) = &mut self.file(id).kind {
            stream.is_known = true;
        }
    }

    /// Returns whether a socket is still connecting.
    pub(crate) fn is_connecting(&mut self, id: FileId) -> bool {
        let end = match self.files.get(&id).map(|file| &file.kind) {
            Some(Kind::Stream(stream)) => stream.end,
            _ => None,
        };
        let placed = end.and_then(|end| self.ends.get(&end));
        placed.is_some_and(|placed| placed.end.state == State::Connecting)
    }

    /// Accepts a connection. Returns its descriptor, and the address of its other side.
    pub(crate) fn accept(
        &mut self,
        host: HostId,
        id: FileId,
        blocks: bool,
    ) -> Done<(usize, SocketAddr)> {
        let listener = self.listener(id).ok_or(Errno::Invalid)?;
        let sizes = listener.sizes;
        let first = *listener.queue.front().ok_or(Errno::Again)?;
        let placed = self.ends.get(&first).ok_or(Errno::Again)?;
        let (local, remote, number) = (placed.end.local, placed.end.remote, placed.end.number);
        let at = self.add_file(
            host,
            blocks,
            Kind::Stream(Stream {
                is_ipv6: local.is_ipv6(),
                local: Some(local),
                end: Some(first),
                is_known: true,
                sizes,
                resets_at_close: false,
            }),
        )?;
        let file = self.last_file;
        if let Some(listener) = self.listener(id) {
            listener.queue.pop_front();
        }
        if let Some(placed) = self.ends.get_mut(&first) {
            (placed.file, placed.listener) = (Some(file), None);
        }
        self.note(host, "accept", number);
        Ok((at, remote))
    }
}

/// Returns the unspecified address of a family, with port 0.
pub(super) fn any(is_ipv6: bool) -> SocketAddr {
    match is_ipv6 {
        true => (std::net::Ipv6Addr::UNSPECIFIED, 0).into(),
        false => (std::net::Ipv4Addr::UNSPECIFIED, 0).into(),
    }
}
