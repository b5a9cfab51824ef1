//! The queue of a channel: a chain of blocks of slots.
//!
//! # The story
//!
//! A sender claims the next *position* by one addition to `tail`. The position names a slot of a
//! block. The sender walks from `tail_block` to that block, writes its message to the slot, and
//! adds the slot's bit to the block's `ready`. The receiver reads the messages in the order of
//! their positions. It knows from `ready` which slots are written, and keeps a copy of `ready`: so
//! a receive from a block with several messages reads nothing that senders write but the message.
//!
//! A receiver that finds no message registers its waker, sets `WAITING` in `ready` of the block in
//! which the next message will be, and looks again. Only the sender of *that* message wakes it. The
//! sender knows this from the value of `ready` that its addition returns: `WAITING` is set, and the
//! slots before its own are written.
//!
//! # Fields
//!
//! | field | written by |
//! |---|---|
//! | `Chain::tail` | senders add [`ONE`]; the bits below are set once each |
//! | `Chain::tail_block` | a sender, by an exchange: rule 4 |
//! | `Chain::spare` | anyone, by an exchange: a block for the next one who needs it |
//! | `Block::start` | the one who has the block to itself, before it links the block |
//! | `Block::next` | one exchange from null: by a sender, or by the receiver when it must wait |
//! | `Block::ready` | senders add their slots' bits; the receiver sets `WAITING`; see rule 4 |
//! | `Block::free_at` | the sender of rule 4 |
//! | `Head` | the receiver |
//!
//! # Rules
//!
//! 1. A position is claimed by one sender. That sender writes the slot of the position once, then
//!    adds the slot's bit, and does not touch any block afterwards. If `tail` says that the channel
//!    is closed ([`Refuse`]), the position has no slot, nor has any later one.
//! 2. The receiver reads a slot once, after it has acquired the slot's bit.
//! 3. Blocks are linked in the order of positions. `tail_block` only moves forward. A sender loads
//!    it *after* it has claimed its position. A block with a slot that is not written is not moved
//!    past. So the block of a position can be reached from `tail_block` while its slot is not
//!    written.
//! 4. A sender that walks past a block of written slots moves `tail_block` to the next block, by an
//!    exchange. The one that succeeds then reads `tail`, writes that position to `free_at`, and
//!    sets `RELEASED`.
//! 5. The receiver frees blocks in their order, if it is past the block, the block is released, and
//!    the receiver has reached `free_at`.
//! 6. A receiver that waits at a slot has read all slots before. So the sender of that slot finds
//!    their bits in `ready`.
//!
//! Positions have 64 bits on every target. With 32 bits, a program with memory for 2^28 messages
//! could send so many before a receive that rule 5 compared positions in the wrong order.
//!
//! # Why no block is freed in use
//!
//! Let a sender use block B, which it has loaded from `tail_block` or has reached from there. It
//! uses B before it adds the bit of its own slot (rule 1). Its position p was claimed before the
//! load (rule 3). Let another sender release B, or an earlier block. Its read of `tail` is a
//! read-modify-write that releases the new `tail_block`, and a claim acquires. So if the read came
//! first, the load would have returned a later block than B. So the claim came first, and `free_at`
//! is above p. The receiver reaches `free_at` after it has acquired the bit of p (rule 2), when the
//! sender has done with B.
//!
//! # Why no wake is lost
//!
//! The receiver registers its waker, sets `WAITING`, and looks for the bit of its slot. Both
//! `WAITING` and the bit are set by read-modify-writes of `ready`. If the bit came first, the
//! receiver sees it. Otherwise the sender sees `WAITING` and wakes the cell in which the waker is
//! registered. `WAITING` stays set for the rest of the block. Then the cell decides, by its own
//! rules: the registration came first and the sender finds the waker, or the wake came first and
//! the receiver's look sees the bit.
use super::block::{ALL, Block, RELEASED, SLOTS, WAITING};
use core::ptr::{self, NonNull};
use sync_shim::{
    atomic::{
        AtomicPtr, AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
        Retire,
    },
    hint::spin_loop,
};

