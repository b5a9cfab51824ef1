//! Workloads of sockets: a server on the runtime, and clients of std on threads of their own.
//!
//! The clients are the same for all runtimes. A row that pins threads gives the clients one
//! processor and the runtime's threads the other, so that it measures the server. A row that loads
//! the workers pins no thread.
use super::{Done, Measured, size, tail};
use crate::{
    noise::{self, Window},
    percentiles::percentiles,
    poller::Poller,
    rt::{Rt, Service},
};
use std::{
    fs,
    future::poll_fn,
    hint::spin_loop,
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    os::fd::AsRawFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::Poll,
    thread,
    time::{Duration, Instant},
};

/// Number of bytes in a message.
const MESSAGE: usize = 64;

/// The bytes that the clients send and receive.
pub(super) trait Dialog {
    /// Sends the next message of the connection with the index `at`.
    fn send(&mut self, at: usize, stream: &mut TcpStream) -> io::Result<()>;

    /// Receives the answer. Returns true if the answer's time counts.
    fn receive(&mut self, at: usize, stream: &mut TcpStream) -> io::Result<bool>;
}

/// Messages that come back as they are.
struct Echo;

impl Dialog for Echo {
    fn send(&mut self, _: usize, stream: &mut TcpStream) -> io::Result<()> {
        stream.write_all(&[7; MESSAGE])
    }

    fn receive(&mut self, _: usize, stream: &mut TcpStream) -> io::Result<bool> {
        stream.read_exact(&mut [0; MESSAGE])?;
        Ok(true)
    }
}

/// Starts a server on the runtime. Returns its address.
fn serve<R: Rt>(runtime: &R, service: Service) -> io::Result<SocketAddr> {
    let (listener, to) = listen()?;
    runtime.serve(listener, service)?;
    Ok(to)
}

/// The number of connections that a listener's queue may hold. A queue of std's length, 128,
/// overflows if the server's processor is busy. Then the kernel makes the client wait for a second.
const QUEUE: i32 = 4_096;

/// Returns a listener, and the address by which a client on this machine reaches it.
pub(super) fn listen() -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: the call takes no pointers. It only sets the length of the queue.
    if unsafe { libc::listen(listener.as_raw_fd(), QUEUE) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let port = listener.local_addr()?.port();
    listener.set_nonblocking(true)?;
    Ok((listener, (Ipv4Addr::LOCALHOST, port).into()))
}

/// The connections of clients. One thread waits for the answers on all of them, by an epoll.
pub(super) struct Clients {
    poller: Poller,
    /// The streams, each with the time at which its last message was sent.
    streams: Vec<(TcpStream, Instant)>,
}

impl Clients {
    pub(super) fn connect(to: SocketAddr, count: usize) -> io::Result<Self> {
        let poller = Poller::new()?;
        let mut streams = Vec::with_capacity(count);
        for n in 0..count {
            let stream = connected(to)?;
            poller.add(stream.as_raw_fd(), n as u64)?;
            streams.push((stream, Instant::now()));
        }
        Ok(Self { poller, streams })
    }

    /// Sends a message on each connection, and the next one at each answer, for at least a time.
    /// Returns the nanoseconds that each answer took, without the answers that do not count.
    pub(super) fn exchange(
        &mut self,
        dialog: &mut impl Dialog,
        at_least: Duration,
    ) -> io::Result<Vec<u64>> {
        let (begun, mut took, mut waiting) = (Instant::now(), Vec::new(), self.streams.len());
        for (at, (stream, sent)) in self.streams.iter_mut().enumerate() {
            *sent = Instant::now();
            dialog.send(at, stream)?;
        }
        while waiting > 0 {
            for at in self.poller.wait(None) {
                let at = at as usize;
                let (stream, sent) = &mut self.streams[at];
                let counts = dialog.receive(at, stream)?;
                let now = Instant::now();
                if counts {
                    took.push((now - *sent).as_nanos() as u64);
                }
                if now - begun < at_least {
                    *sent = now;
                    dialog.send(at, stream)?;
                } else {
                    waiting -= 1;
                }
            }
        }
        Ok(took)
    }
}

