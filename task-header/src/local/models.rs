//! Models of a list that is dropped while other threads hold wakers or join handles of its tasks,
//! or send its tasks back. The list itself can't leave its thread.
use crate::{JoinHandle, LocalNotified, LocalOwned, LocalRan, ScheduleLocal, WakeKind};
use std::{
    future::poll_fn,
    rc::Rc,
    task::{Poll, Waker},
};
use sync_shim::{
    cell::UnsafeCell,
    model,
    sync::{Arc, Mutex},
    thread,
};

/// A scheduler that sends each task back to its list at once.
struct Back;

impl ScheduleLocal for Back {
    fn schedule(task: LocalNotified<Self>, _: WakeKind) {
        task.send();
    }
}

fn list() -> LocalOwned<Back> {
    LocalOwned::new(Waker::noop().clone())
}

/// Spawns a task that waits forever. Returns the `Rc` that its future holds, a waker of the task
/// and its join handle. Only this thread may touch the `UnsafeCell` in the future.
fn waits(list: &LocalOwned<Back>) -> (Rc<()>, Waker, JoinHandle<()>) {
    struct Body(UnsafeCell<u8>, Rc<()>);
    impl Drop for Body {
        fn drop(&mut self) {
            self.0.with_mut(|_| ());
        }
    }

    let (held, slot) = (Rc::new(()), Arc::new(Mutex::new(None)));
    let (body, waker) = (Body(UnsafeCell::new(0), held.clone()), slot.clone());
    let future = poll_fn(move |cx| {
        // SAFETY: only this poll has the future; the model checks that.
        body.0.with_mut(|body| unsafe { *body += 1 });
        let _held = &body.1;
        *waker.lock() = Some(cx.waker().clone());
        Poll::Pending
    });
    let (task, join) = list.spawn(future, Back);
    assert!(matches!(list.run(task), LocalRan::Pending));
    let waker = slot.lock().take().unwrap();
    (held, waker, join)
}

/// This thread drops the list while another thread drops the last waker and the join handle. This
/// thread drops the future, and one of the two threads frees the task.
///
/// Fails if `State::complete` loads with Relaxed.
#[test]
fn the_last_waker_and_handle_against_the_lists_drop_free_once() {
    model(|| {
        let list = list();
        let (held, waker, join) = waits(&list);
        let leaving = thread::spawn(move || {
            drop(waker);
            drop(join);
        });
        drop(list);
        assert_eq!(Rc::strong_count(&held), 1);
        leaving.join().unwrap();
    });
}

/// Another thread aborts a task, which sends the task back to the list. The list's drop cancels the
/// task on this thread, and this thread sees the earlier writes of the other thread.
///
/// Fails if `Releases::try_push` pushes with Relaxed.
#[test]
fn a_task_that_is_dropped_elsewhere_ends_with_the_list() {
    model(|| {
        let list = list();
        let (held, _, join) = waits(&list);
        let aborting = thread::spawn(move || {
            join.abort();
            drop(join);
        });
        // A list that is dropped before the task has come back would leak the task.
        while !list.has_received() {
            thread::yield_now();
        }
        drop(list);
        assert_eq!(Rc::strong_count(&held), 1);
        aborting.join().unwrap();
    });
}

/// Another thread wakes a task, and then schedules it again by `second`. The task may or may not
/// run in between.
fn woken_and_again(second: fn(Waker, JoinHandle<()>)) {
    model(move || {
        let list = list();
        let (_held, waker, join) = waits(&list);
        let waking = thread::spawn(move || {
            waker.wake_by_ref();
            second(waker, join);
        });
        if let Some(task) = list.receive() {
            let _ = list.run(task);
        }
        waking.join().unwrap();
        drop(list);
    });
}

/// A second wake acquires the queue link that the run in between used, no matter how that run got
/// its `Notified`.
///
/// Fails if `wake_by_ref` has Release alone.
#[test]
fn second_remote_wake_acquires_the_link_after_a_run_between() {
    woken_and_again(|waker, _join| waker.wake_by_ref());
}

/// An abort acquires the queue link in the same way.
///
/// Fails if `abort` has Release alone.
#[test]
fn remote_abort_acquires_the_link_after_the_run_before() {
    woken_and_again(|_waker, join| join.abort());
}