/// The bit of `tail`: the receiver has closed the channel.
pub(super) const CLOSED: u64 = 1;
/// The bit of `tail`: the receiver is dropped.
pub(super) const GONE: u64 = 2;
/// The bit of `tail`: the last sender is dropped.
pub(super) const DISCONNECTED: u64 = 4;
/// The increment of `tail` for one position. Positions are counted in this unit everywhere.
pub(super) const ONE: u64 = 8;
/// The bits of `tail` that are no position.
const BITS: u64 = ONE - 1;
/// The bits of a position that are its place in a block.
const PLACE: u64 = SLOTS as u64 * ONE - 1;

/// Returns the slot of a position.
#[inline(always)]
fn slot_of(position: u64) -> usize {
    ((position & PLACE) / ONE) as usize
}

/// Waits for a sender that is in the middle of its push.
#[cold]
fn relax(spins: u32) {
    #[cfg(feature = "std")]
    if spins % 64 == 63 {
        // The sender may be preempted.
        return sync_shim::thread::yield_now();
    }
    let _ = spins;
    spin_loop();
}

/// The senders' side.
pub(super) struct Chain<T> {
    tail: AtomicU64,
    tail_block: AtomicPtr<Block<T>>,
    spare: AtomicPtr<Block<T>>,
}

/// The receiver's side.
pub(super) struct Head<T> {
    /// The position of the next message.
    position: u64,
    /// The block of the last message, or that of the next one.
    block: NonNull<Block<T>>,
    /// A copy of `ready` of `block`, or of a part of its bits.
    ready: usize,
    /// The first block that is not freed.
    oldest: NonNull<Block<T>>,
}

impl<T> Chain<T> {
    pub(super) fn new() -> (Self, Head<T>) {
        Self::starting_at(0)
    }

    /// Creates a chain whose first position is the first one of a block.
    fn starting_at(position: u64) -> (Self, Head<T>) {
        let block = Block::new(position);
        let chain = Self {
            tail: AtomicU64::new(position),
            tail_block: AtomicPtr::new(block.as_ptr()),
            spare: AtomicPtr::new(ptr::null_mut()),
        };
        let head = Head {
            position,
            block,
            ready: 0,
            oldest: block,
        };
        (chain, head)
    }

    /// Returns the next position to be claimed, and the bits.
    pub(super) fn tail(&self) -> (u64, u64) {
        // Ordering: Acquire pairs with the Release of `mark`: what happened before the bit was set.
        let tail = self.tail.load(Acquire);
        (tail & !BITS, tail & BITS)
    }

    /// Sets a bit of `tail`. Returns the next position to be claimed, and the bits before.
    pub(super) fn mark(&self, bit: u64) -> (u64, u64) {
        // Ordering: Release pairs with the Acquire of `tail` and of a claim.
        let tail = self.tail.fetch_or(bit, Release);
        (tail & !BITS, tail & BITS)
    }

    /// Pushes a message. Returns whether the receiver waits for it and must be woken.
    ///
    /// Costs two read-modify-writes. One push in [`SLOTS`] needs a block, and costs up to five
    /// more.
    ///
    /// # Errors
    /// Hands the message back if a bit of `refuse` is set in `tail`.
    #[inline]
    pub(super) fn push(&self, message: T, refuse: u64) -> Result<bool, T> {
        // Ordering: Acquire pairs with the Release of `release`: see "Why no block is freed in
        // use".
        let tail = self.tail.fetch_add(ONE, Acquire);
        if tail & refuse != 0 {
            return Err(message);
        }
        let position = tail & !BITS;
        let slot = slot_of(position);
        let block = self.find(position);
        // SAFETY: the block of a claimed position is live until its slot's bit is set.
        let block = unsafe { block.as_ref() };
        // SAFETY: this call has claimed the slot.
        unsafe { block.write(slot, message) };
        let bit = 1 << slot;
        // Ordering: Release pairs with the Acquire of `Head::look`: the message, and this sender's
        // last use of any block.
        let before = block.ready.fetch_add(bit, Release);
        Ok(before & (WAITING | (bit - 1)) == WAITING | (bit - 1))
    }

    /// Returns the block of a position that the caller has claimed and not written.
    #[inline]
    fn find(&self, position: u64) -> NonNull<Block<T>> {
        // Ordering: Acquire pairs with the Release of `release`, and with the creation: the block
        // is initialised.
        let block = self.tail_block.load(Acquire);
        // SAFETY: `tail_block` is never null.
        let block = unsafe { NonNull::new_unchecked(block) };
        // SAFETY: the caller's position keeps the block live (front page).
        let start = unsafe { block.as_ref() }.start;
        if start == position & !PLACE {
            return block;
        }
        self.walk(block, position & !PLACE)
    }

