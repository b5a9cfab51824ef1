//! Task cells and their peers: nanoseconds per operation, and bytes per idle task.
//! `cargo bench -p bench --bench task`.
//!
//! All rows run on one thread. Except for tokio, the queue holds one task, so that a row measures
//! the cell alone. A second thread sleeps meanwhile, because the C library avoids some atomic
//! operations in a process that has one thread.
//!
//! - *complete*: spawn without a join handle, run to completion.
//! - *join*: spawn, run to completion, take the output from the handle.
//! - *await*: like *join*, but the handle is also polled before the run.
//! - *wake*: wake by reference, run to `Pending`.
//! - *wake by value*: clone the waker and consume the clone by a wake, run to `Pending`.
//! - *yield*: run a future that wakes itself and returns `Pending`.
//! - *redundant*: wake by reference while the task is queued already.
//! - *clone*: clone a waker and drop the clone.
//!
//! In a round, each peer runs the row once. The next round begins with another peer. `ROUNDS` sets
//! the number of rounds. A figure is the median of the rounds. A ratio to async-task is the median
//! of the rounds' ratios.
//!
//! `ours` runs tasks without a list; `ours, listed` keeps waiting tasks in an `Owned` list, as an
//! executor with a shutdown does. `ArcWake` (futures) and `Wake` (std) use the cell that the
//! documentation of these traits shows: an `Arc` of a boxed future under a mutex, and a flag that
//! keeps a queued task from being queued again. tokio's current-thread runtime has its own queue.
//! Its rows spawn 128 tasks, then wait for them.
use std::{
    cell::Cell,
    env,
    future::{Future, poll_fn},
    hint::black_box,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::AcqRel},
        mpsc,
    },
    task::{Context, Poll, Wake, Waker},
    thread,
    time::{Duration, Instant},
};
use task_header::{JoinHandle, Notified, Owned, Ran, Schedule, WakeKind};

/// A kind of cell, and the queue of its tasks.
trait Cells {
    /// A queued task.
    type Task;
    /// The join handle of a task whose output is a number.
    type Join: Future + Unpin;

    fn new() -> Self;
    fn detached(&mut self, future: impl Future<Output = ()> + Send + 'static) -> Self::Task;
    fn joined(
        &mut self,
        future: impl Future<Output = u64> + Send + 'static,
    ) -> (Self::Task, Self::Join);
    fn run(&mut self, task: Self::Task);
    /// Takes the task that was woken.
    fn next(&mut self) -> Option<Self::Task>;
}

/// Declares a thread-local queue for one task.
macro_rules! queue {
    ($queue:ident, $task:ty) => {
        thread_local!(static $queue: Cell<Option<$task>> = const { Cell::new(None) });
    };
}

struct Ours<const LISTED: bool>(Owned<Local>);

struct Local;

queue!(OURS, Notified<Local>);

impl Schedule for Local {
    #[inline]
    fn schedule(task: Notified<Self>, _: WakeKind) {
        OURS.set(Some(task));
    }
}

impl<const LISTED: bool> Cells for Ours<LISTED> {
    type Task = Notified<Local>;
    type Join = JoinHandle<u64>;

    fn new() -> Self {
        Self(Owned::new(Waker::noop().clone()))
    }
    fn detached(&mut self, future: impl Future<Output = ()> + Send + 'static) -> Self::Task {
        task_header::new_detached(future, Local)
    }
    fn joined(
        &mut self,
        future: impl Future<Output = u64> + Send + 'static,
    ) -> (Self::Task, Self::Join) {
        task_header::new(future, Local)
    }
    fn run(&mut self, task: Self::Task) {
        let ran = if LISTED { self.0.run(task) } else { task.run() };
        if let Ran::Notified(again) = ran {
            OURS.set(Some(again));
        }
    }
    fn next(&mut self) -> Option<Self::Task> {
        OURS.take()
    }
}

struct AsyncTask;

queue!(ASYNC_TASK, async_task::Runnable);

impl Cells for AsyncTask {
    type Task = async_task::Runnable;
    type Join = async_task::Task<u64>;

