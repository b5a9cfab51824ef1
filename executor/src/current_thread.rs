//! A runtime without threads of its own for tasks: a thread in the runtime's `block_on` runs them.
//!
//! The runtime has one [driven worker](crate::Worker). A thread in `block_on` *drives* if it has
//! taken that worker, and *waits* if another thread has it.
//!
//! 1. A thread that finds the worker takes it, and ticks it until the thread's own future is ready.
//!    The thread polls that future first. A future that was woken waits behind the tasks that are
//!    ready, as if it were queued: the thread polls it when no task is ready, and at the latest
//!    after [`TURN`] ticks. So whatever was ready when the future yielded has run when it goes on.
//! 2. A thread that finds no worker waits, and polls its own future meanwhile. A driving thread
//!    that leaves puts the worker back, and one waiting thread takes over ([`handover`]).
//! 3. A push unparks a driving thread, as it unparks any worker. The waker of the thread's own
//!    future unparks the thread, too. The thread parks as a thread of another runtime does: in the
//!    poller of the sockets, if there are sockets.
//! 4. A thread that drives may call `block_on` again, in a task or in its own future. That inner
//!    `block_on` panics, as it would wait for the worker that its own thread has.
//! 5. A panic of user code outside of tasks, such as that of a waker, is contained, as in a thread
//!    of another runtime. So the panic does not reach the `block_on` of a thread that did not cause
//!    the panic.
//! 6. A thread that waits does so in the `block_on` of the runtime's driver of timers, so that a
//!    paused clock takes account of the thread.
//! 7. The end of the runtime takes the worker, and the worker drops the futures of all tasks.
//! 8. A panic may shut the runtime down ([`unhandled`](crate::settings::unhandled)) while a thread
//!    drives. From then on the thread does not poll its future before it has ended the tasks. If it
//!    leaves earlier, it ends them as it puts the worker back: perhaps no other thread ever drives.
use crate::{
    events::EventsPark,
    scope,
    worker::{
        driven::{Tick, Worker},
        park::ThreadPark,
        shared::Shared,
    },
};
use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    time::{Duration, Instant},
};
use sync_shim::atomic::{
    AtomicBool,
    Ordering::{Acquire, Relaxed, Release},
};

mod handover;

use handover::{Entered, Handover};

/// The worker of a runtime without threads of its own. A thread in `block_on` takes the worker.
pub(crate) struct CurrentThread(Handover<Box<Worker<EventsPark>>>);

/// The length of a turn: the most ticks between two polls of a driving thread's own future, once
/// that future is woken. A `LocalRuntime` that runs its ready tasks gives turns to the runtime's
/// tasks, with timers and sockets, and to the local tasks: this many ticks, then this many polls.
pub(crate) const TURN: usize = 61;

/// A thread that runs the ready tasks, and finds none, looks at timers and sockets. If the look has
/// called wakers, but no task is ready, the thread looks again: this many times in a row at most,
/// as each waker may make a new event.
const MAX_LOOKS: usize = 64;

/// The progress of a thread that ran the tasks that were ready.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// No task was ready.
    None,
    /// The thread ran tasks, until none was ready or the limit of ticks was reached.
    Ran,
    /// The thread ran tasks, until one ended.
    Ended,
}

/// The state of a thread that drives. Its drop puts the worker back (rule 2).
struct Driving<'a> {
    all: &'a CurrentThread,
    worker: Option<Box<Worker<EventsPark>>>,
}

/// The waker of a driving thread's own future.
struct FutureWaker {
    woken: AtomicBool,
    unpark: Waker,
}

impl FutureWaker {
    /// Returns whether there is a wake to take. This check only saves a park, and orders nothing.
    fn is_woken(&self) -> bool {
        // Ordering: Relaxed, as `take` acquires the wake.
        self.woken.load(Relaxed)
    }

