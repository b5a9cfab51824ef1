//! `cargo xtask shuttle`: the models, and the histories of many threads, under random schedules.
//!
//! It finds what the model checker can't reach for size: seven threads, or a whole runtime without a bound. It looks at samples, and takes every
//! ordering for sequentially consistent. Half of the schedules are random, half go by priorities (PCT, depth 3).
use crate::{
    loom::{self, Build, Model, Status},
    workspace,
};
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, VecDeque},
    path::{Path, PathBuf},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

/// Options of `cargo xtask shuttle`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only the models of these packages.
    #[arg(long = "crate", value_name = "PACKAGE")]
    crates: Vec<String>,
    /// Only models whose path contains this.
    #[arg(long, value_name = "TEXT")]
    model: Option<String>,
    /// Schedules a structure, shared by its models. 50000, or 1000000 with --full.
    #[arg(long)]
    schedules: Option<u64>,
    /// As many as a report needs.
    #[arg(long)]
    full: bool,
    /// Repeats a run: what a failed one printed.
    #[arg(long)]
    seed: Option<u64>,
    /// Writes the results to a file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Models at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

/// What ran.
#[derive(Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) seed: u64,
    /// By structure.
    pub(crate) rows: BTreeMap<String, Row>,
}

/// What ran over one structure.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) models: usize,
    pub(crate) schedules: u64,
    seconds: f64,
}

/// Runs them; false when one failed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    ensure!(options.jobs > 0, "--jobs is at least 1");
    workspace::writable(options.json.as_deref())?;
    let mut models = find(options)?;
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
    let queue = Mutex::new(VecDeque::from(models));
    let results = Mutex::new((BTreeMap::<String, Row>::new(), 0));
    let begun = Instant::now();
    let job = || -> Result<()> {
        loop {
            let Some(model) = queue.lock().expect("no job panics").pop_front() else {
                return Ok(());
            };
            let name = structure(&model);
            let each = total.div_ceil(counts[&name]).max(2);
            let environment = [
                ("SELVEDGE_ITERATIONS", each.to_string()),
                ("SELVEDGE_SEED", seed.to_string()),
            ];
            let environment = environment.each_ref().map(|(k, v)| (*k, v.as_ref()));
            let (outcome, said) = loom::run_one(&model, Duration::from_secs(3_600), &environment)?;
            let mut results = results.lock().expect("no job panics");
            if !outcome.status.passes() {
                results.1 += 1;
                say!("{} {}: FAILED\n{said}", model.package, model.name);
            }
            let row = results.0.entry(name).or_default();
            row.models += 1;
            row.schedules += outcome.executions;
            row.seconds += outcome.seconds;
        }
    };
    let ended: Vec<_> = thread::scope(|scope| {
        let jobs: Vec<_> = (0..options.jobs).map(|_| scope.spawn(job)).collect();
        jobs.into_iter().map(|job| job.join()).collect()
    });
    for job in ended {
        job.expect("no job panics")?;
    }
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
    if let Some(file) = &options.json {
        let json = serde_json::to_string_pretty(&Done { seed, rows })?;
        std::fs::write(file, json).with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(failed == 0)
}

/// Whether it does anything here: negative models are the model checker's.
fn is_here(model: &Model) -> Result<bool> {
    let environment = [("SELVEDGE_ITERATIONS", "2".as_ref())];
    let (outcome, said) = loom::run_one(model, Duration::from_secs(60), &environment)?;
    Ok(outcome.status != Status::NoModel || !said.contains("outcome=not-here"))
}

/// Whose model it is: the crate, and the module above `models`; of histories that word.
fn structure(model: &Model) -> String {
    let module = match model.name.split_once("models::") {
        Some((module, _)) => module.trim_end_matches("::").replace("::", "/"),
        None => "histories".into(),
    };
    [model.package.as_str(), &module]
        .join(" ")
        .trim_end()
        .into()
}

fn find(options: &Options) -> Result<Vec<Model>> {
    let (packages, root) = workspace::load()?;
    let modelled: Vec<_> = packages
        .iter()
        .filter(|package| package.is_modelled() && package.name != "sync-shim")
        .collect();
    for name in &options.crates {
        ensure!(
            modelled.iter().any(|package| package.name == *name),
            "no crate {name} with models; there are {}",
            modelled
                .iter()
                .map(|package| package.name.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        );
    }
    let mut models = Vec::new();
    for package in modelled {
        if !options.crates.is_empty() && !options.crates.contains(&package.name) {
            continue;
        }
        let build = Build {
            root: &root,
            target: Path::new("target/shuttle"),
            flags: "--cfg selvedge_shuttle -C debug-assertions=on",
            features: None,
            targets: if package.has_test("histories") {
                &["--lib", "--test", "histories"]
            } else {
                loom::LIB
            },
        };
        for binary in build.binaries(&package.name)? {
            let name = binary.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with("histories-") {
                models.extend(loom::tests(&package.name, &binary)?);
            } else {
                models.extend(loom::list(&package.name, binary)?);
            }
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
            package: "a".into(),
            binary: PathBuf::new(),
            name: name.into(),
        };
        assert_eq!(structure(&model("ring::models::b")), "a ring");
        assert_eq!(structure(&model("models::b")), "a");
        assert_eq!(structure(&model("b")), "a histories");
    }
}
