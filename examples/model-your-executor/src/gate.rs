//! A thread that waits until it is woken.
//!
//! A mutex and a condition variable, since a thread's own token (`std::thread::park`) belongs to whatever code runs on the thread, and
//! loom takes an unpark that comes late for the end of whatever the thread waits for then.
use sync_shim::sync::{Condvar, Mutex};
use waker_vtable::WakeRef;

/// Holds one wake, however often it is woken.
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

    /// Waits for a wake since the last return.
    pub(crate) fn pass(&self) {
        let mut open = self.open.lock();
        while !*open {
            open = self.opened.wait(open);
        }
        *open = false;
    }

    /// Whether the next to pass doesn't wait.
    #[cfg(test)]
    pub(crate) fn is_open(&self) -> bool {
        *self.open.lock()
    }
}

/// What makes a `Waker` of it.
impl WakeRef for Gate {
    fn wake(&self) {
        *self.open.lock() = true;
        self.opened.notify_one();
    }
}
