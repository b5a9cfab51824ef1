//! What is done with the future and with what comes of it. Every function here is one of a task's vtable.
//!
//! Who may touch the stage is rule 6 of [`state`](crate::state). Every call of the future's code is contained
//! ([`panics`](crate::panics)), or guarded where nothing can be caught.
//!
//! A future whose poll panics is dropped while the panic unwinds, before it is caught. It is where
//! its own parts would be dropped if it were a variable of the code that panics, so what it holds
//! finds `std::thread::panicking` true: a `MutexGuard` in it poisons its mutex. A drop after the
//! catch would leave the mutex whole, with half of a change behind it. tokio and async-task drop it
//! there, too. By the rule of the language a panic that leaves a drop while another unwinds ends
//! the process. With `std` the future's drop is caught by itself, so that its panic does not get
//! that far; but one more panic does, in a drop that this second one unwinds through. Without `std`
//! any panic of the future's drop does.
use crate::{
    Id,
    cell::{Cell, Output, Stage, TaskPtr, header},
    error::JoinError,
    panics::{self, Payload},
    raw::{self, Keep},
};
use core::{
    future::Future,
    marker::PhantomData,
    mem::{forget, needs_drop},
    pin::Pin,
    task::{Context, Poll},
};
use sync_shim::cell::UnsafeCell;
use waker_vtable::WakerRef;

/// # Safety
/// The caller has a reference for `'a` to a task of these types.
unsafe fn stage<'a, F: Future + 'a, S: 'a>(task: TaskPtr) -> &'a UnsafeCell<Stage<F>> {
    // What lies behind the stage does not move it.
    let cell = task.cast::<Cell<F, S, (), ()>>();
    // SAFETY: the caller has a reference to a task of this type; the stage is only borrowed shared.
    unsafe { &(*cell.as_ptr()).stage }
}

/// How far a poll got.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Polled {
    /// The future waits.
    Pending,
    /// The future is gone, and its output is in the slot.
    Output,
    /// The future is gone, and so is its output, which nobody will ask for.
    NoOutput,
}

/// The running thread polls.
///
/// # Safety
/// The caller runs the task, which is of these types.
pub(crate) unsafe fn poll<F: Future, S>(task: TaskPtr) -> Polled {
    // SAFETY: the run holds a reference for longer than this waker lives.
    let waker = unsafe { WakerRef::new(task) };
    let mut cx = Context::from_waker(&waker);
    let run = Run::<F, S>::new(task);
    // Outside of what is caught, so that unwinding from the future's drop does not drop it.
    let mut output = None;
    // SAFETY: a running task of this type is live.
    let caught = unsafe { stage::<F, S>(task) }.with_mut(|stage| {
        panics::catch(|| {
            let unwinds = Unwinds(task, stage);
            // SAFETY: the running thread alone touches the stage, which holds the future (rule 6).
            let future = unsafe { &mut *stage.cast::<F>() };
            // SAFETY: the cell never moves, and the future is dropped in place.
            let future = unsafe { Pin::new_unchecked(future) };
            let polled = future.poll(&mut cx);
            forget(unwinds);
            if let Poll::Ready(ready) = polled {
                output = Some(ready);
                // SAFETY: as above; this is its only drop, in place.
                unsafe { stage.cast::<F>().drop_in_place() }
            }
        })
    });
    match (caught, output) {
        (Ok(()), None) => run.go_on(),
        (Ok(()), Some(output)) => run.end(Ok(output)),
        (Err(payload), output) => run.panicked(payload, output),
    }
}

/// Drops the future whose poll panics, while that unwinds. The slot then says whether the drop has
/// panicked, too.
struct Unwinds<F: Future>(TaskPtr, *mut Stage<F>);

impl<F: Future> Drop for Unwinds<F> {
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        let Self(task, stage) = *self;
        let id = Id::of(task);
        // SAFETY: the running thread alone touches the stage, which holds the future (rule 6): its
        // poll is over. This is its only drop, in place.
        let dropped = panics::catch(|| unsafe { stage.cast::<F>().drop_in_place() });
        let error = dropped.map_or_else(
            |payload| JoinError::panicked(id, payload),
            |()| JoinError::cancelled(id),
        );
        // SAFETY: the running thread's, the future is gone and the slot free.
        unsafe { stage.cast::<Output<F::Output>>().write(Err(error)) };
    }
}

