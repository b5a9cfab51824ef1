//! Readers and writers that follow a script, and ways to poll.
#![allow(dead_code)]
use std::{
    collections::VecDeque,
    future::Future,
    io::{self, IoSlice},
    pin::{Pin, pin},
    task::{Context, Poll, Waker, ready},
};
use task_io::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};

/// The next step of a reader.
#[derive(Debug, Clone)]
pub enum Reads {
    /// It has these bytes.
    Bytes(Vec<u8>),
    /// It waits once. The task is woken at once.
    Wait,
    /// It fails once.
    Fail(io::ErrorKind),
}

/// A reader that follows a script, and then ends.
#[derive(Debug, Clone, Default)]
pub struct Reader {
    pub script: VecDeque<Reads>,
}

impl Reader {
    pub fn new(script: impl IntoIterator<Item = Reads>) -> Self {
        Self {
            script: script.into_iter().collect(),
        }
    }

    /// Makes a reader that waits before each of the chunks, and before the end.
    pub fn waiting<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut script = VecDeque::new();
        for chunk in chunks {
            script.extend([Reads::Wait, Reads::Bytes(chunk.to_vec())]);
        }
        script.push_back(Reads::Wait);
        Self { script }
    }

    /// Returns all bytes that are left.
    pub fn rest(&self) -> Vec<u8> {
        let mut rest = Vec::new();
        for step in &self.script {
            if let Reads::Bytes(bytes) = step {
                rest.extend(bytes);
            }
        }
        rest
    }
}

impl AsyncRead for Reader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buf.remaining() > 0 {
            let bytes = ready!(self.as_mut().poll_fill_buf(cx))?;
            let len = bytes.len().min(buf.remaining());
            buf.put_slice(&bytes[..len]);
            self.consume(len);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncBufRead for Reader {
    fn poll_fill_buf(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        while matches!(self.script.front(), Some(Reads::Bytes(bytes)) if bytes.is_empty()) {
            self.script.pop_front();
        }
        match self.script.front() {
            Some(Reads::Wait) => {
                self.script.pop_front();
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Some(&Reads::Fail(kind)) => {
                self.script.pop_front();
                Poll::Ready(Err(kind.into()))
            }
            _ => match self.get_mut().script.front() {
                Some(Reads::Bytes(bytes)) => Poll::Ready(Ok(bytes)),
                _ => Poll::Ready(Ok(&[])),
            },
        }
    }

    fn consume(mut self: Pin<&mut Self>, amt: usize) {
        if amt == 0 {
            return;
        }
        let Some(Reads::Bytes(bytes)) = self.script.front_mut() else {
            panic!("no bytes were returned");
        };
        bytes.drain(..amt);
    }
}

/// The next step of a writer.
#[derive(Debug, Clone)]
pub enum Writes {
    /// It takes at most so many bytes.
    Take(usize),
    /// It waits once. The task is woken at once.
    Wait,
    /// It fails once.
    Fail(io::ErrorKind),
}

/// A writer that follows a script in its writes, flushes and shutdowns, and then takes everything.
#[derive(Debug, Clone, Default)]
pub struct Writer {
    pub script: VecDeque<Writes>,
    pub is_vectored: bool,
    /// All bytes that were written, and how many of them were flushed.
    pub written: Vec<u8>,
    pub flushed: usize,
    pub is_shut_down: bool,
}

impl Writer {
    pub fn new(script: impl IntoIterator<Item = Writes>) -> Self {
        Self {
            script: script.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Makes a writer that waits before each write of at most `len` bytes, for a long while.
    pub fn waiting(len: usize) -> Self {
        Self::new((0..1_000).flat_map(|_| [Writes::Wait, Writes::Take(len)]))
    }

    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match self.script.pop_front() {
            Some(Writes::Wait) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Some(Writes::Fail(kind)) => Poll::Ready(Err(kind.into())),
            Some(Writes::Take(len)) => Poll::Ready(Ok(len)),
            None => Poll::Ready(Ok(usize::MAX)),
        }
    }
}

impl AsyncWrite for Writer {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        assert!(!self.is_shut_down);
        let len = ready!(self.poll_step(cx))?.min(buf.len());
        self.written.extend(&buf[..len]);
        Poll::Ready(Ok(len))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_step(cx))?;
        self.flushed = self.written.len();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_step(cx))?;
        self.flushed = self.written.len();
        self.is_shut_down = true;
        Poll::Ready(Ok(()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.is_vectored {
            let all: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
            self.poll_write(cx, &all)
        } else {
            let first = bufs.iter().find(|buf| !buf.is_empty());
            let first = first.map_or(&[][..], |buf| buf);
            self.as_mut().poll_write(cx, first)
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.is_vectored
    }
}

/// Polls a future until it is ready. No waker is needed: a script's waits end by themselves.
pub fn finish<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    for _ in 0..1_000_000 {
        if let Poll::Ready(output) = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            return output;
        }
    }
    panic!("the future waits for ever");
}

/// Polls a future until it has waited `waits` times, and drops it then. Returns its output if it
/// was ready before.
pub fn cancel_after<F: Future>(waits: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    for _ in 0..waits {
        if let Poll::Ready(output) = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            return Some(output);
        }
    }
    None
}

/// Calls `test` with 0 waits, 1, and so on, until a call says that the future was ready before.
pub fn at_each_wait(mut test: impl FnMut(usize) -> bool) {
    let mut waits = 0;
    while !test(waits) {
        waits += 1;
        assert!(waits < 1_000, "the future waits for ever");
    }
    assert!(waits > 1, "the future does not wait");
}
