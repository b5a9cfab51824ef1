use crate::{AsyncRead, ReadBuf, coop::Rounds};
use pin_project_lite::pin_project;
use std::{
    future::Future,
    io,
    marker::PhantomPinned,
    mem::MaybeUninit,
    pin::Pin,
    task::{Context, Poll, ready},
};

/// The least room for a read, as reads of a few bytes are expensive. A vector that has less is not
/// grown at once if its owner may have sized it exactly: reads of this many bytes onto the stack
/// first find out whether the reader has ended.
const PROBE: usize = 32;

pin_project! {
    /// The future of [`AsyncReadExt::read_to_end`](crate::AsyncReadExt::read_to_end).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct ReadToEnd<'a, R: ?Sized> {
        reader: &'a mut R,
        buf: &'a mut Vec<u8>,
        growth: Growth,
        #[pin]
        _pin: PhantomPinned,
    }
}

impl<'a, R: ?Sized> ReadToEnd<'a, R> {
    pub(crate) fn new(reader: &'a mut R, buf: &'a mut Vec<u8>) -> Self {
        Self {
            reader,
            growth: Growth::new(buf),
            buf,
            _pin: PhantomPinned,
        }
    }
}

impl<R: AsyncRead + Unpin + ?Sized> Future for ReadToEnd<'_, R> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let reader = Pin::new(&mut **this.reader);
        // SAFETY: the future has borrowed the vector since the `Growth` was made of it.
        ready!(unsafe { this.growth.poll(reader, cx, this.buf) })?;
        Poll::Ready(Ok(this.buf.len() - this.growth.start))
    }
}

/// The growth of a vector to whose end a reader is read.
#[derive(Debug)]
pub(super) struct Growth {
    /// The vector's length at first.
    start: usize,
    /// The vector's capacity at first.
    capacity: usize,
    /// How many bytes behind the vector's length are initialised. A reader that must initialise
    /// what it reads into does so once for each byte, however many reads it takes to fill them.
    initialized: usize,
}

impl Growth {
    pub(super) fn new(buf: &Vec<u8>) -> Self {
        Self {
            start: buf.len(),
            capacity: buf.capacity(),
            initialized: 0,
        }
    }

    /// Appends bytes to `buf` until the reader ends.
    ///
    /// # Safety
    /// Nothing else has changed the vector since it was passed to [`new`](Self::new).
    pub(super) unsafe fn poll<R: AsyncRead + ?Sized>(
        &mut self,
        mut reader: Pin<&mut R>,
        cx: &mut Context<'_>,
        buf: &mut Vec<u8>,
    ) -> Poll<io::Result<()>> {
        let mut rounds = Rounds::new();
        loop {
            ready!(rounds.poll_next(cx));
            let before = buf.len();
            let is_exact = buf.capacity() == self.capacity && self.capacity >= PROBE;
            let polled = if is_exact && self.capacity - before < PROBE {
                self.initialized = 0; // The bytes are appended there.
                poll_probe(reader.as_mut(), cx, buf)
            } else {
                // SAFETY: by the caller's promise.
                unsafe { self.poll_spare(reader.as_mut(), cx, buf) }
            };
            match ready!(polled) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(()) if buf.len() == before => return Poll::Ready(Ok(())),
                Ok(()) => {}
            }
        }
    }

    /// Reads once, into the vector's spare capacity. If that is small, first doubles the capacity.
    ///
    /// # Safety
    /// As of [`poll`](Self::poll).
    unsafe fn poll_spare<R: AsyncRead + ?Sized>(
        &mut self,
        reader: Pin<&mut R>,
        cx: &mut Context<'_>,
        buf: &mut Vec<u8>,
    ) -> Poll<io::Result<()>> {
        if buf.capacity() - buf.len() < PROBE {
            buf.try_reserve(PROBE)?;
            self.initialized = 0;
        }
        let len = buf.len();
        let mut spare = ReadBuf::uninit(buf.spare_capacity_mut());
        let start = spare.filled().as_ptr();
        // SAFETY: earlier calls have initialised these bytes. The vector has the same memory since,
        // as nothing else has changed it, and its growth sets the number to 0.
        unsafe { spare.assume_init(self.initialized) };
        ready!(reader.poll_read(cx, &mut spare))?;
        // A reader could put another `ReadBuf` in the place of this one: of other memory, or of the
        // first bytes of this, once it has leaked this one and initialised them.
        assert!(spare.filled().as_ptr() == start);
        let read = spare.filled().len();
        self.initialized = spare.initialized().len() - read;
        // SAFETY: if `read` is not 0, then the `ReadBuf` has the first byte of the spare capacity,
        // which no other object has: so it is the one that was made of that memory, or one of its
        // first bytes. Either has initialised what it filled, within the capacity.
        unsafe { buf.set_len(len + read) };
        Poll::Ready(Ok(()))
    }
}

/// Reads a few bytes onto the stack, and appends them to the vector.
fn poll_probe<R: AsyncRead + ?Sized>(
    reader: Pin<&mut R>,
    cx: &mut Context<'_>,
    buf: &mut Vec<u8>,
) -> Poll<io::Result<()>> {
    let mut bytes = [MaybeUninit::uninit(); PROBE];
    let mut probe = ReadBuf::uninit(&mut bytes);
    ready!(reader.poll_read(cx, &mut probe))?;
    buf.try_reserve(probe.filled().len())?;
    buf.extend_from_slice(probe.filled());
    Poll::Ready(Ok(()))
}
