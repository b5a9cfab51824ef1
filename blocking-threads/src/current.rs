//! The current pool of a thread, for code that was given no pool.
//!
//! The pools that a thread has entered and not left are a linked list of *frames*, the innermost
//! first.
//!
//! 1. The current pool is that of the innermost frame: the frame's own pool, or the one that the
//!    frame's function finds.
//! 2. A frame stays where it is while it is in the list: on the stack of the call that entered it,
//!    or in the box of a guard. A guard may be dropped in any order, so a frame leaves the list
//!    from any place. A guard may also be leaked: then its frame stays for good.
//! 3. The list has no destructor, so destructors of other thread-locals may use it. If
//!    `process::exit` runs them in the middle of a call, the frame of that call stays for good.
use crate::{
    pool::{Boxed, Job, Pool, Refused},
    running::{self, Running},
};
use std::{
    cell::Cell,
    fmt,
    marker::PhantomData,
    ptr::{self, NonNull},
    sync::Arc,
};
use sync_shim::panics::contain;

/// Something that runs closures which block: a [`Pool`], or an executor around one.
pub trait RunBlocking: Send + Sync + 'static {
    /// Runs the job in a thread that may block, or drops it if there is no such thread. It does not
    /// wait for the job.
    ///
    /// A job of [`CurrentPool::run`] never panics when it runs. One of [`CurrentPool::submit`] may
    /// panic. The drop of a job that did not run may panic, and wakes the task that awaits the job.
    fn run_blocking(&self, job: Boxed);
}

/// The current pool of a thread, from [`Pool::current`]. A clone costs a read-modify-write.
///
/// ```
/// use blocking_threads::{CurrentPool, Pool, Settings};
///
/// let pool: Pool<Box<dyn FnOnce() + Send>> = Pool::new(Settings::default());
/// let entered = pool.enter();
/// let current: CurrentPool = Pool::current()?;
/// drop(entered);
/// assert!(Pool::current().is_err());
///
/// let seven = current.run(|| 7); // Still that pool.
/// # let seven = async { seven.await.unwrap() };
/// # let mut seven = std::pin::pin!(seven);
/// # let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
/// # let seven = loop {
/// #     match std::future::Future::poll(seven.as_mut(), &mut cx) {
/// #         std::task::Poll::Ready(seven) => break seven,
/// #         std::task::Poll::Pending => std::thread::yield_now(),
/// #     }
/// # };
/// assert_eq!(seven, 7);
/// # Ok::<(), blocking_threads::NoPool>(())
/// ```
#[derive(Clone)]
pub struct CurrentPool(Arc<dyn RunBlocking>);

/// Finds the current pool of a thread, for an executor that knows which of its runtimes the thread
/// is in. `None` if the thread is in none of them.
pub type FindPool = fn() -> Option<CurrentPool>;

sync_shim::thread_local! {
    static INNERMOST: Cell<*const Frame> = const { Cell::new(ptr::null()) };
}

struct Frame {
    source: Source,
    outer: Cell<*const Frame>,
}

enum Source {
    Pool(CurrentPool),
    Find(FindPool),
}

impl Frame {
    fn new(source: Source) -> Self {
        let outer = Cell::new(ptr::null());
        Self { source, outer }
    }

    /// Puts the frame at the front of this thread's list.
    ///
    /// # Safety
    /// The frame is in no list. Until this thread [leaves](Self::leave) it, it is not moved or
    /// freed.
    unsafe fn enter(&self) {
        INNERMOST.with(|innermost| self.outer.set(innermost.replace(self)));
    }

    /// Takes the frame out of the list, from any place.
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

impl CurrentPool {
    /// Makes a value that runs closures by `pool`, to be [entered](Self::enter).
    pub fn of(pool: impl RunBlocking) -> Self {
        Self(Arc::new(pool))
    }

    /// Makes this the thread's current pool until the guard is dropped. Costs an allocation.
    pub fn enter(self) -> EnteredPool {
        EnteredPool::new(Source::Pool(self))
    }

