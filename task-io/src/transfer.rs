//! The copy of one reader's bytes to one writer, by a buffer.
//!
//! # The loop
//!
//! While there is room in the buffer, a round reads. Then it writes what the buffer has. When the
//! buffer is empty and the reader waits, the loop flushes the writer and waits, too. When the
//! writer waits, the loop first reads until the buffer is full or the reader waits, so that the
//! next write is long. It waits only after the poll of the reader, of the writer, or of a flush was
//! `Pending`, which has registered the task's waker.
use crate::{AsyncRead, AsyncWrite, ReadBuf, coop::Rounds, write::write_zero};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

/// A buffer between a reader and a writer.
#[derive(Debug)]
pub(crate) struct Transfer {
    buf: Box<[u8]>,
    /// The bytes in `buf[start..end]` were read and not yet written.
    start: usize,
    end: usize,
    /// Whether the reader has ended.
    has_ended: bool,
    /// Whether bytes were written since the last flush.
    must_flush: bool,
    /// How many bytes were written in all.
    written: u64,
}

impl Transfer {
    /// Makes a transfer by a buffer of `capacity` bytes.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            buf: vec![0; capacity].into_boxed_slice(),
            start: 0,
            end: 0,
            has_ended: false,
            must_flush: false,
            written: 0,
        }
    }

    /// Copies until the reader ends, flushes, and returns how many bytes were copied.
    pub(crate) fn poll<R: AsyncRead + ?Sized, W: AsyncWrite + ?Sized>(
        &mut self,
        cx: &mut Context<'_>,
        mut reader: Pin<&mut R>,
        mut writer: Pin<&mut W>,
    ) -> Poll<io::Result<u64>> {
        let mut rounds = Rounds::new();
        loop {
            ready!(rounds.poll_next(cx));
            let read = self.poll_read(cx, reader.as_mut())?;
            if self.start < self.end {
                if self.poll_write(cx, writer.as_mut())?.is_pending() {
                    // A read that was `Pending` has the waker already.
                    let mut read = read;
                    while read.is_ready() && self.has_room() {
                        ready!(rounds.poll_next(cx));
                        read = self.poll_read(cx, reader.as_mut())?;
                    }
                    return Poll::Pending;
                }
            } else {
                if self.must_flush && (self.has_ended || read.is_pending()) {
                    ready!(writer.as_mut().poll_flush(cx))?;
                    self.must_flush = false;
                }
                if self.has_ended {
                    return Poll::Ready(Ok(self.written));
                }
                ready!(read);
            }
        }
    }

    fn has_room(&self) -> bool {
        !self.has_ended && self.end < self.buf.len()
    }

    /// Reads once, if there is room.
    fn poll_read<R: AsyncRead + ?Sized>(
        &mut self,
        cx: &mut Context<'_>,
        reader: Pin<&mut R>,
    ) -> Poll<io::Result<()>> {
        if !self.has_room() {
            return Poll::Ready(Ok(()));
        }
        let mut buf = ReadBuf::new(&mut self.buf);
        buf.set_filled(self.end);
        match ready!(reader.poll_read(cx, &mut buf)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Poll::Ready(Err(error)),
            Ok(()) => {
                let end = buf.filled().len();
                self.has_ended = end == self.end;
                self.end = end;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Writes once. Empties the buffer when all of it is written.
    fn poll_write<W: AsyncWrite + ?Sized>(
        &mut self,
        cx: &mut Context<'_>,
        writer: Pin<&mut W>,
    ) -> Poll<io::Result<()>> {
        let rest = &self.buf[self.start..self.end];
        match ready!(writer.poll_write(cx, rest)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Poll::Ready(Err(error)),
            Ok(0) => return Poll::Ready(Err(write_zero())),
            Ok(len) => {
                assert!(
                    len <= rest.len(),
                    "the writer has taken more than it was given"
                );
                self.start += len;
                self.written += len as u64;
                self.must_flush = true;
                if self.start == self.end {
                    self.start = 0;
                    self.end = 0;
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}
