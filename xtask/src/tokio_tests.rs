//! `cargo xtask tokio-tests`: runs tokio's own tests with `tokio-facade` in the place of tokio.
//!
//! tokio's package on the registry contains its tests, and cargo has fetched the package. The
//! command copies them into a scratch package in `target/tokio-tests`, which has the façade by the
//! two lines of a manifest that any program uses. Nothing of the tests is in this repository.
//!
//! A function that does not compile is turned off, so that the other tests of its file run. Each
//! test runs in a process of its own, with a time limit of its own. A test may fail only if a row
//! of `tokio_tests/expected.toml` says why. A row whose test passes is an error too.
use crate::{flaky, interrupt};
use anyhow::{Context, Result, ensure};
use expected::{Expected, Kind};
use project::{
    say,
    workspace::{self, output_of},
};
use scratch::{Scratch, TestFile};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    path::Path,
    process::Command,
    sync::Mutex,
    thread,
    time::Duration,
};

mod expected;
mod parts;
mod scratch;

/// Options of `cargo xtask tokio-tests`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Runs only the tests of these files. A name is without `.rs`.
    #[arg(long = "file", value_name = "FILE", value_delimiter = ',')]
    files: Vec<String>,
    /// The most time that a test may take. A test that takes longer is killed, and counts as hung.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    limit: u64,
    /// The number of tests that run at a time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..))]
    jobs: u8,
}

/// How a test failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Failed,
    Hung,
    NotCompiled,
}

/// A test that did not pass.
struct Failure {
    test: String,
    end: End,
    /// The output of the test, or the compiler's message.
    output: String,
}

impl Failure {
    /// Returns the most telling line of the output: the message of the last panic, or else the last
    /// line that is not empty.
    fn line(&self) -> &str {
        let line = match self.output.rsplit_once("panicked at") {
            Some((_, panic)) => panic.lines().nth(1),
            None => self.output.lines().rfind(|line| !line.is_empty()),
        };
        line.unwrap_or_default()
    }
}

/// Runs the tests that the options name. Returns `false` if a test failed and no row says why, if a
/// row's test passed, or if the user interrupted the command.
pub(crate) fn run(options: &Options) -> Result<bool> {
    ensure!(options.limit > 0, "--limit is at least 1");
    let (_, root) = workspace::load()?;
    let mut expected = Expected::read(&root)?;
    let packages = workspace::load_all()?;
    let tokio = packages.iter().find(|package| package.name == "tokio");
    let tokio = tokio.context("the workspace does not use tokio")?;
    let folder = tokio.manifest_path.parent().context("no folder")?;
    let scratch = Scratch::write(&root, folder, tokio.version(), &options.files)?;
    let (folder, files) = scratch.build()?;
    interrupt::watch();
    let results = run_all(&folder, &files, options)?;
    if interrupt::came() {
        return Ok(false);
    }
    print_table(&results);
    Ok(print_reasons(&results, &mut expected))
}

/// The results of a file.
struct Results {
    /// Whether nothing of the file compiles. Then `failures` has all its tests.
    compiles_nothing: bool,
    passed: usize,
    failures: Vec<Failure>,
}

impl Results {
    fn count(&self, end: End) -> usize {
        let with = self.failures.iter().filter(|failure| failure.end == end);
        with.count()
    }
}

