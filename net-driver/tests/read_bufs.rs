//! Tests of the polls that take a `ReadBuf`: its memory need not be initialised.
#![cfg(target_os = "linux")]

use net_driver::{
    Driver,
    net::{TcpListener, TcpStream, UdpSocket, UnixDatagram, UnixStream, unix::pipe},
};
use std::{
    future::poll_fn,
    io::{self, Write},
    mem::MaybeUninit,
    net,
    pin::Pin,
    task::{Context, Poll},
};
use task_io::ReadBuf;

/// Defines `check`, for a `ReadBuf` of the module `$io`. It polls before bytes come, and after
/// `send` has sent `ab`. A poll initialises no more bytes than it has got.
macro_rules! check {
    ($name:ident, $($io:ident)::+) => {
        async fn $name(
            send: impl AsyncFnOnce(&[u8]),
            mut poll: impl FnMut(
                &mut Context<'_>,
                &mut $($io)::+::ReadBuf<'_>,
            ) -> Poll<io::Result<()>>,
        ) {
            let mut memory = [MaybeUninit::uninit(); 8];
            let mut buf = $($io)::+::ReadBuf::uninit(&mut memory);
            let first = poll_fn(|cx| Poll::Ready(poll(cx, &mut buf))).await;
            assert!(first.is_pending() && buf.initialized().is_empty());
            send(b"ab").await;
            poll_fn(|cx| poll(cx, &mut buf)).await.unwrap();
            assert_eq!((buf.filled(), buf.initialized().len()), (&b"ab"[..], 2));
        }
    };
}

check!(check, task_io);
#[cfg(feature = "tokio")]
check!(check_tokio, tokio::io);

/// Makes a connection, for reads by net-driver and writes by std.
async fn tcp_pair() -> (TcpStream, net::TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let peer = net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (listener.accept().await.unwrap().0, peer)
}

/// Checks the reads of `$io` by each stream and half.
macro_rules! check_reads {
    ($check:ident, $($io:ident)::+) => {{
        use $($io)::+::AsyncRead;

        let (stream, mut peer) = tcp_pair().await;
        let mut write = async |bytes: &[u8]| peer.write_all(bytes).unwrap();
        let mut stream = stream;
        $check(&mut write, |cx, to| Pin::new(&mut stream).poll_read(cx, to)).await;
        let (mut read, _write) = stream.split();
        $check(&mut write, |cx, to| Pin::new(&mut read).poll_read(cx, to)).await;
        let (mut read, _write) = stream.into_split();
        $check(&mut write, |cx, to| Pin::new(&mut read).poll_read(cx, to)).await;

        let (mut stream, peer) = UnixStream::pair().unwrap();
        let write = async |bytes: &[u8]| assert_eq!(peer.try_write(bytes).unwrap(), 2);
        $check(&write, |cx, to| Pin::new(&mut stream).poll_read(cx, to)).await;
        let (mut read, _write) = stream.split();
        $check(&write, |cx, to| Pin::new(&mut read).poll_read(cx, to)).await;
        let (mut read, _write) = stream.into_split();
        $check(&write, |cx, to| Pin::new(&mut read).poll_read(cx, to)).await;

        let (sender, mut receiver) = pipe::pipe().unwrap();
        let write = async |bytes: &[u8]| assert_eq!(sender.try_write(bytes).unwrap(), 2);
        $check(&write, |cx, to| Pin::new(&mut receiver).poll_read(cx, to)).await;
    }};
}

/// Fails if a poll initialises the buffer before it knows that bytes are there.
#[test]
fn reads_initialise_only_the_bytes_that_came() {
    Driver::new(1).park(0).block_on(async {
        check_reads!(check, task_io);
        #[cfg(feature = "tokio")]
        check_reads!(check_tokio, tokio::io);
    });
}

/// Fails as `reads_initialise_only_the_bytes_that_came` does.
#[test]
fn peek_initialises_only_the_bytes_that_came() {
    Driver::new(1).park(0).block_on(async {
        let (stream, mut peer) = tcp_pair().await;
        let write = async |bytes: &[u8]| peer.write_all(bytes).unwrap();
        check(write, |cx, to| stream.poll_peek(cx, to).map_ok(drop)).await;
        assert_eq!(stream.try_read(&mut [0; 8]).unwrap(), 2);
    });
}

/// Fails if a read takes the buffer for empty, or writes to the front of it.
#[test]
fn second_read_appends_to_the_first() {
    Driver::new(1).park(0).block_on(async {
        let (mut stream, mut peer) = tcp_pair().await;
        let mut memory = [MaybeUninit::uninit(); 3];
        let mut buf = ReadBuf::uninit(&mut memory);
        for (bytes, expected) in [(b"ab", &b"ab"[..]), (b"cd", b"abc"), (b"ef", b"abc")] {
            peer.write_all(bytes).unwrap();
            let read =
                poll_fn(|cx| task_io::AsyncRead::poll_read(Pin::new(&mut stream), cx, &mut buf));
            read.await.unwrap();
            assert_eq!(buf.filled(), expected);
        }
    });
}

/// Fails as `reads_initialise_only_the_bytes_that_came` does.
#[test]
fn polls_for_datagrams_initialise_only_the_bytes_that_came() {
    Driver::new(1).park(0).block_on(async {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.connect(socket.local_addr().unwrap()).await.unwrap();
        let send = async |bytes: &[u8]| assert_eq!(socket.send(bytes).await.unwrap(), 2);
        let take = async || assert_eq!(socket.recv(&mut [0; 8]).await.unwrap(), 2);
        check(send, |cx, to| socket.poll_peek(cx, to)).await;
        take().await;
        check(send, |cx, to| socket.poll_peek_from(cx, to).map_ok(drop)).await;
        take().await;
        check(send, |cx, to| socket.poll_recv(cx, to)).await;
        check(send, |cx, to| socket.poll_recv_from(cx, to).map_ok(drop)).await;

        let (one, other) = UnixDatagram::pair().unwrap();
        let send = async |bytes: &[u8]| assert_eq!(one.send(bytes).await.unwrap(), 2);
        check(send, |cx, to| other.poll_recv(cx, to)).await;
        check(send, |cx, to| other.poll_recv_from(cx, to).map_ok(drop)).await;
    });
}
