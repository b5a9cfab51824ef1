//! The restart of a stopped process, as the next incarnation.
use super::{Body, ProcessCell};
use crate::{ExitReason, Input, Process, guard::Guarded};
use std::sync::Arc;
use sync_shim::panics;

impl<P: Process> ProcessCell<P> {
    pub(super) fn restart(self: Arc<Self>) {
        // The bit KILL and the reason of the kill change under one lock, as in `kill`, so both are
        // cleared together.
        let token = self.with_relations(|lists| {
            let token = self.core.revive()?;
            lists.killed = None;
            Some(token)
        });
        let Some(token) = token.flatten() else {
            return;
        };
        self.core.state.begin();
        let inner = self.inner.with_mut(|inner| inner);
        // SAFETY: rule 2 of `cell.rs`: this thread has the token.
        let inner = unsafe { &mut *inner };
        inner.waits = None;
        inner.cancelled = false;
        let Some(restart) = &inner.restart else {
            unreachable!("a process that is not supervised does not stop")
        };
        let (make, method) = (restart.child.make.clone(), restart.method.clone());
        let make_input = restart.input.clone();
        // If the closure of the input panics, the new process is dropped under a guard of its own.
        let made = panics::catch(|| Guarded::new(make())).and_then(|body| {
            let input = panics::catch(|| make_input.map_or_else(Input::none, |make| make()))?;
            Ok((body.into_inner(), input))
        });
        let started = match made {
            Ok((body, input)) => {
                inner.body = Body::Own(body);
                let started = self.init(inner, &method, input);
                started.map_err(|error| ExitReason::failed(&error))
            }
            Err(panic) => {
                let reason = self.panicked(panic);
                // There is no body, so `finish` does not report this end.
                self.report_end(inner, &reason);
                Err(reason)
            }
        };
        match started {
            Ok(()) => {
                self.core.state.requeue();
                self.submit(Some(token));
            }
            Err(reason) => {
                // `finish` consumes `self`, also an `Arc` of this cell, as the token.
                drop(token);
                // SAFETY: this thread has the token, and `inner` is not used any more.
                unsafe { self.finish(reason) };
            }
        }
    }
}
