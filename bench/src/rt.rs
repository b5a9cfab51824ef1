//! The interface between the rows and the runtimes.
//!
//! To add a runtime, write a file that implements [`Rt`]. Add the file's `mod` line here, an entry
//! to `runtimes.rs`, the runtime's name to `names.rs`, and its package to `Cargo.toml`.
use std::{
    future::Future,
    io,
    net::{TcpListener, UdpSocket},
    os::{fd::RawFd, unix::net::UnixListener},
    path::PathBuf,
    task::{Context, Poll},
    time::{Duration, Instant},
};

/// Serves connections. The body calls methods, such as `accept`, `read` and `write_all`, which all
/// async runtimes have under the same names. The file of each runtime imports its own sockets and
/// traits with these methods.
macro_rules! serve {
    ($runtime:ident, $listener:ident, $service:ident) => {
        async move {
            loop {
                let (mut stream, _) = $listener.accept().await.expect("it accepts");
                stream.set_nodelay(true).expect("it is a TCP stream");
                $runtime::spawn(async move {
                    let mut message = [0; 64];
                    // An error ends a connection, as the end of its data does.
                    match $service {
                        Service::Echo => {
                            while let Ok(count @ 1..) = stream.read(&mut message).await
                                && stream.write_all(&message[..count]).await.is_ok()
                            {
                            }
                        }
                        Service::Sink => while let Ok(1..) = stream.read(&mut message).await {},
                        Service::Hold => {
                            let read = async { drop(stream.read(&mut message).await) };
                            $runtime::timeout(Duration::from_secs(3_600), read).await;
                        }
                    }
                });
            }
        }
    };
}

/// Serves messages of up to [`MOST`](crate::message::MOST) bytes. The body calls methods as that of
/// `serve` does. `$setup` prepares an accepted stream. The task of each kind of work is as large as
/// that kind needs.
macro_rules! serve_messages {
    ($runtime:ident, $listener:ident, $work:ident, |$stream:ident| $setup:block) => {{
        let work = Shared::start::<$runtime>($work);
        loop {
            let (mut $stream, _) = $listener.accept().await.expect("it accepts");
            $setup
            match work.clone() {
                Shared::Echo => $runtime::spawn(async move {
                    let mut message = [0; message::MOST];
                    while let Ok(count @ 1..) = $stream.read(&mut message).await
                        && $stream.write_all(&message[..count]).await.is_ok()
                    {}
                }),
                Shared::Mixed(hub) => $runtime::spawn(async move {
                    let mut message = [0; message::MOST];
                    while let Ok(count @ 1..) = $stream.read(&mut message).await {
                        hub.work::<$runtime>(message[message::KIND]).await;
                        if $stream.write_all(&message[..count]).await.is_err() {
                            break;
                        }
                    }
                }),
                Shared::FanOut(fan) => $runtime::spawn(async move {
                    let mut message = [0; message::MOST];
                    while let Ok(count @ 1..) = $stream.read(&mut message).await {
                        if message[message::KIND] == message::PUBLISH {
                            fan.publish();
                            continue;
                        }
                        let mut news = fan.subscribe();
                        // The first answer says that the subscription counts.
                        while $stream.write_all(&message[..count]).await.is_ok()
                            && news.next().await.is_some()
                        {}
                    }
                }),
                Shared::Memory => $runtime::spawn(async move {
                    let (mut message, block) = ([0; message::MOST], vec![7; message::MEBIBYTE]);
                    while let Ok(1..) = $stream.read(&mut message).await {
                        for _ in 0..message::LARGE / block.len() {
                            // The client may have gone.
                            let _ = $stream.write_all(&block).await;
                        }
                    }
                }),
                Shared::File(path) => $runtime::spawn(async move {
                    let (mut message, mut block) = ([0; message::MOST], vec![0; 1 << 16]);
                    while let Ok(1..) = $stream.read(&mut message).await {
                        let mut file = File::open(&path).await.expect("it is there");
                        while let Ok(count @ 1..) = file.read(&mut block).await
                            && $stream.write_all(&block[..count]).await.is_ok()
                        {
                        }
                    }
                }),
            }
        }
    }};
}

