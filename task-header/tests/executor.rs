//! A multi-threaded `Executor<'a>` whose tasks borrow, as an example of `spawn_unchecked`.
//!
//! 1. A task's future is touched only by a run or the drop of its `Notified`. Only the queue keeps
//!    `Notified` values, and only methods of the executor and its drop take them out. While the
//!    executor is borrowed or dropped, `'a` has not ended.
//! 2. A thread that wakes a task has the task's `Notified` until the push. In between, no user code
//!    runs and nothing panics. The thread neither runs nor drops the task.
//! 3. Each task holds the queue, so the queue's drop drops no task. If the executor is forgotten,
//!    the queue and its tasks leak.
//! 4. The executor's drop waits until all tasks are gone. A task that a thread is about to push is
//!    pushed soon, and no other thread runs a task.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use pin_project_lite::pin_project;
use std::{
    collections::{HashMap, VecDeque},
    future::{Future, pending, poll_fn},
    marker::PhantomData,
    pin::{Pin, pin},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, Waker},
    thread,
};
use task_header::{
    JoinError, JoinHandle, LocalNotified, LocalOwned, LocalRan, Notified, Ran, Schedule,
    ScheduleLocal, WakeKind, new_unchecked,
};

#[derive(Default)]
struct State {
    tasks: Mutex<Tasks>,
    changed: Condvar,
}

#[derive(Default)]
struct Tasks {
    queue: VecDeque<Notified<Queue>>,
    /// The wakers of the tasks whose futures still exist.
    wakers: HashMap<usize, Waker>,
    spawned: usize,
}

impl State {
    /// Locks the tasks. A poisoned lock is no reason to panic (rule 2).
    fn lock(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The scheduler of the tasks.
struct Queue(Arc<State>);

impl Schedule for Queue {
    fn schedule(task: Notified<Self>, _: WakeKind) {
        let state = task.scheduler().0.clone();
        state.lock().queue.push_back(task);
        state.changed.notify_all();
    }
}

struct Executor<'a> {
    state: Arc<State>,
    /// Invariant in `'a`: spawns take futures of `'a` in, and runs poll these futures.
    lifetime: PhantomData<fn(&'a ()) -> &'a ()>,
}

pin_project! {
    /// A future, and an entry that is dropped after it. The drop of the entry records that the
    /// future is gone.
    struct Listed<F> {
        #[pin]
        future: F,
        _entry: Entry,
    }
}

struct Entry(Arc<State>, usize);

impl<F: Future> Future for Listed<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.project().future.poll(cx)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let waker = self.0.lock().wakers.remove(&self.1);
        self.0.changed.notify_all();
        drop(waker);
    }
}

impl<'a> Executor<'a> {
    fn new() -> Self {
        Self {
            state: Arc::default(),
            lifetime: PhantomData,
        }
    }

    fn spawn<T: Send + 'a>(&self, future: impl Future<Output = T> + Send + 'a) -> JoinHandle<T> {
        let mut tasks = self.state.lock();
        tasks.spawned += 1;
        let index = tasks.spawned;
        drop(tasks);
        let future = Listed {
            future,
            _entry: Entry(self.state.clone(), index),
        };
        let queue = Queue(self.state.clone());
        // SAFETY: future and output are `Send`; rules 1 to 3.
        let (task, join) = unsafe { new_unchecked(future, queue) };
        self.state.lock().wakers.insert(index, task.waker());
        task.schedule();
        join
    }

    /// Runs one task, if one is ready.
    fn try_tick(&self) -> bool {
        let task = self.state.lock().queue.pop_front();
        let Some(task) = task else { return false };
        if let Ran::Notified(again) = task.run() {
            again.schedule();
        }
        true
    }

    /// Runs tasks until all have ended.
    fn run(&self) {
        loop {
            while self.try_tick() {}
            let mut tasks = self.state.lock();
            while tasks.queue.is_empty() {
                if tasks.wakers.is_empty() {
                    return;
                }
                let waited = self.state.changed.wait(tasks);
                tasks = waited.unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn len(&self) -> usize {
        self.state.lock().wakers.len()
    }
}

impl Drop for Executor<'_> {
    fn drop(&mut self) {
        loop {
            let wakers: Vec<_> = self.state.lock().wakers.values().cloned().collect();
            wakers.into_iter().for_each(Waker::wake);
            let mut tasks = self.state.lock();
            while tasks.queue.is_empty() {
                if tasks.wakers.is_empty() {
                    return;
                }
                // Rule 4.
                let waited = self.state.changed.wait(tasks);
                tasks = waited.unwrap_or_else(PoisonError::into_inner);
            }
            let queue = std::mem::take(&mut tasks.queue);
            drop(tasks);
            drop(queue);
        }
    }
}

/// Leaks a value, and keeps its address where a leak checker finds it.
fn forget<T>(value: T) {
    static FORGOTTEN: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let address = Box::into_raw(Box::new(value)).expose_provenance();
    FORGOTTEN.lock().unwrap().push(address);
}

/// Counts its drops.
struct Drops<'a>(&'a AtomicUsize);

