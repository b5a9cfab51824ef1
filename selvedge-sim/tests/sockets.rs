//! Sockets between the tasks and threads of one host.
#![cfg(all(
    selvedge_sim,
    target_os = "linux",
    target_env = "gnu",
    target_pointer_width = "64"
))]

use net_driver::{
    Driver,
    net::{
        AsyncFd, TcpListener, TcpStream, UdpSocket, UnixListener, UnixStream,
        batch::{RecvBatch, Transmit},
    },
};
use selvedge_executor::spawn;
use selvedge_sim::{Failure, Sim, explore};
use std::{os::fd::AsRawFd, time::Duration};
use task_io::{AsyncReadExt, AsyncWriteExt};

#[test]
fn bytes_of_a_stream_come_back_from_an_echo() {
    let explored = explore(0..100, |sim: Sim| {
        sim.run(|| async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let at = listener.local_addr().unwrap();
            let server = spawn(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut all: Vec<u8> = Vec::new();
                let mut part = [0; 100];
                loop {
                    let count = stream.read(&mut part).await.unwrap();
                    if count == 0 {
                        break all.len();
                    }
                    stream.write_all(&part[..count]).await.unwrap();
                    all.extend(&part[..count]);
                }
            });
            let mut client = TcpStream::connect(at).await.unwrap();
            let sent: Vec<u8> = (0..3_000_u32).map(|n| n as u8).collect();
            client.write_all(&sent).await.unwrap();
            client.shutdown().await.unwrap();
            let mut back = Vec::new();
            client.read_to_end(&mut back).await.unwrap();
            assert_eq!(back, sent);
            assert_eq!(server.await.unwrap(), sent.len());
        })
    });
    assert!(explored.found.is_none(), "{}", explored.found.unwrap());
}

#[test]
fn datagrams_and_unix_streams_work_in_a_host() {
    let explored = explore(0..100, |sim: Sim| {
        sim.run(|| async {
            let one = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let other = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            one.connect(other.local_addr().unwrap()).await.unwrap();
            one.send(b"hello").await.unwrap();
            let mut to = [0; 3];
            let (count, from) = other.recv_from(&mut to).await.unwrap();
            assert_eq!((count, from), (3, one.local_addr().unwrap()));

            let listener = UnixListener::bind("/simulated").unwrap();
            let server = spawn(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut all = Vec::new();
                stream.read_to_end(&mut all).await.unwrap();
                stream.write_all(&all).await.unwrap();
            });
            let mut client = UnixStream::connect("/simulated").await.unwrap();
            let sent = vec![7; 200_000];
            client.write_all(&sent).await.unwrap();
            client.shutdown().await.unwrap();
            let mut back = Vec::new();
            client.read_to_end(&mut back).await.unwrap();
            assert!(back == sent);
            server.await.unwrap();
            assert!(!std::path::Path::new("/simulated").exists());
        })
    });
    assert!(explored.found.is_none(), "{}", explored.found.unwrap());
}

/// Fails if a task waits for an event that does not come, as after a batch that was short.
#[test]
fn batches_of_datagrams_come_back_from_an_echo() {
    let explored = explore(0..100, |sim: Sim| {
        sim.run(|| async {
            let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let at = server.local_addr().unwrap();
            let echo = spawn(async move {
                let (mut batch, mut left) = (RecvBatch::new(3, 16), 20);
                while left > 0 {
                    let count = server.recv_many(&mut batch).await.unwrap();
                    let mut back = Vec::new();
                    for each in batch.iter() {
                        back.push(Transmit::new(each.bytes()).to(each.sender()));
                    }
                    let mut sent = 0;
                    while sent < count {
                        sent += server.send_many(&back[sent..]).await.unwrap();
                    }
                    left -= count;
                }
            });
            let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            client.connect(at).await.unwrap();
            let mut batch = RecvBatch::new(8, 16);
            for round in 0..4_u8 {
                let texts: Vec<u8> = (0..5).map(|n| 5 * round + n).collect();
                let whole = Transmit::new(&texts[..4]).segment_size(1);
                let messages = [whole, Transmit::new(&texts[4..])];
                assert_eq!(client.send_many(&messages).await.unwrap(), 2);
                let mut back = Vec::new();
                while back.len() < 5 {
                    client.recv_many(&mut batch).await.unwrap();
                    assert!(batch.iter().all(|each| each.sender() == at));
                    back.extend(batch.iter().flat_map(|each| each.bytes().to_vec()));
                }
                // The network delivers datagrams in any order.
                back.sort();
                assert_eq!(back, texts);
            }
            echo.await.unwrap();
        })
    });
    assert!(explored.found.is_none(), "{}", explored.found.unwrap());
}

