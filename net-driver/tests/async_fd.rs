//! Tests of `AsyncFd`: its guards, and numbers that pass from one owner of a descriptor to another.
#![cfg(target_os = "linux")]
mod support;

use net_driver::{Interest, Ready, net::AsyncFd};
use std::{
    io::{self, ErrorKind, Write},
    mem,
    os::{fd::OwnedFd, unix},
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
