//! Workloads whose client is a process of its own: what a server costs that shares its processors
//! with no part of its client's work but what the kernel does.
//!
//! A row has two placements. *Free*: the runtime has all its workers, and the client runs where the
//! kernel puts it. *Pinned*: the runtime's process has the first processor, with one worker, and
//! the client has the second.
use super::{Measured, http, net::listen, net::threads, sample::Settings};
use crate::{
    client::{
        Client,
        spec::{Address, Dialog, Figures, Spec},
    },
    noise::{self, Window, resident},
    rt::{
        Ask, Http, Rt,
        messages::{Socket, Work},
    },
    syscalls,
    usage::Usage,
};
use serde::Serialize;
use std::{
    io,
    net::{Ipv4Addr, UdpSocket},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener},
    },
    process,
    time::Duration,
};

/// The processors of the server and the client.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    Free,
    /// The server's and the client's, if this process has two.
    Pinned(Option<[usize; 2]>),
}

impl Placement {
    pub(super) fn pinned() -> Self {
        Self::Pinned(noise::processors().filter(|_| !super::SMALL))
    }

    /// Returns the processors of the server and the client, if each has one.
    pub(super) fn processors(self) -> Option<[usize; 2]> {
        match self {
            Self::Free => None,
            Self::Pinned(processors) => processors,
        }
    }

    /// Returns the name of a row with this placement.
    pub(super) fn name(self, row: &str) -> String {
        match self {
            Self::Free => row.to_owned(),
            Self::Pinned(_) => format!("{row}_pinned"),
        }
    }
}

/// The parameters of a row.
#[derive(Clone, Copy)]
pub(super) struct Load {
    service: Service,
    connections: usize,
    /// Requests on their way at once on each connection.
    in_flight: usize,
    /// The length of a message.
    bytes: usize,
    pace: Pace,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Service {
    /// hyper's HTTP/1.
    Hello,
    Tcp,
    Unix,
    Udp,
    /// TCP, with work before the answer.
    Mixed,
}

#[derive(Clone, Copy)]
enum Pace {
    /// A closed loop.
    Answers,
    /// An open loop: requests a second.
    Clock(f64),
    /// An open loop: the part of the requests a second that tokio answers in a closed loop.
    Capacity(f64),
}

/// The row in which the capacity for [`Pace::Capacity`] is measured.
pub(crate) const CAPACITY: &str = "mixed_capacity";

/// The rows: a name, the parameters, and those of the second set.
pub(super) const LOADS: &[(&str, Load, Load)] = &[
    ("hello_open_1k", hello(50, 1_000.0), hello(7, 700.0)),
    ("hello_open_5k", hello(50, 5_000.0), hello(7, 12_000.0)),
    ("hello_open_20k", hello(50, 20_000.0), hello(300, 12_000.0)),
    (
        CAPACITY,
        mixed(50, Pace::Answers),
        mixed(300, Pace::Answers),
    ),
    ("mixed_10", mixed(50, CAPACITY_10), mixed(300, CAPACITY_10)),
    ("mixed_30", mixed(50, CAPACITY_30), mixed(300, CAPACITY_30)),
    ("mixed_60", mixed(50, CAPACITY_60), mixed(300, CAPACITY_60)),
    ("mixed_80", mixed(50, CAPACITY_80), mixed(300, CAPACITY_80)),
    (
        "tcp_1",
        echo(Service::Tcp, 1, 1, 64),
        echo(Service::Tcp, 7, 1, 1_500),
    ),
    (
        "tcp_50",
        echo(Service::Tcp, 50, 1, 64),
        echo(Service::Tcp, 300, 1, 1_500),
    ),
    (
        "udp_1",
        echo(Service::Udp, 1, 1, 64),
        echo(Service::Udp, 7, 1, 1_500),
    ),
    (
        "udp_16",
        echo(Service::Udp, 1, 16, 64),
        echo(Service::Udp, 1, 7, 1_500),
    ),
    // More datagrams of this length would not fit into the server's buffer.
    (
        "udp_50",
        echo(Service::Udp, 50, 1, 64),
        echo(Service::Udp, 60, 1, 1_500),
    ),
    (
        "uds_1",
        echo(Service::Unix, 1, 1, 64),
        echo(Service::Unix, 7, 1, 1_500),
    ),
    (
        "uds_50",
        echo(Service::Unix, 50, 1, 64),
        echo(Service::Unix, 300, 1, 1_500),
    ),
];

const CAPACITY_10: Pace = Pace::Capacity(0.1);
const CAPACITY_30: Pace = Pace::Capacity(0.3);
const CAPACITY_60: Pace = Pace::Capacity(0.6);
const CAPACITY_80: Pace = Pace::Capacity(0.8);

const fn hello(connections: usize, rate: f64) -> Load {
    Load {
        pace: Pace::Clock(rate),
        ..echo(Service::Hello, connections, 1, 0)
    }
}

const fn mixed(connections: usize, pace: Pace) -> Load {
    Load {
        pace,
        ..echo(Service::Mixed, connections, 1, 64)
    }
}

const fn echo(service: Service, connections: usize, in_flight: usize, bytes: usize) -> Load {
    Load {
        service,
        connections,
        in_flight,
        bytes,
        pace: Pace::Answers,
    }
}

/// The figures that only a row with a client outside has. Times are in nanoseconds.
#[derive(Debug, Serialize)]
pub(crate) struct Outside {
    p50: f64,
    p999: f64,
    max: f64,
    /// Requests a second: the rate of an open loop, or the pace of a closed one.
    rate: f64,
    /// Requests of an open loop that found all connections busy.
    queued: u64,
    /// How late the client was at 1 % of its clock's arrivals, and at the latest.
    late_p99: Option<f64>,
    late_max: Option<f64>,
    /// For each request: how often a thread of the server waited, and was preempted.
    voluntary: f64,
    involuntary: f64,
    /// The server's system calls for each request.
    syscalls: Option<f64>,
    /// The reason why they are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    syscalls_unknown: Option<String>,
    /// Resident bytes of the server for each connection, where there are enough to tell.
    bytes_a_connection: Option<f64>,
}

/// The least number of connections whose memory is more than what else a server's memory does.
const MANY: usize = 50;

impl Load {
    /// Returns the features that the row needs.
    pub(super) fn asks(&self) -> &'static [Ask] {
        match self.service {
            Service::Hello => &[Ask::Http],
            Service::Tcp | Service::Unix | Service::Udp => &[Ask::Net],
            Service::Mixed => &[Ask::Net, Ask::Timers, Ask::Blocking],
        }
    }

