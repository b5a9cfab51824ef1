//! Tests of panics in a build that can't catch them. Run these tests with
//! `cargo test -p task-header --no-default-features --test without_std`.
#![cfg(not(feature = "std"))]
#![allow(missing_docs, reason = "a test")]
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    future::{Future, pending},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, Wake, Waker},
};
use task_header::{
    Builder, JoinHandle, LocalNotified, LocalOwned, LocalRan, Notified, Owned, Ran, Schedule,
    ScheduleLocal, WakeKind,
};

/// The system's allocator, with a count of each thread's blocks.
struct Balance;

thread_local! {
    /// The number of blocks that the thread has taken and not given back.
    static BLOCKS: Cell<isize> = const { Cell::new(0) };
}

fn count(by: isize) {
    let _ = BLOCKS.try_with(|blocks| blocks.set(blocks.get() + by));
}

/// Asserts that `f` gives back each block that it takes.
fn assert_balanced(f: impl FnOnce()) {
    let before = BLOCKS.get();
    f();
    assert_eq!(BLOCKS.get(), before);
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

/// Returns whether `f` panics.
fn panics(f: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(f)).is_err()
}

fn is_cancelled(join: JoinHandle<()>) -> bool {
    let mut join = pin!(join);
    let polled = join.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    matches!(polled, Poll::Ready(Err(error)) if error.is_cancelled())
}

#[test]
fn list_drop_interrupted_by_a_panic_drops_the_rest() {
    assert_balanced(|| {
        let list = LocalOwned::new(Waker::noop().clone());
        let joins = [false, true, false].map(|panics| waits(&list, panics));
        assert!(panics(|| drop(list)), "nothing can catch it");
        assert_eq!(DROPS.load(Relaxed), 3);
        for join in joins {
            assert!(is_cancelled(join));
        }
    });
}

/// A scheduler that cancels the tasks it is given.
struct Drops;

impl Schedule for Drops {
    fn schedule(_: Notified<Self>, _: WakeKind) {}
}

/// Panics in its drop.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        std::panic::resume_unwind(Box::new(()));
    }
}

impl Wake for Bomb {
    fn wake(self: Arc<Self>) {}
}

// Fails if the panic in the release of one task keeps the list from the other tasks.
#[test]
fn drain_interrupted_by_a_panic_releases_the_rest() {
    assert_balanced(|| {
        let mut owned = Owned::new(Waker::noop().clone());
        for explodes in [false, true, false] {
            let builder = Builder::new().metadata(explodes.then(|| Bomb));
            let (task, join) = builder.spawn(pending::<()>(), Drops);
            assert!(matches!(owned.run(task), Ran::Pending));
            join.abort();
        }
        assert!(panics(|| owned.drain()), "nothing can catch it");
        assert!(owned.is_empty());
    });
}

#[test]
fn handle_whose_waker_panics_in_its_drop_detaches_the_task() {
    assert_balanced(|| {
        let (task, mut join) = task_header::new(async {}, Drops);
        let waker = Waker::from(Arc::new(Bomb));
        assert!(join.set_waker(waker));
        assert!(panics(|| drop(join)), "nothing can catch it");
        drop(task);
    });
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
