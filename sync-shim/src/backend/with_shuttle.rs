//! shuttle's threads and atomics, under random schedules. shuttle treats all orderings as
//! sequentially consistent. Cells and allocation are std's.
pub use super::with_std::{alloc, cell};

pub mod atomic {
    pub use shuttle::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, fence,
    };

    macro_rules! retire {
        ($($t:ty $(, $g:ident)?;)*) => {$(
            impl$(<$g>)? crate::atomic::Retire for $t {
                fn retire(&mut self) {}
            }
        )*};
    }
    retire! { AtomicU32; AtomicU64; AtomicUsize; AtomicPtr<T>, T; }
}

pub mod hint {
    pub use shuttle::hint::spin_loop;
}

pub mod sync {
    pub use shuttle::sync::{Arc, MutexGuard};
    use std::sync::PoisonError;

    /// A mutex that ignores poison.
    #[derive(Debug, Default)]
    pub struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        /// Wraps `value`.
        pub fn new(value: T) -> Self {
            Self(shuttle::sync::Mutex::new(value))
        }

        /// Takes the value out.
        pub fn into_inner(self) -> T {
            self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
        }

        /// Waits for the lock, and locks it.
        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    /// A condition variable that ignores poison.
    #[derive(Debug, Default)]
    pub struct Condvar(shuttle::sync::Condvar);

    impl Condvar {
        /// Creates a condition variable.
        pub fn new() -> Self {
            Self(shuttle::sync::Condvar::new())
        }

        /// Waits for a notification.
        pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
        }

        /// Waits for a notification. The time never runs out in a model.
        pub fn wait_timeout<'a, T>(
            &self,
            guard: MutexGuard<'a, T>,
            _limit: core::time::Duration,
        ) -> (MutexGuard<'a, T>, bool) {
            (self.wait(guard), false)
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

pub mod thread {
    pub use shuttle::thread::{
        Builder, JoinHandle, Thread, current, park, park_timeout, spawn, yield_now,
    };

    /// Yields: no time passes in a model.
    pub fn sleep(_time: core::time::Duration) {
        yield_now();
    }
}

/// Declares thread-locals of the backend, in the syntax of `std::thread_local!`. Either all of them
/// have a `const` block or none.
#[macro_export]
macro_rules! thread_local {
    ($($(#[$attr:meta])* $vis:vis static $name:ident: $t:ty = const $init:block);+ $(;)?) => {
        $crate::shuttle::thread_local! { $($(#[$attr])* $vis static $name: $t = $init;)+ }
    };
    ($($t:tt)*) => { $crate::shuttle::thread_local! { $($t)* } };
}
