//! Fibers, and the trait of a simulator that runs them.
use super::{Subject, locals::Locals};
use std::{
    any::Any,
    cell::Cell,
    io,
    panic::{Location, PanicHookInfo},
    ptr,
    sync::{
        Arc, Weak,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
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
    /// For news of the file with this number, in a call of the simulated system.
    System(u64),
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
    /// Switches to another fiber once in `times`, perhaps, without a lapse of time.
    fn preempt(&self, times: u64);
    /// Waits. Returns false if the time ran out.
    fn wait(
        &self,
        fiber: &Fiber,
        on: Wait,
        limit: Option<Duration>,
        at: &'static Location<'static>,
    ) -> bool;
    /// Waits as `wait` does, and notifies all fibers that wait for `unlocked` once this one waits.
    /// No other fiber runs between.
    fn unlock_and_wait(
        &self,
        fiber: &Fiber,
        unlocked: Wait,
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
    /// Notes that a panic begins in this fiber. Returns whether its message is to be printed.
    fn panic_begins(&self, fiber: &Fiber, message: &str, place: Option<String>) -> bool;
    /// Notes that a panic has ended the main function of this fiber's thread.
    fn panic_ends_thread(&self, fiber: &Fiber, message: &str);
    /// Records an event.
    fn event(&self, fiber: &Fiber, kind: &'static str, task: usize, number: u64);
    /// See [`allocated`](super::allocated).
    fn allocated(&self, task: usize);
    /// See [`freed`](super::freed).
    fn freed(&self, task: usize);
    /// See [`name_of`](super::name_of).
    fn name_of(&self, task: usize) -> u64;
    /// See [`notes_holders`](super::notes_holders).
    fn notes_holders(&self, set: bool) -> bool;
    /// See [`watch`](super::watch).
    fn watch(&self, subject: Weak<dyn Subject>);
}

/// One run of a program by a simulator. Its clones are equal.
#[derive(Clone, Debug)]
pub struct Run(Arc<RunState>);

#[derive(Debug)]
struct RunState {
    number: u64,
    is_over: AtomicBool,
}

impl Run {
    /// Begins a run.
    #[expect(clippy::new_without_default, reason = "no run is like another")]
    pub fn new() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(Arc::new(RunState {
            // Ordering: Relaxed, as it is only a number.
            number: LAST.fetch_add(1, Relaxed) + 1,
            is_over: AtomicBool::new(false),
        }))
    }

    /// Ends the run: no fiber of it runs any more.
    pub fn end(&self) {
        // Ordering: Release, read by `is_over`.
        self.0.is_over.store(true, Release);
    }

    pub(crate) fn is_over(&self) -> bool {
        // Ordering: Acquire, of the store in `end`.
        self.0.is_over.load(Acquire)
    }

    pub(crate) fn number(&self) -> u64 {
        self.0.number
    }
}

/// A simulated thread.
pub struct Fiber {
    host: *const dyn Host,
    run: Run,
    id: u64,
    name: Option<Arc<str>>,
    locals: Locals,
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
    // SAFETY: the fiber is current, so the host exists by the contract of `new`.
    Some(f(unsafe { &*fiber.host }, fiber))
}

/// Runs `f` with the thread-locals of the current fiber, if this thread runs a fiber.
#[inline]
pub(super) fn with_locals<R>(f: impl FnOnce(&Locals) -> R) -> Option<R> {
    with_host(|_, fiber| f(&fiber.locals))
}

/// Keeps this thread busy for this time, or puts a thread that is not simulated to sleep.
#[track_caller]
pub fn busy(time: Duration) {
    let at = Location::caller();
    if with_host(|host, fiber| host.wait(fiber, Wait::Busy, Some(time), at)).is_none() {
        std::thread::sleep(time);
    }
}

/// Returns the virtual time since the simulation of this thread began, if it is simulated.
pub fn since_epoch() -> Option<Duration> {
    with_host(|host, _| host.now().saturating_duration_since(host.epoch()))
}

/// Tells the simulator of this thread, if there is one, of a panic that begins: a part of the
/// simulator's panic hook. Returns whether the message is to be printed.
pub fn note_panic(info: &PanicHookInfo<'_>) -> bool {
    let note = |host: &dyn Host, fiber: &Fiber| {
        let place = info.location().map(ToString::to_string);
        host.panic_begins(fiber, message_of(info.payload()), place)
    };
    with_host(note).unwrap_or(true)
}

/// Tells the simulator of this thread that a panic has ended the thread's main function.
pub fn end_by_panic(payload: &(dyn Any + Send)) {
    with_host(|host, fiber| host.panic_ends_thread(fiber, message_of(payload)));
}

/// Returns the message of a panic.
fn message_of(payload: &(dyn Any + Send)) -> &str {
    let literal = || payload.downcast_ref::<&str>().copied();
    let message = payload.downcast_ref::<String>().map(String::as_str);
    message.or_else(literal).unwrap_or("no message")
}

impl Fiber {
    /// Makes a fiber of this run.
    ///
    /// # Safety
    /// The host exists whenever the fiber is the current one of a thread.
    pub unsafe fn new(host: *const dyn Host, run: Run, id: u64, name: Option<Arc<str>>) -> Self {
        Self {
            host,
            run,
            id,
            name,
            locals: Locals::default(),
        }
    }

    /// Returns the run.
    pub(crate) fn run(&self) -> &Run {
        &self.run
    }

    /// Returns the thread's id, from 1.
    #[inline]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the thread's name.
    #[inline]
    pub fn name(&self) -> Option<&Arc<str>> {
        self.name.as_ref()
    }

    /// Makes this fiber, or none, the current one of this thread. Returns the one before.
    ///
    /// # Safety
    /// The pointer is null, or the fiber exists until another one is made current, and this
    /// thread runs on the fiber's stack until then.
    pub unsafe fn set_current(fiber: *const Self) -> *const Self {
        CURRENT.replace(fiber)
    }

    /// Drops the thread-locals of this fiber: its thread ends.
    ///
    /// # Safety
    /// This fiber is the current one, and no call of [`LocalKey::with`](super::LocalKey::with) is
    /// below this one on its stack: such a call has a reference to a value.
    pub unsafe fn end(&self) {
        // SAFETY: a value of this fiber is only used in such calls.
        unsafe { self.locals.drop_all() };
    }
}
