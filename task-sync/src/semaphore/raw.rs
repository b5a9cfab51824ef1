//! The semaphore under [`Semaphore`](crate::Semaphore) and [`OnceCell`](crate::OnceCell): a count
//! of permits, and the queue of those that wait for some.
//!
//! # The story
//!
//! An *acquirer* takes permits out of a word by one exchange; a *releaser* adds permits by one
//! addition. Neither takes a lock, as long as nobody waits. An acquirer that finds too few permits
//! takes the lock of the queue, takes the permits that there are, sets `WAITERS`, and queues for
//! the rest. From then on acquirers queue behind it, and releasers take the lock and grant their
//! permits to the first waiter, then to the next. The releaser that leaves the queue empty clears
//! `WAITERS` and adds the rest of its permits to the word.
//!
//! # Fields
//!
//! | field | changed by |
//! |---|---|
//! | `word`, the permits | anyone |
//! | `word`, `WAITERS` | the holder of the queue's lock |
//! | `word`, `CLOSED` | the holder of the queue's lock, once |
//! | `waiters` | the holder of its lock; a value is what the waiter still lacks |
//!
//! # Rules
//!
//! 1. `WAITERS` is set whenever a waiter is queued and the lock is free. A closed semaphore has no
//!    queue.
//! 2. While `WAITERS` is set, nobody takes permits out of the word but the holder of the lock, who
//!    grants them to the first waiters. (Requests for no permits, and `forget`, are exceptions that
//!    matter to no waiter.)
//! 3. A releaser that adds to the word and finds that `WAITERS` was set then takes the lock and
//!    grants what is in the word. A releaser that sees `WAITERS` beforehand keeps its permits in
//!    hand until it has the lock.
//! 4. A request is first come, first served: only the first waiter is granted permits, and it keeps
//!    them while it lacks others. When it is dropped, its drop releases them.
//!
//! # Why no permit and no wake is lost
//!
//! All changes of the word are in one order. An addition that comes before an acquirer's exchange
//! to `WAITERS` makes that exchange fail or is seen by it, so the acquirer takes these permits.
//! An addition that comes after it has seen `WAITERS`, and its releaser takes the lock (rule 3). At
//! that time the waiter is queued, as the acquirer holds the lock from before the exchange until
//! after the push. If the queue is empty by then, another holder of the lock has cleared `WAITERS`,
//! and the permits of the word are free for anyone.
//!
//! Permits are in the word, in a permit that the user holds, in the hand of one releaser, or in
//! the value of one waiter. Each step moves them from one of these places to another.
//!
//! # Too many permits
//!
//! The user may add permits while others are in use, and then give these back. The word has room
//! for [`MAX_PERMITS`] and as many again. A releaser of few permits that finds the word not nearly
//! full adds without an exchange. So many threads would have to do so at one moment, to exceed
//! that room, that they can't exist. Any other releaser adds by an exchange within the limit. A
//! releaser whose permits do not fit panics, and these permits are gone.
use crate::{
    coop::WaitsOn,
    wait::Request,
    waiters::{Batch, Locked, Waiter, Waiters, drop_waker, wake, wake_batch},
    waiting::Waiting,
};
use core::{
    pin::Pin,
    task::{Poll, Waker, ready},
};
use sync_shim::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// No more permits are given out.
const CLOSED: usize = 1;
/// A waiter is queued.
const WAITERS: usize = 2;
/// The permits are above the two flags.
const SHIFT: u32 = 2;
const PERMIT: usize = 1 << SHIFT;

pub(crate) const MAX_PERMITS: usize = usize::MAX >> 3;
/// The message of a panic where there would be more.
pub(crate) const TOO_MANY: &str = "a semaphore has at most Semaphore::MAX_PERMITS permits";
/// A releaser of so many permits adds them to the word without an exchange, if the word is below
/// `NEARLY_FULL`.
const FEW: usize = if usize::BITS >= 64 {
    u32::MAX as usize
} else {
    255
};
const NEARLY_FULL: usize = (MAX_PERMITS - FEW) << SHIFT;

/// Returns the word with more permits, unless there would be more than [`MAX_PERMITS`]. No permits
/// always fit, also if releasers at one moment have exceeded that number.
fn plus(word: usize, permits: usize) -> Option<usize> {
    let sum = (word >> SHIFT).checked_add(permits)?;
    (permits == 0 || sum <= MAX_PERMITS).then(|| word + (permits << SHIFT))
}

