//! One core without an operating system, in the shape of a bare-metal executor.
//!
//! Nothing is allocated: the program pins the futures in its own stack frames, tasks and queues are
//! statics, and a waker is the address of a task. This file uses only `core` and the `no_std` API
//! of the workspace's crates. Interrupts wake tasks: a wake sets a bit and sends an event. A wake
//! needs an atomic read-modify-write, which some cores lack (thumbv6m).
//!
//! 1. A task's bit is set from its wake until the core takes all bits, right before it polls the
//!    woken tasks. A wake during a task's poll sets the task's bit again.
//! 2. The core waits for an event only after it has found no bit. An event that comes after that
//!    look is remembered, and ends the wait at once. If the core waits by `wfe`, the hardware
//!    remembers the event. If it waits in a parker, the parker's token does.
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
use worker_idle::park::Park;

/// A core: the bits of the woken tasks, and the event that ends the core's wait. The value belongs
/// in a static.
pub struct Core<E> {
    ready: AtomicU32,
    runs: AtomicBool,
    event: E,
}

/// The target of a waker: a task's core and its bit. The value belongs in a static.
pub struct Task<E: 'static> {
    core: &'static Core<E>,
    bit: u32,
}

impl<E> Clone for Task<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Task<E> {}

impl<E: WakeRef> WakeRef for Task<E> {
    fn wake(&self) {
        // Ordering: Release pairs with both swaps of `ready` in `run`: the poll sees what happened
        // before the wake.
        self.core.ready.fetch_or(self.bit, Release);
        self.core.event.wake();
    }
}

impl<E: WakeRef> Task<E> {
    /// Makes the tasks of a core, up to 32.
    ///
    /// # Panics
    /// When `N` is above 32. In a static's initialiser this panic is a compile error.
    pub const fn all<const N: usize>(core: &'static Core<E>) -> [Self; N] {
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

impl<E: WakeRef> Core<E> {
    /// Makes a core with no task woken. After a call of `event.wake()` the core's wait must end.
    /// The call executes `sev`, or does nothing if each interrupt ends the wait by itself.
    pub const fn new(event: E) -> Self {
        Self {
            ready: AtomicU32::new(0),
            runs: AtomicBool::new(false),
            event,
        }
    }

    /// Polls each future once, and then whenever its task was woken, until all futures are done.
    /// `park` waits for an event, as `wfe` does.
    ///
    /// ```
    /// use adopt::bare::{Core, Task};
    /// use std::pin::pin;
    /// use worker_idle::park::{Park, ThreadPark};
    ///
    /// struct Sev; // There are no interrupts here.
    /// impl waker_vtable::WakeRef for Sev {
    ///     fn wake(&self) {}
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
    /// When the core runs already, when the tasks belong to another core, when a task is in the
    /// array twice, or when a future panics.
    pub fn run<const N: usize>(
        &'static self,
        tasks: &'static [Task<E>; N],
        mut futures: [Pin<&mut dyn Future<Output = ()>>; N],
        park: &mut impl Park,
    ) {
        assert!(tasks.iter().all(|task| core::ptr::eq(task.core, self)));
        let mut live = tasks.iter().fold(0_u32, |bits, task| bits | task.bit);
        // If the array had a task twice, the end of one of the two futures would clear the bit of
        // the other, too.
        assert!(live.count_ones() as usize == N, "a task is there twice");
        // Ordering: Acquire pairs with the Release store of `Running`, so that this run sees what
        // the previous run did.
        assert!(!self.runs.swap(true, Acquire), "the core runs already");
        let _running = Running(&self.runs);
        let wakers: [Waker; N] = tasks.each_ref().map(from_static);
        // Ordering: Acquire pairs with `wake`: a wake before this run may have left a bit.
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
        // Ordering: Release pairs with the Acquire swap of `runs` in `run`.
        self.0.store(false, Release);
    }
}

/// A queue from an interrupt to a task, for up to `N` items. It belongs in a static.
///
/// The interrupt is the ring's owner, so its push is a store and never waits; a push to a full ring
/// is refused. The task is the only thief.
pub struct Receiver<T, const N: usize> {
    ring: Inline<T, N>,
    reader: WakerCell,
}

/// The interrupt's end of a [`Receiver`]. Keep this value: its drop also drops the items that the
/// task has not taken.
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
    /// Makes an empty queue. `N` is a power of two.
    #[expect(clippy::new_without_default, reason = "it belongs in a static")]
    pub const fn new() -> Self {
        Self {
            ring: Inline::new(),
            reader: WakerCell::new(),
        }
    }

    /// Returns both ends to the first caller, and `None` to later ones.
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
    /// Pushes an item and wakes the task.
    ///
    /// # Errors
    /// Returns the item when the ring holds `N` items that the task has not taken.
    pub fn send(&mut self, item: T) -> Result<(), Full<T>> {
        self.ring.push(item)?;
        self.reader.wake();
        Ok(())
    }
}

impl<T: Send> Reader<T> {
    /// Waits for an item, and returns the oldest.
    pub async fn next(&mut self) -> T {
        poll_fn(|cx| {
            if let Some(item) = self.take() {
                return Poll::Ready(item);
            }
            self.reader.register(cx.waker());
            // The interrupt may have pushed before the waker was registered, so look once more.
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

impl<E> fmt::Debug for Core<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").finish_non_exhaustive()
    }
}
