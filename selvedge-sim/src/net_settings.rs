//! The settings of the network between hosts.
use std::{ops::Range, time::Duration};

/// A probability, in parts of 2³².
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chance(pub(crate) u32);

impl Chance {
    /// # Panics
    /// If `share` is not from 0 to 1.
    #[track_caller]
    pub(crate) fn of(share: f64) -> Self {
        assert!(
            (0.0..=1.0).contains(&share),
            "a probability is from 0 to 1, not {share}"
        );
        Self((share * f64::from(u32::MAX)) as u32)
    }
}

/// The network between the hosts of a simulation.
///
/// ```
/// use selvedge_sim::Net;
/// use std::time::Duration;
///
/// let ms = Duration::from_millis;
/// let net = Net::new().latency(ms(1)..ms(50)).loss(0.01).bandwidth(1_000_000);
/// # let _ = net;
/// ```
#[derive(Clone, Debug)]
#[must_use = "the network is that of the hosts that take it"]
pub struct Net {
    pub(crate) latency: Range<Duration>,
    pub(crate) loss: Chance,
    pub(crate) duplicates: Chance,
    pub(crate) bandwidth: Option<u64>,
}

impl Default for Net {
    fn default() -> Self {
        Self::new()
    }
}

impl Net {
    /// Makes a network whose packets take 0.2 to 2 ms, and which loses none.
    pub fn new() -> Self {
        Self {
            latency: Duration::from_micros(200)..Duration::from_millis(2),
            loss: Chance::default(),
            duplicates: Chance::default(),
            bandwidth: None,
        }
    }

    /// Sets how long a packet is under way. The seed chooses the time of each packet, so packets
    /// overtake each other. A stream's bytes stay in order.
    pub fn latency(mut self, span: Range<Duration>) -> Self {
        self.latency = span;
        self
    }

    /// Sets which share of the packets is lost. A stream sends lost bytes again, so they come late.
    /// A lost datagram is lost.
    ///
    /// # Panics
    /// If `share` is not from 0 to 1.
    #[track_caller]
    pub fn loss(mut self, share: f64) -> Self {
        self.loss = Chance::of(share);
        self
    }

    /// Sets which share of the packets arrives twice.
    ///
    /// # Panics
    /// If `share` is not from 0 to 1.
    #[track_caller]
    pub fn duplicates(mut self, share: f64) -> Self {
        self.duplicates = Chance::of(share);
        self
    }

    /// Sets how many bytes a second pass from one host to another. Without a limit by default.
    pub fn bandwidth(mut self, bytes_per_second: u64) -> Self {
        self.bandwidth = Some(bytes_per_second);
        self
    }
}
