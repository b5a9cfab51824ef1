//! Models of a notifier that pushes the last task, while a worker runs the task and frees the
//! scheduler.
use super::*;
use sync_shim::{Model, cell::UnsafeCell, model, model_must_fail};

/// A scheduler that the notifier uses until its announcement ends.
struct Scheduler {
    registry: Arc<Registry>,
    queued: AtomicBool,
    notified: UnsafeCell<u32>,
}

#[derive(Clone, Copy)]
struct Pointer(NonNull<Scheduler>);

// SAFETY: the models keep the accesses apart, or fail.
unsafe impl Send for Pointer {}

impl Pointer {
    fn push(self) {
        // SAFETY: the task that is not pushed yet keeps the scheduler alive.
        let registry = NonNull::from(unsafe { &(*self.0.as_ptr()).registry });
        let push = move || {
            // SAFETY: as above; after the push, the announcement keeps the scheduler alive.
            let scheduler = unsafe { self.0.as_ref() };
            scheduler.queued.store(true, Release);
            scheduler.notified.with_mut(|notified| {
                // SAFETY: the worker reads `notified` only after its wait, which the model checks.
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
    // SAFETY: the scheduler is freed only below.
    while !unsafe { pointer.0.as_ref() }.queued.load(Acquire) {
        thread::yield_now();
    }
    if waits {
        Registry::wait_keeping(&registry, || ());
    }
    // SAFETY: the pointer was made from a box above.
    let scheduler = unsafe { Box::from_raw(pointer.0.as_ptr()) };
    scheduler.notified.with_mut(|notified| {
        // SAFETY: all other threads are done, which the model checks.
        assert_eq!(unsafe { *notified }, 1);
    });
    drop(scheduler);
    other.join().unwrap();
    assert_eq!(registry.announced(), 1);
}

/// Fails if the store that ends the announcement, or the load of the wait, is Relaxed, or if the
/// record is busy only after the push.
#[test]
fn wait_ends_after_the_last_notifier() {
    model(|| last_push(true));
}

#[test]
fn scheduler_freed_without_the_wait_races_the_notifier() {
    model_must_fail("", || last_push(false));
}

/// A scheduler that its workers own together. Each of two threads uses an element of `notified` of
/// its own, until its announcement ends.
struct Owned {
    registry: Arc<Registry>,
    queued: AtomicBool,
    notified: [UnsafeCell<u32>; 2],
    freed: Arc<AtomicBool>,
}

// SAFETY: as for `Pointer`.
unsafe impl Send for Owned {}

// SAFETY: as for `Pointer`.
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
                // SAFETY: all other threads are done, which the model checks.
                assert_eq!(unsafe { *notified }, 1);
            });
        }
        assert!(!self.freed.swap(true, Relaxed));
    }
}

#[derive(Clone, Copy)]
struct ToOwned(NonNull<Owned>);

// SAFETY: as for `Pointer`.
unsafe impl Send for ToOwned {}

impl ToOwned {
    fn of(scheduler: &Owned) -> Self {
        Self(NonNull::from(scheduler))
    }

    /// Announces `push`, and uses `notified[field]` after the push.
    fn announce(self, field: usize, push: impl FnOnce(&Owned)) {
        // SAFETY: the caller's worker or task keeps the scheduler alive.
        let registry = NonNull::from(unsafe { &(*self.0.as_ptr()).registry });
        let push = move || {
            // SAFETY: as above; after the push, the announcement keeps the scheduler alive, which
            // the model checks.
            push(unsafe { self.0.as_ref() });
            // SAFETY: as above.
            unsafe { self.0.as_ref() }.notified[field].with_mut(|notified| {
                // SAFETY: only this thread uses `notified[field]`, which the model checks.
                unsafe { *notified += 1 }
            });
        };
        // SAFETY: as above.
        unsafe { Registry::announce(registry, push) };
    }
}

/// Returns a `push` that ends a worker in the announcement.
fn end_in_an_announcement(worker: Arc<Owned>) -> impl FnOnce(&Owned) {
    move |_| {
        let registry = worker.registry.clone();
        Registry::wait_keeping(&registry, move || worker);
        assert!(is_announcing());
    }
}

/// The last worker ends in an announcement of its thread, while another notifier is not done.
///
/// Fails if the nested wait drops the scheduler, or if the thread drops the scheduler before its
/// own record is idle, or without a wait.
#[test]
fn worker_that_ends_in_an_announcement_frees_last() {
    model(|| {
        let freed = Arc::new(AtomicBool::new(false));
        let worker = Owned::new(&freed);
        let pointer = ToOwned::of(&worker);
        let other = thread::spawn(move || {
            // Ordering: Release, like the push of a queue.
            pointer.announce(1, |scheduler| scheduler.queued.store(true, Release));
        });
        // Ordering: Acquire, like the pop of a queue.
        while !worker.queued.load(Acquire) {
            thread::yield_now();
        }
        pointer.announce(0, end_in_an_announcement(worker));
        assert!(!is_announcing());
        assert!(freed.load(Relaxed));
        other.join().unwrap();
    });
}

/// Each of two threads ends a worker in its announcement. Neither thread waits for the other, and
/// the scheduler is freed after both announcements.
///
/// Fails if a thread waits inside its announcement, even if only for the other thread's record.
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

/// A thread announces to a second scheduler inside an announcement to a first one. There it ends
/// the last workers of both schedulers.
///
/// Fails if the end of the inner announcement drops the ended schedulers, or if the inner
/// announcement replaces the outer one.
#[test]
fn workers_of_two_schedulers_end_with_the_outer_announcement() {
    model(|| {
        let freed = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let [outer, inner] = [&freed[0], &freed[1]].map(Owned::new);
        let pointers = [&outer, &inner].map(|scheduler| ToOwned::of(scheduler));
        let [to_outer, to_inner] = pointers;
        let other = thread::spawn(move || {
            // Ordering: Release, like the push of a queue.
            to_inner.announce(1, |scheduler| scheduler.queued.store(true, Release));
        });
        // Ordering: Acquire, like the pop of a queue.
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
