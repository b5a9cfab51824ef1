//! Builders of tests and models: threads whose start fails or takes long, eager waits, an unstarted
//! worker.
use crate::{
    Builder, Runtime, Worker,
    events::Events,
    worker::{driver::Parker, park::Park},
};
use worker_idle::Backoff;

impl Builder {
    /// Lets the start of the monitor's thread fail.
    #[cfg(all(test, not(selvedge_loom)))]
    pub(crate) fn fail_at_monitor(mut self) -> Self {
        self.monitor.fails = true;
        self
    }

    /// Removes the time limit of slices: the monitor then ends no slice for its length alone.
    #[cfg(all(test, feature = "groups", not(any(selvedge_loom, selvedge_shuttle))))]
    pub(crate) fn endless_slices(mut self) -> Self {
        self.monitor.endless_slices = true;
        self
    }

    /// Lets threads wait a moment before each sleep, from the first sleep on.
    #[cfg(test)]
    pub(crate) fn eager(mut self) -> Self {
        self.settings.backoff = Backoff::eager();
        self
    }

    /// Lets one start of a runtime's thread fail: the start with this number, counted from 0.
    #[cfg(all(test, not(selvedge_loom)))]
    pub(crate) fn fail_at_thread(&mut self, thread: usize) {
        let started = sync_shim::atomic::AtomicUsize::new(0);
        self.threads.spawn = Some(std::sync::Arc::new(move |builder, run| {
            // Ordering: Relaxed, as it is only a count.
            if started.fetch_add(1, sync_shim::atomic::Ordering::Relaxed) == thread {
                return Err(std::io::Error::other("no thread, as the test asked"));
            }
            builder.spawn(run)
        }));
    }

    /// Calls `before` in each thread of the runtime, before the thread does anything else. Unlike
    /// the hook for thread starts, this starts no thread early.
    #[cfg(all(test, feature = "test-util", not(selvedge_loom)))]
    pub(crate) fn before_threads(mut self, before: impl Fn() + Send + Sync + 'static) -> Self {
        let before = std::sync::Arc::new(before);
        self.threads.spawn = Some(std::sync::Arc::new(move |builder, run| {
            let before = before.clone();
            builder.spawn(move || {
                before();
                run();
            })
        }));
        self
    }

    /// Sets the number of the injector's shards, whatever the number of workers.
    #[cfg(test)]
    pub(crate) fn injector_shards(mut self, shards: usize) -> Self {
        self.settings.injector_shards = Some(shards);
        self
    }

    /// Makes a driven worker that searches, beside an unstarted one.
    #[cfg(test)]
    pub(crate) fn build_beside_one_unstarted(
        mut self,
    ) -> (Runtime, Worker<crate::events::EventsPark>) {
        use crate::events::EventsPark;

        self.monitor.turn_off();

        let events = Events::new(2, self.polling);
        let parks = (0..2)
            .map(|worker| events.park(worker, worker_idle::Wait::default()))
            .collect();
        let (runtime, mut cores) = self.assemble(parks, EventsPark::waker, Some(events));
        let shared = runtime.handle().shared().clone();
        let (unstarted, park) = cores.remove(1);
        unstarted.park.set(Some(Parker::Events(park)));
        unstarted.idle_state.searching.set(true);
        shared.remotes[1].unparker.start_later(unstarted);
        shared.idle.sleep(1, false);
        let (core, park) = cores.remove(0);
        core.idle_state.searching.set(shared.idle.try_search());
        (runtime, Worker::of_events_park(core, park))
    }
}
