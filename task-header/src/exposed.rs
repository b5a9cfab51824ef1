//! Makes pointers to tasks from addresses (rule 6 of [`list`](crate::list)).
//!
//! In unit tests, an assertion checks that the task at the address was exposed, because none of the
//! tools that test this crate checks that.
use crate::cell::TaskPtr;
use core::{
    num::NonZeroUsize,
    ptr::{self, NonNull},
};

/// Exposes a task's provenance to [`task_at`].
#[inline(always)]
pub(crate) fn expose(task: TaskPtr) {
    #[cfg(all(test, feature = "std"))]
    check::with(|exposed| exposed.insert(task.addr()));
    task.as_ptr().expose_provenance();
}

/// Returns the task at this address.
///
/// # Safety
/// A live task is at this address, and [`expose`] was called for that task.
#[inline(always)]
pub(crate) unsafe fn task_at(address: NonZeroUsize) -> TaskPtr {
    #[cfg(all(test, feature = "std"))]
    assert!(
        check::with(|exposed| exposed.contains(&address)),
        "a pointer is made to a task that was not exposed"
    );
    let task = ptr::with_exposed_provenance_mut(address.get());
    // SAFETY: the address is not zero.
    unsafe { NonNull::new_unchecked(task) }
}

#[cfg(all(test, feature = "std"))]
pub(crate) mod check {
    use std::{
        collections::BTreeSet,
        num::NonZeroUsize,
        sync::{Mutex, PoisonError},
    };

    /// The addresses of the live tasks that were exposed. The lock is std's, so the models do not
    /// see it.
    static EXPOSED: Mutex<BTreeSet<NonZeroUsize>> = Mutex::new(BTreeSet::new());

    /// Runs `f` on the set. A thread that frees a task first removes the task's address.
    pub(crate) fn with<R>(f: impl FnOnce(&mut BTreeSet<NonZeroUsize>) -> R) -> R {
        f(&mut EXPOSED.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
