//! Tests of threads that cannot be started, as there is no room for their stacks.
use super::memory::live;
use crate::process::is_child;
use selvedge::Builder;
use std::{fs, time::Duration};

const STACK: usize = 256 << 20;

/// Limits the memory of this process, so that there is room for this number of further stacks.
fn limit(stacks: usize) {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').next().unwrap().parse().unwrap();
    let most = (pages * 4096 + stacks * STACK + STACK / 2) as libc::rlim_t;
    let limit = libc::rlimit {
        rlim_cur: most,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the call limits this process, and `limit` is valid to read.
    let set = unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) };
    assert_eq!(set, 0);
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

/// Waits until `count` threads are left. The system may list an ended thread for a moment more.
fn threads_come_down_to(count: usize) {
    while threads() != count {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until the main thread, which waits for this test, sleeps. The main thread's first sleep
/// allocates, and that block would count as a leak.
fn main_thread_sleeps() {
    let stat = format!("/proc/self/task/{}/stat", std::process::id());
    loop {
        let stat = fs::read_to_string(&stat).unwrap();
        let (_, state) = stat.rsplit_once(") ").unwrap();
        if state.starts_with('S') {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns a builder whose runtime has no monitor thread, as these tests count threads.
fn builder(workers: usize) -> Builder {
    let builder = Builder::new().workers(workers).stack_size(STACK);
    builder.monitor(false)
}

#[test]
fn build_whose_threads_do_not_start_fails_and_leaves_none() {
    if !is_child(
        "without_sanitizers::threads::build_whose_threads_do_not_start_fails_and_leaves_none",
    ) {
        return;
    }
    main_thread_sleeps();
    let before = threads();
    let mut blocks = Vec::new();
    // The first round also leaves allocations that are made only once.
    for room in [2, 0, 1, 2] {
        limit(room);
        let error = builder(4).prestart().build().unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "{error}");
        threads_come_down_to(before);
        blocks.push(live());
    }
    let leaked: Vec<_> = blocks.iter().map(|now| now - blocks[1]).collect();
    assert_eq!(leaked[1..], [0; 3]);
    // The threads for which there is room start.
    limit(2);
    let runtime = builder(1).build().unwrap();
    assert_eq!(runtime.block_on(runtime.spawn(async { 7 })).unwrap(), 7);
}

#[test]
fn a_runtime_goes_on_without_the_workers_that_get_no_thread() {
    if !is_child(
        "without_sanitizers::threads::a_runtime_goes_on_without_the_workers_that_get_no_thread",
    ) {
        return;
    }
    // The runtime keeps the blocks of small cells for later tasks. How many blocks it keeps depends
    // on which threads meet at their lock. The cells of tasks that hold this type are too large to
    // be kept.
    type Large = [usize; 128];
    main_thread_sleeps();
    let before = threads();
    let mut blocks = Vec::new();
    // The first round also leaves allocations that are made only once.
    for _ in 0..3 {
        limit(2);
        let runtime = builder(4).build().unwrap();
        let from: Large = [0; 128];
        let tasks = runtime.spawn(async move {
            let task = |n: Large| async move {
                std::thread::sleep(Duration::from_millis(1));
                n[0]
            };
            let task = |n| selvedge::spawn(task([n; 128]));
            let tasks: Vec<_> = (0..100).map(task).collect();
            let mut sum = from[0];
            for task in tasks {
                sum += task.await.unwrap();
            }
            sum
        });
        assert_eq!(runtime.block_on(tasks).unwrap(), 99 * 50);
        assert_eq!(threads(), before + 2, "there is work for four");
        drop(runtime);
        threads_come_down_to(before);
        blocks.push(live());
    }
    assert_eq!(blocks[1], blocks[2], "a worker that did not begin is freed");
}

/// The second thread only watches the LIFO slot of the first worker. It then runs the task that it
/// finds in that slot.
#[test]
fn a_slot_that_is_filled_starts_a_second_thread_and_no_third() {
    if !is_child(
        "without_sanitizers::threads::a_slot_that_is_filled_starts_a_second_thread_and_no_third",
    ) {
        return;
    }
    let before = threads();
    let runtime = builder(4).build().unwrap();
    assert_eq!(threads(), before + 1);
    let parent = runtime.spawn(async move {
        assert_eq!(threads(), before + 1, "a task from outside");
        let (sender, receiver) = std::sync::mpsc::channel();
        selvedge::spawn_detached(async move { sender.send(threads()).unwrap() });
        receiver.recv().unwrap()
    });
    assert_eq!(runtime.block_on(parent).unwrap(), before + 2);
}

#[test]
fn refused_thread_cancels_a_closure_or_keeps_the_worker() {
    if !is_child(
        "without_sanitizers::threads::refused_thread_cancels_a_closure_or_keeps_the_worker",
    ) {
        return;
    }
    let runtime = builder(1).build().unwrap();
    assert_eq!(runtime.block_on(runtime.spawn(async { 1 })).unwrap(), 1);
    limit(0);
    let refused = runtime.block_on(runtime.spawn_blocking(|| ()));
    assert!(refused.unwrap_err().is_cancelled());
    let task = runtime.spawn(async {
        let other = selvedge::spawn(async { 6 });
        let one = selvedge::block_in_place(|| {
            std::thread::sleep(Duration::from_millis(20));
            1
        });
        other.await.unwrap() + one
    });
    assert_eq!(runtime.block_on(task).unwrap(), 7);
    limit(2);
    assert_eq!(runtime.block_on(runtime.spawn_blocking(|| 8)).unwrap(), 8);
}
