//! Models of the count of live processes.
use super::*;
use crate::{Handle, cell::models::spawn};
use queue_spmc::deque::Worker as Deque;
use sync_shim::{cell::UnsafeCell, model, thread};
use worker_idle::park::{Park, ThreadPark};

/// Makes the shared part of a scheduler whose only worker has no thread, so that it runs nothing.
pub(crate) fn without_threads() -> Handle {
    with_relay(None)
}

/// Makes the same with a relay.
pub(crate) fn with_relay(relay: Option<Arc<dyn Relay>>) -> Handle {
    of(&[ThreadPark::new()], relay)
}

/// Makes the same with a worker for each parker.
pub(crate) fn with_parks(parks: &[ThreadPark]) -> Handle {
    of(parks, None)
}

fn of(parks: &[ThreadPark], relay: Option<Arc<dyn Relay>>) -> Handle {
    let stealers = parks.iter().map(|_| Deque::new().stealer()).collect();
    let wakers = parks.iter().map(Park::waker).collect();
    let shared = Arc::new(Shared::new(Config::default(), stealers, wakers));
    if let Some(relay) = relay {
        *shared.relay.write().unwrap() = Some(relay);
    }
    Handle { shared }
}

/// Ends all processes of a scheduler without threads. A process and its scheduler refer to each
/// other, so a process that did not end would leak both.
#[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
pub(crate) fn end_all(handle: &Handle) {
    handle.shared.close();
    handle.shared.end_without_a_thread();
    crate::worker::models::run_ready(&handle.shared);
    assert_eq!(handle.shared.live(), 0);
}

/// Does the first part of `close`: refuses spawns, and cancels no process yet.
#[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
pub(crate) fn begin_close(shared: &Shared) {
    // Ordering: Relaxed, as in `close`.
    shared.is_closed.store(true, Relaxed);
    shared.registry.close();
}

/// A fact that a process's step writes, without an atomic.
struct Done(UnsafeCell<bool>);

// SAFETY: the model fails if two threads touch the cell at a time.
unsafe impl Sync for Done {}

/// A process ends on a worker. A thread that finds no live process sees the writes of the process's
/// steps.
///
/// Fails if `ended` or `live` is Relaxed.
#[test]
fn live_of_zero_shows_what_the_process_did() {
    model(|| {
        let shared = without_threads().shared;
        let done = Arc::new(Done(UnsafeCell::new(false)));
        assert!(shared.begin());
        let worker = {
            let (shared, done) = (shared.clone(), done.clone());
            thread::spawn(move || {
                // SAFETY: the worker alone writes the cell, and the model reads it after the end.
                done.0.with_mut(|done| unsafe { *done = true });
                shared.ended();
            })
        };
        if shared.live() == 0 {
            // SAFETY: the process has ended.
            assert!(done.0.with(|done| unsafe { *done }));
        }
        worker.join().unwrap();
    });
}

/// The last process ends on a worker while another worker begins a shutdown without a thread: one
/// of the two stops the workers.
///
/// Fails if either read-modify-write of `gone` is Relaxed, if that of `ended` is only a Release, or
/// if `stop_after_the_last_end` only loads `gone`.
#[test]
fn last_end_against_a_shutdown_without_a_thread_stops() {
    model(|| {
        let shared = without_threads().shared;
        assert!(shared.begin());
        let worker = {
            let shared = shared.clone();
            thread::spawn(move || shared.ended())
        };
        // Ordering: Relaxed, as in `close`.
        shared.is_closed.store(true, Relaxed);
        shared.stop_after_the_last_end();
        worker.join().unwrap();
        // Ordering: Relaxed, the join orders it.
        assert!(shared.stop.load(Relaxed), "the workers go on");
    });
}

/// A shutdown queues the token of a process that it has killed, and stops the workers. A worker
/// that sees the stop sees the token too.
///
/// Fails if the store of `stop_workers` or the load of `take_left` is Relaxed.
#[test]
fn process_queued_before_the_stop_is_run_after_it() {
    model(|| {
        let handle = without_threads();
        let process = spawn(&handle, None);
        let pid = process.own_pid();
        let worker = {
            let shared = handle.shared.clone();
            thread::spawn(move || {
                // Ordering: Relaxed, as in `Worker::run`.
                let has_stopped = shared.stop.load(Relaxed);
                let left = shared.take_left();
                assert!(left.is_some() || !has_stopped, "nobody ends the process");
                left.is_some()
            })
        };
        handle.shared.injector.requeue(Runnable(process));
        handle.shared.stop_workers();
        let is_taken = worker.join().unwrap();
        assert_ne!(handle.shared.take_left().is_some(), is_taken);
        // The cell and the scheduler refer to each other.
        handle.registry().remove(pid);
    });
}
