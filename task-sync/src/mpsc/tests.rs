use super::error::*;
use super::*;
use crate::testing::{Random, Woken, seeds};
use core::{
    future::Future,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};
use futures::executor::block_on;
use std::{
    cell::Cell,
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    thread,
};

fn noop() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// Polls a future once.
fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut noop())
}

#[test]
fn messages_of_many_blocks_arrive_in_order() {
    let (tx, mut rx) = unbounded_channel();
    for n in 0..1_000 {
        tx.send(n).unwrap();
    }
    assert_eq!(rx.len(), 1_000);
    for n in 0..1_000 {
        assert_eq!(rx.try_recv(), Ok(n));
        tx.send(1_000 + n).unwrap();
        assert_eq!(rx.len(), 1_000);
    }
    drop(tx);
    assert!(rx.is_closed());
    let mut buffer = Vec::new();
    assert_eq!(block_on(rx.recv_many(&mut buffer, 300)), 300);
    assert_eq!(rx.blocking_recv_many(&mut buffer, 3_000), 700);
    assert!(buffer.into_iter().eq(1_000..2_000));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    assert_eq!((rx.len(), rx.is_empty()), (0, true));
}

#[test]
fn receiver_that_waits_is_woken_once() {
    let (tx, mut rx) = unbounded_channel();
    let (woken, waker) = Woken::new();
    let mut cx = Context::from_waker(&waker);
    for n in 0..200 {
        assert!(rx.poll_recv(&mut cx).is_pending());
        assert!(rx.poll_recv(&mut cx).is_pending());
        tx.send(n).unwrap();
        tx.send(n).unwrap();
        assert_eq!(woken.times(), n + 1);
        for _ in 0..2 {
            assert_eq!(rx.poll_recv(&mut cx), Poll::Ready(Some(n)));
        }
    }
    assert!(rx.poll_recv(&mut cx).is_pending());
    drop(tx);
    assert_eq!(woken.times(), 201);
    assert_eq!(rx.poll_recv(&mut cx), Poll::Ready(None));
}

#[test]
fn close_of_unbounded_channel_keeps_what_was_sent() {
    let (tx, mut rx) = unbounded_channel();
    tx.send(1).unwrap();
    tx.send(2).unwrap();
    rx.close();
    rx.close();
    assert_eq!(tx.send(3), Err(SendError(3)));
    assert_eq!(tx.send(4), Err(SendError(4)));
    assert_eq!(rx.len(), 2);
    assert!(tx.is_closed() && rx.is_closed());
    assert_eq!(rx.poll_recv(&mut noop()), Poll::Ready(Some(1)));
    assert_eq!(rx.try_recv(), Ok(2));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    assert_eq!(rx.poll_recv(&mut noop()), Poll::Ready(None));
    drop(tx);
    assert_eq!(rx.poll_recv(&mut noop()), Poll::Ready(None));
}

#[test]
fn close_of_bounded_channel_waits_for_permits() {
    let (tx, mut rx) = channel(3);
    let permit = tx.try_reserve().unwrap();
    let other = tx.clone().try_reserve_owned().unwrap();
    tx.try_send(1).unwrap();
    rx.close();
    assert_eq!(tx.try_send(2), Err(TrySendError::Closed(2)));
    assert!(tx.try_reserve().is_err());
    assert_eq!(rx.try_recv(), Ok(1));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    let (woken, waker) = Woken::new();
    let mut cx = Context::from_waker(&waker);
    assert!(rx.poll_recv(&mut cx).is_pending());
    permit.send(7);
    assert_eq!(woken.times(), 1);
    assert_eq!(rx.poll_recv(&mut cx), Poll::Ready(Some(7)));
    assert!(rx.poll_recv(&mut cx).is_pending());
    drop(other);
    assert_eq!(woken.times(), 2);
    assert_eq!(rx.poll_recv(&mut cx), Poll::Ready(None));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
}

