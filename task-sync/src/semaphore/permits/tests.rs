//! Tests of the semaphore on one thread.
use super::*;
use crate::testing::{Random, Woken, now, poll, seeds};
use core::{pin::Pin, task::Poll};
use std::{collections::VecDeque, task::Waker};

type Wait<'a> = Pin<Box<dyn Future<Output = Result<SemaphorePermit<'a>, AcquireError>> + 'a>>;

fn wait(semaphore: &Semaphore, permits: u32) -> Wait<'_> {
    Box::pin(semaphore.acquire_many(permits))
}

/// Polls a wait that must not be ready.
fn pend(wait: &mut Wait<'_>, waker: &Waker) {
    assert!(poll(wait, waker).is_pending());
}

fn ready<'a>(wait: &mut Wait<'a>) -> SemaphorePermit<'a> {
    match poll(wait, Waker::noop()) {
        Poll::Ready(permit) => permit.unwrap(),
        Poll::Pending => panic!("the wait is not over"),
    }
}

#[test]
fn futures_take_no_more_bytes_than_those_of_tokio() {
    let (ours, tokios) = (Semaphore::new(1), tokio::sync::Semaphore::new(1));
    assert!(size_of_val(&ours.acquire()) <= size_of_val(&tokios.acquire()));
    let (ours, tokios) = (Arc::new(ours), Arc::new(tokios));
    assert!(size_of_val(&ours.acquire_owned()) <= size_of_val(&tokios.acquire_owned()));
    assert!(size_of::<Semaphore>() <= size_of::<tokio::sync::Semaphore>());
}

