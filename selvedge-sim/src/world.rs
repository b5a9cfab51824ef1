//! One run: its threads as fibers, its clock, and the checks.
//!
//! The crate's front page tells how it works. Rules of the code:
//!
//! 1. `run` is the loop of the system's thread. It resumes the body of one thread at a time. The
//!    calls of `Host` (in `host`) come from a body, on its own stack. They change the state here,
//!    and may [`switch`](World::switch) back to the loop.
//! 2. No borrow of a cell lasts across a switch, or across a call of the program's code.
//! 3. A thread that can run is in `ready`, is `current`, or is `chosen`. A thread that waits is in
//!    none of them. `wake` and the end of its limit put it back into `ready`, one of the two: each
//!    wait has a number, and a limit ends only the wait with its number.
//! 4. A thread whose wait is [`Wait::Busy`] counts as running in the checks.
//! 5. The checks (`checks`) run on the system's thread while no body runs. They find no fiber, so
//!    they must not wait: they use locks that no thread holds while it waits.
//! 6. A body that has not ended when a check fails is leaked, with its stack and all values there:
//!    a static of the program may refer to them.
//! 7. Each run has a thread of the system of its own, so that the panics and the thread-locals of
//!    one run do not reach the next.
mod checks;
mod futexes;
mod host;
mod hosts;
mod limits;
mod network;
mod stacks;
mod tasks;
mod threads;

use crate::{
    choice::{About, Begin, Choices, Lists, Random},
    failure::Failure,
    net::{HostId, Network},
    order::Order,
    rule::Rule,
    sim::{Settings, Stats},
    system,
    trace::Trace,
    watchdog::Watched,
};
use corosensei::CoroutineResult;
use limits::Limits;
use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    ptr,
    sync::Weak,
    time::{Duration, Instant},
};
use sync_shim::sim::{Fiber, Host, Run, Subject, Wait};
use tasks::Tasks;
use threads::{State, Threads};

/// How long, in nanoseconds, the other threads may go on after the main function has ended.
const TIME_AFTER_MAIN: u64 = 60_000_000_000;

pub(crate) struct World {
    settings: Settings,
    run: Run,
    now: Cell<u64>,
    /// The end of the first time limit, or `u64::MAX`.
    next_limit: Cell<u64>,
    threads: RefCell<Threads>,
    ready: RefCell<Vec<u32>>,
    limits: RefCell<Limits>,
    rule: RefCell<Rule>,
    polls_take_time: bool,
    choices: RefCell<Choices>,
    /// The random numbers from which a choice is made.
    for_choices: RefCell<Random>,
    /// The random numbers of the program.
    for_program: RefCell<Random>,
    trace: RefCell<Trace>,
    tasks: RefCell<Tasks>,
    /// The parts to check, each with its host.
    subjects: RefCell<Vec<(HostId, Weak<dyn Subject>)>>,
    fleet: RefCell<hosts::Fleet>,
    /// Whether some hosts are slow, or have another date.
    hosts_differ: Cell<bool>,
    network: RefCell<Network>,
    futexes: RefCell<Vec<futexes::FutexWait>>,
    /// The addresses of locks that a thread of this run has held while another waited, and of
    /// condition variables that one has notified.
    own_words: RefCell<BTreeSet<usize>>,
    /// The thread that shows its panic, or 0.
    shows_panic: Cell<u32>,
    /// Whether the simulator itself runs, on the stack of a thread.
    is_within: Cell<bool>,
    /// A fault is due, which only happens while no thread runs.
    fault_is_due: Cell<bool>,
    /// The time since which there was unserved work whenever no thread could run.
    unserved_since: Cell<Option<u64>>,
    /// Whether locks note the tasks that hold them.
    notes_holders: Cell<bool>,
    /// The threads that waited when the run was found to be in a deadlock, while the runtimes say
    /// what their tasks wait for.
    deadlock: RefCell<Option<Vec<String>>>,
    failure: RefCell<Option<Failure>>,
    steps: Cell<u64>,
    switches: Cell<u64>,
    points: Cell<u64>,
    /// The calls of the system since a thread was resumed.
    calls: Cell<u64>,
    panics: Cell<u64>,
    /// The number of threads of the system that the program has started.
    system_threads: Cell<u64>,
    /// Whether a thread may unwind.
    panics_go_on: Cell<bool>,
    current: Cell<u32>,
    /// The thread that a point has chosen to run next, or 0.
    chosen: Cell<u32>,
    /// The number of threads that have not ended.
    live: Cell<usize>,
    watched: Watched,
}

