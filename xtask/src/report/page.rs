//! The page's text, from the results.
use super::{Models, read};
use crate::{
    loom::{Model, Outcome, Status},
    orderings::{Row, list::List},
    sanitize, shuttle, soak,
};
use anyhow::{Context, Result};
use serde::Deserialize;
use std::{fmt::Write, fs, path::Path, process::Command};

/// All of it. `missing` are the large models that have no result.
pub(super) fn text(
    root: &Path,
    folder: &Path,
    models: &Models,
    mutants: &[Row],
    missing: &[Model],
) -> Result<String> {
    let mut page = String::from(
        "# What was verified\n\nWritten by `cargo xtask report` from `docs/verification/`. \"Verified\" means: all executions that the model checker \
         models, for these bounded scenarios. What it can't see is listed in [sync-shim](../sync-shim/README.md), and pinned by tests.\n\n",
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
    summary(&mut page, folder, models, mutants, missing.len())?;
    by_hand(&mut page, root, mutants)?;
    of_models(&mut page, models)?;
    if !missing.is_empty() {
        page += "\n## Models that have no result yet\n\nLarge ones. `cargo xtask report` runs them.\n\n| crate | model |\n|---|---|\n";
        for model in missing {
            writeln!(page, "| {} | {} |", model.package, model.name)?;
        }
    }
    of_orderings(&mut page, mutants)?;
    of_code(&mut page, folder)?;
    schedules(&mut page, folder)?;
    Ok(page)
}

fn summary(
    page: &mut String,
    folder: &Path,
    models: &Models,
    mutants: &[Row],
    missing: usize,
) -> Result<()> {
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
    if let Some(done) = read::<shuttle::Done>(folder, "shuttle")? {
        let schedules: u64 = done.rows.values().map(|row| row.schedules).sum();
        writeln!(
            page,
            "| random schedules, seed {} | {schedules} over {} structures: none failed | `cargo xtask shuttle --full` |",
            done.seed,
            done.rows.len()
        )?;
    }
    if let Some(clean) = read::<Vec<sanitize::Clean>>(folder, "sanitize")? {
        for sanitize::Clean { tool, version, .. } in clean {
            writeln!(
                page,
                "| sanitizer {tool} | no report, by {version} | `cargo xtask sanitize {tool}` |"
            )?;
        }
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

fn by_hand(page: &mut String, root: &Path, mutants: &[Row]) -> Result<()> {
    *page += "## Mistakes by hand\n\nWhat is easily forgotten, and what notices.\n\n| mistake | site | |\n|---|---|---|\n";
    for named in List::read(&root.join("orderings.toml"))?.named {
        let is = |row: &&Row| row.site == named.site && row.mutant == named.mutant;
        let fate = mutants.iter().find(is).map_or("GONE".into(), Row::fate);
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
    *page += "\n## Models that fail, as they must\n\nEach holds a bug on purpose.\n\n| crate | model |\n|---|---|\n";
    for model in of(false, Status::FailedAsItMust).chain(of(true, Status::FailedAsItMust)) {
        writeln!(page, "| {} | {} |", model.package, model.model)?;
    }
    Ok(())
}

fn of_orderings(page: &mut String, mutants: &[Row]) -> Result<()> {
    *page += "\n## Mutants of orderings and protocols\n\nEach ordering a step weaker, each fence dropped, each exchange made a store, and the changes that \
              `orderings.toml` lists.\n\n| site | operation | written | mutant | |\n|---|---|---|---|---|\n";
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

/// What cargo-mutants has found in a file.
#[derive(Deserialize)]
struct CodeMutants {
    file: String,
    viable: u64,
    caught: u64,
    timeout: u64,
    by_models: u64,
    changes_nothing: u64,
    missed: u64,
}

fn of_code(page: &mut String, folder: &Path) -> Result<()> {
    let Some(files) = read::<Vec<CodeMutants>>(folder, "cargo-mutants")? else {
        return Ok(());
    };
    *page += "\n## Mutants of the code\n\nBy cargo-mutants, by hand: what [CONTRIBUTING](../CONTRIBUTING.md) says. What no model judged and no test caught is in \
              [cargo-mutants.json](verification/cargo-mutants.json), each with a reason; some change nothing that a test could see.\n\n\
              | file | viable | caught | by the limit | by the models | changes nothing | missed |\n|---|---:|---:|---:|---:|---:|---:|\n";
    for file in files {
        let CodeMutants {
            file,
            viable,
            caught,
            timeout,
            by_models,
            changes_nothing,
            missed,
        } = file;
        writeln!(
            page,
            "| {file} | {viable} | {caught} | {timeout} | {by_models} | {changes_nothing} | {missed} |"
        )?;
    }
    Ok(())
}

fn schedules(page: &mut String, folder: &Path) -> Result<()> {
    let Some(done) = read::<shuttle::Done>(folder, "shuttle")? else {
        return Ok(());
    };
    *page += "\n## Random schedules\n\nHalf of them random, half by priorities (PCT, depth 3). A structure that is not here has not run so often.\n\n| structure | models | schedules |\n|---|---:|---:|\n";
    for (name, row) in &done.rows {
        writeln!(page, "| {name} | {} | {} |", row.models, row.schedules)?;
    }
    Ok(())
}

/// The version of a dependency of the shim's.
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
    // With its version only where there are several.
    let needed = needed.find_map(|needed| {
        let mut words = needed.as_str()?.split(' ');
        (words.next() == Some(name)).then(|| words.next().map(str::to_owned))
    })?;
    needed.or_else(|| Some(find(name)?.get("version")?.as_str()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn of_several_versions_it_is_the_shim_s_that_is_told() {
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
