//! Writes the text of the page from the results.
use super::{
    stored::{Models, file, read},
    without,
};
use crate::{
    loom::{Model, Outcome, Status},
    orderings::{Row, list::List},
    sanitize, shuttle, soak,
};
use anyhow::{Context, Result};
use project::workspace::Package;
use serde::Deserialize;
use std::{collections::BTreeMap, fmt::Write, fs, path::Path, process::Command};

/// Returns the whole page. `missing` are the large models that have no result.
pub(super) fn text(
    root: &Path,
    folder: &Path,
    packages: &[Package],
    models: &Models,
    mutants: &[Row],
    missing: &[Model],
) -> Result<String> {
    let mut page = String::from(
        "# What was verified\n\nWritten by `cargo xtask report` from `docs/verification/`. \"Verified\"\nmeans that the \
         model checker explored all executions that it models, of these bounded scenarios.\nIts limits are \
         in [sync-shim](../sync-shim/README.md), where tests pin them.\n\n",
    );
    let rustc = Command::new("rustc").arg("--version").output();
    let rustc = rustc.context("rustc --version")?.stdout;
    writeln!(page, "{}", String::from_utf8_lossy(&rustc).trim())?;
    let (loom, shuttle) = (locked(root, "loom")?, locked(root, "shuttle")?);
    writeln!(page, "loom {loom}, shuttle {shuttle}\n")?;
    let missing: Vec<_> = missing
        .iter()
        .filter(|model| !models.contains_key(&(model.package.clone(), model.name.clone())))
        .collect();
    let random = shuttle::Done::read(&file(folder, "shuttle"))?;
    let structures = structures(packages, models, &missing);
    summary(&mut page, models, mutants, missing.len())?;
    random_schedules(&mut page, &random, &structures)?;
    tools(&mut page, folder)?;
    trees(&mut page, models, mutants)?;
    by_hand(&mut page, root, mutants)?;
    of_models(&mut page, models)?;
    if !missing.is_empty() {
        page += "\n## Models that have no result yet\n\nThese models are large. `cargo xtask report` runs them.\n\n| crate | model |\n|---|---|\n";
        for model in &missing {
            writeln!(page, "| {} | {} |", model.package, model.name)?;
        }
    }
    without_models(&mut page, &without::rows(packages, models, &missing)?)?;
    of_orderings(&mut page, mutants)?;
    of_code(&mut page, folder)?;
    schedules(&mut page, &random, &structures)?;
    Ok(page)
}

fn summary(page: &mut String, models: &Models, mutants: &[Row], missing: usize) -> Result<()> {
    let sum = |bounded: bool| -> u64 {
        let counted = models
            .values()
            .filter(|model| model.bound.is_some() == bounded && model.status == Status::Ok);
        counted.map(|model| model.executions).sum()
    };
    let failed = models.values().filter(|model| !model.status.passes());
    let killed = mutants.iter().filter(|row| row.is_killed()).count();
    let survived = mutants.iter().filter(|row| row.survived()).count();
    writeln!(page, "| what | how much | command |\n|---|---|---|")?;
    writeln!(
        page,
        "| models | {}: {} executions without a bound, {} with one; {} failed, {missing} not run | `cargo xtask loom --full` |",
        models.len() + missing,
        sum(false),
        sum(true),
        failed.count()
    )?;
    writeln!(
        page,
        "| mutants of orderings and protocols | {}: {killed} killed, {} justified, {survived} survived | `cargo xtask orderings` |",
        mutants.len(),
        mutants.len() - killed - survived
    )?;
    Ok(())
}

/// Returns the structures that have models, and whether each should run under random schedules. A
/// structure whose models must all fail should not.
fn structures(packages: &[Package], models: &Models, missing: &[&Model]) -> BTreeMap<String, bool> {
    let mut all = BTreeMap::new();
    let models = models.values().map(|model| {
        let passes = model.status == Status::Ok;
        (&model.package, model.model.as_str(), passes)
    });
    let missing = (missing.iter()).map(|model| (&model.package, model.name.as_str(), true));
    let with_histories = (packages.iter()).filter(|package| package.has_test(shuttle::HISTORIES));
    let histories = with_histories.map(|package| (&package.name, shuttle::HISTORIES, true));
    for (package, test, expected) in models.chain(missing).chain(histories) {
        // The shim's models are about the types that it replaces, and belong to no structure.
        if package != "sync-shim" {
            *all.entry(shuttle::structure_of(package, test)).or_default() |= expected;
        }
    }
    all
}

