//! The invariant public types. `tests/variance.rs` has the covariant ones.

/// `'scope` lasts as long as the frame waits. A shorter lifetime would admit tasks that borrow
/// values which end during the wait.
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
///
/// `'env` is invariant, too, as that of [`std::thread::Scope`] is:
///
/// ```compile_fail
/// use task_set::Scope;
/// fn shorter<'a, 'b, 'c: 'b>(x: &'a Scope<'a, 'c>) -> &'a Scope<'a, 'b> where 'b: 'a { x }
/// ```
mod scope {}
