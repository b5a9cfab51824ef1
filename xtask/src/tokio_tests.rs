//! `cargo xtask tokio-tests`: runs tokio's own tests with `tokio-facade` in the place of tokio.
//!
//! tokio's package on the registry contains its tests, and cargo has fetched the package. The
//! command copies them into a scratch package in `target/tokio-tests`, which has the façade by the
//! two lines of a manifest that any program uses. Nothing of the tests is in this repository.
//!
//! A function that does not compile is turned off, so that the other tests of its file run. Each
//! test runs in a process of its own, with a time limit of its own. A test may fail only if a row
//! of `tokio_tests/expected.toml` says why. A row whose test passes is an error too.
use crate::{
    cases::{self, End, Failure},
    expected::{Expected, Kind},
    interrupt,
};
use anyhow::{Context, Result, ensure};
use project::{say, workspace};
use scratch::{Scratch, TestFile};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::Mutex,
    thread,
    time::Duration,
};

mod parts;
mod scratch;

/// The rows of the tests that may fail.
const ROWS: &str = "xtask/tokio_tests/expected.toml";

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

/// Runs the tests that the options name. Returns `false` if a test failed and no row says why, if a
/// row's test passed, or if the user interrupted the command.
pub(crate) fn run(options: &Options) -> Result<bool> {
    ensure!(options.limit > 0, "--limit is at least 1");
    let (_, root) = workspace::load()?;
    let mut expected = Expected::read(&root, ROWS)?;
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
            tests.extend(
                cases::list(program)?
                    .into_iter()
                    .map(|test| (name, program, test)),
            );
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
            let limit = Duration::from_secs(options.limit);
            let failure = cases::run(folder, program, &test, &log, limit, &[])?;
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
