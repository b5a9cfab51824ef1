//! A request of a dump: from a task's entry to the answer, by the rules of [`dump`](super).
use crate::observe::task_list::Entry;
use coop_budget::{WaitsOn, Watching};
use sched_monitor::Stack;
use std::{cell::RefCell, mem, time::Duration};
use sync_shim::{
    atomic::{AtomicBool, Ordering::Relaxed},
    sync::{Arc, Condvar, Mutex},
};

/// The most stacks of one task. A task that awaits many futures at once has one for each.
const MOST_STACKS: usize = 16;

/// The stack of an operation that waits, and what it waits for, if the operation says so.
pub(super) type WaitStack = (Option<WaitsOn>, Option<Stack>);

/// The outcome of the poll for a dump.
pub(super) enum Answer {
    Ended,
    Polled {
        has_progressed: bool,
        waits: Vec<WaitStack>,
    },
}

/// The requests of one dump, and their answers.
pub(super) struct Answers {
    state: Mutex<State>,
    changed: Condvar,
    /// Whether nobody waits for the answers any more.
    is_over: AtomicBool,
}

struct State {
    /// The requests that have not ended.
    left: usize,
    /// The requests that have ended.
    ended: usize,
    /// The number of requests for which the dump waits to be left.
    awaited: usize,
    /// The answers, each with the place of its task.
    found: Vec<(usize, Answer)>,
}

impl Answers {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                left: 0,
                ended: 0,
                awaited: 0,
                found: Vec::new(),
            }),
            changed: Condvar::new(),
            is_over: AtomicBool::new(false),
        })
    }

    /// Makes a request for the task at a place of the dump.
    pub(super) fn request(answers: &Arc<Self>, place: usize) -> Request {
        answers.state.lock().left += 1;
        Request {
            answers: answers.clone(),
            place,
        }
    }

    /// Returns the number of requests that have not ended.
    pub(super) fn left(&self) -> usize {
        self.state.lock().left
    }

    /// Waits until at most `most` requests are left, or for `limit` or less. Returns how many are
    /// left, and how many have ended.
    pub(super) fn wait(&self, most: usize, limit: Duration) -> (usize, usize) {
        let mut state = self.state.lock();
        state.awaited = most;
        if state.left > most {
            state = self.changed.wait_timeout(state, limit).0;
        }
        (state.left, state.ended)
    }

    /// Ends the dump, and returns the answers. A later request has a plain poll.
    pub(super) fn finish(&self) -> Vec<(usize, Answer)> {
        // Ordering: Relaxed. A poll that misses it captures stacks for nobody.
        self.is_over.store(true, Relaxed);
        mem::take(&mut self.state.lock().found)
    }
}

/// A request of a dump, in a task's entry.
pub(crate) struct Request {
    answers: Arc<Answers>,
    /// The place of the task in the dump.
    place: usize,
}

impl Request {
    /// Runs a poll of the task under a watch, and answers with the waits in it. `run` calls its
    /// argument before the run ends, with whether the thread is still a worker, and returns whether
    /// the task has ended.
    pub(crate) fn answer<R>(
        self,
        entry: &Entry,
        run: impl FnOnce(&dyn Fn(bool)) -> (R, bool),
    ) -> R {
        /// Answers that the task has ended, if its poll panics: that of a task catches the panic,
        /// and that of a listed future does not.
        struct OnPanic<'a>(&'a Request);

        impl Drop for OnPanic<'_> {
            fn drop(&mut self) {
                let Request { answers, place } = self.0;
                answers.state.lock().found.push((*place, Answer::Ended));
            }
        }

        // Ordering: Relaxed, as in `finish`.
        let is_over = self.answers.is_over.load(Relaxed);
        let outer = (!is_over).then(Stack::here).flatten();
        let waits = RefCell::new(Vec::new());
        let on_wait = |what| {
            if is_over || waits.borrow().len() >= MOST_STACKS {
                return;
            }
            let here = || Some(Stack::here()?.within(outer.as_ref()?));
            let stack = here();
            waits.borrow_mut().push((what, stack));
        };
        let on_panic = OnPanic(&self);
        let before = entry.begin_dump();
        let (ran, has_ended, has_progressed) =
            coop_budget::watch(&on_wait, |watching: &Watching| {
                let progress = std::cell::Cell::new(false);
                let after = |is_worker: bool| {
                    // The watch misses operations of a poll that has lost its worker.
                    progress.set(watching.so_far().has_progressed || !is_worker);
                    entry.end_dump(&before, progress.get());
                };
                let (ran, has_ended) = run(&after);
                (ran, has_ended, progress.get())
            });
        mem::forget(on_panic);
        let answer = if has_ended {
            Answer::Ended
        } else {
            Answer::Polled {
                has_progressed,
                waits: waits.into_inner(),
            }
        };
        self.answers.state.lock().found.push((self.place, answer));
        ran
    }
}

/// Ends the request, with an answer or without.
impl Drop for Request {
    fn drop(&mut self) {
        let mut state = self.answers.state.lock();
        state.left -= 1;
        state.ended += 1;
        let is_awaited = state.left == state.awaited;
        drop(state);
        if is_awaited {
            self.answers.changed.notify_one();
        }
    }
}
