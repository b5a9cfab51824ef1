//! The two words of a waker, as atomics: a slot whose waker can be taken by one exchange elsewhere.
//!
//! A slot belongs to an *owner*, the task that waits, and to a *state word* outside of this file. A
//! bit of the state word says that the slot holds a waker.
//!
//! 1. Only the owner stores to the slot, and only while the bit is clear. Then it sets the bit.
//! 2. Another thread that wants the waker reads the state word, then the slot, and then clears the
//!    bit by an exchange that fails if the state word has changed. The success makes the words that
//!    it read a waker, which is this thread's. Before the success they are numbers.
//! 3. The owner takes its waker back in the same way. When it clears the bit it also changes a
//!    version in the state word. So an exchange cannot succeed with the words of an earlier or of a
//!    later registration.
//!
//! Let a thread read a word that the owner stored later than the state that the thread read. The
//! store is Release, and follows the owner's change of the state. The read is Acquire. So that
//! change comes before the thread's exchange, which then fails.
use core::{
    mem::ManuallyDrop,
    ptr,
    task::{RawWakerVTable, Waker},
};
use sync_shim::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
    Retire,
};

/// A slot for the words of one waker.
pub(crate) struct WakerWords {
    data: AtomicPtr<()>,
    vtable: AtomicPtr<RawWakerVTable>,
}

/// The words that a slot held at some time.
#[derive(Clone, Copy)]
pub(crate) struct Words {
    data: *mut (),
    vtable: *mut RawWakerVTable,
}

impl WakerWords {
    sync_shim::const_fn! {
        pub(crate) const fn new() -> Self {
            Self {
                data: AtomicPtr::new(ptr::null_mut()),
                vtable: AtomicPtr::new(ptr::null_mut()),
            }
        }
    }

    /// Stores the words of a waker, which belongs to the slot from now on. For the owner (rule 1).
    pub(crate) fn store(&self, waker: Waker) {
        let waker = ManuallyDrop::new(waker);
        // Ordering: Release pairs with the Acquire of `load`: see the front page.
        self.data.store(waker.data().cast_mut(), Release);
        let vtable = ptr::from_ref(waker.vtable()).cast_mut();
        // Ordering: as above.
        self.vtable.store(vtable, Release);
    }

    /// Reads the words. They may be of no waker, or of two.
    pub(crate) fn load(&self) -> Words {
        Words {
            // Ordering: Acquire pairs with the Release of `store`: see the front page.
            data: self.data.load(Acquire),
            // Ordering: as above.
            vtable: self.vtable.load(Acquire),
        }
    }

    /// Returns whether the slot has the words of `waker`. For the owner.
    pub(crate) fn will_wake(&self, waker: &Waker) -> bool {
        // Ordering: Relaxed, the owner reads its own stores.
        let data = self.data.load(Relaxed);
        // Ordering: as above.
        let vtable = self.vtable.load(Relaxed);
        ptr::eq(data, waker.data()) && ptr::eq(vtable, waker.vtable())
    }
}

impl Words {
    /// Makes the waker of the words.
    ///
    /// # Safety
    /// The caller has taken the waker by rule 2 or 3, and makes it once.
    pub(crate) unsafe fn into_waker(self) -> Waker {
        // SAFETY: the words are those of one waker, so this is the table of that waker.
        let vtable = unsafe { &*self.vtable };
        // SAFETY: the words are of a waker that was stored and never dropped.
        unsafe { Waker::new(self.data, vtable) }
    }
}

impl Retire for WakerWords {
    fn retire(&mut self) {
        self.data.retire();
        self.vtable.retire();
    }
}
