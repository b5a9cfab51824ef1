//! The hosts of a network: addresses, names, ports and descriptors.
use super::{
    Dice, Done, Errno, FileId, HostId, LocalName, Moment, Network,
    packet::Packet,
    wire::{Event, Fate},
};
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

/// The first port that the system gives to a socket without one, and the number of such ports.
const FIRST_PORT: u16 = 32_768;
const PORTS: u16 = 28_232;

/// The most descriptors of a host.
const MOST_FILES: usize = 16_384;

#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) is_up: bool,
    /// The number of the first descriptor.
    first: usize,
    /// The files of the descriptors.
    table: Vec<Option<FileId>>,
    /// The sockets that are bound, by protocol and address.
    pub(super) bound: BTreeMap<(Protocol, SocketAddr), FileId>,
    /// The names of Unix sockets.
    pub(super) local_names: BTreeMap<LocalName, FileId>,
    next_port: u16,
    address: Ipv4Addr,
    address6: Ipv6Addr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protocol {
    Tcp,
    Udp,
}

impl Network {
    /// Adds a host, which is up. The first one has the address 10.0.0.1.
    pub(crate) fn add_host(&mut self, name: &str) -> HostId {
        let number = self.hosts.len() + 1;
        let [high, low] = (number as u16).to_be_bytes();
        let first = self.reserve_descriptors();
        self.hosts.push(Host {
            name: name.to_owned(),
            is_up: true,
            first,
            table: Vec::new(),
            bound: BTreeMap::new(),
            local_names: BTreeMap::new(),
            next_port: 0,
            address: Ipv4Addr::new(10, 0, high, low),
            address6: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number as u16),
        });
        number - 1
    }

    pub(crate) fn name_of(&self, host: HostId) -> &str {
        &self.hosts[host].name
    }

    /// Returns the names of the hosts.
    pub(crate) fn names(&self) -> Vec<String> {
        self.hosts.iter().map(|host| host.name.clone()).collect()
    }

    /// Returns the address of a name.
    pub(crate) fn look_up(&self, name: &str) -> Option<IpAddr> {
        if name == "localhost" {
            return Some(Ipv4Addr::LOCALHOST.into());
        }
        let host = self.hosts.iter().find(|host| host.name == name)?;
        Some(host.address.into())
    }

    /// Returns the host of an address, as the host `from` sees it.
    fn host_of(&self, from: HostId, ip: IpAddr) -> Option<HostId> {
        if ip.is_loopback() || ip.is_unspecified() {
            return Some(from);
        }
        let has = |host: &Host| ip == host.address || ip == host.address6;
        self.hosts.iter().position(has)
    }

    /// Returns the address from which a host sends to `to`.
    pub(super) fn source_of(&self, host: HostId, to: IpAddr) -> Done<IpAddr> {
        if self.host_of(host, to).is_none() {
            return Err(Errno::NetworkUnreachable);
        }
        let own = &self.hosts[host];
        Ok(match to {
            to if to.is_loopback() => to,
            IpAddr::V4(to) if to.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(to) if to.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            IpAddr::V4(_) => own.address.into(),
            IpAddr::V6(_) => own.address6.into(),
        })
    }

    /// Returns whether a socket of this host may have this address.
    pub(super) fn is_local(&self, host: HostId, ip: IpAddr) -> bool {
        ip.is_unspecified() || self.host_of(host, ip) == Some(host)
    }

    /// Binds a file to an address. Port 0 becomes one that is free.
    pub(super) fn bind_file(
        &mut self,
        host: HostId,
        protocol: Protocol,
        mut at: SocketAddr,
        file: FileId,
    ) -> Done<SocketAddr> {
        if !self.is_local(host, at.ip()) {
            return Err(Errno::AddressNotAvailable);
        }
        if at.port() == 0 {
            for _ in 0..PORTS {
                let offset = self.hosts[host].next_port;
                self.hosts[host].next_port = (offset + 1) % PORTS;
                at.set_port(FIRST_PORT + offset);
                if !self.is_taken(host, protocol, at) {
                    break;
                }
            }
        }
        if self.is_taken(host, protocol, at) {
            return Err(Errno::AddressInUse);
        }
        self.hosts[host].bound.insert((protocol, at), file);
        Ok(at)
    }

    fn is_taken(&self, host: HostId, protocol: Protocol, at: SocketAddr) -> bool {
        let meets = |other: &SocketAddr| {
            let (one, other_ip) = (at.ip(), other.ip());
            at.port() == other.port()
                && at.is_ipv4() == other.is_ipv4()
                && (one == other_ip || one.is_unspecified() || other_ip.is_unspecified())
        };
        let mut bound = self.hosts[host].bound.keys();
        bound.any(|(of, other)| *of == protocol && meets(other))
    }

    /// Returns the socket that is bound to an address, or to the unspecified one.
    pub(super) fn bound_to(
        &self,
        host: HostId,
        protocol: Protocol,
        at: SocketAddr,
    ) -> Option<FileId> {
        let any: IpAddr = match at {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let bound = &self.hosts[host].bound;
        let exact = bound.get(&(protocol, at));
        let any = bound.get(&(protocol, SocketAddr::new(any, at.port())));
        exact.or(any).copied()
    }

    /// Ends the name of a file, if it has one.
    pub(super) fn unbind(&mut self, host: HostId, file: FileId) {
        self.hosts[host].bound.retain(|_, bound| *bound != file);
    }

    /// Returns the first of the numbers for all descriptors of a host, until it crashes. No two
    /// hosts share numbers, nor do two incarnations of one: a descriptor that outlives its host in
    /// a static fails, and leads to no other file.
    fn reserve_descriptors(&mut self) -> usize {
        let first = self.reserved;
        self.reserved += MOST_FILES;
        first
    }

    /// Returns the place of a descriptor.
    pub(super) fn place_of(&mut self, host: HostId, at: usize) -> Done<&mut Option<FileId>> {
        let host = &mut self.hosts[host];
        let place = at.checked_sub(host.first);
        let place = place.and_then(|place| host.table.get_mut(place));
        place.ok_or(Errno::BadDescriptor)
    }

    /// Gives a file the lowest number that is free.
    pub(super) fn add_descriptor(&mut self, host: HostId, file: FileId) -> Done<usize> {
        let Host { first, table, .. } = &mut self.hosts[host];
        let at = table
            .iter()
            .position(Option::is_none)
            .unwrap_or(table.len());
        if at >= MOST_FILES {
            return Err(Errno::TooManyFiles);
        }
        if at == table.len() {
            table.push(None);
        }
        table[at] = Some(file);
        Ok(*first + at)
    }

    /// Sends a packet from a host.
    pub(super) fn send(
        &mut self,
        from: HostId,
        to: SocketAddr,
        packet: Packet,
        moment: Moment<'_>,
    ) {
        let Some(host) = self.host_of(from, to.ip()) else {
            return;
        };
        let len = packet.len();
        let fate = self.wires.send(moment.now, (from, host), len, moment.dice);
        match fate {
            Fate::Lost => self.note(from, "packet lost", len as u64),
            Fate::Arrives(first, second) => {
                if let Some(second) = second {
                    let again = Event::Arrival(host, packet.clone());
                    self.queue.add(second, again);
                }
                self.queue.add(first, Event::Arrival(host, packet));
            }
        }
    }

    /// A packet arrives.
    pub(super) fn arrive(&mut self, host: HostId, packet: Packet, moment: Moment<'_>) {
        if !self.hosts[host].is_up {
            return;
        }
        self.note(host, "packet", packet.len() as u64);
        match packet {
            Packet::Tcp(segment) => self.receive(host, segment, moment),
            Packet::Udp(datagram) => self.receive_datagram(host, datagram, moment),
            Packet::Unreachable { from, to } => self.refuse_datagrams(host, from, to),
        }
    }

    /// Ends all that a host has (rule 7).
    pub(crate) fn crash(&mut self, host: HostId, dice: &dyn Dice) {
        self.hosts[host].is_up = false;
        self.hosts[host].first = self.reserve_descriptors();
        self.hosts[host].table.clear();
        self.hosts[host].bound.clear();
        self.hosts[host].local_names.clear();
        self.files.retain(|_, file| file.host != host);
        self.ends.retain(|_, placed| placed.host != host);
        self.names.retain(|(of, ..), _| *of != host);
        let lost = self.disks.crash(host, dice);
        if lost > 0 {
            self.note(host, "changes lost", lost);
        }
    }

    pub(crate) fn is_up(&self, host: HostId) -> bool {
        self.hosts[host].is_up
    }

    pub(crate) fn restart(&mut self, host: HostId) {
        self.hosts[host].is_up = true;
    }
}
