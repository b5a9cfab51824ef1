use crate::{AsyncWrite, coop::poll_charge, empty::total_len};
use std::{
    fmt,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};

/// A writer that takes everything and keeps nothing.
///
/// [`sink`] makes it.
///
/// ```
/// let sink: task_io::Sink = task_io::sink();
/// assert_eq!(format!("{sink:?}"), "Sink { .. }");
/// ```
pub struct Sink {
    _private: (),
}

/// Makes a writer that takes everything and keeps nothing.
///
/// ```
/// use task_io::AsyncWriteExt;
///
/// let written = futures::executor::block_on(task_io::sink().write(b"lost"));
/// assert_eq!(written.unwrap(), 4);
/// ```
pub const fn sink() -> Sink {
    Sink { _private: () }
}

impl AsyncWrite for Sink {
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

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink").finish_non_exhaustive()
    }
}
