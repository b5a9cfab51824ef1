//! A gate, at which a thread waits until it is woken.
//!
//! It is a mutex and a condition variable, not `std::thread::park`. Any code on the thread may use
//! that thread's token, and under loom a late unpark ends whatever the thread waits for at that
//! time.
use sync_shim::sync::{Condvar, Mutex};
use waker_vtable::WakeRef;

/// Remembers one wake, however often it is woken.
pub(crate) struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self {
            open: Mutex::new(false),
            opened: Condvar::new(),
        }
    }

    /// Waits for a wake. A wake since the last return counts.
    pub(crate) fn pass(&self) {
        let mut open = self.open.lock();
        while !*open {
            open = self.opened.wait(open);
        }
        *open = false;
    }

    /// True if the next call of `pass` does not wait.
    #[cfg(test)]
    pub(crate) fn is_open(&self) -> bool {
        *self.open.lock()
    }
}

/// Lets `waker_vtable` make a `Waker` of a gate.
impl WakeRef for Gate {
    fn wake(&self) {
        *self.open.lock() = true;
        self.opened.notify_one();
    }
}
