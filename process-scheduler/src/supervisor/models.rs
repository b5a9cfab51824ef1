//! Models of a supervisor whose scheduler shuts down, and of one whose children end together.
use super::*;
use crate::{from_fn, shared::models::without_threads, worker::models::run_ready};
use sync_shim::{Model, thread};

/// Starts a supervisor with a child on a scheduler without threads. Returns both pids.
///
/// Neither process arms a timer: a timer would start a thread that the models do not know.
pub(super) fn family(handle: &Handle, most: usize) -> [Pid; 2] {
    let child = Child::new(|| from_fn(|(): (), _| ()));
    let supervisor = Supervisor::new(Strategy::OneForOne)
        .intensity(most, Duration::from_secs(60))
        .backoff(Backoff::new(Duration::ZERO, 1, Duration::ZERO))
        .child(child.shutdown(Duration::MAX));
    let supervisor = supervisor.start(handle).unwrap();
    run_ready(&handle.shared);
    let is_child = |pid: &Pid| *pid != supervisor;
    let child = handle.list().into_iter().find(is_child).unwrap();
    [supervisor, child]
}

/// A child is killed, and a worker runs it and its supervisor, while the scheduler shuts down. All
/// processes end.
///
/// The shutdown may end the child for good before it cancels the supervisor. The supervisor is then
/// notified twice: of the incarnation's end, and of the child's end for good. If the supervisor
/// took the second for the end of a restarted incarnation, it would wait for a third notification,
/// which never comes.
///
/// The model has a bound. With three preemptions it passes too, and takes 30 times as long.
///
/// Fails if a supervisor restarts a child although the scheduler shuts down.
#[test]
fn kill_of_a_child_racing_the_shutdown_leaves_no_process() {
    Model::new().bound(2).check(|| {
        let handle = without_threads();
        let [_, child] = family(&handle, usize::MAX);
        // The model leaves out the counts of an `Arc`. So this thread keeps the cells alive, and
        // frees them after the join.
        let cells = handle.registry().all();
        let worker = {
            let handle = handle.clone();
            thread::spawn(move || {
                handle.kill(child);
                run_ready(&handle.shared);
            })
        };
        assert!(handle.shared.close().is_some());
        worker.join().unwrap();
        run_ready(&handle.shared);
        assert_eq!(handle.shared.live(), 0);
        drop(cells);
    });
}

/// Each of two threads kills one child of a supervisor, and runs all ready processes. Both children
/// live at the end. The children are transient, so a cancel that reaches the wrong incarnation
/// shows: the supervisor does not restart a transient child that ends as cancelled.
///
/// The model has a bound. With two preemptions it passes too, and takes more than a minute.
///
/// Fails if a supervisor's cancel reaches an incarnation that began after the cancel.
#[test]
fn two_kills_of_siblings_leave_the_family_complete() {
    Model::new().bound(1).branches(4000).check(|| {
        let handle = without_threads();
        let child = || {
            Child::new(|| from_fn(|(): (), _| ()))
                .policy(Policy::Transient)
                .shutdown(Duration::MAX)
        };
        let supervisor = Supervisor::new(Strategy::OneForAll)
            .backoff(Backoff::new(Duration::ZERO, 1, Duration::ZERO))
            .child(child())
            .child(child());
        let supervisor = supervisor.start(&handle).unwrap();
        run_ready(&handle.shared);
        let mut children = handle.list();
        children.retain(|pid| *pid != supervisor);
        // The model leaves out the counts of an `Arc`. So this thread keeps the cells alive, and
        // frees them after the join.
        let cells = handle.registry().all();
        let [first, second] = [children[0], children[1]];
        let worker = {
            let handle = handle.clone();
            thread::spawn(move || {
                handle.kill(second);
                run_ready(&handle.shared);
            })
        };
        handle.kill(first);
        run_ready(&handle.shared);
        worker.join().unwrap();
        run_ready(&handle.shared);
        assert_eq!(handle.list().len(), 3);
        assert!(handle.shared.close().is_some());
        run_ready(&handle.shared);
        assert_eq!(handle.shared.live(), 0);
        drop(cells);
    });
}
