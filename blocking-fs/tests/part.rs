//! Parts of files that go to sockets through pipes.
#![cfg(all(
    target_os = "linux",
    not(any(selvedge_loom, selvedge_shuttle, selvedge_count))
))]
use blocking_fs::{File, OpenOptions, Part};
use blocking_threads::{Boxed, NoPool, Pool, Settings};
use futures_lite::{
    AsyncReadExt, AsyncWriteExt,
    future::{poll_once, yield_now},
};
use net_driver::{
    Driver,
    net::{TcpListener, TcpStream, UnixStream},
};
use static_assertions::assert_impl_all;
use std::{
    fs,
    io::{self, ErrorKind, Read, Seek, SeekFrom, Write},
    net, thread,
};
use tempfile::NamedTempFile;

assert_impl_all!(Part<'static>: Send, Unpin);

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

fn file_of(bytes: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn run<F: Future>(future: F) -> F::Output {
    let pool: Pool<Boxed> = Pool::new(Settings::default());
    let _entered = pool.enter();
    Driver::new(1).park(0).block_on(future)
}

/// Connects a stream, and starts a thread that reads all of its bytes.
async fn client() -> (TcpStream, thread::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut stream = net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let reads = thread::spawn(move || {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        all
    });
    (listener.accept().await.unwrap().0, reads)
}

#[test]
fn ranges_arrive_whole() {
    const LEN: u64 = (3 << 20) + 17;
    let all = bytes(LEN as usize);
    let on_disk = file_of(&all);
    for (start, end) in [
        (0, 0),
        (5, 5),
        (5, 6),
        (0, 4_095),
        (1, 4_097),
        (0, 65_536),
        (3, 65_540),
        (4_097, 1 << 20),
        (0, LEN),
        (1, LEN - 1),
        (LEN - 1, LEN),
    ] {
        run(async {
            let file = File::open(on_disk.path()).await.unwrap();
            let (stream, reads) = client().await;
            let mut part = file.part(start..end);
            assert_eq!(part.send_to(&stream).await.unwrap(), end - start);
            assert_eq!(part.send_to(&stream).await.unwrap(), end - start);
            drop(stream);
            assert!(reads.join().unwrap() == all[start as usize..end as usize]);
        });
    }
}

#[test]
fn unix_streams_take_parts() {
    let all = bytes(2 << 20);
    let on_disk = file_of(&all);
    run(async {
        let file = File::open(on_disk.path()).await.unwrap();
        let (stream, mut peer) = UnixStream::pair().unwrap();
        let mut part = file.part(0..u64::MAX);
        let sends = async {
            part.send_to(&stream).await.unwrap();
            drop(stream);
        };
        let mut read = Vec::new();
        let reads = peer.read_to_end(&mut read);
        futures_lite::future::zip(sends, reads).await.1.unwrap();
        assert!(read == all);
    });
}

// Fails if a part uses the file's position, or if reads ahead and parts disturb each other.
#[test]
fn part_leaves_the_position_alone() {
    let all = bytes(300_000);
    let on_disk = file_of(&all);
    run(async {
        let mut file = File::open(on_disk.path()).await.unwrap();
        let (stream, reads) = client().await;
        for round in 0..20 {
            let mut to = [0; 1_000];
            file.read_exact(&mut to).await.unwrap();
            assert!(to == all[round * 1_000..][..1_000]);
            file.part(7..200_000).send_to(&stream).await.unwrap();
        }
        let position = file.into_std().await.stream_position().unwrap();
        assert_eq!(position, 20_000);
        drop(stream);
        assert!(reads.join().unwrap() == all[7..200_000].repeat(20));
    });
}

#[test]
fn part_ends_with_the_file_and_goes_on_as_it_grows() {
    let mut on_disk = file_of(b"0123456789");
    run(async {
        let file = File::open(on_disk.path()).await.unwrap();
        let (stream, reads) = client().await;
        let mut part = file.part(8..15);
        assert_eq!(part.send_to(&stream).await.unwrap(), 2);
        on_disk.write_all(b"abcdefgh").unwrap();
        assert_eq!(part.send_to(&stream).await.unwrap(), 7);
        assert_eq!(part.sent(), 7);
        assert_eq!(file.part(100..200).send_to(&stream).await.unwrap(), 0);
        drop(stream);
        assert_eq!(reads.join().unwrap(), b"89abcde");
    });
}

#[test]
fn written_bytes_are_sent() {
    let on_disk = file_of(b"");
    run(async {
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .write(true)
            .open(on_disk.path())
            .await
            .unwrap();
        let (stream, reads) = client().await;
        let all = bytes(5 << 20);
        file.write_all(&all).await.unwrap();
        let count = file.part(0..u64::MAX).send_to(&stream).await.unwrap();
        assert_eq!(count, all.len() as u64);
        drop(stream);
        assert!(reads.join().unwrap() == all);
    });
}

// Fails if a dropped future loses bytes, or if `sent` counts bytes that are still in the pipe.
#[test]
fn dropped_sends_count_what_the_socket_has() {
    let all = bytes(4 << 20);
    let on_disk = file_of(&all);
    run(async {
        let file = File::open(on_disk.path()).await.unwrap();
        let (stream, mut peer) = UnixStream::pair().unwrap();
        let (mut part, mut read) = (file.part(0..u64::MAX), Vec::new());
        while read.len() < all.len() {
            // Each future is polled once, and dropped.
            let polled = poll_once(part.send_to(&stream)).await;
            assert!(polled.is_none_or(|sent| sent.unwrap() == all.len() as u64));
            let count = part.sent() as usize - read.len();
            let mut to = vec![0; count];
            peer.read_exact(&mut to).await.unwrap();
            read.extend(to);
            assert_eq!(
                peer.try_read(&mut [0]).unwrap_err().kind(),
                ErrorKind::WouldBlock
            );
            yield_now().await;
        }
        assert!(read == all);
    });
}

#[test]
fn part_dropped_in_the_middle_leaves_file_and_socket() {
    let all = bytes(4 << 20);
    let on_disk = file_of(&all);
    run(async {
        let file = File::open(on_disk.path()).await.unwrap();
        let (mut stream, mut peer) = UnixStream::pair().unwrap();
        let mut part = file.part(0..u64::MAX);
        while part.sent() == 0 {
            assert!(poll_once(part.send_to(&stream)).await.is_none());
            yield_now().await;
        }
        let sent = part.sent() as usize;
        drop(part);
        let mut to = vec![0; sent];
        peer.read_exact(&mut to).await.unwrap();
        assert!(to == all[..sent]);
        stream.write_all(b"!").await.unwrap();
        peer.read_exact(&mut to[..1]).await.unwrap();
        assert_eq!(to[0], b'!');
        let mut std = file.into_std().await;
        assert_eq!(std.seek(SeekFrom::End(0)).unwrap(), all.len() as u64);
    });
}

#[test]
fn closed_socket_returns_its_error() {
    let on_disk = file_of(&bytes(4 << 20));
    run(async {
        let file = File::open(on_disk.path()).await.unwrap();
        let (stream, peer) = UnixStream::pair().unwrap();
        drop(peer);
        let mut part = file.part(0..u64::MAX);
        for _ in 0..3 {
            let error = part.send_to(&stream).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
            assert_eq!(part.sent(), 0);
        }
    });
}

#[test]
fn unreadable_file_returns_its_error() {
    let on_disk = file_of(&bytes(100));
    run(async {
        let (stream, _peer) = UnixStream::pair().unwrap();
        let file = OpenOptions::new()
            .write(true)
            .open(on_disk.path())
            .await
            .unwrap();
        let mut expected = fs::OpenOptions::new()
            .write(true)
            .open(on_disk.path())
            .unwrap();
        let expected = expected.read(&mut [0]).unwrap_err();
        let mut part = file.part(0..1);
        for _ in 0..3 {
            let error = part.send_to(&stream).await.unwrap_err();
            assert_eq!(error.raw_os_error(), expected.raw_os_error());
        }
        let directory = File::open("/").await.unwrap();
        let error = directory.part(0..1).send_to(&stream).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IsADirectory);
        let (pipe, _writer) = UnixStream::pair().unwrap();
        let pipe = std::os::fd::OwnedFd::from(pipe.into_std().unwrap());
        assert!(File::from(pipe).part(0..1).send_to(&stream).await.is_err());
        let file = File::open(on_disk.path()).await.unwrap();
        assert!(
            file.part(u64::MAX - 1..u64::MAX)
                .send_to(&stream)
                .await
                .is_err()
        );
    });
}

#[test]
fn part_without_a_pool_goes_on_in_the_next_one() {
    let on_disk = file_of(b"0123456789");
    let file = run(File::open(on_disk.path())).unwrap();
    let mut part = file.part(0..10);
    let no_pool = Driver::new(1).park(0).block_on(async {
        let (stream, _peer) = UnixStream::pair().unwrap();
        assert_eq!(file.part(3..3).send_to(&stream).await.unwrap(), 0);
        part.send_to(&stream).await.unwrap_err()
    });
    assert!(no_pool.get_ref().unwrap().is::<NoPool>());
    run(async {
        let (stream, mut peer) = UnixStream::pair().unwrap();
        assert_eq!(part.send_to(&stream).await.unwrap(), 10);
        let mut to = [0; 10];
        peer.read_exact(&mut to).await.unwrap();
        assert_eq!(&to, b"0123456789");
    });
}

// The files of some systems cannot splice, or have no length.
#[test]
fn file_of_the_kernel_is_sent_whole() {
    for path in ["/proc/version", "/proc/self/cmdline", "/proc/filesystems"] {
        let expected = fs::read(path).unwrap();
        let sent: io::Result<Vec<u8>> = run(async {
            let file = File::open(path).await?;
            let (stream, reads) = client().await;
            file.part(0..u64::MAX).send_to(&stream).await?;
            drop(stream);
            Ok(reads.join().unwrap())
        });
        assert_eq!(sent.unwrap(), expected, "{path}");
    }
}
