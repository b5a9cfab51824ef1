//! Systems other than Linux: a call for each datagram.
//!
//! A receive that fails after others have succeeded has taken the socket's error. So the socket
//! keeps it ([`LateError`]), and the next batch fails with it. So it does if a datagram to the
//! connected address meets the refusal of one that was sent before. Linux loses that error. A send
//! that fails otherwise takes nothing: the next batch begins with the same datagram.
use super::{
    datagram::Head,
    transmit::{MOST, Transmit},
};
use crate::{registration::uninterrupted, sys::handle::BorrowedHandle};
use socket2::{MaybeUninitSlice, SockRef};
use std::{io, mem, mem::MaybeUninit};
use sync_shim::sync::Mutex;

/// The error of the socket that has ended a batch, for the next one.
#[derive(Debug, Default)]
pub(crate) struct LateError(Mutex<Option<io::Error>>);

impl LateError {
    #[cfg(test)]
    pub(super) fn of(error: io::Error) -> Self {
        Self(Mutex::new(Some(error)))
    }

    /// Fails with the error, once. A batch does so before it waits, as no event announces it.
    pub(crate) fn check(&self) -> io::Result<()> {
        self.0.lock().take().map_or(Ok(()), Err)
    }
}

/// Receives datagrams until no slot or no datagram is left, and at most [`MOST`].
pub(super) fn receive(
    socket: BorrowedHandle<'_>,
    (mut bytes, len): (&mut [u8], usize),
    heads: &mut [Head],
    late: &LateError,
) -> io::Result<usize> {
    let mut received = 0;
    for head in heads.iter_mut().take(MOST) {
        let (slot, rest) = mem::take(&mut bytes).split_at_mut(len);
        bytes = rest;
        match uninterrupted(|| receive_one(socket, slot)) {
            Ok(next) => *head = next,
            Err(error) if received == 0 => return Err(error),
            Err(error) => {
                if error.kind() != io::ErrorKind::WouldBlock {
                    *late.0.lock() = Some(error);
                }
                break;
            }
        }
        received += 1;
    }
    Ok(received)
}

fn receive_one(socket: BorrowedHandle<'_>, slot: &mut [u8]) -> io::Result<Head> {
    let (start, slot_len) = (slot.as_mut_ptr().cast::<MaybeUninit<u8>>(), slot.len());
    // SAFETY: the memory is that of `slot`, which is not used meanwhile. The kernel writes only
    // bytes there, so all of them stay initialised.
    let to = unsafe { std::slice::from_raw_parts_mut(start, slot_len) };
    let mut parts = [MaybeUninitSlice::new(to)];
    let (mut len, flags, from) = SockRef::from(&socket).recv_from_vectored(&mut parts)?;
    if cfg!(windows) && flags.is_truncated() {
        // There the call fails for a datagram that was cut, after it has filled the slot.
        len = slot_len;
    }
    Ok(Head {
        from: from.as_socket().ok_or(io::ErrorKind::InvalidData)?,
        len,
        segment: 0,
        is_truncated: flags.is_truncated(),
    })
}

/// Sends datagrams until one cannot be sent, and at most [`MOST`]. Returns how many went.
pub(crate) fn send(
    socket: BorrowedHandle<'_>,
    messages: &[Transmit<'_>],
    late: &LateError,
) -> io::Result<usize> {
    let (socket, mut sent) = (SockRef::from(&socket), 0);
    for message in messages.iter().take(MOST) {
        let done = uninterrupted(|| match message.to {
            Some(to) => socket.send_to(message.bytes, &to.into()),
            None => socket.send(message.bytes),
        });
        match done {
            Ok(_) => sent += 1,
            Err(error) if sent == 0 => return Err(error),
            Err(error) => {
                if message.to.is_none() && is_of_an_earlier(error.kind()) {
                    *late.0.lock() = Some(error);
                }
                break;
            }
        }
    }
    Ok(sent)
}

/// Returns whether the error can be an answer of the network to a datagram that went before.
fn is_of_an_earlier(error: io::ErrorKind) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable};
    matches!(
        error,
        ConnectionRefused | HostUnreachable | NetworkUnreachable
    )
}
