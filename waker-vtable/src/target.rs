//! Wakers over pointers to targets that count their own references.
//!
//! 1. A waker's data is a pointer to a target, and its vtable is that of the target's type. So no
//!    operation reads the target to find its function: a wake takes the target's cache line once,
//!    for its read-modify-write, also while other threads wake the same target.
//! 2. A type that is not generic gives its vtable as a static. Then `will_wake` is true of any two
//!    wakers of one target, and [`try_target`] recognises all of them. The default is a constant,
//!    which the compiler may emit more than once, or merge with an equal one of another type.
//! 3. Each waker is one reference, except the waker in a [`WakerRef`], which borrows the target.
use core::{
    fmt,
    marker::PhantomData,
    mem::ManuallyDrop,
    ops::Deref,
    ptr::{self, NonNull},
    task::{RawWaker, RawWakerVTable, Waker},
};

/// A type that a counted waker can point to, such as a task.
///
/// # Safety
///
/// - While it has a reference, a target is live and stays in place.
/// - The functions that take a target may be called from any thread, several at a time, each by a
///   holder of a reference.
/// - [`vtable`](Self::vtable) returns a table that [`vtable_of`] made for this type. If it panics in
///   a call of [`waker`], a reference leaks.
///
/// A panic in these functions unwinds into the code that called the waker. That code may be in any
/// state, so these functions should catch the panics of user code. This crate keeps no state that a
/// panic could break.
pub unsafe trait WakeTarget: Sized {
    /// Returns the vtable of this type's wakers.
    ///
    /// The default returns a constant, of which there may be several copies; the
    /// [README](crate#when-not-to-use-it) says what that costs. A type that is not generic returns
    /// a static instead, of its own:
    ///
    /// ```
    /// # use core::{ptr::NonNull, task::RawWakerVTable};
    /// use waker_vtable::{WakeTarget, vtable_of};
    ///
    /// struct Task;
    ///
    /// static VTABLE: RawWakerVTable = vtable_of::<Task>();
    ///
    /// // SAFETY: the table is that of `Task`. It is always a static, so nothing need be counted.
    /// unsafe impl WakeTarget for Task {
    ///     fn vtable() -> &'static RawWakerVTable {
    ///         &VTABLE
    ///     }
    ///     // ..
    /// #   unsafe fn ref_inc(_: NonNull<Self>) {}
    /// #   unsafe fn ref_dec(_: NonNull<Self>) {}
    /// #   unsafe fn wake_by_ref(_: NonNull<Self>) {}
    /// #   unsafe fn wake_by_val(_: NonNull<Self>) {}
    /// }
    /// ```
    #[inline]
    fn vtable() -> &'static RawWakerVTable {
        const { &vtable_of::<Self>() }
    }

    /// Adds a reference: a waker was cloned.
    ///
    /// # Safety
    /// The caller has a reference.
    unsafe fn ref_inc(this: NonNull<Self>);

    /// Drops a reference: a waker was dropped.
    ///
    /// # Safety
    /// The caller gives up a reference.
    unsafe fn ref_dec(this: NonNull<Self>);

    /// Wakes the target.
    ///
    /// # Safety
    /// The caller has a reference.
    unsafe fn wake_by_ref(this: NonNull<Self>);

    /// Wakes the target, and drops a reference or hands it over.
    ///
    /// # Safety
    /// The caller gives up a reference.
    unsafe fn wake_by_val(this: NonNull<Self>);
}

/// Creates the vtable of `T`'s wakers, for a static that [`WakeTarget::vtable`] returns.
pub const fn vtable_of<T: WakeTarget>() -> RawWakerVTable {
    RawWakerVTable::new(clone::<T>, wake::<T>, wake_by_ref::<T>, drop_waker::<T>)
}

/// # Safety
/// `data` is the data of a waker that this module made for a `T`.
unsafe fn target<T>(data: *const ()) -> NonNull<T> {
    // SAFETY: the data was made from a `NonNull<T>`.
    unsafe { NonNull::new_unchecked(data.cast_mut().cast()) }
}

unsafe fn clone<T: WakeTarget>(data: *const ()) -> RawWaker {
    // The vtable comes first: if that call panics, no reference leaks.
    let clone = RawWaker::new(data, T::vtable());
    // SAFETY: a waker of this type calls this, with its own data.
    let this = unsafe { target::<T>(data) };
    // SAFETY: the cloned waker has a reference.
    unsafe { T::ref_inc(this) };
    clone
}

unsafe fn wake<T: WakeTarget>(data: *const ()) {
    // SAFETY: a waker of this type calls this, with its own data.
    let this = unsafe { target::<T>(data) };
    // SAFETY: the waker ends here, and gives up its reference.
    unsafe { T::wake_by_val(this) };
}

