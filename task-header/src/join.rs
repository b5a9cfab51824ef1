//! The ends that wait for a task or abort it.
//!
//! The join waker's slot goes by rule 7 of [`state`](crate::state): the handle writes it while
//! `JOIN_WAKER` is clear, sets the bit, and must clear the bit to write again. Where the bit can't
//! be changed any more the task is complete and the output is there.
//!
//! While the bit is set the slot is read alone: by the handle, to see whose waker it is, and by the completion, which moves the waker out and
//! leaves the slot as it is. A waker that equals the slot's is the same one, even where the task completes in this moment: it was there
//! before the bit was seen without `COMPLETE`, and until `COMPLETE` nothing else can have the address of what the slot's waker keeps.
use crate::{
    cell::{self, Header, Output, TaskPtr, WakeKind, header, join_waker, vtable},
    complete::dealloc,
    error::JoinError,
    panics,
    state::{AlreadyComplete, Duty, LeaveJoin},
    wake::{abort, fulfil},
};
use core::{
    fmt,
    future::Future,
    marker::PhantomData,
    mem::{ManuallyDrop, replace},
    panic::{RefUnwindSafe, UnwindSafe},
    pin::Pin,
    ptr,
    ptr::NonNull,
    task::{Context, Poll, RawWakerVTable, Waker},
};

/// Waits for a task: a future of its output.
///
/// Dropping it detaches the task, which goes on; its output is then dropped where it completes.
/// A poll of an unfinished task costs one read-modify-write, three when the waker changes, and
/// none when the same waker polls again. Drop costs one, two with a waker registered. With the feature `coop-budget` the poll that gives the output is an
/// operation of the budget around it, and waits for the next if that is used up.
///
/// One word, so that it is moved in a register.
///
/// ```
/// use std::{future::Future, pin::Pin, task::{Context, Poll, Waker}};
/// use task_header::{Builder, JoinHandle};
///
/// let builder = Builder::new().name("answer").here().metadata(7_u32);
/// let (task, mut join): (_, JoinHandle<u32>) = builder.spawn_with(async { 42 }, |task| drop(task.run()));
/// assert_eq!(join.id(), task.id());
/// assert_eq!(join.name(), Some("answer"));
/// assert_eq!(join.location().unwrap().file(), file!());
/// assert_eq!(join.metadata(), Some(&7_u32));
///
/// let abort = join.abort_handle();
/// assert!(!join.is_finished());
/// task.run();
/// assert!(join.is_finished());
/// abort.abort(); // Too late: the output is there.
/// let mut cx = Context::from_waker(Waker::noop());
/// let Poll::Ready(Ok(42)) = Pin::new(&mut join).poll(&mut cx) else { panic!() };
/// ```
pub struct JoinHandle<T> {
    /// The task's, with [`TAKEN`] set once the output was given.
    word: NonNull<Header>,
    output: PhantomData<T>,
}

// A panic that is caught around a use of it leaves it as it was: what a poll changes is done by one exchange.
impl<T> UnwindSafe for JoinHandle<T> {}
impl<T> RefUnwindSafe for JoinHandle<T> {}

/// Below the alignment of a header.
const TAKEN: usize = 1;
const _: () = assert!(align_of::<Header>() > TAKEN);

// SAFETY: what it reaches across threads is the state word, its own waker slot, and the output,
// which moves to this thread if `T: Send`.
unsafe impl<T: Send> Send for JoinHandle<T> {}

// SAFETY: a shared handle reaches only the state word.
unsafe impl<T: Send> Sync for JoinHandle<T> {}

impl<T> Unpin for JoinHandle<T> {}

impl<T> JoinHandle<T> {
    /// # Safety
    /// The task was made with `JOIN_INTEREST`, which this takes over, and its output is a `T`.
    pub(crate) unsafe fn from_task(task: TaskPtr) -> Self {
        Self {
            word: task,
            output: PhantomData,
        }
    }

    #[inline]
    fn task(&self) -> TaskPtr {
        let task = self.word.as_ptr().map_addr(|word| word & !TAKEN);
        // SAFETY: the task's own address.
        unsafe { NonNull::new_unchecked(task) }
    }

