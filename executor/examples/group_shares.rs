//! Three groups that always have work divide the CPU by their shares: the first table of Seastar's
//! demonstration of its CPU scheduler.
//!
//! `cargo run --release -p selvedge --features groups --example group_shares -- [--seconds 10]
//! [--workers 1] [--sharded] [--svg FILE]` prints a line for each group, and then the runtime's
//! counters. The groups' runtimes are in the proportion of their shares: 100, 20 and 50.
#[path = "groups/demo.rs"]
mod demo;

use demo::{Load, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let load = |shares, concurrency, micros| Load {
        shares,
        concurrency,
        micros,
        duty: 100,
    };
    let loads = [load(100, 5, 1000), load(20, 3, 100), load(50, 2, 400)];
    demo::run("Three groups at full duty", &Options::parse()?, &loads)?;
    Ok(())
}
