//! The workloads on our own crate, `process-scheduler`.
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

/// A message of a ring, or of a pair that plays ping-pong.
enum Message {
    /// The process to which the receiver passes tokens.
    Next(Address<Message>),
    /// A token, with the number of hops that are left.
    Token(usize),
}

/// The time limit of a call, which is never reached.
const CALL_LIMIT: Duration = Duration::from_secs(60);

impl Peer for Ours {
    fn ring(processes: usize, tokens: usize, hops: usize) -> Option<Duration> {
        let scheduler = scheduler();
        let (done, ended) = mpsc::channel();
        let ring: Vec<_> = (0..processes)
            .map(|_| {
                let (done, mut next) = (done.clone(), None::<Address<Message>>);
                let process =
                    scheduler.spawn_fn(move |message: Message, _| match (message, &next) {
                        (Message::Next(address), _) => next = Some(address),
                        (Message::Token(0), _) => done.send(()).unwrap(),
                        // A ring that ends drops its tokens.
                        (Message::Token(left), Some(next)) => {
                            drop(next.try_send(Message::Token(left - 1)));
                        }
                        (Message::Token(_), None) => {}
                    });
                process.unwrap()
            })
            .collect();
        for i in 0..processes {
            let next = ring[(i + 1) % processes].clone();
            ring[i].try_send(Message::Next(next)).ok()?;
        }
        let start = Instant::now();
        for token in 0..tokens {
            let first = token * processes / tokens;
            ring[first].try_send(Message::Token(hops)).ok()?;
        }
        assert_eq!(ended.iter().take(tokens).count(), tokens);
        Some(start.elapsed())
    }

    fn pingpong(pairs: usize, trips: usize) -> Option<Duration> {
        let scheduler = scheduler();
        let (done, ended) = mpsc::channel();
        let players: Vec<_> = (0..pairs)
            .map(|_| {
                let (ping_done, pong_done) = (done.clone(), done.clone());
                let mut pong = None::<Address<Message>>;
                let ping = scheduler.spawn_fn(move |message: Message, _| match (message, &pong) {
                    (Message::Next(address), _) => pong = Some(address),
                    (Message::Token(0), _) => ping_done.send(()).unwrap(),
                    // A pair that ends drops its token.
                    (Message::Token(left), Some(pong)) => {
                        drop(pong.try_send(Message::Token(left - 1)));
                    }
                    (Message::Token(_), None) => {}
                });
                let ping = ping.unwrap();
                let player = ping.clone();
                let pong = scheduler.spawn_fn(move |message: Message, _| match message {
                    Message::Token(0) => pong_done.send(()).unwrap(),
                    Message::Token(left) => drop(ping.try_send(Message::Token(left - 1))),
                    Message::Next(_) => {}
                });
                player.try_send(Message::Next(pong.unwrap())).ok().unwrap();
                player
            })
            .collect();
        let start = Instant::now();
        for player in &players {
            player.try_send(Message::Token(2 * trips)).ok()?;
        }
        assert_eq!(ended.iter().take(pairs).count(), pairs);
        Some(start.elapsed())
    }

    fn spawn(processes: usize) -> Option<Duration> {
        let scheduler = scheduler();
        let (done, ended) = mpsc::channel();
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
        ended.recv().unwrap();
        Some(start.elapsed())
    }

    fn fanin(senders: usize, each: usize) -> Option<Duration> {
        let scheduler = scheduler();
        let (done, ended) = mpsc::channel();
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
        ended.recv().unwrap();
        Some(start.elapsed())
    }

    fn call(calls: usize) -> Option<Duration> {
        let scheduler = scheduler();
        let server = scheduler.spawn_fn(|(n, reply): (usize, Reply<usize>), _| {
            // An error says that the client waits no longer.
            let _ = reply.send(n + 1);
        });
        let server = server.unwrap();
        let (done, ended) = mpsc::channel();
        let client = scheduler.spawn_async(move |mut inbox: Inbox<()>| async move {
            inbox.receive().await;
            for n in 0..calls {
                let answer = server.call(|reply| (n, reply), CALL_LIMIT).await;
                assert_eq!(answer, Ok(n + 1));
            }
            done.send(()).unwrap();
        });
        let start = Instant::now();
        client.unwrap().try_send(()).unwrap();
        ended.recv().unwrap();
        Some(start.elapsed())
    }

    fn fanin_bounded(senders: usize, each: usize, room: usize) -> Option<Duration> {
        let scheduler = scheduler();
        let (done, ended) = mpsc::channel();
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
        ended.recv().unwrap();
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
