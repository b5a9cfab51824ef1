//! The room of a bounded channel: how many messages it may still take.
//!
//! # The story
//!
//! A sender *reserves* room before it sends: it adds to `reserved`, on the senders' cache line, if
//! the sum stays within `limit`. The receiver counts what it has `received`, on its own line. Room
//! is the capacity less what is reserved and not received. `limit` is a copy of `received` plus the
//! capacity. A sender refreshes it when it is used up. So while there is room, a sender does not
//! read the receiver's line, nor the receiver the senders'.
//!
//! A sender that finds no room queues. `WAITERS` in both counts then says that room belongs to the
//! queue: no sender reserves past it, and each thread that makes room grants it to the first
//! waiters.
//!
//! # Fields
//!
//! | field | written by |
//! |---|---|
//! | `SenderLine::reserved` | senders: [`UNIT`] for each message that is reserved; bits below |
//! | `SenderLine::limit` | senders |
//! | `ReceiverLine::received` | the receiver: a `UNIT` for each message that it has received; `WAITERS` |
//! | `Room::waiting` | under its lock |
//!
//! # Rules
//!
//! 1. `received` never passes `reserved`, and `limit` never passes `received` plus the capacity.
//!    Both only grow. So an exchange of `reserved` that is within a limit, however old, reserves
//!    room that is there.
//! 2. `reserved` falls when a sender gives back what it has not sent.
//! 3. `WAITERS` is set and cleared in both counts under the lock. It is set while the queue is not
//!    empty. While it is set, only the lock's holder adds to `reserved`.
//! 4. A thread that makes room does so by a read-modify-write of `received` or of `reserved`. If it
//!    finds `WAITERS`, it takes the lock and grants. The holder of the lock sets `WAITERS` by a
//!    read-modify-write of both before it computes the room. So it sees the new room, or the other
//!    thread sees `WAITERS`. Hence no waiter waits while there is room.
//! 5. The first waiter keeps what it is granted, until it has all that it needs. A waiter that is
//!    dropped gives back what it has.
//! 6. A close sets `CLOSED` in `reserved` under the lock and releases all waiters. No room is
//!    reserved afterwards.
//! 7. A thread that raises `reserved` past `limit` has raised `limit` or does so next. Otherwise
//!    grants alone could move `reserved` so far ahead that `between` wraps and finds room. In 32
//!    bits 2^29 messages suffice, and one case is left: a sender has loaded the limit, and is then
//!    stopped while other senders send that many, which takes them some ten seconds. The channel
//!    may then take more than its capacity.
use super::error::TrySendError;
use crate::waiters::{Batch, Locked, Waiter, Waiters, drop_waker, wake_batch};
use crate::waiting::Waiting;
use core::{
    pin::Pin,
    task::{Poll, Waker, ready},
};
use sync_shim::{
    CachePadded,
    atomic::{
        AtomicUsize,
        Ordering::{Acquire, Relaxed, Release},
        Retire,
    },
};

/// The bit of `reserved`: the channel is closed.
const CLOSED: usize = 1;
/// The bit of both counts: room belongs to the queue.
const WAITERS: usize = 2;
/// The increment of both counts for one message.
const UNIT: usize = 4;
const BITS: usize = UNIT - 1;

/// The greatest capacity: the counts of a full channel must differ by less than half a word.
pub(super) const MAX_CAPACITY: usize = usize::MAX >> 3;

/// The counts, their cache lines, and the queue.
pub(super) struct Room<S, R> {
    pub(super) senders: CachePadded<SenderLine<S>>,
    pub(super) receiver: CachePadded<ReceiverLine<R>>,
    waiting: Waiters<Need>,
}

/// The senders' counts, with more that senders write.
pub(super) struct SenderLine<S> {
    pub(super) more: S,
    reserved: AtomicUsize,
    limit: AtomicUsize,
    capacity: usize,
}

/// The receiver's count, with more that the receiver writes.
pub(super) struct ReceiverLine<R> {
    pub(super) more: R,
    received: AtomicUsize,
}

