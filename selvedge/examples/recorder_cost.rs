//! Measures the part of the time that a flight recorder takes, by three loads: tasks that do
//! nothing are spawned and joined, two tasks wake each other, and bytes are echoed on sockets.
//!
//! `cargo run --release -p selvedge --features recorder --example recorder_cost` prints, for each
//! load, the nanoseconds of an operation without and with a flight recorder, and the medians of the
//! ratios of their wall times and processor times. The recorder of one runtime is off and on in
//! turns of 120 ms, and each round swaps their order. With `--null` it is off in all turns, which
//! shows how far the machine's noise goes.
mod cli;

use selvedge::{
    Builder, Runtime,
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    spawn,
    sync::Notify,
};
use std::{
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

const HELP: &str = "\
Measures how much of the time a flight recorder takes.

Usage: recorder_cost [ROUNDS] [WORKERS] [--null]

ROUNDS   the rounds of each load [15]
WORKERS  the workers of the runtime [1]
--null   the recorder is always off";

const TURN: Duration = Duration::from_millis(120);
const KEEP: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    cli::run(HELP, |mut arguments| {
        let all = arguments.len();
        arguments.retain(|argument| argument != "--null");
        let is_null = arguments.len() < all;
        cli::at_most(&arguments, 2)?;
        let number = |at: usize, default: usize| match arguments.get(at) {
            None => Ok(default),
            Some(text) => text
                .parse()
                .ok()
                .filter(|number| *number > 0)
                .ok_or_else(|| cli::Usage(format!("a number above 0, not {text:?}"))),
        };
        let (rounds, workers) = (number(0, 15)?, number(1, 1)?);
        let builder = Builder::new().workers(workers).flight_recorder(KEEP);
        let runtime = builder.build()?;
        println!(
            "{:>10} {:>9} {:>9} {:>6} {:>6}",
            "", "ns without", "with", "wall", "CPU"
        );
        for load in [Load::Spawn, Load::PingPong, Load::Echo] {
            load.compare(&runtime, rounds, is_null);
        }
        Ok(())
    })
}

#[derive(Clone, Copy, Debug)]
enum Load {
    Spawn,
    PingPong,
    Echo,
}

/// Wall and processor time of an operation, in nanoseconds.
type Cost = (f64, f64);

impl Load {
    fn compare(self, runtime: &Runtime, rounds: usize, is_null: bool) {
        let tracer = runtime.handle().trace();
        let (mut costs, mut ratios) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        // The first round warms up.
        for round in 0..=rounds {
            let mut cost = [(0.0, 0.0); 2];
            for turn in 0..2 {
                let with = (turn + round) % 2;
                match with == 1 && !is_null {
                    true => tracer.start(),
                    false => tracer.stop(),
                }
                cost[with] = self.sample(runtime);
            }
            if round > 0 {
                let [without, with] = cost;
                costs[0].push(without.0);
                costs[1].push(with.0);
                ratios[0].push(with.0 / without.0);
                ratios[1].push(with.1 / without.1);
            }
        }
        let ([without, with], [wall, cpu]) = (costs.map(median), ratios.map(median));
        let name = format!("{self:?}");
        println!("{name:>10} {without:>9.1} {with:>9.1} {wall:>6.3} {cpu:>6.3}");
    }

    fn sample(self, runtime: &Runtime) -> Cost {
        let (begun, cpu) = (Instant::now(), processor_time());
        let until = begun + TURN;
        let load = async move {
            match self {
                Self::Spawn => spawn_and_join(until).await,
                Self::PingPong => ping_pong(until).await,
                Self::Echo => echo(until).await,
            }
        };
        let operations = runtime.block_on(runtime.spawn(load)).unwrap() as f64;
        let wall = begun.elapsed().as_nanos() as f64;
        (wall / operations, (processor_time() - cpu) / operations)
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns the processor time of this process in nanoseconds.
#[cfg(unix)]
fn processor_time() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for a write.
    let read = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    assert_eq!(read, 0, "each process has this clock");
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// The system does not tell.
#[cfg(not(unix))]
fn processor_time() -> f64 {
    0.0
}

async fn spawn_and_join(until: Instant) -> u64 {
    let mut operations = 0;
    while Instant::now() < until {
        let tasks: Vec<_> = (0..200).map(|_| spawn(async {})).collect();
        for task in tasks {
            task.await.unwrap();
        }
        operations += 200;
    }
    operations
}

async fn ping_pong(until: Instant) -> u64 {
    let (ping, pong) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let other = spawn({
        let (ping, pong) = (ping.clone(), pong.clone());
        async move {
            loop {
                ping.notified().await;
                pong.notify_one();
            }
        }
    });
    let mut operations = 0;
    while Instant::now() < until {
        for _ in 0..100 {
            ping.notify_one();
            pong.notified().await;
        }
        operations += 100;
    }
    other.abort();
    operations
}

/// Echoes 64 bytes on each of eight connections. The clients are tasks, too.
async fn echo(until: Instant) -> u64 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            drop(spawn(async move {
                let mut bytes = [0; 64];
                while socket.read_exact(&mut bytes).await.is_ok()
                    && socket.write_all(&bytes).await.is_ok()
                {}
            }));
        }
    });
    let client = || async move {
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.set_nodelay(true).unwrap();
        let (mut operations, mut bytes) = (0, [7; 64]);
        while Instant::now() < until {
            for _ in 0..10 {
                socket.write_all(&bytes).await.unwrap();
                socket.read_exact(&mut bytes).await.unwrap();
            }
            operations += 10;
        }
        operations
    };
    let clients: Vec<_> = (0..8).map(|_| spawn(client())).collect();
    let mut operations = 0;
    for client in clients {
        operations += client.await.unwrap();
    }
    server.abort();
    operations
}
