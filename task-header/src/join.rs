//! The handles that wait for a task or abort it.
//!
//! A poll of a [`JoinHandle`] leaves a waker in the task, unless the task is complete: then the
//! poll takes the output. The completion wakes that waker. The drop of the handle takes the waker
//! back, or drops the output that nobody took, and gives up the handle's reference.
//!
//! The join waker's slot follows rule 7 of [`state`](crate::state): the handle writes it while
//! `JOIN_WAKER` is clear, then sets the bit, and must clear the bit to write again. If the handle
//! finds `COMPLETE` instead, the output is there.
//!
//! While the bit is set, the slot is only read: by the handle, to compare wakers, and by the
//! completion, which moves the waker out and leaves the bytes as they are. If the bytes equal those
//! of the caller's waker, both are one waker, even if the task completes at this moment. The
//! handle saw the bit without `COMPLETE`, so its waker was in the slot. Until `COMPLETE` that waker
//! keeps its target alive, so no other target has the same address.
use crate::{
    cell::{self, Header, Output, TaskPtr, WakeKind},
    complete::{dealloc, join_waker},
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
/// Dropping the handle detaches the task: it goes on, and its output is dropped where it completes.
/// The first poll of an unfinished task costs one read-modify-write. A later poll costs none with
/// the same waker, and two with another one, besides the wakers' own clone and drop. The drop of
/// the handle costs one, or two if a waker is registered.
///
/// With the feature `coop-budget`, the poll that returns the output charges one operation to the
/// surrounding budget. If the budget is used up, the handle returns the output in a later poll.
///
/// The handle takes one word, so that it moves in a register.
///
/// ```
/// use std::{future::Future, pin::Pin, task::{Context, Poll, Waker}};
/// use task_header::{Builder, JoinHandle};
///
/// let builder = Builder::new().name("answer").here().metadata(7_u32);
/// let (task, mut join): (_, JoinHandle<u32>) =
///     builder.spawn_with(async { 42 }, |task| drop(task.run()));
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
    /// The task's address, with [`TAKEN`] set once the output was taken.
    word: NonNull<Header>,
    output: PhantomData<T>,
}

// A panic that is caught around a use of the handle leaves the handle as it was, since a poll makes
// its change in one exchange.
impl<T> UnwindSafe for JoinHandle<T> {}
impl<T> RefUnwindSafe for JoinHandle<T> {}

/// A tag bit, below the alignment of a header.
const TAKEN: usize = 1;
const _: () = assert!(align_of::<Header>() > TAKEN);

// SAFETY: on another thread, the handle reaches the state word, its own waker slot, and the output.
// The output may move to that thread because `T: Send`.
unsafe impl<T: Send> Send for JoinHandle<T> {}

// SAFETY: a shared handle reaches only the state word.
unsafe impl<T: Send> Sync for JoinHandle<T> {}

impl<T> Unpin for JoinHandle<T> {}

impl<T> JoinHandle<T> {
    /// # Safety
    /// The task was made with `JOIN_INTEREST`, which the handle takes over, and its output is a
    /// `T`.
    pub(crate) unsafe fn from_task(task: TaskPtr) -> Self {
        Self {
            word: task,
            output: PhantomData,
        }
    }

    #[inline]
    fn task(&self) -> TaskPtr {
        let task = self.word.as_ptr().map_addr(|word| word & !TAKEN);
        // SAFETY: this is the task's own address, which is not null.
        unsafe { NonNull::new_unchecked(task) }
    }

