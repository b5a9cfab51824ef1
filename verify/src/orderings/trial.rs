//! Runs the models of a crate: first each model once without a mutant; then, for each mutant, one
//! model after the other until a model fails.
use super::mutants::Mutant;
use crate::{
    jobs,
    loom::{self, Model, Status},
};
use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use std::{
    cmp::Reverse,
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// A model that passes without a mutant.
pub(crate) struct Judge {
    model: Model,
    seconds: f64,
    /// The calls that the model makes, as sync-shim records them: place, name and orderings.
    pub(crate) calls: HashSet<String>,
    /// The messages of the model's panics without a mutant: a model may panic on purpose.
    panics: HashSet<String>,
}

/// The end of a mutant's trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum End {
    /// A model failed.
    Killed,
    /// No model failed, but one took more than ten times as long as without the mutant, or more
    /// branches than the checker follows.
    Limit,
    Survived,
    /// The mutant had survived when its time was up.
    GivenUp,
    /// No model reaches the call.
    #[default]
    Unreached,
}

/// The result of a mutant's trial.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) end: End,
    /// The model that killed the mutant, or that came to a limit.
    pub(crate) by: Option<String>,
    /// The first line of the panic's message, or how the process ended.
    pub(crate) said: Option<String>,
    /// The number of models that ran.
    pub(crate) tried: usize,
    pub(crate) seconds: f64,
}

/// The limits and binaries with which models run.
pub(crate) struct Bench<'a> {
    pub(crate) jobs: usize,
    /// The longest time of a model without a mutant.
    pub(crate) limit: Duration,
    /// The longest time of all models of a mutant together.
    pub(crate) mutant_limit: Duration,
    pub(crate) scratch: &'a Path,
    /// The test binary of the tree with the listed changes, if there is one.
    pub(crate) changed: Option<PathBuf>,
    /// Returns the model that killed a mutant in an earlier run. This model runs first.
    pub(crate) killer: &'a (dyn Fn(&Mutant) -> Option<&'a str> + Sync),
}

impl Bench<'_> {
    /// Runs every model without a mutant. A model that must fail becomes no judge.
    pub(crate) fn judges(&self, models: &[Model]) -> Result<Vec<Judge>> {
        let judges = jobs::each(self.jobs, models, |model| {
            let file = self.scratch.join(model.name.replace(':', "-"));
            let _ = fs::remove_file(&file);
            let record = [("SELVEDGE_SITES", file.as_os_str())];
            let (outcome, said) = loom::run_one(model, self.limit, &record)?;
            ensure!(
                outcome.status.passes(),
                "{} does not pass without a mutant:\n{said}",
                model.name
            );
            let calls = fs::read_to_string(&file).unwrap_or_default();
            let _ = fs::remove_file(&file);
            Ok((outcome.status != Status::FailedAsItMust).then(|| Judge {
                model: model.clone(),
                seconds: outcome.seconds,
                panics: panics(&said).map(str::to_owned).collect(),
                calls: calls.lines().map(str::to_owned).collect(),
            }))
        })?;
        Ok(judges.into_iter().flatten().collect())
    }

    /// Runs a mutant against the models that reach its place, or against all models if the place
    /// cannot be told. The model that killed the mutant before runs first. The other models
    /// follow, those nearest to the site's module first, and of equally near models the quick ones
    /// first.
    pub(crate) fn verdict(&self, mutant: &Mutant, judges: &[Judge]) -> Result<Verdict> {
        let comes_by = |judge: &&Judge| {
            let is_there = |place: &String| {
                let is_place = |call: &String| call.split(' ').next() == Some(place);
                judge.calls.iter().any(is_place)
            };
            mutant.place.as_ref().is_none_or(is_there)
        };
        let mut near: Vec<_> = judges.iter().filter(comes_by).collect();
        let killer = (self.killer)(mutant);
        near.sort_by(|a, b| {
            let key = |judge: &Judge| {
                let name = &*judge.model.name;
                Reverse((killer == Some(name), shared(name, &mutant.module)))
            };
            key(a).cmp(&key(b)).then(a.seconds.total_cmp(&b.seconds))
        });
        let begun = Instant::now();
        let mut verdict = Verdict {
            end: if near.is_empty() {
                End::Unreached
            } else {
                End::Survived
            },
            ..Verdict::default()
        };
        for judge in near {
            if begun.elapsed() > self.mutant_limit {
                if verdict.end == End::Survived {
                    verdict.end = End::GivenUp;
                }
                break;
            }
            let mut model = judge.model.clone();
            if let (true, Some(binary)) = (mutant.is_change, &self.changed) {
                model.binary.clone_from(binary);
            }
            // A weaker ordering has more executions, which is no bug: the limit leaves time for
            // them.
            let limit = Duration::from_secs_f64((10.0 * judge.seconds).max(10.0));
            let chosen = [("SELVEDGE_MUTANT", mutant.name.as_ref())];
            let (outcome, said) = loom::run_one(&model, limit, &chosen)?;
            verdict.tried += 1;
            verdict.seconds = begun.elapsed().as_secs_f64();
            let said = first_new(&said, &judge.panics);
            let by = || Some(judge.model.name.clone());
            match end(outcome.status, &said) {
                End::Killed => {
                    (verdict.end, verdict.by, verdict.said) = (End::Killed, by(), Some(said));
                    return Ok(verdict);
                }
                End::Limit if verdict.end == End::Survived => {
                    (verdict.end, verdict.by) = (End::Limit, by());
                }
                _ => {}
            }
        }
        Ok(verdict)
    }
}

