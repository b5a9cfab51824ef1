//! The results of a take: one item of the worker's own queue, or a batch from another queue.

/// The item that a worker runs next; see [`WorkerQueue::next`](crate::WorkerQueue::next).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next<H> {
    /// The item.
    pub item: H,
    /// Whether the item was in the slot.
    pub from_slot: bool,
}

/// The items that a worker has taken from another queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the first item would be dropped"]
pub struct Batch<H> {
    /// The oldest item, to be run.
    pub first: H,
    /// The number of other items, which are in the worker's own ring by now.
    pub moved: usize,
}