/// The reason that permits were not acquired at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Closed,
    NoPermits,
}

/// No permits are given out any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Closed;

pub(crate) struct RawSemaphore {
    word: AtomicUsize,
    waiters: Waiters<u32>,
}

impl RawSemaphore {
    sync_shim::const_fn! {
        /// Creates a semaphore with permits, of which there are at most [`MAX_PERMITS`].
        pub(crate) const fn new(permits: usize) -> Self {
            Self {
                word: AtomicUsize::new(permits << SHIFT),
                waiters: Waiters::new(()),
            }
        }
    }

    sync_shim::const_fn! {
        /// Creates a semaphore that is closed and has no permits.
        pub(crate) const fn new_closed() -> Self {
            Self {
                word: AtomicUsize::new(CLOSED),
                waiters: Waiters::new(()),
            }
        }
    }

    /// Returns the permits in the word.
    pub(crate) fn available(&self) -> usize {
        // Ordering: Acquire, so that a caller who finds its permits released sees what the
        // releasers did before.
        self.word.load(Acquire) >> SHIFT
    }

    pub(crate) fn is_closed(&self) -> bool {
        // Ordering: Acquire pairs with the Release of `close`.
        self.word.load(Acquire) & CLOSED != 0
    }

    /// Takes permits if there are enough and nobody waits. One read-modify-write.
    #[inline]
    pub(crate) fn try_acquire(&self, permits: usize) -> Result<(), Refused> {
        // Ordering: Relaxed, a guess that the exchange checks.
        let mut word = self.word.load(Relaxed);
        loop {
            if word & CLOSED != 0 {
                return Err(self.refused_by_close());
            }
            // A request for nothing disturbs no waiter.
            if permits > 0 && (word & WAITERS != 0 || word >> SHIFT < permits) {
                return Err(Refused::NoPermits);
            }
            let taken = word - (permits << SHIFT);
            // Ordering: Acquire pairs with the Release of the releasers of these permits
            // (`release`, `settle`). Relaxed on failure: the value is the next guess.
            match self
                .word
                .compare_exchange_weak(word, taken, Acquire, Relaxed)
            {
                Ok(_) => return Ok(()),
                Err(now) => word = now,
            }
        }
    }

    /// Orders the caller, which has seen `CLOSED`, after the close.
    #[cold]
    fn refused_by_close(&self) -> Refused {
        // Ordering: Acquire pairs with the Release of `close`. `CLOSED` stays set, so this load
        // reads the close or a later change, which continues its Release as a read-modify-write.
        self.word.load(Acquire);
        Refused::Closed
    }

    /// Polls for permits. The waiter is new, or the same as in the last poll.
    ///
    /// # Safety
    /// The caller owns the waiter, which is used for this number of permits of this semaphore
    /// alone. Before the waiter ends, the caller calls [`cancel`](Self::cancel).
    #[inline]
    pub(crate) unsafe fn poll_acquire(
        &self,
        waiter: Pin<&Waiter<u32>>,
        permits: u32,
        waker: &Waker,
    ) -> Poll<Result<(), Closed>> {
        if waiter.is_idle() {
            return match self.try_acquire(permits as usize) {
                Ok(()) => Poll::Ready(Ok(())),
                Err(Refused::Closed) => Poll::Ready(Err(Closed)),
                // SAFETY: the caller's. The waiter is idle.
                Err(Refused::NoPermits) => unsafe { self.acquire_or_push(waiter, permits, waker) },
            };
        }
        // SAFETY: the caller's. The waiter is not idle, so it was pushed.
        let lacking = ready!(unsafe { self.waiters.poll(waiter, waker) });
        waiter.reset();
        if lacking == 0 {
            return Poll::Ready(Ok(()));
        }
        self.release((permits - lacking) as usize);
        Poll::Ready(Err(Closed))
    }

