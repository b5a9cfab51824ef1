//! How a runtime is put together: its queues, its shared state, its workers and their threads.
use super::MAX_WORKERS;
use crate::{
    Builder, Runtime, Worker, blocking,
    events::{Events, EventsPark},
    groups::RuntimeGroups,
    local::runtime::{LocalOptions, LocalRuntime},
    monitor::Monitor,
    observe::metrics::Counters,
    scope,
    settings::attributes::Attributes,
    worker::{
        core::Core,
        driver::Parker,
        park::Park,
        queue::Queue,
        shared::{Remote, Shared},
        unpark::Unparker,
    },
};
use blocking_threads::{Lent, Pool};
use std::{io, task::Waker};
use sync_shim::{CachePadded, atomic::AtomicU64, sync::Arc};
use worker_queue::{RunQueue, WorkerQueue};

impl Builder {
    /// Starts the runtime.
    ///
    /// # Errors
    /// - If [`enable_io`](Self::enable_io) was called, and the kernel refuses the objects that
    ///   sockets need.
    /// - If the number of workers comes from `SELVEDGE_WORKERS`, and the variable's value is not a
    ///   number from 1 to 65,535.
    /// - If the thread of the first worker cannot be started. If `build` starts all threads
    ///   ([`prestart`](Self::prestart)), it fails when any worker's thread cannot be started. In
    ///   both cases `build` leaves no thread behind. (A `build` inside a task does not wait for the
    ///   end of the threads that it had started, because the wait would hold up other tasks. These
    ///   threads may end a little later.)
    pub fn build(mut self) -> io::Result<Runtime> {
        if self.settings.current_thread {
            let enable_io = self.enable_io;
            self.monitor.turn_off();
            let events = Events::new(1, self.polling).without(self.no_sleeps, self.no_sockets);
            let parks = vec![events.park_of_users(0, self.settings.backoff.rule())];
            let (mut runtime, mut cores) = self.assemble(parks, EventsPark::waker, Some(events));
            if enable_io {
                runtime.handle().shared().events.open()?;
            }
            let (core, park) = cores.remove(0);
            runtime.be_driven_by_block_on(Worker::of_events_park(core, park));
            return Ok(runtime);
        }
        let workers = self.workers.map_or_else(default_workers, Ok)?;
        let at_once = self.prestart || self.hooks.on_start.is_some() || self.driver.is_some();
        self.settings.has_drivers = self.driver.is_some();
        // A model must be repeatable.
        let repeatable = cfg!(any(selvedge_loom, selvedge_shuttle));
        self.settings.adapts = !self.fixed_interval && !repeatable;
        let (parkers, events): (Vec<_>, _) = if let Some(make) = &self.driver {
            let parker = |worker| Parker::made_by(make, worker);
            ((0..workers).map(parker).collect(), None)
        } else {
            let events = Events::new(workers, self.polling);
            let events = events.without(self.no_sleeps, self.no_sockets);
            let wait = self.settings.backoff.rule();
            let parker = |worker| Parker::Events(events.park(worker, wait));
            ((0..workers).map(parker).collect(), Some(events))
        };
        let enable_io = self.enable_io;
        let (runtime, cores) = self.assemble(parkers, Parker::waker, events);
        let shared = runtime.handle().shared().clone();
        if enable_io {
            shared.events.open()?;
        }
        // The first worker starts last, so that it finds the cores of the other workers when it
        // notifies them.
        for (core, park) in cores.into_iter().rev() {
            let index = core.index;
            let park = park.with_timers(&shared.events, index);
            core.park.set(Some(park));
            // The first worker counts as searching before its thread runs. So does a worker whose
            // thread a notification starts later. Pushes wake no worker while one searches, so no
            // hook may delay such a worker's thread before its search. With a hook all threads
            // start at once, and then no worker counts as searching here.
            core.idle_state
                .searching
                .set(!at_once && (index > 0 || shared.idle.try_search()));
            if at_once || index == 0 {
                // At an error, the drop of the runtime waits for the threads that have started.
                blocking::start(core)?;
            } else {
                shared.remotes[index].unparker.start_later(core);
                // No look at the queues need follow: nothing can have been pushed yet.
                shared.idle.sleep(index, false);
            }
        }
        shared.monitor.start_at_once(&shared);
        Ok(runtime)
    }

