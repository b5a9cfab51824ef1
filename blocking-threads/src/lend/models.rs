//! A lender and those who take over: one of them has the core, and sees all that was done to it.
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
            // SAFETY: whoever has the core has it alone; the model checks it.
            let runs = unsafe { &mut *runs };
            *runs += 1;
            *runs
        })
    })
}

/// The only one: whether somebody is to be asked.
fn offered<T: Send>(offered: Offered<T>) -> bool {
    assert!(offered.before.is_none());
    offered.request
}

/// Bites: take with a load and a store.
#[test]
fn offered_value_is_taken_exactly_once() {
    model(|| {
        let lent = Arc::new(Lent::new());
        let other = {
            let lent = lent.clone();
            thread::spawn(move || work(lent.accept()))
        };
        let core = Box::new(UnsafeCell::new(0));
        assert!(offered(lent.offer(core)));
        let back = work(lent.take());
        assert_eq!(other.join().unwrap() + back, 1);
    });
}

/// It goes to another, who offers it in turn.
///
/// Bites: offer with Relaxed.
#[test]
fn returned_value_shows_the_other_threads_writes() {
    model(|| {
        let lent = Arc::new(Lent::new());
        assert!(offered(lent.offer(Box::new(UnsafeCell::new(0)))));
        let other = {
            let lent = lent.clone();
            thread::spawn(move || {
                let Some(core) = lent.accept() else { return 0 };
                core.with_mut(|runs| {
                    // SAFETY: as in `work`.
                    unsafe { *runs += 1 }
                });
                let _ = offered(lent.offer(core));
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

/// Bites: offer with Release.
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

/// The core is offered, taken back, and offered again, while one comes who was asked at the first time. What was asked for last is found, and nobody is asked twice
/// at a time.
///
/// Bites: clear the bit in `come` only if something was there; clear it in `take`, too.
#[test]
fn second_offer_is_found_by_the_first_request() {
    model(|| {
        let lent = Arc::new(Lent::new());
        let asked = Arc::new(AtomicUsize::new(0));
        let ask = |first: bool| {
            // Ordering: AcqRel, as a queue's lock.
            let before = asked.fetch_add(usize::from(first), AcqRel);
            assert!(before == 0 || !first, "asked twice at a time");
        };
        let come = |lent: &Lent<_>, asked: &AtomicUsize| {
            // Ordering: as above.
            (asked.swap(0, AcqRel) > 0).then(|| work(lent.accept()))
        };
        let other = {
            let (lent, asked) = (lent.clone(), asked.clone());
            thread::spawn(move || come(&lent, &asked).unwrap_or(0))
        };
        ask(offered(lent.offer(Box::new(UnsafeCell::new(0)))));
        let back = lent.take();
        let again = back.is_some();
        if let Some(core) = back {
            ask(offered(lent.offer(core)));
        }
        let found = other.join().unwrap();
        let late = come(&lent, &asked).unwrap_or(0);
        assert_eq!(found + late, 1, "offered again: {again}");
    });
}
