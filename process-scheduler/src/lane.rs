//! A mailbox's lane of messages: unbounded, or bounded.
//!
//! Senders push messages one by one, and the process takes all of them at once. The first sender
//! since the last take notifies the process. A sender to a full lane gets its message back, or
//! waits until the process takes, or pushes out the oldest message.
//!
//! 1. A lane is closed once, by its process's end. A message that is pushed before is in the lane,
//!    and one that is pushed later is handed back. The bounded lane decides under its lock which of
//!    the two holds, and the unbounded lane in one exchange.
//! 2. The sender that puts a message into an empty lane notifies the process. The bounded lane
//!    decides under its lock whether it was empty.
//! 3. The process takes all messages at once, and takes no more before it has handled these. The
//!    messages that it has taken do not count against the bound. So a bounded lane and its process
//!    have at most twice as many messages as the bound.
//! 4. No user code runs under the lock of the bounded lane.
//! 5. A sender that waits for room has a key, and the lane has at most one waker under this key.
//!    When the process takes the messages, and when the lane is closed, the lane wakes all these
//!    senders in the order of their keys, and keeps no waker. The panic of one waker does not skip
//!    the others. If a sender waits no longer, the lane drops that sender's waker.
use crate::{
    SendError,
    guard::{self, Guarded, drop_guarded},
    pool::Kept,
};
use queue_global::mpsc::{Batch, Pushed, Queue};
use std::{
    collections::{BTreeMap, VecDeque},
    mem,
    task::{Poll, Waker},
};
use sync_shim::sync::Mutex;

/// How many messages a mailbox holds, and what happens to a message for which it has no room.
///
/// When a process has handled all messages that it has taken out of its mailbox, it takes all those
/// that have come since. They do not count against the bound any more. So a mailbox of `n` messages
/// and its process have at most `2 * n` messages that are not handled. An `async` process takes
/// none while it awaits anything but its [`Inbox`](crate::Inbox).
///
/// ```
/// use process_scheduler::Mailbox;
///
/// assert_eq!(Mailbox::default(), Mailbox::Unbounded);
/// let small = Mailbox::Bounded(16);
/// # let _ = small;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mailbox {
    /// It holds any number of messages.
    #[default]
    Unbounded,
    /// It holds at most this many messages, and at least one: `Bounded(0)` is `Bounded(1)`. A
    /// `try_send` of one more is refused, and a `send` waits.
    Bounded(usize),
    /// It holds at most this many messages. One more drops the oldest, which counts as a dead
    /// letter. With `DropOldest(0)` each message is a dead letter. The messages that the process
    /// has taken out are older than those in the mailbox, and are not dropped.
    DropOldest(usize),
}

pub(crate) enum Lane<M> {
    Unbounded(Queue<M, Kept>),
    Bounded(Box<BoundedLane<M>>),
}

/// Names a sender that waits for room.
pub(crate) type SenderKey = u64;

pub(crate) struct BoundedLane<M> {
    inner: Mutex<LockedLane<M>>,
    capacity: usize,
    drops_oldest: bool,
}

struct LockedLane<M> {
    queue: VecDeque<M>,
    waiters: BTreeMap<SenderKey, Waker>,
    next_key: SenderKey,
    closed: bool,
}

/// The messages that a process has taken.
pub(crate) enum Taken<M> {
    Batch(Batch<M, Kept>),
    Deque(VecDeque<M>),
}

/// The outcome of a push into a lane: whether the sender must notify the process (rule 2), and the
/// oldest message, if it was dropped to make room.
type LanePush<M> = Result<(Pushed, Option<M>), SendError<M>>;

impl<M> Lane<M> {
    pub(crate) fn new(mailbox: Mailbox) -> Self {
        let (capacity, drops_oldest) = match mailbox {
            Mailbox::Unbounded => return Self::Unbounded(Queue::with_nodes()),
            // Without any room a sender would wait forever.
            Mailbox::Bounded(capacity) => (capacity.max(1), false),
            Mailbox::DropOldest(capacity) => (capacity, true),
        };
        let inner = LockedLane {
            queue: VecDeque::new(),
            waiters: BTreeMap::new(),
            next_key: 0,
            closed: false,
        };
        Self::Bounded(Box::new(BoundedLane {
            inner: Mutex::new(inner),
            capacity,
            drops_oldest,
        }))
    }

    #[inline]
    pub(crate) fn push(&self, message: M) -> LanePush<M> {
        match self {
            Self::Unbounded(queue) => match queue.push(message) {
                Ok(pushed) => Ok((pushed, None)),
                Err(closed) => Err(SendError::Closed(closed.0)),
            },
            Self::Bounded(bounded) => bounded.push(message),
        }
    }

    /// Like `push`, but registers the waker if the lane is full, under the same lock (rule 5).
    pub(crate) fn poll_push(
        &self,
        message: &mut Option<M>,
        key: &mut Option<SenderKey>,
        waker: &Waker,
    ) -> Poll<LanePush<M>> {
        if let Self::Bounded(bounded) = self {
            return bounded.poll_push(message, key, waker);
        }
        match message.take() {
            Some(message) => Poll::Ready(self.push(message)),
            None => Poll::Pending,
        }
    }

    /// Removes the waker of a sender that waits no longer.
    pub(crate) fn forget(&self, key: SenderKey) {
        if let Self::Bounded(bounded) = self {
            let waker = bounded.inner.lock().waiters.remove(&key);
            // The caller drops its message next.
            waker.into_iter().for_each(drop_guarded);
        }
    }

