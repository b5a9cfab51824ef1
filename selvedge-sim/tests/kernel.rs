//! The simulated system against the real one: a program runs on threads of the system, and then
//! simulated, and must see the same.
//!
//! Each program notes what its calls return. A note has no times and no ports, and a program waits
//! a little where the system works in the background. A busy system may need longer, so a program
//! whose notes differ runs again with longer waits.
#![cfg(all(
    selvedge_sim,
    target_os = "linux",
    target_env = "gnu",
    target_pointer_width = "64"
))]

use selvedge_sim::{Sim, thread};
use socket2::{Domain, SockRef, Socket, Type};
use std::{
    cell::Cell,
    io::{ErrorKind, Read, Result, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::mpsc,
    time::Duration,
};

type Program = fn(&mut Vec<String>);

/// Notes the result of a call.
macro_rules! note {
    ($to:expr, $call:expr) => {
        $to.push(format!("{}: {}", stringify!($call), told($call)))
    };
}

/// Describes a result: errors by their numbers.
fn told<T: std::fmt::Debug>(result: Result<T>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => match error.raw_os_error() {
            Some(number) => format!("error {number}"),
            None => format!("{:?}", error.kind()),
        },
    }
}

std::thread_local! {
    static WAIT: Cell<Duration> = const { Cell::new(Duration::from_millis(20)) };
}

/// Gives the system time to deliver.
fn settle() {
    thread::sleep(WAIT.get());
}

/// Runs a program on the system and simulated, with a few seeds, and compares the notes.
fn compare(program: Program) {
    let simulated = |seed| {
        let (sender, receiver) = mpsc::channel();
        let run = Sim::new(seed).run_main(move || sender.send(run(program)).unwrap());
        run.unwrap();
        receiver.recv().unwrap()
    };
    let first = simulated(0);
    assert!(!first.is_empty());
    let mut real = Vec::new();
    for wait in [20, 500, 10_000] {
        WAIT.set(Duration::from_millis(wait));
        real = run(program);
        if real == first {
            break;
        }
    }
    assert_eq!(first, real, "simulated, and then real");
    for seed in 1..20 {
        assert_eq!(simulated(seed), real, "simulated, and then real");
    }
}

fn run(program: Program) -> Vec<String> {
    let mut notes = Vec::new();
    program(&mut notes);
    notes
}

fn here(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// Returns both sides of a connection. They do not block.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(here(0)).unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (other, _) = listener.accept().unwrap();
    one.set_nonblocking(true).unwrap();
    other.set_nonblocking(true).unwrap();
    (one, other)
}

/// An epoll of its own, edge-triggered.
struct Edges(OwnedFd);

const ALL: u32 =
    (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLPRI | libc::EPOLLET) as u32;

impl Edges {
    fn new() -> Self {
        // SAFETY: the call takes no pointers.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        assert!(fd >= 0);
        // SAFETY: the call has opened the descriptor.
        Self(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    fn of(source: &impl AsRawFd) -> Self {
        let this = Self::new();
        this.control(libc::EPOLL_CTL_ADD, source).unwrap();
        this
    }

    fn control(&self, operation: i32, source: &impl AsRawFd) -> Result<()> {
        let mut event = libc::epoll_event {
            events: ALL,
            u64: 7,
        };
        let (epoll, fd) = (self.0.as_raw_fd(), source.as_raw_fd());
        // SAFETY: the pointer is valid.
        let done = unsafe { libc::epoll_ctl(epoll, operation, fd, &raw mut event) };
        if done < 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(())
    }

    /// Returns the states of the event that has come, if there is one.
    fn take(&self) -> Result<Vec<u32>> {
        settle();
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 4];
        let epoll = self.0.as_raw_fd();
        // SAFETY: the pointer is valid for 4 events.
        let count = unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), 4, 0) };
        assert!(count >= 0);
        Ok(events[..count as usize]
            .iter()
            .map(|event| event.events)
            .collect())
    }
}

