//! Supervisors and shutdown. Where a test waits it waits for an event, not for a time.
use process_scheduler::{
    Backoff, Child, Completer, Event, EventsOf, ExitReason, Flow, Input, NoCommand, OutputOf,
    Phase, Pid, Policy, Process, Reply, Scheduler, Spawn, Step, StepOf, Strategy, Supervisor,
    from_fn,
};
use std::{
    future::Future,
    panic,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    task::{Context, Waker},
    thread,
    time::{Duration, Instant},
};

fn soon() -> Backoff {
    Backoff::new(Duration::from_millis(1), 2, Duration::from_millis(4))
}

/// Makes a child that reports each start. The message `false` makes it fail, and `true` makes it
/// stop.
fn child(name: &'static str, starts: &mpsc::Sender<&'static str>) -> Child {
    let starts = starts.clone();
    Child::new(move || {
        starts.send(name).unwrap();
        from_fn(|ends: bool, _| {
            if ends {
                Flow::Stop
            } else {
                Flow::fail("as asked")
            }
        })
    })
    .spawn(Spawn::new().name(name))
}

fn family(strategy: Strategy) -> (Scheduler, mpsc::Receiver<&'static str>, Pid) {
    let scheduler = Scheduler::builder().workers(2).build();
    let (sender, starts) = mpsc::channel();
    let supervisor = Supervisor::new(strategy)
        .backoff(soon())
        .child(child("a", &sender))
        .child(child("b", &sender))
        .child(child("c", &sender));
    let pid = supervisor.start(&scheduler).unwrap();
    assert!(starts.iter().take(3).eq(["a", "b", "c"]));
    (scheduler, starts, pid)
}

fn fail(scheduler: &Scheduler, name: &str) {
    scheduler
        .named::<bool>(name)
        .unwrap()
        .try_send(false)
        .unwrap();
}

#[test]
fn one_for_one_restarts_the_child_in_place() {
    let (scheduler, starts, _) = family(Strategy::OneForOne);
    let before = scheduler.whereis("b");
    fail(&scheduler, "b");
    assert_eq!(starts.recv(), Ok("b"));
    assert_eq!(scheduler.whereis("b"), before);
    fail(&scheduler, "b");
    assert_eq!(starts.recv(), Ok("b"));
    assert!(starts.try_recv().is_err());
}

#[test]
fn one_for_all_restarts_all_in_order() {
    let (scheduler, starts, _) = family(Strategy::OneForAll);
    fail(&scheduler, "b");
    assert!(starts.iter().take(3).eq(["a", "b", "c"]));
}

#[test]
fn rest_for_one_restarts_the_later_ones() {
    let (scheduler, starts, _) = family(Strategy::RestForOne);
    fail(&scheduler, "b");
    assert!(starts.iter().take(2).eq(["b", "c"]));
    assert!(starts.try_recv().is_err());
}

#[test]
fn killed_child_is_restarted() {
    let (scheduler, starts, _) = family(Strategy::OneForOne);
    scheduler.kill(scheduler.whereis("a").unwrap());
    assert_eq!(starts.recv(), Ok("a"));
}

#[test]
fn default_backoff_doubles_from_1_to_90_seconds() {
    let backoff = Backoff::default();
    let seconds = |restarts| backoff.jitter(0.0).delay(restarts, 0.5).as_secs_f64();
    let delays: Vec<_> = (0..8).map(seconds).collect();
    assert_eq!(delays, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 90.0]);
    let ends = [0.0, 1.0].map(|random| backoff.delay(1, random).as_millis());
    assert_eq!(ends, [1_800, 2_200]);
}

