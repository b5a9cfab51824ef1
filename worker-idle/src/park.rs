//! The trait by which a worker waits for work, and with `std` a parker that blocks the thread.
//!
//! ```
//! use std::{thread, time::Duration};
//! use worker_idle::park::{Park, ThreadPark, Unpark};
//!
//! let mut park = ThreadPark::new();
//! park.park_timeout(Duration::from_millis(1)); // Nobody unparks this thread.
//! let unparker = park.unparker();
//! let worker = thread::spawn(move || park.park());
//! unparker.unpark(); // This ends the park, also if the thread parks only later.
//! worker.join().unwrap();
//! ```
use core::time::Duration;

mod block_on;
#[cfg(feature = "std")]
mod thread;

pub use block_on::{block_on, waker};
#[cfg(feature = "std")]
pub use thread::{ThreadPark, ThreadUnpark};

/// The way in which a worker waits. An I/O driver implements this trait.
///
/// A driver works in two phases, so that the tasks that it wakes stay on the worker that waited:
///
/// 1. `park`, `park_timeout` and `poll` *collect*: they note which sockets are ready and which
///    timers are due, and call no [`Waker`](core::task::Waker). A worker that parks counts as
///    asleep, so tasks that it woke there would go to the injector.
/// 2. `deliver` wakes the tasks of the collected events. The worker calls `deliver` once it counts
///    as awake, so the woken tasks go to the worker's own queue.
///
/// A parker that collects no events keeps the default `poll`, `has_events` and `deliver`.
///
/// ```
/// use std::{sync::{Arc, Condvar, Mutex}, time::Duration};
/// use worker_idle::park::{Park, Unpark};
///
/// #[derive(Clone, Default)]
/// struct Bell(Arc<(Mutex<bool>, Condvar)>);
///
/// impl Park for Bell {
///     type Unpark = Self;
///
///     fn park(&mut self) {
///         let (rung, bell) = &*self.0;
///         *bell.wait_while(rung.lock().unwrap(), |rung| !*rung).unwrap() = false;
///     }
///
///     fn park_timeout(&mut self, limit: Duration) {
///         let (rung, bell) = &*self.0;
///         let waited = bell.wait_timeout_while(rung.lock().unwrap(), limit, |rung| !*rung);
///         *waited.unwrap().0 = false;
///     }
///
///     fn unparker(&self) -> Self {
///         self.clone()
///     }
/// }
///
/// impl Unpark for Bell {
///     fn unpark(&self) {
///         *self.0.0.lock().unwrap() = true;
///         self.0.1.notify_one();
///     }
/// }
///
/// let mut bell = Bell::default();
/// let unparker = bell.unparker();
/// let thread = std::thread::spawn(move || unparker.unpark());
/// bell.park();
/// thread.join().unwrap();
/// ```
///
/// This example is a driver, whose `poll` collects up to `max` of the ready wakers:
///
/// ```
/// use std::{mem, task::Waker, time::Duration};
/// use worker_idle::park::{Park, ThreadPark, ThreadUnpark};
///
/// struct Driver {
///     thread: ThreadPark,
///     ready: Vec<Waker>,
///     collected: Vec<Waker>,
/// }
///
/// impl Park for Driver {
///     type Unpark = ThreadUnpark;
///     fn park(&mut self) {
///         self.thread.park();
///         self.poll(usize::MAX);
///     }
///     fn park_timeout(&mut self, limit: Duration) {
///         self.thread.park_timeout(limit);
///         self.poll(usize::MAX);
///     }
///     fn poll(&mut self, max: usize) {
///         let count = self.ready.len().min(max);
///         self.collected.extend(self.ready.drain(..count));
///     }
///     fn has_events(&self) -> bool {
///         !self.collected.is_empty()
///     }
///     fn deliver(&mut self) {
///         mem::take(&mut self.collected).into_iter().for_each(Waker::wake);
///     }
///     fn unparker(&self) -> ThreadUnpark {
///         self.thread.unparker()
///     }
/// }
///
/// let ready = vec![Waker::noop().clone(), Waker::noop().clone()];
/// let mut driver = Driver { thread: ThreadPark::new(), ready, collected: Vec::new() };
/// driver.poll(1);
/// assert!(driver.has_events());
/// driver.deliver();
/// assert!(!driver.has_events());
/// assert_eq!(driver.ready.len(), 1);
/// ```
pub trait Park {
    /// The handle that ends this parker's parks.
    type Unpark: Unpark;

    /// Waits without a limit for an unpark. An unpark since the last park returned ends the wait at
    /// once. May return early.
    fn park(&mut self);

    /// Waits as [`park`](Self::park) does, but at most for `limit`. May return early.
    fn park_timeout(&mut self, limit: Duration);

    /// Collects up to `max` events, and does not wait. A busy worker calls this between two tasks,
    /// once in a number of ticks. If the check for events is expensive, the driver reads a clock
    /// first, to skip most checks. By default this does nothing.
    fn poll(&mut self, max: usize) {
        let _ = max;
    }

    /// Returns whether the driver has collected events whose tasks [`deliver`](Self::deliver) will
    /// wake. By default it has none.
    fn has_events(&self) -> bool {
        false
    }

    /// Wakes the tasks of the collected events. The wakers may run user code. If a call leaves
    /// events, the worker calls `deliver` again before it parks. By default this does nothing.
    fn deliver(&mut self) {}

    /// Returns the handle that ends this parker's parks.
    fn unparker(&self) -> Self::Unpark;
}

/// Wakes a [`Park`].
///
/// A thread that has pushed work calls `unpark`, so the call must be short: it neither blocks nor
/// panics, and does not call the scheduler. If the call failed to unpark the thread, the worker
/// would stay parked, and count as awake forever.
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicU32, Ordering::Relaxed}};
/// use worker_idle::park::{Park, ThreadPark, ThreadUnpark, Unpark};
///
/// #[derive(Clone)]
/// struct Counted(ThreadUnpark, Arc<AtomicU32>);
///
/// impl Unpark for Counted {
///     fn unpark(&self) {
///         self.1.fetch_add(1, Relaxed);
///         self.0.unpark();
///     }
/// }
///
/// let mut park = ThreadPark::new();
/// let unparker = Counted(park.unparker(), Arc::default());
/// unparker.unpark();
/// park.park();
/// assert_eq!(unparker.1.load(Relaxed), 1);
/// ```
pub trait Unpark: Clone + Send + Sync + 'static {
    /// Ends the current or the next `park`. Several calls before the end of one `park` count as
    /// one. Writes of this thread before the call are visible after the `park`.
    fn unpark(&self);
}