impl Drop for Drops<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// Never completes. Each poll puts a waker of the task into `slot`.
async fn waits(drops: Drops<'_>, slot: &Mutex<Option<Waker>>) {
    poll_fn(|cx| {
        *slot.lock().unwrap() = Some(cx.waker().clone());
        Poll::<()>::Pending
    })
    .await;
    drop(drops);
}

async fn yield_now() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn outcome<T>(join: JoinHandle<T>) -> Result<T, JoinError> {
    let Poll::Ready(outcome) = pin!(join).poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("the task is not done");
    };
    outcome
}

#[test]
fn tasks_that_borrow_run_on_many_threads() {
    let text = String::from("text");
    let executor = Executor::new();
    let joins: Vec<_> = (0..100)
        .map(|n| {
            let text = &text;
            executor.spawn(async move {
                yield_now().await;
                &text[n % 4..]
            })
        })
        .collect();
    thread::scope(|threads| {
        for _ in 0..3 {
            threads.spawn(|| executor.run());
        }
    });
    drop(executor);
    for (n, join) in joins.into_iter().enumerate() {
        assert_eq!(outcome(join).unwrap(), &text[n % 4..]);
    }
}

#[test]
fn a_dropped_executor_drops_idle_and_queued_tasks() {
    let (drops, slot) = (AtomicUsize::new(0), Mutex::new(None));
    let executor = Executor::new();
    let idle = executor.spawn(waits(Drops(&drops), &slot));
    assert!(executor.try_tick());
    let queued = executor.spawn(waits(Drops(&drops), &slot));
    // A completed task leaves only its output, which belongs to the join handle.
    let done = executor.spawn(async { Drops(&drops) });
    assert!(executor.try_tick() && executor.try_tick());
    let unpolled = executor.spawn(waits(Drops(&drops), &slot));
    assert_eq!((executor.len(), drops.load(SeqCst)), (3, 0));
    drop(executor);
    assert_eq!(drops.load(SeqCst), 3);
    for join in [idle, queued, unpolled] {
        assert!(outcome(join).unwrap_err().is_cancelled());
    }
    drop(outcome(done).unwrap());
    assert_eq!(drops.load(SeqCst), 4);
    slot.lock().unwrap().take().unwrap().wake();
}

#[test]
fn a_dropped_executor_waits_for_a_task_that_is_woken() {
    for _ in 0..50 {
        let (drops, slot) = (AtomicUsize::new(0), Mutex::new(None));
        let executor = Executor::new();
        drop(executor.spawn(waits(Drops(&drops), &slot)));
        assert!(executor.try_tick());
        let waker = slot.lock().unwrap().take().unwrap();
        let go = AtomicBool::new(false);
        thread::scope(|threads| {
            threads.spawn(|| {
                while !go.load(SeqCst) {
                    thread::yield_now();
                }
                waker.wake();
            });
            go.store(true, SeqCst);
            drop(executor);
            assert_eq!(drops.load(SeqCst), 1);
        });
    }
}

