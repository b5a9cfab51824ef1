//! Tests of files and directories.
#![cfg(all(
    feature = "fs",
    any(unix, windows),
    not(any(selvedge_loom, selvedge_shuttle))
))]

use futures::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt, FutureExt, future};
use selvedge::{
    Builder, Runtime,
    fs::{self, DirBuilder, File, OpenOptions},
};
use std::{
    future::{Future, poll_fn},
    io::{self, ErrorKind, SeekFrom},
    mem::MaybeUninit,
    path::PathBuf,
    pin::Pin,
    sync::mpsc,
    task::{Context, Poll, Waker},
};

#[cfg(windows)]
mod pipes;
#[cfg(unix)]
mod waits;

fn run<R>(future: impl Future<Output = R>) -> R {
    Runtime::new().unwrap().block_on(future)
}

/// Runs a future in a runtime with one blocking thread, which runs all jobs of files. The function
/// [`cancel_waiting`] needs such a runtime.
fn run_one_by_one<R>(future: impl Future<Output = R>) -> R {
    let runtime = Builder::new().blocking_threads(1).build().unwrap();
    runtime.block_on(future)
}

/// Polls a future once and drops it, while the future's job waits for the only blocking thread.
fn cancel_waiting<R>(future: impl Future<Output = R>) {
    let (gate, holds) = mpsc::channel::<()>();
    drop(selvedge::spawn_blocking(move || holds.recv()));
    assert!(cancel(future).is_none(), "the only thread waits");
    drop(gate);
}

fn directory() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_owned();
    (directory, path)
}

/// Bytes whose values depend on their positions.
fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 % 251) as u8).collect()
}

