//! How a runtime is put together.
use crate::{
    Runtime,
    blocking::Pool,
    metrics::Counters,
    park::{Park, ThreadPark},
    shared::{Remote, Shared},
    worker,
};
use coop_budget::Budget;
use queue_spmc::ring;
use std::{io, time::Duration};
use sync_shim::{sync::Arc, thread};

/// Settings of a [`Runtime`].
///
/// ```
/// let runtime = selvedge::Builder::new().workers(2).thread_name("crunch").build()?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing before `build`"]
pub struct Builder {
    workers: Option<usize>,
    thread_name: String,
    ring_capacity: usize,
    blocking_threads: usize,
    blocking_keep_alive: Duration,
    budget: Budget,
    seed: u64,
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// The defaults.
    pub fn new() -> Self {
        Self {
            workers: None,
            thread_name: "selvedge".into(),
            ring_capacity: 256,
            blocking_threads: 512,
            blocking_keep_alive: Duration::from_secs(10),
            budget: Budget::DEFAULT,
            seed: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// Worker threads; by default what the environment's `SELVEDGE_WORKERS` says, or else as many
    /// as the machine has processors for this process.
    ///
    /// # Panics
    /// When `workers` is 0.
    pub fn workers(mut self, workers: usize) -> Self {
        assert!(workers > 0, "a runtime needs a worker");
        self.workers = Some(workers);
        self
    }

    /// What the threads' names begin with.
    ///
    /// # Panics
    /// When `name` holds a NUL, which no thread's name can.
    pub fn thread_name(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        assert!(
            !name.contains('\0'),
            "a thread's name holds no NUL: {name:?}"
        );
        self.thread_name = name;
        self
    }

    /// Tasks that a worker's ring holds before half of them move to the injector. 256 by default.
    ///
    /// # Panics
    /// When `capacity` is no power of two, below 2, or above 2³¹.
    pub fn ring_capacity(mut self, capacity: usize) -> Self {
        assert!(
            capacity.is_power_of_two() && (2..=1 << 31).contains(&capacity),
            "a ring's capacity is a power of two from 2 to 2^31, not {capacity}"
        );
        self.ring_capacity = capacity;
        self
    }

    /// The most threads for blocking closures at a time. 512 by default.
    ///
    /// # Panics
    /// When `threads` is 0.
    pub fn blocking_threads(mut self, threads: usize) -> Self {
        assert!(threads > 0, "blocking closures need a thread");
        self.blocking_threads = threads;
        self
    }

    /// How long a thread for blocking closures waits for the next before it ends. 10 s by default.
    pub fn blocking_keep_alive(mut self, limit: Duration) -> Self {
        self.blocking_keep_alive = limit;
        self
    }

    /// Operations that a task's resources grant between two yields. 128 by default; with 0 each operation yields first and never proceeds, and
    /// [`Budget::UNLIMITED`] sets no limit.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Seed of the order in which workers look at each other.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Starts the runtime.
    ///
    /// # Errors
    /// When `SELVEDGE_WORKERS` is no positive number, or a thread can't be started; none is left
    /// behind then.
    pub fn build(self) -> io::Result<Runtime> {
        let workers = match self.workers {
            Some(workers) => workers,
            None => default_workers()?,
        };
        let pool = Pool::new(
            &self.thread_name,
            self.blocking_threads,
            self.blocking_keep_alive,
        );
        let (mut rings, mut parks, mut remotes) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..workers {
            let ring = ring::Worker::new(self.ring_capacity);
            let park = ThreadPark::new();
            remotes.push(Remote {
                stealer: ring.stealer(),
                unpark: park.unparker(),
                counters: Counters::new(),
            });
            rings.push(ring);
            parks.push(park);
        }
        let shared = Arc::new(Shared::new(remotes, Arc::new(pool), self.budget));
        let mut runtime = Runtime::assemble(shared.clone());
        for (index, (ring, park)) in rings.into_iter().zip(parks).enumerate() {
            let shared = shared.clone();
            let seed = self.seed;
            let thread = thread::Builder::new()
                .name(format!("{}-{index}", self.thread_name))
                .spawn(move || worker::run(shared, index, ring, park, seed))?;
            runtime.adopt(thread);
        }
        Ok(runtime)
    }
}

fn default_workers() -> io::Result<usize> {
    match std::env::var("SELVEDGE_WORKERS") {
        Err(std::env::VarError::NotPresent) => {
            Ok(std::thread::available_parallelism().map_or(1, usize::from))
        }
        said => said
            .ok()
            .and_then(|said| said.trim().parse().ok())
            .filter(|&n| n > 0)
            .ok_or_else(|| {
                io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "SELVEDGE_WORKERS is to be a whole number from 1 on",
                )
            }),
    }
}