#[test]
fn stream_passes_bytes_and_its_end_as_the_system() {
    compare(|notes| {
        let (mut one, mut other) = pair();
        let mut to = [0; 8];
        note!(notes, other.read(&mut to));
        note!(notes, one.write(b"hello"));
        settle();
        note!(notes, other.peek(&mut to[..2]));
        note!(notes, other.read(&mut to[..3]));
        note!(notes, other.read(&mut to));
        note!(notes, other.read(&mut to));
        note!(notes, one.write(b"more"));
        note!(notes, one.shutdown(Shutdown::Write));
        settle();
        note!(notes, one.write(b"a"));
        note!(notes, other.read(&mut to));
        note!(notes, other.read(&mut to));
        note!(notes, other.write(b"answer"));
        settle();
        note!(notes, one.read(&mut to));
        note!(notes, one.read(&mut to));
        note!(notes, other.shutdown(Shutdown::Write));
        settle();
        note!(notes, one.read(&mut to));
        note!(notes, one.shutdown(Shutdown::Both));
        note!(notes, other.take_error());
    });
}

#[test]
fn close_before_all_is_read_resets_as_the_system() {
    compare(|notes| {
        let (mut one, mut other) = pair();
        let mut to = [0; 8];
        note!(notes, one.write(b"unread"));
        note!(notes, other.write(b"behind"));
        settle();
        drop(one);
        settle();
        note!(notes, other.peer_addr().map(drop));
        note!(notes, other.read(&mut to));
        note!(notes, other.read(&mut to));
        note!(notes, other.read(&mut to));
        note!(notes, other.write(b"a"));
        note!(notes, other.write(b"a"));
    });
}

#[test]
fn write_to_a_closed_stream_fails_as_the_system() {
    compare(|notes| {
        let (one, mut other) = pair();
        let mut to = [0; 8];
        drop(one);
        settle();
        note!(notes, other.write(b"first"));
        settle();
        note!(notes, other.read(&mut to));
        note!(
            notes,
            other
                .take_error()
                .map(|error| error.map(|error| error.raw_os_error()))
        );
        note!(notes, other.write(b"second"));
        note!(notes, other.read(&mut to));
    });
}

#[test]
fn zero_linger_resets_as_the_system() {
    compare(|notes| {
        let (one, mut other) = pair();
        note!(notes, SockRef::from(&one).linger());
        note!(notes, SockRef::from(&one).set_linger(Some(Duration::ZERO)));
        note!(notes, SockRef::from(&one).linger());
        drop(one);
        settle();
        let mut to = [0; 8];
        note!(notes, other.read(&mut to));
        note!(notes, other.read(&mut to));
        note!(notes, other.write(b"a"));
    });
}

#[test]
fn connect_begins_and_ends_as_the_system() {
    compare(|notes| {
        let listener = TcpListener::bind(here(0)).unwrap();
        let at = listener.local_addr().unwrap();
        note!(notes, TcpListener::bind(at).map(drop));
        let socket = Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), None).unwrap();
        note!(notes, socket.peer_addr().map(drop));
        note!(notes, socket.shutdown(Shutdown::Write));
        let edges = Edges::of(&socket);
        note!(notes, edges.take());
        note!(notes, socket.connect(&at.into()));
        note!(notes, edges.take());
        note!(notes, socket.take_error());
        note!(notes, socket.connect(&at.into()));
        note!(notes, socket.connect(&at.into()));
        drop(listener);
        note!(notes, edges.take());
        let refused = Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), None).unwrap();
        let edges = Edges::of(&refused);
        note!(notes, edges.take());
        note!(notes, refused.connect(&at.into()));
        note!(notes, edges.take());
        note!(
            notes,
            refused
                .take_error()
                .map(|error| error.map(|error| error.kind()))
        );
        note!(notes, refused.take_error());
        note!(notes, TcpStream::connect(at).map(drop));
        note!(
            notes,
            TcpStream::connect_timeout(&at, Duration::from_secs(1)).map(drop)
        );
    });
}