    fn new() -> Self {
        Self
    }
    fn detached(&mut self, future: impl Future<Output = ()> + Send + 'static) -> Self::Task {
        let (runnable, task) = async_task::spawn(future, |task| ASYNC_TASK.set(Some(task)));
        task.detach();
        runnable
    }
    fn joined(
        &mut self,
        future: impl Future<Output = u64> + Send + 'static,
    ) -> (Self::Task, Self::Join) {
        async_task::spawn(future, |task| ASYNC_TASK.set(Some(task)))
    }
    fn run(&mut self, task: Self::Task) {
        task.run();
    }
    fn next(&mut self) -> Option<Self::Task> {
        ASYNC_TASK.take()
    }
}

/// The cell that the documentation of `ArcWake` and of `Wake` shows.
struct Textbook {
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    queued: AtomicBool,
}

queue!(TEXTBOOK, Arc<Textbook>);

impl Textbook {
    fn new(future: impl Future<Output = ()> + Send + 'static) -> Arc<Self> {
        Arc::new(Self {
            future: Mutex::new(Some(Box::pin(future))),
            queued: AtomicBool::new(true),
        })
    }
    fn queue(this: &Arc<Self>) {
        // Ordering: AcqRel pairs with the swap in `poll`. If a wake finds the task queued, the next
        // poll sees what happened before that wake.
        if !this.queued.swap(true, AcqRel) {
            TEXTBOOK.set(Some(this.clone()));
        }
    }
    fn poll(&self, waker: &Waker) {
        // Ordering: AcqRel pairs with the swap in `queue`.
        self.queued.swap(false, AcqRel);
        let mut slot = self.future.lock().unwrap();
        if let Some(future) = &mut *slot
            && future
                .as_mut()
                .poll(&mut Context::from_waker(waker))
                .is_ready()
        {
            *slot = None;
        }
    }
}

impl Wake for Textbook {
    fn wake(self: Arc<Self>) {
        Self::queue(&self);
    }
    fn wake_by_ref(self: &Arc<Self>) {
        Self::queue(self);
    }
}

impl futures::task::ArcWake for Textbook {
    fn wake_by_ref(this: &Arc<Self>) {
        Self::queue(this);
    }
}

/// Cells that use `ArcWake` if `LENT`, and `Wake` otherwise. `ArcWake` lends the poll a waker
/// without a count, and `Wake` gives it a counted waker.
struct Arcs<const LENT: bool>;

impl<const LENT: bool> Cells for Arcs<LENT> {
    type Task = Arc<Textbook>;
    type Join = futures::future::RemoteHandle<u64>;

