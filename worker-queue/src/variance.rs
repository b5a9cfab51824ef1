//! The invariant public types: a stealer returns what a worker pushed. `tests/variance.rs` has the
//! covariant ones.
sync_shim::invariant! {
    // Each of these takes handles in through a shared reference, and returns them.
    slot: "worker_queue::Slot<queue_global::Boxed<P>>",
    worker_queue: "worker_queue::WorkerQueue<queue_global::Boxed<P>>",
    stealer: "worker_queue::Stealer<queue_global::Boxed<P>>",
}