    pub(super) fn is_part_of_capacity(&self) -> bool {
        matches!(self.pace, Pace::Capacity(_))
    }

    /// Measures the row.
    pub(super) fn measure<R: Rt>(
        &self,
        runtime: &R,
        workers: usize,
        placement: Placement,
        settings: Settings,
        at_least: Duration,
    ) -> Option<Measured> {
        let rate = match self.pace {
            Pace::Answers => None,
            Pace::Clock(rate) => Some(rate),
            Pace::Capacity(part) => {
                let measure = || capacity(workers, placement, settings.second_set, at_least);
                let capacity = settings.capacity.map_or_else(measure, Ok);
                let capacity = capacity.map_err(|error| eprintln!("{CAPACITY}: {error}"));
                Some(part * capacity.ok()?)
            }
        };
        self.run(runtime, rate, placement, at_least)
            .map_err(|error| eprintln!("a client: {error}"))
            .ok()
    }

    fn run<R: Rt>(
        &self,
        runtime: &R,
        rate: Option<f64>,
        placement: Placement,
        at_least: Duration,
    ) -> io::Result<Measured> {
        let mut client = Client::start(&Spec {
            to: self.serve(runtime)?,
            dialog: match self.service {
                Service::Hello => Dialog::Hello,
                Service::Mixed => Dialog::Mixed(self.bytes),
                _ => Dialog::Echo(self.bytes),
            },
            in_flight: self.in_flight,
            rate,
            processor: placement.processors().map(|[_, client]| client),
        })?;
        // The first connection makes the runtime allocate what it needs but once.
        client.connect(1)?;
        client.run(Duration::ZERO)?;
        let before = resident();
        client.connect(self.connections)?;
        client.run(at_least / 4)?;
        let grown = resident().zip(before);
        let grown = grown.map(|(after, before)| after.saturating_sub(before).max(1));

        let (window, usage) = (Window::open(), Usage::of_others());
        let figures = client.run(at_least)?;
        let usage = Usage::of_others() - usage;
        let mut spent = window.close_beside(Duration::from_nanos(figures.cpu));
        spent.cpu = usage.cpu;

        let syscalls = syscalls_of(&mut client, at_least / 4)?;
        let each = |count: u64| count as f64 / figures.done as f64;
        let Figures {
            done, wall, p50, ..
        } = figures;
        let value = if rate.is_some() { p50 } else { each(wall) };
        let connections = (self.connections >= MANY).then(|| self.connections as u64 - 1);
        Ok(Measured {
            p99: Some(figures.p99),
            outside: Some(Outside {
                p50,
                p999: figures.p999,
                max: figures.max,
                rate: rate.unwrap_or(done as f64 / Duration::from_nanos(wall).as_secs_f64()),
                queued: figures.queued,
                late_p99: figures.late_p99,
                late_max: figures.late_max,
                voluntary: each(usage.voluntary),
                involuntary: each(usage.involuntary),
                syscalls: syscalls.as_ref().ok().copied(),
                syscalls_unknown: syscalls.err(),
                bytes_a_connection: grown
                    .zip(connections)
                    .map(|(bytes, count)| bytes as f64 / count as f64),
            }),
            ..Measured::of(done, value, spent)
        })
    }

