//! Sleeps, timeouts and intervals, under tokio's names.
//!
//! ```
//! use net_driver::{Driver, time};
//! use std::time::Duration;
//!
//! // An executor of one task; a runtime sets the driver for all of its tasks.
//! Driver::new(1).park(0).block_on(async {
//!     time::sleep(Duration::from_millis(1)).await;
//!     let late = time::timeout(Duration::from_millis(1), std::future::pending::<()>());
//!     assert!(late.await.is_err());
//! });
//! ```
//!
//! A timer lives in its future, pinned, and is linked into the wheel of the worker that first polls
//! it. So it needs no allocation. A drop cancels it without a search: on whatever thread, the drop
//! takes the wheel's lock and unlinks the timer. So no wheel has a timer that was freed.
pub(crate) mod clock;
mod entry;
pub mod error;
mod instant;
mod interval;
mod now;
pub(crate) mod slack;
mod sleep;
mod spacing;
#[cfg(feature = "test-util")]
mod test_clock;
mod timeout;
mod wheels;

pub use instant::Instant;
pub use interval::{Interval, MissedTickBehavior, interval, interval_at};
pub use sleep::{Sleep, sleep, sleep_until};
pub use std::time::Duration;
#[cfg(feature = "test-util")]
pub(crate) use test_clock::Clock;
#[cfg(feature = "test-util")]
pub use test_clock::pause::{ClockHold, advance, pause, resume};
pub use timeout::{Elapsed, Timeout, timeout, timeout_at};
pub(crate) use wheels::Timers;

#[cfg(test)]
mod models;
