//! The shared parts of the groups' demonstrations: options, load, table and picture.
use crate::cli::{self, Usage};
use indicatif::{ProgressBar, ProgressStyle};
use plotters::prelude::*;
use selvedge::{
    Builder, Runtime, SchedulingGroup, Snapshot, runtime::worker_index, spawn_in, yield_now,
};
use std::{
    error::Error,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

/// The options of the command line.
pub struct Options {
    pub seconds: f64,
    pub workers: usize,
    pub sharded: bool,
    pub svg: Option<PathBuf>,
}

impl Options {
    pub fn parse(words: Vec<String>) -> Result<Self, Usage> {
        let mut options = Self {
            seconds: 10.0,
            workers: 1,
            sharded: false,
            svg: None,
        };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(Usage(format!("{word} needs a value")));
            match &*word {
                "--seconds" => options.seconds = cli::parse(&word, &value()?)?,
                "--workers" => options.workers = cli::parse(&word, &value()?)?,
                "--sharded" => options.sharded = true,
                "--svg" => options.svg = Some(value()?.into()),
                _ => return Err(Usage(format!("no option {word}"))),
            }
        }
        if !(0.1..=3600.0).contains(&options.seconds) || !(1..=1024).contains(&options.workers) {
            let limits = "from 0.1 to 3600 seconds, from 1 to 1024 workers";
            return Err(Usage(limits.to_owned()));
        }
        Ok(options)
    }

    /// Whether the runtimes must come out as the shares say: the tasks of each group are divided
    /// evenly among the workers, and the run is long enough, and has no second with rests in part.
    fn are_shares_exact(&self) -> bool {
        let is_even = self.sharded || self.workers == 1;
        is_even && self.seconds >= 5.0 && self.seconds.fract() == 0.0
    }
}

/// The load of one group.
pub struct Load {
    pub shares: u32,
    /// The group's part of the runtime of all groups, as any multiple.
    pub part: f64,
    /// Number of the group's tasks on each worker.
    pub concurrency: usize,
    pub micros: u64,
    /// The part of each second in which the group has work, in percent.
    pub duty: u64,
}

/// The state that the tasks of a run share.
struct Run {
    begun: Instant,
    done: AtomicBool,
    executed: Vec<AtomicU64>,
    /// How many rests have ended, and how many of them on another worker than they began.
    rests: AtomicU64,
    moves: AtomicU64,
}

/// How long each group has run up to one point of time, in milliseconds.
struct Sample {
    seconds: f64,
    runtime: Vec<f64>,
}

/// Runs the loads, prints a table of them, and draws the picture if the options ask for it.
///
/// Returns how long each group has run, in milliseconds, as `Runtime::metrics` says. On a busy
/// machine that is longer than the sum of the times that the group's tasks take: other programs run
/// in between.
///
/// # Errors
/// If workers that do not steal have not kept their tasks. Also if the runtimes are not in the
/// proportion of the loads' parts, in a run of whole seconds, and of five at least, where the
/// workers do not steal or there is only one.
pub fn run(title: &str, options: &Options, loads: &[Load]) -> Result<Vec<f64>, Box<dyn Error>> {
    let builder = Builder::new().workers(options.workers).prestart();
    let runtime = builder.sharded(options.sharded).build()?;
    let groups: Result<Vec<_>, _> = loads
        .iter()
        .map(|load| {
            runtime
                .group(format!("sg{}", load.shares))
                .shares(load.shares)
                .build()
        })
        .collect();
    let groups = groups?;
    let run = Arc::new(Run {
        begun: Instant::now(),
        done: AtomicBool::new(false),
        executed: loads.iter().map(|_| AtomicU64::new(0)).collect(),
        rests: AtomicU64::new(0),
        moves: AtomicU64::new(0),
    });
    let mut tasks: Vec<Task> = Vec::new();
    for (index, load) in loads.iter().enumerate() {
        for _ in 0..load.concurrency {
            tasks.push((groups[index].clone(), index, load.micros, load.duty));
        }
    }
    on_each_worker(&runtime, options.workers, &tasks, &run);
    let sample = || {
        let measured = runtime.snapshot().groups;
        let of = |group: &SchedulingGroup| {
            let own = measured.iter().find(|own| own.name == group.name());
            own.map_or(0.0, |own| own.runtime.as_secs_f64() * 1e3)
        };
        Sample {
            seconds: run.begun.elapsed().as_secs_f64(),
            runtime: groups.iter().map(of).collect(),
        }
    };
    let mut samples = vec![sample()];
    // The bar is drawn on standard error, and only if that is a terminal.
    let bar = ProgressBar::new((options.seconds * 1e3) as u64)
        .with_style(ProgressStyle::with_template("{bar:40} {eta}")?);
    while samples
        .last()
        .is_some_and(|last| last.seconds < options.seconds)
    {
        thread::sleep(Duration::from_millis(50));
        samples.push(sample());
        bar.set_position((run.begun.elapsed().as_millis() as u64).min(bar.length().unwrap_or(0)));
    }
    bar.finish_and_clear();
    let metrics = runtime.snapshot();
    run.done.store(true, Relaxed);
    println!(
        "{title}, {} workers, {:.1} s:",
        options.workers, options.seconds
    );
    println!(
        "{:8} {:>6} {:>8} {:>10} {:>4} {:>7} {:>8}",
        "name", "shares", "tasks", "runtime_ms", "duty", "task_us", "vruntime"
    );
    let last = samples
        .last()
        .map(|last| last.runtime.clone())
        .unwrap_or_default();
    let executed = run.executed.iter().map(|executed| executed.load(Relaxed));
    for (((load, group), runtime), executed) in loads.iter().zip(&groups).zip(&last).zip(executed) {
        println!(
            "{:8} {:>6} {:>8} {:>10.0} {:>4} {:>7} {:>8.2}",
            group.name(),
            load.shares,
            executed,
            runtime,
            load.duty,
            load.micros,
            runtime / f64::from(load.shares)
        );
    }
    print_workers(&metrics);
    let (rests, moves) = (run.rests.load(Relaxed), run.moves.load(Relaxed));
    if rests > 0 {
        println!("# {moves} of {rests} rests ended on another worker");
    }
    if let Some(path) = &options.svg {
        draw(title, loads, &samples, path)?;
    }
    if options.sharded && moves > 0 {
        return Err("workers that do not steal have not kept their tasks".into());
    }
    if options.are_shares_exact() {
        check(loads, &last)?;
    }
    Ok(last)
}

