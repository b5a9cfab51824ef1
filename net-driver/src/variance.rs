//! Asserts that these public types are invariant: each lends its value by `&mut`.
//! `tests/variance.rs` asserts the covariant ones.
sync_shim::invariant! {
    over_park: "net_driver::OverPark<'static, P>",
}

#[cfg(unix)]
sync_shim::invariant! {
    ready_mut_guard: "net_driver::net::AsyncFdReadyMutGuard<'static, P>",
}
