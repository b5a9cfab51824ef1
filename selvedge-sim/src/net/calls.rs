//! The calls of programs, by descriptor.
use super::{
    Done, Errno, FileId, HostId, Moment, Network,
    datagrams::Datagrams,
    files::Kind,
    hosts::Protocol,
    local::Local,
    streams::{Stream, any},
};
use std::net::SocketAddr;

/// The family of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Ipv4,
    Ipv6,
    Unix,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Stream,
    Datagram,
}

/// The address of a socket, or of nobody.
pub(crate) type Address = Option<SocketAddr>;

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The bytes that were given, or the whole length of a datagram.
    pub(crate) len: usize,
    /// The bytes that are left, for a stream.
    pub(crate) left: usize,
    /// The sender of a datagram.
    pub(crate) from: Address,
}

impl Network {
    pub(crate) fn make_socket(
        &mut self,
        host: HostId,
        family: Family,
        kind: Type,
        blocks: bool,
    ) -> Done<usize> {
        let is_ipv6 = family == Family::Ipv6;
        let kind = match kind {
            Type::Stream if family == Family::Unix => Kind::Local(Local::default()),
            Type::Datagram if family == Family::Unix => return Err(Errno::FamilyNotSupported),
            Type::Stream => Kind::Stream(Stream::new(is_ipv6)),
            Type::Datagram => Kind::Datagrams(Datagrams::new(is_ipv6)),
        };
        self.add_file(host, blocks, kind)
    }

