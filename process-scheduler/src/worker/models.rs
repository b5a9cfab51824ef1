//! Models of the queues around the processes: a submission against a worker that waits or leaves
//! its search, the deque under the scheduler, and a shutdown against a sender. Two models run the
//! workers themselves. The others use the crate's own cores, the queues and the idle protocol as
//! the worker does, in small.
use super::{RunSlice, Runnable, Shared as SchedulerShared, Worker, WorkerContext, submit};
use crate::{
    ExitReason, Handle,
    any_cell::AnyCell,
    cell::models::spawn,
    core::{ProcessCore, models::send},
    lane::{Mailbox, Taken},
    shared::models::with_parks,
    state::{Phase, Wait},
};
use queue_global::ValueInjector;
use queue_spmc::{Steal, deque::Worker as Deque};
use sync_shim::{Model, model, model_must_fail, sync::Arc, thread};
use worker_idle::{
    Idle, Watch,
    park::{Park, ThreadPark},
};

/// Runs processes of a scheduler without threads until none is ready.
pub(crate) fn run_ready(shared: &SchedulerShared) {
    while run_next(shared) {}
}

/// Runs the next process of a scheduler without threads. False if none is ready.
pub(crate) fn run_next(shared: &SchedulerShared) -> bool {
    let Some(runnable) = shared.injector.pop() else {
        return false;
    };
    let mut slice = RunSlice {
        steps_left: shared.config.step_budget,
        messages: shared.config.messages,
        counters: &shared.counters.workers[0],
    };
    if let Some(left) = runnable.0.run(&mut slice) {
        shared.injector.requeue(left);
    }
    true
}

struct Token;

type Cell = ProcessCore<u32, u32, Token>;

/// Suspends a process that the caller runs, and that has no event.
fn suspend(core: &Cell, token: Token) {
    // SAFETY: the caller runs the process, and keeps its core.
    assert!(unsafe { ProcessCore::suspend(core, token, Wait::Idle) }.is_none());
}

fn waiting() -> Cell {
    let core = Cell::new(Mailbox::Unbounded);
    core.state.begin();
    suspend(&core, Token);
    core
}

/// A sender wakes an idle process, pushes its token to the injector and notifies, while the only
/// worker goes to sleep as `Worker::wait` does. The process must run.
///
/// Fails if a worker checks the injector only before it announces its sleep.
#[test]
fn submit_against_park_is_run() {
    model(|| {
        struct Shared {
            cell: Cell,
            injector: ValueInjector<Token>,
            idle: Idle,
        }
        let shared = Arc::new(Shared {
            cell: waiting(),
            injector: ValueInjector::new(),
            idle: Idle::new(1),
        });
        let mut park = ThreadPark::new();
        let waker = park.waker();
        let sender = {
            let shared = shared.clone();
            thread::spawn(move || {
                let token = send(&shared.cell, 7).unwrap();
                shared.injector.requeue(token.unwrap());
                if shared.idle.notify().is_some() {
                    waker.wake_by_ref();
                }
            })
        };
        let mut searching = false;
        let _token = loop {
            if let Some(token) = shared.injector.pop() {
                break token;
            }
            shared.idle.sleep(0, searching);
            searching = true;
            if shared.injector.is_empty() {
                // A worker that is chosen before it parks may not see the token yet. So it waits
                // for the notification, and then pops again.
                while !shared.idle.was_notified(0) {
                    park.park();
                }
            } else {
                shared.idle.wake_self(0);
            }
        };
        shared.cell.state.begin();
        let mut taken = Taken::default();
        shared.cell.messages.take(&mut taken);
        assert_eq!(taken.next(), Some(7));
        sender.join().unwrap();
    });
}

/// Makes a ready process that ends when a worker runs it.
fn ending(handle: &Handle) -> Runnable {
    let process = spawn(handle, None);
    process.kill(ExitReason::Killed, true);
    Runnable(process)
}

/// A thread submits a process while the only worker finds nothing and waits: the process runs.
///
/// Fails if the notification of `Shared::notify` or the sleep of `Worker::wait` has no fence, or if
/// `wait` does not check the injector after it has announced its sleep.
#[test]
fn submit_racing_the_wait_of_the_only_worker_is_run() {
    model(|| {
        let park = ThreadPark::new();
        let handle = with_parks(std::slice::from_ref(&park));
        let process = ending(&handle);
        let submitter = {
            let shared = handle.shared.clone();
            thread::spawn(move || submit(&shared, process))
        };
        let context = WorkerContext::new(handle.shared.clone(), 0, Deque::new());
        let mut worker = Worker::new(&context, Box::new(park));
        while handle.shared.live() > 0 {
            match worker.find() {
                Some(runnable) => worker.serve(runnable),
                None => worker.wait(),
            }
        }
        submitter.join().unwrap();
    });
}

