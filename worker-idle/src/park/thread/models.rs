//! Models of unparks before, during and after a park.
use super::*;
use sync_shim::{model, model_must_fail};

/// A Relaxed store before an unpark is visible after the park.
///
/// Fails if the swap in `unpark` is Relaxed.
#[test]
fn park_sees_writes_before_its_unpark() {
    model(|| {
        let mut park = ThreadPark::new();
        let message = Arc::new(AtomicU32::new(0));
        let other = {
            let (unpark, message) = (park.unparker(), message.clone());
            thread::spawn(move || {
                message.store(1, Relaxed);
                unpark.unpark();
            })
        };
        park.park();
        assert_eq!(message.load(Relaxed), 1);
        other.join().unwrap();
    });
}

/// Two unparks leave one token, or two in turn: the second unpark may come after the park has taken
/// the first token.
///
/// Fails if the fast path of `park` does not take the token.
#[test]
fn two_unparks_end_two_parks_or_merge() {
    model(|| {
        let mut park = ThreadPark::new();
        let others = [(); 2].map(|()| {
            let unpark = park.unparker();
            thread::spawn(move || unpark.unpark())
        });
        park.park();
        for other in others {
            other.join().unwrap();
        }
        let token = park.take_token();
        assert!(!park.take_token(), "two tokens at a time: {token}");
    });
}

/// A parker that stores PARKED plainly overwrites a token that was there. The thread would then
/// sleep forever.
#[test]
fn plain_store_of_parked_loses_a_token() {
    model_must_fail("the token is gone", || {
        let park = ThreadPark::new();
        let unpark = park.unparker();
        let other = thread::spawn(move || unpark.unpark());
        if !park.take_token() {
            park.0
                .state
                .store(PARKED, sync_shim::atomic::Ordering::Release);
        }
        other.join().unwrap();
        assert_ne!(park.0.state.load(Relaxed), PARKED, "the token is gone");
    });
}