fn run_all(
    folder: &Path,
    files: &BTreeMap<String, TestFile>,
    options: &Options,
) -> Result<BTreeMap<String, Results>> {
    let logs = folder.join("logs");
    fs::create_dir_all(&logs).with_context(|| format!("writing {}", logs.display()))?;
    let mut results = BTreeMap::new();
    let mut tests = Vec::new();
    for (name, file) in files {
        let off = file.off.iter().map(|(test, error)| Failure {
            test: test.clone(),
            end: End::NotCompiled,
            output: error.clone(),
        });
        let empty = Results {
            compiles_nothing: file.compiles_nothing,
            passed: 0,
            failures: off.collect(),
        };
        results.insert(name.clone(), empty);
        if let (Some(program), false) = (&file.program, file.compiles_nothing) {
            tests.extend(list(program)?.into_iter().map(|test| (name, program, test)));
        }
    }
    say!("running {} tests", tests.len());
    tests.reverse();
    let (tests, results) = (Mutex::new(tests), Mutex::new(results));
    let run_rest = || -> Result<()> {
        while !interrupt::came() {
            let next = tests.lock().expect("no panic").pop();
            let Some((file, program, test)) = next else {
                break;
            };
            let log = logs.join(format!("{file}-{}.txt", test.replace("::", "-")));
            let failure = run_one(folder, program, &test, &log, options)?;
            let mut results = results.lock().expect("no panic");
            let results = results.get_mut(file).expect("each file has results");
            match failure {
                Some((end, output)) => results.failures.push(Failure { test, end, output }),
                None => results.passed += 1,
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..options.jobs).map(|_| scope.spawn(run_rest)).collect();
        let mut ends = threads.into_iter().map(|thread| thread.join());
        ends.try_for_each(|end| end.expect("a thread that runs tests does not panic"))
    })?;
    Ok(results.into_inner().expect("no panic"))
}

/// Returns the names of the tests in a program, without those that tokio ignores.
fn list(program: &Path) -> Result<Vec<String>> {
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

/// Runs a test in a process of its own. Returns how it failed, and its output. The output of a test
/// that failed stays in `log`.
fn run_one(
    folder: &Path,
    program: &Path,
    test: &str,
    log: &Path,
    options: &Options,
) -> Result<Option<(End, String)>> {
    let file = File::create(log).with_context(|| format!("writing {}", log.display()))?;
    let mut command = Command::new(program);
    command
        .args(["--exact", test, "--test-threads=1"])
        .current_dir(folder)
        .env("CARGO_MANIFEST_DIR", folder)
        .stdout(file.try_clone()?)
        .stderr(file);
    // A process group, so that killing a hung test also kills its children.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().with_context(|| format!("running {test}"))?;
    let status = flaky::end_of(&mut child, Duration::from_secs(options.limit))?;
    if status.is_some_and(|status| status.success()) {
        fs::remove_file(log)?;
        return Ok(None);
    }
    let output = String::from_utf8_lossy(&fs::read(log)?).into_owned();
    let end = status.map_or(End::Hung, |_| End::Failed);
    Ok(Some((end, output)))
}

fn print_table(results: &BTreeMap<String, Results>) {
    const ENDS: [End; 3] = [End::Failed, End::Hung, End::NotCompiled];
    let line = |name: &str, passed: usize, counts: [usize; 3]| {
        let [failed, hung, off] = counts;
        say!("{name:32} {passed:>6} {failed:>6} {hung:>6} {off:>12}");
    };
    say!("{:32} passed failed   hung not compiled", "");
    let mut total = (0, [0; 3]);
    for (name, results) in results {
        let counts = ENDS.map(|end| results.count(end));
        if results.passed == 0 && counts == [0; 3] {
            continue; // No test of the file is for this system.
        }
        line(name, results.passed, counts);
        total.0 += results.passed;
        for (sum, count) in total.1.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    line("all", total.0, total.1);
}

/// Prints the failures that no row explains, the counts of the others, and the rows whose tests
/// passed. Returns whether each failure has a row, and each row a failure.
fn print_reasons(results: &BTreeMap<String, Results>, expected: &mut Expected) -> bool {
    let mut kinds: BTreeMap<Kind, usize> = BTreeMap::new();
    let mut unexplained = 0;
    for (file, results) in results {
        for failure in &results.failures {
            let Failure { test, end, output } = failure;
            match expected.row(file, test, results.compiles_nothing, output) {
                Some(row) => *kinds.entry(row.kind).or_default() += 1,
                None => {
                    say!("no row: {file}::{test}: {end:?}: {}", failure.line());
                    unexplained += 1;
                }
            }
        }
    }
    for (kind, count) in &kinds {
        say!("{count:>3} failed as expected: {}", kind.words());
    }
    let files: BTreeSet<_> = results.keys().cloned().collect();
    let stale = expected.stale(&files);
    for test in &stale {
        say!("has a row, but did not fail: {test}");
    }
    unexplained == 0 && stale.is_empty()
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
