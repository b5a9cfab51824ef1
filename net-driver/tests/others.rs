//! Tests of Unix sockets, and of descriptors that other code has made.
#![cfg(target_os = "linux")]
mod support;

use futures_lite::{AsyncReadExt, AsyncWriteExt, future};
use net_driver::{
    Driver, Interest,
    net::{
        AsyncFd, UdpSocket, UnixDatagram, UnixListener, UnixSocket, UnixStream,
        unix::{SocketAddr, pipe},
    },
    time,
};
use std::{
    fs::File,
    future::{Future, poll_fn},
    io::{self, ErrorKind, Read, Write},
    os::{
        fd::{AsFd, AsRawFd, RawFd},
        unix::net,
    },
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
    task::{Context, Waker},
    thread,
    time::Duration,
};
use support::{Workers, run};
use worker_idle::park::Park;

#[test]
fn unix_stream_serves_clients_of_std() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    run(async {
        let listener = UnixListener::bind(&path).unwrap();
        let client = thread::spawn({
            let path = path.clone();
            move || {
                let mut client = net::UnixStream::connect(path).unwrap();
                client.write_all(b"ping").unwrap();
                let mut all = String::new();
                client.read_to_string(&mut all).unwrap();
                all
            }
        });
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut to = [0; 4];
        stream.read_exact(&mut to).await.unwrap();
        stream.write_all(b"pong").await.unwrap();
        drop(stream);
        assert_eq!(client.join().unwrap(), "pong");
        assert_eq!(&to, b"ping");
        let error = UnixListener::bind(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
    });
}

/// Returns an abstract name that no other test has.
fn abstract_name(test: &str) -> String {
    format!("\0net-driver-{}-{test}", std::process::id())
}

/// Fails if a name that begins with a zero byte is refused as the path of a listener or a stream.
#[test]
fn abstract_name_of_a_listener_needs_no_file() {
    let name = abstract_name("stream");
    run(async {
        let listener = UnixListener::bind(&name).unwrap();
        let at = listener.local_addr().unwrap();
        assert_eq!(at.as_abstract_name(), Some(&name.as_bytes()[1..]));
        let mut client = UnixStream::connect(&name).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        client.write_all(b"a").await.unwrap();
        server.read_exact(&mut [0]).await.unwrap();
        let error = UnixListener::bind(&name).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
    });
}

/// Fails if a name that begins with a zero byte is refused where a datagram socket is bound or
/// connected.
#[test]
fn abstract_name_of_a_datagram_socket_is_connected() {
    let name = abstract_name("connected");
    run(async {
        let receiver = UnixDatagram::bind(&name).unwrap();
        let sender = UnixDatagram::unbound().unwrap();
        sender.connect(&name).unwrap();
        sender.send(b"a").await.unwrap();
        assert_eq!(receiver.recv(&mut [0; 8]).await.unwrap(), 1);
    });
}

/// Fails if a name that begins with a zero byte is refused as the receiver of a datagram.
#[test]
fn abstract_name_of_a_receiver_gets_datagrams() {
    use std::os::linux::net::SocketAddrExt;

    let name = abstract_name("receiver");
    run(async {
        let address = net::SocketAddr::from_abstract_name(&name.as_bytes()[1..]).unwrap();
        let receiver = net::UnixDatagram::bind_addr(&address).unwrap();
        let sender = UnixDatagram::unbound().unwrap();
        sender.send_to(b"a", &name).await.unwrap();
        sender.try_send_to(b"bc", &name).unwrap();
        let mut to = [0; 8];
        assert_eq!(receiver.recv(&mut to).unwrap(), 1);
        assert_eq!(receiver.recv(&mut to).unwrap(), 2);
    });
}

/// Fails if a receive or an accept loses the abstract name of the other side.
#[test]
fn abstract_name_of_a_sender_is_received() {
    let (name, receivers) = (abstract_name("sender"), abstract_name("received"));
    let is_senders = |from: &SocketAddr| from.as_abstract_name() == Some(&name.as_bytes()[1..]);
    run(async {
        let receiver = UnixDatagram::bind(&receivers).unwrap();
        let sender = UnixDatagram::bind(&name).unwrap();
        for _ in 0..4 {
            sender.send_to(b"a", &receivers).await.unwrap();
        }
        let (mut bytes, mut to) = (Vec::with_capacity(8), [0; 8]);
        let from = receiver.recv_from(&mut to).await.unwrap().1;
        assert!(is_senders(&from));
        let from = receiver.recv_buf_from(&mut bytes).await.unwrap().1;
        assert!(is_senders(&from));
        let from = receiver.try_recv_buf_from(&mut bytes).unwrap().1;
        assert!(is_senders(&from));
        let mut buf = task_io::ReadBuf::new(&mut to);
        let from = poll_fn(|cx| receiver.poll_recv_from(cx, &mut buf)).await;
        assert!(is_senders(&from.unwrap()));
        drop(sender);

        let listener = UnixListener::bind(abstract_name("accepts")).unwrap();
        let client = UnixSocket::new_stream().unwrap();
        client.bind(&name).unwrap();
        let _client = client.connect(abstract_name("accepts")).await.unwrap();
        assert!(is_senders(&listener.accept().await.unwrap().1));
    });
}

