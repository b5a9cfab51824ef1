//! The run of a process by a worker. The process steps until it waits, ends, or has used up its
//! [`RunSlice`] of steps.
use super::{Body, Cell, Inner};
use crate::{
    CommandError, Completer, Events, ExitReason, Process, Step, StepOutput,
    core::Core,
    guard::{drop_guarded, guarded},
    handler::Complete,
    process::HandlerOf,
    runnable::{Run, RunSlice, Runnable},
    state::Wait,
};
use std::sync::Arc;
use sync_shim::panics;
use waker_vtable::WakerRef;

impl<P: Process> Run for Cell<P> {
    fn run(self: Arc<Self>, slice: &mut RunSlice<'_>) -> Option<Runnable> {
        let woken = self.core.state.begin();
        let inner = self.inner.with_mut(|inner| inner);
        // SAFETY: rule 2: the caller gave the token. The reference is not used after this thread
        // has given the token away.
        let inner = unsafe { &mut *inner };
        let incarnation = self.core.state.incarnation();
        let mut must_step = woken || inner.waits.is_none();
        loop {
            if self.core.state.is_killed() {
                let reason = self.killed();
                let reason = match (&inner.body, &inner.restart) {
                    // The process ended before this kill, and is not restarted any more.
                    (Body::Closed, Some(restart)) => restart.last.clone(),
                    _ => reason,
                };
                // SAFETY: this thread has the token, and `inner` is not used any more.
                unsafe { self.finish(reason) };
                return None;
            }
            let has_urgent = !inner.pending.urgent.is_empty() || self.core.has_urgent();
            let has_messages = |inner: &Inner<P>| {
                !inner.pending.messages.is_empty() || !self.core.messages.is_empty()
            };
            let may_wait = match inner.waits {
                Some(Wait::Blocked) => !has_urgent,
                _ => !has_urgent && !has_messages(inner),
            };
            if let (Some(wait), true, false) = (inner.waits, may_wait, must_step) {
                let this = Arc::as_ptr(&self);
                // SAFETY: the token, which is this thread's, keeps the cell live.
                let core = unsafe { &raw const (*this).core };
                // SAFETY: as above. `core` and `inner` are not used any more.
                return unsafe { Core::suspend(core, Runnable(self), wait) };
            }
            must_step = false;
            slice.steps_left -= 1;
            slice.count_step();
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
            let (span, body) = (&inner.span, &mut inner.body);
            let stepped = panics::catch(|| {
                span.run(|| match body {
                    Body::Own(body) => body.step(&mut events, &mut output),
                    Body::Upgraded(body) => body.step(&mut events, &mut output),
                    Body::Closed => Step::Done,
                })
            });
            slice.count_delivered(events.delivered);
            let result = stepped.as_ref().map_or("Panicked", Step::name);
            span.stepped(result, events.delivered, incarnation);
            let commands = output.commands;
            if !commands.is_empty() {
                self.dispatch(inner.handler.as_ref(), commands, incarnation);
            }
            let reason = match stepped {
                Ok(Step::Idle) => {
                    inner.waits = Some(Wait::Idle);
                    None
                }
                Ok(Step::Blocked) => {
                    inner.waits = Some(Wait::Blocked);
                    None
                }
                Ok(Step::Continue) => {
                    inner.waits = None;
                    must_step = true;
                    None
                }
                Ok(Step::Upgrade(body)) => {
                    self.close_body(inner);
                    inner.body = Body::Upgraded(body);
                    inner.waits = None;
                    must_step = true;
                    None
                }
                Ok(Step::Done) if inner.cancelled => Some(ExitReason::Cancelled),
                Ok(Step::Done) => Some(ExitReason::Normal),
                Ok(Step::Failed(reason)) => Some(reason),
                Err(panic) => {
                    slice.count_panic();
                    Some(self.panicked(panic))
                }
            };
            if let Some(reason) = reason {
                // SAFETY: this thread has the token, and `inner` is not used any more.
                unsafe { self.finish(reason) };
                return None;
            }
            if slice.steps_left == 0 {
                self.core.state.requeue();
                return Some(Runnable(self));
            }
        }
    }
}

impl<P: Process> Cell<P> {
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