    /// While `f` runs, the thread's current pool is what `find` returns at that time. If `find` is
    /// `None`, the current pool stays as it is. Costs two stores to a thread-local.
    ///
    /// ```
    /// use blocking_threads::{CurrentPool, Pool};
    ///
    /// fn find() -> Option<CurrentPool> {
    ///     None // An executor looks which of its runtimes this thread is in.
    /// }
    ///
    /// CurrentPool::within_found(Some(find), || assert!(Pool::current().is_err()));
    /// ```
    pub fn within_found<R>(find: Option<FindPool>, f: impl FnOnce() -> R) -> R {
        struct Leave<'a>(&'a Option<Frame>);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                if let Some(frame) = self.0 {
                    frame.leave();
                }
            }
        }
        let frame = find.map(|find| Frame::new(Source::Find(find)));
        if let Some(frame) = &frame {
            // SAFETY: the frame is new, and stays in this function until `_leave` takes it out of
            // the list.
            unsafe { frame.enter() };
        }
        let _leave = Leave(&frame);
        f()
    }

    /// Makes the pool that `find` returns the thread's current one, until the guard is dropped. See
    /// [`within_found`](Self::within_found). Costs an allocation.
    pub fn enter_found(find: FindPool) -> EnteredPool {
        EnteredPool::new(Source::Find(find))
    }

    /// Runs a closure in a thread that may block. The closure is queued at once, and runs even if
    /// the returned future is dropped. Its panic goes to the code that awaits the future, and to
    /// nobody if that was dropped. Costs two allocations, beside those of the pool.
    ///
    /// # Panics
    /// If [`run_blocking`](RunBlocking::run_blocking) panics. That of a [`Pool`] panics only if the
    /// pool refuses a closure whose drop panics.
    ///
    /// ```
    /// use blocking_threads::{CurrentPool, RunBlocking};
    ///
    /// struct Threads;
    ///
    /// impl RunBlocking for Threads {
    ///     fn run_blocking(&self, job: Box<dyn FnOnce() + Send>) {
    ///         std::thread::spawn(job);
    ///     }
    /// }
    ///
    /// let pool = CurrentPool::of(Threads);
    /// drop(pool.run(|| std::fs::read("/dev/null")));
    /// ```
    pub fn run<T: Send + 'static>(&self, f: impl FnOnce() -> T + Send + 'static) -> Running<T> {
        let (job, running) = running::new(f);
        self.submit(job);
        running
    }

    /// Runs a closure whose result nobody awaits. A closed pool drops the closure.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    pub fn submit(&self, job: Boxed) {
        self.0.run_blocking(job);
    }
}

impl<J: Job + From<Boxed>> Pool<J> {
    /// Makes this the thread's current pool until the guard is dropped, for code that was not given
    /// a pool. Costs an allocation. The guard keeps the pool alive, and does not close it.
    ///
    /// ```
    /// use blocking_threads::{Pool, Settings};
    ///
    /// let pool: Pool<Box<dyn FnOnce() + Send>> = Pool::new(Settings::default());
    /// let entered = pool.enter();
    /// assert!(Pool::current().is_ok());
    /// drop(entered);
    /// assert!(Pool::current().is_err());
    /// ```
    pub fn enter(&self) -> EnteredPool {
        CurrentPool::of(self.clone()).enter()
    }
}

impl Pool<Boxed> {
    /// Returns the pool that this thread has [entered](Self::enter) last, of those that it has not
    /// left: a pool with any type of jobs, or that of an executor. Costs a look-up in a
    /// thread-local, and the clone of a [`CurrentPool`].
    ///
    /// # Errors
    /// If the thread has entered no pool.
    pub fn current() -> Result<CurrentPool, NoPool> {
        let innermost = INNERMOST.try_with(Cell::get).unwrap_or(ptr::null());
        // SAFETY: the pointer is null, or points to a frame of the list, which is valid
        // (`Frame::enter`). It is not used after `find` is called, which is user code.
        let current = match unsafe { innermost.as_ref() }.map(|frame| &frame.source) {
            Some(Source::Pool(pool)) => Some(pool.clone()),
            Some(Source::Find(find)) => find(),
            None => None,
        };
        current.ok_or(NoPool(()))
    }
}

