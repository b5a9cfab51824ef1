//! Tests of the public API, as a user would use it. No result depends on the speed of the machine,
//! with two exceptions: some waits have a limit of a minute or more, and the last test counts the
//! steps that other processes make during a wait.
use process_scheduler::{
    CallError, CancelReason, CommandError, Completer, Event, EventsOf, ExitReason, Flow, Handle,
    Inbox, InitError, Input, Mailbox, NoCommand, OutputOf, Phase, Process, Reply, Scheduler,
    SendError, Spawn, SpawnError, Step, StepOf, from_fn,
};
use std::{
    collections::VecDeque,
    panic,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::Duration,
};

/// A time limit that is reached only if the test has failed.
const LONG: Duration = Duration::from_secs(60);

/// Silences the messages of all panics, for a test that panics on purpose.
fn quiet() {
    panic::set_hook(Box::new(|_| {}));
}

/// A process that follows a script. For each message of 100 or more it gives a command, with the
/// message as the command's tag.
struct Script {
    /// The first steps return the results of these functions. A later step returns `Done` if it got
    /// a cancel, and `Idle` otherwise.
    steps: VecDeque<fn() -> StepOf<Script>>,
    /// Sends each event of the process to the test.
    events: mpsc::Sender<Event<u32, u32, u32>>,
    /// Counts the calls of `close`.
    closes: Arc<AtomicUsize>,
    drop_panics: bool,
}

impl Process for Script {
    type Message = u32;
    type Cmd = u32;
    type Output = u32;
    type Error = u32;

    fn init(
        &mut self,
        _: &process_scheduler::Context<'_, u32>,
        method: &str,
        input: Input,
    ) -> Result<(), InitError> {
        match method {
            "" => Ok(()),
            "fail" => Err(InitError::Failed("as asked".into())),
            "panic" => panic!("at the start"),
            "input" => {
                let n = input.take().unwrap();
                self.events.send(Event::Message(n)).unwrap();
                Ok(())
            }
            _ => Err(InitError::UnknownMethod),
        }
    }

    fn step(&mut self, events: &mut EventsOf<Self>, out: &mut OutputOf<Self>) -> StepOf<Self> {
        let mut cancelled = false;
        for event in events {
            if let Event::Message(n @ 100..) = event {
                out.command(n.into(), n);
            }
            cancelled |= matches!(event, Event::Cancel(_));
            let _ = self.events.send(event);
        }
        match self.steps.pop_front() {
            Some(step) => step(),
            None if cancelled => Step::Done,
            None => Step::Idle,
        }
    }

    fn close(&mut self) {
        self.closes.fetch_add(1, SeqCst);
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        assert!(!self.drop_panics, "in the drop");
    }
}

/// Makes a process with this script. Also returns the receiver of the process's events, and the
/// count of its closes.
fn script(
    steps: impl IntoIterator<Item = fn() -> StepOf<Script>>,
) -> (
    Script,
    mpsc::Receiver<Event<u32, u32, u32>>,
    Arc<AtomicUsize>,
) {
    let (sender, events) = mpsc::channel();
    let closes = Arc::new(AtomicUsize::new(0));
    let script = Script {
        steps: steps.into_iter().collect(),
        events: sender,
        closes: closes.clone(),
        drop_panics: false,
    };
    (script, events, closes)
}

#[test]
fn messages_of_one_sender_arrive_in_order() {
    let scheduler = Scheduler::builder().workers(2).build();
    let (script, events, _) = script([]);
    let address = scheduler.spawn(script).unwrap();
    for n in 0..50 {
        address.try_send(n).unwrap();
    }
    let got: Vec<_> = events
        .iter()
        .take(50)
        .map(|e| e.into_message().unwrap())
        .collect();
    assert!(got.into_iter().eq(0..50));
}