    fn new() -> Self {
        Self
    }
    fn detached(&mut self, future: impl Future<Output = ()> + Send + 'static) -> Self::Task {
        Textbook::new(future)
    }
    fn joined(
        &mut self,
        future: impl Future<Output = u64> + Send + 'static,
    ) -> (Self::Task, Self::Join) {
        let (future, handle) = futures::FutureExt::remote_handle(future);
        (Textbook::new(future), handle)
    }
    fn run(&mut self, task: Self::Task) {
        if LENT {
            task.poll(&futures::task::waker_ref(&task));
        } else {
            task.poll(&Waker::from(task.clone()));
        }
    }
    fn next(&mut self) -> Option<Self::Task> {
        TEXTBOOK.take()
    }
}

/// Measures the time of `n` operations of a row.
type Row = fn(n: u64) -> Duration;

fn complete<C: Cells>(n: u64) -> Duration {
    let mut cells = C::new();
    let begun = Instant::now();
    for i in 0..n {
        let task = cells.detached(async move {
            black_box(i);
        });
        cells.run(task);
    }
    begun.elapsed()
}

fn join<C: Cells>(n: u64) -> Duration {
    let mut cells = C::new();
    let mut cx = Context::from_waker(Waker::noop());
    let begun = Instant::now();
    for i in 0..n {
        let (task, mut join) = cells.joined(async move { black_box(i) });
        cells.run(task);
        assert!(black_box(Pin::new(&mut join).poll(&mut cx)).is_ready());
    }
    begun.elapsed()
}

fn awaits<C: Cells>(n: u64) -> Duration {
    let mut cells = C::new();
    let mut cx = Context::from_waker(Waker::noop());
    let begun = Instant::now();
    for i in 0..n {
        let (task, mut join) = cells.joined(async move { black_box(i) });
        assert!(Pin::new(&mut join).poll(&mut cx).is_pending());
        cells.run(task);
        assert!(black_box(Pin::new(&mut join).poll(&mut cx)).is_ready());
    }
    begun.elapsed()
}

/// Runs a task once and returns its waker. The task completes after `polls` more polls.
fn waiting<C: Cells>(cells: &mut C, polls: u64) -> Waker {
    let (sender, receiver) = mpsc::channel();
    let (mut sender, mut left) = (Some(sender), polls);
    let task = cells.detached(poll_fn(move |cx| {
        if let Some(sender) = sender.take() {
            sender.send(cx.waker().clone()).expect("the receiver waits");
            return Poll::Pending;
        }
        left -= 1;
        if left == 0 {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }));
    cells.run(task);
    receiver.recv().expect("the first run sends it")
}

fn wakes<C: Cells>(n: u64, wake: impl Fn(&Waker)) -> Duration {
    let mut cells = C::new();
    let waker = waiting(&mut cells, n);
    let begun = Instant::now();
    for _ in 0..n {
        wake(black_box(&waker));
        let task = cells.next().expect("it was woken");
        cells.run(task);
    }
    begun.elapsed()
}

fn wake<C: Cells>(n: u64) -> Duration {
    wakes::<C>(n, Waker::wake_by_ref)
}

#[expect(clippy::waker_clone_wake, reason = "by value is the row")]
fn wake_by_value<C: Cells>(n: u64) -> Duration {
    wakes::<C>(n, |waker| waker.clone().wake())
}

fn redundant<C: Cells>(n: u64) -> Duration {
    let mut cells = C::new();
    let waker = waiting(&mut cells, 1);
    waker.wake_by_ref();
    let begun = Instant::now();
    for _ in 0..n {
        black_box(&waker).wake_by_ref();
    }
    let took = begun.elapsed();
    let task = cells.next().expect("it was woken");
    cells.run(task);
    took
}

fn clone<C: Cells>(n: u64) -> Duration {
    let mut cells = C::new();
    let waker = waiting(&mut cells, 1);
    let begun = Instant::now();
    for _ in 0..n {
        drop(black_box(black_box(&waker).clone()));
    }
    let took = begun.elapsed();
    waker.wake();
    let task = cells.next().expect("it was woken");
    cells.run(task);
    took
}

fn yields<C: Cells>(n: u64) -> Duration {
    let mut cells = C::new();
    let mut left = n;
    let task = cells.detached(poll_fn(move |cx| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    }));
    let begun = Instant::now();
    cells.run(task);
    while let Some(task) = cells.next() {
        cells.run(task);
    }
    begun.elapsed()
}

/// Number of tasks that tokio's rows run per wait. A wait for a single task would cost more than
/// the task.
const BATCH: u64 = 128;

fn tokio() -> tokio::runtime::Runtime {
    let builder = &mut tokio::runtime::Builder::new_current_thread();
    builder.build().expect("a runtime without drivers builds")
}

fn tokio_complete(n: u64) -> Duration {
    tokio().block_on(async {
        let begun = Instant::now();
        for _ in 0..n / BATCH {
            for i in 1..BATCH {
                drop(tokio::spawn(async move {
                    black_box(i);
                }));
            }
            // tokio's queue is first in, first out. So all tasks of the batch run before this one.
            tokio::spawn(async {}).await.expect("it doesn't panic");
        }
        begun.elapsed()
    })
}

fn tokio_join(n: u64) -> Duration {
    tokio().block_on(async {
        let begun = Instant::now();
        let mut joins = Vec::with_capacity(BATCH as usize);
        for _ in 0..n / BATCH {
            joins.extend((0..BATCH).map(|i| tokio::spawn(async move { black_box(i) })));
            for join in joins.drain(..) {
                black_box(join.await.expect("it doesn't panic"));
            }
        }
        begun.elapsed()
    })
}

const ROWS: [&str; 8] = [
    "complete",
    "join",
    "await",
    "wake",
    "wake by value",
    "yield",
    "redundant",
    "clone",
];

struct Peer {
    name: &'static str,
    rows: [Option<Row>; ROWS.len()],
    bytes: [fn() -> Option<u64>; FUTURES.len()],
}

const fn peer<C: Cells + 'static>(name: &'static str) -> Peer {
    Peer {
        name,
        rows: [
            Some(complete::<C>),
            Some(join::<C>),
            Some(awaits::<C>),
            Some(wake::<C>),
            Some(wake_by_value::<C>),
            Some(yields::<C>),
            Some(redundant::<C>),
            Some(clone::<C>),
        ],
        bytes: [bytes::<C, 0>, bytes::<C, 4>, bytes::<C, 16>],
    }
}

/// Index of async-task in [`PEERS`]: a ratio is a peer's figure divided by that of async-task.
const YARDSTICK: usize = 2;

