//! `cargo xtask orderings`: checks that each ordering is needed. With a weaker one a model must
//! fail.
//!
//! The command finds the calls of a crate's atomics in the crate's text ([`sites`]), and builds the
//! crate's models once. Each atomic operation goes through sync-shim, which records the operations
//! of a model, and weakens the operation that the environment names. Each model runs once without a
//! mutant. That run also measures the model's time. Then each mutant ([`mutants`]) runs against the
//! models that reach its call, one process for each model, until a model fails ([`trial`]).
//!
//! `orderings.toml` also lists changes of the source, and functions with fences, of which each call
//! has a mutant without the fence ([`helpers`]). One copy of the workspace ([`tree`]) contains all
//! these changes. Its models run with the change that the environment names.
//!
//! A mutant survives if the ordering is stronger than needed, if a scenario is missing, or if the
//! checker can't see the difference. In the last case, `orderings.toml` lists the mutant with a
//! reason ([`list`]).
use crate::{
    command_line, jobs,
    loom::{self, Build, Speed},
    results,
};
use anyhow::{Context, Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use project::{
    say,
    workspace::{self, Package},
};
use sites::Found;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use trial::{Bench, End, Verdict};

mod helpers;
pub(crate) mod list;
mod mutants;
mod row;
mod scope;
mod sites;
mod tree;
mod trial;

use mutants::Mutant;
pub(crate) use row::Row;
use row::function;

/// Options of `cargo xtask orderings`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Runs only the mutants of these packages. By default, of all packages that have models.
    #[arg(long = "crate", value_name = "PACKAGE", value_delimiter = ',')]
    crates: Vec<String>,
    /// Runs only the mutants of sites whose key contains this text.
    #[arg(long, value_name = "TEXT")]
    site: Option<String>,
    /// Judges the mutants only by models whose path contains this text.
    #[arg(long, value_name = "TEXT")]
    model: Option<String>,
    /// Also runs the large models.
    #[arg(long)]
    full: bool,
    /// Lists the mutants and runs none.
    #[arg(long)]
    list: bool,
    /// Writes the results to a file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Judges mutants only by models that take at most this many seconds without a mutant. 60 by
    /// default, or 1800 with --full.
    #[arg(long, value_name = "SECONDS")]
    limit: Option<u64>,
    /// Gives a mutant up, as a survivor, once its models have taken this many seconds together.
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    mutant_limit: u64,
    /// Number of models that run at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Runs the mutants of another workspace, whose models run on `sync-shim`.
    #[arg(long, value_name = "FOLDER", requires = "crates")]
    path: Option<PathBuf>,
    /// Runs only the mutants of these functions: `crate/file/function`.
    #[arg(skip)]
    functions: Option<BTreeSet<String>>,
}

impl Options {
    /// Selects the models that judge the mutants of a package.
    fn models_of(&self, package: &Package) -> loom::Options {
        let mut models: loom::Options = command_line(&format!("--crate {}", package.name));
        models.model.clone_from(&self.model);
        models.path.clone_from(&self.path);
        models.full = self.full;
        models
    }

    /// Selects the mutants of these functions only.
    pub(crate) fn only(self, functions: BTreeSet<String>) -> Self {
        let functions = Some(functions);
        Self { functions, ..self }
    }
}

/// Runs the mutants. Returns `false` when a mutant survives, when an ordering can have no mutant,
/// or when an entry of the list names something that is gone or needs no reason.
pub(crate) fn run(options: &Options) -> Result<bool> {
    ensure!(options.limit != Some(0), "--limit is at least 1");
    ensure!(options.mutant_limit > 0, "--mutant-limit is at least 1");
    workspace::check_writable(options.json.as_deref())?;
    let results = results(options)?;
    ensure!(
        options.site.is_none() || !results.rows.is_empty(),
        "no mutant's site has that in its key; --list shows all"
    );
    if options.list {
        for row in &results.rows {
            say!(
                "{} {} {} -> {}",
                row.site,
                row.operation,
                row.ordering,
                row.mutant
            );
        }
        return Ok(true);
    }
    if let Some(file) = &options.json {
        results::write_json(file, &results.rows)?;
    }
    Ok(report(&results.rows, &results.stale, &results.unreached))
}

/// The result of a run.
#[derive(Default)]
pub(crate) struct Results {
    pub(crate) rows: Vec<Row>,
    /// Entries of `orderings.toml` whose site or mutant is gone.
    pub(crate) stale: Vec<String>,
    /// Orderings that can have no mutant, and atomic calls that a model makes but the source text
    /// does not show.
    pub(crate) unreached: Vec<String>,
}