#[test]
fn edges_of_a_stream_come_as_on_the_system() {
    compare(|notes| {
        let (mut one, mut other) = pair();
        let edges = Edges::of(&other);
        let mut to = [0; 8];
        note!(notes, edges.take());
        note!(notes, edges.take());
        note!(notes, one.write(b"ab"));
        note!(notes, edges.take());
        note!(notes, edges.take());
        note!(notes, one.write(b"c"));
        note!(notes, edges.take());
        note!(notes, other.read(&mut to[..1]));
        note!(notes, edges.take());
        note!(notes, edges.control(libc::EPOLL_CTL_MOD, &other));
        note!(notes, edges.take());
        note!(notes, edges.control(libc::EPOLL_CTL_ADD, &other));
        note!(notes, one.shutdown(Shutdown::Write));
        note!(notes, edges.take());
        note!(notes, edges.take());
        note!(notes, other.read(&mut to));
        note!(notes, other.read(&mut to));
        note!(notes, edges.take());
        note!(notes, other.shutdown(Shutdown::Write));
        note!(notes, edges.take());
        note!(notes, edges.control(libc::EPOLL_CTL_DEL, &other));
        note!(notes, edges.control(libc::EPOLL_CTL_DEL, &other));
    });
}

#[test]
fn edges_of_a_reset_come_as_on_the_system() {
    compare(|notes| {
        let (one, other) = pair();
        let edges = Edges::of(&other);
        note!(notes, edges.take());
        SockRef::from(&one)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
        drop(one);
        note!(notes, edges.take());
        note!(notes, edges.take());
        note!(
            notes,
            other
                .take_error()
                .map(|error| error.map(|error| error.kind()))
        );
        note!(notes, edges.control(libc::EPOLL_CTL_MOD, &other));
        note!(notes, edges.take());
    });
}

