//! actix. All actors run on one thread, as actix's `Context` demands.
use crate::{Peer, heap};
use actix::{Actor, ActorContext, Addr, Context, Handler, Message, System};
use std::{
    sync::mpsc,
    time::{Duration, Instant},
};

pub struct Actix;

struct Node {
    done: mpsc::Sender<()>,
    next: Option<Addr<Node>>,
    left: usize,
}

#[derive(Clone)]
enum Say {
    Next(Addr<Node>),
    Token(usize),
    Item,
    Send(usize),
    Stop,
}

impl Message for Say {
    type Result = ();
}

struct Ask(usize);

impl Message for Ask {
    type Result = usize;
}

impl Actor for Node {
    type Context = Context<Self>;

    fn started(&mut self, cx: &mut Self::Context) {
        cx.set_mailbox_capacity(0);
    }
}

impl Handler<Say> for Node {
    type Result = ();

    fn handle(&mut self, message: Say, cx: &mut Self::Context) {
        match (message, &self.next) {
            (Say::Next(next), _) => self.next = Some(next),
            (Say::Token(0), _) => self.done.send(()).unwrap(),
            (Say::Token(left), Some(next)) => next.do_send(Say::Token(left - 1)),
            (Say::Item, _) => {
                self.left -= 1;
                if self.left == 0 {
                    self.done.send(()).unwrap();
                }
            }
            (Say::Send(n), Some(sink)) => (0..n).for_each(|_| sink.do_send(Say::Item)),
            (Say::Stop, _) => {
                self.done.send(()).unwrap();
                cx.stop();
            }
            _ => {}
        }
    }
}

impl Handler<Ask> for Node {
    type Result = usize;

    fn handle(&mut self, Ask(n): Ask, _: &mut Self::Context) -> usize {
        n + 1
    }
}

fn node(done: &mpsc::Sender<()>, next: Option<Addr<Node>>, left: usize) -> Addr<Node> {
    let done = done.clone();
    Node { done, next, left }.start()
}

/// Yields to the actors until they have sent `n` times by `done`.
async fn until(done: mpsc::Receiver<()>, mut n: usize) {
    while n > 0 {
        n -= done.try_iter().count();
        tokio::task::yield_now().await;
    }
}

impl Peer for Actix {
    fn ring(processes: usize, tokens: usize, hops: usize) -> Option<Duration> {
        System::new().block_on(async {
            let (done, all) = mpsc::channel();
            let ring: Vec<_> = (0..processes).map(|_| node(&done, None, 0)).collect();
            for i in 0..processes {
                ring[i].do_send(Say::Next(ring[(i + 1) % processes].clone()));
            }
            let start = Instant::now();
            for i in 0..tokens {
                ring[i * processes / tokens].do_send(Say::Token(hops));
            }
            until(all, tokens).await;
            Some(start.elapsed())
        })
    }

    fn pingpong(pairs: usize, trips: usize) -> Option<Duration> {
        System::new().block_on(async {
            let (done, all) = mpsc::channel();
            let mut players = Vec::new();
            for _ in 0..pairs {
                let a = node(&done, None, 0);
                let b = node(&done, Some(a.clone()), 0);
                a.do_send(Say::Next(b));
                players.push(a);
            }
            let start = Instant::now();
            players
                .iter()
                .for_each(|a| a.do_send(Say::Token(2 * trips)));
            until(all, pairs).await;
            Some(start.elapsed())
        })
    }

    fn spawn(processes: usize) -> Option<Duration> {
        System::new().block_on(async {
            let (done, all) = mpsc::channel();
            let start = Instant::now();
            for _ in 0..processes {
                node(&done, None, 0).do_send(Say::Stop);
            }
            until(all, processes).await;
            Some(start.elapsed())
        })
    }

    fn fanin(senders: usize, each: usize) -> Option<Duration> {
        System::new().block_on(async {
            let (done, all) = mpsc::channel();
            let sink = node(&done, None, senders * each);
            let senders: Vec<_> = (0..senders)
                .map(|_| node(&done, Some(sink.clone()), 0))
                .collect();
            let start = Instant::now();
            senders.iter().for_each(|s| s.do_send(Say::Send(each)));
            until(all, 1).await;
            Some(start.elapsed())
        })
    }

    fn call(calls: usize) -> Option<Duration> {
        System::new().block_on(async {
            let (done, _all) = mpsc::channel();
            let server = node(&done, None, 0);
            let start = Instant::now();
            for n in 0..calls {
                assert_eq!(server.send(Ask(n)).await, Ok(n + 1));
            }
            Some(start.elapsed())
        })
    }

    fn idle(processes: usize) -> Option<u64> {
        System::new().block_on(async {
            let (done, _all) = mpsc::channel();
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
