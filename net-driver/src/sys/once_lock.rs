//! A `OnceLock` for the models, in the place of std's.
//!
//! loom does not see into std's type: there, each load would find the value that was stored last.
//! This type has a flag that loom sees. So after one thread has set the value, another thread may
//! still find none, unless an ordering makes the flag visible to that thread.
use sync_shim::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};

/// A cell that is set once, with the methods of std's `OnceLock` that this crate calls.
pub(crate) struct OnceLock<T> {
    /// True once `value` is set.
    is_set: AtomicBool,
    value: std::sync::OnceLock<T>,
}

impl<T> OnceLock<T> {
    pub(crate) fn new() -> Self {
        Self {
            is_set: AtomicBool::new(false),
            value: std::sync::OnceLock::new(),
        }
    }

    pub(crate) fn get(&self) -> Option<&T> {
        // Ordering: Acquire pairs with `get_or_init`, as in std.
        if self.is_set.load(Acquire) {
            self.value.get()
        } else {
            None
        }
    }

    pub(crate) fn get_or_init(&self, init: impl FnOnce() -> T) -> &T {
        let value = self.value.get_or_init(init);
        // Ordering: Release pairs with `get`, as in std.
        self.is_set.store(true, Release);
        value
    }
}
