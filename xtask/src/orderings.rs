//! `cargo xtask orderings`: is each ordering needed, and would a model notice if it were gone?
//!
//! The workspace of a crate is copied to a scratch tree, in which every atomic ordering and fence of the crate is
//! written as a choice made when the program runs ([`sites`]). Its models are built once. Each runs once without a
//! mutant, which says how long it takes and at which sites it comes by; then each mutant ([`mutants`]) runs against
//! the models that come by its site, a process each, until one fails ([`trial`]).
//!
//! A survivor is an ordering stronger than needed, or a scenario that is missing, or something that the checker can't
//! see. The last is written down with its reason in `orderings.toml` ([`list`]).
use crate::{
    loom::{self, Build},
    workspace,
};
use anyhow::{Context, Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use trial::{Bench, End, Verdict};

pub(crate) mod list;
mod mutants;
mod sites;
pub(crate) mod source;
mod tree;
mod trial;

/// Options of `cargo xtask orderings`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only these packages; all that have models by default.
    #[arg(long = "crate", value_name = "PACKAGE", value_delimiter = ',')]
    crates: Vec<String>,
    /// Only sites whose key contains this.
    #[arg(long, value_name = "TEXT")]
    site: Option<String>,
    /// Only models whose path contains this judge.
    #[arg(long, value_name = "TEXT")]
    model: Option<String>,
    /// Also the large models.
    #[arg(long)]
    full: bool,
    /// Lists the mutants and runs none.
    #[arg(long)]
    list: bool,
    /// Writes the results to a file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// A model that takes longer than this without a mutant judges none. 60, or 1800 with --full.
    #[arg(long, value_name = "SECONDS")]
    limit: Option<u64>,
    /// A mutant is given up, as a survivor, when its models together have taken so long.
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    mutant_limit: u64,
    /// Models at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Somebody else's workspace: every test of the crate is a model there.
    #[arg(long, value_name = "FOLDER", requires = "crates")]
    path: Option<PathBuf>,
    /// With --path: RUSTFLAGS under which it is modelled.
    #[arg(
        long,
        default_value = "--cfg loom",
        requires = "path",
        allow_hyphen_values = true
    )]
    rustflags: String,
    /// With --path: features in place of all.
    #[arg(long, requires = "path")]
    features: Option<String>,
    /// Only mutants of these functions: `crate/file/function`.
    #[arg(skip)]
    functions: Option<BTreeSet<String>>,
}

/// One row of the table.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Row {
    #[serde(rename = "crate")]
    pub(crate) package: String,
    pub(crate) site: String,
    line: usize,
    pub(crate) operation: String,
    pub(crate) ordering: String,
    pub(crate) mutant: String,
    end: End,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// What the model that killed it said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    said: Option<String>,
    tried: usize,
    seconds: f64,
    /// Of the tree that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) commit: Option<String>,
}

/// The function of a site: `crate/file/function` of `crate/file/function#n`.
fn function(site: &str) -> &str {
    site.split_once('#').map_or(site, |(function, _)| function)
}

impl Row {
    pub(crate) fn function(&self) -> &str {
        function(&self.site)
    }

    pub(crate) fn with_reason(&self, reason: Option<String>) -> Self {
        Self {
            reason,
            ..self.clone()
        }
    }

    /// What tells it from others, also after the source has changed.
    pub(crate) fn name(&self) -> (String, String) {
        let Self {
            operation,
            ordering,
            mutant,
            ..
        } = self;
        (
            self.site.clone(),
            format!("{operation} {ordering} -> {mutant}"),
        )
    }

    pub(crate) fn is_killed(&self) -> bool {
        matches!(self.end, End::Killed | End::Limit)
    }

    pub(crate) fn survived(&self) -> bool {
        !self.is_killed() && self.reason.is_none()
    }

    pub(crate) fn is_justified(&self) -> bool {
        !self.is_killed() && !self.survived()
    }

    pub(crate) fn fate(&self) -> String {
        match (self.end, &self.reason, &self.model) {
            (End::Killed, _, Some(model)) => format!("killed by {model}"),
            (End::Limit, _, Some(model)) => format!("killed by the limit in {model}"),
            (_, Some(reason), _) => format!("justified: {reason}"),
            (End::GivenUp, ..) => format!("SURVIVED ({} models, then given up)", self.tried),
            (End::Unreached, ..) => "SURVIVED (no model comes by)".into(),
            _ => format!("SURVIVED ({} models)", self.tried),
        }
    }
}

impl Options {
    /// Of some crates, or all; `list`: the mutants alone.
    pub(crate) fn of(crates: Vec<String>, list: bool) -> Self {
        Self {
            crates,
            site: None,
            model: None,
            full: false,
            list,
            json: None,
            limit: None,
            mutant_limit: 120,
            jobs: 2,
            path: None,
            rustflags: String::new(),
            features: None,
            functions: None,
        }
    }

