use super::*;
use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    time::Instant,
};

const NOW: Option<Duration> = Some(Duration::ZERO);

fn events(epoll: &Epoll, limit: Option<Duration>) -> Vec<(u64, Ready)> {
    let mut seen = Vec::new();
    epoll
        .wait(limit, MAX_EVENTS_PER_WAIT, |token, ready| {
            seen.push((token, ready))
        })
        .unwrap();
    seen
}

#[test]
fn edge_comes_once_until_the_readiness_grows() {
    let epoll = Epoll::open().unwrap();
    let (mut one, mut other) = UnixStream::pair().unwrap();
    epoll.register(one.as_raw_fd(), 5).unwrap();
    assert_eq!(events(&epoll, NOW), [(5, Ready::WRITABLE)]);
    assert_eq!(events(&epoll, NOW), []);
    other.write_all(b"x").unwrap();
    assert_eq!(
        events(&epoll, None),
        [(5, Ready::READABLE | Ready::WRITABLE)]
    );
    assert_eq!(events(&epoll, NOW), []);
    one.read_exact(&mut [0]).unwrap();
    drop(other);
    let all = Ready::READABLE | Ready::WRITABLE | Ready::READ_CLOSED | Ready::WRITE_CLOSED;
    assert_eq!(events(&epoll, None), [(5, all)]);
}

#[test]
fn wakes_before_a_wait_end_it_once() {
    let epoll = Epoll::open().unwrap();
    assert_eq!(events(&epoll, NOW), []);
    epoll.wake();
    epoll.wake();
    assert_eq!(events(&epoll, None), []); // The wait returns.
    epoll.wake();
    assert_eq!(events(&epoll, None), []);
}

#[test]
fn second_registration_is_refused_or_replaces_the_token() {
    let epoll = Epoll::open().unwrap();
    let (one, _other) = UnixStream::pair().unwrap();
    epoll.register(one.as_raw_fd(), 1).unwrap();
    let error = epoll.register(one.as_raw_fd(), 3).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    epoll.replace(one.as_raw_fd(), 2).unwrap();
    assert_eq!(events(&epoll, NOW), [(2, Ready::WRITABLE)]);
    epoll.deregister(one.as_raw_fd(), 1).unwrap();
    epoll.deregister(one.as_raw_fd(), 1).unwrap_err();
}

#[test]
fn regular_file_is_refused() {
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    let error = Epoll::open()
        .unwrap()
        .register(file.as_raw_fd(), 1)
        .unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EPERM));
}

#[test]
fn timed_wait_is_never_early_with_and_without_pwait2() {
    let epoll = Epoll::open().unwrap();
    for lacks in [false, true] {
        epoll.lacks_pwait2.store(lacks, Relaxed);
        for micros in [1, 300, 1_500] {
            let (limit, start) = (Duration::from_micros(micros), Instant::now());
            assert_eq!(events(&epoll, Some(limit)), []);
            assert!(
                start.elapsed() >= limit,
                "{micros} µs, without pwait2: {lacks}"
            );
        }
    }
}

#[test]
fn milliseconds_are_rounded_up_and_saturate() {
    assert_eq!(milliseconds(None), -1);
    assert_eq!(milliseconds(Some(Duration::ZERO)), 0);
    assert_eq!(milliseconds(Some(Duration::from_nanos(1))), 1);
    assert_eq!(milliseconds(Some(Duration::from_millis(7))), 7);
    assert_eq!(milliseconds(Some(Duration::MAX)), c_int::MAX);
}

/// Fails if the seconds have fewer than 64 bits, as libc's have on most systems of 32 bits.
#[test]
fn kernel_time_holds_each_duration_or_the_longest() {
    let spec = |span| {
        let KernelTimespec { tv_sec, tv_nsec } = KernelTimespec::from(span);
        (tv_sec, tv_nsec)
    };
    assert_eq!(spec(Duration::ZERO), (0, 0));
    assert_eq!(spec(Duration::from_micros(1_500)), (0, 1_500_000));
    let long = Duration::new(1 << 33, 999_999_999);
    assert_eq!(spec(long), (1 << 33, 999_999_999));
    assert_eq!(spec(Duration::MAX), (i64::MAX, 999_999_999));
}

#[test]
fn longest_limit_is_no_error() {
    let epoll = Epoll::open().unwrap();
    epoll.wake();
    assert_eq!(events(&epoll, Some(Duration::MAX)), []);
}

#[test]
fn wait_takes_no_more_than_it_may() {
    let epoll = Epoll::open().unwrap();
    let pairs: Vec<_> = (0..3).map(|_| UnixStream::pair().unwrap()).collect();
    for (token, (one, _)) in pairs.iter().enumerate() {
        epoll.register(one.as_raw_fd(), token as u64).unwrap();
    }
    let mut seen = 0;
    epoll.wait(NOW, 2, |_, _| seen += 1).unwrap();
    assert_eq!(seen, 2);
    assert_eq!(events(&epoll, NOW).len(), 1);
}

/// Fails if each wait for many events allocates a list.
#[test]
fn waits_for_many_events_use_one_list() {
    let epoll = Epoll::open().unwrap();
    let pairs: Vec<_> = (0..50).map(|_| UnixStream::pair().unwrap()).collect();
    let sources: Vec<_> = pairs.iter().flat_map(|(one, other)| [one, other]).collect();
    for (token, source) in sources.iter().enumerate() {
        epoll.register(source.as_raw_fd(), token as u64).unwrap();
    }
    let list = || epoll.spare.lock().as_ptr();
    let count = |max| {
        let mut count = 0;
        epoll.wait(NOW, max, |_, _| count += 1).unwrap();
        count
    };
    assert_eq!(count(65), 65);
    let first = list();
    assert_eq!((count(65), count(65), count(64), list()), (35, 0, 0, first));
    assert_eq!(epoll.spare.lock().len(), 65);
}
