//! The invariant public types of this crate. `tests/variance.rs` has the covariant ones.
sync_shim::invariant! {
    // A scope puts the address of its value into the key's slot, and the key lends the value.
    local_key: "selvedge::task::LocalKey<P>",
    local_key_slot: "selvedge::task::Slot<P>",
    local_key_scope: "selvedge::task::futures::TaskLocalFuture<P, ()>",
    // These hold an output of a type that depends on the future's.
    join_branch: "selvedge::join::Branch<std::future::Ready<P>>",
}
