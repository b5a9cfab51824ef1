//! [`Handle::dump`]: what each listed task waits for.
//!
//! A dump polls each task that waits once more, under a [`watch`](coop_budget::watch). Each
//! operation of a resource that charges the budget (sockets, sleeps, channels, locks, joins), and
//! that makes no progress in that poll, has its stack captured: the functions that await the
//! resource, up to the task. The poll is a real one, with the task's usual budget. So the task sees
//! a wake for nothing, as from any other waker.
//!
//! 1. There is one dump of a runtime at a time. It runs on a thread of its own: workers and
//!    blocking threads may all be stuck.
//! 2. A dump wakes only a task that is idle. From that wake on, until the dump queues the task, no
//!    other thread runs it. In that time the dump puts a request into the task's entry. So the
//!    request goes to the poll for that wake. A [listed future](super::listed_future) may take it
//!    in a poll for another wake.
//! 3. A request ends by an answer, or by its drop. If a task ends without a poll (in a shutdown),
//!    or is freed, the dump takes its request out of the entry: it looks at its tasks while it
//!    waits.
//! 4. At most [`WINDOW`] requests are under way. So a task that is woken meanwhile waits for at
//!    most as many polls of a dump.
//! 5. If no request has ended for a second, the dump takes its requests out of the entries, and
//!    goes on with other tasks: some worker may be free. The tasks of those requests stay queued.
//!    After [`GIVE_UPS`] such seconds the dump asks no more tasks.
//! 6. No waker is woken, and no name is looked up, under a lock of the list.
//! 7. If tasks seem to wait for each other, the dump asks these once more: see [`cycles`].
//! 8. The dump of a runtime that ends wakes no task.
use crate::{
    Handle, TaskSnapshot, TaskState,
    observe::task_list::{Entry, Found},
    worker::shared::Shared,
};
use coop_budget::WaitsOn;
use request::{Answer, Answers};
use sched_monitor::{Frame, Stack};
use std::{
    cell::OnceCell,
    collections::{HashMap, HashSet},
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};
use task_header::Id;

mod cycles;
mod frames;
pub(crate) mod request;
#[cfg(all(unix, feature = "signal", not(any(selvedge_loom, selvedge_shuttle))))]
mod signal;
#[cfg(all(unix, feature = "signal", not(any(selvedge_loom, selvedge_shuttle))))]
pub(crate) mod signals;

pub use cycles::{WaitCycle, wait_cycles};

/// The most requests under way (rule 4).
const WINDOW: usize = 64;

/// The time between two looks for tasks that have ended without an answer (rule 3).
const LOOK: Duration = Duration::from_millis(10);

/// The time without an answer after which a dump gives its requests up (rule 5).
const LIMIT: Duration = Duration::from_secs(1);

/// How often a dump gives requests up before it asks no more tasks.
const GIVE_UPS: u32 = 4;

/// A task, and what it waits for, at one [`Handle::dump`]. `Display` writes a line for the task,
/// one for each wait, and one for each function.
///
/// ```
/// let runtime = selvedge_executor::Builder::new().list_tasks(true).build()?;
/// let task = runtime.spawn(selvedge_executor::yield_now());
/// let dump = runtime.block_on(runtime.handle().dump()).unwrap();
/// assert!(dump.len() <= 1, "it may have ended");
/// # drop(task);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskDump {
    /// The task, as it was before its poll for the dump.
    pub task: TaskSnapshot,
    /// The outcome of the poll for the dump.
    pub outcome: DumpOutcome,
    /// The operations that the task waits for, after that poll: one, or several if it awaits
    /// several futures at once. At most 16. Empty if no operation that charges the budget waits:
    /// the task waits for a future of another crate, say.
    pub waits: Vec<TaskWait>,
    /// Whether a cycle may lead through the task (rule 7). After a second round, only the tasks
    /// that it has confirmed are steady.
    is_steady: bool,
}

