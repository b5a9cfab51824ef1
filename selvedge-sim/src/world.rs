//! One run: its threads as fibers, its clock, and the checks.
//!
//! The crate's front page tells how it works. Rules of the code:
//!
//! 1. `run` is the loop of the system's thread. It resumes the body of one thread at a time. The
//!    calls of [`Host`] come from a body, on its own stack. They change the state here, and may
//!    [`switch`](World::switch) back to the loop.
//! 2. No borrow of a cell lasts across a switch, or across a call of the program's code.
//! 3. A thread that can run is in `ready`, is `current`, or is `chosen`. A thread that waits is in
//!    none of them. `wake` and the end of its limit put it back into `ready`, one of the two: each
//!    wait has a number, and a limit ends only the wait with its number.
//! 4. A thread whose wait is [`Wait::Busy`] counts as running in the checks.
//! 5. The checks run on the system's thread while no body runs. They find no fiber, so they must
//!    not wait: they use locks that no thread holds while it waits.
//! 6. A body that has not ended when a check fails is leaked, with its stack and all values there:
//!    a static of the program may refer to them.
use crate::{
    choice::{Choices, Random},
    failure::Failure,
    order::Order,
    rule::Rule,
    sim::{Settings, Stats},
    trace::Trace,
};
use corosensei::{Coroutine, CoroutineResult, Yielder, stack::DefaultStack};
use std::{
    cell::{Cell, RefCell},
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, hash_map::Entry},
    hash::{BuildHasherDefault, Hasher},
    io,
    panic::{self, AssertUnwindSafe, Location},
    ptr,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};
use sync_shim::sim::{Fiber, Host, Subject, Wait};

/// How much time passes in a reading of the clock. Without it a thread that reads the clock until
/// some time has passed would never end.
const READING: u64 = 20;

/// How much time a poll takes at least. Without it tasks that only yield would stop the time.
const POLL: u64 = 100;

/// How long the threads of a run may go on after the main function has ended.
const LINGER: u64 = 60_000_000_000;

const STACK: usize = 256 << 10;

/// Stacks that earlier runs have used.
static STACKS: Mutex<Vec<DefaultStack>> = Mutex::new(Vec::new());

fn stack() -> io::Result<DefaultStack> {
    let kept = STACKS.lock().unwrap_or_else(PoisonError::into_inner).pop();
    kept.map_or_else(|| DefaultStack::new(STACK), Ok)
}

fn keep_stack(stack: DefaultStack) {
    STACKS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(stack);
}

type Body = Coroutine<(), (), (), DefaultStack>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    Waiting(Wait),
    Over,
}

struct Thread {
    fiber: Box<Fiber>,
    state: State,
    /// `None` while the thread runs, and when it is over.
    body: Option<Body>,
    yielder: *const Yielder<(), ()>,
    /// Whether the next park ends at once.
    has_token: bool,
    timed_out: bool,
    /// Counts the waits, so that a time limit ends only its own wait.
    waits: u64,
    waits_at: &'static Location<'static>,
    waits_until: Option<u64>,
}

/// Hashes an address.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("the keys are addresses")
    }

    fn write_usize(&mut self, address: usize) {
        self.0 = (address as u64)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29);
    }
}

#[derive(Default)]
struct Tasks {
    numbers: HashMap<usize, (u64, bool), BuildHasherDefault<AddressHasher>>,
    last: u64,
    live: usize,
}

impl Tasks {
    fn number(&mut self, address: usize) -> u64 {
        match self.numbers.entry(address) {
            Entry::Occupied(entry) => entry.get().0,
            Entry::Vacant(entry) => {
                self.last += 1;
                entry.insert((self.last, false)).0
            }
        }
    }
}

pub(crate) struct World {
    settings: Settings,
    now: Cell<u64>,
    /// The end of the first time limit, or `u64::MAX`.
    next_limit: Cell<u64>,
    threads: RefCell<Vec<Thread>>,
    ready: RefCell<Vec<u32>>,
    limits: RefCell<BinaryHeap<Reverse<(u64, u64, u32, u64)>>>,
    limits_made: Cell<u64>,
    rule: RefCell<Rule>,
    polls_take_time: bool,
    choices: RefCell<Choices>,
    order: RefCell<Random>,
    /// The random numbers of the program.
    random: RefCell<Random>,
    trace: RefCell<Trace>,
    tasks: RefCell<Tasks>,
    subjects: RefCell<Vec<Box<dyn Subject>>>,
    failure: RefCell<Option<Failure>>,
    steps: Cell<u64>,
    switches: Cell<u64>,
    points: Cell<u64>,
    current: Cell<u32>,
    /// The thread that a point has chosen to run next, or 0.
    chosen: Cell<u32>,
    live: Cell<usize>,
}

