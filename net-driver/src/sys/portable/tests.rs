use super::*;
use std::{
    io::Write,
    os::{fd::AsRawFd, unix::net::UnixStream},
    thread,
    time::Instant,
};

const NOW: Option<Duration> = Some(Duration::ZERO);

fn events(sys: &Portable, limit: Option<Duration>) -> Vec<(u64, Ready)> {
    let mut seen = Vec::new();
    sys.wait(limit, 64, |token, ready| seen.push((token, ready)))
        .unwrap();
    seen
}

/// Returns the states of all events of one token: a system may report each direction alone.
fn ready_of(sys: &Portable, token: u64, limit: Option<Duration>) -> Ready {
    let mut all = Ready::EMPTY;
    for (at, ready) in events(sys, limit) {
        assert_eq!(at, token);
        all |= ready;
    }
    all
}

/// Fails if an event leaves its source armed, or an arming asks for the growth of a state, or
/// reaches a source whose registration has ended.
#[test]
#[cfg(selvedge_one_shot)]
fn event_comes_once_until_the_source_is_armed() {
    let sys = Portable::open().unwrap();
    let (one, mut other) = UnixStream::pair().unwrap();
    sys.register(one.as_raw_fd(), 5).unwrap();
    assert_eq!(ready_of(&sys, 5, NOW), Ready::WRITABLE);
    other.write_all(b"x").unwrap();
    assert_eq!(events(&sys, NOW), []);
    sys.arm(5, || Ready::READABLE).unwrap();
    assert_eq!(ready_of(&sys, 5, NOW), Ready::READABLE);
    sys.arm(5, || Ready::EMPTY).unwrap();
    assert_eq!(events(&sys, NOW), []);
    sys.arm(5, || Ready::READABLE | Ready::WRITABLE).unwrap();
    assert!(ready_of(&sys, 5, NOW).is_writable());
    drop(other);
    assert_eq!(events(&sys, NOW), []);
    sys.arm(5, || Ready::EMPTY).unwrap();
    assert_eq!(
        events(&sys, NOW),
        [],
        "it hung up, and is armed for nothing"
    );
    sys.deregister(one.as_raw_fd(), 5).unwrap();
    let unread = || unreachable!("the registration has ended");
    sys.arm(5, unread).unwrap();
    assert_eq!(events(&sys, NOW), []);
}

/// Fails if sources are not registered edge-triggered, or are registered for one direction only.
#[test]
#[cfg(not(selvedge_one_shot))]
fn edge_comes_once_until_the_readiness_grows() {
    let sys = Portable::open().unwrap();
    let (mut one, mut other) = UnixStream::pair().unwrap();
    sys.register(one.as_raw_fd(), 5).unwrap();
    assert_eq!(ready_of(&sys, 5, NOW), Ready::WRITABLE);
    assert_eq!(events(&sys, NOW), []);
    other.write_all(b"x").unwrap();
    assert!(ready_of(&sys, 5, None).is_readable());
    assert_eq!(events(&sys, NOW), []);
    std::io::Read::read_exact(&mut one, &mut [0]).unwrap();
    drop(other);
    assert!(ready_of(&sys, 5, None).is_readable());
}

/// Fails if a wait takes the flag without the notification, or leaves the flag set.
#[test]
fn wakes_before_a_wait_end_it_once() {
    let sys = Portable::open().unwrap();
    assert!(!sys.wait(NOW, 64, |_, _| ()).unwrap());
    sys.wake();
    sys.wake();
    assert!(sys.wait(None, 64, |_, _| ()).unwrap());
    assert!(!sys.wait(NOW, 64, |_, _| ()).unwrap());
    sys.wake();
    assert!(sys.wait(None, 64, |_, _| ()).unwrap());
}

/// Fails if a wake is lost between the thread that looks and the thread that waits. A look that
/// takes a wake reports it, and its thread then wakes again.
#[test]
fn wakes_beside_looks_reach_the_waiting_thread() {
    const WAKES: usize = 1_000;
    let sys = Portable::open().unwrap();
    let (told, heard) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..WAKES {
                // Ordering: SeqCst, for simplicity. `told` stands for the driver's token.
                while !told.swap(false, SeqCst) {
                    sys.wait(None, 64, |_, _| ()).unwrap();
                }
                heard.store(true, SeqCst);
            }
        });
        for _ in 0..WAKES {
            // Ordering: as above.
            told.store(true, SeqCst);
            sys.wake();
            while !heard.swap(false, SeqCst) {
                if sys.wait(NOW, 64, |_, _| ()).unwrap() {
                    sys.wake();
                }
            }
        }
    });
}

/// Fails if a number that is in use is registered again without an error, or keeps its old token.
#[test]
fn second_registration_is_refused_or_replaces_the_token() {
    let sys = Portable::open().unwrap();
    let (one, _other) = UnixStream::pair().unwrap();
    let register = |token| sys.register(one.as_raw_fd(), token);
    register(1).unwrap();
    let error = register(3).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    sys.replace(one.as_raw_fd(), 2).unwrap();
    assert_eq!(ready_of(&sys, 2, NOW), Ready::WRITABLE);
    sys.deregister(one.as_raw_fd(), 2).unwrap();
    sys.deregister(one.as_raw_fd(), 2).unwrap_err();
    register(4).unwrap();
    assert_eq!(ready_of(&sys, 4, NOW), Ready::WRITABLE);
}

/// Fails if a timed wait ends before its limit.
#[test]
fn timed_wait_is_never_early() {
    let sys = Portable::open().unwrap();
    for micros in [1, 300, 1_500] {
        let (limit, start) = (Duration::from_micros(micros), Instant::now());
        assert_eq!(events(&sys, Some(limit)), []);
        assert!(start.elapsed() >= limit, "{micros} µs");
    }
    sys.wake();
    assert_eq!(events(&sys, Some(Duration::MAX)), []);
}

/// Fails if a wait hands over more events than were asked for, or drops the events beyond that
/// number.
#[test]
fn wait_takes_no_more_than_it_may() {
    let sys = Portable::open().unwrap();
    let pairs: Vec<_> = (0..3).map(|_| UnixStream::pair().unwrap()).collect();
    for (token, (one, _)) in pairs.iter().enumerate() {
        sys.register(one.as_raw_fd(), token as u64).unwrap();
    }
    let mut seen = 0;
    sys.wait(NOW, 2, |_, _| seen += 1).unwrap();
    assert_eq!(seen, 2);
    assert_eq!(events(&sys, NOW).len(), 1);
}
