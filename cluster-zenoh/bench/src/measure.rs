//! The parts that each side of a measurement has, whichever system it measures.
use std::{
    io::{self, Read},
    time::{Duration, Instant},
};

/// The content of a message.
pub const BYTES: usize = 64;

/// Says that the server is ready, and waits for the end of the input.
pub fn serve_until_the_end() {
    println!("ready");
    let _ = io::stdin().read_to_end(&mut Vec::new());
}

/// The round trips of calls, one after the other.
pub struct Calls {
    ends: Instant,
    warm: Instant,
    taken: Vec<u64>,
}

impl Calls {
    /// The first fifth of the time warms up.
    pub fn of(millis: u64) -> Self {
        let (now, time) = (Instant::now(), Duration::from_millis(millis));
        Self {
            ends: now + time,
            warm: now + time / 5,
            taken: Vec::with_capacity(1 << 20),
        }
    }

    /// Notes a call that began then. Returns whether another one is to begin.
    pub fn note(&mut self, begun: Instant) -> bool {
        let now = Instant::now();
        if now >= self.warm {
            self.taken.push((now - begun).as_nanos() as u64);
        }
        now < self.ends
    }

    /// Prints the median and the 99th percentile in nanoseconds, and how many calls there were.
    pub fn print(mut self) {
        self.taken.sort_unstable();
        let at = |share: usize| self.taken[self.taken.len() * share / 100];
        println!("call {} {} {}", at(50), at(99), self.taken.len());
    }
}

/// Prints how many messages a second were taken.
pub fn print_rate(messages: u64, begun: Instant) {
    let rate = messages as f64 / begun.elapsed().as_secs_f64();
    println!("flood {rate:.0}");
}
