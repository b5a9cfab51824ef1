//! The lock of a runtime's unhandled panics: whether there was one, and the wakers that wait.
use std::{collections::BTreeMap, mem::take, task::Waker};
use sync_shim::sync::Mutex;

/// Whether a panic has shut the runtime down, and the wakers that such a panic wakes.
pub(crate) struct Unhandled(Mutex<State>);

struct State {
    /// Whether there was a panic.
    panicked: bool,
    /// Wakers of the `block_on`s that wait, by their keys.
    waiting: BTreeMap<u64, Waker>,
    next_key: u64,
}

impl Unhandled {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(State {
            panicked: false,
            waiting: BTreeMap::new(),
            next_key: 0,
        }))
    }

    /// Records a panic, and takes the wakers out.
    pub(super) fn record(&self) -> BTreeMap<u64, Waker> {
        let mut state = self.0.lock();
        state.panicked = true;
        take(&mut state.waiting)
    }

    /// Adds a waker and returns its key, unless a panic was recorded.
    pub(super) fn add(&self, waker: &Waker) -> Option<u64> {
        let mut state = self.0.lock();
        if state.panicked {
            return None;
        }
        let key = state.next_key;
        state.next_key += 1;
        state.waiting.insert(key, waker.clone());
        Some(key)
    }
}

/// A `block_on` that has waited. The drop of this value removes the waker.
pub(super) struct Waiting<'a> {
    pub(super) unhandled: &'a Unhandled,
    pub(super) key: u64,
}

impl Waiting<'_> {
    pub(super) fn has_panicked(&self) -> bool {
        self.unhandled.0.lock().panicked
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.unhandled.0.lock().waiting.remove(&self.key);
    }
}