    /// Makes a runtime of this thread. The runtime also takes futures that are not `Send`.
    ///
    /// ```
    /// use selvedge_executor::{Builder, runtime::LocalOptions};
    ///
    /// let builder = Builder::new_current_thread().name("local");
    /// let runtime = builder.build_local(LocalOptions::default())?;
    /// assert_eq!(runtime.handle().name(), Some("local"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`build`](Self::build).
    ///
    /// # Panics
    /// If the builder is not one of [`new_current_thread`](Self::new_current_thread).
    #[track_caller]
    pub fn build_local(self, options: LocalOptions) -> io::Result<LocalRuntime> {
        let LocalOptions { .. } = options;
        assert!(
            self.settings.current_thread,
            "a LocalRuntime runs its tasks in its own thread: begin with new_current_thread"
        );
        self.build().map(LocalRuntime::of)
    }

    /// Makes a runtime without worker threads, and a [`Worker`] for each of `parks`.
    ///
    /// The caller's own loops drive the workers. The setting [`workers`](Self::workers) is ignored.
    /// Threads for blocking closures are started as needed.
    ///
    /// # Panics
    /// If `parks` is empty.
    ///
    /// ```
    /// use selvedge_executor::{Builder, park::ThreadPark};
    ///
    /// let (runtime, workers) = Builder::new().build_driven([ThreadPark::new()]);
    /// let thread = std::thread::spawn(|| workers.into_iter().for_each(selvedge_executor::Worker::run));
    /// assert_eq!(runtime.block_on(runtime.spawn(async { 7 })).unwrap(), 7);
    /// drop(runtime);
    /// thread.join().unwrap();
    /// ```
    #[track_caller]
    pub fn build_driven<P: Park>(
        mut self,
        parks: impl IntoIterator<Item = P>,
    ) -> (Runtime, Vec<Worker<P>>) {
        let parks: Vec<_> = parks.into_iter().collect();
        assert!(
            !parks.is_empty(),
            "build_driven needs a Park for each worker, and at least one"
        );
        self.monitor.turn_off();
        let (mut runtime, cores) = self.assemble(parks, |park| park.waker(), None);
        let workers = cores
            .into_iter()
            .map(|(core, park)| Worker::new(core, park));
        runtime.is_driven = true;
        (runtime, workers.collect())
    }

