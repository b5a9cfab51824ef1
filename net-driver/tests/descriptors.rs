//! A test that counts the descriptors of the process, and limits them. It is the only test in this
//! file, as another test in the same process would open descriptors of its own.
#![cfg(target_os = "linux")]
mod support;

use net_driver::{
    Driver, WorkerPark,
    net::{TcpListener, TcpSocket, TcpStream, UdpSocket, UnixStream},
    time,
};
use std::{
    cell::Cell,
    future::{Future, poll_fn},
    net,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};
use support::descriptors;

#[test]
fn descriptors_are_returned_and_their_end_is_survived() {
    nothing_is_opened_before_the_first_socket();
    many_connections_at_once_leave_none();
    dropped_socket_of_std_leaves_the_poller_despite_its_clone();
    accept_without_descriptors_reports_once_and_waits();
    accept_without_descriptors_ends_at_the_shutdown();
    #[cfg(feature = "test-util")]
    accept_without_descriptors_waits_by_the_clock_of_its_driver();
}

fn nothing_is_opened_before_the_first_socket() {
    let before = descriptors();
    let driver = Driver::new(4);
    let mut park = driver.park(0);
    park.block_on(time::sleep(Duration::from_millis(1)));
    assert_eq!(descriptors(), before);
    driver.scope(None, || UnixStream::pair().map(drop)).unwrap();
    // On Linux the portable poller also has a timer, beside the poller and its wake.
    let own = if cfg!(selvedge_polling) { 3 } else { 2 };
    assert_eq!(descriptors(), before + own, "the poller and its wake");
    drop((park, driver));
    assert_eq!(descriptors(), before);
}

/// Sets how many descriptors the process may have.
fn limit(descriptors: libc::rlim_t) {
    // SAFETY: all zeroes are a valid value of a plain C structure.
    let mut limits: libc::rlimit = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is valid for the call.
    let got = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limits) };
    assert_eq!(got, 0);
    limits.rlim_cur = descriptors.min(limits.rlim_max);
    // SAFETY: the pointer is valid for the call.
    let set = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limits) };
    assert_eq!(set, 0);
}

fn many_connections_at_once_leave_none() {
    limit(20_000);
    let before = descriptors();
    let driver = Driver::new(1);
    let mut park = driver.park(0);
    park.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        for _ in 0..2 {
            let mut streams = Vec::new();
            while streams.len() < 8_000 {
                streams.push(TcpStream::connect(at).await.unwrap());
                streams.push(listener.accept().await.unwrap().0);
            }
            assert_eq!(driver.sources(), 8_001);
            drop(streams);
            assert_eq!(driver.sources(), 1);
        }
        for _ in 0..1_000 {
            let (one, other) = UnixStream::pair().unwrap();
            let (read, write) = one.into_split();
            drop((read, other.into_std().unwrap(), write));
            UdpSocket::bind("127.0.0.1:0").await.unwrap();
        }
    });
    drop((park, driver));
    assert_eq!(descriptors(), before);
}

/// Counts the descriptors in the kernel's pollers of this process.
fn polled() -> usize {
    let pollers = std::fs::read_dir("/proc/self/fdinfo").unwrap();
    let polled_by = |poller: std::fs::DirEntry| {
        // The descriptor of the folder itself is closed by now.
        let info = std::fs::read_to_string(poller.path()).unwrap_or_default();
        info.lines().filter(|line| line.starts_with("tfd:")).count()
    };
    pollers.map(|poller| polled_by(poller.unwrap())).sum()
}

fn dropped_socket_of_std_leaves_the_poller_despite_its_clone() {
    let of_std = || {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
        let socket = net::TcpStream::from(socket.unwrap());
        let clone = socket.try_clone().unwrap();
        (TcpSocket::from_std_stream(socket), clone)
    };
    Driver::new(1).park(0).block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let before = polled();

        let (socket, _clone) = of_std();
        let stream = socket.connect(at).await.unwrap();
        assert_eq!(polled(), before + 1);
        drop(stream);
        assert_eq!(polled(), before);

        let (socket, _clone) = of_std();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(8).unwrap();
        assert_eq!(polled(), before + 1);
        drop(listener);
        assert_eq!(polled(), before);

        // `into_std` takes a socket of this crate out, before it is duplicated.
        let stream = TcpStream::connect(at).await.unwrap();
        assert_eq!(polled(), before + 1);
        let stream = stream.into_std().unwrap();
        assert_eq!(polled(), before);
        drop((stream.try_clone().unwrap(), stream));
    });
}

