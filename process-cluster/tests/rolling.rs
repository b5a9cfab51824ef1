//! Nodes that are started again one by one, with another version of a message, under load.
mod common;

use common::{LONG, TestNode, join, patient, wait_for};
use process_cluster::{DecodeError, Decoder, Encoder, MemoryNetwork, Message};
use process_scheduler::{CallError, Inbox, Reply};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// Asks for the double of a number, in the old version and in the new one.
struct Old(u32, Reply<u32>);
struct New(u64, Reply<u64>);

impl Message for Old {
    fn encode(self, out: &mut Encoder<'_>) {
        out.u32(self.0);
        out.reply(self.1);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self(input.u32()?, input.reply()?))
    }
}

impl Message for New {
    fn encode(self, out: &mut Encoder<'_>) {
        out.u64(self.0);
        out.reply(self.1);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self(input.u64()?, input.reply()?))
    }
}

#[derive(Default)]
struct Counts {
    old: AtomicU64,
    new: AtomicU64,
    refused: AtomicU64,
}

struct Member {
    node: Arc<TestNode>,
    load: JoinHandle<()>,
    ends: Arc<AtomicBool>,
}

impl Member {
    fn start(network: &MemoryNetwork, name: &str, is_new: bool, counts: &Arc<Counts>) -> Self {
        let builder = patient(name).codec::<Old>("double/1");
        let builder = match is_new {
            true => builder.codec::<New>("double/2"),
            false => builder,
        };
        let node = Arc::new(join(network, name, builder));
        // An answer takes a while, so calls are in flight when the node leaves.
        let pause = Duration::from_millis(2);
        let old = node
            .scheduler
            .spawn_async(move |mut inbox: Inbox<Old>| async move {
                while let Some(Old(n, reply)) = inbox.receive().await {
                    inbox.handle().sleep(pause).await;
                    let _ = reply.send(2 * n);
                }
            });
        node.cluster.join("double/1", old.unwrap().pid()).unwrap();
        if is_new {
            let new = node
                .scheduler
                .spawn_async(move |mut inbox: Inbox<New>| async move {
                    while let Some(New(n, reply)) = inbox.receive().await {
                        inbox.handle().sleep(pause).await;
                        let _ = reply.send(2 * n);
                    }
                });
            node.cluster.join("double/2", new.unwrap().pid()).unwrap();
        }
        let ends = Arc::new(AtomicBool::new(false));
        let load = {
            let (node, ends, counts) = (node.clone(), ends.clone(), counts.clone());
            thread::spawn(move || {
                for n in 1.. {
                    if ends.load(SeqCst) {
                        return;
                    }
                    call(&node, n, is_new, &counts);
                }
            })
        };
        Self { node, load, ends }
    }

    /// Ends the load of the node, and lets it leave once the calls of others are answered.
    fn leave(self) {
        self.ends.store(true, SeqCst);
        self.load.join().unwrap();
        let node = Arc::into_inner(self.node).expect("the load has ended");
        assert_eq!(node.cluster.leave(LONG), 0);
    }
}

/// Calls a process of some node, by the newest version that this node knows.
fn call(node: &TestNode, n: u32, is_new: bool, counts: &Counts) {
    let new = match is_new {
        true => node.cluster.members("double/2"),
        false => Vec::new(),
    };
    let answer = if let Some(pid) = new.get(n as usize % new.len().max(1)) {
        let address = node.scheduler.address::<New>(*pid).unwrap();
        let answer = address.call(|reply| New(n.into(), reply), LONG).wait();
        answer.map(|double| (double == 2 * u64::from(n), &counts.new))
    } else {
        let old = node.cluster.members("double/1");
        let address = node
            .scheduler
            .address::<Old>(old[n as usize % old.len()])
            .unwrap();
        let answer = address.call(|reply| Old(n, reply), LONG).wait();
        answer.map(|double| (double == 2 * n, &counts.old))
    };
    match answer {
        Ok((is_double, count)) => {
            assert!(is_double);
            count.fetch_add(1, SeqCst);
        }
        // It was not sent: the caller has it, and tries another one.
        Err(CallError::Refused(_)) => drop(counts.refused.fetch_add(1, SeqCst)),
        Err(unanswered) => panic!("a call is not answered: {unanswered}"),
    }
}

/// Fails if a node that leaves takes a call and does not answer it.
#[test]
fn rolling_restart_leaves_no_call_unanswered() {
    let network = MemoryNetwork::new();
    let counts = Arc::new(Counts::default());
    let names = ["a", "b", "c", "d", "e"];
    let start = |name, is_new| Member::start(&network, name, is_new, &counts);
    let mut members: Vec<_> = names.iter().map(|name| start(name, false)).collect();
    let total = || counts.old.load(SeqCst) + counts.new.load(SeqCst);
    for name in names {
        for member in &members {
            member.node.reaches(names.len() - 1);
        }
        let before = total();
        wait_for("calls are answered", || total() >= before + 200);
        members.remove(0).leave();
        wait_for("calls are answered", || total() >= before + 400);
        members.push(start(name, true));
    }
    let before = counts.new.load(SeqCst);
    wait_for("new calls are answered", || {
        counts.new.load(SeqCst) >= before + 200
    });
    assert!(counts.old.load(SeqCst) > 0);
    members.into_iter().for_each(Member::leave);
}
