//! Each future of the crate is polled some times and then dropped, with an event before one of the
//! polls, before the drop, or after it. Nothing is lost or doubled, wherever the event comes.
use std::{
    future::{Future, pending},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
};
use task_sync::{
    Barrier, Mutex, Notify, OnceCell, RwLock, Semaphore, SetOnce, broadcast, mpsc, oneshot, watch,
};

fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Returns the output of a future, if its first poll is ready.
fn now<F: Future>(future: F) -> Option<F::Output> {
    match poll(pin!(future)) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// A number of polls. The event comes before the poll of its number, or before or after the drop.
#[derive(Clone, Copy)]
struct Cancel {
    polls: usize,
    event_at: usize,
}

impl Cancel {
    /// Runs a scenario for each number of polls and each place of the event.
    fn each(scenario: impl Fn(Self)) {
        for polls in 0..4 {
            for event_at in 0..=polls + 1 {
                scenario(Self { polls, event_at });
            }
        }
    }

    /// Polls the future, until it is ready or has been polled so often, and drops it. Returns its
    /// output.
    fn drive<F: Future>(self, future: F, event: impl FnOnce()) -> Option<F::Output> {
        let mut event = Some(event);
        let mut reach = |place| {
            if place == self.event_at {
                event.take().expect("the place is reached once")();
            }
        };
        let output = {
            let (mut future, mut output) = (pin!(future), None);
            for n in 0..self.polls {
                reach(n);
                if output.is_none() {
                    output = match poll(future.as_mut()) {
                        Poll::Ready(ready) => Some(ready),
                        Poll::Pending => None,
                    };
                }
            }
            reach(self.polls);
            output
        };
        reach(self.polls + 1);
        output
    }

    /// Returns whether a future that is ready after the event must have had its output.
    fn must_be_ready(self) -> bool {
        self.event_at < self.polls
    }
}

#[test]
fn semaphore_loses_no_permit() {
    Cancel::each(|cancel| {
        let semaphore = Arc::new(Semaphore::new(1));
        let event = || semaphore.add_permits(2);
        let check = |is_ready: bool, permits: usize| {
            assert_eq!(is_ready, cancel.must_be_ready());
            assert_eq!(semaphore.available_permits(), permits);
            let all = now(semaphore.acquire_many(permits as u32));
            assert!(all.is_some_and(|all| all.is_ok()), "no waiter is left");
        };
        let acquired = cancel.drive(semaphore.acquire_many(2), event).map(drop);
        check(acquired.is_some(), 3);
        let owned = semaphore.clone().acquire_many_owned(4);
        check(cancel.drive(owned, event).map(drop).is_some(), 5);
        let closed = cancel.drive(semaphore.acquire_many(9), || semaphore.close());
        assert_eq!(closed.is_some(), cancel.must_be_ready());
        assert!(closed.is_none_or(|acquired| acquired.is_err()));
        assert_eq!(semaphore.available_permits(), 5);
    });
}

/// A waiter behind the one that is cancelled gets what that one had.
#[test]
fn locks_pass_to_the_next_waiter() {
    Cancel::each(|cancel| {
        let mutex = Arc::new(Mutex::new(()));
        let guard = mutex.try_lock().unwrap();
        let mut next = pin!(mutex.lock());
        let first = async {
            drop(mutex.lock().await);
        };
        let is_ready = cancel.drive(first, || drop(guard)).is_some();
        assert_eq!(is_ready, cancel.must_be_ready());
        assert!(poll(next.as_mut()).is_ready());

        let mutex = Arc::new(Mutex::new(()));
        let guard = mutex.try_lock().unwrap();
        let mut next = pin!(mutex.lock());
        let locked = cancel.drive(mutex.clone().lock_owned(), || {
            assert!(poll(next.as_mut()).is_pending());
            drop(guard);
        });
        drop(locked);
        assert!(poll(next).is_ready());
        assert!(mutex.try_lock().is_ok());

        let lock = Arc::new(RwLock::new(()));
        let guard = lock.try_write().unwrap();
        let mut next = pin!(lock.write());
        let locked = cancel.drive(lock.read(), || {
            assert!(poll(next.as_mut()).is_pending());
            drop(guard);
        });
        drop(locked);
        assert!(poll(next).is_ready());
        let guard = lock.clone().try_read_owned().unwrap();
        let locked = cancel.drive(lock.clone().write_owned(), || drop(guard));
        assert_eq!(locked.map(drop).is_some(), cancel.must_be_ready());
        assert!(lock.try_write().is_ok());
    });
}

#[test]
fn notify_loses_no_notification() {
    Cancel::each(|cancel| {
        for is_owned in [false, true] {
            let notify = Arc::new(Notify::new());
            let is_notified = match is_owned {
                false => cancel.drive(notify.notified(), || notify.notify_one()),
                true => cancel.drive(notify.clone().notified_owned(), || notify.notify_last()),
            };
            assert_eq!(is_notified.is_some(), cancel.must_be_ready());
            assert_eq!(now(notify.notified()).is_none(), is_notified.is_some());
            assert!(now(notify.notified()).is_none(), "one permit at most");
            let is_notified = cancel.drive(notify.notified(), || notify.notify_waiters());
            assert_eq!(is_notified.is_some(), cancel.must_be_ready());
            assert!(now(notify.notified()).is_none(), "no permit");
        }
    });
}

#[test]
fn barrier_counts_no_wait_that_was_dropped() {
    Cancel::each(|cancel| {
        let barrier = Barrier::new(2);
        let mut other = pin!(barrier.wait());
        let result = cancel.drive(barrier.wait(), || {
            let _ = poll(other.as_mut());
        });
        // The event completes the round, if the future has arrived and is not dropped; or the
        // future's next poll does so.
        let meets = cancel.polls > 0 && cancel.event_at <= cancel.polls;
        assert_eq!(result.is_some(), cancel.must_be_ready());
        let mut third = pin!(barrier.wait());
        assert_eq!(poll(third.as_mut()).is_ready(), !meets);
    });
}

#[test]
fn cells_are_set_once() {
    Cancel::each(|cancel| {
        let (cell, notify) = (OnceCell::new(), Notify::new());
        let sets = async {
            let value = cell.get_or_init(|| async {
                notify.notified().await;
                1
            });
            *value.await
        };
        let mut waits = pin!(cell.get_or_init(|| async { 2 }));
        let mut second = None;
        let first = cancel.drive(sets, || {
            if let Poll::Ready(value) = poll(waits.as_mut()) {
                second = Some(*value);
            }
            notify.notify_one();
        });
        // The second function runs if the first one was dropped, or comes later.
        let value = first.or(second).unwrap_or_else(|| match poll(waits) {
            Poll::Ready(value) => *value,
            Poll::Pending => panic!("no task is about to set it"),
        });
        assert_eq!(cell.get(), Some(&value));
        assert!(second.is_none_or(|second| second == value));

        let cell = SetOnce::new();
        let seen = cancel.drive(cell.wait(), || cell.set(7).unwrap());
        assert_eq!(seen.is_some(), cancel.must_be_ready());
        assert_eq!(now(cell.wait()), Some(&7));
    });
}

#[test]
fn oneshot_loses_no_value() {
    Cancel::each(|cancel| {
        let (tx, mut rx) = oneshot::channel();
        let received = cancel.drive(&mut rx, || tx.send(7).unwrap());
        assert_eq!(received.is_some(), cancel.must_be_ready());
        match received {
            Some(received) => assert!(received == Ok(7) && rx.is_terminated()),
            None => assert_eq!(rx.try_recv(), Ok(7)),
        }
        let (mut tx, rx) = oneshot::channel();
        let closed = cancel.drive(tx.closed(), || drop(rx));
        assert_eq!(closed.is_some(), cancel.must_be_ready());
        assert_eq!(tx.send(7), Err(7));
    });
}

#[test]
fn mpsc_receives_lose_no_message() {
    Cancel::each(|cancel| {
        let (tx, mut rx) = mpsc::channel(2);
        let received = cancel.drive(rx.recv(), || tx.try_send(7).unwrap());
        assert_eq!(received.is_some(), cancel.must_be_ready());
        assert_eq!(received.flatten().or_else(|| rx.try_recv().ok()), Some(7));
        assert!(rx.is_empty() && tx.capacity() == 2);

        let mut buffer = Vec::new();
        let count = cancel.drive(rx.recv_many(&mut buffer, 2), || {
            tx.try_send(1).unwrap();
            tx.try_send(2).unwrap();
        });
        assert_eq!(count.unwrap_or(0), buffer.len());
        buffer.extend(std::iter::from_fn(|| rx.try_recv().ok()));
        assert_eq!((buffer, tx.capacity()), (vec![1, 2], 2));

        let (tx, mut rx) = mpsc::unbounded_channel();
        let received = cancel.drive(rx.recv(), || tx.send(7).unwrap());
        assert_eq!(received.flatten().or_else(|| rx.try_recv().ok()), Some(7));
        let ended = cancel.drive(rx.recv(), || drop(tx));
        assert_eq!(ended, cancel.must_be_ready().then_some(None));
    });
}

#[test]
fn mpsc_sends_lose_no_room() {
    Cancel::each(|cancel| {
        let (tx, rx) = mpsc::channel(2);
        let rx = std::cell::RefCell::new(rx);
        let fill = || while tx.try_send(0).is_ok() {};
        let receive = |count| (0..count).for_each(|_| assert!(rx.borrow_mut().try_recv().is_ok()));
        // The channel is full, and the event makes room.
        let check = |is_ready: bool, sent: usize| {
            assert_eq!(is_ready, cancel.must_be_ready());
            assert_eq!(tx.capacity(), 2 - rx.borrow().len());
            let left = std::iter::from_fn(|| rx.borrow_mut().try_recv().ok());
            assert_eq!(left.filter(|message| *message != 0).count(), sent);
            assert_eq!(tx.capacity(), 2);
        };
        fill();
        let sent = cancel.drive(tx.send(1), || receive(1));
        check(sent.is_some(), usize::from(sent.is_some()));
        fill();
        let sent = cancel.drive(tx.send_timeout(1, pending::<()>()), || receive(1));
        check(sent.is_some(), usize::from(sent.is_some()));
        fill();
        let reserved = cancel.drive(tx.reserve(), || receive(1));
        check(reserved.map(drop).is_some(), 0);
        fill();
        let reserved = cancel.drive(tx.clone().reserve_owned(), || receive(1));
        check(reserved.map(drop).is_some(), 0);
        fill();
        let reserved = cancel.drive(tx.reserve_many(2), || receive(2));
        check(reserved.map(drop).is_some(), 0);
        fill();
        let closed = cancel.drive(tx.closed(), || rx.borrow_mut().close());
        assert_eq!(closed.is_some(), cancel.must_be_ready());
        assert!(now(tx.closed()).is_some() && now(tx.send(1)).unwrap().is_err());
        assert_eq!(tx.strong_count(), 1);
    });
}

#[test]
fn broadcast_loses_no_value() {
    Cancel::each(|cancel| {
        let (tx, mut rx) = broadcast::channel(2);
        let received = cancel.drive(rx.recv(), || assert_eq!(tx.send(7), Ok(1)));
        assert_eq!(received.is_some(), cancel.must_be_ready());
        assert_eq!(received.unwrap_or_else(|| now(rx.recv()).unwrap()), Ok(7));
        assert!(rx.try_recv().is_err() && tx.is_empty());
        let closed = cancel.drive(tx.closed(), || drop(rx));
        assert_eq!(closed.is_some(), cancel.must_be_ready());
        assert!(now(tx.closed()).is_some());
    });
}

#[test]
fn watch_loses_no_change() {
    Cancel::each(|cancel| {
        let (tx, mut rx) = watch::channel(1);
        let changed = cancel.drive(rx.changed(), || tx.send(2).unwrap());
        assert_eq!(changed.is_some(), cancel.must_be_ready());
        assert_eq!(rx.has_changed().unwrap(), changed.is_none());
        rx.mark_unchanged();
        let found = {
            let found = cancel.drive(rx.wait_for(|n| *n == 3), || tx.send(3).unwrap());
            found.is_some_and(|found| *found.unwrap() == 3)
        };
        assert_eq!(found, cancel.must_be_ready());
        assert_eq!(rx.has_changed().unwrap(), !found);
        let closed = cancel.drive(tx.closed(), || drop(rx));
        assert_eq!(closed.is_some(), cancel.must_be_ready());
        assert!(now(tx.closed()).is_some());
    });
}