#[test]
fn forgotten_executor_leaks_its_tasks_unreached_by_wakers() {
    static DROPS: AtomicUsize = AtomicUsize::new(0);
    static SLOT: Mutex<Option<Waker>> = Mutex::new(None);
    let (drops, slot) = (&DROPS, &SLOT);
    let (polls, slots) = (AtomicUsize::new(0), [Mutex::new(None), Mutex::new(None)]);
    let joins = {
        let executor = Executor::new();
        let joins = [&slots[0], &slots[1]].map(|slot| {
            let polls = &polls;
            executor.spawn(async move {
                polls.fetch_add(1, SeqCst);
                waits(Drops(drops), slot).await;
            })
        });
        drop(executor.spawn(waits(Drops(drops), slot)));
        while executor.try_tick() {}
        forget(executor);
        joins
    };
    let wakers = slots.map(|slot| slot.into_inner().unwrap().unwrap());
    // The tasks are submitted again, by a wake, by an abort, and by the drop of the last reference.
    // No thread runs them.
    let [first, second] = joins;
    let [by_ref, by_value] = wakers;
    by_ref.wake_by_ref();
    drop((first, by_ref));
    second.abort();
    drop(second);
    by_value.wake();
    drop(slot.lock().unwrap().take());
    assert_eq!((polls.load(SeqCst), drops.load(SeqCst)), (2, 0));
}

#[test]
fn an_executor_with_endless_tasks_is_dropped_in_another_thread() {
    let drops = AtomicUsize::new(0);
    let executor = Executor::new();
    let held = Drops(&drops);
    drop(executor.spawn(async {
        let _held = held;
        pending::<()>().await;
    }));
    assert!(executor.try_tick());
    thread::scope(|threads| {
        threads.spawn(move || drop(executor));
    });
    assert_eq!(drops.load(SeqCst), 1);
}

/// A single-threaded executor. Only its list runs and drops its tasks, so the lifetime `'a` makes
/// the executor sound, whether it is dropped or forgotten.
struct LocalExecutor<'a> {
    list: LocalOwned<Home>,
    lifetime: PhantomData<fn(&'a ()) -> &'a ()>,
}

struct Home;

impl ScheduleLocal for Home {
    fn schedule(task: LocalNotified<Self>, _: WakeKind) {
        task.send();
    }
}

impl<'a> LocalExecutor<'a> {
    fn new() -> Self {
        Self {
            list: LocalOwned::new(Waker::noop().clone()),
            lifetime: PhantomData,
        }
    }

    fn spawn<T: 'a>(&self, future: impl Future<Output = T> + 'a) -> JoinHandle<T> {
        // SAFETY: a user of the list has the executor, so `'a` has not ended.
        let (task, join) = unsafe { self.list.spawn_unchecked(future, Home) };
        task.send();
        join
    }

    fn run(&self) {
        while let Some(task) = self.list.receive() {
            if let LocalRan::Notified(again) = self.list.run(task) {
                again.send();
            }
        }
    }
}

/// Tells the drop checker that the drop uses what the tasks borrow.
impl Drop for LocalExecutor<'_> {
    fn drop(&mut self) {}
}

#[test]
fn a_local_executor_runs_and_drops_tasks_that_borrow() {
    let (drops, slot, words) = (
        AtomicUsize::new(0),
        Mutex::new(None),
        [String::from("word")],
    );
    let executor = LocalExecutor::new();
    let word = executor.spawn(async {
        yield_now().await;
        words[0].as_str()
    });
    let idle = executor.spawn(waits(Drops(&drops), &slot));
    executor.run();
    assert_eq!(drops.load(SeqCst), 0);
    drop(executor);
    assert_eq!(drops.load(SeqCst), 1);
    assert_eq!(outcome(word).unwrap(), "word");
    assert!(outcome(idle).unwrap_err().is_cancelled());
    slot.into_inner().unwrap().unwrap().wake();
}

#[test]
fn a_forgotten_local_executor_leaks_its_tasks() {
    static DROPS: AtomicUsize = AtomicUsize::new(0);
    let drops = &DROPS;
    let slot = Mutex::new(None);
    let polls = AtomicUsize::new(0);
    let executor = LocalExecutor::new();
    let join = executor.spawn(async {
        polls.fetch_add(1, SeqCst);
        waits(Drops(drops), &slot).await;
    });
    executor.run();
    forget(executor);
    drop(join);
    slot.into_inner().unwrap().unwrap().wake();
    assert_eq!((polls.load(SeqCst), drops.load(SeqCst)), (1, 0));
}
