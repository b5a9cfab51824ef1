//! A future that runs as a task of a group, while a task of another group waits for its output.
use super::{GroupGone, SchedulingGroup, spawn_in};
use std::{
    fmt,
    future::Future,
    mem,
    panic::resume_unwind,
    pin::Pin,
    task::{Context, Poll, ready},
};
use task_header::JoinHandle;

/// Runs futures in a scheduling group. Every future implements this trait.
///
/// ```
/// use selvedge_executor::{SchedulingGroup, WithGroup};
///
/// let runtime = selvedge_executor::Runtime::new()?;
/// let reports = runtime.group("reports").shares(50).build().unwrap();
/// let request = runtime.spawn(async move {
///     // The slow part of a request runs in the time of another group.
///     let sum = async { (1..=4).sum::<u32>() }.in_group(&reports).await.unwrap();
///     (sum, SchedulingGroup::current().name())
/// });
/// assert_eq!(runtime.block_on(request).unwrap(), (10, "main".into()));
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait WithGroup: Future + Sized {
    /// Returns an [`InGroup`]. Its first poll spawns this future as a task of `group`.
    ///
    /// If the `InGroup` is dropped before it is ready, the task is aborted. The first poll costs a
    /// [`spawn_in`].
    ///
    /// ```
    /// use selvedge_executor::{SchedulingGroup, WithGroup};
    ///
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let group = runtime.group("batch").build().unwrap();
    /// let name = async { SchedulingGroup::current().name() }.in_group(&group);
    /// assert_eq!(runtime.block_on(name).unwrap(), "batch");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    fn in_group(self, group: &SchedulingGroup) -> InGroup<Self> {
        InGroup(State::New(self, group.clone()))
    }
}

impl<F: Future> WithGroup for F {}

/// Future of [`WithGroup::in_group`].
///
/// The output is `Ok` with the output of the inner future. If the group was destroyed before the
/// first poll, the output is [`GroupGone`] with the inner future.
///
/// ```
/// use selvedge_executor::{GroupGone, InGroup, WithGroup};
///
/// let runtime = selvedge_executor::Runtime::new()?;
/// let group = runtime.group("batch").build().unwrap();
/// group.destroy().unwrap();
/// let late: InGroup<_> = async { 7 }.in_group(&group);
/// let GroupGone(future) = runtime.block_on(late).unwrap_err();
/// assert_eq!(runtime.block_on(future), 7);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
/// If the inner future panics, with the same payload. Also if the group's runtime ends before the
/// inner future does, or if an `InGroup` is polled after it was ready.
#[must_use = "a future does nothing unless it is awaited"]
pub struct InGroup<F: Future>(State<F>);

enum State<F: Future> {
    New(F, SchedulingGroup),
    Running(JoinHandle<F::Output>),
    Done,
}

// The inner future is moved into its task before its first poll. The only field that is polled in
// place is the join handle, which is `Unpin`.
impl<F: Future> Unpin for InGroup<F> {}

impl<F> Future for InGroup<F>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    type Output = Result<F::Output, GroupGone<F>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let State::New(..) = self.0 {
            if let State::New(future, group) = mem::replace(&mut self.0, State::Done) {
                self.0 = State::Running(spawn_in(&group, future)?);
            }
        }
        let State::Running(task) = &mut self.0 else {
            panic!("a future of `in_group` was polled after it was ready");
        };
        let output = ready!(Pin::new(task).poll(cx));
        self.0 = State::Done;
        match output {
            Ok(output) => Poll::Ready(Ok(output)),
            Err(error) => match error.try_into_panic() {
                Ok(payload) => resume_unwind(payload),
                Err(_) => panic!("the runtime of the group has ended before the future"),
            },
        }
    }
}

impl<F: Future> Drop for InGroup<F> {
    fn drop(&mut self) {
        if let State::Running(task) = &self.0 {
            task.abort();
        }
    }
}

impl<F: Future> fmt::Debug for InGroup<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InGroup").finish_non_exhaustive()
    }
}