/// The sizes of the system's buffers depend on the machine, so the program does not note them.
#[test]
fn stream_without_room_is_writable_again_as_on_the_system() {
    compare(|notes| {
        let (mut one, mut other) = pair();
        let edges = Edges::of(&one);
        note!(notes, edges.take());
        let mut sent = 0;
        let part = vec![7; 10_000];
        let mut fill = || loop {
            match one.write(&part) {
                Ok(count) => sent += count,
                Err(error) => break assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        };
        for _ in 0..5 {
            fill();
            settle();
        }
        fill();
        edges.take().unwrap();
        note!(notes, edges.take());
        let mut all = vec![0; 1 << 20];
        let mut had = 0;
        while had < sent {
            match other.read(&mut all) {
                Ok(count) => had += count,
                Err(_) => settle(),
            }
        }
        note!(notes, edges.take());
        note!(notes, edges.take());
    });
}

#[test]
fn edges_of_a_listener_come_as_on_the_system() {
    compare(|notes| {
        let listener = TcpListener::bind(here(0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let at = listener.local_addr().unwrap();
        let edges = Edges::of(&listener);
        note!(notes, edges.take());
        let first = TcpStream::connect(at).unwrap();
        note!(notes, edges.take());
        let second = TcpStream::connect(at).unwrap();
        note!(notes, edges.take());
        note!(
            notes,
            listener
                .accept()
                .map(|(_, from)| from == first.local_addr().unwrap())
        );
        note!(notes, edges.take());
        note!(
            notes,
            listener
                .accept()
                .map(|(_, from)| from == second.local_addr().unwrap())
        );
        note!(notes, listener.accept().map(drop));
        note!(notes, edges.take());
    });
}

#[test]
fn datagrams_are_cut_peeked_and_refused_as_on_the_system() {
    compare(|notes| {
        let one = UdpSocket::bind(here(0)).unwrap();
        let other = UdpSocket::bind(here(0)).unwrap();
        let (at, from) = (other.local_addr().unwrap(), one.local_addr().unwrap());
        other.set_nonblocking(true).unwrap();
        one.set_nonblocking(true).unwrap();
        let edges = Edges::of(&other);
        note!(notes, edges.take());
        let mut to = [0; 4];
        note!(notes, other.recv_from(&mut to).map(drop));
        note!(notes, one.send(b"nobody"));
        note!(notes, one.send_to(b"longer than four", at));
        note!(notes, one.send_to(b"", at));
        note!(notes, one.send_to(b"ab", at));
        note!(notes, edges.take());
        note!(notes, other.peek(&mut to));
        note!(
            notes,
            other
                .recv_from(&mut to)
                .map(|(count, by)| (count, by == from))
        );
        note!(notes, other.recv(&mut to));
        note!(notes, other.recv(&mut to));
        note!(notes, other.recv(&mut to));
        note!(notes, one.send_to(&[0; 70_000], at));
        note!(notes, one.connect(at));
        note!(notes, one.send(b"c"));
        settle();
        note!(notes, other.recv(&mut to));
        drop(other);
        let edges = Edges::of(&one);
        note!(notes, edges.take());
        note!(notes, one.send(b"d"));
        note!(notes, edges.take());
        note!(notes, one.recv(&mut to));
        note!(notes, one.recv(&mut to));
    });
}

/// The result of a call for many messages: the length and the flags of each.
type Batch = Result<Vec<(u32, i32)>>;

fn list_of(parts: &mut [libc::iovec]) -> Vec<libc::mmsghdr> {
    let each = parts.iter_mut().map(|part| {
        // SAFETY: all zeros are a value of this type.
        let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
        message.msg_hdr.msg_iov = part;
        message.msg_hdr.msg_iovlen = 1;
        message
    });
    each.collect()
}

fn batch(list: &[libc::mmsghdr], count: i32) -> Batch {
    let count = usize::try_from(count).map_err(|_| std::io::Error::last_os_error())?;
    let each = list[..count].iter();
    Ok(each
        .map(|one| (one.msg_len, one.msg_hdr.msg_flags))
        .collect())
}

/// Receives messages of up to 4 bytes.
fn receive_many(socket: &UdpSocket, count: usize, flags: i32) -> Batch {
    let mut to = vec![[0_u8; 4]; count];
    let parts = to.iter_mut().map(|to| libc::iovec {
        iov_base: to.as_mut_ptr().cast(),
        iov_len: 4,
    });
    let mut parts: Vec<_> = parts.collect();
    let mut list = list_of(&mut parts);
    let (fd, at) = (socket.as_raw_fd(), list.as_mut_ptr());
    // SAFETY: the pointers are valid.
    let done = unsafe { libc::recvmmsg(fd, at, count as u32, flags, std::ptr::null_mut()) };
    batch(&list, done)
}

/// Sends messages to the connected address, cut up if `segment` is not 0.
fn send_many(socket: &UdpSocket, texts: &[&[u8]], segment: u16) -> Result<Vec<u32>> {
    let mut control = [0_u64; 3];
    let header = libc::cmsghdr {
        cmsg_len: size_of::<libc::cmsghdr>() + 2,
        cmsg_level: libc::SOL_UDP,
        cmsg_type: libc::UDP_SEGMENT,
    };
    // SAFETY: the room is large enough, and aligned.
    unsafe { control.as_mut_ptr().cast::<libc::cmsghdr>().write(header) };
    control[2] = segment.into();
    let parts = texts.iter().map(|text| libc::iovec {
        iov_base: text.as_ptr().cast_mut().cast(),
        iov_len: text.len(),
    });
    let mut parts: Vec<_> = parts.collect();
    let mut list = list_of(&mut parts);
    if segment > 0 {
        for one in &mut list {
            one.msg_hdr.msg_control = control.as_mut_ptr().cast();
            one.msg_hdr.msg_controllen = size_of_val(&control);
        }
    }
    let (fd, at, count) = (socket.as_raw_fd(), list.as_mut_ptr(), list.len() as u32);
    // SAFETY: the pointers are valid.
    let done = unsafe { libc::sendmmsg(fd, at, count, 0) };
    Ok(batch(&list, done)?
        .into_iter()
        .map(|(len, _)| len)
        .collect())
}

#[test]
fn batches_of_datagrams_end_and_fail_as_on_the_system() {
    compare(|notes| {
        let one = UdpSocket::bind(here(0)).unwrap();
        let other = UdpSocket::bind(here(0)).unwrap();
        one.set_nonblocking(true).unwrap();
        other.set_nonblocking(true).unwrap();
        let edges = Edges::of(&other);
        note!(notes, edges.take());
        note!(notes, receive_many(&other, 0, 0));
        note!(notes, receive_many(&other, 2, 0));
        note!(notes, send_many(&one, &[b"nobody"], 0));
        note!(notes, one.connect(other.local_addr().unwrap()));
        note!(notes, send_many(&one, &[], 0));
        note!(notes, send_many(&one, &[b"a", b"", b"longer", b"cd"], 0));
        note!(notes, edges.take());
        note!(notes, receive_many(&other, 3, 0));
        note!(notes, edges.take());
        note!(notes, receive_many(&other, 3, libc::MSG_DONTWAIT));
        note!(notes, receive_many(&other, 3, 0));
        // An error of a later message is lost.
        note!(notes, send_many(&one, &[b"a", &[0; 70_000], b"b"], 0));
        note!(notes, send_many(&one, &[&[0; 70_000], b"b"], 0));
        settle();
        note!(notes, receive_many(&other, 3, 0));
        // The system takes 1,024 messages of a longer list.
        note!(
            notes,
            send_many(&one, &[&b"x"[..]; 1_100], 0).map(|all| all.len())
        );
        settle();
        let mut had = 0;
        while let Ok(more) = receive_many(&other, 1_100, 0) {
            had += more.len();
        }
        // Its buffer may have had less room than the list.
        note!(notes, Ok(had > 100));
        // A list of a blocking socket waits for one message, and takes the others that there are.
        other.set_nonblocking(false).unwrap();
        note!(notes, send_many(&one, &[b"a", b"b"], 0));
        settle();
        note!(notes, receive_many(&other, 4, libc::MSG_WAITFORONE));
        other.set_nonblocking(true).unwrap();
        // An error comes before the datagrams.
        drop(other);
        note!(notes, send_many(&one, &[b"refused"], 0));
        settle();
        note!(notes, receive_many(&one, 2, 0));
        note!(notes, receive_many(&one, 2, 0));
    });
}

#[test]
fn datagrams_are_cut_up_as_on_the_system() {
    compare(|notes| {
        let one = UdpSocket::bind(here(0)).unwrap();
        let other = UdpSocket::bind(here(0)).unwrap();
        other.set_nonblocking(true).unwrap();
        one.connect(other.local_addr().unwrap()).unwrap();
        note!(notes, send_many(&one, &[b"aabbc", b"dd", b"e"], 2));
        settle();
        note!(notes, receive_many(&other, 8, 0));
        note!(notes, send_many(&one, &[b""], 2));
        note!(notes, send_many(&one, &[b"aaaa"], 0));
        settle();
        note!(notes, receive_many(&other, 8, 0));
        note!(notes, send_many(&one, &[b"a", &[0; 2_000]], 1));
        note!(notes, send_many(&one, &[&[0; 70_000]], 1_000));
        settle();
        note!(notes, receive_many(&other, 8, 0));
    });
}

#[test]
fn pair_of_unix_streams_passes_bytes_as_on_the_system() {
    compare(|notes| {
        let (mut one, mut other) = UnixStream::pair().unwrap();
        one.set_nonblocking(true).unwrap();
        other.set_nonblocking(true).unwrap();
        let edges = Edges::of(&other);
        let mut to = [0; 8];
        note!(notes, edges.take());
        note!(notes, other.read(&mut to));
        note!(notes, one.write(b"hello"));
        note!(notes, edges.take());
        note!(notes, other.read(&mut to[..2]));
        note!(notes, edges.take());
        note!(notes, one.shutdown(Shutdown::Write));
        note!(notes, edges.take());
        note!(notes, one.write(b"a"));
        note!(notes, other.read(&mut to));
        note!(notes, other.read(&mut to));
        note!(notes, other.write(b"back"));
        drop(one);
        note!(notes, edges.take());
        note!(notes, other.write(b"a"));
        note!(notes, other.read(&mut to));
        note!(notes, other.read(&mut to));
    });
}

#[test]
fn blocking_threads_wait_for_sockets_as_on_the_system() {
    compare(|notes| {
        let listener = TcpListener::bind(here(0)).unwrap();
        let at = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).unwrap();
            stream.write_all(&all).unwrap();
        });
        let mut client = TcpStream::connect(("localhost", at.port())).unwrap();
        let sent: Vec<u8> = (0..200_000_u32).map(|n| n as u8).collect();
        client.write_all(&sent).unwrap();
        note!(notes, client.shutdown(Shutdown::Write));
        let mut back = Vec::new();
        note!(notes, client.read_to_end(&mut back));
        notes.push((back == sent).to_string());
        server.join().unwrap();
    });
}