/// The outcome of the poll of a task for a [dump](Handle::dump).
///
/// ```
/// use selvedge_executor::DumpOutcome;
///
/// let runtime = selvedge_executor::Builder::new().list_tasks(true).build()?;
/// let handle = runtime.handle().clone();
/// let task = runtime.spawn(async move { handle.dump().await.unwrap() });
/// let dump = runtime.block_on(task).unwrap();
/// assert!(matches!(dump[0].outcome, DumpOutcome::Waits | DumpOutcome::NotPolled));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DumpOutcome {
    /// The task waits as before. If the poll was so long that its time slice ended, then a wait may
    /// say so in its place.
    Waits,
    /// An operation made progress in the poll: an event had come meanwhile. The task waits now for
    /// what the dump says. Or the poll blocked its thread, and another thread became the worker:
    /// then the dump may miss waits.
    Progressed,
    /// The task ended in the poll, or before it.
    Ended,
    /// The dump did not poll the task: it was queued or polled already, or earlier tasks of the
    /// dump had too few answers.
    NotPolled,
    /// No worker has polled the task within a second.
    Unanswered,
}

/// An operation that a task waits for, at one [`Handle::dump`]. `Display` writes a line for each
/// function.
///
/// ```
/// # let _ = |wait: selvedge_executor::TaskWait| {
/// println!("waits for {}", wait.what.as_deref().unwrap_or("something"));
/// for frame in wait.frames.iter() {
///     println!("  in {frame}");
/// }
/// # };
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskWait {
    /// The event that the operation waits for, in words, if the operation says so.
    pub what: Option<String>,
    /// The same as a value, for programs: a time, another task, a lock and its holder.
    pub on: Option<WaitsOn>,
    /// The functions that await the operation, the innermost one first. Empty if stacks cannot be
    /// captured (see [`Handle::dump`]).
    pub frames: Arc<[Frame]>,
}

impl fmt::Display for TaskWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            Some(what) => write!(f, "awaits {what}")?,
            None => write!(f, "awaits an event that the operation does not name")?,
        }
        for frame in self.frames.iter() {
            write!(f, "\n    {frame}")?;
        }
        Ok(())
    }
}

impl fmt::Display for TaskDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.task.without_waits())?;
        match self.outcome {
            DumpOutcome::Waits if self.waits.is_empty() => {
                write!(f, "\n  awaits no operation that says so to a dump")?;
            }
            DumpOutcome::Waits | DumpOutcome::NotPolled => {}
            DumpOutcome::Progressed => write!(f, "\n  has just gone on")?,
            DumpOutcome::Ended => write!(f, "\n  has just ended")?,
            DumpOutcome::Unanswered => write!(f, "\n  no worker has polled it for the dump")?,
        }
        for wait in &self.waits {
            write!(f, "\n  {wait}")?;
        }
        Ok(())
    }
}

