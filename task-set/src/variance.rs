//! The invariant public types. `tests/variance.rs` has the covariant ones.

/// `'scope` is the time for which the frame waits: a shorter one would admit tasks that end before
/// it does.
///
/// ```
/// use task_set::Scope;
/// fn same<'a, 'env>(x: &'a Scope<'a, 'env>) -> &'a Scope<'a, 'env> { x }
/// ```
///
/// ```compile_fail
/// use task_set::Scope;
/// fn shorter<'a, 'b: 'a, 'env>(x: &'a Scope<'b, 'env>) -> &'a Scope<'a, 'env> { x }
/// ```
mod scope {}
