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

// These hold types that an object names through its trait. `Of` is an object with a parameter.
#[cfg(feature = "history")]
crate::invariant! {
    event: "sync_shim::history::Event<Of<P>>;
#[derive(Clone, PartialEq, Eq, Hash)]
struct Of<P>(P);
impl<P: Clone + Eq + std::hash::Hash> sync_shim::history::Sequential for Of<P> {
    type Call = ();
    type Answer = ();
    fn allows(&mut self, (): &(), (): &()) -> bool { true }
}
type Unused = ()",
    log: "sync_shim::history::Log<Of<P>>;
#[derive(Clone, PartialEq, Eq, Hash)]
struct Of<P>(P);
impl<P: Clone + Eq + std::hash::Hash> sync_shim::history::Sequential for Of<P> {
    type Call = ();
    type Answer = ();
    fn allows(&mut self, (): &(), (): &()) -> bool { true }
}
type Unused = ()",
    not_linearizable: "sync_shim::history::NotLinearizable<Of<P>>;
#[derive(Clone, PartialEq, Eq, Hash)]
struct Of<P>(P);
impl<P: Clone + Eq + std::hash::Hash> sync_shim::history::Sequential for Of<P> {
    type Call = ();
    type Answer = ();
    fn allows(&mut self, (): &(), (): &()) -> bool { true }
}
type Unused = ()",
}
