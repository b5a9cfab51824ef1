//! Checks of your own [`Schedule`]. Feature `conformance`, for tests.
//!
//! ```
//! use std::{collections::VecDeque, sync::{Arc, Mutex}};
//! use task_header::{Notified, Schedule, WakeKind, conformance::{Order, Subject, schedule}};
//!
//! /// Your queue; `None` once the queue is closed.
//! #[derive(Clone)]
//! struct Queue(Arc<Mutex<Option<VecDeque<Notified<Queue>>>>>);
//!
//! impl Schedule for Queue {
//!     fn schedule(task: Notified<Self>, _why: WakeKind) {
//!         let queue = task.scheduler().clone();
//!         let mut refused = Some(task);
//!         if let Some(tasks) = &mut *queue.0.lock().unwrap() {
//!             tasks.extend(refused.take());
//!         }
//!         drop(refused); // Not under the lock: the future's drop may run any code.
//!     }
//! }
//!
//! impl Subject for Queue {
//!     type Scheduler = Self;
//!     const ORDER: Order = Order::Fifo;
//!     fn new() -> Self {
//!         Self(Arc::new(Mutex::new(Some(VecDeque::new()))))
//!     }
//!     fn scheduler(&self) -> Self {
//!         self.clone()
//!     }
//!     fn next(&mut self) -> Option<Notified<Self>> {
//!         self.0.lock().unwrap().as_mut()?.pop_front()
//!     }
//!     fn end(self) {
//!         let left = self.0.lock().unwrap().take();
//!         drop(left);
//!     }
//! }
//!
//! schedule::<Queue>();
//! ```
use crate::{JoinHandle, Notified, Ran, Schedule};
use alloc::vec::Vec;
use core::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};
use sync_shim::{
    atomic::{AtomicUsize, Ordering::Relaxed},
    conformance::{Account, LIMIT, Unseen, bury, check, explore},
    sync::Arc,
    thread,
};

pub use sync_shim::conformance::{Order, Token};

/// A scheduler to be checked, with the worker that takes its tasks.
pub trait Subject: Sized + 'static {
    /// The scheduler type that tasks are spawned with.
    type Scheduler: Schedule;
    /// The order in which queued tasks run.
    const ORDER: Order;

    /// Makes a subject without a task. The checking thread is its only worker.
    fn new() -> Self;

    /// Returns the scheduler for a new task.
    fn scheduler(&self) -> Self::Scheduler;

    /// Returns the task that the worker would run next, or `None` if no task is queued.
    fn next(&mut self) -> Option<Notified<Self::Scheduler>>;

    /// Runs a task, and queues it again if it was woken in its poll. Override this method if the
    /// worker keeps a list of its tasks and runs them with [`Owned::run`](crate::Owned::run).
    fn run(&mut self, task: Notified<Self::Scheduler>) {
        if let Ran::Notified(again) = task.run() {
            again.schedule();
        }
    }

    /// Shuts down: drops the tasks that are queued or in the worker's list, and those that are
    /// scheduled from now on.
    fn end(self);
}

/// Runs all checks: first with one thread, then with wakes, an abort and a spawn from other
/// threads. Under loom, all executions with up to three preemptions are explored.
///
/// # Panics
/// If a check fails, with a message that begins with the check's name; or if the checks don't end.
pub fn schedule<S: Subject>() {
    let checks = [
        check(
            "a_task_is_queued_once_for_its_wakes",
            a_task_is_queued_once_for_its_wakes::<S>,
        ),
        check(
            "tasks_run_in_the_promised_order",
            tasks_run_in_the_promised_order::<S>,
        ),
        check(
            "a_wake_in_a_poll_is_not_lost",
            a_wake_in_a_poll_is_not_lost::<S>,
        ),
        check(
            "an_abort_and_the_last_waker_end_a_task",
            an_abort_and_the_last_waker_end_a_task::<S>,
        ),
        check(
            "tasks_queued_at_the_end_are_dropped",
            tasks_queued_at_the_end_are_dropped::<S>,
        ),
        check(
            "a_wake_after_the_end_leaks_nothing",
            a_wake_after_the_end_leaks_nothing::<S>,
        ),
        check(
            "a_wake_from_another_thread_is_not_lost",
            a_wake_from_another_thread_is_not_lost::<S>,
        ),
        check(
            "wakes_from_two_other_threads_are_not_lost",
            wakes_from_two_other_threads_are_not_lost::<S>,
        ),
        check(
            "a_spawn_and_an_abort_from_another_thread_are_not_lost",
            a_spawn_and_an_abort_from_another_thread_are_not_lost::<S>,
        ),
    ];
    explore(LIMIT, 3, checks);
}

