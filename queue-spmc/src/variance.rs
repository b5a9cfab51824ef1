//! The invariant public types: a stealer takes out items that a worker pushed. `tests/variance.rs`
//! has the covariant types.
sync_shim::invariant! {
    ring_worker: "queue_spmc::ring::Worker<P>",
    ring_stealer: "queue_spmc::ring::Stealer<P>",
    ring_pop_n: "queue_spmc::ring::PopN<'static, P>",
    borrowed_pop_n: "queue_spmc::ring::PopN<'static, P, queue_spmc::ring::Borrowed<'static, P>>",
    shared: "queue_spmc::ring::Shared<P>",
    inline: "queue_spmc::ring::Inline<P, 2>",
    borrowed: "queue_spmc::ring::Borrowed<'static, P>",
    borrowed_worker: "queue_spmc::ring::Worker<P, queue_spmc::ring::Borrowed<'static, P>>",
    borrowed_stealer: "queue_spmc::ring::Stealer<P, queue_spmc::ring::Borrowed<'static, P>>",
}

#[cfg(feature = "deque")]
sync_shim::invariant! {
    deque_worker: "queue_spmc::deque::Worker<P>",
    deque_stealer: "queue_spmc::deque::Stealer<P>",
    fifo_worker: "queue_spmc::fifo::Worker<P>",
    fifo_stealer: "queue_spmc::fifo::Stealer<P>",
}
