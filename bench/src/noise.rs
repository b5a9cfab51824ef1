//! What else the machine did during a sample, and where its processors were.
//!
//! Virtual processors move: a cache line's round trip between two of them is some 60 ns at one time and 450 at
//! another, and every contended figure doubles with it. So each sample says how far they were, before and after.
use serde::Serialize;
use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

/// Around a sample.
#[derive(Serialize)]
pub(crate) struct Noise {
    /// A line's round trip before and after, whichever is longer.
    round_trip_ns: f64,
    /// The part of the machine's time that others had.
    others: f64,
}

impl Noise {
    /// Runs `f` and measures around it.
    pub(crate) fn around<R>(f: impl FnOnce() -> R) -> (R, Self) {
        let before = round_trip();
        let (begun, machine, own) = (Instant::now(), machine_time(), cpu_time());
        let result = f();
        let wall = begun.elapsed();
        let others = machine_time()
            .saturating_sub(machine)
            .saturating_sub(cpu_time() - own);
        let processors = thread::available_parallelism().map_or(1, usize::from) as f64;
        let noise = Self {
            round_trip_ns: before.max(round_trip()),
            others: others.as_secs_f64() / (wall.as_secs_f64() * processors),
        };
        (result, noise)
    }
}

/// Two threads pass a counter back and forth for two milliseconds.
fn round_trip() -> f64 {
    let turn = Arc::new(AtomicU64::new(0));
    let other = {
        let turn = turn.clone();
        thread::spawn(move || {
            loop {
                let now = turn.load(SeqCst);
                if now == u64::MAX {
                    return;
                }
                if now % 2 == 1 {
                    // Fails only against the end.
                    let _ = turn.compare_exchange(now, now + 1, SeqCst, SeqCst);
                }
                std::hint::spin_loop();
            }
        })
    };
    let begun = Instant::now();
    let mut trips = 0;
    while begun.elapsed() < Duration::from_millis(2) {
        turn.store(2 * trips + 1, SeqCst);
        while turn.load(SeqCst) != 2 * trips + 2 {
            std::hint::spin_loop();
        }
        trips += 1;
    }
    let spent = begun.elapsed();
    turn.store(u64::MAX, SeqCst);
    let _ = other.join();
    spent.as_nanos() as f64 / trips as f64
}

/// The processor time of this process, user and system.
pub(crate) fn cpu_time() -> Duration {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a `rusage`, which the call fills.
    let failed = unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    assert_eq!(failed, 0, "getrusage");
    // SAFETY: zeroed, and filled by the call; any bytes are a `rusage`.
    let usage = unsafe { usage.assume_init() };
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1_000);
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// The time that the machine's processors were busy, or taken away by its host.
fn machine_time() -> Duration {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks: Vec<u64> = stat
        .lines()
        .next()
        .into_iter()
        .flat_map(str::split_whitespace)
        .skip(1)
        .filter_map(|field| field.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal; a tick is a hundredth of a second.
    let busy = [0, 1, 2, 5, 6, 7]
        .iter()
        .filter_map(|&i| ticks.get(i))
        .sum::<u64>();
    Duration::from_millis(busy * 10)
}
