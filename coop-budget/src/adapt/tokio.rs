//! The traits of `tokio::io`. Resources of tokio charge its budget; wrapped, this crate's too.
use crate::Cooperative;
use ::tokio::io::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite, ReadBuf};
use std::{
    io::{IoSlice, Result, SeekFrom},
    pin::Pin,
    task::{Context, Poll},
};

/// Each read costs an operation, however long.
impl<R: AsyncRead> AsyncRead for Cooperative<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        self.charged(cx, |reader, cx| reader.poll_read(cx, bytes))
    }
}

/// Each look at the buffer costs an operation, whether or not it is filled for that.
/// To consume costs none.
impl<R: AsyncBufRead> AsyncBufRead for Cooperative<R> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<&[u8]>> {
        self.charged(cx, |reader, cx| reader.poll_fill_buf(cx))
    }

    fn consume(self: Pin<&mut Self>, amount: usize) {
        self.get_pin_mut().consume(amount);
    }
}

/// Each write costs an operation, however long; a flush or a shutdown too.
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

/// What completes a seek costs an operation, also where none was begun; to begin one costs none.
impl<S: AsyncSeek> AsyncSeek for Cooperative<S> {
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> Result<()> {
        self.get_pin_mut().start_seek(position)
    }

    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<u64>> {
        self.charged(cx, |file, cx| file.poll_complete(cx))
    }
}
