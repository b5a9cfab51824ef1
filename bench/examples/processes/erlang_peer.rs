//! Erlang, if `erlc` and `erl` are installed: the program `processes.erl`, on two schedulers.
use crate::Peer;
use std::{path::Path, process::Command, sync::OnceLock, time::Duration};
use tempfile::TempDir;

pub struct Erlang;

/// Returns the folder of the compiled program, which the first call compiles. Returns `None` if
/// that failed: then the first call prints that Erlang is not installed.
fn program() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<TempDir>> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().ok()?;
        let program = folder.path().join("processes.erl");
        std::fs::write(&program, include_str!("processes.erl")).ok()?;
        let mut compiler = Command::new("erlc");
        let compiled = compiler.current_dir(&folder).arg(&program).status();
        if compiled.is_ok_and(|status| status.success()) {
            return Some(folder);
        }
        eprintln!("Erlang is not installed (Debian: erlang-base), so its rows are empty.");
        None
    });
    folder.as_ref().map(TempDir::path)
}

/// Runs a row of the Erlang program, and returns the number that the program prints.
fn run(row: &str, numbers: &[usize]) -> Option<u64> {
    let mut erl = Command::new("erl");
    erl.current_dir(program()?);
    erl.args([
        "+S",
        "2:2",
        "+P",
        "2000000",
        "-noshell",
        "-run",
        "processes",
        "main",
        row,
    ]);
    erl.args(numbers.iter().map(usize::to_string));
    let output = erl.output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

fn time(row: &str, numbers: &[usize]) -> Option<Duration> {
    run(row, numbers).map(Duration::from_nanos)
}

impl Peer for Erlang {
    fn ring(processes: usize, tokens: usize, hops: usize) -> Option<Duration> {
        time("ring", &[processes, tokens, hops])
    }

    fn pingpong(pairs: usize, trips: usize) -> Option<Duration> {
        time("pingpong", &[pairs, trips])
    }

    fn spawn(processes: usize) -> Option<Duration> {
        time("spawn", &[processes])
    }

    fn fanin(senders: usize, each: usize) -> Option<Duration> {
        time("fanin", &[senders, each])
    }

    fn call(calls: usize) -> Option<Duration> {
        time("call", &[calls])
    }

    fn idle(processes: usize) -> Option<u64> {
        run("idle", &[processes])
    }
}
