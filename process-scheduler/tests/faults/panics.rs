//! Panics of user code outside of steps.
use crate::{LIMIT, PanicsInWake, assert_works, is_pending, one_worker, quiet, reports};
use process_scheduler::{
    Child, Completer, EventsOf, ExitReason, Handler, Inbox, NoCommand, OutputOf, Parcel, Pid,
    Process, Relay, Scheduler, SendError, Signal, Spawn, Step, StepOf, Strategy, Supervisor,
    from_fn,
};
use std::{
    future::{Future, pending},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{Arc, mpsc},
    task::{Context, Poll},
};

struct PanicsInDrop;

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        panic!("in a drop");
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
        fn deliver(&self, _: Pid, parcel: Parcel) -> Result<(), SendError<Parcel>> {
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

/// Ends with its first event. In that step it gives its command, if it has one.
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
    // The child ends after its supervisor, and drops the closure that makes it.
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

/// An `async` process gives its inbox away, and the drop of its future panics.
///
/// Fails if that panic skips the end of the inbox: then nobody wakes the code that awaits the
/// inbox.
#[test]
fn panic_of_the_drop_of_a_future_ends_its_inbox() {
    let scheduler = one_worker();
    let (sender, given) = mpsc::channel();
    let process = scheduler.spawn_async(move |inbox: Inbox<u32>| async move {
        let _owned = PanicsInDrop;
        sender.send(inbox).unwrap();
        pending::<()>().await;
    });
    let process = process.unwrap();
    let mut inbox = given.recv_timeout(LIMIT).unwrap();
    let (waker, woken) = reports();
    let mut cx = Context::from_waker(&waker);
    let mut receive = pin!(inbox.receive());
    assert!(receive.as_mut().poll(&mut cx).is_pending());
    scheduler.kill(process.pid());
    assert_eq!(woken.recv_timeout(LIMIT), Ok(()));
    assert_eq!(receive.as_mut().poll(&mut cx), Poll::Ready(None));
    assert_works(&scheduler);
}