    /// Starts the server. Returns its address.
    fn serve<R: Rt>(&self, runtime: &R) -> io::Result<Address> {
        let (socket, to, work) = match self.service {
            Service::Hello => return http::serve(runtime, Http::One).map(Address::Tcp),
            Service::Tcp | Service::Mixed => {
                let (listener, to) = listen()?;
                let work = match self.service {
                    Service::Mixed => Work::Mixed,
                    _ => Work::Echo,
                };
                (Socket::Tcp(listener), Address::Tcp(to), work)
            }
            Service::Unix => {
                let name = format!("bench-{}", process::id());
                let at = SocketAddr::from_abstract_name(&name)?;
                let listener = UnixListener::bind_addr(&at)?;
                listener.set_nonblocking(true)?;
                (Socket::Unix(listener), Address::Unix(name), Work::Echo)
            }
            Service::Udp => {
                let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
                socket.set_nonblocking(true)?;
                let to = Address::Udp(socket.local_addr()?);
                (Socket::Udp(socket), to, Work::Echo)
            }
        };
        runtime.serve_messages(socket, work)?;
        Ok(to)
    }
}

/// Counts the server's system calls for each request while the client runs for a time. The inner
/// error is the reason why they cannot be counted.
fn syscalls_of(client: &mut Client, span: Duration) -> io::Result<Result<f64, String>> {
    // This thread, the main one, is not the server's.
    let this = process::id() as i32;
    let counter = match syscalls::Counter::start(threads().filter(|thread| *thread != this)) {
        Ok(counter) => counter,
        Err(why) => return Ok(Err(why)),
    };
    let figures = client.run(span)?;
    Ok(Ok(counter.total()? as f64 / figures.done as f64))
}

/// Returns how many requests a second tokio answers in a closed loop, by a sample in a process of
/// its own.
fn capacity(
    workers: usize,
    placement: Placement,
    second_set: bool,
    at_least: Duration,
) -> io::Result<f64> {
    let row = placement.name(CAPACITY);
    let mut sample = process::Command::new("/proc/self/exe");
    sample.args(["sample", "--json", "--rt", "tokio", "--row", &row]);
    sample.args(["--workers", &workers.to_string()]);
    sample.args(["--millis", &at_least.as_millis().to_string()]);
    sample.args(second_set.then_some("--second-set"));
    let output = sample.output()?;
    let sample: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let nanos = sample["value"].as_f64();
    nanos
        .map(|nanos| 1e9 / nanos)
        .ok_or_else(|| io::Error::other("the sample has no value"))
}
