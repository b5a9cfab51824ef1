//! Asserts that these public types are invariant: a longer lifetime does not become a shorter one.
//! `tests/variance.rs` asserts the covariant types.
sync_shim::invariant! {
    // `spawn` takes a scheduler in through a shared reference, and `receive` hands out a task that
    // has one.
    local_owned: "task_header::LocalOwned<P>",
    // This type borrows a list mutably.
    after_poll: "task_header::AfterPoll<'static, P>",
}
