//! A thread that waits until it is woken.
//!
//! It does not park: the thread's token belongs to the user, too, and the model checker takes an
//! unpark that comes late for the end of whatever the thread waits for then.
use std::time::Duration;
use sync_shim::{
    sync::{Arc, Condvar, Mutex},
    thread,
};
use waker_vtable::WakeRef;

/// Returns of [`Gate::pass`] in a row that yield the processor, before the next ones sleep.
const YIELDS: u32 = 16;

/// The shortest sleep. Each is twice as long as the last, [`DOUBLINGS`] times: 1.6 ms.
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

    /// Waits for a wake since the last return. `early` counts the wakes in a row that came before
    /// the wait; the caller sets it to zero when it had something to do.
    ///
    /// After such a wake this lets others run: the cell that wakes may do so because it is busy
    /// with another wake, and goes on doing so until that is through. At first it yields the
    /// processor, then it sleeps, so that a thread of a real-time priority lets one of a lower
    /// priority run.
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

    /// However early the wakes come, the thread that waits lets one of a lower priority run.
    #[test]
    fn a_gate_that_is_always_open_makes_its_thread_sleep() {
        let gate = Gate::new();
        let mut early = 0;
        let begun = Instant::now();
        for _ in 0..YIELDS + DOUBLINGS + 2 {
            gate.wake();
            gate.pass(&mut early);
        }
        // 50 us, and twice as much each time; the longest twice.
        let least = SHORTEST * (2_u32.pow(DOUBLINGS + 1) - 1 + 2_u32.pow(DOUBLINGS));
        assert!(begun.elapsed() >= least);
        assert_eq!(early, YIELDS + DOUBLINGS + 2);
    }

    #[test]
    fn a_wait_ends_a_row_of_early_wakes() {
        let gate = Gate::new();
        let mut early = YIELDS;
        let waking = std::thread::spawn({
            let gate = gate.clone();
            move || gate.wake()
        });
        // Early or not, once: the thread wakes once.
        gate.pass(&mut early);
        assert!(early == 0 || early == YIELDS + 1);
        waking.join().unwrap();
    }
}
