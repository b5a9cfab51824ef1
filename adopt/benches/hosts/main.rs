//! Measures the kits beside the hosts' own crates: `cargo bench -p adopt`. A *kit* is a program of
//! the crate `adopt`, in the shape of another project, its *host*.
//!
//! The options are `-- --row NAME` and `-- --rounds N`. By default a kit keeps the blocks of freed
//! tasks for new ones. With `--no-default-features` the kits call the allocator for each task, as
//! the hosts do.
//!
//! A row is one piece of work, done by a kit and by its host with one worker each. In a sample one
//! of the two does the work once, and its threads fall asleep. The sample's figure is the processor
//! time of the whole process: all threads, user and system. In a round the kit and the host take
//! one sample each, and the order alternates between the rounds. A row's ratio is the median of the
//! ratios of its rounds, kit to host. A kit with a ratio below 1 is faster.
use std::{env, mem::MaybeUninit, thread, time::Duration};

mod blocking;
mod executor;
mod join_pool;
mod tasks;

/// Work that a kit and its host can do repeatedly.
struct Row {
    name: &'static str,
    host: &'static str,
    ours: Box<dyn FnMut()>,
    theirs: Box<dyn FnMut()>,
}

type MakeRow = fn() -> Row;

const ROWS: &[MakeRow] = &[
    join_pool::join_fib,
    join_pool::scope,
    join_pool::scope_fifo,
    join_pool::inject,
    executor::spawn_await::beside_executor,
    executor::spawn_4x25000::beside_executor,
    executor::yields::beside_executor,
    executor::ping_pong::beside_executor,
    executor::spawn_await::beside_static,
    executor::spawn_4x25000::beside_static,
    executor::yields::beside_static,
    executor::ping_pong::beside_static,
    tasks::spawn,
    tasks::yields,
    blocking::burst,
];

fn main() {
    // SAFETY: no other thread has been started yet.
    unsafe { env::set_var("BLOCKING_MAX_THREADS", "1") };
    let (mut rounds, mut chosen) = (21, None);
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--rounds" => {
                rounds = arguments
                    .next()
                    .and_then(|n| n.parse().ok())
                    .unwrap_or(rounds)
            }
            "--row" => chosen = arguments.next(),
            _ => {} // Cargo adds `--bench`.
        }
    }
    println!(
        "{:<20} {:<22} {:>9} {:>9} {:>7}  middle half",
        "row", "host", "ours ms", "host ms", "ratio"
    );
    for make in ROWS {
        let row = make();
        if chosen
            .as_ref()
            .is_none_or(|chosen| row.name.contains(chosen.as_str()))
        {
            measure(row, rounds);
        }
    }
}

fn measure(mut row: Row, rounds: usize) {
    let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    (row.ours)();
    (row.theirs)();
    for round in 0..rounds.max(1) {
        let (mine, its) = if round % 2 == 0 {
            let mine = sample(&mut row.ours);
            (mine, sample(&mut row.theirs))
        } else {
            let its = sample(&mut row.theirs);
            (sample(&mut row.ours), its)
        };
        ours.push(mine);
        theirs.push(its);
        ratios.push(mine / its);
    }
    let (low, ratio, high) = quartiles(ratios);
    println!(
        "{:<20} {:<22} {:>9.2} {:>9.2} {:>7.2}  {low:.2} to {high:.2}",
        row.name,
        row.host,
        quartiles(ours).1,
        quartiles(theirs).1,
        ratio
    );
}

/// Measures milliseconds of processor time.
fn sample(work: &mut dyn FnMut()) -> f64 {
    let before = processor_time();
    work();
    // Lets the threads that did the work fall asleep within the sample.
    thread::sleep(Duration::from_millis(1));
    (processor_time() - before).as_secs_f64() * 1e3
}

fn processor_time() -> Duration {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the pointer is valid for a write of a `timespec`.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, time.as_mut_ptr()) };
    assert_eq!(failed, 0, "the process has a clock");
    // SAFETY: the call did not fail, so it has written the time.
    let time = unsafe { time.assume_init() };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn quartiles(mut of: Vec<f64>) -> (f64, f64, f64) {
    of.sort_by(f64::total_cmp);
    let at = |part: usize| of[(of.len() - 1) * part / 4];
    (at(1), at(2), at(3))
}
