//! Tests of child processes.
#![cfg(all(feature = "process", target_os = "linux"))]
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]

use futures::{AsyncReadExt, AsyncWriteExt, FutureExt, future::join_all};
use selvedge::{
    Runtime,
    net::TcpListener,
    process::{Child, Command},
};
use std::{
    future::{Future, poll_fn},
    io::{ErrorKind, Read as _},
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::ExitStatusExt},
    },
    path::Path,
    pin::pin,
    process::Stdio,
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

fn run<R>(future: impl Future<Output = R>) -> R {
    Runtime::new().unwrap().block_on(future)
}

fn sh(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

/// A child that ends when its standard input does.
fn cat() -> Child {
    let mut command = Command::new("cat");
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    command.spawn().unwrap()
}

/// Waits until a child has ended and was reaped.
fn wait_until_gone(id: u32) {
    while Path::new(&format!("/proc/{id}")).exists() {
        thread::sleep(Duration::from_millis(1));
    }
}

fn is_pending<R>(future: impl Future<Output = R>) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    matches!(Box::pin(future).poll_unpin(&mut cx), Poll::Pending)
}

/// Fails if the end of a child is missed, or is reported for another child.
#[test]
fn many_children_end_at_once() {
    run(async {
        let children = (0..200).map(|code| async move {
            let mut child = sh(&format!("exit {code}")).spawn().unwrap();
            let status = selvedge::spawn(async move { child.wait().await.unwrap() });
            assert_eq!(status.await.unwrap().code(), Some(code));
        });
        join_all(children).await;
    });
}

/// Fails if one of the two pipes is read only after the other pipe has ended.
#[test]
fn big_outputs_of_both_pipes_arrive() {
    const PART: usize = 300_000;
    let script = format!(
        "head -c {PART} /dev/zero >&2; head -c {PART} /dev/zero; head -c {PART} /dev/zero >&2"
    );
    let output = run(async { sh(&script).output().await }).unwrap();
    assert!(output.status.success());
    assert_eq!((output.stdout.len(), output.stderr.len()), (PART, 2 * PART));
}

/// Fails if `wait` leaves the child's standard input open, or if `try_wait` closes it.
#[test]
fn wait_closes_the_standard_input() {
    run(async {
        let mut child = cat();
        assert!(child.try_wait().unwrap().is_none());
        assert!(child.stdin.is_some());
        assert!(is_pending(child.wait()));
        assert!(
            child.wait().await.unwrap().success(),
            "after a cancelled wait"
        );
        assert!(child.wait().await.unwrap().success(), "again");
        assert_eq!(child.id(), None);
    });
}

/// Fails if a kill does not end the child, or if a second kill is an error.
#[test]
fn second_kill_of_a_child_is_no_error() {
    run(async {
        let mut child = cat();
        let held = child.stdin.take();
        child.kill().await.unwrap();
        child.kill().await.unwrap();
        child.start_kill().unwrap();
        assert_eq!(child.wait().await.unwrap().signal(), Some(libc::SIGKILL));
        drop(held);
    });
}

/// Fails if a kill after a wait is an error.
#[test]
fn kill_after_a_wait_is_no_error() {
    run(async {
        let mut child = cat();
        assert!(child.wait().await.unwrap().success());
        child.start_kill().unwrap();
        child.kill().await.unwrap();
        assert!(
            child.wait().await.unwrap().success(),
            "the status is the same"
        );
    });
}

/// Fails if a kill is an error before or after the look that finds the child's end.
#[test]
fn kill_of_an_ended_child_is_no_error() {
    run(async {
        let mut child = Command::new("true").stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_to_end(&mut Vec::new()).await.unwrap(); // It ends, or has ended.
        child.start_kill().unwrap();
        while child.try_wait().unwrap().is_none() {
            selvedge::yield_now().await;
        }
        child.start_kill().unwrap();
        child.kill().await.unwrap();
    });
}

/// Fails if the drop of a `Child`, or of a future that has one, leaves the process running or
/// unreaped.
#[test]
fn kill_on_drop_ends_a_child() {
    run(async {
        let mut command = Command::new("sleep");
        command.arg("100000").kill_on_drop(true);
        let child = command.spawn().unwrap();
        let id = child.id().unwrap();
        drop(child);
        wait_until_gone(id);

        let mut command = sh("echo $$; exec sleep 100000");
        command.kill_on_drop(true).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = [0; 20];
        let count = child
            .stdout
            .as_mut()
            .unwrap()
            .read(&mut line)
            .await
            .unwrap();
        let id = std::str::from_utf8(&line[..count])
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let wait = child.wait_with_output();
        assert!(is_pending(wait));
        wait_until_gone(id);

        let (mut reader, writer) = UnixStream::pair().unwrap();
        let mut command = sh("exec sleep 100000");
        let status = command
            .stdout(OwnedFd::from(writer))
            .kill_on_drop(true)
            .status();
        drop(command);
        assert!(is_pending(status));
        reader.read_to_end(&mut Vec::new()).unwrap(); // The read ends when no child has the writer.
    });
}

