//! A process that forks has a child without the runtime's threads.
use crate::process::is_child;
use std::time::{Duration, Instant};

/// Runs `f` in a fork of this process, which then ends; gives its status.
fn fork(f: impl FnOnce()) -> i32 {
    // SAFETY: a test's process, whose child does what users might.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        f();
        std::process::exit(7);
    }
    // On the busiest machine nothing takes as long that ends.
    let end = Instant::now() + Duration::from_secs(600);
    let mut status = 0;
    loop {
        // SAFETY: this process's own child.
        let done = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) };
        if done == pid {
            return status;
        }
        if Instant::now() > end {
            // SAFETY: as above.
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
    // The child's copy, dropped there, has nobody to wait for. The parent's is untouched.
    let mut runtime = Some(runtime);
    assert_eq!(fork(|| drop(runtime.take())), EXITED_WITH_7);
    let runtime = runtime.unwrap();
    let in_time = fork(|| {
        // SAFETY: the child's copy alone; its memory is left as it is.
        let copy = unsafe { std::ptr::read(&raw const runtime) };
        assert!(!copy.shutdown_timeout(Duration::from_secs(3_600)));
    });
    assert_eq!(in_time, EXITED_WITH_7);
    // Nor does it start a thread for the worker that has none yet.
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
