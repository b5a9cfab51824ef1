//! std's types, except that a thread of a simulation waits in its simulator ([`crate::sim`]).
pub use super::with_std::{alloc, atomic, cell};

pub mod hint {
    use crate::sim::{Wait, with_host};
    use std::{panic::Location, time::Duration};

    /// Tells the processor that this thread spins. Other simulated threads run meanwhile.
    #[track_caller]
    pub fn spin_loop() {
        const TIME: Duration = Duration::from_nanos(50);
        let at = Location::caller();
        if with_host(|host, fiber| host.wait(fiber, Wait::Busy, Some(TIME), at)).is_none() {
            std::hint::spin_loop();
        }
    }
}

pub mod sync {
    use crate::sim::{Wait, with_host};
    use std::{
        ops::{Deref, DerefMut},
        panic::Location,
        ptr,
        sync::{PoisonError, TryLockError},
        time::Duration,
    };

    pub use std::sync::Arc;

    /// A mutex that ignores poison.
    #[derive(Debug, Default)]
    pub struct Mutex<T: ?Sized>(std::sync::Mutex<T>);

    /// Holds the lock of a [`Mutex`].
    #[derive(Debug)]
    pub struct MutexGuard<'a, T: ?Sized> {
        mutex: &'a Mutex<T>,
        /// `None` while the guard is dropped.
        guard: Option<std::sync::MutexGuard<'a, T>>,
    }

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
        fn address(&self) -> usize {
            ptr::from_ref(self).cast::<()>().addr()
        }

        /// Waits for the lock, and locks it.
        #[track_caller]
        pub fn lock(&self) -> MutexGuard<'_, T> {
            let at = Location::caller();
            loop {
                let guard = match self.0.try_lock() {
                    Ok(guard) => guard,
                    Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                    Err(TryLockError::WouldBlock) => {
                        let on = Wait::Lock(self.address());
                        if with_host(|host, fiber| host.wait(fiber, on, None, at)).is_some() {
                            continue;
                        }
                        self.0.lock().unwrap_or_else(PoisonError::into_inner)
                    }
                };
                let guard = Some(guard);
                return MutexGuard { mutex: self, guard };
            }
        }
    }

    impl<T: ?Sized> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            self.guard.as_ref().expect("it is there until the drop")
        }
    }

    impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.guard.as_mut().expect("it is there until the drop")
        }
    }

    impl<T: ?Sized> Drop for MutexGuard<'_, T> {
        fn drop(&mut self) {
            self.guard = None;
            let on = Wait::Lock(self.mutex.address());
            with_host(|host, _| host.notify(on, true));
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

        fn address(&self) -> usize {
            ptr::from_ref(self).addr()
        }

        /// Waits for a notification. The wait may also end spuriously.
        #[track_caller]
        pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            self.wait_at(guard, None, Location::caller()).0
        }

        /// Waits for a notification or for `limit`. Returns true if the time ran out.
        #[track_caller]
        pub fn wait_timeout<'a, T>(
            &self,
            guard: MutexGuard<'a, T>,
            limit: Duration,
        ) -> (MutexGuard<'a, T>, bool) {
            self.wait_at(guard, Some(limit), Location::caller())
        }

        fn wait_at<'a, T>(
            &self,
            mut guard: MutexGuard<'a, T>,
            limit: Option<Duration>,
            at: &'static Location<'static>,
        ) -> (MutexGuard<'a, T>, bool) {
            let mutex = guard.mutex;
            let on = Wait::Condvar(self.address());
            if crate::sim::is_simulated() {
                // Nothing else runs between the unlock and the wait.
                drop(guard);
                let woken = with_host(|host, fiber| host.wait(fiber, on, limit, at));
                return (mutex.lock(), woken == Some(false));
            }
            let std = guard.guard.take().expect("it is there until the drop");
            let (std, is_over) = match limit {
                None => (
                    self.0.wait(std).unwrap_or_else(PoisonError::into_inner),
                    false,
                ),
                Some(limit) => {
                    let waited = self.0.wait_timeout(std, limit);
                    let (std, out) = waited.unwrap_or_else(PoisonError::into_inner);
                    (std, out.timed_out())
                }
            };
            guard.guard = Some(std);
            (guard, is_over)
        }

        /// Wakes one waiter.
        pub fn notify_one(&self) {
            let on = Wait::Condvar(self.address());
            if with_host(|host, _| host.notify(on, false)).is_none() {
                self.0.notify_one();
            }
        }

        /// Wakes all waiters.
        pub fn notify_all(&self) {
            let on = Wait::Condvar(self.address());
            if with_host(|host, _| host.notify(on, true)).is_none() {
                self.0.notify_all();
            }
        }
    }
}

