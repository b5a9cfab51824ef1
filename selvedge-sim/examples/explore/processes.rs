//! Scenarios of processes.
use crate::scenarios::{Dropped, MS, SOON};
use process_scheduler::{
    Backoff, Child, Flow, Policy, Reply, Scheduler, Spawn, Strategy, Supervisor, from_fn,
};
use selvedge_executor::park::ThreadPark;
use selvedge_sim::{Polls, Run, Sim, busy, random_below, thread};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

fn scheduler() -> Scheduler {
    Scheduler::builder()
        .workers(1 + random_below(3) as usize)
        .on_panic(|_, _| {})
        .build()
}

/// Messages of several threads to processes that forward them.
pub fn messages(sim: Sim) -> Run {
    sim.run_main(|| {
        let scheduler = scheduler();
        let sum = Arc::new(Mutex::new((0_u64, 0_u64)));
        let last = {
            let sum = sum.clone();
            scheduler
                .spawn_fn(move |n: u64, _| {
                    let mut sum = sum.lock().unwrap();
                    *sum = (sum.0 + n, sum.1 + 1);
                })
                .unwrap()
        };
        let first = scheduler
            .spawn_fn(move |n: u64, _| last.try_send(n).unwrap())
            .unwrap();
        let threads = (0..2).map(|_| {
            let first = first.clone();
            thread::spawn(move || {
                for n in 0..6 {
                    first.try_send(n).unwrap();
                    thread::sleep(Duration::from_micros(random_below(300)));
                }
            })
        });
        let threads: Vec<_> = threads.collect();
        for thread in threads {
            thread.join().unwrap();
        }
        for _ in 0..100 {
            if sum.lock().unwrap().1 == 12 {
                break;
            }
            thread::sleep(MS);
        }
        assert_eq!(*sum.lock().unwrap(), (30, 12), "each message arrives soon");
        scheduler.shutdown();
    })
}

/// Calls with answers, timeouts, and dropped replies.
pub fn calls(sim: Sim) -> Run {
    sim.run_main(|| {
        let scheduler = scheduler();
        let server = scheduler
            .spawn_fn(|(n, reply): (u64, Reply<u64>), _| {
                if n < 5 {
                    let _ = reply.send(n * 2);
                }
            })
            .unwrap();
        let threads = (0..2).map(|_| {
            let server = server.clone();
            thread::spawn(move || {
                for n in 0..7 {
                    let begun = sync_shim::time::now();
                    let got = server.call(|reply| (n, reply), MS * 50).wait();
                    assert_eq!(got.ok(), (n < 5).then_some(n * 2));
                    assert!(sync_shim::time::since(begun) < MS * 250);
                    thread::sleep(Duration::from_micros(random_below(2_000)));
                }
            })
        });
        let threads: Vec<_> = threads.collect();
        for thread in threads {
            thread.join().unwrap();
        }
        scheduler.shutdown();
    })
}

/// Processes end while others send to them, and are killed.
pub fn links(sim: Sim) -> Run {
    sim.run_main(|| {
        let scheduler = scheduler();
        let mut pids = Vec::new();
        for n in 0..6_u64 {
            let process = from_fn(move |message: u64, _| {
                if message == n {
                    Flow::Stop
                } else {
                    Flow::Continue
                }
            });
            let address = scheduler.spawn(process).unwrap();
            pids.push(address.pid());
            for message in 0..6 {
                let _ = address.try_send(message);
            }
            if n % 3 == 0 {
                scheduler.kill(address.pid());
            }
        }
        for _ in 0..100 {
            if scheduler.list().is_empty() {
                break;
            }
            thread::sleep(MS);
        }
        assert!(scheduler.list().is_empty(), "each process has ended");
        scheduler.shutdown();
    })
}

