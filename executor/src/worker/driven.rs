//! A driven worker: it has no thread of the runtime, and a loop of the program calls its `tick`.
use crate::{
    events::{self, DrivenEvents, EventsPark},
    scope,
    worker::{
        context::OnWorker,
        core::Core,
        park::{Park, Patience},
        run::run,
        scheduler::Task,
    },
};
use coop_budget::{Budget, Scope, Turns};
use std::{
    fmt,
    mem::{self, ManuallyDrop},
    task::Waker,
    time::Duration,
};
use sync_shim::panics;
use worker_idle::announce::Registry;
use worker_queue::RunQueue;

/// The result of a [`Worker::tick`].
///
/// ```
/// use selvedge_executor::{Builder, Tick, park::ThreadPark};
///
/// let (runtime, mut workers) = Builder::new().build_driven([ThreadPark::new()]);
/// let mut worker = workers.remove(0);
/// assert_eq!(worker.tick(), Tick::Idle);
/// runtime.spawn_detached(async {});
/// assert_eq!(worker.tick(), Tick::Ran);
/// drop(runtime);
/// assert_eq!(worker.tick(), Tick::Ended);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a worker that is ticked while it is idle or has ended spins"]
pub enum Tick {
    /// The worker ran a task, and up to three more from its LIFO slot.
    Ran,
    /// There is nothing to run: [`park`](Worker::park), or do something else for a while.
    Idle,
    /// The runtime has ended, and this worker's tasks are gone. Each later tick returns this too.
    Ended,
}

/// A worker that a loop of the program drives, made by
/// [`Builder::build_driven`](crate::Builder::build_driven).
///
/// It does what a thread of the runtime does, but the loop is the program's. Call `tick` while
/// `tick` returns [`Tick::Ran`], call `park` after [`Tick::Idle`], and stop at [`Tick::Ended`].
/// The program's own timers, I/O or user interface may run in the [`Park`], or between the ticks. A
/// task that calls [`block_in_place`](crate::block_in_place()) does not lend this worker to another
/// thread. A tick yields the CPU:
/// - after 4,096 polls in a row of tasks that only yielded;
/// - before it steals tasks of another worker, if no worker sleeps and the injector is empty.
///
/// A worker that is dropped before it has ended shuts its runtime down, and drops the futures of
/// its tasks. If another thread holds one of these tasks at that moment, the task ends on that
/// thread. Then the memory of this task and of the runtime is never freed, and the descriptors of
/// the runtime's poller stay open. In a child made by `fork` the drop of the worker's copy drops
/// the copy of the [`Park`], and does nothing else ([`Runtime`](crate::Runtime#fork)).
///
/// ```
/// use selvedge_executor::{Builder, Tick, park::ThreadPark};
///
/// let (runtime, mut workers) = Builder::new().build_driven([ThreadPark::new()]);
/// let task = runtime.spawn(async { 6 * 7 });
/// let mut worker = workers.remove(0);
/// while !task.is_finished() {
///     match worker.tick() {
///         Tick::Ran => {}
///         Tick::Idle => worker.park(),
///         Tick::Ended => break,
///     }
/// }
/// drop(runtime);
/// worker.run(); // Returns when the runtime has ended.
/// ```
pub struct Worker<P: Park> {
    pub(crate) core: ManuallyDrop<Box<Core>>,
    park: P,
    events: DrivenEvents,
    /// The task that the last park took from a LIFO slot. The next tick queues it.
    found: Option<Task>,
    stage: Stage,
}

/// Ends a worker's search, and offers its tasks to the other workers, if its parker panics: the
/// program might not tick the worker for a while. Without a panic this value is forgotten.
struct OfferTasksOnPanic<'a>(&'a Core);

impl Drop for OfferTasksOnPanic<'_> {
    fn drop(&mut self) {
        self.0.as_worker(|| {
            self.0.leave_search();
            self.0.offer_tasks();
        });
    }
}

/// The stage of a driven worker's life.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    New,
    Ticked,
    Ended,
}

impl Core {
    fn tick(&self, found: Option<Task>) -> Tick {
        sync_shim::sim::point();
        let shared = &self.shared;
        if let Some(task) = found {
            self.queue.push_back(task, self);
        }
        if shared.is_closing() {
            if !self.end() {
                return Tick::Idle;
            }
            // An outside thread may still be in the announcement of its last push, in which it uses
            // `shared`. So `shared` lives until this wait is over.
            Registry::wait_keeping(&shared.announcements, || shared.clone());
            return Tick::Ended;
        }
        let Some(task) = self.next() else {
            // The program may park this worker much later. Until then no push may rely on this
            // worker as a searcher.
            self.leave_search();
            return Tick::Idle;
        };
        let settings = self.begin_run(&task);
        // `false`: the tasks of a driven worker do not lend its core.
        let run_task = |turns: &Turns<'_>| run::<false>(shared, turns, settings, task);
        Scope::own(Budget::UNLIMITED)
            .slice(self.slice.get())
            .hook(&OnWorker)
            .turns(run_task);
        RunQueue::leave(&self.queue, self);
        Tick::Ran
    }

