//! The figures of a row whose client is a process of its own.
use serde::Serialize;

/// The figures that only a row with a client outside has. Times are in nanoseconds.
#[derive(Debug, Serialize)]
pub(crate) struct Outside {
    pub(crate) p50: f64,
    pub(crate) p999: f64,
    pub(crate) max: f64,
    /// Requests a second: the rate of an open loop, or the pace of a closed one.
    pub(crate) rate: f64,
    /// Requests of an open loop that found all connections busy.
    pub(crate) queued: u64,
    /// How late the client was at 1 % of its clock's arrivals, and at the latest.
    pub(crate) late_p99: Option<f64>,
    pub(crate) late_max: Option<f64>,
    /// For each request: how often a thread of the server waited, and was preempted.
    pub(crate) voluntary: f64,
    pub(crate) involuntary: f64,
    /// The server's system calls for each request.
    pub(crate) syscalls: Option<f64>,
    /// The reason why they are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) syscalls_unknown: Option<String>,
    /// Resident bytes of the server for each connection, where there are enough to tell.
    pub(crate) bytes_a_connection: Option<f64>,
}
