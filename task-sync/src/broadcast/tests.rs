//! Tests of a channel on one thread, some with a second one that only waits.
use super::{
    Receiver, Sender, channel,
    error::{RecvError, SendError, TryRecvError},
};
use crate::testing::{Random, Woken, now, poll, seeds};
use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    sync::Arc,
    task::{Poll, Wake, Waker},
};

#[test]
fn waiting_receivers_are_woken_once_each() {
    let (tx, mut first) = channel(2);
    let mut second = tx.subscribe();
    let ((a, waker_a), (b, waker_b)) = (Woken::new(), Woken::new());
    let mut waits = [Box::pin(first.recv()), Box::pin(second.recv())];
    assert!(poll(&mut waits[0], &waker_a).is_pending());
    assert!(poll(&mut waits[1], &waker_b).is_pending());
    tx.send(1).unwrap();
    tx.send(2).unwrap();
    assert_eq!((a.take(), b.take()), (1, 1));
    for wait in &mut waits {
        assert_eq!(poll(wait, Waker::noop()), Poll::Ready(Ok(1)));
    }
    drop(waits);
    assert_eq!((first.try_recv(), second.try_recv()), (Ok(2), Ok(2)));
}

/// Fails if a pass of wakes leaves out a list, or if the end leaves out the lists of later
/// receivers.
#[test]
fn many_receivers_are_woken_once_each_and_listed() {
    let (tx, first) = channel(1);
    let mut receivers: Vec<_> = (0..40).map(|_| first.resubscribe()).collect();
    let (woken, waker) = Woken::new();
    for round in 0..2 {
        let mut waits: Vec<_> = receivers.iter_mut().map(|it| Box::pin(it.recv())).collect();
        for wait in &mut waits {
            assert!(poll(wait, &waker).is_pending());
        }
        let mut listed = 0;
        first.for_each_waiter(|_| listed += 1);
        assert_eq!((listed, woken.take()), (40, 0));
        tx.send(round).unwrap();
        assert_eq!(woken.take(), 40);
        for wait in &mut waits {
            assert_eq!(poll(wait, &waker), Poll::Ready(Ok(round)));
        }
    }
    let mut waits: Vec<_> = receivers.iter_mut().map(|it| Box::pin(it.recv())).collect();
    for wait in &mut waits {
        assert!(poll(wait, &waker).is_pending());
    }
    // A wait that is dropped is in no list any more.
    waits.truncate(30);
    drop(tx);
    assert_eq!(woken.take(), 30);
    for wait in &mut waits {
        assert_eq!(poll(wait, &waker), Poll::Ready(Err(RecvError::Closed)));
    }
}

#[test]
fn poll_with_another_waker_replaces_the_first() {
    let (tx, mut rx) = channel(2);
    let ((a, waker_a), (b, waker_b)) = (Woken::new(), Woken::new());
    let mut wait = Box::pin(rx.recv());
    assert!(poll(&mut wait, &waker_a).is_pending());
    assert!(poll(&mut wait, &waker_b).is_pending());
    tx.send(1).unwrap();
    assert_eq!((a.take(), b.take()), (0, 1));
    assert_eq!(poll(&mut wait, &waker_a), Poll::Ready(Ok(1)));
}

#[test]
fn poll_before_the_wake_takes_the_value() {
    let (tx, mut rx) = channel(2);
    let (woken, waker) = Woken::new();
    // The task is polled again for another reason, after the send.
    for n in 0..3 {
        let mut wait = Box::pin(rx.recv());
        assert!(poll(&mut wait, &waker).is_pending());
        tx.send(n).unwrap();
        assert_eq!(woken.take(), 1);
        assert_eq!(poll(&mut wait, &waker), Poll::Ready(Ok(n)));
    }
}

/// A receive that is dropped after any number of polls takes no value, wherever the send comes.
#[test]
fn dropped_receives_lose_no_value() {
    for polls in 0..3 {
        for send_after in 0..=polls {
            let (tx, mut rx) = channel(2);
            let mut got = None;
            {
                let mut wait = Box::pin(rx.recv());
                for done in 0..polls {
                    if done == send_after {
                        tx.send(7).unwrap();
                    }
                    if let Poll::Ready(value) = poll(&mut wait, Waker::noop()) {
                        got = Some(value);
                        break;
                    }
                }
            }
            if send_after == polls {
                tx.send(7).unwrap();
            }
            assert_eq!(got.unwrap_or_else(|| now(rx.recv())), Ok(7));
            assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
            tx.send(8).unwrap();
            assert_eq!(rx.try_recv(), Ok(8));
        }
    }
}

