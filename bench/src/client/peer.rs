//! A connection of the client, with the requests that are on their way.
use super::spec::Address;
use std::{
    io,
    net::{Ipv4Addr, TcpStream, UdpSocket},
    os::{
        fd::{AsRawFd, OwnedFd, RawFd},
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixStream},
    },
    time::Instant,
};

/// The most bytes of an answer.
const ANSWER: usize = 4_096;

pub(super) struct Peer {
    socket: OwnedFd,
    pub(super) is_datagram: bool,
    /// The intended send of the request in each slot. `None` is a free slot.
    pub(super) sent: Vec<Option<Instant>>,
    answer: Box<[u8; ANSWER]>,
    len: usize,
}

impl Peer {
    pub(super) fn connect(to: &Address, slots: usize) -> io::Result<Self> {
        let (socket, is_datagram) = match to {
            Address::Tcp(to) => {
                let stream = TcpStream::connect(to)?;
                stream.set_nodelay(true)?;
                (stream.into(), false)
            }
            Address::Udp(to) => {
                let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
                socket.connect(to)?;
                (socket.into(), true)
            }
            Address::Unix(name) => {
                let to = SocketAddr::from_abstract_name(name)?;
                (UnixStream::connect_addr(&to)?.into(), false)
            }
        };
        Ok(Self {
            socket,
            is_datagram,
            sent: vec![None; slots],
            answer: Box::new([0; ANSWER]),
            len: 0,
        })
    }

    pub(super) fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Sends a request. It is small enough for the kernel to take it whole.
    pub(super) fn send(&self, request: &[u8]) -> io::Result<()> {
        let (from, len) = (request.as_ptr().cast(), request.len());
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        // SAFETY: the pointer is valid for a read of `len` bytes.
        let sent = unsafe { libc::send(self.fd(), from, len, flags) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        match sent as usize == len {
            true => Ok(()),
            false => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    /// Receives what has come, and returns all bytes of the answer so far. `None` if nothing has
    /// come.
    pub(super) fn receive(&mut self) -> io::Result<Option<&[u8]>> {
        let to = &mut self.answer[self.len..];
        let (to, len) = (to.as_mut_ptr().cast(), to.len());
        // SAFETY: the pointer is valid for a write of `len` bytes.
        let count = unsafe { libc::recv(self.socket.as_raw_fd(), to, len, libc::MSG_DONTWAIT) };
        match count {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            1.. => {
                self.len += count as usize;
                Ok(Some(&self.answer[..self.len]))
            }
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                error => Err(error),
            },
        }
    }

    /// Drops up to so many bytes of what has come, without a copy. Returns their number, and 0 if
    /// nothing has come.
    pub(super) fn skip(&self, most: usize) -> io::Result<usize> {
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        // SAFETY: with `MSG_TRUNC` TCP writes nothing to the pointer.
        let count = unsafe { libc::recv(self.fd(), std::ptr::null_mut(), most, flags) };
        match count {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            1.. => Ok(count as usize),
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
                error => Err(error),
            },
        }
    }

    /// Makes room for the next answer.
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }
}
