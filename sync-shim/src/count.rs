//! Counts read-modify-writes and `SeqCst` fences, under `--cfg selvedge_count`.
//!
//! Under that cfg, `counted(|| ..)` returns a closure's result and its `Counts`, and `total()`
//! returns the counts of all threads so far. [`shared`], which exists under every backend, marks an
//! atomic on a cache line that all workers share. The read-modify-writes on such atomics are also
//! counted separately.
#[cfg(selvedge_count)]
pub use crate::backend::imp::{Counts, counted, total};

/// Marks an atomic on a cache line that all workers share. Does nothing except under
/// `selvedge_count`.
#[cfg(not(selvedge_count))]
pub const fn shared<A: OnSharedLine>(atomic: A) -> A {
    atomic
}

/// Marks an atomic on a cache line that all workers share.
#[cfg(selvedge_count)]
pub fn shared<A: OnSharedLine>(atomic: A) -> A {
    atomic.on_shared_line()
}

/// An atomic that [`shared`] can mark.
pub trait OnSharedLine: Sized {
    /// Marks the atomic.
    #[cfg(selvedge_count)]
    fn on_shared_line(self) -> Self;
}

#[cfg(not(selvedge_count))]
mod unmarked {
    use super::OnSharedLine;
    use crate::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};

    impl OnSharedLine for AtomicBool {}
    impl OnSharedLine for AtomicU32 {}
    impl OnSharedLine for AtomicU64 {}
    impl OnSharedLine for AtomicUsize {}
    impl<T> OnSharedLine for AtomicPtr<T> {}
}

#[cfg(all(test, selvedge_count))]
mod tests {
    use super::*;
    use crate::atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst, fence};

    #[test]
    fn counted_covers_read_modify_writes_and_fences_only() {
        let (own, all) = (AtomicUsize::new(0), shared(AtomicUsize::new(0)));
        // Ordering: any would do, as `counted` counts only this thread's operations.
        let ((), counts) = counted(|| {
            own.store(1, Relaxed);
            own.load(Relaxed);
            own.fetch_add(1, Relaxed);
            let _ = own.compare_exchange(9, 1, Relaxed, Relaxed);
            all.swap(1, Relaxed);
            fence(SeqCst);
        });
        assert_eq!(
            counts,
            Counts {
                rmws: 3,
                shared_rmws: 1,
                seqcst_fences: 1
            }
        );
    }

    #[test]
    fn total_covers_all_threads() {
        let before = total();
        // Ordering: Relaxed, the operation is only counted.
        std::thread::spawn(|| AtomicUsize::new(0).fetch_add(1, Relaxed))
            .join()
            .unwrap();
        // Other tests add to the total at the same time.
        assert!(total().rmws > before.rmws);
    }
}
