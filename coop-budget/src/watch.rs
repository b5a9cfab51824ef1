//! A watch: which operations of a poll wait, and whether others made progress.
//!
//! An operation that is granted, and whose charge is refunded as a whole, has not made progress. If
//! it does not call [`Progress::cancel`](crate::Progress::cancel), it returns `Pending`. The refund
//! happens in the operation's own poll. So a hook that is called there finds on the stack the
//! functions that await the operation.
//!
//! A watch grants and refuses what the budget and the time slice do, but for a nudge: the operation
//! that a nudge would refuse is granted.
//!
//! 1. [`record`] adds each charge to the watch. The charge's [`Progress`](crate::Progress) has, in
//!    place of the scope's number, the number of the watch and the place of the record, with the
//!    bit [`RECORDED`].
//! 2. A record is *given back* once, if its charge is refunded as a whole. Each other record stands
//!    for progress. The last records are removed if they are given back: no charge has their places
//!    any more.
//! 3. An operation may poll another one while it has its own charge: a wrapper does. Only the inner
//!    one waits then. So a record that is given back is a wait only if no wait was noted since the
//!    record was made.
use crate::{
    Exhausted, Preempt, WaitsOn, preempt,
    scope::{CURRENT, Current},
};
use std::{
    cell::{Cell, RefCell},
    fmt, ptr,
};

/// Marks the number of a charge that a watch has recorded.
const RECORDED: u64 = 1 << 63;

/// The bits of a record's place. A watch records no more charges than there are places.
const PLACE_BITS: u32 = 16;
const PLACES: usize = 1 << PLACE_BITS;

/// Calls `on_wait` for each operation of a poll that waits, on the stack of that operation.
///
/// `poll` has the same budget and time slice as without the watch. For each operation that
/// is granted and makes no progress, and for each that is refused, `on_wait` is called in the poll
/// of that operation. Its argument says what the operation waits for, if the operation says so
/// ([`Progress::waits_for`](crate::Progress::waits_for), [`note_wait`]). `on_wait` may capture the
/// stack. It must not panic: it runs in a drop. Do not keep it in a thread-local of the thread, for
/// the reason that [`OnExhausted`](crate::OnExhausted) gives.
///
/// Futures that charge no budget are not seen.
///
/// ```
/// use coop_budget::{poll_proceed, watch};
/// use std::{cell::Cell, task::{Context, Poll, Waker}};
///
/// let waits = Cell::new(0);
/// let on_wait = |_| waits.set(waits.get() + 1);
/// let watched = watch(&on_wait, |watching| {
///     let mut cx = Context::from_waker(Waker::noop());
///     let granted: Poll<_> = poll_proceed(&mut cx); // This operation has nothing to do.
///     drop(granted);
///     watching.so_far()
/// });
/// assert_eq!(waits.get(), 1);
/// assert!(!watched.has_progressed && watched.is_whole);
/// ```
pub fn watch<R>(on_wait: &dyn Fn(Option<WaitsOn>), poll: impl FnOnce(&Watching<'_>) -> R) -> R {
    CURRENT.with(|current| {
        let number = current.last_watch.get() + 1;
        current.last_watch.set(number);
        let watch = Watch {
            on_wait,
            number,
            records: RefCell::default(),
            is_full: Cell::new(false),
            waits: Cell::new(0),
            alias: RefCell::new(None),
            outer: current.watch.get(),
        };
        let none = Preempt::watched();
        poll(&Watching::begin(current, &watch, &none))
    })
}

/// The findings of a [`watch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Watched {
    /// Whether an operation kept its charge: it made progress.
    pub has_progressed: bool,
    /// Whether the watch is still in force. If not, some operations may be missing: the time slice
    /// was asked to end, or the poll has left its worker.
    pub is_whole: bool,
}

