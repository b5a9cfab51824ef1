//! Models of the lock: one owner at a time, whose writes the next owner sees, and no lost wake.
//!
//! "Fails if" names the changes to the code that make a model fail.
use super::*;
use crate::{blocking::block_on, wait::Wait};
use core::{pin::pin, task::Context};
use std::sync::Arc;
use sync_shim::{Model, cell::UnsafeCell, model, thread};

/// A lock and the value that it protects.
struct Protected {
    mutex: RawMutex,
    value: UnsafeCell<u32>,
    /// Whether the lock notes its holder from its creation on. Without a model no holder is wanted.
    is_noted: bool,
}

// SAFETY: the models check that the accesses are in order.
unsafe impl Sync for Protected {}

impl AsMutex for &RawMutex {
    fn mutex(&self) -> &RawMutex {
        self
    }
}

impl Protected {
    fn new() -> Arc<Self> {
        Self::of(false)
    }

    fn of(is_noted: bool) -> Arc<Self> {
        let (mutex, value) = (RawMutex::new(is_noted), UnsafeCell::new(0));
        Arc::new(Self {
            mutex,
            value,
            is_noted: is_noted && cfg!(any(selvedge_loom, selvedge_shuttle)),
        })
    }

    fn lock(&self) -> impl Future<Output = ()> {
        Wait::new(Lock(&self.mutex), |_, ()| ())
    }

    /// Adds one and unlocks. If the lock notes its holder, this is the thread's task. If a dump may
    /// have set the bit meanwhile, nobody may be noted.
    fn add(&self) {
        #[cfg(feature = "coop-budget")]
        {
            let holder = self.mutex.holder.get();
            let is_own = holder == coop_budget::polled_task().map(u64::from);
            assert!(is_own || (!self.is_noted && holder.is_none()), "{holder:?}");
        }
        self.value.with_mut(|value| {
            // SAFETY: the caller owns the lock.
            unsafe { *value += 1 };
        });
        // SAFETY: as above.
        unsafe { self.mutex.unlock() };
    }

    /// Asserts that the lock is free, nobody is in its queue, and `value` owners have added.
    fn check(&self, value: u32) {
        assert!(self.mutex.try_lock());
        let found = self.value.with(|value| {
            // SAFETY: this thread owns the lock.
            unsafe { *value }
        });
        assert_eq!(found, value);
        // SAFETY: as above.
        unsafe { self.mutex.unlock() };
        // Ordering: Relaxed, the threads have been joined.
        assert_eq!(self.mutex.state.load(Relaxed) & !NOTED, 0);
    }
}

/// Two threads lock and unlock. Fails if an Acquire or a Release is Relaxed, or if `unlock` does
/// not look at `QUEUED`.
#[test]
fn two_threads_own_the_lock_in_turns() {
    model(|| {
        let shared = Protected::new();
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                block_on(shared.lock());
                shared.add();
            })
        };
        block_on(shared.lock());
        shared.add();
        other.join().unwrap();
        shared.check(2);
    });
}

/// One thread waits; another unlocks and overtakes it. Fails if `lock_or_push` does not set
/// `HANDOFF` before the next unlock may see it, or leaves `WOKEN` set, or if `unlock` does not look
/// at `HANDOFF` and `wake_first` does not either.
#[test]
fn overtaken_waiter_is_handed_the_lock() {
    Model::new().bound(3).check(|| {
        let shared = Protected::new();
        block_on(shared.lock());
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                block_on(shared.lock());
                shared.add();
            })
        };
        shared.add();
        block_on(shared.lock());
        shared.add();
        if shared.mutex.try_lock() {
            shared.add();
            other.join().unwrap();
            return shared.check(4);
        }
        other.join().unwrap();
        shared.check(3);
    });
}

/// The lock notes its holder, and one of two tasks overtakes the other. Fails if a poll that gets
/// the lock does not note its task, or if a hand-over clears the note after the new owner has set
/// it.
#[cfg(feature = "coop-budget")]
#[test]
fn owner_of_a_lock_with_notes_is_its_holder() {
    use coop_budget::poll_as;

    Model::new().bound(3).check(|| {
        let shared = Protected::of(true);
        poll_as(1, || block_on(shared.lock()));
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                poll_as(2, || {
                    block_on(shared.lock());
                    shared.add();
                });
            })
        };
        poll_as(1, || {
            shared.add();
            block_on(shared.lock());
            shared.add();
        });
        other.join().unwrap();
        shared.check(3);
    });
}

