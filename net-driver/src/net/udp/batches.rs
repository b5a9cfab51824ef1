//! Batches of datagrams.
use super::UdpSocket;
#[cfg(target_os = "linux")]
use crate::net::batch::linux;
#[cfg(not(target_os = "linux"))]
use crate::net::batch::portable;
use crate::{
    Interest,
    net::batch::{RecvBatch, Transmit},
    slot::Direction,
    sys::handle,
};
#[cfg(target_os = "linux")]
use std::sync::atomic::Ordering::Relaxed;
use std::{
    convert::identity,
    io,
    task::{Context, Poll},
};

/// Batches of datagrams (see [`batch`](crate::net::batch)). Each datagram is charged to the task's
/// budget as a single send or receive: also each of those into which the kernel cuts a buffer up,
/// but not each of those that it has joined.
///
/// ```
/// use net_driver::{Driver, net::{UdpSocket, batch::{RecvBatch, Transmit}}};
/// use std::future::poll_fn;
///
/// Driver::new(1).park(0).block_on(async {
///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
///     socket.connect(socket.local_addr()?).await?;
///     let messages = [Transmit::new(b"a"), Transmit::new(b"b")];
///     let mut batch = RecvBatch::new(8, 16);
///
///     assert_eq!(socket.send_many(&messages).await?, 2);
///     assert_eq!(socket.recv_many(&mut batch).await?, 2);
///     assert_eq!(socket.try_send_many(&messages)?, 2);
///     assert_eq!(socket.try_recv_many(&mut batch)?, 2);
///     assert_eq!(poll_fn(|cx| socket.poll_send_many(cx, &messages)).await?, 2);
///     assert_eq!(poll_fn(|cx| socket.poll_recv_many(cx, &mut batch)).await?, 2);
///     std::io::Result::Ok(())
/// }).unwrap();
/// ```
impl UdpSocket {
    /// Waits for a datagram, and receives those that have come: as many as the batch has slots, and
    /// at most 64. Returns how many.
    ///
    /// If the future is dropped before it is ready, no datagram is lost.
    ///
    /// # Errors
    /// As [`recv_from`](Self::recv_from). An error that follows a datagram is the result of the
    /// socket's next operation, on Linux a send or a receive of any kind, and elsewhere a batch.
    pub async fn recv_many(&self, to: &mut RecvBatch) -> io::Result<usize> {
        to.clear();
        self.late_error()?;
        let receive = || self.receive_batch(to);
        self.source
            .many(Interest::READABLE, receive, identity)
            .await
    }

    /// Polls for a [`recv_many`](Self::recv_many). Only the last task that polled is woken.
    ///
    /// # Errors
    /// As `recv_many`.
    pub fn poll_recv_many(
        &self,
        cx: &mut Context<'_>,
        to: &mut RecvBatch,
    ) -> Poll<io::Result<usize>> {
        to.clear();
        self.late_error()?;
        let receive = || self.receive_batch(to);
        self.source
            .poll_many(cx, Direction::Read, receive, identity)
    }

    /// Receives without a wait.
    ///
    /// # Errors
    /// `WouldBlock` if there is no datagram; else as [`recv_many`](Self::recv_many).
    pub fn try_recv_many(&self, to: &mut RecvBatch) -> io::Result<usize> {
        to.clear();
        self.late_error()?;
        self.source
            .try_io(Interest::READABLE, || self.receive_batch(to))
    }

    fn receive_batch(&self, to: &mut RecvBatch) -> io::Result<usize> {
        #[cfg(target_os = "linux")]
        {
            // Ordering: Relaxed. `set_gro` stores it before the kernel joins any. A receive on
            // another thread that began before may pass no room for the length of segments.
            let is_joined = self.is_joined.load(Relaxed);
            to.receive(handle::borrow(self.source.io()), is_joined)
        }
        #[cfg(not(target_os = "linux"))]
        return to.receive_each(handle::borrow(self.source.io()), &self.late);
    }

    /// Fails with the error that an earlier batch has met. Linux itself keeps such errors.
    fn late_error(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        return Ok(());
        #[cfg(not(target_os = "linux"))]
        return self.late.check();
    }

