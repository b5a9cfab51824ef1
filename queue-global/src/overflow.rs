//! An injector as the overflow of a ring.
use crate::{Injector, Linked, Lock, ValueInjector};

/// The overflowing items were accepted before, so a closed injector takes them too. A batch is
/// linked first and then spliced in whole.
impl<T: Linked, L: Lock> queue_spmc::Overflow<T::Handle> for Injector<T, L> {
    fn push(&self, item: T::Handle) {
        self.requeue(item);
    }

    fn push_batch(&self, batch: impl ExactSizeIterator<Item = T::Handle>) {
        self.requeue_batch(batch.collect());
    }
}

/// The overflowing items were accepted before, so a closed injector takes them too. A batch is
/// copied through the thread's stack, 32 values at a time.
impl<T, L: Lock> queue_spmc::Overflow<T> for ValueInjector<T, L> {
    fn push(&self, item: T) {
        self.requeue(item);
    }

    fn push_batch(&self, batch: impl ExactSizeIterator<Item = T>) {
        self.requeue_batch(batch);
    }
}
