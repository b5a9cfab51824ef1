//! The part that the handles of a channel share: its allocation, its counts, and how it ends.
//!
//! | field | written by |
//! |---|---|
//! | `room` | see `room.rs`. On its senders' line is the chain, and on its receiver's line: |
//! | `Receiving::head` | the receiver |
//! | `Receiving::end` | the receiver, when it closes the channel |
//! | `Receiving::waker` | the receiver registers, others wake |
//! | `strong` | the number of senders that are not weak |
//! | `owners` | see [`Owner`] |
//! | `closing` | under its lock: senders that wait for the close |
//!
//! 1. The last sender sets `DISCONNECTED` in `tail` and then wakes the receiver. All sends have
//!    ended by then. So a receiver that finds `DISCONNECTED`, and has received each position before
//!    `tail`, has received all messages. The receiver registers its waker and then looks at `tail`;
//!    so it sees the bit or is woken.
//! 2. A close sets `CLOSED`. In an unbounded channel the position at that moment is the *end*:
//!    earlier positions will be written, and later ones are refused. In a bounded channel what is
//!    reserved may still be sent. There the end is reached when all that is reserved is received or
//!    given back.
//! 3. Messages and wakers are dropped, and wakers are woken, while no lock is held and no reference
//!    to the head exists: their code may use the channel.
use super::chain::{CLOSED, Chain, DISCONNECTED, GONE, Head};
use super::room::Room;
use crate::coop::{WaitsOn, poll_proceed};
use crate::panics::{drop_each, resume};
use crate::waiters::{Waiters, wake};
use crate::waiting::Waiting;
use alloc::{boxed::Box, vec::Vec};
use core::{
    iter,
    panic::{RefUnwindSafe, UnwindSafe},
    ptr::NonNull,
    task::{Context, Poll, Waker, ready},
};
use sync_shim::{
    atomic::{
        AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed},
        Retire,
    },
    cell::UnsafeCell,
    panics::{Payload, contain},
};
use waker_vtable::WakerCell;

pub(super) struct Chan<T, const BOUNDED: bool> {
    pub(super) room: Room<Chain<T>, Receiving<T>>,
    strong: AtomicUsize,
    owners: AtomicUsize,
    pub(super) closing: Waiters<()>,
}

/// The part that only the receiver uses.
pub(super) struct Receiving<T> {
    head: UnsafeCell<Head<T>>,
    /// The end of a closed unbounded channel.
    end: UnsafeCell<Option<u64>>,
    waker: WakerCell,
}

// SAFETY: the channel owns its messages and blocks.
unsafe impl<T: Send, const BOUNDED: bool> Send for Chan<T, BOUNDED> {}
// SAFETY: messages move to the receiver's thread, and none is shared. All else is atomic, under a
// lock, or used by the one receiver (the table of fields).
unsafe impl<T: Send, const BOUNDED: bool> Sync for Chan<T, BOUNDED> {}
/// The greatest value of a count of handles. Handles may be forgotten, and a count that overflows
/// would free a channel in use.
const MOST_HANDLES: usize = usize::MAX / 2;

// User code runs while the channel is in order (rule 3).

impl<T, const BOUNDED: bool> UnwindSafe for Chan<T, BOUNDED> {}
impl<T, const BOUNDED: bool> RefUnwindSafe for Chan<T, BOUNDED> {}

/// An owner of the allocation: each one's part of the count `owners`.
#[derive(Clone, Copy)]
pub(super) enum Owner {
    /// All senders together.
    Senders = 1,
    Receiver = 2,
    /// A weak sender. There may be many.
    Weak = 4,
}

/// A receive without a message.
pub(super) enum Nothing {
    /// A message may come.
    Yet,
    /// No message will come.
    Ever,
}

impl<T, const BOUNDED: bool> Chan<T, BOUNDED> {
    pub(super) fn new(capacity: usize) -> NonNull<Self> {
        let (chain, head) = Chain::new();
        let receiving = Receiving {
            head: UnsafeCell::new(head),
            end: UnsafeCell::new(None),
            waker: WakerCell::new(),
        };
        NonNull::from(Box::leak(Box::new(Self {
            room: Room::new(capacity, chain, receiving),
            strong: AtomicUsize::new(1),
            owners: AtomicUsize::new(Owner::Senders as usize + Owner::Receiver as usize),
            closing: Waiters::new(()),
        })))
    }

    fn chain(&self) -> &Chain<T> {
        &self.room.senders.more
    }

    fn receiving(&self) -> &Receiving<T> {
        &self.room.receiver.more
    }

