//! Models of the locks: one holder at a time, and no sleeper is forgotten.
//!
//! "Fails if" names the changes to the code that make a model fail. A sleeper that is forgotten is
//! a deadlock, which fails the model.
use super::*;
use sync_shim::{cell::UnsafeCell, model, sync::Arc, thread};

/// A number under a lock, and the lock's word.
struct Number {
    word: AtomicUsize,
    parking: Parking,
    number: UnsafeCell<u32>,
}

// SAFETY: the lock protects the number.
unsafe impl Send for Number {}
// SAFETY: as above.
unsafe impl Sync for Number {}

impl Number {
    fn new(units: usize) -> Arc<Self> {
        Arc::new(Self {
            word: AtomicUsize::new(units * UNIT),
            parking: Parking::new(),
            number: UnsafeCell::new(0),
        })
    }

    /// Adds one under the exclusive lock. `holders` are the bits that block it.
    fn add(&self, holders: usize) {
        self.parking.lock(&self.word, holders, LOCKED);
        self.number.with_mut(|number| {
            // SAFETY: the lock is held.
            unsafe { *number += 1 };
        });
        self.parking.unlock(&self.word, LOCKED, holders);
    }

    fn read(&self) -> u32 {
        self.parking.lock(&self.word, LOCKED | PARKED, UNIT);
        let number = self.number.with(|number| {
            // SAFETY: the lock is held.
            unsafe { *number }
        });
        self.parking.unlock(&self.word, UNIT, !PARKED);
        number
    }
}

/// Two threads lock a word whose count has no part in the lock. Fails if the Acquire of `try_lock`
/// or the Release of `unlock` is Relaxed, if `wake` does not take the lock, or if `unlock` does not
/// look for `PARKED`.
#[test]
fn exclusive_locks_take_turns() {
    model(|| {
        let number = Number::new(3);
        let other = {
            let number = number.clone();
            thread::spawn(move || number.add(LOCKED))
        };
        number.add(LOCKED);
        other.join().unwrap();
        number.number.with(|number| {
            // SAFETY: the other thread has ended.
            assert_eq!(unsafe { *number }, 2);
        });
    });
}

/// A reader and a writer. Fails as the model above does, and if a reader's unlock does not wake a
/// writer.
#[test]
fn reader_and_writer_take_turns() {
    model(|| {
        let number = Number::new(0);
        let writer = {
            let number = number.clone();
            thread::spawn(move || number.add(!PARKED))
        };
        assert!(number.read() <= 1);
        writer.join().unwrap();
        assert_eq!(number.read(), 1);
    });
}

/// Fails if a reader is woken only by the last reader, or if a sleeper of one word is lost by the
/// wake of another.
#[test]
fn two_readers_and_a_writer_take_turns() {
    sync_shim::Model::new().bound(3).check(|| {
        let number = Number::new(0);
        let writer = {
            let number = number.clone();
            thread::spawn(move || number.add(!PARKED))
        };
        let reader = {
            let number = number.clone();
            thread::spawn(move || assert!(number.read() <= 1))
        };
        assert!(number.read() <= 1);
        writer.join().unwrap();
        reader.join().unwrap();
        assert_eq!(number.read(), 1);
    });
}