pub(super) fn connected(to: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(to)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Exchanges messages on one connection, with this pause before each, for at least a time. Returns
/// the nanoseconds that each answer took.
fn exchange_one(
    stream: &mut TcpStream,
    pause: Duration,
    at_least: Duration,
) -> io::Result<Vec<u64>> {
    let (begun, mut took) = (Instant::now(), Vec::new());
    loop {
        if !pause.is_zero() {
            thread::sleep(pause);
        }
        let sent = Instant::now();
        Echo.send(0, stream)?;
        Echo.receive(0, stream)?;
        took.push(sent.elapsed().as_nanos() as u64);
        if begun.elapsed() >= at_least {
            return Ok(took);
        }
    }
}

/// Measures clients on a thread of their own. The thread calls `run` for a quarter of the time, to
/// warm up, and then for the whole time. `run` returns how long each operation took. If `pins` is
/// true, that thread gets a processor, and the runtime's threads get another one. The processor
/// time is that of all threads but the clients'.
pub(super) fn measure(
    pins: bool,
    at_least: Duration,
    run: impl FnMut(Duration) -> io::Result<Vec<u64>> + Send,
) -> Option<(Vec<u64>, Duration, noise::Spent)> {
    measure_beside(&[], pins, at_least, run)
}

/// Measures as [`measure`] does, beside clients on other threads. `others` are the ids of these
/// threads. If `pins` is true, they get the same processor as this client.
pub(super) fn measure_beside(
    others: &[i32],
    pins: bool,
    at_least: Duration,
    mut run: impl FnMut(Duration) -> io::Result<Vec<u64>> + Send,
) -> Option<(Vec<u64>, Duration, noise::Spent)> {
    let own = thread_id();
    let client = move || {
        let places = noise::processors().filter(|_| pins && !super::SMALL);
        let pin = || {
            if let Some([here, there]) = places {
                pin_threads(here, &[&[own, thread_id()], others].concat());
                noise::pin(there);
                for &other in others {
                    noise::pin_thread(other, there);
                }
            }
        };
        pin();
        run(at_least / 4)?;
        pin(); // The runtime may have started threads since.
        let (window, own, begun) = (Window::open(), own_time(), Instant::now());
        let took = run(at_least)?;
        let (wall, own) = (begun.elapsed(), own_time() - own);
        let mut spent = window.close();
        spent.cpu = spent.cpu.saturating_sub(own);
        io::Result::Ok((took, wall, spent))
    };
    let measured = thread::scope(|scope| scope.spawn(client).join().expect("it doesn't panic"));
    measured
        .map_err(|error| eprintln!("a client: {error}"))
        .ok()
}

/// Returns the figures of a row of requests that are made as fast as they are answered.
pub(super) fn throughput(measured: (Vec<u64>, Duration, noise::Spent)) -> Option<Measured> {
    let (took, wall, spent) = measured;
    let operations = took.len() as u64;
    let value = wall.as_nanos() as f64 / operations as f64;
    let (_, p99) = percentiles(took)?;
    Some(Measured {
        p99: Some(p99),
        ..Measured::of(operations, value, spent)
    })
}

/// Returns the figures of a row whose value is the time that one answer in a hundred exceeds.
pub(super) fn of_tail((took, _, spent): (Vec<u64>, Duration, noise::Spent)) -> Option<Measured> {
    tail(took, spent)
}

/// Echoes messages on a number of connections.
pub(super) fn echo<R: Rt, const CONNECTIONS: usize>(
    runtime: &R,
    _: usize,
    at_least: Duration,
) -> Option<Measured> {
    let to = serve(runtime, Service::Echo).ok()?;
    if CONNECTIONS == 1 {
        let mut one = connected(to).ok()?;
        let run = |span| exchange_one(&mut one, Duration::ZERO, span);
        throughput(measure(true, at_least, run)?)
    } else {
        let mut all = Clients::connect(to, CONNECTIONS).ok()?;
        throughput(measure(true, at_least, |span| {
            all.exchange(&mut Echo, span)
        })?)
    }
}

/// The length of a poll of the busy tasks in `echo_busy`.
const BUSY: Duration = Duration::from_millis(1);

/// Echoes a message again and again, after a pause of 300 microseconds each time. Beside it, one
/// task for each worker has long polls, and wakes itself in each poll.
pub(super) fn echo_busy<R: Rt>(
    runtime: &R,
    workers: usize,
    at_least: Duration,
) -> Option<Measured> {
    let to = serve(runtime, Service::Echo).ok()?;
    let (done, ends) = (Done::new(), Arc::new(AtomicBool::new(false)));
    done.expect(workers);
    for _ in 0..workers {
        let ends = ends.clone();
        runtime.spawn_outside(poll_fn(move |cx| {
            let begun = Instant::now();
            while begun.elapsed() < BUSY {
                spin_loop();
            }
            // Ordering: Relaxed, as it is only a flag.
            if ends.load(Relaxed) {
                done.one();
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        }));
    }
    let mut one = connected(to).ok()?;
    let pause = Duration::from_micros(300);
    let measured = measure(false, at_least, |span| exchange_one(&mut one, pause, span));
    // Ordering: Relaxed, as above.
    ends.store(true, Relaxed);
    done.wait();
    of_tail(measured?)
}

/// Number of connections of `echo_saturated` that always have data.
const FLOODS: usize = 16;

/// Echoes messages on 50 connections. Beside them, the server reads connections that always have
/// data, in small pieces.
pub(super) fn echo_saturated<R: Rt>(runtime: &R, _: usize, at_least: Duration) -> Option<Measured> {
    let to = serve(runtime, Service::Echo).ok()?;
    let sink = serve(runtime, Service::Sink).ok()?;
    let floods = (0..FLOODS).map(|_| {
        let stream = connected(sink)?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    });
    let floods = floods.collect::<io::Result<Vec<_>>>().ok()?;
    let mut clients = Clients::connect(to, 50).ok()?;
    let ends = AtomicBool::new(false);
    let measured = thread::scope(|scope| {
        scope.spawn(|| flood(&floods, &ends));
        let measured = measure(false, at_least, |span| clients.exchange(&mut Echo, span));
        // Ordering: Relaxed, as it is only a flag.
        ends.store(true, Relaxed);
        measured
    });
    of_tail(measured?)
}

/// Keeps the connections full of data until `ends` is set.
fn flood(streams: &[TcpStream], ends: &AtomicBool) {
    let data = vec![7; 1 << 16];
    // Ordering: Relaxed, as it is only a flag.
    while !ends.load(Relaxed) {
        for mut stream in streams {
            while stream.write(&data).is_ok_and(|written| written > 0) {}
        }
        thread::sleep(Duration::from_micros(500));
    }
}

/// Connects, sends a byte, awaits it, and closes.
pub(super) fn connect<R: Rt>(runtime: &R, _: usize, at_least: Duration) -> Option<Measured> {
    let mut to = serve(runtime, Service::Echo).ok()?;
    let mut count = 0_u64;
    let run = |span: Duration| {
        let (begun, mut took) = (Instant::now(), Vec::new());
        while took.is_empty() || begun.elapsed() < span {
            // Each connection goes to another loopback address, as a closed connection keeps its
            // pair of address and port for a minute.
            count += 1;
            let [low, middle, ..] = count.to_le_bytes();
            to.set_ip(Ipv4Addr::new(127, 0, middle, low.max(1)).into());
            let at = Instant::now();
            let mut stream = connected(to)?;
            stream.write_all(&[7])?;
            stream.read_exact(&mut [0])?;
            drop(stream);
            took.push(at.elapsed().as_nanos() as u64);
        }
        Ok(took)
    };
    throughput(measure(true, at_least, run)?)
}

/// Number of idle connections. The server limits its wait on each of them to an hour.
const IDLE: usize = size(9_000);

/// Counts how often threads of the process wake up in a second while connections are idle. One
/// wake-up is this thread's own.
pub(super) fn idle<R: Rt>(runtime: &R, _: usize, at_least: Duration) -> Option<Measured> {
    let to = serve(runtime, Service::Hold).ok()?;
    // A test makes fewer connections than a listener's queue holds. On a busy machine the kernel
    // drops further ones, and the client tries again after a second.
    let (count, second) = match at_least.is_zero() {
        true => (IDLE / 20, Duration::from_millis(50)),
        false => (IDLE, Duration::from_secs(1)),
    };
    let streams: io::Result<Vec<_>> = (0..count).map(|_| TcpStream::connect(to)).collect();
    let streams = streams
        .map_err(|error| eprintln!("a client: {error}"))
        .ok()?;
    // After this sleep, all connections are accepted, and all threads that can sleep are asleep.
    thread::sleep(second);
    let (window, before) = (Window::open(), switches()?);
    thread::sleep(second);
    let (after, spent) = (switches()?, window.close());
    let wakes = after.saturating_sub(before).max(1);
    Some(Measured::of(streams.len() as u64, wakes as f64, spent))
}

/// Returns the ids of this process's threads.
pub(super) fn threads() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc/self/task").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// Returns how often the threads of this process have waited, by their voluntary context switches.
fn switches() -> Option<u64> {
    let of = |thread: i32| {
        let status = fs::read_to_string(format!("/proc/self/task/{thread}/status")).ok()?;
        let mut lines = status.lines();
        let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        count.trim().parse::<u64>().ok()
    };
    let counts: Vec<_> = threads().filter_map(of).collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

/// Pins all threads of this process, except those in `but`, to a processor.
fn pin_threads(processor: usize, but: &[i32]) {
    for thread in threads().filter(|thread| !but.contains(thread)) {
        noise::pin_thread(thread, processor);
    }
}

pub(super) fn thread_id() -> i32 {
    // SAFETY: `gettid` has no preconditions.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// Returns the processor time of this thread.
fn own_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is valid for a write of a `timespec`.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
