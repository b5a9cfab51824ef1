//! A driven worker, and a `Park` with a heap of timers. The `Park` stands for an I/O driver, and
//! the heap for the driver's poller (`epoll`, for example).
mod cli;

use selvedge::{
    Builder, Tick,
    park::{Park, ThreadPark},
};
use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    future::{Future, poll_fn},
    iter,
    sync::{Arc, Mutex},
    task::{Poll, Waker},
    time::{Duration, Instant},
};

/// Deadline, and the waker of the task that waits for it.
struct Timer {
    at: Instant,
    waker: Waker,
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Timer {}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

#[derive(Clone, Default)]
struct Timers(Arc<Mutex<BinaryHeap<Reverse<Timer>>>>);

impl Timers {
    fn sleep(&self, time: Duration) -> impl Future<Output = ()> + Send + use<> {
        let (timers, at) = (self.clone(), Instant::now() + time);
        poll_fn(move |cx| {
            if Instant::now() >= at {
                return Poll::Ready(());
            }
            let waker = cx.waker().clone();
            timers.0.lock().unwrap().push(Reverse(Timer { at, waker }));
            Poll::Pending
        })
    }

    fn until_next(&self) -> Option<Duration> {
        let timers = self.0.lock().unwrap();
        timers
            .peek()
            .map(|next| next.0.at.saturating_duration_since(Instant::now()))
    }

    fn pop_due(&self, now: Instant) -> Option<Waker> {
        let mut timers = self.0.lock().unwrap();
        let is_due = timers.peek().is_some_and(|next| next.0.at <= now);
        is_due.then(|| timers.pop())?.map(|timer| timer.0.waker)
    }
}

/// Parker that sleeps until the next deadline at most.
struct TimerPark {
    thread: ThreadPark,
    timers: Timers,
    /// Wakers of the timers that `poll` has found due and `deliver` has not yet woken.
    collected: Vec<Waker>,
    parks: usize,
}

impl TimerPark {
    fn new(timers: Timers) -> Self {
        Self {
            thread: ThreadPark::new(),
            timers,
            collected: Vec::new(),
            parks: 0,
        }
    }
}

impl Park for TimerPark {
    fn park(&mut self) {
        self.park_timeout(Duration::MAX);
    }

    fn park_timeout(&mut self, limit: Duration) {
        self.parks += 1;
        match self.timers.until_next() {
            Some(next) => self.thread.park_timeout(next.min(limit)),
            None if limit == Duration::MAX => self.thread.park(),
            None => self.thread.park_timeout(limit),
        }
        self.poll(usize::MAX);
    }

    fn poll(&mut self, max: usize) {
        let now = Instant::now();
        let due = iter::from_fn(|| self.timers.pop_due(now));
        self.collected.extend(due.take(max));
    }

    fn has_events(&self) -> bool {
        !self.collected.is_empty()
    }

    fn deliver(&mut self) {
        self.collected.drain(..).for_each(Waker::wake);
    }

    fn waker(&self) -> Waker {
        self.thread.waker()
    }
}

fn main() -> std::process::ExitCode {
    cli::demo(
        "Runs three sleeps on a worker with a heap of timers.\n\nUsage: assemble_park",
        demo,
    )
}

fn demo() {
    let timers = Timers::default();
    let (runtime, mut workers) = Builder::new().build_driven([TimerPark::new(timers.clone())]);
    let mut worker = workers.remove(0);
    let begun = Instant::now();
    let tasks: Vec<_> = [30_u64, 10, 20]
        .map(|millis| {
            let timers = timers.clone();
            runtime.spawn(async move {
                timers.sleep(Duration::from_millis(millis)).await;
                println!("{millis} ms: woke after {:?}", begun.elapsed());
                assert!(begun.elapsed() >= Duration::from_millis(millis));
            })
        })
        .into();
    let mut ticks = 0;
    while !tasks.iter().all(|task| task.is_finished()) {
        match worker.tick() {
            Tick::Ran => ticks += 1,
            Tick::Idle => worker.park(),
            Tick::Ended => unreachable!("the runtime goes on"),
        }
    }
    println!("{ticks} tasks run, {} sleeps", worker.park_mut().parks);
    assert_eq!(ticks, 6);
    drop(runtime);
    worker.run();
}

#[cfg(test)]
mod tests {
    use super::*;
    use worker_idle::conformance;

    #[test]
    fn a_park_without_a_timer_passes() {
        conformance::park(|| TimerPark::new(Timers::default()));
    }

    #[test]
    fn a_park_that_a_timer_ends_passes() {
        conformance::park(|| due_in(Duration::from_micros(50)));
    }

    #[test]
    fn a_park_that_ends_before_its_timer_passes() {
        conformance::park(|| due_in(Duration::from_secs(3600)));
    }

    fn due_in(time: Duration) -> TimerPark {
        let (timers, waker) = (Timers::default(), Waker::noop().clone());
        let at = Instant::now() + time;
        timers.0.lock().unwrap().push(Reverse(Timer { at, waker }));
        TimerPark::new(timers)
    }
}
