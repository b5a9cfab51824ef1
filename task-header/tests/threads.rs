//! Real threads spawn, run, wake, abort, await and detach tasks at the same time. Every future and
//! every output is dropped exactly once, no wake and no join is lost, and every list ends empty.
//!
//! `SELVEDGE_ITEMS=1000000` makes the test run long. The test runs in rounds, because the join
//! handles keep their tasks' memory until a round ends. `SELVEDGE_SEED` mixes the operations in
//! another way.
#![cfg(all(feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
#![allow(missing_docs, reason = "a test")]
use std::{
    collections::VecDeque,
    future::Future,
    ops::Range,
    pin::Pin,
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU8, AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
    },
    task::{Context, Poll, Wake, Waker},
    thread,
    time::{Duration, Instant},
};
use sync_shim::sync::Mutex;
use task_header::{JoinHandle, Notified, Owned, Ran, Schedule, WakeKind};

const RUNNERS: usize = 3;
const WAKERS: usize = 2;
const SPAWNERS: usize = 2;
/// The most tasks of a round.
const ROUND: usize = 100_000;

fn from_env(name: &str, default: u64) -> u64 {
    let said = std::env::var(name).ok();
    said.map_or(default, |said| said.parse().expect("a number"))
}

fn tasks() -> usize {
    from_env("SELVEDGE_ITEMS", 20_000) as usize
}

/// A wait that takes longer is a hang, even on a busy machine.
const LONG: Duration = Duration::from_secs(600);

