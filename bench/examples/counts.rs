//! Runs one hot path N times, so that `cargo xtask bench --counts` can count its instructions and
//! its system calls.
//!
//! `counts ROW N` runs the row `ROW`. `counts ROW N calls` also prints how many system calls the
//! row has made. Without arguments the program lists the rows; a peer's row has a colon in its
//! name. The rows of a runtime (`runtime-…` and `tokio: …`) run on one worker, while the main
//! thread sleeps. All other rows run on the main thread.
use coop_budget::{Budget, Scope};
use queue_global::{Boxed, Injector};
use queue_spmc::{deque, ring};
use std::{
    cell::{Cell, RefCell},
    future::{Future, poll_fn},
    hint::black_box,
    path::Path,
    pin::pin,
    process::ExitCode,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    task::{Context, Poll, Waker},
    time::Duration,
};
use syscalls::Counter;
use task_header::{Notified, Owned, Ran, Schedule, WakeKind};

#[path = "../src/syscalls.rs"]
mod syscalls;

/// Number of items in the queue after the push of each pair.
const DEPTH: u64 = 32;

type Row = (&'static str, fn(u64));

const ROWS: &[Row] = &[
    ("ring-pair", |n| ring_pairs(ring::Worker::new(512), n)),
    ("ring-pair-claiming", |n| {
        ring_pairs(ring::Worker::new(512).with_claim(16), n);
    }),
    ("ring-burst", |n| ring_bursts(ring::Worker::new(512), n)),
    ("ring-burst-claiming", |n| {
        ring_bursts(ring::Worker::new(512).with_claim(16), n);
    }),
    ("deque-pair", deque_pairs),
    ("st3: fifo-pair", st3_pairs),
    ("crossbeam: fifo-pair", |n| {
        crossbeam_pairs(&crossbeam_deque::Worker::new_fifo(), n);
    }),
    ("crossbeam: lifo-pair", |n| {
        crossbeam_pairs(&crossbeam_deque::Worker::new_lifo(), n);
    }),
    ("injector-pair", injector_pairs),
    ("poll-proceed", proceeds),
    ("task-complete", task_completes),
    ("task-join", task_joins),
    ("task-wake", task_wakes),
    ("task-yield", task_yields),
    ("waker-clone", task_clones),
    ("async-task: complete", async_task_completes),
    ("async-task: join", async_task_joins),
    ("async-task: wake", async_task_wakes),
    ("runtime-spawn", |n| run_on_ours(spawns::<Ours>(n))),
    ("runtime-spawn-join", |n| run_on_ours(joins::<Ours>(n))),
    ("runtime-yield", |n| run_on_ours(yields::<Ours>(n))),
    ("runtime-wake", |n| run_on_ours(pending_and_woken(n))),
    ("runtime-timeout", |n| run_on_ours(timeouts::<Ours>(n))),
    ("runtime-socket", |n| run_on_ours(round_trips::<Ours>(n))),
    ("runtime-sockets", |n| run_on_ours(conversations::<Ours>(n))),
    ("runtime-accept", |n| run_on_ours(accepts::<Ours>(n))),
    ("tokio: spawn", |n| run_on_tokio(spawns::<Tokio>(n))),
    ("tokio: spawn-join", |n| run_on_tokio(joins::<Tokio>(n))),
    ("tokio: yield", |n| run_on_tokio(yields::<Tokio>(n))),
    ("tokio: wake", |n| run_on_tokio(pending_and_woken(n))),
    ("tokio: timeout", |n| run_on_tokio(timeouts::<Tokio>(n))),
    ("tokio: socket", |n| run_on_tokio(round_trips::<Tokio>(n))),
    ("tokio: sockets", |n| {
        run_on_tokio(conversations::<Tokio>(n))
    }),
    ("tokio: accept", |n| run_on_tokio(accepts::<Tokio>(n))),
];

fn ring_pairs(mut worker: ring::Worker<u64>, n: u64) {
    worker.extend(1..DEPTH);
    for item in 0..n {
        // The ring has room, so the push does not fail.
        let _ = worker.push(black_box(item));
        black_box(worker.pop());
    }
}

fn ring_bursts(mut worker: ring::Worker<u64>, n: u64) {
    for _ in 0..n / 256 {
        (0..256).for_each(|item| {
            // The ring has room, so the push does not fail.
            let _ = worker.push(black_box(item));
        });
        (0..256).for_each(|_| {
            black_box(worker.pop());
        });
    }
}

fn deque_pairs(n: u64) {
    let mut worker = deque::Worker::with_capacity(512);
    worker.extend(1..DEPTH);
    for item in 0..n {
        worker.push(black_box(item));
        black_box(worker.pop());
    }
}

fn st3_pairs(n: u64) {
    let worker = st3::fifo::Worker::new(512);
    // The queue has room, so no push fails.
    for item in 1..DEPTH {
        let _ = worker.push(item);
    }
    for item in 0..n {
        let _ = worker.push(black_box(item));
        black_box(worker.pop());
    }
}

fn crossbeam_pairs(worker: &crossbeam_deque::Worker<u64>, n: u64) {
    (1..DEPTH).for_each(|item| worker.push(item));
    for item in 0..n {
        worker.push(black_box(item));
        black_box(worker.pop());
    }
}

fn injector_pairs(n: u64) {
    let queue = Injector::<Boxed<u64>>::new();
    let mut item = Some(Box::new(Boxed::new(7)));
    for _ in 0..n {
        assert!(queue.push(item.take().expect("it came back")).is_ok());
        item = black_box(&queue).pop();
    }
}

fn proceeds(n: u64) {
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..n / 100 {
        Scope::new(Budget::DEFAULT).run(|| {
            for _ in 0..100 {
                match coop_budget::poll_proceed(black_box(&mut cx)) {
                    Poll::Ready(progress) => progress.made_progress(),
                    Poll::Pending => unreachable!("there are 128"),
                }
            }
        });
    }
}

/// A scheduler with a queue for one task.
struct Local;

thread_local!(static WOKEN: Cell<Option<Notified<Local>>> = const { Cell::new(None) });

impl Schedule for Local {
    fn schedule(task: Notified<Self>, _: WakeKind) {
        WOKEN.set(Some(task));
    }
}

fn task_completes(n: u64) {
    for i in 0..n {
        let task = task_header::new_detached(
            async move {
                black_box(i);
            },
            Local,
        );
        assert!(matches!(task.run(), Ran::Complete));
    }
}

fn task_joins(n: u64) {
    let mut cx = Context::from_waker(Waker::noop());
    for i in 0..n {
        let (task, join) = task_header::new(async move { black_box(i) }, Local);
        assert!(matches!(task.run(), Ran::Complete));
        assert!(pin!(join).poll(&mut cx).is_ready());
    }
}

thread_local!(static WAKER: RefCell<Option<Waker>> = const { RefCell::new(None) });

/// Returns a future that is pending in its first `n` polls, and ready in the next. The first poll
/// stores the future's waker in `WAKER`.
fn pending(mut n: u64) -> impl Future<Output = ()> + Send {
    let mut has_stored = false;
    poll_fn(move |cx| {
        if !has_stored {
            has_stored = true;
            WAKER.set(Some(cx.waker().clone()));
        }
        if n == 0 {
            return Poll::Ready(());
        }
        n -= 1;
        Poll::Pending
    })
}

fn waker() -> Waker {
    WAKER.take().expect("the first poll left it")
}

fn task_wakes(n: u64) {
    let mut owned = Owned::new(Waker::noop().clone());
    // Each poll but the last is pending, so its result says nothing.
    let _ = owned.run(task_header::new_detached(pending(n), Local));
    let waker = waker();
    for _ in 0..n {
        black_box(&waker).wake_by_ref();
        let _ = owned.run(WOKEN.take().expect("it was woken"));
    }
}

fn task_clones(n: u64) {
    // Both runs end as the future says, so their results say nothing.
    let _ = task_header::new_detached(pending(1), Local).run();
    let waker = waker();
    for _ in 0..n {
        drop(black_box(black_box(&waker).clone()));
    }
    waker.wake();
    let _ = WOKEN.take().expect("it was woken").run();
}

/// Returns a future that wakes itself in each of its first `n` polls, and is ready in the next.
fn pending_and_woken(mut n: u64) -> impl Future<Output = ()> + Send {
    poll_fn(move |cx| {
        if n == 0 {
            return Poll::Ready(());
        }
        n -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}

fn task_yields(n: u64) {
    let mut owned = Owned::new(Waker::noop().clone());
    let mut task = task_header::new_detached(pending_and_woken(n), Local);
    while let Ran::Notified(again) = owned.run(task) {
        task = again;
    }
}

thread_local!(static RUNNABLE: Cell<Option<async_task::Runnable>> = const { Cell::new(None) });

fn async_task<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> (async_task::Runnable, async_task::Task<T>) {
    async_task::spawn(future, |task| RUNNABLE.set(Some(task)))
}

fn async_task_completes(n: u64) {
    for i in 0..n {
        let (runnable, task) = async_task(async move {
            black_box(i);
        });
        task.detach();
        runnable.run();
    }
}

fn async_task_joins(n: u64) {
    let mut cx = Context::from_waker(Waker::noop());
    for i in 0..n {
        let (runnable, task) = async_task(async move { black_box(i) });
        runnable.run();
        assert!(pin!(task).poll(&mut cx).is_ready());
    }
}

fn async_task_wakes(n: u64) {
    let (runnable, task) = async_task(pending(n));
    task.detach();
    runnable.run();
    let waker = waker();
    for _ in 0..n {
        black_box(&waker).wake_by_ref();
        RUNNABLE.take().expect("it was woken").run();
    }
}

/// The functions of a runtime that its tasks call.
trait TaskFunctions {
    fn spawn<T: Send + 'static>(
        future: impl Future<Output = T> + Send + 'static,
    ) -> impl Future + Send;
    fn yield_now() -> impl Future<Output = ()> + Send;
    /// Waits for a yield, for at most an hour.
    fn timeout() -> impl Future<Output = ()> + Send;

    type Datagram: Send + 'static;
    fn datagrams() -> (Self::Datagram, Self::Datagram);
    fn send(socket: &Self::Datagram) -> impl Future<Output = ()> + Send;
    fn receive(socket: &Self::Datagram) -> impl Future<Output = ()> + Send;

    type Listener: Send + 'static;
    fn listen(path: &Path) -> Self::Listener;
    fn accept(listener: &Self::Listener) -> impl Future<Output = ()> + Send;
    fn connect(path: &Path) -> impl Future<Output = ()> + Send;
}

/// Implements what both runtimes spell alike, for the runtime whose modules are at `$path`.
macro_rules! sockets_and_timers {
    ($($path:ident)::+) => {
        async fn timeout() {
            let hour = Duration::from_secs(3600);
            let yielded = $($path)::+::time::timeout(hour, Self::yield_now()).await;
            yielded.expect("an hour is long");
        }

        type Datagram = $($path)::+::net::UnixDatagram;
        fn datagrams() -> (Self::Datagram, Self::Datagram) {
            Self::Datagram::pair().expect("it opens")
        }
        async fn send(socket: &Self::Datagram) {
            assert_eq!(socket.send(&[7]).await.expect("it has room"), 1);
        }
        async fn receive(socket: &Self::Datagram) {
            let received = socket.recv(&mut [0]).await;
            assert_eq!(received.expect("the other end is open"), 1);
        }

        type Listener = $($path)::+::net::UnixListener;
        fn listen(path: &Path) -> Self::Listener {
            Self::Listener::bind(path).expect("the path is free")
        }
        async fn accept(listener: &Self::Listener) {
            drop(listener.accept().await.expect("it listens"));
        }
        async fn connect(path: &Path) {
            let stream = $($path)::+::net::UnixStream::connect(path).await;
            drop(stream.expect("somebody listens"));
        }
    };
}

struct Ours;

impl TaskFunctions for Ours {
    fn spawn<T: Send + 'static>(
        future: impl Future<Output = T> + Send + 'static,
    ) -> impl Future + Send {
        selvedge::spawn(future)
    }
    fn yield_now() -> impl Future<Output = ()> + Send {
        selvedge::yield_now()
    }
    sockets_and_timers!(selvedge);
}

struct Tokio;

impl TaskFunctions for Tokio {
    fn spawn<T: Send + 'static>(
        future: impl Future<Output = T> + Send + 'static,
    ) -> impl Future + Send {
        tokio::spawn(future)
    }
    fn yield_now() -> impl Future<Output = ()> + Send {
        tokio::task::yield_now()
    }
    sockets_and_timers!(tokio);
}

