//! Checks the README's table of costs: how many locks each operation takes, and how many other
//! read-modify-writes it does.
use crate::{Boxed, Injector, List, Lock, ValueInjector};
use std::cell::Cell;
use sync_shim::count::counted;

/// A lock for tests of one thread. It counts how often it is taken.
struct Counting;

thread_local! {
    static LOCKS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: each test that uses this lock has one thread, which never takes it twice at a time.
unsafe impl Lock for Counting {
    type Guard<'a> = ();

    fn try_lock(&self) -> Option<()> {
        self.lock();
        Some(())
    }

    fn lock(&self) {
        LOCKS.set(LOCKS.get() + 1);
    }
}

type Queue = Injector<Boxed<u32>, Counting>;

/// Returns how often a call of `f` takes a lock, and how many other read-modify-writes it does.
fn cost<R>(f: impl FnOnce() -> R) -> (u64, u64) {
    let before = LOCKS.get();
    let (_, counts) = counted(f);
    assert_eq!(counts.seqcst_fences, 0);
    (LOCKS.get() - before, counts.rmws)
}

fn node() -> Box<Boxed<u32>> {
    Box::new(Boxed::new(7))
}

fn three() -> List<Boxed<u32>> {
    (0..3).map(|_| node()).collect()
}

#[test]
fn every_operation_costs_what_the_readme_says() {
    let queue = Queue::with_lock(Counting);
    assert_eq!(cost(|| queue.pop()), (0, 0), "from nothing");
    assert_eq!(cost(|| queue.pop_n(3)), (0, 0), "from nothing");
    assert_eq!(cost(|| queue.push(node())), (0, 1));
    assert_eq!(cost(|| queue.pop()), (0, 1), "the only one");
    assert_eq!(cost(|| queue.requeue(node())), (0, 1));
    assert_eq!(cost(|| queue.pop_n(3).len()), (0, 1), "the only one");
    assert_eq!(cost(|| queue.push_batch(three())), (0, 1));
    assert_eq!(cost(|| queue.requeue_batch(three())), (0, 1));
    assert_eq!(cost(|| queue.push(node())), (0, 1));
    assert_eq!(cost(|| queue.pop()), (1, 1), "moves the others to the list");
    assert_eq!(cost(|| queue.pop()), (1, 0), "from the list");
    assert_eq!(cost(|| queue.pop_n(4).len()), (1, 0), "from the list");
    assert_eq!(cost(|| queue.pop()), (1, 1), "the last of the list");
    queue.push_batch(three()).unwrap();
    assert_eq!(
        cost(|| queue.pop_n(9).len()),
        (1, 2),
        "moves the stack, and takes all"
    );
    queue.push_batch(three()).unwrap();
    queue.pop();
    queue.push(node()).unwrap();
    assert_eq!(
        cost(|| queue.pop_n(9).len()),
        (1, 1),
        "moves one item, and takes all"
    );
    assert_eq!(cost(|| (queue.len(), queue.is_empty())), (0, 0));
    assert_eq!(cost(|| queue.is_closed()), (0, 0));
    assert_eq!(cost(|| queue.close()), (1, 1));
    assert_eq!(cost(|| queue.push(node()).is_err()), (0, 0), "refused");
    assert_eq!(
        cost(|| queue.push_batch(three()).is_err()),
        (0, 0),
        "refused"
    );
}

#[test]
fn value_injector_costs_what_the_readme_says() {
    let queue = ValueInjector::<u32, Counting>::with_locks(Counting, Counting);
    assert_eq!(cost(|| queue.pop()), (0, 0), "from nothing");
    assert_eq!(cost(|| queue.pop_n(3).len()), (0, 0), "from nothing");
    queue.push(0).unwrap();
    assert_eq!(cost(|| queue.push(1)), (1, 0));
    assert_eq!(cost(|| queue.requeue(2)), (1, 0));
    assert_eq!(cost(|| queue.push_batch(3..35).is_ok()), (1, 0), "of 32");
    assert_eq!(cost(|| queue.pop_n(0).len()), (0, 0), "of none");
    assert_eq!(cost(|| queue.pop()), (1, 0));
    assert_eq!(cost(|| queue.pop_n(40).len()), (1, 0));
    assert_eq!(cost(|| (queue.len(), queue.is_empty())), (0, 0));
    assert_eq!(cost(|| queue.is_closed()), (0, 0));
    assert_eq!(cost(|| queue.close()), (1, 0));
    assert_eq!(cost(|| queue.push(1).is_err()), (1, 0), "refused");
    assert_eq!(cost(|| queue.push_batch([]).is_err()), (0, 0), "refused");
}
