//! The memory of datagrams that are received.
use super::datagram::{Datagram, Head};
#[cfg(target_os = "linux")]
use super::linux;
#[cfg(any(test, not(target_os = "linux")))]
use super::portable;
use super::transmit::MOST;
use crate::sys::handle::BorrowedHandle;
use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
};

/// Room for datagrams, which [`recv_many`](crate::net::UdpSocket::recv_many) fills.
///
/// A receive empties it first. It is empty after an error, and while a receive waits.
///
/// ```
/// use net_driver::net::batch::RecvBatch;
///
/// let mut batch = RecvBatch::new(8, 1_500);
/// assert_eq!((batch.slots(), batch.room(), batch.len()), (8, 1_500, 0));
/// assert!(batch.is_empty() && batch.get(0).is_none() && batch.iter().next().is_none());
/// batch.clear();
/// ```
pub struct RecvBatch {
    /// The memory of all slots, one behind the other.
    bytes: Vec<u8>,
    heads: Vec<Head>,
    #[cfg(target_os = "linux")]
    rooms: Vec<linux::Room>,
    room: usize,
    filled: usize,
}

impl RecvBatch {
    /// Creates a batch of `slots` datagrams of up to `room` bytes each. A longer one loses its end.
    ///
    /// An operation fills up to 64 slots, so a batch has no more than those. A datagram has up to
    /// 65,507 bytes of data over IPv4, and up to 65,527 over IPv6. With
    /// [`set_gro`](crate::net::UdpSocket::set_gro) a slot should have room for 65,535 bytes. A
    /// batch without slots receives nothing, and the count is then 0.
    ///
    /// # Panics
    /// If so much memory cannot be addressed.
    pub fn new(slots: usize, room: usize) -> Self {
        let nobody = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let head = Head {
            from: nobody,
            len: 0,
            segment: 0,
            is_truncated: false,
        };
        let slots = slots.min(MOST);
        let len = slots.checked_mul(room);
        Self {
            bytes: vec![0; len.expect("the memory of a batch can be addressed")],
            heads: vec![head; slots],
            #[cfg(target_os = "linux")]
            rooms: vec![linux::Room::default(); slots],
            room,
            filled: 0,
        }
    }

    /// Returns the number of datagrams that the last receive has brought.
    pub fn len(&self) -> usize {
        self.filled
    }

    /// Returns whether there is no datagram.
    pub fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Returns the number of slots, at most 64.
    pub fn slots(&self) -> usize {
        self.heads.len()
    }

    /// Returns the most bytes of a datagram.
    pub fn room(&self) -> usize {
        self.room
    }

    /// Removes all datagrams.
    pub fn clear(&mut self) {
        self.filled = 0;
    }

    /// Returns a datagram, in the order in which they came.
    pub fn get(&self, at: usize) -> Option<Datagram<'_>> {
        let head = self.heads[..self.filled].get(at)?;
        let bytes = &self.bytes[at * self.room..][..head.len];
        Some(Datagram { bytes, head })
    }

    /// Returns the datagrams, in the order in which they came.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Datagram<'_>> + Clone {
        let heads = self.heads[..self.filled].iter().enumerate();
        heads.map(|(at, head)| Datagram {
            bytes: &self.bytes[at * self.room..][..head.len],
            head,
        })
    }

    /// Fills the slots with the datagrams that have come. `is_joined` says whether the kernel may
    /// have joined them.
    #[cfg(target_os = "linux")]
    pub(in crate::net) fn receive(
        &mut self,
        socket: BorrowedHandle<'_>,
        is_joined: bool,
    ) -> io::Result<usize> {
        self.filled = 0;
        let slots = (&mut *self.bytes, self.room);
        self.filled = linux::receive(socket, slots, &mut self.rooms, &mut self.heads, is_joined)?;
        Ok(self.filled)
    }

    /// Fills the slots with the datagrams that have come. `late` keeps the error that ends a batch.
    #[cfg(any(test, not(target_os = "linux")))]
    pub(in crate::net) fn receive_each(
        &mut self,
        socket: BorrowedHandle<'_>,
        late: &portable::LateError,
    ) -> io::Result<usize> {
        self.filled = 0;
        let slots = (&mut *self.bytes, self.room);
        self.filled = portable::receive(socket, slots, &mut self.heads, late)?;
        Ok(self.filled)
    }
}

impl fmt::Debug for RecvBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
