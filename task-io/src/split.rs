//! The two halves of a stream, which two tasks own.
//!
//! A half locks the stream while it polls it. The lock is the system's: a poll of a stream is
//! usually a system call, so the other half's thread sleeps if it must wait. It waits only for a
//! poll, never for the stream to be ready, as a poll that is `Pending` returns. The stream is in a
//! box, because it must not move while it is pinned and a lock's value is not pinned: this needs no
//! unsafe code, and costs an allocation for each split.
use crate::{AsyncRead, AsyncWrite, ReadBuf};
use std::{
    fmt,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};
use sync_shim::sync::{Arc, Mutex};

#[cfg(test)]
mod models;

/// The reading half of a stream.
///
/// [`split`] makes it.
///
/// The drop of a half closes nothing: shut down the [`WriteHalf`] first. While one half polls the
/// stream, the other half's poll waits for it. So the waker of a task must not poll a half of the
/// same stream inside its `wake`, if the stream wakes tasks in its polls.
///
/// ```
/// use task_io::{AsyncReadExt, ReadHalf};
///
/// let stream = task_io::join(&b"in"[..], Vec::new());
/// let (mut reader, _writer): (ReadHalf<_>, _) = task_io::split(stream);
/// assert_eq!(futures::executor::block_on(reader.read_u8()).unwrap(), b'i');
/// ```
pub struct ReadHalf<T> {
    shared: Arc<Shared<T>>,
}

/// The writing half of a stream.
///
/// [`split`] makes it. See [`ReadHalf`].
///
/// ```
/// let (reader, writer) = task_io::split(task_io::empty());
/// assert!(writer.is_pair_of(&reader));
/// ```
pub struct WriteHalf<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    is_write_vectored: bool,
    stream: Mutex<Pin<Box<T>>>,
}

/// Splits a stream into a half that reads and a half that writes.
///
/// ```
/// use task_io::{AsyncReadExt, AsyncWriteExt};
///
/// # futures::executor::block_on(async {
/// let (near, far) = task_io::duplex(16);
/// let (mut requests, mut answers) = task_io::split(far);
/// let server = async move {
///     while let Ok(byte) = requests.read_u8().await {
///         answers.write_u8(byte + 1).await?;
///     }
///     answers.shutdown().await
/// };
/// let (mut reader, mut writer) = task_io::split(near);
/// let client = async {
///     writer.write_all(&[1, 2, 3]).await?;
///     writer.shutdown().await?;
///     let mut bytes = Vec::new();
///     reader.read_to_end(&mut bytes).await?;
///     std::io::Result::Ok(bytes)
/// };
/// let (served, bytes) = futures::join!(server, client);
/// served?;
/// assert_eq!(bytes?, [2, 3, 4]);
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub fn split<T: AsyncRead + AsyncWrite>(stream: T) -> (ReadHalf<T>, WriteHalf<T>) {
    let shared = Arc::new(Shared {
        is_write_vectored: stream.is_write_vectored(),
        stream: Mutex::new(Box::pin(stream)),
    });
    let reader = ReadHalf {
        shared: shared.clone(),
    };
    (reader, WriteHalf { shared })
}

impl<T> Shared<T> {
    /// Calls `f` with the stream, which no other thread uses meanwhile.
    fn with<R>(&self, f: impl FnOnce(Pin<&mut T>) -> R) -> R {
        f(self.stream.lock().as_mut())
    }
}

/// ```
/// use task_io::{duplex, split};
///
/// let (reader, writer) = split(duplex(8).0);
/// assert!(reader.is_pair_of(&writer));
/// let stream = reader.unsplit(writer);
/// # drop(stream);
/// ```
impl<T> ReadHalf<T> {
    /// Returns whether the other half is of the same stream.
    pub fn is_pair_of(&self, other: &WriteHalf<T>) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Returns the stream.
    ///
    /// # Panics
    /// If the other half is not of the same stream.
    #[track_caller]
    pub fn unsplit(self, wr: WriteHalf<T>) -> T
    where
        T: Unpin,
    {
        assert!(self.is_pair_of(&wr), "the two halves are of two streams");
        drop(wr);
        let Ok(shared) = Arc::try_unwrap(self.shared) else {
            unreachable!("a stream has two halves");
        };
        *Pin::into_inner(shared.stream.into_inner())
    }
}

impl<T> WriteHalf<T> {
    /// Returns whether the other half is of the same stream.
    pub fn is_pair_of(&self, other: &ReadHalf<T>) -> bool {
        other.is_pair_of(self)
    }
}

impl<T: AsyncRead> AsyncRead for ReadHalf<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.shared.with(|stream| stream.poll_read(cx, buf))
    }
}

impl<T: AsyncWrite> AsyncWrite for WriteHalf<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.shared.with(|stream| stream.poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shared.with(|stream| stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shared.with(|stream| stream.poll_shutdown(cx))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.shared
            .with(|stream| stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        self.shared.is_write_vectored
    }
}

impl<T> fmt::Debug for ReadHalf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadHalf").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for WriteHalf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteHalf").finish_non_exhaustive()
    }
}
