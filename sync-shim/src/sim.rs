//! The reports of a simulated program to its simulator, and the seam that a simulator fills.
//!
//! The cfg `selvedge_sim` selects a backend under which the threads of a program may be simulated:
//! a *simulator*, such as the crate `selvedge-sim`, runs all threads of a program on one thread of
//! the system, as *fibers*, in an order that a seed chooses. Without the cfg the functions here do
//! nothing, and leave no instruction.
//!
//! 1. A simulator is a `Host`. A fiber has a `Fiber`, with the thread's id, its name and its
//!    thread-locals. The simulator makes a fiber current by `Fiber::set_current` whenever it
//!    switches to the fiber's stack.
//! 2. Where a thread waits, the backend calls the host: for a lock, a condition variable, a park, a
//!    join, a yield. The call returns when the host has switched back to the fiber. So a wait of a
//!    fiber lasts as long as that of a thread, and other fibers run meanwhile.
//! 3. A thread of the system that is not in a simulation finds no fiber, and uses std.
//! 4. Atomics, cells and allocation are std's. So fibers never switch within a protocol of atomics:
//!    that is what loom and shuttle are for. They switch where a thread waits, after it has woken
//!    another one, and at each [`point`].

/// Returns whether this thread is simulated. A constant without the cfg `selvedge_sim`.
#[inline(always)]
pub fn is_simulated() -> bool {
    #[cfg(all(selvedge_sim, feature = "std"))]
    return with_host(|_, _| ()).is_some();
    #[cfg(not(all(selvedge_sim, feature = "std")))]
    false
}

/// Lets the simulator switch to another thread, and lets virtual time pass: a worker is between two
/// polls.
#[inline(always)]
pub fn point() {
    #[cfg(all(selvedge_sim, feature = "std"))]
    with_host(|host, fiber| host.point(fiber));
}

/// Records an event of this thread. `task` is the address of a task, or 0.
#[inline(always)]
pub fn event(kind: &'static str, task: usize, number: u64) {
    #[cfg(all(selvedge_sim, feature = "std"))]
    with_host(|host, fiber| host.event(fiber, kind, task, number));
    #[cfg(not(all(selvedge_sim, feature = "std")))]
    let _ = (kind, task, number);
}

/// Records that the memory of a task was allocated at this address.
#[inline(always)]
pub fn allocated(task: usize) {
    #[cfg(all(selvedge_sim, feature = "std"))]
    with_host(|host, _| host.allocated(task));
    #[cfg(not(all(selvedge_sim, feature = "std")))]
    let _ = task;
}

/// Records that the memory of the task at this address was freed.
#[inline(always)]
pub fn freed(task: usize) {
    #[cfg(all(selvedge_sim, feature = "std"))]
    with_host(|host, _| host.freed(task));
    #[cfg(not(all(selvedge_sim, feature = "std")))]
    let _ = task;
}

/// Returns the number by which a simulation names the task at this address, or the address. Numbers
/// repeat with the seed; addresses do not.
#[inline(always)]
pub fn name_of(task: usize) -> u64 {
    #[cfg(all(selvedge_sim, feature = "std"))]
    if let Some(name) = with_host(|host, _| host.name_of(task)) {
        return name;
    }
    task as u64
}

/// Returns whether the variable `SELVEDGE_SIM_MUTANT` has this value: for mistakes that are planted
/// to see whether a simulation finds them.
#[cfg(all(selvedge_sim, feature = "std"))]
pub fn mutant(name: &str) -> bool {
    static NAME: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    let chosen = NAME.get_or_init(|| std::env::var("SELVEDGE_SIM_MUTANT").ok());
    chosen.as_deref() == Some(name)
}

/// Threads that a simulation replaces, but a model checker does not.
#[cfg(feature = "std")]
pub mod thread {
    #[cfg(selvedge_sim)]
    pub use crate::thread::{Builder, JoinHandle, park, park_timeout, sleep, spawn, yield_now};
    #[cfg(not(selvedge_sim))]
    pub use std::thread::{Builder, JoinHandle, park, park_timeout, sleep, spawn, yield_now};
}

/// Declares thread-locals as `std::thread_local!` does. A simulated thread has its own values; a
/// model checker does not replace them.
#[cfg(all(feature = "std", not(selvedge_sim)))]
#[macro_export]
macro_rules! simulated_thread_local {
    ($($t:tt)*) => { ::std::thread_local! { $($t)* } };
}

/// Declares thread-locals as `std::thread_local!` does. A simulated thread has its own values; a
/// model checker does not replace them.
#[cfg(all(feature = "std", selvedge_sim))]
#[macro_export]
macro_rules! simulated_thread_local {
    ($($t:tt)*) => { $crate::thread_local! { $($t)* } };
}

/// A part of the program that can tell the simulator what it has left undone.
#[cfg(feature = "std")]
pub trait Subject {
    /// Returns the work that is ready to run, in words, or `None`. The simulator asks while all
    /// threads wait: if there is ready work then, a wake was lost.
    fn ready(&self) -> Option<String>;

