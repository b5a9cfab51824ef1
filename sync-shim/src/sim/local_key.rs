//! The keys of thread-locals.
use super::fiber::with_locals;
use std::{
    cell::{Cell, RefCell},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

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
        let value = with_locals(|locals| {
            // SAFETY: each key has a number of its own, and one type.
            unsafe { locals.get(self.number() - 1, self.init) }
        });
        match value {
            None => self.std.try_with(f).map_err(|_| AccessError),
            Some(Err(_)) => Err(AccessError),
            // SAFETY: the value stays until its fiber ends, and `f` runs before that.
            Some(Ok(value)) => Ok(f(unsafe { value.as_ref() })),
        }
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
