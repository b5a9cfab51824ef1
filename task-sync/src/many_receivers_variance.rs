//! The invariant types of the channels to many receivers, and of `SetOnce`.
//! `tests/many_receivers_variance.rs` has their auto traits.
sync_shim::invariant! {
    broadcast_sender: "task_sync::broadcast::Sender<P>",
    broadcast_weak_sender: "task_sync::broadcast::WeakSender<P>",
    broadcast_receiver: "task_sync::broadcast::Receiver<P>",
    watch_sender: "task_sync::watch::Sender<P>",
    watch_receiver: "task_sync::watch::Receiver<P>",
    watch_ref: "task_sync::watch::Ref<'static, P>",
    set_once: "task_sync::SetOnce<P>",
}
