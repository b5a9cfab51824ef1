//! Growth: the watcher starts more threads once jobs have waited.
//!
//! A submitter cannot know whether a job will block. So the pool observes its threads: threads
//! whose jobs do not block take one job after another, and threads in blocked jobs take none. The
//! observation takes time, and a thread of its own, as all others may be blocked. That thread is
//! the *watcher* (see the states in `pool.rs`). It runs no job while it watches.
//!
//! # States
//!
//! The watcher makes a *check* each [`grow_after`](crate::Settings::grow_after), its *interval*. A
//! check finds the pool in one of these states:
//!
//! | state | condition | the watcher |
//! |---|---|---|
//! | *covered* | there is at most one more wanted job than ready threads | becomes a ready thread |
//! | *moving* | at the present rate (rule 3) the queue is empty after at most [`PATIENCE`] intervals | starts no thread |
//! | *stuck, starved* | stuck, and a ready thread has yet to take its job | starts no thread, at most [`PATIENCE`] checks in a row |
//! | *stuck* | the queue lasts for more than [`PATIENCE`] intervals | starts threads |
//!
//! # Rules
//!
//! 1. A submission that leaves the pool short, and starts no ready thread, starts the watcher
//!    (rule 2 of `pool.rs`). So submissions and busy threads read no clock.
//! 2. The watcher of an open pool makes its first check after one interval. There is at most one
//!    watcher at a time, so at most one is started in that interval.
//! 3. The rate is the number of capped jobs that threads took since the last check, each right
//!    after another job. The first job of a thread does not count, as no job ended before it.
//! 4. A check that finds the pool stuck starts one thread, the next such check two, then four, and
//!    so on. So a queue of `n` jobs that all block gets its `n` threads after log₂ `n` checks, plus
//!    the time that the starts of `n` threads take. After a check that finds the pool moving, the
//!    next start is of one thread again.
//! 5. While a ready thread has yet to take its job, the system lacks CPUs rather than threads. So
//!    a check that finds such a thread starts no other. After [`PATIENCE`] such checks in a row,
//!    the next one starts threads nevertheless, as the ready thread may wait in a hook for a queued
//!    job.
//! 6. The watcher of a covered pool becomes a ready thread. If there is one more wanted job than
//!    there are other ready threads, the former watcher takes a job.
//!
//! # Why no job waits forever for a thread that blocks
//!
//! 1. A pool that is short has a watcher (rule 2 of `pool.rs`).
//! 2. If a check finds the pool not covered and moving, threads have taken jobs from the front of
//!    the queue since the last check. Of [`PATIENCE`] + 1 checks in a row that find the pool stuck,
//!    one starts threads. So the number of jobs ahead of a waiting job decreases.
//! 3. If no thread can be started, the watcher tries again at its next check.
//!
//! In a model no time passes, so there a check may happen at any moment.
use crate::{Job, Pool, pool::State};
use sync_shim::{panics::contain, sync::MutexGuard, thread};

/// The number of intervals that a queue may last at the present rate. If the queue lasts longer,
/// the pool is stuck.
const PATIENCE: usize = if MODELLED { 1 } else { 16 };

const MODELLED: bool = cfg!(any(selvedge_loom, selvedge_shuttle));

impl<J> State<J> {
    /// Returns whether the ready threads and the watcher suffice for the wanted jobs.
    fn is_covered(&self) -> bool {
        self.wanted() <= self.ready + 1
    }

    /// Returns whether the queue lasts for too many intervals at the present rate (rule 3).
    fn is_stuck(&self) -> bool {
        self.queue.len() > self.taken.saturating_mul(PATIENCE)
    }
}

impl<J: Job> Pool<J> {
    /// Runs the watcher until it becomes a ready thread.
    pub(crate) fn watch<'a>(
        &'a self,
        mut state: MutexGuard<'a, State<J>>,
    ) -> MutexGuard<'a, State<J>> {
        let (mut step, mut late) = (1, 0);
        loop {
            state.taken = 0;
            if !(state.closed && state.is_covered()) {
                state = self.until_next_look(state);
            }
            if state.is_covered() {
                break;
            }
            if !state.is_stuck() {
                (step, late) = (1, 0);
            } else if state.ready > 0 && late < PATIENCE {
                late += 1;
            } else {
                state = self.grow(state, step);
                (step, late) = (step.saturating_mul(2), 0);
            }
        }
        state.watched = false;
        state.ready += 1;
        state
    }

    fn until_next_look<'a>(&'a self, state: MutexGuard<'a, State<J>>) -> MutexGuard<'a, State<J>> {
        if MODELLED {
            drop(state);
            thread::yield_now();
            return self.state().lock();
        }
        self.looks()
            .wait_timeout(state, self.settings().grow_after)
            .0
    }

    /// Starts up to `most` threads while the pool is stuck. Unlocks after each start, so that other
    /// threads need not wait for all the starts.
    fn grow<'a>(
        &'a self,
        mut state: MutexGuard<'a, State<J>>,
        most: usize,
    ) -> MutexGuard<'a, State<J>> {
        for _ in 0..most {
            if state.is_covered() || !state.is_stuck() {
                break;
            }
            let added = self.add(&mut state, &self.settings().name);
            let failed = added.is_err();
            drop(state);
            contain(|| drop(added)); // Rule 9 of `pool.rs`.
            state = self.state().lock();
            if failed {
                break;
            }
        }
        state
    }
}

#[cfg(test)]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
