//! Runs a scenario under the backend: in all executions under loom, in many schedules elsewhere.
//!
//! A test that calls [`model`] is a *model*. When a model ends it prints one line on standard
//! output: `model: executions=N bound=B outcome=O`. `cargo xtask loom` reads this line. `B` is
//! `none` or the preemption bound. `O` is `complete`. For a negative model, `O` is
//! `failed-as-it-must`, or `not-here` under a backend that cannot tell.
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Runs `scenario` under the backend without a bound. See [`Model`].
///
/// The variable `SELVEDGE_BOUND` bounds the preemptions of a model that has no bound, for a quick
/// look under loom.
pub fn model(scenario: impl Fn() + Send + Sync + 'static) {
    Model::new().check(scenario);
}

/// Asserts that the model of `scenario` fails with a message that contains `expected`.
///
/// The scenario contains a bug on purpose. So the test shows that a model would find that bug. Only
/// loom explores every execution, so the other backends skip the scenario.
pub fn model_must_fail(expected: &str, scenario: impl Fn() + Send + Sync + 'static) {
    Model::new().must_fail(expected, scenario);
}

/// A builder that sets how a scenario is explored.
#[derive(Clone, Debug, Default)]
pub struct Model {
    bound: Option<usize>,
    branches: Option<usize>,
    whole_fences: bool,
}

impl Model {
    /// Explores all executions, without a bound.
    pub fn new() -> Self {
        Self::default()
    }

    /// Explores only executions with at most `preemptions` preemptions: for a scenario that does
    /// not finish otherwise.
    pub fn bound(mut self, preemptions: usize) -> Self {
        self.bound = Some(preemptions);
        self
    }

    /// Allows `branches` scheduling points an execution, instead of loom's 1,000.
    pub fn branches(mut self, branches: usize) -> Self {
        self.branches = Some(branches);
        self
    }

    /// Lets no other thread run between a `SeqCst` fence and the operation before it. This explores
    /// fewer executions: for a scenario that does not finish otherwise.
    pub fn whole_fences(mut self) -> Self {
        self.whole_fences = true;
        self
    }

    /// Runs `scenario`, and panics if an execution fails.
    pub fn check(self, scenario: impl Fn() + Send + Sync + 'static) {
        let runs = Arc::new(AtomicU64::new(0));
        self.explore(&runs, scenario);
        self.report(&runs, "complete");
    }

    /// Runs several independent scenarios as [`check`](Self::check) does. The number of executions
    /// is the sum of the scenarios' executions, not the product.
    #[cfg(feature = "conformance")]
    pub(crate) fn check_each(self, scenarios: Vec<Box<dyn Fn() + Send + Sync>>) {
        let runs = Arc::new(AtomicU64::new(0));
        for scenario in scenarios {
            self.explore(&runs, scenario);
        }
        self.report(&runs, "complete");
    }

    /// Runs `scenario`, and panics if no execution fails, or if one fails with a message that does
    /// not contain `expected`. Except under loom, only prints the model's line.
    pub fn must_fail(self, expected: &str, scenario: impl Fn() + Send + Sync + 'static) {
        let runs = Arc::new(AtomicU64::new(0));
        if cfg!(not(selvedge_loom)) {
            return self.report(&runs, "not-here");
        }
        let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.explore(&runs, scenario))) else {
            panic!("the model of a broken scenario passed: it does not find the bug");
        };
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
        let said = said.unwrap_or("nothing");
        assert!(
            said.contains(expected),
            "the model of a broken scenario failed with {said:?}, not with {expected:?}"
        );
        self.report(&runs, "failed-as-it-must");
    }

    /// Returns the model's own bound. If it has none, returns the bound in `SELVEDGE_BOUND`, if
    /// that is set.
    fn bound_here(&self) -> Option<usize> {
        let bound = std::env::var("SELVEDGE_BOUND").ok();
        let number = |bound: String| bound.parse().expect("SELVEDGE_BOUND is a number");
        self.bound.or_else(|| bound.map(number))
    }

    fn report(&self, runs: &AtomicU64, outcome: &str) {
        let bound = self.bound_here().map_or("none".into(), |b| b.to_string());
        // Ordering: Relaxed, nothing else depends on this count.
        let runs = runs.load(Relaxed);
        // Begins a new line, as the test runner has printed `test name ... `.
        println!("\nmodel: executions={runs} bound={bound} outcome={outcome}");
    }

    #[cfg(selvedge_loom)]
    fn explore(&self, runs: &Arc<AtomicU64>, scenario: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        // loom's own limits end a run with success; a model that is cut short must not pass.
        builder.max_permutations = None;
        builder.max_duration = None;
        builder.preemption_bound = self.bound_here();
        if let Some(branches) = self.branches {
            builder.max_branches = branches;
        }
        struct PrintStepsOnPanic;
        impl Drop for PrintStepsOnPanic {
            fn drop(&mut self) {
                crate::backend::imp::steps::print_if_panicking();
            }
        }
        let _print = PrintStepsOnPanic;
        let (runs, fences_are_steps) = (runs.clone(), !self.whole_fences);
        builder.check(move || {
            crate::backend::imp::atomic::begin(fences_are_steps);
            // Ordering: Relaxed, as in `report`.
            runs.fetch_add(1, Relaxed);
            scenario();
        });
    }

    /// Explores [`iterations`] schedules: half of them random, half by random priorities that
    /// change at up to two places (a PCT depth of 3). `SELVEDGE_SEED` repeats a run.
    #[cfg(selvedge_shuttle)]
    fn explore(&self, runs: &Arc<AtomicU64>, scenario: impl Fn() + Send + Sync + 'static) {
        use shuttle::{
            Config, Runner,
            scheduler::{PctScheduler, RandomScheduler},
        };
        let iterations = iterations(1_000);
        let now = || std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
        let seed = number("SELVEDGE_SEED").unwrap_or_else(now);
        println!("\nseed: {seed}");
        let mut config = Config::default();
        config.stack_size = 0x4_0000;
        let runs = runs.clone();
        let scenario = Arc::new(move || {
            // Ordering: Relaxed, as in `report`.
            runs.fetch_add(1, Relaxed);
            scenario();
        });
        let (random, pct) = (scenario.clone(), scenario);
        let half = iterations / 2;
        let schedules = RandomScheduler::new_from_seed(seed, iterations - half);
        Runner::new(schedules, config.clone()).run(move || random());
        let schedules = PctScheduler::new_from_seed(seed, 3, half);
        Runner::new(schedules, config).run(move || {
            // This scheduler rejects a scenario in which only one thread can run at each moment,
            // and a conformance kit has such scenarios. The bystander is a second thread.
            let bystander = shuttle::thread::spawn(|| ());
            shuttle::thread::yield_now();
            pct();
            bystander.join().expect("the bystander does nothing");
        });
    }

    #[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
    fn explore(&self, runs: &Arc<AtomicU64>, scenario: impl Fn() + Send + Sync + 'static) {
        for _ in 0..iterations(200) {
            // Ordering: Relaxed, as in `report`.
            runs.fetch_add(1, Relaxed);
            scenario();
        }
    }
}

/// Returns the number of executions of a model where they are not all explored.
/// `SELVEDGE_ITERATIONS` replaces the usual number.
#[cfg(not(selvedge_loom))]
fn iterations(usual: u64) -> usize {
    number("SELVEDGE_ITERATIONS").unwrap_or(usual) as usize
}

/// Returns the number in a variable, if it is set.
#[cfg(not(selvedge_loom))]
fn number(variable: &str) -> Option<u64> {
    let said = std::env::var(variable).ok()?;
    let number = said.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable} is a number")))
}
