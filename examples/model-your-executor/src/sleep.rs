//! Which workers sleep, and how one of them is woken for what was pushed.
//!
//! | field | written by |
//! |---|---|
//! | `sleeping`, a bit a worker | the worker sets its own; whoever wakes it, or itself, clears it |
//! | `gates` | opened by whoever has cleared the worker's bit, and by all at the end |
//!
//! 1. A worker sets its bit, fences, looks at every queue once more, and only then waits.
//! 2. Who has pushed fences, and then looks at the bits.
//! 3. The fences are `SeqCst`, so one of the two comes first: either the pusher sees the bit, or the worker sees what was pushed. So
//!    nothing waits in a queue while all who could take it sleep.
//! 4. A bit is cleared by a read-modify-write. Who cleared it opens the gate, which stays open until its worker has passed.
use crate::gate::Gate;
use sync_shim::{
    atomic::{
        AtomicUsize,
        Ordering::{Relaxed, SeqCst},
        fence,
    },
    sync::Arc,
};
use waker_vtable::WakeRef;

pub(crate) struct Sleep {
    sleeping: AtomicUsize,
    gates: Box<[Arc<Gate>]>,
}

impl Sleep {
    pub(crate) fn new(workers: usize) -> Self {
        assert!((1..=64).contains(&workers), "{workers} workers");
        Self {
            sleeping: AtomicUsize::new(0),
            gates: (0..workers).map(|_| Arc::new(Gate::new())).collect(),
        }
    }

    pub(crate) fn gate(&self, worker: usize) -> &Arc<Gate> {
        &self.gates[worker]
    }

    /// Sleeps, unless there is work after the announcement.
    pub(crate) fn sleep(&self, worker: usize, has_work: impl FnOnce() -> bool) {
        self.announce(worker);
        if !has_work() {
            self.gates[worker].pass();
        }
        // Ordering: Relaxed, it only says that there is no need to wake this one. If it was chosen meanwhile, its gate is open for the next time.
        self.sleeping.fetch_and(!(1 << worker), Relaxed);
    }

    /// The first half of rule 1.
    pub(crate) fn announce(&self, worker: usize) {
        // Ordering: Relaxed, the fence publishes it.
        self.sleeping.fetch_or(1 << worker, Relaxed);
        // Ordering: SeqCst pairs with the fence in `notify` (rule 3).
        fence(SeqCst);
    }

    /// After a push: wakes one who sleeps.
    pub(crate) fn notify(&self) {
        // Ordering: SeqCst pairs with the fence in `sleep` (rule 3).
        fence(SeqCst);
        // Ordering: Relaxed, the fence orders it after the push.
        let mut sleeping = self.sleeping.load(Relaxed);
        while sleeping != 0 {
            let worker = sleeping.trailing_zeros();
            // Ordering: Relaxed, the gate's lock orders what comes after.
            let before = self.sleeping.fetch_and(!(1 << worker), Relaxed);
            if before & 1 << worker != 0 {
                self.gates[worker as usize].wake();
                return;
            }
            sleeping = before;
        }
    }

    /// Opens every gate.
    pub(crate) fn wake_all(&self) {
        self.gates.iter().for_each(|gate| gate.wake());
    }
}