fn accept_without_descriptors_reports_once_and_waits() {
    let driver = Driver::new(1);
    driver.clone().park(0).block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let _clients: Vec<_> = (0..3)
            .map(|_| net::TcpStream::connect(at).unwrap())
            .collect();
        // Three connections wait, and no descriptor is free for any of them.
        let taken: Vec<_> = fill();
        let error = listener.accept().await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EMFILE));

        let polls = Cell::new(0);
        let mut accept = pin!(listener.accept());
        let counted = poll_fn(|cx| {
            polls.set(polls.get() + 1);
            accept.as_mut().poll(cx)
        });
        let waited = time::timeout(Duration::from_millis(100), counted).await;
        assert!(waited.is_err(), "no further report while the state lasts");
        assert!(polls.get() < 20, "{} polls: it spins", polls.get());
        drop(taken);
        // The accept continues by itself, without another connection or event.
        poll_fn(|cx| match accept.as_mut().poll(cx) {
            Poll::Ready(accepted) => Poll::Ready(accepted.map(drop)),
            Poll::Pending => Poll::Pending,
        })
        .await
        .unwrap();
        listener.accept().await.unwrap();
        // The next shortage of descriptors is reported again.
        let _taken = fill();
        let error = listener.accept().await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
    });
}

/// Returns a listener whose `accept` has returned the error once, its waiting client, and the
/// descriptors that take all numbers.
fn without_descriptors(park: &mut WorkerPark) -> (TcpListener, net::TcpStream, Vec<std::fs::File>) {
    let listener = park.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let client = net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let taken = fill();
    let error = park.block_on(listener.accept()).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
    (listener, client, taken)
}

/// Shuts a driver down while an `accept` waits for descriptors. Fails if the `accept` panics, as a
/// sleep of the user does.
fn accept_without_descriptors_ends_at_the_shutdown() {
    let driver = Driver::new(1);
    let mut park = driver.park(0);
    let (listener, _client, taken) = without_descriptors(&mut park);
    let mut cx = Context::from_waker(Waker::noop());
    let mut accept = pin!(listener.accept());
    assert!(accept.as_mut().poll(&mut cx).is_pending(), "it waits");
    let mut poll_accept = || listener.poll_accept(&mut cx);
    assert!(poll_accept().is_pending(), "it waits");
    driver.shutdown();
    assert!(matches!(poll_accept(), Poll::Ready(Err(_))));
    assert!(matches!(accept.as_mut().poll(&mut cx), Poll::Ready(Err(_))));
    drop(taken);
}

/// The clock of the listener's driver is ahead of the system's, and `accept` is polled without a
/// current driver. Fails if the system's clock says when a wait ends.
#[cfg(feature = "test-util")]
fn accept_without_descriptors_waits_by_the_clock_of_its_driver() {
    let driver = Driver::new(1);
    driver.pause();
    let _hold = driver.hold_clock();
    let mut park = driver.park(0);
    let advance = |span| driver.block_on(time::advance(span));
    // The longest wait is longer, so that the wrong clock does not make this test hang.
    advance(Duration::from_millis(500));
    let (listener, _client, taken) = without_descriptors(&mut park);
    let mut cx = Context::from_waker(Waker::noop());
    let mut accept = pin!(listener.accept());
    assert!(accept.as_mut().poll(&mut cx).is_pending());
    drop(taken);
    advance(Duration::from_millis(4));
    assert!(accept.as_mut().poll(&mut cx).is_pending());
    advance(Duration::from_millis(1));
    assert!(matches!(accept.as_mut().poll(&mut cx), Poll::Ready(Ok(_))));
}

/// Opens descriptors until no further one can be opened.
fn fill() -> Vec<std::fs::File> {
    limit(descriptors() as libc::rlim_t + 8);
    let mut taken = Vec::new();
    loop {
        match std::fs::File::open("/dev/null") {
            Ok(file) => taken.push(file),
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(libc::EMFILE), "{error}");
                return taken;
            }
        }
    }
}
