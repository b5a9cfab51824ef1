//! A gate at which a thread waits until it is woken.
//!
//! The gate does not use the thread's own park token: the user may use that token as well. In the
//! model checker, moreover, a late unpark would end any other wait of the thread.
use std::time::Duration;
use sync_shim::{
    sync::{Arc, Condvar, Mutex},
    thread,
};
use waker_vtable::WakeRef;

/// The number of early wakes in a row after which [`Gate::pass`] sleeps instead of yielding the
/// processor.
const YIELDS: u32 = 16;

/// The shortest sleep. Each of the next [`DOUBLINGS`] sleeps is twice as long as the sleep before:
/// up to 1.6 ms.
const SHORTEST: Duration = Duration::from_micros(50);
const DOUBLINGS: u32 = 5;

pub(crate) struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            open: Mutex::new(false),
            opened: Condvar::new(),
        })
    }

    /// Waits until there was a wake since the last return of `pass`. `early` counts the wakes in a
    /// row that came before the wait began. The caller sets `early` to zero when it has found work.
    ///
    /// After an early wake the thread backs off, because a waker cell that is busy with another
    /// wake wakes each new registration at once. The thread yields the processor at first and
    /// sleeps later, so that a thread with a real-time priority lets one with a lower priority run.
    pub(crate) fn pass(&self, early: &mut u32) {
        let mut open = self.open.lock();
        if *open {
            *open = false;
            drop(open);
            back_off(*early);
            *early = early.saturating_add(1);
            return;
        }
        while !*open {
            open = self.opened.wait(open);
        }
        *open = false;
        *early = 0;
    }
}

fn back_off(early: u32) {
    if early < YIELDS || cfg!(any(selvedge_loom, selvedge_shuttle)) {
        thread::yield_now();
    } else {
        std::thread::sleep(SHORTEST * 2_u32.pow((early - YIELDS).min(DOUBLINGS)));
    }
}

impl WakeRef for Gate {
    fn wake(&self) {
        *self.open.lock() = true;
        self.opened.notify_one();
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests {
    use super::*;
    use std::time::Instant;

    /// A thread that gets only early wakes sleeps after some of them, so that a thread of lower
    /// priority runs.
    #[test]
    fn a_gate_that_is_always_open_makes_its_thread_sleep() {
        let gate = Gate::new();
        let mut early = 0;
        let begun = Instant::now();
        for _ in 0..YIELDS + DOUBLINGS + 2 {
            gate.wake();
            gate.pass(&mut early);
        }
        // The sleeps begin with 50 us and double each time; the longest sleep comes twice.
        let least = SHORTEST * (2_u32.pow(DOUBLINGS + 1) - 1 + 2_u32.pow(DOUBLINGS));
        assert!(begun.elapsed() >= least);
        assert_eq!(early, YIELDS + DOUBLINGS + 2);
    }

    #[test]
    fn wait_that_blocks_resets_the_count_of_early_wakes() {
        let gate = Gate::new();
        let mut early = YIELDS;
        let waking = std::thread::spawn({
            let gate = gate.clone();
            move || gate.wake()
        });
        // Each wake ends one wait, also if it came before the wait.
        gate.pass(&mut early);
        assert!(early == 0 || early == YIELDS + 1);
        waking.join().unwrap();
    }
}
