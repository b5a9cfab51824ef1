//! The shutdown of a runtime: the close, the end of each worker, and the wait for the threads.
//!
//! A runtime is *open*, *exiting*, *closing* or *over*. It is exiting only while it runs futures of
//! `at_exit` ([`exits`](crate::exits)): then it refuses spawns, and runs its tasks. Its drop, a
//! shutdown by its owner, the policy for unhandled panics and the drop of a driven worker close it.
//!
//! 1. [`Shared::close`] refuses spawns from then on, and unparks every worker. It refuses no wake:
//!    a task that is woken while the runtime is closing is queued, and ends in its queue.
//! 2. Each worker ends its own tasks ([`Core::end`]): those in its list, and those in the queues.
//!    Their futures are dropped there, so no worker walks the list of another one.
//! 3. A worker leaves when its list and the queues are empty after the fence in `end`. Until then
//!    it waits: another thread may hold one of its tasks, which comes back through the injector or
//!    through the release stack.
//! 4. A worker that leaves first awaits the wakes from outside that are under way (rule 2 of
//!    [`shared`](crate::shared)).
//! 5. A core that was lent when the runtime closed ends on the thread that has it. A thread whose
//!    poll has lost its core queues its task, and ends the queued tasks itself if the workers may
//!    have left ([`Shared::take_in`]).
//! 6. A driven worker that is dropped before its end closes the runtime, and ends the tasks that it
//!    finds ([`Core::abandon`]). From then on a wake from outside may find no worker: then the
//!    waking thread ends the queued tasks.
//! 7. The runtime's owner waits for the threads where it may ([`scope`]). A wait that times out
//!    leaves the threads to end by themselves, and they keep the memory that they need.
use crate::{
    Runtime,
    core::Core,
    driver::Parker,
    hooks::TaskMeta,
    park::Park,
    scheduler::Task,
    scope::{self, In},
    shared::Shared,
};
use std::time::{Duration, Instant};
use sync_shim::atomic::{
    Ordering::{Relaxed, Release, SeqCst},
    fence,
};
use worker_idle::announce::Registry;
#[cfg(feature = "groups")]
use worker_queue::RunQueue;

impl Runtime {
    /// Shuts the runtime down as its drop does, and waits no longer than `limit` for the threads.
    ///
    /// It returns whether all threads have ended their work by then. If so, it also waits for the
    /// destructors of their thread-locals, without a limit. Otherwise the remaining threads go on
    /// until they are done, and keep the memory that they need.
    ///
    /// ```
    /// # use std::time::Duration;
    /// let runtime = selvedge::Builder::new().workers(1).build()?;
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
    /// let runtime = selvedge::Runtime::new()?;
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
        if shared.process != std::process::id() {
            // This process is a fork: the threads, which may have held locks, are its parent's.
            return false;
        }
        // Without a wait each thread still ends by itself.
        let waits = scope::may_wait_for_end_of(shared);
        let limit = if waits { limit } else { Some(Duration::ZERO) };
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        if !self.exit(deadline) {
            return false; // The driven workers close the runtime.
        }
        shared.close();
        let limit = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        if let Some(driven) = &self.current_thread
            && !driven.end(limit)
        {
            return false;
        }
        // Without a limit the joins below are the wait.
        let ended = limit.is_none() || shared.blocking.wait(limit);
        if ended && waits {
            shared.blocking.join();
            shared.monitor.join();
            // The monitor may have handed a core to a new thread meanwhile.
            shared.blocking.join();
        }
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
        // flag: a worker that ends finds the injector closed, and so every task that was pushed
        // before. Tasks that come in later are found by that fence and the one of `Idle::notify`,
        // in `take_in`.
        self.closing.store(true, Release);
        // This comes before the workers are unparked: they look at the pool when they end.
        self.blocking.finish();
        for (worker, remote) in self.remotes.iter().enumerate() {
            if remote.unparker.take_unstarted().is_some() {
                // The worker counts as searching now. A notifier that relied on that is served by
                // the others, which are unparked below.
                self.idle.wake_self(worker);
                self.idle.stop_searching();
            }
        }
        for remote in &self.remotes {
            let waker = remote.unparker.waker();
            self.hooks.contain(|| waker.wake_by_ref());
        }
        self.end_exit();
    }

    /// Refuses spawns from now on.
    pub(crate) fn refuse_spawns(&self) {
        self.injector.close();
        #[cfg(feature = "groups")]
        self.groups.injector.close();
        // Ordering: Relaxed, see the load in `refuses_spawns`.
        self.refuses_spawns.store(true, Relaxed);
    }

    /// Cancels the queued tasks on this thread. If the thread is in this loop already, the drop of
    /// a future has queued a task, which the outer loop finds. Panics of the drops and of the hook
    /// are contained, so the loop goes on.
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
                self.hooks.call_with(&self.hooks.on_end, meta);
            }
        });
    }

    /// Closes the runtime because a driven worker is dropped before its end. The caller then tries
    /// to end that worker.
    pub(crate) fn abandon(&self) {
        // Ordering: Relaxed, the fence in `Core::end` pairs with that of the notification in
        // `schedule`: a wake that comes in after the end's last check sees this.
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
        self.clock_in();
        self.counters().set_polled(None);
        self.leave_search();
        // SAFETY: borrowed for this call. The futures' drops may reach the queues, but no list: no
        // task is polled here, and a core is lent only in a poll.
        let owned = unsafe { self.owned() };
        owned.close();
        owned.cancel_all_and(|id, spawned_at| self.ended(TaskMeta::new(id, spawned_at)));
        let injected = || self.shared.pop_injected();
        while let Some(task) = self.queue.take_any().or_else(injected) {
            let meta = TaskMeta::of(&task);
            owned.cancel(task);
            self.ended(meta);
        }
        owned.drain();
        self.clock_out();
        // Ordering: SeqCst pairs with the fence of the notification in `Shared::take_in`. It comes
        // after this thread has seen the close.
        fence(SeqCst);
        owned.is_empty() && !self.shared.has_injected() && self.queue.is_empty()
    }

    /// Returns whether a second [`end`](Self::end), right after one that failed, would find
    /// something to do.
    pub(crate) fn has_leftovers(&self) -> bool {
        self.shared.has_injected() || !self.queue.is_empty() || self.has_releases()
    }

    /// Counts the end of a queued task whose future was dropped, and calls the hook.
    pub(crate) fn ended(&self, task: TaskMeta<'static>) {
        self.counters().ended.add(1);
        self.shared.hooks.call_with(&self.shared.hooks.on_end, task);
    }

    /// Waits in a thread of the runtime until another end may find more (rule 3).
    pub(crate) fn wait_in_thread(&self) {
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
                // If neither is true, a task came in after the check of its queue: from a thread
                // that may not have seen that the worker is dropped, from a drop in this end, or
                // from an end on another thread.
                if has_ended || !self.has_leftovers() {
                    return has_ended;
                }
            }
        });
        if has_ended {
            Registry::wait_keeping(&shared.announcements, || shared.clone());
        } else {
            // Tasks that other threads hold point to the runtime, so it is never freed.
            std::mem::forget(shared);
        }
    }
}