/// Fails if a path is cut off at a zero byte.
#[test]
fn path_with_a_zero_byte_inside_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let mut cut = path.clone().into_os_string();
    cut.push("\0b");
    run(async {
        let _listener = UnixListener::bind(&path).unwrap();
        let connect = UnixStream::connect(&cut).await.map(drop);
        let bind = UnixListener::bind(&cut).map(drop);
        let sender = UnixDatagram::unbound().unwrap();
        let send = sender.send_to(b"a", &cut).await.map(drop);
        for error in [connect, bind, send] {
            assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidInput);
        }
    });
}

/// Fails if a socket that is not connected yet refuses an abstract name, or cuts a path off at a
/// zero byte.
#[test]
fn unix_socket_takes_the_names_that_a_stream_takes() {
    let name = abstract_name("socket");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let mut cut = path.clone().into_os_string();
    cut.push("\0b");
    run(async {
        let new = || UnixSocket::new_stream().unwrap();
        let socket = new();
        socket.bind(&name).unwrap();
        let listener = socket.listen(1).unwrap();
        let _client = new().connect(&name).await.unwrap();
        listener.accept().await.unwrap();

        let _listener = UnixListener::bind(&path).unwrap();
        let connect = new().connect(&cut).await.map(drop);
        for error in [new().bind(&cut), connect] {
            assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidInput);
        }
    });
}

#[test]
fn unix_datagrams_arrive_one_by_one_and_whole() {
    run(async {
        let (one, other) = UnixDatagram::pair().unwrap();
        let mut to = [0; 8];
        for _ in 0..100 {
            one.send(b"abc").await.unwrap();
            one.send(b"").await.unwrap();
            assert_eq!(other.recv(&mut to).await.unwrap(), 3);
            assert_eq!(other.recv(&mut to).await.unwrap(), 0);
        }
        // Sends until there is no room. Then a send waits for a receive.
        let mut sent = 0;
        while one.try_send(b"abc").is_ok() {
            sent += 1;
        }
        let send = one.send(b"last");
        let receive = async {
            for _ in 0..sent {
                assert_eq!(other.recv(&mut to).await.unwrap(), 3);
            }
            assert_eq!(other.recv(&mut to).await.unwrap(), 4);
        };
        futures_lite::future::zip(async { send.await.unwrap() }, receive).await;
    });
}

#[test]
fn every_waiter_of_a_shared_descriptor_is_woken() {
    let workers = Workers::new(2);
    workers.block_on(async {
        let (one, mut other) = net::UnixStream::pair().unwrap();
        one.set_nonblocking(true).unwrap();
        let one = Arc::new(AsyncFd::new(one).unwrap());
        let (ready, waits) = async_channel::unbounded();
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let (one, ready) = (one.clone(), ready.clone());
                workers.spawn(async move {
                    let mut wait = Box::pin(one.readable());
                    assert!(futures_lite::future::poll_once(&mut wait).await.is_none());
                    ready.send(()).await.unwrap();
                    wait.await.unwrap().retain_ready();
                })
            })
            .collect();
        for _ in 0..8 {
            waits.recv().await.unwrap();
        }
        // One of the tasks gives up.
        let mut tasks = tasks.into_iter();
        tasks.next().unwrap().cancel().await;
        other.write_all(b"x").unwrap();
        for task in tasks {
            task.await;
        }
    });
}

