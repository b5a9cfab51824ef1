//! Tests of what a stream knows after a read or a write.
use crate::{Driver, Interest, Ready, net::UnixStream};
use socket2::{Domain, Socket, Type};
use std::{
    future::poll_fn,
    io::Write,
    mem::MaybeUninit,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::net,
    },
    task::{Context, Poll, Waker},
};

/// Whether a short transfer ends the readiness, so that the next transfer waits.
const SHORT_ENDS_READINESS: bool = cfg!(not(selvedge_polling));

fn run<R>(future: impl Future<Output = R>) -> R {
    Driver::new(1).park(0).block_on(future)
}

/// Returns a stream, and its peer of std.
fn pair() -> (UnixStream, net::UnixStream) {
    let (one, other) = net::UnixStream::pair().unwrap();
    (UnixStream::from_std(one).unwrap(), other)
}

/// Polls a read. `None` if it waits.
fn read(stream: &UnixStream, wanted: usize) -> Option<usize> {
    let mut to = [MaybeUninit::uninit(); 16];
    let mut cx = Context::from_waker(Waker::noop());
    match stream.poll_read_uninit(&mut cx, &mut to[..wanted]) {
        Poll::Ready(count) => Some(count.unwrap()),
        Poll::Pending => None,
    }
}

/// Returns whether the stream counts as ready, so that an operation asks the kernel.
fn is_ready(stream: &UnixStream, interest: Interest) -> bool {
    stream
        .source
        .registration()
        .snapshot()
        .is_ready_for(interest)
}

/// Sends a byte together with a descriptor.
fn pass_descriptor(from: &net::UnixStream, passed: &impl AsRawFd) {
    let mut byte = [7_u8; 1];
    let mut part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    let mut control = [0_u64; 8];
    let len = size_of::<libc::c_int>() as u32;
    // SAFETY: all zeros are a valid value of this type.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    // SAFETY: the call only computes.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(len) } as _;
    // SAFETY: the header has room for a control message.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    // SAFETY: the header is in `control`, which is large enough.
    let header = unsafe { &mut *header };
    header.cmsg_level = libc::SOL_SOCKET;
    header.cmsg_type = libc::SCM_RIGHTS;
    // SAFETY: the call only computes.
    header.cmsg_len = unsafe { libc::CMSG_LEN(len) } as _;
    // SAFETY: the header is followed by its data.
    let data = unsafe { libc::CMSG_DATA(header) };
    // SAFETY: the data has room for a descriptor.
    unsafe {
        data.cast::<libc::c_int>()
            .write_unaligned(passed.as_raw_fd())
    };
    // SAFETY: the message and its parts are valid.
    let sent = unsafe { libc::sendmsg(from.as_raw_fd(), &raw const message, 0) };
    assert_eq!(sent, 1);
}

/// Fails if the read after a short one asks the kernel although no event has come.
#[test]
fn short_read_lets_the_next_one_wait_for_an_event() {
    run(async {
        let (stream, mut peer) = pair();
        peer.write_all(b"abc").unwrap();
        assert_eq!(read(&stream, 2), Some(2));
        assert!(is_ready(&stream, Interest::READABLE), "it was full");
        assert_eq!(read(&stream, 2), Some(1));
        assert_ne!(is_ready(&stream, Interest::READABLE), SHORT_ENDS_READINESS);
        peer.write_all(b"d").unwrap();
        let mut to = [MaybeUninit::uninit(); 2];
        let next = poll_fn(|cx| stream.poll_read_uninit(cx, &mut to));
        assert_eq!(next.await.unwrap(), 1, "an event announces it");
        drop(peer);
        let end = poll_fn(|cx| stream.poll_read_uninit(cx, &mut to));
        assert_eq!(end.await.unwrap(), 0);
        assert!(is_ready(&stream, Interest::READABLE));
    });
}

/// Fails if bytes behind passed descriptors wait for an event, which does not come.
#[test]
fn read_that_ends_at_descriptors_is_not_short() {
    run(async {
        let (stream, mut peer) = pair();
        stream.readable().await.unwrap();
        assert_eq!(read(&stream, 8), None);
        pass_descriptor(&peer, &peer);
        peer.write_all(b"abc").unwrap();
        stream.readable().await.unwrap(); // One event for both.
        assert_eq!(read(&stream, 8), Some(1));
        assert_eq!(read(&stream, 8), Some(3));
        assert_eq!(read(&stream, 8), None);
    });
}

/// Fails if the second of two packets waits for an event, which does not come.
#[test]
fn read_of_a_packet_is_not_short() {
    run(async {
        let (one, other) = Socket::pair(Domain::UNIX, Type::SEQPACKET, None).unwrap();
        let one = net::UnixStream::from(OwnedFd::from(one));
        let stream = UnixStream::from_std(one).unwrap();
        assert_eq!(read(&stream, 8), None);
        other.send(b"a").unwrap();
        other.send(b"bc").unwrap();
        stream.readable().await.unwrap();
        assert_eq!(read(&stream, 8), Some(1));
        assert_eq!(read(&stream, 8), Some(2));
        assert_eq!(read(&stream, 8), None);
    });
}

/// Fails if the write after a short one asks the kernel although no event has come, or if that
/// event is missed.
#[test]
fn short_write_lets_the_next_one_wait_for_an_event() {
    run(async {
        let (stream, peer) = pair();
        let mut stream = std::pin::pin!(stream);
        let bytes = vec![7; 1 << 22];
        let mut cx = Context::from_waker(Waker::noop());
        let write = futures_io::AsyncWrite::poll_write(stream.as_mut(), &mut cx, &bytes);
        let Poll::Ready(Ok(count)) = write else {
            panic!("{write:?}");
        };
        assert!(count < bytes.len(), "more than the socket has room for");
        assert_ne!(is_ready(&stream, Interest::WRITABLE), SHORT_ENDS_READINESS);
        let mut taken = vec![0; count];
        std::io::Read::read_exact(&mut &peer, &mut taken).unwrap();
        let ready = stream.ready(Interest::WRITABLE).await.unwrap();
        assert_eq!(ready, Ready::WRITABLE);
    });
}