    #[inline]
    fn header(&self) -> &Header {
        // SAFETY: JOIN_INTEREST keeps the task alive.
        unsafe { header(self.task()) }
    }

    /// Asks for the task to be dropped: at the end of the poll that is under way, or at its next
    /// run. One read-modify-write. A task that is complete already keeps its output, and so does
    /// one whose poll completes it.
    ///
    /// ```
    /// use std::{future::{Future, pending}, pin::Pin, task::{Context, Poll, Waker}};
    ///
    /// let builder = task_header::Builder::new();
    /// let (task, mut join) = builder.spawn_with(pending::<()>(), |task| drop(task.run()));
    /// task.run(); // It waits.
    /// join.abort(); // It is scheduled a last time, which drops the future.
    /// let mut cx = Context::from_waker(Waker::noop());
    /// let Poll::Ready(Err(error)) = Pin::new(&mut join).poll(&mut cx) else { panic!() };
    /// assert!(error.is_cancelled());
    /// ```
    pub fn abort(&self) {
        // SAFETY: JOIN_INTEREST keeps the task alive.
        unsafe { abort(self.task()) };
    }

    /// A handle that can abort the task but not wait for it. One read-modify-write.
    pub fn abort_handle(&self) -> AbortHandle {
        // SAFETY: JOIN_INTEREST keeps the task alive.
        unsafe { AbortHandle::of(self.task()) }
    }

    /// A waker of the task that is waited for, to have it polled. One read-modify-write.
    ///
    /// ```
    /// use std::sync::mpsc;
    ///
    /// let (queue, tasks) = mpsc::channel();
    /// let (task, join) = task_header::spawn(std::future::pending::<()>(), move |task| queue.send(task).unwrap());
    /// drop(task.run());
    /// join.waker().wake();
    /// assert_eq!(tasks.recv().unwrap().id(), join.id());
    /// ```
    pub fn waker(&self) -> Waker {
        // SAFETY: JOIN_INTEREST keeps the task alive.
        unsafe { cell::waker(self.task()) }
    }

    /// Turns the handle into a pointer, which keeps the task joined. No read-modify-write.
    ///
    /// The pointer's lowest bit is set if the handle has given its output; the next, below the
    /// alignment of a `usize`, are free for tags. Its provenance is the whole task's, as that of
    /// [`Notified::into_raw`](crate::Notified::into_raw). It leaks the task, and its output, if it
    /// is not turned back.
    ///
    /// ```
    /// use task_header::JoinHandle;
    ///
    /// let (task, join) = task_header::spawn(async { 7 }, drop);
    /// let raw = join.into_raw();
    /// drop(task.run());
    /// // SAFETY: it came from `into_raw` of such a handle, and is used once.
    /// let join = unsafe { JoinHandle::<i32>::from_raw(raw) };
    /// assert!(join.is_finished());
    /// ```
    #[must_use = "the task leaks"]
    #[inline]
    pub fn into_raw(self) -> NonNull<()> {
        ManuallyDrop::new(self).word.cast()
    }

    /// Turns a pointer of [`into_raw`](Self::into_raw) back. No read-modify-write.
    ///
    /// ```
    /// use task_header::JoinHandle;
    ///
    /// let (task, join) = task_header::spawn(async { 7 }, drop);
    /// let (id, raw) = (join.id(), join.into_raw());
    /// // SAFETY: it came from `into_raw` of a handle of this type, and is used once.
    /// let join = unsafe { JoinHandle::<i32>::from_raw(raw) };
    /// assert_eq!((join.id(), task.id()), (id, id));
    /// ```
    ///
    /// # Safety
    /// `raw` came from `into_raw` of a `JoinHandle` of this very `T`, and was not turned back
    /// since. If `T` is not [`Send`], this is the thread that turned the handle into `raw`.
    #[inline]
    pub unsafe fn from_raw(raw: NonNull<()>) -> Self {
        Self {
            word: raw.cast(),
            output: PhantomData,
        }
    }