/// The number of polls of a task, and a waker of the task.
#[derive(Clone, Debug, Default)]
struct PollLog(std::sync::Arc<Unseen<(usize, Option<Waker>)>>);

impl PollLog {
    fn with<R>(&self, f: impl FnOnce(&mut (usize, Option<Waker>)) -> R) -> R {
        f(&mut self.0.lock())
    }

    fn polls(&self) -> usize {
        self.with(|log| log.0)
    }

    fn waker(&self) -> Waker {
        let waker = self.with(|log| log.1.clone());
        waker.expect("a task that was polled")
    }

    /// Drops the waker, so that the waker no longer keeps the task alive.
    fn forget(&self) {
        drop(self.with(|log| log.1.take()));
    }
}

/// A future that waits forever. Each poll counts itself in `log`, stores a waker there, and calls
/// `on_poll`.
struct Waits<F> {
    log: PollLog,
    on_poll: F,
    _token: Token,
}

impl<F: FnMut(&Waker) + Unpin> Future for Waits<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.log.with(|log| {
            log.0 += 1;
            if !log
                .1
                .as_ref()
                .is_some_and(|waker| waker.will_wake(cx.waker()))
            {
                log.1 = Some(cx.waker().clone());
            }
        });
        (self.on_poll)(cx.waker());
        Poll::Pending
    }
}

/// One check: a subject and its tasks.
struct Check<S: Subject> {
    name: &'static str,
    account: Account,
    subject: S,
}

impl<S: Subject> Check<S> {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            account: Account::new(name),
            subject: S::new(),
        }
    }

    /// Spawns and queues a task that calls `on_poll` in each poll.
    fn spawn(
        &self,
        on_poll: impl FnMut(&Waker) + Unpin + Send + 'static,
    ) -> (PollLog, JoinHandle<()>) {
        let log = PollLog::default();
        let future = Waits {
            log: log.clone(),
            on_poll,
            _token: self.account.token(),
        };
        let (task, join) = crate::new(future, self.subject.scheduler());
        task.schedule();
        (log, join)
    }

    /// Spawns a task that has been polled once and waits.
    fn waiting(&mut self) -> (PollLog, JoinHandle<()>) {
        let (log, join) = self.spawn(|_| ());
        self.drain();
        assert!(
            log.polls() == 1,
            "{}: lost: a spawned task was polled {} times",
            self.name,
            log.polls()
        );
        (log, join)
    }

    /// Runs the queued tasks until none is left.
    fn drain(&mut self) {
        for _ in 0..10 {
            let tasks = self.queued();
            if tasks.is_empty() {
                return;
            }
            tasks.into_iter().for_each(|task| self.subject.run(task));
        }
        panic!(
            "{}: doubled: tasks are still queued after 10 drains",
            self.name
        );
    }

    /// Takes the queued tasks, and returns them in their order.
    fn queued(&mut self) -> Vec<Notified<S::Scheduler>> {
        let mut tasks: Vec<Notified<S::Scheduler>> = Vec::new();
        while let Some(task) = self.subject.next() {
            let twice = tasks.iter().any(|other| other.id() == task.id());
            if twice {
                // There are two `Notified` of one task. A drop of both would be unsound.
                bury((task, tasks));
                panic!("{}: doubled: a task is queued twice", self.name);
            }
            tasks.push(task);
        }
        tasks
    }
}

