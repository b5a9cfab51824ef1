use super::*;
use std::{
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    task::Wake,
};

/// Counts its wakes.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        // Ordering: any would do, since there is one thread.
        self.0.fetch_add(1, SeqCst);
    }
}

impl Wakes {
    fn new() -> (Arc<Self>, Waker) {
        let wakes = Arc::<Self>::default();
        (wakes.clone(), wakes.into())
    }

    fn count(&self) -> usize {
        // Ordering: any would do, since there is one thread.
        self.0.load(SeqCst)
    }
}

#[test]
fn close_and_abort_wake_each_connection_once() {
    let connections = Arc::new(Connections::default());
    let mut guard = connections.open();
    let (wakes, waker) = Wakes::new();
    let cx = &mut Context::from_waker(&waker);

    assert_eq!(guard.poll_stage(cx), Stage::Open);
    connections.close();
    assert_eq!(wakes.count(), 1);
    assert_eq!(guard.poll_stage(cx), Stage::Closing);
    connections.close();
    assert_eq!(wakes.count(), 1);
    connections.abort();
    assert_eq!(wakes.count(), 2);
    assert_eq!(guard.poll_stage(cx), Stage::Aborted);
}

#[test]
fn connection_polled_by_another_task_wakes_that_task() {
    let connections = Arc::new(Connections::default());
    let mut guard = connections.open();
    let (first, waker) = Wakes::new();
    assert_eq!(
        guard.poll_stage(&mut Context::from_waker(&waker)),
        Stage::Open
    );
    let (second, waker) = Wakes::new();
    assert_eq!(
        guard.poll_stage(&mut Context::from_waker(&waker)),
        Stage::Open
    );
    connections.close();
    assert_eq!((first.count(), second.count()), (0, 1));
}

#[test]
fn connection_opened_while_closing_sees_the_stage() {
    let connections = Arc::new(Connections::default());
    connections.close();
    let mut guard = connections.open();
    let (_, waker) = Wakes::new();
    assert_eq!(
        guard.poll_stage(&mut Context::from_waker(&waker)),
        Stage::Closing
    );
}

#[test]
fn server_is_woken_when_the_count_is_low_enough() {
    let connections = Arc::new(Connections::default());
    let mut open: Vec<_> = (0..3).map(|_| connections.open()).collect();
    let (wakes, waker) = Wakes::new();
    let cx = &mut Context::from_waker(&waker);

    assert!(connections.poll_at_most(3, cx).is_ready());
    assert!(connections.poll_at_most(1, cx).is_pending());
    open.pop();
    assert_eq!(wakes.count(), 0);
    open.pop();
    assert_eq!(wakes.count(), 1);
    assert!(connections.poll_at_most(1, cx).is_ready());
}

#[test]
fn dropped_connection_leaves_no_waker() {
    let connections = Arc::new(Connections::default());
    let (wakes, waker) = Wakes::new();
    let mut guard = connections.open();
    let _ = guard.poll_stage(&mut Context::from_waker(&waker));
    drop(guard);
    drop(waker);
    assert_eq!(Arc::strong_count(&wakes), 1);
    assert_eq!(connections.count(), 0);
}