#[test]
fn failed_init_is_a_typed_error_and_closes_once() {
    let scheduler = Scheduler::new();
    let spawn = |method: &str| {
        let (script, _, closes) = script([]);
        let spawned = scheduler.spawn_process(script, Spawn::new().method(method));
        (spawned.map(|address| address.pid()), closes.load(SeqCst))
    };
    let unknown = SpawnError::UnknownMethod("bake".into());
    assert_eq!(spawn("bake"), (Err(unknown), 1));
    let failed = SpawnError::Init("as asked".into());
    assert_eq!(spawn("fail"), (Err(failed), 1));
    quiet();
    let panicked = SpawnError::Panicked("at the start".into());
    assert_eq!(spawn("panic"), (Err(panicked), 1));
    assert!(scheduler.list().is_empty());
}

#[test]
fn input_reaches_init() {
    let scheduler = Scheduler::new();
    let (script, events, _) = script([]);
    let spawn = Spawn::new().method("input").input(|| Input::new(7_u32));
    let _address = scheduler.spawn_process(script, spawn).unwrap();
    assert_eq!(events.recv(), Ok(Event::Message(7)));
}

#[test]
fn close_runs_once_however_the_process_ends() {
    quiet();
    let ends: [fn() -> StepOf<Script>; 3] = [
        || Step::Done,
        || panic!("in the step"),
        || Step::Failed(ExitReason::failed("no")),
    ];
    for end in ends {
        for drop_panics in [false, true] {
            let scheduler = Scheduler::builder().workers(1).build();
            let (mut script, _, closes) = script([end]);
            script.drop_panics = drop_panics;
            let address = scheduler.spawn(script).unwrap();
            scheduler.wait(address.pid());
            assert_eq!(closes.load(SeqCst), 1);
            assert_eq!(address.try_send(1), Err(SendError::Closed(1)));
            assert_eq!(
                scheduler.try_send(address.pid(), 1_u32),
                Err(SendError::NotFound(1))
            );
        }
    }
}

/// Fails if a refusal before `init` closes the process.
#[test]
fn process_refused_before_init_is_not_closed() {
    let spawn = |scheduler: &Handle, change: fn(Spawn) -> Spawn| {
        let (script, _, closes) = script([]);
        let spawned = scheduler.spawn_process(script, change(Spawn::new()));
        (
            spawned.map(drop),
            Arc::into_inner(closes).unwrap().into_inner(),
        )
    };
    let scheduler = Scheduler::builder().workers(1).max_processes(2).build();
    let handle = scheduler.handle();
    let named = |spawn: Spawn| spawn.name("x");
    let first = scheduler.spawn_with(named(Spawn::new()), |_: u32, _| ());
    let taken = SpawnError::NameTaken("x".into());
    assert_eq!(spawn(&handle, named), (Err(taken), 0));
    let other = |spawn: Spawn| spawn.handler(|_: u8, _: Completer<(), ()>| ());
    let (spawned, closes) = spawn(&handle, other);
    assert!(matches!(spawned, Err(SpawnError::Init(_))) && closes == 0);
    let second = scheduler.spawn_fn(|_: u32, _| ());
    assert_eq!(spawn(&handle, |spawn| spawn), (Err(SpawnError::Full), 0));
    scheduler.shutdown();
    assert_eq!(spawn(&handle, |spawn| spawn), (Err(SpawnError::Closed), 0));
    drop((first, second));
}

#[test]
fn close_runs_once_after_a_kill_or_a_cancel() {
    let scheduler = Scheduler::new();
    let (one, _, killed) = script([]);
    let (two, _, cancelled) = script([]);
    let (one, two) = (scheduler.spawn(one).unwrap(), scheduler.spawn(two).unwrap());
    let ends = [&one, &two].map(|address| scheduler.exit_of(address.pid()));
    scheduler.kill(one.pid());
    scheduler.cancel(two.pid());
    assert_eq!(
        ends.map(|end| end.wait()),
        [ExitReason::Killed, ExitReason::Cancelled]
    );
    assert_eq!(
        [killed, cancelled].map(|closes| closes.load(SeqCst)),
        [1, 1]
    );
}

