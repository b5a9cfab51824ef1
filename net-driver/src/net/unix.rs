//! The halves of a [`UnixStream`], addresses and credentials of Unix sockets, and [`pipe`]s.
//!
//! On Linux, a path that begins with a zero byte (`"\0name"`) is an *abstract* name: there is no
//! file, and the name is free as soon as its socket is closed.
//!
//! ```
//! use futures_lite::{AsyncReadExt, AsyncWriteExt};
//! use net_driver::{Driver, net::{UnixStream, unix::SocketAddr}};
//!
//! Driver::new(1).park(0).block_on(async {
//!     let (one, mut other) = UnixStream::pair()?;
//!     let (mut read, mut write) = one.into_split();
//!     write.write_all(b"ping").await?;
//!     let mut message = [0; 4];
//!     other.read_exact(&mut message).await?;
//!     other.write_all(&message).await?;
//!     read.read_exact(&mut message).await?;
//!     assert_eq!(&message, b"ping");
//!
//!     let one: UnixStream = read.reunite(write).unwrap();
//!     let address: SocketAddr = one.local_addr()?;
//!     assert!(address.is_unnamed());
//!     std::io::Result::Ok(())
//! }).unwrap();
//! ```
use super::{UnixStream, split, stream_io};
use crate::{Interest, Ready};
use std::{
    io::{self, IoSlice, IoSliceMut},
    sync::Arc,
};

pub(super) mod address;
pub mod pipe;
mod socket_addr;
mod ucred;

pub use socket_addr::SocketAddr;
pub use ucred::UCred;

/// The ids of [`UCred`], under tokio's names.
///
/// ```
/// # net_driver::Driver::new(1).park(0).block_on(async {
/// use net_driver::net::unix::{gid_t, pid_t, uid_t};
///
/// let peer = net_driver::net::UnixStream::pair()?.0.peer_cred()?;
/// let _: (uid_t, gid_t, Option<pid_t>) = (peer.uid(), peer.gid(), peer.pid());
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub use libc::{gid_t, pid_t, uid_t};

split::halves!(
    UnixStream,
    SocketAddr,
    /// The read half of a [`UnixStream`] that [`UnixStream::split`] borrows.
    ///
    /// ```
    /// # use net_driver::{Driver, net::UnixStream};
    /// # use futures_lite::{AsyncReadExt, AsyncWriteExt};
    /// # Driver::new(1).park(0).block_on(async {
    /// # let (mut stream, mut peer) = UnixStream::pair()?;
    /// let (mut read, write) = stream.split();
    /// peer.write_all(b"hello").await?;
    /// read.readable().await?;
    /// let mut to = [0; 2];
    /// assert_eq!(read.try_read(&mut to)?, 2);
    /// let mut rest = [std::io::IoSliceMut::new(&mut to)];
    /// assert_eq!(read.try_read_vectored(&mut rest)?, 2);
    /// read.read_exact(&mut to[..1]).await?;
    /// assert!(read.try_read_buf(&mut vec![]).is_err()); // Nothing is left.
    /// assert!(read.peer_addr()?.is_unnamed());
    /// assert!(read.local_addr()?.is_unnamed());
    /// # let _ = read.ready(net_driver::Interest::READABLE);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    ;
    /// The write half of a [`UnixStream`] that [`UnixStream::split`] borrows.
    ///
    /// ```
    /// # use net_driver::{Driver, Interest, net::UnixStream};
    /// # use futures_lite::{AsyncReadExt, AsyncWriteExt};
    /// # Driver::new(1).park(0).block_on(async {
    /// # let (mut stream, mut peer) = UnixStream::pair()?;
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
    /// The read half of a [`UnixStream`] from [`UnixStream::into_split`].
    ///
    /// ```
    /// # use net_driver::{Driver, Interest, net::UnixStream};
    /// # use futures_lite::{AsyncReadExt, AsyncWriteExt};
    /// # Driver::new(1).park(0).block_on(async {
    /// # let (stream, mut peer) = UnixStream::pair()?;
    /// let (mut read, write) = stream.into_split();
    /// peer.write_all(b"hello").await?;
    /// read.readable().await?;
    /// assert!(read.ready(Interest::READABLE).await?.is_readable());
    /// let mut to = [0; 2];
    /// assert_eq!(read.try_read(&mut to)?, 2);
    /// let mut rest = [std::io::IoSliceMut::new(&mut to)];
    /// assert_eq!(read.try_read_vectored(&mut rest)?, 2);
    /// read.read_exact(&mut to[..1]).await?;
    /// assert!(read.try_read_buf(&mut vec![]).is_err()); // Nothing is left.
    /// assert!(read.peer_addr()?.is_unnamed());
    /// assert!(read.local_addr()?.is_unnamed());
    /// let stream: UnixStream = read.reunite(write).unwrap();
    /// # drop(stream);
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    ;
    /// The write half of a [`UnixStream`] from [`UnixStream::into_split`].
    ///
    /// Its drop closes the stream for writing: the other side reads the end of the stream. See
    /// [`forget`](Self::forget).
    ///
    /// ```
    /// # use net_driver::{Driver, Interest, net::UnixStream};
    /// # use futures_lite::{AsyncReadExt, AsyncWriteExt};
    /// # Driver::new(1).park(0).block_on(async {
    /// # let (stream, mut peer) = UnixStream::pair()?;
    /// let (read, write) = stream.into_split();
    /// write.writable().await?;
    /// assert!(write.ready(Interest::WRITABLE).await?.is_writable());
    /// assert_eq!(write.try_write(b"a")?, 1);
    /// assert_eq!(write.try_write_vectored(&[std::io::IoSlice::new(b"b")])?, 1);
    /// assert!(write.peer_addr()?.is_unnamed());
    /// assert!(write.local_addr()?.is_unnamed());
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
    /// # use net_driver::{Driver, net::{UnixStream, unix::ReuniteError}};
    /// # Driver::new(1).park(0).block_on(async {
    /// # let (one, other) = UnixStream::pair()?;
    /// let ((read, _write), (_read, write)) = (one.into_split(), other.into_split());
    /// let ReuniteError(_read, _write) = read.reunite(write).unwrap_err();
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
);
