//! The invariant public types. `tests/variance.rs` has the covariant ones.
sync_shim::invariant! {
    // The two halves share a stream, and each of them changes it.
    reader: "task_io::ReadHalf<P>",
    writer: "task_io::WriteHalf<P>",
}
