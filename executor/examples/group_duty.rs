//! A group that has work half of the time beside one that always has: the second table of Seastar's
//! demonstration of its CPU scheduler.
//!
//! `cargo run --release -p selvedge --features groups --example group_duty -- [--seconds 10]
//! [--workers 1] [--sharded] [--svg FILE]` prints a line for each group. The first has half the
//! shares, and twice the runtime in the end: it has a third of the CPU while the second has work,
//! and all of it while the second rests, which earns no credit.
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
