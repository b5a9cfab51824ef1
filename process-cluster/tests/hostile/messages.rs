//! Messages, calls, signals and names at the limits of queues, frames and sessions.
use crate::nodes::{Hub, LONG, Pause, TestNode, Work, join, join_with, patient, two, wait_for};
use process_cluster::{Builder, MemoryNetwork};
use process_scheduler::{CallError, ExitReason, Inbox, Scheduler, SendError};
use std::{sync::mpsc, thread};

fn over(network: &MemoryNetwork, builder: impl Fn(&str) -> Builder) -> [TestNode; 2] {
    let nodes = ["a", "b"].map(|name| join(builder(name), network.engine(name)));
    nodes.iter().for_each(|node| node.reaches(1));
    nodes
}

/// Both calls have the same frame number and place, in sessions with two nodes of one name.
#[test]
fn answer_of_an_old_call_reaches_no_later_node() {
    let hub = Hub::default();
    let ([old, b], [wire, _]) = two(&hub, patient);
    let (worker, held) = b.worker();
    let call = |node: &TestNode| {
        let far = worker.with_node(node.number_of("b"));
        let address = node.scheduler.address::<Work>(far).unwrap();
        (
            address.call(Work::Hold, LONG),
            held.recv_timeout(LONG).unwrap(),
        )
    };
    let (lost, early) = call(&old);
    wire.mute();
    let new = join(patient("a"), hub.to("a", "b"));
    new.reaches(1);
    let (waits, late) = call(&new);
    let _ = early.send(111);
    late.send(222).unwrap();
    assert_eq!(waits.wait(), Ok(222));
    drop(lost);
}

/// Fails if a message that is encoded while its node is lost goes to the next one.
#[test]
fn old_pid_reaches_no_process_of_a_restarted_node() {
    let hub = Hub::default();
    let ([a, old], [_, wire]) = two(&hub, patient);
    let (worker, _held) = old.worker();
    let far = worker.with_node(a.number_of("b"));
    let ((begun, has_begun), (end, is_over)) = (mpsc::channel(), mpsc::channel());
    let slow = Work::SlowTask(Some(Pause {
        begun,
        end: is_over,
    }));
    let handle = a.scheduler.handle();
    let sends = thread::spawn(move || handle.try_send(far, slow).is_ok());
    has_begun.recv_timeout(LONG).unwrap();
    wire.mute();
    let new = join(patient("b"), hub.to("b", "a"));
    let (same, _held) = new.worker();
    assert_eq!(same, worker);
    let is_new = || {
        a.cluster
            .nodes()
            .iter()
            .any(|node| node.number != far.node())
    };
    wait_for("the new node is reached", is_new);
    end.send(()).unwrap();
    sends.join().unwrap();
    assert_eq!(a.counts(same.with_node(a.number_of("b"))), Ok(0));
}

#[test]
fn large_answer_is_dropped_and_keeps_the_session() {
    let [a, b] = over(&MemoryNetwork::new(), patient);
    let (worker, _held) = b.worker();
    let far = worker.with_node(a.number_of("b"));
    let address = a.scheduler.address::<Work>(far).unwrap();
    let asks = |length| {
        let call = address.call(|reply| Work::Bytes(length, reply), LONG);
        call.wait().map(|bytes| bytes.len())
    };
    assert_eq!(asks(2 << 20), Err(CallError::Dropped));
    assert_eq!(asks(1_000_000), Ok(1_000_000));
    assert_eq!(a.losses(), []);
}

#[test]
fn answer_whose_encoder_panics_is_dropped() {
    let [a, b] = over(&MemoryNetwork::new(), patient);
    let (worker, _held) = b.worker();
    let far = worker.with_node(a.number_of("b"));
    let address = a.scheduler.address::<Work>(far).unwrap();
    let answer = address.call(Work::Unencodable, LONG).wait();
    assert_eq!(answer.err(), Some(CallError::Dropped));
}

/// Fails if a node ends a session for frames that the other one has room for.
#[test]
fn larger_queue_of_the_other_side_is_used() {
    const SENT: u64 = 30_000;
    let queue = |name: &str| match name {
        "a" => patient(name).queue(100),
        _ => patient(name).queue(1_000_000),
    };
    let ([a, b], [wire, _]) = two(&Hub::default(), queue);
    let (worker, _held) = b.worker();
    let far = worker.with_node(a.number_of("b"));
    let waits = wire.block();
    for _ in 0..SENT {
        a.scheduler.try_send(far, Work::Task).unwrap();
    }
    drop(waits);
    assert_eq!(a.counts(far), Ok(SENT));
    assert_eq!(a.losses(), []);
}

