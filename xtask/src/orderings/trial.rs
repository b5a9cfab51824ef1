//! Runs the models of a rewritten crate: all once as it is written, then for each mutant until one fails.
use super::sites::Site;
use crate::loom::{self, Model, Status};
use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashSet},
    fs,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

/// A model that passes on the crate as it is.
pub(crate) struct Judge {
    model: Model,
    seconds: f64,
    /// The sites at which it comes by.
    reaches: HashSet<usize>,
    /// What panics say in it without a mutant: a model may have some on purpose.
    panics: HashSet<String>,
}

/// How a mutant ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum End {
    /// A model failed.
    Killed,
    /// No model failed, but one took more than ten times as long as without the mutant, or more branches than the checker follows.
    Limit,
    Survived,
    /// Survived so far, when its time was up.
    GivenUp,
    /// No model comes by there.
    Unreached,
}

/// A mutant's fate.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub(crate) end: End,
    /// Who killed it.
    pub(crate) by: Option<String>,
    /// The first line of what its panic said, or how it ended.
    pub(crate) said: Option<String>,
    /// Models that were run.
    pub(crate) tried: usize,
    pub(crate) seconds: f64,
}

/// How models are run.
pub(crate) struct Bench<'a> {
    pub(crate) jobs: usize,
    /// What a model may take as the crate is written.
    pub(crate) limit: Duration,
    /// What all models of a mutant may take.
    pub(crate) mutant_limit: Duration,
    /// A model must say `model: ..`, and one that must fail judges nothing. Else any test is a model.
    pub(crate) ours: bool,
    pub(crate) scratch: &'a Path,
    /// Who killed which mutant in an earlier run: asked first.
    pub(crate) killers: &'a Killers,
}

/// By the site's key and the mutant.
pub(crate) type Killers = BTreeMap<String, String>;

/// What names a mutant in [`Killers`].
pub(crate) fn mutant_name(site: &str, how: &str) -> String {
    format!("{site} {how}")
}

