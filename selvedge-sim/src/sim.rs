//! `Sim`: the settings of runs, and one run.
use crate::{
    Disk,
    choice::Begin,
    failure::Failure,
    order::{Order, Polls},
    trace::Event,
};
use std::{fmt, future::Future, time::Duration};

/// The settings of a run. A run with the same settings repeats every choice.
///
/// ```
/// let run = selvedge_sim::Sim::new(7).workers(3).run(|| async {
///     let task = selvedge_executor::spawn(async { 6 * 7 });
///     assert_eq!(task.await.unwrap(), 42);
/// });
/// run.unwrap();
/// ```
#[derive(Clone, Debug)]
#[must_use = "a simulation runs when `run` is called"]
pub struct Sim {
    settings: Settings,
}

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) seed: u64,
    pub(crate) workers: usize,
    pub(crate) lists_tasks: bool,
    pub(crate) order: Order,
    pub(crate) polls: Polls,
    pub(crate) timer_bound: Duration,
    pub(crate) steps: u64,
    pub(crate) fairness: bool,
    pub(crate) watchdog: Option<Duration>,
    /// The number of the last events that the run keeps.
    pub(crate) kept_events: usize,
    /// The choices to make first, instead of new ones.
    pub(crate) replayed: Option<Vec<u32>>,
    pub(crate) records_choices: bool,
    /// Whether the messages of the program's panics are not printed.
    pub(crate) is_quiet: bool,
    /// The disks of the main function, and their paths.
    pub(crate) disks: Vec<(&'static str, Disk)>,
}

