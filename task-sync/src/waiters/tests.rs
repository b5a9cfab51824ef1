//! Tests of the queue on one thread.
use super::*;
use std::{
    cell::RefCell,
    rc::Rc,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::Wake,
};

struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn counter() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count(AtomicUsize::new(0)));
    (count.clone(), count.into())
}

/// A future's place: it removes its waiter when it is dropped.
struct Place<'a> {
    waiters: &'a Waiters<u32, u32>,
    waiter: Pin<Box<Waiter<u32>>>,
}

impl<'a> Place<'a> {
    fn new(waiters: &'a Waiters<u32, u32>) -> Self {
        let waiter = Box::pin(Waiter::new(0));
        Self { waiters, waiter }
    }

    fn queued(waiters: &'a Waiters<u32, u32>, value: u32, waker: &Waker) -> Self {
        let place = Self::new(waiters);
        let waker = waker.clone();
        // SAFETY: the waiter is not queued, uses this queue alone, and is removed by the drop.
        unsafe {
            waiters
                .lock()
                .push_back(place.waiter.as_ref(), waker, value)
        };
        place
    }

    fn poll(&self, waker: &Waker) -> Poll<u32> {
        // SAFETY: the place owns the waiter, and uses this queue alone.
        unsafe { self.waiters.poll(self.waiter.as_ref(), waker) }
    }

    fn remove(&self) -> Option<u32> {
        // SAFETY: as above.
        unsafe { self.waiters.remove(self.waiter.as_ref()) }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.remove();
    }
}

fn values(waiters: &Waiters<u32, u32>) -> Vec<u32> {
    let mut values = Vec::new();
    waiters.lock().for_each(|_, value| values.push(value));
    values
}

#[test]
#[cfg_attr(not(target_pointer_width = "64"), ignore = "the sizes are of 64 bits")]
fn waiter_of_semaphore_takes_five_words() {
    assert!(size_of::<Waiter<u32>>() <= 5 * size_of::<usize>());
    assert!(size_of::<Waiter<()>>() <= 5 * size_of::<usize>());
}

#[test]
fn pops_release_the_first_and_the_last() {
    let waiters = Waiters::<u32, u32>::new(0);
    let (count, waker) = counter();
    let places: Vec<_> = (1..=4)
        .map(|value| Place::queued(&waiters, value, &waker))
        .collect();
    assert_eq!(values(&waiters), [1, 2, 3, 4]);
    assert_eq!(waiters.lock().front(), Some(1));
    waiters.lock().set_front(7);
    wake(waiters.lock().pop_front(|value| *value += 1).unwrap());
    wake(waiters.lock().pop_back(|value| *value = 9).unwrap());
    assert_eq!(values(&waiters), [2, 3]);
    assert_eq!(count.0.load(SeqCst), 2);
    let polled: Vec<_> = places.iter().map(|place| place.poll(&waker)).collect();
    let expected = [Poll::Ready(8), Poll::Pending, Poll::Pending, Poll::Ready(9)];
    assert_eq!(polled, expected);
    drop(places);
    assert!(waiters.lock().is_empty());
    assert!(waiters.lock().pop_front(|_| ()).is_none());
    assert!(waiters.lock().pop_back(|_| ()).is_none());
}

#[test]
fn removed_waiters_leave_the_others_in_order() {
    let waiters = Waiters::<u32, u32>::new(0);
    let (count, waker) = counter();
    for gone in 0..4 {
        let places: Vec<_> = (0..4)
            .map(|value| Place::queued(&waiters, value, &waker))
            .collect();
        assert_eq!(places[gone].remove(), None);
        assert_eq!(places[gone].remove(), None, "twice");
        let rest: Vec<_> = (0..4).filter(|&value| value != gone as u32).collect();
        assert_eq!(values(&waiters), rest);
        let waker = waker.clone();
        // SAFETY: the waiter is not queued, uses this queue alone, and is removed by the drop.
        unsafe {
            waiters
                .lock()
                .push_front(places[gone].waiter.as_ref(), waker, 8)
        };
        assert_eq!(values(&waiters)[0], 8);
        assert_eq!(values(&waiters)[1..], rest);
    }
    assert_eq!(count.0.load(SeqCst), 0);
    assert_eq!(Arc::strong_count(&count), 2, "removed wakers are dropped");
}

#[test]
fn remove_after_release_returns_the_value() {
    let waiters = Waiters::<u32, u32>::new(0);
    let place = Place::queued(&waiters, 1, Waker::noop());
    wake(waiters.lock().pop_front(|value| *value = 5).unwrap());
    assert_eq!(place.remove(), Some(5));
}

