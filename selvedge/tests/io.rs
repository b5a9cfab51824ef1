//! The traits and utilities of `io`, over sockets, files, children and the standard streams.
#![cfg(all(feature = "fs", feature = "net", target_os = "linux"))]
use selvedge::{
    Runtime,
    io::{self, AsyncBufReadExt, AsyncReadExt, AsyncSeekExt, AsyncWriteExt, BufReader, SeekFrom},
    net::{TcpListener, TcpStream, UnixStream, unix::pipe},
};
use std::{
    env,
    io::{Read, Write},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

const CHILD: &str = "SELVEDGE_IO";

/// Starts this program for one test, with pipes for its streams. Returns `None` in that child.
fn child_of(test: &str) -> Option<Child> {
    if env::var_os(CHILD).is_some() {
        return None;
    }
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    Some(command.env(CHILD, "1").spawn().unwrap())
}

fn run<F: Future>(future: F) -> F::Output {
    Runtime::new().unwrap().block_on(future)
}

async fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap())
        .await
        .unwrap();
    (one, listener.accept().await.unwrap().0)
}

/// Fails if reads that are always ready keep the worker until the bytes are used up.
#[test]
fn loop_over_ready_reads_yields_by_the_budget() {
    const BYTES: usize = 1000;
    let runtime = selvedge::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let seen = runtime.block_on(async {
        let (mut one, mut other) = UnixStream::pair().unwrap();
        one.write_all(&[7; BYTES]).await.unwrap();
        let reads = Arc::new(AtomicUsize::new(0));
        let count = reads.clone();
        let reader = selvedge::spawn(async move {
            for _ in 0..BYTES {
                assert_eq!(other.read_u8().await.unwrap(), 7);
                count.fetch_add(1, SeqCst);
            }
        });
        let seen = selvedge::spawn(async move { reads.load(SeqCst) });
        let seen = seen.await.unwrap();
        reader.await.unwrap();
        seen
    });
    assert!((1..=128).contains(&seen), "{seen} reads in a poll");
}

/// Fails if bytes are lost or doubled, or if the end of one stream does not end the other.
#[test]
fn copy_moves_all_bytes_between_tcp_sockets() {
    const LEN: u64 = 3_000_000;
    run(async {
        let ((mut from, mut source), (mut target, mut to)) = (tcp_pair().await, tcp_pair().await);
        let copies = selvedge::spawn(async move {
            let count = io::copy(&mut source, &mut target).await.unwrap();
            target.shutdown().await.unwrap();
            count
        });
        let bytes: Vec<u8> = (0..250).cycle().take(LEN as usize).collect();
        let sent = bytes.clone();
        let writes = selvedge::spawn(async move { from.write_all(&sent).await });
        let mut all = Vec::new();
        to.read_to_end(&mut all).await.unwrap();
        assert!(all == bytes);
        writes.await.unwrap().unwrap();
        assert_eq!(copies.await.unwrap(), LEN);
    });
}

/// Fails if one direction ends the other, or is not ended.
#[test]
fn copy_bidirectional_ends_each_direction_alone() {
    run(async {
        let ((mut client, mut one), (mut two, mut server)) = (tcp_pair().await, tcp_pair().await);
        let proxy =
            selvedge::spawn(async move { io::copy_bidirectional(&mut one, &mut two).await });
        client.write_all(b"ping").await.unwrap();
        client.shutdown().await.unwrap();
        let mut text = String::new();
        server.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "ping");
        server.write_all(b"answer").await.unwrap();
        drop(server);
        text.clear();
        client.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "answer");
        assert_eq!(proxy.await.unwrap().unwrap(), (4, 6));
    });
}

/// Fails if a half of any kind has no traits, or waits for the other half.
#[test]
fn halves_read_and_write_at_the_same_time() {
    /// Sends more than the socket holds while it reads as much.
    async fn exchange(read: impl io::AsyncRead + Unpin, write: impl io::AsyncWrite + Unpin) {
        const LEN: usize = 1_000_000;
        let (mut read, mut write) = (read, write);
        let writes = async {
            write.write_all(&vec![7; LEN]).await.unwrap();
            write.shutdown().await.unwrap();
        };
        let reads = async {
            let mut all = Vec::new();
            read.read_to_end(&mut all).await.unwrap();
            assert_eq!(all.len(), LEN);
        };
        futures::future::join(writes, reads).await;
    }
    let echo = |mut stream: TcpStream| async move {
        let (mut read, mut write) = stream.split();
        io::copy(&mut read, &mut write).await.unwrap();
    };
    run(async {
        let (mut stream, peer) = tcp_pair().await;
        let echoes = selvedge::spawn(echo(peer));
        let (read, write) = stream.split();
        exchange(read, write).await;
        echoes.await.unwrap();

        let (stream, peer) = tcp_pair().await;
        let echoes = selvedge::spawn(echo(peer));
        let (read, write) = stream.into_split();
        exchange(read, write).await;
        echoes.await.unwrap();

        let (stream, peer) = tcp_pair().await;
        let echoes = selvedge::spawn(echo(peer));
        let (read, write) = io::split(stream);
        exchange(read, write).await;
        echoes.await.unwrap();
    });
}