/// Returns the rows of random schedules whose structures still exist.
fn schedules_of<'a>(
    random: &'a shuttle::Done,
    structures: &BTreeMap<String, bool>,
) -> Vec<(&'a String, &'a shuttle::Row)> {
    // A scenario of many threads belongs to a structure that has models, and is no model itself.
    let is_known = |name: &str| {
        let of = name
            .strip_suffix("many_threads")
            .map(|of| of.trim_end_matches([' ', '/']));
        structures.contains_key(of.unwrap_or(name))
    };
    let rows = random.rows.iter();
    rows.filter(|(name, _)| is_known(name)).collect()
}

/// Returns the structures that should have run under random schedules, and did not.
fn not_run<'a>(random: &shuttle::Done, structures: &'a BTreeMap<String, bool>) -> Vec<&'a str> {
    let expected = structures.iter().filter(|&(_, expected)| *expected);
    let names = expected.map(|(name, _)| name.as_str());
    names
        .filter(|name| !random.rows.contains_key(*name))
        .collect()
}

fn random_schedules(
    page: &mut String,
    random: &shuttle::Done,
    structures: &BTreeMap<String, bool>,
) -> Result<()> {
    let rows = schedules_of(random, structures);
    let schedules: u64 = rows.iter().map(|(_, row)| row.schedules).sum();
    writeln!(
        page,
        "| random schedules | {schedules} over {} structures: none failed; {} not run | `cargo xtask shuttle --full` |",
        rows.len(),
        not_run(random, structures).len()
    )?;
    Ok(())
}

/// Writes the rows of the sanitizers and the soak, including those that have not run.
fn tools(page: &mut String, folder: &Path) -> Result<()> {
    let clean: Vec<sanitize::Clean> = read(folder, "sanitize")?.unwrap_or_default();
    for tool in sanitize::Tool::ALL.map(sanitize::Tool::name) {
        let found = match clean.iter().find(|clean| clean.tool == tool) {
            Some(clean) => format!("no report, by {}, {}", clean.version, at(&clean.commit)),
            None => "not run".into(),
        };
        writeln!(
            page,
            "| sanitizer {tool} | {found} | `cargo xtask sanitize {tool}` |"
        )?;
    }
    if let Some(done) = read::<soak::Done>(folder, "soak")? {
        writeln!(
            page,
            "| soak, seed {} | {:.0} minutes, {} items, memory {} to {} KiB, {} | `cargo xtask soak --minutes {:.0}` |",
            done.seed,
            done.minutes,
            done.items,
            done.memory.0,
            done.memory.1,
            at(&done.commit),
            done.minutes
        )?;
    } else {
        writeln!(page, "| soak | not run | `cargo xtask soak --minutes 30` |")?;
    }
    for clean in clean.iter().filter(|clean| !clean.ran.is_empty()) {
        let (ran, without) = (clean.ran.join("; "), clean.without.join("; "));
        writeln!(
            page,
            "\nUnder sanitizer {} ran: {ran}. Left out: {without}.",
            clean.tool
        )?;
    }
    writeln!(page)?;
    Ok(())
}

/// Names the tree to which a result belongs.
pub(super) fn at(commit: &Option<String>) -> String {
    (commit.as_ref()).map_or("of an unrecorded commit".into(), |commit| {
        format!("at {commit}")
    })
}

/// Writes how many results belong to each tree.
fn trees(page: &mut String, models: &Models, mutants: &[Row]) -> Result<()> {
    let mut trees = BTreeMap::<_, (usize, usize)>::new();
    for model in models.values() {
        trees.entry(model.commit.as_deref()).or_default().0 += 1;
    }
    for mutant in mutants {
        trees.entry(mutant.commit.as_deref()).or_default().1 += 1;
    }
    *page += "A result stays until it is taken again, even if the code around it has changed.\n\
              `cargo xtask report --check` counts the results that are older than the code of their crate, or of\n\
              a crate that it needs. The table counts the results of each commit. [models.json](verification/models.json) and\n\
              [mutants.json](verification/mutants.json) name the commit of each result.\n\n| commit | models | mutants |\n|---|---:|---:|\n";
    for (commit, (models, mutants)) in trees {
        let commit = commit.unwrap_or("not recorded");
        writeln!(page, "| {commit} | {models} | {mutants} |")?;
    }
    writeln!(page)?;
    Ok(())
}

fn by_hand(page: &mut String, root: &Path, mutants: &[Row]) -> Result<()> {
    *page += "## Mistakes by hand\n\nMistakes that are easily made, and the model that fails with each.\n\n| mistake | site | |\n|---|---|---|\n";
    for named in List::read(&root.join("orderings.toml"))?.named {
        let mut of = mutants.iter().filter(|row| named.is(row));
        let fate = of.next().map_or("GONE".into(), Row::fate);
        writeln!(page, "| {} | {} | {fate} |", named.what, named.site)?;
    }
    Ok(())
}