#[test]
fn readers_that_share_a_descriptor_get_each_byte_once() {
    let workers = Workers::new(2);
    workers.block_on(async {
        let (one, mut other) = net::UnixStream::pair().unwrap();
        one.set_nonblocking(true).unwrap();
        let one = Arc::new(AsyncFd::new(one).unwrap());
        let tasks: Vec<_> = (0..4)
            .map(|_| {
                let one = one.clone();
                workers.spawn(async move {
                    let mut got = Vec::new();
                    loop {
                        let mut byte = [0];
                        let read = one.async_io(Interest::READABLE, |mut one| one.read(&mut byte));
                        if read.await.unwrap() == 0 {
                            return got;
                        }
                        got.push(byte[0]);
                    }
                })
            })
            .collect();
        for byte in 0..200 {
            other.write_all(&[byte]).unwrap();
        }
        drop(other);
        let mut all = Vec::new();
        for task in tasks {
            all.extend(task.await);
        }
        all.sort_unstable();
        assert!(all == (0..200).collect::<Vec<u8>>());
    });
}

#[test]
fn end_of_a_pipe_wakes_its_waiter() {
    run(async {
        let (write, read) = pipe::pipe().unwrap();
        let mut read = AsyncFd::new(File::from(read.into_nonblocking_fd().unwrap())).unwrap();
        let write = AsyncFd::new(File::from(write.into_nonblocking_fd().unwrap())).unwrap();
        let mut to = [0; 4];
        write
            .async_io(Interest::WRITABLE, |mut pipe| pipe.write(b"ab"))
            .await
            .unwrap();
        let count = read.async_io_mut(Interest::READABLE, |pipe| pipe.read(&mut to));
        assert_eq!(count.await.unwrap(), 2);
        let closer = thread::spawn(move || drop(write));
        let count = read.async_io_mut(Interest::READABLE, |pipe| pipe.read(&mut to));
        assert_eq!(count.await.unwrap(), 0);
        closer.join().unwrap();
    });
}

#[test]
fn file_is_refused_and_leaves_no_source() {
    let driver = Driver::new(1);
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    let error = driver.scope(None, || AsyncFd::new(file)).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EPERM));
    assert_eq!(driver.sources(), 0);
}

/// Fails if a number that is no descriptor panics, or leaves its place in the driver occupied.
#[test]
fn number_of_no_descriptor_is_refused_and_leaves_no_source() {
    let driver = Driver::new(1);
    let _entered = driver.enter(None);
    for number in [-1, RawFd::MIN, RawFd::MAX] {
        // SAFETY: nothing is registered. The call fails, as no descriptor has this number.
        let error = unsafe { AsyncFd::register(number) }.unwrap_err();
        let (back, cause) = error.into_parts();
        assert_eq!((back, cause.raw_os_error()), (number, Some(libc::EBADF)));
        assert_eq!(driver.sources(), 0);
    }
}

/// Fails if the operation is called twice, or if its error clears the readiness. Also fails if the
/// error `WouldBlock` is not the operation's own, or leaves the readiness.
#[test]
fn async_fd_try_io_returns_the_error_of_its_one_call() {
    run(async {
        let (one, _other) = net::UnixStream::pair().unwrap();
        one.set_nonblocking(true).unwrap();
        let one = AsyncFd::new(one).unwrap();
        for error in [libc::EINTR, libc::EAGAIN] {
            one.writable().await.unwrap().retain_ready();
            let fails = |_: &_| Err::<(), _>(io::Error::from_raw_os_error(error));
            let failed = one.try_io(Interest::WRITABLE, fails).unwrap_err();
            assert_eq!(failed.raw_os_error(), Some(error));
            let ready = future::poll_once(one.writable()).await;
            assert_eq!(ready.is_some(), error == libc::EINTR);
        }
        let mut one = AsyncFd::new(one.into_inner()).unwrap();
        one.writable_mut().await.unwrap().retain_ready();
        let fails = |_: &mut _| Err::<(), _>(io::Error::from_raw_os_error(libc::EINTR));
        let failed = one.try_io_mut(Interest::WRITABLE, fails).unwrap_err();
        assert_eq!(failed.raw_os_error(), Some(libc::EINTR));
        assert!(future::poll_once(one.writable()).await.is_some());
    });
}

/// Fails if `Interrupted`, which is the operation's own, does not end the call.
#[test]
fn async_io_returns_interrupted_of_its_one_call() {
    run(async {
        let (one, _other) = UnixStream::pair().unwrap();
        let mut op = Interrupted::default();
        let failed = one.async_io(Interest::WRITABLE, || op.call()).await;
        op.assert_returned(failed);

        let (one, _other) = net::UnixStream::pair().unwrap();
        one.set_nonblocking(true).unwrap();
        let mut one = AsyncFd::new(one).unwrap();
        let mut op = Interrupted::default();
        let failed = one.async_io(Interest::WRITABLE, |_| op.call()).await;
        op.assert_returned(failed);
        let mut op = Interrupted::default();
        let failed = one.async_io_mut(Interest::WRITABLE, |_| op.call()).await;
        op.assert_returned(failed);
        assert!(future::poll_once(one.writable()).await.is_some());
    });
}

