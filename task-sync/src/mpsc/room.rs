//! The room of a bounded channel: how many messages it may still take.
//!
//! # The story
//!
//! A sender *reserves* room before it sends: it adds to `reserved`, on the senders' cache line, if the
//! sum stays within `limit`. The receiver counts what it has `received`, on its own line. Room is the
//! capacity less what is reserved and not received. `limit` is a copy of `received` plus the capacity.
//! A sender refreshes it when it is used up. So while there is room, a sender does not read the
//! receiver's line, nor the receiver the senders'.
//!
//! A sender that finds no room queues. `WAITERS` in both counts then says that room belongs to the
//! queue: no sender reserves past it, and each thread that makes room grants it to the first waiters.
//!
//! # Fields
//!
//! | field | written by |
//! |---|---|
//! | `Room::reserved` | senders: [`UNIT`] for each message that is reserved; bits below |
//! | `Room::limit` | senders |
//! | `ReceiverLine::received` | the receiver: a `UNIT` for each message that it has received; `WAITERS` |
//! | `Chan::waiting` | under its lock |
//!
//! # Rules
//!
//! 1. `received` never passes `reserved`, and `limit` never passes `received` plus the capacity. Both
//!    only grow. So an exchange of `reserved` that is within a limit, however old, reserves room
//!    that is there.
//! 2. `reserved` falls when a sender gives back what it has not sent.
//! 3. `WAITERS` is set and cleared in both counts under the lock. It is set while the queue is not
//!    empty. While it is set, only the lock's holder adds to `reserved`.
//! 4. A thread that makes room does so by a read-modify-write of `received` or of `reserved`. If it
//!    finds `WAITERS`, it takes the lock and grants. The holder of the lock sets `WAITERS` by a
//!    read-modify-write of both before it computes the room. So it sees the new room, or the other
//!    thread sees `WAITERS`. Hence no waiter waits while there is room.
//! 5. The first waiter keeps what it is granted, until it has all that it needs. A waiter that is
//!    dropped gives back what it has.
//! 6. A close sets `CLOSED` in `reserved` under the lock and releases all waiters. No room is reserved
//!    afterwards.
use super::chan::Chan;
use super::error::TrySendError;
use crate::coop::poll_proceed;
use crate::waiters::{Batch, Locked, Waiter, wake_batch};
use core::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};
use sync_shim::atomic::{
    AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed},
    Retire,
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

/// The senders' part.
pub(super) struct Room {
    reserved: AtomicUsize,
    limit: AtomicUsize,
    capacity: usize,
}

/// What a waiter waits for.
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
    fn of(count: usize) -> Self {
        Self {
            lacks: count,
            has: 0,
        }
    }

    fn is_closed(self) -> bool {
        self.lacks == NEVER
    }
}

impl Room {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            reserved: AtomicUsize::new(0),
            limit: AtomicUsize::new(capacity.wrapping_mul(UNIT)),
            capacity,
        }
    }
}

impl Retire for Room {
    fn retire(&mut self) {
        self.reserved.retire();
        self.limit.retire();
    }
}

/// Returns `limit - reserved` in messages. It is negative if one of the two is older.
fn between(reserved: usize, limit: usize) -> isize {
    (limit & !BITS).wrapping_sub(reserved & !BITS) as isize / UNIT as isize
}

impl<T, const BOUNDED: bool> Chan<T, BOUNDED> {
    fn room(&self) -> &Room {
        &self.senders.room
    }

    /// Returns the value of `reserved` at which the channel is full.
    fn full_at(&self) -> usize {
        // Ordering: Acquire pairs with the Release of `give_room`: a receive comes before the sends
        // into its room.
        let received = self.receiver.received.load(Acquire) & !BITS;
        received.wrapping_add(self.room().capacity.wrapping_mul(UNIT))
    }

    /// Returns the number of messages that the channel can hold.
    pub(super) fn max_capacity(&self) -> usize {
        self.room().capacity
    }

    /// Returns the number of messages for which there is room.
    pub(super) fn capacity(&self) -> usize {
        // `received` is read first, so that it does not pass `reserved`.
        let full_at = self.full_at();
        // Ordering: Relaxed, the result is only a number.
        let reserved = self.room().reserved.load(Relaxed);
        usize::try_from(between(reserved, full_at)).unwrap_or(0)
    }

