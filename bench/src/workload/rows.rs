//! The rows: each workload with its name and its aim.
use super::{
    Measured, coop, fs, http, interval, latency, load, memory, net,
    outside::{self, Placement, Settings},
    repeat, spawn, time, wake,
};
use crate::{
    names,
    rt::{Ask, Rt},
};
use std::time::Duration;

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
    pub(super) workers: Option<usize>,
    pub(super) placement: Placement,
    /// True if the row's client is a process of its own.
    pub(crate) is_outside: bool,
    /// The row in which tokio's capacity for this row is measured.
    pub(crate) capacity: Option<String>,
    pub(super) measure: Measure<R>,
}

/// Measures on a runtime with a number of workers, for at least a time. `None` if the machine lacks
/// a figure that the row needs.
pub(super) type Measure<R> = Box<dyn Fn(&R, usize, Duration) -> Option<Measured>>;

impl<R> Row<R> {
    pub(super) fn has_sockets(&self) -> bool {
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
        Self::with(kind, named(name), asks, Box::new(measure))
    }

    fn with(
        kind: &'static str,
        (name, what): (&'static str, &'static str),
        asks: &'static [Ask],
        measure: Measure<R>,
    ) -> Self {
        Self {
            name,
            what,
            kind,
            unit: "ns",
            asks,
            aim: 0.9,
            workers: None,
            placement: Placement::Free,
            is_outside: false,
            capacity: None,
            measure,
        }
    }
}

fn named(name: &str) -> (&'static str, &'static str) {
    let mut rows = names::rows();
    *rows
        .find(|(known, _)| *known == name)
        .expect("`names.rs` has all rows")
}

/// Returns the rows whose client is a process of its own.
fn outside<R: Rt>(settings: Settings) -> impl Iterator<Item = Row<R>> {
    let placed = outside::ROWS.iter().flat_map(|entry| {
        let places = entry.places.all().into_iter();
        places.map(move |(placement, end)| (entry, placement, format!("{}{end}", entry.name)))
    });
    placed.map(move |(entry, placement, name)| {
        let load = match settings.second_set {
            true => &entry.second,
            false => &entry.load,
        };
        let measure =
            move |runtime: &R, _, at_least| load.measure(runtime, placement, settings, at_least);
        let free = settings.second_set.then_some(4);
        let workers = if placement == Placement::Free {
            free
        } else {
            Some(1)
        };
        Row {
            aim: 1.0,
            workers,
            placement,
            is_outside: true,
            capacity: load.capacity(placement),
            ..Row::with(
                "outside",
                named(&name),
                load.service.asks(),
                Box::new(measure),
            )
        }
    })
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
    ("interval_100", 1.0),
    ("interval_1k", 1.0),
    ("interval_10k", 1.0),
    ("sleep_storm", 1.0),
    ("echo_1_inside", 0.83),
    ("echo_50_inside", 0.87),
    ("echo_busy", 0.20),
    ("echo_saturated", 1.0),
    ("connect_inside", 1.0),
    ("idle_conns", 1.0),
    ("http_50", 0.83),
    ("http_foreign", 1.0),
    ("http_saturated", 1.0),
    ("http_mixed", 0.6),
    ("h2_streams", 1.0),
    ("fs_tree", 1.0),
];

/// All rows, under the names that they have in the field.
pub(crate) fn rows<R: Rt>(settings: Settings) -> Vec<Row<R>> {
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
            "late",
            "interval_100",
            &[Background, Timers],
            interval::intervals::<R, 100>,
        ),
        Row::new(
            "late",
            "interval_1k",
            &[Background, Timers],
            interval::intervals::<R, 1_000>,
        ),
        Row::new(
            "late",
            "interval_10k",
            &[Background, Timers],
            interval::intervals::<R, { super::size(10_000) }>,
        ),
        Row::new(
            "late",
            "sleep_storm",
            &[Background, Timers],
            interval::storm,
        ),
        Row::new(
            "memory",
            "sleepers_1m",
            &[Background, Timers],
            time::sleepers,
        ),
        Row::new("net", "echo_1_inside", &[Net], net::echo::<R, 1>),
        Row::new("net", "echo_50_inside", &[Net], net::echo::<R, 50>),
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
        Row::new("net", "connect_inside", &[Net], net::connect),
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
            "coop" | "echo_1_inside" | "echo_50_inside" | "connect_inside" | "http_saturated"
            | "http_mixed" => row.workers = Some(1),
            "idle_task" | "sleepers_1m" => row.unit = "bytes",
            "idle_conns" => row.unit = "wakes",
            _ => {}
        }
        if let Some((_, aim)) = AIMS.iter().find(|(name, _)| *name == row.name) {
            row.aim = *aim;
        }
    }
    rows.extend(outside(settings));
    let is_row = |(aim, _): &(&str, f64)| rows.iter().any(|row| row.name == *aim);
    debug_assert!(AIMS.iter().all(is_row), "an aim names no row");
    rows
}
