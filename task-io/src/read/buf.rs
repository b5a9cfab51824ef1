use crate::{AsyncRead, ReadBuf as Filled};
use bytes::BufMut;
use pin_project_lite::pin_project;
use std::{
    future::Future,
    io,
    marker::PhantomPinned,
    mem::MaybeUninit,
    pin::Pin,
    slice,
    task::{Context, Poll, ready},
};

pin_project! {
    /// The future of [`AsyncReadExt::read_buf`](crate::AsyncReadExt::read_buf).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct ReadBuf<'a, R: ?Sized, B: ?Sized> {
        reader: &'a mut R,
        buf: &'a mut B,
        #[pin]
        _pin: PhantomPinned,
    }
}

impl<'a, R: ?Sized, B: ?Sized> ReadBuf<'a, R, B> {
    pub(crate) fn new(reader: &'a mut R, buf: &'a mut B) -> Self {
        Self {
            reader,
            buf,
            _pin: PhantomPinned,
        }
    }
}

impl<R: AsyncRead + Unpin + ?Sized, B: BufMut + ?Sized> Future for ReadBuf<'_, R, B> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if !this.buf.has_remaining_mut() {
            return Poll::Ready(Ok(0));
        }
        let chunk = this.buf.chunk_mut();
        let (start, len) = (chunk.as_mut_ptr().cast::<MaybeUninit<u8>>(), chunk.len());
        // SAFETY: the memory belongs to the buffer, which is borrowed for longer than the slice
        // lives, and is not used meanwhile. An element need not be initialised. No `ReadBuf` makes
        // a byte uninitialised.
        let memory = unsafe { slice::from_raw_parts_mut(start, len) };
        let mut filled = Filled::uninit(memory);
        ready!(Pin::new(&mut **this.reader).poll_read(cx, &mut filled))?;
        // A reader could put another `ReadBuf` in the place of this one: of other memory, or of the
        // first bytes of this, once it has leaked this one and initialised them.
        assert!(filled.filled().as_ptr() == start.cast_const().cast());
        let len = filled.filled().len();
        // SAFETY: the first `len` bytes of the chunk are initialised. If `len` is not 0, then the
        // `ReadBuf` has the chunk's first byte, which no other object has: so it is the one that
        // was made of the chunk, or one of its first bytes. Either has initialised what it filled.
        unsafe { this.buf.advance_mut(len) };
        Poll::Ready(Ok(len))
    }
}
