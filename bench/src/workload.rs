//! The workloads, over any runtime, and how one is measured. To add one: a function, and an entry in [`rows`].
use crate::{
    noise::{self, Window},
    rt::Rt,
};
use serde::Serialize;
use std::{
    io,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread::{self, Thread},
    time::{Duration, Instant},
};

mod spawn;
mod wake;

/// A workload. One run of it is some operations, and ends when so many have called [`Done::one`].
pub(crate) struct Row<R> {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    operations: usize,
    parties: usize,
    run: fn(&R, Done),
}

/// All of them, by the names that the field has for them.
pub(crate) fn rows<R: Rt>() -> Vec<Row<R>> {
    vec![
        Row {
            name: "spawn_many_remote",
            what: "10,000 tasks spawned from outside",
            operations: spawn::MANY,
            parties: spawn::MANY,
            run: spawn::many_remote,
        },
        Row {
            name: "spawn_many_remote_join",
            what: "10,000 tasks spawned from outside, every handle awaited there",
            operations: spawn::MANY,
            parties: 1,
            run: spawn::many_remote_join,
        },
        Row {
            name: "spawn_many_local",
            what: "10,000 tasks spawned from a task",
            operations: spawn::MANY,
            parties: spawn::MANY,
            run: spawn::many_local,
        },
        Row {
            name: "chained_spawn",
            what: "a task that spawns one that spawns one, 1,000 deep",
            operations: spawn::DEPTH,
            parties: 1,
            run: spawn::chained,
        },
        Row {
            name: "spawn_join",
            what: "a task that spawns one and awaits it, 1,000 times",
            operations: spawn::JOINS,
            parties: 1,
            run: spawn::join,
        },
        Row {
            name: "yield_many",
            what: "200 tasks that yield 1,000 times each",
            operations: wake::YIELDERS * wake::YIELDS,
            parties: wake::YIELDERS,
            run: wake::yield_many,
        },
        Row {
            name: "yield_one",
            what: "one task that yields 10,000 times",
            operations: wake::ALONE,
            parties: 1,
            run: wake::yield_one,
        },
        Row {
            name: "wake_one",
            what: "one task that wakes itself 10,000 times",
            operations: wake::ALONE,
            parties: 1,
            run: wake::wake_one,
        },
        Row {
            name: "ping_pong",
            what: "1,000 pairs that exchange a message each way, over futures' oneshots",
            operations: wake::PAIRS,
            parties: wake::PAIRS,
            run: wake::ping_pong::<R, wake::Futures>,
        },
        Row {
            name: "ping_pong_tokio",
            what: "the same over tokio's oneshots",
            operations: wake::PAIRS,
            parties: wake::PAIRS,
            run: wake::ping_pong::<R, wake::Tokio>,
        },
    ]
}

/// Tells the measuring thread when the last party is done. One word to capture, and nothing to count but the
/// parties, so that what is measured is the runtime.
#[derive(Clone, Copy)]
pub(crate) struct Done(&'static Parties);

struct Parties {
    left: AtomicUsize,
    waiter: Thread,
}

impl Done {
    /// To be waited for by this thread. Leaked: a process makes one.
    fn new() -> Self {
        Self(Box::leak(Box::new(Parties {
            left: AtomicUsize::new(0),
            waiter: thread::current(),
        })))
    }

    /// So many will call [`one`](Self::one), and then [`wait`](Self::wait) returns.
    fn expect(self, parties: usize) {
        // Ordering: the spawns that follow order it before every `fetch_sub`.
        self.0.left.store(parties, Relaxed);
    }

    /// One party is done. The last wakes the waiter.
    pub(crate) fn one(self) {
        // Ordering: only the number matters, nothing is handed over.
        if self.0.left.fetch_sub(1, Relaxed) == 1 {
            self.0.waiter.unpark();
        }
    }

    fn wait(self) {
        // Ordering: as in `one`. A park that returns early looks again; one that misses the `unpark` finds its token.
        while self.0.left.load(Relaxed) != 0 {
            thread::park();
        }
    }
}

/// What was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Sample {
    rt: &'static str,
    row: &'static str,
    workers: usize,
    operations: u64,
    /// Wall time an operation.
    wall_ns: f64,
    /// Processor time an operation, user and system, of all threads.
    cpu_ns: f64,
    /// A cache line's round trip between two processors before; none if it can't be measured.
    round_trip_before_ns: Option<f64>,
    /// The same after.
    round_trip_after_ns: Option<f64>,
    /// The part of the machine's processor time that others had; none if the machine doesn't say.
    others: Option<f64>,
}

/// Measures `row` for at least so long, after a warm-up of a quarter of it; `None` if there is no such row.
pub(crate) fn sample<R: Rt>(
    row: &str,
    workers: usize,
    at_least: Duration,
) -> io::Result<Option<Sample>> {
    let Some(row) = rows::<R>().into_iter().find(|known| known.name == row) else {
        return Ok(None);
    };
    let round_trip_before_ns = noise::round_trip();
    let runtime = R::start(workers)?;
    let done = Done::new();
    let run_for = |limit: Duration| {
        let (begun, mut runs) = (Instant::now(), 0);
        loop {
            done.expect(row.parties);
            (row.run)(&runtime, done);
            done.wait();
            runs += 1;
            if begun.elapsed() >= limit {
                return runs;
            }
        }
    };
    run_for(at_least / 4);
    let window = Window::open();
    let runs: u64 = run_for(at_least);
    let spent = window.close();
    let operations = runs * row.operations as u64;
    Ok(Some(Sample {
        rt: R::NAME,
        row: row.name,
        workers,
        operations,
        wall_ns: spent.wall.as_nanos() as f64 / operations as f64,
        cpu_ns: spent.cpu.as_nanos() as f64 / operations as f64,
        round_trip_before_ns,
        round_trip_after_ns: noise::round_trip(),
        others: spent.others,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt::ALL;

    #[test]
    fn every_row_ends_on_every_runtime() {
        for row in rows::<crate::rt::Ours>() {
            for runtime in ALL {
                let sample = (runtime.sample)(row.name, 2, Duration::ZERO)
                    .expect("it starts")
                    .expect("every runtime has every row");
                assert_eq!(sample.operations, row.operations as u64, "{sample:?}");
                assert!(sample.wall_ns > 0.0, "{sample:?}");
            }
        }
    }

    #[test]
    fn an_unknown_row_is_none() {
        let sample = (ALL[0].sample)("nothing", 2, Duration::ZERO);
        assert!(sample.expect("nothing starts").is_none());
    }
}
