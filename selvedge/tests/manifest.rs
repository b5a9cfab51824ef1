//! Tests of the `manifest` example, run as its users run it.
#![cfg(all(unix, not(any(selvedge_loom, selvedge_shuttle))))]
use std::{
    ffi::OsStr,
    fs,
    io::Read,
    os::unix::{ffi::OsStrExt, fs::symlink},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

/// Returns the command for the example. Cargo builds the examples with the tests, and puts them
/// into a folder beside that of the tests.
fn manifest() -> Command {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let example = profile.join("examples/manifest");
    assert!(
        example.exists(),
        "{} is not built: run `cargo test -p selvedge`",
        example.display()
    );
    Command::new(example)
}

fn run(directory: &Path) -> Output {
    manifest().arg(directory).output().unwrap()
}

/// Feeds a manifest to `sha256sum -c`, where that is installed.
fn check(manifest: &[u8], directory: &Path) {
    let file = directory.with_extension("manifest");
    fs::write(&file, manifest).unwrap();
    match Command::new("sha256sum")
        .args(["-c", "--quiet"])
        .arg(&file)
        .output()
    {
        Ok(output) => assert!(output.status.success(), "{output:?}"),
        Err(error) => eprintln!("not checked with sha256sum: {error}"),
    }
}

fn tree() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("tree");
    fs::create_dir(&root).unwrap();
    (directory, root)
}

#[test]
fn odd_names_are_written_as_sha256sum_writes_them() {
    let (_held, root) = tree();
    let names: [&[u8]; 9] = [
        b"plain",
        b" spaces  ",
        b"-dash",
        b"new\nline",
        b"back\\slash",
        b"re\rturn",
        b"not utf-8 \xff\xfe",
        b"*star",
        b"\\\n",
    ];
    for name in names {
        fs::write(root.join(OsStr::from_bytes(name)), name).unwrap();
    }
    fs::write(root.join("large"), vec![7; 1 << 20]).unwrap();
    fs::write(root.join("empty"), b"").unwrap();
    let output = run(&root);
    assert!(output.status.success(), "{output:?}");
    check(&output.stdout, &root);
    assert_eq!(
        output.stdout.iter().filter(|&&byte| byte == b'\n').count(),
        names.len() + 2
    );
    assert_eq!(run(&root).stdout, output.stdout);
    let mut lines: Vec<_> = output.stdout.split(|&byte| byte == b'\n').collect();
    lines.pop();
    if let Ok(theirs) = Command::new("sh")
        .args([
            "-c",
            "LC_ALL=C find \"$0\" -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum",
        ])
        .arg(&root)
        .output()
    {
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&theirs.stdout)
        );
    }
}

#[test]
fn unreadable_entry_is_named_and_the_rest_goes_on() {
    let (_held, root) = tree();
    fs::write(root.join("good"), b"good").unwrap();
    symlink("nowhere", root.join("broken")).unwrap();
    symlink("good", root.join("link")).unwrap();
    fs::create_dir(root.join("sub")).unwrap();
    symlink("..", root.join("sub/loop")).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(root.join("pipe"))
            .status()
            .unwrap()
            .success()
    );
    let output = run(&root);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    for (name, what) in [
        ("broken", "a broken link"),
        ("sub/loop", "own parents"),
        ("pipe", "regular"),
    ] {
        let line = said
            .lines()
            .find(|line| line.contains(&format!("/{name}: ")));
        assert!(
            line.is_some_and(|line| line.contains(what)),
            "{name}: {said}"
        );
    }
    assert_eq!(
        output.stdout.split(|&byte| byte == b'\n').count(),
        3,
        "{said}"
    );
    check(&output.stdout, &root);
}

#[test]
fn an_unreadable_file_is_named() {
    let (_held, root) = tree();
    let path = root.join("secret");
    fs::write(&path, b"secret").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o000);
    fs::set_permissions(&path, mode).unwrap();
    if fs::read(&path).is_ok() {
        return; // Root reads everything.
    }
    let output = run(&root);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("secret: "));
}

#[test]
fn missing_directory_is_one_line_and_status_2() {
    let (_held, root) = tree();
    let file = root.join("file");
    fs::write(&file, b"").unwrap();
    for path in [root.join("missing"), file] {
        let output = run(&path);
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
        assert_eq!(String::from_utf8(output.stderr).unwrap().lines().count(), 1);
    }
    assert!(manifest().arg("--help").output().unwrap().status.success());
}

#[test]
fn wrong_arguments_are_named() {
    let cases: [(&[&str], &str); 5] = [
        (&["--bogus"], "no option --bogus"),
        (&["a", "--bogus"], "no option --bogus"),
        (&["a", "b"], "one directory at most, not 2"),
        (&["--"], "one directory comes after --"),
        (&["--", "a", "b"], "one directory comes after --"),
    ];
    for (arguments, what) in cases {
        let output = manifest().args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.starts_with(&format!("manifest: {what}\n")), "{said}");
        assert!(said.contains("usage: manifest [DIR]"), "{said}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn help_to_a_full_disk_fails_with_a_message() {
    let full = fs::File::create("/dev/full").unwrap();
    let output = manifest().arg("--help").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("manifest: writing: "), "{said}");
}

#[test]
fn closed_pipe_ends_manifest_quietly() {
    let (_held, root) = tree();
    // Twice as many bytes as a pipe holds.
    for i in 0..1_000 {
        fs::write(
            root.join(format!("file with a long enough name to fill a pipe {i}")),
            b"",
        )
        .unwrap();
    }
    let mut child = manifest()
        .arg(&root)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(said, "", "a reader that has seen enough wants no summary");
}

#[test]
fn a_wide_directory_needs_few_open_files() {
    let (_held, root) = tree();
    // Ten times as many files as may be open.
    for i in 0..1_000 {
        fs::write(root.join(i.to_string()), i.to_string()).unwrap();
    }
    let example = manifest().get_program().to_owned();
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 100; exec \"$0\" \"$1\""])
        .args([&example, root.as_os_str()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    check(&output.stdout, &root);
}
