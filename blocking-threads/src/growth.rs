//! When a pool whose threads are all busy starts more of them: after jobs have waited.
//!
//! Nobody can tell by a job whether it will block. So the pool looks at what became of its threads:
//! jobs that don't block are taken one after the other, and threads in jobs that block take none.
//! It takes time to see that, and a thread to look, as all others may be blocked: the *watcher*,
//! which takes no job meanwhile.
//!
//! 1. The submission that makes the pool short starts the watcher (rule 2 of `pool.rs`), so
//!    submissions and busy threads look at no clock.
//! 2. The watcher looks each [`grow_after`](crate::Settings::grow_after), first after that time, so
//!    that one watcher is started in that time at most.
//! 3. The pool is *stuck* if the threads that were done with a job have since the last look taken
//!    so few of the queue that it lasts for more than [`PATIENCE`] such looks. The first job of a
//!    thread doesn't count, or a thread's start would pass for a job's end.
//! 4. At a look that finds the pool stuck the watcher starts a thread, at the next such look two,
//!    then four, and so on. So a queue of `n` jobs that all block has its threads after log₂ `n`
//!    looks and the starts of `n` threads. A look that finds it not stuck begins again with one.
//! 5. While a ready thread has yet to take its job, processors are scarce rather than threads. So
//!    such looks start none, but for one of [`PATIENCE`]: the thread may wait for a job that is
//!    queued, in a hook.
//! 6. At a look that finds no more than one job without a ready thread the watcher becomes a ready
//!    thread, and takes it. So the last job has a thread, too.
//!
//! So no job waits for ever for a thread that blocks. If the pool is short, it has a watcher (rule
//! 2 of `pool.rs`). At each look that finds it short, either threads are started, or the first jobs
//! of the queue were taken since the last: a job is behind fewer each time. The exception is where
//! no thread can be started, as before; the watcher tries again at its next look.
//!
//! The model's clock stands still. So there a look may come at any time.
use crate::{Job, Pool, pool::State, shared::Keep};
use sync_shim::{sync::MutexGuard, thread};

/// Looks that a queue may last at the rate of the last one.
const PATIENCE: usize = if MODELLED { 1 } else { 16 };

const MODELLED: bool = cfg!(any(selvedge_loom, selvedge_shuttle));

impl<J> State<J> {
    /// Whether the ready threads and the watcher are enough for the jobs.
    fn is_covered(&self) -> bool {
        self.wanted() <= self.ready + 1
    }

    /// Rule 3.
    fn is_stuck(&self) -> bool {
        self.queue.len() > self.taken.saturating_mul(PATIENCE)
    }
}

impl<J: Job> Pool<J> {
    /// What the watcher does until it is a ready thread.
    pub(crate) fn watch<'a>(
        this: &'a impl Keep<J>,
        mut state: MutexGuard<'a, State<J>>,
    ) -> MutexGuard<'a, State<J>> {
        let (mut step, mut late) = (1, 0);
        loop {
            state.taken = 0;
            if !(state.closed && state.is_covered()) {
                state = this.until_next_look(state);
            }
            if state.is_covered() {
                break;
            }
            if !state.is_stuck() {
                (step, late) = (1, 0);
            } else if state.ready > 0 && late < PATIENCE {
                late += 1;
            } else {
                state = Self::grow(this, state, step);
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
            return self.state.lock();
        }
        self.looks.wait_timeout(state, self.settings.grow_after).0
    }

    /// Starts up to `most` threads, as long as the pool is stuck. Not under one lock: a start
    /// takes long.
    fn grow<'a>(
        this: &'a impl Keep<J>,
        mut state: MutexGuard<'a, State<J>>,
        most: usize,
    ) -> MutexGuard<'a, State<J>> {
        for _ in 0..most {
            if state.is_covered()
                || !state.is_stuck()
                || Self::add(this, &mut state, &this.settings.name).is_err()
            {
                break;
            }
            drop(state);
            state = this.state.lock();
        }
        state
    }
}

#[cfg(test)]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