    /// Whether the task has completed, panicked or been dropped. A load.
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.header().state.is_complete()
    }

    cell::accessors!(|this| this.task());

    #[inline]
    #[track_caller]
    fn take(&mut self) -> Result<T, JoinError> {
        assert!(
            !self.is_terminated(),
            "a join handle was polled after it gave its output"
        );
        let task = self.task();
        // SAFETY: inside the header.
        self.word = unsafe { task.byte_add(TAKEN) };
        // SAFETY: JOIN_INTEREST keeps the task alive.
        let vtable = unsafe { vtable(task) };
        // SAFETY: complete, so the output is this handle's.
        let output = unsafe { (vtable.output)(task) }.cast::<Output<T>>();
        // SAFETY: there, of this type, and taken once.
        unsafe { output.read() }
    }

    /// Leaves a task whose output, now or later, nobody takes.
    #[inline(never)]
    fn detach(&self) {
        let duty = loop {
            match self.header().state.leave_join() {
                LeaveJoin::Left(duty) => break duty,
                LeaveJoin::DropWaker => self.drop_waker(self.replace_waker(None)),
                LeaveJoin::DropOutput => {
                    let drop_output = || {
                        // SAFETY: JOIN_INTEREST keeps the task alive.
                        let vtable = unsafe { vtable(self.task()) };
                        // SAFETY: complete, so the output is this handle's, which has not taken it.
                        unsafe { (vtable.drop_output)(self.task()) };
                    };
                    return panics::contain_then(drop_output, || self.release());
                }
            }
        };
        // SAFETY: the duty is this handle's, which goes.
        unsafe { fulfil(self.task(), duty, WakeKind::Orphan) };
    }

    /// Leaves a task that is complete, its output gone.
    fn release(&self) {
        if let Duty::Dealloc = self.header().state.release_join() {
            // SAFETY: no reference is left.
            unsafe { dealloc(self.task()) };
        }
    }

    /// Writes the slot while `JOIN_WAKER` is clear, and gives back what was there.
    fn replace_waker(&self, waker: Option<Waker>) -> Option<Waker> {
        // SAFETY: JOIN_INTEREST keeps the task alive.
        let slot = unsafe { join_waker(self.task()) };
        slot.with_mut(|slot| {
            // SAFETY: JOIN_WAKER is clear, so the slot is this handle's (rule 7), which is borrowed mutably.
            let slot = unsafe { &mut *slot };
            ManuallyDrop::into_inner(replace(slot, ManuallyDrop::new(waker)))
        })
    }

    #[inline(never)]
    fn register(&mut self, waker: &Waker) -> Result<(), AlreadyComplete> {
        if self.header().state.has_join_waker()? {
            if self.is_registered(waker) {
                return Ok(());
            }
            self.header().state.unset_join_waker()?;
        }
        // Its clone may panic: the slot is whole until then.
        self.leave_waker(waker.clone())
    }

    /// `JOIN_WAKER` is clear. Contains a panic of the old waker's drop.
    fn leave_waker(&mut self, waker: Waker) -> Result<(), AlreadyComplete> {
        let old = self.replace_waker(Some(waker));
        let registered = self.header().state.set_join_waker();
        self.drop_waker(old);
        if registered.is_err() {
            self.drop_waker(self.replace_waker(None));
        }
        registered
    }

    /// Contains a panic of it.
    fn drop_waker(&self, waker: Option<Waker>) {
        if let Some(waker) = waker {
            // SAFETY: JOIN_INTEREST keeps the task alive.
            unsafe { panics::contain_in(self.task(), || drop(waker)) };
        }
    }

    /// Whether the slot's waker wakes the same as `waker`. `JOIN_WAKER` is set.
    fn is_registered(&self, waker: &Waker) -> bool {
        // SAFETY: JOIN_INTEREST keeps the task alive.
        let slot = unsafe { join_waker(self.task()) };
        slot.with(|slot| {
            // SAFETY: while the bit is set the slot is read alone.
            let slot = unsafe { &*slot };
            // The bits of the waker alone: it may have been moved out.
            slot.as_ref()
                .is_some_and(|slot| parts(slot) == parts(waker))
        })
    }
}

