//! Runs the examples.
#![cfg(unix)]
use std::{
    env,
    io::Read,
    process::{Command, Output, Stdio},
};

/// Examples that check themselves, and take no arguments.
const DEMOS: &[&str] = &[
    "assemble",
    "assemble_park",
    "assemble_priority",
    "assemble_run_queue",
    "assemble_stealing",
    "process_handlers",
    "scheduler_tour",
];

/// The other examples that this build has.
fn others() -> Vec<&'static str> {
    let needed = [
        ("chat", cfg!(feature = "net")),
        ("compaction", cfg!(feature = "groups")),
        ("echo", cfg!(feature = "net")),
        ("group_cost", cfg!(feature = "groups")),
        ("group_duty", cfg!(all(feature = "groups", feature = "net"))),
        (
            "group_shares",
            cfg!(all(feature = "groups", feature = "net")),
        ),
        ("manifest", cfg!(feature = "fs")),
        (
            "recorder_cost",
            cfg!(all(feature = "net", feature = "recorder")),
        ),
        ("tail_latency", true),
        ("trace", cfg!(feature = "recorder")),
    ];
    let is_there = needed.into_iter().filter(|(_, is_there)| *is_there);
    is_there.map(|(name, _)| name).collect()
}

/// Returns the command for an example. Cargo builds the examples with the tests, and puts them into
/// a folder beside that of the tests.
fn command(example: &str) -> Command {
    let test = env::current_exe().unwrap();
    let profile = test.parent().unwrap().parent().unwrap();
    let path = profile.join("examples").join(example);
    assert!(
        path.exists(),
        "{} is not built: run all tests of the package, or `cargo build --examples`",
        path.display()
    );
    let mut command = Command::new(path);
    command.stdin(Stdio::null());
    command
}

fn run(example: &str, arguments: &[&str]) -> Output {
    command(example).args(arguments).output().unwrap()
}

/// Runs an example, takes one byte of its output, and closes the pipe. Returns the example's exit
/// code and what it wrote to standard error, [without reports of stalls](without_stalls).
fn run_into_closed_pipe(example: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = command(example);
    command.args(arguments);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = child.stdout.take().unwrap();
    output.read_exact(&mut [0]).unwrap();
    drop(output);
    let ended = child.wait_with_output().unwrap();
    let said = without_stalls(&String::from_utf8_lossy(&ended.stderr));
    (ended.status.code(), said)
}

/// Returns what an example wrote to standard error, without the reports of stalls. On a busy
/// machine a worker may stand still in a poll for so long that the monitor writes such a report.
fn without_stalls(said: &str) -> String {
    let is_of_stall = |line: &&str| line.starts_with("selvedge: stall: ") || line.starts_with("  ");
    said.lines().filter(|line| !is_of_stall(line)).collect()
}

/// Fails if an example that checks itself fails, or shows nothing.
#[test]
fn each_example_that_checks_itself_passes() {
    for example in DEMOS {
        let output = run(example, &[]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{example}: {said}");
        assert!(!output.stdout.is_empty(), "{example} shows nothing");
    }
}

/// Fails if an example has no help, or if the help does not name the example.
#[test]
fn each_example_has_help() {
    for example in others().iter().chain(DEMOS) {
        for flag in ["--help", "-h"] {
            let output = run(example, &[flag]);
            let text = String::from_utf8(output.stdout).unwrap();
            assert_eq!(output.status.code(), Some(0), "{example}");
            assert!(
                text.to_lowercase().contains(&format!("usage: {example}")),
                "{text}"
            );
            assert!(output.stderr.is_empty());
        }
    }
}

/// Fails if an example does not refuse a wrong option with exit code 2.
#[test]
fn each_example_refuses_an_unknown_option() {
    for example in others().iter().chain(DEMOS) {
        let output = run(example, &["--bogus"]);
        assert_eq!(output.status.code(), Some(2), "{example}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.contains("--bogus") && output.stdout.is_empty(),
            "{example}: {said}"
        );
    }
}

/// Fails if an example panics when the reader of its output has gone.
#[test]
fn each_example_ends_quietly_when_its_reader_goes() {
    for example in DEMOS {
        let (code, said) = run_into_closed_pipe(example, &[]);
        assert_eq!((code, &*said), (Some(0), ""), "{example}");
    }
    for example in others() {
        let (code, said) = run_into_closed_pipe(example, &["--help"]);
        assert_eq!((code, &*said), (Some(0), ""), "{example}");
    }
}

/// Fails if a demonstration of groups does not run, finds a mistake, draws its progress bar into a
/// pipe, or accepts a wrong value.
#[cfg(all(feature = "groups", feature = "net"))]
#[test]
fn demonstrations_of_groups_run_for_a_moment() {
    // In the longer run tasks sleep, and the example checks that they stay on their workers.
    let sharded = ["--seconds", "1.2", "--workers", "2", "--sharded"];
    for example in ["group_shares", "group_duty"] {
        for arguments in [&["--seconds", "0.1"][..], &sharded] {
            let output = run(example, arguments);
            let said = without_stalls(&String::from_utf8_lossy(&output.stderr));
            assert!(
                output.status.success() && said.is_empty(),
                "{example} {arguments:?}: {said}"
            );
        }
        for wrong in [
            &["--seconds", "soon"][..],
            &["--workers", "0"],
            &["--seconds"],
        ] {
            assert_eq!(
                run(example, wrong).status.code(),
                Some(2),
                "{example} {wrong:?}"
            );
        }
    }
}

/// Fails if the example succeeds although it cannot write its file, or if its error does not name
/// the file.
#[cfg(feature = "recorder")]
#[test]
fn trace_that_cannot_be_saved_exits_with_1() {
    let output = run("trace", &["/dev/null/no/trace.html"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("/dev/null/no/trace.html"), "{said}");
}