    /// Returns whether a message is reserved and not received.
    pub(super) fn has_reserved(&self) -> bool {
        // Ordering: Acquire pairs with the Release of `give_back`, whose thread wakes the receiver,
        // and of a reservation: a push that comes before this is seen.
        let reserved = self.room().reserved.load(Acquire);
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
        let room = self.room();
        // Ordering: Relaxed here and of `limit`, which only let this call guess what to exchange.
        let mut reserved = room.reserved.load(Relaxed);
        // Ordering: as above.
        let mut limit = room.limit.load(Relaxed);
        loop {
            if reserved & CLOSED != 0 {
                return Err(TrySendError::Closed(()));
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
                // Ordering: Relaxed, any value that the limit had is a limit (rule 1).
                room.limit.store(limit, Relaxed);
            }
            let more = reserved.wrapping_add(count * UNIT);
            // Ordering: AcqRel on success: Acquire pairs with the Release of `give_back`. Release
            // pairs with the next reservation's Acquire. Relaxed on failure, as above.
            let exchanged = room
                .reserved
                .compare_exchange_weak(reserved, more, AcqRel, Relaxed);
            match exchanged {
                Ok(_) => return Ok(()),
                Err(now) => reserved = now,
            }
        }
    }

    /// Makes room for `count` messages, which were received. Does nothing if there is no bound.
    #[inline]
    pub(super) fn give_room(&self, count: usize) {
        if !BOUNDED {
            return;
        }
        // Ordering: Release pairs with the Acquire of `full_at`. Acquire pairs with the Release of
        // `set_waiters`.
        let received = self.receiver.received.fetch_add(count * UNIT, AcqRel);
        if received & WAITERS != 0 {
            self.grant();
        }
    }

    /// Gives back the room of `count` messages that are not sent.
    pub(super) fn give_back(&self, count: usize) {
        if count == 0 {
            return;
        }
        // Ordering: Release pairs with the Acquire of the next reservation, and of `has_reserved`.
        // Acquire pairs with the Release of `set_waiters`.
        let reserved = self.room().reserved.fetch_sub(count * UNIT, AcqRel);
        if reserved & WAITERS != 0 {
            self.grant();
        }
        if reserved & CLOSED != 0 {
            // This may be what the receiver of a closed channel waits for.
            self.wake_receiver();
        }
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

    /// Grants room to the waiters, under the lock. Returns whether it has finished: the batch may be
    /// full.
    fn grant_in(&self, waiting: &mut Locked<'_, Need>, batch: &mut Batch) -> bool {
        while let Some(first) = waiting.front() {
            if batch.is_full() {
                return false;
            }
            let full_at = self.full_at();
            // Ordering: Acquire pairs with the Release of `give_back`.
            let reserved = self.room().reserved.load(Acquire);
            let room = usize::try_from(between(reserved, full_at)).unwrap_or(0);
            let granted = room.min(first.lacks);
            if granted == 0 {
                return true;
            }
            // Ordering: Relaxed. It continues the Releases before it. While `WAITERS` is set, only
            // this thread adds (rule 3).
            self.room().reserved.fetch_add(granted * UNIT, Relaxed);
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
        // Ordering: AcqRel: this comes before or after each change of room, and the one sees the
        // other (rule 4).
        self.receiver.received.fetch_or(WAITERS, AcqRel);
        // Ordering: as above.
        self.room().reserved.fetch_or(WAITERS, AcqRel);
    }

    fn clear_waiters(&self) {
        // Ordering: Relaxed. A thread that still sees `WAITERS` takes the lock.
        self.receiver.received.fetch_and(!WAITERS, Relaxed);
        // Ordering: as above.
        self.room().reserved.fetch_and(!WAITERS, Relaxed);
    }

    /// Refuses all further reservations, and releases the waiters.
    pub(super) fn close_room(&self) {
        let waiting = self.waiting.lock();
        // Ordering: Relaxed. A sender sees the bit or reserves in time.
        self.room().reserved.fetch_or(CLOSED, Relaxed);
        self.clear_waiters();
        let mut back = 0;
        waiting.wake_all(|need| {
            need.lacks = NEVER;
            back += core::mem::take(&mut need.has);
        });
        self.give_back(back);
    }
}

/// The future of a reservation. The error says that the channel is closed, or smaller than the
/// reservation.
pub(super) struct Reserve<'a, T> {
    chan: &'a Chan<T, true>,
    count: usize,
    /// There is a waiter from the poll that queued it until the future is ready. Before that the
    /// making of a waiter would take longer than the attempt to reserve.
    waiter: Option<Waiter<Need>>,
}

impl<'a, T> Reserve<'a, T> {
    #[inline]
    pub(super) fn new(chan: &'a Chan<T, true>, count: usize) -> Self {
        Self {
            chan,
            count,
            waiter: None,
        }
    }

