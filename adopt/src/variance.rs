//! Asserts that these public types are invariant: they take values in and give them out through a
//! shared reference. `tests/variance.rs` asserts the covariant ones.
sync_shim::invariant! {
    receiver: "adopt::bare::Receiver<P, 2>",
    sender: "adopt::bare::Sender<P>",
    reader: "adopt::bare::Reader<P>",
}

/// A job of a scope borrows for `'scope`. If `'scope` could become shorter, a job could borrow a
/// value that ends while the scope still waits.
///
/// ```
/// use adopt::join_pool::Scope;
/// fn same<'a, 'b>(x: &'a Scope<'b>) -> &'a Scope<'b> { x }
/// ```
///
/// ```compile_fail
/// use adopt::join_pool::Scope;
/// fn shorter<'a, 'b: 'a>(x: &'a Scope<'b>) -> &'a Scope<'a> { x }
/// ```
mod scope {}