impl Bench<'_> {
    /// Runs every model on the crate as it is.
    pub(crate) fn judges(&self, models: Vec<Model>) -> Result<Vec<Judge>> {
        let judges = self.each(&models, |index, model| {
            let log = self.scratch.join(format!("reached-{index}"));
            let _ = fs::remove_file(&log);
            let (outcome, said) =
                loom::run_one(model, self.limit, &[("ORDERINGS_REACHED", log.as_os_str())])?;
            let fine = outcome.status.passes() || (!self.ours && outcome.status == Status::NoModel);
            ensure!(
                fine,
                "{} does not pass without a mutant:\n{said}",
                model.name
            );
            let reached = fs::read_to_string(&log).unwrap_or_default();
            Ok((outcome.status != Status::FailedAsItMust).then(|| Judge {
                model: model.clone(),
                seconds: outcome.seconds,
                panics: panics(&said).map(str::to_owned).collect(),
                reaches: reached
                    .lines()
                    .filter_map(|line| line.parse().ok())
                    .collect(),
            }))
        })?;
        Ok(judges.into_iter().flatten().collect())
    }

    /// Runs the mutants, each against the models that come by its site: first the one that killed it before, then those of the site's own
    /// module, the quick ones first. `done` is called after each.
    pub(crate) fn verdicts(
        &self,
        mutants: &[(usize, &Site, &str)],
        judges: &[Judge],
        done: impl Fn() + Sync,
    ) -> Result<Vec<Verdict>> {
        self.each(mutants, |_, &(number, site, how)| {
            let verdict = self.verdict(number, site, how, judges);
            done();
            verdict
        })
    }

    fn verdict(&self, number: usize, site: &Site, how: &str, judges: &[Judge]) -> Result<Verdict> {
        let mut near: Vec<_> = judges
            .iter()
            .filter(|judge| judge.reaches.contains(&number))
            .collect();
        let killer = self.killers.get(&mutant_name(&site.key, how));
        near.sort_by(|a, b| {
            let key = |judge: &Judge| {
                let name = &judge.model.name;
                Reverse((killer == Some(name), shared(name, &site.module)))
            };
            key(a).cmp(&key(b)).then(a.seconds.total_cmp(&b.seconds))
        });
        let begun = Instant::now();
        let mutant = format!("{number}:{how}");
        let mut verdict = Verdict {
            end: if near.is_empty() {
                End::Unreached
            } else {
                End::Survived
            },
            by: None,
            said: None,
            tried: 0,
            seconds: 0.0,
        };
        for judge in near {
            if begun.elapsed() > self.mutant_limit {
                if verdict.end == End::Survived {
                    verdict.end = End::GivenUp;
                }
                break;
            }
            // A weaker ordering has more executions, which is no bug: the limit leaves room for them.
            let limit = Duration::from_secs_f64((10.0 * judge.seconds).max(10.0));
            let (outcome, said) = loom::run_one(
                &judge.model,
                limit,
                &[("ORDERINGS_MUTANT", mutant.as_ref())],
            )?;
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

    /// Runs `work` on all, a few at a time, and gives the results in order. The first error ends it.
    fn each<T: Sync, R: Send>(
        &self,
        all: &[T],
        work: impl Fn(usize, &T) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let next = AtomicUsize::new(0);
        let results: Mutex<Vec<_>> = Mutex::new(all.iter().map(|_| None).collect());
        thread::scope(|scope| {
            for _ in 0..self.jobs {
                scope.spawn(|| {
                    // Ordering: Relaxed; the number is all that is shared, the results are under the lock.
                    while let Some((index, item)) =
                        Some(next.fetch_add(1, Relaxed)).and_then(|i| Some((i, all.get(i)?)))
                    {
                        let result = work(index, item);
                        if result.is_err() {
                            next.store(all.len(), Relaxed);
                        }
                        results.lock().expect("no job panics")[index] = Some(result);
                    }
                });
            }
        });
        let results: Result<Vec<_>> = results
            .into_inner()
            .expect("no job panics")
            .into_iter()
            .flatten()
            .collect();
        let results = results?;
        ensure!(results.len() == all.len(), "a job ended early");
        Ok(results)
    }
}

/// How a mutant ends for one model.
fn end(status: Status, said: &str) -> End {
    match status {
        // Loom's own word: an endless loop, or only a longer way.
        Status::Failed if said.starts_with("Model exceeded maximum number of branches") => {
            End::Limit
        }
        Status::Failed => End::Killed,
        Status::Truncated => End::Limit,
        _ => End::Survived,
    }
}

/// The first line of what each panic says, in order.
fn panics(said: &str) -> impl Iterator<Item = &str> {
    let lines = said.lines().zip(said.lines().skip(1));
    lines.filter_map(|(line, next)| {
        let panicked = line.starts_with("thread '") && line.contains(" panicked at ");
        panicked.then_some(next)
    })
}

/// What the first panic says that is not one of `usual`; if there is none, the last line: how the process ended.
fn first_new(said: &str, usual: &HashSet<String>) -> String {
    let new = panics(said).find(|line| !usual.contains(*line));
    new.or(said.lines().last()).unwrap_or_default().to_owned()
}

/// How many modules two paths have in common from the start.
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
    fn a_kill_says_what_the_model_found_and_not_what_it_always_says() {
        let usual = HashSet::from(["meant to".into()]);
        assert_eq!(first_new(&said("lost"), &HashSet::new()), "meant to");
        assert_eq!(first_new(&said("lost"), &usual), "lost");
        let aborted = "running 1 test\n\nsignal: 6 (SIGABRT)";
        assert_eq!(first_new(aborted, &usual), "signal: 6 (SIGABRT)");
    }

    #[test]
    fn more_branches_than_the_checker_follows_are_no_kill() {
        let branches = "Model exceeded maximum number of branches. This is often caused \
                        by an algorithm requiring the processor to make progress, e.g. spin locks.";
        assert_eq!(end(Status::Failed, branches), End::Limit);
        assert_eq!(end(Status::Failed, "lost"), End::Killed);
        assert_eq!(end(Status::Truncated, ""), End::Limit);
        assert_eq!(end(Status::Ok, ""), End::Survived);
    }
}
