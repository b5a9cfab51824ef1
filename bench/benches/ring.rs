//! The ring, the deque and the growable FIFO beside their peers.
//! `cargo bench -p bench --bench ring`.
//!
//! Figures are nanoseconds.
//!
//! - *owner, depth d*: a push and a pop, with d items in the queue after the push.
//! - *owner, 256 and 256*: a push and a pop, if the owner pushes 256 items and then pops them.
//! - *steal half of n*: one stolen item. A steal moves half of a queue of n items into the thief's
//!   own queue. The clock is read once for 16 steals, each from another queue.
//! - *skewed load*: one item of 256 that the owner pushes at once. Each item is work for a fixed
//!   time, and a thief helps. No figure can be below half of that time.
//! - *owner with a thief*: a push and a pop, if the owner pushes 32 items and then pops. Meanwhile
//!   a thief on another thread repeats: it moves half of the queue into its own queue, empties its
//!   own queue, and waits for a microsecond.
//!
//! `plain` is our ring whose owner claims one item at a time; in `claiming 16` the owner claims up
//! to 16. A `VecDeque` has no thieves: it shows what the owner's operations cost without any
//! synchronisation.
use criterion::{BenchmarkId, Criterion};
use queue_spmc::{StealLimit, deque, fifo, ring};
use std::{
    collections::VecDeque,
    hint::{black_box, spin_loop},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

const CAPACITY: usize = 512;

/// The owner of a queue.
trait Owner: Send {
    /// The handle of a thief, which steals into an owner of the same kind.
    type Thief: Send + 'static;

    fn new() -> Self;
    fn thief(&self) -> Self::Thief;
    fn push(&mut self, item: u64);
    fn pop(&mut self) -> Option<u64>;
    /// Moves half of the queue of `from` into this queue, and returns the number of moved items.
    fn steal(&mut self, from: &Self::Thief) -> usize;
}

struct Ours<const CLAIM: usize>(ring::Worker<u64>);

impl<const CLAIM: usize> Owner for Ours<CLAIM> {
    type Thief = ring::Stealer<u64>;

    fn new() -> Self {
        Self(ring::Worker::new(CAPACITY).with_claim(CLAIM))
    }
    fn thief(&self) -> Self::Thief {
        self.0.stealer()
    }
    #[inline(always)]
    fn push(&mut self, item: u64) {
        // The push can fail while a descheduled thief has not finished its copy: the items that
        // the thief has claimed still take room.
        let _ = self.0.push(item);
    }
    #[inline(always)]
    fn pop(&mut self) -> Option<u64> {
        self.0.pop()
    }
    fn steal(&mut self, from: &Self::Thief) -> usize {
        match from.steal_into(&mut self.0, StealLimit::Half) {
            ring::Steal::Success { moved, .. } => moved,
            _ => 0,
        }
    }
}

macro_rules! ours_that_grows {
    ($name:ident, $of:ident) => {
        struct $name($of::Worker<u64>);

        impl Owner for $name {
            type Thief = $of::Stealer<u64>;

            fn new() -> Self {
                Self($of::Worker::with_capacity(CAPACITY))
            }
            fn thief(&self) -> Self::Thief {
                self.0.stealer()
            }
            #[inline(always)]
            fn push(&mut self, item: u64) {
                self.0.push(item);
            }
            #[inline(always)]
            fn pop(&mut self) -> Option<u64> {
                self.0.pop()
            }
            fn steal(&mut self, from: &Self::Thief) -> usize {
                match from.steal_into(&mut self.0, StealLimit::Half) {
                    ring::Steal::Success { moved, .. } => moved,
                    _ => 0,
                }
            }
        }
    };
}
ours_that_grows!(OurDeque, deque);
ours_that_grows!(OurFifo, fifo);

struct Crossbeam<const FIFO: bool>(crossbeam_deque::Worker<u64>);

impl<const FIFO: bool> Owner for Crossbeam<FIFO> {
    type Thief = crossbeam_deque::Stealer<u64>;

    fn new() -> Self {
        Self(match FIFO {
            true => crossbeam_deque::Worker::new_fifo(),
            false => crossbeam_deque::Worker::new_lifo(),
        })
    }
    fn thief(&self) -> Self::Thief {
        self.0.stealer()
    }
    #[inline(always)]
    fn push(&mut self, item: u64) {
        self.0.push(item);
    }
    #[inline(always)]
    fn pop(&mut self) -> Option<u64> {
        self.0.pop()
    }
    fn steal(&mut self, from: &Self::Thief) -> usize {
        let before = self.0.len();
        // crossbeam moves at most 32 items at a time.
        let _ = from.steal_batch(&self.0);
        self.0.len() - before
    }
}

macro_rules! st3 {
    ($name:ident, $of:ident) => {
        struct $name(st3::$of::Worker<u64>);

        impl Owner for $name {
            type Thief = st3::$of::Stealer<u64>;

            fn new() -> Self {
                Self(st3::$of::Worker::new(CAPACITY))
            }
            fn thief(&self) -> Self::Thief {
                self.0.stealer()
            }
            #[inline(always)]
            fn push(&mut self, item: u64) {
                let _ = self.0.push(item);
            }
            #[inline(always)]
            fn pop(&mut self) -> Option<u64> {
                self.0.pop()
            }
            fn steal(&mut self, from: &Self::Thief) -> usize {
                from.steal(&self.0, |n| n - n / 2).unwrap_or(0)
            }
        }
    };
}
st3!(St3Fifo, fifo);
st3!(St3Lifo, lifo);

/// A queue without batches: a thief takes one item at a time.
struct Concurrent(Arc<concurrent_queue::ConcurrentQueue<u64>>);

impl Owner for Concurrent {
    type Thief = Arc<concurrent_queue::ConcurrentQueue<u64>>;

    fn new() -> Self {
        Self(Arc::new(concurrent_queue::ConcurrentQueue::bounded(
            CAPACITY,
        )))
    }
    fn thief(&self) -> Self::Thief {
        self.0.clone()
    }
    #[inline(always)]
    fn push(&mut self, item: u64) {
        let _ = self.0.push(item);
    }
    #[inline(always)]
    fn pop(&mut self) -> Option<u64> {
        self.0.pop().ok()
    }
    fn steal(&mut self, from: &Self::Thief) -> usize {
        let half = from.len().div_ceil(2);
        let stolen = from.try_iter().take(half);
        stolen.map(|item| self.push(item)).count()
    }
}

struct Locked(Arc<Mutex<VecDeque<u64>>>);

impl Owner for Locked {
    type Thief = Arc<Mutex<VecDeque<u64>>>;

    fn new() -> Self {
        Self(Arc::new(Mutex::new(VecDeque::with_capacity(CAPACITY))))
    }
    fn thief(&self) -> Self::Thief {
        self.0.clone()
    }
    #[inline(always)]
    fn push(&mut self, item: u64) {
        self.0.lock().unwrap().push_back(item);
    }
    #[inline(always)]
    fn pop(&mut self) -> Option<u64> {
        self.0.lock().unwrap().pop_front()
    }
    fn steal(&mut self, from: &Self::Thief) -> usize {
        let mut mine = self.0.lock().unwrap();
        let mut theirs = from.lock().unwrap();
        let half = theirs.len().div_ceil(2);
        mine.extend(theirs.drain(..half));
        half
    }
}

/// A queue without synchronisation, as the lower bound.
struct Alone(VecDeque<u64>);

impl Owner for Alone {
    type Thief = ();

    fn new() -> Self {
        Self(VecDeque::with_capacity(CAPACITY))
    }
    fn thief(&self) {}
    #[inline(always)]
    fn push(&mut self, item: u64) {
        self.0.push_back(item);
    }
    #[inline(always)]
    fn pop(&mut self) -> Option<u64> {
        self.0.pop_front()
    }
    fn steal(&mut self, (): &()) -> usize {
        0
    }
}

#[inline(never)]
fn pairs(owner: &mut impl Owner, pairs: u64) -> Duration {
    let begun = Instant::now();
    for item in 0..pairs {
        owner.push(black_box(item));
        black_box(owner.pop());
    }
    begun.elapsed()
}

fn depth<O: Owner>(criterion: &mut Criterion, name: &str, depth: u64) {
    let mut owner = O::new();
    (1..depth).for_each(|item| owner.push(item));
    let mut group = criterion.benchmark_group(format!("owner, depth {depth}"));
    group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
        bencher.iter_custom(|n| pairs(&mut owner, n));
    });
}

