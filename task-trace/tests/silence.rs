//! A process without a subscriber.
use std::{
    future::{Future, pending},
    panic::Location,
    pin::pin,
    sync::Arc,
    task::{Context, Wake, Waker},
};
use task_trace::{Kind, enabled, trace};

struct Idle;

impl Wake for Idle {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn traced_future_without_subscriber_sees_its_tasks_waker() {
    assert!(!enabled());
    let (unnamed, future) = trace(Kind::Blocking, None, Location::caller(), pending::<()>());
    unnamed.name(&1);
    let count = Arc::new(Idle);
    let waker = Waker::from(count.clone());
    let mut future = pin!(future);
    assert!(
        future
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    assert_eq!(Arc::strong_count(&count), 2, "none was cloned");
}
