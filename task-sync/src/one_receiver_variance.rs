//! The invariant public types of the channels with one receiver. A sender that were covariant could
//! send a value that outlives the receiver's type by name only.
sync_shim::invariant! {
    mpsc_owned_permit: "task_sync::mpsc::OwnedPermit<P>",
    mpsc_permit: "task_sync::mpsc::Permit<'static, P>",
    mpsc_permit_iterator: "task_sync::mpsc::PermitIterator<'static, P>",
    mpsc_receiver: "task_sync::mpsc::Receiver<P>",
    mpsc_sender: "task_sync::mpsc::Sender<P>",
    mpsc_unbounded_receiver: "task_sync::mpsc::UnboundedReceiver<P>",
    mpsc_unbounded_sender: "task_sync::mpsc::UnboundedSender<P>",
    mpsc_weak_sender: "task_sync::mpsc::WeakSender<P>",
    mpsc_weak_unbounded_sender: "task_sync::mpsc::WeakUnboundedSender<P>",
    oneshot_sender: "task_sync::oneshot::Sender<P>",
    oneshot_receiver: "task_sync::oneshot::Receiver<P>",
}
