//! The workloads, over any runtime, and how one is measured. To add one: a function, an
//! entry in [`rows`], and its name in `names.rs`.
use crate::{
    names::ROWS,
    noise::{self, Spent, Window},
    rt::{Ask, Rt},
};
use serde::Serialize;
use std::{
    io,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread::{self, Thread},
    time::{Duration, Instant},
};

mod coop;
mod latency;
mod load;
mod memory;
mod spawn;
mod wake;

/// A workload.
pub(crate) struct Row<R> {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// What it is about: rows of a kind share a chart.
    pub(crate) kind: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) asks: &'static [Ask],
    /// How many times tokio's figure ours shall be at most.
    pub(crate) aim: f64,
    /// Its workers, if it isn't for as many as asked.
    workers: Option<usize>,
    measure: Measure<R>,
}

/// Measures for at least so long, on a runtime with so many workers; none if the machine doesn't tell.
type Measure<R> = Box<dyn Fn(&R, usize, Duration) -> Option<Measured>>;

impl<R> Row<R> {
    /// Whether a runtime that lacks so much has it.
    pub(crate) fn suits(&self, lacks: &[Ask]) -> bool {
        self.asks.iter().all(|ask| !lacks.contains(ask))
    }
}

impl<R: Rt> Row<R> {
    fn new(
        kind: &'static str,
        name: &'static str,
        asks: &'static [Ask],
        measure: impl Fn(&R, usize, Duration) -> Option<Measured> + 'static,
    ) -> Self {
        let named = ROWS.iter().find(|(known, _)| *known == name);
        let (_, what) = named.expect("`names.rs` has all rows");
        Self {
            name,
            what,
            kind,
            unit: "ns",
            asks,
            aim: 0.9,
            workers: None,
            measure: Box::new(measure),
        }
    }
}

/// Where ours shall be ahead of tokio by more than on every row.
const AIMS: &[(&str, f64)] = &[
    ("spawn_many_remote", 0.25),
    ("spawn_many_remote_join", 0.33),
    ("spawn_many_local", 0.17),
    ("chained_spawn", 0.55),
    ("spawn_join", 0.70),
    ("yield_many", 0.45),
    ("yield_one", 0.08),
    ("wake_one", 0.20),
    ("ping_pong", 0.48),
    ("ping_pong_tokio", 0.55),
    ("idle_wake", 0.32),
    ("spawn_blocking", 0.80),
    ("idle_task", 0.30),
    ("coop", 1.0),
];

