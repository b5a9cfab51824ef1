//! Counts the read-modify-writes that the operations of a set cost, as the README's table has them.
use crate::JoinSet;
use std::{
    future::Future,
    pin::pin,
    task::{Context, Waker},
};
use sync_shim::count::counted;
use task_header::{Notified, Owned, Schedule, WakeKind, new};

/// A scheduler that itself costs no read-modify-write.
struct Nowhere;

impl Schedule for Nowhere {
    fn schedule(_: Notified<Self>, _: WakeKind) {}
}

fn rmws<R>(f: impl FnOnce() -> R) -> u64 {
    let (_, counts) = counted(f);
    assert_eq!((counts.shared_rmws, counts.seqcst_fences), (0, 0));
    counts.rmws
}

/// No figure includes an `Arc`'s count or a lock.
#[test]
fn join_set_costs_what_the_readme_says() {
    let mut owned = Owned::new(Waker::noop().clone());
    let mut cx = Context::from_waker(Waker::noop());
    let mut set = JoinSet::new();
    let (task, join) = new(async {}, Nowhere);
    assert_eq!(rmws(|| set.insert(join)), 1);
    assert!(pin!(set.join_next()).poll(&mut cx).is_pending());
    assert_eq!(
        rmws(|| drop(owned.run(task))),
        5,
        "a run that wakes the set"
    );
    let joined = || assert!(matches!(set.try_join_next(), Some(Ok(()))));
    assert_eq!(rmws(joined), 0);
}