    /// Takes all messages. `into` must be empty.
    #[inline]
    pub(crate) fn take(&self, into: &mut Taken<M>) {
        match self {
            Self::Unbounded(queue) => {
                if !queue.is_empty() {
                    *into = Taken::Batch(queue.take());
                }
            }
            Self::Bounded(bounded) => bounded.take(into),
        }
    }

    /// Returns the next of the messages in `taken`. If there is none, takes all messages first.
    #[inline]
    pub(crate) fn next(&self, taken: &mut Taken<M>) -> Option<M> {
        if let Self::Unbounded(queue) = self {
            if let Taken::Batch(batch) = taken {
                if batch.is_empty() {
                    *batch = queue.take();
                }
                return batch.next();
            }
        }
        if taken.is_empty() {
            self.take(taken);
        }
        taken.next()
    }

    /// Refuses messages from now on, and returns all that are left.
    pub(crate) fn close(&self) -> Taken<M> {
        match self {
            Self::Unbounded(queue) => Taken::Batch(queue.close()),
            Self::Bounded(bounded) => {
                let mut inner = bounded.inner.lock();
                inner.closed = true;
                let queue = mem::take(&mut inner.queue);
                let waiters = mem::take(&mut inner.waiters);
                drop(inner);
                waiters.into_values().for_each(guard::wake);
                Taken::Deque(queue)
            }
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Unbounded(queue) => queue.is_empty(),
            Self::Bounded(bounded) => bounded.is_empty(),
        }
    }

    /// Returns the number of messages, if it is known.
    pub(crate) fn len(&self) -> Option<usize> {
        match self {
            Self::Unbounded(queue) => queue.is_empty().then_some(0),
            Self::Bounded(bounded) => Some(bounded.inner.lock().queue.len()),
        }
    }
}

// Some functions are not inlined, so that the path of an unbounded lane saves no registers for
// them.
impl<M> BoundedLane<M> {
    #[inline(never)]
    fn take(&self, into: &mut Taken<M>) {
        let mut inner = self.inner.lock();
        if inner.queue.is_empty() {
            return;
        }
        let room = match mem::take(into) {
            Taken::Deque(deque) => deque,
            Taken::Batch(_) => VecDeque::new(),
        };
        let full = mem::replace(&mut inner.queue, room);
        let waiters = mem::take(&mut inner.waiters);
        drop(inner);
        *into = Taken::Deque(full);
        waiters.into_values().for_each(guard::wake);
    }

    #[inline(never)]
    fn is_empty(&self) -> bool {
        self.inner.lock().queue.is_empty()
    }

    fn has_room(&self, inner: &LockedLane<M>) -> bool {
        self.drops_oldest || inner.queue.len() < self.capacity
    }

    #[inline(never)]
    fn push(&self, message: M) -> LanePush<M> {
        self.push_locked(&mut self.inner.lock(), message)
    }

    fn push_locked(&self, inner: &mut LockedLane<M>, message: M) -> LanePush<M> {
        if inner.closed {
            return Err(SendError::Closed(message));
        }
        if !self.has_room(inner) {
            return Err(SendError::Full(message));
        }
        if self.capacity == 0 {
            // No message comes into the lane, so there is nothing to notify of.
            return Ok((Pushed::Behind, Some(message)));
        }
        let pushed = if inner.queue.is_empty() {
            Pushed::First
        } else {
            Pushed::Behind
        };
        let has_room = inner.queue.len() < self.capacity;
        let dropped = if has_room {
            None
        } else {
            inner.queue.pop_front()
        };
        inner.queue.push_back(message);
        Ok((pushed, dropped))
    }

    fn poll_push(
        &self,
        message: &mut Option<M>,
        key: &mut Option<SenderKey>,
        waker: &Waker,
    ) -> Poll<LanePush<M>> {
        // Rule 4: the waker is cloned outside of the lock, and only if no equal one is registered.
        // A clone that is not needed is dropped beside what this function returns.
        let mut clone: Option<Guarded<Waker>> = None;
        loop {
            let Some(taken) = message.take() else {
                return Poll::Pending;
            };
            let mut inner = self.inner.lock();
            match self.push_locked(&mut inner, taken) {
                Err(SendError::Full(refused)) => *message = Some(refused),
                result => {
                    // Rule 5: there is room, so no waker is registered.
                    *key = None;
                    return Poll::Ready(result);
                }
            }
            let own = *key.get_or_insert_with(|| {
                inner.next_key += 1;
                inner.next_key
            });
            let registered = inner.waiters.get(&own);
            if registered.is_some_and(|registered| registered.will_wake(waker)) {
                return Poll::Pending;
            }
            if let Some(clone) = clone.take() {
                let old = inner.waiters.insert(own, clone.into_inner());
                drop(inner);
                drop(old);
                return Poll::Pending;
            }
            drop(inner);
            clone = Some(Guarded::new(waker.clone()));
        }
    }
}

impl<M> Taken<M> {
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Batch(batch) => batch.is_empty(),
            Self::Deque(deque) => deque.is_empty(),
        }
    }
}

impl<M> Default for Taken<M> {
    fn default() -> Self {
        Self::Batch(Batch::default())
    }
}

impl<M> Iterator for Taken<M> {
    type Item = M;

    #[inline]
    fn next(&mut self) -> Option<M> {
        match self {
            Self::Batch(batch) => batch.next(),
            Self::Deque(deque) => deque.pop_front(),
        }
    }
}
