//! Workers for the tests: an executor of threads that park in one driver.
#![allow(dead_code, reason = "each test file uses a part")]
use net_driver::Driver;
use std::{
    fs,
    future::Future,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

/// Some threads that run tasks. Each thread has its own park of the one driver.
pub struct Workers {
    pub driver: Driver,
    pub executor: Arc<async_executor::Executor<'static>>,
    stop: async_channel::Sender<()>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    pub fn new(count: usize) -> Self {
        let driver = Driver::new(count + 1);
        let executor = Arc::new(async_executor::Executor::new());
        let (stop, stopped) = async_channel::bounded::<()>(1);
        let threads = (1..=count)
            .map(|worker| {
                let mut park = driver.park(worker);
                let (executor, stopped) = (executor.clone(), stopped.clone());
                thread::spawn(move || {
                    let stopped = async move { stopped.recv().await.is_ok() };
                    let _ = park.block_on(executor.run(stopped));
                })
            })
            .collect();
        Self {
            driver,
            executor,
            stop,
            threads,
        }
    }

    pub fn spawn<R: Send + 'static>(
        &self,
        task: impl Future<Output = R> + Send + 'static,
    ) -> async_executor::Task<R> {
        self.executor.spawn(task)
    }

    /// Runs a future on this thread, as worker 0, while the other workers run the tasks.
    pub fn block_on<R>(&self, future: impl Future<Output = R>) -> R {
        self.driver.park(0).block_on(future)
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop.close();
        for thread in self.threads.drain(..) {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking());
        }
    }
}

/// Counts this process's open descriptors.
pub fn descriptors() -> usize {
    // One of the entries is the descriptor of the folder itself.
    fs::read_dir("/proc/self/fd").unwrap().count() - 1
}

/// Runs a future on this thread, which is the only worker of a new driver.
pub fn run<R>(future: impl Future<Output = R>) -> R {
    Driver::new(1).park(0).block_on(future)
}

/// A small generator of random numbers (xorshift64*).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 33) as usize % limit
    }
}

/// Waits for something that must come. A limit of ten minutes turns a wait without end into a
/// failure.
pub async fn in_time<R>(what: &str, wait: impl Future<Output = R>) -> R {
    let done = net_driver::time::timeout(Duration::from_secs(600), wait).await;
    done.unwrap_or_else(|_| panic!("{what} waits forever"))
}
