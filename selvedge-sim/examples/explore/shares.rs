//! Scenarios that measure how the workers' time is shared, and how soon work from outside gets some
//! of it.
use crate::scenarios::{MS, SOON, all, runtime, workers};
use process_scheduler::Scheduler;
use selvedge_executor::{Builder, block_in_place, spawn_in, yield_now};
use selvedge_sim::{Polls, Run, Sim, busy, random_below, thread};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use task_sync::{mpsc, oneshot};

/// Each poll of the workers' own tasks makes many operations, so it may go on for long. Tasks from
/// outside get a worker after an operation or two.
pub fn operations(sim: Sim) -> Run {
    sim.polls(Polls::Short).run_main(|| {
        let workers = workers();
        // A monitor would end each slice after 10 ms.
        let builder = Builder::new().workers(workers).monitor(false);
        let runtime = builder.build().unwrap();
        let stop = Arc::new(Mutex::new(false));
        let readers = (0..workers + random_below(3) as usize).map(|_| {
            let stop = stop.clone();
            runtime.spawn(async move {
                let (sender, mut receiver) = mpsc::unbounded_channel();
                while !*stop.lock().unwrap() {
                    sender.send(()).unwrap();
                    receiver.recv().await.unwrap();
                    busy(MS / 4);
                }
            })
        });
        let readers: Vec<_> = readers.collect();
        for _ in 0..4 {
            // A worker ignores nudges for a while after one.
            thread::sleep(MS * (200 + random_below(200) as u32));
            let begun = sync_shim::time::now();
            runtime.block_on(runtime.spawn(async {})).unwrap();
            let took = sync_shim::time::since(begun);
            assert!(took < MS * 15, "a task waits {took:?} for operations");
        }
        *stop.lock().unwrap() = true;
        runtime.block_on(all(readers));
    })
}

/// Two groups always have tasks, with polls of different lengths. Each gets its share of the time.
pub fn shares(sim: Sim) -> Run {
    sim.polls(Polls::Instant).run_main(|| {
        let runtime = runtime(1);
        let stop = Arc::new(Mutex::new(false));
        let groups = ["one", "two"].map(|name| {
            let shares = 100 * (1 + random_below(4) as u32);
            let group = runtime.handle().group(name).shares(shares);
            let (tasks, poll) = (1 + random_below(3), 100 + random_below(2_000));
            (
                group.build().unwrap(),
                shares,
                tasks,
                Duration::from_micros(poll),
            )
        });
        let times = Arc::new(Mutex::new([Duration::ZERO; 2]));
        let mut spinners = Vec::new();
        for (index, (group, _, tasks, poll)) in groups.iter().enumerate() {
            for _ in 0..*tasks {
                let (stop, times, poll) = (stop.clone(), times.clone(), *poll);
                let spinner = async move {
                    while !*stop.lock().unwrap() {
                        busy(poll);
                        times.lock().unwrap()[index] += poll;
                        yield_now().await;
                    }
                };
                spinners.push(spawn_in(group, spinner).unwrap());
            }
        }
        thread::sleep(MS * 500);
        let times = *times.lock().unwrap();
        *stop.lock().unwrap() = true;
        runtime.block_on(all(spinners));
        let [one, two] = times.map(|time| time.as_secs_f64());
        let due = f64::from(groups[0].1) / f64::from(groups[0].1 + groups[1].1);
        let got = one / (one + two);
        assert!(
            (got - due).abs() < 0.1,
            "a group gets {got} of the time, not {due}"
        );
    })
}

/// Some tasks block in place, and others block their workers. The rest go on while one worker is
/// left.
pub fn blocks(sim: Sim) -> Run {
    sim.polls(Polls::Short).run_main(|| {
        let workers = 2 + random_below(3) as usize;
        let runtime = runtime(workers);
        let in_place = 1 + random_below(workers as u64) as usize;
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..workers - 1 + in_place)
            .map(|_| oneshot::channel::<()>())
            .unzip();
        let mut tasks = Vec::new();
        for (n, receiver) in receivers.into_iter().enumerate() {
            let wait = move || drop(selvedge_executor::park::ThreadPark::block_on(receiver));
            tasks.push(runtime.spawn(async move {
                match n < in_place {
                    true => block_in_place(wait),
                    false => wait(),
                }
            }));
            thread::sleep(Duration::from_micros(random_below(2_000)));
        }
        let begun = sync_shim::time::now();
        runtime.block_on(runtime.spawn(async {})).unwrap();
        let took = sync_shim::time::since(begun);
        assert!(took < SOON, "a task waits {took:?} beside a free worker");
        drop(senders);
        runtime.block_on(all(tasks));
    })
}

/// Bursts of messages wake processes with long steps, while the workers sleep. All workers take
/// part in the work.
pub fn bursts_of_steps(sim: Sim) -> Run {
    sim.polls(Polls::Short).run_main(|| {
        let workers = 2 + random_below(3) as usize;
        let scheduler = Scheduler::builder().workers(workers).build();
        let waits = Arc::new(Mutex::new(Vec::new()));
        let processes = (0..workers).map(|_| {
            let waits = waits.clone();
            let step = move |sent, _: &mut process_scheduler::Cx<'_>| {
                waits.lock().unwrap().push(sync_shim::time::since(sent));
                busy(MS * 200);
            };
            scheduler.spawn_fn(step).unwrap()
        });
        let processes: Vec<_> = processes.collect();
        for _ in 0..3 {
            thread::sleep(Duration::from_millis(random_below(40)));
            for process in &processes {
                process.try_send(sync_shim::time::now()).unwrap();
                if random_below(3) == 0 {
                    thread::sleep(Duration::from_micros(random_below(300)));
                }
            }
            thread::sleep(Duration::from_secs(1));
        }
        let waits = waits.lock().unwrap().clone();
        assert_eq!(waits.len(), 3 * workers, "each message arrives");
        let longest = waits.iter().max().copied();
        assert!(
            longest < Some(SOON),
            "a message waits {longest:?} beside free workers"
        );
        scheduler.shutdown();
    })
}
