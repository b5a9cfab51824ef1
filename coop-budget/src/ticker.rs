//! A thread that ends time slices, for runtimes without a monitor.
//!
//! The thread waits on a condition variable for one period at a time, so that it can be stopped at
//! once. After each period it requests the end of all its slices. It does not know when the slices
//! were opened, so a slice lasts for at most a period, and for half a period on average.
use crate::Preempt;
use std::{io, time::Duration};
use sync_shim::{
    sync::{Arc, Condvar, Mutex},
    thread::{Builder, JoinHandle},
};

/// Requests the end of time slices once a period, until it is dropped.
///
/// ```
/// use coop_budget::{Preempt, Ticker};
/// use std::{sync::Arc, time::Duration};
///
/// let slice = Arc::new(Preempt::new());
/// let ticker = Ticker::new(Duration::from_millis(1), [slice.clone()])?;
/// slice.open_slice();
/// while !slice.need_preempt() {
///     // Work.
///     std::thread::yield_now();
/// }
/// # drop(ticker);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "it stops when it is dropped"]
pub struct Ticker {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Starts the ticker's thread.
    ///
    /// # Errors
    /// If no thread can be started.
    ///
    /// # Panics
    /// If the period is zero.
    #[track_caller]
    pub fn new(
        period: Duration,
        slices: impl IntoIterator<Item = std::sync::Arc<Preempt>>,
    ) -> io::Result<Self> {
        assert!(!period.is_zero(), "a ticker's period is longer than zero");
        let slices: Vec<_> = slices.into_iter().collect();
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let stopped = stop.clone();
        let thread = Builder::new()
            .name("coop-budget-ticker".into())
            .spawn(move || {
                let (lock, condition) = &*stopped;
                let mut stop = lock.lock();
                while !*stop {
                    let (guard, is_over) = condition.wait_timeout(stop, period);
                    stop = guard;
                    if is_over {
                        slices.iter().for_each(|slice| slice.request());
                    }
                }
            })?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Ticker {
    /// Stops the thread and waits for its end.
    fn drop(&mut self) {
        *self.stop.0.lock() = true;
        self.stop.1.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
