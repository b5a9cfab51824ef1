//! One sample of a row, and a server for a client outside of this process.
use super::{
    http,
    outside::{Settings, capacity, figures::Outside},
    rows,
};
use crate::{
    noise,
    rt::{Ask, Http, Rt},
};
use serde::Serialize;
use std::{io, mem, net::SocketAddr, time::Duration};

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
    #[serde(flatten)]
    outside: Option<Outside>,
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
    settings: Settings,
    at_least: Duration,
) -> io::Result<Option<Sample>> {
    let find = |settings| {
        let mut rows = rows::<R>(settings).into_iter();
        rows.find(|known| known.name == row && known.suits(R::LACKS))
    };
    let Some(mut row) = find(settings) else {
        return Ok(None);
    };
    let workers = row.workers.unwrap_or(workers);
    if let (Some(of), None) = (&row.capacity, settings.capacity) {
        let capacity = Some(capacity(of, workers, settings.second_set, at_least)?);
        let known = find(Settings {
            capacity,
            ..settings
        });
        row = known.expect("it is the same row");
    }
    let round_trip_before_ns = noise::round_trip();
    // The threads of the runtime inherit the processor.
    let pin = row
        .placement
        .processors()
        .map(|[own, _]| noise::Pin::new(own));
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
    drop(pin);
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
        outside: measured.outside,
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