    /// Takes the lock and tries once more, or takes the permits that there are and queues.
    ///
    /// # Safety
    /// As of `poll_acquire`, and the waiter is idle.
    #[cold]
    unsafe fn acquire_or_push(
        &self,
        waiter: Pin<&Waiter<u32>>,
        permits: u32,
        waker: &Waker,
    ) -> Poll<Result<(), Closed>> {
        let waker = waker.clone();
        let mut locked = self.waiters.lock();
        // Ordering: Relaxed, a guess that the exchange checks. The flags are exact, as only the
        // lock's holder changes them; the lock orders this after a close.
        let mut word = self.word.load(Relaxed);
        let lacking = loop {
            if word & CLOSED != 0 {
                drop(locked);
                return Poll::Ready(Err(Closed));
            }
            // Permits in the word are then on their way to the first waiter (rule 3).
            if word & WAITERS != 0 {
                break permits;
            }
            let there = word >> SHIFT;
            let (now, lacking) = match there < permits as usize {
                true => (WAITERS, permits - there as u32),
                false => (word - ((permits as usize) << SHIFT), 0),
            };
            // Ordering: as in `try_acquire`.
            match self.word.compare_exchange(word, now, Acquire, Relaxed) {
                Ok(_) => break lacking,
                Err(now) => word = now,
            }
        };
        if lacking == 0 {
            drop(locked);
            // Its panic must not lose the permits.
            drop_waker(Some(waker));
            return Poll::Ready(Ok(()));
        }
        // SAFETY: the caller's. `cancel` removes the waiter.
        unsafe { locked.push_back(waiter, waker, lacking) };
        Poll::Pending
    }

    /// Ends a wait: gives back what the waiter was granted. For the drop of its owner.
    ///
    /// # Safety
    /// As of `poll_acquire`.
    #[cold]
    unsafe fn cancel(&self, waiter: Pin<&Waiter<u32>>, permits: u32) {
        let mut locked = self.waiters.lock();
        // SAFETY: the caller's.
        let lacking = unsafe { locked.value(waiter) };
        // SAFETY: the caller's.
        let waker = unsafe { locked.remove(waiter) };
        waiter.reset();
        let fits = self.grant(locked, (permits - lacking) as usize);
        drop_waker(waker);
        assert!(fits, "{TOO_MANY}");
    }

    /// Gives permits back. One read-modify-write, and no lock, while nobody waits.
    ///
    /// # Panics
    /// If there would be more than [`MAX_PERMITS`] in the word. None is added to it then.
    #[inline]
    #[track_caller]
    pub(crate) fn release(&self, permits: usize) {
        // Ordering: Relaxed, a hint that saves the addition. The lock orders what follows.
        let word = self.word.load(Relaxed);
        if word & WAITERS != 0 || word >= NEARLY_FULL || permits > FEW {
            return self.release_slowly(permits);
        }
        // Ordering: Release pairs with the Acquire of the next acquirer of these permits
        // (`try_acquire`, `acquire_or_push`, `grant_word`).
        let before = self.word.fetch_add(permits << SHIFT, Release);
        if before & WAITERS != 0 {
            self.grant_word();
        }
    }

    #[cold]
    #[track_caller]
    fn release_slowly(&self, permits: usize) {
        assert!(self.add(permits), "{TOO_MANY}");
    }

