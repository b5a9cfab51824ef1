//! The ring's owner beside its peers: push and pop at several depths. `cargo bench -p bench`.
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use std::{collections::VecDeque, hint::black_box};

fn owner(c: &mut Criterion) {
    let mut group = c.benchmark_group("owner push and pop");
    for depth in [1_usize, 32, 256] {
        group.bench_function(BenchmarkId::new("queue-spmc ring", depth), |b| {
            let mut ring = queue_spmc::ring::Worker::new(512);
            ring.fill(&mut (0..depth - 1));
            b.iter(|| {
                ring.push(black_box(1)).expect("there is room");
                black_box(ring.pop())
            });
        });
        group.bench_function(BenchmarkId::new("crossbeam-deque fifo", depth), |b| {
            let deque = crossbeam_deque::Worker::new_fifo();
            (1..depth).for_each(|i| deque.push(i));
            b.iter(|| {
                deque.push(black_box(1));
                black_box(deque.pop())
            });
        });
        group.bench_function(BenchmarkId::new("VecDeque", depth), |b| {
            let mut deque: VecDeque<_> = (1..depth).collect();
            b.iter(|| {
                deque.push_back(black_box(1));
                black_box(deque.pop_front())
            });
        });
    }
    group.finish();
}

criterion_group!(benches, owner);
criterion_main!(benches);
