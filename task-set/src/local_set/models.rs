//! Models of a set and a thread that wakes its tasks.
use crate::{LocalSet, gate::Gate, scope};
use std::{
    cell::{Cell, RefCell},
    future::{Future, pending, poll_fn},
    pin::pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};
use sync_shim::{
    Model,
    atomic::{AtomicUsize, Ordering::Relaxed},
    cell::UnsafeCell,
    model,
    sync::{Arc, Mutex},
    thread,
};
use task_header::JoinHandle;

/// Spawns a task that waits for `flag`. Returns the `Rc` that the future shares, and the waker of
/// its first poll. Only this thread may touch the `Rc` and the future's cell.
fn waits(set: &LocalSet, flag: &Arc<AtomicUsize>) -> (Rc<()>, Waker) {
    let (held, waker, _) = waits_joined(set, flag);
    (held, waker)
}

fn waits_joined(set: &LocalSet, flag: &Arc<AtomicUsize>) -> (Rc<()>, Waker, JoinHandle<()>) {
    let slot = Arc::new(Mutex::new(None));
    let held = Rc::new(());
    let (inner, flag, waker) = (held.clone(), flag.clone(), slot.clone());
    let body = UnsafeCell::new(0);
    let join = set.spawn(poll_fn(move |cx| {
        let _held = &inner;
        // SAFETY: only this poll has the future; the model checks that.
        body.with_mut(|body| unsafe { *body += 1 });
        if flag.load(Relaxed) == 1 {
            return Poll::Ready(());
        }
        *waker.lock() = Some(cx.waker().clone());
        Poll::Pending
    }));
    assert!(
        set.poll_tasks(&mut Context::from_waker(Waker::noop()))
            .is_pending()
    );
    let waker = slot.lock().take().unwrap();
    (held, waker, join)
}

/// Another thread wakes a task while the set polls and goes to sleep: the task is polled again, and
/// sees what the other thread wrote before its wake.
///
/// Fails if `next_ready_or_register` does not check again after it registers, or if
/// `Releases::try_push` pushes with Relaxed.
#[test]
fn a_wake_against_a_poll_is_not_lost() {
    Model::new().branches(3_000).check(|| {
        let set = LocalSet::new();
        let flag = Arc::new(AtomicUsize::new(0));
        let (held, waker) = waits(&set, &flag);
        let waking = thread::spawn(move || {
            flag.store(1, Relaxed);
            waker.wake();
        });
        let gate = Gate::new();
        let waker = waker_vtable::from_arc(gate.clone());
        while set
            .poll_tasks(&mut Context::from_waker(&waker))
            .is_pending()
        {
            gate.pass(&mut 0);
        }
        assert_eq!(Rc::strong_count(&held), 1);
        waking.join().unwrap();
    });
}

/// A scope waits for a task that another thread wakes: the scope blocks until then, and the task
/// has ended when the scope returns.
///
/// Fails if `LocalSet::wait` does not look at the queue and the stack after it registers, or if
/// `Releases::try_push` pushes with Relaxed.
#[test]
fn a_wake_against_a_scopes_end_is_waited_for() {
    Model::new().branches(3_000).check(|| {
        let (flag, slot) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(None)));
        let waking = RefCell::new(None);
        let (held, done) = (UnsafeCell::new(0), Cell::new(false));
        scope(|scope| {
            scope.spawn(poll_fn(|cx| {
                // SAFETY: only this poll has the future; the model checks that.
                held.with_mut(|held| unsafe { *held += 1 });
                if flag.load(Relaxed) == 1 {
                    done.set(true);
                    return Poll::Ready(());
                }
                *slot.lock() = Some(cx.waker().clone());
                Poll::Pending
            }));
            scope.spawn(async {
                let waker: Waker = slot.lock().take().unwrap();
                let flag = flag.clone();
                *waking.borrow_mut() = Some(thread::spawn(move || {
                    flag.store(1, Relaxed);
                    waker.wake();
                }));
            });
        });
        held.with_mut(|_| ());
        assert!(done.get());
        waking.take().unwrap().join().unwrap();
    });
}

/// This thread drops the set while another wakes one of its tasks. The future is dropped once, on
/// this thread. The stack is freed after the other thread has pushed the task on it.
///
/// Fails if the set's drop returns without waiting (the stack leaks).
#[test]
fn a_wake_against_the_sets_drop_drops_the_future_here() {
    model(|| {
        let set = LocalSet::new();
        let flag = Arc::new(AtomicUsize::new(0));
        let (held, waker) = waits(&set, &flag);
        let waking = thread::spawn(move || waker.wake());
        drop(set);
        assert_eq!(Rc::strong_count(&held), 1);
        waking.join().unwrap();
    });
}

