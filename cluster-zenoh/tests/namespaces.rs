//! Nodes in network namespaces, each two of which are joined by a pair of virtual interfaces, with
//! mutual TLS. It needs root, and the command `ip`: it says so, and passes, without them.
mod support;

use std::{
    collections::HashMap,
    io::Write,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};
use support::{Authority, Folder, LEASE, Node, check_calls, check_items, micros};

/// Runs `ip`. Returns what it has said if it has failed.
fn ip(words: &str) -> Result<(), String> {
    let output = Command::new("ip").args(words.split_whitespace()).output();
    let output = output.map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "ip {words}: {}",
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

/// Removes the namespaces, and ends what is in them, when the input of this program ends: so at
/// each exit of the test, however it exits.
const SWEEPER: &str = r#"
    while read -r namespace; do all="$all $namespace"; done
    for namespace in $all; do
        for pid in $(ip netns pids "$namespace" 2>/dev/null); do kill -9 "$pid"; done
        ip netns delete "$namespace"
    done
"#;

/// Namespaces that are joined each to each.
struct Net {
    names: Vec<String>,
    folder: Folder,
    tls: HashMap<String, PathBuf>,
    sweeper: Child,
}

impl Net {
    /// Makes the namespaces of these nodes. `None` says that the test is left out.
    fn new(test: &str, names: &[&str]) -> Option<Self> {
        // SAFETY: it has no premises.
        let is_root = unsafe { libc::geteuid() } == 0;
        if !is_root || ip("netns list").is_err() {
            println!("left out: network namespaces need root and the command ip");
            return None;
        }
        let mut sweeper = Command::new("setsid");
        sweeper
            .args(["sh", "-c", SWEEPER])
            .stdin(Stdio::piped())
            .stderr(Stdio::null());
        let mut sweeper = sweeper.spawn().unwrap();
        let namespaces = names
            .iter()
            .map(|name| space(test, name))
            .collect::<Vec<_>>();
        let input = sweeper.stdin.as_mut().unwrap();
        namespaces
            .iter()
            .for_each(|space| writeln!(input, "{space}").unwrap());
        let folder = Folder::new();
        let authority = Authority::new(&folder.0);
        let tls = names.iter().map(|name| {
            let others = names.iter().filter(|other| *other != name);
            let addresses: Vec<_> = others.map(|other| address(names, name, other)).collect();
            let addresses: Vec<_> = addresses.iter().map(String::as_str).collect();
            ((*name).to_owned(), authority.issue(name, &addresses))
        });
        let net = Self {
            names: names.iter().map(|&name| name.to_owned()).collect(),
            tls: tls.collect(),
            folder,
            sweeper,
        };
        if let Err(why) = net.join(test) {
            println!("left out: {why}");
            return None;
        }
        Some(net)
    }

    fn join(&self, test: &str) -> Result<(), String> {
        let names: Vec<_> = self.names.iter().map(String::as_str).collect();
        for name in &names {
            ip(&format!("netns add {}", space(test, name)))?;
            ip(&format!("-n {} link set lo up", space(test, name)))?;
        }
        for (at, one) in names.iter().enumerate() {
            for other in &names[at + 1..] {
                let [here, there] = [space(test, one), space(test, other)];
                ip(&format!(
                    "-n {here} link add to-{other} type veth peer name to-{one} netns {there}"
                ))?;
                for (here, space, there) in [(one, here, other), (other, there, one)] {
                    let own = address(&names, here, there);
                    ip(&format!("-n {space} address add {own}/24 dev to-{there}"))?;
                    ip(&format!("-n {space} link set to-{there} up"))?;
                }
            }
        }
        Ok(())
    }

    fn start(&self, test: &str, name: &str) -> Node {
        let names: Vec<_> = self.names.iter().map(String::as_str).collect();
        let mut arguments = vec![
            format!("tls={}", self.tls[name].display()),
            "listen=tls/0.0.0.0:7447".to_owned(),
        ];
        for other in names.iter().filter(|other| **other != name) {
            let to = address(&names, other, name);
            arguments.push(format!("connect=tls/{to}:7447"));
        }
        let space = space(test, name);
        Node::start(
            &self.folder,
            &["ip", "netns", "exec", &space],
            name,
            &arguments,
        )
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        drop(self.sweeper.stdin.take());
        let _ = self.sweeper.wait();
    }
}

fn space(test: &str, name: &str) -> String {
    format!("cz-{}-{test}-{name}", std::process::id())
}

/// Returns the address of a node on its way to another one.
fn address(names: &[&str], of: &str, to: &str) -> String {
    let place = |name| names.iter().position(|other| *other == name).unwrap();
    let (one, other) = (place(of), place(to));
    format!("10.99.{}.{}", 10 * one.min(other) + one.max(other), one + 1)
}

fn set(test: &str, from: &str, to: &str, state: &str) {
    let space = space(test, from);
    ip(&format!("-n {space} link set to-{to} {state}")).unwrap();
}

/// Starts nodes that all reach each other.
fn start_all(net: &Net, test: &str) -> Vec<Node> {
    let mut nodes: Vec<_> = net.names.iter().map(|name| net.start(test, name)).collect();
    let others = nodes.len() as u64 - 1;
    for node in &mut nodes {
        node.wait_report(|report| report["nodes"] == others);
    }
    nodes
}

/// Lets the first of two nodes send, call and monitor, cuts the way to the second and heals it, and
/// checks that nothing was lost without a report. The second must lose the first within the lease,
/// and the first within a time of its own.
fn cut_and_heal(test: &str, within: Duration, cut: impl Fn(), heal: impl Fn()) {
    let Some(net) = Net::new(test, &["a", "b"]) else {
        return;
    };
    let mut nodes = start_all(&net, test);
    let [a, b] = &mut nodes[..] else { panic!() };
    a.command("send b 12000 100000000");
    a.command("call b 12000");
    for round in 1..=2 {
        let delivered = b.taken().delivered;
        support::wait_for(|| b.taken().delivered > delivered + 100);
        a.command("watch b 10");
        b.command("watch a 10");
        for node in [&mut *a, &mut *b] {
            node.wait_report(|report| report["exits_none"] == 10);
        }
        thread::sleep(Duration::from_millis(200));
        let memory = a.memory();
        let when = micros();
        cut();
        let downs = [
            a.wait_news(false, "b", round),
            b.wait_news(false, "a", round),
        ];
        let limits = [within, LEASE].map(|limit| limit + Duration::from_millis(200));
        for ((node, down), limit) in ["a", "b"].iter().zip(&downs).zip(limits) {
            let after = Duration::from_micros((down.micros - when) as u64);
            println!(
                "{test}: {node} lost the other after {after:?}, {}",
                down.why
            );
            assert!(after <= limit, "{node}: {after:?}");
        }
        thread::sleep(LEASE);
        assert!(
            a.memory() < memory + 16 * 1_024,
            "{} KiB, then {}",
            memory,
            a.memory()
        );
        let healed = micros();
        heal();
        let up = a.wait_news(true, "b", round + 1);
        b.wait_news(true, "a", round + 1);
        println!(
            "{test}: healed after {} ms",
            up.micros.saturating_sub(healed) / 1_000
        );
        for node in [&mut *a, &mut *b] {
            node.wait_report(|report| report["exits_once"] == 10 * round as u64);
        }
    }
    check_calls(a);
    a.wait_report(|report| report["busy"] == 0);
    let accepted = a.report()["accepted"];
    // The items that are on their way arrive.
    support::wait_for(|| b.taken().next + b.report()["dead_letters"] >= accepted);
    check_items(a, "b", &[b.taken()], b.report()["dead_letters"]);
    for node in [a, b] {
        let report = node.report();
        assert_eq!((report["exits_none"], report["exits_more"]), (0, 0));
    }
}

#[test]
fn link_that_goes_down_and_up_loses_nothing_unreported() {
    let test = "link";
    cut_and_heal(
        test,
        LEASE,
        || set(test, "a", "b", "down"),
        || set(test, "a", "b", "up"),
    );
}

/// The frames of one direction go to a machine that is not there.
#[test]
fn one_way_drop_is_a_loss_on_both_sides() {
    let test = "oneway";
    let to = address(&["a", "b"], "b", "a");
    let space = space(test, "a");
    let neighbour = format!("{to} dev to-b");
    let cut = format!("lladdr 02:00:00:00:00:01 nud permanent");
    // The first one hears the second until TCP waits for what it did not acknowledge.
    cut_and_heal(
        test,
        LEASE * 5 / 4,
        || ip(&format!("-n {space} neigh replace {neighbour} {cut}")).unwrap(),
        || ip(&format!("-n {space} neigh delete {neighbour}")).unwrap(),
    );
}

#[test]
fn split_of_three_leaves_two_and_heals() {
    let test = "split";
    let Some(net) = Net::new(test, &["a", "b", "c"]) else {
        return;
    };
    let mut nodes = start_all(&net, test);
    let [a, b, c] = &mut nodes[..] else { panic!() };
    a.command("send b 9000 100000000");
    a.command("call b 9000");
    b.command("call c 9000");
    c.command("call a 9000");
    c.command("send a 9000 100000000");
    thread::sleep(Duration::from_millis(500));
    for (node, of) in [(&mut *a, "c"), (&mut *b, "c"), (&mut *c, "a")] {
        node.command(&format!("watch {of} 10"));
        node.wait_report(|report| report["exits_none"] == 10);
    }
    a.command("watch b 10");
    a.wait_report(|report| report["exits_none"] == 20);
    thread::sleep(Duration::from_millis(200));
    let when = micros();
    set(test, "c", "a", "down");
    set(test, "c", "b", "down");
    let nodes = [&mut *a, &mut *b, &mut *c];
    for (node, others) in nodes.into_iter().zip([&["c"][..], &["c"], &["a", "b"]]) {
        for of in others {
            let down = node.wait_news(false, of, 1);
            let after = Duration::from_micros((down.micros - when) as u64);
            println!(
                "split: {} lost {of} after {after:?}, {}",
                node.name, down.why
            );
            assert!(after <= LEASE + Duration::from_millis(200), "{after:?}");
        }
    }
    thread::sleep(LEASE * 2);
    set(test, "c", "a", "up");
    set(test, "c", "b", "up");
    for node in [&mut *a, &mut *b, &mut *c] {
        node.wait_report(|report| report["nodes"] == 2);
    }
    a.wait_report(|report| report["exits_once"] == 10);
    b.wait_report(|report| report["exits_once"] == 10);
    c.wait_report(|report| report["exits_once"] == 10);
    for node in [&mut *a, &mut *b, &mut *c] {
        check_calls(node);
        assert_eq!(node.report()["exits_more"], 0);
    }
    assert_eq!(a.report()["exits_none"], 10, "the two of one side stay");
    assert_eq!((a.downs("b"), b.downs("a")), (0, 0));
    thread::sleep(Duration::from_millis(300));
    check_items(a, "b", &[b.taken()], b.report()["dead_letters"]);
    check_items(c, "a", &[a.taken()], a.report()["dead_letters"]);
}

/// A kill, a stop, and a restart, as on the loopback, over TLS and the interfaces.
#[test]
fn killed_and_stopped_nodes_are_lost_over_interfaces() {
    let test = "kill";
    let Some(net) = Net::new(test, &["a", "b"]) else {
        return;
    };
    let mut nodes = start_all(&net, test);
    let mut b = nodes.pop().unwrap();
    let a = &mut nodes[0];
    a.command("send b 8000 100000000");
    a.command("call b 8000");
    support::wait_for(|| b.taken().delivered > 100);
    a.command("watch b 10");
    a.command("hold b");
    thread::sleep(Duration::from_millis(200));
    let when = b.kill();
    let mut lives = vec![b.taken()];
    let down = a.wait_news(false, "b", 1);
    println!("kill -9: down after {} µs", down.micros - when);
    assert!(down.micros - when <= 200_000);
    b = net.start(test, "b");
    a.wait_news(true, "b", 2);
    support::wait_for(|| b.taken().delivered > 100);
    assert!(!a.poke(), "a pid of the last life was accepted");
    a.command("watch b 10");
    a.wait_report(|report| report["exits_none"] == 10);
    thread::sleep(Duration::from_millis(200));
    let when = micros();
    b.signal(libc::SIGSTOP);
    let down = a.wait_news(false, "b", 2);
    println!(
        "SIGSTOP: down after {} µs, {}",
        down.micros - when,
        down.why
    );
    assert!(Duration::from_micros((down.micros - when) as u64) <= LEASE + LEASE / 5);
    b.signal(libc::SIGCONT);
    a.wait_news(true, "b", 3);
    a.wait_report(|report| report["exits_once"] == 20);
    check_calls(a);
    thread::sleep(Duration::from_millis(300));
    lives.push(b.taken());
    let dead = b.report()["dead_letters"];
    check_items(a, "b", &lives, dead);
    assert_eq!(a.report()["exits_more"], 0);
}
