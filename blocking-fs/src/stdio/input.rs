//! The bytes of the standard input that were read and that no task has taken.
//!
//! 1. A task that finds no bytes sets `is_reading`, takes the buffer, and starts a thread. The
//!    thread makes one read, for as many bytes as the buffer holds, however few the task wants.
//!    Then it stores the bytes, or that there are none, and clears `is_reading`. If no thread can
//!    be started, the task clears `is_reading`, stores nothing, and returns the error. So it
//!    discards no result of a read that another task starts meanwhile.
//! 2. While `is_reading` is set, every task waits. So at most one thread waits for input, and a
//!    read whose future was dropped keeps its bytes for the next read, also for that of another
//!    handle.
//! 3. The thread is none of a pool. The end of a pool waits for its jobs, and a read of a terminal
//!    may wait for ever.
use crate::{
    budget::{or_end, poll_proceed},
    waiters::{self, Waiters, lock, poll_lock},
};
use std::{
    io::{self, ErrorKind, Read},
    mem,
    ops::Range,
    sync::Mutex,
    task::{Context, Poll, ready},
};
use sync_shim::thread;

/// The bytes that one read asks for: the usual capacity of a pipe.
const SIZE: usize = 64 * 1024;

static INPUT: Mutex<State> = Mutex::new(State {
    is_reading: false,
    buffer: Vec::new(),
    ahead: 0..0,
    read_nothing: None,
    waiters: Waiters::new(),
});

struct State {
    is_reading: bool,
    buffer: Vec<u8>,
    /// The bytes of `buffer` that no task has taken.
    ahead: Range<usize>,
    /// The result of the last read if it returned no byte: its error, or `Ok` at the end.
    read_nothing: Option<io::Result<()>>,
    waiters: Waiters,
}

/// A handle, with the key of its waker.
pub(super) struct Reader(u64);

/// A read, from before its thread is started until its end.
struct Reading {
    buffer: Vec<u8>,
    /// `None` until the thread runs.
    result: Option<io::Result<usize>>,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self(lock(&INPUT).waiters.new_key())
    }

    /// Polls for up to `room` bytes, and passes them to `take`.
    pub(super) fn poll_take(
        &self,
        cx: &mut Context<'_>,
        room: usize,
        take: impl FnOnce(&[u8]),
    ) -> Poll<io::Result<usize>> {
        let progress = ready!(poll_proceed(cx));
        if room == 0 {
            progress.made_progress();
            return Poll::Ready(Ok(0));
        }
        loop {
            let is_idle = |state: &State| !state.is_reading;
            let mut state = ready!(poll_lock(&INPUT, "standard input", cx, is_idle, |state| {
                state.waiters.slot(self.0)
            }));
            let count = state.ahead.len().min(room);
            if count > 0 {
                let start = state.ahead.start;
                state.ahead.start += count;
                take(&state.buffer[start..start + count]);
                progress.made_progress();
                return Poll::Ready(Ok(count));
            }
            if let Some(end) = state.read_nothing.take() {
                progress.made_progress();
                return Poll::Ready(end.map(|()| 0));
            }
            let reading = Reading::begin(&mut state);
            drop(state);
            let thread = thread::Builder::new().name("stdin".to_owned());
            // If this fails, it drops the read.
            or_end!(
                thread.spawn(move || reading.run()),
                progress.made_progress()
            );
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let waker = lock(&INPUT).waiters.remove(self.0);
        drop(waker);
    }
}

impl Reading {
    /// Takes the buffer. The caller drops the lock before the read.
    fn begin(state: &mut State) -> Self {
        state.is_reading = true;
        state.ahead = 0..0;
        Self {
            buffer: mem::take(&mut state.buffer),
            result: None,
        }
    }

    fn run(mut self) {
        // This stays if the code below panics.
        self.result = Some(Err(io::Error::other("the thread that reads has ended")));
        self.buffer.resize(SIZE, 0);
        let result = loop {
            match io::stdin().read(&mut self.buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        self.result = Some(result);
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let mut state = lock(&INPUT);
        state.is_reading = false;
        state.buffer = mem::take(&mut self.buffer);
        match self.result.take() {
            None => {}
            Some(Ok(len)) if len > 0 => state.ahead = 0..len,
            Some(result) => state.read_nothing = Some(result.map(drop)),
        }
        let wakers = state.waiters.take();
        drop(state);
        waiters::wake_all(wakers);
    }
}

#[cfg(test)]
mod tests;