/// With debug assertions, std aborts the process at the drop of a descriptor that is not open.
#[test]
fn drop_of_a_socket_after_its_run_does_nothing() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let run = Sim::new(1).run_main(move || {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.send(socket).unwrap();
    });
    run.unwrap();
    let socket = receiver.recv().unwrap();
    assert!(socket.local_addr().is_err());
    drop(socket);
}

#[test]
fn wrong_list_for_a_system_descriptor_is_left_to_the_system() {
    let (reader, _writer) = std::os::unix::net::UnixStream::pair().unwrap();
    let list = std::ptr::dangling();
    // SAFETY: the system reads no list with a negative count.
    let done = unsafe { libc::readv(reader.as_raw_fd(), list, -1) };
    let error = std::io::Error::last_os_error().raw_os_error();
    assert_eq!((done, error), (-1, Some(libc::EINVAL)));
    // SAFETY: the system finds no list at null.
    let done = unsafe { libc::poll(std::ptr::null_mut(), 2, 0) };
    let error = std::io::Error::last_os_error().raw_os_error();
    assert_eq!((done, error), (-1, Some(libc::EFAULT)));
}

/// A wait for the file would hold up all threads. The error names this file and the line.
#[test]
fn descriptor_of_the_system_is_refused_at_its_line() {
    let (streams, pair) = std::sync::mpsc::channel();
    let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    streams.send((one, other)).unwrap();
    let run = Sim::new(1).run(move || async move {
        let (one, other) = pair.recv().unwrap();
        let refused = |error: std::io::Error, line: u32| {
            let error = error.to_string();
            let place = format!("sockets.rs:{line}:");
            assert!(error.contains(&place), "{place} is not in: {error}");
            assert!(error.contains("descriptor of the system"), "{error}");
        };
        refused(AsyncFd::new(&one).unwrap_err(), line!());
        refused(AsyncFd::try_new(&one).unwrap_err().into(), line!());
        let driver = Driver::current().unwrap();
        refused(AsyncFd::new_in(&driver, &one).unwrap_err(), line!());
        refused(UnixStream::from_std(other).unwrap_err(), line!());
        refused(TcpListener::from_std(listener).unwrap_err(), line!());
    });
    run.unwrap();
}

/// The thread makes nothing but calls, and the packet comes after some time.
#[test]
fn thread_that_reads_until_bytes_come_gets_them() {
    let reads = || async {
        let socket = std::net::UdpSocket::bind("0.0.0.0:7").unwrap();
        socket.set_nonblocking(true).unwrap();
        while socket.recv(&mut [0]).is_err() {}
    };
    let sends = || async {
        net_driver::time::sleep(Duration::from_millis(5)).await;
        let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        socket.send_to(b"a", "reader:7").await.unwrap();
    };
    let hosts = Sim::new(1).hosts().client("reader", 1, reads);
    hosts.client("sender", 1, sends).run().unwrap();
}

#[test]
fn thread_that_reads_for_ever_ends_the_run_as_too_long() {
    let run = Sim::new(1).steps(10_000).run_main(|| {
        let socket = std::net::UdpSocket::bind("127.0.0.1:7").unwrap();
        socket.set_nonblocking(true).unwrap();
        while socket.recv(&mut [0]).is_err() {}
    });
    let failure = run.failure().unwrap();
    assert!(matches!(failure, Failure::TooLong(_)), "{failure}");
}
