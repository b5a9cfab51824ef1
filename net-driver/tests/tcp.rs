//! Tests of TCP sockets against plain clients of std.
#![cfg(any(target_os = "linux", windows))]
mod support;

use futures_lite::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, future};
use net_driver::{
    Driver, Interest,
    net::{TcpListener, TcpSocket, TcpStream},
};
use std::{
    future::poll_fn,
    io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write},
    net::{self, Shutdown, SocketAddr},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::mpsc,
    task::{Context, Poll, Waker},
    thread,
};
use support::{Workers, run};

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    (listener, at)
}

/// Returns a stream of the driver, and std's stream of the other side.
async fn pair() -> (TcpStream, net::TcpStream) {
    let (listener, at) = listen().await;
    let client = net::TcpStream::connect(at).unwrap();
    (listener.accept().await.unwrap().0, client)
}

#[test]
fn echo_serves_many_clients_of_std() {
    let workers = Workers::new(2);
    let (listener, at) = workers.block_on(listen());
    let executor = workers.executor.clone();
    let server = workers.spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let echo = async move {
                let mut buffer = [0; 64];
                loop {
                    let count = stream.read(&mut buffer).await.unwrap();
                    if count == 0 {
                        break;
                    }
                    stream.write_all(&buffer[..count]).await.unwrap();
                }
            };
            executor.spawn(echo).detach();
        }
    });
    let clients: Vec<_> = (0..8_u8)
        .map(|id| {
            thread::spawn(move || {
                let mut client = net::TcpStream::connect(at).unwrap();
                for round in 0..200_u8 {
                    let message = [id ^ round; 48];
                    client.write_all(&message).unwrap();
                    let mut back = [0; 48];
                    client.read_exact(&mut back).unwrap();
                    assert_eq!(back, message);
                }
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
    workers.block_on(server.cancel());
}

#[test]
fn long_transfer_arrives_whole_through_short_writes() {
    const LEN: usize = 4 << 20;
    let byte = |at: usize| ((at * 31) >> 3) as u8;
    run(async {
        let (listener, at) = listen().await;
        let client = thread::spawn(move || {
            let mut client = net::TcpStream::connect(at).unwrap();
            let (mut all, mut buffer) = (Vec::new(), [0; 1_000]);
            loop {
                let count = client.read(&mut buffer).unwrap();
                if count == 0 {
                    break all;
                }
                all.extend_from_slice(&buffer[..count]);
            }
        });
        let (mut stream, _) = listener.accept().await.unwrap();
        let data: Vec<_> = (0..LEN).map(byte).collect();
        stream.write_all(&data).await.unwrap();
        stream.close().await.unwrap();
        assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
        assert!(client.join().unwrap() == data);
    });
}

/// Fails if a peer's urgent byte is outside of the stream, where it keeps a wait busy for ever.
#[cfg(windows)]
#[test]
fn urgent_byte_is_read_like_any_other() {
    run(async {
        let (accepted, client) = pair().await;
        let (listener, at) = listen().await;
        let connected = TcpStream::connect(at).await.unwrap();
        let server = listener.accept().await.unwrap().0.into_std().unwrap();
        let (adopted, other) = pair().await;
        let adopted = TcpStream::from_std(adopted.into_std().unwrap()).unwrap();
        for (mut stream, peer) in [(accepted, client), (connected, server), (adopted, other)] {
            let sent = socket2::SockRef::from(&peer).send_out_of_band(b"u");
            assert_eq!(sent.unwrap(), 1);
            let mut to = [0; 8];
            assert_eq!(stream.read(&mut to).await.unwrap(), 1);
            assert_eq!(to[0], b'u');
        }
    });
}

#[test]
fn half_closed_stream_still_writes() {
    run(async {
        let (mut stream, mut client) = pair().await;
        client.write_all(b"last words").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut all = String::new();
        stream.read_to_string(&mut all).await.unwrap();
        assert_eq!(all, "last words");
        let ready = stream.ready(Interest::READABLE).await.unwrap();
        assert!(ready.is_read_closed() || cfg!(any(selvedge_polling, windows)));
        stream.write_all(b"answer").await.unwrap();
        let mut back = [0; 6];
        client.read_exact(&mut back).unwrap();
        assert_eq!(&back, b"answer");
    });
}

#[test]
fn end_of_stream_right_behind_a_short_read_is_seen() {
    run(async {
        for _ in 0..200 {
            let (mut stream, mut client) = pair().await;
            let closer = thread::spawn(move || client.write_all(b"x"));
            let mut buffer = [0; 64];
            assert_eq!(stream.read(&mut buffer).await.unwrap(), 1);
            assert_eq!(stream.read(&mut buffer).await.unwrap(), 0);
            closer.join().unwrap().unwrap();
        }
    });
}

#[test]
fn reset_in_mid_write_is_an_error() {
    run(async {
        let (mut stream, client) = pair().await;
        let client = TcpSocket::from_std_stream(client);
        client.set_linger(Some(std::time::Duration::ZERO)).unwrap();
        let chunk = [0; 1 << 16];
        // Writes until the buffers are full, so that a write waits when the reset comes.
        while stream.try_write(&chunk).is_ok() {}
        let closer = thread::spawn(move || drop(client));
        let error = loop {
            if let Err(error) = stream.write_all(&chunk).await {
                break error;
            }
        };
        let kind = error.kind();
        assert!(
            matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe),
            "{error}"
        );
        closer.join().unwrap();
        // A read that begins after the reset ends, too.
        assert!(matches!(stream.read(&mut [0; 8]).await, Err(_) | Ok(0)));
    });
}

/// Fails if the close of a stream is an error after another close, or after a reset by the peer.
#[test]
fn close_of_a_stream_that_is_gone_is_no_error() {
    run(async {
        let (mut stream, _client) = pair().await;
        stream.close().await.unwrap();
        stream.close().await.unwrap();

        let (mut stream, client) = pair().await;
        stream.write_all(b"x").await.unwrap();
        drop(client); // It has not read the byte, so the kernel resets the connection.
        match stream.read(&mut [0]).await {
            // Wine ends such a connection in order.
            Ok(0) if cfg!(windows) => {}
            read => assert_eq!(read.unwrap_err().kind(), ErrorKind::ConnectionReset),
        }
        stream.close().await.unwrap();
    });
}

#[test]
fn reader_and_writer_of_two_tasks_wait_at_a_time() {
    const LEN: usize = 1 << 20;
    let workers = Workers::new(2);
    let (stream, client) = workers.block_on(pair());
    let echo = thread::spawn(move || {
        let mut client = client;
        let mut buffer = vec![0; 4_096];
        loop {
            let count = client.read(&mut buffer).unwrap();
            if count == 0 {
                return;
            }
            client.write_all(&buffer[..count]).unwrap();
        }
    });
    let (mut read, mut write) = stream.into_split();
    let writer = workers.spawn(async move {
        write.write_all(&vec![7; LEN]).await.unwrap();
        // The drop closes the write half.
    });
    let reader = workers.spawn(async move {
        let mut all = Vec::new();
        read.read_to_end(&mut all).await.unwrap();
        all
    });
    workers.block_on(writer);
    let all = workers.block_on(reader);
    assert!(all.len() == LEN && all.iter().all(|byte| *byte == 7));
    echo.join().unwrap();
}

#[test]
fn vectored_transfers_keep_the_order() {
    run(async {
        let (mut stream, mut client) = pair().await;
        let parts = [IoSlice::new(b"ab"), IoSlice::new(b""), IoSlice::new(b"cde")];
        assert_eq!(stream.write_vectored(&parts).await.unwrap(), 5);
        let mut all = [0; 5];
        client.read_exact(&mut all).unwrap();
        assert_eq!(&all, b"abcde");
        client.write_all(&all).unwrap();
        let (mut one, mut other) = ([0; 2], [0; 8]);
        let mut parts = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut other)];
        let mut count = stream.read_vectored(&mut parts).await.unwrap();
        while count < 5 {
            count += stream.read(&mut other[count - 2..]).await.unwrap();
        }
        assert_eq!((&one, &other[..3]), (b"ab", &b"cde"[..]));
    });
}