impl Handle {
    /// Lists the tasks as [`tasks`](Self::tasks), each with the functions that await what it waits
    /// for: a dump for the moment in which a program hangs. `None` if the runtime was not built to
    /// [list tasks](crate::Builder::list_tasks).
    ///
    /// Each task that waits is polled once. In that poll, the stack is captured where an operation
    /// of this project's resources returns `Pending`: sockets, sleeps, channels, locks, joins of
    /// tasks and of blocking closures. To the task, the poll is one after a wake for nothing. It
    /// does not count in [`TaskSnapshot::polls`] and [`TaskSnapshot::since`], unless such an
    /// operation made progress in it. A future that charges no budget, such as one of another
    /// crate, is polled too, but the dump does not see it. Of a `FuturesUnordered`, the dump sees
    /// only the futures that the poll reaches: those that were woken.
    ///
    /// The stacks have names if the program depends on `sched-monitor` with its feature
    /// `backtrace`, on Linux: otherwise [`TaskWait::frames`] is empty. Files and lines need debug
    /// information (`debug = "line-tables-only"` suffices).
    ///
    /// The work is done on a thread that is started for it, so a dump ends although all workers and
    /// all blocking threads are stuck. If no worker polls a task for a second, the dump gives up
    /// the tasks that it has woken, which stay queued, and goes on with others. It does so four
    /// times at most, and four times more where it polls tasks again. At most 64 tasks are polled
    /// ahead of others. One dump of a runtime runs at a time, and others wait. If the system
    /// refuses the thread, no task is polled.
    ///
    /// [`wait_cycles`] finds the tasks of the dump that wait for each other. If there seem to be
    /// such tasks, the dump polls them once more, to make sure. Locks of `task-sync` know the task
    /// that holds them if they were created after the runtime was built. From the build of a first
    /// such runtime on, until the end of the process, each such lock notes its holder.
    ///
    /// While the runtime ends, its tasks are listed, but none is polled.
    ///
    /// The futures in `block_on` are dumped, too, but for the one that polls this method, and so
    /// are the tasks of a [`LocalSet`](crate::LocalSet): see [`tasks`](Self::tasks). If another
    /// executor polls the set, that executor's waker is called on the dump's thread. If nobody
    /// polls the set, its tasks are unanswered.
    ///
    /// ```
    /// let runtime = selvedge_executor::Builder::new().list_tasks(true).build()?;
    /// let (_open, waits) = tokio::sync::oneshot::channel::<()>();
    /// let task = runtime.spawn(waits);
    /// for dumped in runtime.block_on(runtime.handle().dump()).unwrap() {
    ///     println!("{dumped}");
    /// }
    /// # drop(task);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn dump(&self) -> Option<Vec<TaskDump>> {
        self.dump_some(None, LIMIT).await
    }

    /// Dumps one task, as [`dump`](Self::dump) does. `None` if the task is not in the list.
    ///
    /// ```
    /// let runtime = selvedge_executor::Builder::new().list_tasks(true).build()?;
    /// let task = runtime.spawn(std::future::pending::<()>());
    /// let dumped = runtime.block_on(runtime.handle().dump_task(task.id())).unwrap();
    /// assert_eq!(dumped.task.id, task.id());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn dump_task(&self, id: Id) -> Option<TaskDump> {
        self.dump_some(Some(id), LIMIT).await?.pop()
    }

    async fn dump_some(&self, only: Option<Id>, limit: Duration) -> Option<Vec<TaskDump>> {
        let shared = self.shared();
        if !shared.settings.lists_tasks {
            return None;
        }
        let caller = coop_budget::polled_task();
        let dumps = {
            let shared = shared.clone();
            async move { dump(&shared, only, caller, limit) }
        };
        // The future never waits, so it is never scheduled again.
        let (task, dumped) = task_header::spawn(dumps, |task| drop(task.run()));
        let name = format!("{}-dump", shared.settings.thread_name);
        let thread = sync_shim::thread::Builder::new().name(name);
        let of = shared.clone();
        // If the system refuses the thread, the drop of the closure cancels the task.
        let _ = thread.spawn(move || {
            of.monitor.apply_attributes();
            drop(of);
            drop(task.run());
        });
        match dumped.await {
            Ok(dumped) => Some(dumped),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Some(self.undumped(only, caller)),
        }
    }

    /// Returns a dump for which no task is polled.
    fn undumped(&self, only: Option<Id>, caller: Option<u32>) -> Vec<TaskDump> {
        let look = |found: Found| TaskSnapshot::of(&found, found.state);
        let undumped = |task| TaskDump::new(task, DumpOutcome::NotPolled);
        let tasks = self.shared().tasks.look(only, caller).into_iter();
        tasks.filter_map(look).map(undumped).collect()
    }
}

impl TaskDump {
    fn new(task: TaskSnapshot, outcome: DumpOutcome) -> Self {
        Self {
            task,
            outcome,
            waits: Vec::new(),
            is_steady: true,
        }
    }
}

/// Dumps the tasks of a runtime, or the one of this id, but not the `block_on` that asks. `limit`
/// is that of rule 5.
fn dump(shared: &Shared, only: Option<Id>, caller: Option<u32>, limit: Duration) -> Vec<TaskDump> {
    let _one_at_a_time = shared.tasks.dumps.lock();
    let _dumping = shared.tasks.begin_dump();
    let mut dumps = ask(shared, shared.tasks.look(only, caller), limit);
    let suspects = wait_cycles(&dumps);
    let suspects: HashSet<_> = suspects.iter().flat_map(|cycle| &cycle.tasks).collect();
    if !suspects.is_empty() {
        let again = shared.tasks.look(only, caller).into_iter();
        let again = again.filter(|found| suspects.contains(&found.id));
        confirm(&mut dumps, ask(shared, again.collect(), limit));
    }
    dumps
}

