//! Children in an executor of one task.
#![cfg(all(target_os = "linux", not(any(selvedge_loom, selvedge_shuttle))))]
use child_process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use net_driver::Driver;
use static_assertions::assert_impl_all;
use std::{
    fs,
    future::poll_fn,
    io::{IoSlice, Read as _},
    mem::MaybeUninit,
    os::{fd::OwnedFd, unix::net::UnixStream},
    panic::{RefUnwindSafe, UnwindSafe, catch_unwind},
    pin::Pin,
    process::Stdio,
};

assert_impl_all!(Child: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(ChildStdin: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(ChildStdout: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(ChildStderr: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(Command: Send, Sync, Unpin);

/// Runs a future in a driver of its own, which shuts down at the end.
fn run<F: Future>(future: F) -> F::Output {
    Driver::new(1).park(0).block_on(future)
}

/// Fails if a line that is longer than the pipes is not moved in both directions at once.
#[test]
fn child_echoes_more_than_its_pipes_hold() {
    run(async {
        let mut command = Command::new("cat");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let text: Vec<u8> = (0..1_000_000_u32).map(|n| n as u8).collect();
        let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let write = async {
            stdin.write_all(&text).await.unwrap();
            drop(stdin);
        };
        let mut back = Vec::new();
        let ((), read) = futures_lite::future::zip(write, stdout.read_to_end(&mut back)).await;
        assert_eq!(read.unwrap(), text.len());
        assert!(back == text);
        assert!(child.wait().await.unwrap().success());
    });
}

/// Sends bytes through a child and back, by the traits of the module `$io`.
macro_rules! echo {
    ($($io:ident)::+) => {{
        use $($io)::+::{AsyncRead, AsyncWrite, ReadBuf};

        let mut command = Command::new("cat");
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        assert!(AsyncWrite::is_write_vectored(&stdin));
        let wrote = poll_fn(|cx| AsyncWrite::poll_write(Pin::new(&mut stdin), cx, b"a"));
        assert_eq!(wrote.await.unwrap(), 1);
        let parts = [IoSlice::new(b"b"), IoSlice::new(b"c")];
        let wrote =
            poll_fn(|cx| AsyncWrite::poll_write_vectored(Pin::new(&mut stdin), cx, &parts));
        assert_eq!(wrote.await.unwrap(), 2);
        poll_fn(|cx| AsyncWrite::poll_flush(Pin::new(&mut stdin), cx)).await.unwrap();
        poll_fn(|cx| AsyncWrite::poll_shutdown(Pin::new(&mut stdin), cx)).await.unwrap();
        drop(stdin);
        let mut memory = [MaybeUninit::uninit(); 8];
        let mut buf = ReadBuf::uninit(&mut memory);
        loop {
            let before = buf.filled().len();
            poll_fn(|cx| AsyncRead::poll_read(Pin::new(&mut stdout), cx, &mut buf)).await.unwrap();
            if buf.filled().len() == before {
                break;
            }
        }
        assert_eq!((buf.filled(), buf.initialized().len()), (&b"abc"[..], 3));
        assert!(child.wait().await.unwrap().success());
    }};
}

/// Fails if a trait moves other bytes, does not see the end, or initialises memory for nothing.
#[test]
fn pipes_have_the_traits_of_task_io() {
    run(async {
        echo!(task_io);
        #[cfg(feature = "tokio")]
        echo!(tokio::io);
    });
}

/// Fails if the status of a child that other code has reaped is made up, or is waited for forever.
#[test]
fn child_that_other_code_reaps_is_an_error() {
    run(async {
        let mut child = Command::new("true").spawn().unwrap();
        let id = child.id().unwrap() as libc::pid_t;
        // SAFETY: the call takes no pointer but null.
        let reaped = unsafe { libc::waitpid(id, std::ptr::null_mut(), 0) };
        assert_eq!(reaped, id);
        let errors = [
            child.try_wait().unwrap_err(),
            child.wait().await.unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.raw_os_error(), Some(libc::ECHILD));
        }
    });
}

/// Fails if a child has a descriptor of the driver, which has an epoll and an eventfd by then.
#[test]
fn child_inherits_no_descriptor_of_the_driver() {
    let mut list = std::process::Command::new("ls");
    // This process itself may have inherited some.
    let before = list.arg("/proc/self/fd").output().unwrap().stdout;
    run(async {
        let mut command = Command::new("cat");
        let other = command.stdin(Stdio::piped()).spawn().unwrap();
        let after = Command::from(list).output().await.unwrap().stdout;
        assert_eq!(String::from_utf8(after), String::from_utf8(before));
        drop(other);
    });
}

/// Fails if a child outlives the handle that kills it, or if its driver's end saves it.
#[test]
fn kill_on_drop_kills_after_the_driver_has_ended() {
    let (mut reader, writer) = UnixStream::pair().unwrap();
    let mut command = Command::new("sleep");
    command
        .arg("1000")
        .stdout(OwnedFd::from(writer))
        .kill_on_drop(true);
    let child = run(async { command.spawn() }).unwrap();
    drop((child, command));
    // The read ends when no process has the other end.
    assert_eq!(reader.read(&mut [0]).unwrap(), 0);
}

/// Fails if a child whose handle was dropped becomes a zombie, or is killed.
#[test]
fn dropped_child_runs_on_and_is_reaped() {
    let (mut reader, writer) = UnixStream::pair().unwrap();
    let mut command = Command::new("sh");
    command
        .args(["-c", "read line; echo $line"])
        .stdin(Stdio::piped());
    command.stdout(OwnedFd::from(writer));
    let mut child = run(async { command.spawn() }).unwrap();
    let id = child.id().unwrap();
    let stdin = child.stdin.take().unwrap().into_owned_fd().unwrap();
    drop((child, command));
    std::io::Write::write_all(&mut fs::File::from(stdin), b"on\n").unwrap();
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "on\n");
    while fs::exists(format!("/proc/{id}")).unwrap() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn spawn_without_a_driver_panics() {
    let payload = catch_unwind(|| Command::new("true").spawn().map(drop)).unwrap_err();
    let message = payload.downcast_ref::<&str>().unwrap();
    assert!(message.contains("a driver is current"), "{message}");
}
