//! Tests of the monitor: time slices, long calls of `syscall`, stall reports, and the sleep of the
//! monitor's own thread.
use coop_budget::{consume as consume_budget, has_remaining, need_preempt};
use selvedge_executor::{
    Budget, Builder, Cause, Runtime, Stall, block_in_place, spawn, spawn_detached, syscall,
    yield_now,
};
#[cfg(target_os = "linux")]
use std::{
    fs::File,
    os::{fd::OwnedFd, unix::net::UnixStream},
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::Duration,
};

fn one() -> Runtime {
    Builder::new().workers(1).build().unwrap()
}

/// The call of `syscall` waits for a task in the queue of the calling worker.
///
/// Fails if the monitor never retakes the core of a worker that is in a long call.
#[test]
fn long_call_lets_the_other_tasks_run() {
    let runtime = one();
    for retaken in 1..=3 {
        let task = runtime.spawn(async {
            let (sender, receiver) = mpsc::channel();
            spawn_detached(async move { sender.send(7).unwrap() });
            syscall(|| receiver.recv().unwrap())
        });
        assert_eq!(runtime.block_on(task).unwrap(), 7);
        assert!(runtime.snapshot().retakes >= retaken);
    }
    assert_eq!(runtime.snapshot().syscalls, 3);
}

/// After the monitor has retaken the worker's core, the task goes on in the same poll, and in later
/// polls.
#[test]
fn task_whose_worker_was_retaken_goes_on() {
    let runtime = one();
    let task = runtime.spawn(async {
        let mut sum = 0;
        for n in 0..5 {
            let (sender, receiver) = mpsc::channel();
            spawn_detached(async move { sender.send(n).unwrap() });
            sum += syscall(|| receiver.recv().unwrap());
            if n % 2 == 0 {
                yield_now().await;
            }
            sum += spawn(async { 1 }).await.unwrap();
        }
        sum
    });
    assert_eq!(runtime.block_on(task).unwrap(), 15);
}

#[test]
fn short_calls_return_what_their_closures_return() {
    let runtime = Builder::new().workers(2).build().unwrap();
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            runtime.spawn(async move {
                let mut sum = 0;
                for n in 0..1_000 {
                    sum += syscall(|| n + task);
                    if n % 100 == 0 {
                        yield_now().await;
                    }
                }
                sum
            })
        })
        .collect();
    for (task, join) in tasks.into_iter().enumerate() {
        assert_eq!(runtime.block_on(join).unwrap(), 499_500 + 1_000 * task);
    }
    // If the monitor has retaken the core during a call, the task has no core to offer in the rest
    // of its poll. So the later calls in that poll are not counted.
    let syscalls = runtime.snapshot().syscalls;
    assert!((1..=8_000).contains(&syscalls), "{syscalls}");
}

#[test]
fn calls_nest_in_each_other_and_in_block_in_place() {
    let runtime = one();
    let task = runtime.spawn(async {
        let waits = || {
            let (sender, receiver) = mpsc::channel();
            spawn_detached(async move { sender.send(1).unwrap() });
            receiver.recv().unwrap()
        };
        let one = syscall(|| syscall(waits) + syscall(|| 1));
        let two = syscall(|| block_in_place(waits));
        let three = block_in_place(|| syscall(waits));
        syscall(|| {
            let handle = selvedge_executor::Handle::current();
            block_in_place(|| handle.block_on(async { yield_now().await }))
        });
        (one, two, three)
    });
    assert_eq!(runtime.block_on(task).unwrap(), (2, 1, 1));
}

#[test]
fn panic_in_a_call_is_a_panic_of_the_task() {
    let runtime = one();
    for lasts in [false, true] {
        let task = runtime.spawn(async move {
            let (sender, receiver) = mpsc::channel();
            spawn_detached(async move { sender.send(()).unwrap() });
            syscall(|| {
                if lasts {
                    receiver.recv().unwrap();
                }
                panic!("in a call");
            });
        });
        assert!(runtime.block_on(task).unwrap_err().is_panic());
        let caught = runtime.spawn(async move {
            catch_unwind(AssertUnwindSafe(|| syscall(|| panic!("caught")))).is_err()
        });
        assert!(runtime.block_on(caught).unwrap());
        assert_eq!(runtime.block_on(runtime.spawn(async { 7 })).unwrap(), 7);
    }
}

