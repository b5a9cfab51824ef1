//! Tests of `fork`, whose child has none of the runtime's threads.
use crate::process::is_child;
use std::time::{Duration, Instant};

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
