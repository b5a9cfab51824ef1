//! The end of an incarnation, and the end for good.
use super::{Body, CellInner, ProcessCell, related::Related};
use crate::{
    ExitReason, Pid, Policy, Process, Signal,
    any_cell::AnyCell,
    core::ProcessCore,
    guard::{drop_guarded, guarded},
    lane::Taken,
    pool,
    runnable::Runnable,
    watcher::Watcher,
};
use std::{mem, sync::Arc};
use sync_shim::panics;

impl<P: Process> ProcessCell<P> {
    /// Ends a new process that was never started, without a close: its `init` did not run. The
    /// caller has the token.
    pub(crate) fn abandon(self: Arc<Self>) {
        self.core.state.begin();
        let inner = self.inner.with_mut(|inner| inner);
        // SAFETY: rule 2: a new cell's token is with the caller.
        let inner = unsafe { &mut *inner };
        drop(inner.restart.take());
        drop_guarded(mem::replace(&mut inner.body, Body::Closed));
        self.end(inner, ExitReason::NoProcess);
    }

    /// Ends this incarnation, and closes the body (rule 3). Then the supervisor may restart the
    /// process.
    ///
    /// # Safety
    /// `self` is the token, which the caller gives away. The caller uses no reference to `inner`
    /// any more. The process is running.
    pub(super) unsafe fn finish(self: Arc<Self>, reason: ExitReason) {
        let inner = self.inner.with_mut(|inner| inner);
        // SAFETY: the caller promises this (rule 2).
        let Some(supervisor) = self.close(unsafe { &mut *inner }, &reason) else {
            // SAFETY: as above.
            self.end(unsafe { &mut *inner }, reason);
            return pool::recycle(self);
        };
        let (handle, pid) = (self.handle.clone(), self.pid);
        let this = Arc::as_ptr(&self);
        // SAFETY: the token, which is this thread's, keeps the cell live.
        let core = unsafe { &raw const (*this).core };
        // SAFETY: as above. `this` is not used after `None`.
        if let Some(token) = unsafe { ProcessCore::stop(core, Runnable(self)) } {
            // SAFETY: the token keeps the cell live.
            let this = unsafe { &*this };
            // SAFETY: rule 2: this thread has the token.
            this.end(unsafe { &mut *inner }, reason);
            drop(token);
            return;
        }
        let exit = Signal::Exit {
            pid,
            reason,
            linked: false,
        };
        // The supervisor is a process of this scheduler, so `route` takes a lock of the registry,
        // after the stop and before the load of `is_closed`. A shutdown takes all these locks
        // between its store and its look for stopped processes. So this thread sees the store, or
        // the shutdown sees the stopped process.
        let routed = guarded(|| handle.route(supervisor, exit).is_ok());
        if routed != Some(true) || handle.is_closed() {
            // No supervisor will restart the process.
            handle.kill_for_good(pid, ExitReason::Killed);
        }
    }

    /// Closes the body. Returns the supervisor if it may restart the process.
    pub(super) fn close(&self, inner: &mut CellInner<P>, reason: &ExitReason) -> Option<Pid> {
        // The end of a closed body was reported before.
        if !matches!(inner.body, Body::Closed) {
            self.report_end(inner, reason);
        }
        self.close_body(inner);
        let supervised = inner.restart.as_mut();
        let restart = supervised.filter(|restart| restart.child.policy != Policy::Temporary)?;
        if self.core.state.is_final() {
            return None;
        }
        restart.last_exit = reason.clone();
        let (supervisor, keep_mail) = (restart.child.supervisor, restart.child.keep_mail);
        if !keep_mail {
            mem::take(&mut inner.pending.messages).for_each(|message| self.dead_letter(message));
            let mut left = Taken::default();
            self.core.messages.take(&mut left);
            left.for_each(|message| self.dead_letter(message));
        }
        // The urgent events that this incarnation had taken, and not handled, go to the next
        // incarnation, as do the events in the urgent lane. `Events` skips the events that were for
        // this incarnation only.
        Some(supervisor)
    }

    /// Closes and drops the body, once (rule 3).
    pub(super) fn close_body(&self, inner: &mut CellInner<P>) {
        let span = &inner.span;
        let close = |close: &mut dyn FnMut()| {
            span.run_guarded(|| {
                if let Err(panic) = panics::catch(close) {
                    self.panicked(panic);
                }
            });
        };
        match mem::replace(&mut inner.body, Body::Closed) {
            Body::Own(mut body) => {
                close(&mut || body.close());
                drop_guarded(body);
            }
            Body::Upgraded(mut body) => {
                close(&mut || body.close());
                drop_guarded(body);
            }
            Body::Closed => {}
        }
    }

    /// Reports a panic of the process's code to the scheduler's hook. Returns the exit reason, and
    /// drops the panic's payload. If this drop panics too, the payload of the second panic is
    /// leaked.
    #[cold]
    pub(super) fn panicked(&self, panic: panics::Payload) -> ExitReason {
        let reason = ExitReason::panicked(&*panic);
        panics::discard(panic);
        if let ExitReason::Panicked(text) = &reason {
            self.handle.report_panic(&self.info(), text);
        }
        reason
    }

    /// Counts and records the end of an incarnation, once.
    pub(super) fn report_end(&self, inner: &CellInner<P>, reason: &ExitReason) {
        self.handle.counters().exited(reason);
        inner.span.exited(reason);
    }

    pub(super) fn dead_letter(&self, message: P::Message) {
        self.handle.counters().dead_letter();
        drop_guarded(message);
    }

    /// Ends the process for good. Only the owner of the token calls this.
    pub(super) fn end(&self, inner: &mut CellInner<P>, reason: ExitReason) {
        inner.span.close();
        let (urgent, messages) = self.core.end();
        urgent.for_each(drop_guarded);
        mem::take(&mut inner.pending.urgent).for_each(drop_guarded);
        mem::take(&mut inner.pending.messages).for_each(|message| self.dead_letter(message));
        messages.for_each(|message| self.dead_letter(message));
        let restart = inner.restart.take();
        let supervisor = restart.as_ref().map(|restart| restart.child.supervisor);
        drop(restart);
        drop(inner.handler.take());
        let related = mem::replace(&mut *self.related.lock(), Related::Ended);
        let mut watchers = Vec::new();
        let mut links = Vec::new();
        let mut monitored = Vec::new();
        if let Related::Some(lists) = related {
            for name in lists.names {
                self.handle.unname(&name, self.pid);
            }
            for group in lists.groups {
                self.handle.ungroup(&group, self.pid);
            }
            watchers = lists.watchers;
            links = lists.links;
            monitored = lists.monitored;
        }
        self.handle.registry().remove(self.pid);
        let pid = self.pid;
        let exit = |linked| Signal::Exit {
            pid,
            reason: reason.clone(),
            linked,
        };
        for linked in links {
            self.handle.forget_remote(linked, pid);
            guarded(|| drop(self.handle.route(linked, exit(true))));
        }
        for target in monitored {
            guarded(|| self.handle.demonitor(pid, target));
        }
        for watcher in watchers {
            match watcher {
                Watcher::Process(by) => {
                    guarded(|| drop(self.handle.route(by, exit(false))));
                }
                Watcher::Thread(sender) => drop(sender.send(reason.clone())),
            }
        }
        if let Some(supervisor) = supervisor {
            guarded(|| drop(self.handle.route(supervisor, exit(false))));
        }
        self.handle.ended();
    }
}
