//! The entries of one slot: a *ring*, which here is a circular, doubly linked list. The slot points
//! to its oldest entry, the *head*.
//!
//! 1. The head is `None` if the ring is empty. The entry before the head is the newest.
//! 2. Links are pointers that `Entry::into_ptr` returned, so a handle can be made of each.
//! 3. An entry that leaves has its links cleared. An entry without links is in no ring.
use crate::{Entry, entry::Inner};
use core::{cell::UnsafeCell, ptr::NonNull};

pub(crate) type Head<T> = Option<NonNull<T>>;

/// Returns the content of an entry's node.
///
/// # Safety
/// The entry is live.
#[inline(always)]
unsafe fn inner<T: Entry>(entry: NonNull<T>) -> *mut Inner<T> {
    // SAFETY: guaranteed by the caller.
    let node = unsafe { T::node(entry) };
    // SAFETY: the node is in a live entry. No reference is made.
    let cell = unsafe { &raw const (*node.as_ptr()).inner };
    UnsafeCell::raw_get(cell)
}

/// Reads from an entry's node.
///
/// # Safety
/// The entry is live, and in no wheel but the caller's.
#[inline(always)]
unsafe fn read<T: Entry, R>(entry: NonNull<T>, f: impl FnOnce(&Inner<T>) -> R) -> R {
    // SAFETY: guaranteed by the caller.
    let inner = unsafe { inner(entry) };
    // SAFETY: guaranteed by the caller: no other code writes the node.
    f(unsafe { &*inner })
}

/// Writes to an entry's node.
///
/// # Safety
/// As for [`read`].
#[inline(always)]
unsafe fn write<T: Entry>(entry: NonNull<T>, f: impl FnOnce(&mut Inner<T>)) {
    // SAFETY: guaranteed by the caller.
    let inner = unsafe { inner(entry) };
    // SAFETY: guaranteed by the caller: no other code uses the node.
    f(unsafe { &mut *inner });
}

/// Returns the next entry of the ring. Returns `None` if this entry is in no ring.
///
/// # Safety
/// The entry is live, and in no wheel but the caller's.
#[inline(always)]
pub(crate) unsafe fn next<T: Entry>(entry: NonNull<T>) -> Head<T> {
    // SAFETY: guaranteed by the caller.
    unsafe { read(entry, |inner| inner.next) }
}

/// Returns the tick at which an entry expires.
///
/// # Safety
/// As for [`next`].
#[inline(always)]
pub(crate) unsafe fn when<T: Entry>(entry: NonNull<T>) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe { read(entry, |inner| inner.when) }
}

/// Sets the tick at which an entry expires.
///
/// # Safety
/// As for [`next`].
#[inline(always)]
pub(crate) unsafe fn set_when<T: Entry>(entry: NonNull<T>, when: u64) {
    // SAFETY: guaranteed by the caller.
    unsafe { write(entry, |inner| inner.when = when) };
}

/// Returns the newest entry of a ring.
///
/// # Safety
/// `head` is the head of a ring in the caller's wheel.
#[inline(always)]
pub(crate) unsafe fn newest<T: Entry>(head: NonNull<T>) -> NonNull<T> {
    // SAFETY: guaranteed by the caller.
    unsafe { read(head, |inner| inner.prev) }.unwrap_or(head)
}

/// Appends an entry to a ring.
///
/// # Safety
/// The ring must be in the caller's wheel. The entry must be owned by the caller, come from
/// `into_ptr`, and be in no ring.
#[inline(always)]
pub(crate) unsafe fn push<T: Entry>(head: &mut Head<T>, entry: NonNull<T>) {
    let oldest = *head.get_or_insert(entry);
    let newest = match oldest == entry {
        true => entry,
        // SAFETY: `oldest` is the head (rule 1).
        false => unsafe { newest(oldest) },
    };
    // SAFETY: guaranteed by the caller.
    unsafe { write(entry, |inner| inner.prev = Some(newest)) };
    // SAFETY: as above.
    unsafe { write(entry, |inner| inner.next = Some(oldest)) };
    // SAFETY: the newest entry is in the ring, or it is this one.
    unsafe { write(newest, |inner| inner.next = Some(entry)) };
    // SAFETY: the oldest entry is in the ring, or it is this one.
    unsafe { write(oldest, |inner| inner.prev = Some(entry)) };
}

/// The result of [`unlink`].
pub(crate) struct Unlinked<T> {
    /// The pointer to the entry that `into_ptr` returned.
    pub(crate) entry: NonNull<T>,
    /// The next entry of the ring, or `None` if the ring had no other entry.
    pub(crate) next: Head<T>,
}

/// Takes an entry out of its ring. Returns `None` if it is in no ring.
///
/// # Safety
/// The entry is live, and in no wheel but the caller's.
#[inline(always)]
pub(crate) unsafe fn unlink<T: Entry>(entry: NonNull<T>) -> Option<Unlinked<T>> {
    // SAFETY: guaranteed by the caller.
    let (next, prev) = unsafe { read(entry, |inner| (inner.next, inner.prev)) };
    let (next, prev) = (next?, prev?);
    // SAFETY: guaranteed by the caller.
    unsafe { write(entry, |inner| (inner.next, inner.prev) = (None, None)) };
    if next == entry {
        return Some(Unlinked {
            entry: next,
            next: None,
        });
    }
    let mut original = entry;
    // SAFETY: the neighbour is in the ring, and links to the entry.
    unsafe {
        write(prev, |inner| {
            original = inner.next.replace(next).unwrap_or(original);
        });
    }
    // SAFETY: the other neighbour is in the ring too.
    unsafe { write(next, |inner| inner.prev = Some(prev)) };
    Some(Unlinked {
        entry: original,
        next: Some(next),
    })
}
