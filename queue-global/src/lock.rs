//! The lock around the list: the user's, or the model's in its place.
use core::marker::PhantomData;

/// The lock of an [`Injector`](crate::Injector) that names none.
#[cfg(feature = "std")]
pub type DefaultLock = parking_lot::RawMutex;

#[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
type Inner<L, T> = lock_api::Mutex<L, T>;
#[cfg(any(selvedge_loom, selvedge_shuttle))]
type Inner<L, T> = Modelled<L, T>;

/// A mutex by `L`.
pub(crate) struct Lock<L, T>(Inner<L, T>, PhantomData<L>);

impl<L: lock_api::RawMutex, T> Lock<L, T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Inner::new(value), PhantomData)
    }

    /// Runs `f` under the lock.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.0.lock())
    }
}

/// The shim's mutex, whatever `L` is: a lock that the model can't see is no lock to it.
#[cfg(any(selvedge_loom, selvedge_shuttle))]
struct Modelled<L, T>(sync_shim::sync::Mutex<T>, PhantomData<fn() -> L>);

#[cfg(any(selvedge_loom, selvedge_shuttle))]
impl<L, T> Modelled<L, T> {
    fn new(value: T) -> Self {
        Self(sync_shim::sync::Mutex::new(value), PhantomData)
    }

    fn lock(&self) -> sync_shim::sync::MutexGuard<'_, T> {
        self.0.lock()
    }
}
