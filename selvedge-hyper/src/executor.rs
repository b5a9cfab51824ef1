//! The executor for hyper, which spawns tasks of the current runtime.
#[cfg(feature = "http2")]
use crate::requests;
use hyper::rt::Executor;
use std::{cell::Cell, future::Future};

thread_local! {
    /// Counts what this thread has spawned for hyper.
    static SPAWNED: Cell<u64> = const { Cell::new(0) };
}

/// Returns how many futures of hyper this thread has spawned.
pub(crate) fn spawned() -> u64 {
    SPAWNED.get()
}

/// Spawns hyper's futures as tasks of the current runtime.
///
/// Each task costs what [`selvedge::spawn_detached`] costs: one allocation.
///
/// ```
/// use hyper::rt::Executor;
/// use selvedge_hyper::SelvedgeExecutor;
/// use std::sync::mpsc;
///
/// let runtime = selvedge::Runtime::new()?;
/// let (sender, receiver) = mpsc::channel();
/// runtime.block_on(async { SelvedgeExecutor.execute(async move { sender.send(7).unwrap() }) });
/// assert_eq!(receiver.recv().unwrap(), 7);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
/// `execute` panics outside a runtime, as [`selvedge::spawn_detached`] does.
#[derive(Clone, Copy, Debug, Default)]
pub struct SelvedgeExecutor;

impl<F> Executor<F> for SelvedgeExecutor
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    fn execute(&self, future: F) {
        SPAWNED.set(SPAWNED.get().wrapping_add(1));
        #[cfg(feature = "http2")]
        if let Some(token) = requests::take_tunnel_token() {
            selvedge::spawn_detached(async move {
                future.await;
                drop(token);
            });
            return;
        }
        selvedge::spawn_detached(future);
    }
}
