//! ractor_cluster: a node server, and actors in a process group.
#[path = "../../../bench/src/measure.rs"]
mod measure;

use measure::{BYTES, Calls, print_rate, serve_until_the_end};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, pg};
use ractor_cluster::{NodeServer, NodeServerMessage, RactorClusterMessage};
use std::time::{Duration, Instant};

#[derive(RactorClusterMessage)]
enum Request {
    Item(Vec<u8>),
    #[rpc]
    Ping(u64, RpcReplyPort<u64>),
    #[rpc]
    Count(RpcReplyPort<u64>),
}

struct Taker;

impl Actor for Taker {
    type Msg = Request;
    type State = u64;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Request>, (): ()) -> Result<u64, ActorProcessingErr> {
        Ok(0)
    }

    async fn handle(
        &self,
        _: ActorRef<Request>,
        request: Request,
        count: &mut u64,
    ) -> Result<(), ActorProcessingErr> {
        match request {
            Request::Item(_) => *count += 1,
            Request::Ping(number, reply) => reply.send(number)?,
            Request::Count(reply) => reply.send(std::mem::take(count))?,
        }
        Ok(())
    }
}

async fn node(name: &str, port: u16) -> ActorRef<NodeServerMessage> {
    let cookie = "cookie".to_owned();
    let host = "localhost".to_owned();
    let server = NodeServer::new(port, cookie, name.to_owned(), host, None, None);
    let server = server.with_listen_addr([127, 0, 0, 1].into());
    Actor::spawn(None, server, ()).await.unwrap().0
}

async fn serve(port: u16, pairs: usize) {
    for pair in 0..pairs {
        let (taker, _) = Actor::spawn(None, Taker, ()).await.unwrap();
        pg::join(format!("taker/{pair}"), vec![taker.get_cell()]);
    }
    let _server = node("server", port).await;
    tokio::task::spawn_blocking(serve_until_the_end)
        .await
        .unwrap();
}

async fn takers(port: u16, pairs: usize) -> Vec<ActorRef<Request>> {
    let client = node("client", 0).await;
    while ractor_cluster::client_connect(&client, format!("127.0.0.1:{port}"))
        .await
        .is_err()
    {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut takers = Vec::new();
    for pair in 0..pairs {
        let group = format!("taker/{pair}");
        let cell = loop {
            if let Some(cell) = pg::get_members(&group).pop() {
                break cell;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        };
        takers.push(cell.into());
    }
    takers
}

async fn call(port: u16, millis: u64) {
    let taker = takers(port, 1).await.pop().unwrap();
    let mut calls = Calls::of(millis);
    for number in 0.. {
        let begun = Instant::now();
        let answer = taker.call(|reply| Request::Ping(number, reply), None).await;
        assert_eq!(answer.unwrap().unwrap(), number);
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
                taker.cast(Request::Item(vec![7; BYTES])).unwrap();
            }
            taker.call(Request::Count, None).await.unwrap().unwrap()
        })
    });
    let mut taken = 0;
    for task in tasks.collect::<Vec<_>>() {
        taken += task.await.unwrap();
    }
    assert_eq!(taken, each * pairs as u64);
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
