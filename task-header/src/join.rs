//! The ends that wait for a task or abort it.
//!
//! The join waker's slot goes by rule 7 of [`state`](crate::state): the handle writes it while
//! `JOIN_WAKER` is clear, sets the bit, and must clear the bit to write again. Where the bit can't
//! be changed any more the task is complete and the output is there.
use crate::{
    WakeKind,
    cell::{Output, TaskPtr, header, trailer, vtable},
    error::JoinError,
    panics, raw,
    state::{AlreadyComplete, Duty, LeaveJoin},
};
use core::{
    fmt,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    ptr,
    task::{Context, Poll, RawWakerVTable, Waker},
};

/// Waits for a task: a future of its output.
///
/// Dropping it detaches the task, which goes on; its output is then dropped where it completes.
/// A poll of an unfinished task costs one read-modify-write, three when the waker changes, and
/// none when the same waker polls again. Drop costs one, two with a waker registered.
pub struct JoinHandle<T> {
    task: TaskPtr,
    taken: bool,
    /// The parts of the waker in the slot, to compare with: the slot itself may be taken by the
    /// running thread at any time. While it is in the slot nothing else has its address.
    registered: Option<(*const (), *const RawWakerVTable)>,
    output: PhantomData<T>,
}

// SAFETY: what it reaches across threads is the state word, its own waker slot, and the output,
// which moves to this thread if `T: Send`.
unsafe impl<T: Send> Send for JoinHandle<T> {}

// SAFETY: a shared handle reaches only the state word.
unsafe impl<T: Send> Sync for JoinHandle<T> {}

impl<T> Unpin for JoinHandle<T> {}

impl<T> JoinHandle<T> {
    /// # Safety
    /// The task was made with `JOIN_INTEREST`, which this takes over, and its output is a `T`.
    pub(crate) unsafe fn from_raw(task: TaskPtr) -> Self {
        Self {
            task,
            taken: false,
            registered: None,
            output: PhantomData,
        }
    }

    fn header(&self) -> &crate::cell::Header {
        // SAFETY: JOIN_INTEREST keeps the task alive.
        unsafe { header(self.task) }
    }

    /// Asks for the task to be dropped at its next yield. One read-modify-write. A task that is
    /// complete already keeps its output.
    pub fn abort(&self) {
        // SAFETY: JOIN_INTEREST keeps the task alive.
        unsafe { abort(self.task) };
    }

    /// A handle that can abort the task but not wait for it. One read-modify-write.
    pub fn abort_handle(&self) -> AbortHandle {
        // SAFETY: JOIN_INTEREST keeps the task alive.
        unsafe { AbortHandle::of(self.task) }
    }

