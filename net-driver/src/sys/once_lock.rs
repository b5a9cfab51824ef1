//! std's `OnceLock` for models: a thread without an ordering may find it unset though it is set.
use sync_shim::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};

/// A cell that one thread at a time initialises.
pub(crate) struct OnceLock<T> {
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
        let is_set = self.is_set.load(Acquire);
        is_set.then(|| self.value.get()).flatten()
    }

    pub(crate) fn get_or_init(&self, value: impl FnOnce() -> T) -> &T {
        let value = self.value.get_or_init(value);
        // Ordering: Release pairs with `get`, as in std.
        self.is_set.store(true, Release);
        value
    }
}
