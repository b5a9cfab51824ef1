//! The shared queue beside its peers, nanoseconds an item pushed and popped. `cargo bench -p bench --bench injector`.
//!
//! - *alone*: a push and a pop by one thread.
//! - *p to c*: p threads push and c pop, as fast as they can, until all items are through; a consumer that finds nothing yields after a while.
//! - *both*: two threads that each push one and pop one.
//! - *batch of n*: a list of n, linked before, spliced; then taken out again, which is not timed.
//!
//! Ours passes boxed nodes on, so that it allocates as little in the loop as the others do.
use criterion::{BenchmarkId, Criterion};
use queue_global::{Boxed, Injector, List};
use std::{
    collections::VecDeque,
    hint::{black_box, spin_loop},
    sync::{Arc, Barrier, Mutex},
    thread,
    time::{Duration, Instant},
};

/// A queue for many producers and consumers.
trait Shared: Send + Sync + 'static {
    type Item: Send + 'static;
    fn new() -> Self;
    fn item() -> Self::Item;
    /// Gives back what doesn't fit.
    fn push(&self, item: Self::Item) -> Result<(), Self::Item>;
    fn pop(&self) -> Option<Self::Item>;
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
}

/// The list under a lock, and nothing else: what the injector was before it had a stack.
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
}

macro_rules! of_numbers {
    ($($queue:ty: $new:expr, |$push:ident, $item:ident| $pushed:expr, |$pop:ident| $popped:expr;)*) => {$(
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
        }
    )*};
}

of_numbers! {
    crossbeam_queue::ArrayQueue<u64>: Self::new(1024), |q, item| q.push(item), |q| q.pop();
    crossbeam_queue::SegQueue<u64>: Self::new(), |q, item| { q.push(item); Ok(()) }, |q| q.pop();
    concurrent_queue::ConcurrentQueue<u64>: Self::bounded(1024), |q, item| q.push(item).map_err(|e| e.into_inner()), |q| q.pop().ok();
    crossbeam_deque::Injector<u64>: Self::new(), |q, item| { q.push(item); Ok(()) }, |q| loop {
        match q.steal() {
            crossbeam_deque::Steal::Success(item) => break Some(item),
            crossbeam_deque::Steal::Empty => break None,
            crossbeam_deque::Steal::Retry => {}
        }
    };
    Mutex<VecDeque<u64>>: Self::new(VecDeque::new()), |q, item| { q.lock().unwrap().push_back(item); Ok(()) }, |q| q.lock().unwrap().pop_front();
}

fn alone<Q: Shared>(criterion: &mut Criterion, name: &str) {
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

/// Waits a little, then lets others run: the two processors may be one another's.
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

/// Runs `threads` from one start to their end.
fn race(threads: Vec<Box<dyn FnOnce() + Send>>) -> Duration {
    let start = Arc::new(Barrier::new(threads.len() + 1));
    let handles: Vec<_> = threads
        .into_iter()
        .map(|run| {
            let start = start.clone();
            thread::spawn(move || {
                start.wait();
                run();
            })
        })
        .collect();
    start.wait();
    let begun = Instant::now();
    handles
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    begun.elapsed()
}

fn through<Q: Shared>(criterion: &mut Criterion, name: &str, producers: usize, consumers: usize) {
    let mut group = criterion.benchmark_group(format!("{producers} to {consumers}"));
    group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
        bencher.iter_custom(|n| {
            let each = (n.max(500_000) as usize).div_ceil(producers * consumers) * consumers;
            let queue = Arc::new(Q::new());
            let mut threads: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
            for _ in 0..producers {
                let queue = queue.clone();
                // What is allocated is allocated before.
                let items: Vec<_> = (0..each).map(|_| Q::item()).collect();
                threads.push(Box::new(move || {
                    for mut item in items {
                        let mut patience = Patience(0);
                        while let Err(back) = queue.push(item) {
                            item = back;
                            patience.wait();
                        }
                    }
                }));
            }
            for _ in 0..consumers {
                let queue = queue.clone();
                let share = each * producers / consumers;
                threads.push(Box::new(move || {
                    let mut got = Vec::with_capacity(share);
                    let mut patience = Patience(0);
                    while got.len() < share {
                        match queue.pop() {
                            Some(item) => got.push(item),
                            None => patience.wait(),
                        }
                    }
                    // Freed after the race.
                    std::mem::forget(got);
                }));
            }
            race(threads).mul_f64(n as f64 / (each * producers) as f64)
        });
    });
}

fn both<Q: Shared>(criterion: &mut Criterion, name: &str) {
    let mut group = criterion.benchmark_group("both");
    group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
        bencher.iter_custom(|n| {
            let each = n.max(500_000).div_ceil(2);
            let queue = Arc::new(Q::new());
            let threads = (0..2).map(|_| {
                let queue = queue.clone();
                Box::new(move || {
                    let mut mine = Some(Q::item());
                    for _ in 0..each {
                        let item = mine.take().unwrap_or_else(Q::item);
                        assert!(queue.push(item).is_ok());
                        mine = queue.pop();
                    }
                }) as Box<dyn FnOnce() + Send>
            });
            race(threads.collect()).mul_f64(n as f64 / (each * 2) as f64)
        });
    });
}

fn batches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("batch");
    for len in [1, 16, 128, 1_024, 4_096] {
        group.bench_function(
            BenchmarkId::from_parameter(format!("of {len}, whole")),
            |bencher| {
                let queue = Injector::<Boxed<u64>>::new();
                let mut batch: List<Boxed<u64>> =
                    (0..len).map(|_| Box::new(Boxed::new(7))).collect();
                bencher.iter_custom(|n| {
                    let mut took = Duration::ZERO;
                    for _ in 0..n {
                        let begun = Instant::now();
                        let pushed = queue.push_batch(std::mem::take(&mut batch));
                        took += begun.elapsed();
                        assert!(pushed.is_ok());
                        batch = queue.pop_n(len);
                    }
                    took
                });
            },
        );
    }
}

/// Runs a row over all queues, one after the other.
macro_rules! row {
    ($c:expr, $($what:tt)*) => {
        row!(@ $c, "ours", Injector<Boxed<u64>>, $($what)*);
        row!(@ $c, "ours, locked", Locked, $($what)*);
        row!(@ $c, "ArrayQueue", crossbeam_queue::ArrayQueue<u64>, $($what)*);
        row!(@ $c, "concurrent-queue", concurrent_queue::ConcurrentQueue<u64>, $($what)*);
        row!(@ $c, "SegQueue", crossbeam_queue::SegQueue<u64>, $($what)*);
        row!(@ $c, "crossbeam Injector", crossbeam_deque::Injector<u64>, $($what)*);
        row!(@ $c, "Mutex<VecDeque>", Mutex<VecDeque<u64>>, $($what)*);
    };
    (@ $c:expr, $name:expr, $queue:ty, $what:ident $(, $arg:expr)*) => {
        $what::<$queue>($c, $name $(, $arg)*);
    };
}

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(50))
        .measurement_time(Duration::from_millis(200))
        .configure_from_args();
    let c = &mut criterion;
    row!(c, alone);
    row!(c, both);
    for (producers, consumers) in [(1, 1), (2, 1), (1, 2)] {
        row!(c, through, producers, consumers);
    }
    batches(c);
    criterion.final_summary();
}