fn of_models(page: &mut String, models: &Models) -> Result<()> {
    let of = |bounded: bool, status: Status| {
        models
            .values()
            .filter(move |model| model.status == status && model.bound.is_some() == bounded)
    };
    *page += "\n## Models without a bound\n\n| crate | model | executions |\n|---|---|---:|\n";
    for model in of(false, Status::Ok) {
        let Outcome {
            package,
            model,
            executions,
            ..
        } = model;
        writeln!(page, "| {package} | {model} | {executions} |")?;
    }
    *page += "\n## Models with a bound on preemptions\n\n| crate | model | bound | executions |\n|---|---|---:|---:|\n";
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
    *page += "\n## Models that fail, as they must\n\nEach has a bug on purpose: a *negative* model.\n\n| crate | model |\n|---|---|\n";
    for model in of(false, Status::FailedAsItMust).chain(of(true, Status::FailedAsItMust)) {
        writeln!(page, "| {} | {} |", model.package, model.model)?;
    }
    Ok(())
}

fn without_models(page: &mut String, rows: &[(&str, &str)]) -> Result<()> {
    *page += "\n## Published crates without models\n\n| crate | reason |\n|---|---|\n";
    for (name, reason) in rows {
        writeln!(page, "| {name} | {reason} |")?;
    }
    Ok(())
}

fn of_orderings(page: &mut String, mutants: &[Row]) -> Result<()> {
    *page += "\n## Mutants of orderings and protocols\n\nIn each mutant the ordering of one call site is a step weaker, or a fence is left out, or an\n\
              exchange is a store; or one call of a function makes no fence (*unfenced*); or it is a change that\n\
              `orderings.toml` lists. At most one mutant in ten may\n\
              survive with a reason (*justified*): with more, `cargo xtask test` fails.\n\n| site | operation | written | mutant | |\n|---|---|---|---|---|\n";
    for row in mutants {
        let fate = row.fate().replace('|', "\\|");
        let (site, operation, ordering, mutant) =
            (&row.site, &row.operation, &row.ordering, &row.mutant);
        writeln!(
            page,
            "| {site} | {operation} | {ordering} | {mutant} | {fate} |"
        )?;
    }
    Ok(())
}

/// The results of cargo-mutants for one file.
#[derive(Deserialize)]
pub(super) struct CodeMutants {
    pub(super) file: String,
    viable: u64,
    caught: u64,
    timeout: u64,
    by_models: u64,
    changes_nothing: u64,
    missed: u64,
    pub(super) commit: Option<String>,
}

fn of_code(page: &mut String, folder: &Path) -> Result<()> {
    let Some(files) = read::<Vec<CodeMutants>>(folder, "cargo-mutants")? else {
        return Ok(());
    };
    *page += "\n## Mutants of the code\n\ncargo-mutants made these, by the commands of [CONTRIBUTING](../CONTRIBUTING.md).\n\
              [cargo-mutants.json](verification/cargo-mutants.json) lists the mutants that no model and no test\n\
              caught, each with a reason. Some of them change nothing that a test could see.\n\n\
              | file | viable | caught | by the limit | by the models | changes nothing | missed | |\n|---|---:|---:|---:|---:|---:|---:|---|\n";
    let all = |of: fn(&CodeMutants) -> u64| files.iter().map(of).sum::<u64>();
    let (viable, missed) = (all(|file| file.viable), all(|file| file.missed));
    let noticed = viable - missed - all(|file| file.changes_nothing);
    let total = format!(
        "\n{noticed} of {viable}, {:.1} %.\n",
        100.0 * noticed as f64 / viable.max(1) as f64
    );
    for file in files {
        let CodeMutants {
            file,
            viable,
            caught,
            timeout,
            by_models,
            changes_nothing,
            missed,
            commit,
        } = file;
        let at = at(&commit);
        writeln!(
            page,
            "| {file} | {viable} | {caught} | {timeout} | {by_models} | {changes_nothing} | {missed} | {at} |"
        )?;
    }
    *page += &total;
    Ok(())
}

fn schedules(
    page: &mut String,
    random: &shuttle::Done,
    structures: &BTreeMap<String, bool>,
) -> Result<()> {
    *page += "\n## Random schedules\n\nHalf of the schedules are random, half are by priorities (PCT, depth 3).\n\n| structure | models | schedules | seed | |\n|---|---:|---:|---:|---|\n";
    for (name, row) in schedules_of(random, structures) {
        let seed = row.seed.map_or("-".into(), |seed| seed.to_string());
        let (models, schedules, at) = (row.models, row.schedules, at(&row.commit));
        writeln!(page, "| {name} | {models} | {schedules} | {seed} | {at} |")?;
    }
    let missing = not_run(random, structures);
    if !missing.is_empty() {
        *page += "\n## Structures of which no random schedule has run\n\n`cargo xtask shuttle --full` runs those that are built there.\n\n| structure |\n|---|\n";
        for name in missing {
            writeln!(page, "| {name} |")?;
        }
    }
    Ok(())
}