/// The call of `syscall` waits until a task in the queue of the calling worker is dropped. The end
/// of the runtime drops that task.
///
/// Fails if the monitor ends before the workers.
#[test]
fn call_that_waits_for_the_end_of_the_runtime_returns() {
    let runtime = one();
    let (began, begun) = mpsc::channel();
    let (sender, receiver) = mpsc::channel::<()>();
    let (done, ended) = mpsc::channel();
    runtime.spawn_detached(async move {
        spawn_detached(async move {
            let _held = sender;
            std::future::pending::<()>().await;
        });
        began.send(()).unwrap();
        let waited = syscall(|| receiver.recv());
        done.send(waited.is_err()).unwrap();
    });
    begun.recv().unwrap();
    drop(runtime);
    assert!(ended.recv().unwrap());
}

#[test]
fn calls_outside_of_a_worker_run_their_closures() {
    assert_eq!(syscall(|| 7), 7);
    let runtime = one();
    assert_eq!(runtime.block_on(async { syscall(|| 7) }), 7);
    assert_eq!(
        runtime
            .block_on(runtime.spawn_blocking(|| syscall(|| 7)))
            .unwrap(),
        7
    );
    let (runtime, mut workers) =
        Builder::new().build_driven([selvedge_executor::park::ThreadPark::new()]);
    let task = runtime.spawn(async { syscall(|| 7) });
    let _ = workers[0].tick();
    assert_eq!(runtime.block_on(task).unwrap(), 7);
    assert_eq!(runtime.snapshot().syscalls, 0);
}

#[test]
fn calls_without_a_monitor_hand_the_worker_over_at_once() {
    let runtime = Builder::new().workers(1).monitor(false).build().unwrap();
    let task = runtime.spawn(async {
        let (sender, receiver) = mpsc::channel();
        spawn_detached(async move { sender.send(7).unwrap() });
        syscall(|| receiver.recv().unwrap())
    });
    assert_eq!(runtime.block_on(task).unwrap(), 7);
    assert_eq!(runtime.snapshot().retakes, 0);
}

/// All calls wait for each other, so each call needs a thread of its own. Two further threads may
/// be the workers', and one is the monitor's.
#[test]
#[cfg(target_os = "linux")]
fn many_long_calls_take_a_thread_each() {
    const CALLS: usize = 1_000;
    let runtime = Builder::new()
        .workers(2)
        .thread_name("many-calls")
        .build()
        .unwrap();
    let all = Arc::new(Barrier::new(CALLS + 1));
    let tasks: Vec<_> = (0..CALLS)
        .map(|_| {
            let all = all.clone();
            runtime.spawn(async move {
                syscall(|| {
                    all.wait();
                    all.wait();
                });
            })
        })
        .collect();
    all.wait();
    let threads = names()
        .filter(|name| name.starts_with("many-calls"))
        .count();
    all.wait();
    for task in tasks {
        runtime.block_on(task).unwrap();
    }
    assert!(threads <= 2 + CALLS + 1, "{threads} threads");
}

/// Returns the names of the threads of this process.
#[cfg(target_os = "linux")]
fn names() -> impl Iterator<Item = String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok())
}

/// A task with an unlimited budget runs while another task waits in the same worker's queue.
///
/// Fails if the monitor requests the end of no slice.
#[test]
fn slice_of_a_task_without_a_budget_ends() {
    let runtime = Builder::new()
        .workers(1)
        .budget(Budget::UNLIMITED)
        .monitor(true)
        .build()
        .unwrap();
    let task = runtime.spawn(async {
        let (sender, receiver) = mpsc::channel();
        spawn_detached(async move { sender.send(()).unwrap() });
        spawn_detached(async {}); // It displaces the first task from the LIFO slot.
        while receiver.try_recv().is_err() {
            consume_budget().await;
        }
    });
    runtime.block_on(task).unwrap();
    let metrics = runtime.snapshot();
    assert!(
        metrics.preemptions > 0 && metrics.ended_slices > 0,
        "{metrics}"
    );
}

#[test]
fn loop_of_a_user_sees_the_end_of_its_slice() {
    let runtime = one();
    let task = runtime.spawn(async {
        assert!(has_remaining());
        yield_now().await; // A worker starts the monitor's thread after its first ticks.
        yield_now().await;
        while !need_preempt() {
            std::hint::spin_loop();
        }
        assert!(!has_remaining());
        yield_now().await;
        has_remaining()
    });
    assert!(runtime.block_on(task).unwrap());
}

