//! A test that no worker wakes up while a driver with sockets and far timers is idle. It is the
//! only test in this file, so that the process has no threads of another test.
#![cfg(target_os = "linux")]
mod support;

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use net_driver::{
    net::{TcpListener, TcpStream, UnixStream},
    time,
};
use std::{fs, thread, time::Duration};
use support::Workers;

/// Returns how often the threads of the process, except the calling thread, have gone to sleep.
fn sleeps() -> u64 {
    let me = fs::read_link("/proc/thread-self").unwrap();
    let me = me.file_name().unwrap().to_owned();
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    tasks
        .map(|task| task.unwrap())
        .filter(|task| task.file_name() != me)
        .map(|task| {
            let status = fs::read_to_string(task.path().join("status")).unwrap();
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            line.unwrap().trim().parse::<u64>().unwrap()
        })
        .sum()
}

#[test]
fn idle_sockets_and_far_timers_wake_nobody() {
    let workers = Workers::new(3);
    let (sender, accepted) = async_channel::bounded(1);
    let streams = workers.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let mut peers = Vec::new();
        for _ in 0..100 {
            let mut stream = TcpStream::connect(at).await.unwrap();
            peers.push(listener.accept().await.unwrap().0);
            let hour = Duration::from_secs(3_600);
            let read = async move { drop(time::timeout(hour, stream.read(&mut [0; 8])).await) };
            workers.spawn(read).detach();
        }
        let accepts = async move { sender.send(listener.accept().await.is_ok()).await };
        workers.spawn(accepts).detach();
        (at, peers)
    });
    // `block_on` has returned, and its park is gone. So a worker takes over the role of the thread
    // that waits for events in the kernel.
    let mut quiet = 0;
    for _ in 0..100 {
        let before = sleeps();
        thread::sleep(Duration::from_millis(100));
        quiet = if sleeps() == before { quiet + 1 } else { 0 };
        if quiet == 5 {
            break;
        }
    }
    assert_eq!(quiet, 5, "half a second without a wake-up never came");
    // A worker waits for events.
    let client = std::net::TcpStream::connect(streams.0).unwrap();
    assert_eq!(accepted.recv_blocking(), Ok(true));
    drop(client);
    // The driver still works.
    let echo = workers.spawn(async {
        let (mut one, mut other) = UnixStream::pair().unwrap();
        one.write_all(b"x").await.unwrap();
        other.read_exact(&mut [0]).await.unwrap();
    });
    workers.block_on(echo);
    drop(streams);
}
