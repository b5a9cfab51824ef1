//! The standard streams, in processes of their own. A test either runs the example `cat`, or runs
//! itself again as a child, whose streams are pipes.
#![cfg(all(unix, not(any(selvedge_loom, selvedge_shuttle, selvedge_count))))]
use blocking_fs::stdio::{Stderr, Stdin, Stdout, stderr, stdin, stdout};
use blocking_threads::{Boxed, NoPool, Pool, Settings};
use futures_lite::{
    AsyncReadExt, AsyncWriteExt,
    future::{block_on, poll_once},
};
use static_assertions::assert_impl_all;
use std::{
    env,
    future::poll_fn,
    io::{self, BufRead, BufReader, ErrorKind, IoSlice, Read, Write},
    mem::MaybeUninit,
    os::fd::{AsFd, AsRawFd},
    panic::{RefUnwindSafe, UnwindSafe},
    pin::{Pin, pin},
    process::{Child, Command, ExitStatus, Stdio},
    task::{Context, Poll, Waker},
    thread,
};

assert_impl_all!(Stdin: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe, AsFd, AsRawFd);
assert_impl_all!(Stdout: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe, AsFd, AsRawFd);
assert_impl_all!(Stderr: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe, AsFd, AsRawFd);

const CHILD: &str = "BLOCKING_FS_STDIO";

/// Returns the command for the example. Builds it if it is not there: `cargo test --tests` builds
/// no example.
fn cat() -> Command {
    let test = env::current_exe().unwrap();
    let profile = test.parent().unwrap().parent().unwrap();
    let cat = profile.join("examples/cat");
    if !cat.exists() {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--example", "cat", "--manifest-path"]);
        build.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        build.arg("--target-dir").arg(profile.parent().unwrap());
        if profile.ends_with("release") {
            build.arg("--release");
        }
        assert!(build.status().unwrap().success());
    }
    Command::new(cat)
}

/// Starts this program for one test, with pipes for its streams. Returns `None` in that child.
fn child_of(test: &str) -> Option<Child> {
    child_with(test, |_| ())
}

/// Does what [`child_of`] does, after a change of the command.
fn child_with(test: &str, change: impl FnOnce(&mut Command)) -> Option<Child> {
    if env::var_os(CHILD).is_some() {
        return None;
    }
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.env(CHILD, "1").stderr(Stdio::piped());
    change(&mut command);
    Some(command.spawn().unwrap())
}

/// Waits until the child has written a line.
fn wait_for_line(from: &mut impl BufRead, line: &str) {
    let mut read = String::new();
    while !read.contains(line) {
        read.clear();
        assert!(from.read_line(&mut read).unwrap() > 0, "no line {line:?}");
    }
}

fn is_pending<F: Future>(future: Pin<&mut F>) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    future.poll(&mut cx).is_pending()
}

fn pool() -> Pool<Boxed> {
    Pool::new(Settings::default())
}

fn end(child: Child) -> (ExitStatus, String) {
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status, said)
}

/// Fails if bytes are lost, doubled, or out of order.
#[test]
fn example_copies_every_byte() {
    let bytes: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let mut child = cat()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = child.stdin.take().unwrap();
    let sent = bytes.clone();
    let sends = thread::spawn(move || to.write_all(&sent).unwrap());
    let output = child.wait_with_output().unwrap();
    sends.join().unwrap();
    assert!(output.status.success());
    assert!(output.stdout == bytes, "{} bytes", output.stdout.len());
}

/// Fails if a stream that was closed before the program began is an error, or never ends.
#[test]
fn closed_stdin_reads_the_end() {
    let cat = cat().get_program().to_owned();
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$0\" <&-"]).arg(cat);
    let output = shell.output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty());
}

/// Fails if the error of a write is lost.
#[test]
fn write_into_closed_pipe_returns_broken_pipe() {
    let mut child = cat()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    child.stdin.take().unwrap().write_all(b"ab").unwrap();
    let (status, said) = end(child);
    assert_eq!(status.code(), Some(1));
    assert!(said.contains("BrokenPipe"), "{said}");
}

/// Fails if a dropped read takes its bytes with it, or if another handle does not get them.
#[test]
fn dropped_read_leaves_its_bytes_to_another_handle() {
    let Some(mut child) = child_of("dropped_read_leaves_its_bytes_to_another_handle") else {
        let mut first = stdin();
        let mut buffer = [0; 8];
        let mut read = Box::pin(first.read(&mut buffer));
        assert!(is_pending(read.as_mut()));
        drop(read);
        drop(first);
        eprintln!("dropped");
        return block_on(async {
            let mut rest = Vec::new();
            stdin().read_exact(&mut buffer[..1]).await.unwrap();
            stdin().read_to_end(&mut rest).await.unwrap();
            assert_eq!((buffer[0], &rest[..]), (b'a', &b"bcdefghijkl"[..]));
        });
    };
    let mut said = BufReader::new(child.stderr.take().unwrap());
    wait_for_line(&mut said, "dropped");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"abcdefghijkl")
        .unwrap();
    io::copy(&mut said, &mut io::stderr()).unwrap();
    assert!(end(child).0.success());
}

