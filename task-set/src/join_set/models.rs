//! Models of a set and the threads in which its members complete.
use crate::{JoinSet, gate::Gate};
use std::task::{Context, Poll};
use sync_shim::{Model, model, thread};
use task_header::{JoinHandle, Ran, Runnable};

fn task(output: usize) -> (Runnable, JoinHandle<usize>) {
    task_header::spawn(async move { output }, drop)
}

fn join_all(set: &mut JoinSet<usize>) -> usize {
    let gate = Gate::new();
    let waker = waker_vtable::from_arc(gate.clone());
    let mut cx = Context::from_waker(&waker);
    let (mut sum, mut early_wakes) = (0, 0);
    loop {
        match set.poll_join_next(&mut cx) {
            Poll::Ready(Some(output)) => sum += output.unwrap(),
            Poll::Ready(None) => return sum,
            Poll::Pending => gate.pass(&mut early_wakes),
        }
    }
}

/// A member completes while the set inserts it and waits for it: the set hands its output out.
///
/// Fails if `poll_done` registers its waker after its second look for an output (no wake comes), or
/// if `insert` ignores the result of `set_waker`.
#[test]
fn a_completion_against_insert_and_join_is_handed_out() {
    Model::new().bound(3).branches(3_000).check(|| {
        let (task, join) = task(1);
        let running = thread::spawn(move || assert!(matches!(task.run(), Ran::Complete)));
        let mut set = JoinSet::new();
        set.insert(join);
        assert_eq!(join_all(&mut set), 1);
        running.join().unwrap();
    });
}

/// Two members complete on two threads: one completion wakes the set, and the set hands out both.
///
/// Fails if a task wakes the set only when `ready` was not empty.
#[test]
fn two_completions_are_handed_out() {
    Model::new().bound(2).branches(3_000).check(|| {
        let mut set = JoinSet::new();
        let others: Vec<_> = [1, 2]
            .into_iter()
            .map(|n| {
                let (task, join) = task(n);
                set.insert(join);
                thread::spawn(move || assert!(matches!(task.run(), Ran::Complete)))
            })
            .collect();
        assert_eq!(join_all(&mut set), 3);
        for other in others {
            other.join().unwrap();
        }
    });
}

/// The set is dropped, and so aborts a member that completes meanwhile.
#[test]
fn a_drop_against_a_completion_frees_once() {
    model(|| {
        let (task, join) = task(1);
        let mut set = JoinSet::new();
        set.insert(join);
        let running = thread::spawn(move || assert!(matches!(task.run(), Ran::Complete)));
        drop(set);
        running.join().unwrap();
    });
}
