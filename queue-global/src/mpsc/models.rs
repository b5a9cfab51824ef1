//! Models of pushers against the consumer, and against a close. A value is a pair: the number of
//! its pusher, and the number of the push.
//!
//! "Fails if" names the changes to the code that make a model fail.
use super::*;
use alloc::vec::Vec;
use sync_shim::{model, sync::Arc, thread};

/// Asserts that each pusher's values are in order.
fn assert_fifo(got: &[(u8, u8)]) {
    for who in 0..3 {
        let turns = got.iter().filter(|(by, _)| *by == who);
        assert!(turns.map(|(_, turn)| turn).is_sorted(), "{got:?}");
    }
}

/// Fails if the exchange of a push, or a take, is Relaxed.
#[test]
fn pusher_against_two_takes_keeps_each_value_in_order() {
    model(|| {
        let queue = Arc::new(Queue::new());
        let pusher = {
            let queue = queue.clone();
            thread::spawn(move || [0, 1].map(|turn| queue.push((0, turn)).is_ok()))
        };
        let mut got = Vec::from_iter(queue.take());
        got.extend(queue.take());
        pusher.join().unwrap();
        got.extend(queue.take());
        assert_eq!(got, [(0, 0), (0, 1)]);
    });
}

/// Fails if the exchange of a push, or a take, is Relaxed.
#[test]
fn full_two_pushers_against_takes_keep_each_value_in_order() {
    model(|| {
        let queue = Arc::new(Queue::new());
        let push = |who, queue: Arc<Queue<_>>| {
            thread::spawn(move || {
                let _ = queue.push((who, 0)).unwrap();
            })
        };
        let other = push(1, queue.clone());
        let more = push(0, queue.clone());
        let mut got = Vec::from_iter(queue.take());
        more.join().unwrap();
        let _ = queue.push((0, 1)).unwrap();
        got.extend(queue.take());
        other.join().unwrap();
        got.extend(queue.take());
        assert_fifo(&got);
        got.sort_unstable();
        assert_eq!(got, [(0, 0), (0, 1), (1, 0)]);
    });
}

/// Fails if a close first takes the values and then stores CLOSED.
#[test]
fn push_against_close_is_taken_or_handed_back() {
    model(|| {
        let queue = Arc::new(Queue::new());
        let pusher = {
            let queue = queue.clone();
            thread::spawn(move || [0, 1].map(|n| queue.push(n).is_ok()))
        };
        let taken = queue.close().count();
        let pushed = pusher.join().unwrap();
        assert_eq!(taken, pushed.iter().filter(|ok| **ok).count());
        assert!(pushed[0] || !pushed[1], "a closed queue stays closed");
        assert!(queue.take().is_empty());
    });
}

/// Of the pushes between two takes, exactly one reports that it is the first (rule 3).
///
/// Fails if every push reports that it is the first.
#[test]
fn pushes_between_two_takes_have_one_first() {
    model(|| {
        let queue = Arc::new(Queue::new());
        let push = |queue: &Queue<u8>| usize::from(queue.push(0) == Ok(Pushed::First));
        let pusher = {
            let queue = queue.clone();
            thread::spawn(move || push(&queue))
        };
        let mut firsts = push(&queue);
        let batches = usize::from(!queue.take().is_empty());
        firsts += pusher.join().unwrap();
        let batches = batches + usize::from(!queue.take().is_empty());
        assert_eq!(firsts, batches);
    });
}

/// A pusher holds the address of a node that is freed and allocated again meanwhile (rule 4).
#[test]
fn push_against_take_and_push_loses_nothing() {
    model(|| {
        let queue = Arc::new(Queue::new());
        let _ = queue.push(0).unwrap();
        let pusher = {
            let queue = queue.clone();
            thread::spawn(move || {
                let _ = queue.push(1).unwrap();
            })
        };
        let mut got = Vec::from_iter(queue.take());
        let _ = queue.push(2).unwrap();
        pusher.join().unwrap();
        got.extend(queue.take());
        got.sort_unstable();
        assert_eq!(got, [0, 1, 2]);
    });
}

/// A word that one thread writes before it uses the queue. Another thread reads the word after it
/// has used the queue.
#[derive(Clone)]
struct Before(Arc<sync_shim::atomic::AtomicU32>);

impl Before {
    fn new() -> Self {
        Self(Arc::new(sync_shim::atomic::AtomicU32::new(0)))
    }

    fn write(&self) {
        self.0.store(1, Relaxed);
    }

    fn assert_written(&self) {
        assert_eq!(self.0.load(Relaxed), 1, "the earlier write is missing");
    }
}

/// A pusher that is refused sees the writes before the close.
///
/// Fails if a load or a failed exchange of `push` is Relaxed, or if a close has no Release.
#[test]
fn refused_pusher_sees_what_came_before_the_close() {
    model(|| {
        let (queue, before) = (Arc::new(Queue::new()), Before::new());
        let closer = {
            let (queue, before) = (queue.clone(), before.clone());
            thread::spawn(move || {
                before.write();
                drop(queue.close());
            })
        };
        if queue.push(1).is_err() {
            before.assert_written();
        }
        closer.join().unwrap();
    });
}

/// A thread that sees the queue closed sees the writes before the close.
///
/// Fails if `is_closed` loads with Relaxed, or if a close has no Release.
#[test]
fn closed_queue_shows_what_came_before_the_close() {
    model(|| {
        let (queue, before) = (Arc::new(Queue::<u8>::new()), Before::new());
        let closer = {
            let (queue, before) = (queue.clone(), before.clone());
            thread::spawn(move || {
                before.write();
                drop(queue.close());
            })
        };
        if queue.is_closed() {
            before.assert_written();
        }
        closer.join().unwrap();
    });
}

/// A thread that sees a value in the queue sees the pusher's writes before the push.
///
/// Fails if `is_empty` loads with Relaxed.
#[test]
fn queue_with_a_value_shows_what_its_pusher_did_before() {
    model(|| {
        let (queue, before) = (Arc::new(Queue::new()), Before::new());
        let pusher = {
            let (queue, before) = (queue.clone(), before.clone());
            thread::spawn(move || {
                before.write();
                assert!(queue.push(1).is_ok());
            })
        };
        if !queue.is_empty() {
            before.assert_written();
        }
        pusher.join().unwrap();
    });
}
