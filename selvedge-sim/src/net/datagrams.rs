//! The sockets of UDP.
use super::{
    Done, ERR, Errno, FileId, HostId, IN, Moment, Network, OUT,
    files::Kind,
    hosts::Protocol,
    packet::{Datagram, Packet},
    streams::any,
};
use std::{collections::VecDeque, net::SocketAddr};

/// The bytes of the longest datagram.
const LONGEST: usize = 65_507;

/// The bytes that wait in a socket at most. What comes beyond is lost.
const MOST: usize = 208 << 10;

#[derive(Debug)]
pub(crate) struct Datagrams {
    is_ipv6: bool,
    pub(super) local: Option<SocketAddr>,
    pub(super) peer: Option<SocketAddr>,
    queue: VecDeque<Datagram>,
    waiting: usize,
    pub(super) error: Option<Errno>,
}

impl Datagrams {
    pub(super) fn new(is_ipv6: bool) -> Self {
        Self {
            is_ipv6,
            local: None,
            peer: None,
            queue: VecDeque::new(),
            waiting: 0,
            error: None,
        }
    }

    pub(super) fn is_ipv6(&self) -> bool {
        self.is_ipv6
    }

    pub(super) fn states(&self) -> u32 {
        let mut states = OUT;
        if self.error.is_some() {
            states |= ERR;
        }
        if !self.queue.is_empty() {
            states |= IN;
        }
        states
    }
}

impl Network {
    fn datagrams(&mut self, id: FileId) -> Done<&mut Datagrams> {
        match &mut self.file(id).kind {
            Kind::Datagrams(datagrams) => Ok(datagrams),
            _ => Err(Errno::NotSupported),
        }
    }

    /// Connects a socket: from then on it receives only from there.
    pub(super) fn connect_datagrams(
        &mut self,
        host: HostId,
        id: FileId,
        to: SocketAddr,
    ) -> Done<()> {
        let source = self.source_of(host, to.ip())?;
        let datagrams = self.datagrams(id)?;
        if datagrams.is_ipv6 != to.is_ipv6() {
            return Err(Errno::FamilyNotSupported);
        }
        let local = datagrams.local;
        if local.is_none() {
            let local = self.bind_file(host, Protocol::Udp, SocketAddr::new(source, 0), id)?;
            self.datagrams(id)?.local = Some(local);
        }
        self.datagrams(id)?.peer = Some(to);
        Ok(())
    }

    pub(super) fn send_datagram(
        &mut self,
        host: HostId,
        id: FileId,
        data: Vec<u8>,
        to: Option<SocketAddr>,
        moment: Moment<'_>,
    ) -> Done<usize> {
        let datagrams = self.datagrams(id)?;
        if let Some(error) = datagrams.error.take() {
            return Err(error);
        }
        let (local, is_ipv6) = (datagrams.local, datagrams.is_ipv6);
        let mut to = to.or(datagrams.peer).ok_or(Errno::DestinationRequired)?;
        if data.len() > LONGEST {
            return Err(Errno::MessageSize);
        }
        if to.is_ipv6() != is_ipv6 {
            return Err(Errno::FamilyNotSupported);
        }
        let source = self.source_of(host, to.ip())?;
        let local = match local {
            Some(local) => local,
            None => {
                let local = self.bind_file(host, Protocol::Udp, any(is_ipv6), id)?;
                self.datagrams(id)?.local = Some(local);
                local
            }
        };
        let mut from = local;
        if from.ip().is_unspecified() {
            from.set_ip(source);
        }
        if to.ip().is_unspecified() {
            to.set_ip(source);
        }
        let len = data.len();
        let packet = Packet::Udp(Datagram { from, to, data });
        self.send(host, to, packet, moment);
        Ok(len)
    }

    pub(super) fn receive_datagram(
        &mut self,
        host: HostId,
        datagram: Datagram,
        moment: Moment<'_>,
    ) {
        let (from, to) = (datagram.from, datagram.to);
        let id = self.bound_to(host, Protocol::Udp, to);
        let socket = id.and_then(|id| self.datagrams(id).ok());
        let takes = |socket: &&mut Datagrams| socket.peer.is_none_or(|peer| peer == from);
        let (Some(id), Some(socket)) = (id, socket.filter(takes)) else {
            return self.send(host, from, Packet::Unreachable { from, to }, moment);
        };
        if socket.waiting + datagram.data.len() > MOST {
            return self.note(host, "queue full", u64::from(to.port()));
        }
        socket.waiting += datagram.data.len();
        socket.queue.push_back(datagram);
        self.announce(id, IN);
    }

    /// Tells a connected socket that nobody receives its datagrams.
    pub(super) fn refuse_datagrams(&mut self, host: HostId, from: SocketAddr, to: SocketAddr) {
        let Some(id) = self.bound_to(host, Protocol::Udp, from) else {
            return;
        };
        if let Ok(socket) = self.datagrams(id) {
            if socket.peer == Some(to) {
                socket.error = Some(Errno::ConnectionRefused);
                self.announce(id, IN | ERR);
            }
        }
    }

    /// Has the next call fail with this error.
    pub(crate) fn keep_error(&mut self, id: FileId, error: Errno) {
        if let Ok(socket) = self.datagrams(id) {
            socket.error = Some(error);
        }
    }

    /// Gives the first datagram to `to`. Returns its length and its sender.
    pub(super) fn take_datagram(
        &mut self,
        id: FileId,
        peeks: bool,
        mut to: impl FnMut(&[u8]),
    ) -> Done<(usize, SocketAddr)> {
        let socket = self.datagrams(id)?;
        if let Some(error) = socket.error.take() {
            return Err(error);
        }
        let first = socket.queue.front().ok_or(Errno::Again)?;
        to(&first.data);
        let taken = (first.data.len(), first.from);
        if !peeks {
            socket.waiting -= taken.0;
            socket.queue.pop_front();
        }
        Ok(taken)
    }
}
