//! process-cluster over zenoh.
use crate::measure::{BYTES, Calls, print_rate, serve_until_the_end};
use process_cluster::{Cluster, DecodeError, Decoder, Encoder, Message};
use process_cluster_zenoh::Zenoh;
use process_scheduler::{Cx, Inbox, Mailbox, Pid, Reply, Scheduler, Spawn};
use std::{
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

const LONG: Duration = Duration::from_secs(60);

enum Request {
    Item([u8; BYTES]),
    Ping(u64, Reply<u64>),
    /// Asks how many items have come since the last such request.
    Count(Reply<u64>),
}

impl Message for Request {
    fn encode(self, out: &mut Encoder<'_>) {
        match self {
            Self::Item(bytes) => {
                out.u8(0);
                out.raw(&bytes);
            }
            Self::Ping(number, reply) => {
                out.u8(1);
                out.u64(number);
                out.reply(reply);
            }
            Self::Count(reply) => {
                out.u8(2);
                out.reply(reply);
            }
        }
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(match input.u8()? {
            0 => Self::Item(input.raw(BYTES)?.try_into().expect("it has this length")),
            1 => Self::Ping(input.u64()?, input.reply()?),
            2 => Self::Count(input.reply()?),
            _ => return Err(DecodeError::Invalid),
        })
    }
}

fn join(name: &str, listen: Option<u16>, connect: Option<u16>) -> (Scheduler, Cluster) {
    let endpoint = |port| format!("tcp/127.0.0.1:{port}");
    let mut zenoh = Zenoh::builder().insecure_loopback();
    if let Some(port) = listen {
        zenoh = zenoh.listen(endpoint(port));
    }
    if let Some(port) = connect {
        zenoh = zenoh.connect(endpoint(port));
    }
    let scheduler = Scheduler::builder().workers(1).build();
    let builder = Cluster::builder(name).codec::<Request>("request");
    let cluster = builder.join(&scheduler, zenoh.build().unwrap()).unwrap();
    (scheduler, cluster)
}

pub fn serve(port: u16, pairs: usize) {
    let (scheduler, cluster) = join("server", Some(port), None);
    for pair in 0..pairs {
        let mut count = 0;
        let spawn = Spawn::new().mailbox(Mailbox::Bounded(1 << 20));
        let take = move |request, _: &mut Cx<'_>| match request {
            Request::Item(_) => count += 1,
            Request::Ping(number, reply) => drop(reply.send(number)),
            Request::Count(reply) => drop(reply.send(std::mem::take(&mut count))),
        };
        let taker = scheduler.spawn_with(spawn, take).unwrap();
        cluster
            .register(&format!("taker/{pair}"), taker.pid())
            .unwrap();
    }
    serve_until_the_end();
    assert_eq!(cluster.metrics().dead_letters, 0);
}

fn taker(cluster: &Cluster, pair: usize) -> Pid {
    loop {
        if let Some(pid) = cluster.whereis(&format!("taker/{pair}")) {
            return pid;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

pub fn call(port: u16, millis: u64) {
    let (scheduler, cluster) = join("client", None, Some(port));
    let address = scheduler.address::<Request>(taker(&cluster, 0)).unwrap();
    let mut calls = Calls::of(millis);
    for number in 0.. {
        let begun = Instant::now();
        let answer = address.call(|reply| Request::Ping(number, reply), LONG);
        assert_eq!(answer.wait(), Ok(number));
        if !calls.note(begun) {
            break;
        }
    }
    calls.print();
}

pub fn flood(port: u16, pairs: usize, messages: u64) {
    let (scheduler, cluster) = join("client", None, Some(port));
    let takers: Vec<_> = (0..pairs).map(|pair| taker(&cluster, pair)).collect();
    let each = messages / pairs as u64;
    let (sender, counts) = mpsc::channel();
    let begun = Instant::now();
    for taker in takers {
        let (sender, to) = (sender.clone(), scheduler.address::<Request>(taker).unwrap());
        let send = move |_: Inbox<()>| async move {
            for _ in 0..each {
                to.send(Request::Item([7; BYTES]))
                    .await
                    .unwrap_or_else(|_| panic!("refused"));
            }
            let _ = sender.send(to.call(Request::Count, LONG).await);
        };
        scheduler
            .spawn_process(process_scheduler::from_async(send), Spawn::new())
            .unwrap();
    }
    drop(sender);
    let taken: u64 = counts.iter().map(|count| count.unwrap()).sum();
    assert_eq!(taken, each * pairs as u64);
    print_rate(taken, begun);
}