fn run_on_ours(root: impl Future<Output = ()> + Send + 'static) {
    // The interval is fixed. Under callgrind each poll takes so long that, by default, the worker
    // would look at the injector after each poll.
    let builder = selvedge::Builder::new().workers(1).global_interval(61);
    let runtime = builder.build();
    let runtime = runtime.expect("it starts");
    futures_lite::future::block_on(runtime.spawn(root)).expect("it doesn't panic");
}

fn run_on_tokio(root: impl Future<Output = ()> + Send + 'static) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    let runtime = runtime.expect("it starts");
    futures_lite::future::block_on(runtime.spawn(root)).expect("it doesn't panic");
}

/// Spawns tasks in batches of 128, and drops their handles. After each batch it yields until all
/// tasks so far have run.
async fn spawns<R: TaskFunctions>(n: u64) {
    static RAN: AtomicU64 = AtomicU64::new(0);
    for batch in 1..=n / 128 {
        for _ in 0..128 {
            drop(R::spawn(async {
                // Ordering: Relaxed. Only the number matters.
                RAN.fetch_add(1, Relaxed);
            }));
        }
        // Ordering: Relaxed, as above.
        while RAN.load(Relaxed) < batch * 128 {
            R::yield_now().await;
        }
    }
}

async fn joins<R: TaskFunctions>(n: u64) {
    for i in 0..n {
        R::spawn(async move { black_box(i) }).await;
    }
}

