use crate::{AsyncRead, ReadBuf, coop::poll_charge};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

/// A reader of one byte, again and again, without an end.
///
/// [`repeat`] makes it.
///
/// ```
/// use task_io::{AsyncReadExt, Repeat};
///
/// let mut ones: Repeat = task_io::repeat(1);
/// assert_eq!(futures::executor::block_on(ones.read_u16()).unwrap(), 0x101);
/// ```
#[derive(Debug)]
pub struct Repeat {
    byte: u8,
}

/// Makes a reader of `byte`, again and again.
///
/// ```
/// use task_io::AsyncReadExt;
///
/// let mut bytes = [0; 3];
/// futures::executor::block_on(task_io::repeat(7).read_exact(&mut bytes)).unwrap();
/// assert_eq!(bytes, [7; 3]);
/// ```
pub const fn repeat(byte: u8) -> Repeat {
    Repeat { byte }
}

impl AsyncRead for Repeat {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(poll_charge(cx));
        // In parts, so that no byte is set to 0 first.
        let part = [self.byte; 512];
        while buf.remaining() > 0 {
            buf.put_slice(&part[..buf.remaining().min(part.len())]);
        }
        Poll::Ready(Ok(()))
    }
}
