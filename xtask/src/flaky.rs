//! `cargo xtask flaky`: repeats the test binaries, and counts how often each test fails.
//!
//! A test that passes once may count on time, on the allocator, or on threads being quick. So the
//! binaries run alone, beside busy loops, and on one processor, as on a machine that is slower or
//! smaller than the test author's. The tests of a binary share a process, as under `cargo test`. So
//! the state that one test leaves behind reaches the other tests. One binary runs at a time. Where
//! each binary has only one processor, as many run at a time as there are processors.
use crate::{cases, interrupt, test};
use anyhow::{Context, Result, bail, ensure};
use project::{
    say,
    workspace::{self, cargo, chosen, output_of},
};
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    fs, hint,
    io::ErrorKind::AlreadyExists,
    path::PathBuf,
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};
use tempfile::NamedTempFile;

/// Options of `cargo xtask flaky`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Number of runs of each binary in each setting.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Runs only the tests of these packages.
    #[arg(long = "package", value_name = "PACKAGE", value_delimiter = ',')]
    packages: Vec<String>,
    /// Runs only the test binaries of these names. A name is that of a library, a program, or a
    /// file in `tests/`.
    #[arg(long = "test", value_name = "BINARY", value_delimiter = ',')]
    binaries: Vec<String>,
    /// Runs only the tests whose paths contain this text.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Runs the tests only in these settings.
    #[arg(
        long = "setting",
        value_name = "SETTING",
        value_enum,
        value_delimiter = ','
    )]
    settings: Vec<Setting>,
    /// The most time that a run of a binary may take. A longer run is killed, and has failed.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    limit: u64,
    /// Runs the tests of another workspace.
    #[arg(long, value_name = "FOLDER")]
    path: Option<PathBuf>,
}

/// The conditions of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Setting {
    /// This command puts no other load on the machine.
    Alone,
    /// Two threads of this command never block during the run.
    Busy,
    /// The tests of a binary have one processor. Other binaries use the other processors.
    One,
}

const SETTINGS: [Setting; 3] = [Setting::Alone, Setting::Busy, Setting::One];

const BUSY_LOOPS: usize = 2;

/// How often a run repeats the scenario of a model. This is less often than the usual 200 times,
/// since this command repeats the runs, too.
const MODEL_RUNS: &str = "50";

/// Repeats the tests that the options name. Returns `false` when a test failed, or when the user
/// interrupted the command.
pub(crate) fn run(options: &Options) -> Result<bool> {
    ensure!(options.limit > 0, "--limit is at least 1");
    let binaries = build(options)?;
    let settings = match options.settings.is_empty() {
        true => &SETTINGS[..],
        false => &options.settings,
    };
    interrupt::watch();
    let counts = Counts::default();
    for setting in settings {
        let wrappers = match setting.wrappers() {
            Ok(wrappers) => wrappers,
            Err(why) => {
                say!("not on one processor: {why}");
                continue;
            }
        };
        let _busy = (*setting == Setting::Busy).then(|| BusyLoops::start(BUSY_LOOPS));
        let first = Instant::now();
        for run in 1..=options.runs {
            let begun = Instant::now();
            run_each(&binaries, &wrappers, options, |binary, failed| {
                counts.add(*setting, run, binary, failed);
            })?;
            if interrupt::came() {
                break;
            }
            let left = first.elapsed() / run * (options.runs - run);
            say!(
                "{}, run {run} of {}: {:.1} s, {:.0} minutes left in this setting",
                setting.words(),
                options.runs,
                begun.elapsed().as_secs_f64(),
                left.as_secs_f64() / 60.0
            );
        }
    }
    let none_failed = counts.print();
    if none_failed {
        say!("no test failed in {} binaries", binaries.len());
    }
    Ok(none_failed && !interrupt::came())
}