/// Three threads lock and unlock. Fails if `wake_first` does not clear `QUEUED` with the last
/// waiter, or clears it with another.
#[test]
fn three_threads_own_the_lock_in_turns() {
    Model::new().bound(2).check(|| {
        let shared = Protected::new();
        let others = [0, 1].map(|_| {
            let shared = shared.clone();
            thread::spawn(move || {
                block_on(shared.lock());
                shared.add();
            })
        });
        block_on(shared.lock());
        shared.add();
        others.into_iter().for_each(|other| other.join().unwrap());
        shared.check(3);
    });
}

/// A task is polled twice and then dropped, at any moment of an unlock, while another waits behind
/// it. Fails if `cancel` does not pass on a wake or a lock, or does not clear `QUEUED` or `HANDOFF`
/// with the last waiter.
#[test]
fn cancel_against_an_unlock_wakes_the_next() {
    Model::new().bound(3).check(|| {
        let shared = Protected::new();
        block_on(shared.lock());
        let dropped = {
            let shared = shared.clone();
            thread::spawn(move || {
                let mut lock = pin!(shared.lock());
                let mut cx = Context::from_waker(Waker::noop());
                if lock.as_mut().poll(&mut cx).is_ready() || lock.as_mut().poll(&mut cx).is_ready()
                {
                    shared.add();
                } else {
                    return 0;
                }
                1
            })
        };
        let waits = {
            let shared = shared.clone();
            thread::spawn(move || {
                block_on(shared.lock());
                shared.add();
            })
        };
        shared.add();
        let added = dropped.join().unwrap();
        waits.join().unwrap();
        shared.check(2 + added);
    });
}

/// The only waiter was overtaken, and is dropped while the owner unlocks. Fails if the fetch_and of
/// `hand_over` is Relaxed, or if `hand_over` keeps the lock when it finds no waiter.
#[test]
fn drop_of_the_overtaken_waiter_frees_the_lock() {
    model(|| {
        let shared = Protected::new();
        let mut cx = Context::from_waker(Waker::noop());
        let mutex = shared.clone();
        let mut waits = Box::pin(async move { mutex.lock().await });
        block_on(shared.lock());
        assert!(waits.as_mut().poll(&mut cx).is_pending());
        shared.add();
        block_on(shared.lock());
        assert!(waits.as_mut().poll(&mut cx).is_pending());
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                drop(waits);
                let locked = shared.mutex.try_lock();
                if locked {
                    shared.add();
                }
                u32::from(locked)
            })
        };
        shared.add();
        let added = other.join().unwrap();
        shared.check(2 + added);
    });
}

/// A waiter that was overtaken is polled beside the unlock, while another waiter is queued. In some
/// executions the unlock is late, and hands the lock over in `wake_first`. Fails if that hand-over
/// ends the run.
#[test]
fn late_unlock_beside_two_waiters_goes_on_with_the_run() {
    model(|| {
        let shared = Protected::new();
        let mut cx = Context::from_waker(Waker::noop());
        let [mut first, mut second] = [0, 1].map(|_| {
            let shared = shared.clone();
            Box::pin(async move { shared.lock().await })
        });
        block_on(shared.lock());
        assert!(first.as_mut().poll(&mut cx).is_pending());
        assert!(second.as_mut().poll(&mut cx).is_pending());
        shared.add();
        block_on(shared.lock());
        let polls = thread::spawn(move || {
            let mut cx = Context::from_waker(Waker::noop());
            let is_ready = first.as_mut().poll(&mut cx).is_ready();
            (first, is_ready)
        });
        shared.add();
        let (mut first, was_ready) = polls.join().unwrap();
        if !was_ready {
            assert!(first.as_mut().poll(&mut cx).is_ready());
        }
        shared.add();
        // A waiter that was overtaken begins a run of two hand-overs, so the second waiter owns the
        // lock. Else it is free, and the second waiter was woken.
        assert_eq!(shared.mutex.try_lock(), was_ready);
        if was_ready {
            shared.add();
        }
        assert!(second.as_mut().poll(&mut cx).is_ready());
        shared.add();
        shared.check(if was_ready { 5 } else { 4 });
    });
}

