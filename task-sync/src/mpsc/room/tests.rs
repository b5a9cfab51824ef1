use super::*;
use core::pin::pin;

/// A full channel grants one message. Before, as many messages have passed as make the limit
/// `behind` messages old, if no grant has moved it.
fn grant_with_limit(behind: usize) {
    const CAPACITY: usize = 2;
    let room = Room::new(CAPACITY, (), ());
    room.try_reserve(CAPACITY).unwrap();
    let passed = (behind - 1).wrapping_mul(UNIT);
    // Ordering: Relaxed, there is one thread.
    room.senders.reserved.fetch_add(passed, Relaxed);
    // Ordering: as above.
    room.receiver.received.fetch_add(passed, Relaxed);
    let waiter = pin!(Waiter::new(Need::of(1)));
    let waiter = waiter.as_ref();
    // SAFETY: the waiter is fresh, and is granted its room below.
    assert!(unsafe { room.queue(waiter, Waker::noop().clone(), 1) });
    room.give_room(1);
    // SAFETY: the waiter is queued above.
    let granted = unsafe { room.poll(waiter, Waker::noop()) };
    assert_eq!(granted, Poll::Ready(Ok(())));
    assert_eq!(room.capacity(), 0);
    assert_eq!(room.try_reserve(1), Err(TrySendError::Full(())));
}

/// The counts differ by so many messages that `between` wraps: to a great positive number, or to
/// one within the capacity.
///
/// Fails if a grant does not move the limit.
#[test]
fn reservation_after_many_grants_stays_within_capacity() {
    grant_with_limit(1);
    let all = usize::MAX / UNIT + 1;
    for behind in [all / 2 + 1, all - 1] {
        grant_with_limit(behind);
    }
}
