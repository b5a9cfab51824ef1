//! A supervisor whose child ends before the shutdown's cancel comes.
use super::{models::family, *};
use crate::{
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
