//! One core without an operating system, in the shape of a bare-metal executor.
//!
//! Nothing is allocated: futures are pinned where the program has them, tasks and queues are
//! statics, and a waker is the address of one of these. This file names `core` and the parts'
//! `no_std` halves alone. Interrupts wake: a wake sets a bit and sends an event. That takes atomic
//! read-modify-writes, which some cores lack (thumbv6m).
//!
//! 1. The bit of a task is set from its wake until the core takes the bits, right before the poll.
//!    A wake during the poll sets it again.
//! 2. The core waits for an event only when it has found no bit. An event that comes after that
//!    look ends the wait at once: it is kept, as by `wfe` and as by a parker's token.
use core::{
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    sync::atomic::{
        AtomicBool, AtomicU32,
        Ordering::{Acquire, Release},
    },
    task::{Context, Poll, Waker},
};
use queue_spmc::ring::{Borrowed, Full, Inline, Steal, Stealer, Worker};
use waker_vtable::{WakeRef, WakerCell, from_static};
use worker_idle::park::{Park, Unpark};

/// Which tasks are to be polled, and how the core is sent an event. It belongs in a static.
pub struct Core<U> {
    ready: AtomicU32,
    runs: AtomicBool,
    event: U,
}

/// What a task's waker points to. It belongs in a static.
pub struct Task<U: 'static> {
    core: &'static Core<U>,
    bit: u32,
}

impl<U> Clone for Task<U> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<U> Copy for Task<U> {}

impl<U: Unpark> WakeRef for Task<U> {
    fn wake(&self) {
        // Ordering: Release pairs with both swaps in `run`: the poll sees what was done before.
        self.core.ready.fetch_or(self.bit, Release);
        self.core.event.unpark();
    }
}

impl<U: Unpark> Task<U> {
    /// The tasks of a core, up to 32.
    ///
    /// # Panics
    /// Where there are more; in a static's initialiser that is an error of the compiler.
    pub const fn all<const N: usize>(core: &'static Core<U>) -> [Self; N] {
        assert!(N <= 32, "a core has up to 32 tasks");
        let mut tasks = [Self { core, bit: 0 }; N];
        let mut n = 0;
        while n < N {
            tasks[n].bit = 1 << n;
            n += 1;
        }
        tasks
    }
}

impl<U: Unpark> Core<U> {
    /// A core with nothing to do. `event` ends its wait: `sev`, or nothing where an interrupt does.
    pub const fn new(event: U) -> Self {
        Self {
            ready: AtomicU32::new(0),
            runs: AtomicBool::new(false),
            event,
        }
    }

    /// Polls each future once, and then whenever its task was woken, until all are done. `park`
    /// waits for an event: `wfe`.
    ///
    /// ```
    /// use adopt::bare::{Core, Task};
    /// use std::pin::pin;
    /// use worker_idle::park::{Park, ThreadPark, Unpark};
    ///
    /// #[derive(Clone)]
    /// struct Sev; // There are no interrupts here.
    /// impl Unpark for Sev {
    ///     fn unpark(&self) {}
    /// }
    ///
    /// static CORE: Core<Sev> = Core::new(Sev);
    /// static TASKS: [Task<Sev>; 1] = Task::all(&CORE);
    ///
    /// let blink = pin!(async { futures_lite::future::yield_now().await });
    /// CORE.run(&TASKS, [blink], &mut ThreadPark::new());
    /// ```
    ///
    /// # Panics
    /// When it runs already, when the tasks are another core's, and when a future does.
    pub fn run<const N: usize>(
        &'static self,
        tasks: &'static [Task<U>; N],
        mut futures: [Pin<&mut dyn Future<Output = ()>>; N],
        park: &mut impl Park,
    ) {
        assert!(tasks.iter().all(|task| core::ptr::eq(task.core, self)));
        // Ordering: Acquire and Release of `Running`: one run comes after the other.
        assert!(!self.runs.swap(true, Acquire), "the core runs already");
        let _running = Running(&self.runs);
        let wakers: [Waker; N] = tasks.each_ref().map(from_static);
        let mut live = tasks.iter().fold(0, |bits, task| bits | task.bit);
        // Ordering: Acquire pairs with `wake`: a bit may be left of a wake before this run.
        self.ready.swap(live, Acquire);
        while live != 0 {
            // Ordering: Acquire pairs with `wake`.
            let ready = self.ready.swap(0, Acquire) & live;
            if ready == 0 {
                park.park();
            }
            for (n, future) in futures.iter_mut().enumerate() {
                let bit = tasks[n].bit;
                let mut cx = Context::from_waker(&wakers[n]);
                if ready & bit != 0 && future.as_mut().poll(&mut cx).is_ready() {
                    live &= !bit;
                }
            }
        }
    }
}

struct Running<'a>(&'a AtomicBool);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // Ordering: Release pairs with the swap in `run`.
        self.0.store(false, Release);
    }
}

/// What an interrupt receives for a task. Holds up to `N` items; a push to a full ring is refused.
/// It belongs in a static.
///
/// The interrupt is the ring's owner, so that its push is a store, and waits for nobody; the task
/// is the one thief.
pub struct Receiver<T, const N: usize> {
    ring: Inline<T, N>,
    reader: WakerCell,
}

/// The interrupt's end of a [`Receiver`]. Dropped, it drops what the task has not taken: keep it.
pub struct Sender<T: Send + 'static> {
    ring: Worker<T, Borrowed<'static, T>>,
    reader: &'static WakerCell,
}

/// The task's end of a [`Receiver`].
pub struct Reader<T: Send + 'static> {
    ring: Stealer<T, Borrowed<'static, T>>,
    reader: &'static WakerCell,
}

impl<T: Send, const N: usize> Receiver<T, N> {
    /// An empty one. `N` is a power of two.
    #[expect(clippy::new_without_default, reason = "it belongs in a static")]
    pub const fn new() -> Self {
        Self {
            ring: Inline::new(),
            reader: WakerCell::new(),
        }
    }

    /// Both ends, to the first who asks.
    pub fn split(&'static self) -> Option<(Sender<T>, Reader<T>)> {
        let ring = self.ring.take()?;
        let stealer = ring.stealer();
        let reader = &self.reader;
        let sender = Sender { ring, reader };
        Some((
            sender,
            Reader {
                ring: stealer,
                reader,
            },
        ))
    }
}

impl<T: Send> Sender<T> {
    /// Leaves an item for the task, and wakes it.
    ///
    /// # Errors
    /// Gives the item back when `N` are there that the task has not taken.
    pub fn send(&mut self, item: T) -> Result<(), Full<T>> {
        self.ring.push(item)?;
        self.reader.wake();
        Ok(())
    }
}

impl<T: Send> Reader<T> {
    /// The oldest item, once there is one.
    pub async fn next(&mut self) -> T {
        poll_fn(|cx| {
            if let Some(item) = self.take() {
                return Poll::Ready(item);
            }
            self.reader.register(cx.waker());
            // Once more: the interrupt may have come before the waker was there.
            self.take().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    fn take(&self) -> Option<T> {
        loop {
            match self.ring.steal() {
                Steal::Success { first, .. } => return Some(first),
                Steal::Empty => return None,
                Steal::Retry => core::hint::spin_loop(),
            }
        }
    }
}

impl<U> fmt::Debug for Core<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").finish_non_exhaustive()
    }
}