#[test]
fn close_of_receiver_ends_the_senders_that_wait() {
    let (tx, mut rx) = channel(2);
    let permit = tx.try_reserve().unwrap();
    let mut send = pin!(tx.reserve_many(2));
    let mut other = pin!(tx.send(2));
    assert!(poll(send.as_mut()).is_pending());
    assert!(poll(other.as_mut()).is_pending());
    assert_eq!(tx.capacity(), 0);
    rx.close();
    assert_eq!(tx.capacity(), 1);
    assert!(matches!(poll(send), Poll::Ready(Err(SendError(())))));
    assert_eq!(poll(other), Poll::Ready(Err(SendError(2))));
    drop(permit);
    assert_eq!(rx.poll_recv(&mut noop()), Poll::Ready(None));
}

#[test]
fn receive_gives_room_to_the_first_that_waits() {
    let (tx, mut rx) = channel(2);
    tx.try_send(1).unwrap();
    tx.try_send(2).unwrap();
    let (woken, waker) = Woken::new();
    let mut cx = Context::from_waker(&waker);
    let mut many = Box::pin(tx.reserve_many(2));
    assert!(many.as_mut().poll(&mut cx).is_pending());
    let mut send = pin!(tx.send(3));
    assert!(poll(send.as_mut()).is_pending());
    assert_eq!(rx.try_recv(), Ok(1));
    assert_eq!((woken.times(), tx.capacity()), (0, 0));
    assert_eq!(tx.try_send(9), Err(TrySendError::Full(9)));
    assert!(poll(send.as_mut()).is_pending());
    drop(many);
    assert_eq!(poll(send), Poll::Ready(Ok(())));
    assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(2), Ok(3)));
    assert_eq!(tx.capacity(), 2);
    assert_eq!(tx.try_send(9), Ok(()));
}

#[test]
fn dropped_future_gives_back_what_it_was_granted() {
    let (tx, mut rx) = channel(1);
    tx.try_send(1).unwrap();
    let mut first = Box::pin(tx.reserve());
    let mut second = pin!(tx.reserve());
    let (woken, waker) = Woken::new();
    assert!(poll(first.as_mut()).is_pending());
    assert!(
        second
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    rx.try_recv().unwrap();
    assert_eq!(woken.times(), 0);
    drop(first);
    assert_eq!(woken.times(), 1);
    let Poll::Ready(Ok(permit)) = poll(second) else {
        panic!("the room was lost");
    };
    drop(permit);
    assert_eq!(tx.capacity(), 1);
}

#[test]
fn reservations_beyond_the_capacity_fail() {
    let (tx, rx) = channel::<u8>(2);
    for count in [3, usize::MAX] {
        assert_eq!(
            tx.try_reserve_many(count).unwrap_err(),
            TrySendError::Full(())
        );
        let reserved = poll(pin!(tx.reserve_many(count)));
        assert!(matches!(reserved, Poll::Ready(Err(SendError(())))));
    }
    let permits = tx.try_reserve_many(2).unwrap();
    assert_eq!(tx.try_reserve_many(0).unwrap().len(), 0);
    assert!(poll(pin!(tx.reserve_many(0))).is_ready());
    drop(permits);
    assert_eq!(tx.capacity(), 2);
    drop(rx);
    for count in [0, 1, 3] {
        let error = tx.try_reserve_many(count).unwrap_err();
        assert_eq!(error, TrySendError::Closed(()));
    }
    assert!(catch_unwind(|| channel::<u8>(0)).is_err());
    assert!(catch_unwind(|| channel::<u8>(usize::MAX)).is_err());
    let (tx, mut rx) = channel::<()>(usize::MAX >> 3);
    tx.try_send(()).unwrap();
    assert_eq!(tx.capacity(), (usize::MAX >> 3) - 1);
    assert_eq!(rx.try_recv(), Ok(()));
}

#[test]
fn weak_senders_do_not_keep_the_channel_open() {
    let (tx, mut rx) = channel::<u8>(1);
    let weak = tx.downgrade();
    let other = weak.clone();
    assert_eq!((tx.strong_count(), tx.weak_count()), (1, 2));
    let second = weak.upgrade().unwrap();
    assert!(second.same_channel(&tx));
    assert_eq!(rx.sender_strong_count(), 2);
    drop((tx, other));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    drop(second);
    assert!(weak.upgrade().is_none());
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    assert_eq!((weak.strong_count(), rx.sender_weak_count()), (0, 1));
    drop(rx);
    assert!(weak.upgrade().is_none());
}

#[test]
fn closed_wakes_all_that_wait() {
    let (tx, mut rx) = unbounded_channel::<u8>();
    let tasks = [(); 3].map(|()| Woken::new());
    let mut waits: Vec<_> = tasks.iter().map(|_| Box::pin(tx.closed())).collect();
    for (wait, (_, waker)) in waits.iter_mut().zip(&tasks) {
        let mut cx = Context::from_waker(waker);
        assert!(wait.as_mut().poll(&mut cx).is_pending());
    }
    drop(waits.remove(1));
    rx.close();
    assert_eq!(tasks.each_ref().map(|(woken, _)| woken.times()), [1, 0, 1]);
    for wait in &mut waits {
        assert!(poll(wait.as_mut()).is_ready());
    }
    assert!(poll(pin!(tx.closed())).is_ready());
}

/// A message that counts its drop, and then panics or uses a sender.
struct Dropped(Rc<Cell<u32>>, Then);

enum Then {
    Nothing,
    Panic,
    Send(UnboundedSender<Dropped>),
}

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
        match &self.1 {
            Then::Nothing => {}
            Then::Panic => panic!("the drop of a message"),
            Then::Send(tx) => {
                assert!(tx.is_closed());
                let refused = tx.send(Dropped(self.0.clone(), Then::Nothing));
                assert!(refused.is_err());
            }
        }
    }
}