    #[inline]
    fn header(&self) -> &Header {
        // SAFETY: JOIN_INTEREST keeps the task alive.
        unsafe { self.task().as_ref() }
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    /// # Panics
    /// If the handle is polled again after it returned the output.
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

// The steps of a poll.
impl<T> JoinHandle<T> {
    /// Leaves a waker, unless it is registered already.
    #[inline(never)]
    fn register(&mut self, waker: &Waker) -> Result<(), AlreadyComplete> {
        if self.header().state.has_join_waker()? {
            if self.is_registered(waker) {
                self.note_wait();
                return Ok(());
            }
            self.header().state.unset_join_waker()?;
        }
        // The clone may panic; until it has succeeded, the slot stays as it was.
        self.leave_waker(waker.clone())
            .inspect(|()| self.note_wait())
    }

    /// Tells a watch what the handle waits for. Without a watch the call costs a load of a
    /// thread-local and a branch.
    #[inline]
    fn note_wait(&self) {
        #[cfg(feature = "coop-budget")]
        coop_budget::note_wait(|| coop_budget::WaitsOn::Task(self.id().into()));
    }

    /// Returns whether the waker in the slot equals `waker`. `JOIN_WAKER` is set.
    fn is_registered(&self, waker: &Waker) -> bool {
        // SAFETY: JOIN_INTEREST keeps the task alive.
        let slot = unsafe { join_waker(self.task()) };
        slot.with(|slot| {
            // SAFETY: while the bit is set, the slot is only read.
            let slot = unsafe { &*slot };
            // Compares the bits alone: the waker may have been moved out.
            slot.as_ref()
                .is_some_and(|slot| parts(slot) == parts(waker))
        })
    }

    /// Puts a waker into the slot and publishes it. `JOIN_WAKER` is clear. Contains a panic of the
    /// old waker's drop.
    fn leave_waker(&mut self, waker: Waker) -> Result<(), AlreadyComplete> {
        let old = self.replace_waker(Some(waker));
        let registered = self.header().state.set_join_waker();
        self.drop_waker(old);
        if registered.is_err() {
            self.drop_waker(self.replace_waker(None));
        }
        registered
    }

    /// Writes the slot, and returns the old waker. `JOIN_WAKER` is clear.
    fn replace_waker(&self, waker: Option<Waker>) -> Option<Waker> {
        // SAFETY: JOIN_INTEREST keeps the task alive.
        let slot = unsafe { join_waker(self.task()) };
        slot.with_mut(|slot| {
            // SAFETY: JOIN_WAKER is clear, so the slot belongs to this handle (rule 7), and this is
            // its only use of the slot.
            let slot = unsafe { &mut *slot };
            ManuallyDrop::into_inner(replace(slot, ManuallyDrop::new(waker)))
        })
    }

    /// Drops a waker and contains a panic of its drop.
    fn drop_waker(&self, waker: Option<Waker>) {
        if let Some(waker) = waker {
            // SAFETY: JOIN_INTEREST keeps the task alive.
            unsafe { panics::contain_in(self.task(), || drop(waker)) };
        }
    }

    /// Takes the output of a complete task.
    #[inline]
    #[track_caller]
    fn take(&mut self) -> Result<T, JoinError> {
        assert!(
            !self.is_terminated(),
            "a join handle was polled after it gave its output"
        );
        let task = self.task();
        // SAFETY: the tagged address lies inside the header.
        self.word = unsafe { task.byte_add(TAKEN) };
        // SAFETY: JOIN_INTEREST keeps the task alive.
        let vtable = unsafe { task.as_ref() }.vtable;
        // SAFETY: the task is complete, so the output is this handle's (rule 6).
        let output = unsafe { (vtable.output)(task) }.cast::<Output<T>>();
        // SAFETY: the output is in the task, has this type, and is taken once.
        unsafe { output.read() }
    }
}

/// Returns the two parts that `will_wake` compares.
fn parts(waker: &Waker) -> (*const (), *const RawWakerVTable) {
    (waker.data(), ptr::from_ref(waker.vtable()))
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

// The steps of a drop.
impl<T> JoinHandle<T> {
    /// Gives up the join interest of a task whose output was not taken.
    #[inline(never)]
    fn detach(&self) {
        match self.header().state.leave_join() {
            // SAFETY: the duty is this handle's, and the handle is not used afterwards.
            LeaveJoin::Left(duty) => unsafe { fulfil(self.task(), duty, WakeKind::Orphan) },
            LeaveJoin::DropWaker => {
                let waker = self.replace_waker(None);
                panics::contain_then(|| self.drop_waker(waker), || self.detach());
            }
            LeaveJoin::DropOutput => {
                let drop_output = || {
                    // SAFETY: JOIN_INTEREST keeps the task alive.
                    let vtable = unsafe { self.task().as_ref() }.vtable;
                    // SAFETY: the task is complete, so the output is this handle's, and it was not
                    // taken.
                    unsafe { (vtable.drop_output)(self.task()) };
                };
                panics::contain_then(drop_output, || self.release());
            }
        }
    }

    /// Releases a complete task whose output is gone.
    fn release(&self) {
        if let Duty::Dealloc = self.header().state.release_join() {
            // SAFETY: no reference is left.
            unsafe { dealloc(self.task()) };
        }
    }
}

impl<T> JoinHandle<T> {
    /// Requests the drop of the future, at the end of the current poll or at the next run. A task
    /// that is already complete keeps its output, and so does a task whose current poll completes
    /// it. Costs one read-modify-write.
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

    /// Makes a handle that can abort the task but not wait for it. Costs one read-modify-write.
    pub fn abort_handle(&self) -> AbortHandle {
        // SAFETY: JOIN_INTEREST keeps the task alive.
        unsafe { AbortHandle::of(self.task()) }
    }

    /// Makes a waker of the task that this handle waits for, to have that task polled. Costs one
    /// read-modify-write.
    ///
    /// ```
    /// use std::sync::mpsc;
    ///
    /// let (queue, tasks) = mpsc::channel();
    /// let schedule = move |task| queue.send(task).unwrap();
    /// let (task, join) = task_header::spawn(std::future::pending::<()>(), schedule);
    /// drop(task.run());
    /// join.waker().wake();
    /// assert_eq!(tasks.recv().unwrap().id(), join.id());
    /// ```
    pub fn waker(&self) -> Waker {
        // SAFETY: JOIN_INTEREST keeps the task alive.
        unsafe { cell::waker(self.task()) }
    }

    /// Turns the handle into a pointer, which keeps the task joined. Costs no read-modify-write.
    ///
    /// The pointer's lowest bit is set if the output was taken. The other bits below the alignment
    /// of a `usize` are free for tags. The pointer's provenance is the whole task's, as with
    /// [`Notified::into_raw`](crate::Notified::into_raw). A pointer that is never turned back leaks
    /// the task and its output.
    ///
    /// ```
    /// use task_header::JoinHandle;
    ///
    /// let (task, join) = task_header::spawn(async { 7 }, drop);
    /// let raw = join.into_raw();
    /// drop(task.run());
    /// // SAFETY: the pointer came from `into_raw` of such a handle, and is used once.
    /// let join = unsafe { JoinHandle::<i32>::from_raw(raw) };
    /// assert!(join.is_finished());
    /// ```
    #[must_use = "the task leaks"]
    #[inline]
    pub fn into_raw(self) -> NonNull<()> {
        ManuallyDrop::new(self).word.cast()
    }

    /// Turns a pointer of [`into_raw`](Self::into_raw) back. Costs no read-modify-write.
    ///
    /// ```
    /// use task_header::JoinHandle;
    ///
    /// let (task, join) = task_header::spawn(async { 7 }, drop);
    /// let (id, raw) = (join.id(), join.into_raw());
    /// // SAFETY: the pointer came from `into_raw` of a handle of this type, and is used once.
    /// let join = unsafe { JoinHandle::<i32>::from_raw(raw) };
    /// assert_eq!((join.id(), task.id()), (id, id));
    /// ```
    ///
    /// # Safety
    /// `raw` came from `into_raw` of a `JoinHandle` of the same `T`, and was not turned back since.
    /// If `T` is not [`Send`], the current thread is the one that turned the handle into `raw`.
    #[inline]
    pub unsafe fn from_raw(raw: NonNull<()>) -> Self {
        Self {
            word: raw.cast(),
            output: PhantomData,
        }
    }

    /// Returns whether the task has completed, panicked or been dropped. Costs one load.
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.header().state.is_complete()
    }

    cell::accessors!(|this| this.task());
}

/// Operations for a set of handles.
impl<T> JoinHandle<T> {
    /// Replaces the registered waker: `waker` is woken when the task completes.
    ///
    /// Returns `false` if the task is complete: then nothing wakes `waker`, which is dropped. A
    /// poll does the same with a clone of its context's waker, unless that waker is registered
    /// already. Contains a panic of the drop of either waker. Costs one read-modify-write, or two
    /// if `waker` replaces another waker.
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
        if self.take_slot_back().is_err() {
            self.drop_waker(Some(waker));
            return false;
        }
        self.leave_waker(waker).is_ok()
    }

    fn take_slot_back(&self) -> Result<(), AlreadyComplete> {
        if self.header().state.has_join_waker()? {
            self.header().state.unset_join_waker()?;
        }
        Ok(())
    }

    /// Takes the output, if the task is complete and the output was not taken yet. Costs one load.
    ///
    /// This method charges no budget.
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

    /// Returns whether the output was taken, so that a poll of the handle would panic. No atomic
    /// access.
    ///
    /// ```
    /// let (task, mut join) = task_header::spawn(async { 7 }, drop);
    /// drop(task.run());
    /// assert!(!join.is_terminated());
    /// assert!(join.try_join().is_some() && join.is_terminated());
    /// ```
    #[inline]
    pub fn is_terminated(&self) -> bool {
        self.word.addr().get() & TAKEN != 0
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JoinHandle").field(&self.id()).finish()
    }
}

/// Aborts a task, without waiting for it. The handle is counted: a clone and a drop cost one
/// read-modify-write each.
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

// SAFETY: an abort handle reaches only the state word and, when it aborts, the scheduler, which is
// `Send + Sync`.
unsafe impl Send for AbortHandle {}

// SAFETY: as above.
unsafe impl Sync for AbortHandle {}

// As for a join handle.
impl UnwindSafe for AbortHandle {}
impl RefUnwindSafe for AbortHandle {}

impl AbortHandle {
    /// # Safety
    /// The caller has a reference to the task.
    pub(crate) unsafe fn of(task: TaskPtr) -> Self {
        // SAFETY: the caller promises this.
        unsafe { task.as_ref() }.state.ref_inc();
        Self { task }
    }

