//! The invariant public types: a stealer takes out what a worker pushed.
//! `tests/variance.rs` has the covariant ones.
sync_shim::invariant! {
    worker_queue: "worker_queue::WorkerQueue<queue_global::Boxed<P>>",
    stealer: "worker_queue::Stealer<queue_global::Boxed<P>>",
}
