//! Tests on one thread: blocks, drops, and values of all sizes.
use super::{
    block::{BATCH, SLOTS},
    *,
};
use crate::lock::Lock;
use std::{cell::Cell, rc::Rc, vec, vec::Vec};

/// A lock for tests of one thread.
#[derive(Default)]
struct Single;

// SAFETY: each test that uses this lock has one thread, which never takes it twice at a time.
unsafe impl Lock for Single {
    type Guard<'a> = ();

    fn try_lock(&self) -> Option<()> {
        Some(())
    }

    fn lock(&self) {}
}

type Queue<T> = ValueInjector<T, Single>;

/// A lock for a test of one thread, and also the lock's guard. A guard's drop panics, and clears
/// the flag, if the flag is set.
#[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
struct PanicsAtUnlock<'a>(&'a Cell<bool>);

#[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
impl Drop for PanicsAtUnlock<'_> {
    fn drop(&mut self) {
        assert!(!self.0.take(), "this unlock panics");
    }
}

// SAFETY: the test that uses this lock has one thread, which takes no lock while it holds a guard.
#[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
unsafe impl<'a> Lock for PanicsAtUnlock<'a> {
    type Guard<'b>
        = PanicsAtUnlock<'a>
    where
        Self: 'b;

    fn try_lock(&self) -> Option<PanicsAtUnlock<'a>> {
        Some(self.lock())
    }

    fn lock(&self) -> PanicsAtUnlock<'a> {
        PanicsAtUnlock(self.0)
    }
}

/// Counts its drops, and panics in its drop if the flag is set.
struct Dropped(Rc<Cell<usize>>, bool);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
        assert!(!self.1, "this drop panics");
    }
}

fn panics(f: impl FnOnce()) -> bool {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).is_err()
}

fn set_positions<T>(queue: &Queue<T>, popped: usize, pushed: usize) {
    queue.inner.pushers.tail.with(|tail| tail.pushed = pushed);
    queue.inner.pushers.pushed.store(pushed, Relaxed);
    queue.inner.consumers.head.with(|head| {
        (head.popped, head.limit) = (popped, popped);
    });
    queue.inner.consumers.popped.store(popped, Relaxed);
    queue.inner.consumers.limit.store(popped, Relaxed);
}

#[test]
fn values_cross_blocks_in_order_by_ones_and_by_batches() {
    for batch in 1..=BATCH {
        let queue = Queue::default();
        let (mut pushed, mut popped) = (0, 0);
        for turn in 0..5 * SLOTS {
            match turn % 3 {
                0 => queue.push(pushed).unwrap(),
                _ => queue.push_batch(pushed..pushed + batch).unwrap(),
            }
            pushed += if turn % 3 == 0 { 1 } else { batch };
            for value in queue.pop_n(batch) {
                assert_eq!(value, popped);
                popped += 1;
            }
            assert_eq!(queue.len(), pushed - popped);
        }
        while let Some(value) = queue.pop() {
            assert_eq!(value, popped);
            popped += 1;
        }
        assert!(pushed == popped && queue.is_empty());
    }
}

#[test]
fn positions_that_wrap_keep_the_order() {
    let queue = Queue::default();
    // The counts are those of a queue just before they wrap, after a whole number of blocks.
    let start = 0usize.wrapping_sub(2 * SLOTS * PER_VALUE);
    set_positions(&queue, start, start);
    assert!(queue.is_empty() && queue.pop().is_none());
    queue.push_batch(0..6 * SLOTS).unwrap();
    assert_eq!((queue.len(), queue.is_empty()), (6 * SLOTS, false));
    assert!(queue.close() && queue.len() == 6 * SLOTS);
    let got: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
    assert!(got.into_iter().eq(0..6 * SLOTS) && queue.is_closed());
}

#[test]
fn pop_n_takes_at_most_a_batch() {
    let queue = Queue::default();
    queue.push_batch(0..2 * BATCH + 1).unwrap();
    assert_eq!(queue.pop_n(0).len(), 0);
    assert_eq!(queue.pop_n(1).len(), 1);
    assert_eq!(queue.pop_n(usize::MAX).len(), Batch::<u32>::CAPACITY);
    let rest = queue.pop_n(usize::MAX);
    assert_eq!(rest.len(), BATCH);
    assert!(rest.eq(BATCH + 1..2 * BATCH + 1));
    assert_eq!(queue.pop_n(usize::MAX).len(), 0);
}

