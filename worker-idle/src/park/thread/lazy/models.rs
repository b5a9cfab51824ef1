//! Models of the first poll's waker: its wakes race the wait that follows the poll.
use super::*;
use core::future::poll_fn;
use sync_shim::{
    atomic::{AtomicU32, Ordering::Relaxed},
    model, thread,
};

/// Another thread gets a clone of the first poll's waker. That thread writes a message and wakes,
/// before or during the park. The wake ends the wait, and the second poll sees the message.
///
/// Fails if `into_park` always makes a new parker.
#[test]
fn wake_by_the_first_polls_waker_ends_the_wait() {
    model(|| {
        let message = Arc::new(AtomicU32::new(0));
        let mut other = None;
        let wait = poll_fn(|cx| {
            let Some(other) = other.take() else {
                let (waker, message) = (cx.waker().clone(), message.clone());
                other = Some(thread::spawn(move || {
                    // Ordering: Relaxed, the wake publishes it.
                    message.store(1, Relaxed);
                    waker.wake();
                }));
                return Poll::Pending;
            };
            // Ordering: Relaxed, the park acquires it.
            assert_eq!(message.load(Relaxed), 1, "polled without a wake");
            Poll::Ready(other)
        });
        ThreadPark::block_on(wait).join().unwrap();
    });
}

/// Two threads each have a waker that borrows the same `Lazy`. One thread clones its waker, and the
/// other thread wakes through its own. Both use the same parker, and the wake's token is in that
/// parker.
///
/// Fails if `with_parker` makes a new parker in each call.
#[test]
fn two_users_of_the_borrowed_waker_make_one_parker() {
    model(|| {
        let lazy = Arc::new(Lazy::new());
        let other = {
            let lazy = lazy.clone();
            thread::spawn(move || {
                // SAFETY: this thread's `Arc` keeps `lazy` alive at a fixed address. The `Arc` is
                // dropped after the waker.
                let waker = unsafe { lazy.waker() };
                waker.wake_by_ref();
            })
        };
        let clone = {
            // SAFETY: as above.
            let waker = unsafe { lazy.waker() };
            waker.clone()
        };
        other.join().unwrap();
        let Ok(lazy) = Arc::try_unwrap(lazy) else {
            unreachable!("the other thread is done")
        };
        let mut park = lazy.into_park();
        assert_eq!(clone.data(), Arc::as_ptr(&park.0).cast());
        park.park();
    });
}