    /// Adds permits. Returns false if there would be more than [`MAX_PERMITS`] in the word: then it
    /// grants what the waiters need, and adds none to the word.
    pub(crate) fn add(&self, permits: usize) -> bool {
        // Ordering: Relaxed, a guess that the exchange checks.
        let mut word = self.word.load(Relaxed);
        while word & WAITERS == 0 {
            let Some(added) = plus(word, permits) else {
                return false;
            };
            // Ordering: as in `release`.
            match self.word.compare_exchange(word, added, Release, Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        self.grant(self.waiters.lock(), permits)
    }

    /// Grants the permits that were added to the word while a waiter was queued.
    #[cold]
    #[track_caller]
    fn grant_word(&self) {
        let locked = self.waiters.lock();
        // Ordering: Relaxed. Only the lock's holder changes this flag.
        if self.word.load(Relaxed) & WAITERS == 0 {
            return;
        }
        // Ordering: Acquire pairs with the Releases of the permits that this takes; the waiter gets
        // them through the lock and its mark.
        let word = self.word.fetch_and(WAITERS | CLOSED, Acquire);
        assert!(self.grant(locked, word >> SHIFT), "{TOO_MANY}");
    }

    /// Grants permits to the first waiters, or adds them to the word if no waiter is left. Unlocks
    /// and wakes. Returns false if they do not fit into the word.
    fn grant<'a>(&'a self, mut locked: Locked<'a, u32>, mut permits: usize) -> bool {
        // A hand-over of all permits to one waiter needs no batch.
        if locked
            .front()
            .is_some_and(|lacking| lacking as usize == permits)
        {
            let waker = locked.pop_front(|lacking| *lacking = 0);
            let fits = !locked.is_empty() || self.settle(0);
            drop(locked);
            if let Some(waker) = waker {
                wake(waker);
            }
            return fits;
        }
        let mut batch = Batch::new();
        let fits = loop {
            let Some(lacking) = locked.front() else {
                break self.settle(permits);
            };
            if permits < lacking as usize {
                locked.set_front(lacking - permits as u32);
                break true;
            }
            if batch.is_full() {
                drop(locked);
                wake_batch(&mut batch);
                locked = self.waiters.lock();
                continue;
            }
            permits -= lacking as usize;
            // A queued waiter has a waker, and the batch is not full.
            locked
                .pop_front(|lacking| *lacking = 0)
                .map(|waker| batch.push(waker));
        };
        drop(locked);
        wake_batch(&mut batch);
        fits
    }

    /// Adds permits to the word and clears `WAITERS`. Returns false, and adds none, if they do not
    /// fit. The caller holds the lock, and the queue is empty.
    fn settle(&self, permits: usize) -> bool {
        // Ordering: Relaxed, a guess that the exchange checks.
        let mut word = self.word.load(Relaxed);
        loop {
            let sum = plus(word, permits);
            let settled = sum.unwrap_or(word) & !WAITERS;
            if settled == word {
                return sum.is_some();
            }
            // Ordering: Release, as in `release`. It passes on what came through the lock.
            match self.word.compare_exchange(word, settled, Release, Relaxed) {
                Ok(_) => return sum.is_some(),
                Err(now) => word = now,
            }
        }
    }

    /// Takes up to `permits` permits out of the word for ever. Returns how many there were.
    pub(crate) fn forget(&self, permits: usize) -> usize {
        // Ordering: Relaxed, a guess that the exchange checks.
        let mut word = self.word.load(Relaxed);
        loop {
            let taken = permits.min(word >> SHIFT);
            if taken == 0 {
                return 0;
            }
            let left = word - taken * PERMIT;
            // Ordering: Acquire, as in `try_acquire`: the caller may own what the permits stood
            // for.
            match self.word.compare_exchange(word, left, Acquire, Relaxed) {
                Ok(_) => return taken,
                Err(now) => word = now,
            }
        }
    }

    /// Refuses all requests from now on, those that wait too. What they were granted returns to the
    /// word.
    pub(crate) fn close(&self) {
        let locked = self.waiters.lock();
        // Ordering: Relaxed. Only the lock's holder changes the flags.
        let flags = self.word.load(Relaxed) & (CLOSED | WAITERS);
        // The queue is split off below, under this lock (rule 1). The permits stay as they are, as
        // either flag changes from what it was read as.
        // Ordering: Release pairs with the Acquire of `is_closed` and of `refused_by_close`.
        self.word.fetch_xor(flags ^ CLOSED, Release);
        locked.wake_all(|_| ());
    }

    /// Calls `f` for each request that waits, in their order.
    pub(crate) fn for_each_waiter(&self, mut f: impl FnMut(&Waiting<'_>)) {
        let mut locked = self.waiters.lock();
        locked.for_each(|waker, lacking| f(&Waiting::new(waker, lacking as usize)));
    }
}

/// A handle by which a request reaches its semaphore.
pub(crate) trait AsSemaphore {
    /// The event that a request waits for, for a dump of tasks.
    const WAITED: &'static str = "permits of a semaphore";

    fn semaphore(&self) -> &RawSemaphore;
}

/// A request for permits.
pub(crate) struct Permits<H> {
    pub(crate) of: H,
    pub(crate) permits: u32,
}

impl<H: AsSemaphore> Request for Permits<H> {
    type Value = u32;
    const NEW: u32 = 0;
    type Output = Result<(), Closed>;

    #[inline]
    unsafe fn poll(
        &mut self,
        waiter: Pin<&Waiter<u32>>,
        waker: &Waker,
    ) -> Poll<Result<(), Closed>> {
        // SAFETY: the caller's.
        unsafe {
            self.of
                .semaphore()
                .poll_acquire(waiter, self.permits, waker)
        }
    }

    unsafe fn cancel(&mut self, waiter: Pin<&Waiter<u32>>) {
        // SAFETY: the caller's.
        unsafe { self.of.semaphore().cancel(waiter, self.permits) };
    }

    fn waits_on(&self) -> WaitsOn {
        WaitsOn::event(H::WAITED, self.of.semaphore())
    }
}

#[cfg(all(test, feature = "std"))]
mod models;
