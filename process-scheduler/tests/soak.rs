//! A random run with kills, cancels, failures, restarts and a shutdown: no message is lost or
//! delivered twice, the messages of each sender arrive in order, and every call ends.
//!
//! `SELVEDGE_SOAK` sets the number of events, a million by default. `SELVEDGE_SEED` repeats the
//! random choices of an earlier run, which has printed its seed.
use process_scheduler::{
    Address, Backoff, Child, Flow, Mailbox, Reply, Scheduler, Spawn, Strategy, Supervisor, from_fn,
};
use std::{
    collections::HashMap,
    panic,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

/// A message that counts its drop, unless it was delivered or returned to its sender.
struct Letter {
    sender: u64,
    turn: u64,
    /// True if the letter was delivered or returned.
    delivered: bool,
    dropped: Arc<AtomicU64>,
}

impl Drop for Letter {
    fn drop(&mut self) {
        if !self.delivered {
            self.dropped.fetch_add(1, SeqCst);
        }
    }
}

enum Mail {
    Letter(Letter),
    Ask(u64, Reply<u64>),
    Fail,
    Panic,
}

#[derive(Default)]
struct Seen {
    delivered: AtomicU64,
    is_stepped: AtomicBool,
    /// For each sender, the turn of its last letter that was delivered.
    turns: Mutex<HashMap<u64, u64>>,
}

fn process(
    seen: &Arc<Seen>,
) -> impl Fn() -> process_scheduler::FnProcess<Mail, Handler, Flow> + use<> {
    let seen = seen.clone();
    move || {
        let seen = seen.clone();
        from_fn(
            Box::new(move |mail: Mail, _: &mut process_scheduler::Cx<'_>| {
                assert!(!seen.is_stepped.swap(true, SeqCst), "one owner at a time");
                let flow = match mail {
                    Mail::Letter(mut letter) => {
                        letter.delivered = true;
                        seen.delivered.fetch_add(1, SeqCst);
                        let mut turns = seen.turns.lock().unwrap();
                        let last = turns.insert(letter.sender, letter.turn);
                        assert!(
                            last.is_none_or(|last| last < letter.turn),
                            "in order, and once"
                        );
                        Flow::Continue
                    }
                    Mail::Ask(n, reply) => {
                        let _ = reply.send(n + 1);
                        Flow::Continue
                    }
                    Mail::Fail => Flow::fail("as asked"),
                    Mail::Panic => {
                        seen.is_stepped.store(false, SeqCst);
                        panic!("as asked");
                    }
                };
                seen.is_stepped.store(false, SeqCst);
                flow
            }) as Handler,
        )
    }
}

type Handler = Box<dyn FnMut(Mail, &mut process_scheduler::Cx<'_>) -> Flow + Send>;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

#[test]
fn sent_is_delivered_or_returned_or_a_dead_letter() {
    soak(false);
}

/// Fails if a shutdown loses a message that is sent meanwhile, or leaves a call without an end.
#[test]
fn sent_amid_a_shutdown_is_delivered_or_returned() {
    soak(true);
}

/// Shuts the scheduler down after all sends, or `amid` them.
fn soak(amid: bool) {
    panic::set_hook(Box::new(|panic| {
        if !panic.to_string().contains("as asked") {
            eprintln!("{panic}");
        }
    }));
    let number = |name| std::env::var(name).ok().map(|n| n.parse::<u64>().unwrap());
    let events = number("SELVEDGE_SOAK").unwrap_or(1_000_000);
    let seed = number("SELVEDGE_SEED").unwrap_or_else(|| {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap();
        now.as_nanos() as u64 | 1
    });
    println!("seed: {seed}");

    let scheduler = Scheduler::builder().workers(3).messages(7).build();
    let mut supervisor = Supervisor::new(Strategy::OneForOne)
        .intensity(usize::MAX, Duration::from_secs(1))
        .backoff(Backoff::new(Duration::ZERO, 1, Duration::ZERO));
    let seen: Vec<_> = (0..24).map(|_| Arc::new(Seen::default())).collect();
    for (i, seen) in seen.iter().enumerate() {
        let mailbox = match i % 3 {
            0 => Mailbox::Unbounded,
            1 => Mailbox::Bounded(5),
            _ => Mailbox::DropOldest(5),
        };
        let spawn = Spawn::new().name(i.to_string()).mailbox(mailbox);
        supervisor = supervisor.child(Child::new(process(seen)).spawn(spawn).keep_mail(i % 2 == 0));
    }
    supervisor.start(&scheduler).unwrap();
    let addresses: Vec<Address<Mail>> = (0..seen.len())
        .map(|i| scheduler.named(&i.to_string()).unwrap())
        .collect();

    let dropped = Arc::new(AtomicU64::new(0));
    let progress = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..3)
        .map(|sender| {
            let (addresses, dropped) = (addresses.clone(), dropped.clone());
            let (handle, progress) = (scheduler.handle(), progress.clone());
            let mut random = Random(seed.wrapping_mul(sender + 1) | 1);
            thread::spawn(move || {
                let (mut sent, mut returned, mut calls) = (0_u64, 0_u64, Vec::new());
                for turn in 0..events / 3 {
                    progress.fetch_add(1, SeqCst);
                    let to = &addresses[random.below(addresses.len() as u64) as usize];
                    match random.below(1_000) {
                        0 => drop(to.try_send(Mail::Fail)),
                        1 => drop(to.try_send(Mail::Panic)),
                        2 => drop(handle.kill(to.pid())),
                        3 => drop(handle.cancel(to.pid())),
                        4..50 => calls.push((
                            turn,
                            to.call(|reply| Mail::Ask(turn, reply), Duration::from_secs(600)),
                        )),
                        n => {
                            sent += 1;
                            let letter = Mail::Letter(Letter {
                                sender,
                                turn,
                                delivered: false,
                                dropped: dropped.clone(),
                            });
                            let result = match n % 2 {
                                0 => to.try_send(letter),
                                _ => handle.try_send(to.pid(), letter),
                            };
                            if let Err(refused) = result {
                                returned += 1;
                                let Mail::Letter(mut letter) = refused.into_inner() else {
                                    panic!("another message came back")
                                };
                                letter.delivered = true;
                            }
                        }
                    }
                }
                (sent, returned, calls)
            })
        })
        .collect();
    while amid && progress.load(SeqCst) < events / 2 {
        thread::yield_now();
    }
    let handle = scheduler.handle();
    let mut scheduler = Some(scheduler);
    let limit = Duration::from_secs(600);
    let mut shut_down = || scheduler.take().map(|all| all.shutdown_timeout(limit));
    let early = if amid { shut_down() } else { None };
    let (mut sent, mut returned, mut calls) = (0, 0, Vec::new());
    for thread in threads {
        let (s, r, c) = thread.join().unwrap();
        sent += s;
        returned += r;
        calls.extend(c);
    }
    let metrics = handle.metrics();
    let report = early.or_else(shut_down).unwrap();
    assert_eq!((report.forced, report.stuck), (0, 0));
    let mut answers = 0;
    for (n, call) in calls {
        if let Ok(answer) = call.wait() {
            assert_eq!(answer, n + 1);
            answers += 1;
        }
    }
    let delivered: u64 = seen.iter().map(|seen| seen.delivered.load(SeqCst)).sum();
    let dead = dropped.load(SeqCst);
    println!("{sent} sent, {delivered} delivered, {returned} returned, {dead} dead letters");
    println!("{answers} answers, {} restarts", metrics.restarts);
    assert_eq!(sent, delivered + returned + dead);
}