/// Runs each binary once, one at a time by each wrapper, and reports those of its tests that
/// failed. Stops early at Ctrl-C, or if a binary can't be run.
fn run_each(
    binaries: &[Binary],
    wrappers: &[Vec<String>],
    options: &Options,
    report: impl Fn(&Binary, Vec<String>) + Sync,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let run_rest = |wrapper| {
        // Ordering: Relaxed, as each thread only needs a binary of its own.
        while let Some(binary) = binaries.get(next.fetch_add(1, Relaxed)) {
            let failed = binary.run(wrapper, options);
            // Ordering: as above. The other threads take no more binaries.
            let failed = failed.inspect_err(|_| next.store(binaries.len(), Relaxed))?;
            report(binary, failed);
            if interrupt::came() {
                break;
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = wrappers
            .iter()
            .map(|wrapper| scope.spawn(|| run_rest(wrapper)))
            .collect();
        let mut ends = threads.into_iter().map(|thread| thread.join());
        ends.try_for_each(|end| end.expect("a thread that runs binaries does not panic"))
    })
}

/// Counts of runs and of failures.
#[derive(Default)]
struct Counts {
    /// The runs so far, for each setting and binary.
    runs: Mutex<BTreeMap<(&'static str, String), u32>>,
    /// The failures so far, for each setting, binary and test.
    failures: Mutex<BTreeMap<(&'static str, String, String), u32>>,
}

impl Counts {
    fn add(&self, setting: Setting, run: u32, binary: &Binary, failed: Vec<String>) {
        let (words, name) = (setting.words(), &binary.name);
        let mut runs = self.runs.lock().expect("no panic");
        *runs.entry((words, name.clone())).or_default() += 1;
        drop(runs);
        for failed in failed {
            say!("{words}, run {run}: {name} {failed} failed");
            let mut failures = self.failures.lock().expect("no panic");
            *failures.entry((words, name.clone(), failed)).or_default() += 1;
        }
    }

    /// Prints each failure with its count; returns whether there is none.
    fn print(self) -> bool {
        let runs = self.runs.into_inner().expect("no panic");
        let failures = self.failures.into_inner().expect("no panic");
        for ((words, binary, test), count) in &failures {
            let runs = runs[&(*words, binary.clone())];
            say!("{words}: {binary} {test}: failed in {count} of {runs} runs");
        }
        failures.is_empty()
    }
}

/// A message of cargo about a target that it has built.
#[derive(Deserialize)]
struct Built {
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// A binary with tests.
struct Binary {
    /// The name of the package's folder, a slash, and the name of the target.
    name: String,
    file: PathBuf,
    /// The folder of the package, in which the tests run.
    folder: PathBuf,
    /// The path of the files in which the outputs of failed runs are kept, without a number.
    kept: PathBuf,
    /// The folder of the shared standard library, which the tests of a procedural macro load.
    libraries: PathBuf,
}

/// Builds the tests, and returns the binaries that the options name.
fn build(options: &Options) -> Result<Vec<Binary>> {
    let (packages, root) = workspace::load_at(options.path.as_deref())?;
    chosen(packages.iter(), &options.packages, "tests")?;
    let named = |name: &String| name == "selvedge";
    let of_executor = options.packages.is_empty() || options.packages.iter().any(named);
    if options.path.is_none() && of_executor {
        ensure!(test::build_examples()?, "the examples do not build");
    }
    let mut build = cargo();
    build
        .current_dir(&root)
        .args(["test", "--no-run", "--all-features"])
        .args(["--lib", "--bins", "--tests"])
        .arg("--message-format=json-render-diagnostics")
        .args(options.packages.is_empty().then_some("--workspace"));
    for package in &options.packages {
        build.args(["--package", package]);
    }
    let built = output_of(&mut build)?;
    let libraries = output_of(Command::new("rustc").args(["--print", "target-libdir"]))?;
    let libraries = PathBuf::from(libraries.trim());
    let logs = root.join("target/flaky");
    fs::create_dir_all(&logs).with_context(|| format!("writing {}", logs.display()))?;
    let built = built.lines().map(serde_json::from_str::<Built>);
    let tests = built.flatten().filter(|built| built.profile.test);
    let mut binaries = Vec::new();
    for built in tests {
        let Some(file) = built.executable else {
            continue;
        };
        let named = &options.binaries;
        if !named.is_empty() && !named.contains(&built.target.name) {
            continue;
        }
        let folder = built.manifest_path.parent();
        let folder = folder.context("a manifest has a folder")?.to_owned();
        let package = folder.file_name().unwrap_or_default().to_string_lossy();
        binaries.push(Binary {
            name: format!("{package}/{}", built.target.name),
            kept: logs.join(file.file_name().context("a binary has a name")?),
            libraries: libraries.clone(),
            file,
            folder,
        });
    }
    ensure!(!binaries.is_empty(), "no test binary has such a name");
    Ok(binaries)
}

impl Binary {
    /// Runs the tests once. Returns the names of the tests that failed, or how else the process
    /// failed.
    fn run(&self, wrapper: &[String], options: &Options) -> Result<Vec<String>> {
        // Several of these commands may run at a time, so each run has a file of its own.
        let logs = self.kept.parent().context("a file has a folder")?;
        let output = NamedTempFile::new_in(logs)
            .with_context(|| format!("writing a file in {}", logs.display()))?;
        let mut words = wrapper
            .iter()
            .map(AsRef::as_ref)
            .chain([self.file.as_os_str()]);
        let mut command = Command::new(words.next().context("a command has a program")?);
        command
            .args(words)
            .args(&options.filter)
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env("LD_LIBRARY_PATH", &self.libraries)
            .env("SELVEDGE_ITERATIONS", MODEL_RUNS)
            .stdout(output.as_file().try_clone()?)
            .stderr(output.as_file().try_clone()?);
        // Ctrl-C ends this command between two binaries, and must not make a test fail. So the
        // binary gets a process group of its own.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command.spawn();
        let mut child = child.with_context(|| format!("running {}", self.name))?;
        let Some(status) = cases::end_of(&mut child, Duration::from_secs(options.limit))? else {
            let kept = self.keep(output)?;
            return Ok(vec![format!(
                "(killed after {} s, see {kept})",
                options.limit
            )]);
        };
        if status.success() {
            return Ok(Vec::new());
        }
        let said = fs::read(output.path())?;
        let mut failed = failures(&String::from_utf8_lossy(&said));
        let kept = self.keep(output)?;
        match failed.is_empty() {
            true => failed.push(format!("({status}, see {kept})")),
            false => say!("the output of {} is in {kept}", self.name),
        }
        Ok(failed)
    }

    /// Keeps the output of a run that failed, under the first name that is free.
    fn keep(&self, mut output: NamedTempFile) -> Result<String> {
        for n in 1.. {
            let kept = self.kept.with_extension(format!("{n}.txt"));
            match output.persist_noclobber(&kept) {
                Ok(_) => return Ok(kept.display().to_string()),
                Err(failed) if failed.error.kind() == AlreadyExists => output = failed.file,
                Err(failed) => return Err(failed.into()),
            }
        }
        bail!("too many outputs are kept")
    }
}

/// Reads the names from the last list of failures that a test binary prints.
fn failures(said: &str) -> Vec<String> {
    let Some((_, list)) = said.rsplit_once("\nfailures:\n") else {
        return Vec::new();
    };
    let names = list.lines().map_while(|line| line.strip_prefix("    "));
    names.map(str::to_owned).collect()
}

impl Setting {
    fn words(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Busy => "beside busy loops",
            Self::One => "on one processor",
        }
    }

    /// Returns the commands that start a binary in this setting: one for each binary that runs at a
    /// time. An error says why the setting is not possible.
    fn wrappers(self) -> Result<Vec<Vec<String>>, String> {
        let bound = |processor: u32| {
            let words = ["taskset", "--cpu-list", &processor.to_string()];
            words.map(str::to_owned).to_vec()
        };
        match self {
            Self::Alone | Self::Busy => Ok(vec![Vec::new()]),
            Self::One => Ok(usable()?.into_iter().map(bound).collect()),
        }
    }
}

/// Returns the processors that this process may use, if a process can be bound to one.
fn usable() -> Result<Vec<u32>, String> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let usable = processors(&status).ok_or("the system names no processors")?;
    let mut bound = Command::new("taskset");
    let bound = bound.args(["--cpu-list", &usable[0].to_string(), "true"]);
    match bound.output() {
        Ok(output) if output.status.success() => Ok(usable),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(format!("taskset (of util-linux) does not start: {error}")),
    }
}

/// Returns the numbers in the value of a line such as `Cpus_allowed_list: 0-1,4`: at least one.
fn processors(status: &str) -> Option<Vec<u32>> {
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let mut all = Vec::new();
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        all.extend(first..=last);
    }
    (!all.is_empty()).then_some(all)
}

/// Threads of this process that never block. A drop ends them.
struct BusyLoops {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BusyLoops {
    fn start(count: usize) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let spin = |over: Arc<AtomicBool>| {
            // Ordering: Relaxed. The flag publishes nothing; `drop` joins the thread.
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
        // Ordering: Relaxed, as in `start`.
        self.over.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("a busy loop does not panic");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_the_names_of_the_last_list() {
        let said = "\nfailures:\n\n---- a stdout ----\nx\n\n\nfailures:\n    a\n    b::c\n\n\
                    test result: FAILED.\n";
        assert_eq!(failures(said), ["a", "b::c"]);
        assert!(failures("thread panicked").is_empty());
    }

    #[test]
    fn processors_are_read_from_the_kernels_list() {
        let of = |list| processors(&format!("Name:\tx\nCpus_allowed_list:\t{list}\nz"));
        assert_eq!(of("0-1,4"), Some(vec![0, 1, 4]));
        assert_eq!(of("3"), Some(vec![3]));
        assert_eq!(of(""), None);
        assert_eq!(processors("Name:\tx\n"), None);
    }
}
