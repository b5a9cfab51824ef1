//! `cargo xtask flaky`: runs each test binary many times, and counts which of its tests fail.
//!
//! A test that passes once may rely on time, on the allocator, or on fast threads. Each binary runs
//! alone, beside busy loops, and on one processor, to imitate a machine that is slower or smaller
//! than its author's.
//!
//! `cargo test` builds the binaries, and starts this command as the runner of each binary. The
//! runner records its folder and its variables, so that later runs have those that cargo sets.
use crate::{
    interrupt,
    output::progress,
    workspace::{self, cargo},
};
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    hint,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Options of `cargo xtask flaky`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Number of runs of each binary in each setting.
    #[arg(long, default_value_t = 10)]
    runs: u32,
    /// Runs only the test binaries of these packages.
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
    /// Number of runs at a time, beside busy loops and on one processor. In the setting `alone` it
    /// is one.
    #[arg(long, value_name = "COUNT", default_value_t = 4)]
    at_once: usize,
    /// The longest that a run may take. A longer run is killed, and is a failure.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    limit: u64,
    /// Runs the tests of another workspace.
    #[arg(long, value_name = "FOLDER")]
    path: Option<PathBuf>,
    /// Records how cargo runs this process.
    #[arg(long, hide = true, value_name = "FILE")]
    note: Option<PathBuf>,
}

/// The other load on the machine during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Setting {
    /// No load by this command.
    Alone,
    /// Two threads that never block.
    Busy,
    /// The run has one processor.
    One,
}

const SETTINGS: [Setting; 3] = [Setting::Alone, Setting::Busy, Setting::One];

const BUSY_LOOPS: usize = 2;

impl Setting {
    fn words(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Busy => "beside busy loops",
            Self::One => "on one processor",
        }
    }
}

/// A test binary, and how cargo runs it.
#[derive(Serialize, Deserialize)]
struct Binary {
    package: String,
    name: String,
    file: PathBuf,
    folder: PathBuf,
    environment: BTreeMap<String, String>,
}

/// Runs the binaries that the options name; returns `false` when a test failed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    if let Some(file) = &options.note {
        let binary = Binary::noted(file)?;
        say!("{NOTE}{}", serde_json::to_string(&binary)?);
        return Ok(true);
    }
    ensure!(options.runs > 0, "--runs is at least 1");
    ensure!(options.limit > 0, "--limit is at least 1");
    ensure!(options.at_once > 0, "--at-once is at least 1");
    let (_, root) = workspace::load_at(options.path.as_deref())?;
    let mut settings = SETTINGS.to_vec();
    settings.retain(|setting| options.settings.is_empty() || options.settings.contains(setting));
    let processor = processor();
    if let (true, Err(why)) = (settings.contains(&Setting::One), &processor) {
        say!("NOT run on one processor: {why}");
        settings.retain(|setting| *setting != Setting::One);
    }
    let binaries = build(options, &root)?;
    let words: Vec<_> = settings.iter().map(|setting| setting.words()).collect();
    say!(
        "{} test binaries, {} times each {}. Doc tests are not test binaries: they do not run.",
        binaries.len(),
        options.runs,
        words.join(", ")
    );
    let folder = root.join("target/flaky");
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let runner = Runner {
        filter: options.filter.as_deref(),
        limit: Duration::from_secs(options.limit),
        processor: processor.unwrap_or_default(),
        output: folder.join(format!("output-{}", std::process::id())),
        at_once: options.at_once,
        counts: Mutex::default(),
    };
    interrupt::watch();
    let begun = Instant::now();
    let done = runner.run_all(&binaries, &settings, options.runs);
    progress("");
    let counts = runner.counts.into_inner()?;
    counts.print(&settings);
    let all_ran = done?;
    if !all_ran {
        say!("interrupted: this is what ran before");
    }
    say!(
        "{} runs in {:.1} minutes, failed tests: {}",
        counts.runs.values().sum::<u32>(),
        begun.elapsed().as_secs_f64() / 60.0,
        counts.failures.len()
    );
    Ok(all_ran && counts.failures.is_empty())
}

/// The prefix of the line that describes a binary.
const NOTE: &str = "flaky: ";

impl Binary {
    /// Describes the test binary in whose place cargo has started this process.
    fn noted(file: &Path) -> Result<Self> {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let name = name.rsplit_once('-').map_or(&*name, |(name, _)| name);
        Ok(Self {
            package: std::env::var("CARGO_PKG_NAME")?,
            name: name.to_owned(),
            file: file.to_owned(),
            folder: std::env::current_dir()?,
            environment: std::env::vars().collect(),
        })
    }
}