/// A pool that refuses a job drops it.
impl<J: Job + From<Boxed>> RunBlocking for Pool<J> {
    fn run_blocking(&self, job: Boxed) {
        if let Err(Refused { job, why }) = self.submit(job.into()) {
            contain(|| drop(why)); // As in `submit`: an error of a hook that no caller gets.
            drop(job);
        }
    }
}

/// Guard of [`Pool::enter`], [`CurrentPool::enter`] and [`CurrentPool::enter_found`].
///
/// The guards of a thread may be dropped in any order. If a guard is leaked, its pool stays
/// entered.
///
/// The guard stays on its thread:
///
/// ```compile_fail,E0277
/// fn sends(guard: impl Send) {}
///
/// sends(blocking_threads::Pool::current().unwrap().enter());
/// ```
#[must_use = "the thread leaves the pool when this is dropped"]
pub struct EnteredPool(NonNull<Frame>, PhantomData<*mut ()>);

impl EnteredPool {
    fn new(source: Source) -> Self {
        let frame = NonNull::from(Box::leak(Box::new(Frame::new(source))));
        let entered = Self(frame, PhantomData);
        // SAFETY: the frame is new, and stays in its box until the guard's drop takes it out of the
        // list. The drop is on this thread, as the guard is not `Send`.
        unsafe { entered.frame().enter() };
        entered
    }

    fn frame(&self) -> &Frame {
        // SAFETY: only the drop of this guard frees the box.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for EnteredPool {
    fn drop(&mut self) {
        self.frame().leave();
        // SAFETY: the frame was made from a box, and is in no list by now. (It may have the last
        // handle of a pool, whose drop is user code.)
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// Error of [`Pool::current`]: the thread has entered no pool.
///
/// ```
/// let error: blocking_threads::NoPool = blocking_threads::Pool::current().unwrap_err();
/// assert!(error.to_string().starts_with("this thread is in no pool"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPool(());

impl fmt::Display for NoPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "this thread is in no pool for calls that block: do this in a task of a runtime that \
             has one, or where a guard of Pool::enter is held",
        )
    }
}

impl std::error::Error for NoPool {}

impl fmt::Debug for CurrentPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CurrentPool")
    }
}

impl fmt::Debug for EnteredPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EnteredPool")
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle, selvedge_count))))]
mod tests {
    use super::{Boxed, CurrentPool, RunBlocking};
    use crate::{Pool, Settings};
    use std::{
        cell::RefCell,
        panic::{AssertUnwindSafe, catch_unwind},
        sync::{Arc, Mutex, mpsc},
    };

    /// Notes its number for each job, and drops the job.
    struct Notes(u32, Arc<Mutex<Vec<u32>>>);

    impl RunBlocking for Notes {
        fn run_blocking(&self, _: Boxed) {
            self.1.lock().unwrap().push(self.0);
        }
    }

    /// Fails if a guard leaves another entry than its own.
    #[test]
    fn last_entered_pool_is_current_in_any_order_of_drops() {
        let noted = Arc::default();
        let current = |number| CurrentPool::of(Notes(number, Arc::clone(&noted)));
        let note = || Pool::current().map(|current| current.submit(Box::new(|| ())));
        let (one, two, three) = (current(1).enter(), current(2).enter(), current(3).enter());
        note().unwrap();
        drop(two);
        note().unwrap();
        drop(three);
        note().unwrap();
        drop(one);
        note().unwrap_err();
        assert_eq!(*noted.lock().unwrap(), [3, 3, 1]);
    }

    #[test]
    fn thread_that_entered_no_pool_has_none() {
        let pool: Pool<Boxed> = Pool::new(Settings::default());
        let _entered = pool.enter();
        let other = std::thread::spawn(|| Pool::current().is_err());
        assert!(other.join().unwrap());
    }