fn bursts<O: Owner>(criterion: &mut Criterion, name: &str) {
    let mut owner = O::new();
    let mut group = criterion.benchmark_group("owner, 256 and 256");
    group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
        bencher.iter_custom(|n| {
            let begun = Instant::now();
            let rounds = n.div_ceil(256);
            for _ in 0..rounds {
                (0..256).for_each(|item| owner.push(black_box(item)));
                (0..256).for_each(|_| {
                    black_box(owner.pop());
                });
            }
            begun.elapsed().mul_f64(n as f64 / (rounds * 256) as f64)
        });
    });
}

fn steals<O: Owner>(criterion: &mut Criterion, name: &str, len: u64) {
    {
        let mut group = criterion.benchmark_group(format!("steal half of {len}"));
        let mut queues: Vec<(O, O::Thief, O)> = (0..16)
            .map(|_| {
                let victim = O::new();
                let thief = victim.thief();
                (victim, thief, O::new())
            })
            .collect();
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter_custom(|n| {
                let (mut moved, mut took) = (0, Duration::ZERO);
                while moved < n as usize {
                    for (victim, ..) in &mut queues {
                        (0..len).for_each(|item| victim.push(item));
                    }
                    let begun = Instant::now();
                    for (_, thief, mine) in &mut queues {
                        moved += mine.steal(thief);
                    }
                    took += begun.elapsed();
                    for (victim, _, mine) in &mut queues {
                        while victim.pop().is_some() {}
                        while mine.pop().is_some() {}
                    }
                }
                took.mul_f64(n as f64 / moved as f64)
            });
        });
    }
}

