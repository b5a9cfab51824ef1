//! A thread that pushes the last task, and the worker that runs it and frees all.
use super::*;
use sync_shim::{cell::UnsafeCell, model, model_must_fail};

/// What the pushing thread touches until it is done.
struct Scheduler {
    foreign: Arc<Registry>,
    queued: AtomicBool,
    notified: UnsafeCell<u32>,
}

#[derive(Clone, Copy)]
struct Pointer(NonNull<Scheduler>);

// SAFETY: the models see to it, or fail.
unsafe impl Send for Pointer {}

impl Pointer {
    fn push(self) {
        // SAFETY: the task keeps it.
        let foreign = NonNull::from(unsafe { &(*self.0.as_ptr()).foreign });
        let push = move || {
            // SAFETY: as above, and from the push on the announcement.
            let scheduler = unsafe { self.0.as_ref() };
            scheduler.queued.store(true, Release);
            scheduler.notified.with_mut(|notified| {
                // SAFETY: nobody else does before it has waited; the model checks it.
                unsafe { *notified += 1 }
            });
        };
        // SAFETY: as above.
        unsafe { Registry::announce(foreign, push) };
    }
}

fn last_push(waits: bool) {
    let scheduler = Box::new(Scheduler {
        foreign: Arc::new(Registry::new()),
        queued: AtomicBool::new(false),
        notified: UnsafeCell::new(0),
    });
    let foreign = scheduler.foreign.clone();
    let pointer = Pointer(NonNull::from(Box::leak(scheduler)));
    let other = thread::spawn(move || pointer.push());
    // SAFETY: freed below.
    while !unsafe { pointer.0.as_ref() }.queued.load(Acquire) {
        thread::yield_now();
    }
    if waits {
        foreign.wait();
    }
    // SAFETY: from the box above.
    let scheduler = unsafe { Box::from_raw(pointer.0.as_ptr()) };
    scheduler.notified.with_mut(|notified| {
        // SAFETY: all others are done; the model checks it.
        assert_eq!(unsafe { *notified }, 1);
    });
    drop(scheduler);
    other.join().unwrap();
    assert_eq!(foreign.announced(), 1);
}

/// Bites: end the announcement with Relaxed; wait with Relaxed; announce after the push.
#[test]
fn who_waits_finds_the_last_notifier_done() {
    model(|| last_push(true));
}

#[test]
fn without_the_wait_a_notifier_is_overtaken() {
    model_must_fail("", || last_push(false));
}