/// One step gives four commands. The results come back in any order.
#[test]
fn commands_of_a_step_complete_with_their_tags() {
    let scheduler = Scheduler::builder()
        .workers(1)
        .handler(|n: u32, completer: Completer<u32, u32>| match n {
            100 => drop(completer.complete(Ok(1))),
            101 => drop(completer.complete(Err(2))),
            102 => drop(completer),
            _ => drop(thread::spawn(move || completer.complete(Ok(3)))),
        })
        .build();
    let steps: [fn() -> StepOf<Script>; 2] = [|| Step::Blocked, || Step::Idle];
    let (script, events, _) = script(steps);
    let address = scheduler.spawn(script).unwrap();
    while scheduler.inspect(address.pid()).unwrap().phase != Phase::Blocked {
        thread::yield_now();
    }
    for n in 100..104 {
        address.try_send(n).unwrap();
    }
    // The cancel wakes the blocked process. Its next step takes the cancel and all four messages.
    scheduler.cancel(address.pid());
    let mut results: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::YieldComplete { tag, result } => Some((tag, result)),
            _ => None,
        })
        .take(4)
        .collect();
    results.sort_by_key(|(tag, _)| *tag);
    let expected = [
        (100, Ok(1)),
        (101, Err(CommandError::Failed(2))),
        (102, Err(CommandError::Dropped)),
        (103, Ok(3)),
    ];
    assert_eq!(results, expected);
}

/// Fails if the name is checked when the threads start: `try_build` then panics instead.
#[test]
#[should_panic(expected = "may not contain a NUL character")]
fn thread_name_with_a_nul_panics() {
    let _ = Scheduler::builder().name("a\0b");
}

#[test]
fn command_without_handler_is_an_error() {
    let scheduler = Scheduler::new();
    let (script, events, _) = script([]);
    scheduler.spawn(script).unwrap().try_send(100).unwrap();
    let result = events.iter().find_map(|event| match event {
        Event::YieldComplete { result, .. } => Some(result),
        _ => None,
    });
    assert_eq!(result, Some(Err(CommandError::NoHandler)));
}

/// Three processes end: by a kill, by a failed `init`, and by a cancel. The address of the first
/// one and a completer of the last one stay. The handler of the first one also owns a completer of
/// its own process.
///
/// Fails if a cell keeps its handler after the end of its process.
#[test]
fn end_of_a_process_drops_its_handler_and_what_that_owns() {
    quiet();
    let scheduler = Scheduler::builder().workers(1).build();
    let handler = || {
        let (owned, held) = (Arc::new(()), Mutex::new(Vec::new()));
        let weak = Arc::downgrade(&owned);
        let handler = move |_: u32, completer: Completer<u32, u32>| {
            let _owned = &owned;
            held.lock().unwrap().push(completer);
        };
        (Spawn::new().handler(handler), weak)
    };

    let (spawn, owned) = handler();
    let (killed, events, _) = script([]);
    let address = scheduler.spawn_process(killed, spawn).unwrap();
    address.try_send(100).unwrap();
    assert!(matches!(events.recv(), Ok(Event::Message(100))));
    assert!(owned.upgrade().is_some());
    scheduler.kill(address.pid());
    scheduler.wait(address.pid());
    assert!(owned.upgrade().is_none(), "killed");

    let (spawn, owned) = handler();
    let (failed, _, _) = script([]);
    let refused = scheduler.spawn_process(failed, spawn.method("fail"));
    assert!(matches!(refused, Err(SpawnError::Init(_))));
    assert!(owned.upgrade().is_none(), "failed");

    // A completer outside keeps the cell, too.
    let (owned, (sender, completers)) = (Arc::new(()), mpsc::channel());
    let weak = Arc::downgrade(&owned);
    let sender = Mutex::new(sender);
    let handler = move |_: u32, completer: Completer<u32, u32>| {
        let _owned = &owned;
        sender.lock().unwrap().send(completer).unwrap();
    };
    let (cancelled, _, _) = script([]);
    let spawn = Spawn::new().handler(handler);
    let address = scheduler.spawn_process(cancelled, spawn).unwrap();
    address.try_send(100).unwrap();
    let _completer = completers.recv().unwrap();
    let pid = address.pid();
    drop(address);
    scheduler.cancel(pid);
    scheduler.wait(pid);
    assert!(weak.upgrade().is_none(), "cancelled");
}

