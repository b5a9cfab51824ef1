use crate::{AsyncRead, AsyncWrite, buf_reader::DEFAULT_CAPACITY, transfer::Transfer};
use std::{
    future::poll_fn,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

/// Copies the bytes of each of two streams to the other, until both have ended. Returns how many
/// bytes went from `a` to `b`, and how many from `b` to `a`.
///
/// When one stream ends, the other one is flushed and shut down, and its bytes are still copied.
/// The bytes go through two buffers of 8 KiB, which are filled and flushed as by
/// [`copy`](crate::copy).
///
/// ```
/// use task_io::{AsyncReadExt, AsyncWriteExt};
///
/// # futures::executor::block_on(async {
/// let (mut client, mut a) = task_io::duplex(64);
/// let (mut b, mut server) = task_io::duplex(64);
/// let proxy = task_io::copy_bidirectional(&mut a, &mut b);
/// let ends = async {
///     client.write_all(b"question").await?;
///     client.shutdown().await?;
///     let mut text = String::new();
///     server.read_to_string(&mut text).await?;
///     server.write_all(b"answer").await?;
///     server.shutdown().await?;
///     client.read_to_string(&mut text).await?;
///     assert_eq!(text, "questionanswer");
///     std::io::Result::Ok(())
/// };
/// let (copied, ends) = futures::join!(proxy, ends);
/// assert_eq!(copied?, (8, 6));
/// # ends
/// # }).unwrap();
/// ```
///
/// # Cancel safety
/// If the future is dropped, the bytes in its buffers are lost.
///
/// # Errors
/// Those of both streams, except for `Interrupted`, after which the read or write is repeated. The
/// bytes in the buffers are lost.
pub async fn copy_bidirectional<A, B>(a: &mut A, b: &mut B) -> io::Result<(u64, u64)>
where
    A: AsyncRead + AsyncWrite + Unpin + ?Sized,
    B: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    copy_both(a, b, DEFAULT_CAPACITY, DEFAULT_CAPACITY).await
}

/// Copies as [`copy_bidirectional`] does, by buffers of these sizes.
///
/// ```
/// # futures::executor::block_on(async {
/// use task_io::copy_bidirectional_with_sizes;
///
/// let (mut a, mut b) = (task_io::empty(), task_io::join(&b"abc"[..], Vec::new()));
/// assert_eq!(copy_bidirectional_with_sizes(&mut a, &mut b, 64, 2).await?, (0, 3));
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
///
/// # Panics
/// If a size is 0, at the first poll.
///
/// # Errors
/// Those of [`copy_bidirectional`].
pub async fn copy_bidirectional_with_sizes<A, B>(
    a: &mut A,
    b: &mut B,
    a_to_b_buf_size: usize,
    b_to_a_buf_size: usize,
) -> io::Result<(u64, u64)>
where
    A: AsyncRead + AsyncWrite + Unpin + ?Sized,
    B: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    assert!(
        a_to_b_buf_size > 0,
        "`a_to_b_buf_size` must be greater than 0"
    );
    assert!(
        b_to_a_buf_size > 0,
        "`b_to_a_buf_size` must be greater than 0"
    );
    copy_both(a, b, a_to_b_buf_size, b_to_a_buf_size).await
}

async fn copy_both<A, B>(
    a: &mut A,
    b: &mut B,
    a_to_b_buf_size: usize,
    b_to_a_buf_size: usize,
) -> io::Result<(u64, u64)>
where
    A: AsyncRead + AsyncWrite + Unpin + ?Sized,
    B: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    let mut a_to_b = Direction::Copying(Transfer::new(a_to_b_buf_size));
    let mut b_to_a = Direction::Copying(Transfer::new(b_to_a_buf_size));
    poll_fn(|cx| {
        // Both are polled, so that each has the task's waker.
        let there = a_to_b.poll(cx, Pin::new(&mut *a), Pin::new(&mut *b))?;
        let back = b_to_a.poll(cx, Pin::new(&mut *b), Pin::new(&mut *a))?;
        Poll::Ready(Ok((ready!(there), ready!(back))))
    })
    .await
}

/// The state of one direction.
enum Direction {
    Copying(Transfer),
    /// The reader has ended after this many bytes. The writer is being shut down.
    ShuttingDown(u64),
    Done(u64),
}

impl Direction {
    fn poll<R: AsyncRead + ?Sized, W: AsyncWrite + ?Sized>(
        &mut self,
        cx: &mut Context<'_>,
        mut reader: Pin<&mut R>,
        mut writer: Pin<&mut W>,
    ) -> Poll<io::Result<u64>> {
        loop {
            match self {
                Self::Copying(transfer) => {
                    let copied = ready!(transfer.poll(cx, reader.as_mut(), writer.as_mut()))?;
                    *self = Self::ShuttingDown(copied);
                }
                Self::ShuttingDown(copied) => {
                    ready!(writer.as_mut().poll_shutdown(cx))?;
                    *self = Self::Done(*copied);
                }
                Self::Done(copied) => return Poll::Ready(Ok(*copied)),
            }
        }
    }
}
