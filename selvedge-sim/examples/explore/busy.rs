//! Scenarios in which all workers of a runtime are busy, blocked, or do something else.
use crate::scenarios::{MS, SOON, all, runtime, workers};
use net_driver::time::{Instant, sleep, sleep_until};
use selvedge_executor::{
    Builder, Tick, Worker, block_in_place,
    park::{Park, ThreadPark},
    spawn, syscall, yield_now,
};
use selvedge_sim::{Polls, Run, Sim, busy, random_below, thread};
use std::{
    sync::{Arc, Mutex},
    task::Waker,
    time::Duration,
};
use task_sync::oneshot;

fn micros(below: u64) -> Duration {
    Duration::from_micros(random_below(below))
}

/// Threads in `block_on` sleep while all workers are in long polls, the first poll of the runtime
/// perhaps among them.
pub fn sleeps_outside(sim: Sim) -> Run {
    sim.polls(Polls::Short).run_main(|| {
        let workers = workers();
        let runtime = Arc::new(runtime(workers));
        let polls = (0..workers).map(|_| {
            runtime.spawn(async {
                for _ in 0..2 {
                    busy(MS * 300);
                    yield_now().await;
                }
            })
        });
        let polls: Vec<_> = polls.collect();
        if random_below(2) == 0 {
            thread::sleep(MS);
        }
        let threads = (0..2).map(|_| {
            let runtime = runtime.clone();
            thread::spawn(move || {
                for _ in 0..4 {
                    let late = runtime.block_on(async {
                        let due = Instant::now() + micros(20_000);
                        sleep_until(due).await;
                        Instant::now() - due
                    });
                    assert!(late < SOON, "a sleep in block_on ends {late:?} late");
                }
            })
        });
        let threads: Vec<_> = threads.collect();
        for thread in threads {
            thread.join().unwrap();
        }
        runtime.block_on(all(polls));
    })
}

/// All workers are in calls that block for long. Other tasks run meanwhile.
pub fn all_in_calls(sim: Sim) -> Run {
    sim.polls(Polls::Short).run_main(|| {
        let workers = workers();
        let runtime = runtime(workers);
        let calls = (0..workers).map(|_| {
            runtime.spawn(async {
                for _ in 0..2 {
                    if random_below(2) == 0 {
                        syscall(|| thread::sleep(MS * 400));
                    } else {
                        block_in_place(|| thread::sleep(MS * 400));
                    }
                    yield_now().await;
                }
            })
        });
        let calls: Vec<_> = calls.collect();
        for _ in 0..4 {
            let begun = sync_shim::time::now();
            let task = runtime.spawn(async {
                yield_now().await;
                spawn(async {}).await.unwrap();
            });
            runtime.block_on(task).unwrap();
            let took = sync_shim::time::since(begun);
            assert!(took < 2 * SOON, "a task waits {took:?} for calls");
            thread::sleep(MS * random_below(100) as u32);
        }
        runtime.block_on(all(calls));
    })
}

/// A burst from outside comes while each worker is in a long poll, and as many tasks with such
/// polls wait. The burst waits for two or three polls of each worker.
pub fn burst_behind(sim: Sim) -> Run {
    sim.polls(Polls::Instant).run_main(|| {
        let workers = 1 + random_below(2) as usize;
        let runtime = runtime(workers);
        let stop = Arc::new(Mutex::new(false));
        let polls = (0..2 * workers).map(|_| {
            let stop = stop.clone();
            runtime.spawn(async move {
                while !*stop.lock().unwrap() {
                    busy(MS * 50);
                    yield_now().await;
                }
            })
        });
        let polls: Vec<_> = polls.collect();
        for _ in 0..4 {
            thread::sleep(MS * random_below(300) as u32);
            let begun = sync_shim::time::now();
            let tasks: Vec<_> = (0..60).map(|_| runtime.spawn(async {})).collect();
            runtime.block_on(all(tasks));
            let took = sync_shim::time::since(begun);
            assert!(
                took < MS * 260,
                "a burst waits {took:?} behind polls of 50 ms"
            );
        }
        *stop.lock().unwrap() = true;
        runtime.block_on(all(polls));
    })
}

