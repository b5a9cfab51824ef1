//! Asserts that these public types are invariant: they take values in and give them out through a
//! shared reference. `tests/variance.rs` asserts the covariant ones.
sync_shim::invariant! {
    lent: "blocking_threads::Lent<P>",
    pool: "blocking_threads::Pool<P>",
    running: "blocking_threads::Running<P>",
    static_pool: "blocking_threads::StaticPool<P>",
}
