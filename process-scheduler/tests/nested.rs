//! Supervisors below supervisors, whose children have names.
use process_scheduler::{
    Address, Backoff, Child, Inbox, Pid, Scheduler, Spawn, Strategy, Supervisor, from_async,
};
use std::{convert::Infallible, sync::mpsc, thread, time::Duration};

/// A test that waits this long has failed.
const LIMIT: Duration = Duration::from_secs(600);

/// A message to a leaf.
enum Order {
    Fail,
    /// Report it, and then block the step until a sender is dropped.
    Block(mpsc::Sender<()>, mpsc::Receiver<Infallible>),
}

/// Makes a child "leaf" that reports the first step of each process.
fn leaf(starts: mpsc::Sender<()>) -> Child {
    let make = move || {
        let starts = starts.clone();
        from_async(move |mut inbox: Inbox<Order>| async move {
            starts.send(()).unwrap();
            while let Some(order) = inbox.receive().await {
                match order {
                    Order::Fail => return Err("as asked"),
                    Order::Block(begun, released) => {
                        begun.send(()).unwrap();
                        let _ = released.recv();
                    }
                }
            }
            Ok(())
        })
    };
    Child::new(make).spawn(Spawn::new().name("leaf").group("leaves"))
}

/// Starts a supervisor of a supervisor of a leaf. The inner one, "nested", allows no restart.
fn start(workers: usize) -> (Scheduler, mpsc::Receiver<()>, Pid) {
    let scheduler = Scheduler::builder().workers(workers).build();
    let (sender, starts) = mpsc::channel();
    let make = move || {
        Supervisor::new(Strategy::OneForOne)
            .intensity(0, Duration::from_secs(600))
            .child(leaf(sender.clone()))
    };
    let nested = Child::supervisor(make).spawn(Spawn::new().name("nested").trap_exits(true));
    Supervisor::new(Strategy::OneForOne)
        .backoff(Backoff::new(Duration::ZERO, 1, Duration::ZERO))
        .child(nested)
        .start(&scheduler)
        .unwrap();
    starts.recv_timeout(LIMIT).unwrap();
    let nested = scheduler.whereis("nested").unwrap();
    (scheduler, starts, nested)
}

fn leaf_of(scheduler: &Scheduler) -> Address<Order> {
    scheduler.named("leaf").unwrap()
}

fn restarts(scheduler: &Scheduler, pid: Pid) -> Option<u32> {
    scheduler.inspect(pid).map(|info| info.restarts)
}

/// A nested supervisor fails, since its child needs more restarts than it allows. The
/// worker takes the outer supervisor's step, which restarts it, before the last one of the child.
///
/// Fails if the start then fails because the child's name is taken: that is a second restart.
#[test]
fn failed_nested_supervisor_starts_at_the_first_try() {
    let (scheduler, starts, nested) = start(1);
    for count in 1..5 {
        assert!(leaf_of(&scheduler).try_send(Order::Fail).is_ok());
        starts.recv_timeout(LIMIT).unwrap();
        assert_eq!(restarts(&scheduler, nested), Some(count));
    }
}

/// Fails if a step that never returns holds up the restart of a killed supervisor above it, or
/// keeps its process in a group.
#[test]
fn stuck_child_holds_up_no_restart_of_a_killed_one() {
    let (scheduler, starts, nested) = start(2);
    let stuck = leaf_of(&scheduler);
    let ((begin, begun), (_keep, released)) = (mpsc::channel(), mpsc::channel());
    assert!(stuck.try_send(Order::Block(begin, released)).is_ok());
    begun.recv_timeout(LIMIT).unwrap();
    scheduler.kill(nested);
    starts.recv_timeout(LIMIT).unwrap();
    assert_eq!(restarts(&scheduler, nested), Some(1));
    assert_ne!(scheduler.whereis("leaf"), Some(stuck.pid()));
    assert!(restarts(&scheduler, stuck.pid()).is_some());
    assert_eq!(scheduler.members("leaves"), [leaf_of(&scheduler).pid()]);
    // All but the stuck process end, so that the report does not depend on how quickly they do.
    let no_name = |pid: &Pid| scheduler.inspect(*pid).unwrap().names.is_empty();
    let is_outer = |pid: &Pid| no_name(pid) && *pid != stuck.pid();
    let outer = scheduler.list().into_iter().find(is_outer).unwrap();
    scheduler.cancel(outer);
    while scheduler.metrics().processes > 1 {
        thread::yield_now();
    }
    let report = scheduler.shutdown_timeout(Duration::from_millis(10));
    assert_eq!(report.stuck, 1);
}
