//! The invariant public types. `tests/variance.rs` has the covariant ones.
sync_shim::invariant! {
    // `spawn` takes a scheduler in, and `receive` hands out a task that has one.
    local_owned: "task_header::LocalOwned<P>",
    // This type borrows a list mutably.
    after: "task_header::AfterPoll<'static, P>",
}