/// Fails if a task that waits is forgotten while another handle takes the bytes.
#[test]
fn tasks_of_two_handles_share_the_input() {
    let Some(mut child) = child_of("tasks_of_two_handles_share_the_input") else {
        let read = async || {
            let mut byte = [0; 1];
            stdin().read_exact(&mut byte).await.unwrap();
            byte[0]
        };
        let one = thread::spawn(move || block_on(read()));
        let other = thread::spawn(move || block_on(read()));
        let mut both = [one.join().unwrap(), other.join().unwrap()];
        both.sort();
        assert_eq!(&both, b"ab");
        return;
    };
    child.stdin.take().unwrap().write_all(b"ab").unwrap();
    assert!(end(child).0.success());
}

/// Fails if a read leaves bytes in std's buffer, for each of which a thread would be started.
#[test]
fn small_reads_share_the_bytes_of_one_read() {
    let Some(mut child) = child_of("small_reads_share_the_bytes_of_one_read") else {
        let mut byte = [0];
        block_on(stdin().read_exact(&mut byte)).unwrap();
        let mut rest = [0; 11];
        let mut handle = stdin();
        assert!(!is_pending(pin!(handle.read_exact(&mut rest))));
        assert_eq!((byte, &rest), ([b'a'], b"bcdefghijkl"));
        return;
    };
    // A pipe takes and gives so few bytes as a whole.
    let mut to = child.stdin.take().unwrap();
    to.write_all(b"abcdefghijkl").unwrap();
    assert!(end(child).0.success());
}

/// Fails if the error says less than that of the system, or if the handle waits for a thread that
/// never began. In a small address space, the system might have room for the stack.
#[cfg(target_pointer_width = "64")]
#[test]
fn read_without_a_thread_returns_the_error_of_its_start() {
    let name = "read_without_a_thread_returns_the_error_of_its_start";
    let Some(child) = child_with(name, |command| {
        // No thread can have a stack of this size.
        command.env("RUST_MIN_STACK", (usize::MAX / 4).to_string());
    }) else {
        for _ in 0..2 {
            let error = block_on(stdin().read(&mut [0])).unwrap_err();
            assert!(error.raw_os_error().is_some(), "{error:?}");
        }
        return;
    };
    let (status, said) = end(child);
    assert!(status.success(), "{said}");
}

/// Fails if the end of a pool waits for a read that may never end.
#[test]
fn pool_ends_while_a_read_waits() {
    let Some(mut child) = child_of("pool_ends_while_a_read_waits") else {
        let pool = pool();
        let entered = pool.enter();
        let mut handle = stdin();
        let mut byte = [0];
        assert!(is_pending(pin!(handle.read(&mut byte))));
        drop(entered);
        pool.finish();
        pool.join();
        return;
    };
    let held = child.stdin.take();
    assert!(end(child).0.success());
    drop(held);
}

/// Fails if `ReadBuf`s get other bytes than slices, or if memory is initialised for nothing.
#[test]
fn stdin_reads_into_uninitialised_memory() {
    let Some(mut child) = child_of("stdin_reads_into_uninitialised_memory") else {
        macro_rules! read {
            ($($io:ident)::+) => {{
                let mut memory = [MaybeUninit::uninit(); 2];
                let mut buf = $($io)::+::ReadBuf::uninit(&mut memory);
                let mut stdin = stdin();
                block_on(poll_fn(|cx| {
                    let stdin = Pin::new(&mut stdin);
                    let polled = $($io)::+::AsyncRead::poll_read(stdin, cx, &mut buf);
                    assert!(polled.is_ready() || buf.initialized().is_empty());
                    polled
                }))
                .unwrap();
                buf.filled().to_owned()
            }};
        }
        assert_eq!(read!(task_io), b"ab");
        #[cfg(feature = "tokio")]
        assert_eq!(read!(tokio::io), b"cd");
        return;
    };
    child.stdin.take().unwrap().write_all(b"abcd").unwrap();
    assert!(end(child).0.success());
}

