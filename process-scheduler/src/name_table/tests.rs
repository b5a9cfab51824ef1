use super::*;
use proptest::{
    collection::vec,
    prelude::{any, prop_assert_eq, proptest},
};
use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, AtomicU32},
    thread,
};

proptest! {
    /// Compares a table with a map of std, which grows and shrinks as it does.
    ///
    /// Fails if an insertion keeps the old value, a removal leaves the name, or a growth of the
    /// table loses one.
    #[test]
    fn table_has_the_names_of_a_map(
        changes in vec((any::<bool>(), 0_u32..200, any::<u32>()), 0..600),
    ) {
        let (table, mut map) = (NameTable::new(), HashMap::new());
        for (inserts, name, value) in changes {
            let name = name.to_string();
            if inserts {
                table.lock().insert(&name, value);
                map.insert(name, value);
            } else {
                prop_assert_eq!(table.lock().remove(&name), map.remove(&name));
            }
        }
        prop_assert_eq!(*table.len.lock(), map.len());
        for name in (0..200).map(|name: u32| name.to_string()) {
            prop_assert_eq!(table.get(&name), map.get(&name).copied());
        }
    }
}

/// Fails if a lookup reads a list that is not complete, or memory that was freed.
#[test]
fn lookups_beside_changes_find_what_stays() {
    let table = NameTable::new();
    (0..50).for_each(|n: u32| table.lock().insert(&format!("stays {n}"), n));
    let (ended, looked) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                // Ordering: Relaxed; the end of the scope orders the rest.
                while !ended.load(Relaxed) {
                    for n in 0..50 {
                        assert_eq!(table.get(&format!("stays {n}")), Some(n));
                    }
                    // Ordering: Relaxed, a count.
                    looked.fetch_add(1, Relaxed);
                }
            });
        }
        for round in 0.. {
            (0..200).for_each(|n| table.lock().insert(&format!("goes {n}"), n));
            (0..200).for_each(|n| assert_eq!(table.lock().remove(&format!("goes {n}")), Some(n)));
            // Ordering: Relaxed, a count.
            if round >= 20 && looked.load(Relaxed) >= 20 {
                break;
            }
        }
        // Ordering: Relaxed, as above.
        ended.store(true, Relaxed);
    });
    assert_eq!(table.get("goes 7"), None);
}

/// The values are counted: each is dropped once, at the latest some lookups after the table.
#[test]
fn values_of_a_dropped_table_are_dropped_once() {
    struct Counted(Arc<AtomicU32>);
    impl Clone for Counted {
        fn clone(&self) -> Self {
            // Ordering: Relaxed, a count.
            self.0.fetch_add(1, Relaxed);
            Self(self.0.clone())
        }
    }
    impl Drop for Counted {
        fn drop(&mut self) {
            // Ordering: Relaxed, a count.
            assert_ne!(self.0.fetch_sub(1, Relaxed), 0, "it is dropped twice");
        }
    }
    let live = Arc::new(AtomicU32::new(1));
    let first = Counted(live.clone());
    let table = NameTable::new();
    (0..100).for_each(|n| table.lock().insert(&n.to_string(), first.clone()));
    (0..50).for_each(|n| drop(table.lock().remove(&n.to_string())));
    drop((table, first));
    // Lookups of any table move the epochs on. Other tests of this process may hold them up.
    let others: NameTable<u32> = NameTable::new();
    others.lock().insert("other", 1);
    let begun = std::time::Instant::now();
    // Ordering: Relaxed, a count.
    while live.load(Relaxed) != 0 {
        assert!(begun.elapsed().as_secs() < 60, "values are left");
        epoch::pin().flush();
        others.get("other");
    }
}

/// The epochs run what other crates have deferred, which may change names. Here they run it as a
/// thread pins the epoch to change a name.
///
/// Fails, as it waits forever, if a thread pins the epoch while it has the lock.
#[test]
fn change_by_deferred_code_finds_the_lock_free() {
    let table = Arc::new(NameTable::new());
    let deferred = Arc::new(AtomicU32::new(0));
    let begun = std::time::Instant::now();
    // Ordering: Relaxed, a count.
    while deferred.load(Relaxed) < 3 {
        // Other tests of this process may hold the epochs up.
        assert!(begun.elapsed().as_secs() < 60, "nothing deferred has run");
        let guard = epoch::pin();
        let (names, count) = (table.clone(), deferred.clone());
        guard.defer(move || {
            names.lock().insert("deferred", 1);
            // Ordering: Relaxed, a count.
            count.fetch_add(1, Relaxed);
        });
        guard.flush();
        drop(guard);
        (0..500).for_each(|n| table.lock().insert("name", n));
    }
    assert_eq!(table.get("deferred"), Some(1));
}
