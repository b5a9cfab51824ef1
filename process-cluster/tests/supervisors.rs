//! Supervisors whose children are on other nodes.
mod common;

use common::{LONG, TestNode, join, patient, quick, wait_for};
use process_cluster::{Builder, Home, MemoryNetwork};
use process_scheduler::{
    Backoff, Child, ExitReason, Inbox, Pid, Policy, Spawn, Strategy, Supervisor, from_async,
    from_fn,
};
use std::{sync::mpsc, time::Duration};

/// The processes of a node's own: the registrar.
const OWN: usize = 1;

type Settings = fn(&str) -> Builder;

fn start(network: &MemoryNetwork, settings: Settings, name: &str) -> TestNode {
    let builder = settings(name)
        .behaviour("idle/1", |()| (from_fn(|_: u8, _| ()), Spawn::new()))
        .behaviour("brief/1", |why: String| {
            let brief = from_async(|_: Inbox<()>| async move { Err::<(), _>(why) });
            (brief, Spawn::new())
        })
        .behaviour("normal/1", |()| {
            (from_async(|_: Inbox<()>| async {}), Spawn::new())
        })
        .allow_spawn(|node, _| node == "a")
        // A kill must not be needed to end a child.
        .allow(|_, signal| !matches!(signal, process_scheduler::Signal::Kill));
    join(network, name, builder)
}

fn nodes<const N: usize>(
    network: &MemoryNetwork,
    settings: Settings,
    names: [&str; N],
) -> [TestNode; N] {
    let nodes = names.map(|name| start(network, settings, name));
    nodes.iter().for_each(|node| node.reaches(N - 1));
    nodes
}

fn supervisor(strategy: Strategy) -> Supervisor {
    let at_once = Backoff::new(Duration::from_millis(1), 1, Duration::from_millis(1));
    Supervisor::new(strategy).backoff(at_once)
}

/// Returns a child at a home, and the pids of its processes.
fn far(node: &TestNode, home: Home) -> (Child, mpsc::Receiver<Pid>) {
    let (sender, started) = mpsc::channel();
    let started_at = move |pid| sender.send(pid).unwrap();
    (node.cluster.child(home, "idle/1", (), started_at), started)
}

/// Returns a child of the supervisor's own node, and what it sends at each start.
fn near() -> (Child, mpsc::Receiver<()>) {
    let (sender, started) = mpsc::channel();
    let child = Child::new(move || {
        sender.send(()).unwrap();
        from_fn(|_: u8, _| ())
    });
    (child, started)
}

/// Fails if the strategy does not count the loss of a node as the end of its child, or a child does
/// not come back with its node.
#[test]
fn lost_node_ends_its_child_as_the_strategy_says() {
    let strategies = [
        (Strategy::OneForOne, [false, false]),
        (Strategy::OneForAll, [true, true]),
        (Strategy::RestForOne, [false, true]),
    ];
    for (strategy, restarts) in strategies {
        let network = MemoryNetwork::new();
        let [a, b] = nodes(&network, patient, ["a", "b"]);
        let ((first, of_first), (last, of_last)) = (near(), near());
        let (child, of_far) = far(&a, Home::node("b"));
        let supervisor = supervisor(strategy).child(first).child(child).child(last);
        let supervisor = supervisor.start(&a.scheduler).unwrap();
        let near = [&of_first, &of_last];
        near.iter()
            .for_each(|started| started.recv_timeout(LONG).unwrap());
        let old = of_far.recv_timeout(LONG).unwrap();
        network.kill("b");
        drop(b);
        // Before the node is back.
        for (started, restarts) in near.iter().zip(restarts) {
            if restarts {
                started.recv_timeout(LONG).unwrap();
            }
        }
        let b = start(&network, patient, "b");
        let new = of_far.recv_timeout(LONG).unwrap();
        assert_ne!(old.node(), new.node());
        assert_eq!(new.node(), a.number_of("b"));
        assert_eq!(b.scheduler.list().len(), OWN + 1);
        // The child alone ends.
        b.scheduler.kill(new.with_node(b.scheduler.node()));
        for (started, restarts) in near.iter().zip(restarts) {
            if restarts {
                started.recv_timeout(LONG).unwrap();
            }
        }
        assert_eq!(of_far.recv_timeout(LONG).unwrap().node(), new.node());
        for started in near {
            assert!(started.try_recv().is_err(), "{strategy:?}");
        }
        let end = a.scheduler.exit_of(supervisor);
        a.scheduler.cancel(supervisor);
        assert_eq!(end.wait(), ExitReason::Cancelled);
        wait_for("the child ends", || b.scheduler.list().len() == OWN);
        assert!(of_far.try_recv().is_err());
    }
}

/// Fails if a child outlives a split at its home, or there are two afterwards.
#[test]
fn split_ends_the_child_and_healing_starts_one() {
    let network = MemoryNetwork::new();
    let [a, b] = nodes(&network, quick, ["a", "b"]);
    let (child, started) = far(&a, Home::node("b"));
    let intensity = supervisor(Strategy::OneForOne).intensity(4, Duration::MAX);
    let supervisor = intensity.child(child).start(&a.scheduler).unwrap();
    for _ in 0..4 {
        let pid = started.recv_timeout(LONG).unwrap();
        let end = b.scheduler.exit_of(pid.with_node(b.scheduler.node()));
        network.cut("a", "b");
        network.cut("b", "a");
        assert_eq!(end.wait(), ExitReason::NodeDown);
        wait_for("the node is lost", || a.cluster.nodes().is_empty());
        // A child that waits for its node does not count as restarted again and again.
        std::thread::sleep(Duration::from_millis(20));
        assert!(started.try_recv().is_err());
        network.heal();
    }
    started.recv_timeout(LONG).unwrap();
    assert_eq!(b.scheduler.list().len(), OWN + 1);
    // One that waits may be cancelled.
    network.kill("b");
    wait_for("the node is lost", || a.cluster.nodes().is_empty());
    a.scheduler.cancel(supervisor);
    wait_for("all have ended", || a.scheduler.list().len() == OWN);
}