    /// Returns the first deadline of a timer. The simulator asks while all threads wait: then no
    /// fiber is current, so it says when the simulation began, its `epoch`.
    fn deadline(&self, epoch: std::time::Instant) -> Option<std::time::Instant> {
        let _ = epoch;
        None
    }

    /// Whether the subject still exists.
    fn exists(&self) -> bool;
}

/// Gives the simulator a subject to ask. Without a simulation `make` is not called.
#[cfg(feature = "std")]
#[inline(always)]
pub fn watch(make: impl FnOnce() -> Box<dyn Subject>) {
    #[cfg(all(selvedge_sim, feature = "std"))]
    with_host(|host, _| host.watch(make()));
    #[cfg(not(all(selvedge_sim, feature = "std")))]
    let _ = make;
}

#[cfg(all(selvedge_sim, feature = "std"))]
pub use fibers::*;

#[cfg(all(selvedge_sim, feature = "std"))]
mod fibers {
    use super::Subject;
    use std::{
        any::Any,
        cell::{Cell, RefCell},
        io,
        panic::Location,
        ptr,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering::Relaxed},
        },
        time::{Duration, Instant},
    };

    /// The reason for which a fiber waits.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Wait {
        /// For an unpark.
        Park,
        /// For the lock at this address.
        Lock(usize),
        /// For a notification of the condition variable at this address.
        Condvar(usize),
        /// For the end of the thread with this id.
        Join(u64),
        /// For time to pass. The thread uses a processor meanwhile, or yields it.
        Busy,
        /// For time to pass, in a sleep.
        Sleep,
    }

    /// A simulator, as the backend calls it from the stacks of its fibers.
    pub trait Host {
        /// Returns the virtual time.
        fn now(&self) -> Instant;
        /// Returns the virtual time at which the simulation began.
        fn epoch(&self) -> Instant;
        /// Returns a number from the seed.
        fn random(&self) -> u64;
        /// May switch to another fiber, and lets time pass.
        fn point(&self, fiber: &Fiber);
        /// Waits. Returns false if the time ran out.
        fn wait(
            &self,
            fiber: &Fiber,
            on: Wait,
            limit: Option<Duration>,
            at: &'static Location<'static>,
        ) -> bool;
        /// Waits for an unpark, or takes the one that has come.
        fn park(&self, fiber: &Fiber, limit: Option<Duration>, at: &'static Location<'static>);
        /// Unparks a fiber.
        fn unpark(&self, id: u64);
        /// Ends the waits of one fiber, or of all, that wait for this.
        fn notify(&self, on: Wait, all: bool);
        /// Starts a fiber that runs `f`. Returns its id.
        fn spawn(&self, name: Option<Arc<str>>, f: Box<dyn FnOnce()>) -> io::Result<u64>;
        /// Records an event.
        fn event(&self, fiber: &Fiber, kind: &'static str, task: usize, number: u64);
        /// See [`allocated`](super::allocated).
        fn allocated(&self, task: usize);
        /// See [`freed`](super::freed).
        fn freed(&self, task: usize);
        /// See [`name_of`](super::name_of).
        fn name_of(&self, task: usize) -> u64;
        /// See [`watch`](super::watch).
        fn watch(&self, subject: Box<dyn Subject>);
    }

    /// A simulated thread.
    pub struct Fiber {
        host: *const dyn Host,
        /// The thread's id, from 1.
        pub id: u64,
        /// The thread's name.
        pub name: Option<Arc<str>>,
        locals: RefCell<Vec<Local>>,
    }

    enum Local {
        Unset,
        Set(Box<dyn Any>, bool),
        Gone,
    }

    std::thread_local! {
        static CURRENT: Cell<*const Fiber> = const { Cell::new(ptr::null()) };
    }

    /// Runs `f` with the host and the current fiber, if this thread runs a fiber.
    #[inline]
    pub(crate) fn with_host<R>(f: impl FnOnce(&dyn Host, &Fiber) -> R) -> Option<R> {
        let fiber = CURRENT.try_with(Cell::get).ok()?;
        // SAFETY: the pointer is null, or of the fiber whose stack this call is on, which exists
        // by the contract of `set_current`.
        let fiber = unsafe { fiber.as_ref() }?;
        // SAFETY: the host outlives its fibers by the contract of `new`.
        Some(f(unsafe { &*fiber.host }, fiber))
    }

    /// Keeps this thread busy for this time, or puts a thread that is not simulated to sleep.
    #[track_caller]
    pub fn busy(time: Duration) {
        let at = Location::caller();
        if with_host(|host, fiber| host.wait(fiber, Wait::Busy, Some(time), at)).is_none() {
            std::thread::sleep(time);
        }
    }

    impl Fiber {
        /// Makes a fiber.
        ///
        /// # Safety
        /// The host outlives the fiber.
        pub unsafe fn new(host: *const dyn Host, id: u64, name: Option<Arc<str>>) -> Self {
            let locals = RefCell::new(Vec::new());
            Self {
                host,
                id,
                name,
                locals,
            }
        }

        /// Makes this fiber, or none, the current one of this thread. Returns the one before.
        ///
        /// # Safety
        /// The pointer is null, or the fiber exists until another one is made current, and this
        /// thread runs on the fiber's stack until then.
        pub unsafe fn set_current(fiber: *const Self) -> *const Self {
            CURRENT.replace(fiber)
        }

        /// Drops the thread-locals of this fiber, which is the current one: its thread ends.
        pub fn end(&self) {
            loop {
                let gone = {
                    let mut locals = self.locals.borrow_mut();
                    let with_drop = |local: &&mut Local| matches!(local, Local::Set(_, true));
                    match locals.iter_mut().find(with_drop) {
                        Some(local) => std::mem::replace(local, Local::Gone),
                        None => break,
                    }
                };
                drop(gone);
            }
        }
    }

    /// A thread-local of the backend. A fiber has its own value.
    pub struct LocalKey<T: 'static> {
        std: std::thread::LocalKey<T>,
        init: fn() -> T,
        /// The number of this thread-local, from 1. 0 if it has none yet.
        number: AtomicUsize,
    }

    /// The error of a thread-local whose thread ends.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct AccessError;

    impl<T: 'static> LocalKey<T> {
        #[doc(hidden)]
        pub const fn new(std: std::thread::LocalKey<T>, init: fn() -> T) -> Self {
            let number = AtomicUsize::new(0);
            Self { std, init, number }
        }

        fn number(&self) -> usize {
            static LAST: AtomicUsize = AtomicUsize::new(0);
            // Ordering: Relaxed, as the number publishes nothing.
            let number = self.number.load(Relaxed);
            if number > 0 {
                return number;
            }
            // Ordering: Relaxed, as it is only a number.
            let new = LAST.fetch_add(1, Relaxed) + 1;
            // Ordering: Relaxed, as above. Another thread may have been first.
            match self.number.compare_exchange(0, new, Relaxed, Relaxed) {
                Ok(_) => new,
                Err(number) => number,
            }
        }

        /// Runs `f` on this thread's value, unless that was dropped.
        ///
        /// # Errors
        /// If the value was dropped, as the thread ends.
        #[inline]
        pub fn try_with<R>(&'static self, f: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
            let fiber = CURRENT.try_with(Cell::get).map_err(|_| AccessError)?;
            // SAFETY: as in `with_host`.
            let Some(fiber) = (unsafe { fiber.as_ref() }) else {
                return self.std.try_with(f).map_err(|_| AccessError);
            };
            let value = self.of(fiber)?;
            // SAFETY: the box of a value stays until the fiber's end, and `f` runs before that.
            Ok(f(unsafe { &*value }))
        }

        #[inline]
        fn of(&'static self, fiber: &Fiber) -> Result<*const T, AccessError> {
            let at = self.number() - 1;
            match fiber.locals.borrow().get(at) {
                Some(Local::Gone) => return Err(AccessError),
                Some(Local::Set(value, _)) => {
                    return Ok(ptr::from_ref::<dyn Any>(&**value).cast());
                }
                Some(Local::Unset) | None => {}
            }
            let value: Box<dyn Any> = Box::new((self.init)());
            let pointer = ptr::from_ref::<dyn Any>(&*value).cast();
            let mut locals = fiber.locals.borrow_mut();
            if locals.len() <= at {
                locals.resize_with(at + 1, || Local::Unset);
            }
            locals[at] = Local::Set(value, std::mem::needs_drop::<T>());
            Ok(pointer)
        }

        /// Runs `f` on this thread's value.
        ///
        /// # Panics
        /// If the value was dropped, as the thread ends.
        #[inline]
        pub fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
            self.try_with(f)
                .expect("the thread-local is gone, as its thread ends")
        }
    }

    impl<T: 'static> LocalKey<Cell<T>> {
        /// Sets this thread's value.
        pub fn set(&'static self, value: T) {
            self.with(|cell| cell.set(value));
        }

        /// Returns this thread's value.
        pub fn get(&'static self) -> T
        where
            T: Copy,
        {
            self.with(Cell::get)
        }

        /// Takes this thread's value.
        pub fn take(&'static self) -> T
        where
            T: Default,
        {
            self.with(Cell::take)
        }

        /// Replaces this thread's value.
        pub fn replace(&'static self, value: T) -> T {
            self.with(|cell| cell.replace(value))
        }
    }

    impl<T: 'static> LocalKey<RefCell<T>> {
        /// Replaces this thread's value.
        pub fn replace(&'static self, value: T) -> T {
            self.with(|cell| cell.replace(value))
        }
    }
}
