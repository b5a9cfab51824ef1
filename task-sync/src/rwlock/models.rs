//! Models of readers against writers.
//!
//! "Fails if" names the changes to the code that make a model fail.
use super::*;
use crate::blocking::block_on;
use sync_shim::{Model, model, thread};

/// A reader and a writer. Fails if both may have the lock at the same time, or if either does not
/// see what the other did before. The orderings for this are in `RawSemaphore`.
#[test]
fn reader_against_a_writer_sees_all_or_nothing() {
    model(|| {
        let lock = Arc::new(RwLock::with_max_readers((0, 0), 2));
        let writer = {
            let lock = lock.clone();
            thread::spawn(move || {
                let mut pair = block_on(lock.write());
                pair.0 += 1;
                pair.1 += 1;
            })
        };
        let pair = block_on(lock.read());
        assert_eq!(pair.0, pair.1);
        drop(pair);
        writer.join().unwrap();
        assert_eq!(*lock.try_write().unwrap(), (1, 1));
    });
}

/// A writer that downgrades keeps other writers out. Fails if `downgrade` releases all permits, or
/// keeps more than one.
#[test]
fn downgraded_writer_reads_what_it_wrote() {
    Model::new().bound(3).check(|| {
        let lock = Arc::new(RwLock::with_max_readers(0, 2));
        let write = |lock: &Arc<RwLock<u32>>| {
            let mut value = block_on(lock.write());
            *value += 1;
            let wrote = *value;
            let value = value.downgrade();
            assert_eq!(*value, wrote);
        };
        let writer = {
            let lock = lock.clone();
            thread::spawn(move || write(&lock))
        };
        write(&lock);
        writer.join().unwrap();
        let (one, two) = (lock.try_read().unwrap(), lock.try_read().unwrap());
        assert_eq!((*one, *two), (2, 2));
    });
}
