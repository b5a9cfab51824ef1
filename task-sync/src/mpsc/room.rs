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
use super::error::{SendError, TrySendError};
use crate::coop::poll_proceed;
use crate::waiters::{Batch, Locked, Waiter, wake_batch};
use core::{
    future::{Future, poll_fn},
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
    is_closed: bool,
}

impl Need {
    fn of(count: usize) -> Self {
        Self {
            lacks: count,
            has: 0,
            is_closed: false,
        }
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
                ..first
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
            need.is_closed = true;
            back += core::mem::take(&mut need.has);
        });
        self.give_back(back);
    }
}

/// Reserves room. The error says that the channel is closed, or smaller than `count`.
///
/// The first poll tries without a [`Reserve`], whose making would take longer than the attempt.
#[inline]
pub(super) async fn reserve<T>(chan: &Chan<T, true>, count: usize) -> Result<(), SendError<()>> {
    let tried = poll_fn(|cx| {
        let progress = ready!(poll_proceed(cx));
        let tried = match count {
            count if count > chan.max_capacity() => Err(TrySendError::Closed(())),
            count => chan.try_reserve(count),
        };
        if !matches!(tried, Err(TrySendError::Full(()))) {
            progress.made_progress();
        }
        Poll::Ready(tried)
    });
    match tried.await {
        Ok(()) => Ok(()),
        Err(TrySendError::Closed(())) => Err(SendError(())),
        Err(TrySendError::Full(())) => Reserve::new(chan, count).await.map_err(SendError),
    }
}

/// The future of a reservation. The error says that the channel is closed, or smaller than the
/// reservation.
pub(super) struct Reserve<'a, T> {
    chan: &'a Chan<T, true>,
    count: usize,
    state: State,
    waiter: Waiter<Need>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    /// The waiter was pushed. It may have been granted room since.
    Pushed,
    Done,
}

impl<'a, T> Reserve<'a, T> {
    pub(super) fn new(chan: &'a Chan<T, true>, count: usize) -> Self {
        Self {
            chan,
            count,
            state: State::Idle,
            waiter: Waiter::new(Need::of(count)),
        }
    }

    /// Takes what the waiter was granted.
    fn finish(&mut self, need: Need) -> Result<(), ()> {
        self.state = State::Done;
        if need.is_closed {
            self.chan.give_back(need.has);
            return Err(());
        }
        Ok(())
    }

    fn poll_first(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), ()>> {
        let chan = self.chan;
        let reserved = match self.count {
            count if count > chan.max_capacity() => Err(TrySendError::Closed(())),
            count => chan.try_reserve(count),
        };
        let is_full = matches!(reserved, Err(TrySendError::Full(())));
        if is_full && self.as_mut().push(cx)? {
            return Poll::Pending;
        }
        if !is_full {
            // SAFETY: the waiter is not moved.
            unsafe { self.get_unchecked_mut() }.state = State::Done;
            return Poll::Ready(reserved.map_err(|_| ()));
        }
        self.poll_pushed(cx)
    }

    /// Queues the waiter. Returns whether it waits. The error says that the channel is closed.
    fn push(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Result<bool, ()> {
        // SAFETY: the waiter is not moved.
        let this = unsafe { self.get_unchecked_mut() };
        let chan = this.chan;
        let waker = cx.waker().clone();
        let mut waiting = chan.waiting.lock();
        // Ordering: Relaxed. A close sets the bit under the lock.
        if chan.room().reserved.load(Relaxed) & CLOSED != 0 {
            drop(waiting);
            this.state = State::Done;
            return Err(());
        }
        chan.set_waiters();
        // SAFETY: the future is pinned.
        let waiter = unsafe { Pin::new_unchecked(&this.waiter) };
        // SAFETY: this future owns the waiter, which is not queued, and its drop removes it.
        unsafe { waiting.push_back(waiter, waker, Need::of(this.count)) };
        this.state = State::Pushed;
        let mut batch = Batch::new();
        let is_done = chan.grant_in(&mut waiting, &mut batch);
        drop(waiting);
        wake_batch(&mut batch);
        if !is_done {
            chan.grant();
        }
        Ok(waiter.is_queued())
    }

    fn poll_pushed(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), ()>> {
        // SAFETY: the waiter is not moved.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: the future is pinned.
        let waiter = unsafe { Pin::new_unchecked(&this.waiter) };
        // SAFETY: this future owns the waiter, and has pushed it to this queue.
        let need = ready!(unsafe { this.chan.waiting.poll(waiter, cx.waker()) });
        Poll::Ready(this.finish(need))
    }
}

impl<T> Future for Reserve<'_, T> {
    type Output = Result<(), ()>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let progress = ready!(poll_proceed(cx));
        let reserved = match self.state {
            State::Idle => ready!(self.poll_first(cx)),
            State::Pushed => ready!(self.poll_pushed(cx)),
            State::Done => panic!("a reservation that was ready is polled"),
        };
        progress.made_progress();
        Poll::Ready(reserved)
    }
}

impl<T> Drop for Reserve<'_, T> {
    /// Leaves the queue, and gives back what the waiter was granted.
    #[inline]
    fn drop(&mut self) {
        if self.state == State::Pushed {
            self.cancel();
        }
    }
}

impl<T> Reserve<'_, T> {
    #[cold]
    fn cancel(&mut self) {
        // SAFETY: the future was pinned, and its memory is not used for anything else yet.
        let waiter = unsafe { Pin::new_unchecked(&self.waiter) };
        let mut waiting = self.chan.waiting.lock();
        // SAFETY: this future owns the waiter, which was pushed to this queue.
        let need = unsafe { waiting.value(waiter) };
        // SAFETY: as above.
        let waker = unsafe { waiting.remove(waiter) };
        if waker.is_some() && waiting.is_empty() {
            self.chan.clear_waiters();
        }
        drop(waiting);
        self.chan.give_back(need.has);
        drop(waker);
    }
}
