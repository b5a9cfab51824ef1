//! Tests of what a worker spends around its waits for sockets: on wake-ups of other workers, and on
//! looks before a park. The tests count events.
#![cfg(all(feature = "net", unix))]

use net_driver::net::UnixStream;
use selvedge_executor::{Builder, Runtime, Wait};
use std::{
    io::{ErrorKind, Read, Write},
    os::unix::net,
    thread,
};

const ROUND_TRIPS: u64 = 1_000;

/// Makes round trips over one socket, from a thread outside of the runtime. Meanwhile one worker
/// waits for the socket, and the other worker sleeps. Returns the numbers of notifications that
/// ended a sleep, and of short waits before a park.
fn round_trips(runtime: &Runtime) -> (u64, u64) {
    let (mut client, server) = net::UnixStream::pair().unwrap();
    let echo = runtime.spawn(async move {
        server.set_nonblocking(true).unwrap();
        let server = UnixStream::from_std(server).unwrap();
        let mut byte = [0];
        loop {
            server.readable().await.unwrap();
            match server.try_read(&mut byte) {
                Ok(0) => return,
                Ok(_) => assert_eq!(server.try_write(&byte).unwrap(), 1),
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
    });
    let mut round_trip = || {
        client.write_all(&[7]).unwrap();
        client.read_exact(&mut [0]).unwrap();
    };
    round_trip();
    // Both workers park now, sooner or later.
    loop {
        let now = runtime.snapshot();
        if now.parks == now.ended_parks + 2 {
            break;
        }
        thread::yield_now();
    }
    let before = runtime.snapshot();
    (0..ROUND_TRIPS).for_each(|_| round_trip());
    let after = runtime.snapshot();
    drop(client);
    runtime.block_on(echo).unwrap();
    let unparks = after.unparks - before.unparks;
    (unparks, after.backoffs - before.backoffs)
}

/// Fails if a task that an event wakes goes through the LIFO slot, because then a watcher is
/// requested, or if a lone task is notified of. A few notifications may come nevertheless, from a
/// worker that begins to sleep.
#[test]
fn events_of_a_lone_socket_wake_one_worker() {
    let builder = Builder::new().workers(2).prestart().monitor(false);
    let (unparks, _) = round_trips(&builder.build().unwrap());
    assert!(unparks < ROUND_TRIPS / 20, "{unparks}");
}

/// Fails if `Builder::wait` does not reach the workers.
#[test]
fn worker_that_saves_power_makes_no_wait_before_a_park() {
    let builder = Builder::new().workers(2).prestart().monitor(false);
    let builder = builder.wait(Wait::Power);
    let (_, backoffs) = round_trips(&builder.build().unwrap());
    assert_eq!(backoffs, 0);
}
