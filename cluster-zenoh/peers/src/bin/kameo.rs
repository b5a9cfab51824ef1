//! kameo's remote actors: libp2p over TCP, with noise and yamux, which it always uses.
#[path = "../../../bench/src/measure.rs"]
mod measure;

use futures::StreamExt as _;
use kameo::{prelude::*, remote};
use libp2p::{SwarmBuilder, noise, swarm::SwarmEvent, tcp, yamux};
use measure::{BYTES, Calls, print_rate, serve_until_the_end};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

#[derive(Actor, RemoteActor)]
struct Taker(u64);

#[derive(Serialize, Deserialize)]
struct Item(Vec<u8>);

#[derive(Serialize, Deserialize)]
struct Ping(u64);

#[derive(Serialize, Deserialize)]
struct Count;

#[remote_message]
impl Message<Item> for Taker {
    type Reply = ();

    async fn handle(&mut self, _: Item, _: &mut Context<Self, ()>) {
        self.0 += 1;
    }
}

#[remote_message]
impl Message<Ping> for Taker {
    type Reply = u64;

    async fn handle(&mut self, Ping(number): Ping, _: &mut Context<Self, u64>) -> u64 {
        number
    }
}

#[remote_message]
impl Message<Count> for Taker {
    type Reply = u64;

    async fn handle(&mut self, _: Count, _: &mut Context<Self, u64>) -> u64 {
        std::mem::take(&mut self.0)
    }
}

/// Starts a node that listens or connects, and waits until it is connected.
async fn node(listen: Option<u16>, connect: Option<u16>) {
    let (yamux, noise) = (yamux::Config::default, noise::Config::new);
    let tcp = tcp::Config::default().nodelay(true);
    let builder = SwarmBuilder::with_new_identity().with_tokio();
    let builder = builder.with_tcp(tcp, noise, yamux).unwrap();
    let mut swarm = builder
        .with_behaviour(|key| {
            let id = key.public().to_peer_id();
            remote::Behaviour::new(id, remote::messaging::Config::default())
        })
        .unwrap()
        .build();
    swarm.behaviour().try_init_global().unwrap();
    let port = listen.unwrap_or(0);
    swarm
        .listen_on(format!("/ip4/127.0.0.1/tcp/{port}").parse().unwrap())
        .unwrap();
    if let Some(port) = connect {
        let address: libp2p::Multiaddr = format!("/ip4/127.0.0.1/tcp/{port}").parse().unwrap();
        swarm.dial(address).unwrap();
    }
    let (sender, connected) = tokio::sync::oneshot::channel();
    let mut sender = Some(sender);
    tokio::spawn(async move {
        loop {
            if let SwarmEvent::ConnectionEstablished {
                peer_id, endpoint, ..
            } = swarm.select_next_some().await
            {
                swarm.add_peer_address(peer_id, endpoint.get_remote_address().clone());
                sender.take().map(|sender| sender.send(()));
            }
        }
    });
    if connect.is_some() {
        connected.await.unwrap();
    }
}

async fn serve(port: u16, pairs: usize) {
    node(Some(port), None).await;
    for pair in 0..pairs {
        let taker = Taker::spawn(Taker(0));
        // It fails while there is nobody to tell, and is registered here all the same.
        let _ = taker.register(format!("taker/{pair}")).await;
        std::mem::forget(taker);
    }
    tokio::task::spawn_blocking(serve_until_the_end)
        .await
        .unwrap();
}

async fn takers(port: u16, pairs: usize) -> Vec<RemoteActorRef<Taker>> {
    node(None, Some(port)).await;
    let mut takers = Vec::new();
    for pair in 0..pairs {
        let taker = loop {
            let found = RemoteActorRef::<Taker>::lookup(format!("taker/{pair}")).await;
            if let Ok(Some(taker)) = found {
                break taker;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        takers.push(taker);
    }
    takers
}

async fn call(port: u16, millis: u64) {
    let taker = takers(port, 1).await.pop().unwrap();
    let mut calls = Calls::of(millis);
    for number in 0.. {
        let begun = Instant::now();
        assert_eq!(taker.ask(&Ping(number)).await.unwrap(), number);
        if !calls.note(begun) {
            break;
        }
    }
    calls.print();
}

async fn flood(port: u16, pairs: usize, messages: u64) {
    let takers = takers(port, pairs).await;
    let each = messages / pairs as u64;
    let begun = Instant::now();
    let tasks = takers.into_iter().map(|taker| {
        tokio::spawn(async move {
            for _ in 0..each {
                taker.tell(&Item(vec![7; BYTES])).send().unwrap();
            }
            // A message that was told may be overtaken.
            let mut taken = 0;
            while taken < each {
                taken += taker.ask(&Count).await.unwrap();
            }
            taken
        })
    });
    let mut taken = 0;
    for task in tasks.collect::<Vec<_>>() {
        taken += task.await.unwrap();
    }
    print_rate(taken, begun);
}

#[tokio::main]
async fn main() {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let number = |at: usize| words[at].parse::<u64>().expect("a number");
    match &*words[0] {
        "serve" => serve(number(1) as u16, number(2) as usize).await,
        "call" => call(number(1) as u16, number(2)).await,
        _ => flood(number(1) as u16, number(2) as usize, number(3)).await,
    }
}
