//! Measures how late tasks run beside a task that is always ready, with a budget and without.
//!
//! `cargo run --release -p selvedge --example tail_latency -- [DIR]` prints the p50, p99 and
//! longest lateness of the probes, and the throughput of the hog. It measures them on `selvedge`
//! with one worker, and on an executor of a few lines. Each of the two runs once with a budget of
//! 128 operations, and once with none. The program draws `tail_latency.svg` into DIR, by default
//! `target`.
//!
//! The *hog* takes items from a source that is always ready: 100 ns an operation, 20,000 operations
//! a round. Between two rounds it yields by itself. Another thread spawns a *probe* every 200 µs.
//! A probe's lateness is the time from its spawn to its first poll.
mod cli;
#[path = "latencies/picture.rs"]
mod picture;

use coop_budget::{Budget, Scope, consume};
use indicatif::{ProgressBar, ProgressStyle};
use picture::{Line, Texts};
use plotters::{chart::SeriesLabelPosition, style::RGBColor};
use std::{
    error::Error,
    fmt::Write as _,
    future::Future,
    io::Write as _,
    path::PathBuf,
    pin::Pin,
    process::ExitCode,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    task::{Context, Poll, Wake, Waker},
    thread,
    time::{Duration, Instant},
};

const ROUND: u32 = 20_000;
const OPERATION: Duration = Duration::from_nanos(100);
const PERIOD: Duration = Duration::from_micros(200);
const RUN: Duration = Duration::from_millis(1_500);

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The result of one run.
struct Run {
    name: &'static str,
    /// The lateness of each probe, sorted.
    late: Vec<Duration>,
    /// The number of operations that the hog makes in a second.
    rate: f64,
}

impl Run {
    fn late(&self, share: f64) -> Duration {
        self.late[((self.late.len() - 1) as f64 * share) as usize]
    }
}

/// Yields once: it wakes its own task and returns `Pending`.
async fn rest() {
    let mut rested = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut rested, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

async fn hog(operations: Arc<AtomicU64>, stop: Arc<AtomicBool>) {
    while !stop.load(Relaxed) {
        for _ in 0..ROUND {
            consume().await;
            let begun = Instant::now();
            while begun.elapsed() < OPERATION {
                std::hint::spin_loop();
            }
        }
        operations.fetch_add(ROUND.into(), Relaxed);
        rest().await;
    }
}

/// Runs the hog and the probes on the executor that `spawn` spawns to.
fn measure(name: &'static str, spawn: impl Fn(Task)) -> Run {
    let (operations, stop) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
    let late = Arc::<Mutex<Vec<Duration>>>::default();
    spawn(Box::pin(hog(operations.clone(), stop.clone())));
    let begun = Instant::now();
    while begun.elapsed() < RUN {
        let (late, spawned) = (late.clone(), Instant::now());
        spawn(Box::pin(async move {
            late.lock().unwrap().push(spawned.elapsed());
        }));
        thread::sleep(PERIOD);
    }
    let rate = operations.load(Relaxed) as f64 / begun.elapsed().as_secs_f64();
    stop.store(true, Relaxed);
    let mut late = std::mem::take(&mut *late.lock().unwrap());
    late.sort_unstable();
    Run { name, late, rate }
}

fn on_selvedge(name: &'static str, budget: Budget) -> Result<Run, Box<dyn Error>> {
    let runtime = selvedge::Builder::new().workers(1).budget(budget).build()?;
    let handle = runtime.handle().clone();
    Ok(measure(name, |task| {
        handle.spawn(task);
    }))
}

/// A task of an executor of one thread. The thread runs the tasks that it receives from a channel.
struct ToyTask {
    task: Mutex<Option<Task>>,
    queue: mpsc::Sender<Arc<Self>>,
}

impl Wake for ToyTask {
    fn wake(self: Arc<Self>) {
        let _ = self.queue.clone().send(self);
    }
}

fn on_a_toy(name: &'static str, budget: Budget) -> Run {
    let (queue, tasks) = mpsc::channel::<Arc<ToyTask>>();
    thread::spawn(move || {
        for task in tasks {
            let waker = Waker::from(task.clone());
            let mut slot = task.task.lock().unwrap();
            let poll = |future: &mut Task| future.as_mut().poll(&mut Context::from_waker(&waker));
            if slot
                .as_mut()
                .is_some_and(|future| Scope::new(budget).run(|| poll(future)).is_ready())
            {
                *slot = None;
            }
        }
    });
    measure(name, |task| {
        let task = Mutex::new(Some(task));
        let _ = queue.send(Arc::new(ToyTask {
            task,
            queue: queue.clone(),
        }));
    })
}

const HELP: &str = "\
Measures how late tasks run beside a task that is always ready. Takes about 8 seconds.

Usage: tail_latency [DIR]

DIR  the folder for the picture, tail_latency.svg [target]";

fn main() -> ExitCode {
    cli::run(HELP, |arguments| {
        cli::at_most(&arguments, 1)?;
        compare(arguments.first().map_or("target".into(), PathBuf::from))
    })
}

fn compare(directory: PathBuf) -> Result<(), Box<dyn Error>> {
    // The bar is drawn on standard error, and only if that is a terminal.
    let bar = ProgressBar::new(4).with_style(ProgressStyle::with_template("{bar:30} {msg}")?);
    let step = |name: &'static str| {
        bar.set_message(name);
        bar.inc(1);
        name
    };
    let runs = [
        on_selvedge(step("selvedge, 128"), Budget::DEFAULT)?,
        on_selvedge(step("selvedge, no budget"), Budget::UNLIMITED)?,
        on_a_toy(step("toy, 128"), Budget::DEFAULT),
        on_a_toy(step("toy, no budget"), Budget::UNLIMITED),
    ];
    bar.finish_and_clear();
    let mut table =
        String::from("                       p50        p99    longest   million operations/s\n");
    for run in &runs {
        let [p50, p99, longest] =
            [0.5, 0.99, 1.0].map(|share| format!("{:.1} µs", run.late(share).as_secs_f64() * 1e6));
        writeln!(
            table,
            "{:<20}{p50:>13}{p99:>13}{longest:>13}{:>12.2}",
            run.name,
            run.rate / 1e6
        )?;
    }
    // The picture is drawn even if the reader of the table has gone.
    let _ = std::io::stdout().write_all(table.as_bytes());
    std::fs::create_dir_all(&directory)?; // With CARGO_TARGET_DIR there may be no `target` here.
    let path = directory.join("tail_latency.svg");
    draw(&runs, &path)?;
    eprintln!("drawn: {}", path.display());
    Ok(())
}

/// Draws the lateness over the percentage of the probes that were no later.
fn draw(runs: &[Run], path: &std::path::Path) -> Result<(), Box<dyn Error>> {
    let texts = Texts {
        title: "Lateness of tasks beside one that is always ready",
        x: "percent of the probes that were no later",
        y: "lateness, µs",
    };
    let colors = [
        RGBColor(0, 90, 181),
        RGBColor(220, 50, 32),
        RGBColor(120, 170, 220),
        RGBColor(240, 150, 130),
    ];
    let lateness: Vec<_> = runs
        .iter()
        .map(|run| |share| run.late(share).as_secs_f64() * 1e6)
        .collect();
    let lines: Vec<_> = runs
        .iter()
        .zip(&lateness)
        .zip(colors)
        .map(|((run, latency), color)| Line {
            name: run.name,
            color,
            latency,
        })
        .collect();
    let legend = SeriesLabelPosition::Coordinate(545, 185);
    picture::draw(&texts, &lines, 1.0, legend, path)
}
