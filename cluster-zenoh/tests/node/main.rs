//! A node of the tests: it joins, obeys the lines of its input, and reports on its output. It ends
//! with its input.
//!
//! Its process, the *keeper*, counts what it takes, in a file that outlives the program.
use process_cluster::{Cluster, DecodeError, Decoder, Encoder, Message, NodeChange};
use process_cluster_zenoh::Zenoh;
use process_scheduler::{CallError, Cx, Inbox, Mailbox, Pid, Reply, Scheduler, SendError, Spawn};
use std::{
    collections::HashMap,
    env,
    fs::File,
    io,
    os::unix::fs::FileExt,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant, SystemTime},
};

/// How long a call may take. Each must end within this time, and a moment.
const CALL: Duration = Duration::from_secs(2);

enum Work {
    /// The message of this number from a node that numbers what was accepted.
    Item(u64),
    Ask(u64, Reply<u64>),
    /// Goes to a process of a node that was restarted since.
    Stale,
    /// Lets the keeper take nothing for a time, in milliseconds.
    Block(u64),
}

impl Message for Work {
    fn encode(self, out: &mut Encoder<'_>) {
        match self {
            Self::Item(number) => {
                out.u8(0);
                out.u64(number);
            }
            Self::Ask(number, reply) => {
                out.u8(1);
                out.u64(number);
                out.reply(reply);
            }
            Self::Stale => out.u8(2),
            Self::Block(millis) => {
                out.u8(3);
                out.u64(millis);
            }
        }
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(match input.u8()? {
            0 => Self::Item(input.u64()?),
            1 => Self::Ask(input.u64()?, input.reply()?),
            2 => Self::Stale,
            3 => Self::Block(input.u64()?),
            _ => return Err(DecodeError::Invalid),
        })
    }
}

/// The counts of the keeper. Each field is 8 bytes of the file.
#[derive(Default)]
struct Taken {
    delivered: u64,
    /// The number behind the last item.
    next: u64,
    /// How many times numbers were missing.
    gaps: u64,
    missing: u64,
    /// Items that came twice, or late.
    repeated: u64,
    stale: u64,
    asked: u64,
}

impl Taken {
    fn item(&mut self, number: u64) {
        self.delivered += 1;
        if number < self.next {
            self.repeated += 1;
            return;
        }
        self.gaps += u64::from(number > self.next);
        self.missing += number - self.next;
        self.next = number + 1;
    }

    fn write(&self, to: &File) {
        let fields = [
            self.delivered,
            self.next,
            self.gaps,
            self.missing,
            self.repeated,
            self.stale,
            self.asked,
        ];
        let bytes: Vec<_> = fields
            .iter()
            .flat_map(|field| field.to_le_bytes())
            .collect();
        to.write_all_at(&bytes, 0).unwrap();
    }
}

/// The counts of the commands.
#[derive(Default)]
struct Done {
    accepted: u64,
    refused: u64,
    begun: u64,
    answered: u64,
    timeouts: u64,
    lost: u64,
    refused_calls: u64,
    wrong: u64,
    slowest: Duration,
    /// The exits that each watcher was told.
    exits: Vec<u32>,
    busy: u32,
}

struct Node {
    name: String,
    scheduler: Scheduler,
    cluster: Cluster,
    zenoh: Zenoh,
    done: Arc<Mutex<Done>>,
    held: Mutex<Option<Pid>>,
}

fn say(line: &str) {
    println!("{line}");
}

fn micros() -> u128 {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    time.unwrap().as_micros()
}

/// The arguments: the lease and the queue in numbers, a file for what is taken, and endpoints.
struct Arguments {
    name: String,
    lease: Duration,
    queue: u32,
    taken: String,
    zenoh: Zenoh,
}

fn arguments() -> Arguments {
    let mut builder = Zenoh::builder();
    let (mut lease, mut queue) = (Duration::from_secs(1), 10_000);
    let (mut name, mut taken) = (String::new(), String::new());
    for argument in env::args().skip(1) {
        let (key, value) = argument.split_once('=').expect("KEY=VALUE");
        builder = match key {
            "listen" => builder.listen(value),
            "connect" => builder.connect(value),
            "tls" => {
                let file = |name: &str| format!("{value}/{name}");
                builder.mutual_tls(file("ca.pem"), file("node.pem"), file("node.key"))
            }
            "insecure" => builder.insecure_loopback(),
            "cluster" => builder.cluster(value),
            _ => {
                match key {
                    "name" => value.clone_into(&mut name),
                    "taken" => value.clone_into(&mut taken),
                    "lease" => lease = Duration::from_millis(value.parse().unwrap()),
                    "queue" => queue = value.parse().unwrap(),
                    _ => panic!("{argument}"),
                }
                builder
            }
        };
    }
    Arguments {
        name,
        lease,
        queue,
        taken,
        zenoh: builder.lease(lease).build().unwrap(),
    }
}

