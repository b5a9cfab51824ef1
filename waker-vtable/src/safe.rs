//! Wakers over a `static`. A caller makes them without `unsafe`. No wakers are counted, because a
//! `static` is never freed.
use core::task::{RawWaker, RawWakerVTable, Waker};

/// A type that is woken by reference: by a waker of [`from_static`], or of `from_arc`.
pub trait WakeRef: Send + Sync + 'static {
    /// Wakes the target. Any thread may call this, any number of times.
    fn wake(&self);
}

/// Creates a waker of a `static`. Nothing is counted: a wake costs only what `target` does.
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
    struct VtableOf<T>(core::marker::PhantomData<T>);
    impl<T: WakeRef> VtableOf<T> {
        const VTABLE: &'static RawWakerVTable =
            &RawWakerVTable::new(clone::<T>, wake::<T>, wake::<T>, |_| ());
    }
    unsafe fn clone<T: WakeRef>(data: *const ()) -> RawWaker {
        RawWaker::new(data, VtableOf::<T>::VTABLE)
    }
    unsafe fn wake<T: WakeRef>(data: *const ()) {
        // SAFETY: the data came from a `&'static T`.
        unsafe { &*data.cast::<T>() }.wake();
    }
    // SAFETY: the functions keep the contract of a waker; `T` is `Send + Sync`.
    unsafe { Waker::new(core::ptr::from_ref(target).cast(), VtableOf::<T>::VTABLE) }
}
