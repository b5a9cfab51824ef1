//! Tests of batches of datagrams: `UdpSocket::recv_many` and `send_many`.
#![cfg(target_os = "linux")]
mod support;

use coop_budget::{Budget, Scope};
use futures_lite::future;
use net_driver::net::{
    UdpSocket,
    batch::{RecvBatch, Transmit},
};
use std::{
    future::{Future, poll_fn},
    io::{self, ErrorKind},
    net::SocketAddr,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::net::UnixDatagram,
    },
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
};
use support::{Workers, run};

/// Returns two sockets of the same address family, with their addresses. `None` if the machine does
/// not have it.
async fn pair(host: &str) -> Option<[(UdpSocket, SocketAddr); 2]> {
    let one = UdpSocket::bind((host, 0)).await.ok()?;
    let other = UdpSocket::bind((host, 0)).await.unwrap();
    Some([one, other].map(|socket| {
        let at = socket.local_addr().unwrap();
        (socket, at)
    }))
}

async fn v4() -> [(UdpSocket, SocketAddr); 2] {
    pair("127.0.0.1").await.unwrap()
}

fn bytes(batch: &RecvBatch) -> Vec<&[u8]> {
    batch.iter().map(|each| each.bytes()).collect()
}

fn would_block<R>(done: io::Result<R>) -> bool {
    matches!(done, Err(error) if error.kind() == ErrorKind::WouldBlock)
}

#[test]
fn batch_of_either_family_has_bytes_and_senders() {
    run(async {
        for host in ["127.0.0.1", "::1"] {
            let Some([(one, from), (other, at)]) = pair(host).await else {
                println!("skipped: this machine has no {host}");
                continue;
            };
            let texts = [&b"one"[..], b"", b"three"];
            let messages = texts.map(|text| Transmit::new(text).to(at));
            assert_eq!(one.send_many(&messages).await.unwrap(), 3);
            other.send_to(b"own", at).await.unwrap();

            let mut batch = RecvBatch::new(8, 16);
            assert_eq!(other.recv_many(&mut batch).await.unwrap(), 4);
            assert_eq!(bytes(&batch), [&b"one"[..], b"", b"three", b"own"]);
            let senders: Vec<_> = batch.iter().map(|each| each.sender()).collect();
            assert_eq!(senders, [from, from, from, at]);
            assert!(batch.iter().all(|each| !each.is_truncated()));

            one.connect(at).await.unwrap();
            let messages = [b"a", b"b"].map(|text| Transmit::new(text));
            assert_eq!(one.try_send_many(&messages).unwrap(), 2);
            assert_eq!(other.try_recv_many(&mut batch).unwrap(), 2);
            assert_eq!(bytes(&batch), [b"a", b"b"]);
            assert!(would_block(other.try_recv_many(&mut batch)));
            assert!(batch.is_empty(), "an error empties the batch");
        }
    });
}

#[test]
fn datagram_longer_than_the_room_alone_is_truncated() {
    run(async {
        let [(one, _), (other, at)] = v4().await;
        let texts = [&b"four"[..], b"longer", b"ok"];
        one.send_many(&texts.map(|text| Transmit::new(text).to(at)))
            .await
            .unwrap();
        let mut batch = RecvBatch::new(3, 4);
        other.recv_many(&mut batch).await.unwrap();
        let cut: Vec<_> = batch.iter().map(|each| each.is_truncated()).collect();
        assert_eq!(bytes(&batch), [&b"four"[..], b"long", b"ok"]);
        assert_eq!(cut, [false, true, false]);
        // A slot without room shows that a datagram came.
        let mut nothing = RecvBatch::new(2, 0);
        one.send_to(b"x", at).await.unwrap();
        one.send_to(b"", at).await.unwrap();
        assert_eq!(other.recv_many(&mut nothing).await.unwrap(), 2);
        let cut: Vec<_> = nothing.iter().map(|each| each.is_truncated()).collect();
        assert_eq!(
            (bytes(&nothing), cut),
            (vec![&b""[..]; 2], vec![true, false])
        );
    });
}

