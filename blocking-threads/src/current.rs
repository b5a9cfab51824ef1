//! The current pool of a thread, which code finds that was not given a pool.
//!
//! A thread has a list of the pools that it has entered and not left. The *current* pool is the one
//! that was entered last. A guard leaves its own entry, from any place of the list.
use crate::{
    pool::{Boxed, Job, Pool, Refused},
    running::{self, Running},
};
use std::{cell::RefCell, fmt, marker::PhantomData, sync::Arc};
use sync_shim::panics::contain;

/// Something that runs closures which block: a [`Pool`], or an executor around one.
pub trait RunBlocking: Send + Sync + 'static {
    /// Runs the job in a thread that may block, or drops it if there is no such thread. It does not
    /// wait for the job.
    ///
    /// A job of [`Current::run`] never panics when it runs. One of [`Current::submit`] may panic.
    /// The drop of a job that did not run may panic, and wakes the task that awaits the job.
    fn run_blocking(&self, job: Boxed);
}

/// The current pool of a thread, from [`Pool::current`]. A clone costs a read-modify-write, or
/// nothing for a [static](Self::of_static) one.
///
/// ```
/// use blocking_threads::{Current, Pool, Settings};
///
/// let pool: Pool<Box<dyn FnOnce() + Send>> = Pool::new(Settings::default());
/// let entered = pool.enter();
/// let current: Current = Pool::current()?;
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
pub struct Current(Source);

#[derive(Clone)]
enum Source {
    Counted(Arc<dyn RunBlocking>),
    Static(&'static dyn RunBlocking),
}

sync_shim::thread_local! {
    static ENTERED: RefCell<List> = const { RefCell::new(List::new()) };
}

struct List {
    /// The key of the next entry.
    next: u64,
    entries: Vec<(u64, Current)>,
}

impl List {
    const fn new() -> Self {
        Self {
            next: 0,
            entries: Vec::new(),
        }
    }
}

impl Current {
    /// Makes a value that runs closures by `by`, to be [entered](Self::enter).
    pub fn of(by: impl RunBlocking) -> Self {
        Self(Source::Counted(Arc::new(by)))
    }

    /// As [`of`](Self::of), without a count of references: for an executor that knows by itself
    /// which of its runtimes a thread is in.
    pub const fn of_static(by: &'static dyn RunBlocking) -> Self {
        Self(Source::Static(by))
    }

    /// Makes this the thread's current pool until the guard is dropped. In a destructor of another
    /// thread-local this may do nothing, as the list of pools may be destroyed by then.
    pub fn enter(self) -> Entered {
        let key = ENTERED.try_with(|entered| {
            let mut list = entered.borrow_mut();
            let key = list.next;
            list.next += 1;
            list.entries.push((key, self));
            key
        });
        Entered {
            key: key.ok(),
            stays: PhantomData,
        }
    }

    /// Runs a closure in a thread that may block. The closure is queued at once, and runs even if
    /// the returned future is dropped. Costs two allocations, beside those of the pool.
    ///
    /// # Panics
    /// If [`run_blocking`](RunBlocking::run_blocking) panics; that of a [`Pool`] does not, except
    /// where the drop of a closure that it refuses panics.
    ///
    /// ```
    /// use blocking_threads::{Current, RunBlocking};
    ///
    /// struct Threads;
    ///
    /// impl RunBlocking for Threads {
    ///     fn run_blocking(&self, job: Box<dyn FnOnce() + Send>) {
    ///         std::thread::spawn(job);
    ///     }
    /// }
    ///
    /// let current = Current::of(Threads);
    /// drop(current.run(|| std::fs::read("/dev/null")));
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
        match &self.0 {
            Source::Counted(by) => by.run_blocking(job),
            Source::Static(by) => by.run_blocking(job),
        }
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
    pub fn enter(&self) -> Entered {
        Current::of(self.clone()).enter()
    }
}

impl Pool<Boxed> {
    /// Returns the pool that this thread has [entered](Self::enter) last, of those that it has not
    /// left: a pool with any type of jobs, or that of an executor. Costs a look-up in a
    /// thread-local, and the clone of a [`Current`].
    ///
    /// # Errors
    /// If the thread has entered no pool.
    pub fn current() -> Result<Current, NoPool> {
        let last = |list: &List| list.entries.last().map(|(_, current)| current.clone());
        let current = ENTERED.try_with(|entered| last(&entered.borrow()));
        current.ok().flatten().ok_or(NoPool(()))
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

/// Guard of [`Pool::enter`] and [`Current::enter`]. The guards of a thread may be dropped in any
/// order. If a guard is leaked, its pool stays entered.
///
/// The guard stays on its thread:
///
/// ```compile_fail,E0277
/// fn sends(guard: impl Send) {}
///
/// sends(blocking_threads::Pool::current().unwrap().enter());
/// ```
#[must_use = "the thread leaves the pool when this is dropped"]
pub struct Entered {
    /// `None` if the thread's locals were destroyed.
    key: Option<u64>,
    stays: PhantomData<*mut ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let Some(key) = self.key else { return };
        let left = ENTERED.try_with(|entered| {
            let entries = &mut entered.borrow_mut().entries;
            let at = entries.iter().rposition(|entry| entry.0 == key);
            at.map(|at| entries.remove(at))
        });
        // Without the borrow: the drop of a pool is user code.
        drop(left);
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

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Current")
    }
}

impl fmt::Debug for Entered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entered")
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle, selvedge_count))))]
mod tests {
    use super::{Boxed, Current, RunBlocking};
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
        let current = |number| Current::of(Notes(number, Arc::clone(&noted)));
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
        drop(Current::of(Enters(sender)).enter());
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

    /// Fails if a destructor of a thread-local panics, which aborts the process, or if the pool of
    /// a leaked guard is leaked too.
    #[test]
    fn thread_may_end_with_guards_and_enter_while_it_ends() {
        thread_local! {
            static BEFORE: RefCell<Option<EntersInDrop>> = const { RefCell::new(None) };
            static GUARD: RefCell<Option<super::Entered>> = const { RefCell::new(None) };
            static AFTER: RefCell<Option<EntersInDrop>> = const { RefCell::new(None) };
        }
        let (sender, receiver) = mpsc::channel();
        let ends = move || {
            // Thread-locals are destroyed in an order that has to do with their first uses.
            BEFORE.set(Some(EntersInDrop(sender.clone())));
            GUARD.set(None);
            std::mem::forget(Current::of(EntersInDrop(sender.clone())).enter());
            GUARD.set(Some(Current::of(EntersInDrop(sender.clone())).enter()));
            AFTER.set(Some(EntersInDrop(sender)));
        };
        std::thread::spawn(ends).join().unwrap();
        assert_eq!(receiver.iter().count(), 4);
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
        let _entered = Current::of(Strange(true)).enter();
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
        let _entered = Current::of(Strange(false)).enter();
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
