//! Implements the traits of `tokio::io` for [`Cooperative`]. A wrapped resource of tokio charges
//! two budgets: tokio's and this crate's.
use crate::Cooperative;
use ::tokio::io::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite, ReadBuf};
use std::{
    io::{IoSlice, Result, SeekFrom},
    pin::Pin,
    task::{Context, Poll},
};

/// Each completed read costs an operation, whatever its length.
impl<R: AsyncRead> AsyncRead for Cooperative<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        self.charged(cx, |reader, cx| reader.poll_read(cx, bytes))
    }
}

/// Each completed `poll_fill_buf` costs an operation, even if the buffer already has data.
/// `consume` is free.
impl<R: AsyncBufRead> AsyncBufRead for Cooperative<R> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<&[u8]>> {
        self.charged(cx, |reader, cx| reader.poll_fill_buf(cx))
    }

    fn consume(self: Pin<&mut Self>, amount: usize) {
        self.get_pin_mut().consume(amount);
    }
}

/// Each completed write costs an operation, whatever its length. So does a completed flush or
/// shutdown.
impl<W: AsyncWrite> AsyncWrite for Cooperative<W> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        self.charged(cx, |writer, cx| writer.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        self.charged(cx, |writer, cx| writer.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.get_ref().is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.charged(cx, |writer, cx| writer.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.charged(cx, |writer, cx| writer.poll_shutdown(cx))
    }
}

/// Each completed `poll_complete` costs an operation, even if no seek was started. `start_seek` is
/// free.
impl<S: AsyncSeek> AsyncSeek for Cooperative<S> {
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> Result<()> {
        self.get_pin_mut().start_seek(position)
    }

    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<u64>> {
        self.charged(cx, |file, cx| file.poll_complete(cx))
    }
}