/// The kernel drops the error of a datagram that is not the first. So the rest is sent from there.
#[test]
fn error_of_a_later_datagram_ends_the_batch_before_it() {
    run(async {
        let [(one, _), (other, at)] = v4().await;
        let huge = vec![0; 70_000];
        let texts = [&b"a"[..], b"b", &huge, b"c"];
        let messages = texts.map(|text| Transmit::new(text).to(at));
        assert_eq!(one.send_many(&messages).await.unwrap(), 2);
        let error = one.send_many(&messages[2..]).await;
        assert_eq!(error.unwrap_err().raw_os_error(), Some(libc::EMSGSIZE));
        assert_eq!(one.send_many(&messages[3..]).await.unwrap(), 1);
        let mut batch = RecvBatch::new(8, 8);
        other.recv_many(&mut batch).await.unwrap();
        assert_eq!(bytes(&batch), [b"a", b"b", b"c"]);
        // A datagram without an address needs a connection.
        let error = one.send_many(&[Transmit::new(b"d")]).await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EDESTADDRREQ));
    });
}

#[test]
fn refusal_is_reported_before_the_datagrams_that_follow() {
    run(async {
        let [(one, from), (other, at)] = v4().await;
        one.connect(at).await.unwrap();
        drop(other);
        one.send_many(&[Transmit::new(b"refused")]).await.unwrap();
        let mut batch = RecvBatch::new(4, 4);
        let error = one.recv_many(&mut batch).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let back = UdpSocket::bind(at).await.unwrap();
        back.send_to(b"back", from).await.unwrap();
        assert_eq!(one.recv_many(&mut batch).await.unwrap(), 1);
        assert_eq!(bytes(&batch), [b"back"]);
    });
}

