//! The part of a guard that releases the lock.
use super::{
    RwLock,
    raw::{Access, RawRwLock, Shared, Whole},
};
use alloc::sync::Arc;
use core::{marker::PhantomData, mem::ManuallyDrop, ptr};

/// An entry into a lock that is borrowed. Its drop leaves the lock.
pub(super) struct Held<'a, A: Access> {
    raw: &'a RawRwLock,
    access: PhantomData<A>,
}

impl<'a, A: Access> Held<'a, A> {
    /// Takes over an entry of the caller.
    #[inline]
    pub(super) fn new(raw: &'a RawRwLock) -> Self {
        Self {
            raw,
            access: PhantomData,
        }
    }
}

impl<'a> Held<'a, Whole> {
    /// Makes the writer a reader, and lets other readers in.
    pub(super) fn downgrade(self) -> Held<'a, Shared> {
        let this = ManuallyDrop::new(self);
        // SAFETY: this is the writer's entry, and becomes the reader's below.
        unsafe { this.raw.downgrade() };
        Held::new(this.raw)
    }
}

impl<A: Access> Drop for Held<'_, A> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this is an entry of this kind.
        unsafe { self.raw.leave(A::KIND) };
    }
}

/// An entry into a lock that the entry holds alive. Its drop leaves the lock.
pub(super) struct OwnedHeld<T: ?Sized, A: Access> {
    pub(super) lock: Arc<RwLock<T>>,
    access: PhantomData<A>,
}

impl<T: ?Sized, A: Access> OwnedHeld<T, A> {
    /// Takes over an entry of the caller.
    #[inline]
    pub(super) fn new(lock: Arc<RwLock<T>>) -> Self {
        Self {
            lock,
            access: PhantomData,
        }
    }
}

impl<T: ?Sized> OwnedHeld<T, Whole> {
    /// Makes the writer a reader, and lets other readers in.
    pub(super) fn downgrade(self) -> OwnedHeld<T, Shared> {
        let this = ManuallyDrop::new(self);
        // SAFETY: the lock is moved out once, as `this` is not dropped.
        let lock = unsafe { ptr::read(&this.lock) };
        // SAFETY: this is the writer's entry, and becomes the reader's below.
        unsafe { lock.raw.downgrade() };
        OwnedHeld::new(lock)
    }
}

impl<T: ?Sized, A: Access> Drop for OwnedHeld<T, A> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this is an entry of this kind.
        unsafe { self.lock.raw.leave(A::KIND) };
    }
}