#[test]
fn drop_of_receiver_drops_each_message_once() {
    let drops = Rc::new(Cell::new(0));
    let (tx, rx) = unbounded_channel();
    let message = |then| Dropped(drops.clone(), then);
    for n in 0..100 {
        let then = if n % 40 == 5 {
            Then::Panic
        } else {
            Then::Nothing
        };
        tx.send(message(then)).unwrap();
    }
    tx.send(message(Then::Send(tx.clone()))).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| drop(rx))).is_err());
    assert_eq!(drops.get(), 102);
    assert_eq!(tx.strong_count(), 1);
    assert!(tx.send(message(Then::Nothing)).is_err());
    drop(tx);
    assert_eq!(Rc::strong_count(&drops), 1);
}

#[test]
fn permit_of_a_dropped_receiver_drops_its_message() {
    let (tx, rx) = channel(1);
    let value = Rc::new(());
    let permit = tx.try_reserve().unwrap();
    drop(rx);
    permit.send(value.clone());
    assert_eq!(Rc::strong_count(&value), 1);
}

#[test]
fn send_until_hands_the_message_back() {
    let (tx, mut rx) = channel(1);
    block_on(async {
        let forever = core::future::pending::<()>;
        tx.send_until(1, forever()).await.unwrap();
        let late = tx.send_until(2, async {}).await;
        assert_eq!(late, Err(SendTimeoutError::Timeout(2)));
        rx.recv().await.unwrap();
        assert_eq!(tx.capacity(), 1);
        rx.close();
        let closed = tx.send_until(3, forever()).await;
        assert_eq!(closed, Err(SendTimeoutError::Closed(3)));
    });
}

#[test]
fn poll_recv_many_counts_what_it_takes() {
    let (tx, mut rx) = channel(4);
    let mut buffer = Vec::new();
    assert_eq!(
        rx.poll_recv_many(&mut noop(), &mut buffer, 0),
        Poll::Ready(0)
    );
    assert!(rx.poll_recv_many(&mut noop(), &mut buffer, 2).is_pending());
    for n in 0..4 {
        tx.try_send(n).unwrap();
    }
    assert_eq!(
        rx.poll_recv_many(&mut noop(), &mut buffer, 3),
        Poll::Ready(3)
    );
    assert_eq!((tx.capacity(), &buffer[..]), (3, &[0, 1, 2][..]));
    drop(tx);
    assert_eq!(
        rx.poll_recv_many(&mut noop(), &mut buffer, 3),
        Poll::Ready(1)
    );
    assert_eq!(
        rx.poll_recv_many(&mut noop(), &mut buffer, 3),
        Poll::Ready(0)
    );
}