const PEERS: [Peer; 6] = [
    peer::<Ours<false>>("ours"),
    peer::<Ours<true>>("ours, listed"),
    peer::<AsyncTask>("async-task"),
    peer::<Arcs<true>>("ArcWake"),
    peer::<Arcs<false>>("Wake"),
    Peer {
        name: "tokio, 128",
        rows: [
            Some(tokio_complete),
            Some(tokio_join),
            None,
            None,
            None,
            None,
            None,
            None,
        ],
        bytes: [tokio_bytes::<0>, tokio_bytes::<4>, tokio_bytes::<16>],
    },
];

/// Sizes of the waiting futures in bytes.
const FUTURES: [usize; 3] = [0, 32, 128];

/// A future that waits forever.
struct Idle<const WORDS: usize>([u64; WORDS]);

impl<const WORDS: usize> Future for Idle<WORDS> {
    type Output = u64;
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u64> {
        black_box(&self.0);
        Poll::Pending
    }
}

const IDLE: u64 = 10_000;

/// Measures the heap bytes of a task that was polled once, by the allocator's own count. The count
/// includes the allocator's overhead for each block.
fn bytes<C: Cells, const WORDS: usize>() -> Option<u64> {
    let mut cells = C::new();
    let mut joins = Vec::with_capacity(IDLE as usize);
    let before = in_use()?;
    for _ in 0..IDLE {
        let (task, join) = cells.joined(Idle([7; WORDS]));
        cells.run(task);
        joins.push(join);
    }
    let each = (in_use()? - before) / IDLE;
    // The tasks wait forever, and the process is about to end: dropping them would only take time.
    std::mem::forget((cells, joins));
    Some(each)
}

fn tokio_bytes<const WORDS: usize>() -> Option<u64> {
    tokio().block_on(async {
        // These tasks make tokio's queue grow before the measurement.
        for _ in 0..IDLE {
            drop(tokio::spawn(async {}));
        }
        tokio::spawn(async {}).await.expect("it doesn't panic");
        let before = in_use()?;
        for _ in 0..IDLE {
            drop(tokio::spawn(Idle([7; WORDS])));
        }
        tokio::spawn(async {}).await.expect("it doesn't panic");
        Some((in_use()? - before) / IDLE)
    })
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn in_use() -> Option<u64> {
    // SAFETY: `mallinfo2` has no preconditions.
    let info = unsafe { libc::mallinfo2() };
    Some((info.uordblks + info.hblkhd) as u64)
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn in_use() -> Option<u64> {
    None
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn print(what: &str, cells: impl Iterator<Item = Option<String>>) {
    print!("{what:<24}");
    cells.for_each(|cell| print!("{:>14}", cell.as_deref().unwrap_or("-")));
    println!();
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let only = arguments.iter().find(|argument| !argument.starts_with('-'));
    // Without `--bench` one short round only tests that all rows run.
    let measured = arguments.iter().any(|argument| argument == "--bench");
    let rounds = env::var("ROUNDS").map_or(15, |n| n.parse().expect("ROUNDS is a number"));
    let (rounds, n) = if measured {
        (rounds, 100 * 1_024)
    } else {
        (1, BATCH)
    };
    thread::spawn(thread::park);

    print(
        "nanoseconds",
        PEERS.iter().map(|peer| Some(peer.name.into())),
    );
    for (index, name) in ROWS.iter().enumerate() {
        if only.is_some_and(|only| only != name) {
            continue;
        }
        let mut samples = [const { Vec::new() }; PEERS.len()];
        for round in 0..rounds {
            for turn in 0..PEERS.len() {
                let peer = (turn + round) % PEERS.len();
                if let Some(row) = PEERS[peer].rows[index] {
                    samples[peer].push(row(n).as_secs_f64() * 1e9 / n as f64);
                }
            }
        }
        let of = |peer: &Vec<f64>| (!peer.is_empty()).then(|| median(peer.clone()));
        print(
            name,
            samples.iter().map(|peer| Some(format!("{:.1}", of(peer)?))),
        );
        let ratio = |peer: &Vec<f64>| {
            let pairs = peer.iter().zip(&samples[YARDSTICK]);
            of(&pairs.map(|(this, that)| this / that).collect())
        };
        print(
            &format!("  x {}", PEERS[YARDSTICK].name),
            samples
                .iter()
                .map(|peer| Some(format!("{:.2}", ratio(peer)?))),
        );
    }
    if only.is_none() {
        println!();
        for (index, future) in FUTURES.iter().enumerate() {
            let bytes = |peer: &Peer| Some(peer.bytes[index]()?.to_string());
            print(
                &format!("bytes, future of {future}"),
                PEERS.iter().map(bytes),
            );
        }
    }
}
