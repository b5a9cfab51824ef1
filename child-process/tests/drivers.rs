//! Children whose driver has shut down, and that another driver or none waits for.
#![cfg(all(target_os = "linux", not(any(selvedge_loom, selvedge_shuttle))))]
use child_process::{Child, ChildStdin, ChildStdout, Command};
use futures_lite::{AsyncReadExt, AsyncWriteExt, future};
use net_driver::Driver;
use std::{
    os::{fd::OwnedFd, unix::process::ExitStatusExt},
    process::{ChildStdin as StdStdin, ChildStdout as StdStdout, Stdio},
    task::{Context, Waker},
    thread,
};

/// Runs a future in a driver of its own, which shuts down at the end.
fn run<F: Future>(future: F) -> F::Output {
    Driver::new(1).park(0).block_on(future)
}

/// Spawns a child in a driver that has shut down by the time of the return. The child ends when its
/// standard input does.
fn child_of_an_ended_driver() -> Child {
    let mut command = Command::new("cat");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    run(async { command.spawn() }).unwrap()
}

fn is_pending(future: impl Future) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    std::pin::pin!(future).poll(&mut cx).is_pending()
}

/// Fails if the wait stays with the driver that has shut down.
#[test]
fn child_of_an_ended_driver_is_awaited_in_another_one() {
    let mut child = child_of_an_ended_driver();
    let stdin = child.stdin.take();
    run(async {
        assert!(is_pending(child.wait()), "it waits for its standard input");
        drop(stdin);
        assert!(child.wait().await.unwrap().success());
    });
}

/// Fails if the wait moves only once, or only between two drivers.
#[test]
fn wait_moves_from_driver_to_driver_and_to_none() {
    let mut child = child_of_an_ended_driver();
    let stdin = child.stdin.take();
    for _ in 0..3 {
        run(async { assert!(is_pending(child.wait())) });
    }
    let ends = thread::spawn(move || drop(stdin));
    assert!(future::block_on(child.wait()).unwrap().success());
    ends.join().unwrap();
    assert!(
        run(child.wait()).unwrap().success(),
        "a wait returns it again"
    );
}

/// Fails if a thread that waits is lost when a driver is current in the next poll.
#[test]
fn wait_that_began_without_a_driver_ends_in_one() {
    let mut child = child_of_an_ended_driver();
    let stdin = child.stdin.take();
    assert!(is_pending(child.wait()));
    run(async {
        assert!(is_pending(child.wait()));
        drop(stdin);
        assert!(child.wait().await.unwrap().success());
    });
}

/// Fails if the wait stays where nothing ends it, or if the wait that fails loses the child. The
/// wait by a thread needs no driver, so it goes on.
#[test]
#[cfg(not(selvedge_polling))]
fn wait_fails_in_a_driver_that_has_shut_down() {
    let mut child = child_of_an_ended_driver();
    let stdin = child.stdin.take();
    let driver = Driver::new(1);
    let shuts_down = driver.clone();
    driver.park(0).block_on(async {
        assert!(is_pending(child.wait()));
        shuts_down.shutdown();
        child.wait().await.unwrap_err();
    });
    assert!(child.id().is_some());
    drop(stdin);
    assert!(run(child.wait()).unwrap().success());
}

/// Fails if the end of the driver ends the wait by a thread, or if nothing wakes the task then.
#[test]
#[cfg(selvedge_polling)]
fn wait_by_a_thread_outlasts_its_driver() {
    let mut child = child_of_an_ended_driver();
    let stdin = child.stdin.take();
    let driver = Driver::new(1);
    let shuts_down = driver.clone();
    driver.park(0).block_on(async {
        assert!(is_pending(child.wait()));
        shuts_down.shutdown();
        assert!(is_pending(child.wait()));
    });
    drop(stdin);
    assert!(run(child.wait()).unwrap().success());
}

#[test]
fn child_of_an_ended_driver_is_killed() {
    let mut child = child_of_an_ended_driver();
    assert!(child.try_wait().unwrap().is_none());
    run(child.kill()).unwrap();
    let status = child.try_wait().unwrap().unwrap();
    assert_eq!(status.signal(), Some(9));
    assert_eq!(child.id(), None);

    let mut child = child_of_an_ended_driver();
    future::block_on(child.kill()).unwrap();
    assert_eq!(child.try_wait().unwrap(), Some(status));
}

/// Fails if a pipe of the ended driver cannot be taken over.
#[test]
fn pipes_of_an_ended_driver_move_by_their_descriptors() {
    let mut child = child_of_an_ended_driver();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    run(async {
        stdin.write_all(b"hello").await.unwrap_err();
        stdout.read(&mut [0]).await.unwrap_err();
        let fd: OwnedFd = stdin.into_owned_fd().unwrap();
        let mut stdin = ChildStdin::from_std(StdStdin::from(fd)).unwrap();
        let fd: OwnedFd = stdout.into_owned_fd().unwrap();
        let mut stdout = ChildStdout::from_std(StdStdout::from(fd)).unwrap();
        stdin.write_all(b"hello").await.unwrap();
        drop(stdin);
        let mut text = String::new();
        stdout.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "hello");
        assert!(child.wait().await.unwrap().success());
    });
}