/// Notes that the calling operation waits, for an operation that charges the budget only when it is
/// ready. Outside of a [`watch`], `what` is not called, and the call costs a load and a branch.
///
/// ```
/// use coop_budget::{note_wait, watch};
/// use std::cell::RefCell;
///
/// let waits = RefCell::new(Vec::new());
/// let on_wait = |what| waits.borrow_mut().extend(what);
/// watch(&on_wait, |_| note_wait(|| "rain".into()));
/// note_wait(|| unreachable!("nobody watches"));
/// assert_eq!(waits.into_inner(), ["rain".into()]);
/// ```
#[inline]
pub fn note_wait(what: impl FnOnce() -> WaitsOn) {
    #[cold]
    #[inline(never)]
    fn note(watch: *const Watch<'static>, what: impl FnOnce() -> WaitsOn) {
        // SAFETY: the watch is live (rule 7 of `scope`).
        let watch = unsafe { &*watch };
        watch.note(Some(what));
    }

    let _ = CURRENT.try_with(|current| {
        let watch = current.watch.get();
        if !watch.is_null() {
            note(watch, what);
        }
    });
}

/// Polls an operation that waits by the operations of others: to a [`watch`], these wait for
/// `what`. Outside of a watch, `what` is not called.
///
/// ```
/// use coop_budget::{note_wait, waits_as, watch};
/// use std::cell::RefCell;
///
/// let waits = RefCell::new(Vec::new());
/// let on_wait = |what| waits.borrow_mut().extend(what);
/// watch(&on_wait, |_| {
///     waits_as(|| "the end of a child".into(), || note_wait(|| "a descriptor".into()));
/// });
/// assert_eq!(waits.into_inner(), ["the end of a child".into()]);
/// ```
pub fn waits_as<R>(what: impl FnOnce() -> WaitsOn, poll: impl FnOnce() -> R) -> R {
    struct Restore<'a>(&'a Watch<'static>, Option<WaitsOn>);

    impl Drop for Restore<'_> {
        fn drop(&mut self) {
            *self.0.alias.borrow_mut() = self.1.take();
        }
    }

    let watch = CURRENT.try_with(|current| current.watch.get());
    let watch = watch.unwrap_or(ptr::null());
    // SAFETY: the watch is null, or live (rule 7 of `scope`), until after this function: it was
    // there before.
    let watch = unsafe { watch.as_ref() };
    let _restore = watch.map(|watch| {
        let what = what();
        Restore(watch, watch.alias.borrow_mut().replace(what))
    });
    poll()
}

/// Runs a poll of another task, within a poll that may be [watched](watch): the operations of this
/// poll are not that task's. Outside of a watch the call costs a load and a branch.
///
/// ```
/// use coop_budget::{note_wait, unwatched, watch};
///
/// watch(&|_| unreachable!("another task waits"), |_| unwatched(|| note_wait(|| "rain".into())));
/// ```
pub fn unwatched<R>(poll: impl FnOnce() -> R) -> R {
    let watch = CURRENT.try_with(|current| current.watch.get());
    if watch.unwrap_or(ptr::null()).is_null() {
        return poll();
    }
    self::watch(&|_| (), |_| poll())
}

/// A watch in progress.
pub(crate) struct Watch<'a> {
    on_wait: &'a dyn Fn(Option<WaitsOn>),
    number: u64,
    records: RefCell<Vec<Record>>,
    /// Whether a charge found no place.
    is_full: Cell<bool>,
    /// The waits noted so far.
    waits: Cell<usize>,
    /// The event that the operations in a [`waits_as`] wait for.
    alias: RefCell<Option<WaitsOn>>,
    outer: *const Watch<'static>,
}

struct Record {
    scope: u64,
    granted: u32,
    /// The waits noted before the charge.
    waits: usize,
    is_given_back: bool,
}

impl Watch<'_> {
    fn note(&self, what: Option<impl FnOnce() -> WaitsOn>) {
        self.waits.set(self.waits.get() + 1);
        // A panic of a poll drops charges, too.
        if !std::thread::panicking() {
            let alias = self.alias.borrow().clone();
            (self.on_wait)(alias.or_else(|| what.map(|what| what())));
        }
    }
}

/// A [`watch`] in progress. Its drop ends the watch.
pub struct Watching<'a> {
    current: &'a Current,
    watch: &'a Watch<'a>,
    outer_slice: *const Preempt,
    outer_none: *const Preempt,
    /// The slice that is watched, and its state after the watch. `None` if there is no slice.
    slice: Option<(&'a Preempt, Option<u32>)>,
}

