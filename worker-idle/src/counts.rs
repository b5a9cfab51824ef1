//! Counts the read-modify-writes and `SeqCst` fences of each operation, to check the README's table
//! of costs.
use crate::{
    Idle, Woken,
    park::{Park, ThreadPark},
};
use sync_shim::count::counted;

fn cost<R>(f: impl FnOnce() -> R) -> (u64, u64) {
    let (_, counts) = counted(f);
    (counts.rmws, counts.seqcst_fences)
}

#[test]
fn every_operation_costs_what_the_readme_says() {
    let idle = Idle::new(2);
    assert_eq!(cost(|| idle.notify()), (0, 1), "nobody sleeps");
    assert_eq!(cost(|| idle.sleep(0, false)), (2, 1));
    assert_eq!(cost(|| idle.sleep(1, false)), (2, 1));
    assert_eq!(cost(|| assert_eq!(idle.notify(), Some(0))), (2, 1));
    assert_eq!(
        cost(|| assert_eq!(idle.notify(), None)),
        (0, 1),
        "there is a searcher"
    );
    assert_eq!(cost(|| assert!(idle.was_notified(0))), (0, 0));
    assert_eq!(
        cost(|| assert_eq!(idle.wake_self(0), Woken::ByNotifier)),
        (0, 0)
    );
    assert_eq!(
        cost(|| assert_eq!(idle.wake_self(1), Woken::BySelf)),
        (2, 0)
    );
    assert_eq!(cost(|| assert!(!idle.try_search())), (0, 0), "half search");
    assert_eq!(cost(|| assert!(!idle.stop_searching())), (1, 0));
    assert_eq!(
        cost(|| assert!(!idle.stop_searching())),
        (1, 0),
        "the last searcher, but nobody sleeps"
    );
    idle.sleep(1, false);
    assert_eq!(cost(|| assert!(idle.try_search())), (1, 0));
    assert_eq!(
        cost(|| assert!(idle.stop_searching())),
        (1, 1),
        "the last searcher beside a sleeper"
    );
    idle.wake_self(1);
    idle.stop_searching();
    assert_eq!(cost(|| assert!(idle.try_search())), (1, 0));
    assert_eq!(cost(|| assert!(idle.try_watch(0))), (1, 0));
    assert_eq!(
        cost(|| assert!(!idle.try_watch(1))),
        (0, 0),
        "there is a watcher"
    );
    assert_eq!(cost(|| idle.leave_watch()), (0, 0));
    assert_eq!(cost(|| idle.is_watched()), (0, 0));
    assert_eq!(cost(|| idle.want_watcher()), (0, 1));
    assert_eq!(cost(|| idle.want_watcher()), (0, 0), "a watcher is wanted");
    assert_eq!(cost(|| idle.is_watcher_wanted()), (0, 0));
    assert_eq!(cost(|| idle.counts()), (0, 0));
}

#[test]
fn unpark_costs_one_rmw_and_park_one() {
    let mut park = ThreadPark::new();
    let waker = park.waker();
    assert_eq!(cost(|| waker.wake_by_ref()), (1, 0));
    assert_eq!(cost(|| park.park()), (1, 0));
}

#[test]
fn block_on_of_a_ready_future_costs_nothing() {
    let ready = core::future::ready(());
    assert_eq!(cost(|| ThreadPark::block_on(ready)), (0, 0));
}