// Buffers that are short together are copied into one; longer ones are not.
#[test]
fn vectored_writes_of_any_length_arrive_whole() {
    run(async {
        let (mut stream, mut client) = pair().await;
        let from: Vec<u8> = (0..=u8::MAX).cycle().take(1_024).collect();
        for len in [0, 1, 511, 512, 513, 1_024] {
            let (one, other) = from[..len].split_at(len / 3);
            let parts = [one, &[], other].map(IoSlice::new);
            assert_eq!(stream.write_vectored(&parts).await.unwrap(), len);
            let mut to = vec![0; len];
            client.read_exact(&mut to).unwrap();
            assert!(to == from[..len]);
        }
    });
}

/// Transfers more slices than a system call takes, so that the call leaves some of them. Fails if
/// the stream takes this for a short transfer, although the kernel has more bytes and more room:
/// then it waits for an event that does not come. A call of Windows takes any number of slices.
#[test]
#[cfg(unix)]
fn transfers_of_too_many_slices_are_not_short() {
    const MANY: usize = 2_000;
    let driver = Driver::new(1);
    let mut park = driver.park(0);
    let (mut stream, mut client) = park.block_on(pair());
    client.write_all(&[7; MANY]).unwrap();
    park.block_on(async { while stream.peek(&mut [0; MANY]).await.unwrap() < MANY {} });
    park.poll_all(); // The events up to here. There is no further look.
    let mut cx = Context::from_waker(Waker::noop());
    let mut stream = Pin::new(&mut stream);

    let parts = [IoSlice::new(b"x"); MANY];
    let written = stream.as_mut().poll_write_vectored(&mut cx, &parts);
    assert!(matches!(written, Poll::Ready(Ok(1..MANY))), "{written:?}");
    let written = stream.as_mut().poll_write(&mut cx, b"y");
    assert!(matches!(written, Poll::Ready(Ok(1))), "{written:?}");

    let mut to = [0; MANY];
    let mut parts: Vec<_> = to.chunks_mut(1).map(IoSliceMut::new).collect();
    let read = stream.as_mut().poll_read_vectored(&mut cx, &mut parts);
    let Poll::Ready(Ok(first @ 1..MANY)) = read else {
        panic!("{read:?}");
    };
    let rest = stream.as_mut().poll_read(&mut cx, &mut to[first..]);
    assert!(matches!(rest, Poll::Ready(Ok(count)) if first + count == MANY));
    assert!(to.iter().all(|byte| *byte == 7));
}