/// A task whose slice is over goes behind a task from outside, and behind the tasks of its worker.
///
/// Fails if the task is requeued behind its worker's tasks alone.
#[test]
fn preempted_task_goes_behind_the_tasks_of_all() {
    let runtime = Builder::new().workers(1).monitor(false).build().unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let (logs, handle) = (order.clone(), runtime.handle().clone());
    let task = runtime.spawn(async move {
        let log = |name| {
            let logs = logs.clone();
            async move { logs.lock().unwrap().push(name) }
        };
        let own = spawn(log("own"));
        spawn_detached(async {});
        let outside = log("outside");
        let outer = handle.clone();
        thread::spawn(move || outer.spawn_detached(outside))
            .join()
            .unwrap();
        handle.preempt(0);
        yield_now().await;
        logs.lock().unwrap().push("preempted");
        own.await.unwrap();
    });
    runtime.block_on(task).unwrap();
    assert_eq!(order.lock().unwrap().last(), Some(&"preempted"));
    assert_eq!(order.lock().unwrap().len(), 3);
}

/// Receives the task's id and the cause of each reported stall.
type Reports = mpsc::Receiver<(Option<u64>, Cause)>;

fn reporting(threshold: u64) -> (Runtime, Reports) {
    let (sender, reports) = mpsc::channel();
    let runtime = Builder::new()
        .workers(1)
        .stall_threshold(Duration::from_millis(threshold))
        .on_stall(move |stall| {
            let _ = sender.send((stall.task, stall.cause.clone()));
        })
        .build()
        .unwrap();
    (runtime, reports)
}

/// Returns a connected pair of descriptors whose reads and writes are the calls `read` and `write`.
#[cfg(target_os = "linux")]
fn connected_files() -> (File, File) {
    let (one, other) = UnixStream::pair().unwrap();
    (OwnedFd::from(one).into(), OwnedFd::from(other).into())
}

#[test]
#[cfg(target_os = "linux")]
fn stall_in_a_system_call_is_reported_with_its_name() {
    let (runtime, reports) = reporting(5);
    let (sender, receiver) = mpsc::channel::<()>();
    let (mut reader, writer) = connected_files();
    let task = runtime.spawn(async move {
        let _ = std::io::Read::read(&mut reader, &mut [0]);
        let _ = receiver.recv();
    });
    let (number, cause) = reports.recv().unwrap();
    assert_eq!(number, Some(task.id().into()));
    let Cause::Blocked { call, .. } = cause else {
        panic!("{cause}")
    };
    assert_eq!(call.as_deref(), Some("read"));
    drop((writer, sender));
    runtime.block_on(task).unwrap();
    assert!(runtime.snapshot().stalls > 0);
}

/// The cause may stay unknown on a busy machine, where the times of the thread do not tell more. So
/// this tries again.
#[test]
#[cfg(target_os = "linux")]
fn stall_of_a_task_that_computes_is_reported_as_such() {
    let computes = || {
        let (runtime, reports) = reporting(5);
        let stop = Arc::new(AtomicUsize::new(0));
        let stopped = stop.clone();
        let task = runtime.spawn(async move {
            while stopped.load(SeqCst) == 0 {
                std::hint::spin_loop();
            }
        });
        let (number, cause) = reports.recv().unwrap();
        stop.store(1, SeqCst);
        assert_eq!(number, Some(task.id().into()));
        runtime.block_on(task).unwrap();
        cause
    };
    let cause = (0..20)
        .map(|_| computes())
        .find(|cause| !matches!(cause, Cause::Unknown));
    assert!(
        matches!(cause, Some(Cause::OnCpu | Cause::Runnable)),
        "{cause:?}"
    );
}

/// Returns a runtime, and a receiver that gets each of its stall reports whole.
fn reporting_all(builder: Builder) -> (Runtime, mpsc::Receiver<Stall>) {
    let (sender, reports) = mpsc::channel();
    let hook = move |stall: &Stall| drop(sender.send(stall.clone()));
    let builder = builder.workers(1).stall_reports_per_minute(u32::MAX);
    (builder.on_stall(hook).build().unwrap(), reports)
}

