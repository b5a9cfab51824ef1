//! The invariant public types. `tests/variance.rs` has the covariant ones.
crate::invariant! {
    unsafe_cell: "sync_shim::cell::UnsafeCell<P>",
    atomic_ptr: "sync_shim::atomic::AtomicPtr<P>",
}

#[cfg(feature = "std")]
crate::invariant! {
    mutex: "sync_shim::sync::Mutex<P>",
}

#[cfg(feature = "conformance")]
crate::invariant! {
    unseen: "sync_shim::conformance::Unseen<P>",
}
