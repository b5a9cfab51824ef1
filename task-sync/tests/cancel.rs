//! Each future of the crate is polled some times and then dropped, with an event before one of the
//! polls, before the drop, or after it. Nothing is lost or doubled, wherever the event comes. A
//! future that has waited and is ready after the event was woken by the event.
use std::{
    cell::Cell,
    future::{Future, pending},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, Wake, Waker},
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

/// Counts the wakes of a task.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wakes {
    /// Returns the number of wakes since the last call.
    fn take(&self) -> usize {
        // Ordering: Relaxed, all is on one thread.
        self.0.swap(0, Relaxed)
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        // Ordering: as above.
        self.0.fetch_add(1, Relaxed);
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
    /// output. A poll that is ready after another one that was not must have been announced by a
    /// wake.
    fn drive<F: Future>(self, future: F, event: impl FnOnce()) -> Option<F::Output> {
        let mut event = Some(event);
        let mut reach = |place| {
            if place == self.event_at {
                event.take().expect("the place is reached once")();
            }
        };
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(wakes.clone());
        let output = {
            let (mut future, mut output) = (pin!(future), None);
            for n in 0..self.polls {
                reach(n);
                if output.is_some() {
                    continue;
                }
                let is_woken = wakes.take() > 0;
                if let Poll::Ready(ready) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                    assert!(is_woken || n == 0, "the wake is lost");
                    output = Some(ready);
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
        let guard = lock.try_read().unwrap();
        let mut next = pin!(lock.read());
        let mut read = None;
        let locked = cancel.drive(lock.write(), || {
            // A reader passes the writer that waits, or waits for the one that has `HANDOFF`.
            if let Poll::Ready(guard) = poll(next.as_mut()) {
                read = Some(guard);
            }
            drop(guard);
        });
        assert!(locked.is_none(), "the reader stays");
        assert!(read.is_some() || poll(next).is_ready());
        drop(read);
        let guard = lock.try_write().unwrap();
        let locked = cancel.drive(lock.clone().read_owned(), || drop(guard));
        assert_eq!(locked.map(drop).is_some(), cancel.must_be_ready());
        let guard = lock.try_read().unwrap();
        let locked = cancel.drive(lock.write(), || drop(guard));
        assert_eq!(locked.map(drop).is_some(), cancel.must_be_ready());
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

        // The function of another task fails; then this one's runs.
        let (cell, notify, runs) = (OnceCell::new(), Notify::new(), Cell::new(0));
        let mut fails = pin!(cell.get_or_try_init(|| async {
            notify.notified().await;
            Err::<u32, ()>(())
        }));
        assert!(poll(fails.as_mut()).is_pending());
        let sets = cell.get_or_try_init(|| async {
            runs.set(runs.get() + 1);
            Ok::<_, ()>(3)
        });
        let set = cancel.drive(sets, || {
            notify.notify_one();
            assert_eq!(poll(fails.as_mut()), Poll::Ready(Err(())));
        });
        assert_eq!(set.is_some(), cancel.must_be_ready());
        assert_eq!(runs.get(), usize::from(set.is_some()));
        assert_eq!(cell.get(), set.map(|set| set.unwrap()));
        assert_eq!(now(cell.get_or_init(|| async { 3 })), Some(&3));

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
        assert_eq!(count.is_some(), cancel.must_be_ready());
        assert_eq!(count.unwrap_or(0), buffer.len());
        buffer.extend(std::iter::from_fn(|| rx.try_recv().ok()));
        assert_eq!((buffer, tx.capacity()), (vec![1, 2], 2));

        let (tx, mut rx) = mpsc::unbounded_channel();
        let received = cancel.drive(rx.recv(), || tx.send(7).unwrap());
        assert_eq!(received.flatten().or_else(|| rx.try_recv().ok()), Some(7));
        let mut buffer = Vec::new();
        let count = cancel.drive(rx.recv_many(&mut buffer, 2), || tx.send(7).unwrap());
        assert_eq!(count, cancel.must_be_ready().then_some(1));
        buffer.extend(std::iter::from_fn(|| rx.try_recv().ok()));
        assert_eq!(buffer, [7]);
        let ended = cancel.drive(rx.recv(), || drop(tx));
        assert_eq!(ended, cancel.must_be_ready().then_some(None));

        let (tx, mut rx) = mpsc::channel::<u32>(2);
        let mut buffer = Vec::new();
        let ended = cancel.drive(rx.recv_many(&mut buffer, 2), || drop(tx));
        assert_eq!(ended, cancel.must_be_ready().then_some(0));
        // A receiver that has closed the channel waits for what is reserved.
        let (tx, mut rx) = mpsc::channel::<u32>(2);
        let permit = tx.try_reserve().unwrap();
        rx.close();
        let ended = cancel.drive(rx.recv(), || drop(permit));
        assert_eq!(ended, cancel.must_be_ready().then_some(None));
    });
}

/// A close ends each wait for room.
#[test]
fn mpsc_sends_end_with_the_close() {
    Cancel::each(|cancel| {
        let full = || {
            let (tx, rx) = mpsc::channel(1);
            tx.try_send(0).unwrap();
            (tx, rx)
        };
        let must_fail = |result: Option<bool>| {
            assert_eq!(result, cancel.must_be_ready().then_some(true));
        };
        let (tx, mut rx) = full();
        let sent = cancel.drive(tx.send(1), || rx.close());
        must_fail(sent.map(|sent| sent.is_err()));
        let (tx, rx) = full();
        let sent = cancel.drive(tx.send(1), || drop(rx));
        must_fail(sent.map(|sent| sent.is_err()));
        let (tx, mut rx) = full();
        let sent = cancel.drive(tx.send_until(1, pending::<()>()), || rx.close());
        must_fail(sent.map(|sent| sent.is_err()));
        let (tx, mut rx) = full();
        let reserved = cancel.drive(tx.reserve(), || rx.close());
        must_fail(reserved.map(|reserved| reserved.is_err()));
        let (tx, mut rx) = full();
        let reserved = cancel.drive(tx.clone().reserve_owned(), || rx.close());
        must_fail(reserved.map(|reserved| reserved.is_err()));
        let (tx, mut rx) = full();
        let reserved = cancel.drive(tx.reserve_many(1), || rx.close());
        must_fail(reserved.map(|reserved| reserved.is_err()));
        assert_eq!((rx.try_recv(), rx.try_recv().is_err()), (Ok(0), true));
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

/// Receivers see the end of the senders.
#[test]
fn receivers_end_with_the_senders() {
    Cancel::each(|cancel| {
        let (tx, rx) = oneshot::channel::<u32>();
        let ended = cancel.drive(rx, || drop(tx));
        assert_eq!(
            ended.map(|ended| ended.is_err()),
            cancel.must_be_ready().then_some(true)
        );
        let (tx, mut rx) = broadcast::channel::<u32>(1);
        let ended = cancel.drive(rx.recv(), || drop(tx));
        assert_eq!(
            ended.map(|ended| ended.is_err()),
            cancel.must_be_ready().then_some(true)
        );
        let (tx, mut rx) = watch::channel(1);
        let ended = cancel.drive(rx.changed(), || drop(tx));
        assert_eq!(
            ended.map(|ended| ended.is_err()),
            cancel.must_be_ready().then_some(true)
        );
    });
}

/// A poll clones the waker, gets what it waits for all the same, and drops the clone, which panics.
/// Nothing is lost.
#[cfg(feature = "std")]
#[test]
fn polls_that_are_ready_drop_the_panics_of_their_wakers() {
    use std::task::{RawWaker, RawWakerVTable};

    thread_local! {
        static EVENT: Cell<Option<Box<dyn FnOnce()>>> = const { Cell::new(None) };
    }
    static FIRST: RawWakerVTable = RawWakerVTable::new(clone, |_| (), |_| (), |_| ());
    static CLONE: RawWakerVTable = RawWakerVTable::new(clone, panics, |_| (), panics);

    /// Runs the event.
    fn clone(data: *const ()) -> RawWaker {
        if let Some(event) = EVENT.take() {
            event();
        }
        RawWaker::new(data, &CLONE)
    }

    fn panics(_: *const ()) {
        panic!("the drop of a waker");
    }

    fn take<F: Future>(future: F, event: impl FnOnce() + 'static) -> F::Output {
        EVENT.set(Some(Box::new(event)));
        // SAFETY: no function of the tables uses the pointer.
        let waker = unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &FIRST)) };
        match pin!(future).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("the future waits"),
        }
    }

    let semaphore = Arc::new(Semaphore::new(1));
    let permit = semaphore.clone().try_acquire_owned().unwrap();
    drop(take(semaphore.acquire(), || drop(permit)).unwrap());
    assert_eq!(semaphore.available_permits(), 1);
    let mutex = Arc::new(Mutex::new(()));
    let guard = mutex.clone().try_lock_owned().unwrap();
    drop(take(mutex.lock(), || drop(guard)));
    assert!(mutex.try_lock().is_ok());
    let lock = Arc::new(RwLock::new(()));
    let guard = lock.clone().try_read_owned().unwrap();
    drop(take(lock.write(), || drop(guard)));
    assert!(lock.try_write().is_ok());
    let notify = Arc::new(Notify::new());
    let notifier = notify.clone();
    take(notify.notified(), move || notifier.notify_one());
}