/// A late unlock hands the lock over in the place of the last owner. Fails if the fetch_xor of
/// `wake_first` is Relaxed.
#[test]
fn full_late_unlock_hands_over_what_the_owner_wrote() {
    Model::new().bound(4).check(|| {
        let shared = Protected::new();
        block_on(shared.lock());
        let mutex = shared.clone();
        let mut waits = Box::pin(async move { mutex.lock().await });
        let mut cx = Context::from_waker(Waker::noop());
        assert!(waits.as_mut().poll(&mut cx).is_pending());
        let waiter = {
            let shared = shared.clone();
            thread::spawn(move || {
                let mut cx = Context::from_waker(Waker::noop());
                for _ in 0..2 {
                    if waits.as_mut().poll(&mut cx).is_ready() {
                        shared.add();
                        return 1;
                    }
                }
                0
            })
        };
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                let mut added = 0;
                for _ in 0..2 {
                    if shared.mutex.try_lock() {
                        shared.add();
                        added += 1;
                    }
                }
                added
            })
        };
        shared.add();
        let added = waiter.join().unwrap() + other.join().unwrap();
        shared.check(1 + added);
    });
}

/// The looks of a dump at a lock, and what is true of them.
#[cfg(feature = "coop-budget")]
mod dumps {
    use super::*;
    use coop_budget::{poll_as, polled_task};
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    /// A lock, and the tasks that have released it: a bit for each. The models do not see the bits.
    struct Seen(Arc<Protected>, AtomicU32);

    impl Seen {
        fn new(is_noted: bool) -> Arc<Self> {
            Arc::new(Self(Protected::of(is_noted), AtomicU32::new(0)))
        }

        /// Adds and unlocks, for the owner.
        fn add(&self) {
            self.0.add();
            self.1.fetch_or(1 << polled_task().unwrap_or(0), SeqCst);
        }

        /// Looks at the lock as a dump does. The holder has not released the lock.
        fn look(&self) {
            let released = self.1.load(SeqCst);
            let holder = self.0.mutex.waits_on().task();
            assert!(
                holder.is_none_or(|task| released & 1 << task == 0),
                "{holder:?}"
            );
        }
    }

    /// A dump looks at a lock while its owner overtakes a waiter, or hands the lock over. No holder
    /// is wanted at the second acquisition of the owner, so that it clears the bit. Fails if the
    /// look of a dump is a load and a store, if an owner that clears the bit clears another one
    /// with it, or if an unlock with the bit does not clear the note, or does so after the release.
    #[test]
    fn dump_beside_a_hand_over_sees_no_earlier_owner() {
        Model::new().bound(2).check(|| {
            let seen = Seen::new(false);
            poll_as(1, || block_on(seen.0.lock()));
            let other = {
                let seen = seen.clone();
                thread::spawn(move || {
                    poll_as(2, || {
                        block_on(seen.0.lock());
                        seen.add();
                    });
                })
            };
            let dump = {
                let seen = seen.clone();
                thread::spawn(move || {
                    seen.look();
                    seen.look();
                })
            };
            poll_as(1, || seen.add());
            block_on(seen.0.lock());
            seen.add();
            other.join().unwrap();
            dump.join().unwrap();
            seen.0.check(3);
        });
    }

    /// The only waiter was overtaken. It is dropped while the owner unlocks and a dump looks, and
    /// then another task takes the lock. Fails if `hand_over` clears the note after it has freed
    /// the lock: the new owner's note is lost.
    #[test]
    fn drop_of_the_overtaken_waiter_beside_a_dump_keeps_the_note() {
        Model::new().bound(3).check(|| {
            let seen = Seen::new(true);
            let mut cx = Context::from_waker(Waker::noop());
            let lock = seen.0.clone();
            let mut waits = Box::pin(async move { lock.lock().await });
            poll_as(1, || block_on(seen.0.lock()));
            assert!(waits.as_mut().poll(&mut cx).is_pending());
            poll_as(1, || {
                seen.add();
            });
            poll_as(3, || block_on(seen.0.lock()));
            assert!(waits.as_mut().poll(&mut cx).is_pending());
            let other = {
                let seen = seen.clone();
                thread::spawn(move || {
                    drop(waits);
                    let locked = poll_as(2, || {
                        let locked = seen.0.mutex.try_lock();
                        if locked {
                            seen.add();
                        }
                        locked
                    });
                    u32::from(locked)
                })
            };
            let dump = {
                let seen = seen.clone();
                thread::spawn(move || seen.look())
            };
            poll_as(3, || seen.add());
            let added = other.join().unwrap();
            dump.join().unwrap();
            seen.0.check(2 + added);
        });
    }
}
