//! A thread that waits until it is woken.
//!
//! Not by parking: a thread's token is the user's, too, and the model checker takes an unpark that comes late for the end of whatever the thread waits for then.
use sync_shim::{
    sync::{Arc, Condvar, Mutex},
    thread,
};
use waker_vtable::WakeRef;

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

    /// Waits for a wake since the last return. Makes way for others if that was before: the cell that wakes
    /// may do so because it is busy with another wake, and goes on doing so until that is through.
    pub(crate) fn pass(&self) {
        let mut open = self.open.lock();
        if *open {
            *open = false;
            drop(open);
            return thread::yield_now();
        }
        while !*open {
            open = self.opened.wait(open);
        }
        *open = false;
    }
}

impl WakeRef for Gate {
    fn wake(&self) {
        *self.open.lock() = true;
        self.opened.notify_one();
    }
}
