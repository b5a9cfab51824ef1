//! What is done with the future and with what comes of it. Every function here is one of a task's vtable.
//!
//! Who may touch the stage is rule 6 of [`state`](crate::state). Every call of the future's code is contained
//! ([`panics`](crate::panics)), or guarded where nothing can be caught.
use crate::{
    cell::{Cell, Output, Stage, TaskPtr},
    error::Failure,
    panics::{self, Payload},
    raw::{self, Keep},
};
use ::alloc::boxed::Box;
use core::{
    future::Future,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll},
};
use sync_shim::cell::UnsafeCell;
use waker_vtable::WakerRef;

/// # Safety
/// The caller has a reference for `'a` to a task of these types.
unsafe fn stage<'a, F: Future + 'a, S: 'a>(task: TaskPtr) -> &'a UnsafeCell<Stage<F>> {
    // What lies behind the stage does not move it.
    let cell = task.cast::<Cell<F, S, ()>>();
    // SAFETY: the caller has a reference to a task of this type; the stage is only borrowed shared.
    unsafe { &(*cell.as_ptr()).stage }
}

/// The running thread polls.
///
/// # Safety
/// The caller runs the task, which is of these types.
pub(crate) unsafe fn poll<F: Future, S>(task: TaskPtr) -> bool {
    // SAFETY: the run holds a reference for longer than this waker lives.
    let waker = unsafe { WakerRef::new(task) };
    let mut cx = Context::from_waker(&waker);
    // SAFETY: a running task of this type is live.
    let stage = unsafe { stage::<F, S>(task) };
    let unwound = OnUnwind::<F, S>::arm(task, true);
    let polled = stage.with_mut(|stage| {
        // SAFETY: the running thread alone touches the stage, which holds the future (rule 6).
        let future = unsafe { &mut *stage.cast::<F>() };
        // SAFETY: the cell never moves, and the future is dropped in place.
        let future = unsafe { Pin::new_unchecked(future) };
        panics::catch(|| future.poll(&mut cx))
    });
    unwound.disarm();
    match polled {
        Ok(Poll::Pending) => return false,
        // SAFETY: still running, and the future is there.
        Ok(Poll::Ready(output)) => unsafe { finish::<F, S>(task, Ok(output)) },
        // SAFETY: as above.
        Err(payload) => unsafe { finish::<F, S>(task, Err(Failure::Panic(Box::new(payload)))) },
    }
    true
}

/// The running thread drops a future that was aborted.
///
/// # Safety
/// As for [`poll`].
pub(crate) unsafe fn cancel<F: Future, S>(task: TaskPtr) {
    // SAFETY: the caller runs the task, whose future is there.
    unsafe { finish::<F, S>(task, Err(Failure::Cancelled)) }
}

/// Drops the future and writes the output, in which a panic of that drop takes precedence.
///
/// # Safety
/// As for [`poll`]; the future is there.
unsafe fn finish<F: Future, S>(task: TaskPtr, output: Output<F::Output>) {
    // SAFETY: the caller runs a task of this type.
    let stage = unsafe { stage::<F, S>(task) };
    let unwound = OnUnwind::<F, S>::arm(task, false);
    let dropped = stage.with_mut(|stage| {
        panics::catch(|| {
            // SAFETY: the running thread alone touches the stage, which holds the future (rule 6);
            // this is its only drop, in place.
            unsafe { stage.cast::<F>().drop_in_place() }
        })
    });
    unwound.disarm();
    let output = match (dropped, output) {
        (Ok(()), output) => output,
        (Err(payload), output) => worse(payload, output),
    };
    write_output(stage, output);
}

fn write_output<F: Future>(stage: &UnsafeCell<Stage<F>>, output: Output<F::Output>) {
    stage.with_mut(|stage| {
        let slot = stage.cast::<Output<F::Output>>();
        // SAFETY: called by the running thread (rule 6), the future is gone and the slot free.
        unsafe { slot.write(output) }
    });
}

/// The future's drop panicked: that is the outcome, unless the poll had panicked before.
fn worse<T>(payload: Payload, output: Output<T>) -> Output<T> {
    match output {
        Err(Failure::Panic(first)) => {
            panics::discard(payload);
            Err(Failure::Panic(first))
        }
        output => {
            panics::contain(|| drop(output));
            Err(Failure::Panic(Box::new(payload)))
        }
    }
}

/// A guard for builds that can't catch: it completes the task while the panic goes on.
struct OnUnwind<F: Future, S> {
    task: TaskPtr,
    future_is_there: bool,
    types: PhantomData<(F, S)>,
}

impl<F: Future, S> OnUnwind<F, S> {
    fn arm(task: TaskPtr, future_is_there: bool) -> Self {
        Self {
            task,
            future_is_there,
            types: PhantomData,
        }
    }

    fn disarm(self) {
        core::mem::forget(self);
    }
}

impl<F: Future, S> Drop for OnUnwind<F, S> {
    fn drop(&mut self) {
        if self.future_is_there {
            // SAFETY: the run was cut off by the future's panic, so it is still running.
            unsafe { cancel::<F, S>(self.task) };
        } else {
            // SAFETY: as above.
            let stage = unsafe { stage::<F, S>(self.task) };
            write_output(stage, Err(Failure::Cancelled));
        }
        // SAFETY: the output is written, and nobody else ends this run.
        unsafe { raw::complete(self.task, Keep::Nowhere) };
    }
}

/// Moves the output out.
///
/// # Safety
/// The caller is the join handle of a complete task of these types, and takes the output once; the slot is one of
/// `MaybeUninit<Output<F::Output>>`.
pub(crate) unsafe fn take_output<F: Future, S>(task: TaskPtr, slot: *mut ()) {
    // SAFETY: the caller is the join handle of a task of this type.
    let stage = unsafe { stage::<F, S>(task) };
    let output = stage.with_mut(|stage| {
        // SAFETY: the task is complete, so the slot is written and the join handle's (rule 6),
        // which takes it once.
        unsafe { stage.cast::<Output<F::Output>>().read() }
    });
    // SAFETY: the caller gives a slot for this very type.
    unsafe { slot.cast::<Output<F::Output>>().write(output) };
}

/// Contains a panic of the output's drop.
///
/// # Safety
/// The caller owns the written output slot of a task of these types (rule 6), and drops it once.
pub(crate) unsafe fn drop_output<F: Future, S>(task: TaskPtr) {
    // SAFETY: the caller owns the output slot of a task of this type (rule 6).
    let stage = unsafe { stage::<F, S>(task) };
    stage.with_mut(|stage| {
        panics::contain(|| {
            // SAFETY: the slot is written; this is its only drop.
            unsafe { stage.cast::<Output<F::Output>>().drop_in_place() }
        });
    });
}