/// Echoes datagrams, in one task.
macro_rules! serve_datagrams {
    ($socket:ident) => {{
        let mut message = [0; message::MOST];
        loop {
            let (count, from) = $socket.recv_from(&mut message).await.expect("it receives");
            // The peer may have gone.
            let _ = $socket.send_to(&message[..count], from).await;
        }
    }};
}

pub(crate) mod async_executor;
#[cfg(target_os = "linux")]
pub(crate) mod epoll;
pub(crate) mod futures;
pub(crate) mod http;
pub(crate) mod messages;
pub(crate) mod nexosim;
pub(crate) mod selvedge;
pub(crate) mod selvedge_current;
pub(crate) mod smol;
pub(crate) mod tokio;
pub(crate) mod tokio_current;

/// A feature that a row may need, besides spawning from an outside thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Spawning from a task.
    Inside,
    /// Handles to await.
    Join,
    /// A yield that lets the waiting tasks run.
    Fair,
    /// Worker threads of the runtime, which run tasks while the measuring thread does something
    /// else.
    Background,
    /// Threads for closures that block.
    Blocking,
    /// A budget of operations for each poll.
    Budget,
    /// A drop of the runtime that ends its threads.
    Stop,
    /// Sleeps and timeouts.
    Timers,
    /// Sockets.
    Net,
    /// A server of HTTP/1.
    Http,
    /// hyper's servers, of both versions of HTTP.
    Hyper,
    /// hyper over sockets of async-io, which has a reactor of its own.
    Foreign,
    /// Functions that read files and directories.
    Files,
    /// Tasks. A row without sockets always needs them; a row with sockets only if it lists `Tasks`.
    Tasks,
}

/// The work of a server of sockets for each connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    /// Sends back what comes, up to 64 bytes at a time.
    Echo,
    /// Reads what comes, up to 64 bytes at a time.
    Sink,
    /// Waits for data, for at most an hour.
    Hold,
}

/// A socket of a server, non-blocking.
pub(crate) enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
    /// Only for [`Work::Echo`].
    Udp(UdpSocket),
}

/// The work of a server for each message. All but [`Work::Echo`] need a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Answers at once.
    Echo,
    /// Answers after the work of the message's kind, that of [`messages::Hub::work`].
    Mixed,
    /// Sends a message on to all connections that have subscribed.
    FanOut,
    /// Answers with [`LARGE`](crate::message::LARGE) bytes from memory.
    Memory,
    /// Answers with the bytes of a file, which is open.
    File(RawFd),
}

/// The work of a server of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Http {
    /// HTTP/1.
    One,
    /// HTTP/1, where the answers to pipelined requests may share a write.
    Pipelined,
    /// HTTP/2 with prior knowledge.
    Two,
    /// HTTP/1 over sockets of async-io.
    Foreign,
}

