//! Guests: threads in a [`block_on`](Driver::block_on) of a driver that are no workers.
//!
//! A guest has a token, and an index behind those of the workers. By its index the guest can have
//! the poller role, and by its token it is unparked.
//!
//! 1. The list of guests is under a lock. A guest keeps its index until it leaves. Then the next
//!    guest may get that index: an unpark that was meant for the first guest may end a wait of the
//!    next one in vain.
//! 2. A guest polls its own future only if that future was woken: an unpark may have another
//!    reason.
//! 3. A guest takes the poller role only as the standby (`standby.rs`), and only if something has
//!    been due for a round. When the guest leaves the role, it hands the role over to a worker that
//!    waits. If no worker waits, the guest stands by again, or takes the role at once after a full
//!    batch. So it leaves the events of a busy worker to that worker, because tasks that a guest
//!    wakes must change threads.
//! 4. Where no thread stands by, a guest waits for its own future alone.
//! 5. Before a guest polls its future again, and when it leaves, it recruits another standby, if
//!    there must be a standby and there is none (rule 5 of `standby.rs`).
use crate::{
    driver::Driver,
    park::WorkerPark,
    threads::Threads,
    token::{Token, Waited},
};
use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};
use sync_shim::{
    atomic::{
        AtomicBool,
        Ordering::{Acquire, Relaxed, Release},
    },
    panics::contain,
};
use worker_idle::park::Park;

/// The waker of a guest's future (rule 2).
struct Signal {
    woken: AtomicBool,
    token: Arc<Token>,
}

impl Signal {
    /// Takes the wake, if there was one.
    fn take(&self) -> bool {
        // Ordering: Acquire pairs with the store in `wake`. No thread acquires the `false`.
        //
        // A swap would do as well, but not in the model checker. If a swap finds `false`, the
        // checker may put the `false` that the swap writes behind the `true` of a wake, which is
        // then lost. An exchange that fails writes nothing.
        self.woken
            .compare_exchange(true, false, Acquire, Relaxed)
            .is_ok()
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Ordering: Release pairs with the exchange in `take`: the poll sees what the waking thread
        // did before.
        self.woken.store(true, Release);
        self.token.unpark();
    }
}

impl Driver {
    /// Blocks this thread, which is no worker, until a future is ready. Returns the future's
    /// output.
    ///
    /// The driver is current meanwhile. If the driver [lets parked threads stand
    /// by](Self::with_standby), this thread serves timers and sockets while all workers are in long
    /// polls: it then calls the wakers of tasks, and catches their panics. A clock that a test has
    /// paused jumps only while this thread waits too.
    ///
    /// ```
    /// use net_driver::{Driver, time};
    /// use std::{thread, time::Duration};
    ///
    /// let driver = Driver::new(1);
    /// let mut worker = driver.park(0);
    /// let other = thread::spawn(move || driver.block_on(time::sleep(Duration::from_millis(5))));
    /// worker.block_on(time::sleep(Duration::from_millis(5)));
    /// # worker.block_on(time::sleep(Duration::from_millis(50)));
    /// other.join().unwrap();
    /// ```
    ///
    /// # Panics
    /// If the future panics.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let token = Arc::new(Token::new(self.inner().poller.clone()));
        let signal = Arc::new(Signal {
            woken: AtomicBool::new(true),
            token: token.clone(),
        });
        let waker = Waker::from(signal.clone());
        let mut cx = Context::from_waker(&waker);
        let mut park = WorkerPark::of_guest(self.clone(), token);
        let mut future = pin!(future);
        self.scope(None, || {
            loop {
                if signal.take() {
                    if self.threads().lacks_standby() {
                        self.threads().recruit_standby();
                    }
                    if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                        return output;
                    }
                }
                park.park();
                while park.has_events() {
                    contain(|| park.deliver());
                }
            }
        })
    }
}

impl WorkerPark {
    /// Makes the park of a thread that enters a `block_on`.
    pub(crate) fn of_guest(driver: Driver, token: Arc<Token>) -> Self {
        let threads = driver.threads();
        let index = threads.tokens.len() + threads.guests.add(token.clone());
        #[cfg(feature = "test-util")]
        threads.clock.will_wait();
        Self::with(driver, token, index)
    }

    pub(crate) fn is_guest(&self) -> bool {
        self.index() >= self.driver().threads().tokens.len()
    }

    /// Waits as a guest (rules 3 and 4).
    pub(crate) fn wait_as_guest(&mut self) {
        let driver = self.driver().clone();
        let threads = driver.threads();
        let mut takes = self.had_full_batch() && threads.needs_standby();
        loop {
            if takes && threads.role.try_take(self.index()) {
                self.wait_as_poller(None);
                return threads.retire(self.index());
            }
            takes = false;
            let waited = if !threads.needs_standby() {
                self.wait_in_thread_if(None, || true)
            } else if threads.role.try_stand_by(self.index()) {
                takes = true;
                self.stand_by(None)
            } else {
                self.wait_beside_standby(None, || true)
            };
            if waited != Waited::Refused {
                return;
            }
        }
    }
}

impl Threads {
    /// Takes a guest out of the list.
    pub(crate) fn remove_guest(&self, index: usize) {
        #[cfg(feature = "test-util")]
        self.clock.will_wait();
        self.guests.remove(index - self.tokens.len());
        if self.lacks_standby() {
            self.recruit_standby();
        }
        #[cfg(feature = "test-util")]
        self.began_to_wait();
    }
}

#[cfg(test)]
mod models {
    use super::*;
    use crate::poller::{Poller, Polling};
    use sync_shim::{cell::UnsafeCell, model, thread};

    struct Done(UnsafeCell<bool>);

    // SAFETY: the model fails if two threads access the value at a time.
    unsafe impl Sync for Done {}
    // SAFETY: a flag may be used from any thread.
    unsafe impl Send for Done {}

    /// A thread writes a value, and wakes the guest's future: a guest that takes the wake sees the
    /// write.
    ///
    /// Fails if the store in `wake`, or the exchange in `take`, is Relaxed.
    #[test]
    fn wake_of_a_guests_future_shows_what_came_before() {
        model(|| {
            let done = Arc::new(Done(UnsafeCell::new(false)));
            let poller = Arc::new(Poller::new(Polling::default(), 1));
            let signal = Arc::new(Signal {
                woken: AtomicBool::new(false),
                token: Arc::new(Token::new(poller)),
            });
            let other = {
                let (done, signal) = (done.clone(), signal.clone());
                thread::spawn(move || {
                    // SAFETY: the other thread reads the value only after it has taken the wake.
                    done.0.with_mut(|done| unsafe { *done = true });
                    signal.wake();
                })
            };
            if signal.take() {
                // SAFETY: the wake came after the write.
                assert!(done.0.with(|done| unsafe { *done }));
            }
            other.join().unwrap();
        });
    }
}
