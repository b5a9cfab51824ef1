//! `cargo xtask report`: writes the results of the verification to `docs/verification.md`.
//!
//! The results are kept in files in `docs/verification/`. This command runs the models and mutants
//! that have no result or a bad one, and writes their results. The other commands write their
//! results with `--json docs/verification/NAME.json`. The page is written from all these files.
use crate::{
    command_line,
    loom::{self, Model, Outcome},
    orderings::{
        self, Row,
        list::{List, Named},
    },
};
use anyhow::{Context, Result, ensure};
use project::{say, workspace};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
    time::Duration,
};

mod older;
mod page;
mod stored;
mod without;

use stored::{FOLDER, Models, key, read, write_json};

/// Options of `cargo xtask report`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Runs no model and no mutant, but prints the results that are missing or gone, and counts
    /// those that are older than the code. Exit 1 if one is missing or gone.
    #[arg(long)]
    check: bool,
    /// Lists the models by the build that the step `loom` has made.
    #[arg(long, hide = true, requires = "check")]
    built: bool,
    /// Runs all models and mutants again.
    #[arg(long, conflicts_with = "check")]
    all: bool,
    /// Runs the models and mutants of this package again.
    #[arg(
        long = "crate",
        value_name = "PACKAGE",
        value_delimiter = ',',
        conflicts_with = "check"
    )]
    crates: Vec<String>,
    /// Runs no large model (`full_...`): the page lists those that have no result.
    #[arg(long, conflicts_with_all = ["check", "all"])]
    quick: bool,
    /// First takes the results that `loom --json`, or `orderings --json`, has written to this file.
    #[arg(
        long,
        value_name = "FILE",
        value_delimiter = ',',
        conflicts_with = "check"
    )]
    take: Vec<PathBuf>,
    /// Models at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

impl Options {
    fn again(&self, package: &str) -> bool {
        self.all || self.crates.iter().any(|name| name == package)
    }
}

const PAGE: &str = "docs/verification.md";

/// Brings the results up to date and writes the page; returns `false` when a model failed or a
/// mutant survives.
pub(crate) fn run(options: &Options) -> Result<bool> {
    ensure!(options.jobs > 0, "--jobs is at least 1");
    if options.check {
        return is_current(options.built);
    }
    let (packages, root) = workspace::load()?;
    let known = packages.iter().filter(|package| package.is_modelled());
    workspace::chosen(known, &options.crates, "models")?;
    let folder = root.join(FOLDER);
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    for file in &options.take {
        take(&folder, file)?;
    }
    let again = |package: &str| options.again(package);
    let (mut models, new) = kept_and_new(&folder, &command_line("--full"), again)?;
    let (large, small): (Vec<_>, Vec<_>) = new.into_iter().partition(Model::is_large);
    run_models(&folder, options, &mut models, small)?;
    let write = |models: &Models, mutants: &[Row]| {
        let file = root.join(PAGE);
        let page = page::text(&root, &folder, &packages, models, mutants, &large)?;
        fs::write(&file, page).with_context(|| format!("writing {}", file.display()))
    };
    // The next runs take long. A user who ends them still has a page, without their results.
    write(
        &models,
        &read::<Vec<Row>>(&folder, "mutants")?.unwrap_or_default(),
    )?;
    let mutants = mutants(&folder, options)?;
    write(&models, &mutants)?;
    if !options.quick {
        run_models(&folder, options, &mut models, large.clone())?;
        write(&models, &mutants)?;
    }
    Ok(passes(models.values(), &mutants))
}

/// Prints the models that failed and the mutants that survived; returns `true` if there are none.
fn passes<'a>(models: impl Iterator<Item = &'a Outcome> + Clone, mutants: &[Row]) -> bool {
    let failed = models.filter(|model| !model.status.passes());
    let survived = mutants.iter().filter(|row| row.survived());
    for model in failed.clone() {
        say!("FAILED: {} {}", model.package, model.model);
    }
    for row in survived.clone() {
        say!("SURVIVED: {} {}", row.site, row.mutant);
    }
    failed.count() == 0 && survived.count() == 0
}