/// Fails if a dropped child is killed, or stays a zombie when it ends.
#[test]
fn dropped_child_runs_on_and_is_reaped() {
    run(async {
        let mut child = cat();
        let (id, mut stdin) = (child.id().unwrap(), child.stdin.take().unwrap());
        drop(child);
        stdin.write_all(b"it runs").await.unwrap();
        assert!(Path::new(&format!("/proc/{id}")).exists());
        drop(stdin);
        wait_until_gone(id);
    });
}

/// Fails if the end of the runtime kills a child, or leaves the child a zombie, or if no other
/// runtime can wait for the child.
#[test]
fn shutdown_with_children_leaves_no_zombie() {
    let runtime = Runtime::new().unwrap();
    let (mut held, mut other, id) = runtime.block_on(async {
        let mut child = cat();
        let (id, stdin) = (child.id().unwrap(), child.stdin.take());
        drop(selvedge::spawn(async move { child.wait().await }));
        (stdin, cat(), id)
    });
    drop(runtime);
    assert!(Path::new(&format!("/proc/{id}")).exists());
    drop(held.take());
    wait_until_gone(id);

    run(async {
        let (stdin, id) = (other.stdin.take(), other.id().unwrap());
        {
            let mut wait = pin!(other.wait());
            let waits = poll_fn(|cx| Poll::Ready(wait.as_mut().poll(cx).is_pending())).await;
            assert!(waits, "the child runs");
        }
        assert!(other.try_wait().unwrap().is_none());
        other.start_kill().unwrap();
        assert!(!other.wait().await.unwrap().success());
        wait_until_gone(id);
        drop(stdin);
    });
}

/// Fails if a child gets a descriptor of the runtime, or of another child.
#[test]
fn child_gets_no_other_descriptor() {
    let list = |output: std::process::Output| {
        let text = String::from_utf8(output.stdout).unwrap();
        let mut fds: Vec<u32> = text.lines().map(|line| line.parse().unwrap()).collect();
        fds.sort_unstable();
        fds
    };
    let mut before = std::process::Command::new("ls");
    let before = list(before.arg("/proc/self/fd").output().unwrap());
    run(async {
        let _listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut children = [cat(), cat(), cat()];
        let command = Command::new("ls").arg("/proc/self/fd").output();
        assert_eq!(list(command.await.unwrap()), before);
        for child in &mut children {
            child.wait().await.unwrap();
        }
    });
}

/// Fails if a child cannot read the output of another child.
#[test]
fn pipe_leads_from_child_to_child() {
    run(async {
        let mut first = sh("echo hello").stdout(Stdio::piped()).spawn().unwrap();
        let pipe: Stdio = first.stdout.take().unwrap().try_into().unwrap();
        let second = Command::new("cat").stdin(pipe).output().await.unwrap();
        assert_eq!(second.stdout, b"hello\n");
        assert!(first.wait().await.unwrap().success());
    });
}

/// Fails if a write to a child that is gone hangs, or is no error.
#[test]
fn write_to_an_ended_child_fails() {
    run(async {
        let mut child = Command::new("true").stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        child.wait().await.unwrap();
        // A child of another test may have the pipe's reading end until that child calls `exec`.
        let error = loop {
            match stdin.write_all(b"a").await {
                Ok(()) => selvedge::yield_now().await,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    });
}

/// Fails if an error of a start is hidden, or if a child starts where no runtime can wait for it.
#[test]
fn start_fails_without_program_or_runtime() {
    let error = run(async { Command::new("/nowhere").spawn().unwrap_err() });
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let error = run(async { Command::new("/nowhere").output().await.unwrap_err() });
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let outside = std::panic::catch_unwind(|| Command::new("true").spawn().map(drop));
    assert!(outside.is_err());

    let runtime = Runtime::new().unwrap();
    let handle = runtime.handle().clone();
    drop(runtime);
    let _entered = handle.enter();
    let mut command = Command::new("cat");
    assert!(
        command.stdin(Stdio::piped()).spawn().is_err(),
        "the runtime has ended"
    );
    // This child has no pipes of its own.
    let (mut reader, writer) = UnixStream::pair().unwrap();
    let mut command = Command::new("sleep");
    command.arg("100000").stdout(OwnedFd::from(writer));
    let error = command.spawn().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Other);
    drop(command);
    reader.read_to_end(&mut Vec::new()).unwrap(); // The read ends when no child has the writer.
}
