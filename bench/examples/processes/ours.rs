//! Our own crate, `process-scheduler`.
use crate::{Peer, heap};
use process_scheduler::{Address, Flow, Inbox, Mailbox, Reply, Scheduler, Spawn};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc,
    },
    time::{Duration, Instant},
};

pub struct Ours;

fn scheduler() -> Scheduler {
    Scheduler::builder().workers(2).build()
}

enum Ring {
    Next(Address<Ring>),
    Token(usize),
}

const LONG: Duration = Duration::from_secs(60);

impl Peer for Ours {
    fn ring(processes: usize, tokens: usize, hops: usize) -> Option<Duration> {
        let scheduler = scheduler();
        let (done, all) = mpsc::channel();
        let ring: Vec<_> = (0..processes)
            .map(|_| {
                let (done, mut to) = (done.clone(), None::<Address<Ring>>);
                let process = scheduler.spawn_fn(move |message: Ring, _| match (message, &to) {
                    (Ring::Next(address), _) => to = Some(address),
                    (Ring::Token(0), _) => done.send(()).unwrap(),
                    (Ring::Token(left), Some(to)) => drop(to.try_send(Ring::Token(left - 1))),
                    _ => {}
                });
                process.unwrap()
            })
            .collect();
        for i in 0..processes {
            let next = ring[(i + 1) % processes].clone();
            ring[i].try_send(Ring::Next(next)).ok()?;
        }
        let start = Instant::now();
        for i in 0..tokens {
            let at = i * processes / tokens;
            ring[at].try_send(Ring::Token(hops)).ok()?;
        }
        assert_eq!(all.iter().take(tokens).count(), tokens);
        Some(start.elapsed())
    }

    fn pingpong(pairs: usize, trips: usize) -> Option<Duration> {
        let scheduler = scheduler();
        let (done, all) = mpsc::channel();
        let players: Vec<_> = (0..pairs)
            .map(|_| {
                let (one, other) = (done.clone(), done.clone());
                let mut to = None::<Address<Ring>>;
                let a = scheduler.spawn_fn(move |message: Ring, _| match (message, &to) {
                    (Ring::Next(address), _) => to = Some(address),
                    (Ring::Token(0), _) => one.send(()).unwrap(),
                    (Ring::Token(left), Some(to)) => drop(to.try_send(Ring::Token(left - 1))),
                    _ => {}
                });
                let a = a.unwrap();
                let to = a.clone();
                let b = scheduler.spawn_fn(move |message: Ring, _| match message {
                    Ring::Token(0) => other.send(()).unwrap(),
                    Ring::Token(left) => drop(to.try_send(Ring::Token(left - 1))),
                    Ring::Next(_) => {}
                });
                a.try_send(Ring::Next(b.unwrap())).ok().unwrap();
                a
            })
            .collect();
        let start = Instant::now();
        for player in &players {
            player.try_send(Ring::Token(2 * trips)).ok()?;
        }
        assert_eq!(all.iter().take(pairs).count(), pairs);
        Some(start.elapsed())
    }

    fn spawn(processes: usize) -> Option<Duration> {
        let scheduler = scheduler();
        let (done, all) = mpsc::channel();
        let left = Arc::new(AtomicUsize::new(processes));
        let handle = scheduler.handle();
        let spawner = scheduler.spawn_fn(move |n: usize, _| {
            for _ in 0..n {
                let (done, left) = (done.clone(), left.clone());
                let process = handle.spawn_fn(move |(), _| {
                    if left.fetch_sub(1, Relaxed) == 1 {
                        done.send(()).unwrap();
                    }
                    Flow::Stop
                });
                process.unwrap().try_send(()).unwrap();
            }
        });
        let start = Instant::now();
        spawner.unwrap().try_send(processes).unwrap();
        all.recv().unwrap();
        Some(start.elapsed())
    }

    fn fanin(senders: usize, each: usize) -> Option<Duration> {
        let scheduler = scheduler();
        let (done, all) = mpsc::channel();
        let mut left = senders * each;
        let sink = scheduler.spawn_fn(move |_: usize, _| {
            left -= 1;
            if left == 0 {
                done.send(()).unwrap();
            }
        });
        let sink = sink.unwrap();
        let senders: Vec<_> = (0..senders)
            .map(|_| {
                let sink = sink.clone();
                let sender = scheduler.spawn_fn(move |n: usize, _| {
                    (0..n).for_each(|n| sink.try_send(n).unwrap());
                });
                sender.unwrap()
            })
            .collect();
        let start = Instant::now();
        senders
            .iter()
            .for_each(|sender| sender.try_send(each).unwrap());
        all.recv().unwrap();
        Some(start.elapsed())
    }

    fn call(calls: usize) -> Option<Duration> {
        let scheduler = scheduler();
        let server = scheduler.spawn_fn(|(n, reply): (usize, Reply<usize>), _| {
            let _ = reply.send(n + 1);
        });
        let server = server.unwrap();
        let (done, all) = mpsc::channel();
        let client = scheduler.spawn_async(move |mut inbox: Inbox<()>| async move {
            inbox.receive().await;
            for n in 0..calls {
                let answer = server.call(|reply| (n, reply), LONG).await;
                assert_eq!(answer, Ok(n + 1));
            }
            done.send(()).unwrap();
        });
        let start = Instant::now();
        client.unwrap().try_send(()).unwrap();
        all.recv().unwrap();
        Some(start.elapsed())
    }

    fn fanin_bounded(senders: usize, each: usize, room: usize) -> Option<Duration> {
        let scheduler = scheduler();
        let (done, all) = mpsc::channel();
        let mut left = senders * each;
        let spawn = Spawn::new().mailbox(Mailbox::Bounded(room));
        let sink = scheduler.spawn_with(spawn, move |_: usize, _| {
            left -= 1;
            if left == 0 {
                done.send(()).unwrap();
            }
        });
        let sink = sink.unwrap();
        let senders: Vec<_> = (0..senders)
            .map(|_| {
                let sink = sink.clone();
                let sender = scheduler.spawn_async(move |mut inbox: Inbox<usize>| async move {
                    let each = inbox.receive().await.unwrap_or(0);
                    for n in 0..each {
                        sink.send(n).await.unwrap();
                    }
                });
                sender.unwrap()
            })
            .collect();
        let start = Instant::now();
        senders
            .iter()
            .for_each(|sender| sender.try_send(each).unwrap());
        all.recv().unwrap();
        Some(start.elapsed())
    }

    fn idle(processes: usize) -> Option<u64> {
        let scheduler = scheduler();
        let before = heap()?;
        let all: Vec<_> = (0..processes)
            .map(|_| scheduler.spawn_fn(|_: usize, _| ()).unwrap())
            .collect();
        let own = size_of_val(&*all) as u64;
        Some(heap()?.saturating_sub(before + own))
    }
}
