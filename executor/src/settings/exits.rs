//! The futures that a runtime runs at its end: [`Runtime::at_exit`].
//!
//! For these futures a runtime is *open*, *exiting* or *over*. The *owner* here is the
//! thread that drops the runtime or shuts it down.
//!
//! 1. The runtime's owner begins the exit, if there are futures. From then on spawns are refused,
//!    and the workers go on with the tasks that exist. The *exit task* runs the futures, one after
//!    another, the newest first. As spawns are refused by then, the owner does not spawn the exit
//!    task, but queues it as a task that has run already.
//! 2. The exit task closes the runtime when no future is left. It checks for a next future, and
//!    ends the exit if there is none, under one lock. So a future that is added meanwhile either
//!    runs, or is refused.
//! 3. Where the owner may wait for the runtime's end, it waits for the close, at most until its
//!    deadline. If the runtime is not closed by then, the owner closes it. Where the owner may not
//!    wait, it closes the runtime at once. With driven workers an owner without a deadline leaves
//!    the close to the exit task: the workers may be on the owner's own thread.
//! 4. The thread that closes the runtime drops the futures that are left, outside of the lock. The
//!    close cancels the exit task, and so the future that this task runs.
//! 5. A runtime to which no future was ever added has no exit: its close takes the lock once, and
//!    sets the stage to *over*. So a future that is added later, or at the same time, is dropped.
use std::{
    future::Future,
    mem,
    pin::Pin,
    time::{Duration, Instant},
};
use sync_shim::{
    atomic::Ordering::Relaxed,
    sync::{Condvar, Mutex},
};

mod at_exit;

/// A future that the runtime runs at its end.
pub(super) type Exit = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The futures of a runtime.
pub(crate) struct Exits {
    state: Mutex<State>,
    /// Notified when the exit is over.
    over: Condvar,
    /// Whether a future was ever added. If not, [`begin`](Self::begin) takes no lock. This is an
    /// atomic of std, so that the models of runtimes without such futures do not branch at its
    /// loads.
    used: std::sync::atomic::AtomicBool,
}

struct State {
    stage: Stage,
    futures: Vec<Exit>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    Exiting,
    Over,
}

impl Exits {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                stage: Stage::Open,
                futures: Vec::new(),
            }),
            over: Condvar::new(),
            used: std::sync::atomic::AtomicBool::new(false),
        }
    }

    fn is_used(&self) -> bool {
        // Ordering: Relaxed. If the call of `at_exit` happens before the owner ends the runtime,
        // the owner sees its store. Otherwise the two race. If the owner then begins no exit, the
        // close finds the future, or makes the runtime over before the future is added (rule 5).
        self.used.load(Relaxed)
    }

    /// Adds a future, or returns the future if the exit is over.
    pub(super) fn add(&self, future: Exit) -> Result<(), Exit> {
        // Ordering: Relaxed, as in `is_used`.
        self.used.store(true, Relaxed);
        let mut state = self.state.lock();
        if state.stage == Stage::Over {
            return Err(future);
        }
        state.futures.push(future);
        Ok(())
    }

    /// Begins the exit, if there are futures to run.
    pub(super) fn begin(&self) -> bool {
        if !self.is_used() {
            return false;
        }
        let mut state = self.state.lock();
        let begins = state.stage == Stage::Open && !state.futures.is_empty();
        if begins {
            state.stage = Stage::Exiting;
        }
        begins
    }

    /// Takes the newest future. If there is none, the exit is over (rule 2).
    pub(super) fn next(&self) -> Option<Exit> {
        let mut state = self.state.lock();
        let next = state.futures.pop();
        if next.is_none() {
            state.stage = Stage::Over;
        }
        next
    }

    /// Ends the exit, or keeps it from beginning. Returns the futures that are left.
    pub(super) fn end(&self) -> Vec<Exit> {
        let mut state = self.state.lock();
        let before = mem::replace(&mut state.stage, Stage::Over);
        let left = mem::take(&mut state.futures);
        drop(state);
        // The owner waits only for an exit that has begun.
        if before != Stage::Open {
            self.over.notify_all();
        }
        left
    }

    /// Waits until the exit is over, or until the deadline.
    pub(super) fn wait(&self, deadline: Option<Instant>) {
        let mut state = self.state.lock();
        while state.stage != Stage::Over {
            state = match time_until(deadline) {
                None => self.over.wait(state),
                Some(Duration::ZERO) => return,
                Some(time) => self.over.wait_timeout(state, time).0,
            };
        }
    }
}

/// Returns the time until the deadline, which is zero after it. `None` if there is no deadline.
fn time_until(deadline: Option<Instant>) -> Option<Duration> {
    deadline.map(|at| at.saturating_duration_since(sync_shim::time::now()))
}

#[cfg(all(test, not(selvedge_count)))]
mod models;
