//! `cargo xtask report`: what was verified, in `docs/verification.md`.
//!
//! The results are kept in `docs/verification/`: those of the models and of the mutants by this command, which runs what is new or changed, the others by the
//! commands that make them, with `--json docs/verification/NAME.json`. The page is written from them.
use crate::{
    loom::{self, Model, Outcome, Status},
    orderings::{self, Row, list::List},
    shuttle, soak, workspace,
};
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
    time::Duration,
};

/// Options of `cargo xtask report`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Runs no model and no mutant, but says what is missing or gone. Exit 1 if something is.
    #[arg(long)]
    check: bool,
    /// Runs all models and mutants again.
    #[arg(long, conflicts_with = "check")]
    all: bool,
    /// Runs those of this package again.
    #[arg(long = "crate", value_name = "PACKAGE", conflicts_with = "check")]
    crates: Vec<String>,
    /// Models at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

impl Options {
    fn again(&self, package: &str) -> bool {
        self.all || self.crates.iter().any(|name| name == package)
    }
}

const FOLDER: &str = "docs/verification";

/// Brings the results up to date and writes the page; false when a model failed or a mutant survives.
pub(crate) fn run(options: &Options) -> Result<bool> {
    ensure!(options.jobs > 0, "--jobs is at least 1");
    if options.check {
        return is_current();
    }
    let (packages, root) = workspace::load()?;
    for name in &options.crates {
        let mut known = packages.iter().filter(|package| package.is_modelled());
        ensure!(
            known.any(|package| package.name == *name),
            "no crate {name} with models"
        );
    }
    let folder = root.join(FOLDER);
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let (mut models, new) = kept_and_new(&folder, options)?;
    let (large, small): (Vec<_>, Vec<_>) = new.into_iter().partition(Model::is_large);
    run_models(&folder, options, &mut models, small)?;
    let mutants = mutants(&folder, options)?;
    let write = |models: &Models| {
        let models: Vec<_> = models.values().cloned().collect();
        let page = page(&root, &folder, &models, &mutants)?;
        let file = root.join("docs/verification.md");
        fs::write(&file, page).with_context(|| format!("writing {}", file.display()))
    };
    // The large ones take long: whoever ends this now has a page without them.
    write(&models)?;
    run_models(&folder, options, &mut models, large)?;
    write(&models)?;
    let models: Vec<_> = models.into_values().collect();
    let failed = models.iter().filter(|model| !model.status.passes());
    let survived = mutants.iter().filter(|row| row.survived());
    for model in failed.clone() {
        say!("FAILED: {} {}", model.package, model.model);
    }
    for row in survived.clone() {
        say!("SURVIVED: {} {}", row.site, row.mutant);
    }
    Ok(failed.count() == 0 && survived.count() == 0)
}

/// Whether the page lists the models and the mutants that there are, and no others.
pub(crate) fn is_current() -> Result<bool> {
    let (_, root) = workspace::load()?;
    let folder = root.join(FOLDER);
    let listed = |list: Vec<(String, String)>| -> BTreeSet<_> { list.into_iter().collect() };
    let models: Vec<Outcome> = read(&folder, "models")?.unwrap_or_default();
    let known = models
        .into_iter()
        .map(|model| (model.package, model.model))
        .collect();
    let there = loom::find(&loom::Options::all())?
        .into_iter()
        .map(|model| (model.package, model.name))
        .collect();
    let models = compare("model", &listed(known), &listed(there));
    let known: Vec<Row> = read(&folder, "mutants")?.unwrap_or_default();
    let there = orderings::results(&orderings::Options::of(Vec::new(), true))?.rows;
    let names = |rows: &[Row]| listed(rows.iter().map(Row::name).collect());
    let mutants = compare("mutant", &names(&known), &names(&there));
    if !models || !mutants {
        say!("docs/verification.md is out of date: `cargo xtask report` runs what is new");
    }
    Ok(models && mutants)
}