/// The results of a run.
pub(crate) struct Ended {
    pub(crate) failure: Option<Failure>,
    pub(crate) trace: Trace,
    /// The choices, if they were recorded.
    pub(crate) choices: Lists,
    pub(crate) begins: Vec<Begin>,
    pub(crate) stats: Stats,
}

/// The time at which each run begins: one for the process. So a clock of the process that rounds
/// times from its own start repeats.
fn epoch() -> Instant {
    system::epoch()
}

impl World {
    pub(crate) fn new(mut settings: Settings) -> Box<Self> {
        // The first call reads a clock, so it comes before a fiber's.
        epoch();
        let mut for_choices = Random::new(settings.seed);
        let for_program = Random::new(for_choices.next());
        let rule = Rule::new(settings.order, settings.polls, &mut for_choices);
        let mut network = Network::default();
        let host = network.add_host("main");
        for (at, disk) in &settings.disks {
            network.disks.mount(host, at, disk.clone());
        }
        let choices = Choices::new(settings.replayed.take(), settings.records_choices);
        Box::new(Self {
            run: Run::new(),
            now: Cell::new(0),
            next_limit: Cell::new(u64::MAX),
            threads: RefCell::default(),
            ready: RefCell::default(),
            limits: RefCell::default(),
            polls_take_time: rule.polls_take_time(),
            rule: RefCell::new(rule),
            choices: RefCell::new(choices),
            for_choices: RefCell::new(for_choices),
            for_program: RefCell::new(for_program),
            trace: RefCell::new(Trace::new(settings.kept_events)),
            tasks: RefCell::default(),
            subjects: RefCell::default(),
            fleet: RefCell::default(),
            hosts_differ: Cell::new(false),
            network: RefCell::new(network),
            futexes: RefCell::default(),
            own_words: RefCell::default(),
            shows_panic: Cell::new(0),
            is_within: Cell::new(false),
            fault_is_due: Cell::new(false),
            unserved_since: Cell::new(None),
            notes_holders: Cell::new(false),
            deadlock: RefCell::default(),
            failure: RefCell::default(),
            steps: Cell::new(0),
            switches: Cell::new(0),
            points: Cell::new(0),
            calls: Cell::new(0),
            panics: Cell::new(0),
            system_threads: Cell::new(0),
            panics_go_on: Cell::new(false),
            current: Cell::new(0),
            chosen: Cell::new(0),
            live: Cell::new(0),
            watched: Watched::new(settings.seed, settings.watchdog),
            settings,
        })
    }

    /// Runs the program until all of its threads have ended, or a check fails.
    pub(crate) fn run(&self, main: Box<dyn FnOnce()>) {
        let _of_thread = network::OfThread::begin(self);
        let started = Host::spawn(self, Some("main".into()), main);
        if let Err(error) = started {
            return self.fail(Failure::Panic {
                thread: "simulator".to_owned(),
                message: format!("there is no stack for the main function: {error}"),
                place: None,
            });
        }
        let mut ends_at = None;
        while self.failure.borrow().is_none() {
            self.fire_limits();
            if ends_at.is_none() && self.threads.borrow()[0].state == State::Over {
                ends_at = Some(self.now.get().saturating_add(TIME_AFTER_MAIN));
            }
            if self.ready.borrow().is_empty() {
                if self.live.get() == 0 {
                    break;
                }
                if ends_at.is_some_and(|at| self.now.get() > at) {
                    self.fail(Failure::ThreadsLeft(self.waits()));
                    break;
                }
                self.pass_time();
                continue;
            }
            self.step();
        }
        self.end();
    }

