//! The current driver of a thread: how the code of a task finds its driver.
//!
//! A *frame* records the driver of one scope or guard. A thread-local points to the innermost
//! frame, and each frame points to the next outer frame. The rules of this list are:
//!
//! 1. The current driver is the driver of the innermost frame.
//! 2. The frame of a [`scope`](Driver::scope) is on the stack of that function. The function takes
//!    the frame out of the list before it returns or unwinds. The function also holds a clone of
//!    the driver: the caller's driver may be in a thread-local, and `process::exit` runs the
//!    destructors of thread-locals while frames are in the list. The caller of a
//!    [`borrowed_scope`](Driver::borrowed_scope) keeps the driver alive itself.
//! 3. The frame of an [`Entered`] is in a box, together with a clone of the driver. The drop of the
//!    guard takes the frame out of the list from any position, because guards may be dropped in any
//!    order. The frame of a leaked guard stays in the list, and its box is never freed.
//! 4. Each thread has a list of its own, which no other thread uses. The thread-local that points
//!    to the list has no destructor, because the destructors of other thread-locals may use the
//!    list.
use super::{Driver, Inner};
use std::{
    cell::Cell,
    fmt,
    ptr::{self, NonNull},
    sync::Arc,
};

struct Frame {
    driver: *const Inner,
    /// The index of the wheel for this thread's timers: the index of the worker, or the number of
    /// workers if the thread is not a worker.
    wheel: usize,
    outer: Cell<*const Frame>,
}

sync_shim::thread_local! {
    static INNERMOST: Cell<*const Frame> = const { Cell::new(ptr::null()) };
}

impl Driver {
    /// Makes this the thread's current driver while `f` runs, so that `f` may poll sleeps and make
    /// sockets. `worker` is the index of the worker that runs on this thread, or `None` if none
    /// does.
    ///
    /// Costs two read-modify-writes, which count the driver, and two stores to a thread-local.
    ///
    /// # Panics
    /// If there is no such worker, or `f` panics.
    #[inline]
    #[track_caller]
    pub fn scope<R>(&self, worker: Option<usize>, f: impl FnOnce() -> R) -> R {
        let counted = self.clone();
        // SAFETY: `counted` stays in this function until the scope has ended. If `f` calls
        // `process::exit`, `counted` is never dropped.
        unsafe { Self::borrowed_scope(Some(&counted), worker, f) }
    }

    /// Runs `f` in the [scope](Self::scope) of a driver without counting that driver. If `driver`
    /// is `None`, the current driver stays as it is. This is for an executor that keeps the driver
    /// alive itself, and some of whose runtimes may have no driver.
    ///
    /// ```
    /// use net_driver::Driver;
    ///
    /// let driver = Driver::new(1);
    /// // SAFETY: the driver is a local variable, which `Driver::current` does not drop.
    /// let current = unsafe { Driver::borrowed_scope(Some(&driver), None, Driver::current) };
    /// assert!(current.is_some());
    /// ```
    ///
    /// # Safety
    /// A clone of the driver exists until this function returns. If the function never returns,
    /// because `f` calls [`process::exit`](std::process::exit), a clone exists until the process
    /// has ended. (That call runs the destructors of thread-locals. One destructor may drop the
    /// caller's driver, and a later destructor may still find that driver by
    /// [`current`](Self::current).)
    ///
    /// # Panics
    /// As [`scope`](Self::scope).
    #[inline]
    #[track_caller]
    pub unsafe fn borrowed_scope<R>(
        driver: Option<&Self>,
        worker: Option<usize>,
        f: impl FnOnce() -> R,
    ) -> R {
        struct Leave<'a>(&'a Option<Frame>);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                if let Some(frame) = self.0 {
                    frame.leave();
                }
            }
        }
        let frame = driver.map(|driver| driver.frame(worker));
        if let Some(frame) = &frame {
            // SAFETY: the frame stays in this function until `leave` takes it out of the list, and
            // the caller keeps the driver alive.
            unsafe { frame.enter() };
        }
        let _leave = Leave(&frame);
        f()
    }

    /// Makes this the thread's current driver until the guard is dropped. `worker` has the same
    /// meaning as in [`scope`](Self::scope). Costs an allocation.
    ///
    /// ```
    /// let driver = net_driver::Driver::new(1);
    /// let entered = driver.enter(None);
    /// assert!(net_driver::Driver::current().is_some());
    /// drop(entered);
    /// assert!(net_driver::Driver::current().is_none());
    /// ```
    ///
    /// # Panics
    /// If there is no such worker.
    #[track_caller]
    pub fn enter(&self, worker: Option<usize>) -> Entered {
        let boxed = Box::new((self.frame(worker), self.clone()));
        let entered = Entered(NonNull::from(Box::leak(boxed)));
        // SAFETY: the frame stays in its box until the guard's drop takes it out of the list. The
        // drop is on this thread, because an `Entered` is not `Send`. The box also keeps the driver
        // alive.
        unsafe { entered.frame().enter() };
        entered
    }

    /// Returns the thread's current driver. Costs one read-modify-write.
    ///
    /// ```
    /// let driver = net_driver::Driver::new(1);
    /// assert!(driver.scope(None, || net_driver::Driver::current().is_some()));
    /// ```
    pub fn current() -> Option<Self> {
        with_frame(|frame| {
            // SAFETY: an `Arc` made the pointer, which is valid while its frame is in the list.
            unsafe { Arc::increment_strong_count(frame.driver) };
            // SAFETY: the count was just added.
            Self(unsafe { Arc::from_raw(frame.driver) })
        })
    }

    #[inline]
    #[track_caller]
    fn frame(&self, worker: Option<usize>) -> Frame {
        if let Some(worker) = worker {
            self.0.threads.assert_worker(worker);
        }
        #[cfg(feature = "test-util")]
        if let Some(worker) = worker {
            self.0.threads.clock.set_started(worker);
        }
        Frame {
            driver: Arc::as_ptr(&self.0),
            wheel: worker.unwrap_or(self.0.threads.tokens.len()),
            outer: Cell::new(ptr::null()),
        }
    }
}

