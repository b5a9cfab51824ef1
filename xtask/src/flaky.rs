//! `cargo xtask flaky`: repeats tests with cargo-nextest, which counts how often each fails.
//!
//! A test that passes once may count on time, on the allocator, or on threads being quick. So the
//! tests run alone, beside busy loops, and on one processor, as on a machine that is slower or
//! smaller than its author's. cargo-nextest gives each test a process of its own; `cargo test` has
//! those of a binary share one.
use crate::interrupt;
use anyhow::{Context, Result, ensure};
use project::{
    say,
    workspace::{self, cargo, is_installed},
};
use std::{
    fs, hint,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
};

/// Options of `cargo xtask flaky`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Runs of each test in each setting.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Only the tests of these packages.
    #[arg(long = "package", value_name = "PACKAGE", value_delimiter = ',')]
    packages: Vec<String>,
    /// Runs only the test binaries of these names: a library's, or that of a file in `tests/`.
    #[arg(long = "test", value_name = "BINARY", value_delimiter = ',')]
    binaries: Vec<String>,
    /// Runs only the tests whose paths contain this text.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Runs them only in these settings.
    #[arg(
        long = "setting",
        value_name = "SETTING",
        value_enum,
        value_delimiter = ','
    )]
    settings: Vec<Setting>,
    /// Tests at a time, beside busy loops and on one processor. Alone, one at a time.
    #[arg(long, value_name = "COUNT", default_value_t = 4)]
    at_once: usize,
    /// The longest that a test may take. Then it is killed, and has failed.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    limit: u64,
    /// Runs the tests of another workspace.
    #[arg(long, value_name = "FOLDER")]
    path: Option<PathBuf>,
}

/// The other load on the machine during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Setting {
    /// No load by this command.
    Alone,
    /// Two threads that never block.
    Busy,
    /// The tests have one processor.
    One,
}

const SETTINGS: [Setting; 3] = [Setting::Alone, Setting::Busy, Setting::One];

const BUSY_LOOPS: usize = 2;

/// Repeats the tests that the options name; returns `false` when one failed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    ensure!(options.limit > 0, "--limit is at least 1");
    ensure!(
        is_installed(cargo().arg("nextest")),
        "cargo-nextest is not installed: `cargo install --locked cargo-nextest`"
    );
    let (_, root) = workspace::load_at(options.path.as_deref())?;
    let limits = root.join("target/flaky.toml");
    write_limits(&limits, options.limit)?;
    let settings = match options.settings.is_empty() {
        true => &SETTINGS[..],
        false => &options.settings,
    };
    interrupt::watch();
    let mut steady = true;
    for setting in settings {
        let Some(mut nextest) = setting.nextest(options, &root, &limits)? else {
            continue;
        };
        let _busy = (*setting == Setting::Busy).then(|| BusyLoops::start(BUSY_LOOPS));
        steady &= nextest.status().context("running cargo")?.success();
        if interrupt::came() {
            return Ok(false);
        }
    }
    Ok(steady)
}

/// Writes the file of cargo-nextest's settings for which it has no options.
fn write_limits(file: &Path, seconds: u64) -> Result<()> {
    let period = format!("period = \"{seconds}s\", terminate-after = 1, grace-period = \"0s\"");
    fs::create_dir_all(file.parent().context("a file has a folder")?)?;
    fs::write(
        file,
        format!("[profile.default]\nslow-timeout = {{ {period} }}\n"),
    )
    .with_context(|| format!("writing {}", file.display()))
}

impl Setting {
    /// Returns the command that repeats the tests in this setting; `None`, with words, where that
    /// is not possible.
    fn nextest(self, options: &Options, root: &Path, limits: &Path) -> Result<Option<Command>> {
        let cargo = cargo();
        let (words, at_once, mut nextest) = match self {
            Self::Alone => ("alone", 1, cargo),
            Self::Busy => ("beside busy loops", options.at_once, cargo),
            Self::One => match processor() {
                Ok(processor) => {
                    let bound = taskset(&processor, Path::new(cargo.get_program()));
                    ("on one processor", options.at_once, bound)
                }
                Err(why) => {
                    say!("== not on one processor: {why}");
                    return Ok(None);
                }
            },
        };
        say!("== {words}");
        nextest
            .current_dir(root)
            .env_remove("CARGO_TARGET_DIR")
            .args(["nextest", "run", "--all-features", "--no-fail-fast"])
            .args(["--status-level", "fail", "--final-status-level", "fail"])
            .args(["--stress-count", &options.runs.to_string()])
            .args(["--test-threads", &at_once.to_string()])
            .arg("--tool-config-file")
            .arg(format!("xtask:{}", limits.display()))
            .args(options.packages.is_empty().then_some("--workspace"));
        for package in &options.packages {
            nextest.args(["--package", package]);
        }
        if !options.binaries.is_empty() {
            let binaries = options.binaries.iter();
            let binaries: Vec<_> = binaries.map(|name| format!("binary(={name})")).collect();
            nextest.args(["--filterset", &binaries.join(" | ")]);
        }
        nextest.args(&options.filter);
        Ok(Some(nextest))
    }
}

/// Finds a processor that this process may use, if a process can be bound to it.
fn processor() -> Result<String, String> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let first = first_processor(&status).ok_or("the system names no processors")?;
    let bound = taskset(first, Path::new("true")).output();
    match bound {
        Ok(output) if output.status.success() => Ok(first.to_owned()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(format!("taskset (of util-linux) does not start: {error}")),
    }
}

/// Returns the first number in the value of a line such as `Cpus_allowed_list: 0-1,4`.
fn first_processor(status: &str) -> Option<&str> {
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let first = list.trim().split([',', '-']).next()?;
    (!first.is_empty()).then_some(first)
}

fn taskset(processor: &str, program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", processor]).arg(program);
    command
}

/// Threads of this process that never block. They end with the process at the latest.
struct BusyLoops {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BusyLoops {
    fn start(count: usize) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let spin = |over: Arc<AtomicBool>| {
            // Ordering: the flag publishes nothing; `drop` joins the thread.
            while !over.load(Relaxed) {
                hint::spin_loop();
            }
        };
        let start = |_| {
            let over = over.clone();
            thread::spawn(move || spin(over))
        };
        let threads = (0..count).map(start).collect();
        Self { over, threads }
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        // Ordering: as in `start`.
        self.over.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("a busy loop does not panic");
        }
    }
}