pub(crate) fn results(options: &Options) -> Result<Results> {
    ensure!(options.jobs > 0, "--jobs is at least 1");
    let (packages, root) = workspace::load_at(options.path.as_deref())?;
    // `sync-shim` is left out because its own atomics are not in the models. `adopt` is left out
    // because most atomics of its kits are std's, as in their hosts.
    let ours = |package: &&Package| {
        let name = package.name.as_str();
        package.is_modelled() && !["sync-shim", "adopt"].contains(&name)
    };
    let modelled = packages.iter();
    let modelled = modelled.filter(|package| options.path.is_some() || ours(package));
    let modelled: Vec<_> = modelled.collect();
    let chosen = workspace::chosen(modelled.iter().copied(), &options.crates, "models")?;
    let list = list::List::read(&root.join("orderings.toml"))?;
    let mut results = Results::default();
    if options.crates.is_empty() {
        let all: Vec<_> = chosen.iter().map(|package| package.name.as_str()).collect();
        results.stale.extend(list.of_unknown_crates(&all));
    }
    // The copy of the workspace has the changes of all crates, not only of the chosen ones. So a
    // later run, with other crates, need not build the copy again.
    let (mut crates, changed) = find_sites(&modelled, &root, &list, &mut results)?;
    for package in chosen {
        let entry = crates.iter_mut().find(|(name, _)| *name == package.name);
        let (_, found) = entry.context("a package that was searched")?;
        results.add(options, package, &root, &list, found, &changed)?;
    }
    Ok(results)
}

/// The name of each crate, and the calls and mutants found in it.
type Crates<'a> = Vec<(&'a str, Found)>;

/// Finds the calls and mutants of the packages. Also returns the files of which the copy of the
/// workspace has another text.
fn find_sites<'a>(
    packages: &[&'a Package],
    root: &Path,
    list: &list::List,
    results: &mut Results,
) -> Result<(Crates<'a>, Vec<(PathBuf, String)>)> {
    let find = |package: &&'a Package| {
        let lib = package.lib();
        let lib = lib.with_context(|| format!("{} has no library", package.name))?;
        Ok((
            package.name.as_str(),
            sites::find(&package.name, lib, root)?,
        ))
    };
    let mut crates = packages.iter().map(find).collect::<Result<Crates<'_>>>()?;
    let homes: Vec<_> = list
        .helpers()
        .map(|helper| helpers::Home::find(helper, &crates))
        .collect::<Result<_>>()?;
    let mut edits = tree::Edits::default();
    for (name, found) in &mut crates {
        let listed = list.structural.iter();
        let listed: Vec<_> = listed.filter(|entry| list::of(&entry.site, name)).collect();
        found.change(&listed, &mut edits)?;
        if !list.helper.is_empty() {
            let unlisted = helpers::unlisted(found, &list.helper);
            let fault = |function| format!("one call alone of {function}, which is no [[helper]]");
            results.unreached.extend(unlisted.iter().map(fault));
        }
    }
    let depends_on = |name: &str, other: &str| {
        let mut packages = packages.iter();
        let package = packages.find(|package| package.name == name);
        package.is_some_and(|package| {
            package
                .dependencies
                .iter()
                .any(|dependency| dependency.name == other)
        })
    };
    let called = helpers::add(&mut crates, depends_on, &homes, &mut edits)?;
    let no_call = list.helpers().filter(|helper| {
        let is_called = called.contains(&helper.function.as_str());
        !is_called && !helper.calls.is_empty()
    });
    let stale = no_call.map(|helper| format!("lists calls of {}", helper.function));
    results.stale.extend(stale);
    Ok((crates, edits.texts(root)?))
}

impl Results {
    /// Runs the mutants of a package, or lists them.
    fn add(
        &mut self,
        options: &Options,
        package: &Package,
        root: &Path,
        list: &list::List,
        found: &mut Found,
        changed: &[(PathBuf, String)],
    ) -> Result<()> {
        self.stale.extend(list.stale(&found.mutants, &package.name));
        self.unreached.append(&mut found.unreached);
        let wanted = |mutant: &&Mutant| {
            let text = options.site.as_deref().unwrap_or_default();
            let functions = options.functions.as_ref();
            mutant.site.contains(text)
                && functions.is_none_or(|all| all.contains(function(&mutant.site)))
        };
        let mutants: Vec<_> = found.mutants.iter().filter(wanted).collect();
        let verdicts = if options.list || mutants.is_empty() {
            vec![Verdict::default(); mutants.len()]
        } else {
            let (verdicts, unreached) =
                run_mutants(options, package, root, found, &mutants, changed)?;
            self.unreached.extend(unreached);
            verdicts
        };
        let commit = workspace::commit(root);
        let rows = mutants.iter().zip(verdicts);
        self.rows.extend(rows.map(|(mutant, verdict)| Row {
            package: package.name.clone(),
            site: mutant.site.clone(),
            line: mutant.line,
            operation: mutant.operation.clone(),
            ordering: mutant.ordering(),
            mutant: mutant.how.clone(),
            end: verdict.end,
            model: verdict.by,
            reason: list.reason(mutant).map(str::to_owned),
            said: verdict.said,
            tried: verdict.tried,
            seconds: verdict.seconds,
            commit: Some(commit.clone()),
        }));
        Ok(())
    }
}