    /// Takes the wake, if there was one.
    fn take(&self) -> bool {
        // Ordering: Acquire pairs with the store in `wake`. No thread acquires the `false`.
        //
        // A swap would do as well, but not in the model checker. If a swap finds `false`, the
        // checker may put the `false` that the swap writes behind the `true` of a wake, which is
        // then lost. An exchange that fails writes nothing.
        self.woken
            .compare_exchange(true, false, Acquire, Relaxed)
            .is_ok()
    }
}

impl Wake for FutureWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Ordering: Release pairs with the exchange in `take`: the poll sees what the waking thread
        // did before.
        self.woken.store(true, Release);
        self.unpark.wake_by_ref();
    }
}

impl CurrentThread {
    pub(crate) fn new(worker: Worker<EventsPark>) -> Self {
        Self(Handover::new(Box::new(worker)))
    }

    /// Runs the tasks, or waits while another thread does, until the future is ready.
    pub(crate) fn block_on<F: Future>(
        &self,
        shared: &Shared,
        mut future: Pin<&mut F>,
    ) -> F::Output {
        let mut waiting = match self.0.enter() {
            Entered::Drives(worker) => return Driving::new(self, worker).run(future),
            Entered::Waits(waiting) => waiting,
            Entered::Nested => panic!(
                "block_on was called by the thread that runs this runtime's tasks, inside its \
                 block_on: await the future instead"
            ),
        };
        let polls = poll_fn(|cx| {
            let polled = waiting.poll(cx.waker(), || future.as_mut().poll(cx));
            polled.map_err(|worker| Driving::new(self, worker))
        });
        let ended = shared.events.block_on(polls);
        drop(waiting);
        ended.unwrap_or_else(|driving| driving.run(future))
    }

    /// Runs the tasks until `is_over` returns true, or until the deadline.
    pub(crate) fn run_until(&self, is_over: impl Fn() -> bool, deadline: Option<Instant>) {
        let Some(worker) = self.0.take() else {
            return; // A thread drives the worker. A poll of that thread has ended the runtime.
        };
        let mut driving = Driving::new(self, worker);
        let worker = driving.worker();
        while !is_over() {
            if deadline.is_some_and(|at| at <= sync_shim::time::now()) {
                return;
            }
            if tick(worker) == Tick::Idle && !park_until(worker, deadline) {
                return;
            }
        }
    }

    /// Runs the tasks, for at most `ticks` ticks, until no task is ready and a look at timers and
    /// sockets has found nothing. With `one`, stops once a task has ended. Does nothing while
    /// another thread runs the tasks.
    pub(crate) fn run_ready(&self, one: bool, ticks: usize) -> Progress {
        let Some(worker) = self.0.take() else {
            return Progress::None;
        };
        let mut driving = Driving::new(self, worker);
        let worker = driving.worker();
        let ended = |worker: &Worker<EventsPark>| worker.core.counters().ends.get();
        let before = ended(worker);
        let (mut runs, mut looks) = (0, 0);
        while runs < ticks {
            match tick(worker) {
                Tick::Ran => {
                    (runs, looks) = (runs + 1, 0);
                    if one && ended(worker) != before {
                        return Progress::Ended;
                    }
                }
                // A look that found something may have woken tasks.
                Tick::Idle if looks < MAX_LOOKS && worker.look_at_all() => looks += 1,
                Tick::Idle | Tick::Ended => break,
            }
        }
        match runs {
            0 => Progress::None,
            _ => Progress::Ran,
        }
    }

    /// Ends the tasks, after the runtime has closed (rule 7), and returns true. Gives up at the
    /// deadline: then the drop of the worker ends the tasks that are left.
    pub(crate) fn end(&self, deadline: Option<Instant>) -> bool {
        let worker = self.0.take_for_good();
        let Some(mut worker) = worker else {
            // Another thread drives the worker, and ends the tasks.
            return false;
        };
        loop {
            match tick(&mut worker) {
                Tick::Ended => return true,
                Tick::Idle if !park_until(&mut worker, deadline) => return false,
                Tick::Idle | Tick::Ran => {}
            }
        }
    }
}

