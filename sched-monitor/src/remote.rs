//! The duty that watches a queue which busy workers look at only now and then.
use crate::{Duty, Round, monitor::MIN_PAUSE};
use std::{fmt, time::Duration};

/// Acts when work waits in a shared queue, no worker is idle, and no worker has taken any of the
/// work since the last round.
///
/// Workers usually look at such a queue often enough by themselves. This duty bounds the wait when
/// the workers expect short polls but get long ones.
///
/// ```
/// use sched_monitor::{Duty, Observed, Remote, Round, Sample, State};
/// use std::{sync::mpsc, time::Duration};
///
/// let (sender, nudged) = mpsc::channel();
/// let (waiting, taken) = (3, 0);
/// let mut duty = Remote::new(move || (waiting, taken), move || sender.send(()).unwrap());
/// let sample = Sample { state: State::Polling, ..Sample::default() };
/// let workers = [Observed { sample, ..Observed::default() }];
/// for millis in 0..2 {
///     duty.look(&Round { now: Duration::from_millis(millis), workers: &workers });
/// }
/// assert_eq!(nudged.try_iter().count(), 1);
/// ```
pub struct Remote<Q, F> {
    queue: Q,
    act: F,
    /// The number of items that workers had taken at the last round. `None` if no work waited then,
    /// or a worker was idle.
    taken: Option<u64>,
}

impl<Q, F> Remote<Q, F>
where
    Q: FnMut() -> (usize, u64) + Send,
    F: FnMut() + Send,
{
    /// Creates the duty. `queue` returns how many items wait and how many were ever taken. `act`
    /// makes a worker look at the queue.
    pub fn new(queue: Q, act: F) -> Self {
        Self {
            queue,
            act,
            taken: None,
        }
    }
}

impl<Q, F> Duty for Remote<Q, F>
where
    Q: FnMut() -> (usize, u64) + Send,
    F: FnMut() + Send,
{
    fn look(&mut self, round: &Round<'_>) -> Option<Duration> {
        let (waiting, taken) = (self.queue)();
        if waiting == 0 || !round.all_busy() {
            self.taken = None;
            return None;
        }
        let is_stuck = self.taken.replace(taken) == Some(taken);
        if is_stuck {
            (self.act)();
        }
        is_stuck.then_some(MIN_PAUSE)
    }
}

impl<Q, F> fmt::Debug for Remote<Q, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("taken", &self.taken)
            .finish_non_exhaustive()
    }
}