    /// Chooses a thread that can run, and runs it until it waits or is to go on later.
    fn step(&self) {
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        if steps + self.points.get() > self.settings.steps {
            return self.fail(Failure::TooLong(steps + self.points.get()));
        }
        let chosen = self.chosen.take();
        let id = if chosen > 0 {
            chosen
        } else {
            let mut ready = self.ready.borrow_mut();
            let mut choices = self.choices.borrow_mut();
            let chosen = choices.next(About::Threads, ready.len() as u32, || {
                let mut random = self.for_choices.borrow_mut();
                let mut rule = self.rule.borrow_mut();
                rule.choose(&ready, None, &mut random) as u32
            });
            ready.remove(chosen as usize)
        };
        self.resume(id);
    }

    fn resume(&self, id: u32) {
        let (mut body, fiber, host) = {
            let mut threads = self.threads.borrow_mut();
            let thread = &mut threads[id as usize - 1];
            let fiber = ptr::from_ref(&*thread.fiber);
            (thread.body.take(), fiber, thread.host)
        };
        if self.hosts_differ.get() {
            self.show_clock(host);
        }
        self.current.set(id);
        self.calls.set(0);
        self.switches.set(self.switches.get() + 1);
        self.watched.switch_to(id);
        self.record(u64::from(id), "run", 0, 0);
        let body_now = body.as_mut().expect("a thread that can run has a body");
        // SAFETY: the fiber is in a box that stays until the end of the run, and this thread runs
        // on its stack until the call after this one.
        unsafe { Fiber::set_current(fiber) };
        let result = body_now.resume(());
        // SAFETY: null is no fiber.
        unsafe { Fiber::set_current(ptr::null()) };
        self.current.set(0);
        self.watched.switch_to(0);
        self.forget_caught_panics();
        let mut threads = self.threads.borrow_mut();
        let thread = &mut threads[id as usize - 1];
        match result {
            CoroutineResult::Yield(()) => thread.body = body,
            CoroutineResult::Return(()) => {
                thread.state = State::Over;
                drop(threads);
                if let Some(body) = body {
                    stacks::give_back(body.into_stack());
                }
                self.live.set(self.live.get() - 1);
                self.record(u64::from(id), "end", 0, 0);
                Host::notify(self, Wait::Join(u64::from(id)), true);
            }
        }
    }

    /// Switches to the loop of `run`. Returns when this thread is chosen again.
    fn switch(&self, id: u32) {
        let yielder = self.threads.borrow()[id as usize - 1].yielder;
        // SAFETY: this is on the stack of the fiber, whose body keeps the yielder until its end.
        unsafe { &*yielder }.suspend(());
    }

    /// Chooses whether this thread goes on, or else which thread runs next. Others can run. The
    /// thread goes on in all of `times` cases but one, unless the order has priorities.
    fn stays(&self, id: u32, times: u64) -> bool {
        let mut ready = self.ready.borrow_mut();
        ready.push(id);
        let mut choices = self.choices.borrow_mut();
        let last = ready.len() as u32 - 1;
        // 0 is this thread, and the others follow.
        let chosen = choices.next(About::Threads, last + 1, || {
            let mut random = self.for_choices.borrow_mut();
            let mut rule = self.rule.borrow_mut();
            if times > 1 && rule.order() != Order::Priorities && !random.once_in(times) {
                return 0;
            }
            let chosen = rule.choose(&ready, Some(id), &mut random) as u32;
            if chosen == last { 0 } else { chosen + 1 }
        });
        if chosen == 0 {
            ready.pop();
        } else {
            // The chosen thread runs next.
            self.chosen.set(ready.remove(chosen as usize - 1));
        }
        chosen == 0
    }

