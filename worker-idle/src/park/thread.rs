//! A parker for a thread: one token, and [`std::thread::park`] to wait for it.
//!
//! | state | token | owner |
//! |---|---|---|
//! | `EMPTY` | no | runs |
//! | `PARKED` | no | waits, or is about to |
//! | `NOTIFIED` | yes | runs or waits |
//!
//! The *owner* is the thread that parks. *Unparkers* unpark it.
//!
//! 1. `unpark` swaps in `NOTIFIED`. If the old state was `PARKED`, it also calls std's `unpark`.
//!    Otherwise the owner will find the token.
//! 2. `park` returns only with a token, which it takes. The token of `std::thread::park` is only a
//!    hint to check again, so other code of the thread may use that token too.
//! 3. The owner writes its thread handle before `PARKED`. An unparker reads the handle only after
//!    it found `PARKED`.
mod lazy;

use super::Park;
use core::{fmt, task::Waker, time::Duration};
use sync_shim::{
    atomic::{
        AtomicU32,
        Ordering::{Acquire, Relaxed, Release},
    },
    sync::{Arc, Mutex},
    thread::{self, Thread},
};

const EMPTY: u32 = 0;
const PARKED: u32 = 1;
const NOTIFIED: u32 = 2;

struct Inner {
    state: AtomicU32,
    thread: Mutex<Option<Thread>>,
}

/// A parker that blocks the thread that parks with it.
///
/// A `park` that finds a token is one read-modify-write. A wake by its waker is one, too; if the
/// thread is parked, a wake also costs a lock and std's unpark. A clone of the waker costs one
/// read-modify-write, and no allocation.
///
/// ```
/// use worker_idle::park::{Park, ThreadPark};
///
/// let mut park = ThreadPark::new();
/// park.waker().wake();
/// park.waker().wake();
/// park.park(); // Takes the one token that both wakes have left.
/// ```
pub struct ThreadPark(Arc<Inner>);

impl ThreadPark {
    /// Creates a parker without a token.
    #[expect(
        clippy::new_without_default,
        reason = "a parker belongs to a thread: say so"
    )]
    pub fn new() -> Self {
        Self(Arc::new(Inner {
            state: AtomicU32::new(EMPTY),
            thread: Mutex::new(None),
        }))
    }

    fn take_token(&self) -> bool {
        // Ordering: Acquire pairs with `unpark`. Without a token the caller learns nothing.
        self.0
            .state
            .compare_exchange(NOTIFIED, EMPTY, Acquire, Relaxed)
            .is_ok()
    }

    fn park_with(&mut self, wait: impl Fn(), once: bool) {
        if self.take_token() {
            return;
        }
        *self.0.thread.lock() = Some(thread::current());
        // Ordering: Relaxed. The lock publishes the handle to an unparker that finds PARKED. If
        // there is a token, the swap below acquires the writes before it.
        if self
            .0
            .state
            .compare_exchange(EMPTY, PARKED, Relaxed, Relaxed)
            .is_ok()
        {
            loop {
                wait();
                if self.take_token() {
                    return;
                }
                if once {
                    break;
                }
            }
        }
        // There is a token, or the time is up.
        // Ordering: Acquire pairs with `unpark`.
        self.0.state.swap(EMPTY, Acquire);
    }
}

impl Park for ThreadPark {
    fn park(&mut self) {
        self.park_with(thread::park, false);
    }

    fn park_timeout(&mut self, limit: Duration) {
        self.park_with(|| thread::park_timeout(limit), true);
    }

    fn waker(&self) -> Waker {
        lazy::counted(self.0.clone())
    }
}

impl Inner {
    fn unpark(&self) {
        // Ordering: Release. The `park` that takes the token sees all writes before this unpark,
        // and those before an earlier unpark (by the release sequence). The handle is read under
        // the lock, which the owner released before the owner stored PARKED.
        if self.state.swap(NOTIFIED, Release) == PARKED {
            let thread = self.thread.lock().clone();
            if let Some(thread) = thread {
                thread.unpark();
            }
        }
    }
}

impl fmt::Debug for ThreadPark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ThreadPark")
    }
}

#[cfg(all(test, not(selvedge_loom)))]
mod many_threads {
    mod models;
}
#[cfg(test)]
mod models;
