//! Supervisors: processes that start other processes, and restart those that end.
//!
//! # States of a child
//!
//! | state | the child |
//! |---|---|
//! | *up* | runs |
//! | *stopping* | has been cancelled, and is killed if it does not stop in time |
//! | *down* | has stopped, and is restarted when its delay is over |
//! | *gone* | has not been started yet, or has ended for good |
//!
//! # Rules
//!
//! 1. When a child's incarnation ends, the child first *stops*: its cell stays, with its pid, its
//!    names and its mailbox. The child notifies the supervisor, and the supervisor restarts the
//!    child in place or ends it for good. A temporary child ends for good at once.
//! 2. If a child ends, the strategy may stop other children, too. The supervisor cancels those in
//!    reverse order, without a wait in between. When the last of them has stopped and the delay is
//!    over, it restarts them and the child that ended, in order, except temporary children.
//! 3. If the children need more restarts than the intensity allows, the supervisor ends its
//!    children and then fails.
//! 4. A supervisor that ends cancels its children, and waits until each has stopped (rule 1). The
//!    children's pids may exist a moment longer. A supervisor that is not killed waits forever for
//!    a child whose step never returns. If the supervisor is killed, its children are killed too,
//!    and it does not wait for them. So the supervisor's next incarnation may start while a step of
//!    an old child still runs. The new children take over the names of the old children, and of all
//!    processes below those: see `names.rs`.
//! 5. A supervisor that is notified of a child's end while the scheduler shuts down ends the child
//!    for good, even if the supervisor has not been cancelled yet. The shutdown itself also ends
//!    stopped children for good. So two notifications may come for one child: its incarnation
//!    ended, and the child ended for good. If the supervisor restarted the child after the first
//!    notification, it would take the second for the end of the new incarnation. It would then wait
//!    forever for a third one.
//! 6. A supervisor's cancel is for the child's present incarnation. A child may end by itself
//!    before it takes the cancel, which then stays in the cell: the next incarnation skips it. A
//!    cancel by the user or the shutdown is for the pid: whatever incarnation there is takes it.
//!    The exit event of a monitored or linked process is for the pid, too. An incarnation that ends
//!    leaves to the next one all events for the pid that no step has received, including those
//!    already taken from the lane (see `events.rs`).
//! 7. A child that has ended for good never comes back. The supervisor ignores later notifications
//!    of the child's end. A monitor or link may send one, with the reason `NoProcess`.
use crate::{
    Backoff, CancelReason, Context, Event, EventsOf, ExitReason, Handle, InitError, Input,
    NoCommand, OutputOf, Pid, Policy, Process, Spawn, SpawnError, Step, StepOf, deadline::Deadline,
    guard::Guarded, supervised::RestartSettings,
};
use std::{
    collections::VecDeque,
    fmt,
    panic::Location,
    sync::Arc,
    task,
    time::{Duration, Instant},
};

/// The children that a supervisor restarts when one of them ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strategy {
    /// The child that ended.
    OneForOne,
    /// All children.
    OneForAll,
    /// The child that ended, and the children that were added after it.
    RestForOne,
}

type Start = dyn Fn(&Handle, Pid, &Child) -> Result<Pid, SpawnError> + Send + Sync;

/// A child that a supervisor starts: see [`Supervisor::child`].
///
/// ```
/// use process_scheduler::{Child, Policy, Spawn, from_fn};
/// use std::time::Duration;
///
/// let child = Child::new(|| from_fn(|n: u32, _| println!("{n}")))
///     .spawn(Spawn::new().name("printer"))
///     .policy(Policy::Transient)
///     .keep_mail(true)
///     .shutdown(Duration::from_secs(1));
/// # let _ = child;
/// ```
pub struct Child {
    start: Arc<Start>,
    spawn: Spawn,
    policy: Policy,
    keep_mail: bool,
    shutdown: Duration,
}

