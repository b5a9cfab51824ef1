//! Tests of the polls that take a `ReadBuf` of tokio: its memory need not be initialised.
#![cfg(all(target_os = "linux", feature = "tokio"))]

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
use tokio::io::{AsyncRead, ReadBuf};

/// Polls before bytes come, and after `send` has sent `ab`. A poll initialises no more bytes than
/// it has got.
async fn check(
    send: impl AsyncFnOnce(&[u8]),
    mut poll: impl FnMut(&mut Context<'_>, &mut ReadBuf<'_>) -> Poll<io::Result<()>>,
) {
    let mut memory = [MaybeUninit::uninit(); 8];
    let mut buf = ReadBuf::uninit(&mut memory);
    let first = poll_fn(|cx| Poll::Ready(poll(cx, &mut buf))).await;
    assert!(first.is_pending() && buf.initialized().is_empty());
    send(b"ab").await;
    poll_fn(|cx| poll(cx, &mut buf)).await.unwrap();
    assert_eq!((buf.filled(), buf.initialized().len()), (&b"ab"[..], 2));
}

/// Fails if a poll initialises the buffer before it knows that bytes are there.
#[test]
fn polls_of_sockets_initialise_only_the_bytes_that_came() {
    Driver::new(1).park(0).block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut peer = net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut stream: TcpStream = listener.accept().await.unwrap().0;
        let write = async |bytes: &[u8]| peer.write_all(bytes).unwrap();
        check(write, |cx, to| stream.poll_peek(cx, to).map_ok(drop)).await;
        assert_eq!(stream.try_read(&mut [0; 8]).unwrap(), 2);
        let write = async |bytes: &[u8]| peer.write_all(bytes).unwrap();
        check(write, |cx, to| Pin::new(&mut stream).poll_read(cx, to)).await;

        let (mut stream, peer) = UnixStream::pair().unwrap();
        let write = async |bytes: &[u8]| assert_eq!(peer.try_write(bytes).unwrap(), 2);
        check(write, |cx, to| Pin::new(&mut stream).poll_read(cx, to)).await;

        let (sender, mut receiver) = pipe::pipe().unwrap();
        let write = async |bytes: &[u8]| assert_eq!(sender.try_write(bytes).unwrap(), 2);
        check(write, |cx, to| Pin::new(&mut receiver).poll_read(cx, to)).await;
    });
}

/// Fails as `polls_of_sockets_initialise_only_the_bytes_that_came` does.
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
