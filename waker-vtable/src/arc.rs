//! Wakers over an `Arc`. A caller makes them without `unsafe`.
//!
//! 1. A waker's data is the pointer of an [`Arc`]. Each waker owns one strong reference. The only
//!    exception is the waker in a [`WakerRef`]: the `WakerRef` borrows the caller's `Arc` instead.
//! 2. A wake by value passes the waker's reference to [`ArcWake::wake`]. The drop of a waker drops
//!    the waker's reference. A wake by reference leaves the reference with the waker. A clone adds
//!    one reference, which the new waker owns.
//! 3. The waker in a [`WakerRef`] is never dropped, and never woken by value.
use crate::{WakeRef, WakerRef};
use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    task::{RawWaker, RawWakerVTable, Waker},
};
use sync_shim::sync::Arc;

/// A type in an `Arc` that wakers wake: [`wake`](Self::wake) gets the `Arc`, and may push the `Arc`
/// to a queue. The trait is like [`std::task::Wake`], but also works under a model checker.
///
/// `wake` has a parameter `this` instead of `self`. Under a model checker, `Arc` is the checker's
/// own type, and stable Rust allows `self: Arc<Self>` only for the standard library's `Arc`.
///
/// Every [`WakeRef`] is also an `ArcWake`. [`WakeRef::wake`] gets only `&self`, so it cannot keep
/// the `Arc`: a wake by value drops the waker's `Arc` afterwards.
///
/// ```
/// use std::{
///     collections::VecDeque,
///     sync::{Arc, Mutex},
/// };
/// use waker_vtable::{ArcWake, from_arc};
///
/// #[derive(Default)]
/// struct Queue(Mutex<VecDeque<Arc<Task>>>);
///
/// struct Task {
///     queue: Arc<Queue>,
/// }
///
/// impl ArcWake for Task {
///     fn wake(this: Arc<Self>) {
///         let queue = this.queue.clone();
///         queue.0.lock().unwrap().push_back(this);
///     }
/// }
///
/// let queue = Arc::new(Queue::default());
/// let waker = from_arc(Arc::new(Task { queue: queue.clone() }));
/// waker.wake();
/// assert!(queue.0.lock().unwrap().pop_front().is_some());
/// ```
pub trait ArcWake: Send + Sync + 'static {
    /// Wakes the target, and takes over `this`. A wake by value passes the waker's own `Arc`. Any
    /// thread may call this function, any number of times.
    fn wake(this: Arc<Self>);

    /// Wakes the target. The waker keeps its `Arc`. The default implementation passes a clone of
    /// the `Arc` to [`wake`](Self::wake).
    fn wake_by_ref(this: &Arc<Self>) {
        Self::wake(Arc::clone(this));
    }
}

impl<T: WakeRef> ArcWake for T {
    fn wake(this: Arc<Self>) {
        WakeRef::wake(&*this);
    }

    fn wake_by_ref(this: &Arc<Self>) {
        WakeRef::wake(&**this);
    }
}

struct VtableOf<T>(PhantomData<T>);

impl<T: ArcWake> VtableOf<T> {
    const VTABLE: &'static RawWakerVTable =
        &RawWakerVTable::new(clone::<T>, wake::<T>, wake_by_ref::<T>, drop_waker::<T>);
}

unsafe fn clone<T: ArcWake>(data: *const ()) -> RawWaker {
    // SAFETY: the data is an `Arc`'s pointer (rule 1). The waker's reference keeps the `Arc` live,
    // or the borrowed `Arc` of a `WakerRef` does.
    unsafe { Arc::increment_strong_count(data.cast::<T>()) };
    RawWaker::new(data, VtableOf::<T>::VTABLE)
}

unsafe fn wake<T: ArcWake>(data: *const ()) {
    // SAFETY: the data is an `Arc`'s pointer, and the waker owns a reference (rules 1 and 3). The
    // waker ends here, and the new `Arc` takes over the reference.
    T::wake(unsafe { Arc::from_raw(data.cast::<T>()) });
}

unsafe fn wake_by_ref<T: ArcWake>(data: *const ()) {
    // SAFETY: the data is the pointer of an `Arc` that is live, as in `clone`. The new `Arc` is
    // never dropped, so it needs no reference of its own.
    let target = ManuallyDrop::new(unsafe { Arc::from_raw(data.cast::<T>()) });
    T::wake_by_ref(&target);
}

