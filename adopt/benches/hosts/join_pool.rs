//! Measures the fork-join pool beside rayon-core, with one worker each.
use crate::Row;
use adopt::join_pool::{self, Pool};
use rayon_core::{ThreadPool, ThreadPoolBuilder};
use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc,
    },
};

const SPAWNS: usize = 500_000;
const INJECTED: usize = 100_000;

/// Starts our pool and rayon's.
fn pools() -> (Pool, ThreadPool) {
    let rayon = ThreadPoolBuilder::new().num_threads(1).build();
    (Pool::new(1).expect("a thread"), rayon.expect("a thread"))
}

fn row(name: &'static str, ours: impl FnMut() + 'static, theirs: impl FnMut() + 'static) -> Row {
    let (ours, theirs) = (Box::new(ours), Box::new(theirs));
    Row {
        name,
        host: "rayon-core",
        ours,
        theirs,
    }
}

pub fn join_fib() -> Row {
    fn our_fib(n: u32) -> u64 {
        if n < 2 {
            return n.into();
        }
        let (a, b) = join_pool::join(|| our_fib(n - 1), || our_fib(n - 2));
        a + b
    }
    fn their_fib(n: u32) -> u64 {
        if n < 2 {
            return n.into();
        }
        let (a, b) = rayon_core::join(|| their_fib(n - 1), || their_fib(n - 2));
        a + b
    }
    let (ours, theirs) = pools();
    row(
        "join_fib_32",
        move || assert_eq!(ours.install(|| our_fib(black_box(32))), 2_178_309),
        move || assert_eq!(theirs.install(|| their_fib(black_box(32))), 2_178_309),
    )
}

pub fn scope() -> Row {
    let (ours, theirs) = pools();
    row(
        "scope_500000",
        move || {
            let ran = AtomicUsize::new(0);
            ours.scope(|scope| (0..SPAWNS).for_each(|_| scope.spawn(|_| count(&ran))));
            assert_eq!(ran.into_inner(), SPAWNS);
        },
        move || {
            let ran = AtomicUsize::new(0);
            theirs.scope(|scope| (0..SPAWNS).for_each(|_| scope.spawn(|_| count(&ran))));
            assert_eq!(ran.into_inner(), SPAWNS);
        },
    )
}

pub fn scope_fifo() -> Row {
    let (ours, theirs) = pools();
    row(
        "scope_fifo_500000",
        move || {
            let ran = AtomicUsize::new(0);
            ours.scope(|scope| (0..SPAWNS).for_each(|_| scope.spawn_fifo(|_| count(&ran))));
            assert_eq!(ran.into_inner(), SPAWNS);
        },
        move || {
            let ran = AtomicUsize::new(0);
            theirs.scope_fifo(|scope| (0..SPAWNS).for_each(|_| scope.spawn_fifo(|_| count(&ran))));
            assert_eq!(ran.into_inner(), SPAWNS);
        },
    )
}

/// Adds one by a load and a store, without a read-modify-write: the pool has one worker, so no
/// other thread adds.
fn count(ran: &AtomicUsize) {
    ran.store(ran.load(Relaxed) + 1, Relaxed);
}

/// Spawns jobs from this thread, which is no worker, and waits for the last one.
macro_rules! inject_into {
    ($pool:expr) => {{
        let (sender, receiver) = mpsc::channel();
        let ran = Arc::new(AtomicUsize::new(0));
        for _ in 0..INJECTED {
            let ran = ran.clone();
            $pool.spawn(move || count(&ran));
        }
        $pool.spawn(move || sender.send(ran.load(Relaxed)).unwrap());
        assert_eq!(receiver.recv(), Ok(INJECTED));
    }};
}

pub fn inject() -> Row {
    let (ours, theirs) = pools();
    row(
        "inject_100000",
        move || inject_into!(ours),
        move || inject_into!(theirs),
    )
}