/// The loop of a driven worker draws a frame between its ticks. The other workers run what comes
/// meanwhile.
pub fn frames(sim: Sim) -> Run {
    sim.polls(Polls::Short).run_main(|| {
        let parks = (0..2 + random_below(2)).map(|_| ThreadPark::new());
        let (runtime, workers) = Builder::new().build_driven(parks.collect::<Vec<_>>());
        let threads = workers.into_iter().enumerate().map(|(index, worker)| {
            let worker = OnThread(worker);
            thread::spawn(move || match index {
                0 => worker.draw_frames(),
                _ => worker.run(),
            })
        });
        let threads: Vec<_> = threads.collect();
        for _ in 0..6 {
            let begun = sync_shim::time::now();
            let tasks = (0..2).map(|_| {
                runtime.spawn(async {
                    sleep(micros(5_000)).await;
                    yield_now().await;
                    spawn(async {}).await.unwrap();
                })
            });
            let tasks: Vec<_> = tasks.collect();
            runtime.block_on(all(tasks));
            let took = sync_shim::time::since(begun);
            assert!(took < 2 * SOON, "tasks wait {took:?} for a frame");
            thread::sleep(micros(5_000));
        }
        drop(runtime);
        for thread in threads {
            thread.join().unwrap();
        }
    })
}

/// The parker of a worker whose program has events of its own, such as a window.
struct Window {
    park: ThreadPark,
    input: Input,
    collected: Vec<oneshot::Sender<Instant>>,
}

/// The tasks that wait for the next event of a window.
type Input = Arc<Mutex<Vec<oneshot::Sender<Instant>>>>;

impl Window {
    fn new(input: &Input) -> Self {
        Self {
            park: ThreadPark::new(),
            input: input.clone(),
            collected: Vec::new(),
        }
    }

    fn collect(&mut self) {
        self.collected.append(&mut self.input.lock().unwrap());
    }
}

impl Park for Window {
    fn park(&mut self) {
        self.collect();
        if self.collected.is_empty() {
            self.park.park();
            self.collect();
        }
    }

    fn park_timeout(&mut self, limit: Duration) {
        self.collect();
        if self.collected.is_empty() {
            self.park.park_timeout(limit);
            self.collect();
        }
    }

    fn poll(&mut self, _: usize) {
        self.collect();
    }

    fn has_events(&self) -> bool {
        !self.collected.is_empty()
    }

    fn deliver(&mut self) {
        for waits in std::mem::take(&mut self.collected) {
            let _ = waits.send(Instant::now());
        }
    }

    fn waker(&self) -> Waker {
        self.park.waker()
    }
}

/// A driven worker makes a few ticks in each frame, and its parker has events of its own. The tasks
/// that an event wakes do not wait for the frame, as another worker is free.
pub fn input_events(sim: Sim) -> Run {
    sim.polls(Polls::Instant).run_main(|| {
        let input = Input::default();
        let mut parks = vec![Window::new(&input)];
        parks.extend((0..1 + random_below(2)).map(|_| Window::new(&Input::default())));
        let waker = parks[0].waker();
        let builder = Builder::new().global_interval(1 + random_below(3) as u32);
        let (runtime, workers) = builder.build_driven(parks);
        let threads = workers.into_iter().enumerate().map(|(index, worker)| {
            let worker = InFrames(worker);
            thread::spawn(move || match index {
                0 => worker.tick_in_frames(),
                _ => worker.run(),
            })
        });
        let threads: Vec<_> = threads.collect();
        for _ in 0..12 {
            let (sender, receiver) = oneshot::channel();
            input.lock().unwrap().push(sender);
            let waits = runtime.spawn(async move {
                let at = receiver.await.unwrap();
                let took = Instant::now() - at;
                assert!(took < SOON, "an event's task waits {took:?} for a frame");
            });
            if random_below(2) == 0 {
                thread::sleep(micros(60_000));
            }
            let short: Vec<_> = (0..random_below(3))
                .map(|_| runtime.spawn(async {}))
                .collect();
            waker.wake_by_ref();
            runtime.block_on(all(short));
            runtime.block_on(waits).unwrap();
        }
        drop(runtime);
        for thread in threads {
            thread.join().unwrap();
        }
    })
}

struct InFrames(Worker<Window>);

impl InFrames {
    fn run(self) {
        self.0.run();
    }

    fn tick_in_frames(mut self) {
        loop {
            let mut last = Tick::Ran;
            for _ in 0..=random_below(4) {
                last = self.0.tick();
                match last {
                    Tick::Ended => return,
                    Tick::Idle => break,
                    Tick::Ran => {}
                }
            }
            if random_below(4) == 0 {
                busy(MS * 40);
            } else if last == Tick::Idle {
                // The next tick comes at once.
                self.0.park_timeout(MS);
            }
        }
    }
}

struct OnThread(Worker<ThreadPark>);

impl OnThread {
    fn run(self) {
        self.0.run();
    }

