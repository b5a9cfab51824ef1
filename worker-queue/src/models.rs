//! Models of a worker beside thieves, a watcher and a sleeper. Each item comes out once, and whole:
//! the run of an item writes to the item's `UnsafeCell`, and the model checks these writes.
use crate::{QueueHooks, RunQueue, WorkerQueue};
use queue_global::{Boxed, Injector, List};
use std::{boxed::Box, vec::Vec};
use sync_shim::{
    Model,
    atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst, fence},
    cell::UnsafeCell,
    model, model_must_fail,
    sync::{Arc, Mutex},
    thread,
};

pub(crate) type Item = Boxed<UnsafeCell<usize>>;
pub(crate) type Queue = WorkerQueue<Item>;

pub(crate) fn item(n: usize) -> Box<Item> {
    let item = Box::new(Boxed::new(UnsafeCell::new(0)));
    // SAFETY: the item is not shared yet. The value is written here, because the model ignores the
    // first value of an `UnsafeCell`.
    item.value.with_mut(|value| unsafe { *value = n });
    item
}

/// Runs an item, and returns its number.
#[expect(clippy::boxed_local, reason = "a handle is a box")]
pub(crate) fn run(item: Box<Item>) -> usize {
    item.value.with_mut(|n| {
        // SAFETY: the holder of an item has it alone; the model checks that.
        let n = unsafe { &mut *n };
        *n += 1;
        *n - 1
    })
}

/// Takes and runs all items that are left.
pub(crate) fn rest(queue: &Queue) -> Vec<usize> {
    core::iter::from_fn(|| queue.take_any()).map(run).collect()
}

pub(crate) fn assert_each_once(mut ran: Vec<usize>, n: usize) {
    ran.sort_unstable();
    assert_eq!(ran, (0..n).collect::<Vec<_>>());
}

/// A scheduler with one possible sleeper. It runs the items that overflow, and keeps their numbers.
struct Beside {
    asleep: AtomicBool,
    notified: AtomicBool,
    overflowed: Mutex<Vec<usize>>,
    fences: bool,
}

impl Beside {
    fn new() -> Self {
        Self {
            asleep: AtomicBool::new(false),
            notified: AtomicBool::new(false),
            overflowed: Mutex::new(Vec::new()),
            fences: true,
        }
    }
}

impl QueueHooks<Item> for Beside {
    fn overflow(&self, items: List<Item>) {
        self.overflowed.lock().extend(items.into_iter().map(run));
    }

    fn notify(&self) {
        if self.fences {
            // Ordering: SeqCst pairs with the fence of the sleeper.
            fence(SeqCst);
        }
        // Ordering: Relaxed; the fence orders it.
        if self.asleep.load(Relaxed) {
            // Ordering: Relaxed; the flag is read after a join.
            self.notified.store(true, Relaxed);
        }
    }
}

fn thief(queue: &Queue) -> thread::JoinHandle<Vec<usize>> {
    let stealer = queue.stealer();
    thread::spawn(move || {
        let own = Queue::new(4);
        let first = own.steal_from(&stealer).map(|batch| run(batch.first));
        first.into_iter().chain(rest(&own)).collect()
    })
}

/// Fails if a displaced item is dropped, if the ring's `tail` is published with Relaxed, or if a
/// thief steals the slot with a load and a store.
#[test]
fn a_thief_and_a_watcher_beside_the_worker_take_each_item_once() {
    Model::new().bound(3).check(|| {
        let (queue, hooks) = (Queue::new(2), Beside::new());
        let stealer = queue.stealer();
        let watcher = thread::spawn(move || {
            let seen = stealer.look();
            let stolen = seen.and_then(|seen| stealer.steal_slot(seen));
            Vec::from_iter(stolen.map(run))
        });
        let thief = thief(&queue);
        queue.push_next(item(0), &hooks);
        queue.push_next(item(1), &hooks);
        let mut ran = Vec::from_iter(queue.next(&hooks).map(|next| run(next.item)));
        ran.extend(watcher.join().unwrap());
        ran.extend(thief.join().unwrap());
        ran.extend(rest(&queue));
        assert_each_once(ran, 2);
    });
}

/// A ring of two is full when a third item comes. Then one of the first two overflows together with
/// the third, unless a thief has made room.
///
/// Fails if the overflow is dropped, or handed over twice.
#[test]
fn an_overflow_against_a_theft_takes_each_item_once() {
    model(|| {
        let (queue, hooks) = (Queue::new(2), Beside::new());
        queue.push_back(item(0), &hooks);
        queue.push_back(item(1), &hooks);
        let thief = thief(&queue);
        queue.push_back(item(2), &hooks);
        let mut ran = rest(&queue);
        ran.extend(thief.join().unwrap());
        ran.append(&mut hooks.overflowed.lock());
        assert_each_once(ran, 3);
    });
}

