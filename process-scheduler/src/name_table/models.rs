//! Models of lookups beside changes. The atomics of `crossbeam-epoch` are loom's too, as the models
//! are built with its own `cfg`.
use super::*;
use sync_shim::{Model, cell::UnsafeCell, thread};

/// A value whose reads and drop the model checks against each other.
struct Tracked(UnsafeCell<u32>);

impl Tracked {
    fn new(value: u32) -> Self {
        Self(UnsafeCell::new(value))
    }

    fn value(&self) -> u32 {
        // SAFETY: nobody writes the cell but the drop. The model checks that no drop runs beside
        // this.
        self.0.with(|value| unsafe { *value })
    }
}

// SAFETY: the value is written by its drop alone, which has it for itself.
unsafe impl Sync for Tracked {}
// SAFETY: as above.
unsafe impl Send for Tracked {}

impl Clone for Tracked {
    fn clone(&self) -> Self {
        Self::new(self.value())
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        // SAFETY: the drop has the value for itself. The model checks that no read runs beside it.
        self.0.with_mut(|value| unsafe { *value = 0 });
    }
}

/// Explores a scenario with two preemptions at most: the epochs themselves make many steps.
fn bounded(scenario: impl Fn() + Send + Sync + 'static) {
    Model::new().bound(2).check(scenario);
}

/// Has the epochs free what they may. That takes two advances of the epoch after the one in which
/// it was handed to them.
fn collect() {
    (0..3).for_each(|_| epoch::pin().flush());
}

/// Fails if a removal leaves the name, or a lookup finds a value that the table never had.
#[test]
fn lookup_beside_a_removal() {
    bounded(|| {
        let table = sync_shim::sync::Arc::new(NameTable::new());
        table.lock().insert("a", Tracked::new(1));
        let reader = thread::spawn({
            let table = table.clone();
            move || table.get("a").map(|found| found.value())
        });
        let removed = table.lock().remove("a").map(|found| found.value());
        assert_eq!(removed, Some(1));
        collect();
        assert!(matches!(reader.join().unwrap(), None | Some(1)));
        assert!(table.get("a").is_none());
    });
}

/// Fails if a list or a table is published or read without its ordering, or freed at once, or if a
/// growth of the table loses a name.
#[test]
fn lookup_beside_a_growth() {
    bounded(|| {
        let table = sync_shim::sync::Arc::new(NameTable::new());
        table.lock().insert("a", Tracked::new(1));
        let reader = thread::spawn({
            let table = table.clone();
            move || table.get("a").map(|found| found.value())
        });
        table.lock().insert("b", Tracked::new(2));
        collect();
        assert_eq!(reader.join().unwrap(), Some(1));
        assert_eq!(table.get("b").map(|found| found.value()), Some(2));
    });
}

/// Fails if two changes at the same time lose one.
#[test]
fn two_changes_of_one_bucket() {
    bounded(|| {
        let table = sync_shim::sync::Arc::new(NameTable::new());
        let other = thread::spawn({
            let table = table.clone();
            move || table.lock().insert("a", Tracked::new(1))
        });
        table.lock().insert("b", Tracked::new(2));
        other.join().unwrap();
        assert_eq!(table.get("a").map(|found| found.value()), Some(1));
        assert_eq!(table.get("b").map(|found| found.value()), Some(2));
    });
}
