//! Tests of `AsyncFd`: its guards, and numbers that pass from one owner of a descriptor to another.
#![cfg(target_os = "linux")]
mod support;

use futures_lite::{AsyncReadExt, future};
use net_driver::{
    Driver, Interest, Ready,
    net::{AsyncFd, UnixStream},
};
use std::{
    io::{self, ErrorKind, Write},
    mem, net,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
        unix,
    },
    pin::pin,
    task::{Context, Waker},
    thread,
};
use support::{in_time, run};

fn would_block() -> io::Result<()> {
    Err(ErrorKind::WouldBlock.into())
}

fn any_pair() -> (OwnedFd, unix::net::UnixStream) {
    let (one, other) = unix::net::UnixStream::pair().unwrap();
    one.set_nonblocking(true).unwrap();
    (one.into(), other)
}

/// Fails if a guard shows states that it has cleared.
#[test]
fn guard_shows_no_state_that_it_has_cleared() {
    run(async {
        let (one, mut other) = unix::net::UnixStream::pair().unwrap();
        one.set_nonblocking(true).unwrap();
        other.write_all(b"a").unwrap();
        let mut one = AsyncFd::new(one).unwrap();
        let both = Interest::READABLE | Interest::WRITABLE;
        one.readable().await.unwrap().retain_ready();
        let mut guard = one.ready(both).await.unwrap();
        assert_eq!(guard.ready(), Ready::READABLE | Ready::WRITABLE);
        guard.clear_ready_matching(Ready::READABLE);
        assert_eq!(guard.ready(), Ready::WRITABLE);
        guard.clear_ready();
        assert_eq!(guard.ready(), Ready::EMPTY);
        other.write_all(b"a").unwrap();
        one.readable().await.unwrap().retain_ready();
        let mut guard = one.ready_mut(both).await.unwrap();
        assert_eq!(guard.ready(), Ready::READABLE | Ready::WRITABLE);
        guard.clear_ready_matching(Ready::WRITABLE);
        assert_eq!(guard.ready(), Ready::READABLE);
        let failed = guard.try_io(|_| would_block());
        failed.unwrap_err();
        assert_eq!(guard.ready(), Ready::EMPTY);
    });
}

/// A guard's operation swaps two `AsyncFd`s, and says "would block". Fails if the guard clears the
/// readiness of the other one.
#[test]
fn guard_of_a_swapped_async_fd_clears_nothing() {
    run(async {
        let mut peers = Vec::new();
        let mut made = || {
            let (one, peer) = any_pair();
            peers.push(peer);
            AsyncFd::new(one).unwrap()
        };
        let (mut first, mut second) = (made(), made());
        second.writable().await.unwrap().retain_ready();
        let mut guard = first.writable_mut().await.unwrap();
        let failed = guard.try_io(|first| {
            mem::swap(first, &mut second);
            would_block()
        });
        failed.unwrap_err();
        in_time("writable", first.writable())
            .await
            .unwrap()
            .retain_ready();
    });
}

/// Duplicates a descriptor. The duplicate has this number, or a higher one if this is in use.
fn duplicate_at(number: RawFd, fd: &OwnedFd) -> OwnedFd {
    // SAFETY: the call takes no pointers.
    let duplicate = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, number) };
    assert!(duplicate >= number);
    // SAFETY: the call has just opened the descriptor, and no other code knows it.
    unsafe { OwnedFd::from_raw_fd(duplicate) }
}

/// Moves a descriptor to a number that no other test uses. No duplicate is left.
fn moved_to(number: RawFd, fd: impl Into<OwnedFd>) -> OwnedFd {
    let moved = duplicate_at(number, &fd.into());
    assert_eq!(moved.as_raw_fd(), number, "the number is in use");
    moved
}

/// Makes two streams; the first one has this number, and is non-blocking.
fn pair_at(number: RawFd) -> (OwnedFd, unix::net::UnixStream) {
    let (one, other) = unix::net::UnixStream::pair().unwrap();
    one.set_nonblocking(true).unwrap();
    (moved_to(number, one), other)
}

/// Asserts that an event of the descriptor ends a wait.
async fn assert_registered<T>(fd: &AsyncFd<T>, peer: &mut unix::net::UnixStream) {
    in_time("writable", fd.writable())
        .await
        .unwrap()
        .retain_ready();
    let mut wait = pin!(fd.readable());
    assert!(future::poll_once(wait.as_mut()).await.is_none());
    peer.write_all(b"a").unwrap();
    in_time("readable", wait).await.unwrap().retain_ready();
}

/// An owner whose descriptor is replaced by safe code leaves its number to another owner.
#[test]
fn drop_after_a_swap_leaves_the_number_to_a_socket() {
    run(async {
        for ends_by_drop in [true, false] {
            let (one, _peer) = pair_at(801);
            let mut first = AsyncFd::new(one).unwrap();
            drop(mem::replace(first.get_mut(), any_pair().0));
            let (one, mut peer) = pair_at(801);
            let mut second = UnixStream::from_std(one.into()).unwrap();
            match ends_by_drop {
                true => drop(first),
                false => drop(first.into_inner()),
            }
            let mut to = [0; 1];
            let mut read = pin!(second.read_exact(&mut to));
            assert!(future::poll_once(read.as_mut()).await.is_none());
            peer.write_all(b"a").unwrap();
            in_time("the read of another socket", read).await.unwrap();
        }
    });
}