#[test]
fn child_of_a_key_moves_to_another_node() {
    let network = MemoryNetwork::new();
    let [a, b, c] = nodes(&network, patient, ["a", "b", "c"]);
    let at_b = |key: &u32| a.cluster.place(key.to_le_bytes()) == a.number_of("b");
    let key = (0..).find(at_b).unwrap().to_le_bytes();
    let (child, started) = far(&a, Home::key(key));
    let supervisor = supervisor(Strategy::OneForOne).child(child);
    let supervisor = supervisor.start(&a.scheduler).unwrap();
    assert_eq!(started.recv_timeout(LONG).unwrap().node(), a.number_of("b"));
    network.kill("b");
    let moved = started.recv_timeout(LONG).unwrap();
    assert_eq!(moved.node(), a.cluster.place(key));
    // The last node is the supervisor's own.
    network.kill("c");
    wait_for("the child is here", || {
        let here = a.scheduler.list().len() == OWN + 3;
        here && a.cluster.nodes().is_empty()
    });
    a.scheduler.kill(supervisor);
    wait_for("the child ends", || a.scheduler.list().len() == OWN);
    drop((b, c));
}

#[test]
fn intensity_bounds_the_restarts_of_a_far_child() {
    let network = MemoryNetwork::new();
    let [a, b] = nodes(&network, patient, ["a", "b"]);
    let ends = |child| {
        let supervisor = supervisor(Strategy::OneForAll).intensity(3, LONG);
        // It may have ended before a call of `exit_of` by its pid.
        let supervisor = supervisor.child(child);
        let spawn = Spawn::new().trap_exits(true);
        let mut end = None;
        let then = |pid| end = Some(a.scheduler.exit_of(pid));
        a.scheduler
            .spawn_process_then(supervisor, spawn, then)
            .unwrap();
        end.unwrap().wait()
    };
    let (sender, started) = mpsc::channel();
    let started_at = move |pid| sender.send(pid).unwrap();
    let why = "in a hurry".to_owned();
    let brief = a.cluster.child(Home::node("b"), "brief/1", why, started_at);
    assert_eq!(ends(brief), ExitReason::failed("too many restarts"));
    assert!(started.iter().count() <= 4);
    let unknown = a.cluster.child(Home::node("b"), "idle/2", (), |_| panic!());
    assert_eq!(ends(unknown), ExitReason::failed("too many restarts"));
    let panics = a
        .cluster
        .child(Home::node("b"), "idle/1", (), |_| panic!("on purpose"));
    assert_eq!(ends(panics), ExitReason::failed("too many restarts"));
    wait_for("the children end", || b.scheduler.list().len() == OWN);
}

#[test]
fn far_child_that_ends_normally_is_restarted_by_its_policy() {
    let network = MemoryNetwork::new();
    let [a, _b] = nodes(&network, patient, ["a", "b"]);
    for (policy, starts) in [(Policy::Transient, 1), (Policy::Permanent, 3)] {
        let (sender, started) = mpsc::channel();
        let started_at = move |pid| sender.send(pid).unwrap();
        let child = a.cluster.child(Home::node("b"), "normal/1", (), started_at);
        let supervisor = supervisor(Strategy::OneForOne).child(child.policy(policy));
        let supervisor = supervisor.start(&a.scheduler).unwrap();
        let all = (0..starts).all(|_| started.recv_timeout(LONG).is_ok());
        assert!(all, "{policy:?}");
        if policy == Policy::Transient {
            wait_for("the child has ended", || {
                a.scheduler.list().len() == OWN + 1
            });
            assert!(started.try_recv().is_err());
        }
        a.scheduler.cancel(supervisor);
        a.scheduler.wait(supervisor);
    }
}

/// Fails if a process is left whose supervisor's side has ended, or the end of an old one ends the
/// next.
#[test]
fn killed_proxy_leaves_no_process_behind() {
    let network = MemoryNetwork::new();
    let [a, b] = nodes(&network, patient, ["a", "b"]);
    let (child, started) = far(&a, Home::node("b"));
    let intensity = supervisor(Strategy::OneForOne).intensity(50, Duration::MAX);
    let supervisor = intensity.child(child.spawn(Spawn::new().name("proxy")));
    let supervisor = supervisor.start(&a.scheduler).unwrap();
    let proxy = a.scheduler.whereis("proxy").unwrap();
    for round in 0..50 {
        // In each state of the proxy.
        if round % 2 == 0 {
            started.recv_timeout(LONG).unwrap();
        }
        a.scheduler.kill(proxy);
        wait_for("it is restarted", || {
            let info = a.scheduler.inspect(proxy);
            info.is_some_and(|info| info.restarts > round)
        });
    }
    wait_for("one is there", || b.scheduler.list().len() == OWN + 1);
    assert_eq!(a.scheduler.inspect(proxy).unwrap().restarts, 50);
    a.scheduler.kill(supervisor);
    wait_for("all have ended", || {
        b.scheduler.list().len() == OWN && a.scheduler.list().len() == OWN
    });
}
