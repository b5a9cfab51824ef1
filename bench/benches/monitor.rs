//! How long work waits behind a task that blocks or polls for long, and how soon a stall is
//! reported. `cargo bench -p bench --bench monitor`.
//!
//! - `call of 100 ms`: a task spawns a second task on the only worker, and then blocks for 100 ms:
//!   in `syscall`, in `block_in_place`, or in neither. The figure is the time from the start of the
//!   call to the run of the second task.
//! - `report`: a task spins, or reads from a socket, for 50 ms. The figure is the time from the
//!   start of that poll to its first report.
//! - `polls of 50 ms`: each worker has an endless task, every poll of which spins for 50 ms. 1,000
//!   tasks are spawned from outside. The figures are the number of such polls that end before the
//!   last of the 1,000 tasks has run, and the time until then. The number is the largest of ten
//!   rounds.
//!
//! The times of each row are the median and the longest of its rounds, in milliseconds.
use selvedge::{Builder, Runtime, Stall};
use std::{
    future::Future,
    hint::spin_loop,
    io::Read,
    os::unix::net::UnixStream,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

const ROUNDS: usize = 30;

fn main() {
    println!("{:<44} {:>8} {:>8}", "ms", "median", "longest");
    let ours = runtime(1);
    let task = |begun, ran| calls(begun, ran, |f| selvedge::syscall(f));
    print("call of 100 ms, selvedge syscall", waits(&ours, task));
    let task = |begun, ran| calls(begun, ran, |f| selvedge::block_in_place(f));
    print(
        "call of 100 ms, selvedge block_in_place",
        waits(&ours, task),
    );
    let task = |begun, ran| calls(begun, ran, |f| f());
    print(
        "call of 100 ms, selvedge without a word",
        waits(&ours, task),
    );
    print("report of a task that spins", reports(spin));
    print("report of a task that reads", reports(read));
    for workers in [1, 2] {
        let ours = runtime(workers);
        let name = format!("polls of 50 ms, {workers} workers, selvedge");
        bursts(&name, workers, &selvedge::yield_now, &|task| {
            ours.spawn_detached(task)
        });
        let tokios = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(workers)
            .build()
            .unwrap();
        let name = format!("polls of 50 ms, {workers} workers, tokio");
        bursts(&name, workers, &tokio::task::yield_now, &|task| {
            drop(tokios.spawn(task))
        });
        let executor = Arc::new(async_executor::Executor::new());
        for _ in 0..workers {
            let executor = executor.clone();
            thread::spawn(move || {
                futures_lite::future::block_on(executor.run(std::future::pending::<()>()));
            });
        }
        let name = format!("polls of 50 ms, {workers} workers, async-executor");
        bursts(&name, workers, &futures_lite::future::yield_now, &|task| {
            executor.spawn(task).detach();
        });
    }
}

fn runtime(workers: usize) -> Runtime {
    Builder::new().workers(workers).build().unwrap()
}

fn print(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
    println!("{name:<44} {:>8.2} {:>8.2}", ms(median), ms(longest));
}

/// Spawns a task, and then passes `call` a closure that sleeps for 100 ms.
async fn calls(begun: mpsc::Sender<Instant>, ran: mpsc::Sender<Instant>, call: fn(&dyn Fn())) {
    selvedge::spawn_detached(async move { ran.send(Instant::now()).unwrap() });
    begun.send(Instant::now()).unwrap();
    call(&|| thread::sleep(Duration::from_millis(100)));
}

/// Returns, for each round, how long the task that [`calls`] spawned has waited for its run.
fn waits<F: Future<Output = ()> + Send + 'static>(
    runtime: &Runtime,
    task: impl Fn(mpsc::Sender<Instant>, mpsc::Sender<Instant>) -> F,
) -> Vec<Duration> {
    let round = |_| {
        let ((begun, begins), (ran, runs)) = (mpsc::channel(), mpsc::channel());
        runtime.block_on(runtime.spawn(task(begun, ran))).unwrap();
        runs.recv().unwrap() - begins.recv().unwrap()
    };
    (0..ROUNDS).map(round).collect()
}

fn spin() {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(50) {
        spin_loop();
    }
}

fn read() {
    let (mut reader, writer) = UnixStream::pair().unwrap();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(50));
        drop(writer);
    });
    reader.read_to_end(&mut Vec::new()).unwrap();
}

/// Returns how long after the start of each stall its first report came.
fn reports(stall: fn()) -> Vec<Duration> {
    let (sender, reports) = mpsc::channel();
    let hook = move |_: &Stall| {
        let _ = sender.send(Instant::now());
    };
    let builder = Builder::new().workers(1).stall_reports_per_minute(u32::MAX);
    let runtime = builder.on_stall(hook).build().unwrap();
    let round = |_| {
        let task = runtime.spawn(async move {
            let begun = Instant::now();
            stall();
            begun
        });
        let begun = runtime.block_on(task).unwrap();
        // On a busy machine the poll may get less of a CPU than the threshold.
        let report = reports.recv_timeout(Duration::from_secs(1));
        let reported = report.expect("the machine is busy: measure on a quiet one") - begun;
        while reports.try_recv().is_ok() {} // Later reports of the same poll.
        // Workers and the monitor fall asleep, as between two requests of a service.
        thread::sleep(Duration::from_millis(20));
        while reports.try_recv().is_ok() {}
        reported
    };
    (0..ROUNDS).map(round).collect()
}

/// Spawns 1,000 tasks beside endless tasks whose polls take 50 ms. Prints how many of those polls
/// end, and how much time passes, before all 1,000 tasks have run.
fn bursts<Y: Future<Output = ()> + Send + 'static>(
    name: &str,
    workers: usize,
    yield_now: &'static (dyn Fn() -> Y + Sync),
    spawn: &dyn Fn(Task),
) {
    let (over, polls) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    for _ in 0..workers {
        let (over, polls) = (over.clone(), polls.clone());
        spawn(Box::pin(async move {
            while !over.load(SeqCst) {
                spin();
                polls.fetch_add(1, SeqCst);
                yield_now().await;
            }
        }));
    }
    thread::sleep(Duration::from_millis(300));
    let (mut most, mut times) = (0, Vec::new());
    for _ in 0..10 {
        let (sender, ran) = mpsc::channel();
        let (begun, before) = (Instant::now(), polls.load(SeqCst));
        for _ in 0..1000 {
            let sender = sender.clone();
            spawn(Box::pin(async move { sender.send(()).unwrap() }));
        }
        drop(sender);
        assert_eq!(ran.iter().count(), 1000);
        most = most.max(polls.load(SeqCst) - before);
        times.push(begun.elapsed());
    }
    over.store(true, SeqCst);
    print(&format!("{name}: {most} polls"), times);
}

type Task = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;
