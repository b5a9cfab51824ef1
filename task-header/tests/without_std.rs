//! Tests of panics in a build that can't catch them. Run these tests with
//! `cargo test -p task-header --no-default-features --test without_std`.
#![cfg(not(feature = "std"))]
#![allow(missing_docs, reason = "a test")]
use std::{
    alloc::{GlobalAlloc, Layout, System},
    future::{Future, pending},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed},
    task::{Context, Poll, Waker},
};
use task_header::{JoinHandle, LocalNotified, LocalOwned, LocalRan, ScheduleLocal, WakeKind};

/// The system's allocator, with a count of the blocks of one thread.
struct Balance;

/// The number of blocks that the counting thread has taken and not given back.
static BLOCKS: AtomicIsize = AtomicIsize::new(0);

thread_local!(static COUNTS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) });

fn count(by: isize) {
    if COUNTS.try_with(std::cell::Cell::get).unwrap_or(false) {
        BLOCKS.fetch_add(by, Relaxed);
    }
}

// SAFETY: each call goes to the system's allocator, which fulfils the contract.
unsafe impl GlobalAlloc for Balance {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1);
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-1);
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Balance = Balance;

static DROPS: AtomicUsize = AtomicUsize::new(0);

/// A value whose drop panics if the flag is set.
struct Held(bool);

impl Drop for Held {
    fn drop(&mut self) {
        DROPS.fetch_add(1, Relaxed);
        if self.0 {
            // Bypasses the panic hook, which allocates.
            std::panic::resume_unwind(Box::new(()));
        }
    }
}

struct Nowhere;

impl ScheduleLocal for Nowhere {
    fn schedule(task: LocalNotified<Self>, _: WakeKind) {
        task.send();
    }
}

fn waits(list: &LocalOwned<Nowhere>, panics: bool) -> JoinHandle<()> {
    let held = Held(panics);
    let future = async move {
        let _held = held;
        pending::<()>().await;
    };
    let (task, join) = list.spawn(future, Nowhere);
    assert!(matches!(list.run(task), LocalRan::Pending));
    join
}

fn is_cancelled(join: JoinHandle<()>) -> bool {
    let mut join = pin!(join);
    let polled = join.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    matches!(polled, Poll::Ready(Err(error)) if error.is_cancelled())
}

#[test]
fn list_drop_interrupted_by_a_panic_drops_the_rest() {
    COUNTS.set(true);
    let list = LocalOwned::new(Waker::noop().clone());
    let joins = [false, true, false].map(|panics| waits(&list, panics));
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(list)));
    assert!(dropped.is_err(), "nothing can catch it");
    drop(dropped);
    assert_eq!(DROPS.load(Relaxed), 3);
    for join in joins {
        assert!(is_cancelled(join));
    }
    COUNTS.set(false);
    assert_eq!(BLOCKS.load(Relaxed), 0);
}

static PANICKED: AtomicUsize = AtomicUsize::new(0);

/// A future that panics in its poll.
struct Panics;

impl Future for Panics {
    type Output = ();

    fn poll(self: std::pin::Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        std::panic::resume_unwind(Box::new(()))
    }
}

impl Drop for Panics {
    fn drop(&mut self) {
        assert!(std::thread::panicking());
        PANICKED.fetch_add(1, Relaxed);
    }
}

#[test]
fn future_that_panics_without_std_is_dropped_and_cancelled() {
    let list = LocalOwned::new(Waker::noop().clone());
    let (task, join) = list.spawn(Panics, Nowhere);
    let ran = catch_unwind(AssertUnwindSafe(|| drop(list.run(task))));
    assert!(ran.is_err(), "nothing can catch it");
    assert_eq!(PANICKED.load(Relaxed), 1);
    assert!(is_cancelled(join));
    // The task has returned to the list like a task that ended elsewhere, so `receive` removes it.
    assert!(list.receive().is_none() && list.is_empty());
}