/// Fails if a thread that finds the room taken by another one refuses its message.
#[test]
fn awaited_send_of_several_threads_is_never_full() {
    const SENDERS: u64 = 16;
    const MESSAGES: u64 = 300;
    let network = MemoryNetwork::new();
    let scheduler = Scheduler::builder().workers(4).build();
    let a = join_with(scheduler, patient("a"), network.engine("a"));
    let b = join(patient("b").queue(4), network.engine("b"));
    a.reaches(1);
    let (worker, _held) = b.worker();
    let far = worker.with_node(a.number_of("b"));
    let address = a.scheduler.address::<Work>(far).unwrap();
    let (sender, refused) = mpsc::channel();
    for _ in 0..SENDERS {
        let (address, sender) = (address.clone(), sender.clone());
        let task = a.scheduler.spawn_async(move |_: Inbox<()>| async move {
            let mut refused = 0;
            for _ in 0..MESSAGES {
                refused += u64::from(address.send(Work::Task).await.is_err());
            }
            sender.send(refused).unwrap();
        });
        assert!(task.is_ok());
    }
    drop(sender);
    assert_eq!(refused.iter().sum::<u64>(), 0);
    assert_eq!(a.counts(far), Ok(SENDERS * MESSAGES));
}

/// Fails if a signal needs room: a link that found none would end its process.
#[test]
fn link_and_kill_pass_a_full_window() {
    let ([a, b], [_, wire]) = two(&Hub::default(), |name| patient(name).queue(8));
    let (worker, _held) = b.worker();
    let far = worker.with_node(a.number_of("b"));
    // Nothing is acknowledged.
    let waits = wire.block();
    while a.scheduler.try_send(far, Work::Task).is_ok() {}
    let linked = a.scheduler.spawn_fn(|(): (), _| ()).unwrap().pid();
    a.scheduler.link(linked, far);
    let back = linked.with_node(b.number_of("a"));
    wait_for("the link has come", || {
        let worker = b.scheduler.inspect(worker);
        worker.is_some_and(|worker| worker.links == [back])
    });
    assert!(a.scheduler.inspect(linked).is_some());
    let end = a.scheduler.exit_of(linked);
    assert!(a.scheduler.kill(far));
    b.scheduler.wait(worker);
    drop(waits);
    assert_eq!(end.wait(), ExitReason::Killed);
}

/// Fails if a node sends a frame that the other one does not take: that would be a gap.
#[test]
fn frame_limits_that_differ_keep_the_session() {
    let network = MemoryNetwork::new();
    let limit = |name: &str| match name {
        "a" => patient(name),
        _ => patient(name).frame_limit(4_096),
    };
    let [a, b] = over(&network, limit);
    let (worker, _held) = b.worker();
    let far = worker.with_node(a.number_of("b"));
    let refused = a.scheduler.try_send(far, vec![0_u8; 10_000]);
    assert!(matches!(refused, Err(SendError::NotCarried(bytes)) if bytes.len() == 10_000));
    a.scheduler.try_send(far, Work::Long(10_000)).unwrap();
    assert_eq!(a.cluster.metrics().dead_letters, 1);
    a.scheduler.try_send(far, Work::Long(4_000)).unwrap();
    assert_eq!(a.counts(far), Ok(1));
    assert_eq!((a.losses(), b.losses()), (vec![], vec![]));
}

#[test]
fn names_end_with_their_scheduler() {
    let [a, b] = over(&MemoryNetwork::new(), patient);
    let names: Vec<_> = (0..20).map(|n| n.to_string()).collect();
    for name in &names {
        let (worker, _) = b.worker();
        b.cluster.register(name, worker).unwrap();
    }
    let known = || {
        names
            .iter()
            .filter(|name| a.cluster.whereis(name).is_some())
            .count()
    };
    wait_for("the names are known", || known() == names.len());
    let TestNode {
        scheduler, cluster, ..
    } = b;
    drop(scheduler);
    wait_for("the names are free", || known() == 0);
    assert_eq!(a.losses(), []);
    drop(cluster);
}

/// Fails if the feed of a new session is more than its queue takes, or the peer counts as silent
/// meanwhile.
#[test]
fn many_names_reach_a_new_node() {
    let network = MemoryNetwork::new();
    let b = join(patient("b").queue(100), network.engine("b"));
    let (worker, _held) = b.worker();
    let names: Vec<_> = (0..20_000).map(|n| n.to_string()).collect();
    for name in &names {
        b.cluster.register(name, worker).unwrap();
    }
    let a = join(patient("a").queue(100), network.engine("a"));
    wait_for("the names are known", || {
        names
            .iter()
            .rev()
            .all(|name| a.cluster.whereis(name).is_some())
    });
    assert_eq!((a.losses(), b.losses()), (vec![], vec![]));
}

/// Fails if a node is shown before a message may go to it.
#[test]
fn node_that_is_shown_takes_messages() {
    for _ in 0..30 {
        let network = MemoryNetwork::new();
        let [a, b] = ["a", "b"].map(|name| join(patient(name), network.engine(name)));
        while a.cluster.nodes().is_empty() {
            thread::yield_now();
        }
        let (worker, _held) = b.worker();
        let far = worker.with_node(a.number_of("b"));
        a.scheduler.try_send(far, Work::Task).unwrap();
    }
}