/// Children fail and are restarted under their names.
pub fn supervisors(sim: Sim) -> Run {
    // A step may take 40 ms, and nobody fires a deadline while all workers are in steps.
    let sim = sim.timer_bound(MS * 50);
    sim.run_main(|| {
        let scheduler = scheduler();
        let starts = Arc::new(Mutex::new(0_u32));
        let child = |name: &'static str| {
            let starts = starts.clone();
            Child::new(move || {
                *starts.lock().unwrap() += 1;
                from_fn(|fails: bool, _| {
                    if fails {
                        Flow::fail("as asked")
                    } else {
                        Flow::Continue
                    }
                })
            })
            .spawn(Spawn::new().name(name))
            .policy(Policy::Permanent)
        };
        let strategy = [
            Strategy::OneForOne,
            Strategy::OneForAll,
            Strategy::RestForOne,
        ];
        Supervisor::new(strategy[random_below(3) as usize])
            .intensity(100, Duration::from_secs(1))
            .backoff(Backoff::new(MS, 2, MS * 4))
            .child(child("a"))
            .child(child("b"))
            .start(&scheduler)
            .unwrap();
        let wait_for = |least: u32| {
            for _ in 0..500 {
                let both = ["a", "b"]
                    .iter()
                    .all(|name| scheduler.named::<bool>(name).is_some());
                if both && *starts.lock().unwrap() >= least {
                    return;
                }
                thread::sleep(MS);
            }
            panic!("{} starts, not {least}", starts.lock().unwrap());
        };
        wait_for(2);
        for round in 1..4 {
            let name = if random_below(2) == 0 { "a" } else { "b" };
            let before = *starts.lock().unwrap();
            assert!(before > round);
            if let Some(address) = scheduler.named::<bool>(name) {
                if address.try_send(true).is_ok() {
                    wait_for(before + 1);
                }
            }
        }
        scheduler.shutdown();
    })
}

/// Waits until the condition holds, at most for half a second.
fn soon(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..500 {
        if holds() {
            return;
        }
        thread::sleep(MS);
    }
    panic!("{what}");
}

/// A process that takes messages, and fails if one says so.
fn fails_if_told() -> impl process_scheduler::Process {
    from_fn(|fails: bool, _| {
        if fails {
            Flow::fail("as asked")
        } else {
            Flow::Continue
        }
    })
}

/// Threads sleep by the scheduler's timer while one worker is in long steps.
pub fn deadlines(sim: Sim) -> Run {
    sim.polls(Polls::Short).run_main(|| {
        let workers = 2 + random_below(2) as usize;
        let scheduler = Scheduler::builder().workers(workers).build();
        let long = scheduler.spawn_fn(|time: Duration, _| busy(time)).unwrap();
        let threads = (0..2).map(|_| {
            let (handle, long) = (scheduler.handle(), long.clone());
            thread::spawn(move || {
                for _ in 0..4 {
                    if random_below(2) == 0 {
                        long.try_send(MS * 300).unwrap();
                    }
                    thread::sleep(Duration::from_micros(random_below(3_000)));
                    let time = Duration::from_micros(random_below(9_000));
                    let begun = sync_shim::time::now();
                    ThreadPark::block_on(handle.sleep(time));
                    let late = sync_shim::time::since(begun) - time;
                    assert!(late < SOON, "a sleep ends {late:?} late beside a step");
                }
            })
        });
        let threads: Vec<_> = threads.collect();
        for thread in threads {
            thread.join().unwrap();
        }
        scheduler.shutdown();
    })
}

/// Threads sleep by the scheduler's timer while all workers are in runs of 32 steps.
pub fn busy_deadlines(sim: Sim) -> Run {
    let sim = sim.polls(Polls::Instant).timer_bound(SOON);
    sim.run_main(|| {
        // A step would get the messages that the process sends itself meanwhile, up to 128.
        let builder = Scheduler::builder().workers(1 + random_below(3) as usize);
        let scheduler = builder.messages(1).build();
        let stop = Arc::new(Mutex::new(false));
        for _ in 0..6 {
            let stop = stop.clone();
            let busy = from_fn(move |(), cx| {
                if *stop.lock().unwrap() {
                    return Flow::Stop;
                }
                busy(MS * 2);
                let _ = cx.handle().try_send(cx.pid(), ());
                Flow::Continue
            });
            scheduler.spawn(busy).unwrap().try_send(()).unwrap();
        }
        for _ in 0..4 {
            thread::sleep(MS * random_below(100) as u32);
            let time = Duration::from_micros(random_below(9_000));
            let begun = sync_shim::time::now();
            ThreadPark::block_on(scheduler.sleep(time));
            let late = sync_shim::time::since(begun) - time;
            assert!(late < SOON, "a sleep ends {late:?} late beside steps");
        }
        *stop.lock().unwrap() = true;
        scheduler.shutdown();
    })
}

