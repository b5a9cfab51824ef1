//! A program with four faults, and the page that shows them.
//!
//! ```sh
//! cargo run --release -p selvedge-top --example demo
//! ```
#[path = "../../selvedge/examples/cli/mod.rs"]
mod cli;

use process_scheduler::{
    Backoff, Child, Flow, Inbox, Scheduler, Spawn, Strategy, Supervisor, from_async, from_fn,
};
use selvedge::{Builder, Runtime, SchedulingGroup, spawn_in, sync::Mutex, task, time::sleep};
use selvedge_top::Stalls;
use std::{
    io,
    process::ExitCode,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

const HELP: &str = "\
Runs a shop with four faults, and serves the page that shows them, until Ctrl-C.

Usage: demo [ADDRESS]

ADDRESS  where the page is [127.0.0.1:6060]";

fn main() -> ExitCode {
    cli::run(HELP, |arguments| {
        cli::at_most(&arguments, 1)?;
        let address = arguments.into_iter().next();
        Ok(run(&address.unwrap_or_else(|| "127.0.0.1:6060".into()))?)
    })
}

fn run(address: &str) -> io::Result<()> {
    let stalls = Stalls::new();
    let runtime = Builder::new()
        .workers(2)
        .list_tasks(true)
        .measure_busy(true)
        .stall_reports_per_minute(60)
        .on_stall(stalls.hook())
        .build()?;
    let scheduler = Scheduler::builder().workers(1).build();
    let page = selvedge_top::Builder::new()
        .runtime(runtime.handle())
        .stalls(&stalls)
        .processes("shop", &scheduler.handle())
        .serve(address)?;
    start_bank(&runtime);
    start_connections(&runtime);
    start_reports(&runtime);
    start_groups(&runtime);
    start_shop(&scheduler);
    println!("see http://{}/", page.local_addr());
    runtime.block_on(selvedge::signal::ctrl_c())
}

/// Spawns a task with a name.
#[track_caller]
fn spawn(name: impl Into<String>, future: impl Future<Output = ()> + Send + 'static) {
    drop(task::Builder::new().name(name.into()).spawn(future));
}

/// The books of a bank.
struct Bank {
    ledger: Mutex<i64>,
    journal: Mutex<Vec<i64>>,
}

/// Two tasks need both books.
fn start_bank(runtime: &Runtime) {
    let _entered = runtime.enter();
    let bank = Arc::new(Bank {
        ledger: Mutex::new(0),
        journal: Mutex::new(Vec::new()),
    });
    spawn("transfer", transfer(bank.clone()));
    spawn("audit", audit(bank));
}

async fn transfer(bank: Arc<Bank>) {
    for amount in 1.. {
        let mut ledger = bank.ledger.lock().await;
        *ledger += amount;
        sleep(Duration::from_millis(20)).await;
        bank.journal.lock().await.push(amount);
    }
}

async fn audit(bank: Arc<Bank>) {
    loop {
        let journal = bank.journal.lock().await;
        sleep(Duration::from_millis(20)).await;
        assert_eq!(*bank.ledger.lock().await, journal.iter().sum::<i64>());
    }
}

/// Many tasks wait, as they should.
fn start_connections(runtime: &Runtime) {
    let _entered = runtime.enter();
    for number in 0..500 {
        let pause = Duration::from_millis(500 + number % 50 * 90);
        spawn(format!("connection {number}"), async move {
            loop {
                sleep(pause).await;
            }
        });
    }
}

/// A task writes a report now and then.
fn start_reports(runtime: &Runtime) {
    let _entered = runtime.enter();
    spawn("report", async {
        loop {
            sleep(Duration::from_secs(4)).await;
            write_report();
        }
    });
}

/// Writes to a slow disk.
fn write_report() {
    thread::sleep(Duration::from_millis(400));
}

/// Two groups share the workers.
fn start_groups(runtime: &Runtime) {
    let group = |name, shares| runtime.group(name).shares(shares).build();
    let import = group("import", 1000).expect("0 is no share");
    let search = group("search", 20).expect("0 is no share");
    start_tasks(&import);
    start_tasks(&search);
}

/// Starts tasks that compute, and yield as they should.
fn start_tasks(group: &SchedulingGroup) {
    for number in 0..16 {
        let name = format!("{} {number}", group.name());
        let spawned = spawn_in(group, async move { spawn(name, compute()) });
        drop(spawned.expect("the group is new"));
    }
}

async fn compute() {
    loop {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_micros(200) {
            std::hint::spin_loop();
        }
        selvedge::yield_now().await;
    }
}

/// Processes of a shop, under a supervisor.
fn start_shop(scheduler: &Scheduler) {
    let named = |name: &str, child: Child| child.spawn(Spawn::new().name(name));
    let idle = || Child::new(|| from_fn(|_: u32, _| ()));
    let handle = scheduler.handle();
    let mailer = Child::new(move || {
        let handle = handle.clone();
        from_async(move |_: Inbox<u32>| async move {
            handle.sleep(Duration::from_millis(200)).await;
            Flow::fail("no mail server")
        })
    });
    let often = Duration::from_millis(100);
    let supervisor = Supervisor::new(Strategy::OneForOne)
        .backoff(Backoff::new(often, 1, often))
        .intensity(usize::MAX, Duration::from_secs(1))
        .child(named("orders", idle()))
        .child(named("stock", idle()))
        .child(named("mailer", mailer));
    supervisor.start(scheduler).expect("there is room");
}
