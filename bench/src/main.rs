//! Takes one sample of one workload on one runtime. `cargo xtask bench` runs this program many
//! times, and compares the samples.
use clap::{Parser, Subcommand};
use runtimes::{ALL, Entry, Ours};
use serde::Serialize;
use std::{
    io::{self, Write},
    process::{self, ExitCode},
    time::Duration,
};
use workload::Settings;

#[cfg(selvedge_jemalloc)]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

mod client;
mod hello;
mod message;
mod names;
mod noise;
mod percentiles;
mod poller;
mod random;
mod rt;
mod runtimes;
mod syscalls;
mod work;
mod workload;

/// Measures one workload on one runtime.
#[derive(Parser)]
#[command(name = "bench")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Lists the runtimes and the rows.
    List {
        /// Prints one line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// Has the program `wrk` make the requests of `http_50`, as a check of the row's own client.
    Wrk {
        /// Name of the runtime.
        #[arg(long)]
        rt: String,
        /// Serves over sockets of async-io, as the row `http_foreign` does.
        #[arg(long)]
        foreign: bool,
        /// Number of worker threads.
        #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
        workers: u16,
        /// The time of the measurement, in seconds.
        #[arg(long, default_value_t = 5)]
        seconds: u16,
    },
    /// Takes one sample in this process.
    Sample {
        /// Name of the runtime.
        #[arg(long)]
        rt: String,
        /// Name of the row.
        #[arg(long)]
        row: String,
        /// Number of worker threads.
        #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
        workers: u16,
        /// The least time of the measurement, in milliseconds.
        #[arg(long, default_value_t = 200)]
        millis: u64,
        /// Seconds after which a signal kills the process; 0 means never.
        #[arg(long, default_value_t = 60)]
        limit: u32,
        /// Prints one line of JSON.
        #[arg(long)]
        json: bool,
        /// Takes the second set of parameters, if the row's client is a process of its own.
        #[arg(long)]
        second_set: bool,
        /// The requests a second that tokio answers in `mixed_capacity`, for the rows that need it.
        /// Without it the sample measures them first.
        #[arg(long)]
        capacity: Option<f64>,
    },
    /// Makes the load of a sample, which starts this process.
    #[command(hide = true)]
    Client {
        /// The load, in JSON.
        spec: String,
        /// The id of the sample's process.
        #[arg(long)]
        parent: u32,
    },
}

#[derive(Serialize)]
struct Listing {
    runtimes: Vec<Runtime>,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Runtime {
    name: &'static str,
    package: &'static str,
    /// True if the runtime can be the best peer of a row.
    parallel: bool,
}

#[derive(Serialize)]
struct Row {
    name: &'static str,
    what: &'static str,
    kind: &'static str,
    unit: &'static str,
    aim: f64,
    /// Runtimes that cannot run the row.
    without: Vec<&'static str>,
    /// True if the row's client is a process of its own.
    outside: bool,
    /// The row in which tokio's capacity for this row is measured.
    capacity: Option<String>,
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Client { spec, parent } => return make_load(&spec, parent),
        Command::List { json } => list(json),
        Command::Wrk {
            rt,
            foreign,
            workers,
            seconds,
        } => wrk(&rt, foreign, workers.into(), seconds),
        Command::Sample {
            rt,
            row,
            workers,
            millis,
            limit,
            json,
            second_set,
            capacity,
        } => {
            kill_after(limit);
            let settings = Settings {
                second_set,
                capacity,
            };
            sample(&rt, &row, workers.into(), settings, millis, json)
        }
    };
    match done {
        Ok(text) => match writeln!(io::stdout(), "{text}") {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                eprintln!("error: writing to standard output: {error}");
                ExitCode::from(2)
            }
            // It is no failure if the reader of the output has ended.
            _ => ExitCode::SUCCESS,
        },
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

fn make_load(spec: &str, parent: u32) -> ExitCode {
    match client::run(spec, parent) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the client of a sample: {error}");
            ExitCode::from(2)
        }
    }
}

fn list(json: bool) -> Result<String, String> {
    let runtimes = ALL.iter().map(|entry| Runtime {
        name: entry.name,
        package: entry.package,
        parallel: entry.parallel,
    });
    let rows = workload::rows::<Ours>(Settings::default())
        .into_iter()
        .map(|row| Row {
            name: row.name,
            what: row.what,
            kind: row.kind,
            unit: row.unit,
            aim: row.aim,
            without: ALL
                .iter()
                .filter(|entry| !row.suits(entry.lacks))
                .map(|entry| entry.name)
                .collect(),
            outside: row.is_outside,
            capacity: row.capacity,
        });
    let listing = Listing {
        runtimes: runtimes.collect(),
        rows: rows.collect(),
    };
    if json {
        return serde_json::to_string(&listing).map_err(|error| error.to_string());
    }
    let mut text = "runtimes:".to_owned();
    for runtime in listing.runtimes {
        text.push_str(&format!("\n  {}", runtime.name));
    }
    text.push_str("\nrows:");
    for row in listing.rows {
        text.push_str(&format!("\n  {:<24}{}", row.name, row.what));
    }
    Ok(text)
}

fn entry(rt: &str) -> Result<&'static Entry, String> {
    let mut all = ALL.iter();
    all.find(|entry| entry.name == rt)
        .ok_or_else(|| format!("no runtime {rt}; there are {}", names::RUNTIMES.join(", ")))
}

/// Starts a server, and `wrk` with the 50 connections of the row `http_50`. Returns what `wrk`
/// prints.
fn wrk(rt: &str, foreign: bool, workers: usize, seconds: u16) -> Result<String, String> {
    let entry = entry(rt)?;
    let http = if foreign {
        rt::Http::Foreign
    } else {
        rt::Http::One
    };
    let to = (entry.serve)(workers, http)
        .map_err(|error| format!("{rt} doesn't start: {error}"))?
        .ok_or_else(|| format!("{rt} has no such server"))?;
    let mut wrk = process::Command::new("wrk");
    wrk.args(["-t1", "-c50", "--latency", &format!("-d{seconds}s")]);
    let output = wrk.arg(format!("http://{to}/")).output();
    let output = output.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            "`wrk` is not installed (`apt-get install wrk`); the row `http_50` does not need it"
                .to_owned()
        }
        _ => format!("starting `wrk`: {error}"),
    })?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned())
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("`wrk`: {}: {}", output.status, said.trim_end()))
    }
}

fn sample(
    rt: &str,
    row: &str,
    workers: usize,
    settings: Settings,
    millis: u64,
    json: bool,
) -> Result<String, String> {
    let entry = entry(rt)?;
    let sample = (entry.sample)(row, workers, settings, Duration::from_millis(millis))
        .map_err(|error| format!("{rt} doesn't start: {error}"))?
        .ok_or_else(|| format!("no row {row} on {rt}; `bench list` names them"))?;
    if json {
        serde_json::to_string(&sample).map_err(|error| error.to_string())
    } else {
        Ok(format!("{sample:#?}"))
    }
}

/// Has a signal end the process after a time, as the workload may never end. The signal needs no
/// thread.
fn kill_after(seconds: u32) {
    // SAFETY: `alarm` has no preconditions. The signal's default action ends the process.
    unsafe { libc::alarm(seconds) };
}
