//! Models of a task and many notifiers: more threads than the model checker allows.
use crate::{WakeRef, WakerCell, from_arc};
use std::{array, task::Waker};
use sync_shim::{
    atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst},
    model,
    sync::Arc,
    thread::{self, Thread},
};

const NOTIFIERS: usize = 4;
const CONDITIONS: usize = 2 * NOTIFIERS;

/// A target that unparks a thread.
struct Unpark {
    times: AtomicUsize,
    thread: Thread,
}

impl WakeRef for Unpark {
    fn wake(&self) {
        // Ordering: SeqCst. The count belongs to the test, and the cell need not order it.
        self.times.fetch_add(1, SeqCst);
        self.thread.unpark();
    }
}

struct Shared {
    cell: WakerCell,
    conditions: [AtomicBool; CONDITIONS],
}

impl Shared {
    fn meet(&self, condition: usize) {
        // Ordering: Relaxed, the cell must order the condition.
        self.conditions[condition].store(true, Relaxed);
    }

    fn are_met(&self) -> bool {
        // Ordering: Relaxed, as above.
        self.conditions.iter().all(|met| met.load(Relaxed))
    }
}

/// Four notifiers meet two conditions each. After each condition a notifier wakes the task: by the
/// cell, or by a waker that it takes from the cell. The task registers, checks the conditions, and
/// sleeps until it is woken. So a lost wake leaves the task asleep. In the end each of the task's
/// wakers is dropped.
///
/// Fails if a registration during which a notifier came drops the waker instead of waking it.
#[test]
fn task_with_four_notifiers_sees_every_condition() {
    model(|| {
        let shared = Arc::new(Shared {
            cell: WakerCell::new(),
            conditions: array::from_fn(|_| AtomicBool::new(false)),
        });
        let notifiers: [_; NOTIFIERS] = array::from_fn(|n| {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.meet(2 * n);
                shared.cell.wake();
                shared.meet(2 * n + 1);
                if let Some(waker) = shared.cell.take() {
                    waker.wake_by_ref();
                }
            })
        });
        let unparks = [(); 2].map(|()| {
            Arc::new(Unpark {
                times: AtomicUsize::new(0),
                thread: thread::current(),
            })
        });
        let wakers: [Waker; 2] = array::from_fn(|n| from_arc(unparks[n].clone()));
        // Ordering: SeqCst, as in `wake`.
        let times = || unparks.iter().map(|unpark| unpark.times.load(SeqCst)).sum();
        for turn in 0.. {
            let seen: usize = times();
            shared.cell.register(&wakers[turn % 2]);
            if shared.are_met() {
                break;
            }
            while times() == seen {
                thread::park();
            }
            // A registration that finds the cell held wakes its own task. The yield lets the holder
            // run before the task registers again.
            thread::yield_now();
        }
        for notifier in notifiers {
            notifier.join().unwrap();
        }
        drop((shared.cell.take(), wakers));
        assert!(unparks.iter().all(|unpark| Arc::strong_count(unpark) == 1));
    });
}
