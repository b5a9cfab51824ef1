//! A parker, and many that unpark it: more threads than the model checker takes.
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

/// Parks until there are so many messages. Each park is owed to an unpark of its own, and each of these comes after a message.
fn read(park: &mut ThreadPark, books: &Books, until: usize) {
    // Ordering: Relaxed, the parker's to order.
    while books.messages.load(Relaxed) < until {
        park.park();
        // Ordering: Relaxed, the parker's alone, which goes from hand to hand by a spawn and a join.
        let parks = 1 + books.parks.fetch_add(1, Relaxed);
        assert!(
            parks <= books.messages.load(Relaxed),
            "a park without a token"
        );
    }
}

/// Four leave messages and unpark; a fifth unparks the first thread by the thread's own token, which is none of the parker's. Half of the messages are read in
/// one thread and the rest in another. A lost token leaves it asleep.
///
/// Bites: publish PARKED with a plain store; return from `park` without a token; keep the first thread's handle.
#[test]
fn unparks_by_four_are_seen_by_a_parker_that_moves() {
    model(|| {
        let mut park = ThreadPark::new();
        let books = Arc::new(Books::default());
        let unparkers: [_; UNPARKERS] = array::from_fn(|_| {
            let (unpark, books) = (park.unparker(), books.clone());
            thread::spawn(move || {
                for _ in 0..TURNS {
                    // Ordering: Relaxed, the parker's to order.
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
