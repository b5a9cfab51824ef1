//! The readiness of a source: one 64-bit word, and all of its transitions.
//!
//! # The word
//!
//! | bits | field |
//! |---|---|
//! | 0–6 | readable, writable, read closed, write closed, priority, error, shut down |
//! | 7 | the source is a pipe; set by the registration |
//! | 8–35 | read tick |
//! | 36–63 | write tick |
//!
//! The *poller* is the thread that hands over an event of the kernel. An *operation* is a call such
//! as `read` that a task makes. An operation of this crate says "would block" only if the kernel
//! does. An operation of the *user*, such as the closure of `async_io`, may say so for reasons of
//! its own: it has read half of a message. A *direction* is reading or writing; priority belongs to
//! reading, and an error to both. The *tick* of a direction is a count of its events. A direction
//! is *closed* once its closed bit is set.
//!
//! # Rules
//!
//! 1. An event sets bits and advances the tick of each direction that it names, in one step. Only
//!    the holder of the slot's lock sets bits, so that it finds the waiters (see `slot.rs`).
//! 2. An operation loads a [`Snapshot`] first, then asks the kernel. If the kernel answers "would
//!    block", the operation clears the bits of its direction, but only if the tick of that
//!    direction is still the same as in the snapshot.
//! 3. The closed bits and the shutdown bit are never cleared while the source is registered. A
//!    closed bit comes with the readable or writable bit of its direction. It does not make a
//!    source ready by itself, except for priority data, none of which follows the end. An error of
//!    a pipe closes its write half: the kernel has no other sign that the last reader is gone.
//! 4. An operation on a stream may clear as in rule 2 without the kernel's "would block". It does
//!    so if it moved fewer bytes than it could have (`receive_unix.rs` has exceptions), or if the
//!    kernel says that no bytes are left (`receive.rs`). It does not clear if a closed or error bit
//!    is set: no further event would announce the end of the stream. Nor does it clear if the
//!    priority bit is set: a read ends early at an urgent byte.
//! 5. *Closed is for ever*: if an operation of the user says "would block" after a snapshot that
//!    shows a closed direction, it clears no bit of that direction. So a wait ends at once, and the
//!    operation is called again. It never waits: no event follows the one of the hang-up, which may
//!    also have announced the bytes that the operation has just read. (An operation of this crate
//!    clears as in rule 2. Where the kernel says "would block" after a hang-up, the hang-up has
//!    ended: a FIFO has another writer. An event then follows.)
//!
//! # Why no event is lost
//!
//! Say that data arrives after the kernel's "would block". The event of that data advances the tick
//! after the operation has loaded the snapshot. So the clear of rule 2 finds another tick, and does
//! nothing. Each direction has a tick of its own: events of one direction would otherwise defeat
//! the clears of the other one forever. A tick of 28 bits repeats after 268 million events between
//! a load and its clear.
//!
//! Say that the hang-up comes after the snapshot of a user's operation. Then its event advances the
//! tick, as above. If the hang-up came before the snapshot, rule 5 keeps the bits. In between there
//! is nothing: an event sets the closed bit and advances the tick in one step (rule 1).
use crate::{
    Interest, Ready,
    ready::{InterestBits, PIPE, ReadyBits, SHUTDOWN, union},
};
use sync_shim::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

const FLAGS: u64 = 0xff;
const TICK: u64 = (1 << 28) - 1;
const READ_SHIFT: u32 = 8;
const WRITE_SHIFT: u32 = 36;

/// The bits of each direction. An event with one of them advances the tick of that direction.
const READ: Ready = union(union(Ready::READABLE, Ready::READ_CLOSED), Ready::PRIORITY);
const WRITE: Ready = union(Ready::WRITABLE, Ready::WRITE_CLOSED);
/// An event with one of these advances both ticks.
const BOTH: Ready = Ready::ERROR;
/// The bits that no clear removes (rule 3).
const FINAL: Ready = union(union(Ready::READ_CLOSED, Ready::WRITE_CLOSED), SHUTDOWN);

/// The readiness word of a source.
#[derive(Debug)]
pub(crate) struct Readiness(AtomicU64);

/// The word at one moment, which an operation loads before it asks the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot(u64);

impl Readiness {
    pub(crate) fn new(ready: Ready) -> Self {
        Self(AtomicU64::new(u64::from(ready.bits())))
    }

    /// Sets the word for a new source. The caller holds the slot's lock.
    pub(crate) fn reset(&self, ready: Ready) {
        // Ordering: Relaxed. The lock of the slab hands the slot over.
        self.0.store(u64::from(ready.bits()), Relaxed);
    }

    pub(crate) fn load(&self) -> Snapshot {
        // Ordering: Acquire pairs with `set`. An operation that sees a tick asks the kernel after
        // the poller got that event. So if the kernel then says "would block", the clear is
        // justified.
        Snapshot(self.0.load(Acquire))
    }

