//! The injector beside other shared queues. `cargo bench -p bench --bench injector`.
//!
//! - *alone*: a push and a pop by one thread. Nanoseconds a pair, by criterion.
//! - *batch*: the push of a batch into our injector. The batch is a list that was linked before the
//!   measurement. The injector is empty, or it holds items that were pushed one by one. After each
//!   push all items are popped, which is not timed. Nanoseconds a batch, by criterion.
//! - *both*: two threads, each of which pushes one item and pops one, again and again. Nanoseconds
//!   a pair.
//! - *p to c*: p threads push and c threads pop, as fast as they can, until all items are through.
//!   Nanoseconds an item. *by 128* moves 128 items at a time, if the queue has batches. A thread
//!   that finds no item, or no room, spins and sometimes yields its CPU.
//!
//! *both* and *p to c* are the *contended* rows: `-- contended` runs only them, and
//! `-- contended NAME` only those whose names contain `NAME`. In a round each queue takes the row
//! once, with a million items. The order of the queues rotates. `ROUNDS` sets the number of rounds.
//!
//! A cache line's round trip between the two processors is measured before and after each round.
//! The table gives two medians: one of the rounds in which both round trips were short, and one of
//! the rounds in which both were long. The figures double when the round trip is long. Rounds with
//! one short and one long round trip are left out.
//!
//! Our injector's items are boxed nodes, which are allocated before the measurement. So its pushes
//! allocate nothing in the loop.
use criterion::{BenchmarkId, Criterion};
use queue_global::{Boxed, Injector, List};
use std::{
    collections::VecDeque,
    hint::{black_box, spin_loop},
    sync::{Barrier, Mutex},
    thread,
    time::{Duration, Instant},
};

#[allow(dead_code, unused_imports, reason = "only the processors are used")]
#[path = "../src/noise.rs"]
mod noise;

/// A queue for many producers and consumers.
trait Shared: Send + Sync {
    type Item: Send;
    fn new() -> Self;
    fn item() -> Self::Item;
    /// Pushes the item. If the queue is full, returns the item as the error.
    fn push(&self, item: Self::Item) -> Result<(), Self::Item>;
    fn pop(&self) -> Option<Self::Item>;

    /// Pushes all items.
    fn push_all(&self, items: impl ExactSizeIterator<Item = Self::Item>) {
        for item in items {
            self.push_patiently(item);
        }
    }

    /// Pops up to `n` items, and appends them to `got`.
    fn pop_some(&self, n: usize, got: &mut Vec<Self::Item>) {
        got.extend((0..n).map_while(|_| self.pop()));
    }

    #[inline(always)]
    fn push_patiently(&self, mut item: Self::Item) {
        let mut patience = Patience(0);
        while let Err(back) = self.push(item) {
            item = back;
            patience.wait();
        }
    }
}

impl Shared for Injector<Boxed<u64>> {
    type Item = Box<Boxed<u64>>;
    fn new() -> Self {
        Self::new()
    }
    fn item() -> Self::Item {
        Box::new(Boxed::new(7))
    }
    #[inline(always)]
    fn push(&self, item: Self::Item) -> Result<(), Self::Item> {
        Injector::push(self, item).map_err(|closed| closed.0)
    }
    #[inline(always)]
    fn pop(&self) -> Option<Self::Item> {
        Injector::pop(self)
    }
    fn push_all(&self, items: impl ExactSizeIterator<Item = Self::Item>) {
        assert!(self.push_batch(items.collect()).is_ok());
    }
    fn pop_some(&self, n: usize, got: &mut Vec<Self::Item>) {
        got.extend(self.pop_n(n));
    }
}

/// A list under a lock: the injector's design before it had a lock-free stack.
struct Locked(parking_lot::Mutex<List<Boxed<u64>>>);

impl Shared for Locked {
    type Item = Box<Boxed<u64>>;
    fn new() -> Self {
        Self(parking_lot::Mutex::new(List::new()))
    }
    fn item() -> Self::Item {
        Box::new(Boxed::new(7))
    }
    #[inline(always)]
    fn push(&self, item: Self::Item) -> Result<(), Self::Item> {
        self.0.lock().push_back(item);
        Ok(())
    }
    #[inline(always)]
    fn pop(&self) -> Option<Self::Item> {
        self.0.lock().pop_front()
    }
    fn push_all(&self, items: impl ExactSizeIterator<Item = Self::Item>) {
        let mut list = items.collect();
        self.0.lock().append(&mut list);
    }
    fn pop_some(&self, n: usize, got: &mut Vec<Self::Item>) {
        let list = self.0.lock().split_off_front(n);
        got.extend(list);
    }
}

