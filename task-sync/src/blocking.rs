//! Blocks a thread until a future is ready: for the `blocking_*` methods.
//!
//! A waker sets `woken` and notifies `turn`, for which the thread waits. Only a thread that waits
//! sees the notification. The token of `unpark` would stay with a thread that does not wait: it
//! could end a later wait of other code on that thread.
use alloc::sync::Arc;
use core::{
    pin::pin,
    task::{Context, Poll},
};
use std::task::{Wake, Waker};
use sync_shim::sync::{Condvar, Mutex};

struct Parked {
    woken: Mutex<bool>,
    turn: Condvar,
}

impl Parked {
    /// Waits for a wake since the last call.
    fn park(&self) {
        let mut woken = self.woken.lock();
        while !*woken {
            woken = self.turn.wait(woken);
        }
        *woken = false;
    }
}

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        *self.woken.lock() = true;
        self.turn.notify_one();
    }
}

/// Checks that no task waits for this thread while it blocks.
///
/// # Panics
/// In a poll that has a budget: its runtime's tasks would wait.
#[track_caller]
pub(crate) fn assert_may_block() {
    #[cfg(feature = "coop-budget")]
    assert!(
        coop_budget::may_block(),
        "this thread polls tasks, and the call would block it: await instead, or call it in \
         block_in_place or spawn_blocking"
    );
}

/// Polls the future on this thread until it is ready, and parks the thread meanwhile. Allocates
/// once.
///
/// # Panics
/// As [`assert_may_block`].
#[track_caller]
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    assert_may_block();
    // A thread that blocks gives no turn to other tasks, so the budget of a poll around it is not
    // charged. If that were used up, each poll here would be refused.
    #[cfg(feature = "coop-budget")]
    let future = coop_budget::unconstrained(future);
    let mut future = pin!(future);
    let parked = Arc::new(Parked {
        woken: Mutex::new(false),
        turn: Condvar::new(),
    });
    let waker = Waker::from(parked.clone());
    let mut cx = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
        parked.park();
    }
}

#[cfg(test)]
mod models {
    use super::*;
    use core::future::poll_fn;
    use sync_shim::{
        atomic::{AtomicBool, Ordering::Relaxed},
        model, thread,
    };

    /// A notifier changes a condition and wakes; the next poll sees the change. Fails if a wake
    /// does not notify.
    #[test]
    fn poll_after_a_wake_sees_the_condition() {
        model(|| {
            let condition = Arc::new(AtomicBool::new(false));
            let mut notifier = None;
            block_on(poll_fn(|cx| {
                if notifier.is_some() {
                    // Ordering: Relaxed, the wake must order the condition.
                    assert!(condition.load(Relaxed));
                    return Poll::Ready(());
                }
                let (condition, waker) = (condition.clone(), cx.waker().clone());
                notifier = Some(thread::spawn(move || {
                    // Ordering: Relaxed, as above.
                    condition.store(true, Relaxed);
                    waker.wake();
                }));
                Poll::Pending
            }));
            notifier.unwrap().join().unwrap();
        });
    }

    /// A wake comes while the thread does not wait any more, but joins the other one. Fails if a
    /// wake unparks the thread (loom would take that for the end of the join).
    #[test]
    fn late_wake_ends_no_other_wait() {
        model(|| {
            let is_done = Arc::new(AtomicBool::new(false));
            let mut notifier = None;
            block_on(poll_fn(|cx| {
                let (done, waker) = (is_done.clone(), cx.waker().clone());
                notifier.get_or_insert_with(|| {
                    thread::spawn(move || {
                        waker.wake_by_ref();
                        // This one comes late.
                        waker.wake();
                        // Ordering: Relaxed, the join orders it.
                        done.store(true, Relaxed);
                    })
                });
                Poll::Ready(())
            }));
            notifier.unwrap().join().unwrap();
            // Ordering: as above.
            assert!(is_done.load(Relaxed));
        });
    }
}