    /// Returns the waiter.
    fn waiter(self: Pin<&Self>) -> Option<Pin<&Waiter<Need>>> {
        // SAFETY: the waiter is pinned as the future is: it is moved by nobody, and dropped in
        // place.
        unsafe { self.map_unchecked(|this| &this.waiter) }.as_pin_ref()
    }

    /// Returns the place of the waiter.
    fn place(self: Pin<&mut Self>) -> Pin<&mut Option<Waiter<Need>>> {
        // SAFETY: as in `waiter`.
        unsafe { self.map_unchecked_mut(|this| &mut this.waiter) }
    }

    #[inline]
    fn poll_first(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), ()>> {
        if self.count > self.chan.max_capacity() {
            return Poll::Ready(Err(()));
        }
        match self.chan.try_reserve(self.count) {
            Ok(()) => Poll::Ready(Ok(())),
            Err(TrySendError::Closed(())) => Poll::Ready(Err(())),
            Err(TrySendError::Full(())) => self.poll_full(cx),
        }
    }

    /// Queues the waiter.
    #[cold]
    fn poll_full(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), ()>> {
        let (chan, need) = (self.chan, Need::of(self.count));
        let waker = cx.waker().clone();
        let mut waiting = chan.waiting.lock();
        // Ordering: Relaxed. A close sets the bit under the lock.
        if chan.room().reserved.load(Relaxed) & CLOSED != 0 {
            drop(waiting);
            return Poll::Ready(Err(()));
        }
        chan.set_waiters();
        self.as_mut().place().set(Some(Waiter::new(need)));
        if let Some(waiter) = self.as_ref().waiter() {
            // SAFETY: this future owns the waiter, which is not queued, and its drop removes it.
            unsafe { waiting.push_back(waiter, waker, need) };
        }
        let mut batch = Batch::new();
        let is_done = chan.grant_in(&mut waiting, &mut batch);
        drop(waiting);
        wake_batch(&mut batch);
        if !is_done {
            chan.grant();
        }
        self.poll_queued(cx)
    }

    fn poll_queued(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), ()>> {
        let chan = self.chan;
        let Some(waiter) = self.as_ref().waiter() else {
            return Poll::Pending;
        };
        // SAFETY: this future owns the waiter, and has pushed it to this queue.
        let need = ready!(unsafe { chan.waiting.poll(waiter, cx.waker()) });
        self.as_mut().place().set(None);
        Poll::Ready(if need.is_closed() { Err(()) } else { Ok(()) })
    }

    /// Leaves the queue, and gives back what the waiter was granted.
    #[cold]
    fn cancel(self: Pin<&mut Self>) {
        let chan = self.chan;
        let Some(waiter) = self.as_ref().waiter() else {
            return;
        };
        let mut waiting = chan.waiting.lock();
        // SAFETY: this future owns the waiter, which was pushed to this queue.
        let need = unsafe { waiting.value(waiter) };
        // SAFETY: as above.
        let waker = unsafe { waiting.remove(waiter) };
        if waker.is_some() && waiting.is_empty() {
            chan.clear_waiters();
        }
        drop(waiting);
        chan.give_back(need.has);
        drop(waker);
    }
}

impl<T> Future for Reserve<'_, T> {
    type Output = Result<(), ()>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let progress = ready!(poll_proceed(cx));
        let reserved = match self.waiter.is_none() {
            true => ready!(self.poll_first(cx)),
            false => ready!(self.poll_queued(cx)),
        };
        progress.made_progress();
        Poll::Ready(reserved)
    }
}

impl<T> Drop for Reserve<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.waiter.is_some() {
            // SAFETY: the future was pinned when it queued the waiter, and is not moved any more.
            unsafe { Pin::new_unchecked(self) }.cancel();
        }
    }
}
