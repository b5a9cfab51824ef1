//! Several values whose drops panic, dropped by the scheduler. A second panic that came while the
//! first one unwinds would abort the test.
use crate::{LIMIT, one_worker, quiet};
use process_scheduler::{
    Address, Backoff, Child, Completer, Event, EventsOf, ExitReason, Flow, Inbox, Input, Mailbox,
    NoCommand, OutputOf, Parcel, Phase, Pid, Policy, Process, Relay, Reply, Scheduler, SendError,
    Spawn, SpawnError, Step, StepOf, Strategy, Supervisor, from_fn,
};
use std::{
    future::{Future, pending, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    ptr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    task::{Context, Poll, RawWaker, RawWakerVTable, Waker},
    thread,
    time::{Duration, Instant},
};

/// A value whose drop panics.
struct Bomb(Bombs);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, SeqCst);
        panic!("in a drop");
    }
}

/// Makes bombs, and counts those that are left.
#[derive(Clone, Default)]
struct Bombs(Arc<AtomicUsize>);

impl Bombs {
    fn one(&self) -> Bomb {
        self.0.fetch_add(1, SeqCst);
        Bomb(self.clone())
    }

    fn left(&self) -> usize {
        self.0.load(SeqCst)
    }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        thread::yield_now();
    }
}

/// Gives all its commands when its first event comes. Ends in that step, unless it waits for the
/// next event.
struct Asks {
    commands: Vec<Bomb>,
    waits: bool,
}

impl Process for Asks {
    type Message = u32;
    type Cmd = Bomb;
    type Output = Bomb;
    type Error = ();

    fn step(&mut self, events: &mut EventsOf<Self>, out: &mut OutputOf<Self>) -> StepOf<Self> {
        match events.next() {
            None => return Step::Idle,
            Some(Event::Message(_)) => {}
            Some(completion) => drop(completion),
        }
        let commands = self.commands.drain(..);
        commands.for_each(|command| out.command(0, command));
        if self.waits { Step::Idle } else { Step::Done }
    }
}

/// Fails if one guard covers all completions that no step got: those in the process's lane, or
/// those of a batch that a step has taken.
#[test]
fn panics_of_dropped_completions_keep_the_worker() {
    for waits in [false, true] {
        let (bombs, scheduler) = (Bombs::default(), one_worker());
        let echo = |command: Bomb, completer: Completer<Bomb, ()>| {
            assert!(completer.complete(Ok(command)).is_ok());
        };
        let commands = (0..4).map(|_| bombs.one()).collect();
        let process = Asks { commands, waits };
        let process = scheduler.spawn_process(process, Spawn::new().handler(echo));
        let process = process.unwrap();
        let exit = scheduler.exit_of(process.pid());
        process.try_send(1).unwrap();
        match exit.wait() {
            ExitReason::Normal => assert!(!waits),
            // The step drops the first completion.
            reason => assert!(waits && matches!(reason, ExitReason::Panicked(_))),
        }
        assert_eq!(bombs.left(), 0);
        assert_eq!(scheduler.shutdown().stuck, 0);
    }
}

/// An `async` process is killed while three messages wait. Its inbox is in the future, or on
/// another thread, which awaits it. Then one of the messages was handed over to the inbox.
///
/// Fails if one guard covers all these messages, or if they stay in an inbox that no code can
/// receive from any more, or if one of them is no dead letter.
#[test]
fn panics_of_an_inboxs_dropped_messages_keep_the_worker() {
    for is_given_away in [false, true] {
        let (bombs, scheduler) = (Bombs::default(), one_worker());
        let (sender, given) = mpsc::channel();
        let maker = bombs.clone();
        let process = scheduler.spawn_async(move |inbox: Inbox<Bomb>| {
            for _ in 0..3 {
                assert!(inbox.address().try_send(maker.one()).is_ok());
            }
            let mut inbox = Some(inbox);
            if is_given_away {
                sender.send(inbox.take()).unwrap();
            }
            let owned = maker.one();
            async move {
                let _owned = (inbox, owned);
                pending::<()>().await;
            }
        });
        let pid = process.unwrap().pid();
        let is_blocked = || scheduler.inspect(pid).unwrap().phase == Phase::Blocked;
        wait_until("blocked", is_blocked);
        let mut inbox = given.try_recv().ok().flatten();
        if let Some(inbox) = &mut inbox {
            let (waker, woken) = crate::reports();
            let mut cx = Context::from_waker(&waker);
            assert!(pin!(inbox.receive()).poll(&mut cx).is_pending());
            assert_eq!(woken.recv_timeout(LIMIT), Ok(()));
        }
        let exit = scheduler.exit_of(pid);
        scheduler.kill(pid);
        assert_eq!(exit.wait(), ExitReason::Killed);
        assert_eq!(bombs.left(), 0);
        let metrics = scheduler.metrics();
        assert_eq!((metrics.delivered, metrics.dead_letters), (0, 3));
        assert_eq!(scheduler.shutdown().stuck, 0);
        drop(inbox);
    }
}

