//! The traits that all guards of locks have in common.

/// Implements `Deref`, `Debug` and `Display` for a guard with a method `pointer`, which returns a
/// pointer to the guard's data; with `mut`, also `DerefMut`.
macro_rules! guard {
    (mut [$($generics:tt)*] $guard:ty => $target:ty) => {
        guard! { [$($generics)*] $guard => $target }

        impl<$($generics)*> core::ops::DerefMut for $guard {
            #[inline]
            fn deref_mut(&mut self) -> &mut $target {
                // SAFETY: the guard has the data to itself, and is borrowed mutably.
                unsafe { &mut *self.pointer() }
            }
        }
    };
    ([$($generics:tt)*] $guard:ty => $target:ty) => {
        impl<$($generics)*> core::ops::Deref for $guard {
            type Target = $target;

            #[inline]
            fn deref(&self) -> &$target {
                // SAFETY: the lock is held while the guard lives, so nobody writes the data.
                unsafe { &*self.pointer() }
            }
        }

        impl<$($generics)*> core::fmt::Debug for $guard
        where
            $target: core::fmt::Debug,
        {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                (**self).fmt(f)
            }
        }

        impl<$($generics)*> core::fmt::Display for $guard
        where
            $target: core::fmt::Display,
        {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                (**self).fmt(f)
            }
        }
    };
}
pub(crate) use guard;
