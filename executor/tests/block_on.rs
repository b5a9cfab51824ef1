//! Tests of the allocations of a `block_on`. The allocations are counted per thread, as the
//! runtime's threads allocate, too.
// With `test-util` the clock keeps a list of the threads that block, and the list allocates.
#![cfg(not(feature = "test-util"))]
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    future::{Future, poll_fn, ready},
    task::Poll,
};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u32> = const { Cell::new(0) };
}

fn count() {
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: each method passes its call to `System`, which is an allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the premises of `System` are those of this method, which the caller upholds.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the premises of `System` are those of this method, which the caller upholds.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the premises of `System` are those of this method, which the caller upholds.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Counts the allocations of this thread while `f` runs.
fn allocations(f: impl FnOnce()) -> u32 {
    let before = ALLOCATIONS.get();
    f();
    ALLOCATIONS.get() - before
}

/// Future that is pending once, and wakes its waker by reference.
fn pending_once() -> impl Future<Output = ()> {
    let mut polled = false;
    poll_fn(move |cx| {
        if std::mem::replace(&mut polled, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}

/// Fails if the parker, or the waker, is made before the first poll.
#[test]
fn block_on_of_a_ready_future_allocates_nothing() {
    let runtime = selvedge_executor::Builder::new()
        .workers(1)
        .build()
        .unwrap();
    assert_eq!(allocations(|| runtime.block_on(ready(()))), 0);
    let has_context = async { selvedge_executor::Handle::current().snapshot().workers };
    assert_eq!(runtime.block_on(has_context), 1);
}

#[test]
fn block_on_of_a_pending_future_allocates_its_parker_once() {
    let runtime = selvedge_executor::Builder::new()
        .workers(1)
        .build()
        .unwrap();
    assert_eq!(allocations(|| runtime.block_on(pending_once())), 1);
    let twice = async {
        pending_once().await;
        pending_once().await;
    };
    assert_eq!(allocations(|| runtime.block_on(twice)), 1);
}
