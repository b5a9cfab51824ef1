//! `cargo xtask shuttle`: runs the models, and the histories of many threads, under random
//! schedules.
//!
//! This command covers scenarios that are too large for the model checker: seven threads, or a
//! whole runtime without a bound. shuttle samples the schedules, and treats every ordering as
//! sequentially consistent. Half of the schedules are random; the other half use priorities (PCT,
//! depth 3).
use crate::{
    jobs,
    loom::{self, Build, Model, Speed, Status},
    results,
};
use anyhow::{Result, ensure};
use project::{
    say,
    workspace::{self, Package},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Mutex,
    time::{Duration, Instant},
};

/// Options of `cargo xtask shuttle`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only the models of these packages.
    #[arg(long = "crate", value_name = "PACKAGE", value_delimiter = ',')]
    crates: Vec<String>,
    /// Only models whose path contains this.
    #[arg(long, value_name = "TEXT")]
    model: Option<String>,
    /// Schedules for each structure, shared by its models. 50000, or 1000000 with --full.
    #[arg(long)]
    schedules: Option<u64>,
    /// As many schedules as a report needs.
    #[arg(long)]
    full: bool,
    /// Repeats a run with the seed that a failed run printed.
    #[arg(long)]
    seed: Option<u64>,
    /// Writes the results to a file, if no model failed, in place of its earlier results of these
    /// crates.
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    json: Option<PathBuf>,
    /// Models at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

/// The results of a run without a failure.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Done {
    /// The seed of all rows, in a file whose rows have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seed: Option<u64>,
    /// One row for each structure.
    pub(crate) rows: BTreeMap<String, Row>,
}

/// The results for one structure (see [`structure`]).
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) models: usize,
    pub(crate) schedules: u64,
    seconds: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seed: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) commit: Option<String>,
}

impl Done {
    /// Reads the results in a file; there are none if the file does not exist.
    pub(crate) fn read(file: &Path) -> Result<Self> {
        let mut done: Self = results::earlier(file)?.unwrap_or_default();
        let seed = done.seed.take();
        for row in done.rows.values_mut() {
            row.seed = row.seed.or(seed);
        }
        Ok(done)
    }
}

/// Runs the models; returns `false` when one failed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    ensure!(options.jobs > 0, "--jobs is at least 1");
    ensure!(options.schedules != Some(0), "--schedules is at least 1");
    workspace::check_writable(options.json.as_deref())?;
    let (packages, root) = workspace::load()?;
    let commit = workspace::commit(&root);
    let mut models = find(options, &packages, &root)?;
    let here = models.iter().map(is_here).collect::<Result<Vec<_>>>()?;
    let mut here = here.into_iter();
    models.retain(|_| here.next() == Some(true));
    ensure!(!models.is_empty(), "no model matched");
    let mut counts = BTreeMap::new();
    for model in &models {
        *counts.entry(structure(model)).or_insert(0) += 1;
    }
    let total = options
        .schedules
        .unwrap_or(if options.full { 1_000_000 } else { 50_000 });
    let seed = options.seed.unwrap_or_else(|| {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        now.as_secs()
    });
    say!("seed {seed}");
    let results = Mutex::new((BTreeMap::<String, Row>::new(), 0));
    let begun = Instant::now();
    jobs::each(options.jobs, &models, |model| {
        let name = structure(model);
        let each = total.div_ceil(counts[&name]).max(2);
        let mut environment = vec![
            ("SELVEDGE_ITERATIONS", each.to_string()),
            ("SELVEDGE_SEED", seed.to_string()),
        ];
        if options.seed.is_none() {
            // A model whose panics are caught would make a backtrace in each schedule, which takes
            // 2 ms.
            environment.push(("RUST_BACKTRACE", "0".into()));
        }
        let environment: Vec<_> = (environment.iter())
            .map(|(name, value)| (*name, value.as_ref()))
            .collect();
        let (outcome, said) = loom::run_one(model, Duration::from_secs(3_600), &environment)?;
        let mut results = results.lock().expect("no job panics");
        if !outcome.status.passes() {
            results.1 += 1;
            say!("{} {}: FAILED\n{said}", model.package, model.name);
        }
        let row = results.0.entry(name).or_default();
        (row.seed, row.commit) = (Some(seed), Some(commit.clone()));
        row.models += 1;
        row.schedules += outcome.executions;
        row.seconds += outcome.seconds;
        Ok(())
    })?;
    let (rows, failed) = results.into_inner()?;
    for (name, row) in &rows {
        say!(
            "{name:30}  {:3} models  {:>9} schedules  {:>7.1} s",
            row.models,
            row.schedules,
            row.seconds
        );
    }
    say!(
        "{} schedules, {:.0} s, {failed} failed",
        rows.values().map(|row| row.schedules).sum::<u64>(),
        begun.elapsed().as_secs_f64()
    );
    record(options.json.as_deref(), failed, &options.crates, rows)
}