#[test]
fn lagging_receiver_goes_on_with_the_oldest_value() {
    let (tx, mut rx) = channel(4);
    (0..11).for_each(|n| assert_eq!(tx.send(n), Ok(1)));
    assert_eq!(rx.len(), 11);
    assert_eq!(now(rx.recv()), Err(RecvError::Lagged(7)));
    assert_eq!(rx.len(), 4);
    (7..11).for_each(|n| assert_eq!(rx.try_recv(), Ok(n)));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
}

#[test]
fn last_sender_closes_after_the_values() {
    let (tx, mut rx) = channel(4);
    let other = tx.clone();
    tx.send(1).unwrap();
    drop(tx);
    assert!(!rx.is_closed());
    let mut late = other.subscribe();
    drop(other);
    assert!(rx.is_closed());
    assert_eq!(rx.try_recv(), Ok(1));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
    assert_eq!(now(late.recv()), Err(RecvError::Closed));
}

#[test]
fn close_wakes_all_waiting_receivers() {
    let (tx, mut rx) = channel::<u8>(4);
    let mut other = rx.resubscribe();
    let (woken, waker) = Woken::new();
    let mut waits = [Box::pin(rx.recv()), Box::pin(other.recv())];
    for wait in &mut waits {
        assert!(poll(wait, &waker).is_pending());
    }
    drop(tx);
    assert_eq!(woken.take(), 2);
    for wait in &mut waits {
        assert_eq!(poll(wait, &waker), Poll::Ready(Err(RecvError::Closed)));
    }
}

#[test]
fn closed_waits_for_the_last_receiver_and_looks_again() {
    let (tx, rx) = channel::<u8>(4);
    let (woken, waker) = Woken::new();
    let mut closed = Box::pin(tx.closed());
    assert!(poll(&mut closed, &waker).is_pending());
    drop(rx);
    assert_eq!(woken.take(), 1);
    let rx = tx.subscribe();
    assert!(poll(&mut closed, &waker).is_pending());
    drop(rx);
    assert_eq!(woken.take(), 1);
    assert!(poll(&mut closed, &waker).is_ready());
}

#[test]
fn dropped_receiver_releases_its_values() {
    let (tx, rx) = channel(4);
    let mut other = tx.subscribe();
    let value = Arc::new(());
    for _ in 0..6 {
        tx.send(value.clone()).unwrap();
    }
    assert_eq!((tx.len(), Arc::strong_count(&value)), (4, 5));
    drop(rx);
    assert_eq!((tx.len(), Arc::strong_count(&value)), (4, 5));
    assert_eq!(other.try_recv(), Err(TryRecvError::Lagged(2)));
    drop(other.try_recv());
    assert_eq!((tx.len(), Arc::strong_count(&value)), (3, 4));
    drop(other);
    assert_eq!((tx.len(), Arc::strong_count(&value)), (0, 1));
}

#[test]
fn value_whose_drop_uses_the_channel_is_harmless() {
    #[derive(Clone)]
    struct Reentrant(Option<Sender<Reentrant>>);
    impl Drop for Reentrant {
        fn drop(&mut self) {
            if let Some(tx) = self.0.take() {
                assert!(tx.len() <= 1);
                let _ = tx.send(Reentrant(None));
                drop(tx.subscribe());
            }
        }
    }
    let (tx, rx) = channel(1);
    // Replaced by a send, dropped with a receiver, and refused.
    tx.send(Reentrant(Some(tx.clone()))).unwrap();
    tx.send(Reentrant(Some(tx.clone()))).unwrap();
    tx.send(Reentrant(Some(tx.clone()))).unwrap();
    drop(rx);
    assert!(tx.send(Reentrant(Some(tx.clone()))).is_err());
    assert!(tx.is_empty());
}

/// A value whose clone runs a function.
struct OnClone<F: Fn()>(Arc<F>);

impl<F: Fn()> Clone for OnClone<F> {
    fn clone(&self) -> Self {
        (self.0)();
        Self(self.0.clone())
    }
}

type Boxed = Box<dyn Fn() + Send + Sync>;

