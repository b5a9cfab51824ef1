//! A request for a copy of a thread's stack: a word whose state says which thread may use the copy.
//!
//! One thread, the *caller*, asks other threads for copies of their stacks, one after the other. On
//! a thread that was asked, a signal *handler* makes the copy. A handler may come late, when the
//! caller has already asked the next thread. The word has the id of the thread that was asked last,
//! and the state:
//!
//! | state | set by | the copy belongs to |
//! |---|---|---|
//! | *none* | the caller, at the start or when it gives up | the caller |
//! | *asked* | the caller | nobody |
//! | *copying* | the handler on the thread that was asked | the handler |
//! | *copied* | the handler | the caller |
//!
//! 1. *One handler copies at a time.* A handler moves *asked* to *copying* by a compare-exchange,
//!    which succeeds only if the word has the id of the handler's thread. If the caller has given a
//!    request up, a handler that comes late for it finds no request, or a request for another
//!    thread. If the handler finds a newer request for its own thread, it serves that one.
//! 2. *The caller reads the copy of one handler.* The caller gives up by moving *asked* to *none*.
//!    If that fails, a handler has begun, and the caller waits until the handler ends. Only the
//!    system's scheduler can delay the handler.
use sync_shim::{
    atomic::{
        AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
    cell::UnsafeCell,
};

const NONE: u64 = 0;
const ASKED: u64 = 1;
const COPYING: u64 = 2;
const COPIED: u64 = 3;

/// Returns the word of a request to this thread, in this state.
fn word(state: u64, thread: u32) -> u64 {
    u64::from(thread) << 2 | state
}

pub(super) struct Request<C> {
    /// The state and the thread.
    word: AtomicU64,
    copy: UnsafeCell<C>,
}

// SAFETY: by the rules above, one thread at a time uses `copy`.
unsafe impl<C: Send> Sync for Request<C> {}

impl<C> Request<C> {
    sync_shim::const_fn! {
        pub(super) const fn new(copy: C) -> Self {
            Self { word: AtomicU64::new(NONE), copy: UnsafeCell::new(copy) }
        }
    }

    /// Asks a thread for a copy. Before, the caller has read the copy of the last request, or has
    /// given that request up.
    pub(super) fn ask(&self, thread: u32) {
        // Ordering: Release pairs with the exchange in `answer`: the last copy has been read.
        self.word.store(word(ASKED, thread), Release);
    }

    /// Returns whether the copy has been made. A hint: `read` decides.
    pub(super) fn is_copied(&self, thread: u32) -> bool {
        // Ordering: Relaxed, a hint.
        self.word.load(Relaxed) == word(COPIED, thread)
    }

    /// Gives the request up. Returns false if a handler has begun: then the caller must wait for
    /// the copy.
    #[must_use]
    pub(super) fn give_up(&self, thread: u32) -> bool {
        // Ordering: Relaxed. If this succeeds, no handler has written the copy; otherwise the
        // caller goes on to `read`, which acquires the copy.
        let given_up = (self.word).compare_exchange(word(ASKED, thread), NONE, Relaxed, Relaxed);
        given_up.is_ok()
    }

    /// Calls `f` with the copy, if it has been made.
    ///
    /// # Safety
    /// This thread has asked, and it asks again only after this call.
    pub(super) unsafe fn read<R>(&self, thread: u32, f: impl FnOnce(&C) -> R) -> Option<R> {
        // Ordering: Acquire pairs with the last store in `answer`.
        if self.word.load(Acquire) != word(COPIED, thread) {
            return None;
        }
        Some(self.copy.with(|copy| {
            // SAFETY: the copy is this thread's, as the state is *copied*.
            f(unsafe { &*copy })
        }))
    }

    /// Makes the copy by `f`, if the calling thread, `thread`, is asked. The call neither allocates
    /// nor locks.
    pub(super) fn answer(&self, thread: u32, f: impl FnOnce(&mut C)) {
        let (asked, copying) = (word(ASKED, thread), word(COPYING, thread));
        // Ordering: Acquire pairs with the store of `ask`. Relaxed on failure, as the handler reads
        // nothing then.
        if (self.word.compare_exchange(asked, copying, Acquire, Relaxed)).is_err() {
            return;
        }
        self.copy.with_mut(|copy| {
            // SAFETY: the copy is this thread's, as the state is *copying*.
            f(unsafe { &mut *copy });
        });
        // Ordering: Release pairs with the load of `read`: the copy is complete.
        self.word.store(word(COPIED, thread), Release);
    }
}

#[cfg(test)]
mod models {
    use super::Request;
    use sync_shim::{Model, sync::Arc, thread};

    /// Asks for a thread's copy, and gives up at once if no handler has begun.
    fn capture(request: &Request<u32>, thread: u32) -> Option<u32> {
        request.ask(thread);
        if request.give_up(thread) {
            return None;
        }
        loop {
            // SAFETY: this thread has asked, and asks again only after this call.
            if let Some(copy) = unsafe { request.read(thread, |copy| *copy) } {
                return Some(copy);
            }
            thread::yield_now();
        }
    }

    /// The caller asks two threads, one after the other, and their handlers may come late.
    ///
    /// The model has a bound, because it takes 895,594 executions without one.
    ///
    /// Fails if the exchange of `give_up` or `answer` always succeeds, or if an Acquire or a
    /// Release is Relaxed.
    #[test]
    fn copy_belongs_to_one_thread_at_a_time() {
        Model::new().bound(3).check(|| {
            let request = Arc::new(Request::new(0));
            let handlers = [1, 2].map(|thread| {
                let request = request.clone();
                thread::spawn(move || request.answer(thread, |copy| *copy = thread))
            });
            for thread in [2, 1] {
                let copy = capture(&request, thread);
                assert!(copy.is_none_or(|copy| copy == thread));
            }
            for handler in handlers {
                handler.join().unwrap();
            }
        });
    }
}
