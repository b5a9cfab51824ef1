//! loom's mock types. A model needs `std`, so this backend needs `std` too.

pub mod atomic;
#[doc(hidden)]
pub mod mutant;
pub(crate) mod steps;

pub mod cell {
    /// loom's cell with the shim's signature.
    #[derive(Debug)]
    pub struct UnsafeCell<T: ?Sized>(loom::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        /// Wraps `value`.
        pub fn new(value: T) -> Self {
            Self(loom::cell::UnsafeCell::new(value))
        }

        /// Takes the value out.
        pub fn into_inner(self) -> T {
            self.0.into_inner()
        }
    }

    impl<T: ?Sized> UnsafeCell<T> {
        /// Runs `f` on the content for reading. A write that is not ordered with this read fails
        /// the model.
        #[track_caller]
        pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            super::steps::on(self, || "a read of the cell".into());
            self.0.with(f)
        }

        /// Runs `f` on the content for writing. Any access that is not ordered with this write
        /// fails the model.
        #[track_caller]
        pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            super::steps::on(self, || "a write of the cell".into());
            self.0.with_mut(f)
        }
    }
}

pub mod alloc {
    pub use loom::alloc::{alloc, dealloc};
}

pub mod hint {
    pub use loom::hint::spin_loop;
}

pub mod sync {
    use std::sync::PoisonError;

    pub use loom::sync::{Arc, MutexGuard};

    /// A mutex that ignores poison.
    #[derive(Debug)]
    pub struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        /// Wraps `value`.
        pub fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        /// Takes the value out.
        pub fn into_inner(self) -> T {
            self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
        }

        /// Waits for the lock, and locks it.
        #[track_caller]
        pub fn lock(&self) -> MutexGuard<'_, T> {
            let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            super::steps::on(self, || "lock".into());
            guard
        }
    }

    /// A condition variable that ignores poison.
    #[derive(Debug)]
    pub struct Condvar(loom::sync::Condvar);

    impl Condvar {
        /// Creates a condition variable.
        #[expect(clippy::new_without_default, reason = "the other backends derive it")]
        pub fn new() -> Self {
            Self(loom::sync::Condvar::new())
        }

        /// Waits for a notification. The model makes no spurious notifications.
        #[track_caller]
        pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            super::steps::on(self, || "wait".into());
            let guard = self.0.wait(guard).unwrap_or_else(PoisonError::into_inner);
            super::steps::on(self, || "wait has ended".into());
            guard
        }

        /// Waits for a notification. The time never runs out in a model.
        #[track_caller]
        pub fn wait_timeout<'a, T>(
            &self,
            guard: MutexGuard<'a, T>,
            _limit: core::time::Duration,
        ) -> (MutexGuard<'a, T>, bool) {
            (self.wait(guard), false)
        }

        /// Wakes one waiter.
        #[track_caller]
        pub fn notify_one(&self) {
            self.0.notify_one();
            super::steps::on(self, || "notify_one".into());
        }

        /// Wakes all waiters.
        #[track_caller]
        pub fn notify_all(&self) {
            self.0.notify_all();
            super::steps::on(self, || "notify_all".into());
        }
    }
}

pub mod thread {
    use super::steps;
    use loom::sync::{Arc, atomic::AtomicUsize};
    use std::sync::atomic::Ordering::Relaxed;

    pub use loom::thread::{JoinHandle, Thread, current, yield_now};

    /// Parks, until the thread is unparked.
    #[track_caller]
    pub fn park() {
        steps::note(|| "park".into());
        loom::thread::park();
        steps::note(|| "park has ended".into());
    }

    /// Parks. The time never runs out in a model.
    #[track_caller]
    pub fn park_timeout(_limit: core::time::Duration) {
        park();
    }

    /// Yields: no time passes in a model.
    pub fn sleep(_time: core::time::Duration) {
        yield_now();
    }

    /// Spawns a thread. The caller and the new thread then each do a read-modify-write on an atomic
    /// made for the two, in either order. Without these operations, loom's partial-order reduction
    /// explores some racing pairs of operations in one order only (loom issue 392).
    #[track_caller]
    pub fn spawn<F, T>(f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + 'static,
        T: 'static,
    {
        let race = Race::new();
        let spawned = loom::thread::spawn(race.before(f));
        race.enter();
        spawned
    }

    #[derive(Clone)]
    struct Race(Arc<AtomicUsize>);

    impl Race {
        fn new() -> Self {
            Self(Arc::new(AtomicUsize::new(0)))
        }

        fn enter(self) {
            // Ordering: Relaxed. This operation is there to race, and orders nothing.
            self.0.fetch_add(1, Relaxed);
        }

        #[track_caller]
        fn before<T: 'static>(
            &self,
            f: impl FnOnce() -> T + 'static,
        ) -> impl FnOnce() -> T + 'static {
            let race = self.clone();
            let number = steps::spawned();
            steps::note(|| format!("spawn of thread {number}"));
            move || {
                steps::begin_thread(number);
                race.enter();
                f()
            }
        }
    }

    /// loom's builder, with the same read-modify-writes as [`spawn`].
    #[derive(Debug)]
    pub struct Builder(loom::thread::Builder);

    impl Builder {
        /// Creates a builder.
        #[expect(clippy::new_without_default, reason = "std's has none")]
        pub fn new() -> Self {
            Self(loom::thread::Builder::new())
        }

        /// Names the thread.
        pub fn name(self, name: String) -> Self {
            Self(self.0.name(name))
        }

        /// Does nothing: the model has stacks of its own.
        pub fn stack_size(self, _bytes: usize) -> Self {
            self
        }

        /// Spawns the thread.
        #[track_caller]
        pub fn spawn<F, T>(self, f: F) -> std::io::Result<JoinHandle<T>>
        where
            F: FnOnce() -> T + Send + 'static,
            T: Send + 'static,
        {
            let race = Race::new();
            let spawned = self.0.spawn(race.before(f))?;
            race.enter();
            Ok(spawned)
        }
    }
}

/// Declares thread-locals of the backend, in the syntax of `std::thread_local!`. Either all of them
/// have a `const` block or none.
#[macro_export]
macro_rules! thread_local {
    ($($(#[$attr:meta])* $vis:vis static $name:ident: $t:ty = const $init:block);+ $(;)?) => {
        $crate::loom::thread_local! { $($(#[$attr])* $vis static $name: $t = $init;)+ }
    };
    ($($t:tt)*) => { $crate::loom::thread_local! { $($t)* } };
}
