//! A thread that pushes the last task, and the worker that runs it and frees all.
use super::*;
use sync_shim::{Model, cell::UnsafeCell, model, model_must_fail};

/// What the pushing thread touches until it is done.
struct Scheduler {
    registry: Arc<Registry>,
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
        let registry = NonNull::from(unsafe { &(*self.0.as_ptr()).registry });
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
        unsafe { Registry::announce(registry, push) };
    }
}

fn last_push(waits: bool) {
    let scheduler = Box::new(Scheduler {
        registry: Arc::new(Registry::new()),
        queued: AtomicBool::new(false),
        notified: UnsafeCell::new(0),
    });
    let registry = scheduler.registry.clone();
    let pointer = Pointer(NonNull::from(Box::leak(scheduler)));
    let other = thread::spawn(move || pointer.push());
    // SAFETY: freed below.
    while !unsafe { pointer.0.as_ref() }.queued.load(Acquire) {
        thread::yield_now();
    }
    if waits {
        Registry::wait_keeping(&registry, || ());
    }
    // SAFETY: from the box above.
    let scheduler = unsafe { Box::from_raw(pointer.0.as_ptr()) };
    scheduler.notified.with_mut(|notified| {
        // SAFETY: all others are done; the model checks it.
        assert_eq!(unsafe { *notified }, 1);
    });
    drop(scheduler);
    other.join().unwrap();
    assert_eq!(registry.announced(), 1);
}

/// Bites: end the announcement with Relaxed; wait with Relaxed; announce after the push.
#[test]
fn wait_ends_after_the_last_notifier() {
    model(|| last_push(true));
}

#[test]
fn scheduler_freed_without_the_wait_races_the_notifier() {
    model_must_fail("", || last_push(false));
}

/// A scheduler that its workers own together. Each of two threads touches a field of its own until it is done.
struct Owned {
    registry: Arc<Registry>,
    queued: AtomicBool,
    notified: [UnsafeCell<u32>; 2],
    freed: Arc<AtomicBool>,
}

// SAFETY: as of `Pointer`.
unsafe impl Send for Owned {}

// SAFETY: as of `Pointer`.
unsafe impl Sync for Owned {}

impl Owned {
    fn new(freed: &Arc<AtomicBool>) -> Arc<Self> {
        Arc::new(Self {
            registry: Arc::new(Registry::new()),
            queued: AtomicBool::new(false),
            notified: [UnsafeCell::new(0), UnsafeCell::new(0)],
            freed: freed.clone(),
        })
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        for notified in &self.notified {
            notified.with_mut(|notified| {
                // SAFETY: all others are done; the model checks it.
                assert_eq!(unsafe { *notified }, 1);
            });
        }
        assert!(!self.freed.swap(true, Relaxed));
    }
}

#[derive(Clone, Copy)]
struct ToOwned(NonNull<Owned>);

// SAFETY: as of `Pointer`.
unsafe impl Send for ToOwned {}

impl ToOwned {
    fn of(scheduler: &Owned) -> Self {
        Self(NonNull::from(scheduler))
    }

    /// Announces `push`, and touches the field after it.
    fn announce(self, field: usize, push: impl FnOnce(&Owned)) {
        // SAFETY: the caller's worker, or its task, keeps it.
        let registry = NonNull::from(unsafe { &(*self.0.as_ptr()).registry });
        let push = move || {
            // SAFETY: as above, and then the announcement; the model checks it.
            push(unsafe { self.0.as_ref() });
            // SAFETY: as above.
            unsafe { self.0.as_ref() }.notified[field].with_mut(|notified| {
                // SAFETY: this thread's; the model checks it.
                unsafe { *notified += 1 }
            });
        };
        // SAFETY: as above.
        unsafe { Registry::announce(registry, push) };
    }
}

/// Ends a worker in an announcement.
fn end_in_an_announcement(worker: Arc<Owned>) -> impl FnOnce(&Owned) {
    move |_| {
        let registry = worker.registry.clone();
        Registry::wait_keeping(&registry, move || worker);
        assert!(is_announcing());
    }
}

/// The last worker ends in an announcement of its thread, while another thread that has pushed is not done.
///
/// Bites: drop the scheduler in the nested wait, or before the own record is idle, or without the wait.
#[test]
fn worker_that_ends_in_an_announcement_frees_last() {
    model(|| {
        let freed = Arc::new(AtomicBool::new(false));
        let worker = Owned::new(&freed);
        let pointer = ToOwned::of(&worker);
        let other = thread::spawn(move || {
            // Ordering: Release, as a queue's push.
            pointer.announce(1, |scheduler| scheduler.queued.store(true, Release));
        });
        // Ordering: Acquire, as a queue's pop.
        while !worker.queued.load(Acquire) {
            thread::yield_now();
        }
        pointer.announce(0, end_in_an_announcement(worker));
        assert!(!is_announcing());
        assert!(freed.load(Relaxed));
        other.join().unwrap();
    });
}

/// Each of two threads ends a worker in its announcement: neither waits for the other's end, and the scheduler is freed after both.
///
/// Bites: wait in the announcement, be it for the other's record alone.
#[test]
fn workers_that_end_in_two_announcements_both_end() {
    Model::new().bound(3).check(|| {
        let freed = Arc::new(AtomicBool::new(false));
        let one = Owned::new(&freed);
        let (two, pointer) = (one.clone(), ToOwned::of(&one));
        let other = thread::spawn(move || pointer.announce(1, end_in_an_announcement(two)));
        pointer.announce(0, end_in_an_announcement(one));
        other.join().unwrap();
        assert!(freed.load(Relaxed));
    });
}

/// A thread announces to a second scheduler within an announcement to a first, and ends the workers of both there.
///
/// Bites: drop what the inner announcement has when that is done; let it take the place of the outer one.
#[test]
fn workers_of_two_schedulers_end_with_the_outer_announcement() {
    model(|| {
        let freed = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let [outer, inner] = [&freed[0], &freed[1]].map(Owned::new);
        let pointers = [&outer, &inner].map(|scheduler| ToOwned::of(scheduler));
        let [to_outer, to_inner] = pointers;
        let other = thread::spawn(move || {
            // Ordering: Release, as a queue's push.
            to_inner.announce(1, |scheduler| scheduler.queued.store(true, Release));
        });
        // Ordering: Acquire, as a queue's pop.
        while !inner.queued.load(Acquire) {
            thread::yield_now();
        }
        let seen = freed.clone();
        to_outer.announce(0, move |scheduler| {
            to_inner.announce(0, end_in_an_announcement(inner));
            to_outer.announce(1, end_in_an_announcement(outer));
            assert!(is_announcing());
            assert!(seen.iter().all(|freed| !freed.load(Relaxed)));
            assert_eq!(scheduler.registry.announced(), 2);
        });
        assert!(freed.iter().all(|freed| freed.load(Relaxed)));
        other.join().unwrap();
    });
}
