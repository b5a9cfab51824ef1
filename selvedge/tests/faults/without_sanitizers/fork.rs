//! Tests of `fork`, whose child has none of the runtime's threads.
use crate::process::{is_child, role, run};
use selvedge::{Builder, LocalRuntime, Runtime, Tick, park::ThreadPark};
use std::{
    any::Any,
    future::pending,
    panic::{self, AssertUnwindSafe},
    sync::mpsc,
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
    status_of(pid)
}

/// Waits for a child's end, and returns its status.
fn status_of(pid: libc::pid_t) -> i32 {
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
    assert_eq!(fork(|| drop(runtime.snapshot())), EXITED_WITH_7);
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
    assert_eq!(runtime.block_on(runtime.spawn_blocking(|| 7)).unwrap(), 7);
    drop(runtime);
}

/// Returns the message of the panic of `f`, without a report of the panic.
fn message(f: impl FnOnce()) -> String {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let payload = panic::catch_unwind(AssertUnwindSafe(f)).expect_err("it does not panic");
    panic::set_hook(hook);
    text(&*payload)
}

fn text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().cloned();
    text.unwrap_or_else(|| payload.downcast_ref::<&str>().unwrap().to_string())
}

/// Asserts that `f` panics in a child with a message about the fork. The message has `words`.
fn panics_in_child(words: &str, f: impl FnOnce()) {
    let status = fork(|| {
        let said = message(f);
        let about = [
            "child made by fork",
            "build a runtime after the fork",
            words,
        ];
        assert!(about.iter().all(|words| said.contains(words)), "{said}");
    });
    assert_eq!(status, EXITED_WITH_7, "{words}");
}

/// Fails if a call in the child waits for the threads of the parent.
#[test]
fn call_in_a_forked_child_panics_with_words() {
    if !is_child("without_sanitizers::fork::call_in_a_forked_child_panics_with_words") {
        return;
    }
    let runtime = Builder::new().workers(2).name("parent").build().unwrap();
    let handle = runtime.handle();
    let waits = runtime.spawn(pending::<()>());
    panics_in_child("block_on was called", || runtime.block_on(waits).unwrap());
    panics_in_child("(\"parent\")", || runtime.block_on(async {}));
    panics_in_child("spawn was called", || drop(handle.spawn(async {})));
    panics_in_child("spawn was called", || handle.spawn_detached(async {}));
    panics_in_child("spawn_many was called", || {
        handle.spawn_many([async {}], &mut Vec::new());
    });
    panics_in_child("spawn_blocking was called", || {
        drop(handle.spawn_blocking(|| ()));
    });
    let entered = runtime.enter();
    panics_in_child("spawn was called", || drop(selvedge::spawn(async {})));
    drop(entered);
    panics_in_child("spawn was called", || {
        drop(
            selvedge::task::Builder::new()
                .name("named")
                .spawn_on(async {}, handle),
        );
    });
    assert_eq!(runtime.block_on(runtime.spawn(async { 7 })).unwrap(), 7);
}

#[test]
fn runtime_of_one_thread_panics_in_a_forked_child() {
    if !is_child("without_sanitizers::fork::runtime_of_one_thread_panics_in_a_forked_child") {
        return;
    }
    let runtime = Builder::new_current_thread().build().unwrap();
    panics_in_child("block_on was called", || runtime.block_on(pending::<()>()));
    panics_in_child("runs tasks", || runtime.run_until_stalled());
    let local = LocalRuntime::new().unwrap();
    panics_in_child("block_on was called", || local.block_on(async {}));
    let (_runtime, mut workers) = Builder::new().build_driven([ThreadPark::new()]);
    panics_in_child("the park of a worker", || workers[0].park());
    assert_eq!(runtime.block_on(runtime.spawn(async { 7 })).unwrap(), 7);
}

/// A child that builds a runtime of its own uses that one, and so does the child's child.
#[test]
fn forked_child_may_build_a_runtime_of_its_own() {
    if !is_child("without_sanitizers::fork::forked_child_may_build_a_runtime_of_its_own") {
        return;
    }
    let seven = |runtime: &Runtime| runtime.block_on(runtime.spawn(async { 7 })).unwrap();
    let runtime = Builder::new().workers(2).build().unwrap();
    let status = fork(|| {
        let own = Builder::new().workers(2).build().unwrap();
        assert_eq!(seven(&own), 7);
        panics_in_child("block_on was called", || own.block_on(async {}));
        assert_eq!(seven(&own), 7);
    });
    assert_eq!(status, EXITED_WITH_7);
    assert_eq!(seven(&runtime), 7);
}

/// Forks, and does not wait for the child. Returns 0 in the child.
fn fork_raw() -> libc::pid_t {
    // SAFETY: as in `fork`.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    pid
}

/// The future of `block_on` forks, and then waits in the child for a thread that is not there.
#[test]
fn fork_inside_block_on_panics_in_the_child() {
    if !is_child("without_sanitizers::fork::fork_inside_block_on_panics_in_the_child") {
        return;
    }
    for builder in [Builder::new().workers(1), Builder::new_current_thread()] {
        let runtime = builder.build().unwrap();
        let waits = runtime.spawn(pending::<()>());
        let abort = waits.abort_handle();
        let forks = async {
            let pid = fork_raw();
            if pid == 0 {
                drop(waits.await);
            }
            abort.abort();
            pid
        };
        match panic::catch_unwind(AssertUnwindSafe(|| runtime.block_on(forks))) {
            Ok(pid) => assert_eq!(status_of(pid), EXITED_WITH_7),
            Err(payload) => {
                let said = text(&*payload);
                assert!(said.contains("child made by fork"), "{said}");
                std::process::exit(7);
            }
        }
    }
}

/// A task, or a closure, forks and returns in the child: the thread of the runtime is the child's
/// only one.
#[test]
fn worker_of_a_forked_child_aborts_with_words() {
    const TEST: &str = "without_sanitizers::fork::worker_of_a_forked_child_aborts_with_words";
    let Some(role) = role() else {
        for role in ["task", "closure"] {
            let ended = run(TEST, role);
            assert!(ended.status.success(), "{ended:?}");
            let said = ended
                .said
                .contains("the child went on as a thread of the runtime");
            assert!(said, "{ended:?}");
        }
        return;
    };
    let builder = Builder::new().workers(1).blocking_threads(1);
    let runtime = builder.build().unwrap();
    // Meanwhile no other thread uses the runtime, and so none holds a lock.
    let (go, gate) = mpsc::channel();
    let forks = move || {
        gate.recv().unwrap();
        fork_raw()
    };
    let pid = match &*role {
        "task" => runtime.spawn(async move { forks() }),
        _ => {
            let pid = runtime.spawn_blocking(forks);
            // The child does not run a closure that waits behind.
            let behind = OfProcess(std::process::id());
            drop(runtime.spawn_blocking(move || drop(behind)));
            pid
        }
    };
    go.send(()).unwrap();
    while !pid.is_finished() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let status = status_of(runtime.block_on(pid).unwrap());
    assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGABRT);
    assert_eq!(runtime.block_on(runtime.spawn(async { 7 })).unwrap(), 7);
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
