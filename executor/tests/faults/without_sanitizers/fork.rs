//! Tests of `fork`, whose child has none of the runtime's threads.
use crate::process::is_child;
use selvedge::{Builder, Tick, park::ThreadPark, runtime::LocalRuntime};
use std::{
    future::pending,
    time::{Duration, Instant},
};

/// Runs `f` in a forked child of this process. The child then exits. Returns the child's status.
fn fork(f: impl FnOnce()) -> i32 {
    // SAFETY: this is a test's process, and its child makes only calls that a forked child of a
    // user's process may make.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        f();
        std::process::exit(7);
    }
    // A child that takes longer hangs, even on the busiest machine.
    let end = Instant::now() + Duration::from_secs(600);
    let mut status = 0;
    loop {
        // SAFETY: `pid` is a child of this process, and `status` is valid to write.
        let done = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) };
        if done == pid {
            return status;
        }
        if Instant::now() > end {
            // SAFETY: `pid` is a child of this process, and has not been waited for.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            panic!("the child hangs");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

const EXITED_WITH_7: i32 = 7 << 8;

#[test]
fn forked_child_ends_without_threads_and_its_parent_goes_on() {
    if !is_child(
        "without_sanitizers::fork::forked_child_ends_without_threads_and_its_parent_goes_on",
    ) {
        return;
    }
    let runtime = selvedge::Builder::new().workers(2).build().unwrap();
    let seven = || runtime.block_on(runtime.spawn(async { 7 })).unwrap();
    assert_eq!(seven(), 7);
    assert_eq!(fork(|| ()), EXITED_WITH_7);
    let spawns = || drop((runtime.spawn(async { 8 }), runtime.metrics()));
    assert_eq!(fork(spawns), EXITED_WITH_7);
    assert_eq!(seven(), 7);
    // The child drops its copy of the runtime, which has no thread to wait for. The parent's
    // runtime is untouched.
    let mut runtime = Some(runtime);
    assert_eq!(fork(|| drop(runtime.take())), EXITED_WITH_7);
    let runtime = runtime.unwrap();
    let in_time = fork(|| {
        // SAFETY: `runtime` is the child's copy, and the child exits without another use of it.
        let copy = unsafe { std::ptr::read(&raw const runtime) };
        assert!(!copy.shutdown_timeout(Duration::from_secs(3_600)));
    });
    assert_eq!(in_time, EXITED_WITH_7);
    // The child also starts no thread for the unstarted worker.
    let (gate, held) = std::sync::mpsc::channel::<()>();
    let (begin, begun) = std::sync::mpsc::channel();
    runtime.spawn_detached(async move {
        begin.send(()).unwrap();
        let _ = held.recv();
    });
    begun.recv().unwrap();
    let nothing_runs = fork(|| {
        let task = runtime.spawn(async {});
        std::thread::sleep(Duration::from_millis(100));
        assert!(!task.is_finished());
    });
    assert_eq!(nothing_runs, EXITED_WITH_7);
    drop(gate);
    assert_eq!(runtime.block_on(runtime.spawn_blocking(|| 7)).unwrap(), 7);
    drop(runtime);
}

/// Ends a process other than its own with status 9 when it is dropped there.
struct OfProcess(u32);

/// A future that waits, and that only this process may drop.
async fn waits_here() {
    let _kept = OfProcess(std::process::id());
    pending().await
}

impl Drop for OfProcess {
    fn drop(&mut self) {
        if self.0 != std::process::id() {
            // SAFETY: `_exit` has no premise.
            unsafe { libc::_exit(9) };
        }
    }
}

/// Fails if the child ends its copy of the runtime's one worker.
#[test]
fn forked_child_drops_no_task_of_a_runtime_of_one_thread() {
    if !is_child("without_sanitizers::fork::forked_child_drops_no_task_of_a_runtime_of_one_thread")
    {
        return;
    }
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.spawn_detached(waits_here());
    runtime.run_until_stalled();
    runtime.spawn_detached(waits_here());
    let mut runtime = Some(runtime);
    assert_eq!(fork(|| drop(runtime.take())), EXITED_WITH_7);
    let runtime = runtime.unwrap();
    assert_eq!(runtime.block_on(runtime.spawn(async { 7 })).unwrap(), 7);

    let local = LocalRuntime::new().unwrap();
    local.spawn_local(waits_here());
    local.run_until_stalled();
    let mut local = Some(local);
    assert_eq!(fork(|| drop(local.take())), EXITED_WITH_7);
    assert_eq!(local.unwrap().block_on(async { 7 }), 7);
}

/// Fails if the child shuts its copy of the runtime down.
#[test]
fn forked_child_drops_no_task_of_a_driven_worker() {
    if !is_child("without_sanitizers::fork::forked_child_drops_no_task_of_a_driven_worker") {
        return;
    }
    let (runtime, mut workers) = Builder::new().build_driven([ThreadPark::new()]);
    let mut worker = workers.remove(0);
    runtime.spawn_detached(waits_here());
    while worker.tick() == Tick::Ran {}
    runtime.spawn_detached(waits_here());
    let mut worker = Some(worker);
    assert_eq!(fork(|| drop(worker.take())), EXITED_WITH_7);
    let task = runtime.spawn(async { 7 });
    let mut worker = worker.unwrap();
    while worker.tick() == Tick::Ran {}
    assert_eq!(runtime.block_on(task).unwrap(), 7);
}
