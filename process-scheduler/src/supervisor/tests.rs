//! Tests of supervisors whose events come in a rare order. One thread runs all processes, so each
//! test fixes its order.
use super::{models::family, *};
use crate::{
    Completer, Signal, from_fn,
    scheduler::models::{begin_close, end_all, without_threads},
    worker::models::run_ready,
};
use std::sync::Mutex;

/// The shutdown begins, then the child ends for good, and only then the shutdown cancels the
/// supervisor. The supervisor ends by the cancel, also if it allows no restart.
///
/// Fails if a supervisor restarts a child, or counts a restart, although the scheduler shuts down.
#[test]
fn child_that_ends_before_the_cancel_holds_up_no_shutdown() {
    for most in [0, usize::MAX] {
        let handle = without_threads();
        let [supervisor, child] = family(&handle, most);
        let exit = handle.exit_of(supervisor);
        begin_close(&handle.shared);
        handle.kill(child);
        run_ready(&handle.shared);
        assert_eq!(handle.list(), [supervisor]);
        handle.cancel_for(supervisor, CancelReason::Shutdown);
        run_ready(&handle.shared);
        assert_eq!(handle.shared.live(), 0);
        assert_eq!(exit.wait(), ExitReason::Cancelled);
    }
}

/// Two children are killed before their supervisor runs. It cancels the second because of the
/// first, although the second has stopped too, and restarts both. That counts as one restart.
///
/// Fails if a supervisor's cancel reaches an incarnation that began after it.
#[test]
fn two_failures_at_once_count_as_one_restart() {
    for strategy in [Strategy::OneForAll, Strategy::RestForOne] {
        let handle = without_threads();
        let child = || Child::new(|| from_fn(|(): (), _| ())).shutdown(Duration::MAX);
        let supervisor = Supervisor::new(strategy)
            .intensity(1, Duration::from_secs(60))
            .backoff(Backoff::new(Duration::ZERO, 1, Duration::ZERO))
            .child(child().spawn(Spawn::new().name("first")))
            .child(child().spawn(Spawn::new().name("second")));
        supervisor.start(&handle).unwrap();
        run_ready(&handle.shared);
        for name in ["first", "second"] {
            handle.kill(handle.whereis(name).unwrap());
        }
        run_ready(&handle.shared);
        assert_eq!(handle.list().len(), 3);
        let restarts = |name| {
            handle
                .inspect(handle.whereis(name).unwrap())
                .unwrap()
                .restarts
        };
        assert_eq!(["first", "second"].map(restarts), [1, 1]);
        end_all(&handle);
    }
}

/// A child is killed, and cancelled before its next step. The kill ends the incarnation, and the
/// cancel stays. The next incarnation skips the cancel of a supervisor, and ends by any other.
///
/// Fails if the next incarnation takes a supervisor's cancel, or skips a cancel with another
/// reason.
#[test]
fn next_incarnation_skips_only_a_supervisors_cancel() {
    let restarts = [
        (CancelReason::Supervisor, 1),
        (CancelReason::Requested, 2),
        (CancelReason::Shutdown, 2),
    ];
    for (reason, restarts) in restarts {
        let handle = without_threads();
        let [_, child] = family(&handle, usize::MAX);
        handle.kill(child);
        handle.cancel_for(child, reason);
        run_ready(&handle.shared);
        assert_eq!(handle.inspect(child).unwrap().restarts, restarts);
        end_all(&handle);
    }
}

/// Handles one event a step, and fails at each `Exit`.
struct FailsAtExits;

impl Process for FailsAtExits {
    type Message = NoCommand;
    type Cmd = NoCommand;
    type Output = ();
    type Error = ();

    fn step(&mut self, events: &mut EventsOf<Self>, _: &mut OutputOf<Self>) -> StepOf<Self> {
        match events.next() {
            None => Step::Idle,
            Some(Event::Exit { reason, .. }) => Step::Failed(reason),
            Some(Event::Cancel(_)) => Step::Done,
            Some(_) => Step::Continue,
        }
    }
}

/// A child takes two exit signals and a user's cancel in one batch, and fails at each exit signal.
/// The third incarnation gets the cancel.
///
/// Fails if a restart drops an event that the process has taken but not handled, although the event
/// is not addressed to one incarnation only.
#[test]
fn cancel_behind_exits_outlives_two_restarts() {
    let handle = without_threads();
    let child = Child::new(|| FailsAtExits).policy(Policy::Transient);
    let supervisor = Supervisor::new(Strategy::OneForOne)
        .backoff(Backoff::new(Duration::ZERO, 1, Duration::ZERO))
        .child(child.spawn(Spawn::new().name("child")));
    supervisor.start(&handle).unwrap();
    run_ready(&handle.shared);
    let child = handle.whereis("child").unwrap();
    for _ in 0..2 {
        let exit = Signal::Exit {
            pid: child,
            reason: ExitReason::failed("as asked"),
            linked: false,
        };
        handle.route(child, exit).unwrap();
    }
    let exit = handle.exit_of(child);
    assert!(handle.cancel(child));
    run_ready(&handle.shared);
    assert_eq!(handle.inspect(child).map(|info| info.restarts), None);
    assert_eq!(handle.shared.counters.snapshot(0, 0).restarts, 2);
    assert_eq!(exit.wait(), ExitReason::Cancelled);
    end_all(&handle);
}

struct PanicsInDrop;

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "in a drop");
    }
}

/// Gives a command at its start, and then waits.
struct Asks(bool);

impl Process for Asks {
    type Message = NoCommand;
    type Cmd = ();
    type Output = PanicsInDrop;
    type Error = ();

    fn step(&mut self, events: &mut EventsOf<Self>, out: &mut OutputOf<Self>) -> StepOf<Self> {
        if !std::mem::replace(&mut self.0, true) {
            out.command(0, ());
        }
        events.for_each(drop);
        Step::Idle
    }
}

/// A command is completed after its incarnation was killed, and before the restart. The drop of the
/// result panics.
///
/// Fails if that panic counts as a panic in the next incarnation's step.
#[test]
fn panic_of_a_stale_completions_drop_ends_no_process() {
    let handle = without_threads();
    let given: Arc<Mutex<Vec<Completer<PanicsInDrop, ()>>>> = Arc::default();
    let keep = given.clone();
    let handler = move |(), completer| keep.lock().unwrap().push(completer);
    let spawn = Spawn::new().name("child").handler(handler);
    let supervisor = Supervisor::new(Strategy::OneForOne)
        .backoff(Backoff::new(Duration::ZERO, 1, Duration::ZERO))
        .child(Child::new(|| Asks(false)).spawn(spawn));
    supervisor.start(&handle).unwrap();
    run_ready(&handle.shared);
    let child = handle.whereis("child").unwrap();
    let first = given.lock().unwrap().pop().unwrap();
    handle.kill(child);
    assert!(first.complete(Ok(PanicsInDrop)).is_ok());
    run_ready(&handle.shared);
    assert_eq!(handle.inspect(child).unwrap().restarts, 1);
    given.lock().unwrap().clear(); // The completers keep the process alive.
    end_all(&handle);
}
