//! The invariant public types. `tests/variance.rs` has the covariant ones.
sync_shim::invariant! {
    // `spawn` takes a scheduler in, and `receive` gives a task with one out.
    local_owned: "task_header::LocalOwned<P>",
    // It borrows a list mutably.
    after: "task_header::After<'static, P>",
}

/// `'scope` is how long the frame waits: a shorter one would let tasks in that end before it does.
///
/// ```
/// use task_header::Scope;
/// fn same<'a, 'env>(x: &'a Scope<'a, 'env>) -> &'a Scope<'a, 'env> { x }
/// ```
///
/// ```compile_fail
/// use task_header::Scope;
/// fn shorter<'a, 'b: 'a, 'env>(x: &'a Scope<'b, 'env>) -> &'a Scope<'a, 'env> { x }
/// ```
mod scope {}
