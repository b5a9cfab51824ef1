//! The workloads, generic over the runtime, and how one is measured.
//!
//! To add a workload, write a function, an entry in [`rows`], and its name in `names.rs`.
use crate::{
    names::ROWS,
    noise::{self, Spent, Window},
    rt::{Ask, Http, Rt},
};
use serde::Serialize;
use std::{
    io, mem,
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread::{self, Thread},
    time::{Duration, Instant},
};

mod coop;
mod fs;
mod http;
mod latency;
mod load;
mod memory;
mod net;
mod spawn;
mod time;
mod wake;

/// A workload, as one row of the table.
pub(crate) struct Row<R> {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// The row's topic. Rows of one kind share a chart.
    pub(crate) kind: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) asks: &'static [Ask],
    /// Our aim: our figure divided by tokio's is to be at most this.
    pub(crate) aim: f64,
    /// The number of workers that the row fixes, if it does.
    workers: Option<usize>,
    measure: Measure<R>,
}

/// Measures on a runtime with a number of workers, for at least a time. `None` if the machine lacks
/// a figure that the row needs.
type Measure<R> = Box<dyn Fn(&R, usize, Duration) -> Option<Measured>>;

impl<R> Row<R> {
    fn has_sockets(&self) -> bool {
        let sockets = [Ask::Net, Ask::Http, Ask::Hyper, Ask::Foreign];
        self.asks.iter().any(|ask| sockets.contains(ask))
    }

