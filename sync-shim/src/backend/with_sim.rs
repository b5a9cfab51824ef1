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
        mem,
        ops::{Deref, DerefMut},
        panic::Location,
        ptr,
        sync::{PoisonError, TryLockError},
        time::Duration,
    };

    pub use std::sync::Arc;

    /// Once in so many locks another thread runs first, at random.
    const AT_LOCK: u64 = 16;

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
            with_host(|host, _| host.preempt(AT_LOCK));
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

        /// Locks the mutex if it is free: for the checks of a simulator, which must not wait.
        pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            let guard = match self.0.try_lock() {
                Ok(guard) => guard,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return None,
            };
            let guard = Some(guard);
            Some(MutexGuard { mutex: self, guard })
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
            let (mutex, on) = (guard.mutex, Wait::Condvar(self.address()));
            let mut std = Some(guard.guard.take().expect("it is there until the drop"));
            let woken = with_host(|host, fiber| {
                drop(std.take());
                let unlocked = Wait::Lock(mutex.address());
                host.unlock_and_wait(fiber, unlocked, on, limit, at)
            });
            let Some(std) = std else {
                mem::forget(guard); // It is unlocked.
                return (mutex.lock(), woken == Some(false));
            };
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
    use crate::sim::{Run, Wait, end_by_panic, with_host};
    use std::{
        io,
        panic::{self, AssertUnwindSafe, Location},
        sync::{Arc, PoisonError},
        time::Duration,
    };

    /// A handle to a thread.
    #[derive(Clone, Debug)]
    pub struct Thread(AnyThread);

    #[derive(Clone, Debug)]
    enum AnyThread {
        Std(std::thread::Thread),
        Sim(Simulated, Option<Arc<str>>),
    }

    /// A simulated thread, and its run.
    #[derive(Clone, Debug)]
    struct Simulated {
        run: Run,
        id: u64,
    }

    impl Simulated {
        /// Returns whether the calling thread is of the same run.
        fn is_of_this_run(&self) -> bool {
            let number = self.run.number();
            with_host(|_, fiber| fiber.run().number() == number).unwrap_or(false)
        }
    }

    /// Identifies a thread.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct ThreadId(AnyThreadId);

    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    enum AnyThreadId {
        Std(std::thread::ThreadId),
        /// The number of the run, and that of the thread in it.
        Sim(u64, u64),
    }

    impl Thread {
        /// Unparks the thread. Does nothing after the end of the thread's simulation.
        ///
        /// # Panics
        /// If the thread is one of another simulation, which has not ended.
        pub fn unpark(&self) {
            match &self.0 {
                AnyThread::Std(thread) => thread.unpark(),
                AnyThread::Sim(thread, _) if thread.is_of_this_run() => {
                    with_host(|host, _| host.unpark(thread.id));
                }
                AnyThread::Sim(thread, _) => assert!(
                    thread.run.is_over(),
                    "only a thread of the same simulation may unpark a simulated thread"
                ),
            }
        }

        /// Returns the thread's id.
        pub fn id(&self) -> ThreadId {
            ThreadId(match &self.0 {
                AnyThread::Std(thread) => AnyThreadId::Std(thread.id()),
                AnyThread::Sim(thread, _) => AnyThreadId::Sim(thread.run.number(), thread.id),
            })
        }

        /// Returns the thread's name.
        pub fn name(&self) -> Option<&str> {
            match &self.0 {
                AnyThread::Std(thread) => thread.name(),
                AnyThread::Sim(_, name) => name.as_deref(),
            }
        }
    }

    /// Returns a handle to this thread.
    pub fn current() -> Thread {
        let of = with_host(|_, fiber| {
            let (run, id) = (fiber.run().clone(), fiber.id());
            AnyThread::Sim(Simulated { run, id }, fiber.name().cloned())
        });
        Thread(of.unwrap_or_else(|| AnyThread::Std(std::thread::current())))
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
                    if let Err(payload) = &ended {
                        end_by_panic(&**payload);
                    }
                    *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
                }
            };
            let started = with_host(|host, fiber| {
                let id = host.spawn(name, Box::new(run))?;
                let run = fiber.run().clone();
                Ok(JoinHandle(Handle::Sim(Simulated { run, id }, result)))
            });
            started.expect("this thread is simulated")
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
        Sim(Simulated, Ended<T>),
    }

    impl<T> JoinHandle<T> {
        /// Waits for the thread's end.
        ///
        /// # Errors
        /// If the thread has panicked.
        ///
        /// # Panics
        /// If the thread is one of another simulation, and has not ended there.
        #[track_caller]
        pub fn join(self) -> std::thread::Result<T> {
            match self.0 {
                Handle::Std(handle) => handle.join(),
                Handle::Sim(thread, ended) => {
                    let at = Location::caller();
                    if thread.is_of_this_run() {
                        let on = Wait::Join(thread.id);
                        with_host(|host, fiber| host.wait(fiber, on, None, at));
                    }
                    let ended = ended.lock().unwrap_or_else(PoisonError::into_inner).take();
                    ended.expect("the thread is one of this simulation, or has ended")
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