/// Takes the answers of a second round into the dump (rule 7).
fn confirm(dumps: &mut [TaskDump], again: Vec<TaskDump>) {
    let tasks = |dump: &TaskDump| {
        let tasks = dump.waits.iter().map(|wait| wait.on.as_ref()?.task());
        let mut tasks: Vec<_> = tasks.collect();
        // `select!` polls its branches in any order.
        tasks.sort_unstable();
        tasks
    };
    let mut again: HashMap<_, _> = again.into_iter().map(|dump| (dump.task.id, dump)).collect();
    for dump in dumps {
        // A task that has ended since, and one that nobody suspected.
        let Some(now) = again.remove(&dump.task.id) else {
            dump.is_steady = false;
            continue;
        };
        let waits_on = dump.outcome == DumpOutcome::Waits
            && now.outcome == DumpOutcome::Waits
            && dump.task.polls == now.task.polls
            && tasks(dump) == tasks(&now);
        match now.outcome {
            DumpOutcome::NotPolled | DumpOutcome::Unanswered => dump.is_steady = false,
            _ => {
                *dump = now;
                dump.is_steady = waits_on;
            }
        }
    }
}

/// Asks these tasks.
fn ask(shared: &Shared, mut tasks: Vec<Found>, limit: Duration) -> Vec<TaskDump> {
    // Listed futures come last: perhaps nobody polls them for long, and then the dump gives up.
    tasks.sort_by_key(|found| found.is_future);
    let mut dump = Dump {
        shared,
        answers: Answers::new(),
        limit,
        asked: Vec::new(),
        dumps: Vec::new(),
        entries: Vec::new(),
        ended: (0, sync_shim::time::now()),
        give_ups: 0,
        given_up: 0,
    };
    for found in tasks {
        dump.make_room();
        dump.add(found);
    }
    dump.wait(0);
    dump.finish()
}

/// A dump in progress.
struct Dump<'a> {
    shared: &'a Shared,
    answers: sync_shim::sync::Arc<Answers>,
    limit: Duration,
    /// The tasks with a request that may not have ended, each with its place in the dump.
    asked: Vec<(Found, usize)>,
    dumps: Vec<TaskDump>,
    /// The entry of each task of the dump.
    entries: Vec<sync_shim::sync::Arc<Entry>>,
    /// The number of requests that had ended at the last look, and when it had last changed.
    ended: (usize, Instant),
    /// How often the dump has given requests up.
    give_ups: u32,
    /// The requests that were in a poll then. They do not count in the window.
    given_up: usize,
}

