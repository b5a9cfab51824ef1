//! Bytes that go one way through memory.
//!
//! # States
//!
//! A pipe is *open* or *closed*. Either side closes it, for ever. The writer's close ends the
//! reader's bytes after those in the pipe; the reader's close makes each write fail.
//!
//! # Rules
//!
//! 1. A side that must wait puts its waker into the pipe, in the same call that has found the pipe
//!    empty, or full.
//! 2. A call that changes what a side waits for takes out that side's waker, and returns it to be
//!    woken: bytes for the reader, room for the writer, the close for both.
//! 3. No waker is cloned, woken or dropped in here. `duplex` has a lock of its own around the pipe,
//!    and a waker's code may use the pipe: so it does these three while it does not hold the lock.
//!    `simplex` has no lock. A half of it does the three under the lock of `split`, as the half of
//!    any stream does that wakes tasks in its polls.
//!
//! The pipe's owner makes the calls exclude each other. By rules 1 and 2 no wake is lost.
use crate::ReadBuf;
use std::{
    collections::VecDeque,
    io::{self, IoSlice},
    task::Waker,
};

#[derive(Debug)]
pub(crate) struct Pipe {
    bytes: VecDeque<u8>,
    /// The most bytes at once. It is not 0.
    capacity: usize,
    is_closed: bool,
    /// The task that waits for bytes.
    reader: Option<Waker>,
    /// The task that waits for room.
    writer: Option<Waker>,
}

/// The side of a pipe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Side {
    Reader,
    Writer,
}

impl Side {
    /// Says what this side waits for, to a dump of tasks.
    pub(crate) fn awaited(self) -> &'static str {
        match self {
            Self::Reader => "bytes in a pipe in memory",
            Self::Writer => "room in a pipe in memory",
        }
    }
}

/// The result of a call, and the waker of the other side, to be woken (rule 2).
pub(crate) type Done<T> = (io::Result<T>, Option<Waker>);

impl Pipe {
    /// Creates an open pipe.
    ///
    /// # Panics
    /// If `capacity` is 0.
    #[track_caller]
    pub(crate) fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "the capacity must be greater than zero");
        Self {
            bytes: VecDeque::new(),
            capacity,
            is_closed: false,
            reader: None,
            writer: None,
        }
    }

    /// Reads what there is. Returns `None` if the reader must wait.
    pub(crate) fn read(&mut self, buf: &mut ReadBuf<'_>) -> Option<Done<()>> {
        if buf.remaining() == 0 {
            return Some((Ok(()), None));
        }
        if self.bytes.is_empty() {
            return self.is_closed.then_some((Ok(()), None));
        }
        let len = self.bytes.len().min(buf.remaining());
        let (first, second) = self.bytes.as_slices();
        let from_first = len.min(first.len());
        buf.put_slice(&first[..from_first]);
        buf.put_slice(&second[..len - from_first]);
        self.bytes.drain(..len);
        Some((Ok(()), self.writer.take()))
    }

    /// Writes as many bytes as there is room for. Returns `None` if the writer must wait.
    pub(crate) fn write<'a>(
        &mut self,
        bufs: impl Iterator<Item = &'a [u8]>,
    ) -> Option<Done<usize>> {
        if self.is_closed {
            return Some((Err(io::ErrorKind::BrokenPipe.into()), None));
        }
        let mut bufs = bufs.filter(|buf| !buf.is_empty()).peekable();
        if bufs.peek().is_none() {
            return Some((Ok(0), None));
        }
        let mut room = self.capacity - self.bytes.len();
        if room == 0 {
            return None;
        }
        let before = room;
        for buf in bufs {
            let len = buf.len().min(room);
            self.bytes.extend(&buf[..len]);
            room -= len;
        }
        Some((Ok(before - room), self.reader.take()))
    }

    /// Closes the pipe. Returns both wakers: the other side's must be woken, and the closing side's
    /// is not needed any more.
    pub(crate) fn close(&mut self) -> [Option<Waker>; 2] {
        self.is_closed = true;
        [self.reader.take(), self.writer.take()]
    }

    fn waiting(&mut self, side: Side) -> &mut Option<Waker> {
        match side {
            Side::Reader => &mut self.reader,
            Side::Writer => &mut self.writer,
        }
    }

    /// Returns whether the side has put a waker into the pipe that wakes the same task.
    pub(crate) fn has(&mut self, side: Side, waker: &Waker) -> bool {
        let waiting = self.waiting(side).as_ref();
        waiting.is_some_and(|waiting| waiting.will_wake(waker))
    }

    /// Puts a waker into the pipe, and returns the one that was there.
    pub(crate) fn wait(&mut self, side: Side, waker: Waker) -> Option<Waker> {
        self.waiting(side).replace(waker)
    }
}

/// Returns the bytes of the slices.
pub(crate) fn slices<'a>(bufs: &'a [IoSlice<'_>]) -> impl Iterator<Item = &'a [u8]> {
    bufs.iter().map(|buf| &**buf)
}
