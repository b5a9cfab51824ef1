//! The network of a simulation: the part of the kernel that programs reach by sockets.
//!
//! A simulated thread that makes a socket gets a simulated one: `syscalls` has the functions of the
//! C library that the program, std and the crates call, and `Network` answers them. So all code of
//! the program is real, down to the call of `epoll_wait`: the driver's registrations, its poller,
//! its roles, and std's and socket2's sockets. What is simulated is what the system documents: a
//! state machine that runs on one thread, whose every chance is a choice of the seed.
//!
//! 1. *State.* A host has a table of descriptors, each of which leads to a [`File`]: a socket, an
//!    epoll, or a counter. The two ends of a connection are state of their own (`tcp`), as an end
//!    may outlive its file, or have none yet. Only the calls of a host, and the packets that arrive
//!    there, change the state of that host.
//! 2. *Packets.* A host reaches another one only by packets (`packet`). A wire (`wire`) loses,
//!    delays or repeats each. A packet within a host is never lost. A packet to a host that is down
//!    vanishes.
//! 3. *Time.* What is under way is in the queue of `wire`. An arrival, and the timer of a
//!    connection, are one more kind of wait with a limit: when no thread can run, the time jumps to
//!    the next limit or to the next entry of the queue, whichever comes first.
//! 4. *Readiness.* A file has states at each moment ([`Network::states`]). A change that begins a
//!    state announces it (`news`): bytes, an end, a reset, room in a buffer that lacked it, a
//!    connection in a listener's queue. `epoll` has the rest: an entry whose interest meets the
//!    news goes to the list of ready entries, and a wait takes it from there with the states of
//!    that time. So an edge comes exactly when Linux makes one, and two that nobody has taken
//!    become one.
//! 5. *Waits.* A call never waits here: it fails with `Again`, and `syscalls` waits if the
//!    descriptor blocks. [`Out`] has the files whose waiting threads are to be woken.
//! 6. *Files* on disks share the table of descriptors (`disks`). The module `disk` has the rest.
//! 7. *The end of a host* takes its files, its connections and its names away, and sends nothing.
//!    Other hosts get silence. After a restart they get a reset, once they send a segment.
mod calls;
mod datagrams;
mod disks;
mod epoll;
mod files;
mod hosts;
mod local;
mod packet;
mod streams;
mod tcp;
mod wire;

pub(crate) use crate::{
    choice::Dice,
    errno::{Done, Errno},
};
pub(crate) use calls::{Family, Type};
pub(crate) use epoll::Change;
pub(crate) use local::LocalName;
pub(crate) use wire::Cut;

use crate::disk::Disks;
use files::File;
use hosts::Host;
use std::collections::BTreeMap;
use streams::{Name, Placed};
use wire::{Event, Queue, Wires};

/// The number of a host.
pub(crate) type HostId = usize;

/// The number of a file. No other file of the run has it.
pub(crate) type FileId = u64;

/// The states of a file, as epoll names them.
pub(crate) const IN: u32 = 0x1;
pub(crate) const OUT: u32 = 0x4;
pub(crate) const ERR: u32 = 0x8;
pub(crate) const HUP: u32 = 0x10;
pub(crate) const RDHUP: u32 = 0x2000;

/// The moment of a call.
#[derive(Clone, Copy)]
pub(crate) struct Moment<'a> {
    /// The virtual time, in nanoseconds.
    pub(crate) now: u64,
    pub(crate) dice: &'a dyn Dice,
}

/// An event for the trace: the host, what has happened, and a number.
pub(crate) type Note = (HostId, &'static str, u64);

/// The duties that a call leaves to the simulator.
#[derive(Debug, Default)]
pub(crate) struct Out {
    /// The files whose waiting threads are to be woken, and whether all of them are.
    pub(crate) wakes: Vec<(FileId, bool)>,
    pub(crate) notes: Vec<Note>,
}

/// The network of one run.
#[derive(Debug, Default)]
pub(crate) struct Network {
    hosts: Vec<Host>,
    /// The descriptors before this number are those of the hosts so far.
    reserved: usize,
    files: BTreeMap<FileId, File>,
    last_file: FileId,
    /// The ends of connections, by their numbers.
    ends: BTreeMap<u64, Placed>,
    names: BTreeMap<Name, u64>,
    last_end: u64,
    last_connection: u64,
    pub(crate) wires: Wires,
    queue: Queue,
    pub(crate) disks: Disks,
    pub(crate) out: Out,
}

impl Network {
    /// Returns the time of the first entry of the queue that is not stale.
    pub(crate) fn first_event(&mut self) -> Option<u64> {
        while let Some((at, event)) = self.queue.first() {
            match event {
                Event::Timer(end, number) if !self.has_timer(*end, *number) => {}
                _ => return Some(at),
            }
            self.queue.take_first();
        }
        None
    }

    /// Returns whether the first entry of the queue is a fault.
    pub(crate) fn is_fault_next(&self) -> bool {
        matches!(self.queue.first(), Some((_, Event::Fault(_))))
    }

    /// Makes the first entry of the queue happen. Returns the number of a fault, which is the
    /// caller's.
    pub(crate) fn fire_first(&mut self, moment: Moment<'_>) -> Option<usize> {
        match self.queue.take_first()? {
            Event::Fault(number) => return Some(number),
            Event::Timer(end, number) => self.time_out(end, number, moment),
            Event::Forget(end) => self.forget_end(end),
            Event::Arrival(host, packet) => self.arrive(host, packet, moment),
        }
        None
    }

    pub(crate) fn add_fault(&mut self, at: u64, number: usize) {
        self.queue.add(at, Event::Fault(number));
    }

    pub(crate) fn note(&mut self, host: HostId, what: &'static str, number: u64) {
        self.out.notes.push((host, what, number));
    }
}