/// The time at which each run begins: one for the process. So a clock of the process that rounds
/// times does so in the same way in each run.
fn epoch() -> Instant {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    *EPOCH.get_or_init(Instant::now)
}

impl World {
    pub(crate) fn new(settings: Settings, given: Option<Vec<u32>>, records: bool) -> Box<Self> {
        let mut order = Random::new(settings.seed);
        let random = Random::new(order.next());
        let rule = Rule::new(settings.order, settings.polls, &mut order);
        Box::new(Self {
            now: Cell::new(0),
            next_limit: Cell::new(u64::MAX),
            threads: RefCell::default(),
            ready: RefCell::default(),
            limits: RefCell::default(),
            limits_made: Cell::new(0),
            polls_take_time: rule.polls_take_time(),
            rule: RefCell::new(rule),
            choices: RefCell::new(Choices::new(given, records)),
            order: RefCell::new(order),
            random: RefCell::new(random),
            trace: RefCell::new(Trace::new(settings.keep)),
            tasks: RefCell::default(),
            subjects: RefCell::default(),
            failure: RefCell::default(),
            steps: Cell::new(0),
            switches: Cell::new(0),
            points: Cell::new(0),
            current: Cell::new(0),
            chosen: Cell::new(0),
            live: Cell::new(0),
            settings,
        })
    }