/// The same if the other owner is an `AsyncFd`.
#[test]
fn drop_after_a_swap_leaves_the_number_to_an_async_fd() {
    run(async {
        for ends_by_drop in [true, false] {
            let (one, _peer) = pair_at(811);
            let mut first = AsyncFd::new(one).unwrap();
            drop(mem::replace(first.get_mut(), any_pair().0));
            let (one, mut peer) = pair_at(811);
            let second = AsyncFd::new(one).unwrap();
            match ends_by_drop {
                true => drop(first),
                false => drop(first.into_inner()),
            }
            assert_registered(&second, &mut peer).await;
        }
    });
}

/// The same if the owner is replaced by its own guard's operation, and dropped by another thread.
#[test]
fn drop_after_a_swap_by_a_guard_leaves_the_number() {
    run(async {
        let (one, _peer) = pair_at(821);
        let mut first = AsyncFd::new(one).unwrap();
        let mut guard = first.writable_mut().await.unwrap();
        let swap = |first: &mut AsyncFd<OwnedFd>| {
            drop(mem::replace(first.get_mut(), any_pair().0));
            Ok(())
        };
        guard.try_io(swap).unwrap().unwrap();
        let (one, mut peer) = pair_at(821);
        let second = AsyncFd::new(one).unwrap();
        thread::spawn(|| drop(first)).join().unwrap();
        assert_registered(&second, &mut peer).await;
    });
}

/// The old number is free, but the old descriptor has a duplicate. Fails if the drop ends another
/// owner's registration, or if the leftover of the first one keeps an owner out.
#[test]
fn number_with_a_leftover_registration_is_taken_over() {
    run(async {
        let (one, mut peer) = pair_at(831);
        let mut first = AsyncFd::new(one).unwrap();
        let duplicate = first.get_ref().try_clone().unwrap();
        drop(mem::replace(first.get_mut(), any_pair().0));
        drop(first); // Its entry stays in the kernel: the number leads to no descriptor.
        let second = AsyncFd::new(moved_to(831, duplicate)).unwrap();
        assert_registered(&second, &mut peer).await;
    });
}

/// A socket is dropped while a duplicate is open, and the duplicate gets the socket's number.
#[test]
fn number_of_a_socket_with_a_duplicate_is_taken_over() {
    run(async {
        let listener = net_driver::net::TcpListener::bind("127.0.0.1:0")
            .await
            .unwrap();
        let (again, peer) = loop {
            let peer = net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (socket, _) = listener.accept().await.unwrap();
            let number = socket.as_raw_fd();
            let duplicate = moved_to(841, socket.as_fd().try_clone_to_owned().unwrap());
            drop(socket);
            let again = duplicate_at(number, &duplicate);
            // Another test may have taken the number as soon as it was free.
            if again.as_raw_fd() == number {
                break (again, peer);
            }
        };
        let second = AsyncFd::new(again).unwrap();
        let mut wait = pin!(second.readable());
        assert!(future::poll_once(wait.as_mut()).await.is_none());
        (&peer).write_all(b"a").unwrap();
        in_time("readable", wait).await.unwrap().retain_ready();
    });
}

/// Fails if the descriptor of a live socket can be registered once more, or if the refusal
/// disturbs the socket.
#[test]
fn async_fd_of_a_live_socket_is_refused_and_disturbs_nothing() {
    run(async {
        let (one, mut peer) = any_pair();
        let mut socket = UnixStream::from_std(one.into()).unwrap();
        for _ in 0..2 {
            let refused = AsyncFd::new(socket.as_fd()).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
        }
        let mut to = [0; 1];
        let mut read = pin!(socket.read_exact(&mut to));
        assert!(future::poll_once(read.as_mut()).await.is_none());
        peer.write_all(b"a").unwrap();
        in_time("the read of the socket", read).await.unwrap();
    });
}

/// Fails if a forgotten `AsyncFd` keeps its number from another descriptor.
#[test]
fn forgotten_async_fd_leaves_its_number_to_the_next_owner() {
    run(async {
        let (one, _peer) = pair_at(851);
        mem::forget(AsyncFd::<BorrowedFd<'_>>::new(one.as_fd()).unwrap());
        drop(one);
        let (one, mut peer) = pair_at(851);
        let second = AsyncFd::new(one).unwrap();
        assert_registered(&second, &mut peer).await;
        let one = second.into_inner();
        let mut socket = UnixStream::from_std(one.into()).unwrap();
        let mut read = pin!(async { socket.read(&mut [0; 1]).await });
        let read = in_time("read", read.as_mut()).await;
        assert_eq!(read.unwrap(), 1);
        peer.write_all(b"a").unwrap();
    });
}

/// Drops an `AsyncFd` after its driver's end, and in a waker that the driver calls.
#[test]
fn drop_after_the_drivers_end_and_in_a_waker_is_sound() {
    struct Holds(std::sync::Mutex<Option<AsyncFd<OwnedFd>>>);
    impl std::task::Wake for Holds {
        fn wake(self: std::sync::Arc<Self>) {
            drop(self.0.lock().unwrap().take());
        }
    }
    let driver = Driver::new(1);
    let (one, _peer) = any_pair();
    let waited = AsyncFd::new_in(&driver, one).unwrap();
    let held = AsyncFd::new_in(&driver, any_pair().0).unwrap();
    let holds = std::sync::Arc::new(Holds(Some(held).into()));
    let waker = Waker::from(holds.clone());
    let mut cx = Context::from_waker(&waker);
    assert!(waited.poll_read_ready(&mut cx).is_pending());
    assert_eq!(driver.sources(), 2);
    driver.shutdown();
    assert_eq!(driver.sources(), 1);
    drop(driver);
    assert!(holds.0.lock().unwrap().is_none());
    drop(waited.into_inner());
}