    /// Runs `f` on the head.
    ///
    /// # Safety
    /// The caller is the receiver, or owns the channel. `f` runs no user code.
    #[inline]
    unsafe fn with_head<R>(&self, f: impl FnOnce(&mut Head<T>) -> R) -> R {
        self.receiving().head.with_mut(|head| {
            // SAFETY: only the caller uses the head, and `f` does not call this.
            f(unsafe { &mut *head })
        })
    }

    /// Sends a message. In a bounded channel its room is reserved.
    ///
    /// # Errors
    /// Hands the message back if the receiver is dropped, or has closed an unbounded channel.
    #[inline]
    pub(super) fn push(&self, message: T) -> Result<(), T> {
        let refuse = if BOUNDED { GONE } else { CLOSED };
        if self.chain().push(message, refuse)? {
            self.wake_receiver();
        }
        Ok(())
    }

    #[cold]
    pub(super) fn wake_receiver(&self) {
        if let Some(waker) = self.receiving().waker.take() {
            wake(waker);
        }
    }

    /// Calls `f` for the task that waits for a message. Its waker is taken out for that, so the
    /// task is then woken, and registers again.
    pub(super) fn for_waiting_receiver(&self, mut f: impl FnMut(&Waiting<'_>)) {
        /// Wakes also if `f` panics.
        struct Wakes(Option<Waker>);

        impl Drop for Wakes {
            fn drop(&mut self) {
                if let Some(waker) = self.0.take() {
                    wake(waker);
                }
            }
        }

        let taken = Wakes(self.receiving().waker.take());
        if let Some(waker) = &taken.0 {
            f(&Waiting::new(waker, 1));
        }
    }

    /// Returns whether the receiver has closed the channel or is dropped.
    pub(super) fn is_closed(&self) -> bool {
        if BOUNDED {
            // A close marks `tail` first. Sends are refused once the room is closed.
            self.room.is_closed()
        } else {
            self.chain().tail().1 & CLOSED != 0
        }
    }

    /// Returns the number of senders that are not weak.
    pub(super) fn strong(&self) -> usize {
        // Ordering: Acquire pairs with the Release of `drop_sender`: a thread that sees no sender
        // left sees all messages.
        self.strong.load(Acquire)
    }

    /// Returns the number of weak senders.
    pub(super) fn weak(&self) -> usize {
        // Ordering: Relaxed, the count is only a number.
        self.owners.load(Relaxed) / Owner::Weak as usize
    }

    /// Adds a sender to those of the caller.
    pub(super) fn add_sender(&self) {
        // Ordering: Relaxed, the caller's sender stays until later.
        let before = self.strong.fetch_add(1, Relaxed);
        if before >= MOST_HANDLES {
            // Ordering: as above.
            self.strong.fetch_sub(1, Relaxed);
            panic!("a channel of too many senders");
        }
    }

    /// Adds a sender, unless there is none any more.
    pub(super) fn try_add_sender(&self) -> bool {
        let add = |n| (n != 0 && n < MOST_HANDLES).then(|| n + 1);
        // Ordering: Relaxed on success: a sender from before keeps the channel, and it orders
        // nothing. Acquire on failure pairs with the Release of `drop_sender`: the caller sees what
        // the last sender did.
        let added = self.strong.fetch_update(Relaxed, Acquire, add);
        assert!(
            !added.is_err_and(|n| n != 0),
            "a channel of too many senders"
        );
        added.is_ok()
    }

    /// Adds a weak sender.
    pub(super) fn add_weak(&self) {
        // Ordering: Relaxed, as in `add_sender`.
        let before = self.owners.fetch_add(Owner::Weak as usize, Relaxed);
        if before >= MOST_HANDLES {
            // Ordering: as above.
            self.owners.fetch_sub(Owner::Weak as usize, Relaxed);
            panic!("a channel of too many weak senders");
        }
    }

    /// Drops a sender.
    ///
    /// # Safety
    /// The caller has a sender, and does not use it again.
    pub(super) unsafe fn drop_sender(this: NonNull<Self>) {
        // SAFETY: the sender keeps the channel.
        let chan = unsafe { this.as_ref() };
        // Ordering: AcqRel: the last sender's `DISCONNECTED` comes after all sends (rule 1).
        if chan.strong.fetch_sub(1, AcqRel) != 1 {
            return;
        }
        chan.chain().mark(DISCONNECTED);
        chan.wake_receiver();
        // SAFETY: the senders' part.
        unsafe { Self::leave(this, Owner::Senders) };
    }

    /// Gives back a part of the allocation.
    ///
    /// # Safety
    /// The caller has that part, and does not use it again.
    pub(super) unsafe fn leave(this: NonNull<Self>, owner: Owner) {
        // SAFETY: the caller's part keeps the channel.
        let owners = unsafe { &this.as_ref().owners };
        // Ordering: AcqRel: all other owners' uses come before the free.
        if owners.fetch_sub(owner as usize, AcqRel) != owner as usize {
            return;
        }
        // SAFETY: `new` leaked the box, and no owner is left.
        drop(unsafe { Box::from_raw(this.as_ptr()) });
    }

    /// Receives a message if one is there. In a bounded channel the caller then calls `give_room`.
    ///
    /// # Safety
    /// The caller is the receiver.
    #[inline]
    pub(super) unsafe fn pop(&self) -> Option<T> {
        // SAFETY: the caller's.
        unsafe { self.with_head(|head| head.pop(self.chain())) }
    }

    /// Returns the position before which the receiver receives messages, and whether no later one
    /// will come, except what is reserved.
    ///
    /// # Safety
    /// The caller has the receiver.
    unsafe fn end(&self) -> (u64, bool) {
        // SAFETY: only the receiver writes this, in a call on `&mut`.
        let end = self.receiving().end.with(|end| unsafe { *end });
        if let Some(end) = end {
            return (end, true);
        }
        let (tail, bits) = self.chain().tail();
        (tail, bits & (CLOSED | DISCONNECTED) != 0)
    }

    /// Returns whether no message is there, or will come.
    ///
    /// # Safety
    /// The caller is the receiver.
    unsafe fn is_finished(&self) -> bool {
        let (_, bits) = self.chain().tail();
        // A bounded channel that is closed may have room that is reserved. Once there is none, all
        // messages are before the position that is read next.
        if BOUNDED && bits & (CLOSED | DISCONNECTED) == CLOSED && self.room.has_reserved() {
            return false;
        }
        // SAFETY: the caller's.
        let (end, is_last) = unsafe { self.end() };
        // SAFETY: the caller's.
        is_last && unsafe { self.with_head(|head| head.position() == end) }
    }

    /// Receives a message, also one that is being sent.
    ///
    /// # Safety
    /// The caller is the receiver.
    pub(super) unsafe fn try_recv(&self) -> Result<T, Nothing> {
        // SAFETY: the caller's.
        let mut message = unsafe { self.pop() };
        if message.is_none() {
            // SAFETY: the caller's.
            let is_finished = unsafe { self.is_finished() };
            // SAFETY: the caller's.
            let (end, _) = unsafe { self.end() };
            // SAFETY: the caller's.
            message = unsafe { self.with_head(|head| head.pop_claimed(self.chain(), end)) };
            if message.is_none() {
                return Err(if is_finished {
                    Nothing::Ever
                } else {
                    Nothing::Yet
                });
            }
        }
        self.give_room(1);
        message.ok_or(Nothing::Yet)
    }

    /// Makes room for messages that were received.
    #[inline]
    fn give_room(&self, count: usize) {
        if BOUNDED {
            self.room.give_room(count);
        }
    }

    /// Gives back room that was reserved.
    pub(super) fn give_back(&self, count: usize) {
        if self.room.give_back(count) {
            self.wake_receiver();
        }
    }

    /// Polls for a message.
    ///
    /// # Safety
    /// The caller is the receiver.
    #[inline]
    pub(super) unsafe fn poll_recv(&self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let progress = ready!(poll_proceed(cx));
        // SAFETY: the caller's.
        let message = match unsafe { self.pop() } {
            Some(message) => Some(message),
            // SAFETY: the caller's.
            None => match unsafe { self.poll_wait(cx) } {
                Poll::Ready(message) => message,
                Poll::Pending => {
                    progress.waits_for(|| WaitsOn::event("a message of an mpsc channel", self));
                    return Poll::Pending;
                }
            },
        };
        progress.made_progress();
        if message.is_some() {
            self.give_room(1);
        }
        Poll::Ready(message)
    }

    /// Registers the receiver's waker, and looks for a message and for the end.
    ///
    /// # Safety
    /// The caller is the receiver.
    #[cold]
    unsafe fn poll_wait(&self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.receiving().waker.register(cx.waker());
        // SAFETY: the caller's.
        let message = unsafe {
            self.with_head(|head| {
                head.wait(self.chain());
                head.pop(self.chain())
            })
        };
        // SAFETY: the caller's.
        if message.is_none() && !unsafe { self.is_finished() } {
            return Poll::Pending;
        }
        Poll::Ready(message)
    }

    /// Polls for up to `limit` messages, which it appends to `buffer`.
    ///
    /// # Safety
    /// The caller is the receiver.
    pub(super) unsafe fn poll_recv_many(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<T>,
        limit: usize,
    ) -> Poll<usize> {
        if limit == 0 {
            return Poll::Ready(0);
        }
        let progress = ready!(poll_proceed(cx));
        // SAFETY: the caller's.
        let first = match unsafe { self.pop() } {
            Some(message) => Some(message),
            // SAFETY: the caller's.
            None => match unsafe { self.poll_wait(cx) } {
                Poll::Ready(message) => message,
                Poll::Pending => {
                    progress.waits_for(|| WaitsOn::event("a message of an mpsc channel", self));
                    return Poll::Pending;
                }
            },
        };
        progress.made_progress();
        let Some(first) = first else {
            return Poll::Ready(0);
        };
        // Counts the messages also if the buffer cannot grow.
        let mut received = Received {
            chan: self,
            count: 1,
        };
        buffer.push(first);
        while received.count < limit {
            // SAFETY: the caller's.
            let Some(message) = (unsafe { self.pop() }) else {
                break;
            };
            received.count += 1;
            buffer.push(message);
        }
        Poll::Ready(received.count)
    }

    /// Returns the number of messages in the channel.
    ///
    /// # Safety
    /// The caller has the receiver.
    pub(super) unsafe fn len(&self) -> usize {
        // SAFETY: the caller's.
        let (end, _) = unsafe { self.end() };
        self.receiving().head.with(|head| {
            // SAFETY: the head changes in calls on `&mut` alone.
            unsafe { &*head }.len(end)
        })
    }

    /// Returns whether the channel is closed, or no sender is left.
    pub(super) fn is_closed_or_disconnected(&self) -> bool {
        self.is_closed() || self.strong() == 0
    }

    /// Closes the channel, and wakes the senders that wait.
    ///
    /// # Safety
    /// The caller is the receiver.
    pub(super) unsafe fn close(&self) {
        let (tail, bits) = self.chain().mark(CLOSED);
        if bits & CLOSED != 0 {
            return;
        }
        if BOUNDED {
            self.room.close();
        } else {
            self.receiving().end.with_mut(|end| {
                // SAFETY: only the receiver uses this.
                unsafe { *end = Some(tail) };
            });
        }
        self.closing.lock().wake_all(|()| ());
    }

    /// Drops the receiver: closes the channel and drops the messages in it.
    ///
    /// # Safety
    /// The caller has the receiver, and does not use it again.
    pub(super) unsafe fn drop_receiver(this: NonNull<Self>) {
        // SAFETY: the receiver keeps the channel.
        let chan = unsafe { this.as_ref() };
        // SAFETY: the caller's.
        unsafe { chan.close() };
        let (gone, _) = chan.chain().mark(GONE);
        // SAFETY: the caller's.
        let panic = unsafe { chan.drop_messages(gone) };
        let waker = chan.receiving().waker.take();
        contain(|| drop(waker));
        // SAFETY: the receiver's part.
        unsafe { Self::leave(this, Owner::Receiver) };
        resume(panic);
    }

    /// Drops all messages, also those that are being sent: a message behind one of these may hold
    /// what its sender waits for, so it cannot stay. `gone` is the position at which `GONE` was
    /// set. Returns the first panic.
    ///
    /// # Safety
    /// The caller is the receiver, and has set `GONE`.
    unsafe fn drop_messages(&self, gone: u64) -> Option<Payload> {
        // SAFETY: only the receiver writes this, in a call on `&mut`.
        let end = self.receiving().end.with(|end| unsafe { *end });
        let end = end.unwrap_or(gone);
        drop_each(iter::from_fn(|| {
            // SAFETY: the caller's.
            unsafe { self.with_head(|head| head.pop_claimed(self.chain(), end)) }
        }))
    }
}

/// Messages that were received. The drop gives their room back.
struct Received<'a, T, const BOUNDED: bool> {
    chan: &'a Chan<T, BOUNDED>,
    count: usize,
}

impl<T, const BOUNDED: bool> Drop for Received<'_, T, BOUNDED> {
    fn drop(&mut self) {
        self.chan.give_room(self.count);
    }
}

impl<T, const BOUNDED: bool> Drop for Chan<T, BOUNDED> {
    /// Frees the blocks. The receiver's drop has dropped all messages.
    fn drop(&mut self) {
        let chain = &mut self.room.senders.more;
        let receiving = &mut self.room.receiver.more;
        receiving.head.with_mut(|head| {
            // SAFETY: the channel is this call's.
            let head = unsafe { &mut *head };
            // SAFETY: as above.
            unsafe { head.free_all(chain) };
        });
        receiving.head.retire();
        receiving.end.retire();
        self.room.retire();
        self.strong.retire();
        self.owners.retire();
    }
}

#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
