//! Lists the tests of a test program, and runs each in a process of its own, with a time limit.
use anyhow::{Context, Result};
use project::workspace::output_of;
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File},
    path::Path,
    process::{Child, Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

/// How a test failed.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) enum End {
    Failed,
    Hung,
    NotCompiled,
    /// It passed, but left more descriptors, threads or memory than with tokio.
    LeftMore,
}

/// A test that did not pass.
pub(crate) struct Failure {
    pub(crate) test: String,
    pub(crate) end: End,
    /// The output of the test, or the compiler's message.
    pub(crate) output: String,
}

impl Failure {
    /// Returns the most telling line of the output: the message of the last panic, or else the last
    /// line that is not empty.
    pub(crate) fn line(&self) -> &str {
        let line = match self.output.rsplit_once("panicked at") {
            Some((_, panic)) => panic.lines().nth(1),
            None => self.output.lines().rfind(|line| !line.is_empty()),
        };
        line.unwrap_or_default()
    }
}

/// Returns the names of the tests in a program, without those that are ignored.
pub(crate) fn list(program: &Path) -> Result<Vec<String>> {
    let names = |more: &[&str]| -> Result<Vec<String>> {
        let mut listing = Command::new(program);
        let listing = output_of(listing.args(["--list", "--format=terse"]).args(more))?;
        let names = listing
            .lines()
            .filter_map(|line| line.strip_suffix(": test"));
        Ok(names.map(str::to_owned).collect())
    };
    let ignored = names(&["--ignored"])?;
    let mut all = names(&[])?;
    all.retain(|name| !ignored.contains(name));
    Ok(all)
}

/// Runs a test in a process of its own, in `folder` and with these variables. Returns how it
/// failed, and its output. The output of a test that failed stays in `log`.
pub(crate) fn run(
    folder: &Path,
    program: &Path,
    test: &str,
    log: &Path,
    limit: Duration,
    env: &[(String, String)],
) -> Result<Option<(End, String)>> {
    let file = File::create(log).with_context(|| format!("writing {}", log.display()))?;
    let mut command = Command::new(program);
    command
        .args(["--exact", test, "--test-threads=1"])
        .current_dir(folder)
        .env("CARGO_MANIFEST_DIR", folder)
        .envs(env.iter().map(|(name, value)| (name, value)))
        .stdout(file.try_clone()?)
        .stderr(file);
    // A process group, so that killing a hung test also kills its children.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().with_context(|| format!("running {test}"))?;
    let status = end_of(&mut child, limit)?;
    if status.is_some_and(|status| status.success()) {
        fs::remove_file(log)?;
        return Ok(None);
    }
    let output = String::from_utf8_lossy(&fs::read(log)?).into_owned();
    let end = status.map_or(End::Hung, |_| End::Failed);
    Ok(Some((end, output)))
}

/// Waits for a process. When the limit has passed, kills the process and its group, and returns
/// `None`.
pub(crate) fn end_of(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begun.elapsed() > limit {
            // SAFETY: the call has no preconditions. The child leads the group and is not reaped
            // yet, so the id names no other group.
            #[cfg(unix)]
            unsafe {
                libc::killpg(child.id() as libc::pid_t, libc::SIGKILL)
            };
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_of_a_failure_is_the_message_of_the_last_panic() {
        let line = |output: &str| {
            let failure = Failure {
                test: String::new(),
                end: End::Failed,
                output: output.to_owned(),
            };
            failure.line().to_owned()
        };
        let panics = "thread 'a' panicked at x.rs:1:1:\nfirst\nthread 'b' panicked at y.rs:2:2:\n\
                      second\nnote\n";
        assert_eq!(line(panics), "second");
        assert_eq!(line("error: a\nlast\n\n"), "last");
        assert_eq!(line(""), "");
    }
}
