//! Records a scheduler's events, and saves them as a page of HTML or as a file for Perfetto.
//!
//! The program runs rings of tasks: each task passes a message on to the next one. One task blocks
//! its worker at each message. The page shows where that happened, which tasks waited, and which
//! task woke which.
//!
//! ```sh
//! cargo run --release -p selvedge --features recorder --example trace -- /tmp/trace.html
//! ```
mod cli;

use async_channel::{Receiver, Sender};
use selvedge::{Builder, task};
use std::{hint::black_box, process::ExitCode, thread, time::Duration};

const RINGS: usize = 5;
const LINKS: usize = 20;
const ROUNDS: usize = 10;

const HELP: &str = "\
Records the events of 100 tasks, in five rings, on two workers.

Usage: trace [FILE]

FILE  where the trace goes: a page if the name ends in .html, or else JSON, which
      https://ui.perfetto.dev opens [trace.html]";

fn main() -> ExitCode {
    cli::run(HELP, |arguments| {
        cli::at_most(&arguments, 1)?;
        let file = arguments.first().map_or("trace.html", String::as_str);
        record(file).map_err(|error| format!("{file}: {error}").into())
    })
}

fn record(file: &str) -> std::io::Result<()> {
    let runtime = Builder::new().workers(2).build()?;
    let tracer = runtime.handle().trace();
    let run_rings = |rounds| {
        runtime.block_on(async {
            let named = |ring| task::Builder::new().name(format!("ring {ring}"));
            let rings: Vec<_> = (0..RINGS)
                .map(|ring| named(ring).spawn(run_ring(ring, rounds)))
                .collect();
            for ring in rings {
                ring.await.expect("no task panics");
            }
        })
    };
    run_rings(1); // Both threads are running by now.
    tracer.start();
    run_rings(ROUNDS);
    tracer.stop();
    let capture = tracer.capture();
    capture.save(file)?;
    for lane in capture.lanes() {
        println!("{}: {} events", lane.name, lane.events.len());
    }
    println!("{file}: {:.1?} of the runtime", capture.duration());
    Ok(())
}

/// Sends a message round a ring of tasks, `rounds` times.
async fn run_ring(ring: usize, rounds: usize) {
    let (first, mut receiver) = async_channel::bounded(1);
    let mut tasks = Vec::new();
    for link in 1..=LINKS {
        let (sender, next) = async_channel::bounded(1);
        let from = std::mem::replace(&mut receiver, next);
        let is_slow = (ring, link) == (2, 10);
        let task = task::Builder::new().name(format!("ring {ring} link {link}"));
        tasks.push(task.spawn(pass_on(from, sender, is_slow)));
    }
    for _ in 0..rounds {
        first.send(()).await.expect("the ring is open");
        receiver.recv().await.expect("the ring is open");
    }
    drop(first);
    for task in tasks {
        task.await.expect("no task panics");
    }
}

/// Passes messages on until the ring is closed. A slow task blocks its worker at each message, as
/// the page shows.
async fn pass_on(from: Receiver<()>, to: Sender<()>, is_slow: bool) {
    while from.recv().await.is_ok() {
        black_box((0..2_000).fold(0, |sum, n| black_box(sum ^ n))); // The task's work.
        if is_slow {
            thread::sleep(Duration::from_micros(300));
        }
        if to.send(()).await.is_err() {
            return;
        }
    }
}