    /// The same, of these functions only.
    pub(crate) fn only(self, functions: BTreeSet<String>) -> Self {
        let functions = Some(functions);
        Self { functions, ..self }
    }
}

/// Runs the mutants; false when one survives, or the list names what is gone or needs no reason.
pub(crate) fn run(options: &Options) -> Result<bool> {
    ensure!(options.limit != Some(0), "--limit is at least 1");
    ensure!(options.mutant_limit > 0, "--mutant-limit is at least 1");
    workspace::writable(options.json.as_deref())?;
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
        let json = serde_json::to_string_pretty(&results.rows)?;
        fs::write(file, json).with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(report(&results.rows, &results.stale, &results.unreached))
}

/// What a run gives.
pub(crate) struct Results {
    pub(crate) rows: Vec<Row>,
    /// Entries of `orderings.toml` about what is gone.
    pub(crate) stale: Vec<String>,
    /// Orderings that are written so that no mutant of them can be made.
    pub(crate) unreached: Vec<String>,
}

pub(crate) fn results(options: &Options) -> Result<Results> {
    ensure!(options.jobs > 0, "--jobs is at least 1");
    let (packages, root) = workspace::load_at(options.path.as_deref())?;
    let chosen = choose(options, &packages)?;
    let list = list::List::read(&root.join("orderings.toml"))?;
    let (mut rows, mut stale, mut unreached) = (Vec::new(), Vec::new(), Vec::new());
    if options.crates.is_empty() {
        let all: Vec<_> = chosen.iter().map(|package| package.name.as_str()).collect();
        stale.extend(list.strangers(&all));
    }
    for package in chosen {
        let found = prepare(options, package, &root, &list)?;
        let names = [package.name.clone()];
        stale.extend(list.stale(&found.sites, &names));
        unreached.extend(found.unreached.iter().cloned());
        rows.extend(judge(options, package, &root, &found, &list)?);
    }
    Ok(Results {
        rows,
        stale,
        unreached,
    })
}

fn choose<'a>(
    options: &Options,
    packages: &'a [workspace::Package],
) -> Result<Vec<&'a workspace::Package>> {
    // The shim is what the models run on; its own atomics are not in them.
    let ours = |package: &&workspace::Package| package.is_modelled() && package.name != "sync-shim";
    let foreign = options.path.is_some();
    let all: Vec<_> = packages
        .iter()
        .filter(|package| foreign || ours(package))
        .collect();
    for name in &options.crates {
        ensure!(
            all.iter().any(|package| package.name == *name),
            "no crate {name} here; there are {}",
            all.iter()
                .map(|package| package.name.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        );
    }
    let named = |package: &&workspace::Package| {
        options.crates.is_empty() || options.crates.contains(&package.name)
    };
    Ok(all.into_iter().filter(named).collect())
}

fn flags(options: &Options) -> String {
    match options.path {
        None => format!("{} --cap-lints allow", loom::FLAGS),
        Some(_) => format!("{} --cap-lints allow", options.rustflags),
    }
}

fn scratch(root: &Path, package: &str) -> PathBuf {
    root.join("target/orderings").join(package)
}

/// Writes the scratch tree.
fn prepare(
    options: &Options,
    package: &workspace::Package,
    root: &Path,
    list: &list::List,
) -> Result<sites::Found> {
    let features = match &options.features {
        None => package.features(),
        Some(features) => features.split(',').map(str::to_owned).collect(),
    };
    let cfg = source::Cfg::of(&flags(options).replace("--cap-lints allow", ""), &features)?;
    let lib = package
        .lib()
        .with_context(|| format!("{} has no library", package.name))?;
    let modules = source::modules(lib, &cfg)?;
    let listed: Vec<_> = list
        .structural
        .iter()
        .filter(|entry| list::of(&entry.site, &package.name))
        .cloned()
        .collect();
    let found = sites::rewrite(&package.name, &modules, &cfg, &listed)?;
    let tree = scratch(root, &package.name).join("tree");
    tree::copy(root, &tree)?;
    let folder = lib.parent().context("a root has a folder")?;
    let base = tree.join(
        folder
            .strip_prefix(root)
            .context("the crate is not below its workspace")?,
    );
    for (file, text) in &found.files {
        fs::write(base.join(file), text)?;
    }
    let rewritten = base.join(lib.file_name().context("a file has a name")?);
    let choice = include_str!("orderings/choice.rs")
        .replace("; SITES]", &format!("; {}]", found.sites.len()));
    let text = fs::read_to_string(&rewritten)?;
    fs::write(&rewritten, format!("{text}\n{choice}"))?;
    Ok(found)
}

