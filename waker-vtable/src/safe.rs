//! Wakers without `unsafe`: over a counted pointer, and over a static.
use core::task::{RawWaker, RawWakerVTable, Waker};
#[cfg(feature = "std")]
use sync_shim::sync::Arc;

/// What [`from_arc`] and [`from_static`] wake.
pub trait WakeRef: Send + Sync + 'static {
    /// Wakes. Any thread may call it, any number of times.
    fn wake(&self);
}

/// A waker that holds `target` counted. Clone and drop cost one read-modify-write each; a wake only what
/// `target` does, and by value the drop.
///
/// ```
/// use std::sync::Arc;
///
/// struct Unpark(std::thread::Thread);
///
/// impl waker_vtable::WakeRef for Unpark {
///     fn wake(&self) {
///         self.0.unpark();
///     }
/// }
///
/// let waker = waker_vtable::from_arc(Arc::new(Unpark(std::thread::current())));
/// waker.wake();
/// std::thread::park();
/// ```
#[cfg(feature = "std")]
pub fn from_arc<T: WakeRef>(target: Arc<T>) -> Waker {
    struct Table<T>(core::marker::PhantomData<T>);
    impl<T: WakeRef> Table<T> {
        const VTABLE: &'static RawWakerVTable =
            &RawWakerVTable::new(clone::<T>, wake::<T>, wake_by_ref::<T>, drop_waker::<T>);
    }
    unsafe fn clone<T: WakeRef>(data: *const ()) -> RawWaker {
        // SAFETY: a waker of this function holds a counted pointer.
        unsafe { Arc::increment_strong_count(data.cast::<T>()) };
        RawWaker::new(data, Table::<T>::VTABLE)
    }
    unsafe fn wake<T: WakeRef>(data: *const ()) {
        // SAFETY: the waker goes, and its counted pointer comes here.
        unsafe { Arc::from_raw(data.cast::<T>()) }.wake();
    }
    unsafe fn wake_by_ref<T: WakeRef>(data: *const ()) {
        // SAFETY: the waker's counted pointer keeps the target live.
        unsafe { &*data.cast::<T>() }.wake();
    }
    unsafe fn drop_waker<T: WakeRef>(data: *const ()) {
        // SAFETY: the waker goes, and its counted pointer comes here.
        drop(unsafe { Arc::from_raw(data.cast::<T>()) });
    }
    // SAFETY: the functions keep a waker's contract; `T` is `Send + Sync`.
    unsafe { Waker::new(Arc::into_raw(target).cast(), Table::<T>::VTABLE) }
}

/// A waker of a static. Nothing is counted; it costs what `target` does.
///
/// ```
/// struct Flag(std::sync::atomic::AtomicBool);
///
/// impl waker_vtable::WakeRef for Flag {
///     fn wake(&self) {
///         self.0.store(true, std::sync::atomic::Ordering::Release);
///     }
/// }
///
/// static WOKEN: Flag = Flag(std::sync::atomic::AtomicBool::new(false));
/// waker_vtable::from_static(&WOKEN).wake_by_ref();
/// assert!(WOKEN.0.load(std::sync::atomic::Ordering::Acquire));
/// ```
pub fn from_static<T: WakeRef>(target: &'static T) -> Waker {
    struct Table<T>(core::marker::PhantomData<T>);
    impl<T: WakeRef> Table<T> {
        const VTABLE: &'static RawWakerVTable =
            &RawWakerVTable::new(clone::<T>, wake::<T>, wake::<T>, |_| ());
    }
    unsafe fn clone<T: WakeRef>(data: *const ()) -> RawWaker {
        RawWaker::new(data, Table::<T>::VTABLE)
    }
    unsafe fn wake<T: WakeRef>(data: *const ()) {
        // SAFETY: it came from a `&'static T`.
        unsafe { &*data.cast::<T>() }.wake();
    }
    // SAFETY: the functions keep a waker's contract; `T` is `Send + Sync`.
    unsafe { Waker::new(core::ptr::from_ref(target).cast(), Table::<T>::VTABLE) }
}
