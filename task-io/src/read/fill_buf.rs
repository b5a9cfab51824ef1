use crate::AsyncBufRead;
use pin_project_lite::pin_project;
use std::{
    future::Future,
    io,
    marker::PhantomPinned,
    pin::Pin,
    task::{Context, Poll},
};

pin_project! {
    /// The future of [`AsyncBufReadExt::fill_buf`](crate::AsyncBufReadExt::fill_buf).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct FillBuf<'a, R: ?Sized> {
        // `None` once the future is ready: then the bytes borrow the reader.
        reader: Option<&'a mut R>,
        #[pin]
        _pin: PhantomPinned,
    }
}

impl<'a, R: ?Sized> FillBuf<'a, R> {
    pub(crate) fn new(reader: &'a mut R) -> Self {
        Self {
            reader: Some(reader),
            _pin: PhantomPinned,
        }
    }
}

impl<'a, R: AsyncBufRead + Unpin + ?Sized> Future for FillBuf<'a, R> {
    type Output = io::Result<&'a [u8]>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let reader = this.reader.take().expect("polled after it was ready");
        match Pin::new(&mut *reader).poll_fill_buf(cx) {
            Poll::Ready(Ok(bytes)) => {
                let bytes: *const [u8] = bytes;
                // SAFETY: the bytes are borrowed from the reader, which this future has borrowed
                // for `'a`, and has given up: nobody uses the reader as long as the bytes live. The
                // compiler cannot see this, because the other arms put the reader back.
                Poll::Ready(Ok(unsafe { &*bytes }))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                *this.reader = Some(reader);
                Poll::Pending
            }
        }
    }
}
