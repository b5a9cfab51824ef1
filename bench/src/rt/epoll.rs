//! A server on one thread with an epoll, which is no runtime. Its figures are the limit of what a
//! runtime can reach. The thread runs as long as the process.
use super::{Ask, Http, Rt, Service, Socket, Work};
use crate::{message, poller::Poller};
use std::{
    collections::HashMap,
    future::{Future, pending},
    io::{self, Read, Write},
    net::{TcpListener, TcpStream, UdpSocket},
    os::{
        fd::AsRawFd,
        unix::net::{UnixListener, UnixStream},
    },
    thread,
};

pub(crate) struct Epoll;

impl Rt for Epoll {
    const NAME: &'static str = "epoll";
    const PACKAGE: &'static str = "libc";
    const PARALLEL: bool = false;
    const LACKS: &'static [Ask] = &[
        Ask::Tasks,
        Ask::Inside,
        Ask::Join,
        Ask::Fair,
        Ask::Background,
        Ask::Blocking,
        Ask::Budget,
        Ask::Stop,
        Ask::Timers,
        Ask::Hyper,
        Ask::Foreign,
        Ask::Files,
    ];

    fn start(_: usize) -> io::Result<Self> {
        Ok(Self)
    }

    fn serve(&self, listener: TcpListener, _: Service) -> io::Result<()> {
        serve_streams(listener, echo::<64>)
    }

    fn serve_messages(&self, socket: Socket, _: Work) -> io::Result<()> {
        match socket {
            Socket::Tcp(listener) => serve_streams(listener, echo::<{ message::MOST }>),
            Socket::Unix(listener) => serve_streams(listener, echo::<{ message::MOST }>),
            Socket::Udp(socket) => serve_datagrams(socket),
        }
    }

    fn serve_http(&self, listener: TcpListener, _: Http) -> io::Result<()> {
        serve_streams(listener, hello)
    }

    fn spawn_outside(&self, future: impl Future<Output = ()> + Send + 'static) {
        drop(future);
        unreachable!("it has no tasks")
    }

    fn join_outside<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send {
        future
    }

    fn spawn(future: impl Future<Output = ()> + Send + 'static) {
        drop(future);
        unreachable!("it has no tasks")
    }

    fn join<T: Send + 'static>(
        future: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send {
        future
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        pending()
    }
}

/// A listener of either kind of stream.
trait Listen: AsRawFd {
    type Stream: AsRawFd + Read + Write + Send;

    fn accept(&self) -> io::Result<Self::Stream>;
}

impl Listen for TcpListener {
    type Stream = TcpStream;

    fn accept(&self) -> io::Result<TcpStream> {
        let (stream, _) = self.accept()?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

impl Listen for UnixListener {
    type Stream = UnixStream;

    fn accept(&self) -> io::Result<UnixStream> {
        self.accept().map(|(stream, _)| stream)
    }
}

/// Serves connections on a thread, until one cannot be accepted. At each event of a connection,
/// `answer` reads and writes. The connection ends if `answer` returns `false` or an error.
fn serve_streams<L: Listen + Send + 'static>(
    listener: L,
    answer: fn(&mut L::Stream) -> io::Result<bool>,
) -> io::Result<()> {
    let mut poller = Poller::new()?;
    poller.add(listener.as_raw_fd(), listener.as_raw_fd() as u64)?;
    let mut streams: HashMap<u64, L::Stream> = HashMap::new();
    let mut run = move || -> io::Result<()> {
        loop {
            for key in poller.wait(None) {
                let Some(stream) = streams.get_mut(&key) else {
                    // A connection may be gone before it is accepted.
                    let stream = match listener.accept() {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                        accepted => accepted?,
                    };
                    let key = stream.as_raw_fd() as u64;
                    poller.add(stream.as_raw_fd(), key)?;
                    streams.insert(key, stream);
                    continue;
                };
                if !answer(stream).unwrap_or(false) {
                    // The stream's drop closes its descriptor, which so leaves the epoll.
                    streams.remove(&key);
                }
            }
        }
    };
    thread::Builder::new().spawn(move || run().expect("it serves"))?;
    Ok(())
}

/// Echoes datagrams on a thread.
fn serve_datagrams(socket: UdpSocket) -> io::Result<()> {
    let mut poller = Poller::new()?;
    poller.add(socket.as_raw_fd(), 0)?;
    thread::Builder::new().spawn(move || {
        let mut message = [0; message::MOST];
        loop {
            poller.wait(None).for_each(drop);
            while let Ok((count, from)) = socket.recv_from(&mut message) {
                // The peer may have gone.
                let _ = socket.send_to(&message[..count], from);
            }
        }
    })?;
    Ok(())
}

/// Echoes up to `MOST` bytes.
fn echo<const MOST: usize>(stream: &mut (impl Read + Write)) -> io::Result<bool> {
    let mut message = [0; MOST];
    let count = stream.read(&mut message)?;
    stream.write_all(&message[..count])?;
    Ok(count > 0)
}

/// Answers a request that one read takes whole. The answer has as many bytes as hyper's.
fn hello(stream: &mut TcpStream) -> io::Result<bool> {
    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\
        date: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\nhello";
    let mut request = [0; 4_096];
    let count = stream.read(&mut request)?;
    if request[..count].ends_with(b"\r\n\r\n") {
        stream.write_all(ANSWER)?;
    }
    Ok(count > 0)
}
