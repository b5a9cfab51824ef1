//! Models of waiters against notifiers: no wake and no grant is lost, and nobody touches a waiter
//! that its owner has freed.
//!
//! "Fails if" names the changes to the code that make a model fail.
use super::*;
use sync_shim::{model, sync::Arc, thread};
use waker_vtable::{WakeRef, from_arc};

/// A task: counts its wakes.
struct Task(AtomicU32);

impl WakeRef for Task {
    fn wake(&self) {
        // Ordering: Release pairs with `is_woken`, as a task's poll is ordered after its wake.
        self.0.fetch_add(1, Release);
    }
}

fn task() -> (Arc<Task>, Waker) {
    let task = Arc::new(Task(AtomicU32::new(0)));
    (task.clone(), from_arc(task))
}

fn is_woken(task: &Task) -> bool {
    // Ordering: Acquire pairs with `wake`.
    task.0.load(Acquire) > 0
}

/// The number of permits, under the lock.
type Permits = Waiters<u32, u32>;

/// Takes a permit, or queues the waiter.
fn take_or_push(permits: &Permits, waiter: Pin<&Waiter<u32>>, waker: &Waker) -> bool {
    let waker = waker.clone();
    let mut locked = permits.lock();
    if *locked > 0 {
        *locked -= 1;
        return true;
    }
    // SAFETY: each scenario pushes a waiter once, and removes it before it ends.
    unsafe { locked.push_back(waiter, waker, 0) };
    false
}

/// Gives a permit to the first waiter, or keeps it.
fn give(permits: &Permits) {
    let mut locked = permits.lock();
    let waker = locked.pop_front(|value| *value = 1);
    if waker.is_none() {
        *locked += 1;
    }
    drop(locked);
    if let Some(waker) = waker {
        wake(waker);
    }
}

/// Removes the waiter, and passes on what it was granted.
fn cancel(permits: &Permits, waiter: Pin<&Waiter<u32>>) {
    // SAFETY: the caller owns the waiter, and uses this queue alone.
    if unsafe { permits.remove(waiter) } == Some(1) {
        give(permits);
    }
}

/// A task takes a permit or waits for it; another thread gives one. The task frees its waiter as
/// soon as it finds it released, which is without the lock. Fails if the state that `released` of
/// `Link` writes or the load in `Waiter::released` is Relaxed, or if `release` writes the state
/// before the value.
#[test]
fn waiter_against_a_grant_gets_it_or_is_woken() {
    model(|| {
        let permits = Arc::new(Permits::new(0));
        let (task, waker) = task();
        let giver = {
            let permits = permits.clone();
            thread::spawn(move || give(&permits))
        };
        {
            let waiter = pin!(Waiter::new(0));
            let waiter = waiter.as_ref();
            if !take_or_push(&permits, waiter, &waker) {
                // SAFETY: this thread owns the waiter, and pushed it here.
                match unsafe { permits.poll(waiter, &waker) } {
                    Poll::Ready(value) => assert_eq!(value, 1),
                    Poll::Pending => {
                        giver.join().unwrap();
                        assert!(is_woken(&task), "the wake was lost");
                        assert_eq!(waiter.released(), Some(1));
                        return;
                    }
                }
            }
        }
        giver.join().unwrap();
    });
}

/// Two tasks wait, one of them is dropped while a permit comes: the other one gets the permit, or
/// the permit stays. Fails if `Waiters::remove` does not return the value of a waiter that was
/// released meanwhile.
#[test]
fn cancel_against_a_grant_passes_it_on() {
    model(|| {
        let permits = Arc::new(Permits::new(0));
        let (task, waker) = task();
        let stays = pin!(Waiter::new(0));
        let stays = stays.as_ref();
        let giver = {
            let permits = permits.clone();
            let goes = Box::pin(Waiter::new(0));
            assert!(!take_or_push(&permits, goes.as_ref(), &waker));
            assert!(!take_or_push(&permits, stays, &waker));
            let canceller = {
                let permits = permits.clone();
                thread::spawn(move || cancel(&permits, goes.as_ref()))
            };
            give(&permits);
            canceller
        };
        giver.join().unwrap();
        assert!(is_woken(&task));
        assert_eq!(stays.released(), Some(1));
        assert!(permits.lock().is_empty());
        assert_eq!(*permits.lock(), 0);
    });
}

/// A task is polled with another waker while a permit comes. Fails if `poll` does not look at the
/// state again after it has replaced the waker, or if it replaces the waker without the lock.
#[test]
fn waker_change_against_a_grant_wakes_the_last() {
    model(|| {
        let permits = Arc::new(Permits::new(0));
        let ((_, old), (last, new)) = (task(), task());
        let waiter = pin!(Waiter::new(0));
        let waiter = waiter.as_ref();
        assert!(!take_or_push(&permits, waiter, &old));
        let giver = {
            let permits = permits.clone();
            thread::spawn(move || give(&permits))
        };
        // SAFETY: this thread owns the waiter, and pushed it here.
        let polled = unsafe { permits.poll(waiter, &new) };
        giver.join().unwrap();
        if polled.is_pending() {
            assert!(is_woken(&last), "the new waker was lost");
        }
        assert_eq!(waiter.released(), Some(1));
    });
}

/// Two waiters are in the ring of a `wake_all`, whose batches hold one waiter here; meanwhile one
/// of them is removed, and a third comes. Fails if `split_off` leaves an end of the list, or if
/// `unlink` takes a neighbour for an end.
#[test]
fn wake_all_against_a_removal_and_a_push_is_exact() {
    model(|| {
        let permits = Arc::new(Permits::new(0));
        let (task, waker) = task();
        let (first, late) = (pin!(Waiter::new(0)), pin!(Waiter::new(0)));
        let (first, late) = (first.as_ref(), late.as_ref());
        let second = Box::pin(Waiter::new(0));
        assert!(!take_or_push(&permits, first, &waker));
        assert!(!take_or_push(&permits, second.as_ref(), Waker::noop()));
        let canceller = {
            let permits = permits.clone();
            thread::spawn(move || {
                // SAFETY: this thread owns the waiter, which uses this queue alone.
                unsafe { permits.remove(second.as_ref()) };
            })
        };
        permits.lock().wake_all(|value| *value = 2);
        assert!(!take_or_push(&permits, late, Waker::noop()));
        canceller.join().unwrap();
        assert_eq!(first.released(), Some(2));
        assert!(is_woken(&task));
        assert!(late.is_queued());
        give(&permits);
        assert_eq!(late.released(), Some(1));
        assert!(permits.lock().is_empty());
    });
}
