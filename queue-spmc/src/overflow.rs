//! Where a full ring's tasks go.

/// A queue without bound behind a bounded one.
///
/// Its methods are called with nothing of the ring half done: they may panic, and what they drop
/// is dropped once.
pub trait Overflow<T> {
    /// Takes one item.
    fn push(&self, item: T);

    /// Takes many, oldest first. What the iterator still holds when it is dropped is dropped.
    fn push_batch(&self, batch: impl ExactSizeIterator<Item = T>);
}
