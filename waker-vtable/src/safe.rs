//! Wakers without `unsafe`, of what needs no count to be woken: over a static.
use core::task::{RawWaker, RawWakerVTable, Waker};

/// What is woken by reference: by a waker of [`from_static`], and of `from_arc`.
pub trait WakeRef: Send + Sync + 'static {
    /// Wakes. Any thread may call it, any number of times.
    fn wake(&self);
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
