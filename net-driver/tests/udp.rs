//! Tests of UDP sockets against plain ones of std.
#![cfg(any(target_os = "linux", windows))]
mod support;

use net_driver::net::UdpSocket;
use std::{io::ErrorKind, sync::Arc};
use support::{Workers, run};

/// The first of several addresses counts, and no address is an error.
#[test]
fn send_to_takes_addresses_lists_and_texts() {
    run(async {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let at = socket.local_addr().unwrap();
        let list = [at, ([127, 0, 0, 1], 9).into()];
        socket.send_to(b"a", at).await.unwrap();
        socket.send_to(b"b", &list[..]).await.unwrap();
        socket.send_to(b"c", at.to_string()).await.unwrap();
        socket
            .send_to(b"d", ("127.0.0.1", at.port()))
            .await
            .unwrap();
        for expected in b"abcd" {
            let mut to = [0; 2];
            assert_eq!(socket.recv(&mut to).await.unwrap(), 1);
            assert_eq!(to[0], *expected);
        }
        let error = socket.send_to(b"e", &list[..0]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn datagrams_of_many_senders_arrive_whole() {
    let workers = Workers::new(2);
    workers.block_on(async {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let at = socket.local_addr().unwrap();
        let tasks: Vec<_> = (0..2)
            .map(|_| {
                let socket = socket.clone();
                workers.spawn(async move {
                    for _ in 0..50 {
                        let mut to = [0; 16];
                        let (count, from) = socket.recv_from(&mut to).await.unwrap();
                        socket.send_to(&to[..count], from).await.unwrap();
                    }
                })
            })
            .collect();
        let client = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for round in 0..100_u64 {
            client.send_to(&round.to_le_bytes(), at).unwrap();
            let mut back = [0; 16];
            assert_eq!(client.recv(&mut back).unwrap(), 8);
            assert_eq!(back[..8], round.to_le_bytes());
        }
        for task in tasks {
            task.await;
        }
    });
}

/// Wine reports no refusals.
#[test]
#[cfg(unix)]
fn refused_datagram_is_an_error_of_the_next_receive() {
    run(async {
        let gone = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let at = gone.local_addr().unwrap();
        drop(gone);
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.connect(at).await.unwrap();
        socket.send(b"x").await.unwrap();
        let error = socket.recv(&mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    });
}
