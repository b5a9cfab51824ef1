//! A task of the models, which counts its wakes.
use crate::{AsyncRead, AsyncWrite, ReadBuf};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll, Waker, ready},
};
use sync_shim::{
    atomic::{
        AtomicUsize,
        Ordering::{Acquire, Release},
    },
    sync::Arc,
};
use waker_vtable::{WakeRef, from_arc};

pub(crate) struct Woken(AtomicUsize);

impl Woken {
    pub(crate) fn new() -> (Arc<Self>, Waker) {
        let this = Arc::new(Self(AtomicUsize::new(0)));
        let waker = from_arc(this.clone());
        (this, waker)
    }

    /// Returns whether the task was woken.
    pub(crate) fn was_woken(&self) -> bool {
        // Ordering: Acquire pairs with `wake`, as a poll is ordered after the wake that caused it.
        self.0.load(Acquire) > 0
    }
}

impl WakeRef for Woken {
    fn wake(&self) {
        // Ordering: Release pairs with `was_woken`.
        self.0.fetch_add(1, Release);
    }
}

/// Polls a read of one byte. `None` is the end.
pub(crate) fn read_one<R: AsyncRead + Unpin>(
    reader: &mut R,
    waker: &Waker,
) -> Poll<io::Result<Option<u8>>> {
    let mut bytes = [0];
    let mut buf = ReadBuf::new(&mut bytes);
    ready!(Pin::new(reader).poll_read(&mut Context::from_waker(waker), &mut buf))?;
    Poll::Ready(Ok(buf.filled().first().copied()))
}

/// Polls a write of one byte.
pub(crate) fn write_one<W: AsyncWrite + Unpin>(
    writer: &mut W,
    byte: u8,
    waker: &Waker,
) -> Poll<io::Result<usize>> {
    Pin::new(writer).poll_write(&mut Context::from_waker(waker), &[byte])
}