fn join(arguments: Arguments) -> Arc<Node> {
    let scheduler = Scheduler::builder().workers(1).build();
    let names = Mutex::new(HashMap::new());
    let tell = move |change: &NodeChange| match change {
        NodeChange::Up { node, name } => {
            names.lock().unwrap().insert(*node, name.clone());
            say(&format!("up {name} {}", micros()));
        }
        NodeChange::Down { node, why } => {
            let name = names.lock().unwrap().remove(node).unwrap();
            say(&format!("down {name} {} {why:?}", micros()));
        }
        _ => {}
    };
    let builder = Cluster::builder(&*arguments.name)
        .codec::<Work>("work/1")
        .lease(arguments.lease)
        .queue(arguments.queue)
        .on_change(tell);
    let cluster = builder.join(&scheduler, arguments.zenoh.clone()).unwrap();
    let (file, mut taken) = (File::create(arguments.taken).unwrap(), Taken::default());
    taken.write(&file);
    let keep = move |work, _: &mut Cx<'_>| {
        match work {
            Work::Item(number) => taken.item(number),
            Work::Stale => taken.stale += 1,
            Work::Block(millis) => thread::sleep(Duration::from_millis(millis)),
            Work::Ask(number, reply) => {
                taken.asked += 1;
                let _ = reply.send(number);
            }
        }
        taken.write(&file);
    };
    let spawn = Spawn::new().mailbox(Mailbox::Bounded(20_000));
    let keeper = scheduler.spawn_with(spawn, keep).unwrap().pid();
    let own = format!("keeper/{}", arguments.name);
    cluster.register(&own, keeper).unwrap();
    Arc::new(Node {
        name: arguments.name,
        scheduler,
        cluster,
        zenoh: arguments.zenoh,
        done: Arc::default(),
        held: Mutex::new(None),
    })
}

impl Node {
    fn keeper(&self, of: &str) -> Option<Pid> {
        self.cluster.whereis(&format!("keeper/{of}"))
    }

