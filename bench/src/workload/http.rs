//! Workloads of HTTP: a server of hyper on the runtime, and clients that use std's sockets, on
//! threads of their own.
//!
//! `http_50`, `http_foreign` and `h2_streams` measure throughput. They pin no thread, and the
//! runtime has all its workers. The usual tools that make requests measure servers in the same way.
//! So a runtime pays for each thread that it wakes without need.
//!
//! `http_saturated` and `http_mixed` measure latencies. The runtime's one worker has one processor,
//! and the clients have another: if the workers were busy on all processors, the system's scheduler
//! would determine the latencies.
use super::{
    Measured,
    net::{
        Clients, Dialog, connected, listen, measure, measure_beside, of_tail, thread_id, throughput,
    },
};
use crate::{
    hello::{is_whole, request},
    rt::{Http, Rt, http::SPIN_PATH},
};
use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    os::fd::AsRawFd,
    sync::{
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

/// Starts a server of HTTP on the runtime. Returns its address.
pub(super) fn serve<R: Rt>(runtime: &R, http: Http) -> io::Result<SocketAddr> {
    let (listener, to) = listen()?;
    runtime.serve_http(listener, http)?;
    Ok(to)
}

/// Requests of HTTP/1. In each round of `spin_every` requests of a connection, one takes long.
struct Requests {
    short: Vec<u8>,
    long: Vec<u8>,
    /// 0 is never.
    spin_every: usize,
    /// For each connection, the number of requests sent on it, plus the point of the round at which
    /// the connection began.
    sent: Vec<usize>,
}

impl Requests {
    fn new(connections: usize, spin_every: usize) -> Self {
        Self {
            short: request("/"),
            long: request(SPIN_PATH),
            spin_every,
            // The connections begin at different points of their rounds.
            sent: (0..connections).collect(),
        }
    }

    fn is_long(&self, at: usize) -> bool {
        self.spin_every > 0 && self.sent[at].is_multiple_of(self.spin_every)
    }
}

impl Dialog for Requests {
    fn send(&mut self, at: usize, stream: &mut TcpStream) -> io::Result<()> {
        self.sent[at] += 1;
        let request = if self.is_long(at) {
            &self.long
        } else {
            &self.short
        };
        stream.write_all(request)
    }

    fn receive(&mut self, at: usize, stream: &mut TcpStream) -> io::Result<bool> {
        let (mut answer, mut len) = ([0; 512], 0);
        // The connection has only one request under way, so no bytes follow its answer.
        while !is_whole(&answer[..len]) {
            match stream.read(&mut answer[len..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => len += count,
            }
        }
        Ok(!self.is_long(at))
    }
}

/// Makes requests on 50 connections.
pub(super) fn fifty<R: Rt>(runtime: &R, _: usize, at_least: Duration) -> Option<Measured> {
    requests(runtime, Http::One, at_least)
}

/// The same over sockets of async-io.
pub(super) fn async_io<R: Rt>(runtime: &R, _: usize, at_least: Duration) -> Option<Measured> {
    requests(runtime, Http::Foreign, at_least)
}

/// Number of connections in `http_50`, `http_foreign` and `http_mixed`.
const CONNECTIONS: usize = 50;

fn requests<R: Rt>(runtime: &R, http: Http, at_least: Duration) -> Option<Measured> {
    let to = serve(runtime, http).ok()?;
    let mut clients = Clients::connect(to, CONNECTIONS).ok()?;
    let mut requests = Requests::new(CONNECTIONS, 0);
    throughput(measure(false, at_least, |span| {
        clients.exchange(&mut requests, span)
    })?)
}

/// Makes requests on 50 connections. On each connection every tenth request takes long.
pub(super) fn mixed<R: Rt>(runtime: &R, _: usize, at_least: Duration) -> Option<Measured> {
    let to = serve(runtime, Http::One).ok()?;
    let mut clients = Clients::connect(to, CONNECTIONS).ok()?;
    let mut requests = Requests::new(CONNECTIONS, 10);
    of_tail(measure(true, at_least, |span| {
        clients.exchange(&mut requests, span)
    })?)
}

/// Connections beside the one that pipelines.
const OTHERS: usize = 199;

/// Makes requests on 199 connections, beside one that pipelines without end.
pub(super) fn saturated<R: Rt>(runtime: &R, _: usize, at_least: Duration) -> Option<Measured> {
    let to = serve(runtime, Http::Pipelined).ok()?;
    let pipeline = connected(to).ok()?;
    let mut clients = Clients::connect(to, OTHERS).ok()?;
    let mut requests = Requests::new(OTHERS, 0);
    let ends = AtomicBool::new(false);
    let (id, ids) = mpsc::channel();
    let measured = thread::scope(|scope| {
        scope.spawn(|| {
            let _ = id.send(thread_id());
            pipeline_without_end(pipeline, &ends)
                .unwrap_or_else(|error| eprintln!("the pipelining client: {error}"));
        });
        let others = [ids.recv().ok()?];
        let run = |span| clients.exchange(&mut requests, span);
        let measured = measure_beside(&others, true, at_least, run);
        // Ordering: Relaxed, as it is only a flag.
        ends.store(true, Relaxed);
        measured
    });
    of_tail(measured?)
}

/// Keeps a connection full of requests, and reads the answers.
fn pipeline_without_end(mut stream: TcpStream, ends: &AtomicBool) -> io::Result<()> {
    let one = request("/");
    let many = one.repeat((1 << 16) / one.len());
    let (mut next, mut answers) = (0, vec![0; 1 << 16]);
    stream.set_nonblocking(true)?;
    // Ordering: Relaxed, as it is only a flag.
    while !ends.load(Relaxed) {
        let mut wait = libc::pollfd {
            fd: stream.as_raw_fd(),
            events: libc::POLLIN | libc::POLLOUT,
            revents: 0,
        };
        // SAFETY: the pointer is valid for one entry. The time limit lets this loop see the flag.
        unsafe { libc::poll(&mut wait, 1, 10) };
        // After the end of `many` the requests continue at its start.
        match stream.write(&many[next..]) {
            Ok(count) => next = (next + count) % many.len(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        match stream.read(&mut answers) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Number of streams that are open at once in `h2_streams`.
const STREAMS: usize = 100;

/// Makes requests on the streams of one connection.
pub(super) fn streams<R: Rt>(runtime: &R, _: usize, at_least: Duration) -> Option<Measured> {
    let to = serve(runtime, Http::Two).ok()?;
    let mut client = Http2::connect(to).ok()?;
    throughput(measure(false, at_least, |span| client.exchange(span))?)
}

/// The length of a frame's head.
const FRAME: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

/// A flag of `DATA` and `HEADERS`.
const END_STREAM: u8 = 1;
/// A flag of `SETTINGS` and `PING`.
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// A client that has a number of requests on their way, each on a new stream.
struct Http2 {
    stream: TcpStream,
    /// The bytes of a frame that is not whole yet.
    read: Vec<u8>,
    to_write: Vec<u8>,
    next_id: u32,
    /// When the request of each open stream was sent, by the stream's id.
    sent: Vec<(u32, Instant)>,
}

impl Http2 {
    fn connect(to: SocketAddr) -> io::Result<Self> {
        let mut client = Self {
            stream: connected(to)?,
            read: Vec::new(),
            to_write: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            next_id: 1,
            sent: Vec::new(),
        };
        client.frame(SETTINGS, 0, 0, &[]);
        // The connection's window is opened as far as it goes: enough for 400 million answers.
        let most = (1_u32 << 31) - 1 - 65_535;
        client.frame(WINDOW_UPDATE, 0, 0, &most.to_be_bytes());
        Ok(client)
    }

    fn frame(&mut self, kind: u8, flags: u8, id: u32, content: &[u8]) {
        let [_, len @ ..] = (content.len() as u32).to_be_bytes();
        self.to_write.extend(len);
        self.to_write.extend([kind, flags]);
        self.to_write.extend(id.to_be_bytes());
        self.to_write.extend(content);
    }

    /// Puts a request into `to_write`, from which `exchange` sends it.
    fn send(&mut self) {
        // The first three bytes are the indices of `GET`, `http` and `/` in the static table of
        // HPACK. The rest is the authority, written out: `localhost`.
        const HEAD: &[u8] = b"\x82\x86\x84\x01\x09localhost";
        let id = self.next_id;
        self.next_id += 2;
        self.sent.push((id, Instant::now()));
        self.frame(HEADERS, END_HEADERS | END_STREAM, id, HEAD);
    }

    /// Keeps a hundred requests on their way until the time `at_least` is over, and then waits for
    /// the last answers. Returns how long the answers took, in nanoseconds.
    fn exchange(&mut self, at_least: Duration) -> io::Result<Vec<u64>> {
        let (begun, mut took) = (Instant::now(), Vec::new());
        for _ in 0..STREAMS {
            self.send();
        }
        while !self.sent.is_empty() {
            self.stream.write_all(&self.to_write)?;
            self.to_write.clear();
            let len = self.read.len();
            self.read.resize(len + (1 << 14), 0);
            let count = self.stream.read(&mut self.read[len..])?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.read.truncate(len + count);
            let now = Instant::now();
            for _ in 0..self.receive(now, &mut took)? {
                if now - begun < at_least {
                    self.send();
                }
            }
        }
        Ok(took)
    }

    /// Takes the frames that have come. Returns the number of streams that ended.
    fn receive(&mut self, now: Instant, took: &mut Vec<u64>) -> io::Result<usize> {
        let read = std::mem::take(&mut self.read);
        let (mut rest, mut ended) = (&read[..], 0);
        while let [a, b, c, kind, flags, i, j, k, l, after @ ..] = rest {
            let len = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            if after.len() < len {
                break;
            }
            let (content, id) = (&after[..len], u32::from_be_bytes([*i, *j, *k, *l]));
            rest = &rest[FRAME + len..];
            match *kind {
                RST_STREAM | GOAWAY => {
                    return Err(io::Error::other("the server refuses a stream"));
                }
                SETTINGS if flags & ACK == 0 => self.frame(SETTINGS, ACK, 0, &[]),
                PING if flags & ACK == 0 => self.frame(PING, ACK, 0, content),
                DATA if flags & END_STREAM != 0 => {
                    let at = self.sent.iter().position(|(sent, _)| *sent == id);
                    let at = at.ok_or_else(|| io::Error::other("an answer to no request"))?;
                    let (_, sent) = self.sent.swap_remove(at);
                    took.push((now - sent).as_nanos() as u64);
                    ended += 1;
                }
                _ => {}
            }
        }
        self.read = rest.to_vec();
        Ok(ended)
    }
}
