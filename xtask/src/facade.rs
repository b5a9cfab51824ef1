//! `cargo xtask facade`: runs other projects' own tests with tokio, and with `tokio-facade`.
//!
//! The packages of the crates in `facade/crates.toml` contain their tests. The command copies each
//! package under `target/facade`, in a workspace with a patch: of tokio's package itself, or of the
//! façade. It fails if cargo's resolution has another tokio. Nothing of the packages is in this
//! repository.
//!
//! A test *counts* if it passes with tokio and enters a runtime there. To see this, the command
//! gives its copy of tokio a note in the one function through which each thread enters a runtime.
//! Each test runs in a process of its own, with a time limit. A test that fails runs once more,
//! alone. A test that passes with tokio may fail with the façade only if a row says why. A row
//! whose test passes is an error too.
use crate::{
    cases::{self, End, Failure},
    expected::{Expected, Kind},
    interrupt,
};
use anyhow::{Context, Result, ensure};
use list::Entry;
use project::{say, workspace};
use row::{Difference, Row};
use scratch::{Built, Tokio};
use serde::{Deserialize, Serialize};
use servers::Servers;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
    thread,
    time::Duration,
};

mod list;
mod marked;
mod page;
mod row;
mod scratch;
mod servers;

/// Options of `cargo xtask facade`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The crates whose tests run; without any, all those of `xtask/facade/crates.toml` that are
    /// not on trial.
    #[arg(value_name = "CRATE")]
    crates: Vec<String>,
    /// The most time that a test may take. A test that takes longer is killed, and counts as hung.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    limit: u64,
    /// The number of tests that run at a time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..))]
    jobs: u8,
    /// Takes the results with tokio from the last run of the same version, where there was one.
    #[arg(long)]
    keep: bool,
    /// Writes the results into the page `docs/ecosystem.md`.
    #[arg(long)]
    page: bool,
}

/// The results of the tests of a crate with one tokio.
#[derive(Default, Serialize, Deserialize)]
struct Results {
    version: String,
    /// The tests that passed, as `target::path`, each with whether it entered a runtime.
    passed: BTreeMap<String, bool>,
    /// The tests that failed, each with its most telling line.
    failed: BTreeMap<String, (End, String)>,
    /// The targets that do not compile, each with the first error.
    not_compiled: BTreeMap<String, String>,
    /// The tests that passed only when they ran for the second time.
    second: BTreeSet<String>,
    /// The number of tests that did not run, by the reason.
    skipped: BTreeMap<String, usize>,
}

/// Runs the tests of the crates that the options name. Returns `false` if a test failed and no row
/// says why, if a row's test passed, if a crate could not be built, or if the user interrupted the
/// command.
pub(crate) fn run(options: &Options) -> Result<bool> {
    ensure!(options.limit > 0, "--limit is at least 1");
    let (_, root) = workspace::load()?;
    let entries = list::read(&root, &options.crates)?;
    let mut expected = Expected::read(&root, list::FILE)?;
    let mut command = Command::new(root, options)?;
    interrupt::watch();
    let mut rows = BTreeMap::new();
    let mut passed = true;
    for entry in &entries {
        if interrupt::came() {
            break;
        }
        match command.run(entry, &mut expected) {
            Ok(Some(row)) => drop(rows.insert(entry.name.clone(), row)),
            Ok(None) => passed = false,
            Err(error) => {
                say!("{}: {error:#}", entry.name);
                passed = false;
            }
        }
    }
    if interrupt::came() {
        return Ok(false);
    }
    print_table(&rows);
    passed &= print_reasons(&rows, &expected, &entries);
    if options.page {
        page::write(&command.root, rows)?;
    }
    Ok(passed)
}

/// The state of the command.
struct Command<'a> {
    root: PathBuf,
    scratch: PathBuf,
    options: &'a Options,
    tokio: Tokio,
    facade: Tokio,
    servers: Servers,
}

impl<'a> Command<'a> {
    fn new(root: PathBuf, options: &'a Options) -> Result<Self> {
        let packages = workspace::load_all()?;
        let tokio = packages.iter().find(|package| package.name == "tokio");
        let tokio = tokio.context("the workspace does not use tokio")?;
        let (facade, _) = workspace::load_at(Some(&root.join("tokio-facade")))?;
        let scratch = root.join("target/facade");
        let folder = tokio.manifest_path.parent().context("no folder")?;
        let copy = scratch.join(tokio.name_and_version());
        Ok(Self {
            tokio: Tokio {
                name: "tokio",
                folder: marked::write(folder, copy)?,
                version: tokio.version().to_owned(),
            },
            facade: Tokio {
                name: "facade",
                folder: root.join("tokio-facade"),
                version: facade[0].version().to_owned(),
            },
            scratch,
            root,
            options,
            servers: Servers::new()?,
        })
    }

