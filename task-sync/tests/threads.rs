//! Real threads with each primitive, for long: `cargo xtask soak --crate task-sync`.
//!
//! `SELVEDGE_ITEMS=20000000` makes the tests run long. `SELVEDGE_SEED` changes the numbers of
//! threads, and the channels' room.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]

mod scenarios;

fn number(name: &str, otherwise: u64) -> u64 {
    let said = std::env::var(name).ok();
    said.map_or(otherwise, |n| n.parse().expect("the variable is a number"))
}

/// Returns a number of threads, from 2 to 8, and the operations of each.
fn shares() -> (u64, u64) {
    let threads = 2 + number("SELVEDGE_SEED", 1) % 7;
    (threads, number("SELVEDGE_ITEMS", 40_000).div_ceil(threads))
}

#[test]
fn mpsc_gives_each_message_once_and_in_order() {
    let (senders, each) = shares();
    scenarios::mpsc(senders, each, 1 << (each % 6));
}

#[test]
fn unbounded_mpsc_gives_each_message_once() {
    let (senders, each) = shares();
    // In parts, to bound the memory.
    for _ in 0..each.div_ceil(10_000) {
        scenarios::mpsc_unbounded(senders, each.min(10_000));
    }
}

#[test]
fn broadcast_reaches_all_receivers() {
    let (receivers, each) = shares();
    for _ in 0..each.div_ceil(4_096) {
        scenarios::broadcast(2, receivers, each.min(2_048));
    }
}

#[test]
fn watch_shows_the_last_value() {
    let (watchers, each) = shares();
    scenarios::watch(watchers, each);
}

#[test]
fn mutex_has_one_owner() {
    let (threads, each) = shares();
    scenarios::mutex(threads, each);
}

#[test]
fn rwlock_keeps_writers_alone() {
    let (threads, each) = shares();
    scenarios::rwlock(threads, each);
}

#[test]
fn semaphore_keeps_its_permits() {
    let (threads, each) = shares();
    scenarios::semaphore(3, threads, each);
}

#[test]
fn notifications_end_all_waits() {
    let (pairs, each) = shares();
    scenarios::notify(pairs, each);
}

#[test]
fn waits_end_with_notify_waiters() {
    let (threads, each) = shares();
    for _ in 0..each.div_ceil(1_000) {
        scenarios::notify_waiters(threads);
    }
}

#[test]
fn barrier_has_one_leader_a_round() {
    let (threads, each) = shares();
    scenarios::barrier(threads, each.div_ceil(8));
}

#[test]
fn once_cells_are_made_once() {
    let (threads, each) = shares();
    for _ in 0..each.div_ceil(1_000) {
        scenarios::once(threads);
    }
}