/// Builds the tree and runs its mutants.
fn judge(
    options: &Options,
    package: &workspace::Package,
    root: &Path,
    found: &sites::Found,
    list: &list::List,
) -> Result<Vec<Row>> {
    let wanted = |site: &sites::Site| {
        let site = site.key.as_str();
        options
            .site
            .as_deref()
            .is_none_or(|text| site.contains(text))
            && (options.functions.as_ref()).is_none_or(|all| all.contains(function(site)))
    };
    let mutants: Vec<_> = found
        .sites
        .iter()
        .enumerate()
        .filter(|(_, site)| wanted(site))
        .flat_map(|(number, site)| {
            site.mutants
                .iter()
                .map(move |how| (number, site, how.as_str()))
        })
        .collect();
    let commit = workspace::commit(root);
    let verdicts = if options.list || mutants.is_empty() {
        let none = Verdict {
            end: End::Unreached,
            by: None,
            said: None,
            tried: 0,
            seconds: 0.0,
        };
        vec![none; mutants.len()]
    } else {
        run_mutants(options, package, root, &mutants)?
    };
    Ok(mutants
        .iter()
        .zip(verdicts)
        .map(|(&(_, site, how), verdict)| Row {
            package: package.name.clone(),
            site: site.key.clone(),
            line: site.line,
            operation: site.operation.clone(),
            ordering: site
                .written
                .map_or_else(|| "-".into(), |order| order.to_string()),
            mutant: how.into(),
            end: verdict.end,
            model: verdict.by,
            reason: list.reason(site, how).map(str::to_owned),
            said: verdict.said,
            tried: verdict.tried,
            seconds: verdict.seconds,
            commit: Some(commit.clone()),
        })
        .collect())
}

fn run_mutants(
    options: &Options,
    package: &workspace::Package,
    root: &Path,
    mutants: &[(usize, &sites::Site, &str)],
) -> Result<Vec<Verdict>> {
    let scratch = scratch(root, &package.name);
    let ours = options.path.is_none();
    let build = Build {
        release: true,
        root: &scratch.join("tree"),
        target: &root.join("target/orderings/build"),
        flags: &flags(options),
        of_members: false,
        features: options.features.as_deref(),
        targets: if ours || !package.has_tests() {
            loom::LIB
        } else {
            loom::ALL
        },
    };
    let mut models = Vec::new();
    for binary in build.binaries(&package.name)? {
        models.extend(if ours {
            loom::list(&package.name, binary)?
        } else {
            loom::tests(&package.name, &binary)?
        });
    }
    models.retain(|model| {
        let named = options
            .model
            .as_ref()
            .is_none_or(|text| model.name.contains(text.as_str()));
        named && (options.full || !model.is_large())
    });
    let limit = options
        .limit
        .unwrap_or(if options.full { 1_800 } else { 60 });
    let remembered = scratch.join("killers.json");
    let mut killers = fs::read(&remembered)
        .ok()
        .and_then(|text| serde_json::from_slice::<trial::Killers>(&text).ok())
        .unwrap_or_default();
    let bench = Bench {
        jobs: options.jobs,
        limit: Duration::from_secs(limit),
        mutant_limit: Duration::from_secs(options.mutant_limit),
        ours,
        scratch: &scratch,
        killers: &killers,
    };
    let bar = ProgressBar::new(mutants.len() as u64).with_message(package.name.clone());
    bar.set_style(ProgressStyle::with_template(
        "{msg}: {pos} of {len} mutants, {elapsed}",
    )?);
    let judges = bench.judges(models)?;
    ensure!(
        !judges.is_empty(),
        "{} has no model that could judge",
        package.name
    );
    let verdicts = bench.verdicts(mutants, &judges, || bar.inc(1));
    bar.finish_and_clear();
    let verdicts = verdicts?;
    for ((_, site, how), verdict) in mutants.iter().zip(&verdicts) {
        if let (End::Killed, Some(model)) = (verdict.end, &verdict.by) {
            killers.insert(trial::mutant_name(&site.key, how), model.clone());
        }
    }
    fs::write(&remembered, serde_json::to_string_pretty(&killers)?)
        .with_context(|| format!("writing {}", remembered.display()))?;
    Ok(verdicts)
}

/// Prints the table; true when all is well.
fn report(rows: &[Row], stale: &[String], unreached: &[String]) -> bool {
    let width = |of: fn(&Row) -> usize| rows.iter().map(of).max().unwrap_or(0);
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
    let all_judged = all_are_choices(unreached);
    let listed_well = list_fits(rows, stale);
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
    survived == 0 && listed_well && all_judged
}

/// Whether there is a mutant of every ordering. Says of which there is none.
pub(crate) fn all_are_choices(unreached: &[String]) -> bool {
    for what in unreached {
        say!("NOT A CHOICE: no mutant can be made of {what}");
    }
    unreached.is_empty()
}

/// Whether all that `orderings.toml` tells of is there, and needs a reason where it has one. Says what isn't.
pub(crate) fn list_fits(rows: &[Row], stale: &[String]) -> bool {
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