unsafe fn wake_by_ref<T: WakeTarget>(data: *const ()) {
    // SAFETY: a waker of this type calls this, with its own data.
    let this = unsafe { target::<T>(data) };
    // SAFETY: the waker has a reference.
    unsafe { T::wake_by_ref(this) };
}

unsafe fn drop_waker<T: WakeTarget>(data: *const ()) {
    // SAFETY: a waker of this type calls this, with its own data.
    let this = unsafe { target::<T>(data) };
    // SAFETY: the waker ends here, and gives up its reference.
    unsafe { T::ref_dec(this) };
}

/// Creates a waker that takes over one counted reference. This costs no read-modify-write.
///
/// # Safety
/// The caller gives up a reference to the target.
#[inline]
pub unsafe fn waker<T: WakeTarget>(this: NonNull<T>) -> Waker {
    // SAFETY: the functions of the table keep the contract of a waker if `T` keeps that of a
    // target.
    unsafe { Waker::new(this.as_ptr().cast_const().cast(), T::vtable()) }
}

/// A waker for one poll. It counts no reference, since most polls clone no waker.
///
/// Code that keeps a waker after the poll clones it, and the clone counts. The `WakerRef` itself is
/// not `Clone`:
///
/// ```compile_fail
/// fn is_clone<T: Clone>() {}
/// is_clone::<waker_vtable::WakerRef<'static>>();
/// ```
///
/// The waker inside is only borrowed, never moved out:
///
/// ```compile_fail
/// fn into_waker(borrowed: waker_vtable::WakerRef<'_>) -> std::task::Waker {
///     *borrowed
/// }
/// ```
pub struct WakerRef<'a> {
    waker: ManuallyDrop<Waker>,
    target: PhantomData<&'a ()>,
}

impl WakerRef<'_> {
    /// Borrows a target. This costs no read-modify-write, nor does the drop of the result.
    ///
    /// # Safety
    /// Some reference keeps the target live for all of the result's lifetime.
    #[inline]
    pub unsafe fn new<T: WakeTarget>(this: NonNull<T>) -> Self {
        // SAFETY: the waker is never dropped, so it needs no reference of its own.
        Self::borrow(unsafe { waker(this) })
    }

    pub(crate) const fn borrow(waker: Waker) -> Self {
        Self {
            waker: ManuallyDrop::new(waker),
            target: PhantomData,
        }
    }
}

impl Deref for WakerRef<'_> {
    type Target = Waker;

    #[inline]
    fn deref(&self) -> &Waker {
        &self.waker
    }
}

impl fmt::Debug for WakerRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// Returns the target of a waker if its vtable is that of `T`. An executor recognises its own
/// wakers by this.
///
/// This is exact if [`WakeTarget::vtable`] returns a static that no other type has. Then reading
/// through the result is sound while the waker lives, as its target does. With the default vtable,
/// a constant, the result may be `None` for a waker of `T`, or the target of another type.
///
/// ```
/// # use core::{ptr::NonNull, task::RawWakerVTable};
/// use waker_vtable::{WakeTarget, WakerRef, try_target, vtable_of};
///
/// struct Mine {
///     name: &'static str,
/// }
///
/// static VTABLE: RawWakerVTable = vtable_of::<Mine>();
///
/// // SAFETY: the table is that of `Mine`. It is always a static, so nothing need be counted.
/// unsafe impl WakeTarget for Mine {
///     fn vtable() -> &'static RawWakerVTable {
///         &VTABLE
///     }
///     // ..
/// #   unsafe fn ref_inc(_: NonNull<Self>) {}
/// #   unsafe fn ref_dec(_: NonNull<Self>) {}
/// #   unsafe fn wake_by_ref(_: NonNull<Self>) {}
/// #   unsafe fn wake_by_val(_: NonNull<Self>) {}
/// }
///
/// static TARGET: Mine = Mine { name: "main" };
///
/// // SAFETY: the target is static.
/// let waker = unsafe { WakerRef::new(NonNull::from(&TARGET)) };
/// let target = try_target::<Mine>(&waker).expect("the waker is mine");
/// // SAFETY: the table is that of `Mine` alone, and the waker is live.
/// assert_eq!(unsafe { target.as_ref() }.name, "main");
/// assert!(try_target::<Mine>(std::task::Waker::noop()).is_none());
/// ```
#[inline]
pub fn try_target<T: WakeTarget>(waker: &Waker) -> Option<NonNull<T>> {
    if !ptr::eq(waker.vtable(), T::vtable()) {
        return None;
    }
    NonNull::new(waker.data().cast_mut().cast())
}
