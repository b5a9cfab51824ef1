//! The state that the handles of a channel share: the ring, its tail, and the tasks that wait.
//!
//! # Fields
//!
//! | field | may be touched by |
//! |---|---|
//! | `ring` | see the front page of `ring.rs` |
//! | `tail` | the holder of its lock |
//! | `receiving` | see the front page of `receiving.rs` |
//! | `senders`, `weak_senders` | anyone |
//!
//! # Rules
//!
//! 1. A value is put under the lock of `tail`, with the number of receivers at that moment. A
//!    receiver begins at the tail's position, under the same lock. So it is counted for each value
//!    from there on, until it leaves.
//! 2. A receiver that leaves lowers `Tail::receivers`, and then gives up each value that it has not
//!    got.
//! 3. `senders` never rises from zero. The drop that lowers it to zero then wakes all tasks
//!    of `receiving`. So a receiver that finds no sender, and then no value, has got all values.
use super::{
    receiving::{List, Receiving},
    ring::{MAX_RECEIVERS, Missing, Ring},
};
use crate::{
    coop::WaitsOn,
    lock::{Lock, LockGuard},
    panics::{drop_each, resume},
    wait::Condition,
    waiters::Waiters,
};
use alloc::sync::Arc;
use sync_shim::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

pub(super) struct Shared<T> {
    pub(super) ring: Ring<T>,
    /// The lock's holder is the ring's sender.
    tail: Lock<Tail>,
    /// The tasks that wait for a value.
    pub(super) receiving: Receiving,
    /// The tasks that wait until there is no receiver.
    pub(super) closing: Waiters<()>,
    senders: AtomicUsize,
    pub(super) weak_senders: AtomicUsize,
}

pub(super) struct Tail {
    /// The position of the next value.
    pub(super) position: u64,
    pub(super) receivers: usize,
}

impl<T> Shared<T> {
    /// Creates the state of a channel with one sender and no receiver.
    pub(super) fn new(capacity: usize) -> Arc<Self> {
        let tail = Tail {
            position: 0,
            receivers: 0,
        };
        Arc::new(Self {
            ring: Ring::new(capacity),
            tail: Lock::new(tail),
            receiving: Receiving::new(),
            closing: Waiters::new(()),
            senders: AtomicUsize::new(1),
            weak_senders: AtomicUsize::new(0),
        })
    }

    pub(super) fn tail(&self) -> LockGuard<'_, Tail> {
        self.tail.lock()
    }

    /// Puts a value for all receivers, and wakes those that wait. Returns their number.
    ///
    /// # Errors
    /// Returns the value if there is no receiver.
    #[inline]
    pub(super) fn send(&self, value: T) -> Result<usize, T> {
        let mut tail = self.tail();
        let (receivers, position) = (tail.receivers, tail.position);
        if receivers == 0 {
            // The guard is dropped before the value.
            drop(tail);
            return Err(value);
        }
        tail.position = position.wrapping_add(1);
        // SAFETY: the lock's holder is the sender. `subscribe` bounds the number of receivers.
        let replaced = unsafe { self.ring.put(position, value, receivers) };
        drop(tail);
        self.receiving.wake_all();
        drop(replaced);
        Ok(receivers)
    }

    /// Adds a receiver, and returns its position, and the list of its waits.
    #[track_caller]
    pub(super) fn subscribe(&self) -> (u64, List) {
        let others = self.tail().receivers;
        let list = self.receiving.choose(others);
        let mut tail = self.tail();
        let (receivers, position) = (tail.receivers, tail.position);
        if receivers < MAX_RECEIVERS {
            tail.receivers += 1;
        }
        drop(tail);
        assert!(receivers < MAX_RECEIVERS, "too many receivers");
        (position, list)
    }

    /// Ends the receiver whose next position is `next`.
    pub(super) fn unsubscribe(&self, next: u64) {
        let mut tail = self.tail();
        tail.receivers -= 1;
        let (receivers, end) = (tail.receivers, tail.position);
        drop(tail);
        if receivers == 0 {
            self.closing.lock().wake_all(|()| ());
        }
        // Older values are replaced.
        let unread = end.wrapping_sub(next).min(self.ring.capacity());
        let skipped = (1..=unread).rev().filter_map(|back| {
            // SAFETY: the receiver was counted for each position from `next` to `end` (rule 1), and
            // it gets none of them any more.
            unsafe { self.ring.skip(end.wrapping_sub(back)) }.ok()?
        });
        resume(drop_each(skipped));
    }

    pub(super) fn senders(&self) -> usize {
        // Ordering: Acquire pairs with the Release of `drop_sender`: a receiver that finds zero
        // sees all values that were put.
        self.senders.load(Acquire)
    }

    pub(super) fn add_sender(&self) {
        // Ordering: Relaxed, the caller has a sender.
        self.senders.fetch_add(1, Relaxed);
    }

    /// Adds a sender if there is one.
    pub(super) fn upgrade(&self) -> bool {
        // Acquires what the last sender did, if there is none.
        let mut senders = self.senders();
        while senders != 0 {
            // Ordering: Relaxed on success: a count that is not zero publishes nothing. Acquire on
            // failure, as in `senders`.
            match self
                .senders
                .compare_exchange(senders, senders + 1, Relaxed, Acquire)
            {
                Ok(_) => return true,
                Err(now) => senders = now,
            }
        }
        false
    }

    pub(super) fn drop_sender(&self) {
        // Ordering: Release pairs with the Acquire of `senders`.
        if self.senders.fetch_sub(1, Release) == 1 {
            // Rule 2 of `receiving.rs`.
            drop(self.tail());
            self.receiving.wake_all();
        }
    }

    /// Returns whether a receiver at `next` may find a value, or the end.
    pub(super) fn may_receive(&self, next: u64) -> bool {
        self.ring.missing(next) != Some(Missing::Unsent) || self.senders() == 0
    }
}

/// The condition that a channel has no receiver.
pub(super) struct Closed<'a, T>(pub(super) &'a Shared<T>);

impl<T> Condition for Closed<'_, T> {
    type Shared = ();
    type Output = ();

    fn queue(&self) -> &Waiters<()> {
        &self.0.closing
    }

    fn output(&mut self) -> Option<()> {
        self.may_be_met(&()).then_some(())
    }

    fn may_be_met(&self, &(): &()) -> bool {
        // No thread locks `closing` while it has the tail, so this nesting cannot deadlock.
        self.0.tail().receivers == 0
    }

    fn waits_on(&self) -> WaitsOn {
        WaitsOn::event("the end of the receivers of a broadcast channel", self.0)
    }
}
