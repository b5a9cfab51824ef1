//! Tests of operations of the user that say "would block" after the peer has hung up.
#![cfg(all(target_os = "linux", not(selvedge_polling)))]
mod support;

use futures_lite::{AsyncReadExt, future};
use net_driver::{
    Interest, Ready,
    net::{AsyncFd, TcpStream, unix::pipe},
};
use std::{
    cell::Cell,
    fs,
    future::poll_fn,
    io::{self, ErrorKind, Read, Write},
    mem, net,
    os::{fd::AsFd, unix::net::UnixStream},
    pin::pin,
};
use support::{in_time, run};

fn would_block() -> io::Result<()> {
    Err(ErrorKind::WouldBlock.into())
}

/// Returns a stream whose peer has sent half of a message, and is gone.
fn half_a_message() -> net::TcpStream {
    let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut peer = net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (stream, _) = listener.accept().unwrap();
    stream.set_nonblocking(true).unwrap();
    peer.write_all(b"half").unwrap();
    drop(peer);
    stream
}

/// Reads a message of eight bytes as a protocol's code does: it keeps what it has read, and says
/// "would block" until the message or the stream ends.
#[derive(Default)]
struct Message {
    got: Vec<u8>,
}

impl Message {
    fn read(&mut self, mut from: impl Read) -> io::Result<Vec<u8>> {
        let mut to = [0; 8];
        match from.read(&mut to[self.got.len()..])? {
            0 => Ok(mem::take(&mut self.got)),
            count => {
                self.got.extend(&to[..count]);
                Err(ErrorKind::WouldBlock.into())
            }
        }
    }
}

/// Registers a stream whose peer is gone. Returns when the driver knows that.
async fn hung_up() -> AsyncFd<net::TcpStream> {
    let fd = AsyncFd::new(half_a_message()).unwrap();
    while !fd.readable().await.unwrap().ready().is_read_closed() {
        future::yield_now().await;
    }
    fd
}

/// Fails if a user's "would block" makes the next call wait for an event: no event follows the
/// hang-up.
#[test]
fn async_io_after_the_hang_up_is_called_again() {
    run(async {
        let (one, mut message) = (hung_up().await, Message::default());
        let read = one.async_io(Interest::READABLE, |one| message.read(one));
        assert_eq!(in_time("async_io", read).await.unwrap(), b"half");

        let (mut one, mut message) = (hung_up().await, Message::default());
        let read = one.async_io_mut(Interest::READABLE, |one| message.read(one));
        assert_eq!(in_time("async_io_mut", read).await.unwrap(), b"half");

        let one = TcpStream::from_std(half_a_message()).unwrap();
        let mut message = Message::default();
        while !one
            .ready(Interest::READABLE)
            .await
            .unwrap()
            .is_read_closed()
        {
            future::yield_now().await;
        }
        let read = || message.read(fs::File::from(one.as_fd().try_clone_to_owned()?));
        let read = one.async_io(Interest::READABLE, read);
        assert_eq!(
            in_time("async_io of a stream", read).await.unwrap(),
            b"half"
        );
    });
}

/// The same for the calls that do not wait, between which the task waits.
#[test]
fn wait_after_the_hang_up_ends_whatever_was_cleared() {
    run(async {
        let mut one = hung_up().await;
        for _ in 0..2 {
            let failed = one.try_io(Interest::READABLE, |_| would_block());
            assert_eq!(failed.unwrap_err().kind(), ErrorKind::WouldBlock);
            in_time("readable", one.readable())
                .await
                .unwrap()
                .retain_ready();
            one.try_io_mut(Interest::READABLE, |_| would_block())
                .unwrap_err();
            let mut guard = in_time("readable", one.readable()).await.unwrap();
            guard.try_io(|_| would_block()).unwrap_err();
            let mut guard = in_time("readable", one.readable()).await.unwrap();
            guard.clear_ready();
            let mut guard = in_time("readable_mut", one.readable_mut()).await.unwrap();
            guard.clear_ready_matching(Ready::READABLE | Ready::READ_CLOSED);
            let polled = poll_fn(|cx| {
                one.poll_read_ready(cx)
                    .map_ok(|mut guard| guard.clear_ready())
            });
            in_time("poll_read_ready", polled).await.unwrap();
        }
        // The other half is open: it waits for its event.
        one.writable().await.unwrap().clear_ready();
        assert!(future::poll_once(one.writable()).await.is_none());

        let one = TcpStream::from_std(half_a_message()).unwrap();
        while !one
            .ready(Interest::READABLE)
            .await
            .unwrap()
            .is_read_closed()
        {
            future::yield_now().await;
        }
        one.try_io(Interest::READABLE, would_block).unwrap_err();
        in_time("readable of a stream", one.readable())
            .await
            .unwrap();
    });
}

/// Fails if a wait for priority data does not end with the stream.
#[test]
fn wait_for_priority_data_ends_at_the_hang_up() {
    run(async {
        let one = AsyncFd::new(half_a_message()).unwrap();
        for _ in 0..2 {
            let wait = in_time("ready", one.ready(Interest::PRIORITY));
            let mut guard = wait.await.unwrap();
            assert!(guard.ready().is_read_closed() && !guard.ready().is_priority());
            guard.clear_ready();
        }
    });
}

