//! Linux: the option `TCP_INQ`, and reads that learn how many bytes are left.
use crate::registration::Moved;
use socket2::{MaybeUninitSlice, MsgHdrMut, SockRef};
use std::{io, mem::MaybeUninit, net::TcpStream, os::fd::AsRawFd};

/// Switches the option on. Returns whether the kernel has it.
#[cold]
pub(super) fn ask_for_hints(stream: &TcpStream) -> bool {
    let on: libc::c_int = 1;
    let (fd, len) = (stream.as_raw_fd(), size_of_val(&on) as libc::socklen_t);
    let on = (&raw const on).cast();
    // SAFETY: the pointer is valid for a read of `len` bytes.
    unsafe { libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INQ, on, len) == 0 }
}

/// The length in bytes of the one control message that a read expects: a header and a number.
const CONTROL: usize = size_of::<libc::cmsghdr>() + size_of::<libc::c_int>();

/// Room for the control message, aligned as the kernel's header.
#[repr(C, align(8))]
struct Control([MaybeUninit<u8>; CONTROL]);

pub(super) fn receive_hinted(stream: &TcpStream, to: &mut [MaybeUninit<u8>]) -> io::Result<Moved> {
    let wanted = to.len();
    let mut control = Control([MaybeUninit::new(0); CONTROL]);
    let mut parts = [MaybeUninitSlice::new(to)];
    let mut message = MsgHdrMut::new()
        .with_buffers(&mut parts)
        .with_control(&mut control.0);
    let count = SockRef::from(stream).recvmsg(&mut message, 0)?;
    let has_hint = message.control_len() >= CONTROL;
    let left = has_hint.then(|| left_in(&control)).flatten();
    Ok(match left {
        Some(left) => Moved {
            count,
            may_have_more: left > 0,
        },
        None => Moved::of(count, wanted),
    })
}

/// Returns the number of bytes that the kernel says are left, if the control message is a hint.
fn left_in(control: &Control) -> Option<libc::c_int> {
    let at = control.0.as_ptr();
    // SAFETY: the array is aligned, large enough, and was initialised before `recvmsg`. Any bytes
    // are a valid header.
    let header = unsafe { at.cast::<libc::cmsghdr>().read() };
    if (header.cmsg_level, header.cmsg_type) != (libc::IPPROTO_TCP, libc::TCP_CM_INQ) {
        return None;
    }
    // SAFETY: the number is behind the header, in the same array.
    let number = unsafe { at.add(size_of::<libc::cmsghdr>()) };
    // SAFETY: the number is within the array, and initialised.
    Some(unsafe { number.cast::<libc::c_int>().read_unaligned() })
}