/// Runs a worker that does not return from the last item that it took. Another worker, which may
/// have stolen once, goes to sleep. If an item is in the ring in the end, the sleeper has seen an
/// item in its last look, or was notified.
fn sleeps_beside(
    steals: bool,
    hooks: Beside,
    n: usize,
    work: impl Fn(&Queue, &Beside) -> Vec<usize>,
) {
    let (queue, hooks) = (Queue::new(4), Arc::new(hooks));
    let stealer = queue.stealer();
    let sleeper = {
        let hooks = hooks.clone();
        let stealer = stealer.clone();
        thread::spawn(move || {
            let own = Queue::new(4);
            let first = steals.then(|| own.steal_from(&stealer)).flatten();
            // Ordering: Relaxed; the fence orders it.
            hooks.asleep.store(true, Relaxed);
            // Ordering: SeqCst pairs with the fence of `notify`.
            fence(SeqCst);
            let seen = !stealer.is_empty();
            let first = first.map(|batch| run(batch.first));
            let ran: Vec<_> = first.into_iter().chain(rest(&own)).collect();
            (seen, ran)
        })
    };
    let mut ran = work(&queue, &hooks);
    let (seen, stolen) = sleeper.join().unwrap();
    let found = seen || hooks.notified.load(Relaxed);
    assert!(stealer.is_empty() || found, "it sleeps beside an item");
    ran.extend(stolen);
    ran.extend(rest(&queue));
    assert_each_once(ran, n);
}

fn next(queue: &Queue, hooks: &impl QueueHooks<Item>) -> Vec<usize> {
    Vec::from_iter(queue.next(hooks).map(|next| run(next.item)))
}

/// Fails if the owner notifies before the push, or not at all.
#[test]
fn push_is_notified_of_or_seen() {
    model(|| {
        sleeps_beside(false, Beside::new(), 1, |queue, hooks| {
            queue.push_back(item(0), hooks);
            Vec::new()
        });
    });
}

#[test]
fn without_a_fence_a_push_is_missed() {
    model_must_fail("it sleeps beside an item", || {
        let hooks = Beside {
            fences: false,
            ..Beside::new()
        };
        sleeps_beside(false, hooks, 1, |queue, hooks| {
            queue.push_back(item(0), hooks);
            Vec::new()
        });
    });
}

/// The running item fills the slot twice, and continues to run.
///
/// Fails if the owner pushes the displaced item and does not notify.
#[test]
fn displaced_item_is_notified_of_or_seen() {
    model(|| {
        sleeps_beside(false, Beside::new(), 2, |queue, hooks| {
            queue.push_next(item(0), hooks);
            queue.push_next(item(1), hooks);
            Vec::new()
        });
    });
}

/// Rule 3: while an item runs, the worker pushes another one. The running item then yields. A thief
/// may steal the pushed item meanwhile.
///
/// Fails if the owner pushes the first item and does not notify.
#[test]
fn requeue_behind_a_stolen_item_leaves_no_worker_asleep() {
    model(|| {
        sleeps_beside(true, Beside::new(), 2, |queue, hooks| {
            queue.push_back(item(0), hooks);
            queue.requeue(item(1), hooks);
            next(queue, hooks)
        });
    });
}

/// Rules 1 and 3: after the requeue, the slot is filled, so the worker takes the slot's item next.
///
/// Fails if the owner takes from the slot and does not notify.
#[test]
fn requeued_item_behind_slot_beside_thief_is_notified_or_seen() {
    model(|| {
        sleeps_beside(true, Beside::new(), 3, |queue, hooks| {
            queue.push_back(item(0), hooks);
            queue.requeue(item(1), hooks);
            queue.push_next(item(2), hooks);
            next(queue, hooks)
        });
    });
}

/// A scheduler with one possible sleeper, in which an overflow goes to the injector.
struct Injecting {
    injector: Injector<Item>,
    sleeper: Beside,
}

impl QueueHooks<Item> for Injecting {
    fn overflow(&self, items: List<Item>) {
        self.injector.requeue_batch(items);
    }

    fn notify(&self) {
        self.sleeper.notify();
    }
}