/// Fails if the operation is called twice, or if its error clears the readiness.
#[test]
fn interrupted_try_io_fails_and_leaves_the_socket_ready() {
    run(async {
        let (stream, _client) = pair().await;
        stream.writable().await.unwrap();
        let interrupted = || Err::<(), _>(ErrorKind::Interrupted.into());
        let error = stream.try_io(Interest::WRITABLE, interrupted).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted);
        assert!(future::poll_once(stream.writable()).await.is_some());
    });
}

#[test]
fn refused_connection_is_an_error() {
    run(async {
        let (listener, at) = listen().await;
        drop(listener);
        let error = TcpStream::connect(at).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let (listener, good) = listen().await;
        let stream = TcpStream::connect(&[at, good][..]).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), good);
        drop(listener);
        let none: &[SocketAddr] = &[];
        let error = TcpStream::connect(none).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn cancelled_accept_loses_no_connection() {
    run(async {
        let (listener, at) = listen().await;
        for round in 0..100 {
            let mut cx = Context::from_waker(Waker::noop());
            let mut accept = Box::pin(listener.accept());
            assert!(accept.as_mut().poll(&mut cx).is_pending(), "round {round}");
            let _client = net::TcpStream::connect(at).unwrap();
            drop(accept);
            listener.accept().await.unwrap();
        }
    });
}

#[test]
fn several_tasks_accept_from_one_listener() {
    let workers = Workers::new(2);
    let (listener, at) = workers.block_on(listen());
    let listener = std::sync::Arc::new(listener);
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let listener = listener.clone();
            workers.spawn(async move {
                for _ in 0..25 {
                    listener.accept().await.unwrap();
                }
            })
        })
        .collect();
    let clients: Vec<_> = (0..100)
        .map(|_| net::TcpStream::connect(at).unwrap())
        .collect();
    for task in tasks {
        workers.block_on(task);
    }
    drop(clients);
}