/// A shutdown gives up on a step that takes long. The processes behind it end once it returns.
pub fn stuck_steps(sim: Sim) -> Run {
    sim.run_main(|| {
        let scheduler = Scheduler::builder().workers(1).build();
        let drops = Arc::new(AtomicUsize::new(0));
        let long = scheduler.spawn_fn(|(), _| busy(MS * 500)).unwrap();
        long.try_send(()).unwrap();
        for _ in 0..3 {
            let dropped = Dropped(drops.clone());
            let keeps = move |(), _: &mut process_scheduler::Cx<'_>| {
                let _kept = &dropped;
            };
            let other = scheduler.spawn_fn(keeps).unwrap();
            if random_below(2) == 0 {
                thread::sleep(MS);
            }
            let _ = other.try_send(());
        }
        let _ = scheduler.shutdown_timeout(MS * 50);
        thread::sleep(Duration::from_secs(2));
        // Ordering: SeqCst, as it is only a count.
        assert_eq!(drops.load(SeqCst), 3, "each process has ended");
    })
}

/// A step sends messages to other processes, and goes on for long.
pub fn long_steps(sim: Sim) -> Run {
    sim.polls(Polls::Short).run_main(|| {
        let workers = 2 + random_below(2) as usize;
        let scheduler = Scheduler::builder().workers(workers).build();
        let waits = Arc::new(Mutex::new(Vec::new()));
        let receivers = (0..2).map(|_| {
            let waits = waits.clone();
            scheduler
                .spawn_fn(move |sent, _| {
                    waits.lock().unwrap().push(sync_shim::time::since(sent));
                })
                .unwrap()
        });
        let receivers: Vec<_> = receivers.collect();
        let first = scheduler
            .spawn_fn(move |many: usize, _| {
                for receiver in &receivers[..many] {
                    receiver.try_send(sync_shim::time::now()).unwrap();
                }
                busy(MS * 300);
            })
            .unwrap();
        let mut sent = 0;
        for _ in 0..3 {
            let many = 1 + random_below(2) as usize;
            sent += many;
            first.try_send(many).unwrap();
            thread::sleep(MS * random_below(400) as u32);
        }
        for _ in 0..4 {
            if waits.lock().unwrap().len() < sent {
                thread::sleep(MS * 400);
            }
        }
        let longest = waits.lock().unwrap().iter().max().copied();
        assert_eq!(waits.lock().unwrap().len(), sent, "each message arrives");
        assert!(
            longest < Some(SOON),
            "a message waits {longest:?} for a step"
        );
        scheduler.shutdown();
    })
}

/// All children of a supervisor fail at about the same time. The family allows as many failures.
pub fn families(sim: Sim) -> Run {
    sim.run_main(|| {
        let scheduler = scheduler();
        let names = ["a", "b", "c"];
        let mut family = Supervisor::new(Strategy::OneForAll)
            .intensity(names.len(), Duration::from_secs(1_000))
            .backoff(Backoff::new(Duration::ZERO, 1, Duration::ZERO));
        for name in names {
            family = family.child(Child::new(fails_if_told).spawn(Spawn::new().name(name)));
        }
        let family = family.start(&scheduler).unwrap();
        let children = names.map(|name| scheduler.named::<bool>(name).unwrap());
        for child in children {
            let _ = child.try_send(true);
            if random_below(2) == 0 {
                thread::sleep(Duration::from_micros(random_below(100)));
            }
        }
        thread::sleep(MS * 200);
        assert!(scheduler.inspect(family).is_some(), "the family goes on");
        soon("each child is back", || {
            let mut named = names.iter().map(|name| scheduler.named::<bool>(name));
            named.all(|child| child.is_some_and(|child| child.try_send(false).is_ok()))
        });
        scheduler.shutdown();
    })
}

