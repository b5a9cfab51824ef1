//! The invariant public types. `tests/variance.rs` has the covariant ones.
sync_shim::invariant! {
    // Each of these takes handles in through a shared reference, and returns them.
    injector: "queue_global::Injector<queue_global::Boxed<P>>",
    values: "queue_global::ValueInjector<P>",
    events: "queue_global::mpsc::Queue<P>",
    // These hold handles, a type of the node's trait, or a link to a node.
    list: "queue_global::List<queue_global::Boxed<P>>",
    iter: "queue_global::Iter<'static, queue_global::Boxed<P>>",
    into_iter: "queue_global::IntoIter<queue_global::Boxed<P>>",
    boxed: "queue_global::Boxed<P>",
    // A source of nodes with a parameter: the same source must free the nodes that it allocated.
    events_nodes: "queue_global::mpsc::Queue<u8, Of<P>>;
struct Of<P>(P);
// SAFETY: it is never used: a call of `allocate` panics.
unsafe impl<P> queue_global::mpsc::Nodes for Of<P> {
    fn allocate(_: std::alloc::Layout) -> std::ptr::NonNull<u8> { panic!() }
    unsafe fn free(_: std::ptr::NonNull<u8>, _: std::alloc::Layout) {}
}
type Unused = ()",
    batch_nodes: "queue_global::mpsc::Batch<u8, Of<P>>;
struct Of<P>(P);
// SAFETY: it is never used: a call of `allocate` panics.
unsafe impl<P> queue_global::mpsc::Nodes for Of<P> {
    fn allocate(_: std::alloc::Layout) -> std::ptr::NonNull<u8> { panic!() }
    unsafe fn free(_: std::ptr::NonNull<u8>, _: std::alloc::Layout) {}
}
type Unused = ()",
}
