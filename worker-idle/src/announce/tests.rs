use super::*;
use std::{
    cell::OnceCell,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
};

/// A value of a thread-local, or a scheduler. Its drop announces to a registry, and ends another
/// scheduler in the announcement.
struct Announces {
    registry: Arc<Registry>,
    freed: std::sync::Arc<AtomicUsize>,
}

/// Counts its drops.
struct Scheduler(std::sync::Arc<AtomicUsize>);

impl Drop for Scheduler {
    fn drop(&mut self) {
        assert!(!is_announcing());
        self.0.fetch_add(1, SeqCst);
    }
}

fn announce(registry: &Arc<Registry>, push: impl FnOnce()) {
    // SAFETY: the reference outlives the call.
    unsafe { Registry::announce(NonNull::from(registry), push) };
}

impl Drop for Announces {
    fn drop(&mut self) {
        announce(&self.registry, || {
            assert!(is_announcing());
            let before = self.freed.load(SeqCst);
            Registry::wait_keeping(&self.registry, || Scheduler(self.freed.clone()));
            announce(&self.registry, || assert!(is_announcing()));
            assert_eq!(self.freed.load(SeqCst), before);
        });
        assert!(!is_announcing());
    }
}

/// The test has two thread-locals whose drops announce, because the thread's cache is dropped
/// before at least one of the two.
#[test]
fn announcement_in_a_destructor_of_a_thread_local_nests() {
    std::thread_local! {
        static BEFORE: OnceCell<Announces> = const { OnceCell::new() };
        static AFTER: OnceCell<Announces> = const { OnceCell::new() };
    }
    let freed = std::sync::Arc::new(AtomicUsize::new(0));
    let registries = [(); 2].map(|()| Arc::new(Registry::new()));
    let [before, after] = [0, 1].map(|at| Announces {
        registry: registries[at].clone(),
        freed: freed.clone(),
    });
    let registry = registries[0].clone();
    let ends = move || {
        BEFORE.with(|cell| assert!(cell.set(before).is_ok()));
        announce(&registry, || ());
        AFTER.with(|cell| assert!(cell.set(after).is_ok()));
    };
    std::thread::spawn(ends).join().unwrap();
    assert_eq!(freed.load(SeqCst), 2);
    let announced = registries.each_ref().map(|registry| registry.announced());
    assert_eq!(announced, [3, 2]);
    let counts = registries.each_ref().map(Arc::strong_count);
    assert_eq!(counts, [1, 1], "a record is kept");
}

#[test]
fn panic_in_an_announcement_ends_it_and_what_ended_in_it() {
    let freed = std::sync::Arc::new(AtomicUsize::new(0));
    let registry = Arc::new(Registry::new());
    let panics = || {
        announce(&registry, || {
            Registry::wait_keeping(&registry, || Scheduler(freed.clone()));
            panic!("in a push");
        });
    };
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
    assert!(!is_announcing());
    assert_eq!(freed.load(SeqCst), 1);
    Registry::wait_keeping(&registry, || ());
}

/// After an announcement, the thread drops two schedulers, whose drops announce to two other
/// registries. The first of these drops frees the thread's cache for the first registry.
#[test]
fn scheduler_dropped_after_an_announcement_may_announce() {
    let freed = std::sync::Arc::new(AtomicUsize::new(0));
    let registries = [(); 3].map(|()| Arc::new(Registry::new()));
    announce(&registries[0], || {
        for registry in &registries[1..] {
            let scheduler = Announces {
                registry: registry.clone(),
                freed: freed.clone(),
            };
            Registry::wait_keeping(registry, || scheduler);
        }
        assert_eq!(freed.load(SeqCst), 0);
    });
    assert_eq!(freed.load(SeqCst), 2);
}

#[cfg(target_os = "linux")]
mod real_time;