    /// Whether the task has completed, panicked or been dropped. A load.
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.header().state.is_complete()
    }

    crate::details::accessors!();

    #[inline]
    fn take(&mut self) -> Result<T, JoinError> {
        assert!(
            !self.taken,
            "a join handle was polled after it gave its output"
        );
        self.taken = true;
        // SAFETY: JOIN_INTEREST keeps the task alive.
        let vtable = unsafe { vtable(self.task) };
        // SAFETY: complete, so the output is this handle's.
        let output = unsafe { (vtable.output)(self.task) }.cast::<Output<T>>();
        // SAFETY: there, of this type, and taken once.
        let output = unsafe { output.read() };
        output.map_err(|failure| JoinError::new(self.id(), failure))
    }

    /// Leaves a task whose output, now or later, nobody takes.
    fn detach(&self) {
        let duty = loop {
            match self.header().state.leave_join() {
                LeaveJoin::Left(duty) => break duty,
                LeaveJoin::DropWaker => panics::contain(|| drop(self.replace_waker(None))),
                LeaveJoin::DropOutput => {
                    let drop_output = || {
                        // SAFETY: JOIN_INTEREST keeps the task alive.
                        let vtable = unsafe { vtable(self.task) };
                        // SAFETY: complete, so the output is this handle's, which has not taken it.
                        unsafe { (vtable.drop_output)(self.task) };
                    };
                    return panics::contain_then(drop_output, || self.release());
                }
            }
        };
        // SAFETY: the duty is this handle's, which goes.
        unsafe { raw::fulfil(self.task, duty, WakeKind::Orphan) };
    }

    /// Leaves a task that is complete, its output gone.
    fn release(&self) {
        if let Duty::Dealloc = self.header().state.release_join() {
            // SAFETY: no reference is left.
            unsafe { raw::dealloc(self.task) };
        }
    }

    /// Writes the slot while `JOIN_WAKER` is clear, and gives back what was there.
    fn replace_waker(&self, waker: Option<Waker>) -> Option<Waker> {
        // SAFETY: JOIN_INTEREST keeps the task alive.
        let slot = unsafe { &trailer(self.task).join_waker };
        // SAFETY: JOIN_WAKER is clear and not complete when it was last set, so the slot is this
        // handle's (rule 7), which is borrowed mutably.
        slot.with_mut(|slot| core::mem::replace(unsafe { &mut *slot }, waker))
    }

    fn register(&mut self, waker: &Waker) -> Result<(), AlreadyComplete> {
        if self.registered == Some(parts(waker)) {
            return Ok(());
        }
        if self.registered.is_some() {
            self.header().state.unset_join_waker()?;
            self.registered = None;
        }
        // A waker's clone or drop may panic: the slot is whole at either point.
        let waker = waker.clone();
        let parts = parts(&waker);
        drop(self.replace_waker(Some(waker)));
        match self.header().state.set_join_waker() {
            Ok(()) => self.registered = Some(parts),
            Err(AlreadyComplete) => {
                panics::contain(|| drop(self.replace_waker(None)));
                return Err(AlreadyComplete);
            }
        }
        Ok(())
    }
}

/// For a set of handles.
#[cfg(feature = "std")]
impl<T> JoinHandle<T> {
    pub(crate) fn is_taken(&self) -> bool {
        self.taken
    }

    /// Has `waker` woken at completion, unless that was before.
    pub(crate) fn watch(&mut self, waker: &Waker) -> Result<(), AlreadyComplete> {
        if self.is_finished() {
            return Err(AlreadyComplete);
        }
        self.register(waker)
    }

    /// The output, if it is there and was not taken.
    pub(crate) fn try_take(&mut self) -> Option<Result<T, JoinError>> {
        (!self.taken && self.is_finished()).then(|| self.take())
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
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.is_finished() && self.register(cx.waker()).is_ok() {
            return Poll::Pending;
        }
        Poll::Ready(self.take())
    }
}

impl<T> Drop for JoinHandle<T> {
    #[inline]
    fn drop(&mut self) {
        if self.taken {
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
pub struct AbortHandle {
    task: TaskPtr,
}

// SAFETY: it reaches only the state word, and by an abort the scheduler, which is `Send + Sync`.
unsafe impl Send for AbortHandle {}

// SAFETY: as above.
unsafe impl Sync for AbortHandle {}

impl AbortHandle {
    /// # Safety
    /// The caller has a reference to the task.
    pub(crate) unsafe fn of(task: TaskPtr) -> Self {
        // SAFETY: passed on.
        unsafe { header(task) }.state.ref_inc();
        Self { task }
    }

    /// Asks for the task to be dropped at its next yield. One read-modify-write.
    pub fn abort(&self) {
        // SAFETY: the count keeps the task alive.
        unsafe { abort(self.task) };
    }

    /// Whether the task has completed, panicked or been dropped. A load.
    pub fn is_finished(&self) -> bool {
        // SAFETY: the count keeps the task alive.
        unsafe { header(self.task) }.state.is_complete()
    }

    crate::details::accessors!();
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
        unsafe { raw::fulfil(self.task, duty, WakeKind::Orphan) };
    }
}

impl fmt::Debug for AbortHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AbortHandle").field(&self.id()).finish()
    }
}

/// # Safety
/// The caller has a reference to the task.
unsafe fn abort(task: TaskPtr) {
    // SAFETY: passed on.
    let duty = unsafe { header(task) }.state.abort();
    // SAFETY: the duty is this transition's.
    unsafe { raw::fulfil(task, duty, WakeKind::Abort) };
}
