//! The run of a process by a worker. The process steps until it waits, ends, or has used up its
//! [`RunSlice`] of steps.
use super::{Body, CellInner, ProcessCell};
use crate::{
    CommandError, Completer, Events, ExitReason, Process, Step, StepOutput,
    core::ProcessCore,
    guard::{drop_guarded, guarded},
    handler::Complete,
    process::HandlerOf,
    runnable::{Run, RunSlice, Runnable},
    state::Wait,
};
use std::{mem, sync::Arc};
use waker_vtable::WakerRef;

impl<P: Process> Run for ProcessCell<P> {
    fn run(self: Arc<Self>, slice: &mut RunSlice<'_>) -> Option<Runnable> {
        let mut is_woken = self.core.state.begin();
        let inner = self.inner.with_mut(|inner| inner);
        // SAFETY: rule 2 of `cell.rs`: `self` came in a `Runnable`, which is the process's token,
        // so this thread owns `inner`. The reference is not used after this thread has given the
        // token away.
        let inner = unsafe { &mut *inner };
        while slice.steps_left > 0 {
            if self.core.state.is_killed() {
                let reason = self.killed_reason(inner);
                // SAFETY: this thread has the token, and `inner` is not used any more.
                unsafe { self.finish(reason) };
                return None;
            }
            if let (Some(wait), false) = (inner.waits, mem::take(&mut is_woken)) {
                if !self.has_event(inner, wait) {
                    let this = Arc::as_ptr(&self);
                    // SAFETY: the token, which is this thread's, keeps the cell live.
                    let core = unsafe { &raw const (*this).core };
                    // SAFETY: as above. `core` and `inner` are not used any more.
                    return unsafe { ProcessCore::suspend(core, Runnable(self), wait) };
                }
            }
            slice.steps_left -= 1;
            slice.counters.count_step();
            let incarnation = self.core.state.incarnation();
            let waker = WakerRef::from_wake(&self);
            let mut events = Events {
                core: &self.core,
                pending: &mut inner.pending,
                incarnation,
                messages_left: slice.messages,
                delivered: 0,
                cancelled: &mut inner.cancelled,
            };
            let mut output = StepOutput {
                commands: Vec::new(),
                pid: self.pid,
                handle: &self.handle,
                waker: &waker,
            };
            let body = &mut inner.body;
            let stepped = inner.span.catch(|| match body {
                Body::Own(body) => body.step(&mut events, &mut output),
                Body::Upgraded(body) => body.step(&mut events, &mut output),
                Body::Closed => Step::Done,
            });
            let (delivered, commands) = (events.delivered, output.commands);
            slice.counters.count_delivered(delivered);
            let result = stepped.as_ref().map_or("Panicked", Step::name);
            inner.span.stepped(result, delivered, incarnation);
            if !commands.is_empty() {
                self.dispatch(inner.handler.as_ref(), commands, incarnation);
            }
            let reason = match stepped {
                Ok(Step::Idle) => {
                    inner.waits = Some(Wait::Idle);
                    continue;
                }
                Ok(Step::Blocked) => {
                    inner.waits = Some(Wait::Blocked);
                    continue;
                }
                Ok(Step::Continue) => {
                    inner.waits = None;
                    continue;
                }
                Ok(Step::Upgrade(body)) => {
                    self.close_body(inner);
                    inner.body = Body::Upgraded(body);
                    inner.waits = None;
                    continue;
                }
                Ok(Step::Done) if inner.cancelled => ExitReason::Cancelled,
                Ok(Step::Done) => ExitReason::Normal,
                Ok(Step::Failed(reason)) => reason,
                Err(panic) => {
                    slice.counters.count_panic();
                    self.panicked(panic)
                }
            };
            // SAFETY: this thread has the token, and `inner` is not used any more.
            unsafe { self.finish(reason) };
            return None;
        }
        self.core.state.requeue();
        Some(Runnable(self))
    }
}

impl<P: Process> ProcessCell<P> {
    /// Returns the reason for which a process that was killed ends.
    #[cold]
    fn killed_reason(&self, inner: &CellInner<P>) -> ExitReason {
        let reason = self.killed();
        match (&inner.body, &inner.restart) {
            // The process ended before this kill, and is not restarted any more.
            (Body::Closed, Some(restart)) => restart.last_exit.clone(),
            _ => reason,
        }
    }

    /// Returns whether there is an event that ends the wait.
    #[inline]
    fn has_event(&self, inner: &CellInner<P>, wait: Wait) -> bool {
        let (pending, core) = (&inner.pending, &self.core);
        if !pending.urgent.is_empty() || core.has_urgent() {
            return true;
        }
        wait == Wait::Idle && !(pending.messages.is_empty() && core.messages.is_empty())
    }

    /// Hands the commands of a step to the handler.
    fn dispatch(
        self: &Arc<Self>,
        handler: Option<&HandlerOf<P>>,
        commands: Vec<(u64, P::Cmd)>,
        incarnation: u32,
    ) {
        for (tag, command) in commands {
            let Some(handler) = handler else {
                drop_guarded(command);
                let result = Err(CommandError::NoHandler);
                // The result is ignored. It is an error only if the process was restarted
                // meanwhile, and a process cannot be restarted while it runs.
                drop(Complete::complete(&**self, tag, incarnation, result));
                continue;
            };
            let completer = Completer {
                target: Some(self.clone()),
                pid: self.pid,
                tag,
                incarnation,
            };
            guarded(|| handler.handle(command, completer));
        }
    }
}
