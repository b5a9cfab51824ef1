//! The executor for hyper, which spawns tasks of the current runtime.
use hyper::rt::Executor;
use std::future::Future;

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
        selvedge::spawn_detached(future);
    }
}
