//! Tests of supervisors whose events come in a rare order. One thread runs all processes, so each
//! test fixes its order.
use super::{models::family, *};
use crate::{
    Completer, Signal, from_fn,
    runnable::Runnable,
    shared::models::{begin_close, end_all, without_threads},
    worker::models::{run_next, run_ready},
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

/// Two children are killed before their supervisor runs. The supervisor cancels the second because
/// of the first, although the second has stopped too, and restarts both. That counts as one
/// restart.
///
/// Fails if a supervisor's cancel reaches an incarnation that began after the cancel.
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

/// A child has ended for good, and only then the supervisor begins to monitor it, or is linked to
/// it. The supervisor is notified that there is no such process, which is an abnormal reason.
///
/// Fails if that counts as the end of an incarnation: then the supervisor restarts the sibling, and
/// waits at its end for a child that is not there.
#[test]
fn monitor_of_a_child_that_is_gone_restarts_no_sibling() {
    for relate in [Handle::monitor, Handle::link] {
        let handle = without_threads();
        let once = Child::new(|| from_fn(|(): (), _| crate::Flow::Stop));
        let sibling = Child::new(|| from_fn(|(): (), _| ()));
        let supervisor = Supervisor::new(Strategy::OneForAll)
            .backoff(at_once())
            .child(
                once.policy(Policy::Transient)
                    .spawn(Spawn::new().name("once")),
            )
            .child(
                sibling
                    .shutdown(Duration::MAX)
                    .spawn(Spawn::new().name("sibling")),
            );
        let supervisor = supervisor.start(&handle).unwrap();
        let once = handle.named::<()>("once").unwrap();
        once.try_send(()).unwrap();
        run_ready(&handle.shared);
        assert!(handle.inspect(once.pid()).is_none());
        relate(&handle, supervisor, once.pid());
        run_ready(&handle.shared);
        let sibling = handle.whereis("sibling").unwrap();
        assert_eq!(handle.inspect(sibling).unwrap().restarts, 0);
        let exit = handle.exit_of(supervisor);
        assert!(handle.cancel(supervisor));
        run_ready(&handle.shared);
        assert_eq!(handle.shared.live(), 0);
        assert_eq!(exit.wait(), ExitReason::Cancelled);
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

fn at_once() -> Backoff {
    Backoff::new(Duration::ZERO, 1, Duration::ZERO)
}

/// The number of messages that processes have handled.
type Handled = Arc<Mutex<usize>>;

/// Makes a child "leaf" in the group "leaves".
fn leaf(handled: &Handled) -> Child {
    let handled = handled.clone();
    let make = move || {
        let handled = handled.clone();
        from_fn(move |(): (), _| *handled.lock().unwrap() += 1)
    };
    let spawn = Spawn::new().name("leaf").group("leaves");
    Child::new(make).shutdown(Duration::MAX).spawn(spawn)
}

/// Starts a supervisor without a name, above supervisors with these names, above a process "leaf".
fn start_chain(handle: &Handle, above: &[&'static str]) -> Handled {
    fn child(above: &[&'static str], handled: &Handled) -> Child {
        let Some((&name, below)) = above.split_first() else {
            return leaf(handled);
        };
        let (below, handled) = (below.to_vec(), handled.clone());
        let make = move || supervisor(&below, &handled);
        let spawn = Spawn::new().name(name).trap_exits(true);
        Child::supervisor(make).shutdown(Duration::MAX).spawn(spawn)
    }
    fn supervisor(above: &[&'static str], handled: &Handled) -> Supervisor {
        Supervisor::new(Strategy::OneForOne)
            .backoff(at_once())
            .child(child(above, handled))
    }
    let handled = Handled::default();
    supervisor(above, &handled).start(handle).unwrap();
    run_ready(&handle.shared);
    handled
}

/// Makes a process ready, and takes its token out of the queue, as a slow worker does.
fn take_token(handle: &Handle, pid: Pid) -> Runnable {
    let exit = Signal::Exit {
        pid,
        reason: ExitReason::Normal,
        linked: false,
    };
    handle.route(pid, exit).unwrap();
    handle.shared.injector.pop().unwrap()
}

/// A supervisor is killed while slow workers have its child, or all processes below it. Its next
/// incarnation starts children with the same names at the first try.
///
/// Fails if a process keeps its name although it, or a supervisor above it, was killed for good.
#[test]
fn killed_nested_supervisor_gets_its_names_back() {
    for above in [&["nested"][..], &["nested", "inner"]] {
        let handle = without_threads();
        start_chain(&handle, above);
        let nested = handle.whereis("nested").unwrap();
        let below: Vec<_> = above[1..].iter().copied().chain(["leaf"]).collect();
        let pids = |handle: &Handle| -> Vec<_> {
            let pids = below.iter().map(|name| handle.whereis(name).unwrap());
            pids.collect()
        };
        let earlier = pids(&handle);
        let slow: Vec<_> = earlier
            .iter()
            .map(|pid| take_token(&handle, *pid))
            .collect();
        handle.kill(nested);
        run_ready(&handle.shared);
        let restarts = |pid| handle.inspect(pid).map(|info| info.restarts);
        assert_eq!(restarts(nested), Some(1));
        let later = pids(&handle);
        assert!(earlier.iter().all(|pid| !later.contains(pid)));
        for (pid, name) in later.iter().zip(&below) {
            assert_eq!(handle.inspect(*pid).unwrap().names, [*name]);
        }
        for pid in &earlier {
            assert!(handle.inspect(*pid).unwrap().names.is_empty());
        }
        slow.into_iter()
            .for_each(|token| handle.shared.injector.requeue(token));
        run_ready(&handle.shared);
        assert_eq!(pids(&handle), later);
        assert!(earlier.iter().all(|pid| restarts(*pid).is_none()));
        assert_eq!(restarts(nested), Some(1));
        end_all(&handle);
    }
}

/// A supervisor is cancelled. When it ends, its child has stopped, but is still in the tables.
///
/// Fails if a name is still taken after the end of a supervisor whose child had it.
#[test]
fn names_below_a_supervisor_are_free_at_its_end() {
    let handle = without_threads();
    start_chain(&handle, &["nested"]);
    let is_outer = |pid: &Pid| handle.inspect(*pid).unwrap().names.is_empty();
    let outer = handle.list().into_iter().find(is_outer).unwrap();
    handle.cancel(outer);
    while handle.inspect(outer).is_some() {
        assert!(run_next(&handle.shared));
    }
    assert!(handle.whereis("nested").is_some());
    let named = Spawn::new().name("nested");
    assert!(handle.spawn_with(named, |(): (), _| ()).is_ok());
    end_all(&handle);
}

/// A process that was killed, but not for good, keeps its name: its supervisor restarts it.
///
/// Fails if a name is free as soon as its process is killed.
#[test]
fn stopped_child_keeps_its_name() {
    let handle = without_threads();
    start_chain(&handle, &["nested"]);
    let leaf = handle.whereis("leaf").unwrap();
    let stranger = handle.spawn_fn(|(): (), _| ()).unwrap().pid();
    handle.kill(leaf);
    assert!(!handle.register("leaf", stranger));
    run_ready(&handle.shared);
    assert!(!handle.register("leaf", stranger));
    assert_eq!(handle.whereis("leaf"), Some(leaf));
    end_all(&handle);
}

/// A stranger takes the name of a child that was killed for good, before its supervisor restarts.
/// The start of the supervisor then fails, as it does for any name that is taken.
///
/// Fails if a restarted supervisor takes a name from a process that is none of its earlier
/// children.
#[test]
fn name_that_a_stranger_took_stays_with_the_stranger() {
    let handle = without_threads();
    start_chain(&handle, &["nested"]);
    let stranger = handle.spawn_fn(|(): (), _| ()).unwrap().pid();
    run_ready(&handle.shared);
    let [nested, leaf] = ["nested", "leaf"].map(|name| handle.whereis(name).unwrap());
    let slow = take_token(&handle, leaf);
    handle.kill_for_good(leaf, ExitReason::Killed);
    assert!(handle.register("leaf", stranger));
    let exit = handle.exit_of(nested);
    handle.kill(nested);
    run_ready(&handle.shared);
    // The outer supervisor has tried ten times, and has then failed.
    assert!(handle.inspect(nested).is_none());
    assert_eq!(handle.whereis("leaf"), Some(stranger));
    assert!(
        exit.wait()
            .to_string()
            .contains("another process has the name")
    );
    handle.shared.injector.requeue(slow);
    run_ready(&handle.shared);
    assert_eq!(handle.whereis("leaf"), Some(stranger));
    end_all(&handle);
}

/// A supervisor is killed while a slow worker has the supervisor below it. The processes further
/// below are idle, and nothing but the takeover of their names kills them.
///
/// Fails if a process without its name handles messages beside the process that has the name now.
#[test]
fn process_whose_name_is_taken_over_steps_no_more() {
    for above in [&["nested", "inner"][..], &["nested", "inner", "lowest"]] {
        let handle = without_threads();
        let handled = start_chain(&handle, above);
        let [nested, inner, leaf] = ["nested", "inner", "leaf"].map(|n| handle.whereis(n).unwrap());
        let slow = take_token(&handle, inner);
        let address = handle.address::<()>(leaf).unwrap();
        handle.kill(nested);
        run_ready(&handle.shared);
        assert_ne!(handle.whereis("leaf"), Some(leaf));
        assert!(address.try_send(()).is_err());
        run_ready(&handle.shared);
        assert_eq!(*handled.lock().unwrap(), 0);
        assert!(handle.inspect(leaf).is_none());
        assert_eq!(handle.list().len(), above.len() + 3);
        handle.shared.injector.requeue(slow);
        run_ready(&handle.shared);
        assert_eq!(handle.list().len(), above.len() + 2);
        end_all(&handle);
    }
}

/// A supervisor is killed while a slow worker has its child, whose group then has the new child
/// alone.
///
/// Fails if a process that was killed for good stays in its groups until its step returns.
#[test]
fn child_that_is_killed_for_good_leaves_its_groups() {
    let handle = without_threads();
    let handled = start_chain(&handle, &["nested"]);
    let [nested, leaf] = ["nested", "leaf"].map(|name| handle.whereis(name).unwrap());
    assert_eq!(handle.members("leaves"), [leaf]);
    let slow = take_token(&handle, leaf);
    handle.kill(nested);
    run_ready(&handle.shared);
    assert_eq!(handle.members("leaves"), [handle.whereis("leaf").unwrap()]);
    assert!(!handle.join("leaves", leaf));
    assert_eq!(handle.publish("leaves", &()), 1);
    handle.shared.injector.requeue(slow);
    run_ready(&handle.shared);
    assert_eq!(*handled.lock().unwrap(), 1);
    end_all(&handle);
}

/// A process that passes its calls on to a supervisor, but not `close`.
struct Mine(Arc<Mutex<Supervisor>>);

impl Process for Mine {
    type Message = NoCommand;
    type Cmd = NoCommand;
    type Output = ();
    type Error = ();

    fn init(
        &mut self,
        cx: &Context<'_, NoCommand>,
        method: &str,
        input: Input,
    ) -> Result<(), InitError> {
        self.0.lock().unwrap().init(cx, method, input)
    }

    fn step(&mut self, events: &mut EventsOf<Self>, out: &mut OutputOf<Self>) -> StepOf<Self> {
        self.0.lock().unwrap().step(events, out)
    }
}

/// Starts a `Mine` whose supervisor has a child "leaf", and kills the `Mine`. Returns the
/// supervisor.
fn killed_mine(handle: &Handle) -> Arc<Mutex<Supervisor>> {
    let supervisor = Supervisor::new(Strategy::OneForOne).child(leaf(&Handled::default()));
    let supervisor = Arc::new(Mutex::new(supervisor));
    let mine = handle.spawn(Mine(supervisor.clone())).unwrap().pid();
    run_ready(&handle.shared);
    handle.kill(mine);
    run_ready(&handle.shared);
    assert!(handle.inspect(mine).is_none());
    supervisor
}

/// A child of a supervisor in another process is killed again and again.
///
/// Fails if a supervisor keeps the time of a restart that cannot count any more: of each restart if
/// it allows any number, and of more restarts than it allows.
#[test]
fn supervisor_keeps_only_restarts_that_can_count() {
    for (most, kept) in [(usize::MAX, 0), (20, 10), (7, 7)] {
        let handle = without_threads();
        let child = Child::new(|| from_fn(|(): (), _| ())).shutdown(Duration::MAX);
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .backoff(at_once())
            .intensity(most, Duration::MAX)
            .child(child.spawn(Spawn::new().name("leaf")));
        let supervisor = Arc::new(Mutex::new(supervisor));
        let spawn = Spawn::new().trap_exits(true);
        let mine = handle.spawn_process(Mine(supervisor.clone()), spawn);
        let mine = mine.unwrap().pid();
        run_ready(&handle.shared);
        for _ in 0..10 {
            handle
                .whereis("leaf")
                .into_iter()
                .for_each(|leaf| _ = handle.kill(leaf));
            run_ready(&handle.shared);
        }
        assert_eq!(supervisor.lock().unwrap().restarts.len(), kept);
        let restarts = handle.shared.counters.snapshot(0, 0).restarts;
        assert_eq!(restarts, most.min(10) as u64);
        assert_eq!(handle.inspect(mine).is_some(), most >= 10);
        end_all(&handle);
        drop(supervisor);
    }
}

/// Fails if the children of a supervisor outlive its drop.
#[test]
fn drop_of_a_supervisor_ends_its_children() {
    let handle = without_threads();
    let supervisor = killed_mine(&handle);
    assert_eq!(handle.list().len(), 1);
    drop(supervisor);
    run_ready(&handle.shared);
    assert_eq!(handle.shared.live(), 0);
}

/// A process has ended, and the supervisor in it has not. So that supervisor's child lives.
///
/// Fails if a process that nothing has killed loses its name, and lives on.
#[test]
fn orphan_whose_name_is_taken_over_is_killed() {
    let handle = without_threads();
    let supervisor = killed_mine(&handle);
    let leaf = handle.whereis("leaf").unwrap();
    let stranger = handle.spawn_fn(|(): (), _| ()).unwrap().pid();
    assert!(handle.register("leaf", stranger));
    run_ready(&handle.shared);
    assert!(handle.inspect(leaf).is_none());
    assert_eq!(handle.whereis("leaf"), Some(stranger));
    drop(supervisor);
    end_all(&handle);
}

/// Fails if a process that is killed for good loses the name that it asks for again, in the table
/// or in its own list.
#[test]
fn killed_process_that_asks_for_its_own_name_keeps_it() {
    let handle = without_threads();
    let process = handle.spawn_fn(|(): (), _| ()).unwrap().pid();
    assert!(handle.register("clerk", process));
    handle.kill_for_good(process, ExitReason::Killed);
    assert!(!handle.register("clerk", process));
    assert_eq!(handle.whereis("clerk"), Some(process));
    assert_eq!(handle.inspect(process).unwrap().names, ["clerk"]);
    end_all(&handle);
}
