//! Tests of which threads a leave wakes.
use super::*;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::Wake,
};

/// Counts its wakes.
#[derive(Default)]
struct Counter(AtomicUsize);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// A handover whose worker another thread drives, and three threads that wait. The test's one
/// thread stands for all three.
struct Three<'a> {
    waiting: [Option<Waiting<'a, ()>>; 3],
    wakes: [Arc<Counter>; 3],
}

fn driven_elsewhere() -> Handover<()> {
    let handover = Handover::new(());
    std::thread::scope(|scope| {
        scope.spawn(|| handover.take().unwrap()).join().unwrap();
    });
    handover
}

impl<'a> Three<'a> {
    fn enter(handover: &'a Handover<()>) -> Self {
        let enter = |_| match handover.enter() {
            Entered::Waits(waiting) => Some(waiting),
            _ => panic!("another thread drives"),
        };
        Self {
            waiting: [0, 1, 2].map(enter),
            wakes: Default::default(),
        }
    }

    fn enter_and_wait(handover: &'a Handover<()>) -> Self {
        let mut three = Self::enter(handover);
        for of in 0..3 {
            assert!(!three.poll(of));
        }
        three
    }

    /// Polls a thread whose future runs `f` and waits. Returns whether the thread has the worker.
    fn poll_and(&mut self, of: usize, f: impl FnOnce()) -> bool {
        let waker = self.wakes[of].clone().into();
        let future = || {
            f();
            Poll::<()>::Pending
        };
        let waiting = self.waiting[of].as_mut().unwrap();
        waiting.poll(&waker, future).is_ready()
    }

    fn poll(&mut self, of: usize) -> bool {
        self.poll_and(of, || ())
    }

    fn leave(&mut self, of: usize) {
        self.waiting[of] = None;
    }

    fn wakes(&self) -> [usize; 3] {
        [0, 1, 2].map(|of| self.wakes[of].0.load(Relaxed))
    }
}

/// Fails if a leave wakes more threads than the one that takes over, or wakes the newest first.
#[test]
fn leave_of_the_driving_thread_wakes_one_idle_thread() {
    let handover = driven_elsewhere();
    let mut three = Three::enter(&handover);
    for of in [2, 0, 1, 0] {
        assert!(!three.poll(of));
    }
    for wakes in [[1, 0, 0], [1, 1, 0], [1, 1, 1]] {
        handover.put_back(());
        assert_eq!(three.wakes(), wakes);
        let chosen = wakes.iter().filter(|&&count| count > 0).count() - 1;
        assert!(three.poll(chosen), "the chosen thread drives");
        three.leave(chosen);
    }
    handover.put_back(());
    assert_eq!(three.wakes(), [1, 1, 1], "no thread is left");
}

/// Fails if a leave chooses a thread that polls its own future, which may block. Also fails if that
/// thread does not look for the worker after its poll.
#[test]
fn leave_of_the_driving_thread_skips_a_polling_thread() {
    let handover = driven_elsewhere();
    let mut three = Three::enter(&handover);
    assert!(!three.poll(0) && !three.poll(1));
    let drives = three.poll_and(0, || handover.put_back(()));
    assert!(drives, "it looks after its poll");
    assert_eq!(three.wakes(), [0, 1, 0]);
    assert!(
        !three.poll(1),
        "the chosen thread finds no worker, and waits again"
    );
    three.leave(0);
    handover.put_back(());
    assert_eq!(three.wakes(), [0, 2, 0]);
}

/// Fails if a chosen thread that leaves keeps the choice, or if any other thread that leaves wakes
/// one.
#[test]
fn leave_of_a_chosen_thread_wakes_the_next() {
    let handover = driven_elsewhere();
    let mut three = Three::enter_and_wait(&handover);
    handover.put_back(());
    assert_eq!(three.wakes(), [1, 0, 0]);
    three.leave(1);
    assert_eq!(three.wakes(), [1, 0, 0], "thread 1 was not chosen");
    three.leave(0);
    assert_eq!(three.wakes(), [1, 0, 1]);
    assert!(three.poll(2));
}

/// Fails if a thread that finds the worker stays in the list, where a leave would choose it.
#[test]
fn thread_that_finds_the_worker_is_not_chosen() {
    let handover = driven_elsewhere();
    let mut three = Three::enter_and_wait(&handover);
    handover.put_back(());
    assert!(three.poll(1), "its own future has woken it");
    three.leave(1);
    assert!(!three.poll(0), "the chosen thread comes too late");
    handover.put_back(());
    assert_eq!(three.wakes(), [2, 0, 0]);
    three.leave(0);
    assert_eq!(three.wakes(), [2, 0, 1], "thread 1 is not in the list");
}

/// Fails if a thread that drives may wait for its own worker.
#[test]
fn driving_thread_that_enters_is_refused() {
    let handover = Handover::new(());
    assert!(matches!(handover.enter(), Entered::Drives(())));
    assert!(matches!(handover.enter(), Entered::Nested));
    handover.put_back(());
    assert_eq!(handover.take_for_good(), Some(()));
    assert!(matches!(handover.enter(), Entered::Waits(_)));
}