/// Implements [`Shared`] for queues of plain numbers. Each entry says how to make the queue, how to
/// push and how to pop, and may replace provided functions.
macro_rules! implement_for_queues_of_numbers {
    ($(
        $queue:ty:
            $new:expr, |$push:ident, $item:ident| $pushed:expr, |$pop:ident| $popped:expr
            $(, { $($more:tt)* })?;
    )*) => {$(
        impl Shared for $queue {
            type Item = u64;
            fn new() -> Self {
                $new
            }
            fn item() -> u64 {
                7
            }
            #[inline(always)]
            fn push(&self, $item: u64) -> Result<(), u64> {
                let $push = self;
                $pushed
            }
            #[inline(always)]
            fn pop(&self) -> Option<u64> {
                let $pop = self;
                $popped
            }
            $($($more)*)?
        }
    )*};
}

implement_for_queues_of_numbers! {
    crossbeam_queue::ArrayQueue<u64>: Self::new(1024), |q, item| q.push(item), |q| q.pop();
    crossbeam_queue::SegQueue<u64>: Self::new(), |q, item| { q.push(item); Ok(()) }, |q| q.pop();
    concurrent_queue::ConcurrentQueue<u64>:
        Self::bounded(1024), |q, item| q.push(item).map_err(|e| e.into_inner()), |q| q.pop().ok();
    crossbeam_deque::Injector<u64>: Self::new(), |q, item| { q.push(item); Ok(()) }, |q| loop {
        match q.steal() {
            crossbeam_deque::Steal::Success(item) => break Some(item),
            crossbeam_deque::Steal::Empty => break None,
            crossbeam_deque::Steal::Retry => {}
        }
    }, {
        fn pop_some(&self, n: usize, got: &mut Vec<u64>) {
            thread_local! {
                static STOLEN: crossbeam_deque::Worker<u64> = crossbeam_deque::Worker::new_fifo();
            }
            STOLEN.with(|stolen| {
                let first = self.steal_batch_with_limit_and_pop(stolen, n);
                got.extend(first.success());
                got.extend(std::iter::from_fn(|| stolen.pop()));
            });
        }
    };
    Mutex<VecDeque<u64>>:
        Self::new(VecDeque::new()),
        |q, item| { q.lock().unwrap().push_back(item); Ok(()) },
        |q| q.lock().unwrap().pop_front(),
    {
        fn push_all(&self, items: impl ExactSizeIterator<Item = u64>) {
            self.lock().unwrap().extend(items);
        }
        fn pop_some(&self, n: usize, got: &mut Vec<u64>) {
            let mut queue = self.lock().unwrap();
            let n = n.min(queue.len());
            got.extend(queue.drain(..n));
        }
    };
}

/// Measures a push and a pop by one thread.
fn measure_alone<Q: Shared>(criterion: &mut Criterion, name: &str) {
    let queue = Q::new();
    let mut item = Some(Q::item());
    let mut group = criterion.benchmark_group("alone");
    group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
        bencher.iter(|| {
            let pushed = queue.push(item.take().expect("it came back"));
            assert!(pushed.is_ok());
            item = black_box(&queue).pop();
        });
    });
}

/// Spins, and yields the CPU at every 64th call of [`wait`](Self::wait): the other thread, which is
/// to push or to pop, may need this CPU.
struct Patience(u32);

impl Patience {
    fn wait(&mut self) {
        self.0 += 1;
        if self.0.is_multiple_of(64) {
            thread::yield_now();
        } else {
            spin_loop();
        }
    }
}

/// Runs threads, which are pinned to two processors in turn and start together. Returns the time
/// from the first start to the last end, and the results of the threads. So the caller drops the
/// results after the measurement.
///
/// Each thread reads the clock at its own end. A thread that joins the others would read the clock
/// late.
fn race<R: Send>(threads: Vec<impl FnOnce() -> R + Send>) -> (Duration, Vec<R>) {
    let start = Barrier::new(threads.len());
    let processors = noise::processors();
    thread::scope(|scope| {
        let handles: Vec<_> = threads
            .into_iter()
            .enumerate()
            .map(|(index, run)| {
                let start = &start;
                scope.spawn(move || {
                    if let Some(processors) = processors {
                        noise::pin(processors[index % 2]);
                    }
                    start.wait();
                    let begun = Instant::now();
                    let result = run();
                    (begun, Instant::now(), result)
                })
            })
            .collect();
        let ran = handles.into_iter().map(|thread| thread.join().unwrap());
        let ran: Vec<_> = ran.collect();
        let first = ran.iter().map(|ran| ran.0).min();
        let last = ran.iter().map(|ran| ran.1).max();
        let took = last.zip(first).map(|(last, first)| last - first);
        let results = ran.into_iter().map(|ran| ran.2).collect();
        (took.unwrap_or_default(), results)
    })
}

