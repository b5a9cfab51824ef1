//! Threads against each other. An item is a boxed number; each turns up exactly once.
use crate::{Boxed, Closed, Injector, List};
use sync_shim::{
    atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst, fence},
    model, model_must_fail,
    sync::Arc,
    thread,
};

type Queue = Injector<Boxed<u32>>;

fn node(n: u32) -> Box<Boxed<u32>> {
    Box::new(Boxed::new(n))
}

fn drain(queue: &Queue) -> Vec<u32> {
    std::iter::from_fn(|| queue.pop())
        .map(|node| node.value)
        .collect()
}

/// Bites: leave the length as it is after a push.
#[test]
fn two_pushers_lose_nothing_and_keep_their_order() {
    model(|| {
        let queue = Arc::new(Queue::new());
        let other = {
            let queue = queue.clone();
            thread::spawn(move || [1, 2].map(|n| queue.push(node(n)).unwrap()))
        };
        queue.push(node(3)).unwrap();
        other.join().unwrap();
        let got = drain(&queue);
        assert_eq!(queue.len(), 0);
        assert_eq!(got.iter().filter(|&&n| n < 3).collect::<Vec<_>>(), [&1, &2]);
        assert_eq!(got.len(), 3);
    });
}

/// Bites: splice the batch without its tail.
#[test]
fn a_batch_against_a_pop_and_a_pop_n() {
    model(|| {
        let queue = Arc::new(Queue::new());
        let other = {
            let queue = queue.clone();
            thread::spawn(move || {
                let one: Vec<_> = queue.pop().into_iter().map(|node| node.value).collect();
                one.into_iter()
                    .chain(queue.pop_n(2).into_iter().map(|node| node.value))
                    .collect()
            })
        };
        queue.push_batch((0..3).map(node).collect()).unwrap();
        queue.push(node(3)).unwrap();
        let mut got: Vec<u32> = other.join().unwrap();
        assert!(got.is_sorted());
        got.extend(drain(&queue));
        assert_eq!(got, [0, 1, 2, 3]);
    });
}

/// An item is queued or handed back.
///
/// Bites: look at `closed` before the lock is taken.
#[test]
fn a_push_against_close_queues_or_hands_back() {
    model(|| {
        let queue = Arc::new(Queue::new());
        let other = {
            let queue = queue.clone();
            thread::spawn(move || queue.push(node(1)).err().map(|Closed(node)| node.value))
        };
        assert!(queue.close());
        let seen_at_close = queue.len();
        let back = other.join().unwrap();
        assert_eq!(drain(&queue).len() + usize::from(back.is_some()), 1);
        assert!(
            seen_at_close == 1 || back == Some(1),
            "an item came in after the close"
        );
        queue.requeue(node(2));
        assert_eq!(drain(&queue), [2]);
    });
}

/// Rule 3: a pusher that sees no sleeper, and a sleeper that sees no item: not both.
///
/// Bites: drop either fence (the negative model below).
#[test]
fn a_push_and_a_last_look_do_not_both_miss() {
    model(|| push_and_last_look(|| fence(SeqCst)));
}

#[test]
fn without_fences_both_may_miss() {
    model_must_fail(|| push_and_last_look(|| ()));
}

fn push_and_last_look(fence: fn()) {
    let queue = Arc::new(Queue::new());
    let asleep = Arc::new(AtomicUsize::new(0));
    let pusher = {
        let (queue, asleep) = (queue.clone(), asleep.clone());
        thread::spawn(move || {
            queue.push(node(1)).unwrap();
            fence();
            asleep.load(Relaxed) == 1
        })
    };
    asleep.store(1, Relaxed);
    fence();
    let saw_item = !queue.is_empty();
    let saw_sleeper = pusher.join().unwrap();
    drain(&queue);
    assert!(saw_item || saw_sleeper);
}

/// Lists are dropped whole.
///
/// Bites: forget the drain in the list's drop (the leak fails the model).
#[test]
fn a_dropped_queue_drops_its_items() {
    model(|| {
        let count = Arc::new(());
        let queue = Arc::new(Injector::<Boxed<Arc<()>>>::new());
        let other = {
            let (queue, count) = (queue.clone(), count.clone());
            thread::spawn(move || queue.push(Box::new(Boxed::new(count))).is_ok())
        };
        let batch: List<_> = [count.clone(), count.clone()]
            .map(|c| Box::new(Boxed::new(c)))
            .into_iter()
            .collect();
        assert!(queue.push_batch(batch).is_ok());
        drop(queue.pop());
        assert!(other.join().unwrap());
        drop(queue);
        assert_eq!(Arc::strong_count(&count), 1);
    });
}
