//! The invariant public types. `tests/variance.rs` of `selvedge` has the covariant ones.
#[cfg(feature = "groups")]
sync_shim::invariant! {
    // A group keeps the value, and finds it by the address of the static.
    group_local: "selvedge_executor::GroupLocal<P>",
    // It holds an output of a type that depends on the future's.
    in_group: "selvedge_executor::InGroup<std::future::Ready<P>>",
}
