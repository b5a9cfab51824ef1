//! The invariant public types of the channels with one receiver. A sender that were covariant could
//! send a value that outlives the receiver's type by name only.
sync_shim::invariant! {
    oneshot_sender: "task_sync::oneshot::Sender<P>",
    oneshot_receiver: "task_sync::oneshot::Receiver<P>",
}