/// Runs 32 tasks that yield in turn.
async fn yields<R: TaskFunctions>(n: u64) {
    let spawn = |_| {
        R::spawn(async move {
            for _ in 0..n / 32 {
                R::yield_now().await;
            }
        })
    };
    let tasks: Vec<_> = (0..32).map(spawn).collect();
    for task in tasks {
        task.await;
    }
}

async fn timeouts<R: TaskFunctions>(n: u64) {
    for _ in 0..n {
        R::timeout().await;
    }
}

/// Sends a byte to another task and waits for its answer, N times.
async fn round_trips<R: TaskFunctions>(n: u64) {
    let (ours, theirs) = R::datagrams();
    let echo = R::spawn(async move {
        for _ in 0..n {
            R::receive(&theirs).await;
            R::send(&theirs).await;
        }
    });
    for _ in 0..n {
        R::send(&ours).await;
        R::receive(&ours).await;
    }
    echo.await;
}

/// Makes N round trips, on 32 pairs of sockets at a time.
async fn conversations<R: TaskFunctions + 'static>(n: u64) {
    let conversations: Vec<_> = (0..32)
        .map(|_| R::spawn(round_trips::<R>(n / 32)))
        .collect();
    for conversation in conversations {
        conversation.await;
    }
}

/// Opens, accepts and closes N connections.
async fn accepts<R: TaskFunctions>(n: u64) {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let path = folder.path().join("socket");
    let listener = R::listen(&path);
    for _ in 0..n {
        R::connect(&path).await;
        R::accept(&listener).await;
    }
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(name) = arguments.next() else {
        ROWS.iter().for_each(|(name, _)| println!("{name}"));
        return ExitCode::SUCCESS;
    };
    let row = ROWS.iter().find(|(row, _)| *row == name);
    let n = arguments.next().and_then(|n| n.parse().ok());
    let calls = arguments.next();
    let (Some((_, run)), Some(n), None | Some("calls")) = (row, n, calls.as_deref()) else {
        eprintln!("usage: counts [ROW N [calls]]");
        return ExitCode::from(2);
    };
    if calls.is_none() {
        run(n);
        return ExitCode::SUCCESS;
    }
    // The counter also counts the threads that this thread starts.
    // SAFETY: the call only returns a number.
    let counter = Counter::start([unsafe { libc::gettid() }].into_iter());
    let counter = match counter {
        Ok(counter) => counter,
        Err(obstacle) => {
            eprintln!("{obstacle}");
            return ExitCode::from(3);
        }
    };
    run(n);
    println!("{}", counter.total().expect("the counter is open"));
    ExitCode::SUCCESS
}
