//! A server on one thread with an epoll, which is no runtime. Its figures are the limit of what a
//! runtime can reach. The thread runs as long as the process.
use super::{Ask, Http, Rt, Service};
use std::{
    collections::HashMap,
    future::{Future, pending},
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
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
        let server = Server::new()?;
        server.add(listener.as_raw_fd())?;
        let run = move || server.run(&listener, echo).expect("it serves");
        thread::Builder::new().spawn(run)?;
        Ok(())
    }

    fn serve_http(&self, listener: TcpListener, _: Http) -> io::Result<()> {
        let server = Server::new()?;
        server.add(listener.as_raw_fd())?;
        let run = move || server.run(&listener, hello).expect("it serves");
        thread::Builder::new().spawn(run)?;
        Ok(())
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

struct Server(OwnedFd);

impl Server {
    fn new() -> io::Result<Self> {
        // SAFETY: the call takes no pointers.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call has just opened `fd`, and nothing else owns the descriptor.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    fn add(&self, fd: RawFd) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: fd as u64,
        };
        let epoll = self.0.as_raw_fd();
        // SAFETY: the pointer is valid for the call.
        match unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Serves until a connection cannot be accepted. At each event of a connection, `answer` reads
    /// and writes, and returns whether the connection goes on. An error ends the connection, too.
    fn run(
        &self,
        listener: &TcpListener,
        answer: fn(&mut TcpStream) -> io::Result<bool>,
    ) -> io::Result<()> {
        let mut streams: HashMap<RawFd, TcpStream> = HashMap::new();
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        loop {
            let (epoll, len) = (self.0.as_raw_fd(), events.len() as i32);
            // SAFETY: the pointer is valid for a write of `len` events.
            let count = unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), len, -1) };
            for event in &events[..count.max(0) as usize] {
                let fd = event.u64 as RawFd;
                let Some(stream) = streams.get_mut(&fd) else {
                    // The event is one of the listener.
                    let (stream, _) = listener.accept()?;
                    stream.set_nodelay(true)?;
                    self.add(stream.as_raw_fd())?;
                    streams.insert(stream.as_raw_fd(), stream);
                    continue;
                };
                let goes_on = answer(stream).unwrap_or(false);
                if !goes_on {
                    // The drop of the stream closes `fd`, and the kernel then removes it from the
                    // epoll.
                    streams.remove(&fd);
                }
            }
        }
    }
}

fn echo(stream: &mut TcpStream) -> io::Result<bool> {
    let mut message = [0; 64];
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
