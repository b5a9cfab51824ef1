//! The invariant public types. `tests/variance.rs` has the covariant ones.
sync_shim::invariant! {
    // `spawn` takes a scheduler in, and `receive` gives a task with one out.
    local_owned: "task_header::LocalOwned<P>",
    // It borrows a list mutably.
    after: "task_header::AfterPoll<'static, P>",
}
