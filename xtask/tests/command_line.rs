//! Runs the commands as a shell runs them.
#![cfg(unix)]
use std::{
    fs::{self, File},
    io,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread,
    time::Duration,
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

/// Runs a command that must be refused, with exit status 2, before cargo starts; returns its
/// message.
fn refused(arguments: &str) -> String {
    let output = xtask(arguments).env("CARGO", NOWHERE).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments}: {output:?}");
    text(&output.stderr)
}

fn write(folder: &Path, name: &str, text: &str) {
    let file = folder.join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

fn program(folder: &Path, name: &str, text: &str) {
    write(folder, name, &format!("#!/bin/sh\n{text}"));
    fs::set_permissions(folder.join(name), PermissionsExt::from_mode(0o755)).unwrap();
}

/// Waits until the file, which `child` writes, has this many lines.
fn has_lines(child: &mut Child, file: &Path, lines: usize) {
    while fs::read_to_string(file).unwrap_or_default().lines().count() < lines {
        assert!(child.try_wait().unwrap().is_none(), "it has ended");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Presses Ctrl-C: as on a terminal, all processes of the group get the signal.
fn interrupt(child: &Child) {
    // SAFETY: `killpg` has no premises.
    unsafe { libc::killpg(child.id() as libc::pid_t, libc::SIGINT) };
}

fn in_a_terminal(mut command: Command) -> Child {
    command.process_group(0);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn output_to_a_full_disk_fails_with_words() {
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
fn a_number_that_leaves_nothing_is_refused_with_words() {
    for (arguments, what) in [
        ("loom --limit 0", "--limit is at least 1"),
        ("loom --jobs 0", "--jobs is at least 1"),
        ("shuttle --schedules 0", "--schedules is at least 1"),
        ("orderings --limit 0", "--limit is at least 1"),
        ("orderings --mutant-limit 0", "--mutant-limit is at least 1"),
        ("flaky --runs 0", "--runs is at least 1"),
        ("flaky --limit 0", "--limit is at least 1"),
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
fn the_bench_lists_without_a_build() {
    let list = xtask("bench --list").env("CARGO", NOWHERE).output();
    let list = text(&list.unwrap().stdout);
    assert!(list.contains("\n  tokio\n") && list.contains("\n  yield_one "));
}

#[test]
fn a_list_of_models_takes_no_optimised_build() {
    let folder = tempfile::tempdir().unwrap();
    let cargo = format!(
        "echo \"$@\" >>{0}/log\ncase $1 in metadata) exec {1} \"$@\";; *) exit 1;; esac\n",
        folder.path().display(),
        env!("CARGO")
    );
    program(folder.path(), "cargo", &cargo);
    for arguments in ["loom --list", "report --check"] {
        let mut command = xtask(arguments);
        let output = command.env("CARGO", folder.path().join("cargo")).output();
        assert!(text(&output.unwrap().stderr).contains("don't build"));
        let log = fs::read_to_string(folder.path().join("log")).unwrap();
        fs::remove_file(folder.path().join("log")).unwrap();
        assert!(log.contains("test --no-run "), "{arguments}: {log}");
        assert!(!log.contains("--release"), "{arguments}: {log}");
    }
}

/// Writes a package, outside this workspace, with a test binary of each kind.
fn package(folder: &Path) {
    let manifest = "[package]\nname = \"probe\"\nversion = \"1.2.3-a\"\nedition = \"2024\"\n";
    write(folder, "Cargo.toml", manifest);
    let lib = r#"
        #[test]
        fn it_runs_as_under_cargo() {
            use std::env::{current_dir, var};
            assert_eq!(current_dir().unwrap().as_os_str(), env!("CARGO_MANIFEST_DIR"));
            let set = ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME", "CARGO_PKG_VERSION_PRE"];
            let set = set.map(|name| var(name).unwrap());
            assert_eq!(set, [env!("CARGO_MANIFEST_DIR"), "probe", "a"]);
        }
    "#;
    write(folder, "src/lib.rs", lib);
    write(folder, "src/main.rs", "fn main() {}");
    write(folder, "examples/shows.rs", "fn main() {}");
    let runs = r#"
        #[test]
        fn programs_and_examples_are_built() {
            use std::{env::current_exe, path::Path};
            assert!(Path::new(env!("CARGO_BIN_EXE_probe")).exists());
            let test = current_exe().unwrap();
            assert!(test.parent().unwrap().with_file_name("examples/shows").exists());
        }
    "#;
    write(folder, "tests/runs.rs", runs);
    let fails = "#[test] fn passes() {}\n#[test] fn fails() { panic!(\"on purpose\") }";
    write(folder, "tests/fails.rs", fails);
    let hangs = r#"
        #[test]
        fn hangs() {
            let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
            std::fs::write("hangs", format!("{}\n", child.id())).unwrap();
            child.wait().unwrap();
        }
    "#;
    write(folder, "tests/hangs.rs", hangs);
}

fn flaky(folder: &Path, arguments: &str) -> Command {
    let mut command = xtask("flaky --path");
    command.arg(folder).args(arguments.split(' '));
    command.env("CARGO", env!("CARGO"));
    command
}

fn ran(mut flaky: Command) -> (Output, String) {
    let output = flaky.output().unwrap();
    let said = text(&output.stdout);
    (output, said)
}

/// Waits until the process that the hanging test has started, if it started one, is gone.
#[cfg(target_os = "linux")]
fn nothing_is_left(folder: &Path) {
    let Ok(child) = fs::read_to_string(folder.join("hangs")) else {
        return;
    };
    let stat = format!("/proc/{}/stat", child.trim());
    while fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn flaky_counts_what_fails_in_each_setting() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    package(folder);
    let (output, said) = ran(flaky(folder, "--runs 2 --test probe,runs,fails"));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said.contains("probe fails fails: alone 2 of 2, beside busy loops 2 of 2"));
    assert!(said.contains("on purpose"), "{said}");
    assert!(said.contains("failed tests: 1"), "{said}");
    let (output, said) = ran(flaky(folder, "--runs 1 --test runs --setting alone"));
    assert!(output.status.success(), "{output:?}");
    assert!(
        said.contains("1 runs in ") && said.contains("failed tests: 0"),
        "{said}"
    );
    let (output, _) = ran(flaky(folder, "--test nosuch"));
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no test binary nosuch there; there are fails"));

    let (output, said) = ran(flaky(
        folder,
        "--runs 1 --limit 2 --test hangs --setting busy",
    ));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said.contains("probe hangs (no end within 2 s): beside busy loops 1 of 1"));
    nothing_is_left(folder);

    let _ = fs::remove_file(folder.join("hangs"));
    let command = flaky(
        folder,
        "--runs 3 --test fails,hangs --setting alone --limit 1000",
    );
    let mut child = in_a_terminal(command);
    has_lines(&mut child, &folder.join("hangs"), 1);
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said.contains("probe fails fails: alone 1 of 1"), "{said}");
    assert!(said.contains("interrupted: "), "{said}");
    nothing_is_left(folder);
}