/// The room that a waiter waits for.
#[derive(Clone, Copy)]
pub(super) struct Need {
    /// The number of messages for which it has no room yet.
    lacks: usize,
    /// The number of messages for which it has room.
    has: usize,
}

/// The value of `lacks` when the channel was closed.
const NEVER: usize = usize::MAX;

impl Need {
    pub(super) const fn of(count: usize) -> Self {
        Self {
            lacks: count,
            has: 0,
        }
    }
}

/// Returns `limit - reserved` in messages. It is negative if one of the two is older.
fn between(reserved: usize, limit: usize) -> isize {
    (limit & !BITS).wrapping_sub(reserved & !BITS) as isize / UNIT as isize
}

impl<S, R> Room<S, R> {
    pub(super) fn new(capacity: usize, senders: S, receiver: R) -> Self {
        Self {
            senders: CachePadded::new(SenderLine {
                more: senders,
                reserved: AtomicUsize::new(0),
                limit: AtomicUsize::new(capacity.wrapping_mul(UNIT)),
                capacity,
            }),
            receiver: CachePadded::new(ReceiverLine {
                more: receiver,
                received: AtomicUsize::new(0),
            }),
            waiting: Waiters::new(()),
        }
    }

    /// Returns the value of `reserved` at which the channel is full.
    fn full_at(&self) -> usize {
        // Ordering: Acquire pairs with the Release of `give_room`: a receive comes before the sends
        // into its room.
        let received = self.receiver.received.load(Acquire) & !BITS;
        received.wrapping_add(self.senders.capacity.wrapping_mul(UNIT))
    }

    /// Returns the number of messages that the channel can hold.
    pub(super) fn max_capacity(&self) -> usize {
        self.senders.capacity
    }

    /// Returns the number of messages for which there is room.
    pub(super) fn capacity(&self) -> usize {
        // `received` is read first, so that it does not pass `reserved`.
        let full_at = self.full_at();
        // Ordering: Relaxed, the result is only a number.
        let reserved = self.senders.reserved.load(Relaxed);
        usize::try_from(between(reserved, full_at)).unwrap_or(0)
    }

    /// Returns whether the channel is closed.
    pub(super) fn is_closed(&self) -> bool {
        // Ordering: Acquire pairs with the Release of `close`: the caller sees what came before it.
        self.senders.reserved.load(Acquire) & CLOSED != 0
    }

    /// Returns whether a message is reserved and not received.
    pub(super) fn has_reserved(&self) -> bool {
        // Ordering: Acquire pairs with the Release of `give_back`, whose thread wakes the receiver.
        let reserved = self.senders.reserved.load(Acquire);
        // Ordering: Relaxed, this is the receiver's.
        let received = self.receiver.received.load(Relaxed);
        reserved & !BITS != received & !BITS
    }

    /// Reserves room for `count` messages, if there is room and no sender waits.
    ///
    /// `count` is at most the capacity. Costs one read-modify-write.
    #[inline]
    pub(super) fn try_reserve(&self, count: usize) -> Result<(), TrySendError<()>> {
        debug_assert!(count <= self.max_capacity());
        let room = &self.senders;
        // Ordering: Relaxed, a guess that the exchange checks.
        let mut reserved = room.reserved.load(Relaxed);
        // Ordering: Acquire pairs with the Release of the store below: the receives that made the
        // room of this limit come before this send.
        let mut limit = room.limit.load(Acquire);
        loop {
            if reserved & CLOSED != 0 {
                return Err(self.refused_by_close());
            }
            if count == 0 {
                return Ok(());
            }
            if reserved & WAITERS != 0 {
                return Err(TrySendError::Full(()));
            }
            if between(reserved, limit) < count as isize {
                limit = self.full_at();
                if between(reserved, limit) < count as isize {
                    return Err(TrySendError::Full(()));
                }
                // Ordering: Release passes on what `full_at` has acquired. Any value that the limit
                // had is a limit (rule 1), so an older value may replace a newer one.
                room.limit.store(limit, Release);
            }
            let more = reserved.wrapping_add(count * UNIT);
            // Ordering: Acquire pairs with the Release of `give_back`, also over other
            // reservations, which continue that Release. Relaxed on failure, as above.
            let exchanged = room
                .reserved
                .compare_exchange_weak(reserved, more, Acquire, Relaxed);
            match exchanged {
                Ok(_) => return Ok(()),
                Err(now) => reserved = now,
            }
        }
    }

