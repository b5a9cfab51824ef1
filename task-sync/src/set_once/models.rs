//! Models of a cell: one set wins, and no wait is forgotten.
//!
//! "Fails if" names the changes to the code that make a model fail. A lost wake is a deadlock,
//! which fails the model.
use super::{SetOnce, SetOnceError};
use crate::blocking::block_on;
use sync_shim::{model, sync::Arc, thread};

/// Fails if `set` does not wake, if a wait does not look again under the lock, or if the store or
/// the load of `is_set` is Relaxed.
#[test]
fn set_beside_a_wait_ends_it() {
    model(|| {
        let cell = Arc::new(SetOnce::new());
        let setter = {
            let cell = cell.clone();
            thread::spawn(move || cell.set(7).unwrap())
        };
        assert_eq!(*block_on(cell.wait()), 7);
        setter.join().unwrap();
    });
}

/// One of two sets wins, and the other one sees its value. Fails if `set` does not look again under
/// the lock.
#[test]
fn two_sets_have_one_winner() {
    model(|| {
        let cell = Arc::new(SetOnce::new());
        let set = |cell: &SetOnce<Arc<u8>>, value| match cell.set(Arc::new(value)) {
            Ok(()) => true,
            Err(SetOnceError(refused)) => {
                assert_eq!(*refused, value);
                assert_ne!(**cell.get().expect("the other set has won"), value);
                false
            }
        };
        let other = {
            let cell = cell.clone();
            thread::spawn(move || set(&cell, 1))
        };
        let won = set(&cell, 2);
        assert_ne!(other.join().unwrap(), won);
        assert_eq!(**cell.get().unwrap(), 1 + u8::from(won));
    });
}

/// A reader gets the whole value or none. Fails as the first model does.
#[test]
fn get_beside_a_set_returns_the_value_or_none() {
    model(|| {
        let cell = Arc::new(SetOnce::new());
        let setter = {
            let cell = cell.clone();
            thread::spawn(move || cell.set(7).unwrap())
        };
        assert!(cell.get().is_none_or(|value| *value == 7));
        setter.join().unwrap();
        assert_eq!(cell.get(), Some(&7));
    });
}