    /// True if a runtime that lacks these features can run the row.
    pub(crate) fn suits(&self, lacks: &[Ask]) -> bool {
        // Only a server of sockets can do without tasks.
        let tasks = !self.has_sockets();
        let asks = self.asks.iter().chain(tasks.then_some(&Ask::Tasks));
        asks.into_iter().all(|ask| !lacks.contains(ask))
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

/// The rows with an aim of their own, and these aims.
const AIMS: &[(&str, f64)] = &[
    ("spawn_many_remote", 0.25),
    ("spawn_many_remote_join", 0.33),
    ("spawn_many_local", 0.17),
    ("chained_spawn", 0.55),
    ("spawn_join", 0.70),
    ("yield_many", 0.45),
    ("yield_one", 0.08),
    ("wake_one", 0.20),
    ("wake_many", 0.45),
    ("wake_threads", 1.0),
    ("ping_pong", 0.48),
    ("ping_pong_tokio", 0.55),
    ("idle_wake", 0.32),
    ("spawn_blocking", 0.80),
    ("idle_task", 0.30),
    ("timeout_ready", 0.50),
    ("timeout_pending", 0.50),
    ("timeout_2", 0.30),
    ("sleep_1ms", 0.20),
    ("sleep_100us", 0.20),
    ("sleepers_1m", 0.50),
    ("coop", 1.0),
    ("echo_1", 0.83),
    ("echo_50", 0.87),
    ("echo_busy", 0.20),
    ("echo_saturated", 1.0),
    ("connect", 1.0),
    ("idle_conns", 1.0),
    ("http_50", 0.83),
    ("http_foreign", 1.0),
    ("http_saturated", 1.0),
    ("http_mixed", 0.6),
    ("h2_streams", 1.0),
    ("fs_tree", 1.0),
];

/// All rows, under the names that they have in the field.
pub(crate) fn rows<R: Rt>() -> Vec<Row<R>> {
    use Ask::{
        Background, Blocking, Budget, Fair, Files, Foreign, Hyper, Inside, Join, Net, Stop, Tasks,
        Timers,
    };
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
            "spawn_busy_1us_remote",
            &[Background, Fair],
            repeat(
                spawn::BURST,
                spawn::BURST + spawn::BUSY,
                spawn::busy_remote::<R, { spawn::BURST }, 1>,
            ),
        ),
        Row::new(
            "spawn",
            "spawn_busy_10us_remote",
            &[Background, Fair],
            repeat(
                spawn::BURST,
                spawn::BURST + spawn::BUSY,
                spawn::busy_remote::<R, { spawn::BURST }, 10>,
            ),
        ),
        Row::new(
            "spawn",
            "spawn_busy_100us_remote",
            &[Background, Fair],
            repeat(
                spawn::BURST,
                spawn::BURST + spawn::BUSY,
                spawn::busy_remote::<R, { spawn::BURST }, 100>,
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
            "wake_many",
            &[],
            repeat(
                wake::YIELDERS * wake::YIELDS,
                wake::YIELDERS,
                wake::wake_many,
            ),
        ),
        Row::new(
            "wake",
            "wake_threads",
            &[Background],
            repeat(wake::WAKING_THREADS * wake::WAKES, 1, wake::wake_threads),
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
                wake::STORM_TASKS * wake::STORMS,
                wake::STORM_TASKS,
                wake::storm::<R, false>,
            ),
        ),
        Row::new(
            "wake",
            "wake_storm_remote",
            &[Background],
            repeat(
                wake::STORM_TASKS * wake::STORMS,
                wake::STORM_TASKS,
                wake::storm::<R, true>,
            ),
        ),
        Row::new("load", "skew", &[Inside], load::skew()),
        Row::new("load", "bursty", &[], load::bursty()),
        Row::new("latency", "idle_wake", &[Background], latency::idle_wake),
        Row::new(
            "latency",
            "busy_spawn",
            &[Background, Fair],
            latency::busy_spawn,
        ),
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
        Row::new(
            "time",
            "timeout_ready",
            &[Timers],
            repeat(time::TIMEOUTS, 1, time::timeout_ready),
        ),
        Row::new(
            "time",
            "timeout_pending",
            &[Timers],
            repeat(time::TIMEOUTS, 1, time::timeout_pending::<R, 1>),
        ),
        Row::new(
            "time",
            "timeout_2",
            &[Timers],
            repeat(2 * time::TIMEOUTS, 2, time::timeout_pending::<R, 2>),
        ),
        Row::new("late", "sleep_1ms", &[Timers], time::sleep::<R, 1_000>),
        Row::new("late", "sleep_100us", &[Timers], time::sleep::<R, 100>),
        Row::new(
            "memory",
            "sleepers_1m",
            &[Background, Timers],
            time::sleepers,
        ),
        Row::new("net", "echo_1", &[Net], net::echo::<R, 1>),
        Row::new("net", "echo_50", &[Net], net::echo::<R, 50>),
        Row::new(
            "net",
            "echo_busy",
            &[Net, Tasks, Background],
            net::echo_busy,
        ),
        Row::new(
            "net",
            "echo_saturated",
            &[Net, Tasks, Budget],
            net::echo_saturated,
        ),
        Row::new("net", "connect", &[Net], net::connect),
        Row::new("idle", "idle_conns", &[Net, Timers], net::idle),
        Row::new("http", "http_50", &[Ask::Http], http::fifty),
        Row::new("http", "http_foreign", &[Foreign], http::async_io),
        Row::new("http", "http_saturated", &[Hyper], http::saturated),
        Row::new("http", "http_mixed", &[Ask::Http, Hyper], http::mixed),
        Row::new("http", "h2_streams", &[Ask::Http, Hyper], http::streams),
        Row::new("files", "fs_tree", &[Inside, Files], fs::tree),
    ];
    for row in &mut rows {
        match row.name {
            // These rows leave one processor to the runtime. Two workers on that processor would
            // measure the operating system's scheduler.
            "coop" | "echo_1" | "echo_50" | "connect" | "http_saturated" | "http_mixed" => {
                row.workers = Some(1)
            }
            "idle_task" | "sleepers_1m" => row.unit = "bytes",
            "idle_conns" => row.unit = "wakes",
            _ => {}
        }
        if let Some((_, aim)) = AIMS.iter().find(|(name, _)| *name == row.name) {
            row.aim = *aim;
        }
    }
    let is_row = |(aim, _): &(&str, f64)| rows.iter().any(|row| row.name == *aim);
    debug_assert!(AIMS.iter().all(is_row), "an aim names no row");
    rows
}