    /// Makes the runtime, without the threads of its workers. At an error of the caller, the
    /// runtime's drop ends what has begun here.
    pub(super) fn assemble<P>(
        self,
        parks: Vec<P>,
        unparker: impl Fn(&P) -> Waker,
        events: Option<Events>,
    ) -> (Runtime, Vec<(Box<Core>, P)>) {
        let mut settings = self.settings;
        let views = match self.unobserved {
            true => self.views,
            false => self.views.with_environment(),
        };
        let mut recorder = self.recorder;
        views.change(&mut settings, &mut recorder);
        let events_after = self.event_interval.unwrap_or(u32::MAX);
        settings.global_interval = settings.global_interval.min(events_after);
        let busy_events = self.max_busy_io_events.or(self.max_io_events);
        settings.max_busy_events = busy_events.unwrap_or(settings.max_busy_events);
        if settings.lists_tasks {
            coop_budget::note_holders();
        }
        settings.special_spawns = self.hooks.observe_spawns() || settings.lists_tasks;
        settings.observed =
            self.hooks.observe_polls() || settings.poll_times || settings.lists_tasks;
        let groups = RuntimeGroups::new(parks.len(), self.groups);
        let seed = sync_shim::random::number_or(settings.seed);
        let queue = |index| {
            let own = WorkerQueue::new(self.ring_capacity)
                .with_slot(settings.lifo)
                .with_seed(seed, index);
            groups.queue(own, index)
        };
        let queues: Vec<Queue> = (0..parks.len()).map(queue).collect();
        let mut unparkers: Vec<_> = parks.iter().map(unparker).collect();
        let events = match events {
            Some(events) => events,
            None => {
                let events = Events::over(unparkers.iter().cloned());
                let marking = unparkers.into_iter().enumerate();
                unparkers = marking.map(|(n, unpark)| events.waker(n, unpark)).collect();
                events
            }
        };
        let remotes = queues.iter().zip(unparkers).map(|(queue, unpark)| {
            Arc::new(Remote {
                stealer: RunQueue::stealer(queue),
                unparker: Unparker::new(unpark),
                lent: Lent::new(),
                call: sched_monitor::Handoff::new(),
                thread: sync_shim::atomic::AtomicU32::new(0),
                nudged_at: AtomicU64::new(0),
                counters: CachePadded::new(Counters::new(settings.poll_times)),
            })
        });
        let remotes: Vec<_> = remotes.collect();
        events.set_blocking(blocking::run_blocking);
        if let Some(max) = self.max_io_events {
            events.set_max_events(max);
        }
        let events = match self.monitor.is_on() {
            true => events,
            false => events.with_standby(),
        };
        if self.start_paused {
            events.pause();
        }
        let hooks = Arc::new(self.hooks);
        let mut threads = self.threads;
        threads.name = format!("{}-blocking", settings.thread_name).into();
        if let Some(name) = self.thread_name_fn {
            let spawn = threads.spawn.take();
            threads.spawn = Some(std::sync::Arc::new(move |builder, run| {
                let name = name();
                if name.contains('\0') {
                    let why = "a thread's name may not contain a NUL character";
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
                }
                let builder = builder.name(name);
                match &spawn {
                    Some(spawn) => spawn(builder, run),
                    None => builder.spawn(run),
                }
            }));
        }
        let (start, stop) = (hooks.clone(), hooks.clone());
        let attributes = Attributes::of_this_thread();
        threads.on_start = Some(std::sync::Arc::new(move || {
            attributes.apply();
            scope::mark_own_thread(&start);
            start.call_hook(&start.on_start);
        }));
        threads.on_stop = Some(std::sync::Arc::new(move || stop.call_hook(&stop.on_stop)));
        threads.before_park = Some(blocking::before_park(settings.backoff));
        let pool = Pool::new(threads);
        let monitor = Monitor::new(self.monitor, remotes.len(), attributes);
        let shared = Arc::new(Shared::new(
            remotes, pool, monitor, settings, hooks, events, groups, recorder,
        ));
        shared.events.bind(&shared);
        #[cfg(selvedge_sim)]
        sync_shim::sim::watch(&shared);
        shared.groups.bind(shared.address());
        let runtime = Runtime::new_of(shared.clone());
        shared.trace.begin(&shared);
        views.begin(runtime.handle());
        let cores = queues.into_iter().zip(parks).enumerate();
        let core =
            |(index, (queue, park))| (Box::new(Core::new(shared.clone(), index, queue)), park);
        let cores = cores.map(core).collect();
        (runtime, cores)
    }
}

fn default_workers() -> io::Result<usize> {
    let Some(said) = std::env::var_os("SELVEDGE_WORKERS") else {
        return Ok(std::thread::available_parallelism().map_or(1, usize::from));
    };
    let number = said.to_str().and_then(|said| said.trim().parse().ok());
    number
        .filter(|n| (1..=MAX_WORKERS).contains(n))
        .ok_or_else(|| {
            let must = format!("must be a whole number from 1 to {MAX_WORKERS}, not {said:?}");
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("SELVEDGE_WORKERS {must}"),
            )
        })
}