/// Fails if the task's name is forgotten when the task is queued.
#[test]
fn stall_of_a_named_task_has_its_name_and_place() {
    let threshold = Duration::from_millis(5);
    let (runtime, reports) = reporting_all(Builder::new().stall_threshold(threshold));
    let (sender, receiver) = mpsc::channel::<()>();
    let builder = selvedge_executor::TaskBuilder::new().name("stuck".to_owned());
    let waits = async move { receiver.recv().is_ok() };
    let line = line!() + 1;
    let task = builder.spawn_on(waits, runtime.handle());
    let number = Some(u64::from(task.id()));
    let stall = reports.iter().find(|stall| stall.task == number).unwrap();
    drop(sender);
    runtime.block_on(task).unwrap();
    assert_eq!(stall.name.as_deref(), Some("stuck"));
    let location = stall.location.unwrap();
    assert_eq!((location.file(), location.line()), (file!(), line));
    let text = stall.to_string();
    assert!(text.contains("\"stuck\", spawned at "), "{text}");
}

/// Ten tasks from outside, and one in the worker's slot, wait behind a poll. The report is
/// repeated, so one of them comes after the spawns.
///
/// Never ends if a report leaves out the slot, or counts the injector's new tasks as one.
#[test]
fn stall_counts_all_tasks_that_wait() {
    let threshold = Duration::from_millis(5);
    let (runtime, reports) = reporting_all(Builder::new().stall_threshold(threshold));
    let (sender, receiver) = mpsc::channel::<()>();
    let (begin, begun) = mpsc::channel();
    let stalled = runtime.spawn(async move {
        spawn_detached(async {});
        begin.send(()).unwrap();
        receiver.recv().is_ok()
    });
    begun.recv().unwrap();
    (0..10).for_each(|_| runtime.spawn_detached(async {}));
    assert_eq!(runtime.snapshot().injector_depth, 10);
    let stall = reports.iter().find(|stall| stall.waiting == 11).unwrap();
    assert!(stall.to_string().contains(", 11 tasks wait"), "{stall}");
    drop(sender);
    runtime.block_on(stalled).unwrap();
}

#[test]
#[cfg(feature = "groups")]
fn stall_of_a_task_in_a_group_names_the_group() {
    let threshold = Duration::from_millis(5);
    let (runtime, reports) = reporting_all(Builder::new().stall_threshold(threshold));
    let group = runtime.group("batch").build().unwrap();
    // These handles keep the ids of tasks that have ended from being used again.
    let mut ended = Vec::new();
    let mut spawn = |in_group: bool| {
        let (sender, receiver) = mpsc::channel::<()>();
        let waits = async move { receiver.recv().is_ok() };
        let task = match in_group {
            true => selvedge_executor::spawn_in(&group, waits).unwrap(),
            false => runtime.spawn(waits),
        };
        let number = Some(u64::from(task.id()));
        let stall = reports.iter().find(|stall| stall.task == number).unwrap();
        drop(sender);
        ended.push(task.abort_handle());
        runtime.block_on(task).unwrap();
        stall.group
    };
    assert_eq!(spawn(true).as_deref(), Some("batch"));
    assert_eq!(spawn(false).as_deref(), Some("main"));
}

