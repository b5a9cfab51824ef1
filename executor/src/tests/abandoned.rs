//! Tests of driven workers that are dropped before their runtime's end, and of later wakes.
use super::*;
use crate::{Tick, Worker, worker::park::ThreadPark};
use std::{
    sync::Barrier,
    task::{Context, RawWaker, RawWakerVTable, Waker},
};

/// Makes a runtime of driven workers, and a value of which the runtime's memory has a clone.
fn driven<const N: usize>() -> (Runtime, [Worker<ThreadPark>; N], Arc<()>) {
    let memory = Arc::new(());
    let held = memory.clone();
    let parks = [(); N].map(|()| ThreadPark::new());
    let (runtime, workers) = Builder::new()
        .on_thread_stop(move || drop(held.clone()))
        .build_driven(parks);
    let workers = <[_; N]>::try_from(workers);
    (runtime, workers.expect("as many as parks"), memory)
}

/// Lets `worker` poll a task that waits, and returns its waker. The task's future owns `held`.
fn waits<T: Send + 'static>(runtime: &Handle, worker: &mut Worker<ThreadPark>, held: T) -> Waker {
    let (sender, waker) = mpsc::channel();
    runtime.spawn_detached(poll_fn(move |cx| {
        let _held = &held;
        sender.send(cx.waker().clone()).unwrap();
        Poll::<()>::Pending
    }));
    assert_eq!(worker.tick(), Tick::Ran);
    waker.recv().unwrap()
}

fn ends(worker: &mut Worker<ThreadPark>) {
    while worker.tick() != Tick::Ended {
        worker.park();
    }
}

/// Calls its closure when it is dropped.
struct Calls<F: FnMut()>(F);

impl<F: FnMut()> Drop for Calls<F> {
    fn drop(&mut self) {
        self.0();
    }
}

/// The wake cancels the task, because a worker was dropped before. So the thread of the wake drops
/// the worker that the task owns.
#[test]
fn worker_dropped_in_a_wake_does_not_wait_for_that_wake() {
    let (runtime, [one, two, mut three], memory) = driven();
    let waker = waits(runtime.handle(), &mut three, two);
    drop(one);
    in_time(move || waker.wake());
    ends(&mut three);
    drop((runtime, three));
    assert_eq!(Arc::strong_count(&memory), 1, "the runtime was not freed");
}

/// Each of two threads drops a worker in a wake, while the other thread is in a wake, too.
#[test]
fn workers_dropped_in_two_wakes_do_not_wait_for_each_other() {
    let (runtime, [one, two, three, mut four], memory) = driven();
    let met = Arc::new(Barrier::new(2));
    let wakers = [two, three].map(|worker| {
        let (met, mut worker) = (met.clone(), Some(worker));
        let calls = move || {
            met.wait();
            drop(worker.take());
        };
        waits(runtime.handle(), &mut four, Calls(calls))
    });
    drop(one);
    in_time(move || {
        let threads = wakers.map(|waker| std::thread::spawn(move || waker.wake()));
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    });
    ends(&mut four);
    drop((runtime, four));
    assert_eq!(Arc::strong_count(&memory), 1, "the runtime was not freed");
}

/// As above, with two runtimes: each wake drops a worker of the other runtime.
#[test]
fn workers_dropped_in_wakes_of_two_runtimes_both_end() {
    let (one, [one_first, one_owned, mut one_last], one_memory) = driven();
    let (two, [two_first, two_owned, mut two_last], two_memory) = driven();
    let met = Arc::new(Barrier::new(2));
    let meets = |worker| {
        let (met, mut worker) = (met.clone(), Some(worker));
        Calls(move || {
            met.wait();
            drop(worker.take());
        })
    };
    let wakers = [
        waits(one.handle(), &mut one_last, meets(two_owned)),
        waits(two.handle(), &mut two_last, meets(one_owned)),
    ];
    drop((one_first, two_first));
    in_time(move || {
        let threads = wakers.map(|waker| std::thread::spawn(move || waker.wake()));
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    });
    ends(&mut one_last);
    ends(&mut two_last);
    drop((one, one_last, two, two_last));
    assert_eq!(Arc::strong_count(&one_memory), 1, "the first was not freed");
    assert_eq!(
        Arc::strong_count(&two_memory),
        1,
        "the second was not freed"
    );
}

