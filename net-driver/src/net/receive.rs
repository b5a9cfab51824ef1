//! How a read of a TCP stream learns that it has taken all bytes that were there.
//!
//! A read that fills its buffer may leave bytes behind, so the next read must ask the kernel again.
//! Often that next read is in vain: a message of a known length fills its buffer, and no byte
//! follows the message. Linux, since 4.18, can say with a read how many bytes are left (a *hint*),
//! if the socket's option `TCP_INQ` is on. Such a read costs a little more. So a stream begins
//! without the option, and goes through these states:
//!
//! | state | reads | next |
//! |---|---|---|
//! | `PLAIN` | `recv` | `FILLED` if the read filled its buffer |
//! | `FILLED` | `recv` | on "would block": `HINTED` if the kernel has the option, else `REFUSED`; on a short read: `PLAIN` |
//! | `HINTED` | `recvmsg` into a buffer of up to [`MOST`] bytes, `recv` into a larger one | none |
//! | `REFUSED` | `recv` | none |
//!
//! The state is a guess: a read is correct whichever state it finds. The hint is exact at the time
//! of the read: an event announces bytes that come later, as after "would block".
use crate::registration::Moved;
use socket2::SockRef;
use std::{io, mem::MaybeUninit, net::TcpStream};
use sync_shim::atomic::{AtomicU32, Ordering::Relaxed};

const PLAIN: u32 = 0;
const FILLED: u32 = 1;
const HINTED: u32 = 2;
const REFUSED: u32 = 3;

/// The length of the largest buffer into which a read asks for a hint. Larger buffers are rarely
/// filled.
const MOST: usize = 4096;

/// The state of a stream's reads.
#[derive(Debug)]
pub(crate) struct Receive(AtomicU32);

impl Receive {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(PLAIN))
    }

    /// Reads, and returns whether the stream may have more bytes.
    pub(crate) fn receive(
        &self,
        stream: &TcpStream,
        to: &mut [MaybeUninit<u8>],
    ) -> io::Result<Moved> {
        // Ordering: Relaxed, here and below: the state publishes nothing.
        let state = self.0.load(Relaxed);
        if state == HINTED && to.len() <= MOST {
            return receive_hinted(stream, to);
        }
        let wanted = to.len();
        let done = SockRef::from(stream).recv(to);
        // Ordering: Relaxed, as above.
        match (&done, state) {
            (Ok(count), PLAIN) if *count == wanted && wanted > 0 => self.0.store(FILLED, Relaxed),
            (Ok(count), FILLED) if *count < wanted => self.0.store(PLAIN, Relaxed),
            (Err(error), FILLED) if error.kind() == io::ErrorKind::WouldBlock => {
                let state = if ask_for_hints(stream) {
                    HINTED
                } else {
                    REFUSED
                };
                // Ordering: Relaxed, as above.
                self.0.store(state, Relaxed);
            }
            _ => {}
        }
        done.map(|count| Moved::of(count, wanted))
    }
}

#[cfg(target_os = "linux")]
mod hints;
#[cfg(target_os = "linux")]
use hints::{ask_for_hints, receive_hinted};

/// Other systems have no such option.
#[cfg(not(target_os = "linux"))]
fn ask_for_hints(_: &TcpStream) -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
fn receive_hinted(stream: &TcpStream, to: &mut [MaybeUninit<u8>]) -> io::Result<Moved> {
    let wanted = to.len();
    let done = SockRef::from(stream).recv(to);
    done.map(|count| Moved::of(count, wanted))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::{
        io::{ErrorKind, Write},
        net::{Shutdown, TcpListener},
    };

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (other, _) = listener.accept().unwrap();
        other.set_nonblocking(true).unwrap();
        (one, other)
    }

    fn receive(state: &Receive, from: &TcpStream, wanted: usize) -> io::Result<(usize, bool)> {
        let mut to = [MaybeUninit::uninit(); 8192];
        let moved = state.receive(from, &mut to[..wanted])?;
        Ok((moved.count, moved.may_have_more))
    }

    fn is_hinted(state: &Receive) -> bool {
        // Ordering: Relaxed, one thread.
        state.0.load(Relaxed) == HINTED
    }

    #[test]
    fn full_read_after_a_vain_one_reports_no_bytes_left() {
        let ((mut one, other), state) = (pair(), Receive::new());
        one.write_all(&[7; 4]).unwrap();
        assert_eq!(receive(&state, &other, 4).unwrap(), (4, true));
        let error = receive(&state, &other, 4).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        if !is_hinted(&state) {
            return; // The kernel lacks the option.
        }
        one.write_all(&[7; 8]).unwrap();
        assert_eq!(receive(&state, &other, 4).unwrap(), (4, true));
        assert_eq!(receive(&state, &other, 4).unwrap(), (4, false));
        one.write_all(&[7; 3]).unwrap();
        assert_eq!(receive(&state, &other, 4).unwrap(), (3, false));
        // A read into a large buffer uses no hint.
        one.write_all(&[7; 8192]).unwrap();
        assert_eq!(receive(&state, &other, 8192).unwrap(), (8192, true));
        let error = receive(&state, &other, 4).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    }

    #[test]
    fn full_read_before_the_end_reports_that_there_is_more() {
        let ((mut one, other), state) = (pair(), Receive(AtomicU32::new(HINTED)));
        assert!(ask_for_hints(&other) || cfg!(target_env = "uclibc"));
        one.write_all(&[7; 4]).unwrap();
        one.shutdown(Shutdown::Write).unwrap();
        assert_eq!(receive(&state, &other, 4).unwrap(), (4, true));
        assert_eq!(receive(&state, &other, 4).unwrap().0, 0);
    }

    #[test]
    fn reads_that_leave_bytes_or_room_ask_for_no_hints() {
        let ((mut one, other), state) = (pair(), Receive::new());
        for _ in 0..3 {
            one.write_all(&[7; 5]).unwrap();
            assert_eq!(receive(&state, &other, 4).unwrap(), (4, true));
            assert_eq!(receive(&state, &other, 4).unwrap(), (1, false));
        }
        let error = receive(&state, &other, 4).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert!(!is_hinted(&state));
    }
}