/// Returns the verdicts, and the atomic calls that models make but the source text does not show.
fn run_mutants(
    options: &Options,
    package: &Package,
    root: &Path,
    found: &Found,
    mutants: &[&Mutant],
    changed: &[(PathBuf, String)],
) -> Result<(Vec<Verdict>, BTreeSet<String>)> {
    let scratch = root.join("target/orderings");
    fs::create_dir_all(&scratch).with_context(|| format!("making {}", scratch.display()))?;
    let models = loom::find(&options.models_of(package))?;
    let changed = if mutants.iter().any(|mutant| mutant.is_change) {
        let tree = scratch.join("tree");
        tree::copy(root, &tree, changed)?;
        let build = Build {
            speed: Speed::Explored,
            root: &tree,
            target: &scratch.join("build"),
            flags: &format!("{} --cap-lints allow", loom::FLAGS),
            of_members: false,
            targets: loom::LIB,
        };
        let (packages, _) = workspace::load_at(Some(&tree))?;
        let changed: Vec<_> = packages.iter().filter(|p| p.name == package.name).collect();
        build.binaries(&changed)?.pop().map(|(_, binary)| binary)
    } else {
        None
    };
    let known = results::earlier::<Vec<Row>>(&root.join("docs/verification/mutants.json"))?;
    let known = known.unwrap_or_default();
    let killers: BTreeMap<_, _> = (known.iter())
        .filter_map(|row| Some((row.name(), row.model.as_deref()?)))
        .collect();
    let bench = Bench {
        jobs: options.jobs,
        limit: Duration::from_secs(
            options
                .limit
                .unwrap_or(if options.full { 1_800 } else { 60 }),
        ),
        mutant_limit: Duration::from_secs(options.mutant_limit),
        scratch: &scratch,
        changed,
        killer: &|mutant| killers.get(&mutant.row_name()).copied(),
    };
    let judges = bench.judges(&models)?;
    ensure!(
        !judges.is_empty(),
        "{} has no model that could judge",
        package.name
    );
    let calls = judges.iter().flat_map(|judge| &judge.calls);
    let unlisted = calls.filter_map(|call| found.unlisted(call)).collect();
    let bar = ProgressBar::new(mutants.len() as u64).with_message(package.name.clone());
    bar.set_style(ProgressStyle::with_template(
        "{msg}: {pos} of {len} mutants, {elapsed}",
    )?);
    let verdicts = jobs::each(options.jobs, mutants, |mutant| {
        let verdict = bench.verdict(mutant, &judges);
        bar.inc(1);
        verdict
    });
    bar.finish_and_clear();
    Ok((verdicts?, unlisted))
}

/// Prints the table. Returns whether it shows no mistake.
fn report(rows: &[Row], stale: &[String], unreached: &[String]) -> bool {
    let width = |of_row: fn(&Row) -> usize| rows.iter().map(of_row).max().unwrap_or(0);
    let sites = width(|row| row.site.len());
    let operations = width(|row| row.operation.len());
    for row in rows {
        say!(
            "{:sites$}  {:operations$}  {:7}  {:8}  {:5.1} s  {}",
            row.site,
            row.operation,
            row.ordering,
            row.mutant,
            row.seconds,
            row.fate()
        );
    }
    let all_are_reached = has_no_unreached(unreached);
    let list_is_exact = list_is_exact(rows, stale);
    let killed = rows.iter().filter(|row| row.is_killed()).count();
    let by_limit = rows.iter().filter(|row| row.end == End::Limit).count();
    let survived = rows.iter().filter(|row| row.survived()).count();
    let justified = rows.len() - killed - survived;
    if by_limit > 0 {
        say!("{by_limit} of the killed by the limit");
    }
    say!(
        "{} mutants, {killed} killed, {justified} justified, {survived} survived",
        rows.len()
    );
    survived == 0 && list_is_exact && all_are_reached
}

/// Returns whether every ordering can have a mutant, and each atomic call is in the source text.
/// Prints the others.
pub(crate) fn has_no_unreached(unreached: &[String]) -> bool {
    for what in unreached {
        say!("NOT A CHOICE: no mutant can be made of {what}");
    }
    unreached.is_empty()
}

/// Returns whether each entry of `orderings.toml` names something that exists, and gives a reason
/// only where a reason is needed. Prints each entry for which this is false.
pub(crate) fn list_is_exact(rows: &[Row], stale: &[String]) -> bool {
    for what in stale {
        say!("STALE: orderings.toml {what}, which is gone");
    }
    let needless = rows
        .iter()
        .filter(|row| row.is_killed() && row.reason.is_some());
    let needless = needless.inspect(|row| {
        say!(
            "NEEDLESS: orderings.toml justifies {} {}",
            row.site,
            row.mutant
        )
    });
    needless.count() == 0 && stale.is_empty()
}
