//! The shutdown of a runtime: the close, the end of each worker, and the wait for the threads.
//!
//! A runtime is *open*, *exiting*, *closing* or *over*. It is exiting only while it runs futures of
//! `at_exit` ([`exits`](crate::settings::exits)): then it refuses spawns, and runs its tasks. Four
//! events close a runtime: its drop, a shutdown by its owner, an unhandled panic under the policy
//! `Shutdown`, and the drop of a driven worker.
//!
//! 1. From [`Shared::close`] on the runtime refuses spawns. `close` unparks every worker. Wakes are
//!    not refused: a task that is woken while the runtime is closing is queued, and a thread ends
//!    the queued task.
//! 2. Each worker ends its own tasks ([`Core::end`]): those in its list, and those in the queues.
//!    The worker drops the futures itself, so no worker walks the list of another one.
//! 3. A worker leaves when its list and the queues are empty after the fence in `end`. Until then
//!    it waits: another thread may hold one of its tasks, which comes back through the injector,
//!    its inbox or the release stack.
//! 4. Before a worker leaves, it waits for the wakes from outside that are under way (rule 2 of
//!    [`shared`](crate::worker::shared)).
//! 5. A core that was lent when the runtime closed ends on the thread that has it. A thread whose
//!    poll has lost its core queues its task, and ends the queued tasks itself if the workers may
//!    have left ([`Shared::take_in`]).
//! 6. A driven worker that is dropped before its end closes the runtime, and ends the tasks that it
//!    finds ([`Core::abandon`]). From then on a wake from outside may find no worker: then the
//!    waking thread ends the queued tasks.
//! 7. The runtime's owner waits for the threads where it may ([`scope`]). If the wait times out,
//!    the threads end by themselves, and keep the memory that they need until then.
use crate::{
    Runtime,
    scope::{self, In},
    settings::hooks::TaskMeta,
    worker::{core::Core, driver::Parker, park::Park, scheduler::Task, shared::Shared},
};
use std::{mem, time::Duration};
use sync_shim::atomic::{
    Ordering::{Relaxed, Release, SeqCst},
    fence,
};
use worker_idle::announce::Registry;
use worker_queue::RunQueue;

impl Runtime {
    /// Shuts the runtime down as its drop does, and waits no longer than `limit` for the threads.
    ///
    /// It returns whether all threads have ended their work within the limit. If they have, it also
    /// waits for the destructors of their thread-locals, without a limit. If they have not, the
    /// remaining threads go on until they are done, and keep the memory that they need.
    ///
    /// ```
    /// # use std::time::Duration;
    /// let runtime = selvedge_executor::Builder::new().workers(1).build()?;
    /// runtime.spawn_blocking(|| std::thread::sleep(Duration::from_secs(3)));
    /// # std::thread::sleep(Duration::from_millis(50));
    /// assert!(!runtime.shutdown_timeout(Duration::from_millis(10)));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn shutdown_timeout(mut self, limit: Duration) -> bool {
        self.end(Some(limit))
    }

    /// Shuts the runtime down as its drop does, and does not wait.
    ///
    /// Closures that were spawned before still run, unless the process ends first.
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// runtime.spawn_blocking(|| std::thread::sleep(std::time::Duration::from_secs(3)));
    /// runtime.shutdown_background();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn shutdown_background(mut self) {
        self.end(Some(Duration::ZERO));
    }

    /// Closes the runtime, and waits for its threads where that is allowed (rule 7). Returns
    /// whether they have ended.
    pub(crate) fn end(&mut self, limit: Option<Duration>) -> bool {
        self.over = true;
        let shared = self.handle.shared();
        if shared.is_in_forked_child() {
            // The threads of the parent process may have held locks, which stay locked in this
            // process. The sockets and the driver are those of the parent. So this process leaks
            // the worker that it would end.
            mem::forget(self.current_thread.take());
            return false;
        }
        if std::thread::panicking() {
            shared.trace.note_panic();
        }
        // Without a wait each thread still ends by itself.
        let waits = scope::may_wait_for_end_of(shared);
        let limit = if waits { limit } else { Some(Duration::ZERO) };
        let deadline = limit.and_then(|limit| sync_shim::time::now().checked_add(limit));
        if !self.exit(deadline) {
            return false; // The driven workers close the runtime.
        }
        shared.close();
        let driven = self.current_thread.as_ref();
        if driven.is_some_and(|driven| !driven.end(deadline)) {
            return false;
        }
        let limit = deadline.map(|at| at.saturating_duration_since(sync_shim::time::now()));
        // Without a limit the joins below are the wait.
        let ended = limit.is_none() || shared.blocking.wait(limit);
        let limit = deadline.map(|at| at.saturating_duration_since(sync_shim::time::now()));
        let ended = ended && (!waits || shared.trace.wait(limit));
        if ended && waits {
            shared.blocking.join();
            shared.monitor.join();
            // The monitor may have handed a core to a new thread meanwhile.
            shared.blocking.join();
        }
        // Last, so that a signal shows the tasks at which the end hangs.
        #[cfg(all(unix, feature = "signal", not(any(selvedge_loom, selvedge_shuttle))))]
        shared.dump_signals.close();
        ended
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if !self.over {
            self.end(None);
        }
    }
}