#[test]
fn closed_queue_hands_back_all_values_in_order() {
    let queue = Queue::default();
    queue.push(0).unwrap();
    assert!(queue.close() && !queue.close());
    assert_eq!(queue.push(1), Err(Closed(1)));
    let values = 0..3 * SLOTS;
    let Err(Closed(back)) = queue.push_batch(values.clone()) else {
        panic!("the queue was closed");
    };
    assert!(back.eq(values));
    queue.requeue(1);
    queue.requeue_batch(2..2 * SLOTS);
    assert!(queue.is_closed());
    assert!(std::iter::from_fn(|| queue.pop()).eq(0..2 * SLOTS));
}

#[test]
fn iterator_that_closes_the_queue_gets_the_rest_back() {
    let queue = Queue::default();
    let values = (0..3 * BATCH).inspect(|&n| {
        if n == BATCH {
            queue.close();
        }
    });
    let Err(Closed(back)) = queue.push_batch(values) else {
        panic!("the queue was closed");
    };
    assert!(back.eq(BATCH..3 * BATCH));
    assert!(std::iter::from_fn(|| queue.pop()).eq(0..BATCH));
}

#[test]
fn empty_batch_is_refused_by_a_closed_queue() {
    let queue = Queue::<u32>::default();
    assert!(queue.push_batch([]).is_ok());
    queue.close();
    let Err(Closed(back)) = queue.push_batch([]) else {
        panic!("the queue was closed");
    };
    assert_eq!(back.count(), 0);
    queue.requeue_batch([]);
    assert!(queue.is_empty());
}

#[test]
fn batches_queued_before_a_close_are_ok() {
    let queue = Queue::default();
    let end = std::iter::from_fn(|| {
        queue.close();
        None
    });
    assert!(queue.push_batch((0..2 * BATCH).chain(end)).is_ok());
    assert!(queue.is_closed());
    assert!(std::iter::from_fn(|| queue.pop()).eq(0..2 * BATCH));
}

#[test]
fn refused_batch_ends_where_its_iterator_ended() {
    let queue = Queue::default();
    queue.close();
    let mut given = [Some(1), None, Some(2)].into_iter();
    let Err(Closed(back)) = queue.push_batch(std::iter::from_fn(|| given.next().flatten())) else {
        panic!("the queue was closed");
    };
    assert!(back.eq([1]));
}

#[test]
fn queue_of_too_many_values_panics_and_stays_whole() {
    let (queue, drops) = (Queue::default(), Rc::new(Cell::new(0)));
    // The counts are those of a queue after `pushed / PER_VALUE` pushes, the last of which filled a
    // block.
    let pushed = usize::MAX / 2 + 1;
    set_positions(&queue, 0, pushed);
    let one = || Dropped(drops.clone(), false);
    let both_panicked = panics(|| queue.requeue(one())) & panics(|| queue.requeue_batch([one()]));
    let len = queue.len();
    // The counts are those of a queue after all values were popped.
    set_positions(&queue, pushed, pushed);
    assert!(both_panicked && len == pushed / PER_VALUE);
    assert_eq!(drops.get(), 0, "leaked, as the documentation says");
    queue.requeue(one());
    drop(queue);
    assert_eq!(drops.get(), 1);
    // The two leaked values still count as owners of `drops`. This ends that, so that a leak
    // checker finds no leak.
    // SAFETY: the leaked values own these two counts, and are not used again.
    (0..2).for_each(|_| unsafe { Rc::decrement_strong_count(Rc::as_ptr(&drops)) });
}

/// This test does not run under a model checker, where the queue uses the shim's lock.
#[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
#[test]
fn unlock_that_panics_drops_no_value_twice() {
    struct Counted<'a>(&'a Cell<usize>);

    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }

    let (pushers, consumers, drops) = (Cell::new(false), Cell::new(false), Cell::new(0));
    let locks = (PanicsAtUnlock(&pushers), PanicsAtUnlock(&consumers));
    let queue = ValueInjector::with_locks(locks.0, locks.1);
    assert!(queue.push(Counted(&drops)).is_ok());
    pushers.set(true);
    let many = (0..BATCH).map(|_| Counted(&drops));
    assert!(panics(|| assert!(queue.push_batch(many).is_ok())));
    assert_eq!((queue.len(), drops.get()), (1 + BATCH, 0));
    pushers.set(true);
    assert!(panics(|| assert!(queue.push(Counted(&drops)).is_ok())));
    assert_eq!((queue.len(), drops.get()), (2 + BATCH, 0));
    // The popped values are leaked.
    consumers.set(true);
    assert!(panics(|| drop(queue.pop())));
    consumers.set(true);
    assert!(panics(|| drop(queue.pop_n(2))));
    assert_eq!((queue.len(), drops.get()), (BATCH - 1, 0));
    drop(queue);
    assert_eq!(drops.get(), BATCH - 1);
}