    /// Orders the caller, which has seen `CLOSED`, after the close.
    #[cold]
    fn refused_by_close(&self) -> TrySendError<()> {
        // Ordering: Acquire pairs with the Release of `close`. `CLOSED` stays set, so this load
        // reads the close or a later change, which continues its Release as a read-modify-write.
        self.senders.reserved.load(Acquire);
        TrySendError::Closed(())
    }

    /// Makes room for `count` messages, which were received.
    #[inline]
    pub(super) fn give_room(&self, count: usize) {
        // Ordering: Release pairs with the Acquire of `full_at`. For `WAITERS` the one order of the
        // read-modify-writes suffices (rule 4): the lock orders the rest.
        let received = self.receiver.received.fetch_add(count * UNIT, Release);
        if received & WAITERS != 0 {
            self.grant();
        }
    }

    /// Gives back the room of `count` messages that are not sent. Returns whether the receiver must
    /// be woken: it may wait for that, if it has closed the channel.
    #[must_use = "the receiver may wait"]
    pub(super) fn give_back(&self, count: usize) -> bool {
        if count == 0 {
            return false;
        }
        // Ordering: Release pairs with the Acquire of the next reservation, and of `has_reserved`.
        // For `WAITERS`: as in `give_room`.
        let reserved = self.senders.reserved.fetch_sub(count * UNIT, Release);
        if reserved & WAITERS != 0 {
            self.grant();
        }
        reserved & CLOSED != 0
    }

    /// Grants room to the waiters.
    #[cold]
    fn grant(&self) {
        let mut batch = Batch::new();
        while !self.grant_in(&mut self.waiting.lock(), &mut batch) {
            wake_batch(&mut batch);
        }
        wake_batch(&mut batch);
    }

    /// Grants room to the waiters, under the lock. Returns whether it has finished: the batch may
    /// be full.
    fn grant_in(&self, waiting: &mut Locked<'_, Need>, batch: &mut Batch) -> bool {
        while let Some(first) = waiting.front() {
            if batch.is_full() {
                return false;
            }
            let full_at = self.full_at();
            // Ordering: Acquire pairs with the Release of `give_back`.
            let reserved = self.senders.reserved.load(Acquire);
            let room = usize::try_from(between(reserved, full_at)).unwrap_or(0);
            let granted = room.min(first.lacks);
            if granted == 0 {
                return true;
            }
            // Ordering: Relaxed. It continues the Releases before it. While `WAITERS` is set, only
            // this thread adds (rule 3).
            self.senders.reserved.fetch_add(granted * UNIT, Relaxed);
            // The limit keeps up with `reserved` (rule 7).
            // Ordering: Release, as in `try_reserve`.
            self.senders.limit.store(full_at, Release);
            let need = Need {
                lacks: first.lacks - granted,
                has: first.has + granted,
            };
            if need.lacks == 0 {
                // The batch is not full.
                let waker = waiting.pop_front(|value| *value = need);
                waker.map(|waker| batch.push(waker));
            } else {
                waiting.set_front(need);
            }
        }
        self.clear_waiters();
        true
    }

    fn set_waiters(&self) {
        // Ordering: Relaxed. This comes before or after each change of room in the order of the
        // changes of that count, and the one sees the other (rule 4). `grant_in` acquires.
        self.receiver.received.fetch_or(WAITERS, Relaxed);
        // Ordering: as above.
        self.senders.reserved.fetch_or(WAITERS, Relaxed);
    }

