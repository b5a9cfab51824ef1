//! Models of a set whose members complete on many threads: more threads than loom can model.
use super::super::*;
use crate::gate::Gate;
use sync_shim::{
    atomic::{AtomicUsize, Ordering::Relaxed},
    model, thread,
};
use task_header::{Ran, Runnable};

const THREADS: usize = 4;
const TASKS: usize = 2 * THREADS;

/// Counts its drops.
struct Output(usize, Arc<AtomicUsize>);

impl Drop for Output {
    fn drop(&mut self) {
        // Ordering: Relaxed, as the count is read after the joins.
        self.1.fetch_add(1, Relaxed);
    }
}

fn run(task: Runnable) {
    assert!(matches!(task.run(), Ran::Complete));
}

/// Waits for the next member that is done. If a wake was lost, this waits forever.
fn next(set: &mut JoinSet<Output>) -> Option<Joined<Output>> {
    let gate = Gate::new();
    let waker = from_arc(gate.clone());
    loop {
        match set.poll_next(&mut Context::from_waker(&waker)) {
            Poll::Ready(joined) => return joined,
            Poll::Pending => gate.pass(&mut 0),
        }
    }
}

/// Four threads run two members each, while a fifth thread aborts two of the members. The last two
/// members go into the slots of two members that were handed out. The set hands out each member
/// once, under the member's own id.
///
/// Fails if `Member::wake` wakes the set only when `ready` was not empty, or if `poll_done`
/// registers the waker after its second `try_next`. Fails also if `insert` leaves `free` as it is,
/// so that a new member overwrites another.
#[test]
fn members_completed_by_many_threads_are_handed_out_once() {
    model(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (mut tasks, mut joins, mut ids) = (Vec::new(), VecDeque::new(), Vec::new());
        for n in 0..TASKS {
            let output = Output(n, drops.clone());
            let (task, join) = task_header::spawn(async move { output }, drop);
            ids.push(join.id());
            tasks.push(task);
            joins.push_back(join);
        }
        let aborts = [1, TASKS - 1].map(|n| joins[n].abort_handle());
        let later = tasks.split_off(THREADS);
        let mut threads: Vec<_> = (tasks.into_iter().zip(later))
            .map(|(first, second)| {
                thread::spawn(move || {
                    run(first);
                    run(second);
                })
            })
            .collect();
        threads.push(thread::spawn(move || {
            aborts.iter().for_each(|abort| abort.abort());
        }));
        let mut set: JoinSet<_> = joins.drain(..THREADS).collect();
        let mut seen = [0; TASKS];
        let mut outputs = 0;
        loop {
            // Inserts two members before the first is handed out, and two after the second is.
            if seen.iter().sum::<usize>() % 2 == 0 {
                set.extend(joins.drain(..joins.len().min(2)));
            }
            let Some((id, joined)) = next(&mut set) else {
                break;
            };
            let n = ids.iter().position(|other| *other == id).unwrap();
            seen[n] += 1;
            match joined {
                Ok(output) => {
                    assert_eq!(output.0, n);
                    outputs += 1;
                }
                Err(error) => assert!(error.is_cancelled() && [1, TASKS - 1].contains(&n)),
            }
        }
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(seen, [1; TASKS]);
        assert!(outputs >= TASKS - 2 && set.is_empty());
        // Ordering: Relaxed, as the threads were joined before.
        assert_eq!(drops.load(Relaxed), TASKS);
    });
}
