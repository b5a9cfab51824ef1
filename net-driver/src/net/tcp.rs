//! The halves of a [`TcpStream`].
//!
//! ```
//! use futures_lite::{AsyncReadExt, AsyncWriteExt, future::zip, io::copy};
//! use net_driver::{Driver, net::{TcpListener, TcpStream}};
//!
//! Driver::new(1).park(0).block_on(async {
//!     let listener = TcpListener::bind("127.0.0.1:0").await?;
//!     let client = TcpStream::connect(listener.local_addr()?).await?;
//!     let (server, _) = listener.accept().await?;
//!
//!     let (from_client, to_client) = server.into_split();
//!     let echo = copy(from_client, to_client);
//!     let (mut from_server, mut to_server) = client.into_split();
//!     let talk = async move {
//!         to_server.write_all(b"hello").await?;
//!         drop(to_server); // The server reads the end of the stream.
//!         let mut all = String::new();
//!         from_server.read_to_string(&mut all).await?;
//!         std::io::Result::Ok(all)
//!     };
//!     let (echoed, received) = zip(echo, talk).await;
//!     assert_eq!((echoed?, received?), (5, "hello".to_owned()));
//!     std::io::Result::Ok(())
//! }).unwrap();
//! ```
use super::{TcpStream, bufs, split, stream_io};
use crate::{Interest, Ready};
use std::{
    io::{self, IoSlice, IoSliceMut},
    net::SocketAddr,
    sync::Arc,
    task::{Context, Poll},
};
use task_io::ReadBuf;

split::halves!(
    TcpStream,
    SocketAddr,
    /// The read half of a [`TcpStream`] that [`TcpStream::split`] borrows.
    ///
    /// ```
    /// # use net_driver::{Driver, net::{TcpListener, TcpStream}};
    /// # use futures_lite::{AsyncReadExt, AsyncWriteExt};
    /// # use std::future::poll_fn;
    /// # Driver::new(1).park(0).block_on(async {
    /// # let listener = TcpListener::bind("127.0.0.1:0").await?;
    /// # let mut stream = TcpStream::connect(listener.local_addr()?).await?;
    /// # let (mut peer, _) = listener.accept().await?;
    /// let (mut read, write) = stream.split();
    /// peer.write_all(b"hello").await?;
    /// read.readable().await?;
    /// let mut peeked = [0; 8];
    /// assert_eq!(read.peek(&mut peeked).await?, 5);
    /// assert_eq!(poll_fn(|cx| read.poll_peek_slice(cx, &mut peeked)).await?, 5);
    /// let mut buf = task_io::ReadBuf::new(&mut peeked);
    /// assert_eq!(poll_fn(|cx| read.poll_peek(cx, &mut buf)).await?, 5);
    /// let mut to = [0; 2];
    /// assert_eq!(read.try_read(&mut to)?, 2);
    /// let mut rest = [std::io::IoSliceMut::new(&mut to)];
    /// assert_eq!(read.try_read_vectored(&mut rest)?, 2);
    /// read.read_exact(&mut to[..1]).await?;
    /// assert!(read.try_read_buf(&mut vec![]).is_err()); // Nothing is left.
    /// assert_eq!(read.peer_addr()?, write.peer_addr()?);
    /// assert_eq!(read.local_addr()?, write.local_addr()?);
    /// # let _ = read.ready(net_driver::Interest::READABLE);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    ;
    /// The write half of a [`TcpStream`] that [`TcpStream::split`] borrows.
    ///
    /// ```
    /// # use net_driver::{Driver, Interest, net::{TcpListener, TcpStream}};
    /// # use futures_lite::{AsyncReadExt, AsyncWriteExt};
    /// # Driver::new(1).park(0).block_on(async {
    /// # let listener = TcpListener::bind("127.0.0.1:0").await?;
    /// # let mut stream = TcpStream::connect(listener.local_addr()?).await?;
    /// # let (mut peer, _) = listener.accept().await?;
    /// let (_read, mut write) = stream.split();
    /// write.writable().await?;
    /// assert!(write.ready(Interest::WRITABLE).await?.is_writable());
    /// assert_eq!(write.try_write(b"a")?, 1);
    /// assert_eq!(write.try_write_vectored(&[std::io::IoSlice::new(b"b")])?, 1);
    /// write.close().await?;
    /// let mut all = String::new();
    /// peer.read_to_string(&mut all).await?;
    /// assert_eq!(all, "ab");
    /// # let _ = (write.peer_addr()?, write.local_addr()?);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    ;
    /// The read half of a [`TcpStream`] from [`TcpStream::into_split`].
    ///
    /// ```
    /// # use net_driver::{Driver, Interest, net::{TcpListener, TcpStream}};
    /// # use futures_lite::{AsyncReadExt, AsyncWriteExt};
    /// # use std::future::poll_fn;
    /// # Driver::new(1).park(0).block_on(async {
    /// # let listener = TcpListener::bind("127.0.0.1:0").await?;
    /// # let stream = TcpStream::connect(listener.local_addr()?).await?;
    /// # let (mut peer, _) = listener.accept().await?;
    /// let (mut read, write) = stream.into_split();
    /// peer.write_all(b"hello").await?;
    /// read.readable().await?;
    /// assert!(read.ready(Interest::READABLE).await?.is_readable());
    /// let mut to = [0; 2];
    /// assert_eq!(read.peek(&mut to).await?, 2);
    /// assert_eq!(poll_fn(|cx| read.poll_peek_slice(cx, &mut to)).await?, 2);
    /// let mut buf = task_io::ReadBuf::new(&mut to);
    /// assert_eq!(poll_fn(|cx| read.poll_peek(cx, &mut buf)).await?, 2);
    /// assert_eq!(read.try_read(&mut to)?, 2);
    /// let mut rest = [std::io::IoSliceMut::new(&mut to)];
    /// assert_eq!(read.try_read_vectored(&mut rest)?, 2);
    /// read.read_exact(&mut to[..1]).await?;
    /// assert!(read.try_read_buf(&mut vec![]).is_err()); // Nothing is left.
    /// assert_eq!(read.peer_addr()?, peer.local_addr()?);
    /// assert_eq!(read.local_addr()?, peer.peer_addr()?);
    /// let stream: TcpStream = read.reunite(write).unwrap();
    /// # drop(stream);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    ;
    /// The write half of a [`TcpStream`] from [`TcpStream::into_split`].
    ///
    /// Its drop closes the stream for writing: the other side reads the end of the stream. See
    /// [`forget`](Self::forget).
    ///
    /// ```
    /// # use net_driver::{Driver, Interest, net::{TcpListener, TcpStream}};
    /// # use futures_lite::{AsyncReadExt, AsyncWriteExt};
    /// # Driver::new(1).park(0).block_on(async {
    /// # let listener = TcpListener::bind("127.0.0.1:0").await?;
    /// # let stream = TcpStream::connect(listener.local_addr()?).await?;
    /// # let (mut peer, _) = listener.accept().await?;
    /// let (read, write) = stream.into_split();
    /// write.writable().await?;
    /// assert!(write.ready(Interest::WRITABLE).await?.is_writable());
    /// assert_eq!(write.try_write(b"a")?, 1);
    /// assert_eq!(write.try_write_vectored(&[std::io::IoSlice::new(b"b")])?, 1);
    /// assert_eq!(write.peer_addr()?, peer.local_addr()?);
    /// assert_eq!(write.local_addr()?, peer.peer_addr()?);
    /// let (read, write) = write.reunite(read).unwrap().into_split();
    /// write.forget(); // A drop of `write` would close the stream for writing.
    /// drop(read);
    /// let mut all = String::new();
    /// peer.read_to_string(&mut all).await?;
    /// assert_eq!(all, "ab");
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    ;
    /// The error of `reunite` for two halves that are not of one stream. It contains both halves.
    ///
    /// ```
    /// # use net_driver::{Driver, net::{TcpListener, TcpStream, tcp::ReuniteError}};
    /// # Driver::new(1).park(0).block_on(async {
    /// # let listener = TcpListener::bind("127.0.0.1:0").await?;
    /// # let one = TcpStream::connect(listener.local_addr()?).await?;
    /// # let other = TcpStream::connect(listener.local_addr()?).await?;
    /// let ((read, _write), (_read, write)) = (one.into_split(), other.into_split());
    /// let ReuniteError(_read, _write) = read.reunite(write).unwrap_err();
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
);

