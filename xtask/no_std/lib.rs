//! Uses the main types of all crates of the workspace that need no `std`, as a kernel would.
//! `cargo xtask test --only no-std` builds this file as a static library, links it into a program,
//! runs the program, and looks for symbols of std.
#![no_std]

extern crate alloc;

use alloc::boxed::Box;
use core::{
    alloc::{GlobalAlloc, Layout},
    ffi::c_int,
    future::ready,
    panic::PanicInfo,
    pin::pin,
    ptr::null_mut,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::*},
    task::{Context, Poll, Waker},
};
use queue_global::{Boxed, Injector, List, Lock, ValueInjector};
use queue_spmc::{Steal, StealLimit};
use task_header::{LocalNotified, LocalOwned, LocalRan, ScheduleLocal, WakeKind};

/// An allocator that gives out pieces of [`MEMORY`], and takes none back.
struct Arena;

const SIZE: usize = 4 << 20;

static mut MEMORY: [u8; SIZE] = [0; SIZE];
static USED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: each piece is given out once, is aligned, and lies inside `MEMORY`.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let first = (&raw mut MEMORY).cast::<u8>();
        let mut place = null_mut();
        let _ = USED.fetch_update(Relaxed, Relaxed, |used| {
            // SAFETY: `used` is at most `SIZE`, the size of `MEMORY`.
            let rest = unsafe { first.add(used) };
            let begin = used + rest.align_offset(layout.align());
            let end = begin.checked_add(layout.size())?;
            if end > SIZE {
                place = null_mut();
                return None;
            }
            // SAFETY: `begin` is at most `end`, and `end` is at most `SIZE`.
            place = unsafe { first.add(begin) };
            Some(end)
        });
        place
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ARENA: Arena = Arena;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    unsafe extern "C" {
        fn abort() -> !;
    }
    // SAFETY: C's `abort` has no premises.
    unsafe { abort() }
}

/// Does nothing. The prebuilt `core` and `alloc` are compiled with unwinding, so their unwind
/// tables name this function. Nothing in this program unwinds.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

struct Spin(AtomicBool);

struct Guard<'a>(&'a AtomicBool);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.store(false, Release);
    }
}

// SAFETY: the exchange succeeds for one caller. It fails for all others until the guard of that
// caller stores `false`.
unsafe impl Lock for Spin {
    type Guard<'a> = Guard<'a>;

    fn try_lock(&self) -> Option<Guard<'_>> {
        let taken = self.0.compare_exchange(false, true, Acquire, Relaxed);
        taken.is_ok().then(|| Guard(&self.0))
    }

    fn lock(&self) -> Guard<'_> {
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            core::hint::spin_loop();
        }
    }
}

const fn lock() -> Spin {
    Spin(AtomicBool::new(false))
}

static SHARED: Injector<Boxed<u32>, Spin> = Injector::with_lock(lock());
static VALUES: ValueInjector<u32, Spin> = ValueInjector::with_locks(lock(), lock());

fn queues() {
    let node = |n| Box::new(Boxed::new(n));
    let mut ring = queue_spmc::ring::Worker::new(8);
    let thief = ring.stealer();
    for n in 0..20 {
        ring.push_or_overflow(n, &VALUES);
    }
    let mut other = queue_spmc::ring::Worker::new(8);
    let _ = thief.steal_into(&mut other, StealLimit::Half);
    let mut count = VALUES.pop_n(32).count();
    count += core::iter::from_fn(|| ring.pop()).count();
    count += core::iter::from_fn(|| other.pop()).count();
    assert!(count == 20);

    let mut deque = queue_spmc::deque::Worker::new();
    deque.push(1);
    let stolen = deque.stealer().steal();
    assert!(matches!(stolen, Steal::Success { first: 1, .. }) && deque.pop().is_none());

    assert!(SHARED.push_batch((0..3).map(node).collect::<List<_>>()).is_ok());
    assert!(SHARED.pop_n(2).len() == 2 && SHARED.pop().is_some() && SHARED.close());
    let slot = worker_queue::Slot::<Boxed<u32>>::new();
    // SAFETY: only one thread uses the slot.
    assert!(unsafe { slot.put(node(1)) }.is_none() && slot.take().is_some());

    struct Alone;
    impl worker_queue::QueueHooks<Boxed<u32>> for Alone {
        fn overflow(&self, jobs: List<Boxed<u32>>) {
            SHARED.requeue_batch(jobs);
        }
        fn notify(&self) {}
    }
    let queue = worker_queue::WorkerQueue::new(8);
    queue.push_back(node(2), &Alone);
    assert!(queue.next(&Alone).is_some());
}

struct Nowhere;

impl ScheduleLocal for Nowhere {
    fn schedule(task: LocalNotified<Self>, _: WakeKind) {
        task.send();
    }
}

fn tasks() {
    let list = LocalOwned::new(Waker::noop().clone());
    let (task, join) = list.spawn(ready(7), Nowhere);
    assert!(matches!(list.run(task), LocalRan::Complete));
    let cell = waker_vtable::WakerCell::new();
    cell.register(Waker::noop());
    cell.wake();
    let polled = pin!(join).poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Ready(Ok(7))));
}

fn time() {
    let mut timers = timer_wheel::Timers::new();
    timers.insert(70, 'b');
    timers.insert(3, 'a');
    assert!(timers.next_expiration() == Some(3));
    assert!(timers.pop_expired(3).is_some_and(|timer| timer.value == 'a'));
    let mut groups = sched_group::FairQueue::new(|| 0_u64);
    let group = groups.insert(sched_group::Shares::new(100).unwrap(), "group");
    assert!(groups.activate(group).is_ok());
    assert!(matches!(groups.pick(), sched_group::Pick::Run(key) if key == group));
}

/// Uses each crate, and returns 0 if all of them work.
#[unsafe(no_mangle)]
extern "C" fn main() -> c_int {
    queues();
    tasks();
    time();
    let mut budget = coop_budget::Budget::new(1);
    assert!(budget.charge() && !budget.charge());
    let idle = worker_idle::Idle::new(2);
    assert!(idle.notify().is_none() && idle.try_search());
    let cell = sync_shim::cell::UnsafeCell::new(1_u64);
    // SAFETY: only one thread uses the cell.
    c_int::from(cell.with(|n| unsafe { *n }) != 1)
}
