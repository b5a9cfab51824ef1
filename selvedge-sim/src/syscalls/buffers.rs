//! The buffers of a call, as C has them.
use libc::{c_void, iovec};
use std::{ptr, slice};

/// The buffers into which a call reads.
pub(super) struct Sink<'a> {
    parts: &'a [iovec],
    /// The part, and the place in it, for the next byte.
    next: (usize, usize),
}

/// Returns the parts of a call.
///
/// # Safety
/// The pointer is valid for reads of `count` parts, or the count is 0.
pub(super) unsafe fn parts<'a>(at: *const iovec, count: usize) -> &'a [iovec] {
    if count == 0 || at.is_null() {
        return &[];
    }
    // SAFETY: the caller's.
    unsafe { slice::from_raw_parts(at, count) }
}

/// Returns one buffer as a part.
pub(super) fn part(at: *const c_void, len: usize) -> iovec {
    iovec {
        iov_base: at.cast_mut(),
        iov_len: len,
    }
}

pub(super) fn len(parts: &[iovec]) -> usize {
    let lens = parts.iter().map(|part| part.iov_len);
    lens.fold(0, usize::saturating_add)
}

/// Returns the bytes of parts that a call writes from.
///
/// # Safety
/// Each part is valid for reads of its length.
pub(super) unsafe fn bytes(parts: &[iovec]) -> Vec<&[u8]> {
    let filled = parts.iter().filter(|part| part.iov_len > 0);
    let bytes = filled.map(|part| {
        // SAFETY: the caller's.
        unsafe { slice::from_raw_parts(part.iov_base.cast::<u8>().cast_const(), part.iov_len) }
    });
    bytes.collect()
}

impl<'a> Sink<'a> {
    /// # Safety
    /// Each part is valid for writes of its length while the sink exists.
    pub(super) unsafe fn new(parts: &'a [iovec]) -> Self {
        let next = (0, 0);
        Self { parts, next }
    }

    /// Writes the bytes that have room behind those before.
    pub(super) fn take(&mut self, mut bytes: &[u8]) {
        while let (false, Some(part)) = (bytes.is_empty(), self.parts.get(self.next.0)) {
            let count = bytes.len().min(part.iov_len - self.next.1);
            // SAFETY: the place is within the part, by the contract of `new`, or at its end.
            let to = unsafe { part.iov_base.cast::<u8>().add(self.next.1) };
            // SAFETY: `to` has room for `count` bytes, and `bytes` are the simulator's own.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, count) };
            bytes = &bytes[count..];
            self.next.1 += count;
            if self.next.1 == part.iov_len {
                self.next = (self.next.0 + 1, 0);
            }
        }
    }
}
