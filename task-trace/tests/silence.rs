//! Traced futures in a process without a subscriber.
use std::{
    future::{Future, pending},
    panic::Location,
    pin::pin,
    sync::Arc,
    task::{Context, Wake, Waker},
};
use task_trace::{TaskKind, enabled, trace};

struct Idle;

impl Wake for Idle {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn traced_future_without_subscriber_sees_its_tasks_waker() {
    assert!(!enabled());
    let (span, future) = trace(
        TaskKind::Blocking,
        None,
        Location::caller(),
        pending::<()>(),
    );
    span.record_id(&1);
    let count = Arc::new(Idle);
    let waker = Waker::from(count.clone());
    let mut future = pin!(future);
    assert!(
        future
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    assert_eq!(Arc::strong_count(&count), 2, "no waker was cloned");
}
