//! Asserts that this public type is invariant. `tests/variance.rs` asserts the covariant ones.
sync_shim::invariant! {
    // A shared cell takes boxes in and gives them out.
    handoff: "sched_monitor::Handoff<P>",
}
