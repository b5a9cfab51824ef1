//! The servers of the rows whose client is a process of its own.
use crate::{
    client::spec::Address,
    message,
    rt::{Ask, Http, Rt, Socket, Work},
    workload::{http, net::listen},
};
use std::{
    fs::File,
    io::{self, Write},
    net::{Ipv4Addr, UdpSocket},
    os::{
        fd::{FromRawFd, IntoRawFd, RawFd},
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener},
    },
    process,
};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    /// hyper's HTTP/1.
    Hello,
    Tcp,
    Unix,
    Udp,
    /// TCP, with work before the answer.
    Mixed,
    /// TCP: a message to all connections.
    FanOut,
    /// TCP: large answers from memory, and from a file.
    Memory,
    File,
    /// TCP: a connection for each request.
    Connect,
}

impl Service {
    /// Returns the features that the row needs.
    pub(crate) fn asks(self) -> &'static [Ask] {
        match self {
            Service::Hello => &[Ask::Http],
            Service::Tcp | Service::Unix | Service::Udp | Service::Connect => &[Ask::Net],
            Service::Mixed => &[Ask::Net, Ask::Timers, Ask::Blocking],
            // A bare epoll has no channels between tasks.
            Service::FanOut | Service::Memory => &[Ask::Net, Ask::Inside],
            Service::File => &[Ask::Net, Ask::Inside, Ask::Files],
        }
    }

    /// Starts the server. Returns its address.
    pub(super) fn serve<R: Rt>(self, runtime: &R) -> io::Result<Address> {
        let (socket, to) = match self {
            Service::Hello => return http::serve(runtime, Http::One).map(Address::Tcp),
            Service::Tcp | Service::Connect => return serve_tcp(runtime, Work::Echo),
            Service::Mixed => return serve_tcp(runtime, Work::Mixed),
            Service::FanOut => return serve_tcp(runtime, Work::FanOut),
            Service::Memory => return serve_tcp(runtime, Work::Memory),
            Service::File => return serve_tcp(runtime, Work::File(large_file()?)),
            Service::Unix => {
                let name = format!("bench-{}", process::id());
                let at = SocketAddr::from_abstract_name(&name)?;
                let listener = UnixListener::bind_addr(&at)?;
                listener.set_nonblocking(true)?;
                (Socket::Unix(listener), Address::Unix(name))
            }
            Service::Udp => {
                let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
                socket.set_nonblocking(true)?;
                let to = Address::Udp(socket.local_addr()?);
                (Socket::Udp(socket), to)
            }
        };
        runtime.serve_messages(socket, Work::Echo)?;
        Ok(to)
    }
}

fn serve_tcp<R: Rt>(runtime: &R, work: Work) -> io::Result<Address> {
    let (listener, to) = listen()?;
    runtime.serve_messages(Socket::Tcp(listener), work)?;
    Ok(Address::Tcp(to))
}

/// Makes a file in memory, which no disk slows down and which the process's end removes. Returns
/// its descriptor, which stays open.
fn large_file() -> io::Result<RawFd> {
    // SAFETY: the pointer is to a string that ends with a zero.
    let fd = unsafe { libc::memfd_create(c"bench".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just opened `fd`, and nothing else owns the descriptor.
    let mut file = unsafe { File::from_raw_fd(fd) };
    let block = vec![7; message::MEBIBYTE];
    for _ in 0..message::LARGE / block.len() {
        file.write_all(&block)?;
    }
    Ok(file.into_raw_fd())
}
