//! Two and three nodes on the loopback, each a process of the system.
mod support;

use std::{thread, time::Duration};
use support::{Authority, Folder, LEASE, LONG, Node, check_calls, check_items, free_port, micros};

/// Nodes without encryption, each of which connects to all others.
struct Loopback {
    folder: Folder,
    ports: Vec<(String, u16)>,
}

impl Loopback {
    fn new(names: &[&str]) -> Self {
        let ports = names.iter().map(|name| ((*name).to_owned(), free_port()));
        Self {
            folder: Folder::new(),
            ports: ports.collect(),
        }
    }

    fn start_with(&self, name: &str, more: &[&str]) -> Node {
        let mut arguments = vec!["insecure=".to_owned()];
        for (other, port) in &self.ports {
            let key = if other == name { "listen" } else { "connect" };
            arguments.push(format!("{key}=tcp/127.0.0.1:{port}"));
        }
        arguments.extend(more.iter().map(|&argument| argument.to_owned()));
        Node::start(&self.folder, &[], name, &arguments)
    }

    fn start(&self, name: &str) -> Node {
        self.start_with(name, &[])
    }
}

/// Two nodes that reach each other.
fn two() -> (Loopback, Node, Node) {
    let net = Loopback::new(&["a", "b"]);
    let (mut a, mut b) = (net.start("a"), net.start("b"));
    a.wait_news(true, "b", 1);
    b.wait_news(true, "a", 1);
    (net, a, b)
}

#[test]
fn messages_without_a_fault_are_all_delivered() {
    let (_net, mut a, mut b) = two();
    a.command("send b 1000 100000000");
    a.command("call b 1000");
    check_calls(&mut a);
    a.wait_report(|report| report["busy"] == 0);
    let accepted = a.report()["accepted"];
    b.wait_report(|_| true);
    let dead = b.report()["dead_letters"];
    support::wait_for(|| b.taken().delivered + b.report()["dead_letters"] == accepted);
    println!("{accepted} accepted, {dead} dead letters");
    check_items(&mut a, "b", &[b.taken()], b.report()["dead_letters"]);
    assert!(accepted > 1_000);
    assert_eq!(a.downs("b"), 0);
}

#[test]
fn killed_node_is_down_within_200_ms() {
    let (net, mut a, mut b) = two();
    for life in 1..=5 {
        a.wait_news(true, "b", life);
        a.wait_report(|report| report["nodes"] == 1);
        let when = b.kill();
        let down = a.wait_news(false, "b", life);
        let after = down.micros - when;
        println!("kill -9: down after {after} µs, {}", down.why);
        assert!(after <= 200_000, "{after} µs");
        b = net.start("b");
    }
}

#[test]
fn stopped_node_is_down_after_its_lease() {
    let (_net, mut a, mut b) = two();
    let account = |node: &mut Node| node.wait_report(|report| report["nodes"] == 1);
    account(&mut a);
    a.command("watch b 20");
    a.command("call b 6000");
    thread::sleep(Duration::from_millis(300));
    for stop in 1..=2 {
        let when = micros();
        b.signal(libc::SIGSTOP);
        let down = a.wait_news(false, "b", stop);
        let after = Duration::from_micros((down.micros - when) as u64);
        println!("SIGSTOP: down after {after:?}, {}", down.why);
        assert!(after <= LEASE + Duration::from_millis(200), "{after:?}");
        assert!(after >= LEASE * 3 / 4, "{after:?}");
        b.signal(libc::SIGCONT);
        a.wait_news(true, "b", stop + 1);
        b.wait_news(true, "a", stop + 1);
        account(&mut a);
    }
    a.wait_report(|report| report["exits_once"] == 20);
    check_calls(&mut a);
    let report = a.report();
    assert_eq!((report["exits_none"], report["exits_more"]), (0, 0));
}

#[test]
fn restarted_node_is_another_one() {
    let (net, mut a, mut b) = two();
    a.command("send b 5000 100000000");
    a.command("call b 5000");
    let mut lives = Vec::new();
    for life in 1..=3 {
        a.wait_report(|report| report["answered"] > 0);
        support::wait_for(|| b.taken().delivered > 100);
        a.command("watch b 10");
        a.command("hold b");
        // The relations and the pid are of this life.
        a.wait_report(|report| report["exits_none"] == 10);
        thread::sleep(Duration::from_millis(100));
        b.kill();
        lives.push(b.taken());
        a.wait_news(false, "b", life);
        b = net.start("b");
        a.wait_news(true, "b", life + 1);
        support::wait_for(|| b.taken().delivered > 0);
        assert!(!a.poke(), "a pid of the last life was accepted");
        a.wait_report(|report| report["exits_once"] == 10 * life as u64);
    }
    check_calls(&mut a);
    thread::sleep(Duration::from_millis(200));
    lives.push(b.taken());
    let dead: u64 = b.report()["dead_letters"];
    let report = a.report();
    assert_eq!((report["exits_none"], report["exits_more"]), (0, 0));
    check_items(&mut a, "b", &lives, dead);
}

