use super::*;

#[test]
fn address_survives_a_round_trip() {
    let all = [
        "1.2.3.4:5",
        "255.254.253.252:65535",
        "[1:2:3:4:5:6:7:8]:9",
        "[::]:0",
    ];
    let mut all: Vec<SocketAddr> = all.map(|at| at.parse().unwrap()).into();
    all.push(SocketAddrV6::new(Ipv6Addr::LOCALHOST, 1, 2, 3).into());
    for to in all {
        let mut name = [0xff; NAME];
        let len = write_address(to, &mut name);
        assert_eq!(address(&name[..len]), Some(to));
        // The bytes are those of socket2.
        let theirs = socket2::SockAddr::from(to);
        let theirs = unsafe {
            // SAFETY: the address has so many initialised bytes.
            std::slice::from_raw_parts(theirs.as_ptr().cast::<u8>(), theirs.len() as usize)
        };
        // socket2 writes zeros behind an address of IPv4; the kernel ignores them.
        let used = if to.is_ipv4() { 8 } else { len };
        assert_eq!((&name[..used], len), (&theirs[..used], theirs.len()));
    }
}

#[test]
fn short_or_foreign_address_is_none() {
    let mut name = [0; NAME];
    write_address("[::1]:7".parse().unwrap(), &mut name);
    for len in 0..NAME {
        assert_eq!(address(&name[..len]), None);
    }
    name[..2].copy_from_slice(&(libc::AF_UNIX as u16).to_ne_bytes());
    assert_eq!(address(&name), None);
}

fn message(level: c_int, kind: c_int, data: &[u8]) -> Vec<u8> {
    let mut message = (DATA + data.len()).to_ne_bytes().to_vec();
    message.extend(level.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(data);
    message.resize(message.len().next_multiple_of(size_of::<usize>()), 0xff);
    message
}

#[test]
fn segment_is_found_behind_other_messages() {
    let gro = message(libc::SOL_UDP, libc::UDP_GRO, &1_200_i32.to_ne_bytes());
    let drops = message(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, &7_i32.to_ne_bytes());
    let time = message(libc::SOL_SOCKET, libc::SO_TIMESTAMP, &[1; 16]);
    assert_eq!(segment_in(&gro), 1_200);
    assert_eq!(segment_in(&[&time[..], &drops, &gro].concat()), 1_200);
    assert_eq!(segment_in(&[&time[..], &drops].concat()), 0);
    assert_eq!(segment_in(&[]), 0);
}

#[test]
fn broken_control_messages_have_no_segment() {
    let gro = message(libc::SOL_UDP, libc::UDP_GRO, &1_200_i32.to_ne_bytes());
    for len in 0..DATA + 4 {
        assert_eq!(segment_in(&gro[..len]), 0);
    }
    let negative = message(libc::SOL_UDP, libc::UDP_GRO, &(-1_i32).to_ne_bytes());
    assert_eq!(segment_in(&negative), 0);
    // A length of 0 and one beyond the end do not loop, and do not overflow.
    for len in [0, 1, usize::MAX, usize::MAX - 7] {
        let mut other = message(libc::SOL_SOCKET, 0, &[0; 4]);
        other[..size_of::<usize>()].copy_from_slice(&len.to_ne_bytes());
        other.extend(&gro);
        segment_in(&other);
    }
}

#[test]
fn segment_of_a_send_is_the_layout_of_c() {
    let mut control = [0; ALIGNED_SEGMENT];
    write_segment(1_200, &mut control);
    let mut expected = message(libc::SOL_UDP, libc::UDP_SEGMENT, &1_200_u16.to_ne_bytes());
    expected[SEGMENT..].fill(0);
    assert_eq!(control[..], expected);
    // SAFETY: any bytes are a valid header.
    let header = unsafe { control.as_ptr().cast::<cmsghdr>().read_unaligned() };
    assert_eq!(header.cmsg_len, SEGMENT as _);
    assert_eq!(
        (header.cmsg_level, header.cmsg_type),
        (libc::SOL_UDP, libc::UDP_SEGMENT)
    );
}