#[test]
fn waiters_get_permits_in_their_order() {
    let semaphore = Semaphore::new(1);
    let (woken, waker) = Woken::new();
    let held = now(semaphore.acquire()).unwrap();
    let mut waits: Vec<_> = (0..3).map(|_| wait(&semaphore, 1)).collect();
    for wait in &mut waits {
        pend(wait, &waker);
    }
    drop(held);
    for i in 0..3 {
        assert_eq!(woken.take(), 1);
        for later in &mut waits[i + 1..] {
            pend(later, &waker);
        }
        assert_eq!(semaphore.available_permits(), 0);
        drop(ready(&mut waits[i]));
    }
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn big_request_keeps_what_arrives() {
    let semaphore = Semaphore::new(2);
    let (woken, waker) = Woken::new();
    let mut big = wait(&semaphore, 5);
    pend(&mut big, &waker);
    assert_eq!(semaphore.available_permits(), 0, "the big request has both");
    let mut small = wait(&semaphore, 1);
    pend(&mut small, &waker);
    assert_eq!(
        semaphore.try_acquire().unwrap_err(),
        TryAcquireError::NoPermits
    );
    semaphore.add_permits(2);
    assert_eq!(woken.take(), 0);
    pend(&mut small, &waker);
    semaphore.add_permits(2);
    assert_eq!(woken.take(), 2);
    assert_eq!(ready(&mut big).num_permits(), 5);
    drop(ready(&mut small));
    assert_eq!(semaphore.available_permits(), 6);
}

#[test]
fn dropped_wait_passes_on_what_it_has() {
    for granted in 0..=3 {
        let semaphore = Semaphore::new(0);
        let (woken, waker) = Woken::new();
        let mut gone = wait(&semaphore, 3);
        let mut next = wait(&semaphore, 1);
        pend(&mut gone, &waker);
        pend(&mut next, &waker);
        semaphore.add_permits(granted);
        drop(gone);
        assert_eq!(poll(&mut next, &waker).is_ready(), granted > 0);
        assert_eq!(
            woken.take(),
            usize::from(granted > 0) + usize::from(granted == 3)
        );
        drop(next);
        assert_eq!(semaphore.available_permits(), granted);
        assert!(
            now(semaphore.acquire_many(granted as u32)).is_ok(),
            "no waiter is left"
        );
    }
}

#[test]
fn request_for_nothing_waits_for_nobody() {
    let semaphore = Semaphore::new(0);
    let mut waits = wait(&semaphore, 1);
    pend(&mut waits, Waker::noop());
    assert_eq!(now(semaphore.acquire_many(0)).unwrap().num_permits(), 0);
    assert!(semaphore.try_acquire_many(0).is_ok());
    semaphore.close();
    assert!(now(semaphore.acquire_many(0)).is_err());
}

#[test]
fn close_ends_waits_and_returns_what_they_have() {
    let semaphore = Semaphore::new(2);
    let (woken, waker) = Woken::new();
    let mut waits: Vec<_> = (0..100).map(|_| wait(&semaphore, 3)).collect();
    for wait in &mut waits {
        pend(wait, &waker);
    }
    semaphore.close();
    semaphore.close();
    assert_eq!(woken.take(), 100);
    for mut wait in waits {
        match poll(&mut wait, &waker) {
            Poll::Ready(result) => assert!(result.is_err()),
            Poll::Pending => panic!("the semaphore is closed"),
        }
    }
    assert_eq!(semaphore.available_permits(), 2);
    semaphore.add_permits(1);
    assert_eq!(semaphore.available_permits(), 3);
    assert_eq!(
        semaphore.try_acquire().unwrap_err(),
        TryAcquireError::Closed
    );
}

#[test]
fn permit_granted_before_close_is_valid() {
    let semaphore = Semaphore::new(0);
    let mut waits = wait(&semaphore, 1);
    pend(&mut waits, Waker::noop());
    semaphore.add_permits(1);
    semaphore.close();
    drop(ready(&mut waits));
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn release_wakes_more_waiters_than_a_batch_holds() {
    let semaphore = Semaphore::new(0);
    let (woken, waker) = Woken::new();
    let mut waits: Vec<_> = (0..100).map(|_| wait(&semaphore, 1)).collect();
    for wait in &mut waits {
        pend(wait, &waker);
    }
    semaphore.add_permits(101);
    assert_eq!(woken.take(), 100);
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn too_many_permits_panic_and_change_nothing() {
    let semaphore = Semaphore::new(Semaphore::MAX_PERMITS - 1);
    semaphore.add_permits(1);
    for more in [1, usize::MAX] {
        let panics = std::panic::catch_unwind(|| semaphore.add_permits(more));
        assert!(panics.is_err());
        assert_eq!(semaphore.available_permits(), Semaphore::MAX_PERMITS);
    }
    assert!(std::panic::catch_unwind(|| Semaphore::new(Semaphore::MAX_PERMITS + 1)).is_err());
}

/// Permits that are in use come back when as many as possible are available.
#[test]
fn release_of_too_many_permits_panics_and_loses_these() {
    let full = Semaphore::MAX_PERMITS;
    let most = u32::try_from(full / 2).unwrap_or(u32::MAX);
    for more in [1, most] {
        let semaphore = Arc::new(Semaphore::new(full));
        let permit = semaphore.try_acquire_many(more).unwrap();
        let owned = semaphore.clone().try_acquire_many_owned(more).unwrap();
        semaphore.add_permits(2 * more as usize);
        assert!(std::panic::catch_unwind(|| drop(permit)).is_err());
        assert!(std::panic::catch_unwind(|| drop(owned)).is_err());
        assert_eq!(semaphore.available_permits(), full);
        drop(semaphore.try_acquire().unwrap());
        assert_eq!(semaphore.available_permits(), full);
    }
}

/// The waiters get what they need of permits that do not fit.
#[test]
fn release_of_too_many_permits_serves_the_waiters() {
    let semaphore = Semaphore::new(0);
    let (woken, waker) = Woken::new();
    let mut waits = [wait(&semaphore, 2), wait(&semaphore, 3)];
    waits.iter_mut().for_each(|wait| pend(wait, &waker));
    let add = |permits| std::panic::catch_unwind(|| semaphore.add_permits(permits));
    assert!(add(Semaphore::MAX_PERMITS + 6).is_err());
    assert_eq!((woken.take(), semaphore.available_permits()), (2, 0));
    add(Semaphore::MAX_PERMITS - 1).unwrap();
    // Each drop gives back what the wait was granted. The second one does not fit.
    for wait in waits {
        let drop = std::panic::AssertUnwindSafe(|| drop(wait));
        assert!(std::panic::catch_unwind(drop).is_err());
    }
    assert_eq!(semaphore.available_permits(), Semaphore::MAX_PERMITS - 1);
    drop(now(semaphore.acquire()).unwrap());
}

/// A wait that the close ends gives back what it was granted, as a permit does.
#[test]
fn closed_wait_of_too_many_permits_panics() {
    let semaphore = Semaphore::new(5);
    let mut wait = wait(&semaphore, 9);
    pend(&mut wait, Waker::noop());
    semaphore.close();
    semaphore.add_permits(Semaphore::MAX_PERMITS - 4);
    let polled = std::panic::AssertUnwindSafe(|| poll(&mut wait, Waker::noop()).map(drop));
    assert!(std::panic::catch_unwind(polled).is_err());
    assert_eq!(semaphore.available_permits(), Semaphore::MAX_PERMITS - 4);
}

/// Releasers at one moment may exceed the limit. A release of no permits does not panic then.
#[test]
fn release_of_no_permits_beyond_the_limit_is_fine() {
    let semaphore = Semaphore {
        raw: RawSemaphore::new(Semaphore::MAX_PERMITS + 1),
    };
    semaphore.add_permits(0);
    drop(now(semaphore.acquire_many(0)).unwrap());
    assert_eq!(semaphore.available_permits(), Semaphore::MAX_PERMITS + 1);
}

#[test]
fn permits_that_are_too_many_do_not_merge() {
    let semaphore = Arc::new(Semaphore::new(0));
    let permits = Semaphore::MAX_PERMITS;
    let mut permit = semaphore.permit(1);
    let more = SemaphorePermit {
        semaphore: &semaphore,
        permits,
    };
    let merge = std::panic::AssertUnwindSafe(|| permit.merge(more));
    assert!(std::panic::catch_unwind(merge).is_err());
    assert_eq!(permit.num_permits(), 1);
    permit.forget();
    // It was given back.
    assert_eq!(semaphore.forget_permits(usize::MAX), permits);
    let mut permit = semaphore.clone().owned_permit(1);
    let more = OwnedSemaphorePermit {
        semaphore: semaphore.clone(),
        permits,
    };
    let merge = std::panic::AssertUnwindSafe(|| permit.merge(more));
    assert!(std::panic::catch_unwind(merge).is_err());
    assert_eq!(permit.num_permits(), 1);
    permit.forget();
    assert_eq!(semaphore.available_permits(), permits);
}

#[test]
fn permits_of_two_semaphores_do_not_merge() {
    let (one, two) = (Arc::new(Semaphore::new(1)), Arc::new(Semaphore::new(1)));
    let merge = || one.try_acquire().unwrap().merge(two.try_acquire().unwrap());
    assert!(std::panic::catch_unwind(merge).is_err());
    let owned = |semaphore: &Arc<Semaphore>| semaphore.clone().try_acquire_owned().unwrap();
    let merge = || owned(&one).merge(owned(&two));
    assert!(std::panic::catch_unwind(merge).is_err());
    assert_eq!((one.available_permits(), two.available_permits()), (1, 1));
}

#[test]
fn forget_takes_only_what_is_there() {
    let semaphore = Semaphore::new(5);
    let held = semaphore.try_acquire_many(2).unwrap();
    assert_eq!(semaphore.forget_permits(2), 2);
    assert_eq!(semaphore.forget_permits(2), 1);
    assert_eq!(semaphore.forget_permits(2), 0);
    drop(held);
    assert_eq!(semaphore.available_permits(), 2);
}

#[test]
fn waker_that_uses_the_semaphore_does_not_deadlock() {
    /// Uses the semaphore in its drop, and so also in a wake that drops the last reference.
    struct Uses(Arc<Semaphore>);
    impl std::task::Wake for Uses {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for Uses {
        fn drop(&mut self) {
            drop(self.0.try_acquire());
            drop(poll(&mut Box::pin(self.0.acquire_many(9)), Waker::noop()));
        }
    }
    let semaphore = Arc::new(Semaphore::new(0));
    let waker = || Waker::from(Arc::new(Uses(semaphore.clone())));
    let mut waits: Vec<_> = (0..3).map(|_| wait(&semaphore, 1)).collect();
    for wait in &mut waits {
        pend(wait, &waker());
        pend(wait, &waker());
    }
    semaphore.add_permits(1);
    drop(waits.pop());
    semaphore.close();
    drop(waits);
    assert_eq!(semaphore.available_permits(), 1);
}

/// A semaphore in plain code. Each entry of the queue is a request: its id, the permits that it
/// asked for, and those that it still lacks.
#[derive(Default)]
struct Plain {
    permits: usize,
    queue: VecDeque<(usize, u32, u32)>,
    granted: Vec<usize>,
}

impl Plain {
    fn add(&mut self, permits: usize) {
        self.permits += permits;
        while let Some((id, _, lacking)) = self.queue.front_mut() {
            let given = self.permits.min(*lacking as usize);
            self.permits -= given;
            *lacking -= given as u32;
            if *lacking > 0 {
                break;
            }
            self.granted.push(*id);
            self.queue.pop_front();
        }
    }

    fn cancel(&mut self, id: usize, asked: u32) {
        if let Some(at) = self.queue.iter().position(|request| request.0 == id) {
            let (_, asked, lacking) = self.queue.remove(at).unwrap();
            self.add((asked - lacking) as usize);
        } else {
            self.add(asked as usize);
        }
    }
}

/// Random operations on a semaphore and on a plain one give the same results.
fn compare(seed: u64, operations: usize) {
    let mut random = Random::new(seed);
    let semaphore = Semaphore::new(3);
    let mut plain = Plain {
        permits: 3,
        ..Plain::default()
    };
    let mut waits: Vec<(usize, u32, Wait<'_>)> = Vec::new();
    let mut held: Vec<SemaphorePermit<'_>> = Vec::new();
    for id in 0..operations {
        let choice = random.below(10);
        match choice {
            0..=2 => {
                let asked = random.below(5) as u32;
                let mut wait = wait(&semaphore, asked);
                match poll(&mut wait, Waker::noop()) {
                    Poll::Ready(permit) => {
                        assert!(asked == 0 || plain.queue.is_empty());
                        plain.permits -= asked as usize;
                        held.push(permit.unwrap());
                    }
                    Poll::Pending => {
                        plain.queue.push_back((id, asked, asked));
                        plain.add(0);
                        waits.push((id, asked, wait));
                    }
                }
            }
            3 if !waits.is_empty() => {
                let (id, asked, wait) = waits.swap_remove(random.below(waits.len()));
                drop(wait);
                plain.cancel(id, asked);
            }
            4 | 5 if !waits.is_empty() => {
                let at = random.below(waits.len());
                if let Poll::Ready(permit) = poll(&mut waits[at].2, Waker::noop()) {
                    let (id, ..) = waits.swap_remove(at);
                    let at = plain.granted.iter().position(|granted| *granted == id);
                    plain.granted.swap_remove(at.expect("is granted"));
                    held.push(permit.unwrap());
                } else {
                    assert!(!plain.granted.contains(&waits[at].0));
                }
            }
            6 | 7 if !held.is_empty() => {
                let permit = held.swap_remove(random.below(held.len()));
                plain.add(permit.num_permits());
            }
            8 => {
                let more = random.below(3);
                semaphore.add_permits(more);
                plain.add(more);
            }
            9 => {
                let taken = semaphore.forget_permits(random.below(4));
                plain.permits -= taken;
                assert_eq!(semaphore.try_acquire().is_ok(), {
                    plain.permits > 0 && plain.queue.is_empty()
                });
            }
            _ => {}
        }
        assert_eq!(semaphore.available_permits(), plain.permits);
        let mut queue = Vec::new();
        semaphore.for_each_waiter(|waiting| queue.push(waiting.needed() as u32));
        assert!(
            queue
                .into_iter()
                .eq(plain.queue.iter().map(|request| request.2))
        );
    }
}

#[test]
fn random_operations_match_a_plain_semaphore() {
    seeds(5_000).for_each(|seed| compare(seed, 5_000));
}