/// The clone sends, so that a send replaces the value that is being cloned.
#[test]
fn clone_that_uses_the_channel_is_harmless() {
    type Value = OnClone<Boxed>;
    let (tx, mut rx) = channel::<Value>(1);
    let mut other = tx.subscribe();
    let sender = tx.clone();
    let uses: Arc<Boxed> = Arc::new(Box::new(move || {
        let mut rx = sender.subscribe();
        let nothing: Arc<Boxed> = Arc::new(Box::new(|| ()));
        assert!(sender.send(OnClone(nothing.clone())).is_ok());
        assert!(rx.try_recv().is_ok());
        assert!(sender.send(OnClone(nothing)).is_ok());
    }));
    assert!(tx.send(OnClone(uses.clone())).is_ok());
    drop(rx.try_recv().ok().unwrap());
    assert_eq!(Arc::strong_count(&uses), 1, "it was replaced, and dropped");
    for rx in [&mut rx, &mut other] {
        assert!(
            rx.try_recv()
                .is_err_and(|error| matches!(error, TryRecvError::Lagged(_)))
        );
        assert!(rx.try_recv().is_ok());
    }
    assert!(tx.is_empty());
}

/// A clone ends only after another thread has sent, subscribed, and dropped a receiver.
#[test]
fn slow_clone_stops_nobody_else() {
    let (begun, begin) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel();
    let ended = std::sync::Mutex::new(ended);
    let slow = Arc::new(move || {
        begun.send(()).unwrap();
        ended.lock().unwrap().recv().unwrap();
    });
    let (tx, mut rx) = channel(2);
    let mut dropped = Some(tx.subscribe());
    let mut late = tx.subscribe();
    assert!(tx.send(Some(OnClone(slow))).is_ok());
    let receiver = std::thread::spawn(move || (rx.try_recv().is_ok(), rx));
    begin.recv().unwrap();
    let mut fresh = tx.subscribe();
    drop(dropped.take());
    for _ in 0..3 {
        assert!(tx.send(None).is_ok());
        assert!(matches!(fresh.try_recv(), Ok(None)));
    }
    assert!(matches!(late.try_recv(), Err(TryRecvError::Lagged(2))));
    end.send(()).unwrap();
    let (is_received, mut rx) = receiver.join().unwrap();
    assert!(is_received);
    assert!(matches!(rx.try_recv(), Err(TryRecvError::Lagged(1))));
}

/// A clone that receives its own value would wait for itself. It may receive others.
#[test]
fn clone_that_receives_its_value_panics() {
    type Value = OnClone<Boxed>;
    let (tx, mut rx) = channel::<Value>(2);
    let other = std::sync::Mutex::new(tx.subscribe());
    let mut last = tx.subscribe();
    let receives = Box::new(move || assert!(other.lock().unwrap().try_recv().is_ok())) as Boxed;
    assert!(tx.send(OnClone(Arc::new(receives))).is_ok());
    let received = catch_unwind(AssertUnwindSafe(|| rx.try_recv().is_ok()));
    let panic = *received.unwrap_err().downcast::<&str>().unwrap();
    assert_eq!(panic, "the clone of a broadcast value receives that value");
    // The first two count as having got it.
    assert_eq!(tx.len(), 1);
    assert!(last.try_recv().is_ok());
    assert!(tx.is_empty());
}

/// A panic in the drop of a value lets the receiver give up the values behind it.
#[test]
fn panic_of_a_drop_releases_the_other_values() {
    struct Bomb {
        _value: Rc<()>,
        panics: bool,
    }
    impl Clone for Bomb {
        fn clone(&self) -> Self {
            unreachable!("each value goes to the last receiver")
        }
    }
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(!self.panics, "in the drop");
        }
    }
    let (tx, rx) = channel(8);
    let value = Rc::new(());
    for n in 0..6 {
        let (_value, panics) = (value.clone(), n % 2 == 1);
        assert!(tx.send(Bomb { _value, panics }).is_ok());
    }
    assert!(catch_unwind(AssertUnwindSafe(|| drop(rx))).is_err());
    assert_eq!((tx.len(), Rc::strong_count(&value)), (0, 1));
}

