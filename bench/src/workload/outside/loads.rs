//! The rows whose client is a process of its own: their loads and placements.
use super::servers::Service;
use crate::noise;

/// Settings of the rows whose client is a process of its own.
#[derive(Clone, Copy, Default)]
pub(crate) struct Settings {
    /// Takes the second set of parameters.
    pub(crate) second_set: bool,
    /// The requests a second that tokio answers, if they are known.
    pub(crate) capacity: Option<f64>,
}

/// The processors of the server and the client.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    Free,
    /// The server's and the client's, if this process has two.
    Pinned(Option<[usize; 2]>),
}

impl Placement {
    fn pinned() -> Self {
        Self::Pinned(noise::processors().filter(|_| !crate::workload::SMALL))
    }

    /// Returns the processors of the server and the client, if each has one.
    pub(crate) fn processors(self) -> Option<[usize; 2]> {
        match self {
            Self::Free => None,
            Self::Pinned(processors) => processors,
        }
    }

    /// Returns the row in which tokio's capacity with this placement is measured.
    fn capacity(self) -> String {
        match self {
            Self::Free => CAPACITY.to_owned(),
            Self::Pinned(_) => format!("{CAPACITY}{PINNED}"),
        }
    }
}

/// The parameters of a row.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) service: Service,
    pub(super) connections: usize,
    /// Requests on their way at once on each connection.
    pub(super) in_flight: usize,
    /// The length of a message.
    pub(super) bytes: usize,
    pub(super) pace: Pace,
    /// Number of threads that compute beside the client.
    pub(super) busy: usize,
}

#[derive(Clone, Copy)]
pub(super) enum Pace {
    /// A closed loop.
    Answers,
    /// An open loop: requests a second.
    Clock(f64),
    /// An open loop: the part of the requests a second that tokio answers in a closed loop.
    Capacity(f64),
}

impl Load {
    /// Returns the row in which tokio's capacity for this one is measured, if it needs it.
    pub(crate) fn capacity(&self, placement: Placement) -> Option<String> {
        let needed = matches!(self.pace, Pace::Capacity(_));
        needed.then(|| placement.capacity())
    }
}

/// The row in which the capacity for [`Pace::Capacity`] is measured.
const CAPACITY: &str = "mixed_capacity";

/// A row, with each placement that it is measured with.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) load: Load,
    pub(crate) second: Load,
    pub(crate) places: Places,
}

/// The placements of a row, and what its name says of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Places {
    /// Free, and pinned by another name.
    Both,
    /// Only free.
    Free,
    /// Only pinned, by the row's own name.
    Pinned,
}

impl Places {
    /// Returns the placements, each with the end of the row's name.
    pub(crate) fn all(self) -> Vec<(Placement, &'static str)> {
        match self {
            Self::Both => vec![(Placement::Free, ""), (Placement::pinned(), PINNED)],
            Self::Free => vec![(Placement::Free, "")],
            Self::Pinned => vec![(Placement::pinned(), "")],
        }
    }
}

/// The end of the name of a row that is there twice, where it is pinned.
const PINNED: &str = "_pinned";

const fn row(name: &'static str, load: Load, second: Load) -> Entry {
    Entry {
        name,
        load,
        second,
        places: Places::Both,
    }
}

const fn pinned(name: &'static str, load: Load, second: Load) -> Entry {
    Entry {
        places: Places::Pinned,
        ..row(name, load, second)
    }
}

/// The number of connections that get a message at once.
const FAN: usize = crate::workload::size(1_000);

/// All rows.
pub(crate) const ROWS: &[Entry] = &[
    row("hello_open_1k", hello(50, 1_000.0), hello(7, 700.0)),
    row("hello_open_5k", hello(50, 5_000.0), hello(7, 12_000.0)),
    row("hello_open_20k", hello(50, 20_000.0), hello(300, 12_000.0)),
    row(
        CAPACITY,
        mixed(50, Pace::Answers),
        mixed(300, Pace::Answers),
    ),
    row("mixed_10", mixed(50, CAPACITY_10), mixed(300, CAPACITY_10)),
    row("mixed_30", mixed(50, CAPACITY_30), mixed(300, CAPACITY_30)),
    row("mixed_60", mixed(50, CAPACITY_60), mixed(300, CAPACITY_60)),
    row("mixed_80", mixed(50, CAPACITY_80), mixed(300, CAPACITY_80)),
    row(
        "tcp_1",
        echo(Service::Tcp, 1, 1, 64),
        echo(Service::Tcp, 7, 1, 1_500),
    ),
    row(
        "tcp_50",
        echo(Service::Tcp, 50, 1, 64),
        echo(Service::Tcp, 300, 1, 1_500),
    ),
    row(
        "udp_1",
        echo(Service::Udp, 1, 1, 64),
        echo(Service::Udp, 7, 1, 1_500),
    ),
    row(
        "udp_16",
        echo(Service::Udp, 1, 16, 64),
        echo(Service::Udp, 1, 7, 1_500),
    ),
    // More datagrams of this length would not fit into the server's buffer.
    row(
        "udp_50",
        echo(Service::Udp, 50, 1, 64),
        echo(Service::Udp, 60, 1, 1_500),
    ),
    row(
        "uds_1",
        echo(Service::Unix, 1, 1, 64),
        echo(Service::Unix, 7, 1, 1_500),
    ),
    row(
        "uds_50",
        echo(Service::Unix, 50, 1, 64),
        echo(Service::Unix, 300, 1, 1_500),
    ),
    row(
        "fan_out_1000",
        echo(Service::FanOut, FAN + 1, 1, 64),
        echo(Service::FanOut, 301, 1, 1_500),
    ),
    row(
        "big_1gib",
        echo(Service::Memory, 1, 1, 64),
        echo(Service::Memory, 1, 1, 64),
    ),
    row(
        "file_1gib",
        echo(Service::File, 1, 1, 64),
        echo(Service::File, 1, 1, 64),
    ),
    Entry {
        places: Places::Free,
        ..row(
            "loaded_host",
            beside(2, hello(50, 5_000.0)),
            beside(2, hello(7, 700.0)),
        )
    },
    // These have the names that they had when their clients were threads of the server's process.
    pinned(
        "echo_1",
        echo(Service::Tcp, 1, 1, 64),
        echo(Service::Tcp, 7, 1, 1_500),
    ),
    pinned(
        "echo_50",
        echo(Service::Tcp, 50, 1, 64),
        echo(Service::Tcp, 300, 1, 1_500),
    ),
    pinned(
        "connect",
        echo(Service::Connect, 1, 1, 64),
        echo(Service::Connect, 1, 1, 64),
    ),
];

const CAPACITY_10: Pace = Pace::Capacity(0.1);
const CAPACITY_30: Pace = Pace::Capacity(0.3);
const CAPACITY_60: Pace = Pace::Capacity(0.6);
const CAPACITY_80: Pace = Pace::Capacity(0.8);

const fn beside(busy: usize, load: Load) -> Load {
    Load { busy, ..load }
}

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
        busy: 0,
    }
}
