//! `block_on` with any parker.
use super::Park;
use core::{
    future::Future,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

/// Blocks this thread until a future is ready, and returns its output. Parks with `park` between
/// polls.
///
/// The call costs its waker, its wakes and its parks. While the thread is parked, the parker
/// drives its timers and I/O, if it has any.
///
/// ```
/// use std::{future::poll_fn, task::Poll};
/// use worker_idle::park::{ThreadPark, block_on};
///
/// let mut polls = 0;
/// let counted = poll_fn(|cx| {
///     polls += 1;
///     let waker = cx.waker().clone();
///     std::thread::spawn(move || waker.wake());
///     if polls < 3 { Poll::Pending } else { Poll::Ready(polls) }
/// });
/// assert_eq!(block_on(&mut ThreadPark::new(), counted), 3);
/// ```
///
/// # Panics
/// If the future or the parker panics.
pub fn block_on<F: Future>(park: &mut impl Park, future: F) -> F::Output {
    let future = pin!(future);
    let waker = park.waker();
    poll_until_ready(park, &waker, future)
}

/// Polls with this waker, and parks after each `Pending`.
pub(super) fn poll_until_ready<F: Future>(
    park: &mut impl Park,
    waker: &Waker,
    mut future: Pin<&mut F>,
) -> F::Output {
    let mut cx = Context::from_waker(waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
        park.park();
    }
}
