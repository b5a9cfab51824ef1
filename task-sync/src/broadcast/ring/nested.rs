//! Finds a clone that receives the value of which it is the clone: it would wait for itself.
//!
//! Each thread has a list of the values that it clones at this moment: a clone may receive other
//! values. Without `std` there is no such list, and under a model all threads would share one.

/// Whether there is a list.
pub(super) const CAN_TELL: bool = cfg!(all(
    feature = "std",
    not(any(selvedge_loom, selvedge_shuttle))
));

#[cfg(all(feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod listed {
    use core::{cell::Cell, ptr};

    /// A value that the thread clones, and the one whose clone receives it.
    struct Cloning {
        slot: *const (),
        position: u64,
        outer: *const Cloning,
    }

    sync_shim::simulated_thread_local! {
        static INNERMOST: Cell<*const Cloning> = const { Cell::new(ptr::null()) };
    }

    /// Makes the thread's list what it was before.
    struct Restore(*const Cloning);

    impl Drop for Restore {
        fn drop(&mut self) {
            INNERMOST.set(self.0);
        }
    }

    /// Runs the clone of a value.
    #[inline]
    pub(in super::super) fn within<R>(
        slot: *const (),
        position: u64,
        clone: impl FnOnce() -> R,
    ) -> R {
        let outer = INNERMOST.get();
        let cloning = Cloning {
            slot,
            position,
            outer,
        };
        let _restore = Restore(outer);
        INNERMOST.set(&raw const cloning);
        clone()
    }

    /// Returns whether this thread clones the value of `position` in `slot`.
    #[cold]
    pub(in super::super) fn is_cloning(slot: *const (), position: u64) -> bool {
        let mut next = INNERMOST.get();
        // SAFETY: an entry is on the stack of this thread, below this call, until it is taken out
        // of the list.
        while let Some(cloning) = unsafe { next.as_ref() } {
            if (cloning.slot, cloning.position) == (slot, position) {
                return true;
            }
            next = cloning.outer;
        }
        false
    }
}
#[cfg(all(feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
pub(super) use listed::{is_cloning, within};

#[cfg(any(not(feature = "std"), selvedge_loom, selvedge_shuttle))]
mod unlisted {
    #[inline(always)]
    pub(in super::super) fn within<R>(_: *const (), _: u64, clone: impl FnOnce() -> R) -> R {
        clone()
    }

    #[inline(always)]
    pub(in super::super) fn is_cloning(_: *const (), _: u64) -> bool {
        false
    }
}
#[cfg(any(not(feature = "std"), selvedge_loom, selvedge_shuttle))]
pub(super) use unlisted::{is_cloning, within};