/// Returns whether the page lists exactly the models and the mutants that exist, each with its
/// result. The page may list a large model as one that has not run.
fn is_current(is_built: bool) -> Result<bool> {
    let (packages, root) = workspace::load()?;
    let folder = root.join(FOLDER);
    let known: Vec<Outcome> = read(&folder, "models")?.unwrap_or_default();
    let mut there: loom::Options = command_line("--full --list");
    there.is_built = is_built;
    let (models, new) = kept_and_new(&folder, &there, |_| false)?;
    let (large, small): (Vec<_>, Vec<_>) = new.into_iter().partition(Model::is_large);
    let name = |model: &Model| (model.package.clone(), model.name.clone());
    let there = models.keys().cloned().chain(small.iter().map(name));
    let same_models = compare("model", &known.iter().map(key).collect(), &there.collect());
    let found = orderings::results(&command_line("--list"))?;
    let there = found.rows;
    let mutants = read(&folder, "mutants")?.unwrap_or_default();
    let mutants = with_reasons_of(&there, mutants);
    let names = |rows: &[Row]| rows.iter().map(Row::name).collect();
    let same_mutants = compare("mutant", &names(&mutants), &names(&there));
    let list = List::read(&root.join("orderings.toml"))?;
    let sound = [
        orderings::list_is_exact(&mutants, &found.stale),
        orderings::has_no_unreached(&found.unreached),
        names_are_killed(&list.named, &mutants),
        few_are_justified(&mutants),
    ];
    let mut current = same_models && same_mutants;
    if current {
        let written = fs::read_to_string(root.join(PAGE)).unwrap_or_default();
        let page = page::text(&root, &folder, &packages, &models, &mutants, &large)?;
        current = without_compiler(&written) == without_compiler(&page);
    }
    if !current {
        say!("{PAGE} is out of date: `cargo xtask report --quick` brings it up to date");
    }
    older::print(&root, &packages, &models, &mutants)?;
    let sound = sound.iter().all(|sound| *sound);
    Ok(current && sound && passes(known.iter(), &mutants))
}

/// Returns the known rows, each with its present reason.
fn with_reasons_of(there: &[Row], known: Vec<Row>) -> Vec<Row> {
    let reasons: BTreeMap<_, _> = (there.iter())
        .map(|row| (row.name(), row.reason.clone()))
        .collect();
    let reason = |row: &Row| reasons.get(&row.name()).cloned().flatten();
    (known.iter())
        .map(|row| row.with_reason(reason(row)))
        .collect()
}

/// Returns whether a model kills each mutant that has a name. Prints each such mutant that no model
/// kills.
fn names_are_killed(named: &[Named], mutants: &[Row]) -> bool {
    let lost = named.iter().filter(|named| {
        let mut of = mutants.iter().filter(|row| named.is(row));
        !of.any(Row::is_killed)
    });
    lost.inspect(|named| say!("UNNOTICED: {}: {}", named.what, named.site))
        .count()
        == 0
}

/// Returns whether at most a tenth of the mutants are justified by a reason.
fn few_are_justified(mutants: &[Row]) -> bool {
    let justified = mutants.iter().filter(|row| row.is_justified()).count();
    let few = justified * JUSTIFIED_OF <= mutants.len();
    if !few {
        say!(
            "{justified} of {} mutants are justified, which is more than one in {JUSTIFIED_OF}",
            mutants.len()
        );
    }
    few
}

/// At most one mutant in this many may survive with a reason.
const JUSTIFIED_OF: usize = 10;

