//! A lender and those who take over: one of them has the core, and sees all that was done to it.
use super::*;
use sync_shim::{cell::UnsafeCell, model, sync::Arc, thread};

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

/// Bites: take with a load and a store.
#[test]
fn a_core_is_taken_over_or_taken_back() {
    model(|| {
        let lent = Arc::new(Lent::new());
        let others = [(); 2].map(|()| {
            let lent = lent.clone();
            thread::spawn(move || work(lent.take()))
        });
        let core = Box::new(UnsafeCell::new(0));
        assert!(lent.offer(core).is_none());
        let back = work(lent.take());
        let over: u32 = others.map(|other| other.join().unwrap()).iter().sum();
        assert_eq!(over + back, 1);
    });
}

/// It goes to another, who offers it in turn.
///
/// Bites: offer with Relaxed.
#[test]
fn a_core_that_comes_back_shows_what_was_done_to_it() {
    model(|| {
        let lent = Arc::new(Lent::new());
        assert!(lent.offer(Box::new(UnsafeCell::new(0))).is_none());
        let other = {
            let lent = lent.clone();
            thread::spawn(move || {
                let Some(core) = lent.take() else { return 0 };
                core.with_mut(|runs| {
                    // SAFETY: as in `work`.
                    unsafe { *runs += 1 }
                });
                assert!(lent.offer(core).is_none());
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
fn what_another_offer_was_is_whole() {
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
                work(lent.offer(core))
            })
        };
        let mine = work(lent.offer(Box::new(UnsafeCell::new(0))));
        let theirs = other.join().unwrap();
        let last = work(lent.take());
        assert_eq!(mine + theirs + last, 3, "{mine} {theirs} {last}");
    });
}