/// A contended row.
#[derive(Clone, Copy)]
enum Row {
    Both,
    Through {
        producers: usize,
        consumers: usize,
        batch: usize,
    },
}

impl Row {
    fn name(self) -> String {
        match self {
            Self::Both => "both".into(),
            Self::Through {
                producers,
                consumers,
                batch,
            } => {
                let by = if batch == 1 { "" } else { " by 128" };
                format!("{producers} to {consumers}{by}")
            }
        }
    }

    /// Runs the row on a queue. Returns the nanoseconds for each item, in `Both` for each pair.
    fn measure<Q: Shared>(self, items: usize) -> f64 {
        let took = match self {
            Self::Both => time_both::<Q>(items),
            Self::Through {
                producers,
                consumers,
                batch,
            } => time_through::<Q>(items, producers, consumers, batch),
        };
        took.as_secs_f64() * 1e9 / items as f64
    }
}

/// Returns the time in which two threads push one item and pop one, again and again.
fn time_both<Q: Shared>(items: usize) -> Duration {
    let queue = Q::new();
    let thread = || {
        let mut popped = Some(Q::item());
        for _ in 0..items / 2 {
            let item = popped.take().unwrap_or_else(Q::item);
            assert!(queue.push(item).is_ok());
            popped = queue.pop();
        }
        popped
    };
    race(vec![thread, thread]).0
}

/// Returns the time in which the producers push all items and the consumers pop them.
fn time_through<Q: Shared>(
    items: usize,
    producers: usize,
    consumers: usize,
    batch: usize,
) -> Duration {
    let queue = &Q::new();
    // Items are allocated before the measurement, and freed after it.
    let stock = |share: usize| (0..share).map(|_| Q::item()).collect();
    let mut threads = Vec::new();
    for _ in 0..producers {
        threads.push((items / producers, stock(items / producers)));
    }
    for _ in 0..consumers {
        threads.push((items / consumers, Vec::with_capacity(items / consumers)));
    }
    let threads = threads.into_iter().enumerate();
    let threads = threads.map(|(index, (share, mut items))| {
        move || {
            let mut patience = Patience(0);
            if index < producers {
                if batch == 1 {
                    items.drain(..).for_each(|item| queue.push_patiently(item));
                }
                while !items.is_empty() {
                    let from = items.len().saturating_sub(batch);
                    queue.push_all(items.drain(from..));
                }
            }
            while index >= producers && items.len() < share {
                let before = items.len();
                if batch == 1 {
                    items.extend(queue.pop());
                } else {
                    queue.pop_some(batch.min(share - before), &mut items);
                }
                if items.len() == before {
                    patience.wait();
                }
            }
            items
        }
    });
    race(threads.collect()).0
}

