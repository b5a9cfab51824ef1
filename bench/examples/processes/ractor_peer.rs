//! ractor, on tokio.
use crate::{Peer, heap};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc,
    },
    time::{Duration, Instant},
};

pub struct Ractor;

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

enum Message {
    Next(ActorRef<Message>),
    Token(usize),
    Ask(usize, RpcReplyPort<usize>),
}

/// An actor that passes tokens on and answers [`Message::Ask`].
struct Node(mpsc::Sender<()>);

impl Actor for Node {
    type Msg = Message;
    type State = Option<ActorRef<Message>>;
    type Arguments = ();

    async fn pre_start(
        &self,
        _: ActorRef<Message>,
        (): (),
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(None)
    }

    async fn handle(
        &self,
        _: ActorRef<Message>,
        message: Message,
        next: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match (message, next) {
            (Message::Next(actor), next) => *next = Some(actor),
            (Message::Token(0), _) => self.0.send(()).unwrap(),
            (Message::Token(left), Some(next)) => drop(next.cast(Message::Token(left - 1))),
            (Message::Ask(n, reply), _) => drop(reply.send(n + 1)),
            _ => {}
        }
        Ok(())
    }
}

/// An actor that ends after its first message.
struct Short(Arc<AtomicUsize>, mpsc::Sender<()>);

impl Actor for Short {
    type Msg = ();
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<()>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        me: ActorRef<()>,
        (): (),
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        if self.0.fetch_sub(1, Relaxed) == 1 {
            self.1.send(()).unwrap();
        }
        me.stop(None);
        Ok(())
    }
}

struct Sink(mpsc::Sender<()>);

impl Actor for Sink {
    type Msg = usize;
    type State = usize;
    type Arguments = usize;

    async fn pre_start(&self, _: ActorRef<usize>, n: usize) -> Result<usize, ActorProcessingErr> {
        Ok(n)
    }

    async fn handle(
        &self,
        _: ActorRef<usize>,
        _: usize,
        left: &mut usize,
    ) -> Result<(), ActorProcessingErr> {
        *left -= 1;
        if *left == 0 {
            self.0.send(()).unwrap();
        }
        Ok(())
    }
}

struct Sender(ActorRef<usize>);

impl Actor for Sender {
    type Msg = usize;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<usize>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        _: ActorRef<usize>,
        n: usize,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        (0..n).for_each(|n| self.0.cast(n).unwrap());
        Ok(())
    }
}

async fn spawn_nodes(n: usize, done: &mpsc::Sender<()>) -> Vec<ActorRef<Message>> {
    let mut nodes = Vec::new();
    for _ in 0..n {
        nodes.push(Actor::spawn(None, Node(done.clone()), ()).await.unwrap().0);
    }
    nodes
}

impl Peer for Ractor {
    fn ring(processes: usize, tokens: usize, hops: usize) -> Option<Duration> {
        let runtime = runtime();
        let (done, ended) = mpsc::channel();
        let ring = runtime.block_on(spawn_nodes(processes, &done));
        for i in 0..processes {
            ring[i]
                .cast(Message::Next(ring[(i + 1) % processes].clone()))
                .ok()?;
        }
        let start = Instant::now();
        for i in 0..tokens {
            ring[i * processes / tokens]
                .cast(Message::Token(hops))
                .ok()?;
        }
        assert_eq!(ended.iter().take(tokens).count(), tokens);
        Some(start.elapsed())
    }

    fn pingpong(pairs: usize, trips: usize) -> Option<Duration> {
        let runtime = runtime();
        let (done, ended) = mpsc::channel();
        let players = runtime.block_on(spawn_nodes(2 * pairs, &done));
        for i in 0..2 * pairs {
            players[i]
                .cast(Message::Next(players[i ^ 1].clone()))
                .ok()?;
        }
        let start = Instant::now();
        for i in 0..pairs {
            players[2 * i].cast(Message::Token(2 * trips)).ok()?;
        }
        assert_eq!(ended.iter().take(pairs).count(), pairs);
        Some(start.elapsed())
    }

    fn spawn(processes: usize) -> Option<Duration> {
        let runtime = runtime();
        let (done, ended) = mpsc::channel();
        let left = Arc::new(AtomicUsize::new(processes));
        let start = Instant::now();
        runtime.spawn(async move {
            for _ in 0..processes {
                let short = Short(left.clone(), done.clone());
                let (actor, _) = Actor::spawn(None, short, ()).await.unwrap();
                actor.cast(()).unwrap();
            }
        });
        ended.recv().unwrap();
        Some(start.elapsed())
    }

    fn fanin(senders: usize, each: usize) -> Option<Duration> {
        let runtime = runtime();
        let (done, ended) = mpsc::channel();
        let senders = runtime.block_on(async {
            let sink = Actor::spawn(None, Sink(done), senders * each)
                .await
                .unwrap()
                .0;
            let mut spawned = Vec::new();
            for _ in 0..senders {
                spawned.push(
                    Actor::spawn(None, Sender(sink.clone()), ())
                        .await
                        .unwrap()
                        .0,
                );
            }
            spawned
        });
        let start = Instant::now();
        senders.iter().for_each(|sender| sender.cast(each).unwrap());
        ended.recv().unwrap();
        Some(start.elapsed())
    }

    fn call(calls: usize) -> Option<Duration> {
        let runtime = runtime();
        let (done, _ended) = mpsc::channel();
        let server = runtime.block_on(spawn_nodes(1, &done)).remove(0);
        let start = Instant::now();
        let client = runtime.spawn(async move {
            for n in 0..calls {
                let limit = Some(Duration::from_secs(60));
                let answer = server.call(|reply| Message::Ask(n, reply), limit).await;
                assert_eq!(answer.unwrap().unwrap(), n + 1);
            }
        });
        runtime.block_on(client).unwrap();
        Some(start.elapsed())
    }

    fn idle(processes: usize) -> Option<u64> {
        let runtime = runtime();
        let (done, _ended) = mpsc::channel();
        let before = heap()?;
        let all = runtime.block_on(spawn_nodes(processes, &done));
        let own = size_of_val(&*all) as u64;
        Some(heap()?.saturating_sub(before + own))
    }
}
