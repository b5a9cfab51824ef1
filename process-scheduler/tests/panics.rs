//! Panics of user code outside of steps. One worker runs all processes, so a panic that ends it
//! ends the test, too.
use process_scheduler::{
    Child, Completer, EventsOf, ExitReason, Handler, NoCommand, OutputOf, Parcel, Pid, Process,
    Relay, Scheduler, Signal, Spawn, Step, StepOf, Strategy, Supervisor, from_fn,
};
use std::{
    future::Future,
    panic::{self, AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{Arc, Mutex, mpsc},
    task::{Context, Wake, Waker},
    thread,
    time::Duration,
};

/// A test that waits so long has failed.
const LIMIT: Duration = Duration::from_secs(60);

/// Silences the panics that a test makes on purpose.
fn quiet() {
    panic::set_hook(Box::new(|_| {}));
}

fn one_worker() -> Scheduler {
    quiet();
    Scheduler::builder().workers(1).build()
}

/// Asserts that the worker still runs processes.
fn assert_works(scheduler: &Scheduler) {
    let (sender, steps) = mpsc::channel();
    let probe = scheduler.spawn_fn(move |n: u32, _| sender.send(n).unwrap());
    probe.unwrap().try_send(7).unwrap();
    assert_eq!(steps.recv_timeout(LIMIT), Ok(7), "the worker has ended");
}

/// A waker that panics.
struct PanicsInWake;

impl Wake for PanicsInWake {
    fn wake(self: Arc<Self>) {
        panic!("in a waker");
    }
}

/// A waker that reports its wake.
struct Reports(Mutex<mpsc::Sender<()>>);

impl Wake for Reports {
    fn wake(self: Arc<Self>) {
        self.0.lock().unwrap().send(()).unwrap();
    }
}

fn reports() -> (Waker, mpsc::Receiver<()>) {
    let (sender, woken) = mpsc::channel();
    (Arc::new(Reports(Mutex::new(sender))).into(), woken)
}

fn is_pending<F: Future + Unpin>(future: &mut F, waker: &Waker) -> bool {
    let mut cx = Context::from_waker(waker);
    Pin::new(future).poll(&mut cx).is_pending()
}

struct PanicsInDrop;

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        assert!(thread::panicking(), "in a drop");
    }
}

#[test]
fn panic_of_an_exit_waker_loses_no_other_exit() {
    let scheduler = one_worker();
    let pid = scheduler.spawn_fn(|_: u32, _| ()).unwrap().pid();
    let mut first = scheduler.exit_of(pid);
    assert!(is_pending(&mut first, &Arc::new(PanicsInWake).into()));
    let mut second = scheduler.exit_of(pid);
    let (waker, woken) = reports();
    assert!(is_pending(&mut second, &waker));
    scheduler.kill(pid);
    assert_eq!(woken.recv_timeout(LIMIT), Ok(()));
    assert_eq!(second.wait(), ExitReason::Killed);
    assert_works(&scheduler);
    assert_eq!(scheduler.shutdown().stuck, 0);
}

#[test]
fn panic_of_a_relay_keeps_the_worker() {
    struct Panics;
    impl Relay for Panics {
        fn deliver(&self, _: Pid, parcel: Parcel) -> Result<(), Parcel> {
            assert!(!matches!(parcel, Parcel::Signal(Signal::Exit { .. })));
            Ok(())
        }
    }
    let other = Scheduler::builder().node(9).workers(1).build();
    let remote = other.spawn_fn(|_: u32, _| ()).unwrap().pid();
    quiet();
    let scheduler = Scheduler::builder().workers(1).relay(Panics).build();
    let pid = scheduler.spawn_fn(|_: u32, _| ()).unwrap().pid();
    scheduler.link(pid, remote);
    let exit = scheduler.exit_of(pid);
    scheduler.kill(pid);
    assert_eq!(exit.wait(), ExitReason::Killed);
    assert_works(&scheduler);
    assert_eq!(scheduler.shutdown().stuck, 0);
}

/// Ends with its first message, and gives a command then.
struct Ends<C>(Option<C>);

impl<C: Send + 'static> Process for Ends<C> {
    type Message = u32;
    type Cmd = C;
    type Output = ();
    type Error = ();

    fn step(&mut self, events: &mut EventsOf<Self>, out: &mut OutputOf<Self>) -> StepOf<Self> {
        let Some(_) = events.next() else {
            return Step::Idle;
        };
        if let Some(command) = self.0.take() {
            out.command(0, command);
        }
        Step::Done
    }
}

#[test]
fn panic_of_the_drop_of_a_handler_keeps_the_worker() {
    struct Owns(PanicsInDrop);
    impl Handler<NoCommand, (), ()> for Owns {
        fn handle(&self, _: NoCommand, _: Completer<(), ()>) {}
    }
    let scheduler = one_worker();
    let spawn = Spawn::new().handler(Owns(PanicsInDrop));
    let pid = scheduler
        .spawn_process(Ends::<NoCommand>(None), spawn)
        .unwrap()
        .pid();
    let exit = scheduler.exit_of(pid);
    // The worker has the last reference to the process.
    scheduler.try_send(pid, 1_u32).unwrap();
    assert_eq!(exit.wait(), ExitReason::Normal);
    assert_works(&scheduler);
    assert_eq!(scheduler.shutdown().stuck, 0);
}

#[test]
fn panic_of_the_drop_of_a_command_keeps_the_worker() {
    let scheduler = one_worker();
    let process = scheduler.spawn(Ends(Some(PanicsInDrop))).unwrap();
    let exit = scheduler.exit_of(process.pid());
    process.try_send(1).unwrap();
    assert_works(&scheduler);
    assert_eq!(exit.wait(), ExitReason::Normal);
    assert_eq!(scheduler.shutdown().stuck, 0);
}

#[test]
fn panic_of_the_drop_of_a_maker_keeps_the_worker() {
    let scheduler = one_worker();
    let owned = PanicsInDrop;
    let child = Child::new(move || {
        let _ = &owned;
        from_fn(|_: u32, _| ())
    });
    let supervisor = Supervisor::new(Strategy::OneForOne).child(child);
    let pid = supervisor.start(&scheduler).unwrap();
    let exit = scheduler.exit_of(pid);
    // The child ends after its supervisor, and drops what makes it.
    scheduler.kill(pid);
    assert_eq!(exit.wait(), ExitReason::Killed);
    assert_works(&scheduler);
    assert_eq!(scheduler.shutdown().stuck, 0);
}

#[test]
fn panic_of_the_input_of_a_spawn_leaves_no_process() {
    let scheduler = one_worker();
    let spawn = Spawn::new().name("x").input(|| panic!("in the input"));
    let spawned = catch_unwind(AssertUnwindSafe(|| {
        scheduler.spawn_process(from_fn(|_: u32, _| ()), spawn)
    }));
    assert!(spawned.is_err());
    assert_eq!(scheduler.list(), []);
    assert_eq!(scheduler.whereis("x"), None);
    assert_eq!(scheduler.metrics().processes, 0);
}
