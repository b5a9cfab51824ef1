//! Models of pushers, consumers and threads that look at the queue, which race each other. Under
//! loom a block has two slots, so that three values need two blocks.
use crate::{Closed, ValueInjector};
use std::{boxed::Box, mem::ManuallyDrop, vec::Vec};
use sync_shim::{
    atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst, fence},
    model, model_must_fail,
    sync::Arc,
    thread,
};

type Queue = ValueInjector<u32>;

fn drain(queue: &Queue) -> Vec<u32> {
    std::iter::from_fn(|| queue.pop()).collect()
}

/// Fails if a push stores `pushed` before it writes the value, if pushers take no lock, or if a
/// push does not link its new block.
#[test]
fn two_pushers_lose_nothing_and_keep_their_order() {
    model(|| {
        let queue = Arc::new(Queue::new());
        let other = {
            let queue = queue.clone();
            thread::spawn(move || [1, 2].map(|n| queue.push(n).unwrap()))
        };
        queue.push(3).unwrap();
        other.join().unwrap();
        assert_eq!(queue.len(), 3);
        let got = drain(&queue);
        assert!(got.iter().filter(|&&n| n < 3).eq(&[1, 2]));
        assert_eq!(got.len(), 3);
    });
}

/// Fails if a push stores `pushed` with Relaxed, if `take_in` loads it with Relaxed, or if a push
/// writes `first` after `pushed`.
#[test]
fn consumer_beside_the_first_pushes_gets_them_in_order() {
    model(|| {
        let queue = Arc::new(Queue::new());
        let other = {
            let queue = queue.clone();
            thread::spawn(move || [queue.pop(), queue.pop(), queue.pop()])
        };
        (0..3).for_each(|n| queue.push(n).unwrap());
        let mut got: Vec<_> = other.join().unwrap().into_iter().flatten().collect();
        got.extend(drain(&queue));
        assert_eq!(got, [0, 1, 2]);
    });
}

/// A consumer leaves the first block, and a pusher needs a third one.
///
/// Fails if `keep` or `take_spare` is Relaxed. Also fails if a consumer leaves a block when it pops
/// the block's last slot, instead of when it pops the first slot of the next block.
#[test]
fn block_that_a_consumer_leaves_is_used_again() {
    model(|| {
        let queue = Arc::new(Queue::new());
        queue.push_batch(0..3).unwrap();
        let other = {
            let queue = queue.clone();
            thread::spawn(move || {
                let mut got: Vec<_> = queue.pop_n(2).collect();
                got.extend(queue.pop());
                got
            })
        };
        queue.push_batch(3..5).unwrap();
        let mut got = other.join().unwrap();
        assert_eq!(got.len(), 3);
        got.extend(drain(&queue));
        assert!(got.into_iter().eq(0..5));
    });
}

/// Fails if `keep` replaces an existing spare block.
#[test]
fn blocks_beyond_the_spare_are_freed() {
    model(|| {
        let queue = Arc::new(Queue::new());
        queue.push_batch(0..5).unwrap();
        let other = {
            let queue = queue.clone();
            thread::spawn(move || queue.pop_n(2).count() + queue.pop_n(2).count())
        };
        let mine = queue.pop_n(2).count();
        let all = mine + other.join().unwrap() + drain(&queue).len();
        assert_eq!(all, 5);
    });
}

/// Fails if the consumers take different locks.
#[test]
fn two_consumers_take_each_value_once_and_in_order() {
    model(|| {
        let queue = Arc::new(Queue::new());
        queue.push_batch(0..4).unwrap();
        let other = {
            let queue = queue.clone();
            thread::spawn(move || {
                let mut got: Vec<_> = queue.pop().into_iter().collect();
                got.extend(queue.pop());
                got
            })
        };
        let mut got: Vec<_> = queue.pop_n(2).collect();
        assert!(got.len() == 2 && got[0] + 1 == got[1]);
        let others = other.join().unwrap();
        assert!(others.len() == 2 && others[0] < others[1]);
        got.extend(others);
        got.sort_unstable();
        assert!(got.into_iter().eq(0..4));
    });
}