fn compare(
    what: &str,
    listed: &BTreeSet<(String, String)>,
    there: &BTreeSet<(String, String)>,
) -> bool {
    for (a, b) in there.difference(listed) {
        say!("not listed: {what} {a} {b}");
    }
    for (a, b) in listed.difference(there) {
        say!("gone: {what} {a} {b}");
    }
    listed == there
}

/// Results by crate and model.
type Models = BTreeMap<(String, String), Outcome>;

/// The models' results that stay, and the models that have none.
fn kept_and_new(folder: &Path, options: &Options) -> Result<(Models, Vec<Model>)> {
    let mut kept: Models = read::<Vec<Outcome>>(folder, "models")?
        .unwrap_or_default()
        .into_iter()
        .filter(|model| model.status.passes() && !options.again(&model.package))
        .map(|model| ((model.package.clone(), model.model.clone()), model))
        .collect();
    let (mut all, mut new) = (Models::new(), Vec::new());
    for model in loom::find(&loom::Options::all())? {
        let key = (model.package.clone(), model.name.clone());
        match kept.remove(&key) {
            Some(outcome) => drop(all.insert(key, outcome)),
            None => new.push(model),
        }
    }
    Ok((all, new))
}

/// Runs models. Each result is written as soon as it is there, so that a run that is cut off goes on next time.
fn run_models(folder: &Path, options: &Options, all: &mut Models, new: Vec<Model>) -> Result<()> {
    let list = |all: &Models| -> Vec<_> { all.values().cloned().collect() };
    write_json(folder, "models", &list(all))?;
    let shared = Mutex::new(all);
    loom::run_all(new, options.jobs, Duration::from_secs(3_600), |outcome| {
        let mut all = shared.lock().expect("no job panics");
        let key = (outcome.package.clone(), outcome.model.clone());
        all.insert(key, outcome.clone());
        write_json(folder, "models", &list(&all))
    })?;
    Ok(())
}

/// The mutants' results, written a crate at a time. All mutants of a function run again of which one is new, gone, or has survived.
fn mutants(folder: &Path, options: &Options) -> Result<Vec<Row>> {
    let kept: Vec<Row> = read(folder, "mutants")?.unwrap_or_default();
    let there = orderings::results(&orderings::Options::of(Vec::new(), true))?.rows;
    let crates: BTreeSet<_> = there.iter().map(|row| row.package.clone()).collect();
    let mut all: Vec<Row> = (kept.iter())
        .filter(|row| crates.contains(&row.package))
        .cloned()
        .collect();
    for package in crates {
        let of = |rows: &[Row]| -> BTreeMap<_, _> {
            let rows = rows.iter().filter(|row| row.package == package);
            rows.map(|row| (row.name(), row.clone())).collect()
        };
        let (old, new) = (of(&kept), of(&there));
        let stays = |(name, row): (&_, &Row)| {
            old.get(name)
                .is_some_and(|old| old.is_killed() || row.reason.is_some())
        };
        let again = options.again(&package);
        let changed = (new.iter().filter(|&new| again || !stays(new)))
            .chain(old.iter().filter(|(name, _)| !new.contains_key(name)));
        let changed: BTreeSet<_> = changed.map(|(_, row)| row.function().to_owned()).collect();
        let mut rows = Vec::new();
        if !changed.is_empty() {
            say!("mutants of {package}, {} functions", changed.len());
            let some = orderings::Options::of(vec![package.clone()], false).only(changed);
            rows = orderings::results(&some)?.rows;
        }
        let rows = of(&rows);
        let rows: Vec<_> = (there.iter().filter(|row| row.package == package))
            .filter_map(|row| {
                let found = rows.get(&row.name()).or_else(|| old.get(&row.name()))?;
                Some(found.with_reason(row.reason.clone()))
            })
            .collect();
        all.retain(|row| row.package != package);
        all.extend(rows);
        all.sort_by(|a, b| a.package.cmp(&b.package));
        write_json(folder, "mutants", &all)?;
    }
    Ok(all)
}

fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(name).with_extension("json")
}

/// `None` when there is no such file.
fn read<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<Option<T>> {
    let file = file(folder, name);
    if !file.exists() {
        return Ok(None);
    }
    let text = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
    let value = serde_json::from_slice(&text);
    Ok(Some(
        value.with_context(|| format!("reading {}", file.display()))?,
    ))
}

fn write_json(folder: &Path, name: &str, value: &impl Serialize) -> Result<()> {
    let file = file(folder, name);
    let json = serde_json::to_string_pretty(value)? + "\n";
    fs::write(&file, json).with_context(|| format!("writing {}", file.display()))
}

fn page(root: &Path, folder: &Path, models: &[Outcome], mutants: &[Row]) -> Result<String> {
    let mut page = String::from(
        "# What was verified\n\nWritten by `cargo xtask report` from `docs/verification/`. \"Verified\" means: all executions that the model checker \
         models, for these bounded scenarios. What it can't see is listed in [sync-shim](../sync-shim/README.md), and pinned by tests.\n\n",
    );
    let rustc = Command::new("rustc").arg("--version").output();
    let rustc = rustc.context("rustc --version")?.stdout;
    writeln!(
        page,
        "{}, loom {}, shuttle {}.\n",
        String::from_utf8_lossy(&rustc).trim(),
        locked(root, "loom")?,
        locked(root, "shuttle")?
    )?;
    summary(&mut page, folder, models, mutants)?;
    let of = |bounded: bool, status: Status| {
        models
            .iter()
            .filter(move |model| model.status == status && model.bound.is_some() == bounded)
    };
    page += "## Models without a bound\n\n| crate | model | executions |\n|---|---|---:|\n";
    for model in of(false, Status::Ok) {
        let Outcome {
            package,
            model,
            executions,
            ..
        } = model;
        writeln!(page, "| {package} | {model} | {executions} |")?;
    }
    page += "\n## Models with a bound on preemptions\n\n| crate | model | bound | executions |\n|---|---|---:|---:|\n";
    for model in of(true, Status::Ok) {
        let bound = model.bound.unwrap_or_default();
        let Outcome {
            package,
            model,
            executions,
            ..
        } = model;
        writeln!(page, "| {package} | {model} | {bound} | {executions} |")?;
    }
    page += "\n## Models that fail, as they must\n\nEach holds a bug on purpose.\n\n| crate | model |\n|---|---|\n";
    for model in of(false, Status::FailedAsItMust).chain(of(true, Status::FailedAsItMust)) {
        writeln!(page, "| {} | {} |", model.package, model.model)?;
    }
    page += "\n## Mistakes by hand\n\nWhat is easily forgotten, and what notices.\n\n| mistake | site | |\n|---|---|---|\n";
    for named in List::read(&root.join("orderings.toml"))?.named {
        let is = |row: &&Row| row.site == named.site && row.mutant == named.mutant;
        let fate = mutants.iter().find(is).map_or("GONE".into(), Row::fate);
        writeln!(page, "| {} | {} | {fate} |", named.what, named.site)?;
    }
    page += "\n## Mutants\n\nEach ordering a step weaker, each fence dropped, each exchange made a store, and the changes that `orderings.toml` lists.\n\n\
             | site | operation | written | mutant | |\n|---|---|---|---|---|\n";
    for row in mutants {
        let fate = row.fate().replace('|', "\\|");
        let (site, operation, ordering, mutant) =
            (&row.site, &row.operation, &row.ordering, &row.mutant);
        writeln!(
            page,
            "| {site} | {operation} | {ordering} | {mutant} | {fate} |"
        )?;
    }
    if let Some(files) = read::<Vec<CodeMutants>>(folder, "cargo-mutants")? {
        page += "\n## Mutants of the code\n\nBy cargo-mutants, by hand: what [CONTRIBUTING](../CONTRIBUTING.md) says. The survivors and their reasons are in \
                 [cargo-mutants.json](verification/cargo-mutants.json).\n\n| file | viable | caught | by the limit | missed | of those, explained |\n|---|---:|---:|---:|---:|---:|\n";
        for file in files {
            let CodeMutants {
                file,
                viable,
                caught,
                timeout,
                missed,
                explained,
            } = file;
            writeln!(
                page,
                "| {file} | {viable} | {caught} | {timeout} | {missed} | {explained} |"
            )?;
        }
    }
    Ok(page)
}

