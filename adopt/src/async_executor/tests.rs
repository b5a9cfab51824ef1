//! What only the inside shows.
use super::*;
use std::{
    future::pending,
    task::{Context, Poll, Waker},
};

#[test]
fn runner_that_sleeps_frees_tasks_that_ended_elsewhere() {
    let executor = Executor::new(2);
    let (open, opens) = async_channel::bounded::<()>(1);
    let mut first = Box::pin(executor.run(pending::<()>()));
    let mut second = Box::pin(executor.run(poll_fn(|_| {
        open.close();
        Poll::<()>::Pending
    })));
    let mut cx = Context::from_waker(Waker::noop());
    let before = Arc::strong_count(&executor.state);
    drop(executor.spawn(async move { _ = opens.recv().await }));
    // The task joins the first runner's list, and ends on the second.
    assert!(first.as_mut().poll(&mut cx).is_pending());
    assert!(second.as_mut().poll(&mut cx).is_pending());
    // Each runner has a count of its own once it is polled.
    assert_eq!(Arc::strong_count(&executor.state), before + 3);
    assert!(first.as_mut().poll(&mut cx).is_pending());
    assert_eq!(Arc::strong_count(&executor.state), before + 2);
}