/// The queue always holds a value, although `popped` may equal `limit`, which may be out of date.
///
/// Fails if `take` loads `popped` with Relaxed: `take` may then compare this count with an older
/// value of `pushed`.
#[test]
fn pop_from_a_queue_that_is_never_empty_finds_a_value() {
    model(|| {
        let queue = Arc::new(Queue::new());
        queue.push_batch(0..2).unwrap();
        assert_eq!(queue.pop(), Some(0));
        let other = {
            let queue = queue.clone();
            thread::spawn(move || {
                queue.push(2).unwrap();
                queue.pop()
            })
        };
        let mine = queue.pop();
        let others = other.join().unwrap();
        assert!(mine.is_some() && others.is_some() && mine != others);
    });
}

/// The test's thread reads the length while one thread pushes a value and another thread pops.
///
/// Fails if a pop stores `popped` with Relaxed, or if `len` loads `popped` with Relaxed: the
/// difference of the counts may then be negative.
#[test]
fn len_beside_a_push_and_a_pop_is_none_or_one() {
    model(|| {
        let queue = Arc::new(Queue::new());
        let pusher = {
            let queue = queue.clone();
            thread::spawn(move || queue.push(7).unwrap())
        };
        let consumer = {
            let queue = queue.clone();
            thread::spawn(move || queue.pop())
        };
        assert!(queue.len() <= 1);
        pusher.join().unwrap();
        let got = consumer.join().unwrap();
        assert_eq!(queue.is_empty(), got.is_some());
        assert_eq!(queue.pop().or(got), Some(7));
    });
}

/// Fails if a close does not lock, or if a push stores `pushed` without the bit CLOSED.
#[test]
fn push_against_close_is_queued_or_handed_back() {
    model(|| {
        let queue = Arc::new(Queue::new());
        let other = {
            let queue = queue.clone();
            thread::spawn(move || queue.push(1).map_err(|Closed(value)| value))
        };
        assert!(queue.close());
        let at_close = queue.len();
        let back = other.join().unwrap();
        assert_eq!(back, if at_close == 1 { Ok(()) } else { Err(1) });
        assert!(queue.is_closed() && queue.push(2).is_err());
        queue.requeue(3);
        assert!(queue.is_closed());
        assert_eq!(drain(&queue).len(), at_close + 1);
    });
}

/// A consumer that finds the queue closed, and then looks for values, misses none.
///
/// Fails if the load of `is_closed`, or the store of `close`, is Relaxed.
#[test]
fn queue_found_closed_shows_what_came_before() {
    model(|| {
        let shared = Arc::new((Queue::new(), AtomicUsize::new(0)));
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.0.push(7).unwrap();
                shared.1.store(1, Relaxed);
                shared.0.close();
            })
        };
        if shared.0.is_closed() {
            assert_eq!(shared.1.load(Relaxed), 1);
            assert_eq!(shared.0.pop(), Some(7));
        }
        other.join().unwrap();
    });
}

/// Rule 7: the pusher sees the sleeper, or the sleeper sees the value.
///
/// Fails if either fence is dropped (the negative model below).
#[test]
fn push_and_last_look_do_not_both_miss() {
    model(|| push_and_last_look(|| fence(SeqCst)));
}

#[test]
fn push_and_last_look_without_fences_both_miss() {
    model_must_fail("saw_value || saw_sleeper", || push_and_last_look(|| ()));
}

fn push_and_last_look(fence: fn()) {
    let queue = Arc::new(Queue::new());
    let asleep = Arc::new(AtomicUsize::new(0));
    let pusher = {
        let (queue, asleep) = (queue.clone(), asleep.clone());
        thread::spawn(move || {
            queue.push(1).unwrap();
            fence();
            asleep.load(Relaxed) == 1
        })
    };
    asleep.store(1, Relaxed);
    fence();
    let saw_value = !queue.is_empty();
    let saw_sleeper = pusher.join().unwrap();
    assert!(saw_value || saw_sleeper);
}

/// A queue is dropped while a thread still looks at it: the model fails.
///
/// Fails if `Inner::drop` retires nothing.
#[test]
fn look_at_a_dropped_value_queue_fails_the_model() {
    model_must_fail("mut accesses", || {
        let raw = Box::into_raw(Box::new(Queue::new()));
        // SAFETY: the memory of the queue is freed at the end of the model.
        let queue: &'static Queue = unsafe { &*raw };
        let other = thread::spawn(move || queue.is_closed());
        // SAFETY: unsound on purpose. The other thread reads only the queue's own memory, which is
        // freed after that thread has ended.
        unsafe { raw.drop_in_place() };
        other.join().unwrap();
        // SAFETY: the queue was dropped above, and is freed here.
        drop(unsafe { Box::from_raw(raw.cast::<ManuallyDrop<Queue>>()) });
    });
}
