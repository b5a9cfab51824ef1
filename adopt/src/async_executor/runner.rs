//! A runner: how it finds tasks, and how it sleeps.
//!
//! A runner is *running*, *searching* or *asleep*. [`Idle`] counts the runners of the last two
//! states. So the drop of a runner takes the runner out of these counts. If there is work, the drop
//! notifies another runner, as the dropped one may have been notified of that work.
//!
//! A runner that is polled does not count as searching while it polls its future. The future may
//! block on a task that it has just spawned, and a push wakes no runner while one counts as
//! searching. For the same reason a runner stops searching before it returns from its poll, unless
//! it sleeps.
use super::state::{CURRENT, Current, Parts, RING, Scheduler, State, Task};
use queue_spmc::{Steal, StealLimit};
use std::{
    future::Future,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    thread,
};
use task_header::{Owned, Ran};

/// Number of tasks that a runner runs in one poll. Then its thread can poll other futures, and the
/// runner's own future is polled again.
const RUNS: usize = 200;

/// A runner looks at the injector before its ring in every 61st run.
const INJECTED_FIRST: u32 = 61;

pub(super) struct Runner<'a> {
    state: &'a Arc<State>,
    slot: usize,
    /// `None` while the ring is in `CURRENT`.
    current: Option<Current>,
    owned: Option<Owned<Scheduler>>,
    runs: u32,
    searching: bool,
    asleep: bool,
}

impl<'a> Runner<'a> {
    pub(super) fn new(state: &'a Arc<State>) -> Self {
        let mut slots = state.slots.iter().enumerate();
        let free = slots.find_map(|(at, slot)| slot.parts().take().map(|parts| (at, parts)));
        let (slot, Parts { ring, owned }) = free.expect("there is a slot for each runner");
        Self {
            state,
            slot,
            current: Some(Current {
                state: state.clone(),
                ring,
            }),
            owned: Some(owned),
            runs: 0,
            searching: false,
            asleep: false,
        }
    }

    pub(super) fn poll<F: Future>(
        &mut self,
        cx: &mut Context<'_>,
        future: Pin<&mut F>,
    ) -> Poll<F::Output> {
        self.wake_up();
        self.stop_searching();
        let entered = Entered::new(self);
        if let Poll::Ready(output) = future.poll(cx) {
            return Poll::Ready(output);
        }
        let runner = &mut *entered.runner;
        for _ in 0..RUNS {
            let Some(task) = runner.find() else {
                if runner.sleep(cx) {
                    return Poll::Pending;
                }
                continue;
            };
            if let Ran::Notified(again) = task.run_in(|| runner.owned.as_mut()) {
                let injector = &runner.state.injector;
                with_current(|current| current.ring.push_or_overflow(again, injector));
                runner.state.notify();
            }
        }
        runner.drain();
        runner.stop_searching();
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Finds the next task. Ends the search if it finds one.
    fn find(&mut self) -> Option<Task> {
        self.runs = self.runs.wrapping_add(1);
        let injector = &self.state.injector;
        let early = self
            .runs
            .is_multiple_of(INJECTED_FIRST)
            .then(|| injector.pop())
            .flatten();
        let task = early
            .or_else(|| with_current(|current| current.ring.pop()))
            .or_else(|| self.take_injected())
            .or_else(|| self.steal());
        if task.is_some() {
            self.stop_searching();
        }
        task
    }

    fn take_injected(&self) -> Option<Task> {
        let mut batch = self.state.injector.pop_n(RING / 4);
        let first = batch.pop_front()?;
        if !batch.is_empty() {
            let (left, moved) = (
                batch.len(),
                with_current(|current| current.ring.extend(batch)),
            );
            debug_assert_eq!(left, moved, "the ring was empty");
            // While the batch was in neither queue, a runner may have looked at both and slept.
            self.state.notify();
        }
        Some(first)
    }

    fn steal(&mut self) -> Option<Task> {
        self.searching = self.searching || self.state.idle.try_search();
        if !self.searching {
            return None;
        }
        let (before, rest) = self.state.slots.split_at(self.slot);
        loop {
            let mut retry = false;
            for other in rest[1..].iter().chain(before) {
                let steal = |current: &mut Current| {
                    other
                        .stealer
                        .steal_into_and_pop(&mut current.ring, StealLimit::Half)
                };
                match with_current(steal) {
                    Steal::Success { first, .. } => return Some(first),
                    Steal::Retry => retry = true,
                    Steal::Empty => {}
                }
            }
            if !retry {
                return None;
            }
            thread::yield_now(); // Another thief, in mid-steal, may wait for this processor.
        }
    }

    /// Goes to sleep. Returns false if there is work instead.
    fn sleep(&mut self, cx: &Context<'_>) -> bool {
        self.drain();
        self.state.slots[self.slot].waker.register(cx.waker());
        self.state.idle.sleep(self.slot, self.searching);
        (self.searching, self.asleep) = (false, true);
        if self.state.has_work() {
            self.wake_up();
        }
        self.asleep
    }

    /// Ends the sleep, if the runner sleeps. From here on the runner counts as searching, whether
    /// [`Idle`](worker_idle::Idle) has chosen it or not.
    fn wake_up(&mut self) {
        if self.asleep {
            self.state.idle.wake_self(self.slot); // Does nothing if the runner was notified.
            (self.searching, self.asleep) = (true, false);
        }
    }

    /// Ends the search, if the runner searches.
    fn stop_searching(&mut self) {
        let searched = mem::take(&mut self.searching);
        if searched && self.state.idle.stop_searching() && self.state.has_work() {
            self.state.notify();
        }
    }

    /// Frees this runner's tasks that have ended on other runners.
    fn drain(&mut self) {
        if let Some(owned) = &mut self.owned {
            owned.drain();
        }
    }
}

impl Drop for Runner<'_> {
    fn drop(&mut self) {
        self.wake_up();
        self.stop_searching();
        let (current, owned) = (self.current.take(), self.owned.take());
        if let (Some(Current { mut ring, .. }), Some(owned)) = (current, owned) {
            let left = ring.drain().collect();
            self.state.injector.requeue_batch(left);
            *self.state.slots[self.slot].parts() = Some(Parts { ring, owned });
        }
        if self.state.has_work() {
            self.state.notify();
        }
    }
}

/// Puts the runner's ring into `CURRENT`, and takes it back even if the poll unwinds (rule 2 of
/// the parent module).
struct Entered<'a, 'b> {
    runner: &'a mut Runner<'b>,
    /// The previous content of `CURRENT`: a runner may be polled inside a task of another executor.
    outer: Option<Current>,
}

impl<'a, 'b> Entered<'a, 'b> {
    fn new(runner: &'a mut Runner<'b>) -> Self {
        let outer = CURRENT.replace(runner.current.take());
        Self { runner, outer }
    }
}

impl Drop for Entered<'_, '_> {
    fn drop(&mut self) {
        self.runner.current = CURRENT.replace(self.outer.take());
    }
}

fn with_current<R>(f: impl FnOnce(&mut Current) -> R) -> R {
    CURRENT.with_borrow_mut(|current| f(current.as_mut().expect("a runner is polled")))
}