/// A task is queued before the woken task. The thread of the wake ends the runtime in the drop of
/// that first task. The runtime's memory must outlive the wake.
#[test]
fn runtime_memory_outlives_the_worker_dropped_in_a_wake() {
    let (runtime, [one, mut two], memory) = driven();
    let waker = waits(runtime.handle(), &mut two, ());
    let handle = runtime.handle().clone();
    let (known, left) = (memory.clone(), Arc::new(AtomicUsize::new(0)));
    let (seen, mut owned) = (left.clone(), Some((runtime, two)));
    let ends = Calls(move || {
        drop(owned.take());
        seen.store(Arc::strong_count(&known), SeqCst);
    });
    handle.spawn_detached(async move {
        let _ends = ends;
    });
    // This stands for a thread that holds the task while the first worker is dropped.
    let queued = handle.shared().injector.pop().unwrap();
    drop(one);
    handle.shared().injector.mine().requeue(queued);
    drop(handle);
    in_time(move || waker.wake());
    assert_eq!(left.load(SeqCst), 3, "it was freed in the wake");
    assert_eq!(Arc::strong_count(&memory), 1, "the runtime was not freed");
}

/// A drop of the runtime in a wake does not wait for threads, as the threads may wait for that
/// wake.
#[test]
fn runtime_dropped_in_a_wake_does_not_wait_for_closures() {
    let (runtime, [one, two, mut three], memory) = driven();
    let (begun, begins) = mpsc::channel();
    let (open, gate) = mpsc::channel::<()>();
    runtime.spawn_blocking(move || {
        begun.send(()).unwrap();
        let _ = gate.recv();
        drop(two);
    });
    begins.recv().unwrap();
    let handle = runtime.handle().clone();
    let mut owned = Some((runtime, open));
    let calls = Calls(move || drop(owned.take().map(|(runtime, open)| (open, drop(runtime)))));
    let waker = waits(&handle, &mut three, calls);
    drop(one);
    in_time(move || waker.wake());
    ends(&mut three);
    drop((handle, three));
    // The closure's thread may end later.
    let begun = std::time::Instant::now();
    while Arc::strong_count(&memory) > 1 && begun.elapsed() < LONG {
        std::thread::yield_now();
    }
    assert_eq!(Arc::strong_count(&memory), 1, "the runtime was not freed");
}

/// Wakes in a thread of its own, with a stack of the default size.
fn wake_on_a_plain_stack(waker: Option<Waker>) {
    let wakes = move || waker.into_iter().for_each(Waker::wake);
    std::thread::spawn(wakes).join().unwrap();
}

/// Each of 50,000 tasks wakes the next when its future is dropped. The thread of the first wake
/// drops the futures of all.
#[test]
fn tasks_that_wake_each_other_in_drops_end_in_a_loop() {
    const TASKS: usize = 50_000;
    let (runtime, [one, mut two], memory) = driven();
    let dropped = Arc::new(AtomicUsize::new(0));
    let mut next = None;
    for _ in 0..TASKS {
        let (count, mut wakes) = (dropped.clone(), next.take());
        let calls = Calls(move || {
            count.fetch_add(1, SeqCst);
            wakes.take().into_iter().for_each(Waker::wake);
        });
        next = Some(waits(runtime.handle(), &mut two, calls));
    }
    drop(one);
    wake_on_a_plain_stack(next);
    assert_eq!(dropped.load(SeqCst), TASKS);
    ends(&mut two);
    drop((runtime, two));
    assert_eq!(Arc::strong_count(&memory), 1, "the runtime was not freed");
}

