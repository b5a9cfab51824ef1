//! The trait by which a worker waits for work, and with `std` a parker that blocks the thread.
//!
//! ```
//! use std::{thread, time::Duration};
//! use worker_idle::park::{Park, ThreadPark};
//!
//! let mut park = ThreadPark::new();
//! park.park_timeout(Duration::from_millis(1)); // Nobody unparks this thread.
//! let waker = park.waker();
//! let worker = thread::spawn(move || park.park());
//! waker.wake(); // This ends the park, also if the thread parks only later.
//! worker.join().unwrap();
//! ```
use alloc::boxed::Box;
use core::{task::Waker, time::Duration};

mod block_on;
#[cfg(feature = "std")]
mod thread;

pub use block_on::block_on;
#[cfg(feature = "std")]
pub use thread::ThreadPark;

/// The way in which a worker waits. An I/O driver implements this trait.
///
/// A driver works in two phases, so that the tasks that it wakes stay on the worker that waited:
///
/// 1. `park`, `park_timeout` and `poll` *collect*: they note which sockets are ready and which
///    timers are due, and call no [`Waker`]. A worker that parks counts as
///    asleep, so tasks that it woke there would go to the injector.
/// 2. `deliver` wakes the tasks of the collected events. The worker calls `deliver` once it counts
///    as awake, so the woken tasks go to the worker's own queue.
///
/// A parker that collects no events keeps the default `poll`, `has_events` and `deliver`.
///
/// ```
/// use std::{sync::{Arc, Condvar, Mutex}, task::{Wake, Waker}, time::Duration};
/// use worker_idle::park::Park;
///
/// #[derive(Default)]
/// struct Bell(Mutex<bool>, Condvar);
///
/// struct BellPark(Arc<Bell>);
///
/// impl Park for BellPark {
///     fn park(&mut self) {
///         let Bell(rung, bell) = &*self.0;
///         *bell.wait_while(rung.lock().unwrap(), |rung| !*rung).unwrap() = false;
///     }
///
///     fn park_timeout(&mut self, limit: Duration) {
///         let Bell(rung, bell) = &*self.0;
///         let waited = bell.wait_timeout_while(rung.lock().unwrap(), limit, |rung| !*rung);
///         *waited.unwrap().0 = false;
///     }
///
///     fn waker(&self) -> Waker {
///         Waker::from(self.0.clone())
///     }
/// }
///
/// impl Wake for Bell {
///     fn wake(self: Arc<Self>) {
///         *self.0.lock().unwrap() = true;
///         self.1.notify_one();
///     }
/// }
///
/// let mut park = BellPark(Arc::default());
/// let waker = park.waker();
/// let thread = std::thread::spawn(move || waker.wake());
/// park.park();
/// thread.join().unwrap();
/// ```
///
/// This example is a driver, whose `poll` collects up to `max` of the ready wakers:
///
/// ```
/// use std::{mem, task::Waker, time::Duration};
/// use worker_idle::park::{Park, ThreadPark};
///
/// struct Driver {
///     thread: ThreadPark,
///     ready: Vec<Waker>,
///     collected: Vec<Waker>,
/// }
///
/// impl Park for Driver {
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
///     fn waker(&self) -> Waker {
///         self.thread.waker()
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

    /// Returns a waker that ends the current or the next `park`. Several wakes before the end of
    /// one `park` count as one. Writes of the waking thread before the wake are visible after the
    /// `park`.
    ///
    /// A thread that has pushed work calls the waker, so a wake must be short: it neither blocks
    /// nor panics, and does not call the scheduler. If a wake failed to unpark the thread, the
    /// worker would stay parked, and count as awake forever.
    ///
    /// Any thread may call the waker, clone it or drop it, also while the parker moves to another
    /// thread, and also after the parker was dropped: a wake that comes then does nothing. So the
    /// waker owns its share of whatever it uses, such as the flag and the condition variable of
    /// `Bell` above in an `Arc`, or a descriptor that the last of its owners closes. It borrows
    /// nothing from the parker, and names no thread, because the parker may wait in another one
    /// next time.
    ///
    /// ```
    /// use std::{sync::Arc, task::{Wake, Waker}};
    /// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    /// use worker_idle::park::{Park, ThreadPark};
    ///
    /// struct Counted(Waker, AtomicU32);
    ///
    /// impl Wake for Counted {
    ///     fn wake(self: Arc<Self>) {
    ///         self.1.fetch_add(1, Relaxed);
    ///         self.0.wake_by_ref();
    ///     }
    /// }
    ///
    /// let mut park = ThreadPark::new();
    /// let counted = Arc::new(Counted(park.waker(), AtomicU32::new(0)));
    /// Waker::from(counted.clone()).wake();
    /// park.park();
    /// assert_eq!(counted.1.load(Relaxed), 1);
    /// ```
    fn waker(&self) -> Waker;
}

/// A borrowed or boxed parker is one, too: a `Box<dyn Park>` stands for a parker of any type.
macro_rules! pointer {
    ($pointer:ty) => {
        impl<P: Park + ?Sized> Park for $pointer {
            fn park(&mut self) {
                (**self).park();
            }

            fn park_timeout(&mut self, limit: Duration) {
                (**self).park_timeout(limit);
            }

            fn poll(&mut self, max: usize) {
                (**self).poll(max);
            }

            fn has_events(&self) -> bool {
                (**self).has_events()
            }

            fn deliver(&mut self) {
                (**self).deliver();
            }

            fn waker(&self) -> Waker {
                (**self).waker()
            }
        }
    };
}

pointer!(&mut P);
pointer!(Box<P>);
