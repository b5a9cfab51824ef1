//! An injector behind a ring.
use crate::{Injector, Linked, Lock};

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
