//! Runs the commands of `cargo xtask` as a shell runs them.
#![cfg(unix)]
use std::{
    fs::{self, File},
    io,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
};

const NOWHERE: &str = "/nonexistent/cargo";

fn xtask(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(arguments.split(' ')).stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a command that `xtask` must refuse with exit status 2, before it starts cargo. Returns the
/// message of `xtask`.
fn refused(arguments: &str) -> String {
    let output = xtask(arguments).env("CARGO", NOWHERE).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments}: {output:?}");
    text(&output.stderr)
}

fn program(folder: &Path, name: &str, text: &str) {
    let file = folder.join(name);
    fs::write(&file, format!("#!/bin/sh\n{text}")).unwrap();
    fs::set_permissions(file, PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn output_to_a_full_disk_fails_with_a_message() {
    for arguments in ["test --list", "bench --list", "--help", "test --help"] {
        let full = File::create("/dev/full").unwrap();
        let output = xtask(arguments).stdout(full).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(said.contains("writing to standard output: "), "{said}");
    }
}

#[test]
fn output_to_a_closed_pipe_succeeds_quietly() {
    for arguments in ["test --list", "bench --list", "--help"] {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let output = xtask(arguments).stdout(writer).output().unwrap();
        assert!(output.status.success(), "{arguments}: {output:?}");
        assert_eq!(text(&output.stderr), "", "{arguments}");
    }
}

#[test]
fn number_out_of_range_is_refused_with_a_message() {
    for (arguments, what) in [
        ("flaky --runs 0", "0 is not in 1.."),
        ("flaky --limit 0", "--limit is at least 1"),
        ("tokio-tests --limit 0", "--limit is at least 1"),
        ("bench --disturbance=-1", "--disturbance is a number from 0"),
        (
            "bench --disturbance nan",
            "--disturbance is a number from 0",
        ),
    ] {
        let said = refused(arguments);
        assert!(said.contains(what), "{arguments}: {said}");
    }
}

#[test]
fn command_of_verify_is_passed_on_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    program(folder.path(), "cargo", "echo \"$@\"\nexit $CODE\n");
    for (arguments, code) in [
        ("loom --list", "0"),
        ("report --check", "1"),
        ("soak --items 0", "2"),
        ("chaos --asan", "0"),
        ("help shuttle", "0"),
    ] {
        let mut command = xtask(arguments);
        let command = command.env("CARGO", folder.path().join("cargo"));
        let output = command.env("CODE", code).output().unwrap();
        let line = format!("run --quiet --package verify -- {arguments}\n");
        assert_eq!(text(&output.stdout), line);
        assert_eq!(output.status.code(), code.parse().ok(), "{arguments}");
    }
}

#[test]
fn steps_are_named_with_commas_or_one_by_one() {
    let steps = |arguments: &str| {
        let output = xtask(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments}: {output:?}");
        let lines = text(&output.stdout);
        let name = |line: &str| line.split([' ', ':']).nth(1).unwrap().to_owned();
        lines.lines().map(name).collect::<Vec<_>>()
    };
    assert_eq!(steps("test --list --only fmt,loom"), ["fmt", "loom"]);
    assert_eq!(steps("test --list --only fmt --only loom"), ["fmt", "loom"]);
    assert_eq!(steps("test --list --only fmt,loom --skip fmt"), ["loom"]);
    assert!(!steps("test --list --skip fmt,loom").contains(&"loom".to_owned()));
    assert!(refused("test --list --only fmt,nosuch").contains("no step nosuch; there are fmt,"));
}

#[test]
fn an_unknown_row_or_peer_is_refused_before_a_build() {
    assert!(refused("bench --rows nosuch").contains("no row nosuch; there are spawn_many"));
    assert!(refused("bench --rows coop,nosuch").contains("no row nosuch"));
    assert!(refused("bench --peers nosuch").contains("no peer nosuch; there are selvedge"));
    assert!(refused("bench --ablate d --rows nosuch").contains("no row nosuch"));
}

#[test]
fn bench_list_needs_no_build() {
    let list = xtask("bench --list").env("CARGO", NOWHERE).output();
    let list = text(&list.unwrap().stdout);
    assert!(list.contains("\n  tokio\n") && list.contains("\n  yield_one "));
}

/// Writes two shell scripts into `folder`: `tests`, with the text `test`, and `cargo`. The `cargo`
/// claims to have built one test binary, the script `tests`.
fn cargo_of_one_test(folder: &Path, test: &str) {
    program(folder, "tests", test);
    let built = format!(
        "{{\"reason\":\"compiler-artifact\",\"manifest_path\":\"{0}/Cargo.toml\",\
         \"target\":{{\"name\":\"scripted\"}},\"profile\":{{\"test\":true}},\
         \"executable\":\"{0}/tests\"}}",
        folder.display()
    );
    let cargo = format!(
        "case $* in metadata*) exec {} \"$@\";; *) echo '{built}';; esac\n",
        env!("CARGO")
    );
    program(folder, "cargo", &cargo);
}

#[test]
fn flaky_counts_the_failures_of_each_test() {
    let folder = tempfile::tempdir().unwrap();
    // The script fails in its second run and its third.
    cargo_of_one_test(
        folder.path(),
        "echo x >>runs\n\
         [ $(wc -l <runs) = 1 ] && exit\n\
         printf '\\nfailures:\\n    a::b\\n\\ntest result: FAILED.\\n'\n\
         exit 101\n",
    );
    let mut flaky = xtask("flaky --runs 3 --setting alone --test scripted");
    let output = flaky.env("CARGO", folder.path().join("cargo")).output();
    let output = output.unwrap();
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        said.contains("/scripted a::b: failed in 2 of 3 runs"),
        "{said}"
    );
}

#[test]
fn flaky_kills_a_binary_that_exceeds_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    cargo_of_one_test(folder.path(), "exec sleep 3600\n");
    let mut flaky = xtask("flaky --runs 1 --setting busy --limit 1");
    let output = flaky.env("CARGO", folder.path().join("cargo")).output();
    let output = output.unwrap();
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said.contains("/scripted (killed after 1 s"), "{said}");
}

#[test]
fn flaky_refuses_a_binary_that_is_not_built() {
    let folder = tempfile::tempdir().unwrap();
    cargo_of_one_test(folder.path(), "exit\n");
    let mut flaky = xtask("flaky --test nosuch");
    let output = flaky.env("CARGO", folder.path().join("cargo")).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = text(&output.stderr);
    assert!(said.contains("no test binary has such a name"), "{said}");
}