/// Makes a child whose closures own bombs. The child ends with its first message.
fn child(bombs: &Bombs, name: &str) -> Child {
    let [maker, input] = [(); 2].map(|()| bombs.one());
    let make = move || {
        let _ = &maker;
        from_fn(|_: u32, _| Flow::Stop)
    };
    let input = move || {
        let _ = &input;
        Input::none()
    };
    Child::new(make).spawn(Spawn::new().name(name).input(input))
}

/// The supervisor is killed, so its child is the last owner of the closures.
///
/// Fails if one guard covers both closures.
#[test]
fn panics_of_a_childs_dropped_closures_keep_the_worker() {
    let (bombs, scheduler) = (Bombs::default(), one_worker());
    let supervisor = Supervisor::new(Strategy::OneForOne).child(child(&bombs, "a"));
    let pid = supervisor.start(&scheduler).unwrap();
    let exit = scheduler.exit_of(scheduler.whereis("a").unwrap());
    scheduler.kill(pid);
    assert_eq!(exit.wait(), ExitReason::Killed);
    assert_eq!(bombs.left(), 0);
    assert_eq!(scheduler.shutdown().stuck, 0);
}

/// The children have ended for good, so their supervisor is the last owner of the closures.
///
/// Fails if one guard covers all closures of a supervisor.
#[test]
fn panics_of_a_supervisors_dropped_closures_keep_the_worker() {
    let (bombs, scheduler) = (Bombs::default(), one_worker());
    let mut supervisor = Supervisor::new(Strategy::OneForOne);
    for name in ["a", "b"] {
        supervisor = supervisor.child(child(&bombs, name).policy(Policy::Temporary));
    }
    let pid = supervisor.start(&scheduler).unwrap();
    for name in ["a", "b"] {
        let child: Address<u32> = scheduler.named(name).unwrap();
        child.try_send(1).unwrap();
        scheduler.wait(child.pid());
    }
    let exit = scheduler.exit_of(pid);
    scheduler.kill(pid);
    assert_eq!(exit.wait(), ExitReason::Killed);
    assert_eq!(bombs.left(), 0);
    assert_eq!(scheduler.shutdown().stuck, 0);
}

/// A restart makes a process whose drop panics, and then its input's closure panics.
///
/// Fails if the process is dropped while that panic unwinds.
#[test]
fn panic_of_a_restarts_input_drops_the_process_guarded() {
    let (bombs, scheduler) = (Bombs::default(), one_worker());
    let make = {
        let bombs = bombs.clone();
        move || {
            let owned = bombs.one();
            from_fn(move |_: u32, _| {
                let _ = &owned;
                Flow::fail("as asked")
            })
        }
    };
    let is_restart = AtomicBool::new(false);
    let input = move || {
        assert!(!is_restart.swap(true, SeqCst), "in an input");
        Input::none()
    };
    let supervisor = Supervisor::new(Strategy::OneForOne)
        .backoff(Backoff::new(Duration::ZERO, 1, Duration::ZERO))
        .intensity(1, Duration::from_secs(600))
        .child(Child::new(make).spawn(Spawn::new().name("a").input(input)));
    supervisor.start(&scheduler).unwrap();
    let child: Address<u32> = scheduler.named("a").unwrap();
    let exit = scheduler.exit_of(child.pid());
    child.try_send(1).unwrap();
    assert!(matches!(exit.wait(), ExitReason::Panicked(why) if &*why == "in an input"));
    assert_eq!(bombs.left(), 0);
    assert_eq!(scheduler.shutdown().stuck, 0);
}