/// Linux drops the refusal that the second datagram meets, and returns that one went.
#[test]
fn refusal_that_a_later_datagram_meets_is_lost() {
    run(async {
        let [(one, _), (other, at)] = v4().await;
        one.connect(at).await.unwrap();
        drop(other);
        let messages = [Transmit::new(b"refused"); 4];
        for _ in 0..4 {
            assert_eq!(one.send_many(&messages).await.unwrap(), 1);
        }
        assert!(would_block(one.try_recv_many(&mut RecvBatch::new(1, 1))));
        // The first datagram of a batch fails with the refusal.
        one.send_many(&messages[..1]).await.unwrap();
        let error = one.send_many(&messages).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn empty_and_huge_batches_move_none_and_sixty_four() {
    run(async {
        let [(one, _), (other, at)] = v4().await;
        assert_eq!(one.send_many(&[]).await.unwrap(), 0);
        assert_eq!(one.try_send_many(&[]).unwrap(), 0);
        let many = vec![Transmit::new(b"x").to(at); 5_000];
        assert_eq!(one.send_many(&many).await.unwrap(), 64);
        assert_eq!(one.try_send_many(&many).unwrap(), 64);
        let mut none = RecvBatch::new(0, 64);
        assert_eq!(other.recv_many(&mut none).await.unwrap(), 0);
        assert!(none.get(0).is_none());
        let mut huge = RecvBatch::new(usize::MAX, 3);
        assert_eq!(huge.slots(), 64);
        let mut counts = Vec::new();
        while let Ok(count) = other.try_recv_many(&mut huge) {
            assert_eq!((count, huge.iter().len()), (huge.len(), huge.len()));
            assert!(huge.iter().all(|each| each.bytes() == b"x"));
            counts.push(count);
        }
        assert_eq!(counts, [64, 64]);
        // As many slots as datagrams, less one.
        one.send_many(&[Transmit::new(b"y").to(at); 3])
            .await
            .unwrap();
        let mut two = RecvBatch::new(2, 3);
        assert_eq!(other.recv_many(&mut two).await.unwrap(), 2);
        assert_eq!(other.recv_many(&mut two).await.unwrap(), 1);
    });
}

/// An event is not handled between the two receives. So the second one asks the kernel only if the
/// short batch has left the readiness as it was.
#[test]
fn short_batch_leaves_the_readiness_to_would_block() {
    run(async {
        let [(one, _), (other, at)] = v4().await;
        let mut batch = RecvBatch::new(8, 8);
        one.send_to(b"a", at).await.unwrap();
        assert_eq!(other.recv_many(&mut batch).await.unwrap(), 1);
        one.send_to(b"b", at).await.unwrap();
        assert_eq!(other.try_recv_many(&mut batch).unwrap(), 1);
        // "Would block" clears it: then only an event makes the socket ready.
        assert!(would_block(other.try_recv_many(&mut batch)));
        one.send_to(b"c", at).await.unwrap();
        assert!(would_block(other.try_recv_many(&mut batch)));
        other.readable().await.unwrap();
        assert_eq!(other.try_recv_many(&mut batch).unwrap(), 1);
    });
}

#[test]
fn dropped_and_forgotten_receives_lose_no_datagram() {
    run(async {
        let [(one, _), (other, at)] = v4().await;
        let (mut batch, mut leaked) = (RecvBatch::new(4, 4), RecvBatch::new(4, 4));
        let mut cx = Context::from_waker(Waker::noop());
        {
            let mut receive = pin!(other.recv_many(&mut batch));
            assert!(receive.as_mut().poll(&mut cx).is_pending());
        }
        let mut forgotten = Box::pin(other.recv_many(&mut leaked));
        assert!(forgotten.as_mut().poll(&mut cx).is_pending());
        std::mem::forget(forgotten);
        one.send_many(&[Transmit::new(b"a").to(at); 2])
            .await
            .unwrap();
        assert_eq!(other.recv_many(&mut batch).await.unwrap(), 2);
        // A receive that was polled, and dropped when datagrams have come.
        {
            let mut receive = pin!(other.recv_many(&mut batch));
            assert!(receive.as_mut().poll(&mut cx).is_pending());
            one.send_to(b"b", at).await.unwrap();
        }
        assert_eq!(other.recv_many(&mut batch).await.unwrap(), 1);
        assert_eq!(bytes(&batch), [b"b"]);
    });
}

/// A datagram is charged as a single receive, so a poll that always finds some ends all the same.
#[test]
fn batches_are_charged_by_their_datagrams() {
    run(async {
        let [(one, _), (other, at)] = v4().await;
        let mut batch = RecvBatch::new(2, 4);
        for _ in 0..10 {
            one.send_many(&[Transmit::new(b"x").to(at); 2])
                .await
                .unwrap();
        }
        let mut polls = 0;
        let mut cx = Context::from_waker(Waker::noop());
        Scope::new(Budget::new(20)).run(|| {
            while let Poll::Ready(count) = other.poll_recv_many(&mut cx, &mut batch) {
                assert_eq!(count.unwrap(), 2);
                polls += 1;
            }
        });
        // 20 operations are five datagrams, and the last batch begins with an operation left.
        assert_eq!(polls, 3);
        assert!(
            batch.is_empty(),
            "a receive that waits has emptied the batch"
        );
        // A receive that waits is not charged.
        while other.try_recv_many(&mut batch).is_ok() {}
        Scope::new(Budget::new(1)).run(|| {
            assert!(other.poll_recv_many(&mut cx, &mut batch).is_pending());
            assert!(coop_budget::has_remaining());
        });
    });
}

#[test]
fn echo_of_batches_by_many_tasks_loses_nothing() {
    const EACH: usize = if cfg!(debug_assertions) { 500 } else { 5_000 };
    let workers = Workers::new(2);
    let server = Arc::new(workers.block_on(UdpSocket::bind("127.0.0.1:0")).unwrap());
    let at = server.local_addr().unwrap();
    for _ in 0..2 {
        let server = server.clone();
        let echo = workers.spawn(async move {
            let mut batch = RecvBatch::new(16, 64);
            loop {
                server.recv_many(&mut batch).await.unwrap();
                let mut back = Vec::new();
                for each in batch.iter() {
                    back.push(Transmit::new(each.bytes()).to(each.sender()));
                }
                let mut sent = 0;
                while sent < batch.len() {
                    sent += server.send_many(&back[sent..]).await.unwrap();
                }
            }
        });
        echo.detach();
    }
    let clients = (0..4_u32).map(|id| {
        workers.spawn(async move {
            let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            socket.connect(at).await.unwrap();
            let mut batch = RecvBatch::new(8, 64);
            for round in 0..EACH as u32 {
                let texts = [0, 1, 2].map(|n| [id, round, n].map(u32::to_ne_bytes).concat());
                let messages = [0, 1, 2].map(|n| Transmit::new(&texts[n]));
                assert_eq!(socket.send_many(&messages).await.unwrap(), 3);
                let mut back = Vec::new();
                while back.len() < 3 {
                    socket.recv_many(&mut batch).await.unwrap();
                    back.extend(batch.iter().map(|each| each.bytes().to_vec()));
                }
                // Two tasks of the server may answer in any order.
                back.sort();
                let mut texts = texts.to_vec();
                texts.sort();
                assert_eq!(back, texts);
            }
        })
    });
    let clients: Vec<_> = clients.collect();
    workers.block_on(support::in_time("an echo", async {
        for client in clients {
            client.await;
        }
    }));
}

#[test]
fn segments_are_cut_up_and_joined() {
    run(async {
        let [(one, from), (other, at)] = v4().await;
        if !one.has_gso().unwrap() {
            println!("skipped: this kernel does not cut datagrams up (UDP_SEGMENT)");
            return;
        }
        let text: Vec<u8> = (0..2_500_u32).map(|n| n as u8).collect();
        let whole = Transmit::new(&text).to(at).segment_size(1_000);
        // Without GRO the datagrams come one by one.
        assert_eq!(one.send_many(&[whole]).await.unwrap(), 1);
        let mut batch = RecvBatch::new(8, 65_535);
        assert_eq!(other.recv_many(&mut batch).await.unwrap(), 3);
        assert_eq!(bytes(&batch), text.chunks(1_000).collect::<Vec<_>>());

        if other.set_gro(true).is_err() {
            println!("skipped in part: this kernel does not join datagrams (UDP_GRO)");
            return;
        }
        assert!(other.gro().unwrap());
        let single = Transmit::new(b"single").to(at);
        assert_eq!(one.send_many(&[whole, single]).await.unwrap(), 2);
        let mut had: Vec<Vec<u8>> = Vec::new();
        while had.len() < 4 {
            other.recv_many(&mut batch).await.unwrap();
            for each in batch.iter() {
                assert_eq!((each.sender(), each.is_truncated()), (from, false));
                had.extend(each.segments().map(<[u8]>::to_vec));
            }
        }
        let mut expected: Vec<_> = text.chunks(1_000).map(<[u8]>::to_vec).collect();
        expected.push(b"single".to_vec());
        assert_eq!(had, expected);
        other.set_gro(false).unwrap();
        assert!(!other.gro().unwrap());

        // 0 is no length, and a length that no datagram reaches cuts nothing up.
        for size in [0, 9_000] {
            let sent = one.send_many(&[single.segment_size(size)]).await.unwrap();
            assert_eq!(sent, 1);
            assert_eq!(other.recv_many(&mut batch).await.unwrap(), 1);
            assert_eq!(bytes(&batch), [b"single"]);
        }
        let too_many = Transmit::new(&text).to(at).segment_size(1);
        let error = one.send_many(&[too_many]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    });
}

/// Fails if the datagrams of a buffer count as one.
#[test]
fn cut_up_datagrams_are_bounded_and_charged_one_by_one() {
    run(async {
        let [(one, _), (_other, at)] = v4().await;
        if !one.has_gso().unwrap() {
            println!("skipped: this kernel does not cut datagrams up (UDP_SEGMENT)");
            return;
        }
        let forty = Transmit::new(&[7; 40]).to(at).segment_size(1);
        let single = Transmit::new(b"x").to(at);
        let twenty = Transmit::new(&[7; 20]).to(at).segment_size(1);
        assert_eq!(one.try_send_many(&[forty, forty]).unwrap(), 1);
        let all = [forty, twenty, single, single, single, single, single];
        assert_eq!(one.try_send_many(&all).unwrap(), 6, "64 datagrams");
        // A call is four operations, and so is a datagram.
        let mut cx = Context::from_waker(Waker::noop());
        Scope::new(Budget::new(162)).run(|| {
            assert!(one.poll_send_many(&mut cx, &[forty]).is_ready());
            assert!(coop_budget::has_remaining());
            assert!(one.poll_send_many(&mut cx, &[forty]).is_ready());
            assert!(!coop_budget::has_remaining());
        });
        Scope::new(Budget::new(160)).run(|| {
            assert!(pin!(one.send_many(&[forty])).poll(&mut cx).is_ready());
            assert!(!coop_budget::has_remaining());
        });
    });
}

/// The loopback joins nothing that was cut up by nobody, so the datagrams come joined only where
/// GSO and GRO meet.
#[test]
fn joined_datagrams_have_a_segment_size() {
    run(async {
        let [(one, _), (other, at)] = v4().await;
        if !one.has_gso().unwrap() || other.set_gro(true).is_err() {
            println!("skipped: this kernel has no GSO or no GRO of UDP");
            return;
        }
        let whole = Transmit::new(&[7; 5_000]).to(at).segment_size(1_200);
        one.send_many(&[whole]).await.unwrap();
        let mut batch = RecvBatch::new(8, 65_535);
        assert_eq!(other.recv_many(&mut batch).await.unwrap(), 1);
        let joined = batch.get(0).unwrap();
        let lens: Vec<_> = joined.segments().map(<[u8]>::len).collect();
        assert_eq!(joined.segment_size(), Some(1_200));
        assert_eq!(lens, [1_200, 1_200, 1_200, 1_200, 200]);
        // A slot that is too small for all of them loses some, and says so.
        one.send_many(&[whole]).await.unwrap();
        let mut small = RecvBatch::new(8, 3_000);
        assert_eq!(other.recv_many(&mut small).await.unwrap(), 1);
        let cut = small.get(0).unwrap();
        assert_eq!((cut.bytes().len(), cut.is_truncated()), (3_000, true));
        assert_eq!(cut.segments().map(<[u8]>::len).sum::<usize>(), 3_000);
    });
}

/// Fails if the kernel has too little room for the control messages that come before the length of
/// the segments: two times, and the number of datagrams that found no room.
#[test]
fn segment_size_is_found_behind_times_and_drops() {
    run(async {
        let [(one, _), (other, at)] = v4().await;
        if !one.has_gso().unwrap() {
            println!("skipped: this kernel has no GSO of UDP");
            return;
        }
        let other = other.into_std().unwrap();
        let set = |level, name, value: libc::c_int| {
            let (at, len) = ((&raw const value).cast(), size_of_val(&value) as _);
            // SAFETY: the pointer is valid for a read of `len` bytes.
            unsafe { libc::setsockopt(other.as_raw_fd(), level, name, at, len) }
        };
        let times = libc::SOF_TIMESTAMPING_SOFTWARE | libc::SOF_TIMESTAMPING_RX_SOFTWARE;
        assert_eq!(set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1), 0);
        assert_eq!(set(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, times as _), 0);
        assert_eq!(set(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1), 0);
        assert_eq!(set(libc::SOL_SOCKET, libc::SO_RCVBUF, 20_000), 0);
        // The socket has the option when it becomes one of the driver.
        if set(libc::SOL_UDP, libc::UDP_GRO, 1) < 0 {
            println!("skipped: this kernel has no GRO of UDP");
            return;
        }
        let other = UdpSocket::from_std(other).unwrap();
        let (drops, mut batch) = (
            [Transmit::new(&[7; 1_000]).to(at); 64],
            RecvBatch::new(64, 9_000),
        );
        assert_eq!(one.send_many(&drops).await.unwrap(), 64);
        assert!(other.recv_many(&mut batch).await.unwrap() < 64);
        let whole = Transmit::new(&[7; 5_000]).to(at).segment_size(1_200);
        one.send_many(&[whole]).await.unwrap();
        assert_eq!(other.recv_many(&mut batch).await.unwrap(), 1);
        let joined = batch.get(0).unwrap();
        assert_eq!(
            (joined.segment_size(), joined.is_truncated()),
            (Some(1_200), false)
        );
    });
}

/// A Unix socket passes for one of UDP, as its datagrams wait in the sender's buffer until the peer
/// receives them. Fails if the send says that more went than did, or if it does not wait for room.
#[test]
fn send_with_a_full_buffer_is_partial_and_then_waits() {
    run(async {
        let (one, other) = UnixDatagram::pair().unwrap();
        other.set_nonblocking(true).unwrap();
        let drain = || std::iter::from_fn(|| other.recv(&mut [0]).ok()).count();
        let socket = UdpSocket::from_std(OwnedFd::from(one).into()).unwrap();
        socket2::SockRef::from(&socket)
            .set_send_buffer_size(20_000)
            .unwrap();
        let messages = [Transmit::new(b"x"); 64];
        let first = socket.send_many(&messages).await.unwrap();
        assert!(0 < first && first < 64, "{first} of 64 datagrams went");
        let rest = &messages[first..];
        assert!(would_block(socket.try_send_many(rest)));
        let mut cx = Context::from_waker(Waker::noop());
        let mut send = pin!(socket.send_many(rest));
        assert!(send.as_mut().poll(&mut cx).is_pending());
        assert_eq!(drain(), first);
        let more = support::in_time("a send", send).await.unwrap();
        assert!(more > 0);
        assert_eq!(drain(), more);
    });
}

/// A waker that knows whether it has woken.
#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

#[test]
fn two_tasks_in_a_receive_both_wake_and_share() {
    run(async {
        let [(one, _), (other, at)] = v4().await;
        let receive = || async {
            let mut batch = RecvBatch::new(1, 4);
            other.recv_many(&mut batch).await.unwrap();
            batch.get(0).unwrap().bytes().to_vec()
        };
        let flags = [Arc::new(Flag::default()), Arc::new(Flag::default())];
        let wakers = flags.each_ref().map(|flag| Waker::from(flag.clone()));
        let mut tasks = [Box::pin(receive()), Box::pin(receive())];
        for (task, waker) in tasks.iter_mut().zip(&wakers) {
            let mut cx = Context::from_waker(waker);
            assert!(task.as_mut().poll(&mut cx).is_pending());
        }
        let messages = [b"a", b"b"].map(|text| Transmit::new(text).to(at));
        one.send_many(&messages).await.unwrap();
        support::in_time("an event", other.readable())
            .await
            .unwrap();
        assert!(flags.iter().all(|flag| flag.0.load(SeqCst)));
        let mut cx = Context::from_waker(Waker::noop());
        let had = tasks.each_mut().map(|task| task.as_mut().poll(&mut cx));
        assert_eq!(had, [b"a", b"b"].map(|text| Poll::Ready(text.to_vec())));
    });
}

#[test]
fn batches_fail_once_the_driver_has_shut_down() {
    let workers = Workers::new(1);
    let [(one, _), (_, at)] = workers.block_on(v4());
    let one = Arc::new(one);
    let waiting = workers.spawn({
        let one = one.clone();
        async move { one.recv_many(&mut RecvBatch::new(1, 1)).await }
    });
    workers.driver.shutdown();
    assert!(future::block_on(waiting).is_err());
    let send = future::block_on(one.send_many(&[Transmit::new(b"x").to(at)]));
    assert_eq!(send.unwrap_err().kind(), ErrorKind::Other);
    let mut batch = RecvBatch::new(1, 1);
    let receive = future::block_on(poll_fn(|cx| one.poll_recv_many(cx, &mut batch)));
    assert_eq!(receive.unwrap_err().kind(), ErrorKind::Other);
}
