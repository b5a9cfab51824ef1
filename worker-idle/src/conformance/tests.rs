//! Each fault makes its check fail. The message of a check that hangs begins with the check's name.
//! If the parker panics, the parker's message is kept.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use super::park_within;
use crate::park::{Park, ThreadPark};
use alloc::{
    string::String,
    sync::{Arc, Weak},
    task::Wake,
    vec::Vec,
};
use core::{task::Waker, time::Duration};
use std::{
    panic::catch_unwind,
    sync::{Condvar, Mutex},
    thread::{self, ThreadId},
};

const RIGHT: u8 = 0;
const FORGETS_AN_EARLY_TOKEN: u8 = 1;
const IGNORES_THE_LIMIT: u8 = 2;
const PANICS_WITHOUT_A_PARKER: u8 = 3;
const IGNORES_OTHER_THREADS: u8 = 4;

/// A parker with a fault.
struct Faulty<const FAULT: u8>(Arc<(Mutex<bool>, Condvar)>);

struct Wakes<const FAULT: u8>(Weak<(Mutex<bool>, Condvar)>, ThreadId);

impl<const FAULT: u8> Faulty<FAULT> {
    fn new() -> Self {
        Self(Arc::default())
    }

    fn wait(&self, limit: Option<Duration>) {
        let mut token = self.0.0.lock().unwrap();
        if FAULT == FORGETS_AN_EARLY_TOKEN {
            *token = false;
        }
        while !*token {
            token = match limit {
                Some(limit) if FAULT != IGNORES_THE_LIMIT => {
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
    fn park(&mut self) {
        self.wait(None);
    }

    fn park_timeout(&mut self, limit: Duration) {
        self.wait(Some(limit));
    }

    fn waker(&self) -> Waker {
        let wakes = Wakes::<FAULT>(Arc::downgrade(&self.0), thread::current().id());
        Waker::from(Arc::new(wakes))
    }
}

impl<const FAULT: u8> Wake for Wakes<FAULT> {
    fn wake(self: Arc<Self>) {
        let Some(inner) = self.0.upgrade() else {
            assert!(FAULT != PANICS_WITHOUT_A_PARKER, "no parker");
            return;
        };
        if FAULT == IGNORES_OTHER_THREADS && thread::current().id() != self.1 {
            return;
        }
        *inner.0.lock().unwrap() = true;
        inner.1.notify_one();
    }
}

/// An error holds the messages of the kit, none of which is the expected one.
type Found = Result<(), Vec<String>>;

/// Returns `Ok` if the kit fails with a message that begins with `what`.
fn finds<const FAULT: u8>(what: &'static str) -> Found {
    let said = |limit| {
        let kit = || park_within(limit, Faulty::<FAULT>::new);
        let panic = catch_unwind(kit).expect_err("all checks passed");
        match panic.downcast::<String>() {
            Ok(said) => *said,
            Err(panic) => String::from(*panic.downcast::<&str>().expect("a panic message")),
        }
    };
    // On a busy machine, the checks before the one that hangs may take longer than a short limit.
    let mut others = Vec::new();
    for limit in [1, 10, 100].map(Duration::from_secs) {
        match said(limit) {
            said if said.starts_with(what) => return Ok(()),
            other => others.push(other),
        }
    }
    Err(others)
}

#[test]
fn parker_without_a_fault_passes() {
    park_within(Duration::from_secs(600), Faulty::<RIGHT>::new);
    park_within(Duration::from_secs(600), ThreadPark::new);
}

#[test]
fn each_fault_is_found_and_named() {
    // The kits run at the same time, because most of them wait for the whole limit.
    let kits: [fn() -> Found; 4] = [
        || finds::<FORGETS_AN_EARLY_TOKEN>("unpark_before_park_ends_it: hung"),
        || finds::<IGNORES_THE_LIMIT>("park_with_limit_ends_in_time: hung"),
        || finds::<PANICS_WITHOUT_A_PARKER>("no parker"),
        || finds::<IGNORES_OTHER_THREADS>("unparks_from_other_threads_end_a_park: hung"),
    ];
    for kit in kits.map(thread::spawn) {
        assert_eq!(kit.join().expect("each panic is caught"), Ok(()));
    }
}