    /// Runs the tests of a crate with both. Returns `None` if a server is missing.
    fn run(&mut self, entry: &Entry, expected: &mut Expected) -> Result<Option<Row>> {
        let mut env = entry.env.clone();
        for server in &entry.servers {
            let Some(port) = self.servers.port(server)? else {
                say!("{}: the server {server} is not installed", entry.name);
                return Ok(None);
            };
            for value in env.values_mut() {
                *value = value.replace(&format!("{{{server}}}"), &port.to_string());
            }
        }
        let package = scratch::fetch(&self.scratch, entry)?;
        let kept = self.scratch.join(format!("{}.json", entry.name));
        let on_tokio = match kept_results(&kept, entry).filter(|_| self.options.keep) {
            Some(results) => results,
            None => {
                let results = self.results(entry, &package, &self.tokio, &env, None)?;
                if !interrupt::came() {
                    fs::write(&kept, serde_json::to_string(&results)?)?;
                }
                results
            }
        };
        let here = self.results(entry, &package, &self.facade, &env, Some(&on_tokio))?;
        let row = compare(entry, &on_tokio, here, expected);
        say!(
            "{} {}: {} of {} tests that count pass with the façade, and {} of {} others",
            entry.name,
            entry.version,
            row.passed,
            row.counted,
            row.others_passed,
            row.others
        );
        Ok(Some(row))
    }

    /// Builds and runs the tests of a crate with one tokio: all tests, or those that passed before.
    fn results(
        &self,
        entry: &Entry,
        package: &Path,
        tokio: &Tokio,
        env: &BTreeMap<String, String>,
        before: Option<&Results>,
    ) -> Result<Results> {
        say!(
            "{}: building with {} {}",
            entry.name,
            tokio.name,
            tokio.version
        );
        let built = scratch::build(&self.root, &self.scratch, package, entry, tokio)?;
        let mut results = Results {
            version: entry.version.clone(),
            not_compiled: built.errors.clone(),
            ..Results::default()
        };
        let mut tests = Vec::new();
        for (target, program) in &built.programs {
            for test in cases::list(program)? {
                let name = format!("{target}::{test}");
                if before.is_some_and(|before| !before.passed.contains_key(&name)) {
                    continue;
                }
                match entry.skipped(target, &test) {
                    Some(why) => *results.skipped.entry(why.to_owned()).or_default() += 1,
                    None => tests.push(Case {
                        name,
                        test,
                        program,
                    }),
                }
            }
        }
        say!("{}: running {} tests", entry.name, tests.len());
        let logs = self
            .scratch
            .join(format!("logs/{}-{}", entry.name, tokio.name));
        let _ = fs::remove_dir_all(&logs);
        fs::create_dir_all(&logs)?;
        let runner = Runner {
            built: &built,
            logs,
            env,
            limit: Duration::from_secs(self.options.limit),
        };
        let jobs = entry.jobs.unwrap_or(self.options.jobs);
        let failed = runner.run(tests, jobs, &mut results)?;
        let again: Vec<_> = failed.iter().map(|(case, _)| case.clone()).collect();
        results.second = again.iter().map(|case| case.name.clone()).collect();
        for (case, failure) in runner.run(again, 1, &mut results)? {
            results.second.remove(&case.name);
            let line = failure.line().to_owned();
            results.failed.insert(case.name, (failure.end, line));
        }
        for test in &results.second {
            say!(
                "{}: passed at the second time with {}: {test}",
                entry.name,
                tokio.name
            );
        }
        Ok(results)
    }
}

/// A test to run.
#[derive(Clone)]
struct Case<'a> {
    /// The name with the target.
    name: String,
    test: String,
    program: &'a Path,
}

struct Runner<'a> {
    built: &'a Built,
    logs: PathBuf,
    env: &'a BTreeMap<String, String>,
    limit: Duration,
}

impl Runner<'_> {
    /// Runs tests, so many at a time. Notes those that pass, and returns the others.
    fn run<'c>(
        &self,
        mut tests: Vec<Case<'c>>,
        jobs: u8,
        results: &mut Results,
    ) -> Result<Vec<(Case<'c>, Failure)>> {
        tests.reverse();
        let (tests, failed) = (Mutex::new(tests), Mutex::new(Vec::new()));
        let passed = Mutex::new(&mut results.passed);
        let run_rest = || -> Result<()> {
            while !interrupt::came() {
                let next = tests.lock().expect("no panic").pop();
                let Some(case) = next else {
                    break;
                };
                match self.one(&case)? {
                    Ok(entered) => {
                        let mut passed = passed.lock().expect("no panic");
                        passed.insert(case.name, entered);
                    }
                    Err(failure) => failed.lock().expect("no panic").push((case, failure)),
                }
            }
            Ok(())
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..jobs).map(|_| scope.spawn(run_rest)).collect();
            let mut ends = threads.into_iter().map(|thread| thread.join());
            ends.try_for_each(|end| end.expect("a thread that runs tests does not panic"))
        })?;
        Ok(failed.into_inner().expect("no panic"))
    }

    /// Runs a test. Returns whether it entered a runtime, or how it failed.
    fn one(&self, case: &Case<'_>) -> Result<Result<bool, Failure>> {
        let name = case.name.replace("::", "-").replace('/', "-");
        let (log, entered) = (
            self.logs.join(format!("{name}.txt")),
            self.logs.join(format!("{name}.entered")),
        );
        let mut env: Vec<_> = self.env.clone().into_iter().collect();
        env.push((marked::VARIABLE.into(), entered.display().to_string()));
        let folder = &self.built.folder;
        let failure = cases::run(folder, case.program, &case.test, &log, self.limit, &env)?;
        let has_entered = entered.exists();
        if has_entered {
            fs::remove_file(entered)?;
        }
        Ok(match failure {
            None => Ok(has_entered),
            Some((end, output)) => Err(Failure {
                test: case.test.clone(),
                end,
                output,
            }),
        })
    }
}

