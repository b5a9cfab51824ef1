//! Many runs of a scenario, and the smallest form of a failure.
use crate::{Event, Failure, Run, Sim, choice::Lists, shrink::Shrinking};
use std::{fmt, ops::Range};

/// Every run of a seed with this remainder is repeated, to check that its events repeat.
const REPEATED: u64 = 16;

/// How often two runs of a seed are compared, to find the first event that differs.
const PAIRS: usize = 8;

/// The events that a report shows.
const SHOWN: usize = 60;

/// The result of [`explore`].
#[derive(Clone, Debug)]
#[must_use = "a run may have failed"]
pub struct Explored {
    /// The number of seeds that were run.
    pub runs: u64,
    /// The polls of all runs, and other places at which a thread may be replaced.
    pub points: u64,
    /// The hash of all events of all runs.
    pub hash: u64,
    /// The first failure.
    pub found: Option<Found>,
}

/// A seed that fails, and its smallest form.
#[derive(Clone, Debug)]
pub struct Found {
    /// The run of the choices below, with its last events.
    pub run: Run,
    /// Choices that lead to the failure, as [`Run::choices`] has them. Most of them are 0, the
    /// simplest choice. Beyond the end of a list each choice is 0. `None` if the failure did not
    /// repeat, or is a difference between two runs: then the seed makes the choices.
    pub choices: Option<Vec<u32>>,
    /// The number of choices of the seed's own run, if they were recorded.
    pub choices_before: usize,
}

impl Found {
    /// Returns how many of the shrunk choices are not the simplest, if there are choices.
    pub fn count_choices(&self) -> Option<usize> {
        let choices = self.choices.as_ref()?;
        Some(Lists::from_flat(choices).others())
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(choices) = &self.choices {
            let lists = Lists::from_flat(choices);
            writeln!(
                f,
                "{} choices, shrunk to {} of which {} are not the simplest",
                self.choices_before,
                lists.len(),
                lists.others(),
            )?;
        } else {
            f.write_str("the failure does not follow from the choices of the seed\n")?;
        }
        self.run.fmt(f)
    }
}

/// Runs a scenario with each seed, until one fails. Then makes the failure smaller.
///
/// A seed in 16 is run twice: if its events differ, that is a failure too
/// ([`Failure::Diverged`]). Without the cfg `selvedge_sim` this runs the first seed alone.
///
/// ```
/// let explored = selvedge_sim::explore(0..100, |sim| {
///     sim.workers(3).run(|| async {
///         selvedge_executor::spawn(selvedge_executor::yield_now()).await.unwrap();
///     })
/// });
/// assert!(explored.found.is_none());
/// ```
pub fn explore(seeds: Range<u64>, scenario: impl Fn(Sim) -> Run) -> Explored {
    let mut explored = Explored {
        runs: 0,
        points: 0,
        hash: 0,
        found: None,
    };
    for seed in seeds {
        let run = scenario(Sim::new(seed));
        explored.runs += 1;
        explored.points += run.stats.points;
        explored.hash = explored.hash.rotate_left(1) ^ run.hash;
        if run.failure.is_some() {
            explored.found = Some(find(seed, run, &scenario));
            break;
        }
        if cfg!(not(selvedge_sim)) {
            break;
        }
        if seed % REPEATED == 0 {
            let again = scenario(Sim::new(seed));
            if again.hash != run.hash {
                explored.found = Some(Found {
                    run: find_difference(seed, &scenario).unwrap_or(Run {
                        failure: Some(Failure::Diverged(
                            format!("a run of {} events", run.events),
                            format!("a run of {} events", again.events),
                        )),
                        ..again
                    }),
                    choices: None,
                    choices_before: 0,
                });
                break;
            }
        }
    }
    explored
}

/// Runs a seed twice, a few times. Returns a failed run with the first event that differs.
pub(crate) fn find_difference(seed: u64, scenario: impl Fn(Sim) -> Run) -> Option<Run> {
    (0..PAIRS).find_map(|_| {
        let whole = || scenario(Sim::new(seed).quiet().keep_events(usize::MAX));
        let (one, other) = (whole(), whole());
        if one.hash == other.hash {
            return None;
        }
        let event = |event: Option<&Event>| event.map_or("no more events".into(), Event::to_string);
        let mut pairs = one.kept.iter().zip(&other.kept);
        let at = pairs.position(|(one, other)| one != other);
        let at = at.unwrap_or(one.kept.len().min(other.kept.len()));
        let diverged = Failure::Diverged(event(one.kept.get(at)), event(other.kept.get(at)));
        let from = at.saturating_sub(SHOWN);
        let kept = one.kept[from..at].to_vec();
        Some(Run {
            kept,
            failure: Some(diverged),
            ..one
        })
    })
}

/// Shrinks the failure of this seed. The program may not repeat its runs, so each step keeps the
/// last run that has failed in this way.
fn find(seed: u64, failed: Run, scenario: impl Fn(Sim) -> Run) -> Found {
    let Some(failure) = failed.failure.clone() else {
        unreachable!("only a failed run is shrunk");
    };
    let fails = |sim: Sim| {
        let run = scenario(sim.quiet());
        let is_like = |found: &Failure| found.is_like(&failure);
        run.failure.as_ref().is_some_and(is_like).then_some(run)
    };
    let Some(recorded) = fails(Sim::new(seed).record_choices()) else {
        return Found {
            run: failed,
            choices: None,
            choices_before: 0,
        };
    };
    let lists = Lists::from_flat(&recorded.choices);
    let choices_before = lists.len();
    let run = |lists: &Lists, kept| {
        let sim = Sim::new(seed).choices(lists.flatten());
        scenario(sim.record_choices().keep_events(kept).quiet())
    };
    let is_like = |run: &Run| {
        let is_like = |found: &Failure| found.is_like(&failure);
        run.failure.as_ref().is_some_and(is_like)
    };
    let choices = Shrinking::new(run, is_like).shrink(lists).flatten();
    let shown = fails(Sim::new(seed).choices(choices.clone()).keep_events(SHOWN));
    let choices = shown.is_some().then_some(choices);
    // Otherwise the program has state outside of its runs.
    Found {
        run: shown.unwrap_or(failed),
        choices,
        choices_before,
    }
}