impl Shared {
    /// Refuses spawns from now on, and unparks the workers so that they end.
    pub(crate) fn close(&self) {
        self.refuse_spawns();
        // Ordering: Release pairs with the fence of `Core::end`, which comes after a load of this
        // flag. So a worker that ends finds the injector closed, and finds every task that was
        // pushed before the close. For a task that comes in later (`take_in`), the fence of
        // `Core::end` pairs with that of `Idle::notify`.
        self.closing.store(true, Release);
        // The pool finishes before the workers are unparked: workers look at the pool when they
        // end.
        self.blocking.finish();
        for (worker, remote) in self.remotes.iter().enumerate() {
            if remote.unparker.take_unstarted().is_some() {
                // The worker counts as searching between these two calls. A notifier may rely on
                // that, and wake no other worker. The other workers are unparked below, so they
                // find the notifier's task after the fence of `Core::end`.
                self.idle.wake_self(worker);
                self.idle.stop_searching();
            }
        }
        for remote in &self.remotes {
            let waker = remote.unparker.waker();
            self.hooks.contain(|| waker.wake_by_ref());
        }
        self.trace.close();
        self.end_exit();
    }

    /// Refuses spawns from now on.
    pub(crate) fn refuse_spawns(&self) {
        self.injector.close();
        self.groups.close();
        // Ordering: Relaxed, see the load in `refuses_spawns`.
        self.refuses_spawns.store(true, Relaxed);
    }

    /// Cancels the queued tasks on this thread. If the thread is in this loop already, the drop of
    /// a future has queued a task. Then this call returns, and the outer call's loop finds the
    /// task. Panics of the drops and of the hook are contained, so the loop goes on.
    #[cold]
    pub(crate) fn end_queued(&self) {
        if scope::is_ending(self) {
            return;
        }
        scope::within(In::Ending(self), || {
            while let Some(task) = self.pop_injected() {
                let meta = TaskMeta::of(&task);
                drop(task);
                // Ordering: Relaxed, as it is only a count.
                self.ended_outside.fetch_add(1, Relaxed);
                self.hooks.call_task_hook(&self.hooks.on_end, meta);
            }
        });
    }

    /// Closes the runtime because a driven worker is dropped before its end. The caller then tries
    /// to end that worker.
    pub(crate) fn abandon(&self) {
        // Ordering: Relaxed, the fence in `Core::end` pairs with that of the notification in
        // `schedule`: a wake that comes in after the last check of `Core::end` sees this store.
        self.abandoned.store(true, Relaxed);
        self.close();
    }