/// Unparks the measuring thread when the last party is done. A `Done` is one word to capture, and
/// counts nothing but the parties, so that the row measures the runtime.
#[derive(Clone, Copy)]
pub(crate) struct Done(&'static Parties);

struct Parties {
    left: AtomicUsize,
    waiter: Thread,
}

impl Done {
    /// Makes a `Done` for which this thread waits. Its `Parties` are leaked, as a sample makes only
    /// one.
    fn new() -> Self {
        Self(Box::leak(Box::new(Parties {
            left: AtomicUsize::new(0),
            waiter: thread::current(),
        })))
    }

    /// Makes [`wait`](Self::wait) return after this number of calls of [`one`](Self::one).
    fn expect(self, parties: usize) {
        // Ordering: Relaxed. The spawns that follow order this store before every `fetch_sub`.
        self.0.left.store(parties, Relaxed);
    }

    /// Counts one party as done. The last one unparks the waiter.
    pub(crate) fn one(self) {
        // Ordering: Relaxed. Only the number matters; no data is handed over.
        if self.0.left.fetch_sub(1, Relaxed) == 1 {
            self.0.waiter.unpark();
        }
    }

    fn wait(self) {
        // Ordering: Relaxed, as in `one`. A park that returns early leads to another look. An
        // `unpark` before the park leaves its token, which ends the park.
        while self.0.left.load(Relaxed) != 0 {
            thread::park();
        }
    }
}

/// The figures of a row.
pub(crate) struct Measured {
    operations: u64,
    /// The figure for one operation, in the row's unit.
    value: f64,
    p99: Option<f64>,
    latencies: Option<[f64; 4]>,
    efficiency: Option<f64>,
    threads: Option<usize>,
    spent: Spent,
}

impl Measured {
    /// Makes the figures that each row has, and leaves out the others.
    fn of(operations: u64, value: f64, spent: Spent) -> Self {
        Self {
            operations,
            value,
            p99: None,
            latencies: None,
            efficiency: None,
            threads: None,
            spent,
        }
    }
}

/// Whether the workloads are small. A build with debug assertions is for tests, which check that
/// each workload ends, not its time.
const SMALL: bool = cfg!(debug_assertions);

/// Returns a workload's size: `full`, or a twentieth of `full` if workloads are small.
const fn size(full: usize) -> usize {
    if SMALL { full.div_ceil(20) } else { full }
}

/// Measures one run after the other. A run is `operations` operations, and ends when `parties`
/// parties have called [`Done::one`].
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

/// The time that a number of runs took.
struct Runs {
    count: u64,
    wall: Duration,
    spent: Spent,
}

impl Runs {
    /// Divides the time by the number of operations. Each run has `operations` of them.
    fn each(self, operations: usize) -> Measured {
        let operations = self.count * operations as u64;
        let value = self.wall.as_nanos() as f64 / operations as f64;
        Measured::of(operations, value, self.spent)
    }
}

/// Repeats the run for at least a time, after a warm-up of a quarter of that time. The wall time
/// leaves out the pause before each run; the processor time includes that pause.
fn runs<R: Rt>(
    runtime: &R,
    at_least: Duration,
    pause: Duration,
    parties: usize,
    run: impl Fn(&R, Done),
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

/// One sample: the figures of a row on a runtime, and the machine's state.
#[derive(Debug, Serialize)]
pub(crate) struct Sample {
    rt: &'static str,
    row: &'static str,
    workers: usize,
    operations: u64,
    /// Wall time for one operation, or another figure in the row's unit.
    value: f64,
    /// The time that one operation in a hundred exceeds, where single operations are timed.
    p99: Option<f64>,
    /// Where the value is a p99: the p50, p90 and p99 of single operations, and the largest time.
    #[serde(skip_serializing_if = "Option::is_none")]
    latencies: Option<[f64; 4]>,
    /// The part of the possible pace that was reached, where the possible pace is known.
    efficiency: Option<f64>,
    /// The most threads that the process had, where the row counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<usize>,
    /// Processor time for one operation: user and system, all threads.
    cpu_ns: f64,
    /// Round trip of a cache line between two processors before the sample. `None` if it cannot be
    /// measured.
    round_trip_before_ns: Option<f64>,
    /// The round trip after the sample.
    round_trip_after_ns: Option<f64>,
    /// The part of the machine's processor time that other processes used. `None` if the machine
    /// does not report it.
    others: Option<f64>,
}

/// Measures a row for at least a time. `None` if there is no such row, or if this runtime or
/// machine cannot run it.
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
    let runtime = if row.has_sockets() {
        R::start_with_net(workers)?
    } else if row.asks.contains(&Ask::Timers) {
        R::start_with_timers(workers)?
    } else {
        R::start(workers)?
    };
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
        latencies: measured.latencies,
        efficiency: measured.efficiency,
        threads: measured.threads,
        cpu_ns: measured.spent.cpu.as_nanos() as f64 / measured.operations as f64,
        round_trip_before_ns,
        round_trip_after_ns: noise::round_trip(),
        others: measured.spent.others,
    }))
}

/// Starts a server of HTTP, for a client outside of this process. `None` if the runtime has no such
/// server.
pub(crate) fn serve_for_ever<R: Rt>(workers: usize, http: Http) -> io::Result<Option<SocketAddr>> {
    let ask = match http {
        Http::One => Ask::Http,
        Http::Pipelined | Http::Two => Ask::Hyper,
        Http::Foreign => Ask::Foreign,
    };
    if R::LACKS.contains(&ask) {
        return Ok(None);
    }
    let runtime = R::start_with_net(workers)?;
    let to = http::serve(&runtime, http)?;
    mem::forget(runtime);
    Ok(Some(to))
}
