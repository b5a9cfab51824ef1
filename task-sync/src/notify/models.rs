//! Models of a `Notify`: no notification is lost, and none is had twice.
//!
//! "Fails if" names the changes to the code that make a model fail. A lost wake is a deadlock,
//! which fails the model. The condition of a scenario is relaxed: the `Notify` must order it.
use super::Notify;
use crate::blocking::block_on;
use ::futures::FutureExt;
use std::{pin::pin, task::Waker};
use sync_shim::{
    Model,
    atomic::{AtomicUsize, Ordering::Relaxed},
    model,
    sync::Arc,
    thread,
};

struct Shared {
    notify: Notify,
    condition: AtomicUsize,
}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            notify: Notify::new(),
            condition: AtomicUsize::new(0),
        })
    }

    fn set(&self) {
        // Ordering: Relaxed, the `Notify` must order the condition.
        self.condition.fetch_add(1, Relaxed);
    }

    fn seen(&self) -> usize {
        // Ordering: Relaxed, as above.
        self.condition.load(Relaxed)
    }
}

fn spawned(
    shared: &Arc<Shared>,
    f: impl FnOnce(&Shared) + Send + 'static,
) -> thread::JoinHandle<()> {
    let shared = shared.clone();
    thread::spawn(move || f(&shared))
}

/// Fails if a first poll does not look again under the lock, if `take_or_wait` does not set
/// `WAITING`, if `notify` does not look at `WAITING`, or if the Release of a stored permit or the
/// Acquire of a take is Relaxed.
#[test]
fn notify_one_beside_a_wait_ends_it() {
    model(|| {
        let shared = Shared::new();
        let notifier = spawned(&shared, |shared| {
            shared.set();
            shared.notify.notify_one();
        });
        block_on(shared.notify.notified());
        assert_eq!(shared.seen(), 1);
        notifier.join().unwrap();
        assert!(shared.notify.notified().now_or_never().is_none());
    });
}

/// Two notifications end two waits, or are one permit. Fails if a notifier that finds no waiter
/// under the lock does not store the permit.
#[test]
fn two_notifications_beside_a_wait_leave_at_most_one_permit() {
    model(|| {
        let shared = Shared::new();
        let notifier = spawned(&shared, |shared| {
            shared.set();
            shared.notify.notify_one();
            shared.set();
            shared.notify.notify_one();
        });
        block_on(shared.notify.notified());
        assert!(shared.seen() >= 1);
        notifier.join().unwrap();
        let again = shared.notify.notified().now_or_never();
        assert!(again.is_none() || shared.seen() == 2);
        assert!(shared.notify.notified().now_or_never().is_none());
    });
}

/// Permits of two notifiers meet: the wait that takes the one permit sees both conditions. Fails if
/// `store_permit` returns early when there is a permit.
#[test]
fn permit_that_is_stored_twice_orders_both_notifiers() {
    Model::new().bound(2).check(|| {
        let shared = Shared::new();
        let notify = |shared: &Shared| {
            shared.set();
            shared.notify.notify_one();
        };
        let notifiers = [spawned(&shared, notify), spawned(&shared, notify)];
        block_on(shared.notify.notified());
        let seen = shared.seen();
        for notifier in notifiers {
            notifier.join().unwrap();
        }
        if shared.notify.notified().now_or_never().is_none() {
            assert_eq!(seen, 2);
        }
    });
}

/// A future that is dropped while it is notified passes the notification on. Fails if `cancel` does
/// not notify again.
#[test]
fn notification_of_a_dropped_wait_is_passed_on() {
    model(|| {
        let shared = Shared::new();
        let notifier = spawned(&shared, |shared| shared.notify.notify_one());
        {
            let mut first = pin!(shared.notify.notified());
            if first.as_mut().enable() {
                shared.notify.notify_one();
            }
        }
        block_on(shared.notify.notified());
        notifier.join().unwrap();
    });
}

/// A waiter that was released wakes nobody else: the other task, which waits, gets the notification
/// that the drop passes on. Fails as the model above does.
#[test]
fn notification_of_a_dropped_wait_wakes_the_next_task() {
    Model::new().bound(3).check(|| {
        let shared = Shared::new();
        let waiting = spawned(&shared, |shared| block_on(shared.notify.notified()));
        let mut first = Box::pin(shared.notify.notified());
        let is_ready = first.as_mut().enable();
        assert!(!is_ready);
        shared.notify.notify_one();
        drop(first);
        waiting.join().unwrap();
    });
}