/// Fails if a pipe or a file lacks a trait, or if a seek, a read and a write disagree.
#[test]
fn pipes_and_files_have_the_traits() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    run(async {
        let (mut sender, receiver) = pipe::pipe().unwrap();
        sender.write_all(b"one\ntwo\n").await.unwrap();
        sender.shutdown().await.unwrap();
        drop(sender);
        let mut lines = BufReader::new(receiver).lines();
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("one"));

        let mut file = selvedge::fs::File::create_new(&path).await.unwrap();
        let mut rest = lines.into_inner();
        assert_eq!(io::copy_buf(&mut rest, &mut file).await.unwrap(), 4);
        file.flush().await.unwrap();
        let mut file = selvedge::fs::File::open(&path).await.unwrap();
        assert_eq!(file.seek(SeekFrom::Start(1)).await.unwrap(), 1);
        let mut bytes = Vec::with_capacity(8);
        assert_eq!(file.read_buf(&mut bytes).await.unwrap(), 3);
        assert_eq!(bytes, b"wo\n");
        file.rewind().await.unwrap();
        assert_eq!(file.read_u8().await.unwrap(), b't');
        assert_eq!(file.stream_position().await.unwrap(), 1);
    });
}

/// Fails if the pipes of a child lack a trait.
#[cfg(feature = "process")]
#[test]
fn pipes_of_a_child_have_the_traits() {
    run(async {
        let mut command = selvedge::process::Command::new("sh");
        command.args(["-c", "cat; echo end >&2"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"hello").await.unwrap();
        stdin.shutdown().await.unwrap();
        drop(stdin);
        let mut text = String::new();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_to_string(&mut text).await.unwrap();
        let mut stderr = child.stderr.take().unwrap();
        stderr.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "helloend\n");
        assert!(child.wait().await.unwrap().success());
    });
}

/// Fails if lines are lost between two handles, or if a task of another runtime gets none.
#[test]
fn stdin_gives_its_lines_to_each_runtime() {
    let Some(mut child) = child_of("stdin_gives_its_lines_to_each_runtime") else {
        run(async {
            let mut byte = [0; 2];
            io::stdin().read_exact(&mut byte).await.unwrap();
            assert_eq!(&byte, b"a\n");
        });
        return run(async {
            let mut lines = BufReader::new(io::stdin()).lines();
            assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("b"));
            assert_eq!(lines.next_line().await.unwrap(), None);
        });
    };
    child.stdin.take().unwrap().write_all(b"a\nb\n").unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
}

/// Fails if the end of a runtime waits for a read of the standard input.
#[test]
fn runtime_ends_while_stdin_waits() {
    let Some(mut child) = child_of("runtime_ends_while_stdin_waits") else {
        let runtime = Runtime::new().unwrap();
        let reader = runtime.spawn(async { io::stdin().read_u8().await });
        runtime.block_on(async {
            let mut byte = [0];
            let mut stdin = io::stdin();
            let read = std::pin::pin!(stdin.read(&mut byte));
            assert!(futures::poll!(read).is_pending());
        });
        drop(runtime);
        let error = futures::executor::block_on(reader).unwrap_err();
        assert!(error.is_cancelled());
        return;
    };
    let held = child.stdin.take();
    let status = child.wait().unwrap();
    drop(held);
    assert!(status.success());
}

/// Fails if the end of a runtime loses bytes that were written and not flushed.
#[test]
fn runtime_ends_after_the_writes_to_stdout() {
    const LEN: usize = 300_000;
    let Some(mut child) = child_of("runtime_ends_after_the_writes_to_stdout") else {
        run(async {
            io::stdout().write_all(&[b'x'; LEN]).await.unwrap();
            io::stderr()
                .write_all(b"end of the writes\n")
                .await
                .unwrap();
        });
        std::process::abort(); // Nothing else is flushed.
    };
    let mut out = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut out).unwrap();
    child.wait().unwrap();
    assert!(out.ends_with(&[b'x'; LEN]), "{} bytes", out.len());
}