/// The reader of a pipe is gone. Fails if this does not count as a hang-up: the kernel reports an
/// error.
#[test]
fn writer_of_a_pipe_without_a_reader_waits_no_more() {
    run(async {
        let (sender, reader) = pipe::pipe().unwrap();
        let writer = AsyncFd::new(sender.into_nonblocking_fd().unwrap()).unwrap();
        writer.writable().await.unwrap().clear_ready();
        assert!(future::poll_once(writer.writable()).await.is_none());
        drop(reader);
        for _ in 0..2 {
            let mut guard = in_time("writable", writer.writable()).await.unwrap();
            assert!(guard.ready().is_write_closed());
            guard.clear_ready();
        }
        let mut tries = 0;
        let write = writer.async_io(Interest::WRITABLE, |_| {
            tries += 1;
            if tries < 3 { would_block() } else { Ok(()) }
        });
        in_time("async_io", write).await.unwrap();

        let (sender, receiver) = pipe::pipe().unwrap();
        drop(receiver);
        let closed = async {
            while !sender
                .ready(Interest::WRITABLE)
                .await
                .unwrap()
                .is_write_closed()
            {
                future::yield_now().await;
            }
        };
        in_time("the sender", closed).await;
    });
}

/// Fails if an error that is no hang-up counts as one: a datagram was refused.
#[test]
fn error_of_a_datagram_socket_is_no_hang_up() {
    run(async {
        let gone = net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        socket.connect(gone.local_addr().unwrap()).unwrap();
        drop(gone);
        socket.send(b"a").unwrap();
        let socket = AsyncFd::new(socket).unwrap();
        let refused = in_time("ready", socket.ready(Interest::ERROR)).await;
        refused.unwrap().clear_ready();
        assert!(socket.get_ref().take_error().unwrap().is_some());
        let cleared = async {
            // More events may come late, until the kernel has freed the datagram.
            while let Some(guard) = future::poll_once(socket.writable()).await {
                guard.unwrap().clear_ready();
                future::yield_now().await;
            }
        };
        in_time("a clear", cleared).await;
    });
}

/// Fails if a poll repeats an operation that always says "would block".
#[test]
fn async_io_after_the_hang_up_yields_between_its_calls() {
    run(async {
        let (one, calls) = (hung_up().await, Cell::new(0));
        let mut read = pin!(one.async_io(Interest::READABLE, |_| {
            calls.set(calls.get() + 1);
            would_block()
        }));
        for _ in 0..10 {
            assert!(future::poll_once(read.as_mut()).await.is_none());
        }
        // The task wakes itself.
        let ended = future::or(async { read.await.is_ok() }, async {
            for _ in 0..10 {
                future::yield_now().await;
            }
            true
        });
        assert!(ended.await);
        assert!((11..=40).contains(&calls.get()), "{calls:?}");
    });
}

/// The peer closes one half and lets the other one fill. Fails if an operation for the open half
/// alone is called again and again. One for both halves is: it may be about the closed one.
#[test]
fn async_io_of_the_open_half_waits_after_a_half_close() {
    run(async {
        let (one, mut peer) = UnixStream::pair().unwrap();
        one.set_nonblocking(true).unwrap();
        peer.shutdown(net::Shutdown::Write).unwrap();
        let one = AsyncFd::new(one).unwrap();
        while !one.readable().await.unwrap().ready().is_read_closed() {
            future::yield_now().await;
        }
        while one.get_ref().write(&[0; 4096]).is_ok() {}

        let calls = Cell::new(0);
        let write = |mut one: &UnixStream| {
            calls.set(calls.get() + 1);
            one.write(&[0])
        };
        let mut of_both = pin!(one.async_io(Interest::READABLE | Interest::WRITABLE, write));
        for n in 1..=10 {
            assert!(future::poll_once(of_both.as_mut()).await.is_none());
            assert_eq!(calls.get(), n);
        }
        let mut of_one = pin!(one.async_io(Interest::WRITABLE, write));
        assert!(future::poll_once(of_one.as_mut()).await.is_none());
        let before = calls.get();
        for _ in 0..10 {
            assert!(future::poll_once(of_one.as_mut()).await.is_none());
        }
        assert_eq!(calls.get(), before);
        peer.set_nonblocking(true).unwrap();
        while peer.read(&mut [0; 4096]).is_ok() {}
        assert_eq!(in_time("the write", of_one).await.unwrap(), 1);
    });
}

/// Fails if the hang-up of a FIFO's last writer makes the reads spin after the next one has come.
#[test]
fn read_of_a_fifo_waits_for_its_next_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    run(async {
        let mut receiver = pipe::OpenOptions::new().open_receiver(&path).unwrap();
        let mut to = [0; 8];
        for round in 0..6 {
            let writer = pipe::OpenOptions::new().open_sender(&path).unwrap();
            // In later rounds the receiver has seen the hang-up of the last round's writer.
            if round % 2 == 0 {
                let failed = receiver.try_read(&mut to).unwrap_err();
                assert_eq!(failed.kind(), ErrorKind::WouldBlock);
            } else {
                assert!(future::poll_once(receiver.read(&mut to)).await.is_none());
            }
            let wait = receiver.readable();
            assert!(future::poll_once(wait).await.is_none(), "round {round}");
            writer.try_write(b"abc").unwrap();
            assert_eq!(in_time("read", receiver.read(&mut to)).await.unwrap(), 3);
            drop(writer);
            assert_eq!(in_time("read", receiver.read(&mut to)).await.unwrap(), 0);
            let hung_up = async {
                while !receiver
                    .ready(Interest::READABLE)
                    .await
                    .unwrap()
                    .is_read_closed()
                {
                    future::yield_now().await;
                }
            };
            in_time("the hang-up", hung_up).await;
        }
    });
}