/// What cargo-mutants has found in a file.
#[derive(Deserialize)]
struct CodeMutants {
    file: String,
    viable: u64,
    caught: u64,
    timeout: u64,
    missed: u64,
    explained: u64,
}

fn summary(page: &mut String, folder: &Path, models: &[Outcome], mutants: &[Row]) -> Result<()> {
    let sum = |bounded: bool| {
        let counted = models
            .iter()
            .filter(|model| model.bound.is_some() == bounded);
        counted.map(|model| model.executions).sum::<u64>()
    };
    let killed = mutants.iter().filter(|row| row.is_killed()).count();
    let survived = mutants.iter().filter(|row| row.survived()).count();
    writeln!(page, "| what | how much | command |\n|---|---|---|")?;
    writeln!(
        page,
        "| models | {}: {} executions without a bound, {} with one; {} failed | `cargo xtask loom --full` |",
        models.len(),
        sum(false),
        sum(true),
        models.iter().filter(|model| !model.status.passes()).count()
    )?;
    writeln!(
        page,
        "| mutants | {}: {killed} killed, {} justified, {survived} survived | `cargo xtask orderings` |",
        mutants.len(),
        mutants.len() - killed - survived
    )?;
    if let Some(done) = read::<shuttle::Done>(folder, "shuttle")? {
        let rows: Vec<_> = done
            .rows
            .iter()
            .map(|(name, row)| format!("{name} {}", row.schedules))
            .collect();
        writeln!(
            page,
            "| random schedules, seed {} | {} | `cargo xtask shuttle --full` |",
            done.seed,
            rows.join(", ")
        )?;
    }
    if let Some(clean) = read::<Vec<String>>(folder, "sanitize")? {
        writeln!(
            page,
            "| sanitizers | {}: no report | `cargo xtask sanitize --all` |",
            clean.join(", ")
        )?;
    }
    if let Some(done) = read::<soak::Done>(folder, "soak")? {
        writeln!(
            page,
            "| soak, seed {} | {:.0} minutes, {} items, memory {} to {} KiB | `cargo xtask soak --minutes {:.0}` |",
            done.seed, done.minutes, done.items, done.memory.0, done.memory.1, done.minutes
        )?;
    }
    writeln!(page)?;
    Ok(())
}

/// A dependency's version.
fn locked(root: &Path, name: &str) -> Result<String> {
    let lock = fs::read_to_string(root.join("Cargo.lock")).context("reading Cargo.lock")?;
    let lock: toml::Table = toml::from_str(&lock).context("reading Cargo.lock")?;
    let packages = lock.get("package").and_then(|all| all.as_array());
    let found = packages
        .into_iter()
        .flatten()
        .find(|package| package.get("name").and_then(|found| found.as_str()) == Some(name));
    let version = found.and_then(|package| package.get("version")?.as_str());
    Ok(version
        .with_context(|| format!("no {name} in Cargo.lock"))?
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_or_gone_makes_a_list_stale() {
        let list = |names: &[&str]| -> BTreeSet<_> {
            names.iter().map(|n| ("a".into(), (*n).into())).collect()
        };
        assert!(compare("model", &list(&["x"]), &list(&["x"])));
        assert!(!compare("model", &list(&["x"]), &list(&["x", "y"])));
        assert!(!compare("model", &list(&["x", "y"]), &list(&["x"])));
    }
}
