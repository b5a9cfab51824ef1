//! Measures the CPU time of a switch between groups, with a clock that costs nothing and with the
//! system's clock.
//!
//! `cargo bench -p sched-group --bench switch` runs these:
//!
//! - *pick/n*: a turn of one of n active groups of different shares ends, and the next turn begins.
//! - *instant/n*: the same as *pick/n* with `Instant` as the clock, which each switch reads once.
//! - *idle/n*: the current group runs out of work, another group gets the turn, and the first group
//!   gets work again.
//! - *check/n*: `switch` within a turn with `Instant` as the clock, while the current group is the
//!   only one with work (*check/1*), and while a second one has work (*check/2*).
use criterion::{
    Criterion,
    measurement::{Measurement, ValueFormatter, WallTime},
};
use sched_group::{Clock, FairQueue, GroupKey, Pick, Shares};
use std::{
    cell::Cell,
    hint::black_box,
    time::{Duration, Instant},
};

/// The thread's CPU time, which does not include other programs on the machine. Wall time on
/// targets other than 64-bit Linux.
struct ThreadTime;

impl Measurement for ThreadTime {
    type Intermediate = Duration;
    type Value = Duration;

    fn start(&self) -> Duration {
        thread_time()
    }

    fn end(&self, start: Duration) -> Duration {
        thread_time() - start
    }

    fn add(&self, one: &Duration, two: &Duration) -> Duration {
        *one + *two
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, time: &Duration) -> f64 {
        time.as_nanos() as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn thread_time() -> Duration {
    use std::ffi::c_int;

    #[repr(C)]
    struct Timespec {
        seconds: i64,
        nanos: i64,
    }

    unsafe extern "C" {
        fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
    }

    const CLOCK_THREAD_CPUTIME_ID: c_int = 3;
    let mut time = Timespec {
        seconds: 0,
        nanos: 0,
    };
    // SAFETY: the declaration is that of the C library on 64-bit Linux, and `time` is valid for
    // writes.
    let error = unsafe { clock_gettime(CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(error, 0);
    Duration::new(time.seconds as u64, time.nanos as u32)
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
fn thread_time() -> Duration {
    static BEGUN: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    BEGUN.elapsed()
}

/// A clock that advances by half a millisecond with each reading.
struct Virtual(Cell<u64>);

impl Clock for Virtual {
    fn now(&self) -> u64 {
        self.0.set(self.0.get() + 500_000);
        self.0.get()
    }
}

fn queue<C: Clock>(clock: C, count: u32) -> FairQueue<(), C> {
    let mut queue = FairQueue::new(clock);
    for n in 0..count {
        let key = queue.insert(Shares::new(100 + n * 37 % 900).unwrap(), ());
        queue.activate(key).unwrap();
    }
    queue
}

fn group(pick: Pick) -> GroupKey {
    match pick {
        Pick::Run(key) => key,
        _ => unreachable!("all groups are active"),
    }
}

fn switch(criterion: &mut Criterion<ThreadTime>) {
    let counts = [1, 4, 16, 100, 1000];
    for count in counts {
        let mut queue = queue(Virtual(Cell::new(0)), count);
        criterion.bench_function(&format!("pick/{count}"), |b| b.iter(|| queue.pick()));
    }
    let begun = Instant::now();
    for count in counts {
        let mut queue = queue(move || begun.elapsed().as_nanos() as u64, count);
        criterion.bench_function(&format!("instant/{count}"), |b| b.iter(|| queue.pick()));
    }
    for count in counts {
        let mut queue = queue(Virtual(Cell::new(0)), count);
        let mut current = group(queue.pick());
        criterion.bench_function(&format!("idle/{count}"), |b| {
            b.iter(|| {
                let next = queue.pick_another();
                queue.activate(current).unwrap();
                current = match next {
                    Pick::Run(next) => next,
                    _ => group(queue.pick()),
                };
            })
        });
    }
    for count in [1, 2] {
        let mut queue = queue(move || begun.elapsed().as_nanos() as u64, count);
        queue.set_quota(Duration::MAX);
        let _ = queue.pick();
        criterion.bench_function(&format!("check/{count}"), |b| {
            b.iter(|| black_box(&mut queue).switch())
        });
    }
}

fn main() {
    let mut criterion = Criterion::default()
        .with_measurement(ThreadTime)
        .sample_size(30)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1000))
        .configure_from_args();
    switch(&mut criterion);
    criterion.final_summary();
}
