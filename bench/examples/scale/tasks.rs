//! The rows of the runtime: spawns, yields, work, timers, sockets and groups.
use crate::counted::{Counters, print_row};
use futures_lite::{
    future::block_on,
    io::{AsyncReadExt, AsyncWriteExt},
};
use selvedge::{Builder, Runtime, net::TcpListener, time};
use std::{hint::black_box, thread, time::Duration};

const TASKS: u64 = 20_000;
/// The workers of the rows. Each number is a runtime of its own.
pub(crate) const WORKERS: [usize; 4] = [2, 8, 64, 256];
/// Each worker has this many sockets, each with a client.
const CONNECTIONS: u64 = 4;

type Row = (&'static str, fn(&Runtime));

const ROWS: &[Row] = &[
    ("spawn from a task", |runtime| {
        let spawn_all = async {
            let tasks: Vec<_> = (0..TASKS).map(|_| selvedge::spawn(async {})).collect();
            join(tasks).await;
        };
        join_from_outside([runtime.spawn(spawn_all)]);
    }),
    ("spawn from outside", |runtime| {
        let tasks: Vec<_> = (0..TASKS).map(|_| runtime.spawn(async {})).collect();
        join_from_outside(tasks);
    }),
    ("spawn and await", |runtime| {
        let spawn_all = async {
            for _ in 0..TASKS {
                join([selvedge::spawn(async {})]).await;
            }
        };
        join_from_outside([runtime.spawn(spawn_all)]);
    }),
    ("yield, 4 tasks a worker", |runtime| {
        let tasks = 4 * runtime.snapshot().workers;
        let yields = TASKS.div_ceil(tasks);
        let tasks: Vec<_> = (0..tasks)
            .map(|_| runtime.spawn(yield_many(yields)))
            .collect();
        join_from_outside(tasks);
    }),
    ("work of 20 µs from a task", |runtime| {
        let spawn_all = async {
            let work = || (0..20_000_u64).fold(1, |x, i| black_box(x ^ i));
            let spawn = |_| selvedge::spawn(async move { _ = black_box(work()) });
            let tasks: Vec<_> = (0..TASKS / 10).map(spawn).collect();
            join(tasks).await;
        };
        join_from_outside([runtime.spawn(spawn_all)]);
    }),
    ("timer that fires, 1 to 10 ms", |runtime| {
        let spawn_all = async {
            let sleep = |n| time::sleep(Duration::from_micros(1_000 + n % 9_000));
            let spawn = |n| selvedge::spawn(async move { sleep(n).await });
            let tasks: Vec<_> = (0..TASKS / 2).map(spawn).collect();
            join(tasks).await;
        };
        join_from_outside([runtime.spawn(spawn_all)]);
    }),
    ("timeout that is cancelled, 4 tasks a worker", |runtime| {
        let tasks = 4 * runtime.snapshot().workers;
        let yields = TASKS.div_ceil(tasks);
        let timeouts = || async move {
            for _ in 0..yields {
                let timeout = time::timeout(Duration::from_secs(3_600), selvedge::yield_now());
                timeout.await.expect("it takes no hour");
            }
        };
        let tasks: Vec<_> = (0..tasks).map(|_| runtime.spawn(timeouts())).collect();
        join_from_outside(tasks);
    }),
    ("request on a socket, 4 sockets a worker", |runtime| {
        let connections = CONNECTIONS * runtime.snapshot().workers;
        let requests = TASKS.div_ceil(connections);
        let serve_all = async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            let address = listener.local_addr().expect("it is bound");
            let mut tasks = Vec::new();
            for _ in 0..connections {
                let client = selvedge::net::TcpStream::connect(address);
                let mut client = client.await.expect("the listener accepts");
                let (mut server, _) = listener.accept().await.expect("the client connects");
                tasks.push(selvedge::spawn(async move {
                    let mut byte = [0];
                    while server.read_exact(&mut byte).await.is_ok() {
                        server.write_all(&byte).await.expect("the client reads");
                    }
                }));
                tasks.push(selvedge::spawn(async move {
                    let mut byte = [0];
                    for _ in 0..requests {
                        client.write_all(&byte).await.expect("the server reads");
                        client
                            .read_exact(&mut byte)
                            .await
                            .expect("the server writes");
                    }
                }));
            }
            join(tasks).await;
        };
        join_from_outside([runtime.spawn(serve_all)]);
    }),
    #[cfg(feature = "groups")]
    ("yield, four groups, 4 tasks a worker", |runtime| {
        let group = |n| {
            runtime
                .group(format!("group {n}"))
                .build()
                .expect("a new name")
        };
        let groups: Vec<_> = (0..4).map(group).collect();
        let workers = runtime.snapshot().workers;
        let yields = TASKS.div_ceil(4 * workers);
        let spawn_all = async move {
            let mut tasks = Vec::new();
            for _ in 0..workers {
                for group in &groups {
                    let task = selvedge::spawn_in(group, yield_many(yields));
                    tasks.push(task.expect("the group exists"));
                }
            }
            join(tasks).await;
        };
        join_from_outside([runtime.spawn(spawn_all)]);
    }),
];

async fn yield_many(yields: u64) {
    for _ in 0..yields {
        selvedge::yield_now().await;
    }
}

async fn join(tasks: impl IntoIterator<Item = selvedge::JoinHandle<()>>) {
    for task in tasks {
        task.await.expect("it doesn't panic");
    }
}

fn join_from_outside(tasks: impl IntoIterator<Item = selvedge::JoinHandle<()>>) {
    block_on(join(tasks));
}

fn counters(runtime: &Runtime) -> Counters {
    let metrics = runtime.snapshot();
    Counters {
        operations: metrics.polls,
        searches: Some(metrics.searches),
        stolen: metrics.stolen_tasks,
        injected: Some(metrics.injected_tasks),
        parks: metrics.parks,
    }
}

pub(crate) fn print() {
    for (row, run) in ROWS {
        for workers in WORKERS {
            // With more threads than processors, polls stall. A report of each is no use here.
            let builder = Builder::new().workers(workers).prestart().on_stall(|_| ());
            let runtime = builder.build().expect("it starts");
            // After this time all workers sleep.
            thread::sleep(Duration::from_millis(100));
            print_row(row, workers, || counters(&runtime), || run(&runtime));
        }
    }
}
