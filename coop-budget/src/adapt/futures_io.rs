//! Implements the traits of `futures-io` for [`Cooperative`].
use crate::Cooperative;
use ::futures_io::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite};
use std::{
    io::{IoSlice, IoSliceMut, Result, SeekFrom},
    pin::Pin,
    task::{Context, Poll},
};

/// Each completed read costs an operation, whatever its length.
impl<R: AsyncRead> AsyncRead for Cooperative<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &mut [u8],
    ) -> Poll<Result<usize>> {
        self.charged(cx, |reader, cx| reader.poll_read(cx, bytes))
    }

    fn poll_read_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &mut [IoSliceMut<'_>],
    ) -> Poll<Result<usize>> {
        self.charged(cx, |reader, cx| reader.poll_read_vectored(cx, slices))
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
/// close.
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

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.charged(cx, |writer, cx| writer.poll_flush(cx))
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.charged(cx, |writer, cx| writer.poll_close(cx))
    }
}

/// Each completed seek costs an operation.
impl<S: AsyncSeek> AsyncSeek for Cooperative<S> {
    fn poll_seek(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        position: SeekFrom,
    ) -> Poll<Result<u64>> {
        self.charged(cx, |file, cx| file.poll_seek(cx, position))
    }
}