#[test]
fn many_threads_lose_no_message() {
    const EACH: u32 = if cfg!(debug_assertions) {
        3_000
    } else {
        50_000
    };
    for capacity in [1, 2, 33] {
        let (tx, mut rx) = channel(capacity);
        let (free, mut rest) = unbounded_channel();
        let senders: Vec<_> = (0..4)
            .map(|by| {
                let (tx, free) = (tx.clone(), free.clone());
                thread::spawn(move || {
                    for n in 0..EACH {
                        tx.blocking_send((by, n)).unwrap();
                        free.send((by, n)).unwrap();
                    }
                })
            })
            .collect();
        drop((tx, free));
        let mut next = [0; 4];
        while let Some((by, n)) = rx.blocking_recv() {
            assert_eq!(n, next[by]);
            next[by] += 1;
        }
        assert_eq!(next, [EACH; 4]);
        let mut next = [0; 4];
        while let Some((by, n)) = rest.blocking_recv() {
            assert_eq!(n, next[by]);
            next[by] += 1;
        }
        assert_eq!(next, [EACH; 4]);
        senders
            .into_iter()
            .for_each(|sender| sender.join().unwrap());
    }
}

#[test]
fn blocks_are_reused() {
    let count = allocations(|| {
        let (tx, mut rx) = unbounded_channel();
        for n in 0..100_000_u32 {
            tx.send(n).unwrap();
            assert_eq!(rx.try_recv(), Ok(n));
        }
    });
    // The channel, and a block that is filled, one that is freed late, and the spare.
    assert!(count <= 4, "{count} allocations");
}

fn allocations(f: impl FnOnce()) -> u64 {
    allocation_counter::measure(f).count_total
}

#[test]
fn handles_and_futures_are_small() {
    let word = size_of::<usize>();
    assert_eq!(size_of::<Option<Sender<u64>>>(), word);
    assert_eq!(size_of::<Option<UnboundedReceiver<u64>>>(), word);
    assert_eq!(size_of::<OwnedPermit<u64>>(), word);
}

/// A bounded channel that does one operation at a time.
#[derive(Default)]
struct Sequential {
    queue: VecDeque<u32>,
    reserved: usize,
    /// Each waiter's name, what it lacks, and what it has.
    waiters: VecDeque<(usize, usize, usize)>,
    /// The waiters that have all they need, and are not polled since.
    granted: Vec<(usize, usize)>,
}

impl Sequential {
    fn room(&self, capacity: usize) -> usize {
        let waiting: usize = self.waiters.iter().map(|waiter| waiter.2).sum();
        let granted: usize = self.granted.iter().map(|granted| granted.1).sum();
        capacity - self.queue.len() - self.reserved - waiting - granted
    }

    fn grant(&mut self, capacity: usize) {
        while let Some(&(name, lacks, has)) = self.waiters.front() {
            let more = self.room(capacity).min(lacks);
            if more < lacks {
                self.waiters[0] = (name, lacks - more, has + more);
                return;
            }
            self.waiters.pop_front();
            self.granted.push((name, has + lacks));
        }
    }
}

/// Random sends, receives, reservations and cancellations, against the sequential model.
fn check_random_operations(seed: u64, operations: usize) {
    let mut random = Random::new(seed);
    let capacity = 1 + random.below(40);
    let (tx, mut rx) = channel(capacity);
    let mut model = Sequential::default();
    let mut permits = Vec::new();
    let mut waits = Vec::new();
    for n in 0..operations {
        match random.below(6) {
            0 => {
                let full = model.room(capacity) == 0 || !model.waiters.is_empty();
                assert_eq!(tx.try_send(n as u32).is_err(), full);
                if !full {
                    model.queue.push_back(n as u32);
                }
            }
            1 => assert_eq!(rx.try_recv().ok(), model.queue.pop_front()),
            2 => {
                let count = random.below(capacity + 1);
                let mut wait = Box::pin(tx.reserve_many(count));
                let (woken, waker) = Woken::new();
                let fits = model.waiters.is_empty() && count <= model.room(capacity);
                match wait.as_mut().poll(&mut Context::from_waker(&waker)) {
                    Poll::Ready(reserved) => {
                        assert!(fits || count == 0);
                        permits.extend(reserved.unwrap());
                        model.reserved += count;
                    }
                    Poll::Pending => {
                        assert!(!fits);
                        model.waiters.push_back((n, count, 0));
                        waits.push((n, count, wait, woken));
                    }
                }
            }
            3 if !waits.is_empty() => {
                let (name, count, mut wait, woken) = waits.swap_remove(random.below(waits.len()));
                let granted = model.granted.iter().position(|granted| granted.0 == name);
                assert_eq!(woken.times(), usize::from(granted.is_some()));
                match poll(wait.as_mut()) {
                    Poll::Ready(reserved) => {
                        model.granted.swap_remove(granted.unwrap());
                        permits.extend(reserved.unwrap());
                        model.reserved += count;
                    }
                    Poll::Pending => {
                        assert!(granted.is_none());
                        drop(wait);
                        model.waiters.retain(|waiter| waiter.0 != name);
                    }
                }
            }
            4 if !waits.is_empty() => {
                let (name, _, wait, _) = waits.swap_remove(random.below(waits.len()));
                drop(wait);
                model.waiters.retain(|waiter| waiter.0 != name);
                model.granted.retain(|granted| granted.0 != name);
            }
            5 if !permits.is_empty() => {
                let permit = permits.swap_remove(random.below(permits.len()));
                model.reserved -= 1;
                if random.below(2) == 0 {
                    permit.send(n as u32);
                    model.queue.push_back(n as u32);
                }
            }
            _ => {}
        }
        model.grant(capacity);
        assert_eq!(tx.capacity(), model.room(capacity));
        assert_eq!(rx.len(), model.queue.len());
    }
}

