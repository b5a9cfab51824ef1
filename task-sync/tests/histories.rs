//! Four to eight threads with each primitive, on real threads and under shuttle's schedules: more
//! threads than the model checker supports.
//!
//! `cargo xtask shuttle --crate task-sync` runs them.
#![cfg(not(selvedge_loom))]
use sync_shim::model;

mod scenarios;

/// Fails if a dropped reservation keeps its room.
#[test]
fn mpsc_of_four_senders_gives_each_message_once() {
    model(|| scenarios::mpsc(4, 4, 2));
}

/// Fails if the receiver skips a place that is claimed and not written.
#[test]
fn unbounded_mpsc_of_four_senders_is_in_order() {
    model(|| scenarios::mpsc_unbounded(4, 3));
}

/// Fails if a pass of wakes leaves out a receiver.
#[test]
fn broadcast_of_two_senders_reaches_four_receivers() {
    model(|| scenarios::broadcast(2, 4, 2));
}

/// Fails if a send does not wake all watchers.
#[test]
fn watch_shows_four_watchers_the_last_value() {
    model(|| scenarios::watch(4, 3));
}

/// Fails if a wait that is dropped keeps the wake that it was given.
#[test]
fn mutex_of_five_threads_has_one_owner() {
    model(|| scenarios::mutex(5, 3));
}

/// Fails if the last reader does not wake a writer.
#[test]
fn rwlock_of_five_threads_keeps_writers_alone() {
    model(|| scenarios::rwlock(5, 3));
}

/// Fails if a wait that is dropped does not hand its permits on.
#[test]
fn semaphore_of_six_threads_keeps_its_permits() {
    model(|| scenarios::semaphore(3, 6, 3));
}

/// Fails if a notification is lost with a dropped wait.
#[test]
fn notifications_of_three_threads_end_all_waits() {
    model(|| scenarios::notify(3, 2));
}

/// Fails if the pass misses a wait that was made before it.
#[test]
fn notify_waiters_ends_the_waits_of_six_threads() {
    model(|| scenarios::notify_waiters(6));
}

/// Fails if the next round begins before all of this one are released.
#[test]
fn barrier_of_four_threads_has_one_leader_a_round() {
    model(|| scenarios::barrier(4, 3));
}

/// Fails if a function that fails does not wake the next caller.
#[test]
fn once_cell_of_five_threads_is_made_once() {
    model(|| scenarios::once(5));
}