#[test]
fn waker_that_uses_the_channel_is_harmless() {
    struct Reentrant(Sender<u32>);
    impl Wake for Reentrant {
        fn wake(self: Arc<Self>) {
            let _ = self.0.receiver_count();
            let n = self.0.len() as u32;
            if n < 3 {
                self.0.send(n).unwrap();
            }
        }
    }
    let (tx, mut rx) = channel(4);
    let waker = Waker::from(Arc::new(Reentrant(tx.clone())));
    let mut wait = Box::pin(rx.recv());
    assert!(poll(&mut wait, &waker).is_pending());
    tx.send(0).unwrap();
    assert_eq!(poll(&mut wait, &waker), Poll::Ready(Ok(0)));
    drop(wait);
    assert_eq!(rx.try_recv(), Ok(1));
}

#[test]
fn panic_of_a_clone_passes_the_value() {
    struct Bomb(bool);
    impl Clone for Bomb {
        fn clone(&self) -> Self {
            assert!(!self.0, "in the clone");
            Self(false)
        }
    }
    let (tx, mut rx) = channel(4);
    let mut other = tx.subscribe();
    assert!(tx.send(Bomb(true)).is_ok());
    assert!(tx.send(Bomb(false)).is_ok());
    let panicked = catch_unwind(AssertUnwindSafe(|| now(rx.recv()).is_ok()));
    assert!(panicked.is_err());
    assert!(!rx.try_recv().unwrap().0);
    // The other one is the last for both, and needs no clone.
    assert!(other.try_recv().unwrap().0);
    assert!(!other.try_recv().unwrap().0);
    assert!(tx.is_empty());
}

#[test]
fn panic_of_a_waker_wakes_the_others() {
    struct Bomb;
    impl Wake for Bomb {
        fn wake(self: Arc<Self>) {
            panic!("in the wake");
        }
    }
    let (tx, mut rx) = channel(4);
    let mut other = tx.subscribe();
    let (woken, waker) = Woken::new();
    let mut waits = [Box::pin(rx.recv()), Box::pin(other.recv())];
    let wakers = [Waker::from(Arc::new(Bomb)), waker];
    for (wait, waker) in waits.iter_mut().zip(&wakers) {
        assert!(poll(wait, waker).is_pending());
    }
    assert_eq!(tx.send(1), Ok(2));
    assert_eq!(woken.take(), 1);
}

/// As if so many receivers had been forgotten.
#[test]
fn receivers_beyond_the_limit_panic() {
    use super::ring::MAX_RECEIVERS;
    let (tx, mut rx) = channel(1);
    rx.shared.tail().receivers = MAX_RECEIVERS;
    assert!(catch_unwind(|| tx.subscribe()).is_err());
    assert!(catch_unwind(|| rx.resubscribe()).is_err());
    assert_eq!(tx.send(1), Ok(MAX_RECEIVERS));
    assert_eq!(rx.try_recv(), Ok(1));
    rx.shared.tail().receivers = 1;
    assert_eq!(tx.send(2), Ok(1));
    assert_eq!(rx.try_recv(), Ok(2));
}

#[test]
#[should_panic(expected = "at least one value")]
fn capacity_of_zero_panics() {
    let _ = channel::<u8>(0);
}

#[test]
#[should_panic(expected = "at most")]
fn capacity_that_overflows_panics() {
    let _ = Sender::<u8>::new(usize::MAX / 2 + 1);
}

#[test]
fn values_that_are_not_sync_are_cloned_one_at_a_time() {
    #[derive(Clone)]
    struct NotSync(std::cell::Cell<u8>);
    let (tx, mut rx) = channel(64);
    let mut other = tx.subscribe();
    let thread = std::thread::spawn(move || {
        (0..1000)
            .map(|_| crate::blocking::block_on(other.recv()))
            .filter(|received| matches!(received, Ok(NotSync(_))))
            .count()
    });
    for n in 0..1000_u32 {
        let _ = tx.send(NotSync(std::cell::Cell::new(n as u8)));
        if let Ok(NotSync(cell)) = rx.try_recv() {
            cell.set(0);
        }
    }
    drop(tx);
    assert!(thread.join().unwrap() <= 1000);
}

/// A channel as simple as possible: all values, and each receiver's place.
struct Model {
    sent: Vec<u32>,
    capacity: usize,
    receivers: Vec<usize>,
    senders: usize,
}

impl Model {
    fn receive(&mut self, receiver: usize) -> Result<u32, TryRecvError> {
        let next = &mut self.receivers[receiver];
        let oldest = self.sent.len().saturating_sub(self.capacity);
        if *next < oldest {
            let missed = oldest - *next;
            *next = oldest;
            return Err(TryRecvError::Lagged(missed as u64));
        }
        if *next < self.sent.len() {
            *next += 1;
            return Ok(self.sent[*next - 1]);
        }
        Err(match self.senders {
            0 => TryRecvError::Closed,
            _ => TryRecvError::Empty,
        })
    }