/// Returns a pseudo-random number for a task. The number chooses one of the operations on that
/// task. Each `salt` gives another number, for another choice.
fn mixed(task: usize, salt: u64) -> u64 {
    let seed = from_env("SELVEDGE_SEED", 1);
    let salt = salt
        .wrapping_mul(0xD6E8_FEB8_6659_FD93)
        .wrapping_add(seed.wrapping_mul(0xA24B_AED4_963E_E407));
    let mut x = (task as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ salt;
    x ^= x >> 31;
    x = x.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x ^ x >> 29
}

/// The record of one task.
#[derive(Default)]
struct Line {
    flag: AtomicBool,
    futures: AtomicU8,
    outputs_made: AtomicU8,
    outputs_dropped: AtomicU8,
}

struct Shared {
    queue: Mutex<VecDeque<Notified<Queue>>>,
    /// The wakers of tasks that were polled, with their numbers.
    wakers: Mutex<VecDeque<(usize, Waker)>>,
    /// The number of the round's first task, whose line is the first in the book.
    first: usize,
    book: Vec<Line>,
    dropped: AtomicUsize,
    /// The number of tasks that are not abandoned and have ended. If no wake is lost, all tasks
    /// that are not abandoned end before the shutdown.
    woken: AtomicUsize,
    closing: AtomicBool,
}

impl Shared {
    fn numbers(&self) -> Range<usize> {
        self.first..self.first + self.book.len()
    }

    /// Returns whether all tasks have ended. Panics if they take too long after the closing.
    fn is_over(&self, closing: &mut Option<Instant>) -> bool {
        if !self.closing.load(SeqCst) {
            return false;
        }
        let closing = closing.get_or_insert_with(Instant::now);
        assert!(closing.elapsed() < LONG, "a task was lost");
        self.dropped.load(SeqCst) == self.book.len()
    }

    fn line(&self, number: usize) -> &Line {
        &self.book[number - self.first]
    }
}

#[derive(Clone)]
struct Queue(Arc<Shared>);

impl Schedule for Queue {
    fn schedule(task: Notified<Self>, _: WakeKind) {
        let queue = task.scheduler().clone();
        queue.0.queue.lock().push_back(task);
    }
}

/// A future that is ready, or panics, once its flag is set. Its first poll leaves a waker. In one
/// task of four, the first poll also wakes the task.
struct Work {
    shared: Arc<Shared>,
    number: usize,
    /// Written without an atomic by each poll and by the drop. ThreadSanitizer would report two
    /// writes at once as a data race.
    polls: u32,
}

struct Output {
    shared: Arc<Shared>,
    number: usize,
}

impl Future for Work {
    type Output = Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Output> {
        self.polls += 1;
        let line = self.shared.line(self.number);
        // Ordering: Relaxed, so that only the wake can have made the flag visible.
        if line.flag.load(Relaxed) {
            if mixed(self.number, 7) % 16 == 0 {
                std::panic::resume_unwind(Box::new("on purpose"));
            }
            line.outputs_made.fetch_add(1, SeqCst);
            return Poll::Ready(Output {
                shared: self.shared.clone(),
                number: self.number,
            });
        }
        if self.polls == 1 {
            let mut wakers = self.shared.wakers.lock();
            wakers.push_back((self.number, cx.waker().clone()));
            drop(wakers);
            if self.number % 4 == 0 {
                cx.waker().wake_by_ref();
            }
        }
        Poll::Pending
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.polls += 1;
        let line = self.shared.line(self.number);
        assert_eq!(line.futures.fetch_add(1, SeqCst), 0, "dropped twice");
        if !is_abandoned(self.number) {
            self.shared.woken.fetch_add(1, SeqCst);
        }
        self.shared.dropped.fetch_add(1, SeqCst);
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        let line = self.shared.line(self.number);
        line.outputs_dropped.fetch_add(1, SeqCst);
    }
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

struct Joining(JoinHandle<Output>, Arc<Woken>);

impl Joining {
    fn poll(&mut self) -> Poll<()> {
        let waker = Waker::from(self.1.clone());
        let polled = Pin::new(&mut self.0).poll(&mut Context::from_waker(&waker));
        polled.map(drop)
    }
}

/// Returns whether the threads that wake tasks leave this task out: one in sixteen.
fn is_abandoned(number: usize) -> bool {
    mixed(number, 1) % 16 == 0
}

fn spawn(shared: &Arc<Shared>, numbers: impl Iterator<Item = usize>) -> Vec<Joining> {
    let queue = Queue(shared.clone());
    let mut joins = Vec::new();
    for number in numbers {
        let work = Work {
            shared: shared.clone(),
            number,
            polls: 0,
        };
        let choice = mixed(number, 2) % 8;
        if choice == 0 {
            task_header::new_detached(work, queue.clone()).schedule();
            continue;
        }
        let (task, mut join) = task_header::new(work, queue.clone());
        task.schedule();
        match choice {
            1 => drop(join),
            2 => join.abort(),
            3 => {
                let abort = join.abort_handle();
                drop(join);
                abort.abort();
            }
            4 => {
                // Polls once with another waker than the later polls.
                let other = Waker::from(Arc::<Woken>::default());
                if Pin::new(&mut join)
                    .poll(&mut Context::from_waker(&other))
                    .is_pending()
                {
                    joins.push(Joining(join, Arc::default()));
                }
            }
            _ => joins.push(Joining(join, Arc::default())),
        }
        // Polls the newest handle, which registers a waker. A handle that was ready is dropped.
        let last = joins.last_mut().is_some_and(|last| last.poll().is_ready());
        if last {
            joins.pop();
        }
    }
    joins
}

fn run(shared: &Shared) {
    let mut owned = Owned::new(Waker::noop().clone());
    let mut closing = None;
    loop {
        let task = shared.queue.lock().pop_front();
        if let Some(task) = task {
            // Some runs use no list, as on a thread that owns no list.
            let ran = if shared.dropped.load(SeqCst) % 8 == 7 {
                task.run()
            } else {
                owned.run(task)
            };
            if let Ran::Notified(again) = ran {
                shared.queue.lock().push_back(again);
            }
            continue;
        }
        owned.drain();
        if shared.closing.load(SeqCst) {
            owned.watch_releases();
            owned.cancel_all();
            if shared.is_over(&mut closing) && owned.is_empty() {
                return;
            }
        }
        thread::yield_now();
    }
}

fn wake(shared: &Shared) {
    let mut closing = None;
    while !shared.is_over(&mut closing) {
        let next = shared.wakers.lock().pop_front();
        let Some((number, waker)) = next else {
            thread::yield_now();
            continue;
        };
        if is_abandoned(number) {
            continue;
        }
        // Ordering: as in `poll`.
        shared.line(number).flag.store(true, Relaxed);
        match mixed(number, 3) % 3 {
            0 => waker.wake(),
            1 => waker.wake_by_ref(),
            _ => {
                let clone = waker.clone();
                drop(waker);
                clone.wake_by_ref();
                clone.wake();
            }
        }
    }
}

fn is_soon(mut holds: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        if holds() {
            return true;
        }
        if begun.elapsed() > LONG {
            return false;
        }
        thread::yield_now();
    }
}

#[test]
fn tasks_among_threads_end_once_each_and_no_wake_is_lost() {
    let all = tasks();
    for first in (0..all).step_by(ROUND) {
        round(first, ROUND.min(all - first));
    }
}

fn round(first: usize, tasks: usize) {
    let shared = Arc::new(Shared {
        first,
        queue: Mutex::default(),
        wakers: Mutex::default(),
        book: (0..tasks).map(|_| Line::default()).collect(),
        dropped: AtomicUsize::new(0),
        woken: AtomicUsize::new(0),
        closing: AtomicBool::new(false),
    });
    let mut joins: Vec<Joining> = thread::scope(|scope| {
        for _ in 0..RUNNERS {
            scope.spawn(|| run(&shared));
        }
        for _ in 0..WAKERS {
            scope.spawn(|| wake(&shared));
        }
        let spawners: Vec<_> = (0..SPAWNERS)
            .map(|first| {
                let shared = &shared;
                let numbers = shared.numbers().skip(first).step_by(SPAWNERS);
                scope.spawn(move || spawn(shared, numbers))
            })
            .collect();
        let joins: Vec<Joining> = spawners
            .into_iter()
            .flat_map(|s| s.join().unwrap())
            .collect();
        let abandoned = shared
            .numbers()
            .filter(|&number| is_abandoned(number))
            .count();
        let woken = is_soon(|| shared.woken.load(SeqCst) == tasks - abandoned);
        shared.closing.store(true, SeqCst);
        assert!(woken, "a wake was lost");
        // The lists cancel their tasks. If a task that ran in no list is never woken, only an abort
        // by its join handle ends it.
        joins.iter().for_each(|join| join.0.abort());
        joins
    });
    shared.wakers.lock().clear();
    for join in &mut joins {
        assert!(join.1.0.load(SeqCst), "a join was not woken");
        assert!(join.poll().is_ready());
    }
    drop(joins);
    assert!(shared.queue.lock().is_empty());
    for line in &shared.book {
        assert_eq!(line.futures.load(SeqCst), 1);
        let made = line.outputs_made.load(SeqCst);
        assert_eq!(line.outputs_dropped.load(SeqCst), made);
    }
}
