//! Three nodes, three processes of the system: a bank that loses a node and no money.
//!
//! `cargo run --release -p process-cluster --example cluster_bank -- --help`
mod account;
mod bank;
#[path = "../../../selvedge/examples/cli/mod.rs"]
mod cli;
mod journal;
mod node;
#[path = "../engine/tcp.rs"]
mod tcp;

use std::{path::Path, process::ExitCode};

fn main() -> ExitCode {
    cli::run(bank::HELP, |arguments| {
        // Any other engine fits in here.
        bank::run(&arguments, |name: &str, folder: &Path| {
            tcp::Tcp::new(name, folder)
        })
    })
}
