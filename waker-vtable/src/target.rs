//! Wakers over pointers that count themselves.
//!
//! 1. A waker's data is a pointer to a target, which begins with a [`WakeHeader`]; its vtable is one static
//!    of this crate, the same for all targets. So two wakers of one target are equal to `will_wake`, in
//!    whichever codegen unit they were made.
//! 2. The static's functions go on to the target's own, through the header. Which type a target is only they know.
//! 3. Each waker is one reference, but for the one in a [`WakerRef`], which borrows.
use core::{
    fmt,
    marker::PhantomData,
    mem::ManuallyDrop,
    ops::Deref,
    ptr::{self, NonNull},
    task::{RawWaker, RawWakerVTable, Waker},
};

/// The four operations of a target, as a table. `repr(C)`, so that it can begin a bigger one.
#[repr(C)]
pub struct TargetVtable {
    ref_inc: unsafe fn(NonNull<WakeHeader>),
    ref_dec: unsafe fn(NonNull<WakeHeader>),
    wake_by_ref: unsafe fn(NonNull<WakeHeader>),
    wake_by_val: unsafe fn(NonNull<WakeHeader>),
}

impl TargetVtable {
    /// The operations of `T`. For a `static` or a promoted constant.
    pub const fn of<T: WakeTarget>() -> Self {
        Self {
            ref_inc: |this| {
                // SAFETY: the caller's; a pointer to a target's header is one to the target.
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

/// The first field of every target: where its operations are. One word.
#[repr(transparent)]
#[derive(Debug)]
pub struct WakeHeader(NonNull<TargetVtable>);

// SAFETY: it points to a constant.
unsafe impl Send for WakeHeader {}

// SAFETY: as above.
unsafe impl Sync for WakeHeader {}

impl WakeHeader {
    /// For a target whose table is just that.
    pub const fn new(vtable: &'static TargetVtable) -> Self {
        // SAFETY: a `TargetVtable` begins with itself.
        unsafe { Self::with_vtable(vtable) }
    }

    /// For a target whose table is bigger. The pointer is good for all of `V`.
    ///
    /// # Safety
    /// `V` is `repr(C)` and its first field is a [`TargetVtable`].
    pub const unsafe fn with_vtable<V>(vtable: &'static V) -> Self {
        let vtable = ptr::from_ref(vtable).cast_mut().cast();
        // SAFETY: a reference is not null.
        Self(unsafe { NonNull::new_unchecked(vtable) })
    }

    /// The table, which is static.
    #[inline]
    pub const fn vtable(&self) -> NonNull<TargetVtable> {
        self.0
    }
}

/// What a counted waker can point to: a task, as a rule.
///
/// # Safety
///
/// - `repr(C)`, the first field a [`WakeHeader`] whose table is, or begins with, `TargetVtable::of::<Self>()`.
/// - As long as it has a reference it is live and stays in place.
/// - The functions may be called from any thread, several at a time, each by the holder of a reference.
///
/// A panic in them goes on to whoever called the waker, who may be in the midst of anything: catch those of foreign code.
/// This crate keeps no state that it could break.
pub unsafe trait WakeTarget: Sized {
    /// Counts a reference: a waker was cloned.
    ///
    /// # Safety
    /// The caller has a reference.
    unsafe fn ref_inc(this: NonNull<Self>);

    /// Drops a reference: a waker was dropped.
    ///
    /// # Safety
    /// The caller gives up a reference.
    unsafe fn ref_dec(this: NonNull<Self>);

    /// Wakes.
    ///
    /// # Safety
    /// The caller has a reference.
    unsafe fn wake_by_ref(this: NonNull<Self>);

    /// Wakes and drops a reference, or hands it over.
    ///
    /// # Safety
    /// The caller gives up a reference.
    unsafe fn wake_by_val(this: NonNull<Self>);
}

static WAKER: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_waker);

/// # Safety
/// `data` is a waker's of this crate, whose reference the caller has.
unsafe fn parts(data: *const ()) -> (NonNull<WakeHeader>, &'static TargetVtable) {
    // SAFETY: `waker` made it from a `NonNull`.
    let header = unsafe { NonNull::new_unchecked(data.cast_mut().cast::<WakeHeader>()) };
    // SAFETY: the reference keeps the target live.
    let vtable = unsafe { header.as_ref() }.0;
    // SAFETY: it is static, and a `TargetVtable` or begins with one.
    (header, unsafe { vtable.as_ref() })
}

unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: called by a waker.
    let (target, vtable) = unsafe { parts(data) };
    // SAFETY: the cloned waker has a reference.
    unsafe { (vtable.ref_inc)(target) };
    RawWaker::new(data, &WAKER)
}

unsafe fn wake(data: *const ()) {
    // SAFETY: called by a waker.
    let (target, vtable) = unsafe { parts(data) };
    // SAFETY: the waker goes.
    unsafe { (vtable.wake_by_val)(target) };
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: called by a waker.
    let (target, vtable) = unsafe { parts(data) };
    // SAFETY: the waker has a reference.
    unsafe { (vtable.wake_by_ref)(target) };
}

unsafe fn drop_waker(data: *const ()) {
    // SAFETY: called by a waker.
    let (target, vtable) = unsafe { parts(data) };
    // SAFETY: the waker goes.
    unsafe { (vtable.ref_dec)(target) };
}

/// A waker that takes over one counted reference. No read-modify-write of its own.
///
/// # Safety
/// The caller gives up a reference to the target.
#[inline]
pub unsafe fn waker<T: WakeTarget>(this: NonNull<T>) -> Waker {
    // SAFETY: the functions of `WAKER` keep the contract of a waker if `T` keeps that of a target.
    unsafe { Waker::new(this.as_ptr().cast_const().cast(), &WAKER) }
}

/// A waker for the length of a poll, which counts nothing: most polls clone none.
///
/// What outlives the poll clones it, which counts:
///
/// ```compile_fail
/// fn is_clone<T: Clone>() {}
/// is_clone::<waker_vtable::WakerRef<'static>>();
/// ```
///
/// It is only lent out, never moved into a waker of its own:
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
    /// Borrows a target. No read-modify-write, now or at the drop.
    ///
    /// # Safety
    /// Somebody's reference keeps the target live for all of the lifetime.
    #[inline]
    pub unsafe fn new<T: WakeTarget>(this: NonNull<T>) -> Self {
        // SAFETY: never dropped, the waker needs no reference of its own.
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

/// The target of a waker over this crate's one vtable; `None` for anybody else's, [`direct_waker`](crate::direct_waker)'s among them.
///
/// It lives as long as the waker, which this doesn't say in its type.
#[inline]
pub fn target_header(waker: &Waker) -> Option<NonNull<WakeHeader>> {
    if !ptr::eq(waker.vtable(), &raw const WAKER) {
        return None;
    }
    NonNull::new(waker.data().cast_mut().cast())
}

/// The target of a waker, if its header names `vtable`: "is this one of mine?"
///
/// Everyone's targets share one waker vtable, so that the header's decides, by address. That is exact for a `static` table. A constant's
/// address may differ between codegen units, or be shared with an equal table of another type: then use a field of the target to tell.
///
/// The result is live as long as the waker. Reading through it is sound if `vtable` belongs to `T` alone.
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
/// // SAFETY: `repr(C)`, the header first; only ever a static, so that nothing need be counted.
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
/// // SAFETY: it is static.
/// let waker = unsafe { WakerRef::new(NonNull::from(&TARGET)) };
/// let target = try_target::<Mine>(&waker, &MINE).expect("it is mine");
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
