//! Nodes in one program, over the engine in memory and its faults.
mod common;

use common::{LONG, TestNode, patient, quick, wait_for};
use process_cluster::{
    Builder, Cluster, DecodeError, Decoder, Encoder, MemoryNetwork, Message, NodeChange, NodeLoss,
    RegisterError,
};
use process_scheduler::{
    CallError, ExitReason, Inbox, Mailbox, Pid, Reply, Scheduler, SendError, Signal, Spawn,
};
use std::{
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

enum Account {
    Deposit(u64),
    Balance(Reply<u64>),
    /// Asks another process for its balance.
    Ask(Pid, Reply<u64>),
    Forget(Reply<u64>),
}

impl Message for Account {
    fn encode(self, out: &mut Encoder<'_>) {
        match self {
            Self::Deposit(amount) => {
                out.u8(0);
                out.u64(amount);
            }
            Self::Balance(reply) => {
                out.u8(1);
                out.reply(reply);
            }
            Self::Ask(pid, reply) => {
                out.u8(2);
                out.pid(pid);
                out.reply(reply);
            }
            Self::Forget(reply) => {
                out.u8(3);
                out.reply(reply);
            }
        }
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(match input.u8()? {
            0 => Self::Deposit(input.u64()?),
            1 => Self::Balance(input.reply()?),
            2 => Self::Ask(input.pid()?, input.reply()?),
            3 => Self::Forget(input.reply()?),
            _ => return Err(DecodeError::Invalid),
        })
    }
}

/// A message that no node has a codec for.
#[derive(Debug, PartialEq, Eq)]
struct Unknown(u8);

fn join(network: &MemoryNetwork, name: &str, builder: Builder) -> TestNode {
    let builder = builder
        .codec::<Account>("account/1")
        .codec::<Vec<u8>>("bytes/1");
    common::join(network, name, builder)
}

impl TestNode {
    fn account(&self) -> Pid {
        let mut balance = 0;
        let mut forgotten = Vec::new();
        let handle = self.scheduler.handle();
        let account = self.scheduler.spawn_fn(move |message, _| match message {
            Account::Deposit(amount) => balance += amount,
            Account::Balance(reply) => drop(reply.send(balance)),
            Account::Ask(pid, reply) => {
                let address = handle.address::<Account>(pid).unwrap();
                drop(address.try_send(Account::Balance(reply)));
            }
            Account::Forget(reply) => forgotten.push(reply),
        });
        account.unwrap().pid()
    }

    fn call(
        &self,
        pid: Pid,
        request: impl FnOnce(Reply<u64>) -> Account,
        within: Duration,
    ) -> Result<u64, CallError> {
        self.scheduler
            .address::<Account>(pid)
            .unwrap()
            .call(request, within)
            .wait()
    }
}

fn two(network: &MemoryNetwork) -> [TestNode; 2] {
    two_of(network, patient)
}

fn two_of(network: &MemoryNetwork, settings: fn(&str) -> Builder) -> [TestNode; 2] {
    let nodes = ["a", "b"].map(|name| join(network, name, settings(name)));
    nodes.iter().for_each(|node| node.reaches(1));
    nodes
}

#[test]
fn messages_and_calls_reach_another_node() {
    let [a, b] = two(&MemoryNetwork::new());
    let account = a.sees(b.account(), "b");
    let address = a.scheduler.address::<Account>(account).unwrap();
    for amount in 1..=100 {
        address.try_send(Account::Deposit(amount)).unwrap();
    }
    assert_eq!(a.call(account, Account::Balance, LONG), Ok(5_050));
}

/// A pid, and a place for an answer, go through a third node.
#[test]
fn pids_and_replies_travel_on() {
    let network = MemoryNetwork::new();
    let nodes = ["a", "b", "c"].map(|name| join(&network, name, patient(name)));
    nodes.iter().for_each(|node| node.reaches(2));
    let [a, b, c] = &nodes;
    let (at_b, at_c) = (a.sees(b.account(), "b"), a.sees(c.account(), "c"));
    let deposits = a.scheduler.address::<Account>(at_c).unwrap();
    deposits.try_send(Account::Deposit(7)).unwrap();
    assert_eq!(a.call(at_c, Account::Balance, LONG), Ok(7));
    assert_eq!(a.call(at_b, |reply| Account::Ask(at_c, reply), LONG), Ok(7));
    // A process of the caller's own node.
    let at_a = a.account();
    assert_eq!(a.call(at_b, |reply| Account::Ask(at_a, reply), LONG), Ok(0));
}

#[test]
fn call_ends_once_however_it_ends() {
    let network = MemoryNetwork::new();
    let [a, b] = two(&network);
    let account = a.sees(b.account(), "b");
    let forget = || a.call(account, Account::Forget, Duration::from_millis(20));
    assert_eq!(forget(), Err(CallError::Timeout));
    // No such process: the request is dropped over there.
    let gone = b.account();
    b.scheduler.kill(gone);
    b.scheduler.wait(gone);
    let gone = a.sees(gone, "b");
    assert_eq!(
        a.call(gone, Account::Balance, LONG),
        Err(CallError::Dropped)
    );
    wait_for("it is counted", || b.cluster.metrics().dead_letters == 1);
    let address = a.scheduler.address::<Account>(account).unwrap();
    let waits = address.call(Account::Forget, LONG);
    network.kill("b");
    assert_eq!(waits.wait(), Err(CallError::NodeDown));
    let refused = CallError::Refused(SendError::NodeDown(()));
    assert_eq!(a.call(account, Account::Balance, LONG), Err(refused));
}

#[test]
fn message_without_a_codec_is_handed_back() {
    let network = MemoryNetwork::new();
    let a = join(&network, "a", patient("a").codec::<String>("text/2"));
    let b = join(&network, "b", patient("b").codec::<String>("text/1"));
    [&a, &b].iter().for_each(|node| node.reaches(1));
    let pid = a.sees(b.account(), "b");
    let sent = a.scheduler.try_send(pid, Unknown(7));
    assert_eq!(sent, Err(SendError::NotCarried(Unknown(7))));
    // The other node knows no such version.
    let sent = a.scheduler.try_send(pid, "text".to_owned());
    assert_eq!(sent, Err(SendError::NotCarried("text".to_owned())));
    let long = vec![0_u8; 2 << 20];
    let sent = a.scheduler.try_send(pid, long);
    assert!(matches!(sent, Err(SendError::NotCarried(bytes)) if bytes.len() == 2 << 20));
}

/// An old node and a new one, which knows the old version too.
#[test]
fn versions_of_a_message_live_together() {
    let network = MemoryNetwork::new();
    let old = join(&network, "old", patient("old").codec::<u32>("number/1"));
    let new = patient("new")
        .codec::<u64>("number/2")
        .codec::<u32>("number/1");
    let new = join(&network, "new", new);
    [&old, &new].iter().for_each(|node| node.reaches(1));
    let (sender, seen) = mpsc::channel();
    let small = sender.clone();
    let of_old = old
        .scheduler
        .spawn_fn(move |n: u32, _| sender.send(n).unwrap())
        .unwrap();
    let of_old = new.sees(of_old.pid(), "old");
    assert_eq!(new.scheduler.try_send(of_old, 7_u32), Ok(()));
    assert_eq!(
        new.scheduler.try_send(of_old, 7_u64),
        Err(SendError::NotCarried(7))
    );
    let of_new = new
        .scheduler
        .spawn_fn(move |n: u32, _| small.send(n).unwrap())
        .unwrap();
    assert_eq!(
        old.scheduler.try_send(old.sees(of_new.pid(), "new"), 8_u32),
        Ok(())
    );
    let mut both = [seen.recv().unwrap(), seen.recv().unwrap()];
    both.sort_unstable();
    assert_eq!(both, [7, 8]);
}

#[test]
fn monitors_and_links_tell_of_each_end_once() {
    let network = MemoryNetwork::new();
    let [a, b] = two_of(&network, quick);
    let (guard, exits) = a.guard();
    let far = || {
        let own = b.account();
        (own, a.sees(own, "b"))
    };
    let ((one, far_one), (two, far_two)) = (far(), far());
    let (three, far_three) = far();
    a.scheduler.monitor(guard, far_one);
    a.scheduler.link(guard, far_two);
    a.scheduler.monitor(guard, far_three);
    // A frame behind the relations says that they are there.
    assert_eq!(a.call(far_one, Account::Balance, LONG), Ok(0));
    b.scheduler.kill(one);
    assert_eq!(exits.recv_timeout(LONG), Ok((far_one, ExitReason::Killed)));
    b.scheduler.kill(two);
    assert_eq!(exits.recv_timeout(LONG), Ok((far_two, ExitReason::Killed)));
    // One that has ended already.
    a.scheduler.monitor(guard, far_one);
    assert_eq!(
        exits.recv_timeout(LONG),
        Ok((far_one, ExitReason::NoProcess))
    );
    a.scheduler.link(guard, far_two);
    assert_eq!(
        exits.recv_timeout(LONG),
        Ok((far_two, ExitReason::NoProcess))
    );
    // Nobody tells of a cut but the lease.
    let begun = Instant::now();
    network.cut("a", "b");
    network.cut("b", "a");
    assert_eq!(
        exits.recv_timeout(LONG),
        Ok((far_three, ExitReason::NodeDown))
    );
    assert!(
        begun.elapsed() >= Duration::from_millis(700),
        "{:?}",
        begun.elapsed()
    );
    network.heal();
    a.reaches(1);
    // The process has not ended, and is the same one. Its monitor is over.
    assert_eq!(a.call(far_three, Account::Balance, LONG), Ok(0));
    b.scheduler.kill(three);
    b.scheduler.wait(three);
    assert_eq!(
        a.call(far_three, Account::Balance, LONG),
        Err(CallError::Dropped)
    );
    assert_eq!(exits.try_recv().ok(), None);
}

/// Waits on both sides: each has lost the other, and reaches it again.
fn lose_and_find([a, b]: [&TestNode; 2], why: impl Fn()) {
    let before = [a, b].map(|node| node.losses().len());
    why();
    for (node, before) in [a, b].iter().zip(before) {
        wait_for("the node is lost", || node.losses().len() > before);
        node.reaches(1);
    }
}

#[test]
fn lost_frame_is_a_lost_node() {
    let network = MemoryNetwork::new();
    let [a, b] = two_of(&network, quick);
    let account = b.account();
    let call = || a.call(a.sees(account, "b"), Account::Balance, LONG);
    assert_eq!(call(), Ok(0));
    lose_and_find([&a, &b], || {
        network.lose_next(1);
        let _ = a
            .scheduler
            .try_send(a.sees(account, "b"), Account::Deposit(1));
        // The next frame shows the gap, if the lost one was no sign of life.
        while a.losses().is_empty() {
            network.lose_next(1);
            let nodes = a.cluster.nodes();
            let Some(node) = nodes.first() else { break };
            let to = account.with_node(node.number);
            let _ = a.scheduler.try_send(to, Account::Deposit(0));
            let _ = a.scheduler.try_send(to, Account::Deposit(0));
            thread::sleep(Duration::from_millis(1));
        }
    });
    wait_for("the call is answered", || call().is_ok());
}

#[test]
fn repeated_frame_is_taken_once() {
    let network = MemoryNetwork::new();
    let [a, b] = two(&network);
    let account = a.sees(b.account(), "b");
    network.repeat(u32::MAX);
    for _ in 0..100 {
        a.scheduler.try_send(account, Account::Deposit(1)).unwrap();
    }
    assert_eq!(a.call(account, Account::Balance, LONG), Ok(100));
    assert_eq!(a.losses(), []);
}

#[test]
fn node_that_is_started_again_is_another_node() {
    let network = MemoryNetwork::new();
    let [a, b] = two(&network);
    let account = b.account();
    b.cluster.register("account", account).unwrap();
    wait_for("the name is known", || {
        a.cluster.whereis("account").is_some()
    });
    let old = a.cluster.whereis("account").unwrap();
    assert_eq!(old, a.sees(account, "b"));
    network.kill("b");
    wait_for("it is lost", || a.losses() == [NodeLoss::Disconnected]);
    assert_eq!(a.cluster.whereis("account"), None);
    let again = join(&network, "b", patient("b"));
    let account = again.account();
    again.cluster.register("account", account).unwrap();
    a.reaches(1);
    wait_for("the name is known", || {
        a.cluster.whereis("account").is_some()
    });
    let new = a.cluster.whereis("account").unwrap();
    // The slot and the generation are the same: the first process of a scheduler.
    assert_eq!(old.with_node(0), new.with_node(0));
    assert_ne!(old, new);
    let refused = CallError::Refused(SendError::NodeDown(()));
    assert_eq!(a.call(old, Account::Balance, LONG), Err(refused));
    assert_eq!(a.call(new, Account::Balance, LONG), Ok(0));
    drop(b);
}

#[test]
fn name_ends_with_its_process_and_is_given_once() {
    let network = MemoryNetwork::new();
    let [a, b] = two(&network);
    let (one, two) = (a.account(), b.account());
    a.cluster.register("teller", one).unwrap();
    wait_for("the name is known", || {
        b.cluster.whereis("teller") == Some(b.sees(one, "a"))
    });
    let taken = RegisterError::Taken(b.sees(one, "a"));
    assert_eq!(b.cluster.register("teller", two), Err(taken));
    let elsewhere = a.sees(two, "b");
    assert_eq!(
        a.cluster.register("other", elsewhere),
        Err(RegisterError::NotHere)
    );
    assert_eq!(
        a.cluster.register(&"x".repeat(1_001), one),
        Err(RegisterError::TooLong)
    );
    a.scheduler.kill(one);
    wait_for("the name is free", || b.cluster.whereis("teller").is_none());
    b.cluster.register("teller", two).unwrap();
    wait_for("the name is known", || {
        a.cluster.whereis("teller") == Some(elsewhere)
    });
    assert!(b.cluster.unregister("teller") && !b.cluster.unregister("teller"));
    wait_for("the name is free", || a.cluster.whereis("teller").is_none());
}

/// Fails if the names of a node whose registrar was killed stay, or a later one does.
#[test]
fn name_ends_with_its_process_after_a_kill_of_all() {
    let network = MemoryNetwork::new();
    let [a, b] = two(&network);
    for round in 0..3 {
        let (one, two) = (a.account(), a.account());
        a.cluster.register("one", one).unwrap();
        a.cluster.join("group", one).unwrap();
        // The first processes are the node's own.
        let own = a.scheduler.list();
        let own = own.into_iter().filter(|pid| ![one, two].contains(pid));
        assert!(own.filter(|pid| a.scheduler.kill(*pid)).count() > 0);
        a.cluster.register("two", two).unwrap();
        wait_for("the names are known", || {
            b.cluster.whereis("two") == Some(b.sees(two, "a"))
        });
        assert_eq!(b.cluster.whereis("one"), Some(b.sees(one, "a")), "{round}");
        assert!(a.scheduler.kill(one) && a.scheduler.kill(two));
        wait_for("the names are free", || {
            b.cluster.whereis("one").is_none()
                && b.cluster.whereis("two").is_none()
                && b.cluster.members("group").is_empty()
        });
    }
}

/// Fails if a process that ends meanwhile keeps the name, or one of a scheduler that ends.
#[test]
fn name_of_a_process_that_ends_meanwhile_is_free() {
    let network = MemoryNetwork::new();
    let [a, b] = two(&network);
    for _ in 0..200 {
        let pid = a.account();
        let handle = a.scheduler.handle();
        let kills = thread::spawn(move || handle.kill(pid));
        let registered = a.cluster.register("brief", pid);
        kills.join().unwrap();
        assert!(matches!(registered, Ok(()) | Err(RegisterError::NotHere)));
        wait_for("the name is free", || a.cluster.whereis("brief").is_none());
    }
    wait_for("the name is free", || b.cluster.whereis("brief").is_none());
    let TestNode {
        scheduler, cluster, ..
    } = a;
    let stays = process_scheduler::from_async(|_: Inbox<()>| std::future::pending::<()>());
    let stays = scheduler.spawn(stays).unwrap().pid();
    let handle = scheduler.handle();
    let ends = thread::spawn(move || drop(scheduler));
    while handle.inspect(stays).is_some() {
        let _ = cluster.register("late", stays);
        cluster.unregister("late");
        let _ = cluster.register("late", stays);
    }
    wait_for("the name is free", || cluster.whereis("late").is_none());
    ends.join().unwrap();
}

/// Fails if a node keeps a name that one with an older incarnation has, or does not tell so.
#[test]
fn name_of_both_sides_of_a_split_is_the_older_nodes() {
    let network = MemoryNetwork::new();
    let a = join(&network, "a", quick("a"));
    // Their incarnations begin with the milliseconds.
    thread::sleep(Duration::from_millis(3));
    let b = join(&network, "b", quick("b"));
    [&a, &b].iter().for_each(|node| node.reaches(1));
    network.cut("a", "b");
    network.cut("b", "a");
    [&a, &b].iter().for_each(|node| node.reaches(0));
    let (one, two) = (a.account(), b.account());
    a.cluster.register("leader", one).unwrap();
    b.cluster.register("leader", two).unwrap();
    network.heal();
    [&a, &b].iter().for_each(|node| node.reaches(1));
    wait_for("both agree", || {
        a.cluster.whereis("leader") == Some(one)
            && b.cluster.whereis("leader") == Some(b.sees(one, "a"))
    });
    let lost = NodeChange::NameLost {
        name: "leader".to_owned(),
        pid: two,
    };
    wait_for("b is told", || b.changes.lock().unwrap().contains(&lost));
    assert!(!b.cluster.unregister("leader"));
    assert!(
        !a.changes
            .lock()
            .unwrap()
            .iter()
            .any(|c| matches!(c, NodeChange::NameLost { .. }))
    );
}

#[test]
fn message_to_a_group_reaches_the_members_of_all_nodes() {
    let network = MemoryNetwork::new();
    let nodes = ["a", "b", "c"].map(|name| join(&network, name, patient(name)));
    nodes.iter().for_each(|node| node.reaches(2));
    let (sender, seen) = mpsc::channel();
    let mut pids = Vec::new();
    for node in &nodes[..2] {
        for _ in 0..3 {
            let sender = sender.clone();
            let member = node
                .scheduler
                .spawn_fn(move |text: Vec<u8>, _| sender.send(text).unwrap());
            let member = member.unwrap().pid();
            node.cluster.join("all", member).unwrap();
            node.cluster.join("all", member).unwrap();
            pids.push(member);
        }
    }
    let c = &nodes[2];
    wait_for("the members are known", || {
        c.cluster.members("all").len() == 6
    });
    let published = c.cluster.publish("all", &b"hello".to_vec());
    assert_eq!(
        (published.here, published.nodes, published.refused),
        (0, 2, 0)
    );
    assert!((0..6).all(|_| seen.recv_timeout(LONG).unwrap() == b"hello"));
    let a = &nodes[0];
    wait_for("the members are known", || {
        a.cluster.members("all").len() == 6
    });
    assert!(a.cluster.leave_group("all", pids[0]) && !a.cluster.leave_group("all", pids[0]));
    a.scheduler.kill(pids[1]);
    wait_for("the members have left", || {
        a.cluster.members("all").len() == 4
    });
    let published = a.cluster.publish("all", &b"again".to_vec());
    assert_eq!(
        (published.here, published.nodes, published.refused),
        (1, 1, 0)
    );
    assert!((0..4).all(|_| seen.recv_timeout(LONG).unwrap() == b"again"));
    assert_eq!(a.cluster.publish("nobody", &Vec::new()), Default::default());
    assert_eq!(seen.try_recv().ok(), None);
}

/// Nothing goes from `a` to `b`, which `a` hears.
#[test]
fn node_that_takes_nothing_costs_bounded_memory() {
    let network = MemoryNetwork::new();
    let long_lease = |name| {
        Cluster::builder(name)
            .queue(100)
            .lease(Duration::from_secs(4))
    };
    let [a, b] = ["a", "b"].map(|name| join(&network, name, long_lease(name)));
    [&a, &b].iter().for_each(|node| node.reaches(1));
    let account = a.sees(b.account(), "b");
    network.cut("a", "b");
    let send = || a.scheduler.try_send(account, Account::Deposit(1));
    let sent = (0..)
        .find(|_| matches!(send(), Err(SendError::Full(_))))
        .unwrap();
    assert_eq!(sent, 100);
    // One that waits is woken, here by the loss.
    let (sender, done) = mpsc::channel();
    let address = a.scheduler.address::<Account>(account).unwrap();
    let waits = a.scheduler.spawn_async(move |_: Inbox<()>| async move {
        let sent = address.send(Account::Deposit(1)).await;
        sender.send(sent.map_err(|refused| refused.kind())).unwrap();
    });
    assert!(waits.is_ok());
    assert!(done.recv_timeout(Duration::from_millis(50)).is_err());
    network.kill("b");
    assert_eq!(done.recv_timeout(LONG), Ok(Err(SendError::NodeDown(()))));
}

#[test]
fn send_awaits_room_and_loses_nothing() {
    let network = MemoryNetwork::new();
    let [a, b] = ["a", "b"].map(|name| join(&network, name, patient(name).queue(8)));
    [&a, &b].iter().for_each(|node| node.reaches(1));
    let account = a.sees(b.account(), "b");
    let address = a.scheduler.address::<Account>(account).unwrap();
    let (sender, done) = mpsc::channel();
    for _ in 0..3 {
        let (address, sender) = (address.clone(), sender.clone());
        let task = a.scheduler.spawn_async(move |_: Inbox<()>| async move {
            for _ in 0..2_000 {
                address.send(Account::Deposit(1)).await.unwrap();
            }
            sender.send(()).unwrap();
        });
        assert!(task.is_ok());
    }
    (0..3).for_each(|_| done.recv_timeout(LONG).unwrap());
    let balance = || loop {
        match a.call(account, Account::Balance, LONG) {
            Err(CallError::Refused(SendError::Full(()))) => thread::yield_now(),
            balance => break balance,
        }
    };
    assert_eq!(balance(), Ok(6_000));
    assert_eq!(a.losses(), []);
}

#[test]
fn full_mailbox_of_another_node_is_a_dead_letter() {
    let network = MemoryNetwork::new();
    let [a, b] = two(&network);
    let deaf = process_scheduler::from_async(|_: Inbox<Account>| std::future::pending::<()>());
    let spawn = Spawn::new().mailbox(Mailbox::Bounded(1));
    let deaf = b.scheduler.spawn_process(deaf, spawn).unwrap();
    let far = a.sees(deaf.pid(), "b");
    for _ in 0..4 {
        a.scheduler.try_send(far, Account::Deposit(1)).unwrap();
    }
    wait_for("they are counted", || b.cluster.metrics().dead_letters >= 2);
    b.scheduler.kill(deaf.pid());
}

#[test]
fn nodes_and_signals_are_refused_as_asked() {
    let network = MemoryNetwork::new();
    let picky = patient("picky").admit(|name| name != "stranger");
    let picky = picky.allow(|_, signal| !matches!(signal, Signal::Kill | Signal::Link { .. }));
    let picky = join(&network, "picky", picky);
    let friend = join(&network, "friend", patient("friend"));
    let stranger = join(&network, "stranger", patient("stranger"));
    picky.reaches(1);
    wait_for("it is refused", || picky.cluster.metrics().refused > 0);
    stranger.reaches(1);
    let account = picky.account();
    let far = friend.sees(account, "picky");
    let (guard, exits) = friend.guard();
    let refused = picky.cluster.metrics().refused;
    friend.scheduler.kill(far);
    friend.scheduler.link(guard, far);
    assert_eq!(exits.recv_timeout(LONG), Ok((far, ExitReason::NoProcess)));
    assert!(picky.cluster.metrics().refused >= refused + 2);
    assert_eq!(friend.call(far, Account::Balance, LONG), Ok(0));
    assert!(friend.scheduler.cancel(far));
    picky.scheduler.wait(account);
}

#[test]
fn node_that_leaves_says_so_and_answers_first() {
    let network = MemoryNetwork::new();
    let [a, b] = two(&network);
    let slow = b
        .scheduler
        .spawn_async(|mut inbox: Inbox<Account>| async move {
            while let Some(message) = inbox.receive().await {
                if let Account::Balance(reply) = message {
                    inbox.handle().sleep(Duration::from_millis(50)).await;
                    let _ = reply.send(7);
                }
            }
        });
    let far = a.sees(slow.unwrap().pid(), "b");
    let call = a
        .scheduler
        .address::<Account>(far)
        .unwrap()
        .call(Account::Balance, LONG);
    let forgets = a.sees(b.account(), "b");
    wait_for("it has come", || {
        a.call(forgets, Account::Balance, LONG).is_ok()
    });
    assert_eq!(b.cluster.leave(LONG), 0);
    assert_eq!(call.wait(), Ok(7));
    wait_for("it has left", || a.losses() == [NodeLoss::Left]);
    a.reaches(0);
}

#[test]
fn leave_does_not_wait_beyond_its_limit() {
    let network = MemoryNetwork::new();
    let [a, b] = two(&network);
    let far = a.sees(b.account(), "b");
    let call = a
        .scheduler
        .address::<Account>(far)
        .unwrap()
        .call(Account::Forget, LONG);
    assert_eq!(a.call(far, Account::Balance, LONG), Ok(0));
    assert_eq!(b.cluster.leave(Duration::from_millis(20)), 1);
    assert_eq!(call.wait(), Err(CallError::NodeDown));
}

#[test]
fn nodes_place_a_key_alike() {
    let network = MemoryNetwork::new();
    let nodes = ["a", "b", "c"].map(|name| join(&network, name, patient(name)));
    nodes.iter().for_each(|node| node.reaches(2));
    for key in 0..100_u32 {
        let name_at = |node: &TestNode| {
            let number = node.cluster.place(key.to_le_bytes());
            let nodes = node.cluster.nodes();
            let other = nodes.into_iter().find(|node| node.number == number);
            other.map_or(node.cluster.name().to_owned(), |node| node.name)
        };
        let names = nodes.each_ref().map(name_at);
        assert!(names.iter().all(|name| *name == names[0]), "{names:?}");
    }
}

#[test]
fn bad_settings_are_typed_errors() {
    let network = MemoryNetwork::new();
    let scheduler = Scheduler::builder().workers(1).build();
    let join = |builder: Builder, name: &str| {
        let error = builder.join(&scheduler, network.engine(name)).unwrap_err();
        error.to_string()
    };
    assert!(join(Cluster::builder(""), "a").contains("1 to 1000 bytes"));
    assert!(join(Cluster::builder("a").codec::<u8>(""), "a").contains("1 to 1000 bytes"));
    let twice = Cluster::builder("a").codec::<u8>("n").codec::<u16>("n");
    assert!(join(twice, "a").contains("another codec \"n\""));
    let cluster = Cluster::builder("a")
        .join(&scheduler, network.engine("a"))
        .unwrap();
    assert!(join(Cluster::builder("b"), "b").contains("has a relay"));
    let other = Scheduler::builder().workers(1).build();
    let same = Cluster::builder("a")
        .join(&other, network.engine("a"))
        .unwrap_err();
    assert!(same.to_string().contains("another node \"a\""));
    drop(cluster);
}
