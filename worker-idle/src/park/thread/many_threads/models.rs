//! A parker that moves between threads, and four wakers. These are more threads than loom can
//! check, so this module is not built for loom.
use super::super::*;
use core::array;
use sync_shim::{atomic::AtomicUsize, model};

const WAKERS: usize = 4;
const TURNS: usize = 3;

#[derive(Default)]
struct Counts {
    messages: AtomicUsize,
    parks: AtomicUsize,
}

/// Parks until there are `until` messages. No two parks end by the same unpark, and no two unparks
/// follow the same message. So there are never more ended parks than messages.
fn read(park: &mut ThreadPark, counts: &Counts, until: usize) {
    // Ordering: Relaxed, as the parker must order the messages.
    while counts.messages.load(Relaxed) < until {
        park.park();
        // Ordering: Relaxed, only the thread that has the parker uses `parks`. A spawn or a join
        // passes both on.
        let parks = 1 + counts.parks.fetch_add(1, Relaxed);
        assert!(
            parks <= counts.messages.load(Relaxed),
            "a park without a token"
        );
    }
}

/// Four threads write messages and unpark. A fifth thread unparks the test's thread by the token of
/// `std::thread`, which is not the parker's. The test's thread reads half of the messages, and
/// another thread the rest. A lost token leaves a reader asleep.
///
/// Fails if the parker stores PARKED instead of exchanging EMPTY for PARKED, if `park` returns
/// without a token, or if the parker keeps the handle of the first thread that parked.
#[test]
fn unparks_by_four_are_seen_by_a_parker_that_moves() {
    model(|| {
        let mut park = ThreadPark::new();
        let counts = Arc::new(Counts::default());
        let wakers: [_; WAKERS] = array::from_fn(|_| {
            let (waker, counts) = (park.waker(), counts.clone());
            thread::spawn(move || {
                for _ in 0..TURNS {
                    // Ordering: Relaxed, as the parker must order the messages.
                    counts.messages.fetch_add(1, Relaxed);
                    waker.wake_by_ref();
                }
            })
        });
        let first = thread::current();
        let std_unparker = thread::spawn(move || first.unpark());
        read(&mut park, &counts, WAKERS * TURNS / 2);
        let second = {
            let counts = counts.clone();
            thread::spawn(move || {
                read(&mut park, &counts, WAKERS * TURNS);
                park
            })
        };
        for thread in wakers.into_iter().chain([std_unparker]) {
            thread.join().unwrap();
        }
        let park = second.join().unwrap();
        // Ordering: Relaxed, after the joins.
        let parks = counts.parks.load(Relaxed);
        let tokens = parks + usize::from(park.take_token());
        assert!((1..=WAKERS * TURNS).contains(&tokens));
        assert!(!park.take_token(), "two tokens at a time");
    });
}
