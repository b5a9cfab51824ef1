//! `cargo xtask facade`: runs other projects' own tests with tokio, and with `tokio-facade`.
//!
//! The packages of the crates in `facade/crates.toml` contain their tests. The command copies each
//! package under `target/facade`, in a workspace with a patch: of tokio's package itself, or of the
//! façade. It fails if cargo's resolution has another tokio. Nothing of the packages is in this
//! repository.
//!
//! A test *counts* if it passes with tokio and enters a runtime there. To see this, the command
//! gives its copy of tokio a note in the one function through which each thread enters a runtime.
//! Each test runs in a process of its own, with a time limit. A test that leaves more descriptors,
//! threads or memory than with tokio fails. A test that fails runs once more, alone. A test that
//! passes with tokio may fail with the façade only if a row says why. A row whose test passes is an
//! error too. A crate of which no test counts is an error.
use crate::{cases, expected::Expected, interrupt};
use anyhow::{Context, Result, ensure};
use left::Counter;
use list::Entry;
use project::{say, workspace};
use results::Results;
use row::Row;
use runner::{Case, Runner};
use scratch::Tokio;
use servers::Servers;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

mod left;
mod list;
mod marked;
mod page;
mod results;
mod row;
mod runner;
mod scratch;
mod servers;
mod table;

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
    /// Builds with AddressSanitizer, which also finds leaks, and the nightly toolchain. A test that
    /// it complains about with tokio is not compared.
    #[arg(long, requires = "crates")]
    sanitize: bool,
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
    table::print(&rows);
    passed &= table::print_reasons(&rows, &expected, &entries);
    if options.page {
        page::write(&command.root, rows, options.sanitize)?;
    }
    Ok(passed)
}

/// The state of the command.
struct Command<'a> {
    root: PathBuf,
    /// The folder of the copies, of the builds and of the kept results.
    scratch: PathBuf,
    options: &'a Options,
    tokio: Tokio,
    facade: Tokio,
    counter: Counter,
    servers: Servers,
}

impl<'a> Command<'a> {
    fn new(root: PathBuf, options: &'a Options) -> Result<Self> {
        let packages = workspace::load_all()?;
        let tokio = packages.iter().find(|package| package.name == "tokio");
        let tokio = tokio.context("the workspace does not use tokio")?;
        let (facade, _) = workspace::load_at(Some(&root.join("tokio-facade")))?;
        let scratch = match options.sanitize {
            true => root.join("target/facade/sanitize"),
            false => root.join("target/facade"),
        };
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
            counter: Counter::build(&root, &scratch)?,
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
        let row = row::compare(entry, &on_tokio, &here, expected)?;
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
        let built = scratch::build(&self.scratch, package, entry, tokio, self.options.sanitize)?;
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
            counter: &self.counter,
            logs,
            env,
            limit: Duration::from_secs(self.options.limit),
            before,
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

/// Returns the results that an earlier run with this version has kept.
fn kept_results(file: &Path, entry: &Entry) -> Option<Results> {
    let text = fs::read_to_string(file).ok()?;
    let results: Results = serde_json::from_str(&text).ok()?;
    (results.version == entry.version).then_some(results)
}