/// Checks that a waiting task that is woken several times is queued once. After its next poll, the
/// same must hold again.
///
/// # Panics
/// If the task is not queued once, or if its run does not poll it.
pub fn a_task_is_queued_once_for_its_wakes<S: Subject>() {
    let mut check = Check::<S>::new("a_task_is_queued_once_for_its_wakes");
    let (log, join) = check.waiting();
    for round in 2..4 {
        let waker = log.waker();
        waker.wake_by_ref();
        waker.wake_by_ref();
        waker.wake();
        let tasks = check.queued();
        assert!(
            tasks.len() == 1 && tasks[0].id() == join.id(),
            "{}: lost: after a wake {} tasks are queued",
            check.name,
            tasks.len()
        );
        tasks.into_iter().for_each(|task| check.subject.run(task));
        assert!(
            log.polls() == round,
            "{}: polled {} times, not {round}",
            check.name,
            log.polls()
        );
    }
    log.forget();
    drop(join);
    check.subject.end();
}

/// Checks that tasks that are woken one after the other are queued in the promised order, and that
/// no task is lost.
///
/// # Panics
/// If a task is lost or out of order.
pub fn tasks_run_in_the_promised_order<S: Subject>() {
    let mut check = Check::<S>::new("tasks_run_in_the_promised_order");
    let tasks: Vec<_> = (0..5).map(|_| check.waiting()).collect();
    for (log, _) in &tasks {
        log.waker().wake();
    }
    let place = |task: &Notified<_>| tasks.iter().position(|(_, join)| join.id() == task.id());
    let queued = check.queued();
    let came: Vec<_> = queued.iter().filter_map(place).collect();
    drop(queued);
    assert!(
        came.len() == 5,
        "{}: lost: of 5 tasks {came:?} came",
        check.name
    );
    check.account.assert_order(S::ORDER, &came);
    check.subject.end();
    check.account.assert_none_left();
}

/// Checks that a task may wake another task, and itself, in its poll: the scheduler must hold no
/// lock during a poll.
///
/// # Panics
/// If a wake is lost. A scheduler that waits for itself hangs, which [`schedule`] notices.
pub fn a_wake_in_a_poll_is_not_lost<S: Subject>() {
    let mut check = Check::<S>::new("a_wake_in_a_poll_is_not_lost");
    let (other, join) = check.waiting();
    let woken = other.clone();
    let mut first = true;
    let (itself, also) = check.spawn(move |waker| {
        if core::mem::take(&mut first) {
            woken.waker().wake();
            waker.wake_by_ref();
        }
    });
    check.drain();
    for (log, whose) in [(&other, "another"), (&itself, "itself")] {
        let polls = log.polls();
        assert!(
            polls == 2,
            "{}: lost: a task that was woken by {whose} was polled {polls} times",
            check.name
        );
        log.forget();
    }
    drop((join, also));
    check.subject.end();
}

/// Checks that an aborted task is dropped at its next run, or at once. A task without wakers and
/// join handle must be dropped by the end of the shutdown.
///
/// # Panics
/// If one of the two tasks is not dropped.
pub fn an_abort_and_the_last_waker_end_a_task<S: Subject>() {
    let mut check = Check::<S>::new("an_abort_and_the_last_waker_end_a_task");
    let (log, join) = check.waiting();
    join.abort();
    check.drain();
    assert!(
        join.is_finished(),
        "{}: lost: an aborted task has not ended",
        check.name
    );
    drop((log, join));
    check.account.assert_none_left();
    let (log, join) = check.waiting();
    drop(join);
    log.forget();
    check.drain();
    check.subject.end();
    check.account.assert_none_left();
}

/// Checks that a task that is queued when the scheduler shuts down is dropped, and that its join
/// handle says that the task has ended.
///
/// # Panics
/// If such a task is not dropped.
pub fn tasks_queued_at_the_end_are_dropped<S: Subject>() {
    let mut check = Check::<S>::new("tasks_queued_at_the_end_are_dropped");
    let (log, woken) = check.waiting();
    log.waker().wake();
    let (_, new) = check.spawn(|_| ());
    check.subject.end();
    for (join, which) in [(woken, "woken"), (new, "new")] {
        assert!(
            join.is_finished(),
            "{}: leaked: a {which} task that was queued has not ended",
            check.name
        );
    }
    check.account.assert_none_left();
}