#[test]
fn random_operations_agree_with_the_model() {
    for seed in seeds(1_000) {
        check_random_operations(seed, 1_000);
    }
}

/// A future that is polled `polls` times and then dropped.
async fn cancelled_after(polls: usize, future: impl Future) {
    let mut future = pin!(future);
    for _ in 0..polls {
        if poll(future.as_mut()).is_ready() {
            return;
        }
    }
}

#[test]
fn cancel_at_each_poll_loses_no_room_and_no_message() {
    for polls in 0..4 {
        for received in 0..3 {
            let (tx, mut rx) = channel(2);
            block_on(cancelled_after(polls, rx.recv()));
            tx.try_send(1).unwrap();
            tx.try_send(2).unwrap();
            let mut sends = (
                Box::pin(cancelled_after(polls, tx.send(3))),
                Box::pin(tx.send(4)),
            );
            let _ = poll(sends.0.as_mut());
            let _ = poll(sends.1.as_mut());
            for n in 0..received {
                assert_eq!(rx.try_recv(), Ok(n + 1));
            }
            drop(sends.0);
            let sent = poll(sends.1.as_mut()).is_ready();
            assert_eq!(sent, received > 0);
            drop(sends.1);
            let mut left = 0;
            while rx.try_recv().is_ok() {
                left += 1;
            }
            assert_eq!(left, 2 - received + usize::from(sent) as i32);
            assert_eq!(tx.capacity(), 2);
        }
    }
}

/// The receiver that waits is listed after the senders, and is woken, so that it registers again.
/// It is woken also if the function panics.
#[test]
fn waiting_receiver_is_listed_and_woken() {
    let (tx, mut rx) = channel::<u32>(1);
    let (woken, waker) = Woken::new();
    // `will_wake` holds of clones. The compiler may give the first waker a table of its own.
    let waker = waker.clone();
    let list = || {
        let mut list = Vec::new();
        tx.for_each_waiter(|task| list.push((task.waker().will_wake(&waker), task.needed())));
        list
    };
    assert_eq!(list(), []);
    for times in 1..3 {
        assert!(rx.poll_recv(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!(list(), [(true, 1)]);
        assert_eq!(woken.times(), times);
    }
    assert_eq!(list(), [], "it has yet to be polled");
    assert!(rx.poll_recv(&mut Context::from_waker(&waker)).is_pending());
    let panics = AssertUnwindSafe(|| tx.for_each_waiter(|_| panic!("in the function")));
    assert!(catch_unwind(panics).is_err());
    assert_eq!(woken.times(), 3);
    let (tx, mut rx) = unbounded_channel::<u32>();
    assert!(rx.poll_recv(&mut Context::from_waker(&waker)).is_pending());
    tx.for_each_waiter(|task| assert_eq!(task.needed(), 1));
    assert_eq!(woken.times(), 4);
}