impl Sim {
    /// Makes the settings of a run: 2 workers, and each choice from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            settings: Settings {
                seed,
                workers: 2,
                lists_tasks: false,
                order: Order::Any,
                polls: Polls::Any,
                timer_bound: Duration::from_millis(25),
                steps: 2_000_000,
                fairness: true,
                watchdog: Some(Duration::from_secs(10)),
                kept_events: 0,
                replayed: None,
                records_choices: false,
                is_quiet: false,
                disks: Vec::new(),
            },
        }
    }

    /// Sets the number of workers of the runtime that [`run`](Self::run) makes.
    pub fn workers(mut self, workers: usize) -> Self {
        self.settings.workers = workers;
        self
    }

    /// Sets whether the runtime that [`run`](Self::run) makes lists its tasks. Then the failure
    /// [`Deadlock`](crate::Failure::Deadlock) says what each task waits for, and which of them wait
    /// for each other. The list changes the order in which threads run, as it takes locks.
    pub fn list_tasks(mut self, on: bool) -> Self {
        self.settings.lists_tasks = on;
        self
    }

    /// Sets the order in which threads run.
    pub fn order(mut self, order: Order) -> Self {
        self.settings.order = order;
        self
    }

    /// Sets how long polls take.
    pub fn polls(mut self, polls: Polls) -> Self {
        self.settings.polls = polls;
        self
    }

    /// Sets how late a timer may be served. 25 ms by default.
    pub fn timer_bound(mut self, bound: Duration) -> Self {
        self.settings.timer_bound = bound;
        self
    }

    /// Sets after how many steps a run counts as endless. 2,000,000 by default.
    pub fn steps(mut self, steps: u64) -> Self {
        self.settings.steps = steps;
        self
    }

    /// Sets whether a run fails if a task is ready for too long ([`Failure::Starved`]). True by
    /// default. A program that sets an interval of more than 61 ticks, or that holds tasks back on
    /// purpose, sets it to false.
    pub fn fairness(mut self, checks: bool) -> Self {
        self.settings.fairness = checks;
        self
    }

    /// Sets how long, in the time of the system, a thread may run without a switch. Then the
    /// process aborts, with the seed and the thread's name on stderr: nothing else can end such a
    /// thread. 10 seconds by default. `None` turns the watchdog off.
    pub fn watchdog(mut self, limit: Option<Duration>) -> Self {
        self.settings.watchdog = limit;
        self
    }

    /// Does not print the messages of the program's panics.
    pub(crate) fn quiet(mut self) -> Self {
        self.settings.is_quiet = true;
        self
    }

    /// Keeps the last events of the run, for [`Run::events`]. None by default. The switches between
    /// threads and the jumps of the time are only kept with `usize::MAX`.
    pub fn keep_events(mut self, events: usize) -> Self {
        self.settings.kept_events = events;
        self
    }

    /// Makes these choices first, instead of new ones, and then the simplest ones: those of
    /// [`Run::choices`], for example.
    pub fn choices(mut self, choices: Vec<u32>) -> Self {
        self.settings.replayed = Some(choices);
        self
    }

    /// Records the choices of the run, for [`Run::choices`].
    pub fn record_choices(mut self) -> Self {
        self.settings.records_choices = true;
        self
    }

    /// Puts a disk at a path, for [`run`](Self::run) and [`run_main`](Self::run_main). Below that
    /// path all files are simulated. Each run begins with an empty disk. A host has its own disks:
    /// [`Hosts::disk`](crate::Hosts::disk).
    ///
    /// Without the cfg `selvedge_sim` there is no disk, and the path is the system's.
    ///
    /// # Panics
    /// If the path is not absolute, or is `/`, or has a part `.` or `..`.
    #[track_caller]
    pub fn disk(mut self, path: &'static str, disk: Disk) -> Self {
        crate::disk_settings::check_path(path);
        self.settings.disks.push((path, disk));
        self
    }

    /// Runs the future of `app` in the `block_on` of a new runtime, whose threads are simulated.
    pub fn run<F: Future>(&self, app: impl FnOnce() -> F + Send + 'static) -> Run {
        let (workers, lists_tasks) = (self.settings.workers, self.settings.lists_tasks);
        self.run_main(move || {
            // A long poll of a simulation is no news.
            let builder = selvedge_executor::Builder::new()
                .workers(workers)
                .list_tasks(lists_tasks)
                .stall_threshold(Duration::MAX);
            let runtime = builder.build().expect("the simulator starts each thread");
            runtime.block_on(app());
        })
    }

    /// Returns a run of nothing.
    #[cfg(not(selvedge_sim))]
    pub(crate) fn run_nothing(&self) -> Run {
        imp::run(&self.settings, || {})
    }

    /// Runs `main` as the main function of a program, whose threads are simulated. `main` may make
    /// runtimes of its own.
    ///
    /// Each run has a new thread of the system. Without the cfg `selvedge_sim` this runs `main`
    /// once, on the calling thread.
    pub fn run_main(&self, main: impl FnOnce() + Send + 'static) -> Run {
        imp::run(&self.settings, main)
    }
}

/// Figures of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    /// The virtual time that has passed.
    pub time: Duration,
    /// The polls of tasks, and other places at which a thread may be replaced.
    pub points: u64,
    /// The switches from one thread to another.
    pub switches: u64,
    /// The order in which threads ran.
    pub order: Order,
    /// The threads of the system that the program has started, such as those of `std::thread`.
    /// They are not simulated.
    pub system_threads: u64,
}

/// The result of a run.
#[derive(Clone, Debug)]
#[must_use = "a run may have failed"]
pub struct Run {
    pub(crate) seed: u64,
    pub(crate) hash: u64,
    pub(crate) events: u64,
    pub(crate) kept: Vec<Event>,
    /// How many events gave way to the kept ones.
    pub(crate) lost: u64,
    /// The names of the hosts.
    pub(crate) hosts: Vec<String>,
    pub(crate) failure: Option<Failure>,
    pub(crate) choices: Vec<u32>,
    /// The choices of times at which a fault begins, if the choices were recorded.
    pub(crate) begins: Vec<Begin>,
    pub(crate) stats: Stats,
}

