use crate::{AsyncSeek, seek::Seek};
use std::io::SeekFrom;

/// Methods for every [`AsyncSeek`] that return futures.
///
/// ```
/// use std::io::{Cursor, SeekFrom};
/// use task_io::{AsyncReadExt, AsyncSeekExt};
///
/// # futures::executor::block_on(async {
/// let mut file = Cursor::new(b"header body");
/// assert_eq!(file.seek(SeekFrom::End(-4)).await?, 7);
/// let mut body = String::new();
/// file.read_to_string(&mut body).await?;
/// assert_eq!(body, "body");
/// assert_eq!(file.stream_position().await?, 11);
/// file.rewind().await?;
/// assert_eq!(file.read_u8().await?, b'h');
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub trait AsyncSeekExt: AsyncSeek {
    /// Seeks to `pos`, and returns the new position from the start. Completes a seek first whose
    /// future was dropped, if no read or write came between.
    ///
    /// # Errors
    /// A seek to a position before the start fails, or the object fails.
    fn seek(&mut self, pos: SeekFrom) -> Seek<'_, Self>
    where
        Self: Unpin,
    {
        Seek::new(self, pos)
    }

    /// Seeks to the start.
    ///
    /// # Errors
    /// The object fails.
    fn rewind(&mut self) -> Seek<'_, Self>
    where
        Self: Unpin,
    {
        self.seek(SeekFrom::Start(0))
    }

    /// Returns the position from the start. The object does a seek of length 0.
    ///
    /// # Errors
    /// The object fails.
    fn stream_position(&mut self) -> Seek<'_, Self>
    where
        Self: Unpin,
    {
        self.seek(SeekFrom::Current(0))
    }
}

impl<S: AsyncSeek + ?Sized> AsyncSeekExt for S {}