/// Runs `f` on the thread's current driver, with the index of the wheel for the thread's timers.
/// Returns `None` without a current driver.
#[inline]
pub(crate) fn with_current<R>(f: impl FnOnce(&Inner, usize) -> R) -> Option<R> {
    // SAFETY: the driver is valid while its frame is in the list, and the frame stays there while
    // `f` runs.
    with_frame(|frame| f(unsafe { &*frame.driver }, frame.wheel))
}

/// Runs `f` on the innermost frame. Returns `None` if the list is empty.
///
/// `f` must not leave a scope, and must drop no [`Entered`].
#[inline]
fn with_frame<R>(f: impl FnOnce(&Frame) -> R) -> Option<R> {
    let frame = INNERMOST.try_with(Cell::get).unwrap_or(ptr::null());
    // SAFETY: the pointer is null, or points to a frame of the list, which is valid
    // (`Frame::enter`).
    unsafe { frame.as_ref() }.map(f)
}

impl Frame {
    /// Puts the frame at the front of this thread's list.
    ///
    /// # Safety
    /// The frame is in no list. Until this thread [leaves](Self::leave) it, neither the frame nor
    /// its driver is moved or freed.
    #[inline]
    unsafe fn enter(&self) {
        INNERMOST.with(|innermost| self.outer.set(innermost.replace(self)));
    }

    /// Takes the frame out of the list, from any position.
    #[inline]
    fn leave(&self) {
        INNERMOST.with(|innermost| {
            let mut at = innermost;
            while !ptr::eq(at.get(), self) {
                // SAFETY: this frame was entered, so it is further down the list, and all frames of
                // the list are valid (`enter`).
                at = &unsafe { &*at.get() }.outer;
            }
            at.set(self.outer.get());
        });
    }
}

/// Makes a [`Driver`] the thread's current one until this guard is dropped: see [`Driver::enter`].
///
/// ```
/// let (one, other) = (net_driver::Driver::new(1), net_driver::Driver::new(1));
/// let entered: net_driver::Entered = one.enter(None);
/// let inner = other.enter(None);
/// drop(entered); // In any order.
/// drop(inner);
/// assert!(net_driver::Driver::current().is_none());
/// ```
#[must_use = "the driver is current until the guard is dropped"]
pub struct Entered(NonNull<(Frame, Driver)>);

impl Entered {
    fn frame(&self) -> &Frame {
        // SAFETY: only the drop of this guard frees the box.
        &unsafe { self.0.as_ref() }.0
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.frame().leave();
        // SAFETY: the frame was made from a box, and is in no list by now.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl fmt::Debug for Entered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entered")
    }
}
