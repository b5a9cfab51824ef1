//! The sleep protocol: a push wakes a sleeping worker, and no push is missed.
//!
//! A *notifier* is a thread that has pushed a task. A worker is either *awake* or *announced*. The
//! bit of an announced worker is set. Such a worker looks at the queues once more, and then, if it
//! finds no task, waits at its gate.
//!
//! | field | written by |
//! |---|---|
//! | `sleeping`, a bit for each worker | set by the worker; cleared by it or by a notifier |
//! | `gates`, one for each worker | opened as rule 5 says; closed by the worker, in `Gate::pass` |
//!
//! 1. A worker sets its bit, fences, looks at every queue once more, and only then waits.
//! 2. A notifier fences after its push, and then reads the bits.
//! 3. Both fences are `SeqCst`, so one of them comes first: either the notifier sees the bit, or
//!    the worker sees the pushed task. So no task waits in a queue while all workers sleep.
//! 4. A bit is cleared by a read-modify-write. The notifier that has cleared a bit opens that
//!    worker's gate. The gate stays open until the worker has passed.
//! 5. Three events open a worker's gate: a notifier has cleared the worker's bit, a thread calls
//!    `wake_all`, or a thread wakes the waker of the worker's list of tasks. So a gate may be open
//!    while its worker does not sleep.
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

    /// Sleeps, unless there is work after the announcement (rule 1).
    pub(crate) fn sleep(&self, worker: usize, has_work: impl FnOnce() -> bool) {
        self.announce(worker);
        if !has_work() {
            self.gates[worker].pass();
        }
        // Ordering: Relaxed. The cleared bit only says that this worker need not be woken. If this
        // worker found work and did not wait, a notifier may have cleared the bit and opened the
        // gate meanwhile. Then the worker's next wait at the gate returns at once.
        self.sleeping.fetch_and(!(1 << worker), Relaxed);
    }

    /// Sets the worker's bit and fences: the first half of rule 1.
    pub(crate) fn announce(&self, worker: usize) {
        // Ordering: Relaxed. The fence orders the bit before the look at the queues.
        self.sleeping.fetch_or(1 << worker, Relaxed);
        // Ordering: SeqCst pairs with the fence in `notify` (rule 3).
        fence(SeqCst);
    }

    /// Wakes one sleeping worker, after a push (rule 2).
    pub(crate) fn notify(&self) {
        // Ordering: SeqCst pairs with the fence in `announce` (rule 3).
        fence(SeqCst);
        // Ordering: Relaxed. The fence orders this load after the push.
        let mut sleeping = self.sleeping.load(Relaxed);
        while sleeping != 0 {
            let worker = sleeping.trailing_zeros();
            // Ordering: Relaxed. The gate's lock orders this thread before the woken worker.
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
