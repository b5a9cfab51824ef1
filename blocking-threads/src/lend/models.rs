//! Models of a lender and the threads that take its value. One thread at a time owns the value, and
//! sees all earlier changes.
use super::*;
use sync_shim::{
    atomic::{AtomicUsize, Ordering::AcqRel},
    cell::UnsafeCell,
    model,
    sync::Arc,
    thread,
};

fn work(core: Option<Box<UnsafeCell<u32>>>) -> u32 {
    core.map_or(0, |core| {
        core.with_mut(|runs| {
            // SAFETY: the thread that took the value owns it alone, which the model checks.
            let runs = unsafe { &mut *runs };
            *runs += 1;
            *runs
        })
    })
}

/// Asserts that nothing was on offer before, and returns whether a helper must be requested.
fn needs_helper<T: Send>(offered: Offered<T>) -> bool {
    assert!(offered.before.is_none());
    offered.request
}

/// Fails if a value is taken by a load and a store in place of an exchange.
#[test]
fn offered_value_is_taken_exactly_once() {
    model(|| {
        let lent = Arc::new(Lent::new());
        let other = {
            let lent = lent.clone();
            thread::spawn(move || work(lent.accept()))
        };
        let core = Box::new(UnsafeCell::new(0));
        assert!(needs_helper(lent.offer(core)));
        let back = work(lent.take());
        assert_eq!(other.join().unwrap() + back, 1);
    });
}

/// The value goes to a helper, which offers it in turn.
///
/// Fails if `offer` is Relaxed.
#[test]
fn returned_value_shows_the_other_threads_writes() {
    model(|| {
        let lent = Arc::new(Lent::new());
        assert!(needs_helper(lent.offer(Box::new(UnsafeCell::new(0)))));
        let other = {
            let lent = lent.clone();
            thread::spawn(move || {
                let Some(core) = lent.accept() else { return 0 };
                core.with_mut(|runs| {
                    // SAFETY: as in `work`.
                    unsafe { *runs += 1 }
                });
                let _ = needs_helper(lent.offer(core));
                1
            })
        };
        let first = work(lent.take());
        let other = other.join().unwrap();
        let last = work(lent.take());
        match first {
            0 => assert_eq!((other, last), (1, 2)),
            n => assert_eq!((other, last), (n - 1, 0)),
        }
    });
}

/// Two threads offer a value each at the same time. Each thread then owns the value that its offer
/// replaced, and sees all changes to that value.
///
/// Fails if `offer` is only Release.
#[test]
fn replaced_value_shows_its_owners_writes() {
    model(|| {
        let lent = Arc::new(Lent::new());
        let other = {
            let lent = lent.clone();
            thread::spawn(move || {
                let core = Box::new(UnsafeCell::new(0));
                core.with_mut(|runs| {
                    // SAFETY: as in `work`.
                    unsafe { *runs += 1 }
                });
                work(lent.offer(core).before)
            })
        };
        let mine = work(lent.offer(Box::new(UnsafeCell::new(0))).before);
        let theirs = other.join().unwrap();
        let last = work(lent.take());
        assert_eq!(mine + theirs + last, 3, "{mine} {theirs} {last}");
    });
}

/// The value is offered, taken back and offered again, while the helper that the first offer
/// requested arrives. The helper finds the second offer, and at most one helper is requested at a
/// time.
///
/// Fails if `accept` clears the bit only if a value was there, or if `take` clears the bit too.
#[test]
fn second_offer_is_found_by_the_first_request() {
    model(|| {
        let lent = Arc::new(Lent::new());
        let requests = Arc::new(AtomicUsize::new(0));
        let request = |first: bool| {
            // Ordering: AcqRel, as the lock of a queue of requests would order it.
            let before = requests.fetch_add(usize::from(first), AcqRel);
            assert!(before == 0 || !first, "two helpers are requested at a time");
        };
        let accept = |lent: &Lent<_>, requests: &AtomicUsize| {
            // Ordering: as above.
            (requests.swap(0, AcqRel) > 0).then(|| work(lent.accept()))
        };
        let other = {
            let (lent, requests) = (lent.clone(), requests.clone());
            thread::spawn(move || accept(&lent, &requests).unwrap_or(0))
        };
        request(needs_helper(lent.offer(Box::new(UnsafeCell::new(0)))));
        let back = lent.take();
        let again = back.is_some();
        if let Some(core) = back {
            request(needs_helper(lent.offer(core)));
        }
        let found = other.join().unwrap();
        let late = accept(&lent, &requests).unwrap_or(0);
        assert_eq!(found + late, 1, "offered again: {again}");
    });
}