    /// Fails if the drop of the last handle of a pool finds the list borrowed.
    #[test]
    fn pool_that_enters_in_its_drop_may_be_left() {
        struct Enters(mpsc::Sender<bool>);

        impl RunBlocking for Enters {
            fn run_blocking(&self, _: Boxed) {}
        }

        impl Drop for Enters {
            fn drop(&mut self) {
                let pool: Pool<Boxed> = Pool::new(Settings::default());
                let _entered = pool.enter();
                let _ = self.0.send(Pool::current().is_ok());
            }
        }

        let (sender, receiver) = mpsc::channel();
        drop(CurrentPool::of(Enters(sender)).enter());
        assert_eq!(receiver.recv(), Ok(true));
    }

    /// Enters, asks and leaves where it is dropped.
    struct EntersInDrop(mpsc::Sender<()>);

    impl RunBlocking for EntersInDrop {
        fn run_blocking(&self, _: Boxed) {}
    }

    impl Drop for EntersInDrop {
        fn drop(&mut self) {
            let pool: Pool<Boxed> = Pool::new(Settings::default());
            let entered = pool.enter();
            drop(Pool::current());
            drop(entered);
            self.0.send(()).unwrap();
        }
    }

    /// Fails if a destructor of a thread-local panics, which aborts the process.
    #[test]
    fn thread_may_end_with_guards_and_enter_while_it_ends() {
        thread_local! {
            static BEFORE: RefCell<Option<EntersInDrop>> = const { RefCell::new(None) };
            static GUARD: RefCell<Option<super::EnteredPool>> = const { RefCell::new(None) };
            static AFTER: RefCell<Option<EntersInDrop>> = const { RefCell::new(None) };
        }
        let (sender, receiver) = mpsc::channel();
        let ends = move || {
            // Thread-locals are destroyed in an order that has to do with their first uses.
            BEFORE.set(Some(EntersInDrop(sender.clone())));
            GUARD.set(None);
            std::mem::forget(CurrentPool::of(EntersInDrop(sender.clone())).enter());
            GUARD.set(Some(CurrentPool::of(EntersInDrop(sender.clone())).enter()));
            AFTER.set(Some(EntersInDrop(sender)));
        };
        std::thread::spawn(ends).join().unwrap();
        // The leaked guard keeps its pool.
        assert_eq!(receiver.try_iter().count(), 3);
    }

    /// Panics at each job, or enters another pool for it.
    struct Strange(bool);

    impl RunBlocking for Strange {
        fn run_blocking(&self, job: Boxed) {
            let pool: Pool<Boxed> = Pool::new(Settings::default());
            let _entered = pool.enter();
            assert!(!self.0, "on purpose");
            Pool::current().unwrap().submit(job);
        }
    }

    /// Fails if a panic of `run_blocking` leaves its pool entered, or keeps the closure.
    #[test]
    fn panic_of_run_blocking_goes_to_the_caller() {
        let _entered = CurrentPool::of(Strange(true)).enter();
        let value = Arc::new(());
        let kept = value.clone();
        let run = AssertUnwindSafe(|| drop(Pool::current().unwrap().run(move || drop(kept))));
        catch_unwind(run).unwrap_err();
        assert_eq!(Arc::strong_count(&value), 1);
        let again = || Pool::current().unwrap().submit(Box::new(|| ()));
        catch_unwind(again).unwrap_err(); // It is still the current pool.
    }

    #[test]
    fn run_blocking_may_enter_another_pool() {
        let _entered = CurrentPool::of(Strange(false)).enter();
        let (sender, receiver) = mpsc::channel();
        let send = move || sender.send(7).unwrap();
        drop(Pool::current().unwrap().run(send));
        assert_eq!(receiver.recv(), Ok(7));
    }

    /// Fails if a panic in the drop of a refused job's error reaches the caller.
    #[test]
    fn error_of_a_thread_that_does_not_start_is_contained() {
        #[derive(Debug)]
        struct Bomb;

        impl std::fmt::Display for Bomb {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("on purpose")
            }
        }

        impl std::error::Error for Bomb {}

        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("on purpose");
            }
        }

        let mut settings = Settings::new();
        settings.spawn = Some(Arc::new(|_, _| Err(std::io::Error::other(Bomb))));
        let pool: Pool<Boxed> = Pool::new(settings);
        let _entered = pool.enter();
        drop(Pool::current().unwrap().run(|| 7));
    }
}
