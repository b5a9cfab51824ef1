//! Models of tasks that set a cell against tasks that read it.
//!
//! "Fails if" names the changes to the code that make a model fail.
use super::*;
use crate::blocking::block_on;
use std::sync::Arc;
use sync_shim::{model, thread};

/// Two threads set the cell, and each reads the one value. Fails if the close is not a Release, if
/// `is_closed` is not an Acquire, or if the close comes before the value.
#[test]
fn two_threads_set_the_cell_once() {
    model(|| {
        let cell = Arc::new(OnceCell::new());
        let other = {
            let cell = cell.clone();
            thread::spawn(move || *block_on(cell.get_or_init(|| async { 1 })))
        };
        let mine = *block_on(cell.get_or_init(|| async { 2 }));
        assert_eq!(mine, other.join().unwrap());
        assert_eq!(cell.get(), Some(&mine));
    });
}

/// One thread's function fails, so the other one sets the cell. Fails if the drop of the permit
/// does not release it.
#[test]
fn failed_function_leaves_the_cell_to_the_next() {
    model(|| {
        let cell = Arc::new(OnceCell::new());
        let other = {
            let cell = cell.clone();
            thread::spawn(move || {
                let result = block_on(cell.get_or_try_init(|| async { Err(()) }));
                assert!(result.is_err() || result == Ok(&2));
            })
        };
        assert_eq!(*block_on(cell.get_or_init(|| async { 2 })), 2);
        other.join().unwrap();
    });
}

/// A thread reads while another sets. Fails if `get` does not look at the semaphore.
#[test]
fn get_against_a_set_sees_all_or_nothing() {
    model(|| {
        let cell = Arc::new(OnceCell::new());
        let other = {
            let cell = cell.clone();
            thread::spawn(move || cell.set((1, 1)).unwrap())
        };
        if let Some(pair) = cell.get() {
            assert_eq!(*pair, (1, 1));
        }
        other.join().unwrap();
        assert!(cell.initialized());
    });
}