pub mod thread {
    use crate::sim::{Wait, with_host};
    use std::{
        io,
        panic::{self, AssertUnwindSafe, Location},
        sync::{Arc, PoisonError},
        time::Duration,
    };

    /// A handle to a thread.
    #[derive(Clone, Debug)]
    pub struct Thread(Of);

    #[derive(Clone, Debug)]
    enum Of {
        Std(std::thread::Thread),
        Sim(u64, Option<Arc<str>>),
    }

    /// Identifies a thread.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct ThreadId(IdOf);

    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    enum IdOf {
        Std(std::thread::ThreadId),
        Sim(u64),
    }

    impl Thread {
        /// Unparks the thread.
        pub fn unpark(&self) {
            match &self.0 {
                Of::Std(thread) => thread.unpark(),
                Of::Sim(id, _) => {
                    let done = with_host(|host, _| host.unpark(*id));
                    assert!(done.is_some(), "only a simulated thread may unpark one");
                }
            }
        }

        /// Returns the thread's id.
        pub fn id(&self) -> ThreadId {
            ThreadId(match &self.0 {
                Of::Std(thread) => IdOf::Std(thread.id()),
                Of::Sim(id, _) => IdOf::Sim(*id),
            })
        }

        /// Returns the thread's name.
        pub fn name(&self) -> Option<&str> {
            match &self.0 {
                Of::Std(thread) => thread.name(),
                Of::Sim(_, name) => name.as_deref(),
            }
        }
    }

    /// Returns a handle to this thread.
    pub fn current() -> Thread {
        let of = with_host(|_, fiber| Of::Sim(fiber.id, fiber.name.clone()));
        Thread(of.unwrap_or_else(|| Of::Std(std::thread::current())))
    }

    /// Parks this thread.
    #[track_caller]
    pub fn park() {
        let at = Location::caller();
        if with_host(|host, fiber| host.park(fiber, None, at)).is_none() {
            std::thread::park();
        }
    }

    /// Parks this thread, at most for `limit`.
    #[track_caller]
    pub fn park_timeout(limit: Duration) {
        let at = Location::caller();
        if with_host(|host, fiber| host.park(fiber, Some(limit), at)).is_none() {
            std::thread::park_timeout(limit);
        }
    }

    /// Yields the processor. A simulated thread is away for a microsecond.
    #[track_caller]
    pub fn yield_now() {
        const AWAY: Duration = Duration::from_micros(1);
        let at = Location::caller();
        if with_host(|host, fiber| host.wait(fiber, Wait::Busy, Some(AWAY), at)).is_none() {
            std::thread::yield_now();
        }
    }

    /// Sleeps.
    #[track_caller]
    pub fn sleep(time: Duration) {
        let at = Location::caller();
        if with_host(|host, fiber| host.wait(fiber, Wait::Sleep, Some(time), at)).is_none() {
            std::thread::sleep(time);
        }
    }

    /// Makes threads.
    #[derive(Debug)]
    pub struct Builder {
        name: Option<String>,
        stack_size: Option<usize>,
    }

    impl Default for Builder {
        fn default() -> Self {
            Self::new()
        }
    }