fn median(samples: impl Iterator<Item = f64>) -> f64 {
    let mut samples: Vec<f64> = samples.collect();
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// A cache line's round trip below this number of nanoseconds is short: the processors are near
/// each other.
const NEAR: f64 = 150.0;

/// One round of a row: the nanoseconds of each queue, and those of a cache line's round trip before
/// and after the round.
struct Round {
    queues: Vec<f64>,
    trips: [f64; 2],
}

impl Round {
    /// Runs a row on each queue in turn, from the queue `first` on.
    fn run(row: Row, first: usize, items: usize) -> Self {
        let round_trip = || noise::round_trip().unwrap_or(f64::INFINITY);
        let before = round_trip();
        let mut queues = vec![0.0; QUEUES.len()];
        for turn in 0..QUEUES.len() {
            let queue = (first + turn) % QUEUES.len();
            queues[queue] = QUEUES[queue].1(row, items);
        }
        Self {
            queues,
            trips: [before, round_trip()],
        }
    }

    /// Returns whether the processors were near each other before and after the round. Returns
    /// `None` if the two answers differ: then the host has moved the virtual processors.
    fn is_near(&self) -> Option<bool> {
        let [before, after] = self.trips.map(|trip| trip < NEAR);
        (before == after).then_some(before)
    }
}

/// Runs the contended rows whose names contain `only`, on all queues.
fn measure_contended(only: &str, rounds: usize, items: usize) {
    let mut rows = vec![Row::Both];
    for batch in [1, 128] {
        for (producers, consumers) in [(1, 1), (2, 1), (1, 2), (2, 2)] {
            rows.push(Row::Through {
                producers,
                consumers,
                batch,
            });
        }
    }
    rows.retain(|row| row.name().contains(only));
    let mut taken: Vec<_> = rows.iter().map(|_| Vec::new()).collect();
    for first in 0..rounds {
        for (row, taken) in rows.iter().zip(&mut taken) {
            taken.push(Round::run(*row, first, items));
        }
    }
    print!("{:<16}", "nanoseconds");
    QUEUES.iter().for_each(|(name, _)| print!("{name:>19}"));
    println!("{:>19}{:>8}", "(round trip)", "rounds");
    for (row, taken) in rows.iter().zip(&taken) {
        for near in [true, false] {
            let rounds = || taken.iter().filter(|round| round.is_near() == Some(near));
            let count = rounds().count();
            if count == 0 {
                continue;
            }
            print!("{:<16}", row.name());
            for queue in 0..QUEUES.len() {
                print!(
                    "{:>19.1}",
                    median(rounds().map(|round| round.queues[queue]))
                );
            }
            let trips = rounds().flat_map(|round| round.trips);
            println!("{:>19.1}{count:>8}", median(trips));
        }
        let moved = taken
            .iter()
            .filter(|round| round.is_near().is_none())
            .count();
        if moved > 0 {
            println!(
                "{:<16} {moved} rounds in which the processors moved count for nothing",
                row.name()
            );
        }
    }
}

/// Measures the pushes of batches into our injector.
fn measure_batches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("batch");
    let rows = [1, 16, 128, 1_024, 4_096].map(|len| (len, 0));
    let filled = [1_000, 10_000, 100_000].map(|before| (128, before));
    for (len, before) in rows.into_iter().chain(filled) {
        let name = format!("of {len}, whole, behind {before}");
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            let queue = Injector::<Boxed<u64>>::new();
            let stock = |n: usize| (0..n).map(|_| Box::new(Boxed::new(7)));
            let mut batch: List<Boxed<u64>> = stock(len).collect();
            let mut others: List<Boxed<u64>> = stock(before).collect();
            bencher.iter_custom(|n| {
                let mut took = Duration::ZERO;
                for _ in 0..n {
                    for item in std::mem::take(&mut others) {
                        assert!(queue.push(item).is_ok());
                    }
                    let begun = Instant::now();
                    let pushed = queue.push_batch(std::mem::take(&mut batch));
                    took += begun.elapsed();
                    assert!(pushed.is_ok());
                    others = queue.pop_n(before);
                    batch = queue.pop_n(len);
                }
                took
            });
        });
    }
}

/// A queue's name, and the function that measures a contended row with a number of items.
type Queue = (&'static str, fn(Row, usize) -> f64);

macro_rules! queues {
    ($($name:literal: $queue:ty,)*) => {
        const QUEUES: &[Queue] = &[$(($name, |row, items| row.measure::<$queue>(items)),)*];

        fn measure_all_alone(criterion: &mut Criterion) {
            $(measure_alone::<$queue>(criterion, $name);)*
        }
    };
}

queues! {
    "ours": Injector<Boxed<u64>>,
    "list under a lock": Locked,
    "ArrayQueue": crossbeam_queue::ArrayQueue<u64>,
    "concurrent-queue": concurrent_queue::ConcurrentQueue<u64>,
    "SegQueue": crossbeam_queue::SegQueue<u64>,
    "crossbeam Injector": crossbeam_deque::Injector<u64>,
    "Mutex<VecDeque>": Mutex<VecDeque<u64>>,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let named: Vec<_> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    if named.is_empty() || *named[0] == "contended" {
        // Without `--bench` one short round only tests that all rows run.
        let measured = args.iter().any(|arg| arg == "--bench");
        let rounds = std::env::var("ROUNDS").map_or(5, |n| n.parse().expect("ROUNDS is a number"));
        let (rounds, items) = if measured {
            (rounds, 1 << 20)
        } else {
            (1, 1 << 10)
        };
        measure_contended(named.get(1).map_or("", |row| row), rounds, items);
    }
    if named.first().is_some_and(|row| *row == "contended") {
        return;
    }
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(50))
        .measurement_time(Duration::from_millis(200))
        .configure_from_args();
    measure_all_alone(&mut criterion);
    measure_batches(&mut criterion);
    criterion.final_summary();
}
