//! The entries of one slot: a ring of links, of which the slot knows the oldest.
//!
//! 1. A head is the oldest entry of its ring, or `None` if there is none. The newest is before it.
//! 2. Links are the pointers that `Entry::into_ptr` gave, so that a handle can be made of each.
//! 3. An entry that leaves has no links any more, and one without links is in no ring.
use crate::{
    Entry,
    entry::{Inner, inner},
};
use core::ptr::NonNull;

pub(crate) type Head<T> = Option<NonNull<T>>;

/// Reads something of an entry's node.
///
/// # Safety
/// The entry is live, and in no wheel but the caller's.
#[inline(always)]
unsafe fn read<T: Entry, R>(entry: NonNull<T>, read: impl FnOnce(&Inner<T>) -> R) -> R {
    // SAFETY: the caller's promise.
    let inner = unsafe { inner(entry) };
    // SAFETY: nobody writes it: see above.
    read(unsafe { &*inner })
}

/// Writes something to an entry's node.
///
/// # Safety
/// As for [`read`].
#[inline(always)]
unsafe fn write<T: Entry>(entry: NonNull<T>, write: impl FnOnce(&mut Inner<T>)) {
    // SAFETY: the caller's promise.
    let inner = unsafe { inner(entry) };
    // SAFETY: nobody else uses it: see above.
    write(unsafe { &mut *inner });
}

/// Gives the entry behind this one in its ring, `None` if it is in no ring.
///
/// # Safety
/// The entry is live, and in no wheel but the caller's.
#[inline(always)]
pub(crate) unsafe fn next<T: Entry>(entry: NonNull<T>) -> Head<T> {
    // SAFETY: the caller's promise.
    unsafe { read(entry, |inner| inner.next) }
}

/// Gives the tick at which an entry expires.
///
/// # Safety
/// As for [`next`].
#[inline(always)]
pub(crate) unsafe fn when<T: Entry>(entry: NonNull<T>) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { read(entry, |inner| inner.when) }
}

/// Sets the tick at which an entry expires.
///
/// # Safety
/// As for [`next`].
#[inline(always)]
pub(crate) unsafe fn set_when<T: Entry>(entry: NonNull<T>, when: u64) {
    // SAFETY: the caller's promise.
    unsafe { write(entry, |inner| inner.when = when) };
}

/// Gives the newest entry of a ring, by its oldest.
///
/// # Safety
/// `head` is the head of a ring in the caller's wheel.
#[inline(always)]
pub(crate) unsafe fn newest<T: Entry>(head: NonNull<T>) -> NonNull<T> {
    // SAFETY: the caller's promise.
    unsafe { read(head, |inner| inner.prev) }.unwrap_or(head)
}

/// Puts an entry behind the newest of a ring.
///
/// # Safety
/// The ring is in the caller's wheel. The entry is the caller's, came from `into_ptr` and is in no
/// ring.
#[inline(always)]
pub(crate) unsafe fn push<T: Entry>(head: &mut Head<T>, entry: NonNull<T>) {
    let oldest = *head.get_or_insert(entry);
    let newest = match oldest == entry {
        true => entry,
        // SAFETY: rule 1.
        false => unsafe { newest(oldest) },
    };
    // SAFETY: the caller's promise.
    unsafe { write(entry, |inner| inner.prev = Some(newest)) };
    // SAFETY: as above.
    unsafe { write(entry, |inner| inner.next = Some(oldest)) };
    // SAFETY: the newest is in the ring, or it is the entry.
    unsafe { write(newest, |inner| inner.next = Some(entry)) };
    // SAFETY: so is the oldest.
    unsafe { write(oldest, |inner| inner.prev = Some(entry)) };
}

/// What [`unlink`] found.
pub(crate) struct Unlinked<T> {
    /// The entry, as the pointer that `into_ptr` gave of it.
    pub(crate) entry: NonNull<T>,
    /// The entry behind it, if it was not alone.
    pub(crate) next: Head<T>,
}

/// Takes an entry out of its ring, `None` if it is in no ring.
///
/// # Safety
/// The entry is live, and in no wheel but the caller's.
#[inline(always)]
pub(crate) unsafe fn unlink<T: Entry>(entry: NonNull<T>) -> Option<Unlinked<T>> {
    // SAFETY: the caller's promise.
    let (next, prev) = unsafe { read(entry, |inner| (inner.next, inner.prev)) };
    let (next, prev) = (next?, prev?);
    // SAFETY: the caller's promise.
    unsafe { write(entry, |inner| (inner.next, inner.prev) = (None, None)) };
    if next == entry {
        return Some(Unlinked {
            entry: next,
            next: None,
        });
    }
    let mut original = entry;
    // SAFETY: a neighbour is in the ring, with a link to the entry.
    unsafe {
        write(prev, |inner| {
            original = inner.next.replace(next).unwrap_or(original);
        });
    }
    // SAFETY: the other neighbour is in the ring, too.
    unsafe { write(next, |inner| inner.prev = Some(prev)) };
    Some(Unlinked {
        entry: original,
        next: Some(next),
    })
}
