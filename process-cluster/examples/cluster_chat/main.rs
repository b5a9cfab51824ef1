//! A chat between processes of the system, each of which is a node.
//!
//! `cargo run --release -p process-cluster --example cluster_chat -- --help`
mod chat;
#[path = "../../../selvedge/examples/cli/mod.rs"]
mod cli;
#[path = "../engine/tcp.rs"]
mod tcp;

use std::{path::Path, process::ExitCode};

fn main() -> ExitCode {
    cli::run(chat::HELP, |arguments| {
        // Any other engine fits in here.
        chat::run(&arguments, |name: &str, folder: &Path| {
            tcp::Tcp::new(name, folder)
        })
    })
}