    /// Returns whether a driven worker was dropped before its end.
    pub(crate) fn is_abandoned(&self) -> bool {
        // Ordering: Relaxed, pairs with `abandon` by the fence of the notification before it.
        self.abandoned.load(Relaxed)
    }
}

impl Core {
    /// Drops the futures of this worker's tasks and of all queued tasks. Returns whether this
    /// worker's list and the queues are empty.
    pub(crate) fn end(&self) -> bool {
        self.busy_time.begin();
        self.counters().set_polled(None);
        self.leave_search();
        // SAFETY: the list is borrowed for this call. The futures' drops may reach the queues, but
        // not the list: no task is polled here, and a core is lent only in a poll.
        let owned = unsafe { self.owned() };
        owned.watch_releases();
        owned.cancel_all_and(|id, spawned_at| self.ended(TaskMeta::new(id, spawned_at)));
        let injected = || self.shared.pop_injected();
        while let Some(task) = RunQueue::take_any(&self.queue).or_else(injected) {
            let meta = TaskMeta::of(&task);
            owned.cancel(task);
            self.ended(meta);
        }
        owned.drain();
        self.busy_time.end(self.counters());
        // Ordering: SeqCst pairs with the fence of the notification in `Shared::take_in`. This
        // fence comes after this thread has seen the close.
        fence(SeqCst);
        owned.is_empty() && !self.shared.has_injected_or_mail() && self.queue.is_empty()
    }

    /// Returns whether, after an [`end`](Self::end) that has returned false, this worker can only
    /// wait for another thread: that thread holds a task of this worker's list, and nothing else is
    /// left to do. If the list is empty, `end` has seen a task that another worker has taken since,
    /// and nobody would unpark this worker.
    pub(crate) fn awaits_release(&self) -> bool {
        // SAFETY: the list is borrowed for this call, which runs no user code.
        let has_tasks = !unsafe { self.owned() }.is_empty();
        let is_empty = !self.shared.has_injected_or_mail() && self.queue.is_empty();
        has_tasks && is_empty && !self.has_releases()
    }

    /// Counts the end of a queued task whose future was dropped, and calls the hook.
    pub(crate) fn ended(&self, task: TaskMeta<'static>) {
        self.counters().ends.add(1);
        self.shared
            .hooks
            .call_task_hook(&self.shared.hooks.on_end, task);
    }

    /// Waits in a thread of the runtime until another call of `end` may find more tasks (rule 3).
    pub(crate) fn wait_in_thread(&self) {
        self.shared.process.end_in_child();
        if let Some(mut parker) = self.park.take() {
            match &mut parker {
                Parker::Events(park) => self.wait_in(park),
                Parker::Driver(driver) => driver.with(|park| self.wait_in(park)),
            }
            self.park.set(Some(parker));
        }
    }

    fn wait_in(&self, park: &mut impl Park) {
        let hooks = &self.shared.hooks;
        hooks.contain(|| self.sleep_until_release(park, None));
        hooks.contain(|| self.deliver(park));
    }

    /// Ends the runtime of a worker that is dropped before its end.
    pub(crate) fn abandon(&self, found: Option<Task>) {
        let shared = self.shared.clone();
        shared.abandon();
        if let Some(task) = found {
            self.queue.push_back(task, self);
        }
        let has_ended = self.as_worker(|| {
            loop {
                let has_ended = self.end();
                // If the loop goes on, a task came in after `end` had checked its queue. It came
                // from a thread that may not have seen that the worker is dropped, from a drop in
                // this `end`, or from an `end` on another thread.
                if has_ended || self.awaits_release() {
                    return has_ended;
                }
            }
        });
        if has_ended {
            Registry::wait_keeping(&shared.announcements, || shared.clone());
        } else {
            // Other threads hold tasks that point to the runtime, so the runtime is never freed.
            mem::forget(shared);
        }
    }
}
