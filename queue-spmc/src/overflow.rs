//! Where the items of a full ring go.

/// An unbounded queue that takes the items of a full ring.
///
/// The ring is in a consistent state during each call: a method may panic, and an item that it
/// drops is dropped once.
pub trait Overflow<T> {
    /// Takes one item.
    fn push(&self, item: T);

    /// Takes many items, oldest first. Items that are left in the iterator when it is dropped are
    /// dropped.
    fn push_batch(&self, batch: impl ExactSizeIterator<Item = T>);
}
