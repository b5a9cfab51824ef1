//! Tests that `cargo xtask bench` keeps finished samples after a Ctrl-C.
#![cfg(unix)]
use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).unwrap();
}

fn program(folder: &Path, name: &str, text: &str) {
    write(folder, name, &format!("#!/bin/sh\n{text}"));
    fs::set_permissions(folder.join(name), PermissionsExt::from_mode(0o755)).unwrap();
}

/// Waits until the file holds `lines` lines, which the programs that `child` runs write there.
fn has_lines(child: &mut Child, file: &Path, lines: usize) {
    while fs::read_to_string(file).unwrap_or_default().lines().count() < lines {
        assert!(child.try_wait().unwrap().is_none(), "it has ended");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Sends SIGINT to all processes of the group of `child`, as a Ctrl-C in a terminal does.
fn interrupt(child: &Child) {
    // SAFETY: `killpg` has no preconditions.
    unsafe { libc::killpg(child.id() as libc::pid_t, libc::SIGINT) };
}

fn in_a_terminal(mut command: Command) -> Child {
    command.process_group(0);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn an_interrupted_bench_keeps_the_finished_samples() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "Cargo.lock", "");
    let row = |name: &str| {
        format!(
            r#"{{"name": "{name}", "what": "a row", "kind": "wake", "unit": "ns", "aim": 1, "without": []}}"#
        )
    };
    let runtime =
        |name: &str| format!(r#"{{"name": "{name}", "package": "{name}", "parallel": true}}"#);
    let listing = format!(
        r#"{{"runtimes": [{}, {}], "rows": [{}, {}]}}"#,
        runtime("selvedge"),
        runtime("tokio"),
        row("yield_one"),
        row("wake_one")
    );
    write(root, "listing", &listing);
    write(
        root,
        "sample",
        r#"{"operations": 1, "value": 2.5, "cpu_ns": 2.5}"#,
    );
    // This program takes three samples: of the first row on both runtimes, and of the second row on
    // one runtime. At the fourth sample it hangs.
    let bench = "cd $(dirname $0)\n[ $1 = list ] && exec cat listing\n\
        echo >>begun\n[ $(wc -l <begun) -gt 3 ] && exec sleep 1000\ncat sample\n";
    program(root, "bench", bench);
    let file = root.join("results.json");
    // `compare` takes its samples by the program `bench` in its own folder.
    fs::copy(env!("CARGO_BIN_EXE_compare"), root.join("compare")).unwrap();
    let mut command = Command::new(root.join("compare"));
    command.args(["--rows", "yield_one,wake_one", "--peers", "tokio"]);
    command.args(["--rounds", "1", "--placement", "any", "--commit", "c"]);
    command.arg("--root").arg(root).arg("--json").arg(&file);
    let mut child = in_a_terminal(command);
    has_lines(&mut child, &root.join("begun"), 4);
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    for what in ["yield_one: a row", "wake_one: a row", "interrupted: "] {
        assert!(said.contains(what), "{said}");
    }
    let kept: serde_json::Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    assert_eq!(kept["samples"].as_array().unwrap().len(), 3, "{kept}");
    assert_eq!(kept["tables"].as_array().unwrap().len(), 2, "{kept}");
}