/// The only searcher has found a process and leaves its search, while a thread submits another
/// process. A second worker sleeps. The searcher or the submitter wakes it.
///
/// Fails if `stop_searching` in `Worker::serve` or the notification of `Shared::notify` has no
/// fence, or if `serve` does not check for work for another worker.
#[test]
fn submit_racing_the_last_searcher_wakes_a_sleeper() {
    model(|| {
        let parks = [ThreadPark::new(), ThreadPark::new()];
        let handle = with_parks(&parks);
        let shared = &handle.shared;
        let [found, other] = [(); 2].map(|()| ending(&handle));
        let [park, _] = parks;
        let context = WorkerContext::new(handle.shared.clone(), 0, Deque::new());
        let mut worker = Worker::new(&context, Box::new(park));
        shared.idle.sleep(1, false);
        worker.searching = shared.idle.try_search();
        assert!(worker.searching);
        let submitter = {
            let shared = shared.clone();
            thread::spawn(move || submit(&shared, other))
        };
        worker.serve(found);
        submitter.join().unwrap();
        assert!(shared.idle.was_notified(1), "a process, and nobody woken");
        // A process and its scheduler refer to each other until the process ends.
        run_ready(shared);
    });
}

type Ready = (usize, Token);

/// Sends to an idle process, and pushes its token to the deque.
fn wake(cells: &[Cell], deque: &mut Deque<Ready>, i: usize) {
    let token = send(&cells[i], 7).unwrap();
    deque.push((i, token.unwrap()));
}

/// Steps a process. Returns the number of its messages.
fn run(cells: &[Cell], (i, token): Ready) -> usize {
    cells[i].state.begin();
    let mut taken = Taken::default();
    cells[i].messages.take(&mut taken);
    let messages = taken.count();
    suspend(&cells[i], token);
    messages
}

/// The owner pops, and a thief steals: one of the two gets each ready process, which steps once. If
/// `grows`, the owner wakes one more process meanwhile, for which the deque must grow.
fn pops_against_a_steal(grows: bool) {
    let cells: Arc<Vec<Cell>> = Arc::new((0..3).map(|_| waiting()).collect());
    let mut deque = Deque::with_capacity(2);
    wake(&cells, &mut deque, 0);
    wake(&cells, &mut deque, 1);
    let stealer = deque.stealer();
    let thief = {
        let cells = cells.clone();
        thread::spawn(move || match stealer.steal() {
            Steal::Success { first, .. } => run(&cells, first),
            _ => 0,
        })
    };
    if grows {
        wake(&cells, &mut deque, 2);
    }
    let mut steps = 0;
    while let Some(ready) = deque.pop() {
        steps += run(&cells, ready);
    }
    steps += thief.join().unwrap();
    assert_eq!(steps, if grows { 3 } else { 2 });
}

#[test]
fn pops_against_steal_run_each_process_once() {
    Model::new()
        .whole_fences()
        .check(|| pops_against_a_steal(false));
}

/// The model has a bound, because it does not finish without one.
#[test]
fn full_pops_against_steal_of_a_deque_that_grows() {
    Model::new().bound(2).check(|| pops_against_a_steal(true));
}

/// A shutdown kills an idle process for good, while a sender sends. One of the two threads gets the
/// token. The end of the process returns the message, or the sender gets it back.
#[test]
fn shutdown_against_send_ends_the_process_once() {
    model(|| {
        let cell = Arc::new(waiting());
        let sender = {
            let cell = cell.clone();
            thread::spawn(move || match send(&cell, 7) {
                Ok(token) => (true, token),
                Err(_) => (false, None),
            })
        };
        // This is the kill at the deadline. This thread gets the token, unless the sender has it.
        let (sent, token) = match cell.kill(true) {
            Some(_token) => {
                cell.state.begin();
                assert!(cell.state.is_final());
                let (_, left) = cell.end();
                let (sent, token) = sender.join().unwrap();
                assert!(token.is_none(), "two tokens");
                assert_eq!(sent, left.count() == 1);
                return;
            }
            None => sender.join().unwrap(),
        };
        assert!(sent && token.is_some(), "no token");
        cell.state.begin();
        assert!(cell.state.is_final());
        let (_, left) = cell.end();
        assert_eq!(left.count(), 1);
        assert_eq!(cell.state.phase(), Phase::Done);
    });
}

/// An owner fills its empty deque, and notifies only if it sees no watcher, while another worker
/// goes to sleep as `Worker::wait` does. The other worker leaves the last process to the owner, and
/// looks again later: it is notified, or it watches.
fn fill_against_sleep(owner_requests: bool, sleeper_requests: bool) {
    let idle = Arc::new(Idle::new(2));
    let mut deque = Deque::new();
    let stealer = deque.stealer();
    let sleeper = {
        let idle = idle.clone();
        thread::spawn(move || {
            idle.sleep(1, false);
            assert!(stealer.len() < 2);
            if sleeper_requests && !stealer.is_empty() {
                idle.want_watcher();
            }
            let state = std::cell::Cell::default();
            let watch = Watch::begin(&idle, 1, &state);
            // The worker sleeps from now on.
            std::mem::forget(watch);
        })
    };
    deque.push(Token);
    if !idle.is_watched() {
        if owner_requests {
            idle.want_watcher();
        }
        idle.notify();
    }
    sleeper.join().unwrap();
    assert!(idle.is_watched() || idle.was_notified(1), "nobody looks");
}

#[test]
fn last_process_of_a_deque_is_watched() {
    model(|| fill_against_sleep(true, true));
}

/// If neither worker requests a watcher, a push just before the sleep is forgotten.
#[test]
fn last_process_without_a_request_is_forgotten() {
    model_must_fail("nobody looks", || fill_against_sleep(false, false));
}