    fn clear_waiters(&self) {
        // Ordering: Relaxed. A thread that still sees `WAITERS` takes the lock.
        self.receiver.received.fetch_and(!WAITERS, Relaxed);
        // Ordering: as above.
        self.senders.reserved.fetch_and(!WAITERS, Relaxed);
    }

    /// Refuses all further reservations, and releases the waiters. For the receiver.
    pub(super) fn close(&self) {
        let waiting = self.waiting.lock();
        // A sender sees the bit or reserves in time.
        // Ordering: Release pairs with the Acquire of `refused_by_close`.
        self.senders.reserved.fetch_or(CLOSED, Release);
        self.clear_waiters();
        let mut back = 0;
        waiting.wake_all(|need| {
            need.lacks = NEVER;
            back += core::mem::take(&mut need.has);
        });
        // The receiver is this thread, and does not wait.
        let _ = self.give_back(back);
    }

    /// Queues a waiter for `count` messages, and grants what room there is. Returns `false` if the
    /// channel is closed; then the waiter is not queued.
    ///
    /// # Safety
    /// The caller owns the waiter, which is not queued. Before it ends, the caller calls
    /// [`cancel`](Self::cancel), or [`poll`](Self::poll) was ready.
    pub(super) unsafe fn queue(
        &self,
        waiter: Pin<&Waiter<Need>>,
        waker: Waker,
        count: usize,
    ) -> bool {
        let mut waiting = self.waiting.lock();
        // Ordering: Relaxed. A close sets the bit under the lock, which orders this after it.
        if self.senders.reserved.load(Relaxed) & CLOSED != 0 {
            // The waker is dropped last.
            drop(waiting);
            return false;
        }
        self.set_waiters();
        // SAFETY: the caller's.
        unsafe { waiting.push_back(waiter, waker, Need::of(count)) };
        let mut batch = Batch::new();
        let is_done = self.grant_in(&mut waiting, &mut batch);
        drop(waiting);
        wake_batch(&mut batch);
        if !is_done {
            self.grant();
        }
        true
    }

    /// Polls a queued waiter. The error says that the channel is closed.
    ///
    /// # Safety
    /// The caller owns the waiter, and has queued it here.
    pub(super) unsafe fn poll(
        &self,
        waiter: Pin<&Waiter<Need>>,
        waker: &Waker,
    ) -> Poll<Result<(), ()>> {
        // SAFETY: the caller's.
        let need = ready!(unsafe { self.waiting.poll(waiter, waker) });
        Poll::Ready(if need.lacks == NEVER { Err(()) } else { Ok(()) })
    }

    /// Calls `f` for each task that waits for room, in the order of the queue.
    pub(super) fn for_each_waiter(&self, mut f: impl FnMut(&Waiting<'_>)) {
        let mut waiting = self.waiting.lock();
        waiting.for_each(|waker, need| f(&Waiting::new(waker, need.lacks)));
    }

    /// Takes a waiter out of the queue, and gives back what it was granted. Returns whether the
    /// receiver must be woken.
    ///
    /// # Safety
    /// As of `poll`, whose last call was not ready.
    #[cold]
    pub(super) unsafe fn cancel(&self, waiter: Pin<&Waiter<Need>>) -> bool {
        let mut waiting = self.waiting.lock();
        // SAFETY: the caller's.
        let need = unsafe { waiting.value(waiter) };
        // SAFETY: as above.
        let waker = unsafe { waiting.remove(waiter) };
        if waker.is_some() && waiting.is_empty() {
            self.clear_waiters();
        }
        drop(waiting);
        let must_wake = self.give_back(need.has);
        drop_waker(waker);
        must_wake
    }
}

impl<S, R> Retire for Room<S, R> {
    fn retire(&mut self) {
        self.senders.reserved.retire();
        self.senders.limit.retire();
        self.receiver.received.retire();
    }
}

#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
