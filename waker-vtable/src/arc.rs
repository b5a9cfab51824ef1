//! Wakers without `unsafe`, over an `Arc`: counted ones, and borrowed ones for a poll.
//!
//! 1. A waker's data is the pointer of an [`Arc`]. Each waker is one strong reference, but for the
//!    one in a [`WakerRef`], which borrows.
//! 2. A wake by value hands its reference to the target. No function here keeps one beyond its
//!    return.
use crate::{WakeRef, WakerRef};
use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    task::{RawWaker, RawWakerVTable, Waker},
};
use sync_shim::sync::Arc;

/// What is woken with its `Arc`, which it may push to a queue: [`std::task::Wake`], under models
/// too.
///
/// `wake` is no method, since the `Arc` is the model checker's under a model. Every [`WakeRef`] is
/// an `ArcWake`, one that needs no `Arc`.
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
    /// Wakes, and has the waker's `Arc`. Any thread may call it, any number of times.
    fn wake(this: Arc<Self>);

    /// Wakes, where the waker keeps its `Arc`. Clones it unless it is overridden.
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

struct Table<T>(PhantomData<T>);

impl<T: ArcWake> Table<T> {
    const VTABLE: &'static RawWakerVTable =
        &RawWakerVTable::new(clone::<T>, wake::<T>, wake_by_ref::<T>, drop_waker::<T>);
}

unsafe fn clone<T: ArcWake>(data: *const ()) -> RawWaker {
    // SAFETY: the data is an `Arc`'s pointer, which the waker's reference, or the borrowed one,
    // keeps live (rule 1).
    unsafe { Arc::increment_strong_count(data.cast::<T>()) };
    RawWaker::new(data, Table::<T>::VTABLE)
}

unsafe fn wake<T: ArcWake>(data: *const ()) {
    // SAFETY: the waker goes, and its reference comes here.
    T::wake(unsafe { Arc::from_raw(data.cast::<T>()) });
}

unsafe fn wake_by_ref<T: ArcWake>(data: *const ()) {
    // SAFETY: the waker keeps its reference: this is not dropped.
    let target = ManuallyDrop::new(unsafe { Arc::from_raw(data.cast::<T>()) });
    T::wake_by_ref(&target);
}

unsafe fn drop_waker<T: ArcWake>(data: *const ()) {
    // SAFETY: the waker goes, and its reference comes here.
    drop(unsafe { Arc::from_raw(data.cast::<T>()) });
}

/// A waker that takes over an `Arc`. A clone and a drop cost one read-modify-write each. A wake
/// costs what `target` does with its `Arc`: a [`WakeRef`]'s costs none, and by value the drop.
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
    // SAFETY: the functions keep a waker's contract; `T` is `Send + Sync`.
    unsafe { Waker::new(Arc::into_raw(target).cast(), Table::<T>::VTABLE) }
}

impl<'a> WakerRef<'a> {
    /// Borrows an `Arc` for the length of a poll. No read-modify-write, now or at the drop; a clone
    /// counts, and is a waker of [`from_arc`].
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
    /// The `Arc` outlives it:
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
        // SAFETY: as in `from_arc`. Never dropped, and borrowed for no longer than `target`, the
        // waker needs no reference of its own.
        Self::borrow(unsafe { Waker::new(data, Table::<T>::VTABLE) })
    }

    /// Borrows the `Arc` of a target that implements the standard library's `Wake`. As
    /// [`from_arc`](Self::from_arc); a clone is a waker of `Waker::from`.
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
        // it goes into a waker, which a `WakerRef` forgets.
        let copy = unsafe { std::sync::Arc::from_raw(data) };
        Self::borrow(Waker::from(copy))
    }
}
