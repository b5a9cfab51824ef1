//! The ring's owner beside its peers: nanoseconds a push and a pop, when so many are pushed and then popped.
//!
//! A `VecDeque` has no thieves: it is the floor, what the same costs alone. `cargo bench -p bench --bench ring`.
use criterion::{BenchmarkId, Criterion};
use std::{collections::VecDeque, hint::black_box, time::Instant};

/// A queue's owner.
trait Owner {
    fn push(&mut self, item: u64);
    fn pop(&mut self) -> Option<u64>;
}

impl Owner for queue_spmc::ring::Worker<u64> {
    fn push(&mut self, item: u64) {
        self.push(item).expect("there is room");
    }

    fn pop(&mut self) -> Option<u64> {
        self.pop()
    }
}

impl Owner for crossbeam_deque::Worker<u64> {
    fn push(&mut self, item: u64) {
        crossbeam_deque::Worker::push(self, item);
    }

    fn pop(&mut self) -> Option<u64> {
        crossbeam_deque::Worker::pop(self)
    }
}

impl Owner for VecDeque<u64> {
    fn push(&mut self, item: u64) {
        self.push_back(item);
    }

    fn pop(&mut self) -> Option<u64> {
        self.pop_front()
    }
}

fn measure(criterion: &mut Criterion, name: &str, mut owner: impl Owner) {
    let mut group = criterion.benchmark_group("owner push and pop");
    for depth in [1, 32, 256] {
        group.bench_function(BenchmarkId::new(name, depth), |bencher| {
            bencher.iter_custom(|pairs| {
                let begun = Instant::now();
                let mut left = pairs;
                while left > 0 {
                    let batch = left.min(depth);
                    for item in 0..batch {
                        owner.push(black_box(item));
                    }
                    for _ in 0..batch {
                        black_box(owner.pop().expect("it was pushed"));
                    }
                    left -= batch;
                }
                begun.elapsed()
            });
        });
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let ring = queue_spmc::ring::Worker::new(256);
    measure(&mut criterion, "queue-spmc ring", ring);
    let fifo = crossbeam_deque::Worker::new_fifo();
    measure(&mut criterion, "crossbeam-deque fifo", fifo);
    measure(
        &mut criterion,
        "VecDeque",
        VecDeque::<u64>::with_capacity(256),
    );
    criterion.final_summary();
}