/// What a set of handles needs of each.
impl<T> JoinHandle<T> {
    /// Has `waker` woken when the task completes, in place of the waker of an earlier poll.
    ///
    /// False if the task is complete: then nothing wakes `waker`, which is dropped. A poll does the
    /// same with a clone of its context's waker, unless that is registered already. One
    /// read-modify-write, two where it replaces a waker.
    ///
    /// ```
    /// use std::{sync::{Arc, atomic::{AtomicUsize, Ordering::Relaxed}}, task::{Wake, Waker}};
    ///
    /// #[derive(Default)]
    /// struct Count(AtomicUsize);
    ///
    /// impl Wake for Count {
    ///     fn wake(self: Arc<Self>) {
    ///         self.0.fetch_add(1, Relaxed);
    ///     }
    /// }
    ///
    /// let count = Arc::<Count>::default();
    /// let (task, mut join) = task_header::spawn(async { 7 }, drop);
    /// assert!(join.set_waker(Waker::from(count.clone())));
    /// drop(task.run());
    /// assert_eq!(count.0.load(Relaxed), 1);
    /// assert!(!join.set_waker(Waker::from(count.clone())));
    /// ```
    #[must_use = "nothing wakes the waker if the task is complete"]
    pub fn set_waker(&mut self, waker: Waker) -> bool {
        self.replace_registered(waker).is_ok()
    }

    fn replace_registered(&mut self, waker: Waker) -> Result<(), AlreadyComplete> {
        if self.header().state.has_join_waker()? {
            self.header().state.unset_join_waker()?;
        }
        self.leave_waker(waker)
    }

    /// Gives the output, if the task is complete and the handle has not given it yet. A load.
    ///
    /// It charges no budget.
    ///
    /// ```
    /// let (task, mut join) = task_header::spawn(async { 7 }, drop);
    /// assert!(join.try_join().is_none());
    /// drop(task.run());
    /// assert_eq!(join.try_join().unwrap().unwrap(), 7);
    /// assert!(join.try_join().is_none() && join.is_terminated());
    /// ```
    pub fn try_join(&mut self) -> Option<Result<T, JoinError>> {
        (!self.is_terminated() && self.is_finished()).then(|| self.take())
    }

    /// Whether the handle has given its output, so that a poll of it would panic. No atomic access.
    #[inline]
    pub fn is_terminated(&self) -> bool {
        self.word.addr().get() & TAKEN != 0
    }
}

/// What `will_wake` compares.
fn parts(waker: &Waker) -> (*const (), *const RawWakerVTable) {
    (waker.data(), ptr::from_ref(waker.vtable()))
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    /// # Panics
    /// When polled again after it gave its output.
    #[inline]
    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.is_finished() && self.register(cx.waker()).is_ok() {
            return Poll::Pending;
        }
        #[cfg(feature = "coop-budget")]
        core::task::ready!(coop_budget::poll_proceed(cx)).made_progress();
        Poll::Ready(self.take())
    }
}

impl<T> Drop for JoinHandle<T> {
    #[inline]
    fn drop(&mut self) {
        if self.is_terminated() {
            self.release();
        } else {
            self.detach();
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JoinHandle").field(&self.id()).finish()
    }
}

/// Aborts a task, without waiting for it. Counted: clone and drop cost one read-modify-write each.
///
/// ```
/// use task_header::{AbortHandle, Builder};
///
/// let builder = Builder::new().name("reader").here().metadata(7_u32);
/// let (task, join) = builder.spawn_with(std::future::pending::<()>(), |task| drop(task.run()));
/// let abort: AbortHandle = join.abort_handle();
/// drop(join); // The task goes on.
/// assert_eq!(abort.id(), task.id());
/// assert_eq!((abort.name(), abort.metadata()), (Some("reader"), Some(&7_u32)));
/// assert_eq!(abort.location().unwrap().file(), file!());
///
/// task.run();
/// assert!(!abort.is_finished());
/// abort.abort();
/// assert!(abort.is_finished());
/// ```
pub struct AbortHandle {
    task: TaskPtr,
}

// SAFETY: it reaches only the state word, and by an abort the scheduler, which is `Send + Sync`.
unsafe impl Send for AbortHandle {}

// SAFETY: as above.
unsafe impl Sync for AbortHandle {}

// As a join handle.
impl UnwindSafe for AbortHandle {}
impl RefUnwindSafe for AbortHandle {}

impl AbortHandle {
    /// # Safety
    /// The caller has a reference to the task.
    pub(crate) unsafe fn of(task: TaskPtr) -> Self {
        // SAFETY: passed on.
        unsafe { header(task) }.state.ref_inc();
        Self { task }
    }

