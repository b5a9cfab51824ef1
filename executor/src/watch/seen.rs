//! The state of a worker's queue that a watcher keeps between two looks.
use worker_queue::SlotContent;

/// A worker's queue at one look: its slot's content, whether its ring has tasks, and its count of
/// polls.
#[derive(Clone, Copy, Default)]
pub(crate) struct Seen {
    pub(super) slot: Option<SlotContent>,
    pub(super) has_ring: bool,
    pub(super) polls: u64,
}
