//! Programs of three replicas, each with a mistake behind a flag. What a replica must not lose is
//! on its disk.
use crate::{
    mistakes::is_planted,
    network::{Disk, MS, call, lossy, ms, serve},
};
use net_driver::{
    net::TcpStream,
    time::{sleep, timeout},
};
use selvedge_executor::{JoinHandle, spawn};
use selvedge_sim::{Faults, Net, Run, Sim, random_below};
use std::{
    io::{self, ErrorKind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};
use task_io::{AsyncReadExt, AsyncWriteExt};

const NODES: [&str; 3] = ["one:1", "two:1", "three:1"];

/// How many of three replicas are a majority.
const MAJORITY: usize = 2;

/// Asks all replicas. Returns the first answers, so many of them, that `is_good` takes. The other
/// questions are given up.
async fn ask(words: &[u64], count: usize, is_good: impl Fn(u64) -> bool) -> io::Result<Vec<u64>> {
    let (sender, mut answers) = task_sync::mpsc::unbounded_channel();
    let asked: Vec<JoinHandle<()>> = NODES
        .iter()
        .map(|node| {
            let (sender, words) = (sender.clone(), words.to_vec());
            spawn(async move {
                if let Ok(Ok(answer)) = timeout(150 * MS, call(node, words)).await {
                    let _ = sender.send(answer);
                }
            })
        })
        .collect();
    drop(sender);
    let mut good = Vec::new();
    while good.len() < count {
        match answers.recv().await {
            Some(answer) if is_good(answer) => good.push(answer),
            Some(_) => {}
            None => break,
        }
    }
    asked.iter().for_each(JoinHandle::abort);
    match good.len() < count {
        true => Err(ErrorKind::TimedOut.into()),
        false => Ok(good),
    }
}

/// Repeats a question until so many have answered.
async fn ask_until(words: &[u64], count: usize) -> Vec<u64> {
    loop {
        if let Ok(answers) = ask(words, count, |_| true).await {
            return answers;
        }
        sleep(MS * (20 + random_below(30) as u32)).await;
    }
}

/// A write is done when a majority has it, so a read of a majority sees it.
pub fn quorums(sim: Sim) -> Run {
    const READ: u64 = 0;
    async fn answer(disk: Disk<u64>, mut stream: TcpStream) -> io::Result<()> {
        let (what, value) = (stream.read_u64().await?, stream.read_u64().await?);
        let newest = disk.with(|newest| {
            if what != READ {
                *newest = value.max(*newest);
            }
            *newest
        });
        stream.write_u64(newest).await
    }
    let disks = [(); 3].map(|()| Disk::default());
    let [one, two, three] = disks.map(|disk| {
        move || {
            let disk = disk.clone();
            serve(1, move |stream| answer(disk.clone(), stream))
        }
    });
    sim.hosts()
        .server("one", 1, one)
        .server("two", 1, two)
        .server("three", 1, three)
        .client("web", 1, || async {
            let is_early = is_planted("write is acknowledged before the quorum has it");
            for value in 1..6 {
                ask_until(&[1, value], if is_early { 1 } else { MAJORITY }).await;
                let read = ask_until(&[READ, 0], MAJORITY).await;
                let newest = read.into_iter().max();
                assert_eq!(newest, Some(value), "the write is not seen");
            }
        })
        .net(Net::new().latency(ms(1..10)))
        .faults(faults())
        .run()
}

fn faults() -> Faults {
    let faults = Faults::new().crashes(1).partitions(2);
    faults.during(800 * MS).longest(600 * MS)
}

/// The disk of a replica that may lead.
#[derive(Default)]
struct Promised {
    epoch: u64,
    value: u64,
}

/// A replica that may lead. What it knows as a leader it forgets in a crash.
#[derive(Clone, Default)]
struct Node {
    disk: Disk<Promised>,
    /// The epoch in which it leads, and the last value that a majority has.
    leads: Disk<Option<(u64, u64)>>,
}

/// The answer of a replica that does not accept a request.
const REFUSED: u64 = u64::MAX;

const PREPARE: u64 = 0;
const ACCEPT: u64 = 1;
const CONFIRM: u64 = 2;
const LEAD: u64 = 3;
const WRITE: u64 = 4;
const READ: u64 = 5;

impl Node {
    /// Answers a question of a leader.
    fn answer(&self, what: u64, epoch: u64, value: u64) -> u64 {
        self.disk.with(|disk| {
            let is_accepted = match what {
                PREPARE => epoch > disk.epoch,
                ACCEPT => epoch >= disk.epoch,
                _ => epoch == disk.epoch,
            };
            if !is_accepted {
                return REFUSED;
            }
            disk.epoch = epoch;
            if what == ACCEPT {
                disk.value = value.max(disk.value);
            }
            disk.value
        })
    }

    /// Serves a client.
    async fn serve(&self, what: u64, number: u64) -> io::Result<u64> {
        let is_good = |answer| answer != REFUSED;
        if what == LEAD {
            let known = ask(&[PREPARE, number, 0], MAJORITY, is_good).await?;
            let value = known.into_iter().max().unwrap_or(0);
            ask(&[ACCEPT, number, value], MAJORITY, is_good).await?;
            self.leads.with(|leads| *leads = Some((number, value)));
            return Ok(value);
        }
        let led = self.leads.with(|leads| *leads);
        let (epoch, known) = led.ok_or(ErrorKind::NotConnected)?;
        if what == WRITE {
            ask(&[ACCEPT, epoch, number], MAJORITY, is_good).await?;
            self.leads.with(|leads| *leads = Some((epoch, number)));
            return Ok(number);
        }
        if !is_planted("leader reads without asking the others") {
            ask(&[CONFIRM, epoch, 0], MAJORITY, is_good).await?;
        }
        Ok(known)
    }

    async fn talk(self, mut stream: TcpStream) -> io::Result<()> {
        let what = stream.read_u64().await?;
        let number = stream.read_u64().await?;
        let answer = match what {
            PREPARE | ACCEPT | CONFIRM => {
                let value = stream.read_u64().await?;
                self.answer(what, number, value)
            }
            _ => self.serve(what, number).await?,
        };
        stream.write_u64(answer).await
    }
}

/// A writer changes the leader if that does not answer. A reader may still reach the old one.
pub fn leaders(sim: Sim) -> Run {
    const LIMIT: Duration = Duration::from_millis(400);
    let [one, two, three] = NODES.map(|_| {
        let disk = Disk::default();
        move || {
            let leads = Disk::default();
            let disk = disk.clone();
            let node = Node { disk, leads };
            serve(1, move |stream| node.clone().talk(stream))
        }
    });
    let written = Arc::new(AtomicU64::new(0));
    let (acknowledged, is_over) = (written.clone(), Arc::new(AtomicU64::new(0)));
    let ends = is_over.clone();
    let writer = move || {
        let (acknowledged, ends) = (acknowledged.clone(), ends.clone());
        async move {
            let mut epoch = 0;
            for value in 1..6 {
                loop {
                    let node = NODES[epoch as usize % 3];
                    let write = timeout(LIMIT, call(node, [WRITE, value]));
                    if epoch > 0 && matches!(write.await, Ok(Ok(_))) {
                        break;
                    }
                    epoch += 1;
                    let node = NODES[epoch as usize % 3];
                    let _ = timeout(LIMIT, call(node, [LEAD, epoch])).await;
                }
                // Ordering: SeqCst, as one thread of the system runs all.
                acknowledged.store(value, SeqCst);
                sleep(MS * random_below(100) as u32).await;
            }
            // Ordering: SeqCst, as above.
            ends.store(1, SeqCst);
        }
    };
    let reader = move || {
        let (written, is_over) = (written.clone(), is_over.clone());
        async move {
            // Ordering: SeqCst, as above.
            while is_over.load(SeqCst) == 0 {
                for node in NODES {
                    // Ordering: SeqCst, as above.
                    let before = written.load(SeqCst);
                    if let Ok(Ok(value)) = timeout(LIMIT, call(node, [READ, 0])).await {
                        assert!(
                            value >= before,
                            "{value} is read after {before} was written"
                        );
                    }
                }
                sleep(20 * MS).await;
            }
        }
    };
    sim.hosts()
        .server("one", 1, one)
        .server("two", 1, two)
        .server("three", 1, three)
        .client("writer", 1, writer)
        .client("reader", 1, reader)
        .net(lossy())
        .faults(faults())
        .run()
}
