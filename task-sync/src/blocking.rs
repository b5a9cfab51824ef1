//! Blocks a thread until a future is ready: for the `blocking_*` methods.
//!
//! `woken` is set by a waker, before the unpark, and is taken by the thread that waits. The token
//! of `unpark` is only a hint to look at `woken`: other code of the thread may use that token too.
use alloc::sync::Arc;
use core::{
    pin::pin,
    task::{Context, Poll},
};
use std::task::{Wake, Waker};
use sync_shim::{
    atomic::{
        AtomicBool,
        Ordering::{Acquire, Release},
    },
    thread::{self, Thread},
};

struct Parked {
    woken: AtomicBool,
    thread: Thread,
}

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Ordering: Release pairs with the Acquire of `block_on`: the next poll sees what the
        // notifier did before the wake. A swap and not a store, so that the model checker knows
        // that it comes after the other side's swap that it follows.
        self.woken.swap(true, Release);
        self.thread.unpark();
    }
}

/// Polls the future on this thread until it is ready, and parks the thread meanwhile. Allocates
/// only if the first poll is pending.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    // A thread that blocks gives no turn to other tasks, so the budget of a poll around it is not
    // charged. If that were used up, each poll here would be refused.
    #[cfg(feature = "coop-budget")]
    let future = coop_budget::unconstrained(future);
    let mut future = pin!(future);
    let parked = Arc::new(Parked {
        woken: AtomicBool::new(false),
        thread: thread::current(),
    });
    let waker = Waker::from(parked.clone());
    let mut cx = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
        // Ordering: Acquire pairs with the Release of a wake.
        while !parked.woken.swap(false, Acquire) {
            thread::park();
        }
    }
}

#[cfg(test)]
mod models {
    use super::*;
    use core::future::poll_fn;
    use sync_shim::{atomic::Ordering::Relaxed, model};

    /// A notifier changes a condition and wakes; the next poll sees the change. Fails if a wake
    /// does not unpark. (The model checker's unpark orders the condition too, so the model does not
    /// fail if an ordering is Relaxed.)
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
}