/// Fails if the process is dropped while the panic of its input's closure unwinds.
#[test]
fn panic_of_a_spawns_input_drops_the_process_guarded() {
    let (bombs, scheduler) = (Bombs::default(), one_worker());
    let [owned, other] = [(); 2].map(|()| bombs.one());
    let process = from_fn(move |_: u32, _| {
        let _ = &owned;
    });
    let spawn = Spawn::new().input(move || {
        let _ = &other;
        panic!("in an input")
    });
    let spawned = catch_unwind(AssertUnwindSafe(|| scheduler.spawn_process(process, spawn)));
    assert!(spawned.is_err());
    assert_eq!((bombs.left(), scheduler.metrics().processes), (0, 0));
}

/// Fails if the drop of a scheduler drops its handlers and its relay without a guard for each.
#[test]
fn panics_of_dropped_handlers_and_a_relay_abort_nothing() {
    struct Owns(#[expect(dead_code)] Bomb);
    impl Relay for Owns {
        fn deliver(&self, _: Pid, parcel: Parcel) -> Result<(), SendError<Parcel>> {
            Err(SendError::NotFound(parcel))
        }
    }
    quiet();
    let bombs = Bombs::default();
    let [first, second] = [(); 2].map(|()| bombs.one());
    let scheduler = Scheduler::builder()
        .workers(1)
        .handler(move |_: u8, _: Completer<(), ()>| {
            let _ = &first;
        })
        .handler(move |_: u16, _: Completer<(), ()>| {
            let _ = &second;
        })
        .relay(Owns(bombs.one()))
        .build();
    assert_eq!(scheduler.shutdown().stuck, 0);
    assert_eq!(bombs.left(), 0);
}

/// Makes a process and settings that own bombs.
fn refused(bombs: &Bombs) -> (impl Process, Spawn) {
    let [owned, input, in_closure, handler] = [(); 4].map(|()| bombs.one());
    let process = from_fn(move |_: u32, _| {
        let _ = &owned;
    });
    let input = Mutex::new(Some(input));
    let spawn = Spawn::new()
        .input(move || {
            let _ = &in_closure;
            Input::new(input.lock().unwrap().take())
        })
        .handler(move |_: NoCommand, _: Completer<(), ()>| {
            let _ = &handler;
        });
    (process, spawn)
}

/// Fails if the panic of a drop comes instead of the error of a refused spawn, or leaves a process
/// that is counted and never ends.
#[test]
fn refused_spawn_whose_drops_panic_returns_its_error() {
    quiet();
    let bombs = Bombs::default();
    let scheduler = Scheduler::builder().workers(1).max_processes(1).build();
    let handle = scheduler.handle();
    let spawn = |change: fn(Spawn) -> Spawn| {
        let (process, spawn) = refused(&bombs);
        let spawned = handle.spawn_process(process, change(spawn)).map(drop);
        assert_eq!(bombs.left(), 0);
        spawned
    };
    let other = |spawn: Spawn| spawn.handler(|_: u8, _: Completer<(), ()>| ());
    assert!(matches!(spawn(other), Err(SpawnError::Init(_))));
    let unknown = |spawn: Spawn| spawn.method("bake");
    assert_eq!(
        spawn(unknown),
        Err(SpawnError::UnknownMethod("bake".into()))
    );
    let first = handle.spawn_fn(|_: u32, _| ()).unwrap();
    assert_eq!(spawn(|spawn| spawn), Err(SpawnError::Full));
    handle.kill(first.pid());
    wait_until("ended", || handle.metrics().processes == 0);
    scheduler.shutdown();
    assert_eq!(spawn(|spawn| spawn), Err(SpawnError::Closed));
    assert_eq!(handle.metrics().processes, 0);

    let scheduler = one_worker();
    let taken = Spawn::new().name("x");
    let _first = scheduler.spawn_with(taken, |_: u32, _| ()).unwrap();
    let (process, spawn) = refused(&bombs);
    let spawned = scheduler.spawn_process(process, spawn.name("x"));
    assert_eq!(spawned.map(drop), Err(SpawnError::NameTaken("x".into())));
    assert_eq!((bombs.left(), scheduler.metrics().processes), (0, 1));
}

/// During a shutdown, a process that cleans up spawns another one.
///
/// Fails if the panic of the refused process's drop keeps that process among the live ones: then
/// the shutdown waits for its whole limit and reports a stuck process.
#[test]
fn process_refused_by_a_shutdown_is_not_counted() {
    let (bombs, scheduler) = (Bombs::default(), one_worker());
    let owned = bombs.one();
    let refused = from_fn(move |_: u32, _| {
        let _ = &owned;
    });
    let (sender, spawned) = mpsc::channel();
    let cleans_up = scheduler.spawn_async(|mut inbox: Inbox<u32>| async move {
        while inbox.receive().await.is_some() {}
        let spawned = inbox.handle().spawn(refused);
        sender.send(spawned.map(drop)).unwrap();
    });
    cleans_up.unwrap();
    let report = scheduler.shutdown();
    assert_eq!((report.graceful, report.stuck), (1, 0));
    assert_eq!(spawned.recv_timeout(LIMIT), Ok(Err(SpawnError::Closed)));
    assert_eq!(bombs.left(), 0);
}

/// The target of a waker whose clones call a function when they are made, and panic when they are
/// dropped. Their wakes panic too.
struct Hook(Mutex<Box<dyn FnMut() + Send>>);

/// All hooks. They are never freed, and leak detectors find them here.
static HOOKS: Mutex<Vec<&Hook>> = Mutex::new(Vec::new());

static LENT: RawWakerVTable = RawWakerVTable::new(clone_hook, |_| (), |_| (), |_| ());
static CLONED: RawWakerVTable = RawWakerVTable::new(
    clone_hook,
    |_| panic!("in a wake"),
    |_| panic!("in a wake"),
    |_| panic!("in a drop"),
);

unsafe fn clone_hook(hook: *const ()) -> RawWaker {
    // SAFETY: the data of each waker is the address of a hook that is never freed.
    let own = unsafe { &*hook.cast::<Hook>() };
    (own.0.lock().unwrap())();
    RawWaker::new(hook, &CLONED)
}

fn frail_waker(on_clone: impl FnMut() + Send + 'static) -> Waker {
    let hook: &Hook = Box::leak(Box::new(Hook(Mutex::new(Box::new(on_clone)))));
    HOOKS.lock().unwrap().push(hook);
    let raw = RawWaker::new(ptr::from_ref(hook).cast(), &LENT);
    // SAFETY: the functions of the tables take the address of a hook that is never freed, and may
    // be called by any thread.
    unsafe { Waker::from_raw(raw) }
}

/// Makes a process with a full mailbox. The process makes no step while the sender exists.
fn full(scheduler: &Scheduler) -> (Address<Option<Bomb>>, mpsc::Sender<()>) {
    let (go, wait) = mpsc::channel::<()>();
    let (sender, begun) = mpsc::channel();
    let wait = Mutex::new(wait);
    let busy = scheduler.spawn_fn(move |_: u32, _| {
        sender.send(()).unwrap();
        let _ = wait.lock().unwrap().recv();
    });
    let spawn = Spawn::new().mailbox(Mailbox::Bounded(1));
    let full = scheduler
        .spawn_with(spawn, |_: Option<Bomb>, _| ())
        .unwrap();
    busy.unwrap().try_send(1).unwrap();
    begun.recv_timeout(LIMIT).unwrap();
    full.try_send(None).unwrap();
    (full, go)
}

/// Fails if the message is dropped while the panic of the waker's drop unwinds.
#[test]
fn dropped_send_drops_its_waker_guarded() {
    let (bombs, scheduler) = (Bombs::default(), one_worker());
    let (address, _go) = full(&scheduler);
    let waker = frail_waker(|| ());
    let mut sending = address.send(Some(bombs.one()));
    assert!(crate::is_pending(&mut sending, &waker));
    // The panic of the message's drop is the user's.
    assert!(catch_unwind(AssertUnwindSafe(|| drop(sending))).is_err());
    assert_eq!(bombs.left(), 0);
}

/// The process ends while the send clones its waker, so the clone is not needed.
///
/// Fails if the message is dropped while the panic of the clone's drop unwinds.
#[test]
fn refused_send_drops_the_clone_of_its_waker_guarded() {
    let (bombs, scheduler) = (Bombs::default(), one_worker());
    let (address, go) = full(&scheduler);
    let (handle, pid) = (scheduler.handle(), address.pid());
    let mut go = Some(go);
    let waker = frail_waker(move || {
        handle.kill(pid);
        drop(go.take());
        handle.wait(pid);
    });
    let mut sending = address.send(Some(bombs.one()));
    let polled = Pin::new(&mut sending).poll(&mut Context::from_waker(&waker));
    let Poll::Ready(Err(SendError::Closed(message))) = polled else {
        panic!("the process has ended");
    };
    assert_eq!(bombs.left(), 1);
    assert!(catch_unwind(AssertUnwindSafe(|| drop(message))).is_err());
}

/// Fails if the call drops its second waker while the panic of the first one's drop unwinds.
#[test]
fn dropped_call_drops_its_wakers_guarded() {
    let scheduler = one_worker();
    let mut kept = Vec::new();
    let keeps = scheduler.spawn_fn(move |reply: Reply<u32>, _| kept.push(reply));
    let mut call = keeps.unwrap().call(|reply| reply, LIMIT);
    let waker = frail_waker(|| ());
    assert!(crate::is_pending(&mut call, &waker));
    drop(call);
}

/// Gives the inbox and the process's own waker to the test's thread. Also returns a function that
/// makes the process step.
fn outside<M: Send + 'static>(
    scheduler: &Scheduler,
) -> (Address<M>, Inbox<M>, impl Fn() + Send + use<M>) {
    let (sender, given) = mpsc::channel::<(Inbox<M>, Waker)>();
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = polls.clone();
    let process = scheduler.spawn_async(move |inbox: Inbox<M>| {
        let mut inbox = Some(inbox);
        poll_fn(move |cx| {
            if let Some(inbox) = inbox.take() {
                sender.send((inbox, cx.waker().clone())).unwrap();
            }
            counted.fetch_add(1, SeqCst);
            Poll::<()>::Pending
        })
    });
    let process = process.unwrap();
    let (inbox, own) = given.recv_timeout(LIMIT).unwrap();
    let is_blocked = || scheduler.inspect(process.pid()).unwrap().phase == Phase::Blocked;
    wait_until("blocked", is_blocked);
    let step = move || {
        let before = polls.load(SeqCst);
        own.wake_by_ref();
        wait_until("a step", || polls.load(SeqCst) > before);
    };
    (process, inbox, step)
}

