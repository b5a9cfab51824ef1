//! The default backend: core, alloc and std.

pub mod atomic {
    cfg_if::cfg_if! {
        if #[cfg(any(not(target_has_atomic = "64"), selvedge_portable))] {
            pub use portable_atomic::AtomicU64;
        } else {
            pub use core::sync::atomic::AtomicU64;
        }
    }
    pub use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize};

    cfg_if::cfg_if! {
        if #[cfg(selvedge_tsan)] {
            static FENCE: AtomicUsize = AtomicUsize::new(0);

            /// Executes a read-modify-write of one word, because ThreadSanitizer knows no fences.
            /// It orders more than a fence does. So the tool misses races that a fence permits.
            pub fn fence(_: core::sync::atomic::Ordering) {
                // Ordering: AcqRel pairs with all other fences, in the word's modification order.
                FENCE.fetch_add(1, core::sync::atomic::Ordering::AcqRel);
            }
        } else {
            pub use core::sync::atomic::fence;
        }
    }

    macro_rules! retire {
        ($($t:ty $(, $g:ident)?;)*) => {$(
            impl$(<$g>)? crate::atomic::Retire for $t {
                #[inline(always)]
                fn retire(&mut self) {
                    let _ = self.get_mut();
                }
            }
        )*};
    }
    retire! { AtomicU32; AtomicU64; AtomicUsize; AtomicPtr<T>, T; }
}

pub mod cell {
    /// Wraps `core`'s cell. The methods give access through closures, because a model checker
    /// needs to see where each access begins and ends.
    #[derive(Debug, Default)]
    #[repr(transparent)]
    pub struct UnsafeCell<T: ?Sized>(core::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        /// Wraps `value`.
        #[inline(always)]
        pub const fn new(value: T) -> Self {
            Self(core::cell::UnsafeCell::new(value))
        }

        /// Takes the value out.
        #[inline(always)]
        pub fn into_inner(self) -> T {
            self.0.into_inner()
        }
    }

    impl<T: ?Sized> UnsafeCell<T> {
        /// Runs `f` on the content for reading. The caller must justify each use of the pointer.
        #[inline(always)]
        pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }

        /// Runs `f` on the content for writing. The caller must justify each use of the pointer.
        #[inline(always)]
        pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }
}

pub mod alloc {
    pub use crate::alloc_crate::alloc::{alloc, dealloc};
}

pub mod hint {
    pub use core::hint::spin_loop;
}

#[cfg(feature = "std")]
pub mod sync {
    use std::sync::PoisonError;
    pub use std::sync::{Arc, MutexGuard};

    /// A mutex that ignores poison.
    #[derive(Debug, Default)]
    pub struct Mutex<T: ?Sized>(std::sync::Mutex<T>);

    impl<T> Mutex<T> {
        /// Wraps `value`.
        pub const fn new(value: T) -> Self {
            Self(std::sync::Mutex::new(value))
        }

        /// Takes the value out.
        pub fn into_inner(self) -> T {
            self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
        }
    }

    impl<T: ?Sized> Mutex<T> {
        /// Waits for the lock, and locks it.
        #[inline]
        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    /// A condition variable that ignores poison.
    #[derive(Debug, Default)]
    pub struct Condvar(std::sync::Condvar);

    impl Condvar {
        /// Creates a condition variable.
        pub const fn new() -> Self {
            Self(std::sync::Condvar::new())
        }

        /// Waits for a notification. The wait may also end spuriously.
        pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
        }

        /// Waits for a notification or for `limit`. Returns true if the time ran out. The backends
        /// for loom and shuttle always return false, since time does not pass in a model.
        pub fn wait_timeout<'a, T>(
            &self,
            guard: MutexGuard<'a, T>,
            limit: core::time::Duration,
        ) -> (MutexGuard<'a, T>, bool) {
            let (guard, out) = self
                .0
                .wait_timeout(guard, limit)
                .unwrap_or_else(PoisonError::into_inner);
            (guard, out.timed_out())
        }

        /// Wakes one waiter.
        pub fn notify_one(&self) {
            self.0.notify_one();
        }

        /// Wakes all waiters.
        pub fn notify_all(&self) {
            self.0.notify_all();
        }
    }
}

#[cfg(feature = "std")]
pub mod thread {
    pub use std::thread::{Builder, JoinHandle, Thread, current, sleep, spawn, yield_now};

    cfg_if::cfg_if! {
        if #[cfg(all(target_family = "wasm", not(target_feature = "atomics")))] {
            /// Panics: the program has one thread, so that nothing can unpark it. The `park` of
            /// std returns at once there.
            pub fn park() {
                panic!("the only thread of this program waits, and nothing can wake it");
            }

            /// Sleeps: nothing can unpark the thread meanwhile.
            pub fn park_timeout(limit: std::time::Duration) {
                sleep(limit);
            }
        } else {
            pub use std::thread::{park, park_timeout};
        }
    }
}

/// Declares thread-locals of the backend, in the syntax of `std::thread_local!`. In one call either
/// every thread-local must have a `const` block, or none may have one.
#[cfg(all(feature = "std", not(any(selvedge_shuttle, selvedge_sim))))]
#[macro_export]
macro_rules! thread_local {
    ($($t:tt)*) => { ::std::thread_local! { $($t)* } };
}
