//! One sample of one workload on one runtime, as a line of JSON. `cargo xtask bench` runs many and compares.
use clap::{Parser, Subcommand};
use serde::Serialize;
use std::process::ExitCode;

mod noise;
mod rt;
mod workload;

/// Measures runtimes.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Names the runtimes and the rows.
    List,
    /// Measures once, in this process.
    Sample {
        /// The runtime.
        #[arg(long)]
        rt: String,
        /// The workload.
        #[arg(long)]
        row: String,
        /// Worker threads.
        #[arg(long, default_value_t = 2)]
        workers: usize,
        /// The least time to measure for.
        #[arg(long, default_value_t = 200)]
        millis: u64,
    },
}

#[derive(Serialize)]
struct Listing {
    runtimes: Vec<&'static str>,
    rows: Vec<&'static str>,
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::List => {
            let runtimes = rt::ALL.iter().map(|(name, _)| *name).collect();
            let listing = Listing {
                runtimes,
                rows: workload::ROWS.to_vec(),
            };
            println!("{}", serde_json::json!(listing));
        }
        Command::Sample {
            rt,
            row,
            workers,
            millis,
        } => {
            let Some((_, sample)) = rt::ALL.iter().find(|(name, _)| *name == rt) else {
                eprintln!("no runtime {rt}");
                return ExitCode::from(2);
            };
            let Some(sample) = sample(&row, workers, millis) else {
                eprintln!("no row {row}");
                return ExitCode::from(2);
            };
            println!("{}", serde_json::json!(sample));
        }
    }
    ExitCode::SUCCESS
}
