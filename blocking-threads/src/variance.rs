//! The invariant public types: a shared one takes values in and gives them out.
//! `tests/variance.rs` has the covariant ones.
sync_shim::invariant! {
    lent: "blocking_threads::Lent<P>",
    pool: "blocking_threads::Pool<P>",
}
