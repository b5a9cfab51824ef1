//! An injector behind a ring.
use crate::{Injector, Linked, Lock, ValueInjector};

/// What overflows was accepted before, so that a closed injector takes it too. A batch is linked
/// first and then spliced in one piece.
impl<T: Linked, L: Lock> queue_spmc::Overflow<T::Handle> for Injector<T, L> {
    fn push(&self, item: T::Handle) {
        self.requeue(item);
    }

    fn push_batch(&self, batch: impl ExactSizeIterator<Item = T::Handle>) {
        self.requeue_batch(batch.collect());
    }
}

/// What overflows was accepted before, so that a closed injector takes it too. A batch passes through
/// the stack, 32 values at a time.
impl<T, L: Lock> queue_spmc::Overflow<T> for ValueInjector<T, L> {
    fn push(&self, item: T) {
        self.requeue(item);
    }

    fn push_batch(&self, batch: impl ExactSizeIterator<Item = T>) {
        self.requeue_batch(batch);
    }
}