    /// Asks for the task to be dropped, as [`JoinHandle::abort`]. One read-modify-write.
    pub fn abort(&self) {
        // SAFETY: the count keeps the task alive.
        unsafe { abort(self.task) };
    }

    /// A waker of the task, to have it polled. One read-modify-write.
    ///
    /// ```
    /// use std::sync::mpsc;
    ///
    /// let (queue, tasks) = mpsc::channel();
    /// let (task, join) = task_header::spawn(std::future::pending::<()>(), move |task| queue.send(task).unwrap());
    /// let abort = join.abort_handle();
    /// drop(task.run());
    /// abort.waker().wake();
    /// assert_eq!(tasks.recv().unwrap().id(), abort.id());
    /// ```
    pub fn waker(&self) -> Waker {
        self.clone().into_waker()
    }

    /// Turns the handle into a waker of its task. No read-modify-write.
    ///
    /// ```
    /// use std::sync::mpsc;
    ///
    /// let (queue, tasks) = mpsc::channel();
    /// let (task, join) = task_header::spawn(std::future::pending::<()>(), move |task| queue.send(task).unwrap());
    /// let waker = join.abort_handle().into_waker();
    /// assert!(waker.will_wake(&task.waker()) && waker.will_wake(&join.waker()));
    /// drop(task.run());
    /// waker.wake();
    /// assert_eq!(tasks.recv().unwrap().id(), join.id());
    /// ```
    pub fn into_waker(self) -> Waker {
        let task = ManuallyDrop::new(self).task;
        // SAFETY: the handle's count is the waker's from now on.
        unsafe { waker_vtable::waker(task) }
    }

    /// Turns the handle into a pointer, as [`Notified::into_raw`](crate::Notified::into_raw). No
    /// read-modify-write. It leaks the task if it is not turned back.
    ///
    /// ```
    /// use task_header::AbortHandle;
    ///
    /// let (task, join) = task_header::spawn(std::future::pending::<()>(), drop);
    /// let raw = join.abort_handle().into_raw();
    /// // SAFETY: it came from `into_raw`, and is used once.
    /// let abort = unsafe { AbortHandle::from_raw(raw) };
    /// abort.abort();
    /// drop(task.run());
    /// assert!(join.is_finished());
    /// ```
    #[must_use = "the task leaks"]
    pub fn into_raw(self) -> NonNull<()> {
        ManuallyDrop::new(self).task.cast()
    }

    /// Turns a pointer of [`into_raw`](Self::into_raw) back. No read-modify-write.
    ///
    /// ```
    /// use task_header::AbortHandle;
    ///
    /// let (task, join) = task_header::spawn(async { 7 }, drop);
    /// let raw = join.abort_handle().into_raw();
    /// // SAFETY: it came from `into_raw`, and is used once.
    /// let abort = unsafe { AbortHandle::from_raw(raw) };
    /// drop(task.run());
    /// assert!(abort.is_finished());
    /// ```
    ///
    /// # Safety
    /// `raw` came from `into_raw` of an `AbortHandle`, and was not turned back since.
    pub unsafe fn from_raw(raw: NonNull<()>) -> Self {
        Self { task: raw.cast() }
    }

    /// Whether the task has completed, panicked or been dropped. A load.
    pub fn is_finished(&self) -> bool {
        // SAFETY: the count keeps the task alive.
        unsafe { header(self.task) }.state.is_complete()
    }

    cell::accessors!(|this| this.task);
}

impl Clone for AbortHandle {
    fn clone(&self) -> Self {
        // SAFETY: the count keeps the task alive.
        unsafe { Self::of(self.task) }
    }
}

impl Drop for AbortHandle {
    fn drop(&mut self) {
        // SAFETY: the count keeps the task alive until this transition.
        let duty = unsafe { header(self.task) }.state.ref_dec();
        // SAFETY: the duty is this drop's.
        unsafe { fulfil(self.task, duty, WakeKind::Orphan) };
    }
}

impl fmt::Debug for AbortHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AbortHandle").field(&self.id()).finish()
    }
}