/// Polls a future once and drops it.
fn cancel<R>(future: impl Future<Output = R>) -> Option<R> {
    let mut cx = Context::from_waker(Waker::noop());
    match Box::pin(future).poll_unpin(&mut cx) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

/// Fails if a buffer that is smaller than the file, or than the read, loses or repeats bytes.
#[test]
fn short_reads_return_every_byte_once() {
    let (_held, directory) = directory();
    let all = bytes(10_000);
    run(async {
        fs::write(directory.join("a"), &all).await.unwrap();
        let mut file = File::open(directory.join("a")).await.unwrap();
        file.set_max_buf_size(13);
        let (mut read, mut part) = (Vec::new(), [0; 17]);
        loop {
            let count = file.read(&mut part).await.unwrap();
            assert!(count <= 13);
            if count == 0 {
                break;
            }
            read.extend_from_slice(&part[..count]);
        }
        assert!(read == all);
        assert_eq!(file.read(&mut []).await.unwrap(), 0);
    });
}

/// Fails if the bytes of a cancelled read are lost, or if later reads return them twice.
#[test]
fn cancelled_read_loses_no_bytes() {
    let (_held, directory) = directory();
    let all = bytes(1_000);
    run_one_by_one(async {
        fs::write(directory.join("a"), &all).await.unwrap();
        let mut file = File::open(directory.join("a")).await.unwrap();
        cancel_waiting(file.read(&mut [0; 600]));
        let (mut read, mut part) = (Vec::new(), [0; 7]);
        loop {
            // Every second read is cancelled if it is pending. If bytes were read ahead, it returns
            // them instead.
            if let Some(count) = cancel(file.read(&mut part)) {
                read.extend_from_slice(&part[..count.unwrap()]);
            }
            let count = file.read(&mut part).await.unwrap();
            if count == 0 {
                break;
            }
            read.extend_from_slice(&part[..count]);
        }
        assert!(read == all);
    });
}

/// Fails if a seek, a write, a clone or the file of std begins at the position up to which a job
/// has read ahead. It must begin at the position up to which the program has read.
#[test]
fn position_is_where_the_program_has_read_to() {
    let (_held, directory) = directory();
    run_one_by_one(async {
        let at = directory.join("a");
        fs::write(&at, bytes(100)).await.unwrap();
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let ahead = async || {
            let mut file = options.open(&at).await.unwrap();
            cancel_waiting(file.read(&mut [0; 50]));
            file.read_exact(&mut [0; 10]).await.unwrap();
            file
        };

        let mut file = ahead().await;
        assert_eq!(file.seek(SeekFrom::Current(5)).await.unwrap(), 15);
        let mut byte = [0];
        file.read_exact(&mut byte).await.unwrap();
        assert_eq!(byte[0], bytes(16)[15]);
        assert_eq!(file.seek(SeekFrom::End(-1)).await.unwrap(), 99);
        assert!(file.seek(SeekFrom::Current(-200)).await.is_err());
        assert_eq!(file.seek(SeekFrom::Current(0)).await.unwrap(), 99);

        let mut file = ahead().await;
        file.write_all(&[255; 3]).await.unwrap();
        file.read_exact(&mut byte).await.unwrap();
        assert_eq!(byte[0], bytes(14)[13], "the read follows the write");
        let mut expected = bytes(100);
        expected[10..13].fill(255);
        assert!(fs::read(&at).await.unwrap() == expected);

        let file = ahead().await;
        let mut clone = file.try_clone().await.unwrap();
        assert_eq!(clone.seek(SeekFrom::Current(0)).await.unwrap(), 10);
        let mut std = ahead().await.into_std().await;
        assert_eq!(io::Seek::stream_position(&mut std).unwrap(), 10);
    });
}

/// Fails if a failed seek drops the bytes that were read ahead.
#[test]
fn failed_seek_keeps_what_was_read() {
    let (_held, directory) = directory();
    run_one_by_one(async {
        fs::write(directory.join("a"), bytes(100)).await.unwrap();
        let mut file = File::open(directory.join("a")).await.unwrap();
        cancel_waiting(file.read(&mut [0; 50]));
        for place in [
            SeekFrom::Current(-1),
            SeekFrom::Current(i64::MIN),
            SeekFrom::End(-101),
        ] {
            let error = file.seek(place).await.unwrap_err();
            // Windows has an error for this, of no kind.
            let is_invalid = error.kind() == ErrorKind::InvalidInput;
            assert!(is_invalid || cfg!(windows), "{place:?}: {error}");
        }
        let mut all = Vec::new();
        file.read_to_end(&mut all).await.unwrap();
        assert!(all == bytes(100));
    });
}

/// Fails if a relative seek that is cancelled and repeated moves twice.
#[test]
fn cancelled_seek_takes_place_once() {
    let (_held, directory) = directory();
    run_one_by_one(async {
        fs::write(directory.join("a"), bytes(100)).await.unwrap();
        let mut file = File::open(directory.join("a")).await.unwrap();
        cancel_waiting(file.seek(SeekFrom::Current(5)));
        assert_eq!(file.seek(SeekFrom::Current(5)).await.unwrap(), 5);
        assert_eq!(file.seek(SeekFrom::Current(5)).await.unwrap(), 10);
        // With a read between the two seeks, both take place.
        cancel_waiting(file.seek(SeekFrom::Current(5)));
        file.read_exact(&mut [0; 5]).await.unwrap();
        assert_eq!(file.seek(SeekFrom::Current(5)).await.unwrap(), 25);
    });
}

/// Fails if a read returns bytes, or the end of the file, that a job found before the file's length
/// was set.
#[test]
fn set_len_drops_what_was_read_ahead() {
    let (_held, directory) = directory();
    run_one_by_one(async {
        fs::write(directory.join("a"), bytes(10)).await.unwrap();
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .write(true)
            .open(directory.join("a"))
            .await
            .unwrap();
        let mut to = [1; 20];
        cancel_waiting(file.read(&mut to));
        file.metadata().await.unwrap();
        file.set_len(0).await.unwrap();
        assert_eq!(file.read(&mut to).await.unwrap(), 0);
        cancel_waiting(file.read(&mut to));
        file.metadata().await.unwrap();
        file.set_len(15).await.unwrap();
        assert_eq!(file.read(&mut to).await.unwrap(), 15);
        assert_eq!(to[..15], [0; 15]);
    });
}

/// Fails if a seek returns the result of a cancelled seek, although another operation came between
/// the two seeks.
#[test]
fn cancelled_seek_ends_before_other_operations() {
    let (_held, directory) = directory();
    run_one_by_one(async {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true);
        let mut file = options.open(directory.join("a")).await.unwrap();
        let end = SeekFrom::End(0);
        file.set_len(10).await.unwrap();
        cancel_waiting(file.seek(end));
        file.set_len(50).await.unwrap();
        assert_eq!(file.seek(end).await.unwrap(), 50);
        assert_eq!(file.seek(SeekFrom::Current(0)).await.unwrap(), 50);

        let by = SeekFrom::Current(-5);
        cancel_waiting(file.seek(by));
        assert_eq!(file.read(&mut []).await.unwrap(), 0);
        assert_eq!(file.seek(by).await.unwrap(), 40);
        cancel_waiting(file.seek(by));
        assert_eq!(file.write(&[]).await.unwrap(), 0);
        assert_eq!(file.seek(by).await.unwrap(), 30);
    });
}