    /// Lets the other workers find the tasks that a delivery has woken, and notifies one of them. A
    /// delivery that wakes a single task notifies no other worker, since this worker usually runs
    /// that task at once. Here it may not run soon.
    fn offer_tasks(&self) {
        RunQueue::leave(&self.queue, self);
        if !self.queue.is_empty() {
            self.shared.notify();
        }
    }
}

impl Worker<EventsPark> {
    /// Makes a worker whose parker waits for timers and sockets itself.
    pub(crate) fn of_events_park(core: Box<Core>, park: EventsPark) -> Self {
        Self::with_events(core, park, DrivenEvents::none())
    }

    /// Fires all timers that are due and polls the sockets, without a wait. Returns whether this
    /// has called wakers. Contains the panics of wakers.
    pub(crate) fn look_at_all(&mut self) -> bool {
        events::poll_all(&mut self.park);
        let found = self.park.has_events();
        while self.park.has_events() {
            // The park gives each waker up before it calls the waker. So this loop ends, even if
            // every waker panics.
            self.contained(|worker| worker.core.deliver(&mut worker.park));
        }
        let core = &*self.core;
        core.as_worker(|| core.queue.leave(&**core));
        found
    }
}

impl<P: Park> Worker<P> {
    pub(crate) fn new(core: Box<Core>, park: P) -> Self {
        let events = DrivenEvents::new(&core.shared.events, core.index);
        Self::with_events(core, park, events)
    }

    fn with_events(core: Box<Core>, park: P, events: DrivenEvents) -> Self {
        Self {
            events,
            core: ManuallyDrop::new(core),
            park,
            found: None,
            stage: Stage::New,
        }
    }

    /// Runs the next task.
    ///
    /// # Panics
    /// If the [`Park`] panics. Some ticks poll the park, for example every 61st tick by default.
    /// The worker can still be used after the panic.
    pub fn tick(&mut self) -> Tick {
        match self.stage {
            Stage::Ticked => {}
            Stage::New => {
                self.core.busy_time.begin();
                self.stage = Stage::Ticked;
            }
            Stage::Ended => return Tick::Ended,
        }
        let (core, found) = (&*self.core, self.found.take());
        let tick = core.as_worker(|| core.tick(found));
        if tick == Tick::Ended {
            self.stage = Stage::Ended;
        } else if core.looks.poll_is_due.take() {
            let has_events = self.look();
            let core = &self.core;
            if tick == Tick::Idle && !core.queue.is_empty() {
                return self.tick();
            }
            if has_events {
                core.as_worker(|| core.offer_tasks());
            }
        }
        tick
    }

    /// Returns whether tasks are queued here or came from outside.
    pub(crate) fn has_ready_tasks(&self) -> bool {
        let core = &*self.core;
        self.found.is_some() || !core.queue.is_empty() || core.shared.has_injected()
    }

    /// Polls the parker, without a wait. Returns whether there were events.
    fn look(&mut self) -> bool {
        let core: &Core = &self.core;
        core.shared
            .assert_is_not_in_forked_child("a look of a worker at its events");
        let on_panic = OfferTasksOnPanic(core);
        let mut park = self.events.over(&mut self.park);
        if let Some(max) = core.max_busy_events() {
            park.poll(max);
        }
        let has_events = park.has_events();
        core.deliver(&mut park);
        mem::forget(on_panic);
        core.as_worker(|| core.queue.leave(core));
        has_events
    }

    /// Parks until there may be a task to run, or until the [`Park`] returns for a reason of its
    /// own. Returns at once if there is a task.
    ///
    /// Call [`tick`](Self::tick) soon after this returns. Until then a thread that pushes a task
    /// may rely on this worker to run the task, and wake no other worker.
    ///
    /// # Panics
    /// - If the [`Park`] panics. The worker can still be used after the panic.
    /// - If the process is a child made by [`fork`](crate::Runtime#fork).
    #[track_caller]
    pub fn park(&mut self) {
        self.park_for(None);
    }

    /// Parks as [`park`](Self::park), at most for `limit`.
    ///
    /// ```
    /// use selvedge_executor::{Builder, Tick, park::ThreadPark};
    ///
    /// let (runtime, mut workers) = Builder::new().build_driven([ThreadPark::new()]);
    /// let task = runtime.spawn(selvedge_executor::yield_now());
    /// let mut worker = workers.remove(0);
    /// for _frame in 0..3 {
    ///     while worker.tick() == Tick::Ran {}
    ///     worker.park_timeout(std::time::Duration::from_millis(2));
    ///     // Here the program would draw a frame.
    /// }
    /// assert!(task.is_finished());
    /// ```
    ///
    /// # Panics
    /// As [`park`](Self::park).
    #[track_caller]
    pub fn park_timeout(&mut self, limit: Duration) {
        self.park_for(Some(limit));
    }