/// Returns the page without the compiler's version, which may differ where the page is checked.
fn without_compiler(page: &str) -> Vec<&str> {
    let is_compiler = |line: &&str| line.starts_with("rustc ");
    page.lines().filter(|line| !is_compiler(line)).collect()
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

/// Returns the results that are kept, and the models that exist and have no kept result.
fn kept_and_new(
    folder: &Path,
    there: &loom::Options,
    again: impl Fn(&str) -> bool,
) -> Result<(Models, Vec<Model>)> {
    let mut kept: Models = read::<Vec<Outcome>>(folder, "models")?
        .unwrap_or_default()
        .into_iter()
        .filter(|model| model.status.passes() && !again(&model.package))
        .map(|model| (key(&model), model))
        .collect();
    let (mut all, mut new) = (Models::new(), Vec::new());
    for model in loom::find(there)? {
        let key = (model.package.clone(), model.name.clone());
        match kept.remove(&key) {
            Some(outcome) => drop(all.insert(key, outcome)),
            None => new.push(model),
        }
    }
    Ok((all, new))
}

/// Replaces stored results by the results that another run has written to `file`.
fn take(folder: &Path, file: &Path) -> Result<()> {
    let text = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    if let Ok(rows) = serde_json::from_slice::<Vec<Row>>(&text) {
        // Other mutants of these functions may be gone. So all earlier rows of the functions are
        // dropped.
        let taken: BTreeSet<_> = rows.iter().map(|row| row.function().to_owned()).collect();
        let mut all: Vec<Row> = read(folder, "mutants")?.unwrap_or_default();
        all.retain(|row| !taken.contains(row.function()));
        all.extend(rows);
        return write_json(folder, "mutants", &all);
    }
    let outcomes: Vec<Outcome> = serde_json::from_slice(&text).with_context(|| {
        format!(
            "{} has results of no models, and of no mutants",
            file.display()
        )
    })?;
    let all: Vec<Outcome> = read(folder, "models")?.unwrap_or_default();
    let all: Models = (all.into_iter().chain(outcomes))
        .map(|model| (key(&model), model))
        .collect();
    write_json(folder, "models", &all.values().collect::<Vec<_>>())
}

/// Runs models. Each result is written at once, so that a run that is cut off can continue later.
fn run_models(folder: &Path, options: &Options, all: &mut Models, new: Vec<Model>) -> Result<()> {
    let commit = workspace::commit(folder);
    let write = |all: &Models| write_json(folder, "models", &all.values().collect::<Vec<_>>());
    write(all)?;
    let shared = Mutex::new(all);
    let limit = Duration::from_secs(3_600);
    loom::run_all(new, options.jobs, limit, &commit, |outcome| {
        let mut all = shared.lock().expect("no job panics");
        all.insert(key(outcome), outcome.clone());
        write(&all)
    })?;
    Ok(())
}

/// Returns the results of the mutants, and writes them after each crate. If one mutant of a
/// function is new, is gone, or has survived, all mutants of the function run again.
fn mutants(folder: &Path, options: &Options) -> Result<Vec<Row>> {
    let kept: Vec<Row> = read(folder, "mutants")?.unwrap_or_default();
    let there = orderings::results(&command_line("--list"))?.rows;
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
            let some: orderings::Options = command_line(&format!("--crate {package}"));
            rows = orderings::results(&some.only(changed))?.rows;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_or_surplus_entry_makes_a_list_stale() {
        let list = |names: &[&str]| -> BTreeSet<_> {
            names.iter().map(|n| ("a".into(), (*n).into())).collect()
        };
        assert!(compare("model", &list(&["x"]), &list(&["x"])));
        assert!(!compare("model", &list(&["x"]), &list(&["x", "y"])));
        assert!(!compare("model", &list(&["x", "y"]), &list(&["x"])));
    }

    fn row(site: &str, end: &str, reason: Option<&str>) -> Row {
        let json = serde_json::json!({
            "crate": "a", "site": site, "line": 1, "operation": "load", "ordering": "Acquire",
            "mutant": "Relaxed", "end": end, "reason": reason, "tried": 1, "seconds": 0.5
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn named_mistake_without_a_killed_mutant_is_reported() {
        let named = [Named {
            what: "it is forgotten".into(),
            site: "a/b.rs/c#1".into(),
            mutant: "Relaxed".into(),
        }];
        let holds = |row: Row| names_are_killed(&named, &[row]);
        assert!(holds(row("a/b.rs/c#1", "killed", None)));
        assert!(!holds(row("a/b.rs/c#1", "survived", Some("spared"))));
        assert!(!holds(row("a/b.rs/c#2", "killed", None)));
    }

    #[test]
    fn removed_or_needless_reason_is_reported() {
        let known = || vec![row("s", "survived", Some("old"))];
        let of = |reason| with_reasons_of(&[row("s", "unreached", reason)], known());
        assert!(!of(Some("new"))[0].survived() && of(None)[0].survived());
        assert!(orderings::list_is_exact(&known(), &[]));
        assert!(!orderings::list_is_exact(&known(), &["names b".into()]));
        assert!(!orderings::list_is_exact(
            &[row("s", "killed", Some("old"))],
            &[]
        ));
    }

    #[test]
    fn no_more_than_a_tenth_of_the_mutants_is_justified() {
        let mut rows: Vec<_> = (0..10).map(|_| row("s", "killed", None)).collect();
        rows[0] = row("s", "survived", Some("spared"));
        assert!(few_are_justified(&rows));
        rows[1] = row("s", "unreached", Some("spared"));
        assert!(!few_are_justified(&rows));
    }
}
