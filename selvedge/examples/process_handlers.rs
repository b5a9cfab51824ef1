//! Processes whose commands are async: a handler spawns a task of `selvedge` for each command, and
//! the task completes the command.
//!
//! The process scheduler knows nothing of `selvedge`: any thread or task may complete a command,
//! by the command's `Completer`.
mod cli;

use process_scheduler::{
    Completer, Event, EventsOf, OutputOf, Process, Scheduler, Spawn, Step, StepOf,
};
use selvedge::{Runtime, yield_now};
use std::sync::mpsc;

/// A process that issues a command for the length of each line, and adds up the lengths.
struct Adder {
    /// The number of commands that are not complete.
    open_commands: usize,
    total: usize,
    result: mpsc::Sender<usize>,
}

impl Process for Adder {
    type Message = Vec<String>;
    type Cmd = String;
    type Output = usize;
    type Error = ();

    fn step(&mut self, events: &mut EventsOf<Self>, out: &mut OutputOf<Self>) -> StepOf<Self> {
        for event in events {
            match event {
                Event::Message(lines) => {
                    for (tag, line) in (0..).zip(lines) {
                        self.open_commands += 1;
                        out.command(tag, line);
                    }
                }
                Event::YieldComplete { result, .. } => {
                    self.open_commands -= 1;
                    self.total += result.unwrap();
                    if self.open_commands == 0 {
                        self.result.send(self.total).unwrap();
                        return Step::Done;
                    }
                }
                Event::Cancel(_) => return Step::Done,
                _ => {}
            }
        }
        match self.open_commands {
            0 => Step::Idle,
            _ => Step::Blocked,
        }
    }
}

fn main() -> std::process::ExitCode {
    cli::demo(
        "Runs a process whose commands are tasks of the executor.\n\nUsage: process_handlers",
        demo,
    )
}

fn demo() {
    let runtime = Runtime::new().unwrap();
    let tasks = runtime.handle().clone();
    let handler = move |line: String, completer: Completer<usize, ()>| {
        let _detached = tasks.spawn(async move {
            // Stands for a request over the network.
            yield_now().await;
            // An error says that the process was killed meanwhile.
            let _ = completer.complete(Ok(line.len()));
        });
    };
    let scheduler = Scheduler::builder().workers(2).build();
    let (sender, result) = mpsc::channel();
    let adder = Adder {
        open_commands: 0,
        total: 0,
        result: sender,
    };
    let adder = scheduler.spawn_process(adder, Spawn::new().handler(handler));
    let lines = ["warp", "weft", "selvedge"].map(str::to_owned);
    adder.unwrap().try_send(lines.to_vec()).unwrap();
    let total = result.recv().unwrap();
    println!("{total} characters, counted by tasks and added up by a process");
    assert_eq!(total, 16);
    scheduler.shutdown();
}
