//! Runs one single-threaded hot path so many times, for `cargo xtask bench --instructions` to count its instructions: `instructions ROW N`. Without arguments it names the rows.
use coop_budget::{Budget, with_budget};
use queue_global::{Boxed, Injector};
use queue_spmc::{deque, ring};
use std::{
    hint::black_box,
    process::ExitCode,
    task::{Context, Poll, Waker},
};

/// Items that lie in a queue while pairs are counted.
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
    ("st3-fifo-pair", st3_pairs),
    ("crossbeam-fifo-pair", |n| {
        crossbeam_pairs(&crossbeam_deque::Worker::new_fifo(), n);
    }),
    ("crossbeam-lifo-pair", |n| {
        crossbeam_pairs(&crossbeam_deque::Worker::new_lifo(), n);
    }),
    ("injector-pair", injector_pairs),
    ("poll-proceed", proceeds),
];

fn ring_pairs(mut worker: ring::Worker<u64>, n: u64) {
    worker.extend(1..DEPTH);
    for item in 0..n {
        let _ = worker.push(black_box(item));
        black_box(worker.pop());
    }
}

fn ring_bursts(mut worker: ring::Worker<u64>, n: u64) {
    for _ in 0..n / 256 {
        (0..256).for_each(|item| {
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
        with_budget(Budget::DEFAULT, || {
            for _ in 0..100 {
                match coop_budget::poll_proceed(black_box(&mut cx)) {
                    Poll::Ready(progress) => progress.made_progress(),
                    Poll::Pending => unreachable!("there are 128"),
                }
            }
        });
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
    let (Some((_, run)), Some(n)) = (row, n) else {
        eprintln!("usage: instructions [ROW N]");
        return ExitCode::from(2);
    };
    run(n);
    ExitCode::SUCCESS
}