/// Ticks, and contains panics (rule 5). A tick that has panicked has run something.
fn tick(worker: &mut Worker<EventsPark>) -> Tick {
    worker.contained(Worker::tick).unwrap_or(Tick::Ran)
}

/// Parks, at most until the deadline, and contains panics (rule 5). Returns false, at once, if the
/// deadline has passed. The clock is read here, as the tick before the park may have been long.
fn park_until(worker: &mut Worker<EventsPark>, deadline: Option<Instant>) -> bool {
    let left = deadline.map(|at| at.saturating_duration_since(sync_shim::time::now()));
    if left == Some(Duration::ZERO) {
        return false;
    }
    // The park would panic in a child, and the caller would call again.
    worker.core.shared.process.end_in_child();
    let park = |worker: &mut Worker<EventsPark>| match left {
        None => worker.park(),
        Some(left) => worker.park_timeout(left),
    };
    worker.contained(park).unwrap_or_default();
    true
}

impl<'a> Driving<'a> {
    fn new(all: &'a CurrentThread, worker: Box<Worker<EventsPark>>) -> Self {
        let worker = Some(worker);
        Self { all, worker }
    }

    fn worker(&mut self) -> &mut Worker<EventsPark> {
        self.worker.as_mut().expect("only the drop takes it")
    }

    /// Rules 1, 3 and 8.
    fn run<F: Future>(mut self, mut future: Pin<&mut F>) -> F::Output {
        scope::drive();
        let worker = self.worker();
        let signal = Arc::new(FutureWaker {
            woken: AtomicBool::new(true),
            unpark: worker.unpark_waker(),
        });
        let waker = Waker::from(signal.clone());
        let mut cx = Context::from_waker(&waker);
        // The ticks since the last poll of the future. The first poll comes at once.
        let mut ticks = TURN;
        loop {
            let is_due = signal.is_woken() && (ticks >= TURN || !worker.has_ready_tasks());
            // A wake after the `take` sets the flag again, and the unpark of that wake ends the
            // park below.
            if is_due && !worker.core.shared.is_closing() && signal.take() {
                ticks = 0;
                worker.core.shared.notify_standby();
                if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                    return output;
                }
            }
            match tick(worker) {
                Tick::Ran => ticks += 1,
                Tick::Idle => {
                    // Tasks may be queued that may not run yet: those of a group without quota.
                    ticks = TURN;
                    // A task may have called `fork`. This panic is for the caller of `block_on`.
                    worker
                        .core
                        .shared
                        .assert_is_not_in_forked_child("the park of block_on");
                    if !signal.is_woken() {
                        worker.contained(Worker::park).unwrap_or_default();
                    }
                }
                // A panic has shut the runtime down. This thread waits for its future without the
                // runtime's driver.
                Tick::Ended => return ThreadPark::block_on(future),
            }
        }
    }
}

impl Drop for Driving<'_> {
    fn drop(&mut self) {
        if let Some(mut worker) = self.worker.take() {
            // Rule 8. A task that another thread holds is left to the next thread that drives.
            if worker.core.shared.is_closing() {
                while tick(&mut worker) == Tick::Ran {}
            }
            self.all.0.put_back(worker);
        }
    }
}

#[cfg(test)]
mod models {
    use super::*;
    use crate::worker::park::Park;
    use sync_shim::{cell::UnsafeCell, model, thread};

    struct Done(UnsafeCell<bool>);

    // SAFETY: the model fails if two threads access the value at a time.
    unsafe impl Sync for Done {}