/// All of them, by the names that the field has for them.
pub(crate) fn rows<R: Rt>() -> Vec<Row<R>> {
    use Ask::{Background, Blocking, Budget, Fair, Inside, Join, Stop};
    let mut rows = vec![
        Row::new(
            "spawn",
            "spawn_many_remote",
            &[],
            repeat(spawn::MANY, spawn::MANY, spawn::many_remote),
        ),
        Row::new(
            "spawn",
            "spawn_many_remote_join",
            &[Join],
            repeat(spawn::MANY, 1, spawn::many_remote_join),
        ),
        Row::new(
            "spawn",
            "spawn_busy_remote",
            &[Background, Fair],
            repeat(
                spawn::MANY,
                spawn::MANY + spawn::BUSY,
                spawn::many_busy_remote,
            ),
        ),
        Row::new(
            "spawn",
            "spawn_many_local",
            &[Inside],
            repeat(spawn::MANY, spawn::MANY, spawn::many_local),
        ),
        Row::new(
            "spawn",
            "chained_spawn",
            &[Inside],
            repeat(spawn::DEPTH, 1, spawn::chained),
        ),
        Row::new(
            "spawn",
            "spawn_join",
            &[Inside, Join],
            repeat(spawn::JOINS, 1, spawn::join),
        ),
        Row::new(
            "spawn",
            "fork_join",
            &[Inside, Join],
            repeat(spawn::TREE, 1, spawn::fork_join),
        ),
        Row::new(
            "wake",
            "yield_many",
            &[],
            repeat(
                wake::YIELDERS * wake::YIELDS,
                wake::YIELDERS,
                wake::yield_many,
            ),
        ),
        Row::new(
            "wake",
            "yield_one",
            &[],
            repeat(wake::ALONE, 1, wake::yield_one),
        ),
        Row::new(
            "wake",
            "wake_one",
            &[],
            repeat(wake::ALONE, 1, wake::wake_one),
        ),
        Row::new(
            "wake",
            "ping_pong",
            &[Inside],
            repeat(
                wake::PAIRS,
                wake::PAIRS,
                wake::ping_pong::<R, wake::Futures>,
            ),
        ),
        Row::new(
            "wake",
            "ping_pong_tokio",
            &[Inside],
            repeat(wake::PAIRS, wake::PAIRS, wake::ping_pong::<R, wake::Tokio>),
        ),
        Row::new(
            "wake",
            "ring_100",
            &[],
            repeat(100 * 100, 100, wake::ring::<R, 100, 1, 100>),
        ),
        Row::new(
            "wake",
            "ring_1000",
            &[],
            repeat(1_000 * 100, 1_000, wake::ring::<R, 1_000, 100, 1>),
        ),
        Row::new(
            "wake",
            "wake_storm",
            &[],
            repeat(
                wake::CROWD * wake::STORMS,
                wake::CROWD,
                wake::storm::<R, false>,
            ),
        ),
        Row::new(
            "wake",
            "wake_storm_remote",
            &[Background],
            repeat(
                wake::CROWD * wake::STORMS,
                wake::CROWD,
                wake::storm::<R, true>,
            ),
        ),
        Row::new("load", "skew", &[Inside], load::skew()),
        Row::new("load", "bursty", &[], load::bursty()),
        Row::new("latency", "idle_wake", &[Background], latency::idle_wake),
        Row::new(
            "latency",
            "spawn_blocking",
            &[Blocking],
            repeat(latency::ROUND_TRIPS, 1, latency::blocking),
        ),
        Row::new(
            "latency",
            "new_drop",
            &[Stop],
            repeat(1, 1, latency::new_drop),
        ),
        Row::new("latency", "coop", &[Background, Budget], coop::coop),
        Row::new("memory", "idle_task", &[Background], memory::idle),
    ];
    for row in &mut rows {
        match row.name {
            "coop" => row.workers = Some(1),
            "idle_task" => row.unit = "bytes",
            _ => {}
        }
        if let Some((_, aim)) = AIMS.iter().find(|(name, _)| *name == row.name) {
            row.aim = *aim;
        }
    }
    rows
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

/// Figures of a row.
pub(crate) struct Measured {
    operations: u64,
    /// An operation's, in the row's unit.
    value: f64,
    p99: Option<f64>,
    efficiency: Option<f64>,
    spent: Spent,
}

/// A workload's size: a twentieth in tests, which ask whether it ends and not how long it takes.
const fn size(full: usize) -> usize {
    if cfg!(test) { full.div_ceil(20) } else { full }
}

/// One run after the other: `operations` each, over when `parties` have called [`Done::one`].
fn repeat<R: Rt>(
    operations: usize,
    parties: usize,
    run: fn(&R, Done),
) -> impl Fn(&R, usize, Duration) -> Option<Measured> {
    move |runtime, _, at_least| {
        let runs = runs(runtime, at_least, Duration::ZERO, parties, run);
        Some(runs.each(operations))
    }
}

/// What a number of runs took.
struct Runs {
    count: u64,
    wall: Duration,
    spent: Spent,
}

impl Runs {
    /// For an operation, of so many in a run.
    fn each(self, operations: usize) -> Measured {
        let operations = self.count * operations as u64;
        Measured {
            operations,
            value: self.wall.as_nanos() as f64 / operations as f64,
            p99: None,
            efficiency: None,
            spent: self.spent,
        }
    }
}

/// Runs for at least so long, after a warm-up of a quarter of it, with a pause before each run that counts for nothing but processor time.
fn runs<R: Rt>(
    runtime: &R,
    at_least: Duration,
    pause: Duration,
    parties: usize,
    run: fn(&R, Done),
) -> Runs {
    let done = Done::new();
    let run_for = |limit: Duration| {
        let (begun, mut count, mut wall) = (Instant::now(), 0, Duration::ZERO);
        loop {
            if !pause.is_zero() {
                thread::sleep(pause);
            }
            let run_begun = Instant::now();
            done.expect(parties);
            run(runtime, done);
            runtime.drive();
            done.wait();
            wall += run_begun.elapsed();
            count += 1;
            if begun.elapsed() >= limit {
                return (count, wall);
            }
        }
    };
    run_for(at_least / 4);
    let window = Window::open();
    let (count, wall) = run_for(at_least);
    Runs {
        count,
        wall,
        spent: window.close(),
    }
}

/// What was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Sample {
    rt: &'static str,
    row: &'static str,
    workers: usize,
    operations: u64,
    /// Wall time an operation, or what else the row's unit says.
    value: f64,
    /// The value that one in a hundred exceeds, where single operations are timed.
    p99: Option<f64>,
    /// What part of the possible pace, where that is known.
    efficiency: Option<f64>,
    /// Processor time an operation, user and system, of all threads.
    cpu_ns: f64,
    /// A cache line's round trip between two processors before; none if it can't be measured.
    round_trip_before_ns: Option<f64>,
    /// The same after.
    round_trip_after_ns: Option<f64>,
    /// The part of the machine's processor time that others had; none if the machine doesn't say.
    others: Option<f64>,
}

