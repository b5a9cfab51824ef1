//! A SHA-256 manifest of a directory tree, in the format that `sha256sum -c` checks.
//!
//! There is a task for each directory and each file. A directory is listed by `selvedge::fs`. A
//! file is read in `spawn_blocking`, and hashed in its task. A short file needs one blocking
//! closure, which opens and reads it. The tasks send their results over a channel. Permits bound
//! the number of open files and the memory for their contents, however wide the tree is.
//!
//! The exit status is 0 if all went well. It is 1 if a file or directory could not be hashed, which
//! standard error then names, or if the manifest could not be written. A reader that closes the
//! pipe early is no failure. The status is 2 if the directory or the arguments are wrong, or if the
//! runtime did not start.
use async_channel::Receiver;
use indicatif::{ProgressBar, ProgressStyle};
use selvedge::Builder;
use std::{
    ffi::OsString,
    io::{self, BufWriter, IsTerminal, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};
use walk::{Event, Walk};

mod identity;
mod line;
mod walk;

/// Number of blocking threads, which list directories and read files. Few threads are enough for
/// files that are cached in memory: more would compete for the CPUs with the workers, which hash. A
/// disk gets at most this many requests at a time.
const THREADS: usize = 8;

const USAGE: &str = "usage: manifest [DIR]
Prints a SHA-256 manifest of the files below DIR, sorted by path, for `sha256sum -c`.
Without DIR: this workspace, less .git and target.";

fn main() -> ExitCode {
    let (root, skip): (PathBuf, &[&str]) = match arguments(std::env::args_os().skip(1).collect()) {
        Ok(Some(root)) => (root, &[]),
        Ok(None) => (workspace(), &[".git", "target"]),
        Err(exit) => return exit,
    };
    let root = match std::fs::metadata(&root) {
        Ok(meta) if meta.is_dir() => root,
        Ok(_) => return complain(&root, "not a directory"),
        Err(error) => return complain(&root, &error.to_string()),
    };
    // Standard error is for this program's messages. Without the `on_stall` hook, the monitor would
    // also report there each poll that takes long because the machine is busy.
    let builder = Builder::new().blocking_threads(THREADS).on_stall(|_| {});
    let runtime = match builder.build() {
        Ok(runtime) => runtime,
        Err(error) => return complain(Path::new("starting the runtime"), &error.to_string()),
    };
    let begun = Instant::now();
    let mut found = runtime.block_on(async { collect(Walk::start(root, skip)).await });
    let seconds = begun.elapsed().as_secs_f64();
    found.lines.sort_unstable();
    let written = write(&found.lines);
    if written.is_ok() {
        let metrics = runtime.snapshot();
        report(&format!(
            "{} files, {} bytes, {seconds:.2} s; tasks spawned {}, polls {}, steals {}, overflows {}, parks {}, blocking threads {}",
            found.lines.len(),
            found.bytes,
            metrics.spawns,
            metrics.polls,
            metrics.steals,
            metrics.overflows,
            metrics.parks,
            metrics.blocking_threads
        ));
    }
    match written {
        Ok(()) if found.problems == 0 => ExitCode::SUCCESS,
        Ok(()) => ExitCode::FAILURE,
        // It is no error that the reader closed the pipe. But the exit status is still 1 if
        // something could not be hashed.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe && found.problems == 0 => {
            ExitCode::SUCCESS
        }
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        Err(error) => {
            report(&format!("manifest: writing: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn arguments(arguments: Vec<OsString>) -> Result<Option<PathBuf>, ExitCode> {
    let refused = |what: String| {
        report(&format!("manifest: {what}\n{USAGE}"));
        Err(ExitCode::from(2))
    };
    let is_option = |argument: &&OsString| argument.as_encoded_bytes().starts_with(b"-");
    match arguments.as_slice() {
        [] => Ok(None),
        [flag] if flag == "--help" || flag == "-h" => match writeln!(io::stdout(), "{USAGE}") {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                report(&format!("manifest: writing: {error}"));
                Err(ExitCode::FAILURE)
            }
            _ => Err(ExitCode::SUCCESS),
        },
        [dashes, dir] if dashes == "--" => Ok(Some(dir.into())),
        [dir] if !is_option(&dir) => Ok(Some(dir.into())),
        all => match all.iter().find(is_option) {
            Some(option) if option == "--" => refused("one directory comes after --".into()),
            Some(option) => refused(format!("no option {}", Path::new(option).display())),
            None => refused(format!("one directory at most, not {}", all.len())),
        },
    }
}

fn workspace() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_path_buf()
}

fn complain(path: &Path, what: &str) -> ExitCode {
    report(&format!("manifest: {}: {what}", path.display()));
    ExitCode::from(2)
}

/// Writes a line to standard error. A failure to write it is ignored.
fn report(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// The results of the tasks. `lines` has the path and the digest of each file that was hashed.
#[derive(Default)]
struct Found {
    lines: Vec<(Vec<u8>, [u8; 32])>,
    bytes: u64,
    problems: u64,
}

async fn collect(events: Receiver<Event>) -> Found {
    let bar = progress_bar();
    let mut found = Found::default();
    // The channel ends with the last task.
    while let Ok(event) = events.recv().await {
        match event {
            Event::Files(n) => bar.inc_length(n),
            Event::Hashed {
                path,
                digest,
                bytes,
            } => {
                bar.inc(1);
                found.bytes += bytes;
                found
                    .lines
                    .push((path.into_os_string().into_encoded_bytes(), digest));
            }
            Event::Problem { path, what } => {
                found.problems += 1;
                bar.suspend(|| report(&format!("manifest: {}: {what}", path.display())));
            }
        }
    }
    bar.finish_and_clear();
    found
}

fn progress_bar() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} files  {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

fn write(lines: &[(Vec<u8>, [u8; 32])]) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for (path, digest) in lines {
        line::write(&mut out, path, digest)?;
    }
    out.flush()
}