/// Checks that a waker that outlives the scheduler may wake its task and be dropped: the task then
/// ends, unless it has ended before.
///
/// # Panics
/// If the task is never dropped.
pub fn a_wake_after_the_end_leaks_nothing<S: Subject>() {
    let mut check = Check::<S>::new("a_wake_after_the_end_leaks_nothing");
    let (log, join) = check.waiting();
    let (other, also) = check.waiting();
    check.subject.end();
    log.waker().wake();
    log.forget();
    other.forget();
    drop((join, also));
    check.account.assert_none_left();
}

/// A task that has been polled once and waits; each poll reads the last message sent to it.
struct Listener {
    log: PollLog,
    join: JoinHandle<()>,
    /// The message that the task's last poll must see.
    message: Arc<AtomicUsize>,
    /// The message that the task's last poll saw.
    saw: std::sync::Arc<Unseen<usize>>,
    turns: Turns,
}

impl Listener {
    fn new<S: Subject>(check: &mut Check<S>) -> Self {
        let message = Arc::new(AtomicUsize::new(0));
        let saw = std::sync::Arc::new(Unseen::new(0));
        let (received, note) = (message.clone(), saw.clone());
        let (log, join) = check.spawn(move |_| {
            // Ordering: Relaxed, so that only the wake orders this load after the store.
            *note.lock() = received.load(Relaxed);
        });
        check.drain();
        Self {
            log,
            join,
            message,
            saw,
            turns: Turns::default(),
        }
    }

    /// Starts a thread that wakes the task `times` times by one waker. Before each wake, the thread
    /// stores another message.
    fn woken_elsewhere(&self, times: usize) -> thread::JoinHandle<()> {
        let (log, waker, message) = (self.log.clone(), self.log.waker(), self.message.clone());
        let turns = self.turns.clone();
        thread::spawn(move || {
            for sent in 1..=times {
                // Ordering: Relaxed, as for the load.
                message.store(sent, Relaxed);
                waker.wake_by_ref();
                if sent < times {
                    turns.end_step(|| log.polls() > sent);
                }
            }
        })
    }

    /// Drops the handles of the task. Returns the number of its polls, and the message that the
    /// last poll saw. Call this before any assertion, because the drops during a panic must not
    /// touch a model's atomics.
    fn let_go(self) -> (usize, usize) {
        self.log.forget();
        drop(self.join);
        let saw = *self.saw.lock();
        (self.log.polls(), saw)
    }
}

/// Makes another thread and the worker take turns: after each step of the thread, the worker drains
/// its queue once. Under a model there are no turns, since the model explores every order.
#[derive(Clone, Default)]
struct Turns(std::sync::Arc<Unseen<TurnCounts>>);

#[derive(Default)]
struct TurnCounts {
    /// Steps that the other thread has ended.
    ended: usize,
    /// Steps that had ended before the worker's last drain began.
    drained: usize,
}

impl Turns {
    /// Ends a step of the other thread, and waits until its effect is seen, or was lost. The step
    /// has queued its task by now, so the worker's next full drain runs the task. If not, the wake
    /// was lost.
    fn end_step(&self, mut is_seen: impl FnMut() -> bool) {
        if cfg!(any(selvedge_loom, selvedge_shuttle)) {
            return;
        }
        self.0.lock().ended += 1;
        let drained = || {
            let turn = self.0.lock();
            turn.drained == turn.ended
        };
        while !is_seen() && !drained() && !self.is_last() {
            thread::yield_now();
        }
    }

    /// Drains the queue until the other thread has dropped its `Turns`.
    fn drain<S: Subject>(&self, check: &mut Check<S>) {
        while cfg!(not(any(selvedge_loom, selvedge_shuttle))) && !self.is_last() {
            let ended = self.0.lock().ended;
            check.drain();
            self.0.lock().drained = ended;
            thread::yield_now();
        }
    }