    fn done(&self) -> std::sync::MutexGuard<'_, Done> {
        self.done.lock().unwrap()
    }

    /// Sends numbered items to a keeper, until the time is over or as many were accepted.
    fn send(&self, to: &str, time: Duration, most: u64) {
        let begun = Instant::now();
        let mut number = 0;
        while begun.elapsed() < time && number < most {
            let Some(pid) = self.keeper(to) else {
                self.done().refused += 1;
                thread::sleep(Duration::from_millis(1));
                continue;
            };
            match self.scheduler.try_send(pid, Work::Item(number)) {
                Ok(()) => {
                    number += 1;
                    self.done().accepted += 1;
                    // The keeper takes about ten times as many.
                    if number % 50 == 0 {
                        thread::sleep(Duration::from_millis(1));
                    }
                }
                Err(SendError::Full(_) | SendError::NoRoom(_) | SendError::NodeDown(_)) => {
                    self.done().refused += 1;
                    thread::sleep(Duration::from_micros(200));
                }
                Err(_) => panic!("an item is refused for another reason"),
            }
        }
    }

    fn call(&self, to: &str, time: Duration) {
        let begun = Instant::now();
        let mut number = 0;
        while begun.elapsed() < time {
            let Some(pid) = self.keeper(to) else {
                thread::sleep(Duration::from_millis(1));
                continue;
            };
            number += 1;
            self.done().begun += 1;
            let address = self.scheduler.address::<Work>(pid).unwrap();
            let called = Instant::now();
            let answer = address.call(|reply| Work::Ask(number, reply), CALL).wait();
            let mut done = self.done();
            done.slowest = done.slowest.max(called.elapsed());
            match answer {
                Ok(answer) => {
                    done.answered += 1;
                    done.wrong += u64::from(answer != number);
                }
                Err(CallError::Timeout) => done.timeouts += 1,
                Err(CallError::NodeDown | CallError::Dropped) => done.lost += 1,
                Err(_) => {
                    done.refused_calls += 1;
                    drop(done);
                    thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }

    /// Spawns processes that each monitor a keeper once, and count the exits.
    fn watch(&self, of: &str, watchers: usize) {
        let target = self.keeper(of).expect("the keeper is known");
        for _ in 0..watchers {
            let (done, place) = (self.done.clone(), self.done().exits.len());
            self.done().exits.push(0);
            let watch = process_scheduler::from_async(move |mut inbox: Inbox<()>| async move {
                while inbox.cancelled().is_none() {
                    inbox.event().await;
                    while inbox.next_exit().is_some() {
                        done.lock().unwrap().exits[place] += 1;
                    }
                }
            });
            let spawn = Spawn::new().trap_exits(true);
            let watcher = self.scheduler.spawn_process(watch, spawn).unwrap();
            self.scheduler.monitor(watcher.pid(), target);
        }
    }

    fn report(&self) -> String {
        let nodes: Vec<_> = self
            .cluster
            .nodes()
            .iter()
            .map(|node| node.name.to_string())
            .collect();
        let (metrics, zenoh) = (self.cluster.metrics(), self.zenoh.metrics());
        let done = self.done();
        let told = |times: u32| done.exits.iter().filter(|exits| **exits == times).count();
        let more = done.exits.iter().filter(|exits| **exits > 1).count();
        let fields = [
            ("accepted", done.accepted),
            ("refused", done.refused),
            ("begun", done.begun),
            ("answered", done.answered),
            ("timeouts", done.timeouts),
            ("lost", done.lost),
            ("refused_calls", done.refused_calls),
            ("wrong", done.wrong),
            ("slowest", done.slowest.as_millis() as u64),
            ("busy", done.busy.into()),
            ("exits_none", told(0) as u64),
            ("exits_once", told(1) as u64),
            ("exits_more", more as u64),
            ("dead_letters", metrics.dead_letters),
            ("invalid", metrics.invalid),
            ("transports", zenoh.transports),
            ("malformed", zenoh.malformed),
            ("strangers", zenoh.strangers),
            ("nodes", nodes.len() as u64),
        ];
        let fields: Vec<_> = fields
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        format!("report {}", fields.join(" "))
    }

    /// Does something on a thread of its own.
    fn begin(self: &Arc<Self>, work: impl FnOnce(&Self) + Send + 'static) {
        let node = self.clone();
        node.done().busy += 1;
        thread::spawn(move || {
            work(&node);
            node.done().busy -= 1;
        });
    }

    fn obey(self: &Arc<Self>, line: &str) {
        let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        let time = |at: usize| Duration::from_millis(number(at));
        let of = words.get(1).cloned().unwrap_or_default();
        match &*words[0] {
            "send" => {
                let (time, most) = (time(2), number(3));
                self.begin(move |node| node.send(&of, time, most));
            }
            "call" => {
                let time = time(2);
                self.begin(move |node| node.call(&of, time));
            }
            "watch" => self.watch(&of, number(2) as usize),
            "hold" => *self.held.lock().unwrap() = self.keeper(&of),
            "poke" => {
                let held = self.held.lock().unwrap().expect("a pid is held");
                let sent = self.scheduler.try_send(held, Work::Stale);
                say(&format!("poked {}", sent.is_ok()));
            }
            "block" => {
                let to = self.keeper(&self.name).unwrap();
                self.scheduler
                    .try_send(to, Work::Block(number(1)))
                    .unwrap_or_default();
            }
            "report" => say(&self.report()),
            _ => panic!("{line}"),
        }
    }
}

fn main() {
    zenoh::init_log_from_env_or("error");
    let node = join(arguments());
    say(&format!("ready {}", node.zenoh.locators().join(",")));
    for line in io::stdin().lines() {
        let line = line.unwrap();
        if line == "leave" {
            break;
        }
        node.obey(&line);
    }
    // The threads that work have the node, too.
    while Arc::strong_count(&node) > 1 {
        thread::sleep(Duration::from_millis(1));
    }
    let node = Arc::into_inner(node).expect("it is the last one");
    node.cluster.leave(Duration::from_secs(1));
}
