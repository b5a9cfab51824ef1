use crate::{
    AsyncRead, Chain, Take,
    read::{Read, ReadBuf, ReadExact, ReadNumber, ReadToEnd, ReadToString},
};
use bytes::BufMut;

/// Methods for every [`AsyncRead`] that return futures.
///
/// ```
/// use task_io::AsyncReadExt;
///
/// # futures::executor::block_on(async {
/// let head: &[u8] = b"one two ";
/// let mut reader = head.chain(&b"three"[..]);
///
/// let mut some = [0; 16];
/// let len = reader.read(&mut some).await?;
/// assert_eq!(&some[..len], b"one two ");
///
/// let mut next = [0; 2];
/// reader.read_exact(&mut next).await?;
/// assert_eq!(next, *b"th");
///
/// let mut rest = Vec::with_capacity(2);
/// reader.read_buf(&mut rest).await?;
/// assert_eq!(rest, b"re");
/// reader.read_to_end(&mut rest).await?;
/// assert_eq!(rest, b"ree");
///
/// let mut text = String::new();
/// rest.as_slice().take(2).read_to_string(&mut text).await?;
/// assert_eq!(text, "re");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
///
/// # Numbers
///
/// A method without `_le` reads the highest byte first, as networks do.
///
/// ```
/// use task_io::AsyncReadExt;
///
/// # futures::executor::block_on(async {
/// let mut bytes: &[u8] = &[0x11; 74];
/// assert_eq!(bytes.read_u8().await?, u8::from_ne_bytes([0x11; 1]));
/// assert_eq!(bytes.read_i8().await?, i8::from_ne_bytes([0x11; 1]));
/// assert_eq!(bytes.read_u16().await?, u16::from_ne_bytes([0x11; 2]));
/// assert_eq!(bytes.read_i16().await?, i16::from_ne_bytes([0x11; 2]));
/// assert_eq!(bytes.read_u32().await?, u32::from_ne_bytes([0x11; 4]));
/// assert_eq!(bytes.read_i32().await?, i32::from_ne_bytes([0x11; 4]));
/// assert_eq!(bytes.read_u64().await?, u64::from_ne_bytes([0x11; 8]));
/// assert_eq!(bytes.read_i64().await?, i64::from_ne_bytes([0x11; 8]));
/// assert_eq!(bytes.read_u128().await?, u128::from_ne_bytes([0x11; 16]));
/// assert_eq!(bytes.read_i128().await?, i128::from_ne_bytes([0x11; 16]));
/// assert_eq!(bytes.read_f32().await?, f32::from_ne_bytes([0x11; 4]));
/// assert_eq!(bytes.read_f64().await?, f64::from_ne_bytes([0x11; 8]));
/// assert!(bytes.is_empty());
///
/// bytes = &[0, 1, 0, 2, 0, 3, 0, 0, 1];
/// assert_eq!(bytes.read_u16().await?, 1);
/// assert_eq!(bytes.read_u16_le().await?, 0x200);
/// assert_eq!(bytes.read_i16_le().await?, 0x300);
/// let error = bytes.read_u32().await.unwrap_err();
/// assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
///
/// bytes = &[1; 68];
/// assert_eq!(bytes.read_u32_le().await?, u32::from_ne_bytes([1; 4]));
/// assert_eq!(bytes.read_i32_le().await?, i32::from_ne_bytes([1; 4]));
/// assert_eq!(bytes.read_u64_le().await?, u64::from_ne_bytes([1; 8]));
/// assert_eq!(bytes.read_i64_le().await?, i64::from_ne_bytes([1; 8]));
/// assert_eq!(bytes.read_u128_le().await?, u128::from_ne_bytes([1; 16]));
/// assert_eq!(bytes.read_i128_le().await?, i128::from_ne_bytes([1; 16]));
/// assert_eq!(bytes.read_f32_le().await?, f32::from_ne_bytes([1; 4]));
/// assert_eq!(bytes.read_f64_le().await?, f64::from_ne_bytes([1; 8]));
/// assert!(bytes.is_empty());
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub trait AsyncReadExt: AsyncRead {
    /// Returns a reader of this reader's bytes, and after them of those of `next`.
    fn chain<R>(self, next: R) -> Chain<Self, R>
    where
        Self: Sized,
        R: AsyncRead,
    {
        Chain::new(self, next)
    }

    /// Reads into `buf`, and returns how many bytes. 0 is the end, unless `buf` is empty.
    ///
    /// # Cancel safety
    /// If the future is dropped, no byte was read.
    ///
    /// # Errors
    /// The reader's. No byte was read then.
    fn read<'a>(&'a mut self, buf: &'a mut [u8]) -> Read<'a, Self>
    where
        Self: Unpin,
    {
        Read::new(self, buf)
    }

    /// Reads into the free memory of `buf`, advances `buf`, and returns how many bytes. 0 is the
    /// end, unless `buf` is full.
    ///
    /// # Cancel safety
    /// If the future is dropped, no byte was read.
    ///
    /// # Errors
    /// The reader's. No byte was read then.
    fn read_buf<'a, B>(&'a mut self, buf: &'a mut B) -> ReadBuf<'a, Self, B>
    where
        Self: Unpin,
        B: BufMut + ?Sized,
    {
        ReadBuf::new(self, buf)
    }

    /// Reads until `buf` is full, and returns its length.
    ///
    /// # Cancel safety
    /// If the future is dropped, some bytes may have been read into `buf`, and nothing says how
    /// many.
    ///
    /// # Errors
    /// `UnexpectedEof` if the reader ends before, or the reader's error, except for `Interrupted`,
    /// after which the read is repeated. Some bytes may have been read, but never more than `buf`
    /// has room for.
    fn read_exact<'a>(&'a mut self, buf: &'a mut [u8]) -> ReadExact<'a, Self>
    where
        Self: Unpin,
    {
        ReadExact::new(self, buf)
    }

    /// Reads an unsigned integer of 8 bits.
    ///
    /// # Cancel safety
    /// If the future is dropped, no byte is lost.
    ///
    /// # Errors
    /// Those of [`read_exact`](Self::read_exact).
    fn read_u8(&mut self) -> ReadNumber<&mut Self, u8, [u8; 1]>
    where
        Self: Unpin,
    {
        ReadNumber::new(self, u8::from_be_bytes)
    }

    /// Reads a signed integer of 8 bits.
    ///
    /// # Cancel safety
    /// If the future is dropped, no byte is lost.
    ///
    /// # Errors
    /// Those of [`read_exact`](Self::read_exact).
    fn read_i8(&mut self) -> ReadNumber<&mut Self, i8, [u8; 1]>
    where
        Self: Unpin,
    {
        ReadNumber::new(self, i8::from_be_bytes)
    }

    /// Reads an unsigned integer of 16 bits, the highest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, the bytes that were read are lost.
    ///
    /// # Errors
    /// Those of [`read_exact`](Self::read_exact).
    fn read_u16(&mut self) -> ReadNumber<&mut Self, u16, [u8; 2]>
    where
        Self: Unpin,
    {
        ReadNumber::new(self, u16::from_be_bytes)
    }

    /// Reads a signed integer of 16 bits, the highest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, the bytes that were read are lost.
    ///
    /// # Errors
    /// Those of [`read_exact`](Self::read_exact).
    fn read_i16(&mut self) -> ReadNumber<&mut Self, i16, [u8; 2]>
    where
        Self: Unpin,
    {
        ReadNumber::new(self, i16::from_be_bytes)
    }

    /// Reads an unsigned integer of 32 bits, the highest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, the bytes that were read are lost.
    ///
    /// # Errors
    /// Those of [`read_exact`](Self::read_exact).
    fn read_u32(&mut self) -> ReadNumber<&mut Self, u32, [u8; 4]>
    where
        Self: Unpin,
    {
        ReadNumber::new(self, u32::from_be_bytes)
    }

    /// Reads a signed integer of 32 bits, the highest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, the bytes that were read are lost.
    ///
    /// # Errors
    /// Those of [`read_exact`](Self::read_exact).
    fn read_i32(&mut self) -> ReadNumber<&mut Self, i32, [u8; 4]>
    where
        Self: Unpin,
    {
        ReadNumber::new(self, i32::from_be_bytes)
    }

    /// Reads an unsigned integer of 64 bits, the highest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, the bytes that were read are lost.
    ///
    /// # Errors
    /// Those of [`read_exact`](Self::read_exact).
    fn read_u64(&mut self) -> ReadNumber<&mut Self, u64, [u8; 8]>
    where
        Self: Unpin,
    {
        ReadNumber::new(self, u64::from_be_bytes)
    }

    /// Reads a signed integer of 64 bits, the highest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, the bytes that were read are lost.
    ///
    /// # Errors
    /// Those of [`read_exact`](Self::read_exact).
    fn read_i64(&mut self) -> ReadNumber<&mut Self, i64, [u8; 8]>
    where
        Self: Unpin,
    {
        ReadNumber::new(self, i64::from_be_bytes)
    }

    /// Reads an unsigned integer of 128 bits, the highest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, the bytes that were read are lost.
    ///
    /// # Errors
    /// Those of [`read_exact`](Self::read_exact).
    fn read_u128(&mut self) -> ReadNumber<&mut Self, u128, [u8; 16]>
    where
        Self: Unpin,
    {
        ReadNumber::new(self, u128::from_be_bytes)
    }

    /// Reads a signed integer of 128 bits, the highest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, the bytes that were read are lost.
    ///
    /// # Errors
    /// Those of [`read_exact`](Self::read_exact).
    fn read_i128(&mut self) -> ReadNumber<&mut Self, i128, [u8; 16]>
    where
        Self: Unpin,
    {
        ReadNumber::new(self, i128::from_be_bytes)
    }

    /// Reads a floating-point number of 32 bits, the highest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, the bytes that were read are lost.
    ///
    /// # Errors
    /// Those of [`read_exact`](Self::read_exact).
    fn read_f32(&mut self) -> ReadNumber<&mut Self, f32, [u8; 4]>
    where
        Self: Unpin,
    {
        ReadNumber::new(self, f32::from_be_bytes)
    }

    /// Reads a floating-point number of 64 bits, the highest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, the bytes that were read are lost.
    ///
    /// # Errors
    /// Those of [`read_exact`](Self::read_exact).
    fn read_f64(&mut self) -> ReadNumber<&mut Self, f64, [u8; 8]>
    where
        Self: Unpin,
    {
        ReadNumber::new(self, f64::from_be_bytes)
    }

    /// Reads an unsigned integer of 16 bits, the lowest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, the bytes that were read are lost.
    ///
    /// # Errors
    /// Those of [`read_exact`](Self::read_exact).
    fn read_u16_le(&mut self) -> ReadNumber<&mut Self, u16, [u8; 2]>
    where
        Self: Unpin,
    {
        ReadNumber::new(self, u16::from_le_bytes)
    }

    /// Reads a signed integer of 16 bits, the lowest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, the bytes that were read are lost.
    ///
    /// # Errors
    /// Those of [`read_exact`](Self::read_exact).
    fn read_i16_le(&mut self) -> ReadNumber<&mut Self, i16, [u8; 2]>
    where
        Self: Unpin,
    {
        ReadNumber::new(self, i16::from_le_bytes)
    }

    /// Reads an unsigned integer of 32 bits, the lowest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, the bytes that were read are lost.
    ///
    /// # Errors
    /// Those of [`read_exact`](Self::read_exact).
    fn read_u32_le(&mut self) -> ReadNumber<&mut Self, u32, [u8; 4]>
    where
        Self: Unpin,
    {
        ReadNumber::new(self, u32::from_le_bytes)
    }

    /// Reads a signed integer of 32 bits, the lowest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, the bytes that were read are lost.
    ///
    /// # Errors
    /// Those of [`read_exact`](Self::read_exact).
    fn read_i32_le(&mut self) -> ReadNumber<&mut Self, i32, [u8; 4]>
    where
        Self: Unpin,
    {
        ReadNumber::new(self, i32::from_le_bytes)
    }

    /// Reads an unsigned integer of 64 bits, the lowest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, the bytes that were read are lost.
    ///
    /// # Errors
    /// Those of [`read_exact`](Self::read_exact).
    fn read_u64_le(&mut self) -> ReadNumber<&mut Self, u64, [u8; 8]>
    where
        Self: Unpin,
    {
        ReadNumber::new(self, u64::from_le_bytes)
    }

    /// Reads a signed integer of 64 bits, the lowest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, the bytes that were read are lost.
    ///
    /// # Errors
    /// Those of [`read_exact`](Self::read_exact).
    fn read_i64_le(&mut self) -> ReadNumber<&mut Self, i64, [u8; 8]>
    where
        Self: Unpin,
    {
        ReadNumber::new(self, i64::from_le_bytes)
    }

    /// Reads an unsigned integer of 128 bits, the lowest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, the bytes that were read are lost.
    ///
    /// # Errors
    /// Those of [`read_exact`](Self::read_exact).
    fn read_u128_le(&mut self) -> ReadNumber<&mut Self, u128, [u8; 16]>
    where
        Self: Unpin,
    {
        ReadNumber::new(self, u128::from_le_bytes)
    }

    /// Reads a signed integer of 128 bits, the lowest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, the bytes that were read are lost.
    ///
    /// # Errors
    /// Those of [`read_exact`](Self::read_exact).
    fn read_i128_le(&mut self) -> ReadNumber<&mut Self, i128, [u8; 16]>
    where
        Self: Unpin,
    {
        ReadNumber::new(self, i128::from_le_bytes)
    }

    /// Reads a floating-point number of 32 bits, the lowest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, the bytes that were read are lost.
    ///
    /// # Errors
    /// Those of [`read_exact`](Self::read_exact).
    fn read_f32_le(&mut self) -> ReadNumber<&mut Self, f32, [u8; 4]>
    where
        Self: Unpin,
    {
        ReadNumber::new(self, f32::from_le_bytes)
    }

    /// Reads a floating-point number of 64 bits, the lowest byte first.
    ///
    /// # Cancel safety
    /// If the future is dropped, the bytes that were read are lost.
    ///
    /// # Errors
    /// Those of [`read_exact`](Self::read_exact).
    fn read_f64_le(&mut self) -> ReadNumber<&mut Self, f64, [u8; 8]>
    where
        Self: Unpin,
    {
        ReadNumber::new(self, f64::from_le_bytes)
    }

    /// Reads until the reader ends, appends the bytes to `buf`, and returns how many.
    ///
    /// A vector whose capacity is exact does not grow.
    ///
    /// # Cancel safety
    /// If the future is dropped, the bytes that were read are in `buf`.
    ///
    /// # Errors
    /// The reader's, except for `Interrupted`, after which the read is repeated. The bytes that
    /// were read are in `buf`. `OutOfMemory` if `buf` cannot grow.
    fn read_to_end<'a>(&'a mut self, buf: &'a mut Vec<u8>) -> ReadToEnd<'a, Self>
    where
        Self: Unpin,
    {
        ReadToEnd::new(self, buf)
    }

    /// Reads until the reader ends, appends the text to `buf`, and returns its length in bytes.
    ///
    /// # Cancel safety
    /// If the future is dropped, the bytes that were read are lost, and `buf` is as it was before.
    ///
    /// # Errors
    /// Those of [`read_to_end`](Self::read_to_end), and `InvalidData`, with a
    /// [`Utf8Error`](std::str::Utf8Error) inside, if the bytes are not UTF-8. After an error `buf` is as it was before.
    fn read_to_string<'a>(&'a mut self, dst: &'a mut String) -> ReadToString<'a, Self>
    where
        Self: Unpin,
    {
        ReadToString::new(self, dst)
    }

    /// Returns a reader of at most `limit` bytes of this reader.
    fn take(self, limit: u64) -> Take<Self>
    where
        Self: Sized,
    {
        Take::new(self, limit)
    }
}

impl<R: AsyncRead + ?Sized> AsyncReadExt for R {}