/// Builds the tests, with the examples and programs that they run, and asks cargo how it runs them.
fn build(options: &Options, root: &Path) -> Result<Vec<Binary>> {
    let test = || {
        let mut cargo = cargo();
        cargo.current_dir(root).args(["test", "--all-features"]);
        cargo.args(options.packages.is_empty().then_some("--workspace"));
        for package in &options.packages {
            cargo.args(["--package", package]);
        }
        cargo
    };
    ensure!(
        test().arg("--no-run").status()?.success(),
        "the tests don't build"
    );
    let this = std::env::current_exe()?;
    let runner = [this.to_string_lossy(), "flaky".into(), "--note".into()];
    let mut noted = test();
    noted.args(["--tests", "--config"]);
    noted.arg(format!("target.'cfg(all())'.runner = {runner:?}"));
    let noted = noted.output().context("cargo test")?;
    ensure!(
        noted.status.success(),
        "cargo doesn't run the tests: {}",
        String::from_utf8_lossy(&noted.stderr)
    );
    let said = String::from_utf8_lossy(&noted.stdout);
    let binaries = said.lines().filter_map(|line| line.strip_prefix(NOTE));
    let binaries = binaries.map(serde_json::from_str);
    let mut binaries: Vec<Binary> = binaries.collect::<Result<_, _>>()?;
    binaries.sort_by(|a, b| (&a.package, &a.name).cmp(&(&b.package, &b.name)));
    for name in &options.binaries {
        let all: Vec<_> = binaries.iter().map(|binary| &*binary.name).collect();
        ensure!(
            all.contains(&&**name),
            "no test binary {name} there; there are {}",
            all.join(", ")
        );
    }
    binaries.retain(|b| options.binaries.is_empty() || options.binaries.contains(&b.name));
    ensure!(!binaries.is_empty(), "cargo names no test binary");
    Ok(binaries)
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

/// Runs test binaries.
struct Runner<'a> {
    filter: Option<&'a str>,
    limit: Duration,
    processor: String,
    /// The file for a run's output. A pipe would stay open as long as any process that the run
    /// started.
    output: PathBuf,
    at_once: usize,
    counts: Mutex<Counts>,
}

/// How a run ended.
#[derive(Debug)]
enum End {
    Exit(ExitStatus),
    /// The limit passed, and the process was killed.
    Limit,
    /// An interrupt came, and the process was killed. Whether it would have passed is unknown.
    Interrupt,
}

impl Runner<'_> {
    /// Runs every binary in every setting, `runs` times; returns `false` when interrupted.
    fn run_all(&self, binaries: &[Binary], settings: &[Setting], runs: u32) -> Result<bool> {
        for run in 1..=runs {
            let begun = Instant::now();
            for &setting in settings {
                let words = setting.words();
                let at_once = match setting {
                    Setting::Alone => 1,
                    Setting::Busy | Setting::One => self.at_once,
                };
                let rest = Mutex::new(binaries.iter());
                let take_all = |thread| {
                    // The lock is released before the binary runs.
                    while let Some(binary) = { lock(&rest).next() } {
                        let Binary { package, name, .. } = binary;
                        progress(&format!("run {run} of {runs}, {words}: {package} {name}"));
                        if !self.run_one(binary, setting, thread)? {
                            return Ok(false);
                        }
                    }
                    Ok(true)
                };
                let _busy = (setting == Setting::Busy).then(|| BusyLoops::start(BUSY_LOOPS));
                let ends: Vec<Result<bool>> = thread::scope(|scope| {
                    let start = |thread| scope.spawn(move || take_all(thread));
                    let threads: Vec<_> = (0..at_once).map(start).collect();
                    let ends = threads.into_iter().map(|thread| thread.join());
                    ends.map(|end| end.expect("a run does not panic")).collect()
                });
                for end in ends {
                    if !end? {
                        return Ok(false);
                    }
                }
            }
            progress("");
            say!(
                "run {run} of {runs}: {:.0} s, failed tests so far: {}",
                begun.elapsed().as_secs_f64(),
                lock(&self.counts).failures.len()
            );
        }
        Ok(true)
    }

    /// Runs a binary once and counts its failures; returns `false` when interrupted.
    fn run_one(&self, binary: &Binary, setting: Setting, thread: usize) -> Result<bool> {
        let (end, said) = self.run(binary, setting, thread)?;
        if matches!(end, End::Interrupt) {
            return Ok(false);
        }
        let failures = failures(&end, &said, self.limit);
        let Binary { package, name, .. } = binary;
        let mut counts = lock(&self.counts);
        for failure in counts.add(binary, setting, failures) {
            progress("");
            say!("FAILED {}: {package} {name} {failure}", setting.words());
            say!("{}", excerpt(&said, &failure));
        }
        Ok(true)
    }

    /// Runs a binary once; returns how the run ended and its output.
    fn run(&self, binary: &Binary, setting: Setting, thread: usize) -> Result<(End, String)> {
        let mut command = match setting {
            Setting::One => taskset(&self.processor, &binary.file),
            _ => Command::new(&binary.file),
        };
        // A new file: truncating an old one waits for the disk.
        let file = self.output.with_extension(thread.to_string());
        let _ = fs::remove_file(&file);
        let output = File::create(&file).with_context(|| format!("writing {}", file.display()))?;
        command
            .args(self.filter)
            .current_dir(&binary.folder)
            .envs(&binary.environment)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        let child = group(&mut command).spawn();
        let mut child = child.with_context(|| format!("starting {}", binary.file.display()))?;
        let end = wait(&mut child, self.limit)?;
        let said = fs::read(&file).context("reading what a test said")?;
        let _ = fs::remove_file(&file);
        Ok((end, String::from_utf8_lossy(&said).into_owned()))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("a run does not panic")
}