    /// Adds the bits of an event, and advances the tick of each direction that it names (rule 1).
    pub(crate) fn set(&self, ready: Ready) {
        let mut word = self.0.load(Relaxed);
        loop {
            let new = Snapshot(word).advanced(ready).0;
            // Ordering: Release pairs with `load`.
            match self.0.compare_exchange_weak(word, new, Release, Relaxed) {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }

    /// Clears the bits of `interest`: the kernel said "would block" after `seen` (rule 2).
    pub(crate) fn clear(&self, seen: Snapshot, interest: Interest) {
        self.clear_if(seen, interest, |_| true);
    }

    /// Clears the bits of `interest`, except those of a closed direction: an operation of the user
    /// said "would block" after `seen` (rule 5).
    pub(crate) fn clear_for_user(&self, seen: Snapshot, interest: Interest) {
        self.clear(seen, seen.open(interest));
    }

    /// Clears the bits of `interest`: after `seen`, an operation moved fewer bytes than it could
    /// have, or the last bytes that were there (rule 4).
    pub(crate) fn clear_after_short(&self, seen: Snapshot, interest: Interest) {
        let more = FINAL | Ready::ERROR | Ready::PRIORITY;
        self.clear_if(seen, interest, |now| !now.ready().intersects(more));
    }

    fn clear_if(&self, seen: Snapshot, interest: Interest, may: impl Fn(Snapshot) -> bool) {
        // Ordering: Relaxed, as the exchange below decides; a stale word repeats the loop.
        let mut word = self.0.load(Relaxed);
        loop {
            let new = Snapshot(word).cleared(seen, interest).0;
            if new == word || !may(Snapshot(word)) {
                return;
            }
            // Ordering: Relaxed. It publishes nothing, and it continues the release sequence of
            // `set`, so a later `load` still pairs with that `set`.
            match self.0.compare_exchange_weak(word, new, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }
}

impl Snapshot {
    pub(crate) fn ready(self) -> Ready {
        Ready::from_bits((self.0 & FLAGS) as u8)
    }

    /// Returns the bits for which a task with `interest` waits.
    pub(crate) fn ready_for(self, interest: Interest) -> Ready {
        self.ready() & interest.mask()
    }

    /// Returns whether an operation of `interest` need not wait (rule 3).
    pub(crate) fn is_ready_for(self, interest: Interest) -> bool {
        self.ready().intersects(interest.wanted())
    }

    /// Returns the directions in which the source is not ready.
    pub(crate) fn not_ready(self) -> Ready {
        let is_waited_for = |direction: &Interest| !self.is_ready_for(*direction);
        let directions = [Interest::READABLE, Interest::WRITABLE].into_iter();
        let waited_for = directions.filter(is_waited_for);
        waited_for.fold(Ready::EMPTY, |all, direction| all | direction.wanted())
    }

    /// Returns whether this state ends a wait of `interest`: the source is ready, or the driver has
    /// shut down.
    pub(crate) fn ends_wait(self, interest: Interest) -> bool {
        self.is_ready_for(interest) || self.is_shutdown()
    }

    pub(crate) fn is_shutdown(self) -> bool {
        self.ready().intersects(SHUTDOWN)
    }

    /// Returns whether a direction of `interest` is closed.
    pub(crate) fn is_closed_for(self, interest: Interest) -> bool {
        self.open(interest) != interest
    }

    /// Returns the part of `interest` whose directions are not closed.
    fn open(self, interest: Interest) -> Interest {
        let mut open = Ready::ALL;
        if self.ready().is_read_closed() {
            open = open - READ;
        }
        if self.ready().is_write_closed() {
            open = open - WRITE;
        }
        interest.intersection(open)
    }

    fn tick(self, shift: u32) -> u64 {
        (self.0 >> shift) & TICK
    }

    fn advanced(self, mut ready: Ready) -> Self {
        if self.ready().intersects(PIPE) && ready.is_error() {
            ready |= Ready::WRITE_CLOSED;
        }
        let mut word = self.0 | u64::from(ready.bits());
        for (shift, bits) in [(READ_SHIFT, READ), (WRITE_SHIFT, WRITE)] {
            if ready.intersects(bits | BOTH) {
                let tick = (self.tick(shift) + 1) & TICK;
                word = word & !(TICK << shift) | tick << shift;
            }
        }
        Self(word)
    }

    fn cleared(self, seen: Self, interest: Interest) -> Self {
        let same = |shift| self.tick(shift) == seen.tick(shift);
        let (read, write) = (same(READ_SHIFT), same(WRITE_SHIFT));
        let mut kept = FINAL;
        if !read {
            kept |= READ;
        }
        if !write {
            kept |= WRITE;
        }
        if !(read && write) {
            kept |= BOTH;
        }
        let gone = interest.wanted() - kept;
        Self(self.0 & !u64::from(gone.bits()))
    }
}

#[cfg(test)]
mod models;
#[cfg(test)]
mod tests;