    /// Runs the program until all of its threads have ended, or a check fails.
    pub(crate) fn run(&self, main: Box<dyn FnOnce()>) {
        let started = Host::spawn(self, Some("main".into()), main);
        if let Err(error) = started {
            return self.fail(Failure::Panic(format!(
                "no stack for the main function: {error}"
            )));
        }
        let mut ends_at = None;
        while self.failure.borrow().is_none() {
            self.fire_limits();
            if ends_at.is_none() && self.threads.borrow()[0].state == State::Over {
                ends_at = Some(self.now.get() + LINGER);
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
            let chosen = choices.next(ready.len() as u32, || {
                let (mut rule, mut order) = (self.rule.borrow_mut(), self.order.borrow_mut());
                rule.choose(&ready, None, &mut order) as u32
            });
            ready.remove(chosen as usize)
        };
        self.resume(id);
    }

    fn resume(&self, id: u32) {
        let (mut body, fiber) = {
            let mut threads = self.threads.borrow_mut();
            let thread = &mut threads[id as usize - 1];
            (thread.body.take(), ptr::from_ref(&*thread.fiber))
        };
        self.current.set(id);
        self.switches.set(self.switches.get() + 1);
        self.record(u64::from(id), "run", 0, 0);
        let body_now = body.as_mut().expect("a thread that can run has a body");
        // SAFETY: the fiber is in a box that stays until the end of the run, and this thread runs
        // on its stack until the call after this one.
        unsafe { Fiber::set_current(fiber) };
        let result = body_now.resume(());
        // SAFETY: null is no fiber.
        unsafe { Fiber::set_current(ptr::null()) };
        self.current.set(0);
        let mut threads = self.threads.borrow_mut();
        let thread = &mut threads[id as usize - 1];
        match result {
            CoroutineResult::Yield(()) => thread.body = body,
            CoroutineResult::Return(()) => {
                thread.state = State::Over;
                drop(threads);
                if let Some(body) = body {
                    keep_stack(body.into_stack());
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

    /// Lets another thread run, perhaps, in the middle of an operation of this one: the system may
    /// replace a thread there. Once in `times`, unless the order has priorities.
    #[inline]
    fn preempt(&self, times: u64) {
        let id = self.current.get();
        if id > 0 && !self.ready.borrow().is_empty() && !self.stays(id, times) {
            self.switch(id);
        }
    }

    /// Chooses whether this thread goes on, or else which thread runs next. Others can run.
    fn stays(&self, id: u32, times: u64) -> bool {
        let mut ready = self.ready.borrow_mut();
        ready.push(id);
        let mut choices = self.choices.borrow_mut();
        let last = ready.len() as u32 - 1;
        // 0 is this thread, and the others follow.
        let chosen = choices.next(last + 1, || {
            let (mut rule, mut order) = (self.rule.borrow_mut(), self.order.borrow_mut());
            if times > 1 && rule.order() != Order::Priorities && !order.once_in(times) {
                return 0;
            }
            let chosen = rule.choose(&ready, Some(id), &mut order) as u32;
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
        loop {
            let (id, waits) = {
                let mut limits = self.limits.borrow_mut();
                match limits.peek() {
                    Some(&Reverse((at, _, id, waits))) if at <= now => {
                        limits.pop();
                        (id, waits)
                    }
                    next => {
                        self.next_limit
                            .set(next.map_or(u64::MAX, |Reverse(next)| next.0));
                        return;
                    }
                }
            };
            let mut threads = self.threads.borrow_mut();
            let thread = &mut threads[id as usize - 1];
            if thread.waits == waits && matches!(thread.state, State::Waiting(_)) {
                thread.timed_out = true;
                thread.state = State::Ready;
                drop(threads);
                self.ready.borrow_mut().push(id);
            }
        }
    }

    /// No thread can run: checks that nothing is left undone, and lets the time pass until the next
    /// limit.
    fn pass_time(&self) {
        // Limits of waits that have ended are skipped, so that they do not count as steps.
        loop {
            let mut limits = self.limits.borrow_mut();
            let Some(&Reverse((_, _, id, waits))) = limits.peek() else {
                break;
            };
            let thread = &self.threads.borrow()[id as usize - 1];
            if thread.waits == waits && matches!(thread.state, State::Waiting(_)) {
                break;
            }
            limits.pop();
        }
        let next = self.limits.borrow().peek().map(|Reverse(next)| next.0);
        self.check(next);
        if self.failure.borrow().is_some() {
            return;
        }
        match next {
            None => self.fail(Failure::Deadlock(self.waits())),
            Some(next) => {
                self.now.set(next.max(self.now.get()));
                self.next_limit.set(next);
                self.record(0, "time", 0, 0);
            }
        }
    }

    /// Checks the subjects while no thread can run before the time `next`.
    fn check(&self, next: Option<u64>) {
        let is_busy = |thread: &Thread| thread.state == State::Waiting(Wait::Busy);
        let any_busy = self.threads.borrow().iter().any(is_busy);
        let mut subjects = self.subjects.borrow_mut();
        subjects.retain(|subject| subject.exists());
        for subject in &*subjects {
            if !any_busy {
                if let Some(what) = subject.ready() {
                    return self.fail(Failure::LostWake(what));
                }
            }
            let late = subject
                .deadline(epoch())
                .zip(next)
                .and_then(|(deadline, next)| {
                    let at = deadline.saturating_duration_since(epoch());
                    Duration::from_nanos(next).checked_sub(at)
                });
            if let Some(late) = late.filter(|late| *late > self.settings.timer_bound) {
                return self.fail(Failure::LateTimer(late));
            }
        }
    }

    /// Describes the threads that have not ended.
    fn waits(&self) -> Vec<String> {
        let threads = self.threads.borrow();
        let left = threads.iter().filter(|thread| thread.state != State::Over);
        let describe = |thread: &Thread| {
            let name = thread.fiber.name.as_deref().unwrap_or("unnamed");
            let what = match thread.state {
                State::Ready => "can run".to_owned(),
                State::Over => "has ended".to_owned(),
                State::Waiting(Wait::Park) => "is parked".to_owned(),
                State::Waiting(Wait::Lock(_)) => "waits for a lock".to_owned(),
                State::Waiting(Wait::Condvar(_)) => "waits for a condition variable".to_owned(),
                State::Waiting(Wait::Join(id)) => format!("waits for the end of thread {id}"),
                State::Waiting(Wait::Busy) => "is busy".to_owned(),
                State::Waiting(Wait::Sleep) => "sleeps".to_owned(),
            };
            format!(
                "thread {} ({name}) {what}, at {}",
                thread.fiber.id, thread.waits_at
            )
        };
        left.map(describe).collect()
    }

    fn fail(&self, failure: Failure) {
        self.record(0, failure.kind(), 0, 0);
        self.failure.borrow_mut().get_or_insert(failure);
    }

    /// Records the panic of the main function.
    pub(crate) fn fail_by_panic(&self, message: String) {
        self.fail(Failure::Panic(message));
    }

    /// Checks what is left. The threads that have not ended are leaked (rule 6).
    fn end(&self) {
        if self.failure.borrow().is_none() {
            let live = self.tasks.borrow().live;
            let subjects = self.subjects.borrow();
            let parts = subjects.iter().filter(|subject| subject.exists()).count();
            if live > 0 {
                self.fail(Failure::TasksLeft(live));
            } else if parts > 0 {
                self.fail(Failure::PartsLeft(parts));
            }
        }
        for thread in self.threads.borrow_mut().drain(..) {
            if let Some(body) = thread.body {
                if body.done() {
                    keep_stack(body.into_stack());
                } else {
                    // A static of the program may still refer to a pinned value on this stack.
                    std::mem::forget(body);
                }
                std::mem::forget(thread.fiber);
            }
        }
    }

    #[inline]
    fn record(&self, thread: u64, kind: &'static str, task: u64, number: u64) {
        let name = match thread {
            0 => None,
            _ if self.settings.keeps_events() => self.threads.borrow()[thread as usize - 1]
                .fiber
                .name
                .clone(),
            _ => None,
        };
        let mut trace = self.trace.borrow_mut();
        trace.add(self.now.get(), thread, name.as_ref(), kind, task, number);
    }

    pub(crate) fn into_result(self: Box<Self>) -> (Option<Failure>, Trace, Vec<u32>, Stats) {
        let stats = Stats {
            time: Duration::from_nanos(self.now.get()),
            points: self.points.get(),
            switches: self.switches.get(),
            threads: self.live.get(),
            order: self.rule.borrow().order(),
        };
        let recorded = self.choices.borrow_mut().take_recorded();
        // The subjects may hold the last references to memory of the program.
        drop(self.subjects.take());
        (
            self.failure.into_inner(),
            self.trace.into_inner(),
            recorded,
            stats,
        )
    }

    fn wake(&self, id: u32) {
        let mut threads = self.threads.borrow_mut();
        let thread = &mut threads[id as usize - 1];
        thread.state = State::Ready;
        thread.waits += 1;
        drop(threads);
        self.ready.borrow_mut().push(id);
    }
}

impl Host for World {
    fn now(&self) -> Instant {
        self.now.set(self.now.get() + READING);
        epoch() + Duration::from_nanos(self.now.get())
    }

    fn epoch(&self) -> Instant {
        epoch()
    }

    fn random(&self) -> u64 {
        self.random.borrow_mut().next()
    }

    #[inline]
    fn point(&self, fiber: &Fiber) {
        self.points.set(self.points.get() + 1);
        self.now.set(self.now.get() + POLL);
        let id = self.current.get();
        if self.polls_take_time {
            let mut choices = self.choices.borrow_mut();
            let cost = choices.next(u32::MAX, || {
                self.rule.borrow().cost(&mut self.order.borrow_mut())
            });
            drop(choices);
            if cost > 0 {
                let time = Duration::from_nanos(100 * u64::from(cost));
                self.wait(fiber, Wait::Busy, Some(time), Location::caller());
                return;
            }
        }
        self.fire_limits();
        if self.steps.get() + self.points.get() > self.settings.steps {
            // The loop of `run` ends the run.
            self.ready.borrow_mut().push(id);
            self.switch(id);
        } else if !self.ready.borrow().is_empty() && !self.stays(id, 1) {
            self.switch(id);
        }
    }

    fn wait(
        &self,
        fiber: &Fiber,
        on: Wait,
        limit: Option<Duration>,
        at: &'static Location<'static>,
    ) -> bool {
        let id = fiber.id as u32;
        if let Wait::Join(other) = on {
            if self.threads.borrow()[other as usize - 1].state == State::Over {
                return true;
            }
        }
        let until = limit.map(|limit| {
            let nanos = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
            self.now.get().saturating_add(nanos)
        });
        let waits = {
            let mut threads = self.threads.borrow_mut();
            let thread = &mut threads[id as usize - 1];
            thread.state = State::Waiting(on);
            thread.waits += 1;
            thread.timed_out = false;
            (thread.waits_at, thread.waits_until) = (at, until);
            thread.waits
        };
        // A limit beyond the end of time never ends a wait.
        if let Some(until) = until.filter(|until| *until < u64::MAX) {
            let made = self.limits_made.get() + 1;
            self.limits_made.set(made);
            self.limits
                .borrow_mut()
                .push(Reverse((until, made, id, waits)));
            self.next_limit.set(self.next_limit.get().min(until));
        }
        self.switch(id);
        !self.threads.borrow()[id as usize - 1].timed_out
    }

    fn park(&self, fiber: &Fiber, limit: Option<Duration>, at: &'static Location<'static>) {
        let id = fiber.id as u32;
        let take = || std::mem::take(&mut self.threads.borrow_mut()[id as usize - 1].has_token);
        if take() {
            return;
        }
        self.record(fiber.id, "park", 0, 0);
        self.wait(fiber, Wait::Park, limit, at);
        take();
        self.record(fiber.id, "unparked", 0, 0);
    }

    fn unpark(&self, id: u64) {
        self.preempt(8);
        self.record(u64::from(self.current.get()), "unpark", 0, id);
        let state = {
            let mut threads = self.threads.borrow_mut();
            let thread = &mut threads[id as usize - 1];
            thread.has_token = true;
            thread.state
        };
        if state == State::Waiting(Wait::Park) {
            self.wake(id as u32);
        }
        self.preempt(4);
    }

    fn notify(&self, on: Wait, all: bool) {
        let mut waiting: Vec<u32> = {
            let threads = self.threads.borrow();
            let waits = threads
                .iter()
                .filter(|thread| thread.state == State::Waiting(on));
            waits.map(|thread| thread.fiber.id as u32).collect()
        };
        if waiting.is_empty() {
            return;
        }
        if !all && waiting.len() > 1 {
            let chosen = self.choices.borrow_mut().next(waiting.len() as u32, || {
                self.order.borrow_mut().below(waiting.len() as u64) as u32
            });
            waiting = vec![waiting[chosen as usize]];
        }
        waiting.into_iter().for_each(|id| self.wake(id));
        self.preempt(4);
    }

    fn spawn(&self, name: Option<Arc<str>>, f: Box<dyn FnOnce()>) -> io::Result<u64> {
        let stack = stack()?;
        let id = self.threads.borrow().len() as u64 + 1;
        let world = ptr::from_ref(self);
        let body = Body::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
            // SAFETY: the world outlives its threads.
            let world = unsafe { &*world };
            let fiber = {
                let mut threads = world.threads.borrow_mut();
                let thread = &mut threads[id as usize - 1];
                thread.yielder = yielder;
                ptr::from_ref(&*thread.fiber)
            };
            let ended = panic::catch_unwind(AssertUnwindSafe(|| {
                f();
                // SAFETY: the box of the fiber stays until the end of the run.
                unsafe { &*fiber }.end();
            }));
            if let Err(payload) = ended {
                // A drop at the end of a thread has panicked. std aborts then, too.
                std::mem::forget(payload);
                std::process::abort();
            }
        });
        self.rule
            .borrow_mut()
            .add_thread(&mut self.order.borrow_mut());
        // SAFETY: the world is in a box that stays until the end of the run.
        let fiber = unsafe { Fiber::new(ptr::from_ref::<dyn Host>(self), id, name) };
        self.threads.borrow_mut().push(Thread {
            fiber: Box::new(fiber),
            state: State::Ready,
            body: Some(body),
            yielder: ptr::null(),
            has_token: false,
            timed_out: false,
            waits: 0,
            waits_at: Location::caller(),
            waits_until: None,
        });
        self.live.set(self.live.get() + 1);
        self.record(u64::from(self.current.get()), "thread", 0, id);
        self.ready.borrow_mut().push(id as u32);
        self.preempt(2);
        Ok(id)
    }

    #[inline]
    fn event(&self, fiber: &Fiber, kind: &'static str, task: usize, number: u64) {
        let task = match task {
            0 => 0,
            task => self.tasks.borrow_mut().number(task),
        };
        self.record(fiber.id, kind, task, number);
    }

    fn allocated(&self, task: usize) {
        let mut tasks = self.tasks.borrow_mut();
        tasks.last += 1;
        let last = tasks.last;
        tasks.numbers.insert(task, (last, true));
        tasks.live += 1;
    }

    fn freed(&self, task: usize) {
        let mut tasks = self.tasks.borrow_mut();
        if tasks
            .numbers
            .remove(&task)
            .is_some_and(|(_, counts)| counts)
        {
            tasks.live -= 1;
        }
    }

    fn name_of(&self, task: usize) -> u64 {
        self.tasks.borrow_mut().number(task)
    }

    fn watch(&self, subject: Box<dyn Subject>) {
        self.subjects.borrow_mut().push(subject);
    }
}