/// The running thread drops a future that was aborted.
///
/// # Safety
/// As for [`poll`].
pub(crate) unsafe fn cancel<F: Future, S>(task: TaskPtr) -> Polled {
    let run = Run::<F, S>::new(task);
    // SAFETY: a running task of this type is live.
    let dropped = unsafe { stage::<F, S>(task) }.with_mut(|stage| {
        panics::catch(|| {
            // SAFETY: the running thread alone touches the stage, which holds the future (rule 6);
            // this is its only drop, in place.
            unsafe { stage.cast::<F>().drop_in_place() }
        })
    });
    match dropped {
        Ok(()) => run.end(Err(JoinError::cancelled(Id::of(task)))),
        Err(payload) => {
            // SAFETY: the run holds a reference.
            unsafe { panics::tell(task, &payload) };
            run.end(Err(JoinError::panicked(Id::of(task), payload)))
        }
    }
}

/// What the running thread has in its hands. In builds that can't catch, its drop completes the
/// task while a panic goes on, which has dropped the future by then.
struct Run<F: Future, S> {
    task: TaskPtr,
    types: PhantomData<(F, S)>,
}

impl<F: Future, S> Run<F, S> {
    /// The caller runs a task of these types.
    fn new(task: TaskPtr) -> Self {
        Self {
            task,
            types: PhantomData,
        }
    }

    fn go_on(self) -> Polled {
        forget(self);
        Polled::Pending
    }

    /// The first panic is the outcome.
    #[cold]
    #[inline(never)]
    fn panicked(self, payload: Payload, output: Option<F::Output>) -> Polled {
        // SAFETY: the run holds a reference.
        unsafe { panics::tell(self.task, &payload) };
        if output.is_none() {
            // SAFETY: this thread runs a task of this type.
            let stage = unsafe { stage::<F, S>(self.task) };
            // SAFETY: the poll has panicked, so `Unwinds` has written the slot, which is free again.
            let dropped =
                stage.with_mut(|stage| unsafe { stage.cast::<Output<F::Output>>().read() });
            if let Err(Ok(again)) = dropped.map_err(JoinError::try_into_panic) {
                // SAFETY: as above.
                unsafe { panics::discard_in(self.task, again) };
            }
        }
        // SAFETY: as above.
        unsafe { panics::contain_in(self.task, || drop(output)) };
        let id = Id::of(self.task);
        self.end(Err(JoinError::panicked(id, payload)))
    }

    /// The future is gone. An output that nobody will ask for is dropped here and now.
    fn end(self, output: Output<F::Output>) -> Polled {
        // SAFETY: the run holds a reference.
        let polled = if unsafe { header(self.task) }.state.is_joined() {
            self.write(output);
            Polled::Output
        } else {
            if needs_drop::<F::Output>() || output.is_err() {
                // SAFETY: the run holds a reference.
                unsafe { panics::contain_in(self.task, || drop(output)) };
            }
            Polled::NoOutput
        };
        forget(self);
        polled
    }

    fn write(&self, output: Output<F::Output>) {
        // SAFETY: this thread runs a task of this type.
        unsafe { stage::<F, S>(self.task) }.with_mut(|stage| {
            let slot = stage.cast::<Output<F::Output>>();
            // SAFETY: the running thread's (rule 6), the future is gone and the slot free.
            unsafe { slot.write(output) }
        });
    }
}

impl<F: Future, S> Drop for Run<F, S> {
    fn drop(&mut self) {
        self.write(Err(JoinError::cancelled(Id::of(self.task))));
        // SAFETY: the future is gone, the slot is written, and nobody else ends this run.
        unsafe { raw::complete(self.task, Keep::Nowhere, true) };
    }
}

/// Where the output is, an `Output<F::Output>` for the caller to move out at once: by itself, so that only what there is of it is moved.
///
/// # Safety
/// The caller is the join handle of a complete task of these types, and takes the output once.
pub(crate) unsafe fn output<F: Future, S>(task: TaskPtr) -> *mut () {
    // SAFETY: the task is complete, so the slot is the join handle's (rule 6).
    unsafe { stage::<F, S>(task) }.with_mut(<*mut _>::cast)
}

/// Contains a panic of the output's drop.
///
/// # Safety
/// The caller owns the written output slot of a task of these types (rule 6), and drops it once.
pub(crate) unsafe fn drop_output<F: Future, S>(task: TaskPtr) {
    // SAFETY: the caller owns the output slot of a task of this type (rule 6).
    let stage = unsafe { stage::<F, S>(task) };
    stage.with_mut(|stage| {
        let drop = || {
            // SAFETY: the slot is written; this is its only drop.
            unsafe { stage.cast::<Output<F::Output>>().drop_in_place() }
        };
        // SAFETY: whoever owns the slot has a reference.
        unsafe { panics::contain_in(task, drop) };
    });
}
