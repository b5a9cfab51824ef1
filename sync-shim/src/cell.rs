//! A cell whose accesses the model sees.
pub use crate::backend::imp::cell::UnsafeCell;

use crate::atomic::Retire;

impl<T: ?Sized> Retire for UnsafeCell<T> {
    #[inline(always)]
    fn retire(&mut self) {
        self.with_mut(|_| ());
    }
}