    /// A thread writes a value, and wakes the own future of a thread that drives: if that thread
    /// takes the wake, it sees the write.
    ///
    /// Fails if the store in `wake`, or the exchange in `take`, is Relaxed.
    #[test]
    fn wake_of_the_drivers_future_shows_what_came_before() {
        model(|| {
            let done = Arc::new(Done(UnsafeCell::new(false)));
            let signal = Arc::new(FutureWaker {
                woken: AtomicBool::new(false),
                unpark: ThreadPark::new().waker(),
            });
            let other = {
                let (done, signal) = (done.clone(), signal.clone());
                thread::spawn(move || {
                    // SAFETY: the other thread reads the value only after it has taken the wake.
                    done.0.with_mut(|done| unsafe { *done = true });
                    signal.wake();
                })
            };
            if signal.take() {
                // SAFETY: the wake came after the write.
                assert!(done.0.with(|done| unsafe { *done }));
            }
            other.join().unwrap();
        });
    }

    /// A whole runtime: a task is spawned, and then a thread wakes the future of `block_on`.
    ///
    /// Fails if the driving thread parks after a wake that it has not taken.
    #[test]
    fn wake_racing_the_drivers_park_ends_block_on() {
        sync_shim::Model::new().bound(3).branches(20_000).check(|| {
            let runtime = crate::Builder::new_current_thread().build().unwrap();
            runtime.spawn_detached(async {});
            let mut other = None;
            let woken = Arc::new(AtomicBool::new(false));
            runtime.block_on(std::future::poll_fn(|cx| {
                // Ordering: Acquire pairs with the store of the other thread.
                if woken.load(Acquire) {
                    return Poll::Ready(());
                }
                if other.is_none() {
                    let (waker, woken) = (cx.waker().clone(), woken.clone());
                    other = Some(thread::spawn(move || {
                        // Ordering: Release pairs with the load in the future.
                        woken.store(true, Release);
                        waker.wake();
                    }));
                }
                Poll::Pending
            }));
            other.unwrap().join().unwrap();
        });
    }
}

#[cfg(all(test, feature = "net", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests {
    use super::*;
    use crate::worker::scheduler::Task;
    use std::{
        future::poll_fn,
        panic::{AssertUnwindSafe, catch_unwind},
        pin::pin,
        sync::Mutex,
    };

    /// A waker that drops the task that it holds, and panics.
    struct Panics(Mutex<Option<Task>>);

    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            drop(self.0.lock().unwrap().take());
            panic!("in a waker");
        }
    }

    /// The end of the runtime waits for a task that the test's waker holds. Meanwhile a sleep ends,
    /// and wakes that waker, which panics.
    ///
    /// Fails if the park at the runtime's end lets a panic through (rule 5).
    #[test]
    fn panic_of_a_waker_stays_out_of_the_drop() {
        let runtime = crate::Builder::new_current_thread().build().unwrap();
        let woken = Arc::new(Mutex::new(None));
        let leaves = woken.clone();
        runtime.spawn_detached(poll_fn(move |cx| {
            *leaves.lock().unwrap() = Some(cx.waker().clone());
            Poll::<()>::Pending
        }));
        runtime.block_on(async {
            while woken.lock().unwrap().is_none() {
                crate::yield_now().await;
            }
        });
        // Nothing drives the runtime now, so the woken task stays in the injector.
        woken.lock().unwrap().take().unwrap().wake();
        let held = runtime.handle().shared().pop_injected().unwrap();

        let panics = Arc::new(Panics(Mutex::new(Some(held))));
        let mut sleep = pin!(net_driver::time::sleep(Duration::from_millis(100)));
        let entered = runtime.enter();
        let waker = panics.clone().into();
        let cx = &mut Context::from_waker(&waker);
        assert!(sleep.as_mut().poll(cx).is_pending());
        drop(entered);

        let dropped = catch_unwind(AssertUnwindSafe(|| drop(runtime)));
        assert!(panics.0.lock().unwrap().is_none(), "the end did not park");
        assert!(dropped.is_ok());
    }
}