fn with_a_thief<O: Owner>(criterion: &mut Criterion, name: &str) {
    let mut owner = O::new();
    let thief = owner.thief();
    let done = Arc::new(AtomicBool::new(false));
    let thread = thread::spawn({
        let done = done.clone();
        move || {
            let mut mine = O::new();
            while !done.load(Relaxed) {
                mine.steal(&thief);
                while mine.pop().is_some() {}
                let begun = Instant::now();
                while begun.elapsed() < Duration::from_micros(1) {
                    spin_loop();
                }
            }
        }
    });
    let mut group = criterion.benchmark_group("owner with a thief");
    group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
        bencher.iter_custom(|n| {
            let begun = Instant::now();
            let rounds = n.div_ceil(32);
            for item in 0..rounds {
                (0..32).for_each(|_| owner.push(black_box(item)));
                (0..32).for_each(|_| {
                    black_box(owner.pop());
                });
            }
            begun.elapsed().mul_f64(n as f64 / (rounds * 32) as f64)
        });
    });
    drop(group);
    done.store(true, Relaxed);
    thread.join().unwrap();
}

/// Runs an owner that pushes 256 items and processes them, each for a fixed time. A thief helps
/// with half of the items that it finds.
fn skewed<O: Owner>(criterion: &mut Criterion, name: &str, work: Duration) {
    fn spin(work: Duration) {
        let begun = Instant::now();
        while begun.elapsed() < work {
            spin_loop();
        }
    }
    const ITEMS: usize = 256;
    let mut owner = O::new();
    let thief = owner.thief();
    let (left, done) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let thread = thread::spawn({
        let (left, done) = (left.clone(), done.clone());
        move || {
            let mut mine = O::new();
            while !done.load(Relaxed) {
                if mine.steal(&thief) == 0 {
                    spin_loop();
                }
                while mine.pop().is_some() {
                    spin(work);
                    left.fetch_sub(1, Relaxed);
                }
            }
        }
    });
    let mut group = criterion.benchmark_group(format!("skewed load, items of {work:?}"));
    group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
        bencher.iter_custom(|n| {
            let begun = Instant::now();
            let rounds = n.div_ceil(ITEMS as u64);
            for _ in 0..rounds {
                left.store(ITEMS, Relaxed);
                (0..ITEMS as u64).for_each(|item| owner.push(item));
                while left.load(Relaxed) > 0 {
                    if owner.pop().is_some() {
                        spin(work);
                        left.fetch_sub(1, Relaxed);
                    }
                }
            }
            begun
                .elapsed()
                .mul_f64(n as f64 / (rounds * ITEMS as u64) as f64)
        });
    });
    drop(group);
    done.store(true, Relaxed);
    thread.join().unwrap();
}

/// Runs a row on all queues, one after the other, so that a slower or faster machine affects all
/// figures of the row.
macro_rules! row {
    ($c:expr, $($what:tt)*) => {
        row!(@ $c, "claiming 16", Ours<16>, $($what)*);
        row!(@ $c, "plain", Ours<1>, $($what)*);
        row!(@ $c, "deque", OurDeque, $($what)*);
        row!(@ $c, "fifo", OurFifo, $($what)*);
        row!(@ $c, "st3 fifo", St3Fifo, $($what)*);
        row!(@ $c, "st3 lifo", St3Lifo, $($what)*);
        row!(@ $c, "crossbeam fifo", Crossbeam<true>, $($what)*);
        row!(@ $c, "crossbeam lifo", Crossbeam<false>, $($what)*);
        row!(@ $c, "concurrent-queue", Concurrent, $($what)*);
        row!(@ $c, "Mutex<VecDeque>", Locked, $($what)*);
    };
    (@ $c:expr, $name:expr, $queue:ty, $what:ident $(, $arg:expr)*) => {
        $what::<$queue>($c, $name $(, $arg)*);
    };
}

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(50))
        .measurement_time(Duration::from_millis(150))
        .configure_from_args();
    let c = &mut criterion;
    for at in [1, 32, 256] {
        row!(c, depth, at);
        depth::<Alone>(c, "VecDeque alone", at);
    }
    row!(c, bursts);
    bursts::<Alone>(c, "VecDeque alone");
    for len in [16, 128] {
        row!(c, steals, len);
    }
    row!(c, with_a_thief);
    for micros in [1, 50] {
        let work = Duration::from_micros(micros);
        row!(c, skewed, work);
        for_claims(c, work);
    }
    criterion.final_summary();
}

fn for_claims(c: &mut Criterion, work: Duration) {
    skewed::<Ours<4>>(c, "claiming 4", work);
    skewed::<Ours<64>>(c, "claiming 64", work);
}