    /// Requests the drop of the future, as [`JoinHandle::abort`] does. Costs one read-modify-write.
    pub fn abort(&self) {
        // SAFETY: the count keeps the task alive.
        unsafe { abort(self.task) };
    }

    /// Makes a waker of the task, to have the task polled. Costs one read-modify-write.
    ///
    /// ```
    /// use std::sync::mpsc;
    ///
    /// let (queue, tasks) = mpsc::channel();
    /// let schedule = move |task| queue.send(task).unwrap();
    /// let (task, join) = task_header::spawn(std::future::pending::<()>(), schedule);
    /// let abort = join.abort_handle();
    /// drop(task.run());
    /// abort.waker().wake();
    /// assert_eq!(tasks.recv().unwrap().id(), abort.id());
    /// ```
    pub fn waker(&self) -> Waker {
        self.clone().into_waker()
    }

    /// Turns the handle into a waker of its task. Costs no read-modify-write.
    ///
    /// ```
    /// use std::sync::mpsc;
    ///
    /// let (queue, tasks) = mpsc::channel();
    /// let schedule = move |task| queue.send(task).unwrap();
    /// let (task, join) = task_header::spawn(std::future::pending::<()>(), schedule);
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

    /// Turns the handle into a pointer, as [`Notified::into_raw`](crate::Notified::into_raw) does.
    /// Costs no read-modify-write. A pointer that is never turned back leaks the task.
    ///
    /// ```
    /// use task_header::AbortHandle;
    ///
    /// let (task, join) = task_header::spawn(std::future::pending::<()>(), drop);
    /// let raw = join.abort_handle().into_raw();
    /// // SAFETY: the pointer came from `into_raw`, and is used once.
    /// let abort = unsafe { AbortHandle::from_raw(raw) };
    /// abort.abort();
    /// drop(task.run());
    /// assert!(join.is_finished());
    /// ```
    #[must_use = "the task leaks"]
    pub fn into_raw(self) -> NonNull<()> {
        ManuallyDrop::new(self).task.cast()
    }

    /// Turns a pointer of [`into_raw`](Self::into_raw) back. Costs no read-modify-write.
    ///
    /// ```
    /// use task_header::AbortHandle;
    ///
    /// let (task, join) = task_header::spawn(async { 7 }, drop);
    /// let raw = join.abort_handle().into_raw();
    /// // SAFETY: the pointer came from `into_raw`, and is used once.
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

    /// Returns whether the task has completed, panicked or been dropped. Costs one load.
    pub fn is_finished(&self) -> bool {
        // SAFETY: the count keeps the task alive.
        unsafe { self.task.as_ref() }.state.is_complete()
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
        let duty = unsafe { self.task.as_ref() }.state.ref_dec();
        // SAFETY: the duty came from this transition.
        unsafe { fulfil(self.task, duty, WakeKind::Orphan) };
    }
}

impl fmt::Debug for AbortHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AbortHandle").field(&self.id()).finish()
    }
}
