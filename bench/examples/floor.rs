//! What two rows cost without any runtime: `cargo run --release -p bench --example floor`.
//!
//! `idle_wake`: a thread that parks answers an outside one, which rings after pauses as that row does. `new_drop`: two named threads are started, return and are joined.
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
            // Ordering: Relaxed, `park` is ordered after the `unpark` that follows the store.
            while !ended.load(Relaxed) {
                // Ordering: Acquire, the store of who rings.
                let at = rung.load(Acquire);
                if at == last {
                    thread::park();
                    continue;
                }
                last = at;
                // Ordering: Release, the exchange of who rings.
                took.store((now() - at).max(1), Release);
            }
        });
        let mut seen = Vec::new();
        while made.elapsed() < FOR {
            thread::sleep(PAUSE);
            // Ordering: Release, the load of who answers.
            rung.store(now(), Release);
            answers.thread().unpark();
            loop {
                thread::sleep(PAUSE);
                // Ordering: Acquire, the store of who answers.
                match took.swap(0, Acquire) {
                    0 => {}
                    took => break seen.push(took),
                }
            }
        }
        // Ordering: Relaxed, as its load.
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
