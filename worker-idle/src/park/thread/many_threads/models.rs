//! A parker that moves between threads, and four unparkers: more threads than loom can check.
use super::super::*;
use core::array;
use sync_shim::{atomic::AtomicUsize, model};

const UNPARKERS: usize = 4;
const TURNS: usize = 3;

#[derive(Default)]
struct Books {
    messages: AtomicUsize,
    parks: AtomicUsize,
}

/// Parks until there are `until` messages. An unpark of its own ends each park, and each unpark
/// follows a message.
fn read(park: &mut ThreadPark, books: &Books, until: usize) {
    // Ordering: Relaxed, as the parker must order it.
    while books.messages.load(Relaxed) < until {
        park.park();
        // Ordering: Relaxed, only the parker's thread uses it, and a spawn or a join hands it on.
        let parks = 1 + books.parks.fetch_add(1, Relaxed);
        assert!(
            parks <= books.messages.load(Relaxed),
            "a park without a token"
        );
    }
}

/// Four threads write messages and unpark. A fifth unparks the first thread with the token of
/// `std::thread`, which is not the parker's. One thread reads half of the messages and another one
/// the rest. A lost token leaves a reader asleep.
///
/// Fails if PARKED is stored plainly, if `park` returns without a token, or if the first thread's
/// handle is kept.
#[test]
fn unparks_by_four_are_seen_by_a_parker_that_moves() {
    model(|| {
        let mut park = ThreadPark::new();
        let books = Arc::new(Books::default());
        let unparkers: [_; UNPARKERS] = array::from_fn(|_| {
            let (unpark, books) = (park.unparker(), books.clone());
            thread::spawn(move || {
                for _ in 0..TURNS {
                    // Ordering: Relaxed, as the parker must order it.
                    books.messages.fetch_add(1, Relaxed);
                    unpark.unpark();
                }
            })
        });
        let first = thread::current();
        let own = thread::spawn(move || first.unpark());
        read(&mut park, &books, UNPARKERS * TURNS / 2);
        let second = {
            let books = books.clone();
            thread::spawn(move || {
                read(&mut park, &books, UNPARKERS * TURNS);
                park
            })
        };
        for thread in unparkers.into_iter().chain([own]) {
            thread.join().unwrap();
        }
        let park = second.join().unwrap();
        // Ordering: Relaxed, after the joins.
        let parks = books.parks.load(Relaxed);
        let tokens = parks + usize::from(park.take_token());
        assert!((1..=UNPARKERS * TURNS).contains(&tokens));
        assert!(!park.take_token(), "two tokens at a time");
    });
}
