//! Models of unparks before, during and after a park.
use super::*;
use sync_shim::{model, model_must_fail};

/// A Relaxed store before an unpark is visible after the park.
///
/// Fails if one of these is Relaxed: the swap in `unpark`, the exchange in `take_token`, or the
/// swap in `park_with`.
#[test]
fn park_sees_writes_before_its_unpark() {
    model(|| {
        let mut park = ThreadPark::new();
        let message = Arc::new(AtomicU32::new(0));
        let other = {
            let (waker, message) = (park.waker(), message.clone());
            thread::spawn(move || {
                message.store(1, Relaxed);
                waker.wake_by_ref();
            })
        };
        park.park();
        assert_eq!(message.load(Relaxed), 1);
        other.join().unwrap();
    });
}

/// Two unparks race with a park. Either both unparks together leave one token, or the second unpark
/// comes after the park has taken the first token, and leaves another. There are never two tokens
/// at a time.
///
/// Fails if `take_token` returns `true` but leaves the token.
#[test]
fn two_unparks_never_leave_two_tokens_at_once() {
    model(|| {
        let mut park = ThreadPark::new();
        let others = [(); 2].map(|()| {
            let waker = park.waker();
            thread::spawn(move || waker.wake())
        });
        park.park();
        for other in others {
            other.join().unwrap();
        }
        // Takes the other token, if the second unpark has left one.
        park.take_token();
        assert!(!park.take_token(), "a second token is left");
    });
}

/// A parker that stores PARKED, instead of exchanging EMPTY for PARKED, overwrites a token that an
/// unpark has left after the parker looked for a token. The parker's thread would then sleep
/// forever.
#[test]
fn plain_store_of_parked_loses_a_token() {
    model_must_fail("the token is gone", || {
        let park = ThreadPark::new();
        let waker = park.waker();
        let other = thread::spawn(move || waker.wake());
        if !park.take_token() {
            park.0
                .state
                .store(PARKED, sync_shim::atomic::Ordering::Release);
        }
        other.join().unwrap();
        assert_ne!(park.0.state.load(Relaxed), PARKED, "the token is gone");
    });
}
