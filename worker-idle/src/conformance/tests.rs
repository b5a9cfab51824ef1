//! Each check fails for its fault, and names itself.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use super::park_within;
use crate::park::{Park, ThreadPark, Unpark};
use alloc::{
    string::String,
    sync::{Arc, Weak},
};
use core::time::Duration;
use std::{
    panic::catch_unwind,
    sync::{Condvar, Mutex},
    thread::{self, ThreadId},
};

const RIGHT: u8 = 0;
const FORGETS_A_TOKEN_THAT_COMES_FIRST: u8 = 1;
const KNOWS_NO_TIME: u8 = 2;
const PANICS_WITHOUT_A_PARKER: u8 = 3;
const HEARS_ITS_OWN_THREAD_ONLY: u8 = 4;

/// A parker with a fault.
struct Faulty<const FAULT: u8>(Arc<(Mutex<bool>, Condvar)>);

#[derive(Clone)]
struct Waker<const FAULT: u8>(Weak<(Mutex<bool>, Condvar)>, ThreadId);

impl<const FAULT: u8> Faulty<FAULT> {
    fn new() -> Self {
        Self(Arc::default())
    }

    fn wait(&self, limit: Option<Duration>) {
        let mut token = self.0.0.lock().unwrap();
        if FAULT == FORGETS_A_TOKEN_THAT_COMES_FIRST {
            *token = false;
        }
        while !*token {
            token = match limit {
                Some(limit) if FAULT != KNOWS_NO_TIME => {
                    let (token, ended) = self.0.1.wait_timeout(token, limit).unwrap();
                    if ended.timed_out() {
                        return;
                    }
                    token
                }
                _ => self.0.1.wait(token).unwrap(),
            };
        }
        *token = false;
    }
}

impl<const FAULT: u8> Park for Faulty<FAULT> {
    type Unpark = Waker<FAULT>;

    fn park(&mut self) {
        self.wait(None);
    }

    fn park_timeout(&mut self, limit: Duration) {
        self.wait(Some(limit));
    }

    fn unparker(&self) -> Waker<FAULT> {
        Waker(Arc::downgrade(&self.0), thread::current().id())
    }
}

impl<const FAULT: u8> Unpark for Waker<FAULT> {
    fn unpark(&self) {
        let Some(inner) = self.0.upgrade() else {
            assert!(FAULT != PANICS_WITHOUT_A_PARKER, "no parker");
            return;
        };
        if FAULT == HEARS_ITS_OWN_THREAD_ONLY && thread::current().id() != self.1 {
            return;
        }
        *inner.0.lock().unwrap() = true;
        inner.1.notify_one();
    }
}

fn said<const FAULT: u8>() -> String {
    // Longer than a run without a hang takes on a busy machine.
    let kit = || park_within(Duration::from_secs(10), Faulty::<FAULT>::new);
    let panic = catch_unwind(kit).expect_err("all checks passed");
    match panic.downcast::<String>() {
        Ok(said) => *said,
        Err(panic) => String::from(*panic.downcast::<&str>().expect("a panic message")),
    }
}

#[test]
fn parker_without_a_fault_passes() {
    park_within(Duration::from_secs(600), Faulty::<RIGHT>::new);
    park_within(Duration::from_secs(600), ThreadPark::new);
}

#[test]
fn each_fault_is_found_and_named() {
    let kits: [fn() -> String; 4] = [
        said::<FORGETS_A_TOKEN_THAT_COMES_FIRST>,
        said::<KNOWS_NO_TIME>,
        said::<PANICS_WITHOUT_A_PARKER>,
        said::<HEARS_ITS_OWN_THREAD_ONLY>,
    ];
    // All at once, as most wait for the whole limit.
    let kits = kits.map(thread::spawn);
    let said = kits.map(|kit| {
        kit.join()
            .expect("a check failed, and its panic was not caught")
    });
    assert!(
        said[0].starts_with("unpark_before_park_ends_it: hung"),
        "{said:?}"
    );
    assert!(
        said[1].starts_with("park_with_limit_ends_in_time: hung"),
        "{said:?}"
    );
    assert!(said[2].starts_with("no parker"), "{said:?}");
    assert!(
        said[3].starts_with("unparks_from_other_threads_end_a_park: hung"),
        "{said:?}"
    );
}
