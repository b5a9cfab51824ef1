//! The figures of a row whose client is a process of its own.
use serde::{Deserialize, Serialize};

/// The most nanoseconds by which the client itself may be late at 99 of 100 arrivals: about twice
/// what it takes to wake a processor that has halted.
const LATE: f64 = 100_000.0;

/// The part of a sample that only such a row has.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Outside {
    pub(super) p50: f64,
    pub(super) p999: f64,
    pub(super) max: f64,
    pub(super) rate: f64,
    pub(super) queued: u64,
    pub(super) late_p99: Option<f64>,
    pub(super) late_max: Option<f64>,
    pub(super) voluntary: f64,
    pub(super) involuntary: f64,
    pub(super) syscalls: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) syscalls_unknown: Option<String>,
    pub(super) bytes_a_connection: Option<f64>,
}

impl Outside {
    /// Whether the client was too late for its clock. Then the sample says little of the server.
    pub(super) fn is_late(&self) -> bool {
        self.late_p99.is_some_and(|late| late > LATE)
    }
}

/// A figure of a runtime in a row.
#[derive(Clone, Copy, Deserialize, Serialize)]
pub(super) struct Figure {
    /// The median of the kept samples.
    pub(super) value: Option<f64>,
    pub(super) to_yardstick: Option<f64>,
}

/// Returns a figure of a sample.
type Get = fn(&Outside) -> Option<f64>;

/// The figures beside the row's value, p99 and processor time: the word of a table's column, the
/// words of a sentence, and the figure of a sample.
pub(super) const FIGURES: [(&str, &str, Get); 4] = [
    ("p50", "p50", |outside| Some(outside.p50)),
    ("calls/op", "system calls", |outside| outside.syscalls),
    ("switches/op", "context switches", |outside| {
        Some(outside.voluntary + outside.involuntary)
    }),
    ("bytes/conn", "memory a connection", |outside| {
        outside.bytes_a_connection
    }),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_that_misses_its_clock_is_late() {
        let outside = |late_p99| Outside {
            late_p99,
            ..Outside::default()
        };
        assert!(!outside(None).is_late());
        assert!(!outside(Some(100_000.0)).is_late());
        assert!(outside(Some(100_001.0)).is_late());
    }
}