impl Child {
    /// Makes a child. The closure makes the child's process, at the start and at each restart.
    #[track_caller]
    pub fn new<P: Process>(make: impl Fn() -> P + Send + Sync + 'static) -> Self {
        let made_at = Location::caller();
        let make = Guarded::new(make);
        let make: Arc<dyn Fn() -> P + Send + Sync> = Arc::new(move || (*make)());
        Self {
            start: Arc::new(move |handle, supervisor, child| {
                let settings = RestartSettings {
                    supervisor,
                    policy: child.policy,
                    keep_mail: child.keep_mail,
                    make: make.clone(),
                    made_at,
                };
                let (process, spawn) = (make(), child.spawn.clone());
                let spawned = handle.spawn_supervised(process, spawn, Some(settings), |_| ());
                Ok(spawned?.pid())
            }),
            spawn: Spawn::new(),
            policy: Policy::Permanent,
            keep_mail: false,
            shutdown: Duration::from_secs(5),
        }
    }

    /// Makes a child that is a supervisor.
    ///
    /// If the new supervisor is killed, its children are killed too, and the parent restarts it
    /// without waiting for them. So a step of an old child may still run beside the new child,
    /// which takes over the old one's name. If the supervisor fails or is cancelled, it waits for
    /// its children first: it does not end, and is not restarted, until the steps of all of them
    /// have returned.
    ///
    /// ```
    /// use process_scheduler::{Child, Scheduler, Strategy, Supervisor, from_fn};
    ///
    /// let scheduler = Scheduler::new();
    /// let leaf = || Child::new(|| from_fn(|_: u8, _| ()));
    /// let tree = Supervisor::new(Strategy::OneForOne)
    ///     .child(leaf())
    ///     .child(Child::supervisor(move || {
    ///         Supervisor::new(Strategy::OneForAll).child(leaf()).child(leaf())
    ///     }));
    /// tree.start(&scheduler).unwrap();
    /// assert_eq!(scheduler.list().len(), 5);
    /// ```
    pub fn supervisor(make: impl Fn() -> Supervisor + Send + Sync + 'static) -> Self {
        Self::new(make).spawn(Spawn::new().trap_exits(true))
    }

    /// Sets the settings with which the child's process is spawned.
    pub fn spawn(mut self, spawn: Spawn) -> Self {
        self.spawn = spawn;
        self
    }

    /// Sets when the child is restarted: [`Policy::Permanent`] by default.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets whether messages that the child has not taken survive a restart. By default they become
    /// dead letters.
    ///
    /// An `async` child has taken a message when its [`Inbox`](crate::Inbox) has returned it.
    /// Exception: if code awaits the inbox outside of the child's steps, or with a waker of its
    /// own, one message may already be handed to that code. If the code does not receive it before
    /// the child ends, the message becomes a dead letter even with `keep_mail`.
    pub fn keep_mail(mut self, keep: bool) -> Self {
        self.keep_mail = keep;
        self
    }

