//! Measures what two rows of `cargo xtask bench` cost without any runtime:
//! `cargo run --release -p bench --example floor`.
//!
//! - `idle_wake`: a thread unparks a second thread, which answers with the time that its wake took.
//!   The first thread pauses before each unpark, as in the row of that name.
//! - `new_drop`: two named threads are started, return, and are joined.
use std::{
    sync::atomic::{
        AtomicBool, AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
    thread,
    time::{Duration, Instant},
};

const FOR: Duration = Duration::from_millis(200);
const PAUSE: Duration = Duration::from_micros(100);

fn median(mut nanos: Vec<u64>) -> u64 {
    nanos.sort_unstable();
    nanos[nanos.len() / 2]
}

fn idle_wake() -> u64 {
    let (made, rung, took, ended) = (
        Instant::now(),
        AtomicU64::new(0),
        AtomicU64::new(0),
        AtomicBool::new(false),
    );
    let now = || made.elapsed().as_nanos() as u64;
    thread::scope(|scope| {
        let answers = scope.spawn(|| {
            let mut last = 0;
            // Ordering: Relaxed. The store is followed by an `unpark`, and the `park` that consumes
            // this `unpark` is ordered after it.
            while !ended.load(Relaxed) {
                // Ordering: Acquire pairs with the ringing thread's store.
                let at = rung.load(Acquire);
                if at == last {
                    thread::park();
                    continue;
                }
                last = at;
                // Ordering: Release pairs with the ringing thread's swap.
                took.store((now() - at).max(1), Release);
            }
        });
        let mut seen = Vec::new();
        while made.elapsed() < FOR {
            thread::sleep(PAUSE);
            // Ordering: Release pairs with the answering thread's load.
            rung.store(now(), Release);
            answers.thread().unpark();
            loop {
                thread::sleep(PAUSE);
                // Ordering: Acquire pairs with the answering thread's store.
                match took.swap(0, Acquire) {
                    0 => {}
                    took => break seen.push(took),
                }
            }
        }
        // Ordering: Relaxed, for the reason at the load of `ended`.
        ended.store(true, Relaxed);
        answers.thread().unpark();
        median(seen)
    })
}

fn new_drop() -> u64 {
    let begun = Instant::now();
    let mut took = Vec::new();
    while begun.elapsed() < FOR {
        let begun = Instant::now();
        let named = |name: &str| thread::Builder::new().name(name.into()).spawn(|| ());
        let threads = ["worker-0", "worker-1"].map(|name| named(name).expect("a thread"));
        for thread in threads {
            thread.join().expect("it doesn't panic");
        }
        took.push(begun.elapsed().as_nanos() as u64);
    }
    median(took)
}

fn main() {
    for _ in 0..3 {
        println!("idle_wake {} ns, new_drop {} ns", idle_wake(), new_drop());
    }
}