#[test]
fn too_many_restarts_end_supervisor_and_children() {
    let scheduler = Scheduler::builder().workers(2).build();
    let (sender, starts) = mpsc::channel();
    let supervisor = Supervisor::new(Strategy::OneForOne)
        .backoff(soon())
        .intensity(2, Duration::from_secs(600))
        .child(child("a", &sender))
        .child(child("b", &sender));
    let pid = supervisor.start(&scheduler).unwrap();
    let end = scheduler.exit_of(pid);
    let b = scheduler.exit_of(scheduler.whereis("b").unwrap());
    assert_eq!(starts.iter().take(2).count(), 2);
    for _ in 0..2 {
        fail(&scheduler, "a");
        assert_eq!(starts.recv(), Ok("a"));
    }
    fail(&scheduler, "a");
    assert_eq!(end.wait(), ExitReason::failed("too many restarts"));
    b.wait();
}

#[test]
fn transient_child_that_is_done_is_not_restarted() {
    let scheduler = Scheduler::builder().workers(2).build();
    let (sender, starts) = mpsc::channel();
    let supervisor = Supervisor::new(Strategy::OneForOne)
        .backoff(soon())
        .child(child("a", &sender).policy(Policy::Transient));
    supervisor.start(&scheduler).unwrap();
    let a = scheduler.named::<bool>("a").unwrap();
    let end = scheduler.exit_of(a.pid());
    a.try_send(false).unwrap();
    assert!(starts.iter().take(2).eq(["a", "a"]));
    a.try_send(true).unwrap();
    assert_eq!(end.wait(), ExitReason::Normal);
}

#[test]
fn messages_survive_a_restart_with_keep_mail() {
    panic::set_hook(Box::new(|_| {}));
    let scheduler = Scheduler::builder().workers(1).messages(1).build();
    let (sender, seen) = mpsc::channel();
    let child = Child::new(move || {
        let sender = sender.clone();
        from_fn(move |n: u32, _| {
            assert_ne!(n, 0, "as asked");
            sender.send(n).unwrap();
        })
    });
    let child = child.spawn(Spawn::new().name("keeper")).keep_mail(true);
    Supervisor::new(Strategy::OneForOne)
        .backoff(soon())
        .child(child)
        .start(&scheduler)
        .unwrap();
    let keeper = scheduler.named::<u32>("keeper").unwrap();
    for n in [1, 0, 2, 0, 3] {
        keeper.try_send(n).unwrap();
    }
    assert!(seen.iter().take(3).eq([1, 2, 3]));
    assert_eq!(scheduler.metrics().dead_letters, 0);
    assert_eq!(scheduler.metrics().restarts, 2);
}

#[test]
fn tree_shows_children_under_their_supervisor() {
    let (scheduler, _, pid) = family(Strategy::OneForOne);
    let tree = scheduler.tree().to_string();
    let lines: Vec<_> = tree.lines().collect();
    assert_eq!(lines.len(), 4, "{tree}");
    assert!(lines[0].starts_with(&pid.to_string()), "{tree}");
    assert!(
        lines[1..].iter().all(|line| line.starts_with("  <")),
        "{tree}"
    );
}

#[test]
fn cancelled_supervisor_ends_its_children_first() {
    let (scheduler, _, pid) = family(Strategy::OneForAll);
    let names = ["a", "b", "c"];
    let children = names.map(|name| scheduler.exit_of(scheduler.whereis(name).unwrap()));
    let end = scheduler.exit_of(pid);
    scheduler.cancel(pid);
    assert_eq!(end.wait(), ExitReason::Cancelled);
    // The last incarnation of each child has ended. The name of a child is free when its end is
    // notified.
    for child in children {
        child.wait();
    }
    assert!(names.iter().all(|name| scheduler.whereis(name).is_none()));
}

#[test]
fn killed_supervisor_kills_its_children() {
    let (scheduler, _, pid) = family(Strategy::OneForOne);
    let end = scheduler.exit_of(scheduler.whereis("b").unwrap());
    scheduler.kill(pid);
    end.wait();
}

#[test]
fn shutdown_of_supervised_children_is_graceful() {
    let (scheduler, _, _) = family(Strategy::OneForOne);
    let report = scheduler.shutdown();
    assert_eq!((report.graceful, report.forced, report.stuck), (4, 0, 0));
}

/// Cleans up by a command that takes 100 ms. A stubborn one ignores the cancel.
struct Cleaner {
    is_stubborn: bool,
}

