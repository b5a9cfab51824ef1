//! kameo, on tokio. The mailboxes are unbounded, except that of the sink in `fanin_bounded`.
use crate::{Peer, heap, ractor_peer::runtime};
use kameo::{
    Actor,
    actor::{ActorRef, Spawn as _},
    error::Infallible,
    mailbox,
    message::{Context, Message},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc,
    },
    time::{Duration, Instant},
};

pub struct Kameo;

struct Node {
    done: mpsc::Sender<()>,
    next: Option<ActorRef<Node>>,
    left: usize,
}

struct Next(ActorRef<Node>);
struct Token(usize);
struct Ask(usize);
struct Item;
struct SendAll(usize);
struct SendAndWait(usize);

impl Actor for Node {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(node: Self, _: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(node)
    }
}

impl Message<Next> for Node {
    type Reply = ();
    async fn handle(&mut self, Next(next): Next, _: &mut Context<Self, ()>) {
        self.next = Some(next);
    }
}

impl Message<Token> for Node {
    type Reply = ();
    async fn handle(&mut self, Token(left): Token, _: &mut Context<Self, ()>) {
        match (left, &self.next) {
            (0, _) => self.done.send(()).unwrap(),
            (left, Some(next)) => drop(next.tell(Token(left - 1)).try_send()),
            _ => {}
        }
    }
}

impl Message<Ask> for Node {
    type Reply = usize;
    async fn handle(&mut self, Ask(n): Ask, _: &mut Context<Self, usize>) -> usize {
        n + 1
    }
}

impl Message<Item> for Node {
    type Reply = ();
    async fn handle(&mut self, _: Item, _: &mut Context<Self, ()>) {
        self.left -= 1;
        if self.left == 0 {
            self.done.send(()).unwrap();
        }
    }
}

impl Message<SendAll> for Node {
    type Reply = ();
    async fn handle(&mut self, SendAll(n): SendAll, _: &mut Context<Self, ()>) {
        let sink = self.next.as_ref().unwrap();
        (0..n).for_each(|_| sink.tell(Item).try_send().unwrap());
    }
}

impl Message<SendAndWait> for Node {
    type Reply = ();
    async fn handle(&mut self, SendAndWait(n): SendAndWait, _: &mut Context<Self, ()>) {
        let sink = self.next.as_ref().unwrap();
        for _ in 0..n {
            sink.tell(Item).await.unwrap();
        }
    }
}

/// An actor that ends after its first message.
struct Short(Arc<AtomicUsize>, mpsc::Sender<()>);

impl Actor for Short {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(short: Self, _: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(short)
    }
}

impl Message<Item> for Short {
    type Reply = ();
    async fn handle(&mut self, _: Item, cx: &mut Context<Self, ()>) {
        if self.0.fetch_sub(1, Relaxed) == 1 {
            self.1.send(()).unwrap();
        }
        cx.stop();
    }
}

fn node(done: &mpsc::Sender<()>, next: Option<ActorRef<Node>>, left: usize) -> ActorRef<Node> {
    let done = done.clone();
    Node::spawn_with_mailbox(Node { done, next, left }, mailbox::unbounded())
}

impl Peer for Kameo {
    fn ring(processes: usize, tokens: usize, hops: usize) -> Option<Duration> {
        let runtime = runtime();
        let _guard = runtime.enter();
        let (done, all) = mpsc::channel();
        let ring: Vec<_> = (0..processes).map(|_| node(&done, None, 0)).collect();
        for i in 0..processes {
            let next = Next(ring[(i + 1) % processes].clone());
            ring[i].tell(next).try_send().ok()?;
        }
        let start = Instant::now();
        for i in 0..tokens {
            ring[i * processes / tokens]
                .tell(Token(hops))
                .try_send()
                .ok()?;
        }
        assert_eq!(all.iter().take(tokens).count(), tokens);
        Some(start.elapsed())
    }

    fn pingpong(pairs: usize, trips: usize) -> Option<Duration> {
        let runtime = runtime();
        let _guard = runtime.enter();
        let (done, all) = mpsc::channel();
        let players: Vec<_> = (0..pairs)
            .map(|_| {
                let a = node(&done, None, 0);
                let b = node(&done, Some(a.clone()), 0);
                a.tell(Next(b)).try_send().ok().unwrap();
                a
            })
            .collect();
        let start = Instant::now();
        for player in &players {
            player.tell(Token(2 * trips)).try_send().ok()?;
        }
        assert_eq!(all.iter().take(pairs).count(), pairs);
        Some(start.elapsed())
    }

    fn spawn(processes: usize) -> Option<Duration> {
        let runtime = runtime();
        let (done, all) = mpsc::channel();
        let left = Arc::new(AtomicUsize::new(processes));
        let start = Instant::now();
        runtime.spawn(async move {
            for _ in 0..processes {
                let short = Short(left.clone(), done.clone());
                let actor = Short::spawn_with_mailbox(short, mailbox::unbounded());
                actor.tell(Item).try_send().ok().unwrap();
            }
        });
        all.recv().unwrap();
        Some(start.elapsed())
    }

    fn fanin(senders: usize, each: usize) -> Option<Duration> {
        let runtime = runtime();
        let _guard = runtime.enter();
        let (done, all) = mpsc::channel();
        let sink = node(&done, None, senders * each);
        let senders: Vec<_> = (0..senders)
            .map(|_| node(&done, Some(sink.clone()), 0))
            .collect();
        let start = Instant::now();
        for sender in &senders {
            sender.tell(SendAll(each)).try_send().ok()?;
        }
        all.recv().unwrap();
        Some(start.elapsed())
    }

    fn call(calls: usize) -> Option<Duration> {
        let runtime = runtime();
        let (done, _all) = mpsc::channel();
        let server = {
            let _guard = runtime.enter();
            node(&done, None, 0)
        };
        let start = Instant::now();
        let client = runtime.spawn(async move {
            for n in 0..calls {
                assert_eq!(server.ask(Ask(n)).await.unwrap(), n + 1);
            }
        });
        runtime.block_on(client).unwrap();
        Some(start.elapsed())
    }

    fn fanin_bounded(senders: usize, each: usize, room: usize) -> Option<Duration> {
        let runtime = runtime();
        let _guard = runtime.enter();
        let (done, all) = mpsc::channel();
        let sink = Node {
            done: done.clone(),
            next: None,
            left: senders * each,
        };
        let sink = Node::spawn_with_mailbox(sink, mailbox::bounded(room));
        let senders: Vec<_> = (0..senders)
            .map(|_| node(&done, Some(sink.clone()), 0))
            .collect();
        let start = Instant::now();
        for sender in &senders {
            sender.tell(SendAndWait(each)).try_send().ok()?;
        }
        all.recv().unwrap();
        Some(start.elapsed())
    }

    fn idle(processes: usize) -> Option<u64> {
        let runtime = runtime();
        let _guard = runtime.enter();
        let (done, _all) = mpsc::channel();
        let before = heap()?;
        let all: Vec<_> = (0..processes).map(|_| node(&done, None, 0)).collect();
        // Waits until all actors have started.
        std::thread::sleep(Duration::from_millis(300));
        let own = size_of_val(&*all) as u64;
        Some(heap()?.saturating_sub(before + own))
    }
}
