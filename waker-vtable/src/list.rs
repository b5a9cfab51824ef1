//! A list of wakers that are collected under a lock and woken after its release.
use core::{error::Error, fmt, mem::MaybeUninit, task::Waker};
use sync_shim::panics::contain;

/// An array of up to `N` wakers: collected under a lock, woken after its release.
///
/// Every waker that was pushed is woken, in order: by [`wake_all`](Self::wake_all), or when the
/// list is dropped. This holds even if other wakers panic. (Without `std` it holds only if at most
/// one of them panics.) So a list that is declared before the lock's guard wakes after the release,
/// however the function returns.
///
/// ```
/// use std::{collections::VecDeque, sync::Mutex, task::Waker};
/// use waker_vtable::WakeList;
///
/// fn wake_waiters(waiters: &Mutex<VecDeque<Waker>>) {
///     let mut list = WakeList::<32>::new();
///     loop {
///         let mut waiters = waiters.lock().unwrap();
///         while !list.is_full() {
///             let Some(waker) = waiters.pop_front() else {
///                 break;
///             };
///             list.push(waker).unwrap();
///         }
///         let more = !waiters.is_empty();
///         drop(waiters);
///         list.wake_all();
///         if !more {
///             return;
///         }
///     }
/// }
/// # wake_waiters(&Mutex::new(std::iter::repeat_n(Waker::noop().clone(), 40).collect()));
/// ```
pub struct WakeList<const N: usize = 32> {
    /// The first `len` slots hold a waker.
    wakers: [MaybeUninit<Waker>; N],
    len: usize,
}

impl<const N: usize> WakeList<N> {
    /// Creates an empty list. Writes one word.
    pub const fn new() -> Self {
        Self {
            wakers: [const { MaybeUninit::uninit() }; N],
            len: 0,
        }
    }

    /// Returns the number of wakers in the list.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the list is empty.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether the list is full.
    pub const fn is_full(&self) -> bool {
        self.len == N
    }

    /// Adds a waker.
    ///
    /// # Errors
    /// Returns the waker if the list is full.
    pub fn push(&mut self, waker: Waker) -> Result<(), WakeListFull> {
        let Some(slot) = self.wakers.get_mut(self.len) else {
            return Err(WakeListFull(waker));
        };
        slot.write(waker);
        self.len += 1;
        Ok(())
    }

    /// Wakes all wakers, in order, and leaves the list empty. Do not call this under a lock: a
    /// waker may run any code.
    ///
    /// # Panics
    /// If a waker panics. The first panic unwinds after the other wakers were woken. The panics of
    /// the other wakers are caught and dropped; without `std` the second panic ends the process.
    pub fn wake_all(&mut self) {
        let mut rest = self.take();
        for slot in &mut rest.0 {
            // SAFETY: the slot holds a waker, and the iterator has passed it, so it is read once.
            unsafe { slot.assume_init_read() }.wake();
        }
    }

    /// Empties the list before the first waker runs, so that none is woken twice.
    fn take(&mut self) -> Rest<'_> {
        let len = core::mem::take(&mut self.len);
        Rest(self.wakers[..len].iter_mut())
    }
}

impl<const N: usize> Default for WakeList<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Drop for WakeList<N> {
    fn drop(&mut self) {
        #[cfg(feature = "std")]
        if std::thread::panicking() {
            return drop(self.take());
        }
        self.wake_all();
    }
}

impl<const N: usize> fmt::Debug for WakeList<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WakeList")
            .field("len", &self.len)
            .field("capacity", &N)
            .finish()
    }
}

/// The wakers that are not woken yet. Each slot holds a waker, and no other code touches it again.
/// If wakers are left when this value is dropped, a panic unwinds. So the drop contains the panics
/// of these wakers: a panic that left the drop would end the process.
struct Rest<'a>(core::slice::IterMut<'a, MaybeUninit<Waker>>);

impl Drop for Rest<'_> {
    fn drop(&mut self) {
        for slot in &mut self.0 {
            // SAFETY: the slot holds a waker, and the iterator has passed it, so it is read once.
            let waker = unsafe { slot.assume_init_read() };
            contain(|| waker.wake());
        }
    }
}

/// The error of a push into a full list. It holds the waker that was refused.
pub struct WakeListFull(Waker);

impl WakeListFull {
    /// Returns the waker.
    pub fn into_inner(self) -> Waker {
        self.0
    }
}

impl fmt::Debug for WakeListFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WakeListFull")
    }
}

impl fmt::Display for WakeListFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the list of wakers is full")
    }
}

impl Error for WakeListFull {}
