//! The workloads on actix. All actors run on one thread, as actix's `Context` demands.
use crate::{Peer, heap};
use actix::{Actor, ActorContext, Addr, Context, Handler, Message, System};
use std::{
    sync::mpsc,
    time::{Duration, Instant},
};

pub struct Actix;

/// The actor of all workloads.
struct Node {
    done: mpsc::Sender<()>,
    /// The actor to which this one sends.
    next: Option<Addr<Node>>,
    /// The number of items after which this actor is done.
    items_left: usize,
}

#[derive(Clone)]
enum NodeMessage {
    /// Sets the actor to which the receiver sends.
    Next(Addr<Node>),
    /// A token, with the number of hops that are left.
    Token(usize),
    Item,
    /// Has the receiver send this number of items.
    SendItems(usize),
    Stop,
}

impl Message for NodeMessage {
    type Result = ();
}

/// A request that is answered by the next number.
struct Increment(usize);

impl Message for Increment {
    type Result = usize;
}

impl Actor for Node {
    type Context = Context<Self>;

    fn started(&mut self, cx: &mut Self::Context) {
        cx.set_mailbox_capacity(0);
    }
}

impl Handler<NodeMessage> for Node {
    type Result = ();

    fn handle(&mut self, message: NodeMessage, cx: &mut Self::Context) {
        match (message, &self.next) {
            (NodeMessage::Next(next), _) => self.next = Some(next),
            (NodeMessage::Token(0), _) => self.done.send(()).unwrap(),
            (NodeMessage::Token(left), Some(next)) => next.do_send(NodeMessage::Token(left - 1)),
            (NodeMessage::Item, _) => {
                self.items_left -= 1;
                if self.items_left == 0 {
                    self.done.send(()).unwrap();
                }
            }
            (NodeMessage::SendItems(n), Some(sink)) => {
                (0..n).for_each(|_| sink.do_send(NodeMessage::Item))
            }
            (NodeMessage::Stop, _) => {
                self.done.send(()).unwrap();
                cx.stop();
            }
            _ => {}
        }
    }
}

impl Handler<Increment> for Node {
    type Result = usize;

    fn handle(&mut self, Increment(n): Increment, _: &mut Self::Context) -> usize {
        n + 1
    }
}

fn node(done: &mpsc::Sender<()>, next: Option<Addr<Node>>, items_left: usize) -> Addr<Node> {
    let done = done.clone();
    Node {
        done,
        next,
        items_left,
    }
    .start()
}

/// Yields to the actors until they have sent `count` times to `ended`.
async fn wait_for(ended: mpsc::Receiver<()>, mut count: usize) {
    while count > 0 {
        count -= ended.try_iter().count();
        tokio::task::yield_now().await;
    }
}

impl Peer for Actix {
    fn ring(processes: usize, tokens: usize, hops: usize) -> Option<Duration> {
        System::new().block_on(async {
            let (done, ended) = mpsc::channel();
            let ring: Vec<_> = (0..processes).map(|_| node(&done, None, 0)).collect();
            for i in 0..processes {
                ring[i].do_send(NodeMessage::Next(ring[(i + 1) % processes].clone()));
            }
            let start = Instant::now();
            for i in 0..tokens {
                ring[i * processes / tokens].do_send(NodeMessage::Token(hops));
            }
            wait_for(ended, tokens).await;
            Some(start.elapsed())
        })
    }

    fn pingpong(pairs: usize, trips: usize) -> Option<Duration> {
        System::new().block_on(async {
            let (done, ended) = mpsc::channel();
            let mut players = Vec::new();
            for _ in 0..pairs {
                let ping = node(&done, None, 0);
                let pong = node(&done, Some(ping.clone()), 0);
                ping.do_send(NodeMessage::Next(pong));
                players.push(ping);
            }
            let start = Instant::now();
            players
                .iter()
                .for_each(|player| player.do_send(NodeMessage::Token(2 * trips)));
            wait_for(ended, pairs).await;
            Some(start.elapsed())
        })
    }

    fn spawn(processes: usize) -> Option<Duration> {
        System::new().block_on(async {
            let (done, ended) = mpsc::channel();
            let start = Instant::now();
            for _ in 0..processes {
                node(&done, None, 0).do_send(NodeMessage::Stop);
            }
            wait_for(ended, processes).await;
            Some(start.elapsed())
        })
    }

    fn fanin(senders: usize, each: usize) -> Option<Duration> {
        System::new().block_on(async {
            let (done, ended) = mpsc::channel();
            let sink = node(&done, None, senders * each);
            let senders: Vec<_> = (0..senders)
                .map(|_| node(&done, Some(sink.clone()), 0))
                .collect();
            let start = Instant::now();
            senders
                .iter()
                .for_each(|sender| sender.do_send(NodeMessage::SendItems(each)));
            wait_for(ended, 1).await;
            Some(start.elapsed())
        })
    }

    fn call(calls: usize) -> Option<Duration> {
        System::new().block_on(async {
            let (done, _ended) = mpsc::channel();
            let server = node(&done, None, 0);
            let start = Instant::now();
            for n in 0..calls {
                assert_eq!(server.send(Increment(n)).await, Ok(n + 1));
            }
            Some(start.elapsed())
        })
    }

    fn idle(processes: usize) -> Option<u64> {
        System::new().block_on(async {
            let (done, _ended) = mpsc::channel();
            let before = heap()?;
            let all: Vec<_> = (0..processes).map(|_| node(&done, None, 0)).collect();
            // Waits until all actors have started.
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
            let own = size_of_val(&*all) as u64;
            Some(heap()?.saturating_sub(before + own))
        })
    }
}