/// Rule 3: the worker requeues an item by `requeue` while its ring is full, and then runs the item
/// that it takes next, for any length of time. Another worker, which may have stolen once, looks at
/// the ring and at the injector, and goes to sleep.
fn overflow_beside(steals: bool, n: usize, requeue: impl Fn(&Queue, &Injecting)) {
    let queue = Queue::new(2);
    let hooks = Arc::new(Injecting {
        injector: Injector::new(),
        sleeper: Beside::new(),
    });
    queue.push_back(item(0), &*hooks);
    queue.push_back(item(1), &*hooks);
    let stealer = queue.stealer();
    let sleeper = {
        let hooks = hooks.clone();
        let stealer = stealer.clone();
        thread::spawn(move || {
            let own = Queue::new(2);
            let first = steals.then(|| own.steal_from(&stealer)).flatten();
            // Ordering: Relaxed; the fence orders it.
            hooks.sleeper.asleep.store(true, Relaxed);
            // Ordering: SeqCst pairs with the fence of `notify`.
            fence(SeqCst);
            let seen = !stealer.is_empty() || !hooks.injector.is_empty();
            let first = first.map(|batch| run(batch.first));
            let ran: Vec<_> = first.into_iter().chain(rest(&own)).collect();
            (seen, ran)
        })
    };
    requeue(&queue, &hooks);
    let mut ran = next(&queue, &*hooks);
    if ran.is_empty() {
        let share = queue.take_share(&hooks.injector, 2, &*hooks);
        ran.extend(share.map(|batch| run(batch.first)));
    }
    let (seen, stolen) = sleeper.join().unwrap();
    let found = seen || hooks.sleeper.notified.load(Relaxed);
    let nothing_left = stealer.is_empty() && hooks.injector.is_empty();
    assert!(nothing_left || found, "it sleeps beside an item");
    ran.extend(stolen);
    ran.extend(rest(&queue));
    ran.extend(core::iter::from_fn(|| hooks.injector.pop()).map(run));
    assert_each_once(ran, n);
}

/// Fails if the owner does not notify after the overflow.
#[test]
fn requeue_that_overflows_is_notified_of_or_seen() {
    model(|| overflow_beside(true, 3, |queue, hooks| queue.requeue(item(2), hooks)));
}

/// The scenario above with an item from the slot.
///
/// Fails if the owner does not notify after the overflow.
#[test]
fn requeued_slot_that_overflows_is_notified_of_or_seen() {
    model(|| {
        overflow_beside(false, 3, |queue, hooks| {
            queue.push_next(item(2), hooks);
            queue.requeue_slot(hooks);
        });
    });
}

/// Rule 1: the worker takes the slot's item while there is a requeued item.
///
/// Fails if the owner keeps the requeued item, or pushes the requeued item and does not notify.
#[test]
fn requeued_item_is_notified_of_or_seen_when_slot_is_next() {
    model(|| {
        sleeps_beside(false, Beside::new(), 2, |queue, hooks| {
            queue.requeue(item(0), hooks);
            queue.push_next(item(1), hooks);
            let ran = next(queue, hooks);
            assert_eq!((&ran[..], queue.stealer().len()), (&[1][..], 1));
            ran
        });
    });
}

/// Rule 1: the worker takes an item of the injector while there is a requeued item.
///
/// Fails if the owner keeps the requeued item, or pushes the requeued item and does not notify.
#[test]
fn requeued_item_is_notified_of_or_seen_behind_an_injected_one() {
    model(|| {
        sleeps_beside(false, Beside::new(), 2, |queue, hooks| {
            let injector = Injector::<Item>::new();
            injector.requeue(item(1));
            queue.requeue(item(0), hooks);
            let ran = Vec::from_iter(queue.take_one(&injector, hooks).map(run));
            assert_eq!((&ran[..], queue.stealer().len()), (&[1][..], 1));
            ran
        });
    });
}

/// Rule 4: the worker requeues an item while the slot is filled.
///
/// Fails if the owner pushes the item and does not notify, or keeps it as the requeued item.
#[test]
fn requeue_behind_the_slot_is_notified_of_or_seen() {
    model(|| {
        sleeps_beside(false, Beside::new(), 2, |queue, hooks| {
            queue.push_next(item(0), hooks);
            queue.requeue(item(1), hooks);
            assert_eq!(queue.stealer().len(), 1);
            Vec::from_iter(queue.take_slot().map(run))
        });
    });
}

/// Rule 7: between two of its items, the worker pushes two more. The ring is empty, though the
/// worker may take it for filled: a thief may have stolen the item that the ring had. The worker
/// then runs one item, for any length of time.
///
/// Fails if the owner keeps the first of the two items aside, or pushes an item beside others and
/// does not notify.
#[test]
fn delivery_of_two_items_is_notified_of_or_seen() {
    Model::new().bound(3).check(|| {
        sleeps_beside(true, Beside::new(), 3, |queue, hooks| {
            queue.push_back(item(0), hooks);
            queue.between_items(|| {
                queue.push_next(item(1), hooks);
                queue.push_next(item(2), hooks);
            });
            next(queue, hooks)
        });
    });
}

/// At the shutdown, the watcher or the worker takes the item that the watcher has seen in the slot,
/// and no item is left.
///
/// Fails if the slot is not emptied.
#[test]
fn the_end_against_a_watcher_takes_each_item_once() {
    model(|| {
        let (queue, hooks) = (Queue::new(2), Beside::new());
        queue.requeue(item(0), &hooks);
        queue.push_next(item(1), &hooks);
        let stealer = queue.stealer();
        let watcher = thread::spawn(move || {
            let seen = stealer.look();
            let stolen = seen.and_then(|seen| stealer.steal_slot(seen));
            Vec::from_iter(stolen.map(run))
        });
        let mut ran = rest(&queue);
        assert!(queue.is_empty());
        ran.extend(watcher.join().unwrap());
        assert_each_once(ran, 2);
    });
}
