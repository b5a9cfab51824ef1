//! Lets a test run itself again in a process of its own.
use std::{
    env,
    io::Read,
    process::{Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

const ROLE: &str = "SELVEDGE_FAULT";

/// Exit of a child process.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub said: String,
}

/// Returns the role that the parent gave this process, if this process is a child of [`run`].
pub fn role() -> Option<String> {
    env::var(ROLE).ok()
}

/// Runs the test of that name again in a child process, to which it gives a role.
///
/// # Panics
/// If the child hangs.
pub fn run(test: &str, role: impl ToString) -> Ended {
    run_with(test, role, &[])
}

/// Runs the test as [`run`] does, with these environment variables.
///
/// # Panics
/// If the child hangs.
pub fn run_with(test: &str, role: impl ToString, variables: &[(&str, &str)]) -> Ended {
    let role = role.to_string();
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(ROLE, &role)
        .env("RUST_BACKTRACE", "0")
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let out = reader(child.stdout.take());
    let err = reader(child.stderr.take());
    // A child that takes longer than this hangs, even on the busiest machine.
    let end = Instant::now() + Duration::from_secs(600);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > end {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{test} hangs as {role:?}");
        }
        thread::sleep(Duration::from_millis(1));
    };
    Ended {
        status,
        said: out.join().unwrap() + &err.join().unwrap(),
    }
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    let mut pipe = pipe.unwrap();
    thread::spawn(move || {
        let mut said = Vec::new();
        let _ = pipe.read_to_end(&mut said);
        String::from_utf8_lossy(&said).into_owned()
    })
}

/// Returns true in a child process, where the caller must run the rest of the test. Otherwise runs
/// the test again in a child process, asserts that the child passes, and returns false.
pub fn is_child(test: &str) -> bool {
    if role().is_some() {
        return true;
    }
    let ended = run(test, "child");
    // If no test had this name, the child would run nothing and succeed.
    let ran = ended.said.contains("1 passed");
    assert!(ended.status.success() && ran, "{ended:?}");
    false
}