/// A supervisor below another one fails again and again, and its children have names.
pub fn nested(sim: Sim) -> Run {
    const ROUNDS: usize = 4;
    sim.run_main(|| {
        let scheduler = scheduler();
        let inner = || {
            Supervisor::new(Strategy::OneForOne)
                .intensity(0, Duration::from_secs(1_000))
                .child(Child::new(fails_if_told).spawn(Spawn::new().name("one")))
                .child(Child::new(fails_if_told).spawn(Spawn::new().name("two")))
        };
        let spawn = Spawn::new().name("inner").trap_exits(true);
        Supervisor::new(Strategy::OneForOne)
            .intensity(ROUNDS, Duration::from_secs(1_000))
            .backoff(Backoff::new(Duration::ZERO, 1, Duration::ZERO))
            .child(Child::supervisor(inner).spawn(spawn))
            .start(&scheduler)
            .unwrap();
        for _ in 0..ROUNDS {
            let name = ["one", "two"][random_below(2) as usize];
            let old = ["one", "two"].map(|name| scheduler.whereis(name));
            let inner = scheduler.whereis("inner");
            let restarts = |pid| scheduler.inspect(pid).map(|info| info.restarts);
            let before = restarts(inner.unwrap());
            scheduler
                .named::<bool>(name)
                .unwrap()
                .try_send(true)
                .unwrap();
            soon("a failed supervisor starts its children anew", || {
                let now = ["one", "two"].map(|name| scheduler.whereis(name));
                // A child that was killed keeps its name until the next one takes it.
                now.iter()
                    .zip(&old)
                    .all(|(now, old)| now.is_some() && now != old)
            });
            let now = restarts(inner.unwrap());
            assert_eq!(
                now,
                before.map(|restarts| restarts + 1),
                "one restart is enough"
            );
        }
        scheduler.shutdown();
    })
}

/// A scheduler is shut down while supervised processes fail.
pub fn ends_of_families(sim: Sim) -> Run {
    sim.run_main(|| {
        let scheduler = scheduler();
        let strategy = [Strategy::OneForOne, Strategy::OneForAll][random_below(2) as usize];
        let mut family = Supervisor::new(strategy)
            .intensity(1_000, Duration::from_secs(1))
            .backoff(Backoff::new(Duration::ZERO, 1, Duration::ZERO));
        for name in ["a", "b", "c"] {
            family = family.child(Child::new(fails_if_told).spawn(Spawn::new().name(name)));
        }
        family.start(&scheduler).unwrap();
        let sender = {
            let handle = scheduler.handle();
            thread::spawn(move || {
                for n in 0..9 {
                    let name = ["a", "b", "c"][n % 3];
                    if let Some(child) = handle.named::<bool>(name) {
                        let _ = child.try_send(random_below(2) == 0);
                    }
                    thread::sleep(Duration::from_micros(random_below(100)));
                }
            })
        };
        thread::sleep(Duration::from_micros(random_below(500)));
        let begun = sync_shim::time::now();
        let report = scheduler.shutdown_timeout(Duration::from_secs(5));
        let took = sync_shim::time::since(begun);
        sender.join().unwrap();
        assert_eq!((report.forced, report.stuck), (0, 0), "each ends in time");
        assert!(took < Duration::from_secs(1), "the shutdown takes {took:?}");
    })
}

/// Children of a family fail in rounds, one or more of them at about the same time. A round costs
/// each child one restart, however many of them fail.
pub fn rounds_of_failures(sim: Sim) -> Run {
    sim.run_main(|| {
        let scheduler = scheduler();
        let starts: Arc<[AtomicUsize; 3]> = Arc::default();
        let names = ["a", "b", "c"];
        let mut family = Supervisor::new(Strategy::OneForAll)
            .intensity(1_000, Duration::from_secs(1))
            .backoff(Backoff::new(Duration::ZERO, 1, Duration::ZERO));
        for (child, name) in names.into_iter().enumerate() {
            let starts = starts.clone();
            let start = move || {
                // Ordering: SeqCst, as it is only a count.
                let incarnation = starts[child].fetch_add(1, SeqCst) + 1;
                // A message may come to the next incarnation.
                from_fn(move |fails: usize, _| match fails == incarnation {
                    true => Flow::fail("as asked"),
                    false => Flow::Continue,
                })
            };
            family = family.child(Child::new(start).spawn(Spawn::new().name(name)));
        }
        family.start(&scheduler).unwrap();
        // Ordering: SeqCst, as it is only a count.
        let counts = || [0, 1, 2].map(|child: usize| starts[child].load(SeqCst));
        for round in 1..4 {
            soon("each child has started", || counts() == [round; 3]);
            let first = random_below(3);
            for n in first..=first + random_below(3) {
                let child = scheduler.named::<usize>(names[n as usize % 3]);
                let _ = child.map(|child| child.try_send(round));
                if random_below(2) == 0 {
                    thread::sleep(Duration::from_micros(random_below(100)));
                }
            }
            thread::sleep(MS * 300);
            assert_eq!(counts(), [round + 1; 3], "a round costs one restart");
        }
        scheduler.shutdown();
    })
}
