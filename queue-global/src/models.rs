//! Models of pushers, consumers and lookers that race each other. An item is a boxed number. Each
//! item comes out exactly once.
use crate::{Boxed, Closed, Injector, List};
use std::mem::ManuallyDrop;
use sync_shim::{
    Model,
    atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst, fence},
    cell::UnsafeCell,
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

/// Fails if a push stores `top` instead of exchanging it, or if a taken stack is not reversed.
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

/// Fails if a batch is pushed in reverse order, or if an older chain is put behind a newer one.
#[test]
fn batch_racing_a_pop_and_a_pop_n_keeps_its_order() {
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

/// A consumer takes the only node without the lock, while other nodes are pushed after that node.
///
/// Fails if the second push keeps the mark ONE: a consumer then takes one of the two nodes, and the
/// other one is lost.
#[test]
fn only_node_taken_during_pushes_loses_none() {
    model(|| {
        let queue = Arc::new(Queue::new());
        queue.push(node(0)).unwrap();
        let other = {
            let queue = queue.clone();
            thread::spawn(move || queue.pop().map(|node| node.value))
        };
        queue.push(node(1)).unwrap();
        queue.push(node(2)).unwrap();
        assert_eq!(other.join().unwrap(), Some(0));
        assert_eq!(drain(&queue), [1, 2]);
    });
}

/// Another thread takes one of two items: the queue never looks empty, even while the items move to
/// the list.
///
/// Fails if a taken stack leaves EMPTY behind.
#[test]
fn item_that_moves_to_the_list_is_always_seen() {
    model(|| {
        let queue = Arc::new(Queue::new());
        queue.push(node(0)).unwrap();
        queue.push(node(1)).unwrap();
        let other = {
            let queue = queue.clone();
            thread::spawn(move || queue.pop().map(|node| node.value))
        };
        assert_ne!(queue.len(), 0);
        assert!(!queue.is_empty());
        assert_eq!(other.join().unwrap(), Some(0));
        assert_eq!(drain(&queue), [1]);
    });
}

/// The list has one item. Another thread pushes a second item and then pops. The test's thread
/// looks and pops meanwhile, and always finds one of the two items.
///
/// Fails if a looker reads two words, the stack's and then the list's, to find the queue empty.
#[test]
fn queue_that_is_never_empty_never_looks_empty() {
    model(|| {
        let queue = Arc::new(Queue::new());
        queue
            .push_batch([0, 1].map(node).into_iter().collect())
            .unwrap();
        assert_eq!(queue.pop().unwrap().value, 0);
        let other = {
            let queue = queue.clone();
            thread::spawn(move || {
                queue.push(node(2)).unwrap();
                queue.pop().map(|node| node.value)
            })
        };
        assert!(!queue.is_empty());
        assert_ne!(queue.len(), 0);
        let mine = queue.pop().map(|node| node.value);
        let others = other.join().unwrap();
        assert!(mine.is_some() && others.is_some());
        assert_eq!(mine.max(others), Some(2));
        assert!(drain(&queue).is_empty());
    });
}

/// A consumer takes the list's last item while another thread pushes.
///
/// Fails if the consumer marks the queue empty with a store: then the pushed item is lost.
#[test]
fn last_item_of_the_list_racing_a_push_loses_neither() {
    model(|| {
        let queue = Arc::new(Queue::new());
        queue
            .push_batch([0, 1].map(node).into_iter().collect())
            .unwrap();
        assert_eq!(queue.pop().unwrap().value, 0);
        let other = {
            let queue = queue.clone();
            thread::spawn(move || queue.pop().map(|node| node.value))
        };
        queue.push(node(2)).unwrap();
        let mine = queue.pop().map(|node| node.value);
        let mut both = [mine, other.join().unwrap()];
        both.sort_unstable();
        assert_eq!(both, [Some(1), Some(2)]);
        assert!(queue.is_empty());
    });
}

/// Between a consumer's look at the only node and its exchange, another thread takes the node,
/// writes to it and pushes it again.
///
/// Fails if the exchange has no Acquire: the first consumer then uses the node without having
/// acquired the other thread's writes to it.
#[test]
fn only_node_that_returns_within_a_pop_is_read_whole() {
    model(|| {
        let queue = Arc::new(Injector::<Boxed<UnsafeCell<u32>>>::new());
        queue
            .push(Box::new(Boxed::new(UnsafeCell::new(0))))
            .unwrap();
        let other = {
            let queue = queue.clone();
            thread::spawn(move || {
                if let Some(node) = queue.pop() {
                    // SAFETY: a popped node is this thread's alone, or else the model fails.
                    node.value.with_mut(|value| unsafe { *value = 1 });
                    queue.push(node).unwrap();
                }
            })
        };
        if let Some(node) = queue.pop() {
            // SAFETY: as above.
            node.value.with(|value| unsafe { *value });
        }
        other.join().unwrap();
    });
}

/// Between a consumer's look at the only node and its exchange, the node leaves and returns behind
/// a younger one.
///
/// Fails if a push to an empty stack always marks its node as the only one. That node then
/// overtakes the nodes in the list, if there are any.
#[test]
fn node_that_returns_overtakes_none() {
    model(|| {
        let queue = Arc::new(Injector::<Boxed<AtomicUsize>>::new());
        let node = || Box::new(Boxed::new(AtomicUsize::new(0)));
        queue.push(node()).unwrap();
        let other = {
            let queue = queue.clone();
            thread::spawn(move || {
                let node = queue.pop()?;
                Some(node.value.load(Relaxed))
            })
        };
        if let Some(first) = queue.pop() {
            for n in [1, 2] {
                let node = node();
                node.value.store(n, Relaxed);
                queue.push(node).unwrap();
            }
            let mine = queue.pop().map(|node| node.value.load(Relaxed));
            // The first node is pushed again, at its old address. So the other thread's exchange
            // can't distinguish this push from the first one.
            first.value.store(3, Relaxed);
            queue.push(first).unwrap();
            let others = other.join().unwrap();
            let rest: Vec<_> = std::iter::from_fn(|| queue.pop())
                .map(|node| node.value.load(Relaxed))
                .collect();
            assert_eq!(
                mine.is_some() as usize + others.is_some() as usize + rest.len(),
                3
            );
            assert!(others != Some(3) || rest.is_empty(), "3 overtook {rest:?}");
        }
    });
}

/// Two threads each pop one of two older items. The first pop moves these items to the list. One of
/// the threads pushes a third item before its pop.
///
/// Fails if a push to a LISTED queue makes it ONE.
#[test]
fn only_node_does_not_overtake_nodes_that_move() {
    model(|| {
        let queue = Arc::new(Queue::new());
        queue.push(node(0)).unwrap();
        queue.push(node(1)).unwrap();
        let other = {
            let queue = queue.clone();
            thread::spawn(move || queue.pop().map(|node| node.value))
        };
        queue.push(node(2)).unwrap();
        let mine = queue.pop().map(|node| node.value);
        assert!(mine < Some(2), "{mine:?} was taken before an older one");
        let mut got = vec![mine, other.join().unwrap()];
        got.extend(drain(&queue).into_iter().map(Some));
        got.sort_unstable();
        assert_eq!(got, [Some(0), Some(1), Some(2)]);
    });
}

/// A consumer takes the list's last item. A thread that then finds the queue empty, and pushes one
/// item, reads a length of one.
///
/// Fails if `len` of a queue that is ONE includes the list's stale length.
#[test]
fn len_after_a_pop_n_counts_one_push_as_one() {
    model(|| {
        let queue = Arc::new(Queue::new());
        queue
            .push_batch([0, 1].map(node).into_iter().collect())
            .unwrap();
        assert_eq!(queue.pop().unwrap().value, 0);
        let other = {
            let queue = queue.clone();
            thread::spawn(move || queue.pop_n(3).len())
        };
        if queue.is_empty() {
            queue.push(node(2)).unwrap();
            assert_eq!(queue.len(), 1);
        } else {
            assert!(queue.len() <= 1);
        }
        assert_eq!(other.join().unwrap(), 1);
    });
}

/// A thread counts the items, while another one pushes an item and pops one.
///
/// Fails if a count moves the items without the lock, or leaves EMPTY behind.
#[test]
fn count_beside_a_push_and_a_pop_is_exact() {
    model(|| {
        let queue = Arc::new(Queue::new());
        queue.push(node(0)).unwrap();
        queue.push(node(1)).unwrap();
        let other = {
            let queue = queue.clone();
            thread::spawn(move || {
                queue.push(node(2)).unwrap();
                queue.pop().map(|node| node.value)
            })
        };
        assert!((2..=3).contains(&queue.count()));
        assert!(!queue.is_empty());
        assert_eq!(other.join().unwrap(), Some(0));
        assert_eq!(queue.count(), 2);
        assert_eq!(drain(&queue), [1, 2]);
    });
}

/// Counts of a queue with one item do not put it into the list: the item is taken without the lock.
///
/// Fails if a count takes the only node of the stack.
#[test]
fn count_beside_the_pop_of_the_only_item_is_exact() {
    model(|| {
        let queue = Arc::new(Queue::new());
        queue.push(node(0)).unwrap();
        let other = {
            let queue = queue.clone();
            thread::spawn(move || queue.pop().map(|node| node.value))
        };
        queue.push(node(1)).unwrap();
        assert!((1..=2).contains(&queue.count()));
        assert_eq!(other.join().unwrap(), Some(0));
        assert_eq!(queue.count(), 1);
        assert_eq!(drain(&queue), [1]);
    });
}

/// A thread closes the queue while a consumer moves the stack's items: the close is not lost.
///
/// Fails if `close` does not lock.
#[test]
fn close_racing_a_pop_is_not_lost() {
    model(|| {
        let queue = Arc::new(Queue::new());
        queue
            .push_batch([0, 1].map(node).into_iter().collect())
            .unwrap();
        let other = {
            let queue = queue.clone();
            thread::spawn(move || queue.pop().map(|node| node.value))
        };
        assert!(queue.close());
        assert_eq!(other.join().unwrap(), Some(0));
        assert!(queue.is_closed() && queue.push(node(2)).is_err());
        assert_eq!(drain(&queue), [1]);
    });
}

/// Another thread takes two of three items at once: the length is never 0, and is 1 in the end.
///
/// Fails if the length counts the list alone.
#[test]
fn len_beside_a_pop_n_of_some_is_never_zero() {
    model(|| {
        let queue = Arc::new(Queue::new());
        queue.push_batch((0..3).map(node).collect()).unwrap();
        let other = {
            let queue = queue.clone();
            thread::spawn(move || queue.pop_n(2).len())
        };
        assert!((1..=3).contains(&queue.len()));
        assert_eq!(other.join().unwrap(), 2);
        assert_eq!(queue.len(), 1);
        assert_eq!(drain(&queue), [2]);
    });
}

/// Two consumers pop while another thread pushes: each item comes out once, and in order for each
/// consumer. The model has a bound, because it takes hours without one.
///
/// Fails if a taken stack leaves EMPTY behind.
#[test]
fn two_consumers_and_a_pusher_take_each_item_once() {
    Model::new().bound(2).check(|| {
        let queue = Arc::new(Queue::new());
        let pusher = {
            let queue = queue.clone();
            thread::spawn(move || [0, 1].map(|n| queue.push(node(n)).unwrap()))
        };
        let consumer = {
            let queue = queue.clone();
            thread::spawn(move || queue.pop().map(|node| node.value))
        };
        let mut got = Vec::from_iter(queue.pop().map(|node| node.value));
        pusher.join().unwrap();
        got.extend(drain(&queue));
        assert!(got.is_sorted());
        got.extend(consumer.join().unwrap());
        got.sort_unstable();
        assert_eq!(got, [0, 1]);
    });
}

/// A batch goes behind an item that was pushed before it, and is queued or handed back whole.
///
/// Fails if the consumer that takes the stack also reverses the nodes of a chain.
#[test]
fn batch_behind_a_push_racing_close_stays_whole() {
    model(|| {
        let queue = Arc::new(Queue::new());
        let other = {
            let queue = queue.clone();
            thread::spawn(move || {
                let pushed = queue.push(node(0)).is_ok();
                let batch = (1..3).map(node).collect();
                let back = queue.push_batch(batch).err();
                (pushed, back.map_or(0, |Closed(batch)| batch.len()))
            })
        };
        assert!(queue.close());
        let early = queue.pop_n(9);
        let seen: Vec<_> = early.into_iter().map(|node| node.value).collect();
        let (pushed, back) = other.join().unwrap();
        assert!(queue.is_empty(), "an item came in after the close");
        let expected = [0, 1, 2];
        let from = usize::from(!pushed);
        assert_eq!(seen, expected[from.min(3 - back)..3 - back]);
    });
}

/// A batch that is handed back after a failed exchange is the same list as before the push.
///
/// Fails if a push checks CLOSED only before its first exchange, or if its exchange succeeds
/// although `close` has set CLOSED since.
#[test]
fn batch_racing_close_is_handed_back_unchanged() {
    model(|| {
        let queue = Arc::new(Queue::new());
        let other = {
            let queue = queue.clone();
            thread::spawn(move || {
                let back = queue.push_batch((0..2).map(node).collect()).err();
                back.map(|Closed(mut batch)| {
                    batch.push_back(node(2));
                    Vec::from_iter(batch.into_iter().map(|node| node.value))
                })
            })
        };
        queue.requeue(node(3));
        assert!(queue.close());
        let seen = queue.pop_n(9).len();
        match other.join().unwrap() {
            None => assert_eq!(seen, 3),
            Some(back) => assert_eq!((seen, back), (1, vec![0, 1, 2])),
        }
        assert!(queue.is_empty(), "items came in after the close");
    });
}

/// Fails if a push hands a node back with the link that it wrote for a failed exchange.
#[test]
fn node_handed_back_by_a_lost_exchange_can_be_queued() {
    model(|| {
        let queue = Arc::new(Queue::new());
        queue.push(node(0)).unwrap();
        let other = {
            let queue = queue.clone();
            thread::spawn(move || {
                if let Err(Closed(node)) = queue.push(node(1)) {
                    queue.requeue(node);
                }
            })
        };
        queue.requeue(node(2));
        queue.close();
        other.join().unwrap();
        assert_eq!(drain(&queue).len(), 3);
    });
}

/// An item is queued or handed back.
///
/// Fails if a push does not check CLOSED again after a failed exchange.
#[test]
fn push_racing_close_queues_or_hands_back() {
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

/// Fails if `is_closed` loads with Relaxed.
#[test]
fn thread_that_finds_the_queue_closed_sees_earlier_writes() {
    model(|| {
        let shared = Arc::new((Queue::new(), AtomicUsize::new(0)));
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.1.store(1, Relaxed);
                shared.0.close();
            })
        };
        if shared.0.is_closed() {
            assert_eq!(shared.1.load(Relaxed), 1);
        }
        other.join().unwrap();
    });
}

/// Rule 5: the pusher sees the sleeper, or the sleeper sees the item.
///
/// Fails if either fence is dropped (the negative model below).
#[test]
fn push_and_last_look_do_not_both_miss() {
    model(|| push_and_last_look(|| fence(SeqCst)));
}

#[test]
fn push_and_last_look_without_fences_both_miss() {
    model_must_fail("saw_item || saw_sleeper", || push_and_last_look(|| ()));
}

/// A queue is dropped while a thread still looks at it: the model fails. Every model of a drop
/// relies on that.
///
/// Fails if `Stack::retire` does nothing.
#[test]
fn look_at_a_dropped_queue_fails_the_model() {
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

/// A dropped queue drops all its items.
///
/// Fails if the list's drop does not drop the list's items: the leak then fails the model.
#[test]
fn dropped_queue_drops_its_items() {
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