    /// Sets how long the child may clean up after a cancel: 5 seconds by default. With
    /// `Duration::MAX` there is no limit.
    pub fn shutdown(mut self, limit: Duration) -> Self {
        self.shutdown = limit;
        self
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child")
            .field("spawn", &self.spawn)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChildState {
    Up,
    /// `kill_at` is `None` if the child has been killed, or may clean up without a limit.
    Stopping {
        kill_at: Option<Instant>,
    },
    /// `due` is `None` if the restart's time is beyond the clock's range: it never comes.
    Down {
        due: Option<Instant>,
    },
    Gone,
}

struct ChildEntry {
    child: Child,
    pid: Option<Pid>,
    state: ChildState,
    since: Instant,
    /// The number of restarts in a row.
    restarts: u32,
}

/// A process that starts other processes, its children, and restarts them in place: a restarted
/// child keeps its pid, its names and its addresses.
///
/// Dropping a supervisor that has been started kills its children. This matters if a process of
/// yours owns a supervisor and forwards calls to it.
///
/// ```
/// use process_scheduler::{Backoff, Child, Scheduler, Spawn, Strategy, Supervisor, from_fn};
/// use std::{sync::mpsc, time::Duration};
///
/// let scheduler = Scheduler::new();
/// let (sender, seen) = mpsc::channel();
/// let child = Child::new(move || {
///     let sender = sender.clone();
///     from_fn(move |n: i32, _| {
///         assert!(n > 0, "not that");
///         sender.send(n).unwrap();
///     })
/// });
/// let supervisor = Supervisor::new(Strategy::OneForOne)
///     .backoff(Backoff::new(Duration::from_millis(1), 2, Duration::from_secs(1)))
///     .intensity(3, Duration::from_secs(60))
///     .child(child.spawn(Spawn::new().name("positive")).keep_mail(true));
/// supervisor.start(&scheduler).unwrap();
///
/// let positive = scheduler.named::<i32>("positive").unwrap();
/// positive.try_send(-1).unwrap(); // It panics, and is restarted.
/// positive.try_send(7).unwrap();
/// assert_eq!(seen.recv(), Ok(7));
/// ```
pub struct Supervisor {
    strategy: Strategy,
    most: usize,
    within: Duration,
    backoff: Backoff,
    entries: Vec<ChildEntry>,
    restarts: VecDeque<Instant>,
    end_reason: Option<ExitReason>,
    deadline: Option<(Instant, Deadline)>,
    context: Option<(Handle, Pid)>,
}

impl Supervisor {
    /// Makes a supervisor without children, which allows 10 restarts in a minute.
    pub fn new(strategy: Strategy) -> Self {
        Self {
            strategy,
            most: 10,
            within: Duration::from_secs(60),
            backoff: Backoff::default(),
            entries: Vec::new(),
            restarts: VecDeque::new(),
            end_reason: None,
            deadline: None,
            context: None,
        }
    }

    /// Sets how many restarts the supervisor allows in the time `within`. If its children need one
    /// more, the supervisor fails. With `usize::MAX` there is no limit.
    ///
    /// The supervisor keeps the time of each of these restarts, or nothing if there is no limit.
    pub fn intensity(mut self, most: usize, within: Duration) -> Self {
        self.most = most;
        self.within = within;
        self
    }

    /// Sets how long the supervisor waits before a restart. The delay grows with the count of a
    /// child's restarts in a row. The count is reset if the child ran for longer than a second plus
    /// twice its next delay (at the largest jitter).
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Adds a child. Children are started in the order in which they were added.
    pub fn child(mut self, child: Child) -> Self {
        self.entries.push(ChildEntry {
            child,
            pid: None,
            state: ChildState::Gone,
            since: sync_shim::time::now(),
            restarts: 0,
        });
        self
    }

    /// Starts the supervisor and its children.
    ///
    /// # Errors
    /// If a child cannot be spawned. The children that were spawned before it are ended then.
    pub fn start(self, handle: &Handle) -> Result<Pid, SpawnError> {
        let spawn = Spawn::new().trap_exits(true);
        Ok(handle.spawn_process(self, spawn)?.pid())
    }

    /// Handles the end of a child, or of another process.
    fn exited(&mut self, handle: &Handle, pid: Pid, reason: &ExitReason, now: Instant) {
        let at = self.entries.iter().position(|e| e.pid == Some(pid));
        let Some(at) = at else {
            // The process is a child of an earlier incarnation of this supervisor.
            return handle.kill_for_good(pid, ExitReason::Killed);
        };
        let entry = &mut self.entries[at];
        // Rule 7.
        if entry.state == ChildState::Gone {
            return;
        }
        // Rule 5. If the shutdown has ended the child for good, `is_closed` is true here: the
        // notification came through queues that synchronise with the shutdown.
        if self.end_reason.is_some() || handle.is_closed() {
            entry.state = ChildState::Gone;
            return handle.kill_for_good(pid, ExitReason::Killed);
        }
        let policy = entry.child.policy;
        if let ChildState::Stopping { .. } = entry.state {
            entry.state = match policy {
                Policy::Temporary => ChildState::Gone,
                _ => ChildState::Down { due: Some(now) },
            };
            return;
        }
        if !policy.restarts(reason) {
            entry.state = ChildState::Gone;
            return handle.kill_for_good(pid, ExitReason::Killed);
        }
        if !self.allows_restart(now) {
            let entry = &mut self.entries[at];
            entry.state = ChildState::Gone;
            handle.kill_for_good(pid, ExitReason::Killed);
            return self.begin_end(handle, ExitReason::failed("too many restarts"), now);
        }
        let entry = &mut self.entries[at];
        let random = sync_shim::random::number() as f64 / u64::MAX as f64;
        let longest = self.backoff.delay(entry.restarts, 1.0);
        let settled = longest
            .saturating_mul(2)
            .saturating_add(Duration::from_secs(1));
        if now.duration_since(entry.since) > settled {
            entry.restarts = 0;
        }
        let delay = self.backoff.delay(entry.restarts, random);
        entry.restarts = entry.restarts.saturating_add(1);
        let due = now.checked_add(delay);
        entry.state = ChildState::Down { due };
        let (from, all) = match self.strategy {
            Strategy::OneForOne => return,
            Strategy::OneForAll => (0, true),
            Strategy::RestForOne => (at + 1, false),
        };
        for i in (from..self.entries.len()).rev() {
            if all && i == at {
                continue;
            }
            Self::stop(handle, &mut self.entries[i], now);
        }
    }

    /// Returns whether the intensity allows one more restart, and counts that restart. Keeps the
    /// times of at most `most` restarts, and none if `most` is no limit.
    fn allows_restart(&mut self, now: Instant) -> bool {
        if self.most == usize::MAX {
            return true;
        }
        let within = self.within;
        let is_old = |at: &Instant| now.duration_since(*at) > within;
        while self.restarts.front().is_some_and(is_old) {
            self.restarts.pop_front();
        }
        let is_allowed = self.restarts.len() < self.most;
        if is_allowed {
            self.restarts.push_back(now);
        }
        is_allowed
    }

    /// Cancels a child that is up.
    fn stop(handle: &Handle, entry: &mut ChildEntry, now: Instant) {
        if let (ChildState::Up, Some(pid)) = (entry.state, entry.pid) {
            handle.cancel_for(pid, CancelReason::Supervisor);
            let kill_at = now.checked_add(entry.child.shutdown);
            entry.state = ChildState::Stopping { kill_at };
        }
    }

    /// Begins to end the supervisor. Cancels its children, which end before it.
    fn begin_end(&mut self, handle: &Handle, reason: ExitReason, now: Instant) {
        if self.end_reason.is_some() {
            return;
        }
        self.end_reason = Some(reason);
        for entry in self.entries.iter_mut().rev() {
            Self::stop(handle, entry, now);
            if let (ChildState::Down { .. }, Some(pid)) = (entry.state, entry.pid) {
                entry.state = ChildState::Gone;
                handle.kill_for_good(pid, ExitReason::Killed);
            }
        }
    }

    /// Kills the children whose limit is over, and restarts those whose delay is over. Returns when
    /// the next limit or delay is over.
    fn serve(&mut self, handle: &Handle, now: Instant) -> Option<Instant> {
        let mut next = None;
        let mut wake_no_later_than =
            |at: Instant| next = Some(next.map_or(at, |next| at.min(next)));
        let mut stopping = false;
        for entry in &mut self.entries {
            let ChildState::Stopping { kill_at } = entry.state else {
                continue;
            };
            stopping = true;
            match (kill_at, entry.pid) {
                (Some(at), Some(pid)) if at <= now => {
                    handle.kill(pid);
                    entry.state = ChildState::Stopping { kill_at: None };
                }
                (Some(at), _) => wake_no_later_than(at),
                _ => {}
            }
        }
        let due_of = |entry: &ChildEntry| match entry.state {
            ChildState::Down { due } => Some(due),
            _ => None,
        };
        // Rule 2: children that are stopped together are restarted together, at the latest due time
        // of the children that are down. This is `None` if one of these times never comes.
        let all_due = self.entries.iter().filter_map(due_of);
        let latest_due = all_due.reduce(|a, b| Some(a?.max(b?))).flatten();
        for entry in &mut self.entries {
            let ChildState::Down { due } = entry.state else {
                continue;
            };
            let due = match self.strategy {
                Strategy::OneForOne => due,
                _ if stopping => continue,
                _ => latest_due,
            };
            let Some(due) = due else {
                continue;
            };
            if due > now {
                wake_no_later_than(due);
                continue;
            }
            entry.state = ChildState::Up;
            entry.since = now;
            if let Some(pid) = entry.pid {
                handle.revive(pid);
            }
        }
        next
    }
}

impl Process for Supervisor {
    type Message = NoCommand;
    type Cmd = NoCommand;
    type Output = ();
    type Error = ();

    fn init(
        &mut self,
        cx: &Context<'_, NoCommand>,
        method: &str,
        _: Input,
    ) -> Result<(), InitError> {
        if !method.is_empty() {
            return Err(InitError::UnknownMethod);
        }
        self.context = Some((cx.handle().clone(), cx.pid()));
        for entry in &mut self.entries {
            let started = (entry.child.start)(cx.handle(), cx.pid(), &entry.child);
            entry.pid = Some(started.map_err(|error| InitError::Failed(error.to_string()))?);
            entry.state = ChildState::Up;
            entry.since = sync_shim::time::now();
        }
        Ok(())
    }

    fn step(&mut self, events: &mut EventsOf<Self>, out: &mut OutputOf<Self>) -> StepOf<Self> {
        let now = sync_shim::time::now();
        let handle = out.handle();
        for event in events {
            match event {
                Event::Exit { pid, reason } => self.exited(handle, pid, &reason, now),
                Event::Cancel(_) => self.begin_end(handle, ExitReason::Cancelled, now),
                _ => {}
            }
        }
        let next = self.serve(handle, now);
        if let Some(reason) = &self.end_reason {
            if self
                .entries
                .iter()
                .all(|entry| entry.state == ChildState::Gone)
            {
                return match reason {
                    ExitReason::Cancelled => Step::Done,
                    reason => Step::Failed(reason.clone()),
                };
            }
        }
        match next {
            None => self.deadline = None,
            Some(at) => {
                let is_armed = |(armed, _): &(Instant, Deadline)| *armed == at;
                if !self.deadline.as_ref().is_some_and(is_armed) {
                    self.deadline = Some((at, Deadline::new(&handle.shared, at - now)));
                }
            }
        }
        if let Some((_, deadline)) = &mut self.deadline {
            if deadline.poll(&task::Context::from_waker(out.waker())) {
                return Step::Continue;
            }
        }
        Step::Idle
    }

    fn close(&mut self) {
        self.end_children();
    }
}

/// A process of the user may own the supervisor, and not pass on `close`.
impl Drop for Supervisor {
    fn drop(&mut self) {
        self.end_children();
    }
}

impl Supervisor {
    /// Kills the children that have yet to end for good. The second call does nothing.
    fn end_children(&mut self) {
        self.deadline = None;
        let Some((handle, _)) = self.context.take() else {
            return;
        };
        for entry in self.entries.iter().rev() {
            if let (Some(pid), true) = (entry.pid, entry.state != ChildState::Gone) {
                handle.kill_for_good(pid, ExitReason::Killed);
            }
        }
    }
}

impl fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervisor")
            .field("strategy", &self.strategy)
            .field("children", &self.entries.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