    #[track_caller]
    fn park_for(&mut self, limit: Option<Duration>) {
        if self.stage == Stage::Ended || self.found.is_some() {
            return;
        }
        self.core
            .shared
            .assert_is_not_in_forked_child("the park of a worker");
        let on_panic = OfferTasksOnPanic(&self.core);
        let mut park = self.events.over(&mut self.park);
        if self.core.shared.is_closing() {
            self.core.sleep_until_release(&mut park, limit);
            self.core.deliver(&mut park);
            mem::forget(on_panic);
        } else {
            self.found = self.core.sleep(&mut park, Patience::Once(limit));
            self.core.deliver(&mut park);
            mem::forget(on_panic);
            self.core.as_worker(|| self.core.queue.leave(&**self.core));
            if self.found.is_none() && !self.core.shared.has_work() {
                self.core.as_worker(|| self.core.leave_search());
            }
        }
    }

    /// Ticks until there is nothing to run, at most for `limit`. Returns the last tick.
    ///
    /// A game calls this with the time that a frame has left for tasks. [`Tick::Ran`] means that
    /// the limit is over, and that there may be more tasks to run. A tick that has begun goes on
    /// beyond the limit. Each tick reads the clock once.
    ///
    /// ```
    /// use selvedge_executor::{Builder, Tick, park::ThreadPark};
    /// use std::time::Duration;
    ///
    /// let (runtime, mut workers) = Builder::new().build_driven([ThreadPark::new()]);
    /// let mut worker = workers.remove(0);
    /// let tasks: Vec<_> = (0..10).map(|n| runtime.spawn(async move { n })).collect();
    /// assert_eq!(worker.run_for(Duration::from_secs(60)), Tick::Idle);
    /// assert!(tasks.iter().all(|task| task.is_finished()));
    /// runtime.spawn_detached(async { loop { selvedge_executor::yield_now().await } });
    /// assert_eq!(worker.run_for(Duration::from_millis(1)), Tick::Ran);
    /// ```
    ///
    /// # Panics
    /// As [`tick`](Self::tick).
    pub fn run_for(&mut self, limit: Duration) -> Tick {
        let begun = sync_shim::time::now();
        loop {
            let tick = self.tick();
            if tick != Tick::Ran || sync_shim::time::since(begun) >= limit {
                return tick;
            }
        }
    }

    /// Returns the waker by which the runtime unparks this worker.
    pub(crate) fn unpark_waker(&self) -> Waker {
        self.core.shared.remotes[self.core.index]
            .unparker
            .waker()
            .clone()
    }

    /// Runs `f` on this worker. Contains a panic of user code outside of tasks, as the loop of a
    /// thread of the runtime does. Returns `None` after a panic.
    pub(crate) fn contained<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> Option<R> {
        match panics::catch(|| f(self)) {
            Ok(result) => Some(result),
            Err(payload) => {
                self.core.shared.hooks.panicked(&*payload);
                panics::discard(payload);
                None
            }
        }
    }

    /// Ticks and parks until the runtime ends.
    pub fn run(mut self) {
        loop {
            match self.tick() {
                Tick::Ran => {}
                Tick::Idle => self.park(),
                Tick::Ended => return,
            }
        }
    }

    /// Returns the parker.
    ///
    /// The runtime uses the waker that this parker returned when the runtime was built. If you put
    /// another [`Park`] in its place, that same waker must end the parks of the new one.
    /// Otherwise this worker stays asleep when there is work.
    ///
    /// ```
    /// use selvedge_executor::park::{Park, ThreadPark};
    ///
    /// let (_runtime, mut workers) = selvedge_executor::Builder::new().build_driven([ThreadPark::new()]);
    /// let mut worker = workers.remove(0);
    /// worker.park_mut().waker().wake();
    /// worker.park(); // Returns at once.
    /// ```
    pub fn park_mut(&mut self) -> &mut P {
        &mut self.park
    }
}

impl<P: Park> Drop for Worker<P> {
    fn drop(&mut self) {
        if self.core.idle_state.asleep.get() || scope::is_worker_by(&self.core.shared) {
            // This thread is still in this worker's sleep or scope: its parker, or a poll of the
            // worker, has called `process::exit`, and never returns. So the core stays in use, and
            // is leaked.
            return;
        }
        if self.core.shared.is_in_forked_child() {
            // The parent process has this worker. This process leaks the copy: the end of the
            // worker could wait for threads of the parent, and would drop the parent's sockets.
            let events = mem::replace(&mut self.events, DrivenEvents::none());
            mem::forget((events, self.found.take()));
            return;
        }
        // SAFETY: the field is not used after this.
        let core = unsafe { ManuallyDrop::take(&mut self.core) };
        if self.stage != Stage::Ended {
            core.abandon(self.found.take());
        }
    }
}

impl<P: Park> fmt::Debug for Worker<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("index", &self.core.index)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(selvedge_shuttle, selvedge_count))))]
mod conformance;
#[cfg(all(test, selvedge_count))]
mod counts;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle, selvedge_count))))]
mod tests;