/// Fails if bytes that were written are lost when the file is dropped and the runtime ends.
#[test]
fn bytes_of_a_dropped_file_arrive() {
    let (_held, directory) = directory();
    let all = bytes(100_000);
    run(async {
        let mut file = File::create(directory.join("a")).await.unwrap();
        for part in all.chunks(100) {
            file.write_all(part).await.unwrap();
        }
    });
    assert!(std::fs::read(directory.join("a")).unwrap() == all);
}

/// Fails if the error of a buffered write is lost, or comes twice, or comes from a read.
#[cfg(target_os = "linux")]
#[test]
fn buffered_write_reports_its_error_once() {
    run(async {
        let full = async || {
            let mut options = OpenOptions::new();
            let mut file = options
                .read(true)
                .write(true)
                .open("/dev/full")
                .await
                .unwrap();
            file.write_all(b"abc").await.unwrap();
            file
        };
        let is_full = |result: io::Result<()>| result.unwrap_err().kind() == ErrorKind::StorageFull;

        let mut file = full().await;
        assert!(is_full(file.flush().await));
        file.flush().await.unwrap();

        let mut file = full().await;
        assert!(is_full(file.close().await));

        let mut file = full().await;
        file.read_exact(&mut [0; 3]).await.unwrap();
        file.metadata().await.unwrap();
        assert!(is_full(file.write(b"d").await.map(drop)));
        file.write_all(b"d").await.unwrap();
        assert!(is_full(file.flush().await));

        assert!(is_full(full().await.sync_all().await));
        assert!(is_full(full().await.sync_data().await));
        assert!(is_full(full().await.set_len(0).await));
        assert!(is_full(full().await.try_clone().await.map(drop)));
        drop(full().await.into_std().await);
    });
}

#[test]
#[should_panic(expected = "at least 1 byte, not 0")]
fn buffer_of_no_byte_panics() {
    let file = tempfile::tempfile().unwrap();
    File::from_std(file).set_max_buf_size(0);
}

/// Fails if `into_std` or `try_into_std` returns the file of std while a job still has it that does
/// not use the file's position, such as `metadata`, or if `into_std` misses the end of that job.
#[test]
fn into_std_waits_for_cancelled_metadata() {
    run_one_by_one(async {
        let (_held, directory) = directory();
        let mut file = File::create(directory.join("a")).await.unwrap();
        let (gate, holds) = mpsc::channel::<()>();
        drop(selvedge::spawn_blocking(move || holds.recv()));
        assert!(cancel(file.metadata()).is_none(), "the only thread waits");
        file = file.try_into_std().unwrap_err();
        let mut into_std = Box::pin(file.into_std());
        let waker = Waker::noop();
        assert!(
            into_std
                .poll_unpin(&mut Context::from_waker(waker))
                .is_pending()
        );
        drop(gate);
        drop(into_std.await);
    });
}

/// Fails if entries are lost or repeated at the edge of a batch, or when a future of `next_entry`
/// is dropped.
#[test]
fn read_dir_returns_every_entry_once() {
    let (_held, directory) = directory();
    for count in [0, 1, 1_000, 2_048, 2_500] {
        let directory = directory.join(count.to_string());
        std::fs::create_dir(&directory).unwrap();
        for at in 0..count {
            std::fs::write(directory.join(at.to_string()), "").unwrap();
        }
        let mut names = run(async {
            let mut entries = fs::read_dir(&directory).await.unwrap();
            let mut names = Vec::new();
            loop {
                let next = match cancel(entries.next_entry()) {
                    Some(next) => next.unwrap(),
                    None => entries.next_entry().await.unwrap(),
                };
                let Some(entry) = next else { break };
                assert!(entry.file_type().await.unwrap().is_file());
                names.push(
                    entry
                        .file_name()
                        .to_str()
                        .unwrap()
                        .parse::<usize>()
                        .unwrap(),
                );
            }
            assert!(entries.next_entry().await.unwrap().is_none());
            names
        });
        names.sort_unstable();
        assert!(names.into_iter().eq(0..count), "{count}");
    }
}