/// An operation that a signal interrupts each time. It panics if it is called twice.
#[derive(Default)]
struct Interrupted {
    calls: u32,
}

impl Interrupted {
    fn call(&mut self) -> io::Result<()> {
        self.calls += 1;
        assert_eq!(self.calls, 1, "the operation is repeated");
        Err(ErrorKind::Interrupted.into())
    }

    fn assert_returned(&self, failed: io::Result<()>) {
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::Interrupted);
        assert_eq!(self.calls, 1);
    }
}

#[test]
fn sockets_over_another_parker_have_a_poller() {
    use worker_idle::park::{Park, ThreadPark};

    let mut thread_park = ThreadPark::new();
    let waker = thread_park.waker();
    let driver = Driver::with_wakers([waker.clone()]);
    let mut timers = driver.timers(0);
    let (one, mut other) = net::UnixStream::pair().unwrap();
    driver.scope(Some(0), || {
        let mut one = UnixStream::from_std(one).unwrap();
        let mut to = [0; 4];
        let mut read = Box::pin(one.read_exact(&mut to));
        let mut cx = std::task::Context::from_waker(&waker);
        let writer = thread::spawn(move || other.write_all(b"abcd").map(|()| other));
        while read.as_mut().poll(&mut cx).is_pending() {
            let mut park = timers.over(&mut thread_park);
            park.park();
            park.deliver();
        }
        drop(read);
        assert_eq!(&to, b"abcd");
        writer.join().unwrap().unwrap();
    });
}

#[test]
fn task_that_wakes_itself_lets_the_sockets_be_polled() {
    run(async {
        let (one, mut other) = UnixStream::pair().unwrap();
        let mut wait = Box::pin(async {
            one.readable().await.unwrap();
            let mut to = [0; 1];
            while one.try_read(&mut to).is_err() {
                one.readable().await.unwrap();
            }
        });
        other.write_all(b"x").await.unwrap();
        std::future::poll_fn(|cx| {
            // This wake leaves a token, so each park of the thread returns at once.
            cx.waker().wake_by_ref();
            wait.as_mut().poll(cx)
        })
        .await;
    });
}

#[test]
fn other_thread_polls_while_the_workers_are_in_long_polls() {
    let driver = Driver::new(1);
    let mut park = driver.park(0);
    park.block_on(async {
        let (one, mut other) = UnixStream::pair().unwrap();
        let (ready, woken) = async_channel::bounded::<()>(1);
        let mut read = Box::pin(one.readable());
        let waker = std::task::Waker::from(Arc::new(Ring(ready)));
        let mut cx = std::task::Context::from_waker(&waker);
        // A read clears the first readiness.
        assert!(one.try_read(&mut [0; 1]).is_err());
        assert!(read.as_mut().poll(&mut cx).is_pending());
        other.write_all(b"x").await.unwrap();
        // This worker does not come back to its park. Another thread looks for events instead.
        let watched = driver.clone();
        let monitor = thread::spawn(move || {
            while watched.poll_overdue(Duration::ZERO) == 0 {
                thread::yield_now();
            }
        });
        woken.recv_blocking().unwrap();
        monitor.join().unwrap();
    });
}

/// Fails if the time for which events must have been due is added to another one without a check.
#[test]
fn timer_is_never_overdue_by_an_endless_time() {
    let driver = Driver::new(1);
    let hour = Duration::from_secs(3_600);
    let mut sleep = Box::pin(time::sleep(hour));
    let mut cx = Context::from_waker(Waker::noop());
    driver.scope(None, || assert!(sleep.as_mut().poll(&mut cx).is_pending()));
    assert!(driver.until_overdue(Duration::ZERO).unwrap() <= hour);
    assert!(driver.until_overdue(Duration::MAX).unwrap() > 1_000_000 * hour);
    assert_eq!(driver.poll_overdue(Duration::MAX), 0);
}

