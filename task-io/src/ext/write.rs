use crate::{
    AsyncWrite,
    write::{Flush, Shutdown, Write, WriteAll, WriteAllBuf, WriteBuf, WriteNumber, WriteVectored},
};
use bytes::Buf;
use std::io::IoSlice;

/// Methods for every [`AsyncWrite`] that return futures.
///
/// ```
/// use std::io::IoSlice;
/// use task_io::AsyncWriteExt;
///
/// # futures::executor::block_on(async {
/// let mut writer = Vec::new();
/// assert_eq!(writer.write(b"one").await?, 3);
/// writer.write_vectored(&[IoSlice::new(b" t"), IoSlice::new(b"wo")]).await?;
/// writer.write_all(b" three").await?;
///
/// let mut rest = &b" four five"[..];
/// writer.write_buf(&mut rest).await?;
/// writer.write_all_buf(&mut rest).await?;
/// assert!(rest.is_empty());
///
/// writer.flush().await?;
/// writer.shutdown().await?;
/// assert_eq!(writer, b"one two three four five");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
///
/// # Numbers
///
/// A method without `_le` writes the highest byte first, as networks do.
///
/// ```
/// use task_io::AsyncWriteExt;
///
/// # futures::executor::block_on(async {
/// let mut bytes = Vec::new();
/// bytes.write_u8(1).await?;
/// bytes.write_i8(-2).await?;
/// bytes.write_u16(3).await?;
/// bytes.write_i16(-4).await?;
/// bytes.write_u32(5).await?;
/// bytes.write_i32(-6).await?;
/// bytes.write_u64(7).await?;
/// bytes.write_i64(-8).await?;
/// bytes.write_u128(9).await?;
/// bytes.write_i128(-10).await?;
/// bytes.write_f32(1.5).await?;
/// bytes.write_f64(-2.5).await?;
/// bytes.write_u16_le(3).await?;
/// bytes.write_i16_le(-4).await?;
/// bytes.write_u32_le(5).await?;
/// bytes.write_i32_le(-6).await?;
/// bytes.write_u64_le(7).await?;
/// bytes.write_i64_le(-8).await?;
/// bytes.write_u128_le(9).await?;
/// bytes.write_i128_le(-10).await?;
/// bytes.write_f32_le(1.5).await?;
/// bytes.write_f64_le(-2.5).await?;
/// assert_eq!(bytes[..4], [1, 254, 0, 3]);
/// assert_eq!(bytes[74..76], [3, 0]);
/// assert_eq!(bytes.len(), 146);
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub trait AsyncWriteExt: AsyncWrite {
    /// Writes bytes from the front of `src`, and returns how many. 0 says that `src` is empty, or
    /// that the writer takes no more bytes.
    ///
    /// # Cancel safety
    /// If the future is dropped, nothing was written.
    ///
    /// # Errors
    /// The writer's. Nothing was written then.
    fn write<'a>(&'a mut self, src: &'a [u8]) -> Write<'a, Self>
    where
        Self: Unpin,
    {
        Write::new(self, src)
    }

    /// Writes bytes from the front of `bufs`, as if the slices were one, and returns how many.
    ///
    /// # Cancel safety
    /// If the future is dropped, nothing was written.
    ///
    /// # Errors
    /// The writer's. Nothing was written then.
    fn write_vectored<'a, 'b>(&'a mut self, bufs: &'a [IoSlice<'b>]) -> WriteVectored<'a, 'b, Self>
    where
        Self: Unpin,
    {
        WriteVectored::new(self, bufs)
    }

    /// Writes bytes from the front of `src`, advances `src` over them, and returns how many. 0 says
    /// that `src` is empty, or that the writer takes no more bytes.
    ///
    /// # Cancel safety
    /// If the future is dropped, nothing was written.
    ///
    /// # Errors
    /// The writer's. Nothing was written then.
    fn write_buf<'a, B>(&'a mut self, src: &'a mut B) -> WriteBuf<'a, Self, B>
    where
        Self: Sized + Unpin,
        B: Buf,
    {
        WriteBuf::new(self, src)
    }

    /// Writes until `src` is empty, and advances `src` over what is written.
    ///
    /// # Cancel safety
    /// If the future is dropped, `src` has exactly the bytes that were not written. Another call
    /// goes on.
    ///
    /// # Errors
    /// Those of [`write_all`](Self::write_all). `src` has exactly the bytes that were not written.
    fn write_all_buf<'a, B>(&'a mut self, src: &'a mut B) -> WriteAllBuf<'a, Self, B>
    where
        Self: Sized + Unpin,
        B: Buf,
    {
        WriteAllBuf::new(self, src)
    }

    /// Writes all of `src`.
    ///
    /// # Cancel safety
    /// If the future is dropped, a part of `src` may have been written, and nothing says how long
    /// it is. [`write_all_buf`](Self::write_all_buf) says it.
    ///
    /// # Errors
    /// `WriteZero` if the writer takes no more bytes, or the writer's error, except for
    /// `Interrupted`, after which the write is repeated. A part may have been written.
    fn write_all<'a>(&'a mut self, src: &'a [u8]) -> WriteAll<'a, Self>
    where
        Self: Unpin,
    {
        WriteAll::new(self, src)
    }

    /// Writes an unsigned integer of 8 bits.
    ///
    /// # Cancel safety
    /// If the future is dropped, nothing was written.
    ///
    /// # Errors
    /// Those of [`write_all`](Self::write_all).
    fn write_u8(&mut self, n: u8) -> WriteNumber<&mut Self, [u8; 1]>
    where
        Self: Unpin,
    {
        WriteNumber::new(self, n.to_be_bytes())
    }

    /// Writes a signed integer of 8 bits.
    ///
    /// # Cancel safety
    /// If the future is dropped, nothing was written.
    ///
    /// # Errors
    /// Those of [`write_all`](Self::write_all).
    fn write_i8(&mut self, n: i8) -> WriteNumber<&mut Self, [u8; 1]>
    where
        Self: Unpin,
    {
        WriteNumber::new(self, n.to_be_bytes())
    }

    /// Writes an unsigned integer of 16 bits, the highest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, some of the bytes may have been written.
    ///
    /// # Errors
    /// Those of [`write_all`](Self::write_all).
    fn write_u16(&mut self, n: u16) -> WriteNumber<&mut Self, [u8; 2]>
    where
        Self: Unpin,
    {
        WriteNumber::new(self, n.to_be_bytes())
    }

    /// Writes a signed integer of 16 bits, the highest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, some of the bytes may have been written.
    ///
    /// # Errors
    /// Those of [`write_all`](Self::write_all).
    fn write_i16(&mut self, n: i16) -> WriteNumber<&mut Self, [u8; 2]>
    where
        Self: Unpin,
    {
        WriteNumber::new(self, n.to_be_bytes())
    }

    /// Writes an unsigned integer of 32 bits, the highest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, some of the bytes may have been written.
    ///
    /// # Errors
    /// Those of [`write_all`](Self::write_all).
    fn write_u32(&mut self, n: u32) -> WriteNumber<&mut Self, [u8; 4]>
    where
        Self: Unpin,
    {
        WriteNumber::new(self, n.to_be_bytes())
    }

    /// Writes a signed integer of 32 bits, the highest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, some of the bytes may have been written.
    ///
    /// # Errors
    /// Those of [`write_all`](Self::write_all).
    fn write_i32(&mut self, n: i32) -> WriteNumber<&mut Self, [u8; 4]>
    where
        Self: Unpin,
    {
        WriteNumber::new(self, n.to_be_bytes())
    }

    /// Writes an unsigned integer of 64 bits, the highest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, some of the bytes may have been written.
    ///
    /// # Errors
    /// Those of [`write_all`](Self::write_all).
    fn write_u64(&mut self, n: u64) -> WriteNumber<&mut Self, [u8; 8]>
    where
        Self: Unpin,
    {
        WriteNumber::new(self, n.to_be_bytes())
    }

    /// Writes a signed integer of 64 bits, the highest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, some of the bytes may have been written.
    ///
    /// # Errors
    /// Those of [`write_all`](Self::write_all).
    fn write_i64(&mut self, n: i64) -> WriteNumber<&mut Self, [u8; 8]>
    where
        Self: Unpin,
    {
        WriteNumber::new(self, n.to_be_bytes())
    }

    /// Writes an unsigned integer of 128 bits, the highest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, some of the bytes may have been written.
    ///
    /// # Errors
    /// Those of [`write_all`](Self::write_all).
    fn write_u128(&mut self, n: u128) -> WriteNumber<&mut Self, [u8; 16]>
    where
        Self: Unpin,
    {
        WriteNumber::new(self, n.to_be_bytes())
    }

    /// Writes a signed integer of 128 bits, the highest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, some of the bytes may have been written.
    ///
    /// # Errors
    /// Those of [`write_all`](Self::write_all).
    fn write_i128(&mut self, n: i128) -> WriteNumber<&mut Self, [u8; 16]>
    where
        Self: Unpin,
    {
        WriteNumber::new(self, n.to_be_bytes())
    }

    /// Writes a floating-point number of 32 bits, the highest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, some of the bytes may have been written.
    ///
    /// # Errors
    /// Those of [`write_all`](Self::write_all).
    fn write_f32(&mut self, n: f32) -> WriteNumber<&mut Self, [u8; 4]>
    where
        Self: Unpin,
    {
        WriteNumber::new(self, n.to_be_bytes())
    }

    /// Writes a floating-point number of 64 bits, the highest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, some of the bytes may have been written.
    ///
    /// # Errors
    /// Those of [`write_all`](Self::write_all).
    fn write_f64(&mut self, n: f64) -> WriteNumber<&mut Self, [u8; 8]>
    where
        Self: Unpin,
    {
        WriteNumber::new(self, n.to_be_bytes())
    }

    /// Writes an unsigned integer of 16 bits, the lowest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, some of the bytes may have been written.
    ///
    /// # Errors
    /// Those of [`write_all`](Self::write_all).
    fn write_u16_le(&mut self, n: u16) -> WriteNumber<&mut Self, [u8; 2]>
    where
        Self: Unpin,
    {
        WriteNumber::new(self, n.to_le_bytes())
    }

    /// Writes a signed integer of 16 bits, the lowest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, some of the bytes may have been written.
    ///
    /// # Errors
    /// Those of [`write_all`](Self::write_all).
    fn write_i16_le(&mut self, n: i16) -> WriteNumber<&mut Self, [u8; 2]>
    where
        Self: Unpin,
    {
        WriteNumber::new(self, n.to_le_bytes())
    }

    /// Writes an unsigned integer of 32 bits, the lowest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, some of the bytes may have been written.
    ///
    /// # Errors
    /// Those of [`write_all`](Self::write_all).
    fn write_u32_le(&mut self, n: u32) -> WriteNumber<&mut Self, [u8; 4]>
    where
        Self: Unpin,
    {
        WriteNumber::new(self, n.to_le_bytes())
    }

    /// Writes a signed integer of 32 bits, the lowest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, some of the bytes may have been written.
    ///
    /// # Errors
    /// Those of [`write_all`](Self::write_all).
    fn write_i32_le(&mut self, n: i32) -> WriteNumber<&mut Self, [u8; 4]>
    where
        Self: Unpin,
    {
        WriteNumber::new(self, n.to_le_bytes())
    }

    /// Writes an unsigned integer of 64 bits, the lowest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, some of the bytes may have been written.
    ///
    /// # Errors
    /// Those of [`write_all`](Self::write_all).
    fn write_u64_le(&mut self, n: u64) -> WriteNumber<&mut Self, [u8; 8]>
    where
        Self: Unpin,
    {
        WriteNumber::new(self, n.to_le_bytes())
    }

    /// Writes a signed integer of 64 bits, the lowest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, some of the bytes may have been written.
    ///
    /// # Errors
    /// Those of [`write_all`](Self::write_all).
    fn write_i64_le(&mut self, n: i64) -> WriteNumber<&mut Self, [u8; 8]>
    where
        Self: Unpin,
    {
        WriteNumber::new(self, n.to_le_bytes())
    }

    /// Writes an unsigned integer of 128 bits, the lowest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, some of the bytes may have been written.
    ///
    /// # Errors
    /// Those of [`write_all`](Self::write_all).
    fn write_u128_le(&mut self, n: u128) -> WriteNumber<&mut Self, [u8; 16]>
    where
        Self: Unpin,
    {
        WriteNumber::new(self, n.to_le_bytes())
    }

    /// Writes a signed integer of 128 bits, the lowest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, some of the bytes may have been written.
    ///
    /// # Errors
    /// Those of [`write_all`](Self::write_all).
    fn write_i128_le(&mut self, n: i128) -> WriteNumber<&mut Self, [u8; 16]>
    where
        Self: Unpin,
    {
        WriteNumber::new(self, n.to_le_bytes())
    }

    /// Writes a floating-point number of 32 bits, the lowest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, some of the bytes may have been written.
    ///
    /// # Errors
    /// Those of [`write_all`](Self::write_all).
    fn write_f32_le(&mut self, n: f32) -> WriteNumber<&mut Self, [u8; 4]>
    where
        Self: Unpin,
    {
        WriteNumber::new(self, n.to_le_bytes())
    }

    /// Writes a floating-point number of 64 bits, the lowest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, some of the bytes may have been written.
    ///
    /// # Errors
    /// Those of [`write_all`](Self::write_all).
    fn write_f64_le(&mut self, n: f64) -> WriteNumber<&mut Self, [u8; 8]>
    where
        Self: Unpin,
    {
        WriteNumber::new(self, n.to_le_bytes())
    }

    /// Passes on all bytes that the writer has in a buffer.
    ///
    /// # Cancel safety
    /// If the future is dropped, some of the bytes may have been passed on. Another call goes on.
    ///
    /// # Errors
    /// The writer's.
    fn flush(&mut self) -> Flush<'_, Self>
    where
        Self: Unpin,
    {
        Flush::new(self)
    }

    /// Ends the writing: flushes, and closes this side of the connection, if there is one.
    ///
    /// # Cancel safety
    /// If the future is dropped, the writer may be flushed or closed. Another call goes on.
    ///
    /// # Errors
    /// The writer's.
    fn shutdown(&mut self) -> Shutdown<'_, Self>
    where
        Self: Unpin,
    {
        Shutdown::new(self)
    }
}

impl<W: AsyncWrite + ?Sized> AsyncWriteExt for W {}