    /// Waits for room, and sends as many of the datagrams as have room, in their order, and at most
    /// 64. Returns how many went; the others are to be sent again. A batch of no datagrams sends
    /// none, after the same wait. A [`Transmit`] that the kernel cuts up counts as the datagrams
    /// that it becomes, but the first one goes in any case.
    ///
    /// ```
    /// use net_driver::net::{UdpSocket, batch::Transmit};
    ///
    /// async fn send_all(socket: &UdpSocket, messages: &[Transmit<'_>]) -> std::io::Result<()> {
    ///     let mut sent = 0;
    ///     while sent < messages.len() {
    ///         sent += socket.send_many(&messages[sent..]).await?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// This loop ends at the first error, which belongs to `messages[sent]`. `sent += 1` would skip
    /// that datagram. If the future is dropped before it is ready, nothing was sent.
    ///
    /// # Errors
    /// As [`send`](Self::send) and [`send_to`](Self::send_to), for the first datagram. An error of
    /// a later one ends the batch before it, so that the next batch begins with that datagram. An
    /// error of the socket, such as the refusal of a datagram that went before (`ECONNREFUSED`),
    /// has no datagram: if a later datagram of a batch meets it, Linux loses it, and elsewhere the
    /// next batch fails with it.
    pub async fn send_many(&self, messages: &[Transmit<'_>]) -> io::Result<usize> {
        self.late_error()?;
        let send = || self.send_batch(messages);
        self.source
            .many(Interest::WRITABLE, send, |count| {
                datagrams(&messages[..count])
            })
            .await
    }

    /// Polls for a [`send_many`](Self::send_many). Only the last task that polled is woken.
    ///
    /// # Errors
    /// As `send_many`.
    pub fn poll_send_many(
        &self,
        cx: &mut Context<'_>,
        messages: &[Transmit<'_>],
    ) -> Poll<io::Result<usize>> {
        self.late_error()?;
        let send = || self.send_batch(messages);
        self.source.poll_many(cx, Direction::Write, send, |count| {
            datagrams(&messages[..count])
        })
    }

    /// Sends without a wait.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; else as [`send_many`](Self::send_many).
    pub fn try_send_many(&self, messages: &[Transmit<'_>]) -> io::Result<usize> {
        self.late_error()?;
        self.source
            .try_io(Interest::WRITABLE, || self.send_batch(messages))
    }

    fn send_batch(&self, messages: &[Transmit<'_>]) -> io::Result<usize> {
        #[cfg(target_os = "linux")]
        return linux::send(handle::borrow(self.source.io()), messages);
        #[cfg(not(target_os = "linux"))]
        return portable::send(handle::borrow(self.source.io()), messages, &self.late);
    }
}

/// Counts the datagrams after the kernel has cut them up.
fn datagrams(messages: &[Transmit<'_>]) -> usize {
    messages.iter().map(Transmit::datagrams).sum()
}

/// Datagrams that are joined (GRO) or cut up (GSO) by the kernel.
///
/// ```
/// use net_driver::{Driver, net::{UdpSocket, batch::{RecvBatch, Transmit}}};
///
/// Driver::new(1).park(0).block_on(async {
///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
///     if socket.has_gso()? && socket.set_gro(true).is_ok() {
///         assert!(socket.gro()?);
///         let at = socket.local_addr()?;
///         let datagrams = Transmit::new(b"onetwo").to(at).segment_size(3);
///         socket.send_many(&[datagrams]).await?;
///         let mut batch = RecvBatch::new(2, 65_535);
///         socket.recv_many(&mut batch).await?;
///         // The kernel may join them, or not.
///         let segments = batch.iter().flat_map(|each| each.segments());
///         assert!(segments.eq([&b"one"[..], b"two"]));
///     }
///     std::io::Result::Ok(())
/// }).unwrap();
/// ```
#[cfg(target_os = "linux")]
impl UdpSocket {
    /// Sets whether the kernel may join datagrams of one peer and one length (`UDP_GRO`). Then only
    /// [`recv_many`](Self::recv_many) and its like say where each begins: a
    /// [`recv`](Self::recv) returns the bytes of all of them. Set it before the first receive, and
    /// by no other means once the socket is a `UdpSocket`.
    ///
    /// # Errors
    /// If the kernel has no GRO of UDP. Linux has it since 5.0.
    pub fn set_gro(&self, on: bool) -> io::Result<()> {
        if on {
            // Ordering: Relaxed, as in `receive_batch`. No store takes it back, as datagrams that
            // are joined may be left.
            self.is_joined.store(true, Relaxed);
        }
        linux::set_option(handle::borrow(self.source.io()), libc::UDP_GRO, on.into())
    }

    /// Returns whether the kernel may join datagrams.
    ///
    /// # Errors
    /// As [`set_gro`](Self::set_gro).
    pub fn gro(&self) -> io::Result<bool> {
        linux::option(handle::borrow(self.source.io()), libc::UDP_GRO).map(|on| on != 0)
    }

    /// Returns whether the kernel cuts up the bytes of a [`Transmit`] with a
    /// [`segment_size`](Transmit::segment_size). Linux has this since 4.18.
    ///
    /// # Errors
    /// If the system call fails otherwise.
    pub fn has_gso(&self) -> io::Result<bool> {
        match linux::option(handle::borrow(self.source.io()), libc::UDP_SEGMENT) {
            Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => Ok(false),
            value => value.map(|_| true),
        }
    }
}
