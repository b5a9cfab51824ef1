//! The signals that lead to dumps of a runtime, as the runtime's state keeps them.
use net_driver::signal::unix::SignalKind;
use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// A listener for one kind of signal.
pub(super) trait Listens: Send + Sync {
    fn kind(&self) -> SignalKind;

    /// Ends it.
    fn end(&self);
}

/// The listeners of a runtime, one for each kind of signal.
#[derive(Default)]
pub(crate) struct DumpSignals(Mutex<Listeners>);

#[derive(Default)]
struct Listeners {
    all: Vec<Arc<dyn Listens>>,
    is_closed: bool,
}

impl DumpSignals {
    /// Adds a listener, unless there is one of its kind, or the runtime has ended.
    pub(super) fn add(&self, listener: Arc<dyn Listens>) -> bool {
        let mut listeners = lock(&self.0);
        let is_other = |other: &Arc<dyn Listens>| other.kind() != listener.kind();
        let is_new = !listeners.is_closed && listeners.all.iter().all(is_other);
        if is_new {
            listeners.all.push(listener);
        }
        is_new
    }

    /// Ends the listeners (rule 3 of the module `signal`).
    pub(crate) fn close(&self) {
        let closed = Listeners {
            all: Vec::new(),
            is_closed: true,
        };
        let old = mem::replace(&mut *lock(&self.0), closed);
        old.all.iter().for_each(|listener| listener.end());
    }
}

/// For a runtime whose end returned early, or that a driven worker has ended.
impl Drop for DumpSignals {
    fn drop(&mut self) {
        self.close();
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