/// Prints the counters of the groups, and how long each group has run on each worker.
fn print_workers(metrics: &Snapshot) {
    let ours = |name: &str| name.starts_with("sg");
    for group in metrics.groups.iter().filter(|group| ours(&group.name)) {
        println!("# {group}");
        let millis = |worker: &selvedge::GroupWorkerSnapshot| worker.runtime.as_millis();
        let each: Vec<_> = group.per_worker.iter().map(millis).collect();
        println!("# {} on each worker, ms: {each:?}", group.name);
    }
}

/// Fails if a group's part of the runtime of all groups is 10 % greater or less than it should be.
fn check(loads: &[Load], runtimes: &[f64]) -> Result<(), Box<dyn Error>> {
    let parts: f64 = loads.iter().map(|load| load.part).sum();
    let all: f64 = runtimes.iter().sum();
    for (load, runtime) in loads.iter().zip(runtimes) {
        let (is, should) = (runtime / all, load.part / parts);
        if (is / should - 1.0).abs() > 0.1 {
            let shares = load.shares;
            let wrong = format!("the group of {shares} shares got {is:.3}, and not {should:.3}");
            return Err(wrong.into());
        }
    }
    Ok(())
}

/// A task's group, the load's index, the microseconds of one piece of work, and the load's duty.
type Task = (SchedulingGroup, usize, u64, u64);

/// Spawns `tasks` on each worker, by a starter task on each worker. A starter task first keeps its
/// worker busy until every worker has a starter task.
fn on_each_worker(runtime: &Runtime, workers: usize, tasks: &[Task], run: &Arc<Run>) {
    let (begun, begins) = mpsc::channel();
    let all_have = Arc::new(AtomicBool::new(false));
    for _ in 0..workers {
        let (begun, all_have) = (begun.clone(), all_have.clone());
        let (tasks, run) = (tasks.to_vec(), run.clone());
        runtime.spawn_detached(async move {
            begun.send(()).expect("it is awaited");
            while !all_have.load(Relaxed) {
                std::hint::spin_loop();
            }
            for (group, index, micros, duty) in tasks {
                let task = work(run.clone(), index, micros, duty);
                drop(spawn_in(&group, task).expect("the group is there"));
            }
        });
        begins.recv().expect("a worker runs it");
    }
    all_have.store(true, Relaxed);
}

/// Runs pieces of work of `micros` microseconds each, in the first `duty` percent of each second,
/// until the run is done.
async fn work(run: Arc<Run>, index: usize, micros: u64, duty: u64) {
    while !run.done.load(Relaxed) {
        let in_second = run.begun.elapsed().subsec_millis();
        if u64::from(in_second) >= duty * 10 {
            let rest = Duration::from_millis((1000 - in_second).into());
            let before = worker_index();
            selvedge::time::sleep(rest).await;
            run.rests.fetch_add(1, Relaxed);
            let has_moved = worker_index() != before;
            run.moves.fetch_add(has_moved.into(), Relaxed);
            continue;
        }
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_micros(micros) {
            std::hint::spin_loop();
        }
        run.executed[index].fetch_add(1, Relaxed);
        yield_now().await;
    }
}

fn draw(
    title: &str,
    loads: &[Load],
    samples: &[Sample],
    path: &std::path::Path,
) -> Result<(), Box<dyn Error>> {
    let area = SVGBackend::new(path, (820, 460)).into_drawing_area();
    area.fill(&WHITE)?;
    let seconds = samples.last().map_or(1.0, |last| last.seconds);
    let runtimes = samples.iter().flat_map(|sample| &sample.runtime);
    let most = runtimes.copied().fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 20))
        .margin(12)
        .margin_right(28)
        .x_label_area_size(42)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..seconds, 0.0..most * 1.05)?;
    chart
        .configure_mesh()
        .x_desc("seconds")
        .y_desc("runtime, ms")
        .label_style(("sans-serif", 13))
        .draw()?;
    let colors = [
        RGBColor(0, 90, 181),
        RGBColor(220, 50, 32),
        RGBColor(40, 140, 80),
    ];
    for ((index, load), color) in loads.iter().enumerate().zip(colors) {
        let points = samples
            .iter()
            .map(|sample| (sample.seconds, sample.runtime[index]));
        chart
            .draw_series(LineSeries::new(points, color.stroke_width(2)))?
            .label(format!("{} shares, {} % duty", load.shares, load.duty))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .border_style(BLACK)
        .background_style(WHITE)
        .label_font(("sans-serif", 13))
        .draw()?;
    area.present()?;
    Ok(())
}