    /// Walks from `tail_block` to the block that starts at `start`, and releases blocks on the way.
    #[cold]
    fn walk(&self, mut block: NonNull<Block<T>>, start: u64) -> NonNull<Block<T>> {
        let mut may_release = true;
        loop {
            // SAFETY: as in `find`. Blocks after a live block are live.
            let this = unsafe { block.as_ref() };
            if this.start == start {
                return block;
            }
            let next = self.next_of(this);
            // Ordering: Acquire pairs with the Release of `push`: the senders of the block's
            // messages have loaded `tail_block`.
            let all = this.ready.load(Acquire) & ALL == ALL;
            may_release = may_release && all && self.release(block, next);
            block = next;
        }
    }

    /// Moves `tail_block` from a block of written slots to the next one, unless it is elsewhere.
    fn release(&self, block: NonNull<Block<T>>, next: NonNull<Block<T>>) -> bool {
        let (from, to) = (block.as_ptr(), next.as_ptr());
        // Ordering: Release pairs with the Acquire of `find`. Relaxed on failure: the value is not
        // used.
        let moved = self.tail_block.compare_exchange(from, to, Release, Relaxed);
        if moved.is_err() {
            return false;
        }
        // Ordering: Release pairs with the Acquire of a claim: a later claim loads the new
        // `tail_block`. It is a read-modify-write, and not a load, so that one of the two comes
        // first.
        let free_at = self.tail.fetch_add(0, Release) & !BITS;
        // SAFETY: the block is not released yet, so it is live.
        let block = unsafe { block.as_ref() };
        block.free_at.with_mut(|at| {
            // SAFETY: only the sender that moves `tail_block` past the block writes this, and the
            // receiver reads it after `RELEASED`.
            unsafe { *at = free_at };
        });
        // Ordering: Release pairs with the Acquire of `Head::free`.
        block.ready.fetch_or(RELEASED, Release);
        true
    }

    /// Returns the block after a live one. Allocates it if there is none.
    fn next_of(&self, block: &Block<T>) -> NonNull<Block<T>> {
        // Ordering: Acquire pairs with the Release below.
        if let Some(next) = NonNull::new(block.next.load(Acquire)) {
            return next;
        }
        let start = block.start.wrapping_add(PLACE + 1);
        // Ordering: Acquire pairs with the Release of `keep`: the block is this thread's.
        let new = match NonNull::new(self.spare.swap(ptr::null_mut(), Acquire)) {
            Some(spare) => {
                // SAFETY: the swap took the block out, so it is this thread's.
                unsafe { Block::reset(spare, start) };
                spare
            }
            None => Block::new(start),
        };
        // Ordering: Release pairs with the Acquire above, on failure too: the block is initialised.
        let linked = block
            .next
            .compare_exchange(ptr::null_mut(), new.as_ptr(), Release, Acquire);
        let Err(other) = linked else { return new };
        // SAFETY: the block was not linked.
        unsafe { self.keep(new) };
        // SAFETY: the exchange failed, as the link is not null.
        unsafe { NonNull::new_unchecked(other) }
    }

    /// Makes the block the spare, and frees the old spare.
    ///
    /// # Safety
    /// The caller owns the block, which holds no message.
    unsafe fn keep(&self, block: NonNull<Block<T>>) {
        // Ordering: Release pairs with the Acquire of `next_of`, and Acquire with an earlier
        // Release here: the block that comes out is this thread's.
        let old = self.spare.swap(block.as_ptr(), AcqRel);
        if let Some(old) = NonNull::new(old) {
            // SAFETY: the swap took the block out.
            unsafe { Block::free(old) };
        }
    }
}

impl<T> Head<T> {
    /// Returns the position of the next message.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Returns how many positions are claimed before `end` and not received.
    pub(super) fn len(&self, end: u64) -> usize {
        (end.wrapping_sub(self.position) / ONE) as usize
    }