    fn fire_limits(&self) {
        let now = self.now.get();
        if self.next_limit.get() > now {
            return;
        }
        let (mut limits, mut threads) = (self.limits.borrow_mut(), self.threads.borrow_mut());
        while let Some(first) = limits.first() {
            if first.at > now {
                break;
            }
            limits.remove_first();
            let thread = &mut threads[first.thread as usize - 1];
            if thread.is_in_wait(first.wait) {
                thread.timed_out = true;
                thread.state = State::Ready;
                self.ready.borrow_mut().push(first.thread);
            }
        }
        let next = limits.first().map_or(u64::MAX, |first| first.at);
        self.next_limit.set(next);
        drop((limits, threads));
        self.fire_network();
        let first = self.first_event().unwrap_or(u64::MAX);
        self.next_limit.set(self.next_limit.get().min(first));
    }

    /// Returns the end of the first limit of a wait that goes on.
    fn first_limit(&self) -> Option<u64> {
        let (mut limits, threads) = (self.limits.borrow_mut(), self.threads.borrow());
        while let Some(first) = limits.first() {
            if threads[first.thread as usize - 1].is_in_wait(first.wait) {
                return Some(first.at);
            }
            limits.remove_first();
        }
        None
    }

    /// No thread can run: checks that nothing is left undone, and lets the time pass until the next
    /// limit.
    fn pass_time(&self) {
        if self.look_at_locks() {
            return;
        }
        // The limits of waits that have ended are not steps of their own.
        let next = [self.first_limit(), self.first_event()];
        let next = next.into_iter().flatten().min();
        self.check(next);
        if self.failure.borrow().is_some() {
            return;
        }
        match next {
            None if self.look_at_futexes() => {}
            None => self.deadlock(),
            Some(next) => {
                self.now.set(next.max(self.now.get()));
                self.next_limit.set(next);
                self.record(0, "time", 0, 0);
            }
        }
    }

    #[inline]
    fn record(&self, thread: u64, kind: &'static str, task: u64, number: u64) {
        let (name, host) = match thread {
            0 => (None, 0),
            _ if self.settings.kept_events > 0 => {
                let thread = &self.threads.borrow()[thread as usize - 1];
                (thread.label.clone(), thread.host)
            }
            _ => (None, 0),
        };
        let mut trace = self.trace.borrow_mut();
        let thread = (thread, host);
        trace.add(self.now.get(), thread, name.as_ref(), kind, task, number);
    }

    pub(crate) fn into_result(self: Box<Self>) -> Ended {
        let stats = Stats {
            time: Duration::from_nanos(self.now.get()),
            points: self.points.get(),
            switches: self.switches.get(),
            order: self.rule.borrow().order(),
            system_threads: self.system_threads.get(),
        };
        let (choices, begins) = self.choices.borrow_mut().take_recorded();
        Ended {
            failure: self.failure.into_inner(),
            trace: self.trace.into_inner(),
            choices,
            begins,
            stats,
        }
    }

    fn wake(&self, id: u32) {
        let mut threads = self.threads.borrow_mut();
        let thread = &mut threads[id as usize - 1];
        thread.state = State::Ready;
        thread.waits += 1;
        drop(threads);
        self.ready.borrow_mut().push(id);
    }

    /// Wakes one of the threads that wait for this, or all. Returns whether there was one.
    fn wake_all_of(&self, on: Wait, all: bool) -> bool {
        let mut waiting: Vec<u32> = {
            let threads = self.threads.borrow();
            let waits = threads
                .iter()
                .filter(|thread| thread.state == State::Waiting(on));
            waits.map(|thread| thread.fiber.id() as u32).collect()
        };
        if !all && waiting.len() > 1 {
            let mut choices = self.choices.borrow_mut();
            let chosen = choices.next(About::Threads, waiting.len() as u32, || {
                let mut random = self.for_choices.borrow_mut();
                random.below(waiting.len() as u64) as u32
            });
            waiting = vec![waiting[chosen as usize]];
        }
        let any = !waiting.is_empty();
        waiting.into_iter().for_each(|id| self.wake(id));
        any
    }
}