#[test]
fn descriptor_numbers_in_reuse_get_no_stale_events() {
    run(async {
        let (listener, at) = listen().await;
        for round in 0..2_000_u32 {
            let mut client = net::TcpStream::connect(at).unwrap();
            let (mut stream, _) = listener.accept().await.unwrap();
            if round % 3 == 0 {
                // The event of this write may be on the way when `stream` closes its descriptor.
                client.write_all(b"late").unwrap();
                continue;
            }
            let mut cx = Context::from_waker(Waker::noop());
            let mut buffer = [0; 8];
            let mut read = Box::pin(stream.read(&mut buffer));
            assert!(read.as_mut().poll(&mut cx).is_pending());
            drop(read);
            client.write_all(&round.to_le_bytes()).unwrap();
            stream.read_exact(&mut buffer[..4]).await.unwrap();
            assert_eq!(buffer[..4], round.to_le_bytes());
        }
    });
}

#[test]
fn clone_of_a_socket_registers_again_under_its_number() {
    run(async {
        let (stream, mut client) = pair().await;
        let std = stream.into_std().unwrap();
        let kept = std.try_clone().unwrap();
        for _ in 0..3 {
            // `kept` keeps the file open after `stream` is dropped. So the kernel's poller keeps
            // the entry of `stream`, unless the driver has removed it.
            let mut stream = TcpStream::from_std(kept.try_clone().unwrap()).unwrap();
            client.write_all(b"x").unwrap();
            stream.read_exact(&mut [0]).await.unwrap();
        }
        drop(std);
    });
}

#[test]
fn shutdown_of_the_driver_ends_waits_with_an_error() {
    let driver = Driver::new(2);
    let (stream, client) = driver.park(0).block_on(pair());
    // The park was the only one, so its drop has shut the driver down.
    let mut cx = Context::from_waker(Waker::noop());
    let mut stream = stream;
    let mut buffer = [0; 8];
    let mut read = Box::pin(stream.read(&mut buffer));
    let Poll::Ready(Err(error)) = read.as_mut().poll(&mut cx) else {
        panic!("the driver has shut down");
    };
    assert!(error.to_string().contains("shut down"), "{error}");
    drop((read, client));

    let driver = Driver::new(2);
    let mut park = driver.park(0);
    let (mut stream, _client) = park.block_on(pair());
    let (send, receive) = mpsc::channel();
    let reader = {
        let mut park = driver.park(1);
        thread::spawn(move || {
            park.block_on(async move {
                let mut buffer = [0; 8];
                let read = stream.read(&mut buffer);
                let read = future::poll_once(Box::pin(read)).await;
                assert!(read.is_none());
                send.send(()).unwrap();
                stream.read(&mut buffer).await
            })
        })
    };
    receive.recv().unwrap();
    driver.shutdown();
    let error = reader.join().unwrap().unwrap_err();
    assert!(error.to_string().contains("shut down"), "{error}");
    let refused = driver.scope(None, || {
        TcpSocket::new_v4().and_then(|socket| socket.listen(1))
    });
    refused.unwrap_err();
}

#[test]
fn socket_outside_of_a_runtime_panics_and_names_enter() {
    let make = || {
        let socket = TcpSocket::new_v4()?;
        socket.bind(([127, 0, 0, 1], 0).into())?; // Windows listens at no other.
        socket.listen(1)
    };
    let panic = catch_unwind(AssertUnwindSafe(&make)).unwrap_err();
    let said = panic.downcast_ref::<String>().map(String::as_str);
    let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
    let said = said.unwrap();
    assert!(
        said.contains("Handle::enter") && !said.contains('\n'),
        "{said}"
    );
    let driver = Driver::new(1);
    let _entered = driver.enter(None);
    make().unwrap();
}