#[test]
fn completer_of_an_ended_process_is_stale() {
    let scheduler = Scheduler::new();
    let (sender, completers) = mpsc::channel();
    let sender = Mutex::new(sender);
    let handler = move |_: u32, completer: Completer<u32, u32>| {
        sender.lock().unwrap().send(completer).unwrap();
    };
    let (script, _, _) = script([]);
    let address = scheduler
        .spawn_process(script, Spawn::new().handler(handler))
        .unwrap();
    address.try_send(100).unwrap();
    let completer = completers.recv().unwrap();
    scheduler.kill(address.pid());
    scheduler.wait(address.pid());
    assert_eq!(completer.complete(Ok(7)).unwrap_err().0, Ok(7));
}

/// In each round a process gives a command and is killed, and then twenty processes of the same
/// type start. They may get the pid slots and the memory of processes that have ended. Only then is
/// the command completed.
///
/// Fails if the completion reaches one of the twenty processes.
#[test]
fn completer_is_stale_after_its_pid_slot_was_reused() {
    let scheduler = Scheduler::builder().workers(2).build();
    let (sender, completers) = mpsc::channel();
    let sender = Mutex::new(sender);
    let handler = move |_: u32, completer: Completer<u32, u32>| {
        sender.lock().unwrap().send(completer).unwrap();
    };
    let spawn = Spawn::new().handler(handler);
    for round in 0..100 {
        let (script, _, _) = script([]);
        let address = scheduler.spawn_process(script, spawn.clone()).unwrap();
        let pid = address.pid();
        address.try_send(100).unwrap();
        drop(address);
        let completer = completers.recv().unwrap();
        scheduler.kill(pid);
        scheduler.wait(pid);
        let later: Vec<_> = (0..20)
            .map(|_| {
                let (script, events, _) = self::script([]);
                (
                    scheduler.spawn_process(script, spawn.clone()).unwrap(),
                    events,
                )
            })
            .collect();
        assert_eq!(
            completer.complete(Ok(7)).unwrap_err().0,
            Ok(7),
            "round {round}"
        );
        for (address, events) in later {
            scheduler.cancel(address.pid());
            scheduler.wait(address.pid());
            let wrong = |event: &Event<u32, u32, u32>| !matches!(event, Event::Cancel(_));
            assert_eq!(events.try_iter().filter(wrong).count(), 0);
        }
    }
}

/// A blocked process leaves a message in its mailbox until a cancel wakes the process.
#[test]
fn blocked_process_is_woken_by_a_cancel_but_not_by_a_message() {
    let scheduler = Scheduler::builder().workers(1).build();
    let (script, events, _) = script([(|| Step::Blocked) as fn() -> _]);
    let address = scheduler.spawn(script).unwrap();
    while scheduler.inspect(address.pid()).unwrap().phase != Phase::Blocked {
        thread::yield_now();
    }
    address.try_send(1).unwrap();
    // If the message had made the process ready, the only worker would run the process before the
    // probe.
    let (sender, done) = mpsc::channel();
    let probe = scheduler
        .spawn_fn(move |(), _| sender.send(()).unwrap())
        .unwrap();
    probe.try_send(()).unwrap();
    done.recv().unwrap();
    assert_eq!(
        scheduler.inspect(address.pid()).unwrap().phase,
        Phase::Blocked
    );
    scheduler.cancel(address.pid());
    let got: Vec<_> = events.iter().take(2).collect();
    assert_eq!(
        got,
        [Event::Cancel(CancelReason::Requested), Event::Message(1)]
    );
}

