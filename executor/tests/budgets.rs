//! Tests of one resource, written with `coop-budget` alone, in three runtimes: this one, tokio, and
//! an executor of sixty lines.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use coop_budget::{Budget, OnExhausted, Scope, poll_proceed, remaining, scope, unconstrained};
use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    future::{Future, poll_fn},
    pin::Pin,
    rc::Rc,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker, ready},
};

/// A source that is always ready.
struct Source(u64);

impl Source {
    fn poll_take(&mut self, cx: &mut Context<'_>) -> Poll<u64> {
        let progress = ready!(poll_proceed(cx));
        self.0 += 1;
        progress.made_progress();
        Poll::Ready(self.0)
    }

    async fn take(&mut self) -> u64 {
        poll_fn(|cx| self.poll_take(cx)).await
    }
}

/// Takes items until `stop` is set, and returns how many it took.
async fn hog(stop: Arc<AtomicBool>) -> u64 {
    let mut source = Source(0);
    let mut last = 0;
    while !stop.load(SeqCst) {
        last = source.take().await;
    }
    last
}

/// Sets `stop` when this task is polled. On one worker the hog ends only if it lets this task run.
async fn probe(stop: Arc<AtomicBool>) {
    stop.store(true, SeqCst);
}

#[test]
fn tasks_cooperate_in_selvedge() {
    // Without a monitor no time slice ends a budget early.
    let builder = selvedge_executor::Builder::new().workers(1).monitor(false);
    let runtime = builder.build().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let taken = runtime.block_on({
        let stop = stop.clone();
        async move {
            let hog = selvedge_executor::spawn(hog(stop.clone()));
            selvedge_executor::spawn(probe(stop)).await.unwrap();
            hog.await.unwrap()
        }
    });
    // The hog has used up whole budgets. It waited for one more operation when `stop` was set, and
    // then made that operation, too.
    assert_eq!(taken % 128, 1, "{taken}");
}

#[test]
fn tasks_cooperate_inside_tokio_beside_its_budget() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    runtime.block_on(async move {
        let (send, mut receive) = tokio::sync::mpsc::unbounded_channel();
        let hog = tokio::spawn(scope(Budget::DEFAULT, hog(stop.clone())));
        let own = tokio::spawn(scope(Budget::new(10_000), async move {
            // Tokio has a separate budget of 128 operations: tokio's channel does not charge this
            // scope.
            let mut polls = 0;
            let mut received = 0;
            for _ in 0..1_000 {
                send.send(()).unwrap();
            }
            poll_fn(|cx| {
                polls += 1;
                while let Poll::Ready(Some(())) = receive.poll_recv(cx) {
                    received += 1;
                    if received == 1_000 {
                        return Poll::Ready(());
                    }
                }
                assert_eq!(coop_budget::remaining(), Some(10_000));
                Poll::Pending
            })
            .await;
            polls
        }));
        assert_eq!(own.await.unwrap(), 8, "1,000 items, 128 a poll");
        tokio::spawn(probe(stop)).await.unwrap();
        assert_eq!(hog.await.unwrap() % 128, 1);
    });
}

