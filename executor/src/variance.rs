//! The invariant public types. `tests/variance.rs` has the covariant ones.
sync_shim::invariant! {
    // A scope puts the address of its value into the key's slot, and the key lends the value.
    local_key: "selvedge::task::LocalKey<P>",
    local_key_slot: "selvedge::task::Slot<P>",
    local_key_scope: "selvedge::task::futures::TaskLocalFuture<P, ()>",
    // These hold an output of a type that depends on the future's.
    join_branch: "selvedge::join::Branch<std::future::Ready<P>>",
}

#[cfg(feature = "groups")]
sync_shim::invariant! {
    // A group keeps the value, and finds it by the address of the static.
    group_local: "selvedge::GroupLocal<P>",
    // As `Branch` above.
    in_group: "selvedge::InGroup<std::future::Ready<P>>",
}