/// Returns the results that an earlier run with this version has kept.
fn kept_results(file: &Path, entry: &Entry) -> Option<Results> {
    let text = fs::read_to_string(file).ok()?;
    let results: Results = serde_json::from_str(&text).ok()?;
    (results.version == entry.version).then_some(results)
}

fn compare(entry: &Entry, tokio: &Results, here: Results, expected: &mut Expected) -> Row {
    let count = |counts: bool, passed: bool| {
        let tests = tokio
            .passed
            .iter()
            .filter(|(_, entered)| **entered == counts);
        let tests = tests.filter(|(test, _)| !passed || here.passed.contains_key(*test));
        tests.count()
    };
    let mut differences = Vec::new();
    for (test, counts) in &tokio.passed {
        if here.passed.contains_key(test) {
            continue;
        }
        let (target, path) = test.split_once("::").unwrap_or((test, ""));
        let error = here.not_compiled.get(target).cloned();
        let not_compiled = (End::NotCompiled, error.unwrap_or_default());
        let (end, line) = here.failed.get(test).cloned().unwrap_or(not_compiled);
        let file = format!("{}/{target}", entry.name);
        let row = expected.row(&file, path, end == End::NotCompiled, &line);
        differences.push(Difference {
            test: test.clone(),
            counts: *counts,
            end,
            line,
            kind: row.map(|row| row.kind),
            why: row.map(|row| row.why.clone()),
        });
    }
    Row {
        version: entry.version.clone(),
        counted: count(true, false),
        passed: count(true, true),
        others: count(false, false),
        others_passed: count(false, true),
        failed_on_tokio: tokio.failed.len(),
        not_compiled: tokio.not_compiled.keys().cloned().collect(),
        skipped: tokio.skipped.clone(),
        differences,
    }
}

fn print_table(rows: &BTreeMap<String, Row>) {
    say!("{:28} counted façade  others façade  failed with tokio", "");
    let line = |name: &str, counts: [usize; 5]| {
        let [counted, passed, others, others_passed, failed] = counts;
        say!("{name:28} {counted:>7} {passed:>6} {others:>7} {others_passed:>6} {failed:>18}");
    };
    let mut total = [0; 5];
    for (name, row) in rows {
        let counts = [
            row.counted,
            row.passed,
            row.others,
            row.others_passed,
            row.failed_on_tokio,
        ];
        line(&format!("{name} {}", row.version), counts);
        for (sum, count) in total.iter_mut().zip(counts) {
            *sum += count;
        }
        for target in &row.not_compiled {
            say!("    does not compile with tokio: {target}");
        }
        for (why, count) in &row.skipped {
            say!("    {count} did not run: {why}");
        }
    }
    line("all", total);
}

/// Prints the failures that no row explains, the counts of the others, and the rows whose tests
/// passed. Returns whether each failure has a row, and each row a failure.
fn print_reasons(rows: &BTreeMap<String, Row>, expected: &Expected, entries: &[Entry]) -> bool {
    let mut kinds: BTreeMap<Kind, usize> = BTreeMap::new();
    let mut unexplained = 0;
    for (name, row) in rows {
        for Difference {
            test,
            end,
            line,
            kind,
            ..
        } in &row.differences
        {
            match kind {
                Some(kind) => *kinds.entry(*kind).or_default() += 1,
                None => {
                    say!("no row: {name}/{test}: {end:?}: {line}");
                    unexplained += 1;
                }
            }
        }
    }
    for (kind, count) in &kinds {
        say!("{count:>3} failed as expected: {}", kind.words());
    }
    let ran = |file: &str| {
        let mut ran = entries
            .iter()
            .filter(|entry| rows.contains_key(&entry.name));
        ran.any(|entry| file.split('/').next() == Some(&entry.name))
    };
    let files: BTreeSet<_> = expected.files().filter(|file| ran(file)).collect();
    let stale = expected.stale(&files);
    for test in &stale {
        say!("has a row, but did not fail: {test}");
    }
    unexplained == 0 && stale.is_empty()
}