/// Returns how many operations a poll is granted, up to 1,000.
async fn granted(operation: impl Fn(&mut Context<'_>) -> Poll<()>) -> u32 {
    poll_fn(|cx| {
        let granted = (0..1_000).take_while(|_| operation(cx).is_ready()).count();
        Poll::Ready(granted as u32)
    })
    .await
}

fn tokios(cx: &mut Context<'_>) -> Poll<()> {
    tokio::task::coop::poll_proceed(cx).map(|progress| progress.made_progress())
}

fn ours(cx: &mut Context<'_>) -> Poll<()> {
    poll_proceed(cx).map(|progress| progress.made_progress())
}

/// Asserts what the README of `coop-budget` says of its own budget and tokio's.
#[test]
fn unconstrained_lifts_the_budget_of_its_own_crate_alone() {
    use tokio::task::{LocalSet, coop, spawn_local};
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(scope(Budget::new(10), async {
        assert_eq!(coop::unconstrained(granted(tokios)).await, 1_000);
        assert_eq!(coop::unconstrained(granted(ours)).await, 10);
        assert_eq!(remaining(), Some(0));
        assert_eq!(unconstrained(granted(ours)).await, 1_000);
        assert_eq!(unconstrained(granted(tokios)).await, 128);
        assert!(!coop::has_budget_remaining());
    }));
    runtime.block_on(async {
        let spawned = coop::unconstrained(async { tokio::spawn(granted(tokios)).await });
        assert_eq!(spawned.await.unwrap(), 128);
        let set = LocalSet::new();
        let inner = set.run_until(async { spawn_local(granted(tokios)).await });
        assert_eq!(coop::unconstrained(inner).await.unwrap(), 128);
        // Like tokio's, `coop_budget::unconstrained` does not lift the budget of a scope inside it.
        let inner = unconstrained(scope(Budget::new(10), granted(ours)));
        assert_eq!(inner.await, 10);
    });
}

/// Runs runtimes on a thread whose own scope has used up its budget. That budget is not renewed
/// while a runtime blocks the thread, so a runtime must poll in a scope with a new budget.
///
/// Fails if a `block_on`, or a worker's tick, polls in a scope nested in the thread's own.
#[test]
fn selvedge_inside_of_a_used_up_budget_grants_its_own() {
    let runtime = selvedge_executor::Builder::new()
        .workers(1)
        .build()
        .unwrap();
    Scope::new(Budget::new(0)).run(|| {
        assert_eq!(runtime.block_on(granted(ours)), 128);
        let task = Rc::new(Cell::new(None));
        let local = async {
            let task = task.clone();
            selvedge_executor::spawn_local(async move { task.set(Some(granted(ours).await)) });
            granted(ours).await
        };
        let local_runtime = selvedge_executor::LocalRuntime::new().unwrap();
        assert_eq!(local_runtime.block_on(local), 128);
        while task.get().is_none() {
            local_runtime.block_on(selvedge_executor::yield_now());
        }
        assert_eq!(task.get(), Some(128));
    });
    let (runtime, mut workers) = selvedge_executor::Builder::new()
        .build_driven([selvedge_executor::park::ThreadPark::new()]);
    let task = runtime.spawn(granted(ours));
    Scope::new(Budget::new(0)).run(|| {
        assert_eq!(workers[0].tick(), selvedge_executor::Tick::Ran);
        assert_eq!(remaining(), Some(0));
    });
    assert_eq!(runtime.block_on(task).unwrap(), 128);
    drop(runtime);
    workers.remove(0).run();
}

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// An executor of one thread: a queue of task numbers, and a list of deferred wakers.
#[derive(Default)]
struct Executor {
    tasks: RefCell<Vec<Option<Task>>>,
    ready: Arc<Mutex<VecDeque<usize>>>,
    deferred: RefCell<Vec<Waker>>,
    yields: AtomicU64,
}

struct TaskWaker(usize, Arc<Mutex<VecDeque<usize>>>);

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.1.lock().unwrap().push_back(self.0);
    }
}

impl OnExhausted for Executor {
    fn defer(&self, waker: &Waker) {
        self.deferred.borrow_mut().push(waker.clone());
    }

    fn forced_yield(&self, _: coop_budget::Exhausted) {
        self.yields.fetch_add(1, SeqCst);
    }
}

impl Executor {
    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.tasks.borrow_mut().push(Some(Box::pin(task)));
        self.ready
            .lock()
            .unwrap()
            .push_back(self.tasks.borrow().len() - 1);
    }

    fn run(&self) {
        loop {
            let Some(number) = self.ready.lock().unwrap().pop_front() else {
                return;
            };
            let Some(mut task) = self.tasks.borrow_mut()[number].take() else {
                continue;
            };
            let waker = Waker::from(Arc::new(TaskWaker(number, self.ready.clone())));
            let poll = || task.as_mut().poll(&mut Context::from_waker(&waker));
            if Scope::new(Budget::DEFAULT)
                .hook(self)
                .run(poll)
                .is_pending()
            {
                self.tasks.borrow_mut()[number] = Some(task);
            }
            self.deferred.take().into_iter().for_each(Waker::wake);
        }
    }
}

#[test]
fn tasks_cooperate_in_an_executor_of_sixty_lines() {
    let executor = Executor::default();
    let (stop, taken) = (Arc::new(AtomicBool::new(false)), Rc::new(RefCell::new(0)));
    executor.spawn({
        let (stop, taken) = (stop.clone(), taken.clone());
        async move { *taken.borrow_mut() = hog(stop).await }
    });
    executor.spawn(probe(stop));
    executor.run();
    assert_eq!((*taken.borrow(), executor.yields.load(SeqCst)), (129, 1));
}