impl Process for Cleaner {
    type Message = ();
    type Cmd = Duration;
    type Output = ();
    type Error = ();

    fn step(&mut self, events: &mut EventsOf<Self>, out: &mut OutputOf<Self>) -> StepOf<Self> {
        for event in events {
            match event {
                Event::Cancel(_) if !self.is_stubborn => out.command(0, Duration::from_millis(100)),
                Event::YieldComplete { .. } => return Step::Done,
                _ => {}
            }
        }
        Step::Idle
    }
}

fn sleeps(time: Duration, completer: Completer<(), ()>) {
    thread::spawn(move || {
        thread::sleep(time);
        let _ = completer.complete(Ok(()));
    });
}

#[test]
fn shutdown_serves_asynchronous_clean_up() {
    let scheduler = Scheduler::builder().handler(sleeps).build();
    for _ in 0..10 {
        scheduler.spawn(Cleaner { is_stubborn: false }).unwrap();
    }
    let report = scheduler.shutdown_timeout(Duration::from_secs(600));
    assert_eq!((report.graceful, report.forced, report.stuck), (10, 0, 0));
}

#[test]
fn shutdown_forces_a_stubborn_process() {
    let scheduler = Scheduler::builder().handler(sleeps).build();
    scheduler.spawn(Cleaner { is_stubborn: true }).unwrap();
    let limit = Duration::from_millis(50);
    let start = Instant::now();
    let report = scheduler.shutdown_timeout(limit);
    assert!(start.elapsed() >= limit);
    assert_eq!((report.graceful, report.forced, report.stuck), (0, 1, 0));
}

#[test]
fn shutdown_counts_a_stuck_process_and_leaks_its_thread() {
    let scheduler = Scheduler::builder().workers(2).build();
    let (begin, begun) = mpsc::channel();
    let (_keep, never) = mpsc::channel::<()>();
    let never = std::sync::Mutex::new(never);
    let stuck = scheduler
        .spawn_fn(move |(), _| {
            begin.send(()).unwrap();
            let _ = never.lock().unwrap().recv();
        })
        .unwrap();
    stuck.try_send(()).unwrap();
    begun.recv().unwrap();
    let report = scheduler.shutdown_timeout(Duration::from_millis(10));
    assert_eq!((report.graceful, report.forced, report.stuck), (0, 0, 1));
}

/// A shutdown on a worker of the scheduler must not wait for that worker.
#[test]
fn drop_of_the_scheduler_on_its_own_worker_returns() {
    struct Holds(Option<Scheduler>, mpsc::Sender<()>);
    impl Process for Holds {
        type Message = Scheduler;
        type Cmd = NoCommand;
        type Output = ();
        type Error = ();
        fn step(&mut self, events: &mut EventsOf<Self>, _: &mut OutputOf<Self>) -> StepOf<Self> {
            for event in events {
                match event {
                    Event::Message(scheduler) => self.0 = Some(scheduler),
                    Event::Cancel(_) => return Step::Done,
                    _ => {}
                }
            }
            if self.0.take().is_some() {
                self.1.send(()).unwrap();
            }
            Step::Idle
        }
    }
    let scheduler = Scheduler::builder().workers(1).build();
    let (sender, done) = mpsc::channel();
    let holds = scheduler.spawn(Holds(None, sender)).unwrap();
    holds.try_send(scheduler).map_err(|_| ()).unwrap();
    done.recv().unwrap();
}

#[test]
fn spawn_against_shutdown_is_refused_or_ended() {
    for _ in 0..50 {
        let scheduler = Scheduler::builder().workers(2).build();
        let handle = scheduler.handle();
        let ended = Arc::new(AtomicUsize::new(0));
        struct Counts(Arc<AtomicUsize>);
        impl Drop for Counts {
            fn drop(&mut self) {
                self.0.fetch_add(1, SeqCst);
            }
        }
        let count = ended.clone();
        let spawner = thread::spawn(move || {
            let mut spawned = 0;
            loop {
                let counts = Counts(count.clone());
                let process = handle.spawn_fn(move |(), _| {
                    let _ = &counts;
                });
                spawned += 1;
                if process.is_err() {
                    return spawned;
                }
            }
        });
        thread::yield_now();
        scheduler.shutdown();
        assert_eq!(spawner.join().unwrap(), ended.load(SeqCst));
    }
}