/// Fails if a write by a trait writes other bytes, if writes of two handles change places, or if a
/// flush returns too early.
#[test]
fn flushed_writes_are_in_the_pipe() {
    let Some(mut child) = child_of("flushed_writes_are_in_the_pipe") else {
        let pool = pool();
        let _entered = pool.enter();
        macro_rules! write {
            ($close:ident, $($io:ident)::+) => {{
                use $($io)::+::AsyncWrite;

                let mut one = stdout();
                let parts = [IoSlice::new(b"a"), IoSlice::new(b"b")];
                let wrote = poll_fn(|cx| {
                    AsyncWrite::poll_write_vectored(Pin::new(&mut one), cx, &parts)
                });
                assert_eq!(block_on(wrote).unwrap(), 2);
                let mut other = stdout();
                let wrote = poll_fn(|cx| AsyncWrite::poll_write(Pin::new(&mut other), cx, b"c"));
                assert_eq!(block_on(wrote).unwrap(), 1);
                block_on(poll_fn(|cx| AsyncWrite::poll_flush(Pin::new(&mut other), cx))).unwrap();
                block_on(poll_fn(|cx| AsyncWrite::$close(Pin::new(&mut one), cx))).unwrap();
            }};
        }
        block_on(stdout().write_all(b"\nnow: ")).unwrap();
        write!(poll_close, futures_io);
        write!(poll_shutdown, task_io);
        #[cfg(feature = "tokio")]
        write!(poll_shutdown, tokio::io);
        block_on(async {
            let mut stderr = stderr();
            stderr.write_all(b"error").await.unwrap();
            stderr.flush().await.unwrap();
        });
        // Nothing else is flushed or dropped.
        std::process::abort();
    };
    let (mut out, mut said) = (String::new(), String::new());
    let mut from = child.stdout.take().unwrap();
    from.read_to_string(&mut out).unwrap();
    let mut from = child.stderr.take().unwrap();
    from.read_to_string(&mut said).unwrap();
    let times = if cfg!(feature = "tokio") { 3 } else { 2 };
    let expected = format!("\nnow: {}", "abc".repeat(times));
    assert!(out.ends_with(&expected), "{out:?}");
    assert!(said.ends_with("error"), "{said:?}");
    child.wait().unwrap();
}

/// Fails if the error of a write goes to one handle only, or to a handle that came later.
#[test]
fn each_handle_returns_the_error_of_a_write_once() {
    let Some(mut child) = child_of("each_handle_returns_the_error_of_a_write_once") else {
        eprintln!("begun");
        io::stdin().read_line(&mut String::new()).unwrap();
        let pool = pool();
        let _entered = pool.enter();
        return block_on(async {
            let (mut one, mut other) = (stdout(), stdout());
            one.write_all(b"x").await.unwrap();
            let error = one.flush().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
            one.flush().await.unwrap();
            stdout().flush().await.unwrap();
            let error = other.write(b"y").await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
            std::process::exit(7); // The harness would write to the closed pipe.
        });
    };
    let mut said = BufReader::new(child.stderr.take().unwrap());
    wait_for_line(&mut said, "begun"); // The harness writes nothing more.
    drop(child.stdout.take());
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    io::copy(&mut said, &mut io::stderr()).unwrap();
    assert_eq!(end(child).0.code(), Some(7));
}

/// Fails if a write without a pool panics, or leaves the stream unusable.
#[test]
fn write_without_a_pool_is_refused() {
    block_on(async {
        let error = stderr().write(b"x").await.unwrap_err();
        assert!(error.get_ref().unwrap().is::<NoPool>(), "{error}");
        stderr().flush().await.unwrap();
        assert_eq!(
            stderr().write(b"").await.map_err(|error| error.kind()),
            Ok(0)
        );
    });
}

/// Fails if a handle does not name its own descriptor.
#[test]
fn handles_have_the_descriptors_of_the_process() {
    assert_eq!(stdin().as_raw_fd(), 0);
    assert_eq!(stdout().as_fd().as_raw_fd(), 1);
    assert_eq!(stderr().as_raw_fd(), 2);
    assert!(format!("{:?}", stdout()).starts_with("Stdout"));
}

/// Fails if a read into an empty buffer waits for input.
#[test]
fn read_into_empty_buffer_returns_at_once() {
    let mut handle = stdin();
    let mut read = pin!(handle.read(&mut []));
    let polled = read.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Ready(Ok(0))));
}

/// A read has left bytes behind, which were taken, and the next read waits.
///
/// Fails if the read without room takes the memory that the other read has.
#[test]
fn read_into_empty_buffer_beside_another_returns_at_once() {
    let name = "read_into_empty_buffer_beside_another_returns_at_once";
    let Some(mut child) = child_of(name) else {
        let mut handle = stdin();
        let mut bytes = [0; 16];
        assert_eq!(block_on(handle.read(&mut bytes)).unwrap(), 5);
        assert!(is_pending(pin!(handle.read(&mut bytes))));
        let read = block_on(poll_once(stdin().read(&mut [])));
        assert!(matches!(read, Some(Ok(0))));
        return;
    };
    let mut to = child.stdin.take().unwrap();
    to.write_all(b"abcde").unwrap();
    let (status, said) = end(child);
    assert!(status.success(), "{said}");
    drop(to);
}