    /// Returns whether the other side is gone: it has ended, or a panic unwinds it.
    fn is_last(&self) -> bool {
        std::sync::Arc::strong_count(&self.0) == 1
    }
}

/// Checks a task that another thread wakes twice by one waker, while the worker runs the task: the
/// task is polled after each wake, or once after both.
///
/// # Panics
/// If a wake is lost.
pub fn a_wake_from_another_thread_is_not_lost<S: Subject>() {
    let mut check = Check::<S>::new("a_wake_from_another_thread_is_not_lost");
    let listener = Listener::new(&mut check);
    let (also, join) = check.waiting();
    let other = listener.woken_elsewhere(2);
    also.waker().wake();
    check.drain();
    listener.turns.drain(&mut check);
    other.join().expect("a wake doesn't panic");
    check.drain();
    also.forget();
    drop(join);
    let listened = listener.let_go();
    check.subject.end();
    assert!(
        also.polls() == 2,
        "{}: lost: a task that the worker woke was polled {} times",
        check.name,
        also.polls()
    );
    assert_woken(check.name, 2, listened);
}

/// Checks that neither wake is lost, if two other threads wake one task each, while the worker runs
/// the tasks.
///
/// # Panics
/// If a wake is lost.
pub fn wakes_from_two_other_threads_are_not_lost<S: Subject>() {
    let mut check = Check::<S>::new("wakes_from_two_other_threads_are_not_lost");
    let listeners = [(); 2].map(|()| Listener::new(&mut check));
    let threads = [0, 1].map(|n| listeners[n].woken_elsewhere(1));
    check.drain();
    for thread in threads {
        thread.join().expect("a wake doesn't panic");
    }
    check.drain();
    let listened = listeners.map(Listener::let_go);
    check.subject.end();
    for listened in listened {
        assert_woken(check.name, 1, listened);
    }
}

fn assert_woken(name: &str, wakes: usize, (polls, saw): (usize, usize)) {
    // One poll at the spawn, then 1 to `wakes` polls.
    assert!(
        (2..wakes + 2).contains(&polls),
        "{name}: lost: a task that was woken {wakes} times was polled {} times after that",
        polls - 1
    );
    assert!(
        saw == wakes,
        "{name}: lost: a poll doesn't see what came before the last of {wakes} wakes"
    );
}

/// Checks that another thread may spawn a task, and abort a task that was woken, while the worker
/// runs the queue. The new task must be polled, and the aborted task must end.
///
/// # Panics
/// If the new task is not polled once, or if the aborted task does not end.
pub fn a_spawn_and_an_abort_from_another_thread_are_not_lost<S: Subject>() {
    let mut check = Check::<S>::new("a_spawn_and_an_abort_from_another_thread_are_not_lost");
    let (log, aborted) = check.waiting();
    let new = PollLog::default();
    let future = Waits {
        log: new.clone(),
        on_poll: |_: &Waker| (),
        _token: check.account.token(),
    };
    let (scheduler, polled) = (check.subject.scheduler(), new.clone());
    let turns = Turns::default();
    let other_turns = turns.clone();
    log.waker().wake();
    let other = thread::spawn(move || {
        let (task, spawned) = crate::new(future, scheduler);
        task.schedule();
        other_turns.end_step(|| polled.polls() > 0);
        aborted.abort();
        (spawned, aborted)
    });
    check.drain();
    turns.drain(&mut check);
    let (spawned, aborted) = other.join().expect("neither panics");
    check.drain();
    let (polls, ended) = (new.polls(), aborted.is_finished());
    log.forget();
    if polls > 0 {
        new.forget();
    }
    drop((spawned, aborted));
    check.subject.end();
    assert!(
        polls == 1,
        "{}: lost: a spawned task was polled {polls} times",
        check.name
    );
    assert!(ended, "{}: lost: an aborted task has not ended", check.name);
    check.account.assert_none_left();
}

#[cfg(all(test, not(selvedge_count)))]
mod models;
#[cfg(all(test, not(selvedge_count)))]
mod tests;