/// Measures `row` for at least so long; `None` if there is no such row, or this runtime or machine doesn't have it.
pub(crate) fn sample<R: Rt>(
    row: &str,
    workers: usize,
    at_least: Duration,
) -> io::Result<Option<Sample>> {
    let mut rows = rows::<R>().into_iter();
    let Some(row) = rows.find(|known| known.name == row && known.suits(R::LACKS)) else {
        return Ok(None);
    };
    let workers = row.workers.unwrap_or(workers);
    let round_trip_before_ns = noise::round_trip();
    let runtime = R::start(workers)?;
    let Some(measured) = (row.measure)(&runtime, workers, at_least) else {
        return Ok(None);
    };
    Ok(Some(Sample {
        rt: R::NAME,
        row: row.name,
        workers,
        operations: measured.operations,
        value: measured.value,
        p99: measured.p99,
        efficiency: measured.efficiency,
        cpu_ns: measured.spent.cpu.as_nanos() as f64 / measured.operations as f64,
        round_trip_before_ns,
        round_trip_after_ns: noise::round_trip(),
        others: measured.spent.others,
    }))
}

/// The median and the value that one in a hundred exceeds.
fn percentiles(mut values: Vec<u64>) -> Option<(f64, f64)> {
    values.sort_unstable();
    let at =
        |part: usize| values.get((values.len() * part / 100).min(values.len().checked_sub(1)?));
    Some((*at(50)? as f64, *at(99)? as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt::{ALL, Ours};

    #[test]
    fn every_row_ends_on_every_runtime_that_has_it() {
        // One that doesn't end would otherwise be waited for.
        crate::kill_after(3_600);
        for row in rows::<Ours>() {
            for runtime in ALL {
                let sample = (runtime.sample)(row.name, 2, Duration::ZERO).expect("it starts");
                if !row.suits(runtime.lacks) {
                    assert!(sample.is_none(), "{} lacks {}", runtime.name, row.name);
                    continue;
                }
                let sample = sample.expect("it has the row");
                assert!(sample.operations > 0, "{sample:?}");
                assert!(sample.value > 0.0, "{sample:?}");
            }
        }
    }

    #[test]
    fn ours_has_every_row() {
        assert!(rows::<Ours>().iter().all(|row| row.suits(ALL[0].lacks)));
    }

    #[test]
    fn every_aim_is_a_row_s() {
        let rows = rows::<Ours>();
        for (name, _) in AIMS {
            assert!(rows.iter().any(|row| row.name == *name), "{name}");
        }
    }

    #[test]
    fn all_that_there_is_has_its_name_in_the_list() {
        let rows = rows::<Ours>();
        let rows: Vec<_> = rows.iter().map(|row| row.name).collect();
        assert_eq!(rows, ROWS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        let runtimes: Vec<_> = ALL.iter().map(|runtime| runtime.name).collect();
        assert_eq!(runtimes, crate::names::RUNTIMES);
    }

    #[test]
    fn an_unknown_row_is_none() {
        let sample = (ALL[0].sample)("nothing", 2, Duration::ZERO);
        assert!(sample.expect("nothing starts").is_none());
    }

    #[test]
    fn percentiles_are_of_the_sorted_values() {
        assert_eq!(percentiles((0..200).rev().collect()), Some((100.0, 198.0)));
        assert_eq!(percentiles(vec![7]), Some((7.0, 7.0)));
        assert_eq!(percentiles(vec![]), None);
    }
}
