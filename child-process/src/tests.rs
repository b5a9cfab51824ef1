//! Tests the waits for systems that have no descriptors of processes.
use super::exit::{Ended, Exit};
use net_driver::Driver;
use std::{
    future::poll_fn,
    process::Stdio,
    sync::Arc,
    task::{Context, Wake, Waker},
};

/// Fails if the thread that waits reaps the child, or does not wake the task.
#[test]
fn exit_by_thread_leaves_the_status() {
    Driver::new(1).park(0).block_on(async {
        let mut std = std::process::Command::new("cat");
        let mut std = std.stdin(Stdio::piped()).spawn().unwrap();
        let mut exit = Exit::by_thread(std.id());
        let first = poll_fn(|cx| std::task::Poll::Ready(exit.poll_event(cx))).await;
        assert!(first.is_pending(), "it waits for its standard input");
        drop(std.stdin.take());
        poll_fn(|cx| exit.poll_event(cx)).await.unwrap();
        assert!(std.try_wait().unwrap().unwrap().success());
    });
}

/// Fails if a wait on this system does not use the descriptor of the process.
#[test]
#[cfg(all(target_os = "linux", not(selvedge_polling)))]
fn exit_of_a_child_is_waited_for_by_the_driver() {
    Driver::new(1).park(0).block_on(async {
        let mut child = super::Command::new("true").spawn().unwrap();
        let id = child.id().unwrap();
        assert!(matches!(Exit::of(id), Ok(Exit::Pidfd { .. })));
        child.wait().await.unwrap();
    });
}

/// A waker whose drop polls.
struct PollsInDrop(Arc<Ended>);

impl Wake for PollsInDrop {
    fn wake(self: Arc<Self>) {}
}

impl Drop for PollsInDrop {
    fn drop(&mut self) {
        let polled = self.0.poll(&Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
    }
}

/// Fails if a waker is dropped under the lock: the drop would wait for the lock forever.
#[test]
fn drop_of_a_replaced_waker_may_poll() {
    let ended = Arc::new(Ended::default());
    let waker = Waker::from(Arc::new(PollsInDrop(ended.clone())));
    assert!(ended.poll(&Context::from_waker(&waker)).is_pending());
    drop(waker);
    assert!(ended.poll(&Context::from_waker(Waker::noop())).is_pending());
    ended.set(Ok(()));
    assert!(ended.poll(&Context::from_waker(Waker::noop())).is_ready());
}
