//! Two groups: one always has work, the other only half of the time. This is the second table of
//! Seastar's demonstration of its CPU scheduler.
//!
//! `cargo run --release -p selvedge --features groups --example group_duty -- [--seconds 10]
//! [--workers 1] [--sharded] [--svg FILE]` prints a line for each group. The first group has half
//! of the second one's shares, and in the end twice its runtime. It has a third of the CPU while
//! the second group has work, and all of it while the second group rests. To rest earns no credit.
#[path = "groups/demo.rs"]
mod demo;

use demo::{Load, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let load = |shares, duty, concurrency| Load {
        shares,
        concurrency,
        micros: 1000,
        duty,
    };
    let loads = [load(50, 100, 5), load(100, 50, 4)];
    let runtimes = demo::run("Full and half duty", &Options::parse()?, &loads)?;
    println!("ratio {:.3}", runtimes[0] / runtimes[1]);
    Ok(())
}
