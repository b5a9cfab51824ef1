//! A thread that ends slices, for runtimes without a monitor.
//!
//! It sleeps on a condition variable for a period at a time, so that it can be stopped at once, and asks all its slices to end when the period is over. It doesn't
//! know when they were opened: a slice lasts for up to a period, half of one on average.
use crate::Preempt;
use std::{io, time::Duration};
use sync_shim::{
    sync::{Arc, Condvar, Mutex},
    thread::{Builder, JoinHandle},
};

/// Asks slices to end, once a period, until it is dropped.
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
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread to give.
    ///
    /// # Panics
    /// With a period of zero.
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
    /// Stops the thread and waits for it; it holds no lock while it requests anything of others.
    fn drop(&mut self) {
        *self.stop.0.lock() = true;
        self.stop.1.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
