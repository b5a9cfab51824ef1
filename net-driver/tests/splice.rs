//! Moves of bytes from pipes to streams.
#![cfg(all(
    target_os = "linux",
    not(any(selvedge_loom, selvedge_shuttle, selvedge_count))
))]
use futures_lite::{AsyncReadExt, future::poll_once};
use net_driver::{
    Driver,
    net::{TcpListener, TcpStream, UnixStream, unix::pipe},
};
use std::{future::poll_fn, io::ErrorKind, os::fd::AsFd};
use task_io::AsyncSplice;

async fn splice<S: AsyncSplice>(
    to: &S,
    pipe: &pipe::Receiver,
    max: usize,
) -> std::io::Result<usize> {
    poll_fn(|cx| to.poll_splice(cx, pipe.as_fd(), max)).await
}

#[test]
fn streams_take_bytes_out_of_a_pipe() {
    Driver::new(1).park(0).block_on(async {
        let (to, from) = pipe::pipe().unwrap();
        assert_eq!(to.try_write(b"hello").unwrap(), 5);
        let (one, mut other) = UnixStream::pair().unwrap();
        assert_eq!(splice(&one, &from, 2).await.unwrap(), 2);
        let mut two = [0; 2];
        other.read_exact(&mut two).await.unwrap();
        assert_eq!(&two, b"he");

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (mut peer, _) = listener.accept().await.unwrap();
        assert_eq!(splice(&stream, &from, usize::MAX).await.unwrap(), 3);
        let mut three = [0; 3];
        peer.read_exact(&mut three).await.unwrap();
        assert_eq!(&three, b"llo");
    });
}

// Fails if an empty pipe counts as a full socket: then the task waits, or spins, for ever.
#[test]
fn splice_of_an_empty_pipe_is_refused() {
    Driver::new(1).park(0).block_on(async {
        let (_to, from) = pipe::pipe().unwrap();
        let (one, other) = UnixStream::pair().unwrap();
        for _ in 0..2 {
            let error = splice(&one, &from, 1).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
        drop(other);
        assert!(splice(&one, &from, 1).await.is_err());
        assert_eq!(splice(&one, &from, 0).await.unwrap(), 0);
    });
}

#[test]
fn splice_to_a_full_socket_waits_for_room() {
    Driver::new(1).park(0).block_on(async {
        let (to, from) = pipe::pipe().unwrap();
        let (one, mut other) = UnixStream::pair().unwrap();
        let mut sent = 0;
        loop {
            sent += match one.try_write(&[7; 4096]) {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            };
        }
        to.try_write(b"rest").unwrap();
        assert!(poll_once(splice(&one, &from, 4)).await.is_none());
        let mut waits = Box::pin(splice(&one, &from, 4));
        assert!(poll_once(&mut waits).await.is_none());
        let mut bytes = vec![0; sent];
        other.read_exact(&mut bytes).await.unwrap();
        assert_eq!(waits.await.unwrap(), 4);
        other.read_exact(&mut bytes[..4]).await.unwrap();
        assert_eq!(&bytes[..4], b"rest");
    });
}
