//! The part of a guard that releases the lock.
use super::RwLock;
use crate::semaphore::raw::RawSemaphore;
use alloc::sync::Arc;

/// How many permits of the semaphore a guard has.
pub(super) trait Share {
    fn permits(&self) -> usize;
}

/// A reader's share: one permit.
pub(super) struct Shared;

impl Share for Shared {
    #[inline]
    fn permits(&self) -> usize {
        1
    }
}

/// A writer's share: as many permits as there may be readers.
pub(super) struct Whole(pub(super) u32);

impl Share for Whole {
    #[inline]
    fn permits(&self) -> usize {
        self.0 as usize
    }
}

/// A share of a lock that is borrowed. Its drop releases it.
pub(super) struct Held<'a, S: Share> {
    pub(super) raw: &'a RawSemaphore,
    pub(super) share: S,
}

impl<'a> Held<'a, Whole> {
    /// Makes the share a reader's, and lets other readers in.
    pub(super) fn downgrade(mut self) -> Held<'a, Shared> {
        let raw = self.raw;
        self.share.0 -= 1;
        drop(self);
        Held { raw, share: Shared }
    }
}

impl<S: Share> Drop for Held<'_, S> {
    #[inline]
    fn drop(&mut self) {
        self.raw.release(self.share.permits());
    }
}

/// A share of a lock that the share holds alive. Its drop releases it.
pub(super) struct OwnedHeld<T: ?Sized, S: Share> {
    pub(super) lock: Arc<RwLock<T>>,
    pub(super) share: S,
}

impl<T: ?Sized> OwnedHeld<T, Whole> {
    /// Makes the share a reader's, and lets other readers in.
    pub(super) fn downgrade(mut self) -> OwnedHeld<T, Shared> {
        let lock = self.lock.clone();
        self.share.0 -= 1;
        drop(self);
        OwnedHeld {
            lock,
            share: Shared,
        }
    }
}

impl<T: ?Sized, S: Share> Drop for OwnedHeld<T, S> {
    #[inline]
    fn drop(&mut self) {
        self.lock.raw.release(self.share.permits());
    }
}
