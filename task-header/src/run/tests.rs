//! Tests of the current task.
use crate::{
    Builder, Id, Notified, Ran, Schedule, WakeKind, current, spawn, without_current, yield_now,
};
use std::{
    future::{Future, pending, poll_fn},
    pin::Pin,
    sync::mpsc::{Sender, channel},
    task::{Context, Poll, Waker},
};

/// A scheduler of tasks that are never woken.
struct Nowhere;

impl Schedule for Nowhere {
    fn schedule(_: Notified<Self>, _: WakeKind) {
        unreachable!("a yield is not a wake");
    }
}

/// Asserts that `yield_now` finds the current task, and returns `Pending`.
fn yields(cx: &Context<'_>) -> Poll<()> {
    assert!(yield_now(cx.waker()));
    Poll::Pending
}

/// Logs the current task when it is dropped.
struct LogsDrop(Sender<Option<Id>>);

impl Drop for LogsDrop {
    fn drop(&mut self) {
        self.0.send(current()).unwrap();
    }
}

/// A future that is ready at once, and whose drop panics.
struct PanicsInDrop(Option<LogsDrop>);

impl Future for PanicsInDrop {
    type Output = LogsDrop;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<LogsDrop> {
        Poll::Ready(self.0.take().unwrap())
    }
}

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        panic!("on purpose");
    }
}

#[test]
fn current_in_a_nested_run_is_the_inner_task() {
    let (inner, mut inner_join) = Builder::new().spawn_with(async { current() }, drop);
    let inner_id = inner.id();
    let outer = async move {
        let before = current();
        let _ = inner.run();
        (before, current())
    };
    let (outer, mut outer_join) = Builder::new().spawn_with(outer, drop);
    let outer_id = outer.id();
    let _ = outer.run();
    assert_eq!(inner_join.try_join().unwrap().unwrap(), Some(inner_id));
    let (before, after) = outer_join.try_join().unwrap().unwrap();
    assert_eq!((before, after), (Some(outer_id), Some(outer_id)));
    assert_eq!(current(), None);
}

#[test]
fn current_after_a_panic_is_the_task_around() {
    let (task, mut join) = spawn(async { panic!("on purpose") }, drop);
    let _ = task.run();
    assert!(join.try_join().unwrap().unwrap_err().is_panic());
    assert_eq!(current(), None);
}

#[test]
fn current_in_the_drop_of_a_cancelled_future_is_its_task() {
    let (sender, receiver) = channel();
    let logs = LogsDrop(sender);
    let (task, _join) = Builder::new().spawn_with(
        async move {
            let _logs = logs;
            pending::<()>().await;
        },
        drop,
    );
    let id = task.id();
    drop(task);
    assert_eq!(receiver.recv().unwrap(), Some(id));
}

// Each of the cases below fails without its `within` in `run`.
#[test]
fn current_in_the_drop_of_an_output_is_its_task() {
    let (sender, receiver) = channel();
    let outer = move || {
        let logs = || LogsDrop(sender.clone());
        let in_task = |id| assert_eq!(receiver.recv().unwrap(), Some(id));

        // The run drops the output, as there is no handle.
        let output = logs();
        let task = Builder::new().spawn_detached(async { output }, Nowhere);
        let id = task.id();
        let _ = task.run();
        in_task(id);

        // The handle drops the output, or the payload of a panic.
        let [output, payload] = [logs(), logs()];
        let ends = spawn(async { output }, drop);
        let panics = spawn(async { std::panic::panic_any(payload) }, drop);
        for (task, join) in [ends, panics] {
            let id = task.id();
            let _ = task.run();
            drop(join);
            in_task(id);
        }

        // The drop of the ready future panics, so the run drops the output.
        let future = PanicsInDrop(Some(logs()));
        let (task, mut join) = spawn(future, drop);
        let id = task.id();
        let _ = task.run();
        in_task(id);
        assert!(join.try_join().unwrap().is_err());
    };
    let (task, mut join) = spawn(
        async move {
            let before = current();
            outer();
            before == current()
        },
        drop,
    );
    let _ = task.run();
    assert!(join.try_join().unwrap().unwrap());
}

#[test]
fn current_on_another_thread_is_none() {
    let elsewhere = async { std::thread::spawn(current).join().unwrap() };
    let (task, mut join) = spawn(elsewhere, drop);
    let _ = task.run();
    assert_eq!(join.try_join().unwrap().unwrap(), None);
}

// Fails if the run of an inner task loses the yield of the outer one.
#[test]
fn yield_before_a_nested_run_is_kept() {
    let (inner, _join) = spawn(pending::<()>(), drop);
    let mut inner = Some(inner);
    let outer = poll_fn(move |cx| {
        let pending = yields(cx);
        drop(inner.take().map(Notified::run));
        pending
    });
    let (outer, _join) = crate::new(outer, Nowhere);
    assert!(matches!(outer.run(), Ran::Notified(_)));
}

// Fails if a yield counts for a task that is not the innermost one.
#[test]
fn yield_by_the_waker_of_the_outer_task_is_refused() {
    let outer = poll_fn(|cx| {
        let waker = cx.waker().clone();
        let inner = async move { yield_now(&waker) };
        let (inner, mut join) = spawn(inner, drop);
        let _ = inner.run();
        assert!(!join.try_join().unwrap().unwrap());
        assert!(!yield_now(Waker::noop()));
        Poll::<()>::Pending
    });
    let (outer, _join) = spawn(outer, drop);
    assert!(matches!(outer.run(), Ran::Pending));
}

// Fails if the second yield of a poll is not recognised.
#[test]
fn two_yields_in_a_poll_are_one() {
    let twice = poll_fn(|cx| {
        let _ = yields(cx);
        assert!(current().is_some());
        yields(cx)
    });
    let (task, _join) = crate::new(twice, Nowhere);
    let Ran::Notified(task) = task.run() else {
        panic!("it has yielded");
    };
    assert!(matches!(task.run(), Ran::Notified(_)));
}

// Fails if a yield outside of the task's polls counts: the task would not be polled again.
#[test]
fn yield_after_the_poll_is_refused() {
    let (task, _join) = spawn(pending::<()>(), drop);
    let waker = task.waker();
    assert!(matches!(task.run(), Ran::Pending));
    assert!(!yield_now(&waker));
}

// Fails if a task that has yielded goes on although it was aborted in that poll.
#[test]
fn abort_ends_a_task_that_yields_in_the_same_poll() {
    let (sender, receiver) = channel::<crate::AbortHandle>();
    let future = poll_fn(move |cx| {
        receiver.recv().unwrap().abort();
        yields(cx)
    });
    let (task, join) = crate::new(future, Nowhere);
    sender.send(join.abort_handle()).unwrap();
    assert!(matches!(task.run(), Ran::Complete));
    assert!(join.is_finished());
}

// Fails if a loop inside a task leaves the outer task without its id or its yield.
#[test]
fn loop_in_a_task_gives_the_task_back() {
    let outer = poll_fn(|cx| {
        let (before, pending) = (current(), yields(cx));
        without_current(|| {
            assert_eq!(current(), None);
            let (inner, _join) = spawn(async { assert!(current().is_some()) }, drop);
            assert!(matches!(inner.run_in_loop(|| None), Ran::Complete));
            assert_eq!(current(), None);
        });
        assert_eq!(current(), before);
        pending
    });
    let (outer, _join) = crate::new(outer, Nowhere);
    assert!(matches!(outer.run(), Ran::Notified(_)));
}
