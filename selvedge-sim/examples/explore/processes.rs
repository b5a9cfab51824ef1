//! Scenarios of processes.
use process_scheduler::{
    Backoff, Child, Flow, Policy, Reply, Scheduler, Spawn, Strategy, Supervisor, from_fn,
};
use selvedge_sim::{Run, Sim, random_below, thread};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

const MS: Duration = Duration::from_millis(1);

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
