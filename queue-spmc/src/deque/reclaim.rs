//! When a replaced buffer is freed.
//!
//! The model takes the second way: it doesn't see into crossbeam's epochs, and with them visible it would not finish. What it then can't see is a
//! buffer freed too early; that is the epochs' promise, which asks of us what rule 6 says.
use super::Buffer;
use alloc::boxed::Box;

pub(super) trait Reclaim<T> {
    /// Keeps what it may reach from being freed.
    type Pin;

    fn new() -> Self;

    fn pin(&self) -> Self::Pin;

    /// # Safety
    /// `buffer` came from a box, is retired once, and can't be found any more by whoever pins from now on.
    unsafe fn retire(&self, pin: &Self::Pin, buffer: *mut Buffer<T>);
}

cfg_if::cfg_if! {
    if #[cfg(any(selvedge_loom, selvedge_shuttle))] {
        pub(super) use AtTheEnd as Default;
    } else {
        pub(super) use Epochs as Default;
    }
}

/// crossbeam's epochs.
#[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
pub(super) struct Epochs<T>(core::marker::PhantomData<T>);

#[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
impl<T> Reclaim<T> for Epochs<T> {
    type Pin = crossbeam_epoch::Guard;

    fn new() -> Self {
        Self(core::marker::PhantomData)
    }

    fn pin(&self) -> Self::Pin {
        crossbeam_epoch::pin()
    }

    unsafe fn retire(&self, pin: &Self::Pin, buffer: *mut Buffer<T>) {
        let free = move || {
            // SAFETY: the caller's; no pin from before is left. Slots drop no items, so it doesn't matter when it runs, nor on which thread.
            let mut buffer = unsafe { Box::from_raw(buffer) };
            buffer.retire();
        };
        // SAFETY: as above.
        unsafe { pin.defer_unchecked(free) };
    }
}

/// With the deque.
#[cfg(any(selvedge_loom, selvedge_shuttle))]
pub(super) struct AtTheEnd<T>(std::sync::Mutex<Vec<*mut Buffer<T>>>);

/// What is freed at the end needs no pin.
#[cfg(any(selvedge_loom, selvedge_shuttle))]
pub(super) struct Unneeded;

#[cfg(any(selvedge_loom, selvedge_shuttle))]
impl<T> Reclaim<T> for AtTheEnd<T> {
    type Pin = Unneeded;

    fn new() -> Self {
        Self(std::sync::Mutex::default())
    }

    fn pin(&self) -> Unneeded {
        Unneeded
    }

    unsafe fn retire(&self, _: &Unneeded, buffer: *mut Buffer<T>) {
        self.0.lock().unwrap().push(buffer);
    }
}

#[cfg(any(selvedge_loom, selvedge_shuttle))]
impl<T> Drop for AtTheEnd<T> {
    fn drop(&mut self) {
        for buffer in self.0.get_mut().unwrap().drain(..) {
            // SAFETY: `retire`'s premise, and the last handle is gone.
            let mut buffer = unsafe { Box::from_raw(buffer) };
            buffer.retire();
        }
    }
}
