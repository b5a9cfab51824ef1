//! The invariant public types: a stealer takes out what a worker pushed.
//! `tests/variance.rs` has the covariant ones.
sync_shim::invariant! {
    // A shared one takes handles in and gives them out.
    slot: "worker_queue::Slot<queue_global::Boxed<P>>",
    worker_queue: "worker_queue::WorkerQueue<queue_global::Boxed<P>>",
    stealer: "worker_queue::Stealer<queue_global::Boxed<P>>",
}