#[test]
fn peek_and_try_read_leave_no_byte_behind() {
    run(async {
        let (stream, mut client) = pair().await;
        let mut to = [0; 4];
        let error = stream.try_read(&mut to).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        client.write_all(b"abcd").unwrap();
        while stream.peek(&mut to).await.unwrap() < 4 {}
        stream.readable().await.unwrap();
        assert_eq!(stream.try_read(&mut to[..3]).unwrap(), 3);
        assert_eq!(stream.try_read(&mut to[3..]).unwrap(), 1);
        assert_eq!(&to, b"abcd");
        let error = stream.try_read(&mut to).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    });
}

#[test]
fn async_io_with_an_operation_of_the_user_waits_again() {
    run(async {
        let (stream, mut client) = pair().await;
        let mut calls = 0;
        let mut to = [0; 1];
        let read = stream.async_io(Interest::READABLE, || {
            calls += 1;
            if calls == 1 {
                client.write_all(b"x")?;
                return Err(ErrorKind::WouldBlock.into());
            }
            stream.try_io(Interest::READABLE, || {
                let socket = socket2::SockRef::from(&stream);
                (&*socket).read(&mut to)
            })
        });
        assert_eq!(read.await.unwrap(), 1);
        assert!(calls >= 2);
    });
}

#[test]
fn poll_accept_wakes_its_last_task() {
    run(async {
        let (listener, at) = listen().await;
        let mut cx = Context::from_waker(Waker::noop());
        assert!(listener.poll_accept(&mut cx).is_pending());
        let _client = net::TcpStream::connect(at).unwrap();
        poll_fn(|cx| listener.poll_accept(cx)).await.unwrap();
    });
}

/// Writes `from` by each method of the trait `AsyncWrite` of `$io`, and shuts the end down.
macro_rules! write_and_shut_down {
    ($end:expr, $from:expr, $($io:ident)::+) => {{
        use $($io)::+::AsyncWrite;

        let (mut end, from) = ($end, $from);
        assert!(AsyncWrite::is_write_vectored(&end));
        let written = poll_fn(|cx| AsyncWrite::poll_write(Pin::new(&mut end), cx, &from[..1]));
        assert_eq!(written.await.unwrap(), 1);
        let parts = [IoSlice::new(&from[1..2]), IoSlice::new(&from[2..])];
        let written =
            poll_fn(|cx| AsyncWrite::poll_write_vectored(Pin::new(&mut end), cx, &parts));
        assert_eq!(written.await.unwrap(), from.len() - 1);
        poll_fn(|cx| AsyncWrite::poll_flush(Pin::new(&mut end), cx)).await.unwrap();
        poll_fn(|cx| AsyncWrite::poll_shutdown(Pin::new(&mut end), cx)).await.unwrap();
        end
    }};
}

/// Fails if a trait of `task-io`, or of tokio, writes other bytes, or leaves the stream open.
#[test]
fn stream_and_halves_write_and_shut_down() {
    run(async {
        let assert_all = |mut client: net::TcpStream| {
            let mut all = Vec::new();
            client.read_to_end(&mut all).unwrap();
            assert_eq!(all, b"abc");
        };
        let (stream, client) = pair().await;
        let stream = write_and_shut_down!(stream, b"abc", task_io);
        assert_all(client);
        drop(stream);
        let (mut stream, client) = pair().await;
        write_and_shut_down!(stream.split().1, b"abc", task_io);
        assert_all(client);
        let (stream, client) = pair().await;
        let (read, write) = stream.into_split();
        let write = write_and_shut_down!(write, b"abc", task_io);
        assert_all(client);
        drop((read, write));
        #[cfg(feature = "tokio")]
        {
            let (stream, client) = pair().await;
            let stream = write_and_shut_down!(stream, b"abc", tokio::io);
            assert_all(client);
            drop(stream);
        }
    });
}

#[test]
fn lookup_of_names_and_addresses_resolves() -> io::Result<()> {
    run(async {
        let found: Vec<_> = net_driver::net::lookup_host("localhost:7").await?.collect();
        assert!(
            found
                .iter()
                .all(|at| at.ip().is_loopback() && at.port() == 7)
        );
        assert!(!found.is_empty());
        net_driver::net::lookup_host("no.such.host.invalid:1")
            .await
            .map(drop)
            .unwrap_err();
        net_driver::net::lookup_host("no port")
            .await
            .map(drop)
            .unwrap_err();
        Ok(())
    })
}