/// Returns the end of a mutant's run against one model.
fn end(status: Status, said: &str) -> End {
    match status {
        // Loom's own message. The execution may be endless, or only longer than loom follows.
        Status::Failed if said.starts_with("Model exceeded maximum number of branches") => {
            End::Limit
        }
        Status::Failed => End::Killed,
        Status::Truncated => End::Limit,
        _ => End::Survived,
    }
}

/// Returns the first line of each panic's message, in order.
fn panics(said: &str) -> impl Iterator<Item = &str> {
    let lines = said.lines().zip(said.lines().skip(1));
    lines.filter_map(|(line, next)| {
        let panicked = line.starts_with("thread '") && line.contains(" panicked at ");
        panicked.then_some(next)
    })
}

/// Returns the first panic's message that is not in `usual`; without one, the last line, which says
/// how the process ended.
fn first_new(said: &str, usual: &HashSet<String>) -> String {
    let new = panics(said).find(|line| !usual.contains(*line));
    new.or(said.lines().last()).unwrap_or_default().to_owned()
}

/// Counts the modules that two paths share from the start.
fn shared(test: &str, module: &str) -> usize {
    let pairs = test.split("::").zip(module.split("::"));
    pairs.take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(message: &str) -> String {
        format!(
            "running 1 test\n\nthread 'models::a' (7) panicked at a.rs:1:2:\nmeant to\nnote: a note\n\n\
             thread 'models::a' (7) panicked at a.rs:3:4:\n{message}\nmore\n\nexit status: 101"
        )
    }

    #[test]
    fn kill_is_reported_by_its_first_unusual_line() {
        let usual = HashSet::from(["meant to".into()]);
        assert_eq!(first_new(&said("lost"), &HashSet::new()), "meant to");
        assert_eq!(first_new(&said("lost"), &usual), "lost");
        let aborted = "running 1 test\n\nsignal: 6 (SIGABRT)";
        assert_eq!(first_new(aborted, &usual), "signal: 6 (SIGABRT)");
    }

    #[test]
    fn too_many_branches_count_as_a_limit_and_not_as_a_kill() {
        let branches = "Model exceeded maximum number of branches. This is often caused \
                        by an algorithm requiring the processor to make progress, e.g. spin locks.";
        assert_eq!(end(Status::Failed, branches), End::Limit);
        assert_eq!(end(Status::Failed, "lost"), End::Killed);
        assert_eq!(end(Status::Truncated, ""), End::Limit);
        assert_eq!(end(Status::Ok, ""), End::Survived);
    }
}