#[test]
fn poll_with_another_waker_replaces_the_first() {
    let waiters = Waiters::<u32, u32>::new(0);
    let ((first, first_waker), (second, second_waker)) = (counter(), counter());
    let place = Place::queued(&waiters, 1, &first_waker);
    assert!(place.poll(&first_waker).is_pending());
    assert_eq!(Arc::strong_count(&first), 3);
    assert!(place.poll(&second_waker).is_pending());
    assert_eq!(Arc::strong_count(&first), 2);
    wake(waiters.lock().pop_front(|_| ()).unwrap());
    assert_eq!((first.0.load(SeqCst), second.0.load(SeqCst)), (0, 1));
}

#[test]
fn wake_all_wakes_more_waiters_than_a_batch_holds() {
    let waiters = Waiters::<u32, u32>::new(0);
    let (count, waker) = counter();
    for number in [0, 1, BATCH, BATCH + 1, 3 * BATCH + 1] {
        let places: Vec<_> = (0..number)
            .map(|_| Place::queued(&waiters, 1, &waker))
            .collect();
        count.0.store(0, SeqCst);
        waiters.lock().wake_all(|value| *value = 6);
        assert_eq!(count.0.load(SeqCst), number);
        assert!(waiters.lock().is_empty());
        for place in &places {
            assert_eq!(place.poll(&waker), Poll::Ready(6));
        }
    }
}

/// A waker that runs a closure when it is woken.
struct Run<F>(RefCell<F>);

// SAFETY: the tests that use it have one thread.
unsafe impl<F> Send for Run<F> {}
// SAFETY: as above.
unsafe impl<F> Sync for Run<F> {}

impl<F: FnMut() + 'static> Wake for Run<F> {
    fn wake(self: Arc<Self>) {
        (self.0.borrow_mut())();
    }
}

fn run(f: impl FnMut() + 'static) -> Waker {
    Arc::new(Run(RefCell::new(f))).into()
}

/// While `wake_all` is between two batches, a waiter is pushed, one is popped, and one that is not
/// released yet is removed.
#[test]
fn wake_all_leaves_waiters_that_come_during_it() {
    static WAITERS: LazyLock<Waiters<u32, u32>> = LazyLock::new(|| Waiters::new(0));
    let waiters = &*WAITERS;
    let places = Rc::new(RefCell::new(Vec::new()));
    let (count, waker) = counter();
    let during = {
        let (places, waker) = (places.clone(), waker.clone());
        run(move || {
            let mut places = places.borrow_mut();
            places.push(Place::queued(waiters, 2, &waker));
            places.push(Place::queued(waiters, 3, &waker));
            assert_eq!(
                waiters.lock().front(),
                Some(2),
                "not one of the earlier ones"
            );
            wake(waiters.lock().pop_front(|value| *value = 4).unwrap());
            assert_eq!(
                places.remove(BATCH + 1).remove(),
                None,
                "is not released yet"
            );
        })
    };
    places.borrow_mut().push(Place::queued(waiters, 1, &during));
    for _ in 0..BATCH + 2 {
        places.borrow_mut().push(Place::queued(waiters, 1, &waker));
    }
    waiters.lock().wake_all(|value| *value = 6);
    let places = places.take();
    let released = |value| {
        let polled = places.iter().map(|place| place.poll(&waker));
        polled
            .filter(|&polled| polled == Poll::Ready(value))
            .count()
    };
    assert_eq!(released(6), BATCH + 2, "all but one of the earlier ones");
    assert_eq!(released(4), 1);
    assert_eq!(values(waiters), [3]);
    assert_eq!(count.0.load(SeqCst), BATCH + 2);
}

#[test]
fn panic_of_a_waker_leaves_the_wakes_of_others() {
    let waiters = Waiters::<u32, u32>::new(0);
    let (count, waker) = counter();
    let broken = run(|| panic!("in a wake"));
    let wakers = [&waker, &broken, &waker];
    let mut places = Vec::new();
    for _ in 0..BATCH {
        places.extend(wakers.map(|waker| Place::queued(&waiters, 1, waker)));
    }
    waiters.lock().wake_all(|_| ());
    assert_eq!(count.0.load(SeqCst), 2 * BATCH);
    places
        .iter()
        .for_each(|place| assert_eq!(place.poll(&waker), Poll::Ready(1)));
}