/// Tests that the stack in a report shows the function in which the stalled poll is. The tests turn
/// on the feature `backtrace` of `sched-monitor`, as a program does that wants stacks.
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod stacks {
    use super::*;
    use selvedge_executor::Frame;
    use std::{
        hint::black_box,
        sync::atomic::{AtomicBool, Ordering::SeqCst},
        time::Instant,
    };

    #[inline(never)]
    fn computes_for_long(stop: &AtomicBool) {
        while !stop.load(SeqCst) {
            std::hint::spin_loop();
        }
        black_box(stop);
    }

    #[inline(never)]
    fn reads_for_long(mut from: impl std::io::Read) {
        let mut byte = [0];
        assert_eq!(from.read(&mut byte).unwrap(), 1);
        black_box(byte);
    }

    /// Returns the first report with a stack among the task's reports, and the frames of that
    /// stack. On a busy machine the task's first reports may have no stack.
    fn stalled(task: u64, reports: &mpsc::Receiver<Stall>, begun: Instant) -> (Stall, Vec<Frame>) {
        loop {
            let stall = reports.recv().unwrap();
            let took = begun.elapsed();
            if let Some(stack) = stall.stack.as_ref().filter(|_| stall.task == Some(task)) {
                println!("{stall}\nreported after {took:?}");
                return (stall.clone(), stack.resolve());
            }
        }
    }

    /// Returns the position of a function among the frames.
    fn position(frames: &[Frame], name: &str) -> usize {
        let is = |frame: &Frame| {
            let function = frame.function.as_deref();
            function.is_some_and(|function| function.contains(name))
        };
        let at = frames.iter().position(is);
        at.unwrap_or_else(|| panic!("{frames:#?}"))
    }

    #[test]
    fn stack_of_a_poll_that_computes_has_its_function_on_top() {
        let (runtime, reports) = reporting_all(Builder::new());
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, (sender, begun)) = (stop.clone(), mpsc::channel());
        let task = runtime.spawn(async move {
            sender.send(Instant::now()).unwrap();
            computes_for_long(&stopped);
        });
        let begun = begun.recv().unwrap();
        let (_, frames) = stalled(task.id().into(), &reports, begun);
        stop.store(true, SeqCst);
        runtime.block_on(task).unwrap();
        // In a build without optimisation the load of the flag has frames of its own above it.
        assert!(position(&frames, "computes_for_long") <= 3, "{frames:#?}");
    }

    #[test]
    fn stack_of_a_poll_that_reads_has_its_function_below_read() {
        let (runtime, reports) = reporting_all(Builder::new());
        let (reader, mut writer) = connected_files();
        let (sender, begun) = mpsc::channel();
        let task = runtime.spawn(async move {
            sender.send(Instant::now()).unwrap();
            reads_for_long(reader);
        });
        let begun = begun.recv().unwrap();
        let (stall, frames) = stalled(task.id().into(), &reports, begun);
        // The signal did not end the read.
        std::io::Write::write_all(&mut writer, &[7]).unwrap();
        runtime.block_on(task).unwrap();
        let Cause::Blocked { call, .. } = &stall.cause else {
            panic!("{}", stall.cause)
        };
        assert_eq!(call.as_deref(), Some("read"));
        let (read, own) = (
            position(&frames, "read"),
            position(&frames, "reads_for_long"),
        );
        // The C library's debug symbols, and a sanitizer, add a frame each.
        assert!(read == 0 && own <= 8, "{frames:#?}");
        let text = stall.to_string();
        assert!(!text.contains("task_header::"), "{text}");
    }
}

/// A long call, and a task that blocks in place, are not stalls.
#[test]
fn annotated_blocking_is_not_reported() {
    let (runtime, reports) = reporting(1);
    let task = runtime.spawn(async {
        let wait = || thread::sleep(Duration::from_millis(60));
        syscall(wait);
        block_in_place(wait);
    });
    let number = Some(u64::from(task.id()));
    runtime.block_on(task).unwrap();
    drop(runtime);
    // Around the calls the task may lose its CPU for a while. Such a poll is reported with another
    // cause.
    let blocked = |(task, cause): &(Option<u64>, Cause)| {
        *task == number && matches!(cause, Cause::Blocked { .. })
    };
    assert_eq!(reports.try_iter().filter(blocked).count(), 0);
}

#[test]
fn hook_for_stalls_may_panic_and_drop_the_runtime() {
    let slot = Arc::new(Mutex::new(None::<Runtime>));
    let (sender, called) = mpsc::channel();
    let (dropped, drops) = (slot.clone(), sender);
    let runtime = Builder::new()
        .workers(1)
        .stall_threshold(Duration::from_millis(1))
        .on_stall(move |_| {
            drop(dropped.lock().unwrap().take());
            let _ = drops.send(());
            panic!("a hook");
        })
        .build()
        .unwrap();
    let handle = runtime.handle().clone();
    *slot.lock().unwrap() = Some(runtime);
    let (sender, receiver) = mpsc::channel::<()>();
    handle.spawn_detached(async move {
        let _ = receiver.recv();
    });
    called.recv().unwrap();
    drop(sender);
}

/// The directory of this process's thread with this name, in `/proc`.
#[cfg(target_os = "linux")]
fn thread_named(name: &str) -> Option<std::path::PathBuf> {
    let has_name = |task: &std::path::PathBuf| {
        std::fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim() == name)
    };
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let mut paths = tasks.filter_map(|task| Some(task.ok()?.path()));
    paths.find(has_name)
}

