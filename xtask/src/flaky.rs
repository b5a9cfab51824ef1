//! `cargo xtask flaky`: repeats the test binaries, and counts how often each test fails.
//!
//! A test that passes once may count on time, on the allocator, or on threads being quick. So the
//! binaries run alone, beside busy loops, and on one processor, as on a machine that is slower or
//! smaller than the test author's. One binary runs at a time, and its tests share a process, as
//! under `cargo test`. So the state that one test leaves behind reaches the other tests.
use crate::interrupt;
use anyhow::{Context, Result, ensure};
use project::{
    say,
    workspace::{self, cargo, chosen, output_of},
};
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    fs::{self, File},
    hint,
    path::PathBuf,
    process::{Child, Command, ExitStatus},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

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
    /// The tests may use one processor only.
    One,
}

const SETTINGS: [Setting; 3] = [Setting::Alone, Setting::Busy, Setting::One];

const BUSY_LOOPS: usize = 2;

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
    let mut failures = BTreeMap::<String, u32>::new();
    for setting in settings {
        let wrapper = match setting.wrapper() {
            Ok(wrapper) => wrapper,
            Err(why) => {
                say!("not on one processor: {why}");
                continue;
            }
        };
        let _busy = (*setting == Setting::Busy).then(|| BusyLoops::start(BUSY_LOOPS));
        for run in 1..=options.runs {
            let begun = Instant::now();
            for binary in &binaries {
                for failed in binary.run(&wrapper, options)? {
                    let words = setting.words();
                    say!("{words}, run {run}: {} {failed} failed", binary.name);
                    *failures
                        .entry(format!("{words}: {} {failed}", binary.name))
                        .or_default() += 1;
                }
                if interrupt::came() {
                    break;
                }
            }
            let seconds = begun.elapsed().as_secs_f64();
            say!("{}, run {run}: {seconds:.1} s", setting.words());
            if interrupt::came() {
                break;
            }
        }
    }
    for (test, count) in &failures {
        say!("{test}: failed in {count} of {} runs", options.runs);
    }
    if failures.is_empty() {
        say!("no test failed in {} binaries", binaries.len());
    }
    Ok(failures.is_empty() && !interrupt::came())
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
    /// The file to which the binary's output goes.
    output: PathBuf,
    /// The folder of the shared standard library, which the tests of a procedural macro load.
    libraries: PathBuf,
}

/// Builds the tests, and returns the binaries that the options name.
fn build(options: &Options) -> Result<Vec<Binary>> {
    let (packages, root) = workspace::load_at(options.path.as_deref())?;
    chosen(packages.iter(), &options.packages, "tests")?;
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
            output: logs.join(file.file_name().context("a binary has a name")?),
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
        let output = File::create(&self.output)
            .with_context(|| format!("writing {}", self.output.display()))?;
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
            .stdout(output.try_clone()?)
            .stderr(output);
        // Ctrl-C ends this command between two binaries, and must not make a test fail. So the
        // binary gets a process group of its own.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command.spawn();
        let mut child = child.with_context(|| format!("running {}", self.name))?;
        let Some(status) = end_of(&mut child, Duration::from_secs(options.limit))? else {
            let kept = self.keep()?;
            return Ok(vec![format!(
                "(killed after {} s, see {kept})",
                options.limit
            )]);
        };
        if status.success() {
            return Ok(Vec::new());
        }
        let said = fs::read(&self.output)?;
        let mut failed = failures(&String::from_utf8_lossy(&said));
        let kept = self.keep()?;
        match failed.is_empty() {
            true => failed.push(format!("({status}, see {kept})")),
            false => say!("the output of {} is in {kept}", self.name),
        }
        Ok(failed)
    }

    /// Keeps the output of a run that failed, under a name of its own.
    fn keep(&self) -> Result<String> {
        let kept = |n: &u32| self.output.with_extension(format!("{n}.txt"));
        let free = (1..).find(|n| !kept(n).exists());
        let kept = kept(&free.context("too many outputs are kept")?);
        fs::copy(&self.output, &kept)?;
        Ok(kept.display().to_string())
    }
}

/// Waits for a process. When the limit has passed, kills the process and its group, and returns
/// `None`.
fn end_of(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
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
        thread::sleep(Duration::from_millis(5));
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

    /// Returns the command that starts a binary in this setting. An error says why the setting is
    /// not possible.
    fn wrapper(self) -> Result<Vec<String>, String> {
        match self {
            Self::Alone | Self::Busy => Ok(Vec::new()),
            Self::One => Ok(["taskset", "--cpu-list", &processor()?]
                .map(str::to_owned)
                .to_vec()),
        }
    }
}

/// Finds a processor that this process may use, if a process can be bound to it.
fn processor() -> Result<String, String> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let first = first_processor(&status).ok_or("the system names no processors")?;
    let mut bound = Command::new("taskset");
    let bound = bound.args(["--cpu-list", first, "true"]).output();
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
}