    fn draw_frames(mut self) {
        loop {
            match self.0.run_for(MS) {
                Tick::Ended => return,
                Tick::Ran | Tick::Idle => busy(MS * 400),
            }
            self.0.park_timeout(MS);
        }
    }
}

/// Tasks that stay on their worker are woken from outside, beside a task there with long polls.
pub fn sharded(sim: Sim) -> Run {
    sim.polls(Polls::Short).run_main(|| {
        let builder = Builder::new().workers(workers()).sharded(true);
        let runtime = builder.stall_threshold(Duration::MAX).build().unwrap();
        let polls = (0..2).map(|_| {
            runtime.spawn(async {
                for _ in 0..30 {
                    busy(MS * 10);
                    yield_now().await;
                }
            })
        });
        let polls: Vec<_> = polls.collect();
        for _ in 0..4 {
            let (senders, receivers): (Vec<_>, Vec<_>) =
                (0..4).map(|_| oneshot::channel::<Instant>()).unzip();
            let tasks = receivers.into_iter().map(|receiver| {
                runtime.spawn(async move {
                    let sent = receiver.await.unwrap();
                    let waits = Instant::now() - sent;
                    assert!(waits < SOON, "a task waits {waits:?} at its home");
                })
            });
            let tasks: Vec<_> = tasks.collect();
            for sender in senders {
                thread::sleep(micros(9_000));
                sender
                    .send(runtime.block_on(async { Instant::now() }))
                    .unwrap();
            }
            runtime.block_on(all(tasks));
        }
        runtime.block_on(all(polls));
    })
}

/// Two tasks wake each other without end, and their polls are as long as a slice. Timers end in
/// time, and tasks from outside run.
pub fn wake_each_other(sim: Sim) -> Run {
    sim.polls(Polls::Short).run_main(|| {
        let runtime = runtime(1);
        let stop = Arc::new(Mutex::new(false));
        let notifies = Arc::new([task_sync::Notify::new(), task_sync::Notify::new()]);
        let pair = [0, 1].map(|own| {
            let (stop, notifies) = (stop.clone(), notifies.clone());
            runtime.spawn(async move {
                while !*stop.lock().unwrap() {
                    notifies[1 - own].notify_one();
                    busy(MS * 12);
                    notifies[own].notified().await;
                }
                notifies[1 - own].notify_one();
            })
        });
        for _ in 0..4 {
            thread::sleep(micros(50_000));
            let late = runtime.block_on(runtime.spawn(async {
                let due = Instant::now() + micros(20_000);
                sleep_until(due).await;
                Instant::now() - due
            }));
            let late = late.unwrap();
            assert!(late < SOON, "a sleep ends {late:?} late beside a pair");
        }
        *stop.lock().unwrap() = true;
        runtime.block_on(all(pair));
    })
}

/// Driven workers are busy with tasks that yield. A task from outside waits for a poll or two, and
/// the tasks of a burst come in their turn.
pub fn driven_busy(sim: Sim) -> Run {
    sim.polls(Polls::Instant).run_main(|| {
        let parks: Vec<_> = (0..workers()).map(|_| ThreadPark::new()).collect();
        let count = parks.len();
        let (runtime, workers) = Builder::new().build_driven(parks);
        let threads = workers.into_iter().map(|worker| {
            let worker = OnThread(worker);
            thread::spawn(move || worker.run())
        });
        let threads: Vec<_> = threads.collect();
        // The time of each poll, or `None` at the end.
        let poll = Arc::new(Mutex::new(Some(MS * 4)));
        let spinners = (0..2 * count).map(|_| {
            let poll = poll.clone();
            let next = move || *poll.lock().unwrap();
            runtime.spawn(async move {
                while let Some(time) = next() {
                    busy(time);
                    yield_now().await;
                }
            })
        });
        let spinners: Vec<_> = spinners.collect();
        let run = |many: usize| {
            let begun = sync_shim::time::now();
            let tasks: Vec<_> = (0..many).map(|_| runtime.spawn(async {})).collect();
            runtime.block_on(all(tasks));
            let took = sync_shim::time::since(begun);
            assert!(took < SOON, "{many} tasks wait {took:?} for driven workers");
        };
        for _ in 0..4 {
            thread::sleep(MS * 600 + micros(100_000));
            run(1);
        }
        *poll.lock().unwrap() = Some(Duration::from_micros(20));
        for _ in 0..2 {
            thread::sleep(micros(9_000));
            run(40);
        }
        *poll.lock().unwrap() = None;
        runtime.block_on(all(spinners));
        drop(runtime);
        for thread in threads {
            thread.join().unwrap();
        }
    })
}