/// A message comes while the receiver clones its waker, so the clone is not needed.
///
/// Fails if the message is dropped while the panic of the clone's drop unwinds.
#[test]
fn receiver_with_a_message_drops_the_clone_of_its_waker_guarded() {
    let (bombs, scheduler) = (Bombs::default(), one_worker());
    let (address, mut inbox, _) = outside(&scheduler);
    let mut message = Some(bombs.one());
    let to = address.clone();
    let (other, woken) = crate::reports();
    let waker = frail_waker(move || {
        if let Some(message) = message.take() {
            assert!(to.try_send(message).is_ok());
            woken.recv_timeout(LIMIT).unwrap();
        }
    });
    let mut receive = pin!(inbox.receive());
    // The process takes a message for its inbox once the inbox is awaited.
    assert!(
        receive
            .as_mut()
            .poll(&mut Context::from_waker(&other))
            .is_pending()
    );
    let polled = receive.as_mut().poll(&mut Context::from_waker(&waker));
    let Poll::Ready(Some(message)) = polled else {
        panic!("the message has come");
    };
    assert!(catch_unwind(AssertUnwindSafe(|| drop(message))).is_err());
    assert_eq!(bombs.left(), 0);
    scheduler.kill(address.pid());
}

/// Fails if the panic of a waker that awaits the inbox outside of a step fails the process.
#[test]
fn panic_of_an_inboxs_waker_keeps_the_process() {
    let scheduler = one_worker();
    let (address, mut inbox, step) = outside::<u32>(&scheduler);
    let exit = scheduler.exit_of(address.pid());
    let waker = frail_waker(|| ());
    let mut receive = pin!(inbox.receive());
    let mut cx = Context::from_waker(&waker);
    assert!(receive.as_mut().poll(&mut cx).is_pending());
    address.try_send(7).unwrap();
    // The first of these steps may have begun before the message came.
    (0..2).for_each(|_| step());
    assert_eq!(receive.as_mut().poll(&mut cx), Poll::Ready(Some(7)));
    scheduler.kill(address.pid());
    assert_eq!(exit.wait(), ExitReason::Killed);
}