/// The future exists before the call, so the call makes it ready, polled or not. Fails if a first
/// poll does not compare generations, or if a call that finds no waiter does not raise the
/// generation.
#[test]
fn notify_waiters_beside_a_first_poll_ends_the_wait() {
    model(|| {
        let shared = Shared::new();
        let notified = shared.notify.notified();
        let notifier = spawned(&shared, |shared| {
            shared.set();
            shared.notify.notify_waiters();
        });
        block_on(notified);
        assert_eq!(shared.seen(), 1);
        notifier.join().unwrap();
        assert!(shared.notify.notified().now_or_never().is_none());
    });
}

/// The same, where another future waits: the call then takes the lock, and the first poll need not.
/// Fails if the Release of the addition in `notify_waiters` is Relaxed.
#[test]
fn notify_waiters_beside_a_wait_and_a_first_poll_ends_both() {
    model(|| {
        let shared = Shared::new();
        let mut first = Box::pin(shared.notify.notified());
        let second = shared.notify.notified();
        assert!(!first.as_mut().enable());
        let notifier = spawned(&shared, |shared| {
            shared.set();
            shared.notify.notify_waiters();
        });
        block_on(second);
        assert_eq!(shared.seen(), 1);
        block_on(first);
        notifier.join().unwrap();
    });
}

/// A notifier that finds `WAITING`, and no waiter under the lock, stores the permit. Fails if the
/// Release of `store_permit_locked` is Relaxed.
#[test]
fn permit_that_is_stored_under_the_lock_orders_the_notifier() {
    model(|| {
        let shared = Shared::new();
        assert!(!pin!(shared.notify.notified()).enable());
        let notifier = spawned(&shared, |shared| {
            shared.set();
            shared.notify.notify_one();
        });
        block_on(shared.notify.notified());
        assert_eq!(shared.seen(), 1);
        notifier.join().unwrap();
    });
}

/// A future that is created beside the call is notified by it, or its task sees the condition.
/// Fails if the load at the creation is Relaxed, or the Release of `notify_waiters` is.
#[test]
fn notify_waiters_beside_a_creation_notifies_or_is_seen() {
    model(|| {
        let shared = Shared::new();
        let notifier = spawned(&shared, |shared| {
            shared.set();
            shared.notify.notify_waiters();
        });
        let notified = shared.notify.notified();
        if shared.seen() == 0 {
            block_on(notified);
            assert_eq!(shared.seen(), 1);
        }
        notifier.join().unwrap();
    });
}

/// A call to all, and a permit: they are two notifications. Fails if `notify_waiters` drops the
/// permit, or if the drop of a wait that it ended passes something on.
#[test]
fn notify_one_beside_notify_waiters_keeps_its_permit() {
    model(|| {
        let shared = Shared::new();
        let mut first = Box::pin(shared.notify.notified());
        let is_ready = first.as_mut().enable();
        assert!(!is_ready);
        let notifier = spawned(&shared, |shared| shared.notify.notify_waiters());
        shared.notify.notify_one();
        notifier.join().unwrap();
        drop(first);
        // Either the permit was stored after the call to all, or the drop has passed it on.
        assert!(shared.notify.notified().now_or_never().is_some());
        assert!(shared.notify.notified().now_or_never().is_none());
    });
}

/// A poll with another waker while the wait ends. Fails if `poll` does not replace the waker.
#[test]
fn poll_with_another_waker_beside_a_notification_is_woken() {
    model(|| {
        let shared = Shared::new();
        let mut notified = Box::pin(shared.notify.notified());
        let mut cx = std::task::Context::from_waker(Waker::noop());
        assert!(notified.as_mut().poll_unpin(&mut cx).is_pending());
        let notifier = spawned(&shared, |shared| shared.notify.notify_one());
        block_on(notified);
        notifier.join().unwrap();
    });
}

/// Two threads store the permit under the lock while a third one notifies all without it. No future
/// that was there before misses that notification.
///
/// Fails if `store_permit_locked` stores instead of exchanging.
#[test]
fn notify_waiters_beside_permits_reaches_all_that_were_there() {
    Model::new().bound(2).check(|| {
        let shared = Shared::new();
        // `WAITING` stays set.
        let mut gone = Box::pin(shared.notify.notified());
        assert!(!gone.as_mut().enable());
        drop(gone);
        let futures = [(); 2].map(|()| shared.notify.notified());
        let notifiers = [(); 2].map(|()| spawned(&shared, |shared| shared.notify.notify_one()));
        shared.notify.notify_waiters();
        for notifier in notifiers {
            notifier.join().unwrap();
        }
        for future in futures {
            assert!(future.now_or_never().is_some());
        }
    });
}