    impl Builder {
        /// Makes a builder with the default settings.
        pub fn new() -> Self {
            Self {
                name: None,
                stack_size: None,
            }
        }

        /// Names the thread.
        #[must_use]
        pub fn name(mut self, name: String) -> Self {
            self.name = Some(name);
            self
        }

        /// Sets the size of the thread's stack. The simulator chooses that of a simulated thread.
        #[must_use]
        pub fn stack_size(mut self, size: usize) -> Self {
            self.stack_size = Some(size);
            self
        }

        /// Starts a thread.
        ///
        /// # Errors
        /// If the thread cannot be started.
        pub fn spawn<F, T>(self, f: F) -> io::Result<JoinHandle<T>>
        where
            F: FnOnce() -> T + Send + 'static,
            T: Send + 'static,
        {
            if !crate::sim::is_simulated() {
                let mut builder = std::thread::Builder::new();
                if let Some(name) = self.name {
                    builder = builder.name(name);
                }
                if let Some(size) = self.stack_size {
                    builder = builder.stack_size(size);
                }
                return builder
                    .spawn(f)
                    .map(|handle| JoinHandle(Handle::Std(handle)));
            }
            let name: Option<Arc<str>> = self.name.map(Arc::from);
            let result = Arc::new(std::sync::Mutex::new(None));
            let run = {
                let result = result.clone();
                move || {
                    let ended = panic::catch_unwind(AssertUnwindSafe(f));
                    *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
                }
            };
            let started = with_host(|host, _| host.spawn(name, Box::new(run)));
            let id = started.expect("this thread is simulated")?;
            Ok(JoinHandle(Handle::Sim(id, result)))
        }
    }

    /// Starts a thread.
    pub fn spawn<F, T>(f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        Builder::new()
            .spawn(f)
            .expect("the system starts the thread")
    }

    type Ended<T> = Arc<std::sync::Mutex<Option<std::thread::Result<T>>>>;

    /// Waits for the end of a thread.
    #[derive(Debug)]
    pub struct JoinHandle<T>(Handle<T>);

    #[derive(Debug)]
    enum Handle<T> {
        Std(std::thread::JoinHandle<T>),
        Sim(u64, Ended<T>),
    }

    impl<T> JoinHandle<T> {
        /// Waits for the thread's end.
        ///
        /// # Errors
        /// If the thread has panicked.
        #[track_caller]
        pub fn join(self) -> std::thread::Result<T> {
            match self.0 {
                Handle::Std(handle) => handle.join(),
                Handle::Sim(id, ended) => {
                    let at = Location::caller();
                    with_host(|host, fiber| host.wait(fiber, Wait::Join(id), None, at));
                    let ended = ended.lock().unwrap_or_else(PoisonError::into_inner).take();
                    ended.expect("the thread has ended")
                }
            }
        }

        /// Returns whether the thread's main function has ended.
        pub fn is_finished(&self) -> bool {
            match &self.0 {
                Handle::Std(handle) => handle.is_finished(),
                Handle::Sim(_, ended) => ended
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .is_some(),
            }
        }
    }
}

/// Declares thread-locals of the backend, in the syntax of `std::thread_local!`. A simulated thread
/// has its own values.
#[macro_export]
macro_rules! thread_local {
    ($($(#[$attr:meta])* $vis:vis static $name:ident: $t:ty = const $init:block);+ $(;)?) => {$(
        $(#[$attr])*
        $vis static $name: $crate::sim::LocalKey<$t> = {
            ::std::thread_local!(static STD: $t = const $init);
            $crate::sim::LocalKey::new(STD, || $init)
        };
    )+};
    ($($(#[$attr:meta])* $vis:vis static $name:ident: $t:ty = $init:expr);+ $(;)?) => {$(
        $(#[$attr])*
        $vis static $name: $crate::sim::LocalKey<$t> = {
            ::std::thread_local!(static STD: $t = $init);
            $crate::sim::LocalKey::new(STD, || $init)
        };
    )+};
}
