//! Wakers over an `Arc`, which a caller makes without `unsafe`. There are counted wakers, and
//! borrowed wakers for a poll.
//!
//! 1. A waker's data is the pointer of an [`Arc`]. Each waker is one strong reference, except the
//!    waker in a [`WakerRef`], which borrows the `Arc`.
//! 2. A wake by value hands its reference to the target. No function here keeps a reference after
//!    it returns.
use crate::{WakeRef, WakerRef};
use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    task::{RawWaker, RawWakerVTable, Waker},
};
use sync_shim::sync::Arc;

/// A type that is woken with its own `Arc`, which it may push to a queue. The trait is like
/// [`std::task::Wake`], and works under models, too.
///
/// `wake` is not a method, since under a model the `Arc` is the model checker's. Every [`WakeRef`],
/// which needs no `Arc`, is an `ArcWake`.
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
    /// Wakes the target, and takes over the waker's `Arc`. Any thread may call this, any number of
    /// times.
    fn wake(this: Arc<Self>);

    /// Wakes the target, while the waker keeps its `Arc`. The default method clones the `Arc`.
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
    // SAFETY: the data is an `Arc`'s pointer. The waker's reference, or the borrowed one, keeps it
    // live (rule 1).
    unsafe { Arc::increment_strong_count(data.cast::<T>()) };
    RawWaker::new(data, VtableOf::<T>::VTABLE)
}

unsafe fn wake<T: ArcWake>(data: *const ()) {
    // SAFETY: the waker ends here, and its reference is taken over.
    T::wake(unsafe { Arc::from_raw(data.cast::<T>()) });
}

unsafe fn wake_by_ref<T: ArcWake>(data: *const ()) {
    // SAFETY: the waker keeps its reference: this copy is not dropped.
    let target = ManuallyDrop::new(unsafe { Arc::from_raw(data.cast::<T>()) });
    T::wake_by_ref(&target);
}

unsafe fn drop_waker<T: ArcWake>(data: *const ()) {
    // SAFETY: the waker ends here, and its reference is taken over.
    drop(unsafe { Arc::from_raw(data.cast::<T>()) });
}

/// Creates a waker that takes over an `Arc`.
///
/// A clone and a drop cost one read-modify-write each. A wake costs what `target` does with its
/// `Arc`. With a [`WakeRef`] a wake by reference costs no read-modify-write, and a wake by value
/// costs that of the drop.
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
    // SAFETY: the functions keep the contract of a waker; `T` is `Send + Sync`.
    unsafe { Waker::new(Arc::into_raw(target).cast(), VtableOf::<T>::VTABLE) }
}

impl<'a> WakerRef<'a> {
    /// Borrows an `Arc` during a poll. This costs no read-modify-write, nor does the drop of the
    /// result. A clone is a waker of [`from_arc`], and counts.
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
    /// The `Arc` must outlive the `WakerRef`:
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
        // SAFETY: as in `from_arc`. The waker is never dropped, and is borrowed for no longer than
        // `target`, so it needs no reference of its own.
        Self::borrow(unsafe { Waker::new(data, VtableOf::<T>::VTABLE) })
    }

    /// Borrows the `Arc` of a target that implements the standard library's `Wake`, as
    /// [`from_arc`](Self::from_arc) does. A clone is a waker of `Waker::from`.
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
        // SAFETY: the pointer is an `Arc`'s, which `target` keeps live. The copy is never dropped:
        // it goes into a waker that the `WakerRef` never drops.
        let copy = unsafe { std::sync::Arc::from_raw(data) };
        Self::borrow(Waker::from(copy))
    }
}
