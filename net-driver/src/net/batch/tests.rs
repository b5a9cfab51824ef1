use super::{datagram::Head, portable::LateError, *};
use crate::sys::handle;
use std::{
    io::ErrorKind,
    net::{Ipv4Addr, Ipv6Addr, UdpSocket},
};

fn pair(ip: std::net::IpAddr) -> Option<(UdpSocket, UdpSocket)> {
    let one = UdpSocket::bind((ip, 0)).ok()?;
    let other = UdpSocket::bind((ip, 0)).unwrap();
    for socket in [&one, &other] {
        socket.set_nonblocking(true).unwrap();
    }
    Some((one, other))
}

fn received(batch: &RecvBatch) -> Vec<(&[u8], bool)> {
    let each = batch.iter();
    each.map(|each| (each.bytes(), each.is_truncated()))
        .collect()
}

/// The loop for the systems that have no call for many datagrams, on this one.
#[test]
fn portable_loop_moves_what_the_calls_of_linux_move() {
    for ip in [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()] {
        let Some((one, other)) = pair(ip) else {
            continue; // The machine has no IPv6.
        };
        let (from, at) = (one.local_addr().unwrap(), other.local_addr().unwrap());
        let messages = [&b"first"[..], b"", b"longer than the room"];
        let sent = messages.map(|bytes| Transmit::new(bytes).to(at));
        let (mut batch, late) = (RecvBatch::new(4, 8), LateError::default());
        assert_eq!(
            portable::send(handle::borrow(&one), &sent, &late).unwrap(),
            3
        );
        assert_eq!(
            batch.receive_each(handle::borrow(&other), &late).unwrap(),
            3
        );
        let expected = [(&b"first"[..], false), (b"", false), (b"longer t", true)];
        assert_eq!(received(&batch), expected);
        assert!(batch.iter().all(|each| each.sender() == from));

        let error = batch
            .receive_each(handle::borrow(&other), &late)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert!(batch.is_empty(), "an error empties the batch");
        // Nor does the end of a batch by "would block" leave an error behind.
        one.connect(at).unwrap();
        assert_eq!(
            portable::send(handle::borrow(&one), &[Transmit::new(b"x")], &late).unwrap(),
            1
        );
        late.check().unwrap();
        assert_eq!(
            batch.receive_each(handle::borrow(&other), &late).unwrap(),
            1
        );
    }
}

/// The error of a datagram that is longer than any.
const TOO_LONG: i32 = if cfg!(windows) {
    10_040
} else {
    libc::EMSGSIZE
};

#[test]
fn portable_send_ends_before_the_datagram_that_fails() {
    let (one, other) = pair(Ipv4Addr::LOCALHOST.into()).unwrap();
    let (at, huge) = (other.local_addr().unwrap(), [0; 70_000]);
    let sent = [&b"a"[..], b"b", &huge, b"c"].map(|bytes| Transmit::new(bytes).to(at));
    let late = LateError::default();
    assert_eq!(
        portable::send(handle::borrow(&one), &sent, &late).unwrap(),
        2
    );
    let error = portable::send(handle::borrow(&one), &sent[2..], &late).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(TOO_LONG));
    late.check().unwrap();
}

/// On Windows a receive gets the refusal.
#[test]
#[cfg(unix)]
fn portable_send_keeps_a_refusal_for_the_next_batch() {
    let (one, other) = pair(Ipv4Addr::LOCALHOST.into()).unwrap();
    one.connect(other.local_addr().unwrap()).unwrap();
    drop(other);
    let (sent, late) = ([Transmit::new(b"x"); 4], LateError::default());
    // The second datagram meets the refusal of the first.
    assert_eq!(
        portable::send(handle::borrow(&one), &sent, &late).unwrap(),
        1
    );
    let error = late.check().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    late.check().unwrap();
}

#[test]
fn late_error_is_reported_once() {
    let late = LateError::of(ErrorKind::ConnectionRefused.into());
    let error = late.check().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    late.check().unwrap();
}

/// Fails if a count or a length is used to address memory without a check.
#[test]
fn segments_of_any_lengths_cover_the_bytes_once() {
    for (len, segment) in [(0, 0), (0, 5), (5, 0), (5, 5), (6, 5), (4, 5), (5, 1)] {
        let bytes = vec![7; len];
        let head = Head {
            from: (Ipv4Addr::LOCALHOST, 1).into(),
            len,
            segment,
            is_truncated: false,
        };
        let datagram = Datagram {
            bytes: &bytes,
            head: &head,
        };
        let lens: Vec<_> = datagram.segments().map(<[u8]>::len).collect();
        assert_eq!(lens.iter().sum::<usize>(), len);
        let whole = if segment == 0 { len } else { segment };
        let (last, others) = lens.split_last().expect("there is a datagram");
        assert!(others.iter().all(|len| *len == whole) && *last <= whole);
    }
}

#[test]
#[should_panic(expected = "the memory of a batch can be addressed")]
fn batch_of_more_memory_than_there_is_panics() {
    drop(RecvBatch::new(2, usize::MAX));
}

/// A socket has this where the system lacks the calls, and may be used where panics are caught.
#[test]
fn late_error_does_not_forbid_to_catch_panics() {
    fn assert<T: std::panic::UnwindSafe + std::panic::RefUnwindSafe + Send + Sync>() {}
    assert::<LateError>();
}
