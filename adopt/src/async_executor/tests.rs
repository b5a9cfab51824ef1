//! Tests that look at private state.
use super::*;
use std::{
    future::pending,
    task::{Context, Poll, Waker},
};

#[test]
fn sleeping_runner_once_polled_frees_tasks_ended_elsewhere() {
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
    // The task enters the first runner's list, and ends on the second runner.
    assert!(first.as_mut().poll(&mut cx).is_pending());
    assert!(second.as_mut().poll(&mut cx).is_pending());
    // Each runner that was polled has a reference to the state, and so does the task.
    assert_eq!(Arc::strong_count(&executor.state), before + 3);
    assert!(first.as_mut().poll(&mut cx).is_pending());
    assert_eq!(Arc::strong_count(&executor.state), before + 2);
}