/// The drop of a waker panics when its wait is dropped. The wait has ended all the same, and passes
/// on what it had.
#[cfg(feature = "std")]
#[test]
fn cancelled_waits_drop_the_panics_of_their_wakers() {
    struct Panics;

    impl Wake for Panics {
        fn wake(self: Arc<Self>) {}
    }

    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("the drop of a waker");
        }
    }

    fn cancel(future: impl Future) {
        let mut future = Box::pin(future);
        let waker = Waker::from(Arc::new(Panics));
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        // The clone in the wait is the last one.
        drop(waker);
        drop(future);
    }

    let semaphore = Semaphore::new(2);
    cancel(semaphore.acquire_many(3));
    assert_eq!(semaphore.available_permits(), 2);
    let mutex = Mutex::new(());
    let guard = mutex.try_lock().unwrap();
    cancel(mutex.lock());
    drop(guard);
    assert!(mutex.try_lock().is_ok());
    let lock = RwLock::new(());
    let guard = lock.try_read().unwrap();
    cancel(lock.write());
    drop(guard);
    assert!(lock.try_write().is_ok());
    let barrier = Barrier::new(2);
    cancel(barrier.wait());
    cancel(barrier.wait());
    let notify = Notify::new();
    cancel(notify.notified());
    cancel(SetOnce::<u8>::new().wait());
    let (tx, mut rx) = mpsc::channel(1);
    tx.try_send(0).unwrap();
    cancel(tx.send(1));
    assert_eq!(rx.try_recv(), Ok(0));
    assert!(tx.try_send(2).is_ok());
    let (tx, mut rx) = broadcast::channel::<u8>(1);
    cancel(rx.recv());
    cancel(tx.closed());
    let (tx, mut rx) = watch::channel(1);
    cancel(rx.changed());
    cancel(tx.closed());
}
