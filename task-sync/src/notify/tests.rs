//! Tests of a `Notify` on one thread.
use super::Notify;
use crate::testing::{Random, Woken, poll, seeds};
use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Wake, Waker},
};

type Wait<'a> = Pin<Box<super::Notified<'a>>>;

/// Creates a wait and polls it once.
fn queued<'a>(notify: &'a Notify, waker: &Waker) -> Wait<'a> {
    let mut wait = Box::pin(notify.notified());
    assert!(poll(&mut wait, waker).is_pending());
    wait
}

fn is_ready(wait: &mut Wait<'_>) -> bool {
    poll(wait, Waker::noop()).is_ready()
}

fn has_permit(notify: &Notify) -> bool {
    is_ready(&mut Box::pin(notify.notified()))
}

#[test]
fn notify_one_wakes_the_first_and_notify_last_the_last() {
    let notify = Notify::new();
    let tasks = [(); 4].map(|()| Woken::new());
    let mut waits: Vec<_> = tasks
        .iter()
        .map(|(_, waker)| queued(&notify, waker))
        .collect();
    let mut woken = Vec::new();
    for first in [true, false, false, true] {
        match first {
            true => notify.notify_one(),
            false => notify.notify_last(),
        }
        woken.extend(tasks.iter().position(|(woken, _)| woken.take() == 1));
    }
    assert_eq!(woken, [0, 3, 2, 1]);
    assert!(waits.iter_mut().all(is_ready));
    assert!(!has_permit(&notify));
    notify.notify_last();
    assert!(has_permit(&notify));
}

#[test]
fn completed_future_stays_ready_and_owes_nothing() {
    let notify = Notify::new();
    let mut wait = queued(&notify, Waker::noop());
    notify.notify_one();
    assert!(is_ready(&mut wait));
    assert!(is_ready(&mut wait));
    assert!(wait.as_mut().enable());
    drop(wait);
    assert!(!has_permit(&notify));
}

#[test]
fn dropped_wait_passes_its_notification_on_in_the_same_way() {
    for (last, next) in [(false, 1), (true, 2)] {
        let notify = Notify::new();
        let tasks = [(); 4].map(|()| Woken::new());
        let mut waits: Vec<_> = tasks
            .iter()
            .map(|(_, waker)| queued(&notify, waker))
            .collect();
        match last {
            false => notify.notify_one(),
            true => notify.notify_last(),
        }
        drop(waits.remove(if last { 3 } else { 0 }));
        let woken: Vec<_> = tasks.iter().map(|(woken, _)| woken.take()).collect();
        let other = if last { 3 } else { 0 };
        let expected: Vec<_> = (0..4)
            .map(|n| usize::from(n == other || n == next))
            .collect();
        assert_eq!(woken, expected);
        waits.clear();
        // Each drop passed it on, and the last one stored it.
        assert!(has_permit(&notify));
        assert!(!has_permit(&notify));
    }
}

#[test]
fn dropped_wait_that_notify_waiters_ended_passes_nothing_on() {
    let notify = Notify::new();
    let (first, mut second) = (queued(&notify, Waker::noop()), Box::pin(notify.notified()));
    notify.notify_waiters();
    drop(first);
    let mut third = queued(&notify, Waker::noop());
    assert!(is_ready(&mut second));
    assert!(!is_ready(&mut third));
}

#[test]
fn notify_waiters_leaves_the_permit() {
    let notify = Notify::new();
    notify.notify_one();
    let mut before = Box::pin(notify.notified());
    let mut other = Box::pin(notify.notified());
    notify.notify_waiters();
    assert!(is_ready(&mut before) && is_ready(&mut other));
    assert!(has_permit(&notify));
    assert!(!has_permit(&notify));
    notify.notify_waiters();
    assert!(!has_permit(&notify));
}

#[test]
fn enabled_future_is_notified_before_later_ones() {
    let notify = Notify::new();
    let mut first = Box::pin(notify.notified());
    assert!(!first.as_mut().enable());
    assert!(!first.as_mut().enable());
    let mut second = queued(&notify, Waker::noop());
    notify.notify_one();
    assert!(!is_ready(&mut second));
    assert!(first.as_mut().enable());
    let (woken, waker) = Woken::new();
    let mut third = Box::pin(notify.notified());
    assert!(!third.as_mut().enable());
    assert!(poll(&mut third, &waker).is_pending());
    notify.notify_last();
    assert_eq!(woken.take(), 1);
    assert!(is_ready(&mut third));
}

#[test]
fn owned_future_keeps_the_notify() {
    let notify = Arc::new(Notify::new());
    let mut wait = Box::pin(notify.clone().notified_owned());
    let (woken, waker) = Woken::new();
    assert!(poll(&mut wait, &waker).is_pending());
    notify.notify_one();
    assert_eq!(woken.take(), 1);
    drop(notify);
    assert!(poll(&mut wait, &waker).is_ready());
    assert!(wait.as_mut().enable());
}