/// This thread drops the set while another drops the waker and then the handle. This thread drops
/// the future, and one of the two frees the cell.
///
/// Fails if `State::complete` loads with Relaxed.
#[test]
fn the_last_waker_and_handle_against_the_sets_drop_free_once() {
    model(|| {
        let set = LocalSet::new();
        let (held, waker, join) = waits_joined(&set, &Arc::new(AtomicUsize::new(0)));
        let leaving = thread::spawn(move || {
            drop(waker);
            drop(join);
        });
        drop(set);
        assert_eq!(Rc::strong_count(&held), 1);
        leaving.join().unwrap();
    });
}

/// This thread drops the set while another aborts one of its tasks and awaits the handle. The set
/// waits for the task that the other thread sends to it, and the handle returns the cancellation.
///
/// Fails if the set's drop returns without waiting.
#[test]
fn an_abort_and_a_join_against_the_sets_drop_end_as_cancelled() {
    Model::new().bound(3).branches(3_000).check(|| {
        let set = LocalSet::new();
        let (held, waker, join) = waits_joined(&set, &Arc::new(AtomicUsize::new(0)));
        drop(waker);
        let joining = thread::spawn(move || {
            join.abort();
            let gate = Gate::new();
            let waker = waker_vtable::from_arc(gate.clone());
            let mut join = pin!(join);
            loop {
                match join.as_mut().poll(&mut Context::from_waker(&waker)) {
                    Poll::Ready(output) => break assert!(output.unwrap_err().is_cancelled()),
                    Poll::Pending => gate.pass(&mut 0),
                }
            }
        });
        drop(set);
        assert_eq!(Rc::strong_count(&held), 1);
        joining.join().unwrap();
    });
}

/// Two threads wake one task each while their set is dropped: the set waits for both.
///
/// Fails if `List::take` clears the stack's tag for good: then no later push wakes the set.
#[test]
fn two_wakes_against_the_sets_drop_are_waited_for() {
    Model::new().bound(2).branches(3_000).check(|| {
        let set = LocalSet::new();
        let flag = Arc::new(AtomicUsize::new(0));
        let (counts, others): (Vec<_>, Vec<_>) = [waits(&set, &flag), waits(&set, &flag)]
            .into_iter()
            .map(|(held, waker)| (held, thread::spawn(move || waker.wake())))
            .unzip();
        drop(set);
        assert!(counts.iter().all(|held| Rc::strong_count(held) == 1));
        for other in others {
            other.join().unwrap();
        }
    });
}

/// Two threads wake one task each. The first push on the stack wakes the set. If the second push
/// comes before the set has looked at the stack, the same wake serves both.
///
/// Fails if `List::take` clears the stack's tag for good: then no later push wakes the set.
#[test]
fn two_wakes_reach_a_sleeping_set() {
    Model::new().bound(2).branches(3_000).check(|| {
        let set = LocalSet::new();
        let flag = Arc::new(AtomicUsize::new(0));
        let others: Vec<_> = [waits(&set, &flag), waits(&set, &flag)]
            .into_iter()
            .map(|(_, waker)| {
                let flag = flag.clone();
                thread::spawn(move || {
                    flag.store(1, Relaxed);
                    waker.wake();
                })
            })
            .collect();
        let gate = Gate::new();
        let waker = waker_vtable::from_arc(gate.clone());
        while set
            .poll_tasks(&mut Context::from_waker(&waker))
            .is_pending()
        {
            gate.pass(&mut 0);
        }
        for other in others {
            other.join().unwrap();
        }
    });
}

/// The last of two pollers ends while another thread wakes a task: the other poller is woken, and
/// polls the task.
///
/// Fails if `Poller::drop` wakes none of `other_wakers`, or if `register` does not take the waker
/// that it displaces.
#[test]
fn a_wake_against_the_last_pollers_end_reaches_another() {
    Model::new().branches(3_000).check(|| {
        let set = LocalSet::new();
        let flag = Arc::new(AtomicUsize::new(0));
        let (_, waker) = waits(&set, &flag);
        let gate = Gate::new();
        let first_waker = waker_vtable::from_arc(gate.clone());
        let mut first = pin!(set.run_until(pending::<()>()));
        let mut last = Box::pin(set.run_until(pending::<()>()));
        let mut cx = Context::from_waker(&first_waker);
        assert!(first.as_mut().poll(&mut cx).is_pending());
        let mut cx_last = Context::from_waker(Waker::noop());
        assert!(last.as_mut().poll(&mut cx_last).is_pending());
        let waking = thread::spawn(move || {
            flag.store(1, Relaxed);
            waker.wake();
        });
        drop(last);
        loop {
            gate.pass(&mut 0);
            assert!(first.as_mut().poll(&mut cx).is_pending());
            if set.is_empty() {
                break;
            }
        }
        waking.join().unwrap();
    });
}
