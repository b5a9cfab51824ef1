//! Tests of `UnixDatagram::send_to` while the queue of the receiver, or the sender's own buffer, is
//! full, and of `UdpSocket::send_to` with a name.
#![cfg(target_os = "linux")]
mod support;

use futures_lite::future;
use net_driver::{
    Driver,
    net::{UdpSocket, UnixDatagram},
};
use std::{
    future::{Future, poll_fn},
    io::ErrorKind,
    net::ToSocketAddrs,
    os::unix::net,
    path::{Path, PathBuf},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
    time::{Duration, Instant},
};
use support::{Workers, run};
use tempfile::TempDir;
use worker_idle::park::Park;

/// A waker that counts its wakes.
#[derive(Default)]
struct Count(AtomicUsize);

impl Count {
    fn wakes(&self) -> usize {
        self.0.load(SeqCst)
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// Makes a receiver in a new folder. Returns its path, too.
fn bind() -> (TempDir, PathBuf, net::UnixDatagram) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let receiver = net::UnixDatagram::bind(&path).unwrap();
    receiver.set_nonblocking(true).unwrap();
    (folder, path, receiver)
}

/// Fills the queue of the receiver at `path`. A sender has room for some datagrams only, so several
/// senders may be necessary.
fn fill(path: &Path) {
    loop {
        let sender = net::UnixDatagram::unbound().unwrap();
        sender.set_nonblocking(true).unwrap();
        let sends = std::iter::from_fn(|| sender.send_to(b"x", path).ok());
        if sends.count() == 0 {
            return;
        }
    }
}

/// Receives all datagrams.
fn drain(receiver: &net::UnixDatagram) {
    while receiver.recv(&mut [0; 8]).is_ok() {}
}

/// Polls a future some times. The future must not end.
async fn poll_times(mut future: Pin<&mut impl Future>, times: u32) {
    let mut polls = 0;
    future::poll_fn(|cx| {
        assert!(future.as_mut().poll(cx).is_pending());
        polls += 1;
        if polls < times {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
}

/// The datagrams in the queue are those of other senders, so a receive makes no event for this one.
/// Fails if the event of each failed call lets the task try again at once.
#[test]
fn send_to_a_full_queue_tries_again_after_pauses() {
    let workers = Workers::new(1);
    // An executor polls a task only after a wake.
    let task = workers.spawn(async move {
        let (_folder, path, receiver) = bind();
        fill(&path);
        let sender = UnixDatagram::unbound().unwrap();
        let mut send = pin!(sender.send_to(b"last", &path));
        let begun = Instant::now();
        poll_times(send.as_mut(), 12).await;
        // The first three polls may come at once. Pauses of 0.4, 0.8, 1.6 ms and so on end before
        // the others, and no pause ends early.
        assert!(begun.elapsed() > Duration::from_millis(50), "it spins");
        drain(&receiver);
        assert_eq!(send.await.unwrap(), 4);
        assert_eq!(receiver.recv(&mut [0; 8]).unwrap(), 4);
    });
    workers.block_on(task);
}

/// The same for the method that polls, whose state is in the socket. Fails if a poll forgets the
/// pause of the poll before.
#[test]
fn polled_send_to_a_full_queue_tries_again_after_pauses() {
    let workers = Workers::new(1);
    let task = workers.spawn(async move {
        let (_folder, path, receiver) = bind();
        fill(&path);
        let sender = UnixDatagram::unbound().unwrap();
        let mut send = pin!(poll_fn(|cx| sender.poll_send_to(cx, b"last", &path)));
        let begun = Instant::now();
        poll_times(send.as_mut(), 12).await;
        assert!(begun.elapsed() > Duration::from_millis(50), "it spins");
        drain(&receiver);
        assert_eq!(send.await.unwrap(), 4);
        assert_eq!(receiver.recv(&mut [0; 8]).unwrap(), 4);
        // The next send begins anew.
        let mut cx = Context::from_waker(Waker::noop());
        let sent = sender.poll_send_to(&mut cx, b"next", &path);
        assert!(matches!(sent, Poll::Ready(Ok(4))));
    });
    workers.block_on(task);
}

/// The sender is connected to a socket with a full queue, and so the kernel reports no event. Hangs
/// if a send to another full queue waits for one.
#[test]
fn send_to_beside_a_full_connected_queue_tries_again() {
    let (_folder, path, receiver) = bind();
    let (_folder, connected, _connected) = bind();
    fill(&path);
    fill(&connected);
    run(async {
        let sender = UnixDatagram::unbound().unwrap();
        sender.connect(&connected).unwrap();
        let mut send = pin!(sender.send_to(b"last", &path));
        assert!(future::poll_once(send.as_mut()).await.is_none());
        let error = sender.try_send(b"x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        let mut to = [0; 8];
        assert_eq!(receiver.recv(&mut to).unwrap(), 1);
        assert_eq!(send.await.unwrap(), 4);
        // The readiness is clear now, and the next send does not wait for it.
        assert_eq!(receiver.recv(&mut to).unwrap(), 1);
        assert_eq!(sender.send_to(b"next", &path).await.unwrap(), 4);
    });
}

/// Shuts the driver down while a send waits for an event or a pause, and while it waits for a pause
/// alone. Fails if the shutdown does not wake the task, or if a later send succeeds.
#[test]
fn send_to_a_full_queue_ends_at_the_shutdown() {
    let (_folder, path, receiver) = bind();
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let mut cx = Context::from_waker(&waker);
    for failures in 1..=2 {
        fill(&path);
        let driver = Driver::new(1);
        let mut park = driver.park(0);
        let sender = driver.scope(None, UnixDatagram::unbound).unwrap();
        let mut send = pin!(sender.send_to(b"last", &path));
        for _ in 0..failures {
            // The event of the first failure ends the first wait.
            park.park_timeout(Duration::ZERO);
            park.deliver();
            assert!(send.as_mut().poll(&mut cx).is_pending());
        }
        let before = count.wakes();
        driver.shutdown();
        assert!(count.wakes() > before, "the shutdown wakes the task");
        drain(&receiver);
        assert!(matches!(send.as_mut().poll(&mut cx), Poll::Ready(Err(_))));
        park.block_on(sender.send_to(b"last", &path)).unwrap_err();
    }
}

/// Sends datagrams until the sender's own buffer is full. Each of them needs much of that buffer,
/// so the queue of the receiver still has room.
#[cfg(feature = "test-util")]
fn fill_buffer(sender: &UnixDatagram, path: &Path) -> std::io::Error {
    let socket = socket2::SockRef::from(sender);
    socket.set_send_buffer_size(100_000).unwrap();
    loop {
        if let Err(error) = sender.try_send_to(&[0; 60_000], path) {
            return error;
        }
    }
}

/// The clock stands still, so only an event can end the pause.
#[cfg(feature = "test-util")]
#[test]
fn event_of_the_own_buffer_ends_the_pause_of_send_to() {
    let (_folder, path, receiver) = bind();
    let driver = Driver::new(1);
    driver.pause();
    let _hold = driver.hold_clock();
    let mut park = driver.park(0);
    let sender = driver.scope(None, UnixDatagram::unbound).unwrap();
    park.block_on(sender.writable()).unwrap();
    assert_eq!(fill_buffer(&sender, &path).kind(), ErrorKind::WouldBlock);
    let other = net::UnixDatagram::unbound().unwrap();
    assert_eq!(other.send_to(b"x", &path).unwrap(), 1, "the queue has room");
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let mut cx = Context::from_waker(&waker);
    let mut send = pin!(sender.send_to(&[1; 60_000], &path));
    assert!(send.as_mut().poll(&mut cx).is_pending());
    park.park_timeout(Duration::ZERO);
    park.deliver();
    assert_eq!(count.wakes(), 0, "a full buffer makes no event");
    drain(&receiver);
    park.park_timeout(Duration::ZERO);
    park.deliver();
    assert_eq!(count.wakes(), 1);
    assert!(matches!(
        send.as_mut().poll(&mut cx),
        Poll::Ready(Ok(60_000))
    ));
}

/// The clock of the sender's driver is ahead of the system's, and the task is polled without a
/// current driver. Fails if the system's clock says when the pause ends.
#[cfg(feature = "test-util")]
#[test]
fn pause_of_send_to_has_the_clock_of_the_sockets_driver() {
    use net_driver::time;

    let (_folder, path, receiver) = bind();
    fill(&path);
    let driver = Driver::new(1);
    driver.pause();
    let advance = |span| driver.block_on(time::advance(span));
    // The longest pause is longer, so that the wrong clock does not make this test hang.
    advance(Duration::from_millis(30));
    let sender = driver.scope(None, UnixDatagram::unbound).unwrap();
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let mut cx = Context::from_waker(&waker);
    let mut send = pin!(sender.send_to(b"last", &path));
    assert!(send.as_mut().poll(&mut cx).is_pending());
    drain(&receiver);
    advance(Duration::from_micros(99));
    assert_eq!(count.wakes(), 0);
    advance(Duration::from_micros(1));
    assert_eq!(count.wakes(), 1);
    assert!(matches!(send.as_mut().poll(&mut cx), Poll::Ready(Ok(4))));
}

#[test]
fn datagram_to_a_name_goes_to_its_first_address() {
    run(async {
        let mut found = ("localhost", 0).to_socket_addrs().unwrap();
        let any_port = found.next().unwrap();
        let Ok(receiver) = UdpSocket::bind(any_port).await else {
            println!("skipped: this machine has no {any_port}");
            return;
        };
        let sender = UdpSocket::bind(any_port).await.unwrap();
        let port = receiver.local_addr().unwrap().port();
        sender.send_to(b"pair", ("localhost", port)).await.unwrap();
        let text = format!("localhost:{port}");
        sender.send_to(b"text", text.as_str()).await.unwrap();
        let mut to = [0; 8];
        for expected in [b"pair", b"text"] {
            let (len, from) = receiver.recv_from(&mut to).await.unwrap();
            assert_eq!(&to[..len], expected);
            assert_eq!(from, sender.local_addr().unwrap());
        }
    });
}