/// Fails if an error of std is hidden or changed.
#[test]
fn errors_are_those_of_std() {
    let (_held, directory) = directory();
    let none = directory.join("none");
    run(async {
        let kinds = [
            fs::read(&none).await.map(drop),
            fs::read_to_string(&none).await.map(drop),
            fs::metadata(&none).await.map(drop),
            fs::symlink_metadata(&none).await.map(drop),
            fs::canonicalize(&none).await.map(drop),
            fs::read_link(&none).await.map(drop),
            fs::read_dir(&none).await.map(drop),
            fs::remove_file(&none).await,
            fs::remove_dir(&none).await,
            fs::remove_dir_all(&none).await,
            fs::rename(&none, directory.join("a")).await,
            fs::copy(&none, directory.join("a")).await.map(drop),
            fs::hard_link(&none, directory.join("a")).await,
            fs::create_dir(none.join("a")).await,
            fs::write(none.join("a"), "").await,
            File::open(&none).await.map(drop),
        ];
        for (at, result) in kinds.into_iter().enumerate() {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::NotFound, "{at}");
        }
        fs::write(directory.join("a"), [255]).await.unwrap();
        let text = fs::read_to_string(directory.join("a")).await;
        assert_eq!(text.unwrap_err().kind(), ErrorKind::InvalidData);
        let again = File::create_new(directory.join("a")).await;
        assert_eq!(again.unwrap_err().kind(), ErrorKind::AlreadyExists);
        let error = DirBuilder::new()
            .create(directory.join("a"))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        let mut unreadable = OpenOptions::new()
            .write(true)
            .open(directory.join("a"))
            .await
            .unwrap();
        assert!(unreadable.read(&mut [0]).await.is_err());
        unreadable.seek(SeekFrom::Start(0)).await.unwrap();
    });
}

/// Fails if an operation hangs or panics once the runtime has ended, or if `flush` succeeds
/// although the bytes of a write were not written.
#[test]
fn operations_after_the_shutdown_fail() {
    let (_held, directory) = directory();
    let runtime = Runtime::new().unwrap();
    let handle = runtime.handle().clone();
    std::fs::write(directory.join("a"), bytes(10)).unwrap();
    let options = OpenOptions::new().read(true).write(true).clone();
    let mut file = runtime.block_on(options.open(directory.join("a"))).unwrap();
    let mut entries = runtime.block_on(fs::read_dir(&directory)).unwrap();
    drop(runtime);
    let _entered = handle.enter();
    futures::executor::block_on(async {
        let kinds = [
            fs::read(directory.join("a")).await.map(drop),
            file.read(&mut [0]).await.map(drop),
            file.seek(SeekFrom::Start(0)).await.map(drop),
            file.metadata().await.map(drop),
            future::ready(file.write(b"a").await.map(drop))
                .then(|wrote| async {
                    wrote.unwrap();
                    file.flush().await
                })
                .await,
        ];
        for (at, result) in kinds.into_iter().enumerate() {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::Other, "{at}");
        }
        entries.next_entry().await.unwrap().unwrap();
        assert!(
            entries.next_entry().await.unwrap().is_none(),
            "all came with the first job"
        );
        drop(file.into_std().await);
    });
    assert_eq!(std::fs::read(directory.join("a")).unwrap(), bytes(10));
}

/// Writes, seeks and reads by the traits of the module `$io`.
macro_rules! check_traits {
    ($path:expr, $($io:ident)::+) => {{
        use $($io)::+::{AsyncRead, AsyncSeek, AsyncWrite, ReadBuf};

        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true);
        let mut file = options.open($path).await.unwrap();
        let mut file = Pin::new(&mut file);
        assert!(AsyncWrite::is_write_vectored(&*file));
        let parts = [io::IoSlice::new(b"ab"), io::IoSlice::new(b"cd")];
        let wrote = poll_fn(|cx| AsyncWrite::poll_write_vectored(file.as_mut(), cx, &parts)).await;
        assert_eq!(wrote.unwrap(), 4);
        let wrote = poll_fn(|cx| AsyncWrite::poll_write(file.as_mut(), cx, b"e")).await;
        assert_eq!(wrote.unwrap(), 1);
        poll_fn(|cx| AsyncWrite::poll_flush(file.as_mut(), cx))
            .await
            .unwrap();
        AsyncSeek::start_seek(file.as_mut(), SeekFrom::Start(1)).unwrap();
        let place = poll_fn(|cx| AsyncSeek::poll_complete(file.as_mut(), cx)).await;
        assert_eq!(place.unwrap(), 1);
        let mut to = [MaybeUninit::uninit(); 8];
        let mut to = ReadBuf::uninit(&mut to);
        poll_fn(|cx| AsyncRead::poll_read(file.as_mut(), cx, &mut to))
            .await
            .unwrap();
        assert_eq!((to.filled(), to.initialized().len()), (&b"bcde"[..], 4));
        poll_fn(|cx| AsyncWrite::poll_shutdown(file.as_mut(), cx))
            .await
            .unwrap();
    }};
}

/// Fails if the traits differ from those of `futures_io`, or initialise memory for nothing.
#[test]
fn file_has_the_traits_of_io() {
    let (_held, directory) = directory();
    run(async {
        check_traits!(directory.join("a"), selvedge::io);
        #[cfg(feature = "tokio")]
        check_traits!(directory.join("b"), tokio::io);
    });
}