/// Implements the peeks of a read half.
macro_rules! peek_methods {
    ($half:ty) => {
        impl $half {
            /// Reads without taking the bytes from the stream.
            ///
            /// # Errors
            /// As a read.
            pub async fn peek(&mut self, to: &mut [u8]) -> io::Result<usize> {
                std::future::poll_fn(|cx| self.poll_peek_slice(cx, to)).await
            }

            /// Polls for a [`peek`](Self::peek).
            ///
            /// # Errors
            /// As a read.
            pub fn poll_peek_slice(
                &mut self,
                cx: &mut Context<'_>,
                to: &mut [u8],
            ) -> Poll<io::Result<usize>> {
                self.0.poll_peek_slice(cx, to)
            }

            /// Polls for a [`peek`](Self::peek) into a buffer that need not be initialised. Returns
            /// the number of bytes.
            ///
            /// # Errors
            /// As a read.
            pub fn poll_peek(
                &mut self,
                cx: &mut Context<'_>,
                to: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<usize>> {
                self.0.poll_peek(cx, to)
            }
        }
    };
}

peek_methods!(ReadHalf<'_>);
peek_methods!(OwnedReadHalf);

impl TcpStream {
    /// Polls for a [`peek`](Self::peek). Only the last task that polled is woken.
    ///
    /// # Errors
    /// As a read.
    pub fn poll_peek_slice(&self, cx: &mut Context<'_>, to: &mut [u8]) -> Poll<io::Result<usize>> {
        self.source.poll_reading(cx, || self.source.io().peek(to))
    }

    /// Polls for a [`peek`](Self::peek) into a buffer that need not be initialised. Returns the
    /// number of bytes. Only the last task that polled is woken.
    ///
    /// # Errors
    /// As a read.
    pub fn poll_peek(&self, cx: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<usize>> {
        let peek = || bufs::peek(to, self.source.io().into());
        self.source.poll_reading(cx, peek)
    }
}
