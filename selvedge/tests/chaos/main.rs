//! A random driver of whole programs over the runtime and `process-scheduler`.
//!
//! Each round draws a [plan](plan::Plan) from its seed: runtimes with random settings, and a tree
//! of actions over tasks, sockets, timers, groups, processes, blocking closures, files, children,
//! cancellations, panics and shutdowns. The round runs the plan, and then [checks] that
//!
//! - each token, a value in a future, closure, message or output, was dropped exactly once,
//! - no descriptor, thread or child is left,
//! - there was no panic but those that are planned, or that the documents promise,
//! - what arrived through a socket, a pipe, a file or a child are the bytes that were sent.
//!
//! A watchdog ends a round that hangs. `cargo xtask chaos` runs many rounds. The seed repeats the
//! plan, but not the order in which the threads run.
#![cfg(target_os = "linux")]
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]

mod checks;
mod plan;
mod program;

use checks::{Bomb, Held, Token, Watchdog};
use plan::Plan;
use std::{
    env, fs,
    process::{Command, Output},
    time::{Duration, Instant},
};

/// Seconds after which what a round has left behind is a fault. A round hangs if it takes three
/// times as long. No busy machine needs so long.
const SETTLES: u64 = 200;

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is a number, not {text}")),
    )
}

/// Runs the rounds, in a process that runs nothing else.
///
/// `SELVEDGE_ROUNDS` and `SELVEDGE_SEED` choose them. `SELVEDGE_FAULT` plants a fault into the last
/// one. `SELVEDGE_SECONDS` is the time after which something is left or hangs.
#[test]
#[ignore = "the other tests and `cargo xtask chaos` run it in a process of its own"]
fn rounds() {
    let rounds = number("SELVEDGE_ROUNDS").unwrap_or(100);
    let first = number("SELVEDGE_SEED").unwrap_or(1);
    let settles = Duration::from_secs(number("SELVEDGE_SECONDS").unwrap_or(SETTLES));
    checks::watch_panics();
    let watchdog = Watchdog::start(settles * 3);
    let before = Held::now();
    let (mut tokens, mut slowest) = (0, (Duration::ZERO, first));
    for round in 0..rounds {
        let seed = first.wrapping_add(round);
        println!("seed {seed}");
        let folder = tempfile::tempdir().unwrap();
        let (begun, plan) = (Instant::now(), Plan::new(seed));
        watchdog.begin(format!("seed {seed}\n{plan:#?}"));
        checks::begin_tokens();
        match env::var("SELVEDGE_FAULT") {
            Ok(fault) if round + 1 == rounds => plant(&fault),
            _ => program::run(&plan, folder.path().to_owned()),
        }
        checks::settle(&before, settles);
        watchdog.end();
        let faults = checks::take_faults();
        if !faults.is_empty() {
            println!("{plan:#?}");
            for fault in &faults {
                println!("fault: {fault}");
            }
            checks::stop_for_a_debugger();
            panic!("the round of seed {seed} failed");
        }
        tokens += u64::from(checks::tokens());
        slowest = slowest.max((begun.elapsed(), seed));
    }
    println!(
        "{rounds} rounds from seed {first}, {tokens} tokens, the slowest round took {:?}, seed {}",
        slowest.0, slowest.1
    );
}

/// Does what a faulty runtime would do.
fn plant(fault: &str) {
    match fault {
        "leak" => std::mem::forget(Token::new()),
        "double drop" => {
            let token = Token::new();
            // SAFETY: the token has no memory of its own, so a second drop only counts.
            drop(unsafe { std::ptr::read(&token) });
        }
        "late drop" => {
            let token = Token::new();
            checks::begin_tokens();
            drop(token);
        }
        "descriptor" => std::mem::forget(fs::File::open("/dev/null").unwrap()),
        "closed descriptor" => {
            // SAFETY: nothing else uses the standard input of this process.
            unsafe { libc::close(0) };
        }
        "thread" => drop(std::thread::spawn(|| {
            loop {
                std::thread::park();
            }
        })),
        "zombie" => drop(Command::new("true").spawn().unwrap()),
        "panic" => drop(std::thread::spawn(|| panic!("unplanned")).join()),
        "planned panic" => drop(std::thread::spawn(|| drop(Bomb(Token::new()))).join()),
        "hang" => loop {
            std::thread::park();
        },
        _ => {}
    }
}

/// Runs rounds in a process of their own.
fn run(variables: &[(&str, &str)]) -> (Output, String) {
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", "rounds", "--ignored", "--nocapture"])
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    (output, said)
}

/// Fails if any of the checks fails in one of these rounds.
#[test]
fn short_run_of_chaos_leaves_nothing_behind() {
    let (output, said) = run(&[("SELVEDGE_ROUNDS", "200")]);
    assert!(output.status.success(), "{said}");
}

/// Fails if a check cannot fail.
#[test]
fn planted_faults_are_found_and_named() {
    for (fault, found) in [
        ("leak", "token 0 was never dropped"),
        ("double drop", "token 0 was dropped twice"),
        ("late drop", "token 0 of an earlier round was dropped"),
        ("descriptor", "is left: /dev/null"),
        ("closed descriptor", "descriptor 0 is gone"),
        ("thread", "is left: "),
        ("zombie", "a child is left, or was not reaped"),
        ("panic", "unplanned"),
        ("hang", "the round hangs"),
    ] {
        let (output, said) = run(&[
            ("SELVEDGE_ROUNDS", "1"),
            ("SELVEDGE_SECONDS", "1"),
            ("SELVEDGE_FAULT", fault),
        ]);
        assert!(!output.status.success(), "{fault}: {said}");
        assert!(said.contains(found), "{fault}: {said}");
        assert!(said.contains("seed 1"), "{fault}: {said}");
        assert!(said.contains("Plan {"), "{fault}: {said}");
    }
}

#[test]
fn planned_panic_is_no_fault() {
    let variables = [
        ("SELVEDGE_ROUNDS", "1"),
        ("SELVEDGE_FAULT", "planned panic"),
    ];
    let (output, said) = run(&variables);
    assert!(output.status.success(), "{said}");
}

#[test]
fn seed_repeats_its_plan() {
    let plans = || (0..100).map(Plan::new).collect::<Vec<_>>();
    assert!(plans() == plans());
    let differ = plans().windows(2).all(|pair| pair[0] != pair[1]);
    assert!(differ);
}
