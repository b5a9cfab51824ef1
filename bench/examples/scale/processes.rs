//! The rows of the process scheduler: spawns, messages and calls.
use crate::{
    counted::{Counters, print_row},
    tasks::WORKERS,
};
use process_scheduler::{Address, Flow, Inbox, Reply, Scheduler};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::Duration,
};

const PROCESSES: u64 = 20_000;
/// The number of processes in the ring for each worker. Half of them hold a token at first.
const RING_PER_WORKER: usize = 8;

type Row = (&'static str, fn(&Scheduler));

const ROWS: &[Row] = &[
    ("process that gets a message and ends", |scheduler| {
        let (done, ended) = mpsc::channel();
        let left = Arc::new(AtomicU64::new(PROCESSES));
        let handle = scheduler.handle();
        let spawner = scheduler.spawn_fn(move |(), _| {
            for _ in 0..PROCESSES {
                let (done, left) = (done.clone(), left.clone());
                let process = handle.spawn_fn(move |(), _| {
                    // Ordering: Relaxed, the channel orders the rest.
                    if left.fetch_sub(1, Relaxed) == 1 {
                        done.send(()).expect("the row waits");
                    }
                    Flow::Stop
                });
                let process = process.expect("there is room");
                process.try_send(()).expect("it takes one message");
            }
        });
        let spawner = spawner.expect("there is room");
        spawner.try_send(()).expect("it takes one message");
        ended.recv().expect("the last process sends");
    }),
    ("message in a ring, 4 tokens a worker", |scheduler| {
        let processes = RING_PER_WORKER * scheduler.metrics().workers;
        let tokens = processes / 2;
        let hops = PROCESSES / tokens as u64;
        let (done, ended) = mpsc::channel();
        let process = |_| {
            let (done, mut next) = (done.clone(), None::<Address<Message>>);
            let process = scheduler.spawn_fn(move |message, _| match (message, &next) {
                (Message::Next(address), _) => next = Some(address),
                (Message::Token(0), _) => done.send(()).expect("the row waits"),
                (Message::Token(left), Some(next)) => {
                    let sent = next.try_send(Message::Token(left - 1));
                    sent.ok().expect("the ring lives");
                }
                (Message::Token(_), None) => unreachable!("each process gets its next one first"),
            });
            process.expect("there is room")
        };
        let ring: Vec<_> = (0..processes).map(process).collect();
        for (index, process) in ring.iter().enumerate() {
            let next = ring[(index + 1) % processes].clone();
            process
                .try_send(Message::Next(next))
                .ok()
                .expect("it lives");
        }
        for process in ring.iter().step_by(2) {
            process
                .try_send(Message::Token(hops))
                .ok()
                .expect("it lives");
        }
        assert_eq!(ended.iter().take(tokens).count(), tokens);
    }),
    ("call, one client a worker", |scheduler| {
        let clients = scheduler.metrics().workers;
        let calls = PROCESSES / clients as u64;
        let (done, ended) = mpsc::channel();
        for _ in 0..clients {
            let server = scheduler.spawn_fn(|(n, reply): (u64, Reply<u64>), _| {
                // An error says that the client waits no longer.
                let _ = reply.send(n + 1);
            });
            let server = server.expect("there is room");
            let done = done.clone();
            let client = scheduler.spawn_async(move |mut inbox: Inbox<()>| async move {
                inbox.receive().await;
                for n in 0..calls {
                    let answer = server.call(|reply| (n, reply), Duration::from_secs(60));
                    assert_eq!(answer.await, Ok(n + 1));
                }
                done.send(()).expect("the row waits");
            });
            let client = client.expect("there is room");
            client.try_send(()).expect("it takes one message");
        }
        assert_eq!(ended.iter().take(clients).count(), clients);
    }),
];

enum Message {
    /// The process to which the receiver passes tokens.
    Next(Address<Message>),
    /// A token, with the number of hops that are left.
    Token(u64),
}

fn counters(scheduler: &Scheduler) -> Counters {
    let metrics = scheduler.metrics();
    Counters {
        operations: metrics.delivered,
        searches: None,
        stolen: metrics.steals,
        injected: None,
        parks: metrics.parks,
    }
}

pub(crate) fn print() {
    for (row, run) in ROWS {
        for workers in WORKERS {
            let scheduler = Scheduler::builder().workers(workers).build();
            // The workers fall asleep within this time, so the row does not count that.
            thread::sleep(Duration::from_millis(100));
            print_row(row, workers, || counters(&scheduler), || run(&scheduler));
        }
    }
}