impl Dump<'_> {
    /// Adds a task to the dump, and wakes it if it waits, unless the dump asks no more tasks.
    fn add(&mut self, found: Found) {
        // A task that is woken while the runtime ends would be dropped on this thread.
        let may_ask = self.give_ups < GIVE_UPS && !self.shared.is_closing();
        let Some((state, wake)) = self.shared.tasks.wake(&found, may_ask) else {
            return;
        };
        let Some(mut task) = TaskSnapshot::of(&found, state) else {
            return;
        };
        let place = self.dumps.len();
        let mut is_asked = false;
        if let Some(wake) = wake {
            task.state = TaskState::Waiting;
            let left_over = found.entry.ask(Answers::request(&self.answers, place));
            drop((left_over, wake));
            is_asked = true;
        }
        let outcome = if is_asked {
            DumpOutcome::Unanswered
        } else {
            DumpOutcome::NotPolled
        };
        self.dumps.push(TaskDump::new(task, outcome));
        self.entries.push(found.entry.clone());
        if is_asked {
            self.asked.push((found, place));
        }
    }

    /// Waits if the window is full, until half of it is free.
    fn make_room(&mut self) {
        if self.answers.left() >= WINDOW + self.given_up {
            self.wait(WINDOW / 2);
        }
    }

    /// Waits until at most `most` requests are left, besides those given up. Gives all up at the
    /// limit.
    fn wait(&mut self, most: usize) {
        let most = most + self.given_up;
        loop {
            let (left, ended) = self.answers.wait(most, LOOK);
            let now = sync_shim::time::now();
            if ended != self.ended.0 {
                self.ended = (ended, now);
            }
            if left <= most {
                return;
            }
            if now.saturating_duration_since(self.ended.1) >= self.limit {
                return self.give_up();
            }
            self.end_requests_of_ended();
        }
    }

    /// Takes the requests that no poll has taken out of their entries (rule 5).
    fn give_up(&mut self) {
        for (found, _) in self.asked.drain(..) {
            drop(found.entry.withdraw());
        }
        self.give_ups += 1;
        self.given_up = self.answers.left();
        self.ended.1 = sync_shim::time::now();
    }

    /// Takes the requests of tasks that have ended without an answer (rule 3).
    fn end_requests_of_ended(&mut self) {
        let (tasks, dumps) = (&self.shared.tasks, &mut self.dumps);
        self.asked.retain(|(found, place)| {
            let state = tasks.state_of(found);
            if !found.entry.is_asked() {
                return false;
            }
            let has_ended = state.is_none_or(|state| state == task_header::TaskState::Complete);
            if has_ended && found.entry.take_request().is_some() {
                dumps[*place].outcome = DumpOutcome::Ended;
            }
            !has_ended
        });
    }

    fn finish(mut self) -> Vec<TaskDump> {
        let mut names = HashMap::<Stack, Arc<[Frame]>>::new();
        let listed = Listed::new(self.shared);
        for (place, answer) in self.answers.finish() {
            let dump = &mut self.dumps[place];
            let Answer::Polled {
                has_progressed,
                waits,
            } = answer
            else {
                dump.outcome = DumpOutcome::Ended;
                continue;
            };
            for (on, stack) in waits {
                let on = on.map(|on| listed.with_holder(on));
                let name = |stack| {
                    let named = names.entry(stack).or_insert_with_key(frames::of_task);
                    named.clone()
                };
                dump.waits.push(TaskWait {
                    what: on.as_ref().map(|on| listed.words(on)),
                    on,
                    frames: stack.map(name).unwrap_or_else(|| Arc::from([])),
                });
            }
            if has_progressed {
                dump.outcome = DumpOutcome::Progressed;
                continue;
            }
            dump.outcome = DumpOutcome::Waits;
            let on = dump.waits.iter().filter_map(|wait| wait.on.clone());
            self.entries[place].keep_waits(dump.task.polls, on.collect());
        }
        self.dumps
    }
}

/// The listed tasks, by their ids and by the numbers that locks note. Looked up once, if a wait
/// needs it.
struct Listed<'a> {
    shared: &'a Shared,
    ids: OnceCell<(HashSet<u64>, HashMap<u64, u64>)>,
}

impl<'a> Listed<'a> {
    fn new(shared: &'a Shared) -> Self {
        let ids = OnceCell::new();
        Self { shared, ids }
    }

    fn ids(&self) -> &(HashSet<u64>, HashMap<u64, u64>) {
        self.ids.get_or_init(|| {
            let found = self.shared.tasks.look(None, None).into_iter();
            let ids = found.map(|found| {
                let id = u64::from(found.id);
                (id, (found.entry.number().into(), id))
            });
            ids.unzip()
        })
    }

    /// Names the holder of a lock by its id. It may have ended since, or be of another runtime.
    fn with_holder(&self, on: WaitsOn) -> WaitsOn {
        match on {
            WaitsOn::Lock { kind, at, holder } => WaitsOn::Lock {
                kind,
                at,
                holder: holder.and_then(|holder| self.ids().1.get(&holder).copied()),
            },
            on => on,
        }
    }

    /// Says what an operation waits for.
    fn words(&self, on: &WaitsOn) -> String {
        match on {
            WaitsOn::Task(task) if !self.ids().0.contains(task) => {
                format!("{on}, which is a blocking closure or is not listed")
            }
            _ => on.to_string(),
        }
    }
}

/// Dumps the tasks, and the cycles of waits among them, as the lines of a text.
#[cfg(selvedge_sim)]
pub(crate) fn lines(shared: &Shared) -> Vec<String> {
    let dump = dump(shared, None, None, LIMIT);
    let cycles = wait_cycles(&dump);
    let tasks = dump.iter().map(|task| task.to_string());
    let cycles = cycles.iter().map(|cycle| cycle.to_string());
    let text: Vec<_> = tasks.chain(cycles).collect();
    text.iter()
        .flat_map(|text| text.lines())
        .map(str::to_owned)
        .collect()
}

#[cfg(all(test, not(selvedge_shuttle)))]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