/// As above, but each task wakes a task of the other runtime.
#[test]
fn tasks_of_two_runtimes_that_wake_each_other_end_in_a_loop() {
    const TASKS: usize = 50_000;
    let (one, [one_first, mut one_last], _) = driven();
    let (two, [two_first, mut two_last], _) = driven();
    let dropped = Arc::new(AtomicUsize::new(0));
    let mut next = None;
    for n in 0..TASKS {
        let (count, mut wakes) = (dropped.clone(), next.take());
        let calls = Calls(move || {
            count.fetch_add(1, SeqCst);
            wakes.take().into_iter().for_each(Waker::wake);
        });
        let (runtime, worker) = match n % 2 {
            0 => (one.handle(), &mut one_last),
            _ => (two.handle(), &mut two_last),
        };
        next = Some(waits(runtime, worker, calls));
    }
    drop((one_first, two_first));
    wake_on_a_plain_stack(next);
    assert_eq!(dropped.load(SeqCst), TASKS);
    ends(&mut one_last);
    ends(&mut two_last);
}

/// Each drop wakes the next task, and then panics: the loop that drops the tasks goes on.
#[test]
fn drop_that_panics_in_a_wake_leaves_no_task_behind() {
    let (runtime, [one, mut two], _) = driven();
    let dropped = Arc::new(AtomicUsize::new(0));
    let mut next = None;
    for _ in 0..9 {
        let (count, mut wakes) = (dropped.clone(), next.take());
        let calls = Calls(move || {
            count.fetch_add(1, SeqCst);
            wakes.take().into_iter().for_each(Waker::wake);
            panic!("in a drop");
        });
        next = Some(waits(runtime.handle(), &mut two, calls));
    }
    drop(one);
    in_time(move || next.into_iter().for_each(Waker::wake));
    assert_eq!(dropped.load(SeqCst), 9);
    ends(&mut two);
}

/// Waker that cannot be cloned, so that a join handle leaves its previous waker in the task.
fn unclonable() -> Waker {
    const VTABLE: RawWakerVTable =
        RawWakerVTable::new(|_| panic!("cannot be cloned"), |_| (), |_| (), |_| ());
    // SAFETY: no function of the table uses the pointer.
    unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &VTABLE)) }
}

struct WakesWhenDropped(Waker);

impl std::task::Wake for WakesWhenDropped {
    fn wake(self: Arc<Self>) {}
}

impl Drop for WakesWhenDropped {
    fn drop(&mut self) {
        self.0.wake_by_ref();
    }
}

/// A worker frees a task that ended on the other worker, and with the task a waker. The drop of
/// this waker wakes another task. That task goes into the first worker's queue after the first
/// worker has ended all of its other tasks.
#[test]
fn worker_whose_last_drain_wakes_a_task_frees_the_runtime() {
    let (runtime, [mut one, mut two], memory) = driven();
    let woken = waits(runtime.handle(), &mut two, ());
    let (sender, waker) = mpsc::channel();
    let mut polled = false;
    let mut handle = runtime.spawn(poll_fn(move |cx| {
        sender.send(cx.waker().clone()).unwrap();
        match std::mem::replace(&mut polled, true) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }));
    let left = Waker::from(Arc::new(WakesWhenDropped(woken)));
    let mut poll = |waker: &Waker| {
        let mut cx = Context::from_waker(waker);
        std::pin::Pin::new(&mut handle).poll(&mut cx).is_pending()
    };
    assert!(poll(&left));
    let clones = std::panic::AssertUnwindSafe(|| poll(&unclonable()));
    assert!(std::panic::catch_unwind(clones).is_err());
    drop((handle, left));
    assert_eq!(one.tick(), Tick::Ran);
    waker.recv().unwrap().wake();
    assert_eq!(two.tick(), Tick::Ran);
    drop(waker);
    drop(one);
    ends(&mut two);
    drop((runtime, two));
    assert_eq!(Arc::strong_count(&memory), 1, "the runtime was not freed");
}