    pub(crate) fn bind(&mut self, host: HostId, id: FileId, to: SocketAddr) -> Done<()> {
        let (protocol, local) = match &self.file(id).kind {
            Kind::Stream(stream) => (Protocol::Tcp, stream.local),
            Kind::Datagrams(datagrams) => (Protocol::Udp, datagrams.local),
            Kind::Listener(_) | Kind::LocalListener(_) | Kind::Local(_) => {
                return Err(Errno::Invalid);
            }
            Kind::Poll(_) | Kind::Counter(_) | Kind::OnDisk(_) => return Err(Errno::NotSocket),
        };
        if local.is_some() {
            return Err(Errno::Invalid);
        }
        let bound = self.bind_file(host, protocol, to, id)?;
        match &mut self.file(id).kind {
            Kind::Stream(stream) => stream.local = Some(bound),
            Kind::Datagrams(datagrams) => datagrams.local = Some(bound),
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn connect(
        &mut self,
        host: HostId,
        id: FileId,
        to: SocketAddr,
        moment: Moment<'_>,
    ) -> Done<()> {
        match &self.file(id).kind {
            Kind::Stream(_) | Kind::Listener(_) => self.connect_stream(host, id, to, moment),
            Kind::Datagrams(_) => self.connect_datagrams(host, id, to),
            Kind::Local(_) | Kind::LocalListener(_) => Err(Errno::FamilyNotSupported),
            Kind::Poll(_) | Kind::Counter(_) | Kind::OnDisk(_) => Err(Errno::NotSocket),
        }
    }

    /// Returns the address of this side.
    pub(crate) fn local_address(&mut self, id: FileId) -> Done<SocketAddr> {
        Ok(match &self.file(id).kind {
            Kind::Stream(stream) => stream.local.unwrap_or(any(stream.is_ipv6)),
            Kind::Listener(listener) => listener.local,
            Kind::Datagrams(datagrams) => datagrams.local.unwrap_or(any(datagrams.is_ipv6())),
            Kind::Local(_) | Kind::LocalListener(_) => return Err(Errno::NotSupported),
            Kind::Poll(_) | Kind::Counter(_) | Kind::OnDisk(_) => return Err(Errno::NotSocket),
        })
    }

    /// Returns the address of the other side.
    pub(crate) fn remote(&mut self, id: FileId) -> Done<SocketAddr> {
        let end = match &self.file(id).kind {
            Kind::Datagrams(datagrams) => return datagrams.peer.ok_or(Errno::NotConnected),
            Kind::Stream(stream) => stream.end.ok_or(Errno::NotConnected)?,
            Kind::Listener(_) | Kind::LocalListener(_) | Kind::Local(_) => {
                return Err(Errno::NotConnected);
            }
            Kind::Poll(_) | Kind::Counter(_) | Kind::OnDisk(_) => return Err(Errno::NotSocket),
        };
        let placed = self.ends.get(&end).ok_or(Errno::NotConnected)?;
        placed.end.peer_of_open().ok_or(Errno::NotConnected)
    }

    pub(crate) fn shut_down(
        &mut self,
        id: FileId,
        halves: (bool, bool),
        moment: Moment<'_>,
    ) -> Done<()> {
        if matches!(self.file(id).kind, Kind::Local(_)) {
            return self.shut_down_local(id, halves);
        }
        let end = self.end_of(id)?;
        let done = self.with_end(end, moment, |end, effects| {
            end.shut_down(halves, moment.dice, effects)
        });
        done.unwrap_or(Err(Errno::NotConnected))
    }

    /// Returns the end of a connected socket.
    fn end_of(&mut self, id: FileId) -> Done<u64> {
        match &self.file(id).kind {
            Kind::Stream(stream) => stream.end.ok_or(Errno::NotConnected),
            Kind::Listener(_) | Kind::Datagrams(_) | Kind::Local(_) | Kind::LocalListener(_) => {
                Err(Errno::NotConnected)
            }
            Kind::Poll(_) | Kind::Counter(_) | Kind::OnDisk(_) => Err(Errno::NotSocket),
        }
    }

    /// Writes, or sends a datagram.
    pub(crate) fn write(
        &mut self,
        host: HostId,
        id: FileId,
        from: &[&[u8]],
        to: Address,
        moment: Moment<'_>,
    ) -> Done<usize> {
        if matches!(self.file(id).kind, Kind::Datagrams(_)) {
            return self.send_datagram(host, id, from.concat(), to, moment);
        }
        if matches!(self.file(id).kind, Kind::Local(_)) {
            let count = self.write_local(id, from)?;
            self.note(host, "written", count as u64);
            return Ok(count);
        }
        let end = match self.end_of(id) {
            Err(Errno::NotConnected) => return Err(Errno::Pipe),
            end => end?,
        };
        let written = self.with_end(end, moment, |end, effects| {
            end.write(from, moment.dice, effects)
        });
        let count = written.unwrap_or(Err(Errno::NotConnected))?;
        self.note(host, "written", count as u64);
        Ok(count)
    }

    /// Reads up to `most` bytes, or receives a datagram. `to` gets the bytes, perhaps in two parts.
    pub(crate) fn read(
        &mut self,
        host: HostId,
        id: FileId,
        (most, peeks): (usize, bool),
        to: impl FnMut(&[u8]),
        moment: Moment<'_>,
    ) -> Done<Reading> {
        if matches!(self.file(id).kind, Kind::Datagrams(_)) {
            let (len, from) = self.take_datagram(id, peeks, to)?;
            self.note(host, "received", len as u64);
            let from = Some(from);
            return Ok(Reading { len, left: 0, from });
        }
        let (len, left) = if matches!(self.file(id).kind, Kind::Local(_)) {
            self.read_local(id, (most, peeks), to)?
        } else {
            let end = self.end_of(id)?;
            let read = self.with_end(end, moment, |end, effects| {
                end.read(most, peeks, to, effects)
            });
            read.unwrap_or(Err(Errno::NotConnected))?
        };
        self.note(host, "read", len as u64);
        let from = None;
        Ok(Reading { len, left, from })
    }

    /// Takes the pending error of a socket.
    pub(crate) fn take_error(&mut self, id: FileId) -> Done<Option<Errno>> {
        let end = match &mut self.file(id).kind {
            Kind::Datagrams(datagrams) => return Ok(datagrams.error.take()),
            Kind::Stream(stream) => stream.end,
            Kind::Listener(_) | Kind::Local(_) | Kind::LocalListener(_) => None,
            Kind::Poll(_) | Kind::Counter(_) | Kind::OnDisk(_) => return Err(Errno::NotSocket),
        };
        let placed = end.and_then(|end| self.ends.get_mut(&end));
        Ok(placed.and_then(|placed| placed.end.error.take()))
    }

    /// Returns the family and the type of a socket, and whether it listens.
    pub(crate) fn describe(&mut self, id: FileId) -> Done<(Family, Type, bool)> {
        let family = |is_ipv6| match is_ipv6 {
            true => Family::Ipv6,
            false => Family::Ipv4,
        };
        Ok(match &self.file(id).kind {
            Kind::Stream(stream) => (family(stream.is_ipv6), Type::Stream, false),
            Kind::Listener(listener) => (family(listener.local.is_ipv6()), Type::Stream, true),
            Kind::Datagrams(datagrams) => (family(datagrams.is_ipv6()), Type::Datagram, false),
            Kind::Local(_) => (Family::Unix, Type::Stream, false),
            Kind::LocalListener(_) => (Family::Unix, Type::Stream, true),
            Kind::Poll(_) | Kind::Counter(_) | Kind::OnDisk(_) => return Err(Errno::NotSocket),
        })
    }

    /// Returns an option that was set, by level and name.
    pub(crate) fn option(&mut self, id: FileId, name: (i32, i32)) -> Option<i32> {
        self.file(id).options.get(&name).copied()
    }

    pub(crate) fn set_option(&mut self, id: FileId, name: (i32, i32), value: Option<i32>) {
        let options = &mut self.file(id).options;
        match value {
            Some(value) => options.insert(name, value),
            None => options.remove(&name),
        };
    }

    /// Returns the sizes of a stream's buffers: of that for what goes out, and of the other one.
    pub(crate) fn sizes(&mut self, id: FileId) -> Option<(usize, usize)> {
        match &self.file(id).kind {
            Kind::Stream(stream) => Some(stream.sizes),
            Kind::Listener(listener) => Some(listener.sizes()),
            _ => None,
        }
    }

    /// Sets the sizes of a stream's buffers.
    pub(crate) fn set_sizes(&mut self, id: FileId, sizes: (usize, usize)) {
        let end = match &mut self.file(id).kind {
            Kind::Stream(stream) => {
                stream.sizes = sizes;
                stream.end
            }
            Kind::Listener(listener) => {
                listener.set_sizes(sizes);
                None
            }
            _ => None,
        };
        if let Some(placed) = end.and_then(|end| self.ends.get_mut(&end)) {
            // The room that was granted stays.
            placed.end.out_size = sizes.0;
        }
    }

    /// Sets whether the close of a stream resets its connection.
    pub(crate) fn set_resets_at_close(&mut self, id: FileId, resets: bool) {
        if let Kind::Stream(stream) = &mut self.file(id).kind {
            stream.resets_at_close = resets;
        }
    }
}
