//! Supervisors whose events come in an order that is rare: on one thread, which runs all processes.
use super::{models::family, *};
use crate::{
    from_fn,
    scheduler::models::{begin_close, without_threads},
    worker::models::run_ready,
};

/// A shutdown has begun when a child ends, and cancels the supervisor after the child has ended for
/// good. One execution, without a race. The supervisor ends by the cancel, also if it allows no
/// restart.
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
    }
}

/// A child is killed, and cancelled before it runs: the cancel stays for the next incarnation,
/// which ends by it, or skips it.
///
/// Fails if the next incarnation takes a supervisor's cancel, or skips another one.
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
    }
}
