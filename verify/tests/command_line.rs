//! Runs the commands as a shell runs them.
#![cfg(unix)]
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
};

fn verify(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_verify"));
    command.args(arguments.split(' ')).stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn zero_as_a_limit_or_count_is_refused_before_cargo_runs() {
    for (arguments, what) in [
        ("loom --limit 0", "--limit is at least 1"),
        ("loom --jobs 0", "--jobs is at least 1"),
        ("chaos --rounds 0", "--rounds is at least 1"),
        ("shuttle --schedules 0", "--schedules is at least 1"),
        ("orderings --limit 0", "--limit is at least 1"),
        ("orderings --mutant-limit 0", "--mutant-limit is at least 1"),
    ] {
        let mut command = verify(arguments);
        let output = command.env("CARGO", "/nonexistent/cargo").output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(said.contains(what), "{arguments}: {said}");
    }
}

#[test]
fn list_of_models_needs_no_optimised_build() {
    let folder = tempfile::tempdir().unwrap();
    let cargo = format!(
        "echo \"$@\" >>{0}/log\ncase $1 in metadata) exec {1} \"$@\";; *) exit 1;; esac\n",
        folder.path().display(),
        env!("CARGO")
    );
    let file = folder.path().join("cargo");
    fs::write(&file, format!("#!/bin/sh\n{cargo}")).unwrap();
    fs::set_permissions(file, PermissionsExt::from_mode(0o755)).unwrap();
    for arguments in ["loom --list", "report --check"] {
        let mut command = verify(arguments);
        let output = command.env("CARGO", folder.path().join("cargo")).output();
        assert!(text(&output.unwrap().stderr).contains("don't build"));
        let log = fs::read_to_string(folder.path().join("log")).unwrap();
        fs::remove_file(folder.path().join("log")).unwrap();
        assert!(log.contains("test --no-run "), "{arguments}: {log}");
        assert!(!log.contains("--release"), "{arguments}: {log}");
    }
}