/// Makes the process the leader of a new group, so that all processes that it starts can be killed.
#[cfg(unix)]
fn group(command: &mut Command) -> &mut Command {
    std::os::unix::process::CommandExt::process_group(command, 0)
}

#[cfg(not(unix))]
fn group(command: &mut Command) -> &mut Command {
    command
}

/// Waits until the process ends. At the limit, or at an interrupt, it kills the process.
fn wait(child: &mut Child, limit: Duration) -> Result<End> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(End::Exit(status));
        }
        let end = match interrupt::came() {
            true => End::Interrupt,
            false if begun.elapsed() >= limit => End::Limit,
            false => {
                thread::sleep(Duration::from_millis(5));
                continue;
            }
        };
        kill(child)?;
        child.wait()?;
        return Ok(end);
    }
}

#[cfg(unix)]
fn kill(child: &mut Child) -> Result<()> {
    let group = libc::pid_t::try_from(child.id())?;
    // SAFETY: `killpg` has no premises. The group is the child's, and nobody has waited for the
    // child yet.
    unsafe { libc::killpg(group, libc::SIGKILL) };
    Ok(())
}

#[cfg(not(unix))]
fn kill(child: &mut Child) -> Result<()> {
    Ok(child.kill()?)
}

/// Names the tests that failed in a run; if none is known, says how the binary failed.
fn failures(end: &End, said: &str, limit: Duration) -> Vec<String> {
    match end {
        End::Exit(status) if status.success() => Vec::new(),
        End::Exit(status) => {
            let failed = failed(said);
            match failed.is_empty() {
                true => vec![format!("({status})")],
                false => failed,
            }
        }
        End::Limit | End::Interrupt => {
            let late = unfinished(said);
            let tests = match late.is_empty() {
                true => String::new(),
                false => format!(": {}", late.join(", ")),
            };
            vec![format!("(no end within {} s{tests})", limit.as_secs())]
        }
    }
}

/// Returns the names in the last list of `failures:`, which holds nothing else.
fn failed(said: &str) -> Vec<String> {
    let Some((_, list)) = said.rsplit_once("\nfailures:\n") else {
        return Vec::new();
    };
    let names = list.lines().map_while(|line| line.strip_prefix("    "));
    names.map(str::to_owned).collect()
}

/// Returns the tests that the harness reported as long-running, and that have not ended.
fn unfinished(said: &str) -> Vec<&str> {
    let long = said.lines().filter_map(|line| {
        let name = line.strip_prefix("test ")?;
        Some(name.split_once(" has been running for over ")?.0)
    });
    let ended = |name: &str| said.contains(&format!("test {name} ... "));
    long.filter(|name| !ended(name)).collect()
}

/// Returns the output of a failed test, or else the end of its binary's output.
fn excerpt<'a>(said: &'a str, test: &str) -> &'a str {
    let begin = said.find(&format!("---- {test} stdout ----"));
    let Some(begin) = begin else {
        let lines = said.trim_end().rmatch_indices('\n').nth(29);
        return &said[lines.map_or(0, |(at, _)| at + 1)..];
    };
    let own = &said[begin..];
    let end = own[1..]
        .find("\n---- ")
        .or_else(|| own.find("\nfailures:\n"));
    &own[..end.map_or(own.len(), |end| end + 1)]
}

/// Counts of runs and of failures.
#[derive(Default)]
struct Counts {
    /// By the binary's package and name, and the setting.
    runs: BTreeMap<(String, String, &'static str), u32>,
    failures: BTreeMap<(String, String, String), BTreeMap<&'static str, u32>>,
}

impl Counts {
    /// Counts a run; returns the failures of tests that had not failed before.
    fn add(&mut self, binary: &Binary, setting: Setting, failures: Vec<String>) -> Vec<String> {
        let (package, name, words) = (&binary.package, &binary.name, setting.words());
        let run = (package.clone(), name.clone(), words);
        *self.runs.entry(run).or_default() += 1;
        let mut first = Vec::new();
        for failure in failures {
            let key = (package.clone(), name.clone(), failure.clone());
            let counts = self.failures.entry(key).or_default();
            if counts.is_empty() {
                first.push(failure);
            }
            *counts.entry(words).or_default() += 1;
        }
        first
    }

    /// Prints a line for each test that failed.
    fn print(&self, settings: &[Setting]) {
        for ((package, name, test), counts) in &self.failures {
            let count = |setting: &Setting| {
                let words = setting.words();
                let run = (package.clone(), name.clone(), words);
                let failed = counts.get(words).unwrap_or(&0);
                let runs = self.runs.get(&run).unwrap_or(&0);
                format!("{words} {failed} of {runs}")
            };
            let counts: Vec<_> = settings.iter().map(count).collect();
            say!("{package} {name} {test}: {}", counts.join(", "));
        }
    }
}
