//! Tests of a builder's driver in two special waits of its worker: while the worker watches the
//! LIFO slots of others, and while the runtime ends.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use futures::executor::block_on;
use selvedge_executor::{
    Builder, Runtime,
    park::{Park, ThreadPark},
    spawn_detached, worker_index, yield_now,
};
use std::{
    future::poll_fn,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    task::{Poll, Wake, Waker},
    thread,
    time::Duration,
};

/// The state that the drivers of a runtime share with the test.
#[derive(Default)]
struct Drivers {
    /// The wakers of the parkers.
    unpark: Mutex<Vec<Waker>>,
    /// The events that a park collects, if it has a limit or the runtime ends.
    arrived: Mutex<Vec<Waker>>,
    /// Gets the index of each worker that begins a park. Set while the runtime ends.
    ending: Mutex<Option<mpsc::Sender<usize>>>,
    drops: AtomicUsize,
}

struct Driver {
    worker: usize,
    thread: ThreadPark,
    drivers: Arc<Drivers>,
    collected: Vec<Waker>,
}

impl Drivers {
    fn build(self: &Arc<Self>, workers: usize) -> Runtime {
        let drivers = self.clone();
        let driver = move |worker| {
            let thread = ThreadPark::new();
            drivers.unpark.lock().unwrap().push(thread.waker());
            Driver {
                worker,
                thread,
                drivers: drivers.clone(),
                collected: Vec::new(),
            }
        };
        let builder = Builder::new().workers(workers).monitor(false);
        builder.driver(driver).build().unwrap()
    }

    fn unpark(&self, worker: usize) {
        self.unpark.lock().unwrap()[worker].wake_by_ref();
    }
}

impl Driver {
    fn collect(&mut self) {
        self.collected
            .append(&mut self.drivers.arrived.lock().unwrap());
    }
}

impl Park for Driver {
    fn park(&mut self) {
        let ending = self.drivers.ending.lock().unwrap().clone();
        if let Some(ending) = ending {
            let _ = ending.send(self.worker);
            self.thread.park();
            self.collect();
        } else {
            self.thread.park();
        }
    }

    fn park_timeout(&mut self, limit: Duration) {
        self.thread.park_timeout(limit);
        self.collect();
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

impl Drop for Driver {
    fn drop(&mut self) {
        self.drivers.drops.fetch_add(1, SeqCst);
    }
}

/// A poll blocks until two other tasks have run. One of them waits for an event, which the driver
/// collects only in parks with a limit. The other one is in the LIFO slot of the blocked worker.
///
/// Fails, by a hang, if a worker that watches parks in its driver without a limit, or if it does
/// not deliver what the driver collects in such a park. Also fails so if it looks at no slot.
#[test]
fn watching_worker_serves_its_driver_and_takes_the_slot() {
    let drivers = Arc::<Drivers>::default();
    let runtime = drivers.build(2);
    let (ran, runs) = mpsc::channel();
    let (waits, waiting) = mpsc::channel();
    let (shared, after_event) = (drivers.clone(), ran.clone());
    runtime.spawn_detached(async move {
        let mut has_waited = false;
        poll_fn(|cx| {
            if has_waited {
                return Poll::Ready(());
            }
            has_waited = true;
            shared.arrived.lock().unwrap().push(cx.waker().clone());
            Poll::Pending
        })
        .await;
        after_event.send("event").unwrap();
    });
    let blocked = runtime.spawn(async move {
        while drivers.arrived.lock().unwrap().is_empty() {
            yield_now().await;
        }
        spawn_detached(async move { ran.send("slot").unwrap() });
        waits.send(()).unwrap();
        let mut ran = [runs.recv().unwrap(), runs.recv().unwrap()];
        ran.sort_unstable();
        ran
    });
    waiting.recv().unwrap();
    assert_eq!(block_on(blocked).unwrap(), ["event", "slot"]);
    assert!(runtime.snapshot().slot_steals > 0);
}

/// Calls a closure when it is woken.
struct Calls<F>(F);

impl<F: Fn() + Send + Sync> Wake for Calls<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

/// Runs a task that is in the list of one worker, while its second poll blocks another worker.
/// Returns the index of the first worker.
fn block_a_task_of_another_worker(
    runtime: &Runtime,
    gate: mpsc::Receiver<()>,
    held: Arc<()>,
) -> usize {
    let gate = Arc::new(Mutex::new(gate));
    let task = runtime.spawn(async move {
        loop {
            let polled = Arc::new(Mutex::new(None));
            let (begin, begun) = mpsc::channel();
            let (report, gate, held) = (polled.clone(), gate.clone(), held.clone());
            let mut has_waited = false;
            spawn_detached(poll_fn(move |cx| {
                let _held = &held;
                if has_waited {
                    if begin.send(()).is_ok() {
                        gate.lock().unwrap().recv().unwrap();
                    }
                    return Poll::Ready(());
                }
                has_waited = true;
                *report.lock().unwrap() = Some((worker_index(), cx.waker().clone()));
                Poll::Pending
            }));
            let (owner, waker) = loop {
                if let Some(polled) = polled.lock().unwrap().take() {
                    break polled;
                }
                yield_now().await;
            };
            if owner == worker_index() {
                waker.wake(); // Into the slot of this worker, which is blocked by the next line.
                begun.recv().unwrap();
                return owner.unwrap();
            }
            drop(begun); // Another worker was first to poll the task, which then ends.
            waker.wake();
        }
    });
    block_on(task).unwrap()
}

/// The runtime ends while a worker's task is in a long poll on another worker. The first worker
/// waits for that task, in its driver.
///
/// Fails, by a hang, if a worker that waits for a task at the runtime's end does not park in its
/// driver, or does not deliver. Also fails if a worker leaves, and drops its driver, before its
/// last task has ended, or if its wait does not serve the runtime's timers.
#[test]
fn ending_runtime_serves_the_driver_of_a_worker_that_waits() {
    let drivers = Arc::<Drivers>::default();
    let runtime = drivers.build(2);
    let (release, gate) = mpsc::channel();
    let held = Arc::new(());
    let owner = block_a_task_of_another_worker(&runtime, gate, held.clone());
    let handle = runtime.handle().clone();
    let end = thread::spawn(|| drop(runtime));
    while block_on(handle.spawn(async {})).is_ok() {
        thread::yield_now();
    }

    let (ending, parked) = mpsc::channel();
    *drivers.ending.lock().unwrap() = Some(ending);
    drivers.unpark(owner);
    assert_eq!(parked.recv().unwrap(), owner);
    let (sender, delivered) = mpsc::channel();
    let event = move || sender.send(thread::current().id()).unwrap();
    drivers
        .arrived
        .lock()
        .unwrap()
        .push(Arc::new(Calls(event)).into());
    drivers.unpark(owner);
    assert_ne!(delivered.recv().unwrap(), thread::current().id());
    assert_eq!(parked.recv().unwrap(), owner);
    #[cfg(feature = "net")]
    {
        let _entered = handle.enter();
        block_on(async {
            let sleep = || Box::pin(net_driver::time::sleep(Duration::from_millis(1)));
            let mut first = sleep();
            while futures::poll!(first.as_mut()).is_ready() {
                first = sleep();
            }
            first.await;
        });
    }
    assert_eq!(drivers.drops.load(SeqCst), 0);
    assert!(Arc::strong_count(&held) > 1);

    release.send(()).unwrap();
    end.join().unwrap();
    assert_eq!(drivers.drops.load(SeqCst), 2);
    assert_eq!(Arc::strong_count(&held), 1);
}
