//! The bytes on their way to a standard stream, in one queue for all handles of the stream.
//!
//! 1. A handle appends bytes to `queued`. If no job writes, it starts one, and sets `is_writing` in
//!    the same critical section.
//! 2. The job writes until it finds `queued` empty, also what tasks of another runtime append. In
//!    that critical section it clears `is_writing`. So no handle appends a byte that no job sees,
//!    and the bytes are written in the order of the appends.
//! 3. `accepted` counts all bytes that were ever appended, and `done` those that the system has
//!    taken, or that were dropped. A flush waits until `done` is what `accepted` was when the flush
//!    began. So it does not wait for bytes that come later. If the future of a flush is dropped,
//!    the handle's next flush goes on with it, unless the handle has written meanwhile. So a flush
//!    always waits for all bytes of its own handle, and not always for those of other handles.
//! 4. If a write fails, its bytes and the queued ones are dropped, as what follows a gap is of no
//!    use. `failures` counts the errors. Each handle knows how many it has seen, so every handle
//!    returns an error once.
use crate::{
    budget::poll_proceed,
    dropped, pool,
    waiters::{self, Waiters, lock, poll_lock},
};
use std::{
    io::{self, IoSlice},
    mem,
    sync::{Mutex, MutexGuard},
    task::{Context, Poll, ready},
};

/// The most bytes that wait for the next system call.
const MOST: usize = 2 * 1024 * 1024;

/// The size in bytes of the buffer that an idle queue keeps.
const KEPT: usize = 64 * 1024;

/// A standard stream.
pub(super) struct Output {
    state: Mutex<State>,
    /// Writes all bytes, and flushes.
    write: fn(&[u8]) -> io::Result<()>,
}

struct State {
    queued: Vec<u8>,
    is_writing: bool,
    accepted: u64,
    done: u64,
    failures: u64,
    /// The last error.
    error: Option<io::Error>,
    waiters: Waiters,
}

/// A handle of a stream.
pub(super) struct Writer {
    output: &'static Output,
    /// The key of the waker.
    key: u64,
    /// How many errors this handle has seen.
    failures: u64,
    /// The flush that has begun ends when `done` reaches this count.
    flush_to: Option<u64>,
}

/// The job that writes, from before it is queued until its end. The output is `None` once the job
/// has ended.
struct Job(Option<&'static Output>);

impl Output {
    pub(super) const fn new(write: fn(&[u8]) -> io::Result<()>) -> Self {
        let state = State {
            queued: Vec::new(),
            is_writing: false,
            accepted: 0,
            done: 0,
            failures: 0,
            error: None,
            waiters: Waiters::new(),
        };
        Self {
            state: Mutex::new(state),
            write,
        }
    }

    fn fail(&self, error: io::Error) {
        let mut state = lock(&self.state);
        state.queued.clear();
        state.done = state.accepted;
        state.is_writing = false;
        state.failures += 1;
        let last = state.error.replace(error);
        let wakers = state.waiters.take();
        drop(state);
        drop(last);
        waiters::wake_all(wakers);
    }
}

impl State {
    fn queue(&mut self, from: &[IoSlice<'_>]) -> usize {
        let before = self.queued.len();
        for part in from {
            let count = part.len().min(MOST - self.queued.len());
            self.queued.extend_from_slice(&part[..count]);
        }
        let count = self.queued.len() - before;
        self.accepted += count as u64;
        count
    }
}

impl Writer {
    pub(super) fn new(output: &'static Output) -> Self {
        let mut state = lock(&output.state);
        Self {
            output,
            key: state.waiters.new_key(),
            failures: state.failures,
            flush_to: None,
        }
    }

    /// Locks the state, if `is_ready` returns true for it, or there is an error that this handle
    /// has not seen.
    fn poll_until(
        &self,
        cx: &Context<'_>,
        is_ready: impl Fn(&State) -> bool,
    ) -> Poll<MutexGuard<'static, State>> {
        let is_ready = |state: &State| is_ready(state) || state.failures != self.failures;
        let what = "standard output or error";
        poll_lock(&self.output.state, what, cx, is_ready, |state| {
            state.waiters.slot(self.key)
        })
    }

    /// Returns the last error, if this handle has not seen it.
    fn new_error(&mut self, state: &State) -> io::Result<()> {
        let error = state
            .error
            .as_ref()
            .filter(|_| self.failures != state.failures);
        self.failures = state.failures;
        error.map_or(Ok(()), |error| Err(copy(error)))
    }

    pub(super) fn poll_put(
        &mut self,
        cx: &mut Context<'_>,
        from: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let output = self.output;
        let progress = ready!(poll_proceed(cx));
        let mut state = ready!(self.poll_until(cx, |state| state.queued.len() < MOST));
        progress.made_progress();
        self.new_error(&state)?;
        self.flush_to = None;
        if state.is_writing || from.iter().all(|from| from.is_empty()) {
            return Poll::Ready(Ok(state.queue(from)));
        }
        let pool = pool()?;
        let taken = state.queue(from);
        state.is_writing = true;
        drop(state); // A refused job ends inside `submit`, and its end takes the lock.
        let job = Job(Some(output));
        pool.submit(Box::new(|| job.run()));
        Poll::Ready(Ok(taken))
    }

    pub(super) fn poll_done(&mut self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        let begin = || lock(&self.output.state).accepted;
        let end = *self.flush_to.get_or_insert_with(begin);
        let state = ready!(self.poll_until(cx, |state| state.done >= end));
        self.flush_to = None;
        Poll::Ready(self.new_error(&state))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let waker = lock(&self.output.state).waiters.remove(self.key);
        drop(waker);
    }
}

impl Job {
    fn run(mut self) {
        let output = self.0.expect("the job has not ended");
        let mut bytes = Vec::new();
        loop {
            let mut state = lock(&output.state);
            state.done += bytes.len() as u64;
            bytes.clear();
            mem::swap(&mut state.queued, &mut bytes);
            let ends = bytes.is_empty();
            if ends {
                state.is_writing = false;
                state.queued.shrink_to(KEPT);
                self.0 = None;
            }
            let wakers = state.waiters.take();
            drop(state);
            waiters::wake_all(wakers);
            if ends {
                return;
            }
            if let Err(error) = (output.write)(&bytes) {
                self.0 = None;
                return output.fail(error);
            }
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(output) = self.0.take() {
            output.fail(dropped());
        }
    }
}

/// Returns an error that says the same.
fn copy(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

#[cfg(test)]
mod tests;