impl Run {
    /// Returns the seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the hash of all events. Runs with the same seed have the same hash.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the number of events.
    pub fn count_events(&self) -> u64 {
        self.events
    }

    /// Returns the last events, if [`Sim::keep_events`] says so.
    pub fn events(&self) -> &[Event] {
        &self.kept
    }

    /// Returns what the run has found.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Returns the choices of the run, if [`Sim::record_choices`] says so: lists by the matter of
    /// the choices, behind the lengths of these lists.
    pub fn choices(&self) -> &[u32] {
        &self.choices
    }

    /// Returns figures of the run.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Panics if the run has failed.
    ///
    /// # Panics
    /// If the run has failed.
    #[track_caller]
    pub fn unwrap(&self) {
        assert!(self.failure.is_none(), "{self}");
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {}: hash {:016x}, {} events",
            self.seed, self.hash, self.events
        )?;
        for event in &self.kept {
            writeln!(f, "{event}")?;
        }
        if self.stats.system_threads > 0 {
            writeln!(
                f,
                "the program has started {} threads of the system, which are not simulated",
                self.stats.system_threads
            )?;
        }
        match &self.failure {
            None => f.write_str("no failure"),
            Some(failure) => write!(f, "{}: {failure}", failure.kind()),
        }
    }
}

#[cfg(selvedge_sim)]
mod imp {
    use super::{Run, Settings};
    use crate::{
        system,
        world::{Ended, World},
    };
    use std::{
        panic::{self, AssertUnwindSafe},
        sync::Once,
        thread,
    };
    use sync_shim::sim;

    pub(super) fn run(settings: &Settings, main: impl FnOnce() + Send + 'static) -> Run {
        static HOOK: Once = Once::new();
        // A thread that unwinds cannot set the hook: then a report has no place of a panic.
        if !thread::panicking() {
            HOOK.call_once(|| {
                let next = panic::take_hook();
                panic::set_hook(Box::new(move |info| {
                    if sim::note_panic(info) {
                        World::while_panic_is_shown(|| next(info));
                    }
                }));
            });
        }
        let settings = settings.clone();
        let system = thread::Builder::new().name("simulation".to_owned());
        // Rule 7 of `world`.
        let run = system.spawn(move || run_here(settings, main));
        let run = run.expect("the system starts a thread for the run");
        run.join()
            .unwrap_or_else(|payload| panic::resume_unwind(payload))
    }

    fn run_here(settings: Settings, main: impl FnOnce() + 'static) -> Run {
        let seed = settings.seed;
        system::begin(seed);
        #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
        crate::syscalls::keep();
        let world = World::new(settings);
        let main = move || {
            if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(main)) {
                sim::end_by_panic(&*payload);
            }
        };
        world.run(Box::new(main));
        let hosts = world.host_names();
        let Ended {
            failure,
            trace,
            choices,
            begins,
            stats,
        } = world.into_result();
        let (hash, events, lost) = (trace.hash, trace.events, trace.lost);
        let kept = trace.into_kept();
        Run {
            seed,
            hash,
            events,
            kept,
            lost,
            hosts,
            failure,
            choices: choices.flatten(),
            begins,
            stats,
        }
    }
}

#[cfg(not(selvedge_sim))]
mod imp {
    use super::{Run, Settings, Stats};
    use crate::Failure;
    use std::panic::{self, AssertUnwindSafe};

    pub(super) fn run(settings: &Settings, main: impl FnOnce() + 'static) -> Run {
        let ended = panic::catch_unwind(AssertUnwindSafe(main));
        Run {
            seed: settings.seed,
            hash: 0,
            events: 0,
            kept: Vec::new(),
            lost: 0,
            hosts: Vec::new(),
            failure: ended.err().map(|_| Failure::Panic {
                thread: "main".to_owned(),
                message: "the message is above".to_owned(),
                place: None,
            }),
            choices: Vec::new(),
            begins: Vec::new(),
            stats: Stats::default(),
        }
    }
}