/// A runtime with a number of worker threads.
///
/// The rows make the same calls on every runtime. A spawn either drops the handle, and the task
/// goes on, or returns the handle, which the row awaits. No row uses a cheaper call that other
/// runtimes lack.
pub(crate) trait Rt: Sized + 'static {
    /// The runtime's name on the command line.
    const NAME: &'static str;

    /// The package that the runtime comes from.
    const PACKAGE: &'static str;

    /// True if the runtime uses as many processors as it is given. Only such a runtime can be "the
    /// best peer" of a row. The figures of any other runtime are those of one processor.
    const PARALLEL: bool = true;

    /// Features that the runtime's public interface lacks. A row that needs such a feature leaves
    /// the runtime out.
    const LACKS: &'static [Ask] = &[];

    /// Starts the runtime.
    fn start(workers: usize) -> io::Result<Self>;

    /// [`Ask::Timers`]: starts the runtime with its timers, if they are optional.
    fn start_with_timers(workers: usize) -> io::Result<Self> {
        Self::start(workers)
    }

    /// [`Ask::Net`]: starts the runtime with all its drivers, if they are optional.
    fn start_with_net(workers: usize) -> io::Result<Self> {
        Self::start_with_timers(workers)
    }

    /// [`Ask::Net`]: accepts connections, each of which gets a task, until the runtime ends. The
    /// listener is non-blocking. An outside thread calls this.
    fn serve(&self, listener: TcpListener, service: Service) -> io::Result<()> {
        let _ = (listener, service);
        unreachable!("{} says that it has no sockets", Self::NAME)
    }

    /// [`Ask::Net`]: answers messages until the runtime ends. The socket is non-blocking. An
    /// outside thread calls this. Work but [`Work::Echo`] needs further features.
    fn serve_messages(&self, socket: Socket, work: Work) -> io::Result<()> {
        let _ = (socket, work);
        unreachable!("{} says that it has no sockets", Self::NAME)
    }

    /// [`Ask::Http`], [`Ask::Hyper`], [`Ask::Foreign`]: answers requests, each connection in a
    /// task, until the runtime ends. The listener is non-blocking. An outside thread calls this.
    fn serve_http(&self, listener: TcpListener, http: Http) -> io::Result<()> {
        let _ = (listener, http);
        unreachable!("{} says that it has no HTTP", Self::NAME)
    }

    /// Spawns from an outside thread, and drops the handle.
    fn spawn_outside(&self, future: impl Future<Output = ()> + Send + 'static);

    /// Runs the spawned tasks on this thread, if the runtime has no threads of its own.
    fn drive(&self) {}

    /// [`Ask::Join`]: spawns from an outside thread, and returns the handle.
    fn join_outside<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send;

    /// [`Ask::Inside`]: spawns from a task, and drops the handle.
    fn spawn(future: impl Future<Output = ()> + Send + 'static);

    /// [`Ask::Join`]: spawns from a task, and returns the handle.
    fn join<T: Send + 'static>(
        future: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send;

    /// Yields, by the function that the runtime's documentation recommends. A runtime without such
    /// a function takes that of futures-lite.
    fn yield_now() -> impl Future<Output = ()> + Send;

    /// [`Ask::Blocking`]: runs a blocking closure, on a thread for such closures.
    fn blocking<T: Send + 'static>(
        work: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = T> + Send {
        drop(work);
        lacking()
    }

    /// [`Ask::Files`]: reads a whole file, in a task.
    fn read(file: PathBuf) -> impl Future<Output = io::Result<Vec<u8>>> + Send {
        drop(file);
        lacking()
    }

    /// [`Ask::Files`]: lists a directory, in a task. Returns the path of each entry, and whether
    /// the entry is a directory.
    fn list(directory: PathBuf) -> impl Future<Output = io::Result<Vec<(PathBuf, bool)>>> + Send {
        drop(directory);
        lacking()
    }

    /// [`Ask::Timers`]: sleeps, in a task.
    fn sleep(span: Duration) -> impl Future<Output = ()> + Send {
        let _ = span;
        lacking()
    }

    /// [`Ask::Timers`]: calls `tick` after each period from `start` on, until it returns false; in
    /// a task, by the runtime's own intervals.
    fn interval(
        start: Instant,
        period: Duration,
        tick: impl FnMut() -> bool + Send,
    ) -> impl Future<Output = ()> + Send {
        let _ = (start, period);
        drop(tick);
        lacking()
    }

    /// [`Ask::Timers`]: limits a future, in a task. Returns whether the future was ready in time.
    fn timeout(
        limit: Duration,
        future: impl Future<Output = ()> + Send,
    ) -> impl Future<Output = bool> + Send {
        let _ = limit;
        drop(future);
        lacking()
    }

    /// [`Ask::Budget`]: charges the budget one operation, or returns `Pending` if none is left.
    fn proceed(_: &mut Context<'_>) -> Poll<()> {
        unreachable!("{} says that it has no budget", Self::NAME)
    }
}

/// Stands for a function of a feature that the runtime lacks.
async fn lacking<T>() -> T {
    unreachable!("a row that asks for it leaves the runtime out")
}
