//! Wakers over pointers to targets that count their own references.
//!
//! 1. A waker's data is a pointer to a target, which begins with a [`WakeHeader`]. The waker's
//!    vtable is one static of this crate, the same for all targets. So `will_wake` is true of two
//!    wakers of one target, no matter in which codegen unit they were made.
//! 2. The static's functions call the target's own functions, through the header. Only the target's
//!    own functions know its type.
//! 3. Each waker is one reference, except the waker in a [`WakerRef`], which borrows the target.
use core::{
    fmt,
    marker::PhantomData,
    mem::ManuallyDrop,
    ops::Deref,
    ptr::{self, NonNull},
    task::{RawWaker, RawWakerVTable, Waker},
};

/// The table of the four operations of a target. `repr(C)`, so that it can begin a bigger table.
#[repr(C)]
pub struct TargetVtable {
    ref_inc: unsafe fn(NonNull<WakeHeader>),
    ref_dec: unsafe fn(NonNull<WakeHeader>),
    wake_by_ref: unsafe fn(NonNull<WakeHeader>),
    wake_by_val: unsafe fn(NonNull<WakeHeader>),
}

impl TargetVtable {
    /// Creates the table of `T`, for a `static` or a promoted constant.
    pub const fn of<T: WakeTarget>() -> Self {
        Self {
            ref_inc: |this| {
                // SAFETY: by the caller's contract; a pointer to a target's header is a pointer to
                // the target.
                unsafe { T::ref_inc(this.cast()) }
            },
            ref_dec: |this| {
                // SAFETY: as above.
                unsafe { T::ref_dec(this.cast()) }
            },
            wake_by_ref: |this| {
                // SAFETY: as above.
                unsafe { T::wake_by_ref(this.cast()) }
            },
            wake_by_val: |this| {
                // SAFETY: as above.
                unsafe { T::wake_by_val(this.cast()) }
            },
        }
    }
}

impl fmt::Debug for TargetVtable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TargetVtable")
    }
}

/// The first field of every target: a pointer to its operations. One word.
#[repr(transparent)]
#[derive(Debug)]
pub struct WakeHeader(NonNull<TargetVtable>);

// SAFETY: a header points to a constant.
unsafe impl Send for WakeHeader {}

// SAFETY: as above.
unsafe impl Sync for WakeHeader {}

impl WakeHeader {
    /// Creates the header of a target whose table is a [`TargetVtable`].
    pub const fn new(vtable: &'static TargetVtable) -> Self {
        // SAFETY: a `TargetVtable` begins with itself.
        unsafe { Self::with_vtable(vtable) }
    }

    /// Creates the header of a target whose table is bigger. The pointer is valid for all of `V`.
    ///
    /// # Safety
    /// `V` is `repr(C)` and its first field is a [`TargetVtable`].
    pub const unsafe fn with_vtable<V>(vtable: &'static V) -> Self {
        let vtable = ptr::from_ref(vtable).cast_mut().cast();
        // SAFETY: a reference is not null.
        Self(unsafe { NonNull::new_unchecked(vtable) })
    }

    /// Returns the table, which is static.
    #[inline]
    pub const fn vtable(&self) -> NonNull<TargetVtable> {
        self.0
    }
}

/// A type that a counted waker can point to, such as a task.
///
/// # Safety
///
/// - The type is `repr(C)`. Its first field is a [`WakeHeader`], whose table is, or begins with,
///   `TargetVtable::of::<Self>()`.
/// - While it has a reference, a target is live and stays in place.
/// - The functions may be called from any thread, several at a time, each by a holder of a
///   reference.
///
/// A panic in these functions unwinds into the code that called the waker. That code may be in any
/// state, so these functions should catch the panics of user code. This crate keeps no state that a
/// panic could break.
pub unsafe trait WakeTarget: Sized {
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

static WAKER: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_waker);

/// # Safety
/// `data` is the data of a waker of this file, and the caller has the waker's reference.
unsafe fn parts(data: *const ()) -> (NonNull<WakeHeader>, &'static TargetVtable) {
    // SAFETY: `waker` made the data from a `NonNull`.
    let header = unsafe { NonNull::new_unchecked(data.cast_mut().cast::<WakeHeader>()) };
    // SAFETY: the reference keeps the target live.
    let vtable = unsafe { header.as_ref() }.0;
    // SAFETY: the table is static, and is a `TargetVtable` or begins with one.
    (header, unsafe { vtable.as_ref() })
}

unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: a waker calls this, with its own data.
    let (target, vtable) = unsafe { parts(data) };
    // SAFETY: the cloned waker has a reference.
    unsafe { (vtable.ref_inc)(target) };
    RawWaker::new(data, &WAKER)
}

unsafe fn wake(data: *const ()) {
    // SAFETY: a waker calls this, with its own data.
    let (target, vtable) = unsafe { parts(data) };
    // SAFETY: the waker ends here, and gives up its reference.
    unsafe { (vtable.wake_by_val)(target) };
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: a waker calls this, with its own data.
    let (target, vtable) = unsafe { parts(data) };
    // SAFETY: the waker has a reference.
    unsafe { (vtable.wake_by_ref)(target) };
}

unsafe fn drop_waker(data: *const ()) {
    // SAFETY: a waker calls this, with its own data.
    let (target, vtable) = unsafe { parts(data) };
    // SAFETY: the waker ends here, and gives up its reference.
    unsafe { (vtable.ref_dec)(target) };
}

/// Creates a waker that takes over one counted reference. This costs no read-modify-write.
///
/// # Safety
/// The caller gives up a reference to the target.
#[inline]
pub unsafe fn waker<T: WakeTarget>(this: NonNull<T>) -> Waker {
    // SAFETY: the functions of `WAKER` keep the contract of a waker if `T` keeps that of a target.
    unsafe { Waker::new(this.as_ptr().cast_const().cast(), &WAKER) }
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

/// Returns the header of a waker's target, if the waker has the vtable that all wakers of [`waker`]
/// share.
///
/// It returns `None` for all other wakers, including those of
/// [`direct_waker`](crate::direct_waker). The header lives as long as the waker; the type of the
/// result does not say so.
#[inline]
pub fn target_header(waker: &Waker) -> Option<NonNull<WakeHeader>> {
    if !ptr::eq(waker.vtable(), &raw const WAKER) {
        return None;
    }
    NonNull::new(waker.data().cast_mut().cast())
}

/// Returns the target of a waker if its header names `vtable`. An executor recognises its own
/// wakers by this.
///
/// All targets share one waker vtable, so the address of the header's table decides. This is exact
/// for a `static` table. The address of a constant table may differ between codegen units, or may
/// be that of an equal table of another type. With a constant table, use a field of the target to
/// tell the types apart.
///
/// The result is live as long as the waker. Reading through it is sound if `vtable` belongs to `T`
/// alone.
///
/// ```
/// # use core::ptr::NonNull;
/// use waker_vtable::{TargetVtable, WakeHeader, WakeTarget, WakerRef, try_target};
///
/// #[repr(C)]
/// struct Mine {
///     wake: WakeHeader,
///     name: &'static str,
/// }
///
/// static MINE: TargetVtable = TargetVtable::of::<Mine>();
///
/// // SAFETY: `repr(C)` with the header first. It is always a static, so nothing need be counted.
/// unsafe impl WakeTarget for Mine {
///     // ..
/// #   unsafe fn ref_inc(_: NonNull<Self>) {}
/// #   unsafe fn ref_dec(_: NonNull<Self>) {}
/// #   unsafe fn wake_by_ref(_: NonNull<Self>) {}
/// #   unsafe fn wake_by_val(_: NonNull<Self>) {}
/// }
///
/// static TARGET: Mine = Mine { wake: WakeHeader::new(&MINE), name: "main" };
///
/// // SAFETY: the target is static.
/// let waker = unsafe { WakerRef::new(NonNull::from(&TARGET)) };
/// let target = try_target::<Mine>(&waker, &MINE).expect("the waker is mine");
/// // SAFETY: the table is that of `Mine` alone, and the waker is live.
/// assert_eq!(unsafe { target.as_ref() }.name, "main");
/// assert!(try_target::<Mine>(std::task::Waker::noop(), &MINE).is_none());
/// ```
#[inline]
pub fn try_target<T: WakeTarget>(
    waker: &Waker,
    vtable: &'static TargetVtable,
) -> Option<NonNull<T>> {
    let header = target_header(waker)?;
    // SAFETY: the waker keeps its target live.
    let of = unsafe { header.as_ref() }.0;
    ptr::eq(of.as_ptr(), vtable).then(|| header.cast())
}