    /// The values that a receiver still is to get.
    fn kept(&self) -> usize {
        let oldest = self.sent.len().saturating_sub(self.capacity);
        let next = self.receivers.iter().min().copied();
        self.sent.len() - next.unwrap_or(usize::MAX).clamp(oldest, self.sent.len())
    }
}

/// Runs random operations on a channel and on its model.
fn compare(seed: u64, operations: usize) {
    let mut random = Random::new(seed);
    let capacity = 1 << random.below(4);
    let (tx, rx) = channel(capacity);
    let weak = tx.downgrade();
    let mut model = Model {
        sent: Vec::new(),
        capacity,
        receivers: vec![0],
        senders: 1,
    };
    let mut senders = VecDeque::from([tx]);
    let mut receivers: Vec<Receiver<Rc<u32>>> = vec![rx];
    for n in 0..operations as u32 {
        let receiver = random.below(receivers.len().max(1));
        match random.below(if n + 30 < operations as u32 { 20 } else { 24 }) {
            0..6 if !senders.is_empty() => match senders[0].send(Rc::new(n)) {
                Ok(count) => {
                    assert_eq!(count, model.receivers.len());
                    model.sent.push(n);
                }
                Err(SendError(value)) => {
                    assert_eq!((*value, model.receivers.len()), (n, 0));
                }
            },
            6..14 if !receivers.is_empty() => {
                let received = receivers[receiver].try_recv().map(|value| *value);
                assert_eq!(received, model.receive(receiver));
            }
            14 if receivers.len() < 5 && !senders.is_empty() => {
                receivers.push(senders[0].subscribe());
                model.receivers.push(model.sent.len());
            }
            15 if receivers.len() < 5 && !receivers.is_empty() => {
                receivers.push(receivers[receiver].resubscribe());
                model.receivers.push(model.sent.len());
            }
            16 if !receivers.is_empty() => {
                receivers.swap_remove(receiver);
                model.receivers.swap_remove(receiver);
            }
            17 => {
                let upgraded = weak.upgrade();
                assert_eq!(upgraded.is_some(), model.senders > 0);
                model.senders += usize::from(upgraded.is_some());
                senders.extend(upgraded);
            }
            18 if senders.len() > 1 => {
                model.senders -= 1;
                senders.pop_front();
            }
            20.. if !senders.is_empty() => {
                model.senders -= 1;
                senders.pop_front();
            }
            _ => {}
        }
        for (receiver, next) in receivers.iter().zip(&model.receivers) {
            assert_eq!(receiver.len(), model.sent.len() - next);
        }
        if let Some(tx) = senders.front() {
            assert_eq!(tx.len(), model.kept());
            assert_eq!(tx.receiver_count(), receivers.len());
            assert_eq!(tx.strong_count(), senders.len());
        }
    }
}

#[test]
fn random_operations_agree_with_the_model() {
    seeds(500).for_each(|seed| compare(seed, 500));
}

/// Threads receive and send at the same time. Each receiver gets an increasing sequence, and the
/// values that it got and missed are all.
#[test]
fn threads_get_or_miss_each_value_in_order() {
    let (tx, _) = channel::<Arc<u64>>(8);
    let sent: u64 = if cfg!(debug_assertions) {
        2_000
    } else {
        50_000
    };
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let mut rx = tx.subscribe();
            std::thread::spawn(move || {
                let (mut next, mut count) = (0, 0);
                loop {
                    match rx.blocking_recv() {
                        Ok(value) => {
                            assert_eq!(*value, next);
                            next += 1;
                            count += 1;
                        }
                        Err(RecvError::Lagged(missed)) => {
                            next += missed;
                            count += missed;
                        }
                        Err(RecvError::Closed) => return count,
                    }
                }
            })
        })
        .collect();
    for n in 0..sent {
        tx.send(Arc::new(n)).unwrap();
    }
    drop(tx);
    for thread in threads {
        assert_eq!(thread.join().unwrap(), sent);
    }
}

#[test]
fn waiting_receive_takes_seven_words() {
    let (_tx, mut rx) = channel::<u64>(1);
    assert!(size_of_val(&rx.recv()) <= 7 * size_of::<usize>());
}
