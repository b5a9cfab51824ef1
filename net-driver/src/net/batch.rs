//! Many datagrams by one system call: the types that
//! [`UdpSocket::recv_many`](super::UdpSocket::recv_many) and
//! [`UdpSocket::send_many`](super::UdpSocket::send_many) take.
//!
//! A [`RecvBatch`] owns the memory of the datagrams that it receives, and is used again and again.
//! A send borrows its bytes, one [`Transmit`] for each datagram. So neither allocates or copies.
//!
//! An echo server sends from the batch into which it has received. A send takes as many datagrams
//! as the kernel has room for, so a loop sends the rest. An error belongs to the first datagram of
//! the send, which this loop leaves out:
//!
//! ```
//! use net_driver::{Driver, net::{UdpSocket, batch::{RecvBatch, Transmit}}};
//!
//! async fn echo(socket: &UdpSocket, batch: &mut RecvBatch) -> std::io::Result<()> {
//!     let count = socket.recv_many(batch).await?;
//!     // A batch has 64 datagrams at most.
//!     let mut answers = [Transmit::new(b""); 64];
//!     for (answer, each) in answers.iter_mut().zip(batch.iter()) {
//!         *answer = Transmit::new(each.bytes()).to(each.sender());
//!     }
//!     let mut sent = 0;
//!     while sent < count {
//!         sent += socket.send_many(&answers[sent..count]).await.unwrap_or(1);
//!     }
//!     Ok(())
//! }
//!
//! Driver::new(1).park(0).block_on(async {
//!     let server = UdpSocket::bind("127.0.0.1:0").await?;
//!     let client = UdpSocket::bind("127.0.0.1:0").await?;
//!     client.connect(server.local_addr()?).await?;
//!     let (one, other) = (Transmit::new(b"one"), Transmit::new(b"other"));
//!     assert_eq!(client.send_many(&[one, other]).await?, 2);
//!
//!     // Up to 16 datagrams at a time, of up to 2,048 bytes each.
//!     let mut batch = RecvBatch::new(16, 2_048);
//!     echo(&server, &mut batch).await?;
//!     assert_eq!(client.recv_many(&mut batch).await?, 2);
//!     let first = batch.get(0).unwrap();
//!     assert_eq!((first.bytes(), first.sender()), (&b"one"[..], server.local_addr()?));
//!     assert!(!first.is_truncated());
//!     std::io::Result::Ok(())
//! }).unwrap();
//! ```
//!
//! # Systems
//! On Linux one call of `recvmmsg` or `sendmmsg` moves up to 64 datagrams. On other systems
//! each datagram is a call of its own. In both cases the first error ends the batch: the operation
//! returns how many datagrams went before, and the next operation reports the error.
//!
//! Linux makes one exception. If a later datagram of a send meets an error of the socket, such as
//! the refusal of a datagram that went before (`ECONNREFUSED`), that error is lost.
//!
//! # Segments
//! On Linux several datagrams of one length can pass through the kernel as one buffer. A
//! [`Transmit`] with a `segment_size` is cut up below the socket (GSO). A socket with
//! [`set_gro`](super::UdpSocket::set_gro) receives datagrams of one peer that are joined (GRO), and
//! [`Datagram::segments`] cuts them up.
mod datagram;
#[cfg(target_os = "linux")]
pub(super) mod linux;
#[cfg(any(test, not(target_os = "linux")))]
pub(super) mod portable;
mod recv_batch;
mod transmit;

pub use datagram::Datagram;
pub use recv_batch::RecvBatch;
pub use transmit::Transmit;

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