    /// Receives the next message if it is written. Does no read-modify-write, unless it frees a
    /// block.
    #[inline]
    pub(super) fn pop(&mut self, chain: &Chain<T>) -> Option<T> {
        let slot = slot_of(self.position);
        if self.ready & (1 << slot) == 0 && !self.look(slot) {
            return None;
        }
        // SAFETY: the receiver's block is live.
        let block = unsafe { self.block.as_ref() };
        // SAFETY: the slot's bit is acquired, and the position moves on.
        let message = unsafe { block.read(slot) };
        self.position = self.position.wrapping_add(ONE);
        if slot == SLOTS - 1 {
            self.ready = 0;
        }
        if 2 * slot % SLOTS == 0 && self.oldest != self.block {
            self.free(chain);
        }
        Some(message)
    }

    /// Enters the block of the next message, if it is linked, and returns whether the slot is
    /// written.
    fn look(&mut self, slot: usize) -> bool {
        // SAFETY: the receiver's block is live.
        let mut block = unsafe { self.block.as_ref() };
        if block.start != self.position & !PLACE {
            // Ordering: Acquire pairs with the Release of `next_of`.
            let next = block.next.load(Acquire);
            let Some(next) = NonNull::new(next) else {
                return false;
            };
            self.block = next;
            // SAFETY: a block after a live one is live.
            block = unsafe { next.as_ref() };
        }
        // Ordering: Acquire pairs with the Release of `push`: the message is written.
        self.ready = block.ready.load(Acquire);
        self.ready & (1 << slot) != 0
    }

    /// Makes sure that the sender of the next message wakes the receiver. Look again afterwards.
    ///
    /// Costs one read-modify-write, or none if the receiver has waited for a slot of this block.
    pub(super) fn wait(&mut self, chain: &Chain<T>) {
        // SAFETY: the receiver's block is live.
        let block = unsafe { self.block.as_ref() };
        if block.start != self.position & !PLACE {
            self.block = chain.next_of(block);
            self.ready = 0;
        }
        if self.ready & WAITING == 0 {
            // SAFETY: as above.
            let block = unsafe { self.block.as_ref() };
            // Ordering: Relaxed, as the order of changes of `ready` suffices: the next look sees
            // the bits that came before this.
            block.ready.fetch_or(WAITING, Relaxed);
        }
    }

    /// Receives the next message if it is written *or claimed*: waits for a sender that is in the
    /// middle of its push. `end` is the position before which messages are received.
    pub(super) fn pop_claimed(&mut self, chain: &Chain<T>, end: u64) -> Option<T> {
        let mut spins = 0_u32;
        loop {
            if let Some(message) = self.pop(chain) {
                return Some(message);
            }
            if self.position == end {
                return None;
            }
            relax(spins);
            spins = spins.wrapping_add(1);
        }
    }

    /// Frees blocks by rule 5: one becomes the spare.
    #[cold]
    fn free(&mut self, chain: &Chain<T>) {
        while self.oldest != self.block {
            // SAFETY: the oldest block is live.
            let block = unsafe { self.oldest.as_ref() };
            // Ordering: Acquire pairs with the Release of `release`.
            if block.ready.load(Acquire) & RELEASED == 0 {
                return;
            }
            // SAFETY: the block is released, so no sender writes this.
            let free_at = block.free_at.with(|at| unsafe { *at });
            if (self.position.wrapping_sub(free_at) as i64) < 0 {
                return;
            }
            // Ordering: Relaxed, the receiver has acquired this link when it entered the next
            // block.
            let next = block.next.load(Relaxed);
            let done = self.oldest;
            // SAFETY: the receiver has left the block, so there is a next one.
            self.oldest = unsafe { NonNull::new_unchecked(next) };
            // SAFETY: no sender uses the block (front page).
            unsafe { chain.keep(done) };
        }
    }

    /// Frees all blocks, but drops no message in them.
    ///
    /// # Safety
    /// The caller owns the channel. Neither side is used again.
    pub(super) unsafe fn free_all(&mut self, chain: &mut Chain<T>) {
        // Ordering: Relaxed here and below, the caller owns the channel.
        let mut next = chain.spare.load(Relaxed);
        if let Some(spare) = NonNull::new(next) {
            // SAFETY: the spare is in no chain.
            unsafe { Block::free(spare) };
        }
        next = self.oldest.as_ptr();
        while let Some(block) = NonNull::new(next) {
            // SAFETY: the block is in the chain.
            // Ordering: as above.
            next = unsafe { block.as_ref() }.next.load(Relaxed);
            // SAFETY: as above, and it is not used again.
            unsafe { Block::free(block) };
        }
        chain.tail.retire();
        chain.tail_block.retire();
        chain.spare.retire();
    }
}

#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