/// Fails if a look of another thread swallows the unpark of a worker that waits in the kernel's
/// poller: the worker would then wait forever.
#[test]
fn unpark_beside_looks_of_another_thread_ends_the_wait() {
    let driver = Driver::new(1);
    let _pipe = driver.scope(None, || net_driver::net::unix::pipe::pipe().unwrap());
    let (ended, ends) = mpsc::channel();
    let mut park = driver.park(0);
    park.park(); // Takes the token of the first socket.
    let waker = park.waker();
    let looks = AtomicBool::new(true);
    thread::scope(|scope| {
        scope.spawn(|| {
            while looks.load(Relaxed) {
                driver.poll_overdue(Duration::ZERO);
            }
        });
        scope.spawn(move || {
            for _ in 0..1000 {
                park.park();
                ended.send(()).unwrap();
            }
        });
        for round in 0..1000 {
            // The other thread looks for events when no thread has done so for 100 us. The unpark
            // comes at about such a time.
            thread::sleep(Duration::from_micros(50 + round % 100));
            waker.wake_by_ref();
            ends.recv().unwrap();
        }
        looks.store(false, Relaxed);
    });
}

/// A waker that sends a message when it is woken.
struct Ring(async_channel::Sender<()>);

impl std::task::Wake for Ring {
    fn wake(self: Arc<Self>) {
        let _ = self.0.try_send(());
    }
}

#[test]
fn second_async_fd_of_a_descriptor_is_refused() {
    run(async {
        let (one, mut other) = net::UnixStream::pair().unwrap();
        one.set_nonblocking(true).unwrap();
        let first = AsyncFd::new(one.as_fd()).unwrap();
        let second = AsyncFd::new(one.as_fd());
        assert_eq!(second.unwrap_err().kind(), ErrorKind::AlreadyExists);
        other.write_all(b"x").unwrap();
        let limit = Duration::from_secs(20);
        let waited = time::timeout(limit, first.readable()).await;
        assert!(waited.is_ok(), "the first one's events went elsewhere");
        drop(first);
        // SAFETY: the stream stays open until the end of the registration.
        let third = unsafe { AsyncFd::register(one.as_raw_fd()) }.unwrap();
        assert_eq!(third.into_inner(), one.as_raw_fd());
    });
}

/// Makes sockets in a driver with a current scope, and ends the driver.
fn after_the_shutdown<R>(make: impl FnOnce() -> R) -> R {
    let driver = Driver::new(1);
    let made = driver.scope(None, make);
    driver.shutdown();
    made
}

/// Fails if bytes that a stream has received are lost when the driver ends, or if a read without
/// bytes is no error then.
#[test]
fn try_read_after_the_shutdown_returns_received_bytes() {
    let (one, other) = after_the_shutdown(|| UnixStream::pair().unwrap());
    assert_eq!(other.try_write(b"ab").unwrap(), 2);
    let mut to = [0; 8];
    assert_eq!(one.try_read(&mut to[..1]).unwrap(), 1);
    assert_eq!(one.try_read(&mut to).unwrap(), 1);
    let error = one.try_read(&mut to).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    // No event comes any more, so the kernel is asked again.
    other.try_write(b"c").unwrap();
    assert_eq!(one.try_read(&mut to).unwrap(), 1);
    let error = future::block_on(one.readable()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Other, "this would wait");
}

/// Fails if a datagram that has come is lost when the driver ends.
#[test]
fn try_recv_after_the_shutdown_returns_a_datagram() {
    let udp = after_the_shutdown(|| future::block_on(UdpSocket::bind("127.0.0.1:0")).unwrap());
    let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.send_to(b"ab", udp.local_addr().unwrap()).unwrap();
    let mut to = [0; 8];
    // A datagram on the loopback is in the queue once it was sent.
    assert_eq!(udp.try_recv_from(&mut to).unwrap().0, 2);

    let (one, other) = after_the_shutdown(|| UnixDatagram::pair().unwrap());
    one.try_send(b"abc").unwrap();
    assert_eq!(other.try_recv(&mut to).unwrap(), 3);
}

/// Fails if bytes in a pipe, or those of a stream of other code, are lost when the driver ends.
#[test]
fn pipe_after_the_shutdown_returns_received_bytes() {
    let (sender, receiver) = after_the_shutdown(|| net_driver::net::unix::pipe::pipe().unwrap());
    sender.try_write(b"ab").unwrap();
    assert_eq!(receiver.try_read(&mut [0; 8]).unwrap(), 2);

    let (read, mut write) = std::os::unix::net::UnixStream::pair().unwrap();
    write.write_all(b"ab").unwrap();
    let read = after_the_shutdown(|| AsyncFd::new(read).unwrap());
    let count = read.try_io(Interest::READABLE, |mut stream| stream.read(&mut [0; 8]));
    assert_eq!(count.unwrap(), 2);
}