unsafe fn drop_waker<T: ArcWake>(data: *const ()) {
    // SAFETY: as in `wake`.
    drop(unsafe { Arc::from_raw(data.cast::<T>()) });
}

/// Creates a waker that takes over an `Arc`.
///
/// The waker costs these read-modify-writes, besides those of the target's own code:
///
/// | | [`ArcWake`] | [`WakeRef`] |
/// |---|---|---|
/// | clone | 1 | 1 |
/// | drop | 1 | 1 |
/// | wake by value | 0 | 1, for the drop of the `Arc` |
/// | wake by reference | 1, for a clone of the `Arc` | 0 |
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
pub fn from_arc<T: ArcWake>(target: Arc<T>) -> Waker {
    // SAFETY: the functions of the vtable keep the contract of a waker (rules 1 and 2). Any thread
    // may call them, because `T` is `Send + Sync`.
    unsafe { Waker::new(Arc::into_raw(target).cast(), VtableOf::<T>::VTABLE) }
}

impl<'a> WakerRef<'a> {
    /// Borrows an `Arc` for a poll. Neither this call nor the drop of the `WakerRef` costs a
    /// read-modify-write. A clone is a waker like those of the function [`from_arc`]: it owns a
    /// reference, and costs one read-modify-write.
    ///
    /// ```
    /// use std::{sync::Arc, task::Context};
    /// use waker_vtable::{WakeRef, WakerRef};
    ///
    /// struct Task;
    ///
    /// impl WakeRef for Task {
    ///     fn wake(&self) {}
    /// }
    ///
    /// let task = Arc::new(Task);
    /// let waker = WakerRef::from_arc(&task);
    /// let cx = Context::from_waker(&waker);
    /// assert_eq!(Arc::strong_count(&task), 1);
    /// let kept = cx.waker().clone();
    /// assert_eq!(Arc::strong_count(&task), 2);
    /// # drop(kept);
    /// ```
    ///
    /// The `Arc` must outlive the `WakerRef`. So this does not compile:
    ///
    /// ```compile_fail,E0505
    /// # use waker_vtable::{WakeRef, WakerRef};
    /// fn poll(task: std::sync::Arc<impl WakeRef>) {
    ///     let waker = WakerRef::from_arc(&task);
    ///     drop(task);
    ///     waker.wake_by_ref();
    /// }
    /// ```
    #[inline]
    pub fn from_arc<T: ArcWake>(target: &'a Arc<T>) -> Self {
        let data = Arc::as_ptr(target).cast();
        // SAFETY: as in the function `crate::from_arc`, but the waker owns no reference. It needs
        // none: it is never dropped, nor woken by value (rule 3), and `target` stays borrowed as
        // long as the `WakerRef` exists.
        Self::borrow(unsafe { Waker::new(data, VtableOf::<T>::VTABLE) })
    }

    /// Borrows an `Arc` for a poll, as [`from_arc`](Self::from_arc) does. Here the target
    /// implements the standard library's `Wake`. A clone is a waker like those of `Waker::from`.
    ///
    /// ```
    /// use std::{
    ///     sync::Arc,
    ///     task::{Context, Wake},
    /// };
    /// use waker_vtable::WakerRef;
    ///
    /// struct Task;
    ///
    /// impl Wake for Task {
    ///     fn wake(self: Arc<Self>) {}
    /// }
    ///
    /// let task = Arc::new(Task);
    /// let waker = WakerRef::from_wake(&task);
    /// let cx = Context::from_waker(&waker);
    /// assert_eq!(Arc::strong_count(&task), 1);
    /// # let _ = cx;
    /// ```
    #[inline]
    pub fn from_wake<T>(target: &'a std::sync::Arc<T>) -> Self
    where
        T: std::task::Wake + Send + Sync + 'static,
    {
        let data = std::sync::Arc::as_ptr(target);
        // SAFETY: the pointer is that of an `Arc`, which `target` keeps live. The copy needs no
        // reference of its own, because it is never dropped: it goes into the waker of a `WakerRef`
        // (rule 3).
        let copy = unsafe { std::sync::Arc::from_raw(data) };
        Self::borrow(Waker::from(copy))
    }
}