/// Fails if a worker starts the monitor's thread when it finds no second task, or if it does not
/// start the thread before the second poll.
#[test]
#[cfg(target_os = "linux")]
fn monitor_starts_before_the_second_poll_of_a_worker() {
    let builder = Builder::new().workers(1).thread_name("lone");
    let runtime = builder.build().unwrap();
    runtime.block_on(runtime.spawn(async {})).unwrap();
    while runtime.snapshot().parks == 0 {
        thread::yield_now();
    }
    assert_eq!(thread_named("lone-monitor"), None);
    runtime.block_on(runtime.spawn(async {})).unwrap();
    // The thread gives itself its name after it has started.
    while thread_named("lone-monitor").is_none() {
        thread::yield_now();
    }
}

/// While the runtime is idle, its monitor's thread does not run: the system counts no context
/// switch of that thread.
///
/// Fails if the monitor only pauses between its looks at the workers, and wakes up again by itself.
#[test]
#[cfg(target_os = "linux")]
fn monitor_of_an_idle_runtime_sleeps() {
    let runtime = Builder::new()
        .workers(2)
        .thread_name("idle-m")
        .monitor(true)
        .build()
        .unwrap();
    runtime.block_on(runtime.spawn(yield_now())).unwrap();
    let path = || thread_named("idle-m-monitor");
    // The thread gives itself its name after `build` has returned.
    let path = loop {
        match path() {
            Some(path) => break path,
            None => std::thread::yield_now(),
        }
    };
    let switches = || {
        let status = std::fs::read_to_string(path.join("status")).unwrap();
        let switches = status.lines().filter(|line| line.contains("ctxt_switches"));
        switches.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut before = switches();
    // The monitor goes to sleep soon, and on a busy machine later.
    let rests = (0..100).any(|_| {
        thread::sleep(Duration::from_millis(200));
        let now = switches();
        std::mem::replace(&mut before, now.clone()) == now
    });
    assert!(rests, "{before:?}");
    // A worker that becomes busy wakes the monitor.
    let (sender, receiver) = mpsc::channel();
    let task = runtime.spawn(async move {
        spawn_detached(async move { sender.send(7).unwrap() });
        syscall(|| receiver.recv().unwrap())
    });
    assert_eq!(runtime.block_on(task).unwrap(), 7);
    assert_ne!(switches(), before);
}

/// The only worker is in a poll that ends only when a timer has fired.
///
/// Fails if only workers fire timers.
#[test]
#[cfg(feature = "net")]
fn timer_beside_a_long_poll_is_fired() {
    struct Sends(Mutex<mpsc::Sender<()>>);
    impl std::task::Wake for Sends {
        fn wake(self: Arc<Self>) {
            let _ = self.0.lock().unwrap().send(());
        }
    }
    let runtime = Builder::new().workers(1).monitor(true).build().unwrap();
    let task = runtime.spawn(async {
        let (sender, fired) = mpsc::channel();
        let waker = Arc::new(Sends(Mutex::new(sender))).into();
        let mut sleep = std::pin::pin!(net_driver::time::sleep(Duration::from_millis(50)));
        let mut cx = std::task::Context::from_waker(&waker);
        assert!(std::future::Future::poll(sleep.as_mut(), &mut cx).is_pending());
        fired.recv().unwrap();
    });
    runtime.block_on(task).unwrap();
}

/// Two tasks wake each other without end. Their polls are short, but a request ends each of their
/// slices.
///
/// Fails if neither the monitor nor a worker whose slice is over looks for timers.
#[test]
#[cfg(feature = "net")]
fn timer_beside_tasks_whose_slices_end_is_fired() {
    use std::{
        future::poll_fn,
        sync::atomic::{AtomicBool, Ordering::Relaxed},
        task::{Poll, Waker},
        time::Instant,
    };
    let runtime = Builder::new().workers(1).monitor(true).build().unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let wakers = Arc::new([const { Mutex::new(None::<Waker>) }; 2]);
    let pair = [0, 1].map(|own| {
        let (over, wakers) = (over.clone(), wakers.clone());
        runtime.spawn(poll_fn(move |cx| {
            *wakers[own].lock().unwrap() = Some(cx.waker().clone());
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_millis(8) {
                std::hint::spin_loop();
            }
            let other = wakers[1 - own].lock().unwrap().take();
            other.into_iter().for_each(Waker::wake);
            match over.load(Relaxed) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        }))
    });
    let sleeper = runtime.spawn(net_driver::time::sleep(Duration::from_millis(200)));
    runtime.block_on(sleeper).unwrap();
    over.store(true, Relaxed);
    for task in pair {
        runtime.block_on(task).unwrap();
    }
}
