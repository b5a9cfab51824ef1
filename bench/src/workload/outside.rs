//! Workloads whose client is a separate process. They measure the cost of the server alone: of the
//! client's work, only the kernel's part may run in the server.
//!
//! A row has two placements. *Free*: the runtime has all its workers, and the client runs where the
//! kernel puts it. *Pinned*: the runtime's process has the first processor, with one worker, and
//! the client has the second.
use super::{Measured, net::threads};
use crate::{
    client::{
        Client,
        spec::{Dialog, Figures, Spec},
    },
    noise::{Window, resident, usage::Usage},
    rt::Rt,
    syscalls,
};
use figures::Outside;
use loads::{Load, Pace};
use servers::Service;
use std::{io, process, time::Duration};

pub(super) mod figures;
mod loads;
mod servers;

pub(crate) use loads::Settings;
pub(super) use loads::{Placement, ROWS};

/// With fewer connections, other changes of the server's memory would hide that of the connections.
const MANY: usize = 50;

impl Load {
    /// Measures the row.
    pub(super) fn measure<R: Rt>(
        &self,
        runtime: &R,
        placement: Placement,
        settings: Settings,
        at_least: Duration,
    ) -> Option<Measured> {
        let rate = match self.pace {
            Pace::Answers => None,
            Pace::Clock(rate) => Some(rate),
            Pace::Capacity(part) => Some(part * settings.capacity?),
        };
        self.run(runtime, rate, placement, at_least)
            .map_err(|error| eprintln!("a client: {error}"))
            .ok()
    }

    fn run<R: Rt>(
        &self,
        runtime: &R,
        rate: Option<f64>,
        placement: Placement,
        at_least: Duration,
    ) -> io::Result<Measured> {
        let mut client = Client::start(&Spec {
            to: self.service.serve(runtime)?,
            dialog: match self.service {
                Service::Hello => Dialog::Hello,
                Service::Mixed => Dialog::Mixed(self.bytes),
                Service::FanOut => Dialog::FanOut(self.bytes),
                Service::Memory | Service::File => Dialog::Large,
                Service::Connect => Dialog::Connect,
                _ => Dialog::Echo(self.bytes),
            },
            in_flight: self.in_flight,
            rate,
            busy: self.busy,
            processor: placement.processors().map(|[_, client]| client),
        })?;
        // At the first connection the runtime allocates what it needs only once. A message to all
        // connections needs one that gets it: the client could not wait for its end otherwise, and
        // the server may send it to the connections that come next.
        client.connect(1 + usize::from(self.service == Service::FanOut))?;
        client.run(Duration::ZERO)?;
        let before = resident();
        client.connect(self.connections)?;
        client.run(at_least / 4)?;
        let grown = resident().zip(before);
        let grown = grown.map(|(after, before)| after.saturating_sub(before).max(1));

        let (window, usage) = (Window::open(), Usage::of_other_threads());
        let figures = client.run(at_least)?;
        let usage = Usage::of_other_threads() - usage;
        let mut spent = window.close_beside(Duration::from_nanos(figures.cpu));
        spent.cpu = usage.cpu;

        let syscalls = syscalls_of(&mut client, at_least / 4)?;
        let each = |count: u64| count as f64 / figures.done as f64;
        let Figures {
            done, wall, p50, ..
        } = figures;
        let value = if rate.is_some() { p50 } else { each(wall) };
        // One UDP socket serves all peers, so no memory is used for each.
        let shows_memory = self.connections >= MANY && self.service != Service::Udp;
        let connections = shows_memory.then(|| self.connections as u64 - 1);
        Ok(Measured {
            p99: Some(figures.p99),
            outside: Some(Outside {
                p50,
                p999: figures.p999,
                max: figures.max,
                rate: rate.unwrap_or(done as f64 / Duration::from_nanos(wall).as_secs_f64()),
                queued: figures.queued,
                late_p99: figures.late_p99,
                late_max: figures.late_max,
                voluntary: each(usage.voluntary),
                involuntary: each(usage.involuntary),
                syscalls: syscalls.as_ref().ok().copied(),
                syscalls_unknown: syscalls.err(),
                bytes_a_connection: grown
                    .zip(connections)
                    .map(|(bytes, count)| bytes as f64 / count as f64),
            }),
            ..Measured::of(done, value, spent)
        })
    }
}

/// Counts the server's system calls for each request while the client runs for a time. The inner
/// error is the reason why they cannot be counted.
fn syscalls_of(client: &mut Client, span: Duration) -> io::Result<Result<f64, String>> {
    // This thread, the main one, is not the server's.
    let this = process::id() as i32;
    let counter = match syscalls::Counter::start(threads().filter(|thread| *thread != this)) {
        Ok(counter) => counter,
        Err(why) => return Ok(Err(why)),
    };
    let figures = client.run(span)?;
    Ok(Ok(counter.total()? as f64 / figures.done as f64))
}

/// Measures a row with tokio in a separate process. Returns the number of requests that tokio
/// answers in a second.
pub(super) fn capacity(
    row: &str,
    workers: usize,
    second_set: bool,
    at_least: Duration,
) -> io::Result<f64> {
    let mut sample = process::Command::new("/proc/self/exe");
    sample.args(["sample", "--json", "--rt", "tokio", "--row", row]);
    sample.args(["--workers", &workers.to_string()]);
    sample.args(["--millis", &at_least.as_millis().to_string()]);
    sample.args(second_set.then_some("--second-set"));
    let output = sample.output()?;
    let sample: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let nanos = sample["value"].as_f64();
    nanos
        .map(|nanos| 1e9 / nanos)
        .ok_or_else(|| io::Error::other("the sample has no value"))
}
