use crate::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite, ReadBuf, coop::poll_charge};
use std::{
    fmt,
    io::{self, IoSlice, SeekFrom},
    pin::Pin,
    task::{Context, Poll},
};

/// A reader that has ended, and a writer that takes everything and keeps nothing.
///
/// [`empty`] makes it.
///
/// ```
/// let nothing: task_io::Empty = task_io::empty();
/// assert_eq!(format!("{nothing:?}"), "Empty { .. }");
/// ```
#[must_use = "an empty reader does nothing unless read"]
pub struct Empty {
    _private: (),
}

/// Makes a reader that has ended, and that takes all that is written to it.
///
/// ```
/// use task_io::{AsyncReadExt, AsyncWriteExt};
///
/// # futures::executor::block_on(async {
/// let mut bytes = Vec::new();
/// assert_eq!(task_io::empty().read_to_end(&mut bytes).await?, 0);
/// assert_eq!(task_io::empty().write(b"lost").await?, 4);
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub const fn empty() -> Empty {
    Empty { _private: () }
}

impl AsyncRead for Empty {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        poll_charge(cx).map(Ok)
    }
}

impl AsyncBufRead for Empty {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        poll_charge(cx).map(|()| Ok(&[][..]))
    }

    fn consume(self: Pin<&mut Self>, _: usize) {}
}

impl AsyncWrite for Empty {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        poll_charge(cx).map(|()| Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        poll_charge(cx).map(Ok)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        poll_charge(cx).map(Ok)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        poll_charge(cx).map(|()| Ok(total_len(bufs)))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }
}

/// Seeks to position 0, wherever the caller asks for.
impl AsyncSeek for Empty {
    fn start_seek(self: Pin<&mut Self>, _: SeekFrom) -> io::Result<()> {
        Ok(())
    }

    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        poll_charge(cx).map(|()| Ok(0))
    }
}

impl fmt::Debug for Empty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Empty").finish_non_exhaustive()
    }
}

/// Returns the length of all slices together. The slices may overlap, so their sum may be too great
/// for a `usize`.
pub(crate) fn total_len(bufs: &[IoSlice<'_>]) -> usize {
    let lens = bufs.iter().map(|buf| buf.len());
    lens.fold(0, usize::saturating_add)
}