/// The receiver is stopped for three leases while a sender floods it.
#[test]
fn stopped_receiver_costs_bounded_memory() {
    let (_net, mut a, b) = two();
    let mut b = b;
    a.command("send b 1500 100000000");
    support::wait_for(|| b.taken().delivered > 1_000);
    thread::sleep(Duration::from_millis(1_000));
    let before = a.memory();
    a.command("send b 6000 100000000");
    thread::sleep(Duration::from_millis(500));
    b.signal(libc::SIGSTOP);
    let mut most = 0;
    for _ in 0..30 {
        thread::sleep(LEASE / 10);
        most = most.max(a.memory());
    }
    b.signal(libc::SIGCONT);
    a.wait_news(true, "b", 2);
    println!("{before} KiB before, at most {most} KiB");
    assert!(most < before + 16 * 1_024, "{before} KiB, then {most} KiB");
    a.wait_report(|report| report["busy"] == 0);
    a.wait_report(|report| report["refused"] > 0);
    b.wait_report(|report| report["nodes"] == 1);
}

/// Fails if a message is lost, and neither refused, nor counted as a dead letter.
#[test]
fn keeper_that_takes_nothing_loses_counted_messages() {
    let (_net, mut a, mut b) = two();
    b.command("block 1500");
    a.command("send b 2000 100000000");
    thread::sleep(Duration::from_millis(600));
    let (here, there) = (a.memory(), b.memory());
    thread::sleep(Duration::from_millis(700));
    let (after, far) = (a.memory(), b.memory());
    println!("{here} KiB and {there} KiB, then {after} KiB and {far} KiB");
    assert!(after < here + 16 * 1_024 && far < there + 16 * 1_024);
    a.wait_report(|report| report["busy"] == 0);
    let accepted = a.report()["accepted"];
    support::wait_for(|| b.taken().delivered + b.report()["dead_letters"] == accepted);
    let dead = b.report()["dead_letters"];
    assert!(dead > 0);
    check_items(&mut a, "b", &[b.taken()], dead);
}

#[test]
fn node_that_leaves_says_so() {
    let (_net, mut a, mut b) = two();
    let when = micros();
    b.leave();
    let down = a.wait_news(false, "b", 1);
    println!("left: down after {} µs, {}", down.micros - when, down.why);
    assert_eq!(down.why, "Left");
}

#[test]
fn three_nodes_know_each_other_and_the_end_of_one() {
    let names = ["a", "b", "c"];
    let net = Loopback::new(&names);
    let mut nodes: Vec<_> = names.iter().map(|name| net.start(name)).collect();
    for node in &mut nodes {
        node.wait_report(|report| report["nodes"] == 2);
    }
    let mut c = nodes.pop().unwrap();
    let [a, b] = &mut nodes[..] else { panic!() };
    a.command("call b 3000");
    b.command("call c 3000");
    a.command("watch c 5");
    b.command("watch c 5");
    thread::sleep(Duration::from_millis(500));
    let when = c.kill();
    for node in [&mut *a, &mut *b] {
        let down = node.wait_news(false, "c", 1);
        assert!(down.micros - when <= 200_000, "{} µs", down.micros - when);
        node.wait_report(|report| report["exits_once"] == 5);
    }
    let mut c = net.start("c");
    c.wait_report(|report| report["nodes"] == 2);
    check_calls(a);
    check_calls(b);
    assert_eq!(a.downs("b"), 0);
    assert_eq!(a.report()["exits_more"], 0);
}

#[test]
fn mutual_tls_joins_nodes_of_one_authority_alone() {
    let folder = Folder::new();
    let (ours, theirs) = (folder.0.join("ours"), folder.0.join("theirs"));
    std::fs::create_dir(&ours).unwrap();
    std::fs::create_dir(&theirs).unwrap();
    let authority = Authority::new(&ours);
    let tls = |name: &str| {
        let files = authority.issue(name, &["127.0.0.1"]);
        format!("tls={}", files.display())
    };
    let port = free_port();
    let a = [tls("a"), format!("listen=tls/127.0.0.1:{port}")];
    let connect = format!("connect=tls/127.0.0.1:{port}");
    let mut a = Node::start(&folder, &[], "a", &a);
    let mut b = Node::start(&folder, &[], "b", &[tls("b"), connect.clone()]);
    a.wait_news(true, "b", 1);
    b.wait_news(true, "a", 1);
    b.command("call a 200");
    check_calls(&mut b);

    // Another authority, which the hostile node trusts beside ours: so it accepts this one.
    let files = Authority::new(&theirs).issue("c", &["127.0.0.1"]);
    std::fs::copy(ours.join("a/ca.pem"), files.join("ca.pem")).unwrap();
    let tls = format!("tls={}", files.display());
    let mut c = Node::start(&folder, &[], "c", &[tls, connect.clone()]);
    let refused = "invalid peer certificate";
    support::wait_for(|| a.log().matches(refused).count() >= 2);

    // A client of TLS without a certificate, and one without TLS.
    let files = ours.join("a");
    support::knock_without_certificate(&files.join("ca.pem"), port);
    support::wait_for(|| a.log().contains("peer sent no certificates"));

    thread::sleep(Duration::from_secs(1));
    let (report, of_c) = (a.report(), c.report());
    println!("{report:?}\n{of_c:?}");
    assert_eq!((report["transports"], report["nodes"]), (1, 1));
    assert_eq!((of_c["transports"], of_c["nodes"]), (0, 0));
    assert_eq!(c.news.len(), 0);
    let _ = LONG;
}
