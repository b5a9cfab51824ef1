//! A random test of operations on two connected streams. It compares the bytes that each side reads
//! with the bytes that the other side has written.
//!
//! `SELVEDGE_OPERATIONS` sets the number of operations, which is 5,000 by default. `SELVEDGE_SEED`
//! sets the seed, which is taken from the clock by default. Each test prints its seed.
#![cfg(any(target_os = "linux", windows))]
mod support;

#[cfg(unix)]
use net_driver::net::UnixStream;
use net_driver::net::{TcpListener, TcpStream};
use std::{
    env,
    future::poll_fn,
    io::{self, ErrorKind, IoSlice, IoSliceMut},
    pin::Pin,
    sync::LazyLock,
    task::{Context, Poll, Waker},
    time::UNIX_EPOCH,
};
use support::{Random, run};

/// The methods that both types of streams have and the test uses.
trait Stream: futures_io::AsyncRead + futures_io::AsyncWrite + Unpin {
    fn try_read(&self, to: &mut [u8]) -> io::Result<usize>;
    fn try_write(&self, from: &[u8]) -> io::Result<usize>;
}

macro_rules! stream {
    ($($type:ty),*) => {$(
        impl Stream for $type {
            fn try_read(&self, to: &mut [u8]) -> io::Result<usize> {
                <$type>::try_read(self, to)
            }

            fn try_write(&self, from: &[u8]) -> io::Result<usize> {
                <$type>::try_write(self, from)
            }
        }
    )*};
}

stream! { TcpStream }
#[cfg(unix)]
stream! { UnixStream }

/// The largest number of bytes of one read or write.
const LONGEST: usize = 100_000;

/// The bytes of a direction repeat after this number of bytes, which is a prime.
const PERIOD: usize = 65_521;

/// Returns `len` bytes of one direction, from byte `number` on. The value of a byte depends on its
/// number.
fn bytes(number: u64, len: usize) -> &'static [u8] {
    static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let byte = |n: usize| ((n % PERIOD) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
        (0..PERIOD + LONGEST).map(|n| byte(n) as u8).collect()
    });
    &BYTES[(number % PERIOD as u64) as usize..][..len]
}

#[derive(Default)]
struct Direction {
    written: u64,
    read: u64,
    is_closed: bool,
    has_ended: bool,
}

fn number(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |said| said.parse().expect("a number"))
}

fn would_block(result: io::Result<usize>) -> Poll<io::Result<usize>> {
    match result {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Poll::Pending,
        done => Poll::Ready(done),
    }
}

fn write(random: &mut Random, stream: &mut impl Stream, at: &mut Direction) {
    let longest = [1, 100, 5_000, LONGEST][random.below(4)];
    let len = 1 + random.below(longest);
    let data = bytes(at.written, len);
    let mut cx = Context::from_waker(Waker::noop());
    let written = match random.below(3) {
        0 => Pin::new(stream).poll_write(&mut cx, data),
        1 => {
            let (one, other) = data.split_at(random.below(len));
            let parts = [IoSlice::new(one), IoSlice::new(other)];
            Pin::new(stream).poll_write_vectored(&mut cx, &parts)
        }
        _ => would_block(stream.try_write(data)),
    };
    if let Poll::Ready(written) = written {
        if at.is_closed {
            let error = written.unwrap_err();
            let is_shut_down = cfg!(windows) && error.raw_os_error() == Some(10_058);
            assert!(
                is_shut_down || error.kind() == ErrorKind::BrokenPipe,
                "{error}"
            );
        } else {
            at.written += written.unwrap() as u64;
        }
    }
}

/// Reads from the stream, and checks the bytes. Returns whether the read would have waited.
fn read(random: &mut Random, stream: &mut impl Stream, at: &mut Direction) -> bool {
    let longest = [1, 100, 5_000, LONGEST][random.below(4)];
    let len = 1 + random.below(longest);
    let mut to = vec![0; len];
    let mut cx = Context::from_waker(Waker::noop());
    let count = match random.below(3) {
        0 => Pin::new(stream).poll_read(&mut cx, &mut to),
        1 => {
            let (one, other) = to.split_at_mut(random.below(len));
            let mut parts = [IoSliceMut::new(one), IoSliceMut::new(other)];
            Pin::new(stream).poll_read_vectored(&mut cx, &mut parts)
        }
        _ => would_block(stream.try_read(&mut to)),
    };
    let Poll::Ready(count) = count else {
        return true;
    };
    let count = count.unwrap();
    let differs = to[..count] != *bytes(at.read, count);
    assert!(!differs, "{count} bytes from byte {}", at.read);
    at.read += count as u64;
    assert!(at.read <= at.written, "more bytes than were written");
    if count == 0 {
        assert!(at.is_closed && at.read == at.written, "an early end");
        at.has_ended = true;
    }
    false
}

/// Yields, so that the driver delivers events.
async fn turn() {
    let mut yielded = false;
    poll_fn(|cx| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

async fn converse<S: Stream>(random: &mut Random, mut streams: [S; 2], operations: u64) {
    let mut directions = [Direction::default(), Direction::default()];
    for _ in 0..operations {
        let side = random.below(2);
        match random.below(100) {
            0..45 => write(random, &mut streams[side], &mut directions[side]),
            45..95 => drop(read(random, &mut streams[1 - side], &mut directions[side])),
            _ => turn().await,
        }
    }
    for side in 0..2 {
        let mut cx = Context::from_waker(Waker::noop());
        let closed = Pin::new(&mut streams[side]).poll_close(&mut cx);
        assert!(matches!(closed, Poll::Ready(Ok(()))));
        directions[side].is_closed = true;
        write(random, &mut streams[side], &mut directions[side]);
    }
    for side in 0..2 {
        while !directions[side].has_ended {
            if read(random, &mut streams[1 - side], &mut directions[side]) {
                turn().await;
            }
        }
        assert_eq!(directions[side].read, directions[side].written);
    }
}

fn with_random(test: impl FnOnce(&mut Random, u64)) {
    let now = UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let seed = number("SELVEDGE_SEED", now);
    println!("seed: {seed}");
    test(&mut Random::new(seed), number("SELVEDGE_OPERATIONS", 5_000));
}

#[test]
fn random_operations_on_tcp_streams_keep_the_bytes() {
    with_random(|random, operations| {
        run(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let one = TcpStream::connect(listener.local_addr().unwrap())
                .await
                .unwrap();
            let (other, _) = listener.accept().await.unwrap();
            converse(random, [one, other], operations).await;
        });
    });
}

#[test]
#[cfg(unix)]
fn random_operations_on_unix_streams_keep_the_bytes() {
    with_random(|random, operations| {
        run(async {
            let (one, other) = UnixStream::pair().unwrap();
            converse(random, [one, other], operations).await;
        });
    });
}
