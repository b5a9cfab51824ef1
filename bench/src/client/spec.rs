//! The words between a sample and its client: one line of JSON each.
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The load that a client makes. It is an argument of the client's process.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Spec {
    pub(crate) to: Address,
    pub(crate) dialog: Dialog,
    /// Number of requests that are on their way at once on each connection.
    pub(crate) in_flight: usize,
    /// Requests a second, at the times of a Poisson process; each takes a connection that is free.
    /// `None` is a closed loop: the next request follows the answer.
    pub(crate) rate: Option<f64>,
    /// Number of threads that compute without end beside the client.
    pub(crate) busy: usize,
    /// The processor that the client has for itself. There it never sleeps.
    pub(crate) processor: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) enum Address {
    Tcp(SocketAddr),
    Udp(SocketAddr),
    /// A name in the kernel's own namespace of Unix sockets, without a file.
    Unix(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum Dialog {
    /// A request of HTTP/1, and a short answer.
    Hello,
    /// A message of so many bytes, which comes back as it is.
    Echo(usize),
    /// A message of so many bytes that comes back after some work. The client draws the kind.
    Mixed(usize),
    /// A message of so many bytes on the first connection, which comes back on all others.
    FanOut(usize),
    /// A message on the first connection, and [`LARGE`](crate::message::LARGE) bytes in answer. One
    /// mebibyte counts as a request.
    Large,
    /// A connection of its own for a byte and its echo.
    Connect,
}

/// An order to the client.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) enum Order {
    /// Connects until there are so many connections.
    Connect(usize),
    /// Makes requests for so many nanoseconds, and waits for the last answers.
    Run(u64),
}

/// The client's answer to an order. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Figures {
    /// Requests with a right answer.
    pub(crate) done: u64,
    /// Answers that were wrong or too short, and connections that ended.
    pub(crate) errors: u64,
    /// Requests that never had an answer.
    pub(crate) lost: u64,
    /// Requests that found no free connection.
    pub(crate) queued: u64,
    pub(crate) wall: u64,
    /// The client's own processor time.
    pub(crate) cpu: u64,
    /// The times from the intended send to the answer: half of them, 1 % of them and one in a
    /// thousand are longer.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    pub(crate) max: f64,
    /// How late the client itself was at its clock's arrivals. `None` in a closed loop.
    pub(crate) late_p99: Option<f64>,
    pub(crate) late_max: Option<f64>,
}