/// Replaces the file's results of these crates, or of all crates if `crates` is empty. When a model
/// failed, leaves the file as it is and returns `false`.
fn record(
    file: Option<&Path>,
    failed: usize,
    crates: &[String],
    ran: BTreeMap<String, Row>,
) -> Result<bool> {
    if let (Some(file), 0) = (file, failed) {
        let mut done = Done::read(file)?;
        let again = |name: &str| crates.is_empty() || crates.iter().any(|of| is_of(name, of));
        done.rows.retain(|name, _| !again(name));
        done.rows.extend(ran);
        results::write_json(file, &done)?;
    }
    Ok(failed == 0)
}

/// Returns whether a structure belongs to this crate.
fn is_of(structure: &str, package: &str) -> bool {
    structure.split(' ').next() == Some(package)
}

/// Returns whether the model runs under this backend: negative models run under the model checker
/// only.
fn is_here(model: &Model) -> Result<bool> {
    let environment = [("SELVEDGE_ITERATIONS", "2".as_ref())];
    let (outcome, said) = loom::run_one(model, Duration::from_secs(60), &environment)?;
    Ok(outcome.status != Status::NoModel || !said.contains("outcome=not-here"))
}

/// Returns the structure of a model: the crate, and the module above `models`; for a test of
/// histories, the crate and the word `histories`.
fn structure(model: &Model) -> String {
    structure_of(&model.package, &model.name)
}

/// Returns the structure of a test, from the names of its crate and of the test.
pub(crate) fn structure_of(package: &str, test: &str) -> String {
    let module = match test.split_once("models::") {
        Some((module, _)) => module.trim_end_matches("::").replace("::", "/"),
        None => HISTORIES.into(),
    };
    [package, &module].join(" ").trim_end().into()
}

/// The name of the integration test that has the histories.
pub(crate) const HISTORIES: &str = "histories";

fn find(options: &Options, packages: &[Package], root: &Path) -> Result<Vec<Model>> {
    let modelled = packages.iter();
    let modelled = modelled.filter(|package| package.is_modelled() && package.name != "sync-shim");
    let chosen = workspace::chosen(modelled, &options.crates, "models")?;
    let have_histories = chosen.iter().any(|package| package.has_test(HISTORIES));
    let build = Build {
        speed: Speed::Explored,
        root,
        target: Path::new("target"),
        flags: "--cfg selvedge_shuttle -C debug-assertions=on",
        of_members: true,
        targets: if have_histories {
            &["--lib", "--test", HISTORIES]
        } else {
            loom::LIB
        },
    };
    let mut models = Vec::new();
    for (package, binary) in build.binaries(&chosen)? {
        let name = binary.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("histories-") {
            models.extend(loom::tests(package, &binary)?);
        } else {
            models.extend(loom::list(package, binary)?);
        }
    }
    models.retain(|model| {
        let text = options.model.as_deref().unwrap_or_default();
        model.name.contains(text)
    });
    Ok(models)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_structure_is_the_module_that_has_the_models() {
        let model = |name: &str| Model {
            bound: None,
            package: "a".into(),
            binary: PathBuf::new(),
            name: name.into(),
        };
        assert_eq!(structure(&model("ring::models::b")), "a ring");
        assert_eq!(structure(&model("models::b")), "a");
        assert_eq!(structure(&model("b")), "a histories");
    }

    fn rows(names: &[&str], schedules: u64) -> BTreeMap<String, Row> {
        let row = || Row {
            schedules,
            ..Row::default()
        };
        names.iter().map(|name| ((*name).into(), row())).collect()
    }

    #[test]
    fn record_of_some_crates_keeps_those_of_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("shuttle.json");
        let old = r#"{"seed": 7, "rows": {
            "a x": {"models": 1, "schedules": 2, "seconds": 0.5},
            "a gone": {"models": 1, "schedules": 2, "seconds": 0.5},
            "ab x": {"models": 1, "schedules": 2, "seconds": 0.5}}}"#;
        std::fs::write(&file, old).unwrap();
        record(Some(&file), 0, &["a".into()], rows(&["a x", "a y"], 9)).unwrap();
        let done = Done::read(&file).unwrap();
        let found: Vec<_> = done
            .rows
            .iter()
            .map(|(name, row)| (name.as_str(), row.schedules, row.seed))
            .collect();
        assert_eq!(
            found,
            [("a x", 9, None), ("a y", 9, None), ("ab x", 2, Some(7))]
        );
        record(Some(&file), 0, &[], rows(&["b x"], 9)).unwrap();
        let done = Done::read(&file).unwrap();
        assert_eq!(done.rows.into_keys().collect::<Vec<_>>(), ["b x"]);
    }

    #[test]
    fn run_with_a_failed_model_is_not_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("shuttle.json");
        assert!(record(Some(&file), 0, &[], rows(&["a x"], 2)).unwrap());
        assert!(!record(Some(&file), 1, &[], rows(&["a x"], 9)).unwrap());
        assert_eq!(Done::read(&file).unwrap().rows["a x"].schedules, 2);
    }
}