#[test]
fn full_bounded_mailbox_hands_the_message_back() {
    let scheduler = Scheduler::builder().workers(1).build();
    let (script, events, _) = script([(|| Step::Blocked) as fn() -> _]);
    let spawn = Spawn::new().mailbox(Mailbox::Bounded(2));
    let address = scheduler.spawn_process(script, spawn).unwrap();
    while scheduler.inspect(address.pid()).unwrap().phase != Phase::Blocked {
        thread::yield_now();
    }
    assert_eq!(address.try_send(1), Ok(()));
    assert_eq!(address.try_send(2), Ok(()));
    assert_eq!(address.try_send(3), Err(SendError::Full(3)));
    assert_eq!(
        scheduler.try_send(address.pid(), 4_u32),
        Err(SendError::Full(4))
    );
    scheduler.cancel(address.pid());
    let got = events.iter().filter_map(Event::into_message).take(2);
    assert_eq!(got.collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn mailbox_that_drops_the_oldest_counts_dead_letters() {
    let scheduler = Scheduler::builder().workers(1).build();
    let (script, events, _) = script([(|| Step::Blocked) as fn() -> _]);
    let spawn = Spawn::new().mailbox(Mailbox::DropOldest(2));
    let address = scheduler.spawn_process(script, spawn).unwrap();
    while scheduler.inspect(address.pid()).unwrap().phase != Phase::Blocked {
        thread::yield_now();
    }
    for n in 0..5 {
        assert_eq!(address.try_send(n), Ok(()));
    }
    assert_eq!(scheduler.metrics().dead_letters, 3);
    scheduler.cancel(address.pid());
    let got = events.iter().filter_map(Event::into_message).take(2);
    assert_eq!(got.collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn awaited_sends_to_a_bounded_mailbox_all_arrive() {
    let scheduler = Scheduler::builder().workers(2).build();
    let (sender, seen) = mpsc::channel();
    let spawn = Spawn::new().mailbox(Mailbox::Bounded(2));
    let slow = scheduler
        .spawn_with(spawn, move |n: u32, _| sender.send(n).unwrap())
        .unwrap();
    let fast = scheduler
        .spawn_async(move |_: Inbox<()>| async move {
            for n in 0..1_000 {
                slow.send(n).await.unwrap();
            }
        })
        .unwrap();
    assert!(seen.iter().take(1_000).eq(0..1_000));
    scheduler.wait(fast.pid());
}

#[test]
fn call_ends_with_an_answer_or_an_error() {
    let scheduler = Scheduler::new();
    let kept = Mutex::new(Vec::new());
    let server = scheduler
        .spawn_fn(move |(n, reply): (u32, Reply<u32>), _| match n {
            0 => drop(reply),
            1 => kept.lock().unwrap().push(reply),
            n => {
                let _ = reply.send(n);
            }
        })
        .unwrap();
    let call = |n, within| server.call(move |reply| (n, reply), within).wait();
    assert_eq!(call(2, LONG), Ok(2));
    assert_eq!(call(0, LONG), Err(CallError::Dropped));
    assert_eq!(call(1, Duration::from_millis(5)), Err(CallError::Timeout));
    let waiting = server.call(|reply| (1, reply), LONG);
    scheduler.cancel(server.pid());
    assert_eq!(waiting.wait(), Err(CallError::Dropped));
    scheduler.wait(server.pid());
    assert_eq!(
        call(2, LONG),
        Err(CallError::Refused(SendError::Closed(())))
    );
}

#[test]
fn failure_ends_a_linked_process_unless_it_traps_exits() {
    let scheduler = Scheduler::new();
    let (trap, events, _) = script([]);
    let trap = scheduler
        .spawn_process(trap, Spawn::new().trap_exits(true))
        .unwrap();
    let (plain, _, _) = script([]);
    let plain = scheduler.spawn(plain).unwrap();
    let failing = scheduler.spawn_fn(|(), _| Flow::fail("as asked")).unwrap();
    scheduler.link(trap.pid(), failing.pid());
    scheduler.link(plain.pid(), failing.pid());
    let end = scheduler.exit_of(plain.pid());
    failing.try_send(()).unwrap();
    let reason = ExitReason::failed("as asked");
    assert_eq!(end.wait(), reason);
    let exit = Event::Exit {
        pid: failing.pid(),
        reason,
    };
    assert_eq!(events.recv(), Ok(exit));
    assert!(scheduler.inspect(trap.pid()).is_some());
}

#[test]
fn monitor_of_an_ended_process_gets_an_exit_at_once() {
    let scheduler = Scheduler::new();
    let (script, events, _) = script([]);
    let address = scheduler.spawn(script).unwrap();
    let gone = scheduler.spawn_fn(|(), _| Flow::Stop).unwrap();
    gone.try_send(()).unwrap();
    scheduler.wait(gone.pid());
    scheduler.monitor(address.pid(), gone.pid());
    let exit = Event::Exit {
        pid: gone.pid(),
        reason: ExitReason::NoProcess,
    };
    assert_eq!(events.recv(), Ok(exit));
}

#[test]
fn upgrade_keeps_pid_and_mailbox() {
    let scheduler = Scheduler::builder().workers(1).build();
    let (old, _, old_closes) = script([(|| Step::Blocked) as fn() -> _, || {
        let (sender, _) = mpsc::channel();
        Step::Upgrade(Box::new(Script {
            steps: VecDeque::new(),
            events: sender,
            closes: Arc::default(),
            drop_panics: false,
        }))
    }]);
    let address = scheduler.spawn(old).unwrap();
    while scheduler.inspect(address.pid()).unwrap().phase != Phase::Blocked {
        thread::yield_now();
    }
    // The cancel wakes the process. Its second step is the upgrade.
    scheduler.cancel(address.pid());
    while old_closes.load(SeqCst) == 0 {
        thread::yield_now();
    }
    assert_eq!(address.try_send(1), Ok(()));
    assert!(scheduler.inspect(address.pid()).is_some());
}

/// A process that takes one message, and then upgrades to a closure. The closure adds 100 to each
/// message that it reports.
struct Old(mpsc::Sender<u32>);

impl Process for Old {
    type Message = u32;
    type Cmd = NoCommand;
    type Output = ();
    type Error = ();

    fn step(&mut self, events: &mut EventsOf<Self>, _: &mut OutputOf<Self>) -> StepOf<Self> {
        let Some(Event::Message(n)) = events.next() else {
            return Step::Idle;
        };
        let seen = self.0.clone();
        seen.send(n).unwrap();
        Step::Upgrade(Box::new(from_fn(move |n: u32, _| {
            seen.send(100 + n).unwrap();
        })))
    }
}

/// Fails if the upgrade loses the messages that were taken out of the mailbox together with the
/// first one, or changes their order.
#[test]
fn upgraded_process_gets_the_waiting_messages_in_order() {
    let scheduler = Scheduler::builder().workers(1).build();
    // This process keeps the only worker in a step until all messages are in the mailbox of the
    // process under test.
    let (release, released) = mpsc::channel::<()>();
    let mut released = Some(released);
    let holds = scheduler.spawn_fn(move |(), _| {
        let _ = released.take().map(|released| released.recv());
    });
    holds.unwrap().try_send(()).unwrap();
    let (sender, seen) = mpsc::channel();
    let address = scheduler.spawn(Old(sender)).unwrap();
    for n in 0..50 {
        address.try_send(n).unwrap();
    }
    drop(release);
    let seen = |_| seen.recv_timeout(10 * LONG).unwrap();
    assert!((0..50).map(seen).eq([0].into_iter().chain(101..150)));
}

#[test]
fn spawn_beyond_the_limit_is_refused() {
    let scheduler = Scheduler::builder().max_processes(2).build();
    let spawn = || scheduler.spawn_fn(|(), _| ());
    let first = spawn().unwrap();
    let _second = spawn().unwrap();
    assert_eq!(spawn().map(|a| a.pid()), Err(SpawnError::Full));
    let end = scheduler.exit_of(first.pid());
    scheduler.kill(first.pid());
    end.wait();
    while scheduler.metrics().processes == 2 {
        thread::yield_now();
    }
    assert!(spawn().is_ok());
}

#[test]
fn async_process_awaits_a_call_between_two_messages() {
    let scheduler = Scheduler::builder().workers(1).build();
    let (sender, seen) = mpsc::channel();
    let doubler = scheduler
        .spawn_fn(|(n, reply): (u32, Reply<u32>), _| {
            let _ = reply.send(2 * n);
        })
        .unwrap();
    let asks = scheduler
        .spawn_async(move |mut inbox: Inbox<u32>| async move {
            while let Some(n) = inbox.receive().await {
                let doubled = doubler.call(|reply| (n, reply), LONG).await.unwrap();
                sender.send(doubled).unwrap();
            }
        })
        .unwrap();
    for n in 0..100 {
        asks.try_send(n).unwrap();
    }
    assert!(seen.iter().take(100).eq((0..100).map(|n| 2 * n)));
    let end = scheduler.exit_of(asks.pid());
    scheduler.cancel(asks.pid());
    assert_eq!(end.wait(), ExitReason::Cancelled);
}

/// A hundred processes end each step with `Continue`, so they are always ready.
///
/// Fails if they starve the oldest process of the worker's deque, or a process in the injector.
#[test]
fn processes_that_always_continue_starve_no_other() {
    struct Busy(Arc<AtomicUsize>);
    impl Process for Busy {
        type Message = ();
        type Cmd = NoCommand;
        type Output = ();
        type Error = ();
        fn step(&mut self, events: &mut EventsOf<Self>, _: &mut OutputOf<Self>) -> StepOf<Self> {
            self.0.fetch_add(1, SeqCst);
            if events.any(|event| matches!(event, Event::Cancel(_))) {
                return Step::Done;
            }
            Step::Continue
        }
    }
    let scheduler = Scheduler::builder().workers(1).build();
    let steps = Arc::new(AtomicUsize::new(0));
    let handle = scheduler.handle();
    let (sender, seen) = mpsc::channel();
    let count = steps.clone();
    // A process spawns the witness and then the busy processes, so all of them are in the deque of
    // its worker, and the witness is the oldest.
    let spawner = scheduler
        .spawn_fn(move |(), _| {
            let (sender, count) = (sender.clone(), count.clone());
            let steps = count.clone();
            let witness = handle
                .spawn_fn(move |(), _| sender.send(steps.load(SeqCst)).unwrap())
                .unwrap();
            witness.try_send(()).unwrap();
            for _ in 0..100 {
                handle.spawn(Busy(count.clone())).unwrap();
            }
        })
        .unwrap();
    spawner.try_send(()).unwrap();
    // After 61 steps the worker takes the oldest process of its deque. At most 100 processes are
    // before a process in either queue, and each makes 32 steps, so the process runs within 101
    // such picks.
    let first = seen.recv().unwrap();
    assert!(first <= 61 * 101, "the witness waited for {first} steps");
    // A message from this thread makes a process ready through the injector. The thread may be slow
    // between its load of `steps` and its send, so only the shortest of 20 waits counts.
    let (sender, seen) = mpsc::channel();
    let count = steps.clone();
    let outside = scheduler.spawn_fn(move |(), _| sender.send(count.load(SeqCst)).unwrap());
    let outside = outside.unwrap();
    let waits = (0..20).map(|_| {
        let before = steps.load(SeqCst);
        outside.try_send(()).unwrap();
        seen.recv().unwrap() - before
    });
    let shortest = waits.min().unwrap();
    assert!(
        shortest <= 61 * 101,
        "each wait took {shortest} steps or more"
    );
}