#[test]
fn iterator_may_use_the_queue_and_panic() {
    let (queue, drops) = (Queue::default(), Rc::new(Cell::new(0)));
    let values = (0..2 * BATCH).map(|n| {
        assert!(n < BATCH + 3, "the iterator panics");
        drop(queue.pop());
        queue.push(Dropped(drops.clone(), false)).ok();
        Dropped(drops.clone(), false)
    });
    assert!(panics(|| assert!(queue.push_batch(values).is_ok())));
    let queued = std::iter::from_fn(|| queue.pop()).count();
    assert_eq!(queued, BATCH + 1);
    assert_eq!(drops.get(), 2 * (BATCH + 3));
}

#[test]
fn values_that_are_left_are_dropped_once() {
    for left in [0, 1, SLOTS - 1, SLOTS, SLOTS + 1, 3 * SLOTS] {
        let (queue, drops) = (Queue::default(), Rc::new(Cell::new(0)));
        let values = (0..left + 3).map(|_| Dropped(drops.clone(), false));
        assert!(queue.push_batch(values).is_ok());
        let mut batch = queue.pop_n(3);
        drop(batch.next());
        assert_eq!(drops.get(), 1);
        drop(batch);
        assert_eq!(drops.get(), 3);
        drop(queue);
        assert_eq!(drops.get(), left + 3);
    }
}

#[test]
fn drop_that_panics_leaves_no_value_undropped() {
    let (queue, drops) = (Queue::default(), Rc::new(Cell::new(0)));
    let values = (0..3 * SLOTS).map(|n| Dropped(drops.clone(), n == SLOTS));
    assert!(queue.push_batch(values).is_ok());
    assert!(panics(|| drop(queue)));
    assert_eq!(drops.get(), 3 * SLOTS);

    let queue = Queue::default();
    let values = (0..BATCH).map(|n| Dropped(drops.clone(), n == 1));
    assert!(queue.push_batch(values).is_ok());
    drops.set(0);
    assert!(panics(|| drop(queue.pop_n(BATCH))));
    assert_eq!(drops.get(), BATCH);
}

#[test]
fn values_without_a_size_are_counted() {
    let queue = Queue::default();
    queue.push_batch([(); 3 * SLOTS]).unwrap();
    assert_eq!(queue.len(), 3 * SLOTS);
    assert_eq!(queue.pop_n(5).count(), 5);
    assert_eq!(std::iter::from_fn(|| queue.pop()).count(), 3 * SLOTS - 5);
}

#[test]
fn values_of_large_alignment_are_aligned() {
    #[repr(align(256))]
    struct Aligned(u8);

    let queue = Queue::default();
    queue.push_batch((0..200).map(Aligned)).ok().unwrap();
    for n in 0..200 {
        let value = queue.pop().unwrap();
        assert!(value.0 == n && (&raw const value).addr() % 256 == 0);
        let place = queue.inner.pushers.tail.with(|tail| tail.block);
        assert_eq!(place.addr() % 256, 0);
    }
}

#[test]
fn large_values_need_no_block_on_the_stack() {
    let queue = Queue::default();
    // A block takes 8 MiB, more than a test's stack.
    queue.push([7u8; 64 << 10]).ok().unwrap();
    assert_eq!(queue.pop().unwrap()[9], 7);
}

#[test]
fn debug_output_of_values_shows_length_and_content() {
    let queue = Queue::default();
    queue.push_batch(vec![1, 2]).unwrap();
    assert_eq!(std::format!("{queue:?}"), "ValueInjector { len: 2, .. }");
    assert_eq!(std::format!("{:?}", queue.pop_n(2)), "Batch([1, 2])");
}