#[test]
fn child_may_clean_up_for_ever() {
    let scheduler = Scheduler::builder().workers(1).build();
    let child = Child::new(|| from_fn(|_: u32, _| ())).shutdown(Duration::MAX);
    let supervisor = Supervisor::new(Strategy::OneForOne).child(child);
    let pid = supervisor.start(&scheduler).unwrap();
    let exit = scheduler.exit_of(pid);
    scheduler.cancel(pid);
    assert_eq!(exit.wait(), ExitReason::Cancelled);
}

/// Fails if an address of a child that has ended for good keeps the closures from which the
/// supervisor would restart it, and so what they own.
#[test]
fn end_of_a_child_drops_what_would_restart_it() {
    let scheduler = Scheduler::builder().workers(1).build();
    let values = [(); 2].map(Arc::new);
    let owned = values.each_ref().map(Arc::downgrade);
    let [of_make, of_input] = values;
    let make = move || {
        let _owned = &of_make;
        from_fn(|_: bool, _| Flow::Stop)
    };
    let input = move || {
        let _owned = &of_input;
        Input::none()
    };
    let child = Child::new(make).spawn(Spawn::new().name("child").input(input));
    let supervisor = Supervisor::new(Strategy::OneForOne).child(child);
    let pid = supervisor.start(&scheduler).unwrap();
    let exit = scheduler.exit_of(pid);
    let address = scheduler.named::<bool>("child").unwrap();
    let exit_of_child = scheduler.exit_of(address.pid());
    scheduler.cancel(pid);
    assert_eq!(exit.wait(), ExitReason::Cancelled);
    exit_of_child.wait();
    assert!(owned.iter().all(|value| value.upgrade().is_none()));
    address.try_send(true).unwrap_err();
}

/// Fails if the limit of a call, of a sleep or of a shutdown is added to a time without a check.
#[test]
fn endless_limits_of_a_scheduler_do_not_overflow() {
    let builder = Scheduler::builder().workers(1);
    let scheduler = builder.shutdown_timeout(Duration::MAX).build();
    let adder = scheduler.spawn_fn(|(n, reply): (u32, Reply<u32>), _| {
        let _ = reply.send(n + 1);
    });
    let answer = adder.unwrap().call(|reply| (1, reply), Duration::MAX);
    assert_eq!(answer.wait(), Ok(2));
    let mut sleep = pin!(scheduler.sleep(Duration::MAX));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(sleep.as_mut().poll(&mut cx).is_pending());
    let report = scheduler.shutdown();
    assert_eq!((report.graceful, report.stuck), (1, 0));
}

#[test]
fn endless_backoff_blocks_no_cancel_and_no_shutdown() {
    for strategy in [Strategy::OneForOne, Strategy::OneForAll] {
        let scheduler = Scheduler::builder().workers(1).build();
        let child = Child::new(|| from_fn(|_: u32, _| Flow::fail("as asked")));
        let supervisor = Supervisor::new(strategy)
            .backoff(Backoff::new(Duration::MAX, 2, Duration::MAX))
            .child(child.spawn(Spawn::new().name("fails")))
            .child(Child::new(|| from_fn(|_: u32, _| ())));
        let pid = supervisor.start(&scheduler).unwrap();
        let exit = scheduler.exit_of(pid);
        let fails = scheduler.whereis("fails").unwrap();
        scheduler.try_send(fails, 1_u32).unwrap();
        while scheduler.inspect(fails).unwrap().phase != Phase::Stopped {
            thread::yield_now();
        }
        scheduler.cancel(pid);
        assert_eq!(exit.wait(), ExitReason::Cancelled);
        assert_eq!(scheduler.shutdown().stuck, 0);
    }
}
