//! The lock around the list: the user's, or the model's in its place.
use core::marker::PhantomData;
use sync_shim::hint::spin_loop;

/// The lock of an [`Injector`](crate::Injector) that names none.
#[cfg(feature = "std")]
pub type DefaultLock = parking_lot::RawMutex;

#[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
type Inner<L, T> = lock_api::Mutex<L, T>;
#[cfg(any(selvedge_loom, selvedge_shuttle))]
type Inner<L, T> = Modelled<L, T>;

/// Who is beaten to the lock stands aside so long, a good 0.5 us on most processors, and so often; then it waits as the lock does. What is done under the lock takes 20 ns, and
/// most of that time the list and the word of the stack are on their way from the other processor. Who comes back at once has them sent to and fro for every item; who leaves the other
/// some dozens to take doubles what both get through (`cargo bench -p bench --bench injector -- contended both`).
const PAUSES: u32 = 32;
const TRIES: u32 = 8;

/// A mutex by `L`.
pub(crate) struct Lock<L, T>(Inner<L, T>, PhantomData<L>);

impl<L: lock_api::RawMutex, T> Lock<L, T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Inner::new(value), PhantomData)
    }

    /// Runs `f` under the lock.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let stand_aside = || (0..PAUSES).for_each(|_| spin_loop());
        let mut value = (0..TRIES)
            .find_map(|_| {
                let value = self.0.try_lock();
                if value.is_none() {
                    stand_aside();
                }
                value
            })
            .unwrap_or_else(|| self.0.lock());
        f(&mut value)
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

    /// Waits, as the model has no other way.
    fn try_lock(&self) -> Option<sync_shim::sync::MutexGuard<'_, T>> {
        Some(self.0.lock())
    }

    fn lock(&self) -> sync_shim::sync::MutexGuard<'_, T> {
        self.0.lock()
    }
}