impl<'a> Watching<'a> {
    fn begin(current: &'a Current, watch: &'a Watch<'a>, none: &'a Preempt) -> Self {
        let (outer_slice, outer_none) = (current.slice.get(), current.none.get());
        current.watch.set(ptr::from_ref(watch).cast());
        current.none.set(none);
        let mut slice = None;
        if ptr::eq(outer_slice, preempt::NONE) {
            current.slice.set(none);
        } else {
            // SAFETY: the slice is live (rule 5 of `scope`), also until the end of this watch, as
            // the scope that borrows it is around the watch. It is not null, as only `NONE` may be.
            let flag = unsafe { &*outer_slice };
            slice = Some((flag, flag.begin_watch()));
        }
        Self {
            current,
            watch,
            outer_slice,
            outer_none,
            slice,
        }
    }

    /// Returns what the watch has seen so far.
    pub fn so_far(&self) -> Watched {
        let records = self.watch.records.borrow();
        let is_whole = self
            .slice
            .is_none_or(|(flag, after)| after.is_some() && flag.is_watched());
        Watched {
            has_progressed: records.iter().any(|record| !record.is_given_back),
            is_whole: is_whole && !self.watch.is_full.get(),
        }
    }
}

impl fmt::Debug for Watching<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watching").field(&self.so_far()).finish()
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        if let Some((flag, Some(after))) = self.slice {
            flag.end_watch(after);
        }
        self.current.slice.set(self.outer_slice);
        self.current.none.set(self.outer_none);
        self.current.watch.set(self.watch.outer);
    }
}

/// Records a charge of a scope, if there is a watch (rule 1). Returns the number for the charge.
pub(crate) fn record(current: &Current, scope: u64, granted: u32) -> u64 {
    // SAFETY: the watch is null, or live (rule 7 of `scope`).
    let Some(watch) = (unsafe { current.watch.get().as_ref() }) else {
        return scope;
    };
    let mut records = watch.records.borrow_mut();
    let place = records.len();
    if place == PLACES {
        watch.is_full.set(true);
        return scope;
    }
    records.push(Record {
        scope,
        granted,
        waits: watch.waits.get(),
        is_given_back: false,
    });
    RECORDED | watch.number << PLACE_BITS | place as u64
}

pub(crate) fn is_recorded(scope: u64) -> bool {
    scope & RECORDED != 0
}

/// A recorded charge that is refunded.
pub(crate) struct GivenBack<'a> {
    /// The scope to which the charge is refunded.
    pub(crate) scope: u64,
    /// The watch, if the charge is a wait (rule 3).
    watch: Option<&'a Watch<'static>>,
}

impl GivenBack<'_> {
    pub(crate) fn note(self, what: Option<impl FnOnce() -> WaitsOn>) {
        if let Some(watch) = self.watch {
            watch.note(what);
        }
    }
}

/// Finds the record of a charge, of which `charge` operations are refunded. Returns `None` if the
/// watch has ended: then nothing is refunded.
pub(crate) fn give_back(current: &Current, number: u64, charge: u32) -> Option<GivenBack<'_>> {
    let place = number as usize % PLACES;
    let number = (number & !RECORDED) >> PLACE_BITS;
    let mut next = current.watch.get();
    // SAFETY: the watch is null, or live (rule 7 of `scope`).
    while let Some(watch) = unsafe { next.as_ref() } {
        if watch.number == number {
            let mut records = watch.records.borrow_mut();
            let record = records.get_mut(place)?;
            record.is_given_back = record.granted == charge;
            let waits = record.is_given_back && record.waits == watch.waits.get();
            let scope = record.scope;
            // A poll that tries again and again needs no more places.
            while records.last().is_some_and(|last| last.is_given_back) {
                records.pop();
            }
            return Some(GivenBack {
                scope,
                watch: waits.then_some(watch),
            });
        }
        next = watch.outer;
    }
    None
}

/// Notes an operation that is refused.
pub(crate) fn note_refusal(current: &Current, why: Exhausted) {
    // SAFETY: the watch is null, or live (rule 7 of `scope`).
    if let Some(watch) = unsafe { current.watch.get().as_ref() } {
        let what = match why {
            Exhausted::Operations => "its next turn: its budget is used up",
            Exhausted::Slice => "its next turn: its time slice is over",
            Exhausted::Nudge => "its next turn: the worker was nudged",
        };
        watch.note(Some(|| what.into()));
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