/// Returns the version of one of the shim's dependencies.
fn locked(root: &Path, name: &str) -> Result<String> {
    let lock = fs::read_to_string(root.join("Cargo.lock")).context("reading Cargo.lock")?;
    let lock: toml::Table = toml::from_str(&lock).context("reading Cargo.lock")?;
    version(&lock, name).with_context(|| format!("no {name} in Cargo.lock"))
}

fn version(lock: &toml::Table, name: &str) -> Option<String> {
    let packages = lock.get("package")?.as_array()?;
    let find = |name: &str| {
        let is =
            |package: &&toml::Value| package.get("name").and_then(|n| n.as_str()) == Some(name);
        packages.iter().find(is)
    };
    let mut needed = find("sync-shim")?.get("dependencies")?.as_array()?.iter();
    // The lockfile names the version of a dependency only if several versions are in the file.
    let needed = needed.find_map(|needed| {
        let mut words = needed.as_str()?.split(' ');
        (words.next() == Some(name)).then(|| words.next().map(str::to_owned))
    })?;
    needed.or_else(|| Some(find(name)?.get("version")?.as_str()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn page_lists_structures_and_tools_without_a_run() {
        let model = |name: &str, status| {
            let outcome = Outcome {
                package: "a".into(),
                model: name.into(),
                executions: 2,
                seconds: 0.0,
                bound: None,
                status,
                commit: None,
            };
            (("a".into(), name.into()), outcome)
        };
        let models = Models::from([
            model("x::models::b", Status::Ok),
            model("y::models::b", Status::Ok),
            model("z::models::b", Status::FailedAsItMust),
        ]);
        let large = Model {
            bound: None,
            package: "a".into(),
            binary: PathBuf::new(),
            name: "w::models::full_b".into(),
        };
        let structures = structures(&[], &models, &[&large]);
        let random = shuttle::Done {
            rows: ["a x", "a gone"]
                .map(|name| (name.into(), shuttle::Row::default()))
                .into(),
            ..shuttle::Done::default()
        };
        assert_eq!(not_run(&random, &structures), ["a w", "a y"]);
        let mut page = String::new();
        schedules(&mut page, &random, &structures).unwrap();
        assert!(page.contains("| a y |") && !page.contains("gone"));
        let (mut page, nothing) = (String::new(), tempfile::tempdir().unwrap());
        tools(&mut page, nothing.path()).unwrap();
        for tool in ["address", "leak", "thread", "valgrind"] {
            assert!(page.contains(&format!("| sanitizer {tool} | not run |")));
        }
        let old = r#"[{"tool": "leak", "version": "7", "seconds": 1.0, "commit": "abc", "ran": ["r"], "without": ["w"]}]"#;
        fs::write(file(nothing.path(), "sanitize"), old).unwrap();
        page.clear();
        tools(&mut page, nothing.path()).unwrap();
        assert!(page.contains("| sanitizer leak | no report, by 7, at abc |"));
        assert!(page.contains("leak ran: r. Left out: w."));
    }

    #[test]
    fn readme_states_the_counts_of_the_page() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let read = |name| fs::read_to_string(root.join(name)).unwrap();
        let (page, readme) = (read(super::super::PAGE), read("README.md"));
        // A line break may stand for each space.
        let readme = readme.split_whitespace().collect::<Vec<_>>().join(" ");
        let number_after = |text: &str| {
            let rest = page.split(text).nth(1).unwrap();
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap();
            rest[..end].to_owned()
        };
        let models = format!("{} models", number_after("| models | "));
        let mutants = number_after("| mutants of orderings and protocols | ");
        let killed = number_after(&format!("protocols | {mutants}: "));
        let reasons = number_after(" killed, ");
        let of_mutants = format!("{mutants} deliberate mistakes");
        let failing = format!("{killed} make a model fail");
        for text in [models, of_mutants, failing, format!("the other {reasons}.")] {
            assert!(readme.contains(&text), "the README is to say: {text}");
        }
    }

    #[test]
    fn version_shown_is_the_one_that_the_shim_depends_on() {
        let lock = r#"
            package = [
                { name = "loom", version = "0.5.6" },
                { name = "loom", version = "0.7.2" },
                { name = "shuttle", version = "0.9.9" },
                { name = "sync-shim", version = "0.1.0", dependencies = ["loom 0.7.2", "shuttle"] },
            ]
        "#;
        let lock = toml::from_str(lock).unwrap();
        assert_eq!(version(&lock, "loom").as_deref(), Some("0.7.2"));
        assert_eq!(version(&lock, "shuttle").as_deref(), Some("0.9.9"));
        assert_eq!(version(&lock, "st3"), None);
    }
}