#[test]
fn waker_that_uses_the_notify_is_harmless() {
    struct Reentrant(Arc<Notify>);
    impl Wake for Reentrant {
        fn wake(self: Arc<Self>) {
            self.0.notify_waiters();
            self.0.notify_one();
            has_permit(&self.0);
        }
    }
    impl Drop for Reentrant {
        fn drop(&mut self) {
            self.0.notify_last();
        }
    }
    let notify = Arc::new(Notify::new());
    let waker = || Waker::from(Arc::new(Reentrant(notify.clone())));
    let mut waits: Vec<_> = (0..3).map(|_| queued(&notify, &waker())).collect();
    notify.notify_one();
    assert!(waits.iter_mut().all(is_ready));
    while has_permit(&notify) {}
    drop(queued(&notify, &waker()));
    assert!(has_permit(&notify));
}

#[test]
fn panic_of_a_waker_wakes_the_others() {
    struct Bomb;
    impl Wake for Bomb {
        fn wake(self: Arc<Self>) {
            panic!("in the wake");
        }
    }
    let notify = Notify::new();
    let (woken, waker) = Woken::new();
    let mut waits = [
        queued(&notify, &Arc::new(Bomb).into()),
        queued(&notify, &waker),
    ];
    notify.notify_waiters();
    assert_eq!(woken.take(), 1);
    assert!(waits.iter_mut().all(is_ready));
}

/// Random operations, compared with a list of the waits and a permit.
fn compare(seed: u64, operations: usize) {
    let mut random = Random::new(seed);
    let notify = Notify::new();
    let (mut waits, mut created): (Vec<(usize, Wait<'_>)>, Vec<Wait<'_>>) = Default::default();
    let (mut queue, mut ready) = (VecDeque::new(), Vec::new());
    let mut permit = false;
    for n in 0..operations {
        let mut notified = |queue: &mut VecDeque<usize>, last: bool, ready: &mut Vec<_>| {
            let waiter = if last {
                queue.pop_back()
            } else {
                queue.pop_front()
            };
            match waiter {
                Some(waiter) => ready.push((waiter, Some(last))),
                None => permit = true,
            }
        };
        match random.below(12) {
            0..4 => created.push(Box::pin(notify.notified())),
            4..6 if !created.is_empty() => {
                let mut wait = created.swap_remove(random.below(created.len()));
                let polled = is_ready(&mut wait);
                assert_eq!(polled, permit);
                if !std::mem::take(&mut permit) {
                    queue.push_back(n);
                    waits.push((n, wait));
                }
            }
            kind @ (6 | 7) => {
                match kind {
                    6 => notify.notify_one(),
                    _ => notify.notify_last(),
                }
                notified(&mut queue, kind == 7, &mut ready);
            }
            8 if n % 4 == 0 => {
                notify.notify_waiters();
                ready.extend(queue.drain(..).map(|waiter| (waiter, None)));
                // The futures that were not polled yet are ready, too, and leave the permit.
                assert!(created.drain(..).all(|mut wait| is_ready(&mut wait)));
            }
            9..11 if !waits.is_empty() => {
                let index = random.below(waits.len());
                let (waiter, mut wait) = waits.swap_remove(index);
                let place = ready.iter().position(|(ready, _)| *ready == waiter);
                assert_eq!(is_ready(&mut wait), place.is_some());
                match place {
                    Some(place) => drop(ready.swap_remove(place)),
                    None => waits.push((waiter, wait)),
                }
            }
            11 if !waits.is_empty() => {
                let (waiter, wait) = waits.swap_remove(random.below(waits.len()));
                drop(wait);
                queue.retain(|queued| *queued != waiter);
                if let Some(place) = ready.iter().position(|(ready, _)| *ready == waiter) {
                    if let (_, Some(last)) = ready.swap_remove(place) {
                        notified(&mut queue, last, &mut ready);
                    }
                }
            }
            _ => {}
        }
    }
    assert_eq!(has_permit(&notify), permit);
}

#[test]
fn random_operations_agree_with_the_model() {
    seeds(300).for_each(|seed| compare(seed, 300));
}

#[test]
fn many_waiters_are_woken_by_one_call() {
    let notify = Notify::new();
    let (woken, waker) = Woken::new();
    let mut waits: Vec<_> = (0..100).map(|_| queued(&notify, &waker)).collect();
    notify.notify_waiters();
    assert_eq!(woken.take(), 100);
    assert!(waits.iter_mut().all(is_ready));
}

#[test]
#[cfg_attr(not(target_pointer_width = "64"), ignore = "the sizes are of 64 bits")]
fn notify_and_its_futures_are_small() {
    assert!(size_of::<Notify>() <= 4 * size_of::<usize>());
    assert!(size_of::<super::Notified<'_>>() <= 7 * size_of::<usize>());
}
