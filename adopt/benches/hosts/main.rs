//! Measures stand-ins beside their hosts: `cargo bench -p adopt`.
//!
//! A *stand-in* is a program of the crate `adopt`. It has the shape of another project, its *host*.
//! Four of the six stand-ins are measured. The other two, `bare` and `game`, have no host to
//! measure.
//!
//! The options are:
//!
//! - `-- --row TEXT` measures only the rows whose names contain the text.
//! - `-- --rounds N` sets the number of rounds. The default is 21.
//! - `--no-default-features` makes the stand-ins call the allocator for each task, as the hosts do.
//!   By default the stand-ins keep the memory of freed tasks for new tasks.
//!
//! A *row* is one piece of work that a stand-in and its host both do, with one worker each. At
//! first both do the work once, unmeasured. In a *sample* the stand-in or the host does the work
//! once, and its threads then fall asleep. The figure of a sample is the processor time of the
//! whole process: of all threads, in the program and in the kernel. In a *round* the stand-in and
//! the host take one sample each. The stand-in is first in every other round.
//!
//! The columns of the table are:
//!
//! - `ours ms` and `host ms`: the median of the stand-in's samples, and of the host's.
//! - `ratio`: the median of the rounds' ratios. The ratio of a round is the stand-in's time divided
//!   by the host's. Below 1 the stand-in used less processor time.
//! - `middle half`: the first and the third quartile of the rounds' ratios.
use std::{env, mem::MaybeUninit, thread, time::Duration};

mod blocking;
mod executor;
mod join_pool;
mod tasks;

/// A piece of work, as the stand-in and the host do it.
struct Row {
    name: &'static str,
    host: &'static str,
    /// Does the work once, with the stand-in.
    ours: Box<dyn FnMut()>,
    /// Does the work once, with the host.
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
    // The crate `blocking` reads this variable, and limits its pool to one thread.
    // SAFETY: this process has not started another thread yet.
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

/// Measures a row, and prints its line.
fn measure(mut row: Row, rounds: usize) {
    let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    (row.ours)();
    (row.theirs)();
    for round in 0..rounds.max(1) {
        let (our_time, their_time) = if round % 2 == 0 {
            let our_time = sample(&mut row.ours);
            (our_time, sample(&mut row.theirs))
        } else {
            let their_time = sample(&mut row.theirs);
            (sample(&mut row.ours), their_time)
        };
        ours.push(our_time);
        theirs.push(their_time);
        ratios.push(our_time / their_time);
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

/// Does the work once. Returns the milliseconds of processor time that it took.
fn sample(work: &mut dyn FnMut()) -> f64 {
    let before = processor_time();
    work();
    // While this thread sleeps, the threads that did the work fall asleep too. The sample includes
    // the processor time that this takes.
    thread::sleep(Duration::from_millis(1));
    (processor_time() - before).as_secs_f64() * 1e3
}

/// Returns the processor time that all threads of the process have used so far.
fn processor_time() -> Duration {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the pointer is valid for a write of a `timespec`.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, time.as_mut_ptr()) };
    assert_eq!(failed, 0, "no clock of the processor time of the process");
    // SAFETY: the call did not fail, so it has written the time.
    let time = unsafe { time.assume_init() };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Returns the first quartile, the median and the third quartile.
fn quartiles(mut figures: Vec<f64>) -> (f64, f64, f64) {
    figures.sort_by(f64::total_cmp);
    let quartile = |number: usize| figures[(figures.len() - 1) * number / 4];
    (quartile(1), quartile(2), quartile(3))
}
