//! Records a scheduler's events, and saves them as a page of HTML and as a file for Perfetto.
//!
//! The program runs a ring: each task passes a message on to the next one. One task in it is slow
//! now and then. The page shows where that happened, who waited for it, and who woke whom.
//!
//! ```sh
//! cargo run --release -p selvedge --features trace --example trace -- /tmp/trace.html
//! ```
use selvedge::{Builder, task};
use std::{process::ExitCode, thread, time::Duration};

const TASKS: usize = 100;
const ROUNDS: usize = 20;

const HELP: &str = "\
Records the events of a ring of 100 tasks on two workers.

Usage: trace [FILE]

FILE  where the trace goes: a page if the name ends in .html, or else JSON, which
      https://ui.perfetto.dev opens [trace.html]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let file = match &arguments[..] {
        [] => "trace.html",
        [help] if help == "-h" || help == "--help" => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        [file] if !file.starts_with('-') => file,
        _ => {
            eprintln!("error: one file at most\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match record(file) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {file}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn record(file: &str) -> std::io::Result<()> {
    let runtime = Builder::new().workers(2).build()?;
    let tracer = runtime.handle().trace();
    tracer.start();
    runtime
        .block_on(runtime.spawn(ring()))
        .expect("no task panics");
    tracer.stop();
    let capture = tracer.capture();
    capture.save(file)?;
    for lane in capture.lanes() {
        println!("{}: {} events", lane.name, lane.events.len());
    }
    println!("{file}: {:.1?} of the runtime", capture.duration());
    Ok(())
}

/// Sends four messages round a ring of tasks.
async fn ring() {
    let (first, mut receiver) = async_channel::bounded::<usize>(8);
    let mut tasks = Vec::new();
    for n in 1..TASKS {
        let (sender, next) = async_channel::bounded(8);
        let from = std::mem::replace(&mut receiver, next);
        let task = task::Builder::new().name(format!("link {n}"));
        tasks.push(task.spawn(pass_on(n, from, sender)));
    }
    for message in 0..4 {
        first.send(message).await.expect("the ring is open");
    }
    for round in 0..4 * ROUNDS {
        let message = receiver.recv().await.expect("the ring is open");
        if round < 4 * (ROUNDS - 1) {
            first.send(message).await.expect("the ring is open");
        }
    }
    drop(first);
    for task in tasks {
        task.await.expect("no task panics");
    }
}

/// Passes messages on until the ring is closed.
async fn pass_on(n: usize, from: async_channel::Receiver<usize>, to: async_channel::Sender<usize>) {
    while let Ok(message) = from.recv().await {
        if n == 42 && message == 0 {
            thread::sleep(Duration::from_micros(300)); // This blocks its worker, which the page shows.
        }
        if to.send(message).await.is_err() {
            return;
        }
    }
}
