//! Operations of files that are pipes and sockets, which wait for their other end.
use super::{bytes, cancel, cancel_waiting, run, run_one_by_one};
use futures::{AsyncReadExt, AsyncWriteExt, FutureExt};
use selvedge::{
    Runtime,
    fs::{self, File},
};
use std::{
    io::{Read, Write},
    os::{
        fd::{FromRawFd, OwnedFd},
        unix::net::UnixStream,
    },
    pin::Pin,
    sync::{Arc, mpsc},
    task::{Context, RawWaker, RawWakerVTable, Wake, Waker},
};

/// Returns a file for a full pipe, the pipe's reader, and the number of bytes in the pipe. Writes
/// to the file wait until the reader takes these bytes.
fn full_pipe() -> (File, std::fs::File, usize) {
    let mut ends = [0; 2];
    // SAFETY: the array has room for the two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: the call above has made the descriptors, and nothing else owns them.
    let ends = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
    let [reader, mut filler] = ends.map(std::fs::File::from);
    // Fills the pipe without blocking. The flag `O_NONBLOCK` belongs to the open pipe, so it is
    // cleared afterwards.
    let mut room = 0;
    let fd = std::os::fd::AsRawFd::as_raw_fd(&filler);
    let set = |on: bool| {
        let flags = if on { libc::O_NONBLOCK } else { 0 };
        // SAFETY: the call takes no pointers.
        assert_eq!(unsafe { libc::fcntl(fd, libc::F_SETFL, flags) }, 0);
    };
    set(true);
    while let Ok(count) = filler.write(&[0; 4096]) {
        room += count;
    }
    set(false);
    (File::from_std(filler), reader, room)
}

/// Fails if a write waits although there is room in the buffers, if the buffers have no bound, or
/// if bytes that were gathered get lost or out of order.
#[test]
fn writes_are_gathered_up_to_the_limit() {
    const LIMIT: usize = 1_000;
    run(async {
        let (mut file, mut reader, room) = full_pipe();
        file.set_max_buf_size(LIMIT);
        let all = bytes(10 * LIMIT);
        let mut taken = 0;
        while let Some(count) = cancel(file.write(&all[taken..taken + 10])) {
            taken += count.unwrap();
        }
        assert!((LIMIT..=2 * LIMIT).contains(&taken), "{taken}");
        assert!(cancel(file.flush()).is_none());

        let mut rest = all.clone();
        drop(rest.drain(..taken));
        let write = selvedge::spawn(async move {
            file.write_all(&rest).await.unwrap();
            file.flush().await.unwrap();
        });
        let len = all.len();
        let read = selvedge::spawn_blocking(move || {
            let mut read = vec![0; room + len];
            reader.read_exact(&mut read).unwrap();
            read.split_off(room)
        });
        assert!(read.await.unwrap() == all);
        write.await.unwrap();
    });
}

/// Fails if a file without a position, such as a socket, loses the bytes that were read ahead when
/// the program writes to the file.
#[test]
fn write_to_a_socket_keeps_what_was_read() {
    run_one_by_one(async {
        let (one, mut other) = UnixStream::pair().unwrap();
        let mut file = File::from(OwnedFd::from(one));
        other.write_all(b"hello").unwrap();
        cancel_waiting(file.read(&mut [0; 5]));
        file.read_exact(&mut [0; 2]).await.unwrap();
        file.write_all(b"back").await.unwrap();
        file.flush().await.unwrap();
        let mut rest = [0; 3];
        file.read_exact(&mut rest).await.unwrap();
        assert_eq!(&rest, b"llo");
        other.read_exact(&mut [0; 4]).unwrap();
    });
}

/// Fails if one of several tasks that wait for the same write is not woken.
#[test]
fn operations_of_many_tasks_wait_for_the_write() {
    run(async {
        let (mut file, mut reader, room) = full_pipe();
        file.write_all(b"a").await.unwrap();
        let file = Arc::new(file);
        let tasks: Vec<_> = (0..20)
            .map(|_| {
                let file = file.clone();
                selvedge::spawn(async move { file.metadata().await.unwrap() })
            })
            .collect();
        let read = selvedge::spawn_blocking(move || {
            reader.read_exact(&mut vec![0; room + 1]).unwrap();
        });
        for task in tasks {
            task.await.unwrap();
        }
        read.await.unwrap();
    });
}

struct NoWake;

impl Wake for NoWake {
    fn wake(self: Arc<Self>) {}
}

/// One task makes all polls, each with a new waker. Fails if the file keeps another waker than the
/// last.
#[test]
fn file_keeps_one_waker_for_each_task() {
    run(async {
        let (mut file, reader, _) = full_pipe();
        file.write_all(b"a").await.unwrap();
        let polls: Vec<_> = (0..50).map(|_| Arc::new(NoWake)).collect();
        for poll in &polls {
            let waker = Waker::from(poll.clone());
            let mut cx = Context::from_waker(&waker);
            assert!(file.read(&mut [0]).poll_unpin(&mut cx).is_pending());
            assert!(file.flush().poll_unpin(&mut cx).is_pending());
            assert!(Box::pin(file.metadata()).poll_unpin(&mut cx).is_pending());
        }
        let kept = polls.iter().filter(|poll| Arc::strong_count(poll) > 1);
        assert_eq!(kept.count(), 1, "the last");
        drop(reader);
    });
}

/// Makes a waker whose clones use the file: each polls for its metadata.
fn using_waker(file: &Arc<File>) -> Waker {
    const TABLE: RawWakerVTable = RawWakerVTable::new(clone, drop_file, |_| (), drop_file);

    fn clone(data: *const ()) -> RawWaker {
        // SAFETY: the data is that of an `Arc` which the waker keeps.
        unsafe { Arc::increment_strong_count(data.cast::<File>()) };
        // SAFETY: as above, and the line before has added a count.
        let file = unsafe { Arc::from_raw(data.cast::<File>()) };
        assert!(cancel(file.metadata()).is_none(), "a write goes on");
        RawWaker::new(Arc::into_raw(file).cast(), &TABLE)
    }

    fn drop_file(data: *const ()) {
        // SAFETY: the waker gives up its `Arc`.
        drop(unsafe { Arc::from_raw(data.cast::<File>()) });
    }

    let data = Arc::into_raw(file.clone()).cast();
    // SAFETY: the functions of the table keep and drop one `Arc` for each waker.
    unsafe { Waker::new(data, &TABLE) }
}

/// Fails if a waker is cloned while the file is locked: the clone would wait for the lock forever.
#[test]
fn clone_of_a_waker_may_use_the_file() {
    run(async {
        let (mut file, mut reader, room) = full_pipe();
        file.write_all(b"a").await.unwrap();
        let file = Arc::new(file);
        let waker = using_waker(&file);
        let mut cx = Context::from_waker(&waker);
        let mut waits = Box::pin(file.metadata());
        assert!(waits.poll_unpin(&mut cx).is_pending());
        drop(waits);
        drop(waker);
        let mut file = Arc::into_inner(file).expect("no waker has it");
        reader.read_exact(&mut vec![0; room + 1]).unwrap();
        file.flush().await.unwrap();
    });
}

struct PanickingWake;

impl Wake for PanickingWake {
    fn wake(self: Arc<Self>) {
        panic!("in a wake");
    }
}

/// Fails if a waker that panics ends the job of a write, or keeps other tasks waiting.
#[test]
fn panicking_wakers_lose_no_bytes_and_no_wakes() {
    run(async {
        let (mut file, mut reader, room) = full_pipe();
        file.set_max_buf_size(4);
        file.write_all(b"aaaa").await.unwrap();
        file.write_all(b"bbbb").await.unwrap(); // The job has taken the first four bytes.
        let waker = Waker::from(Arc::new(PanickingWake));
        let mut cx = Context::from_waker(&waker);
        let write = futures::AsyncWrite::poll_write(Pin::new(&mut file), &mut cx, b"c");
        assert!(write.is_pending());
        let file = Arc::new(file);
        let mut waits = Box::pin(file.metadata());
        assert!(waits.poll_unpin(&mut cx).is_pending());
        let mut waits_too = Box::pin(file.metadata());
        assert!(waits_too.poll_unpin(&mut cx).is_pending());
        let same = file.clone();
        let mut ends = Box::pin(selvedge::spawn(async move {
            same.metadata().await.unwrap();
        }));
        assert!(cancel(&mut ends).is_none());

        let read = selvedge::spawn_blocking(move || {
            let mut all = Vec::new();
            reader.read_to_end(&mut all).unwrap();
            all.split_off(room)
        });
        ends.await.unwrap();
        drop((waits, waits_too));
        let mut file = Arc::into_inner(file).expect("no task has it");
        file.flush().await.unwrap();
        drop(file);
        assert_eq!(read.await.unwrap(), b"aaaabbbb");
    });
}

/// Fails if `into_std` or `try_into_std` returns the file of std while a job still has it.
#[test]
fn into_std_waits_for_the_write() {
    run(async {
        let (mut file, mut reader, room) = full_pipe();
        file.write_all(b"a").await.unwrap();
        file = file.try_into_std().unwrap_err();
        let read = selvedge::spawn_blocking(move || {
            reader.read_exact(&mut vec![0; room + 1]).unwrap();
        });
        drop(file.into_std().await);
        read.await.unwrap();
    });
}

/// Runs `operation` on a file that is the reading end of an empty pipe. A read of the file goes on
/// on a blocking thread: its future was dropped, but the read still waits for bytes. Nobody writes
/// to the pipe before the operation has ended. The reader is the pipe's only one.
fn beside_a_cancelled_read<R>(operation: impl AsyncFnOnce(&File) -> R) -> R {
    run(async {
        let (sender, receiver) = selvedge::net::unix::pipe::pipe().unwrap();
        let reader = receiver.into_blocking_fd().unwrap();
        let mut writer = std::fs::File::from(sender.into_blocking_fd().unwrap());
        let mut file = File::from_std(reader.into());
        let mut to = [0; 4];
        assert!(cancel(file.read(&mut to)).is_none(), "nothing to read");
        let result = operation(&file).await;
        writer.write_all(b"abcd").unwrap();
        file.read_exact(&mut to).await.unwrap();
        assert_eq!(&to, b"abcd");
        result
    })
}

/// Fails if `metadata` waits for a read that was cancelled.
#[test]
fn metadata_is_returned_beside_a_cancelled_read() {
    use std::os::unix::fs::FileTypeExt;

    let metadata = beside_a_cancelled_read(async |file| file.metadata().await.unwrap());
    assert!(metadata.file_type().is_fifo());
}

/// Fails if permissions are set only after a read that was cancelled.
#[test]
fn permissions_are_set_beside_a_cancelled_read() {
    use std::os::unix::fs::PermissionsExt;

    let mode = beside_a_cancelled_read(async |file| {
        let permissions = std::fs::Permissions::from_mode(0o640);
        file.set_permissions(permissions).await.unwrap();
        file.metadata().await.unwrap().permissions().mode()
    });
    assert_eq!(mode & 0o777, 0o640);
}

/// Fails if times are set only after a read that was cancelled, or if a sync waits for it. No pipe
/// can be synced.
#[test]
fn times_and_syncs_end_beside_a_cancelled_read() {
    let time = std::time::SystemTime::UNIX_EPOCH;
    beside_a_cancelled_read(async |file| {
        let times = fs::FileTimes::new().set_modified(time);
        file.set_times(times).await.unwrap();
        let metadata = file.metadata().await.unwrap();
        assert_eq!(metadata.modified().unwrap(), time);
        file.set_modified(std::time::SystemTime::now())
            .await
            .unwrap();
        let metadata = file.metadata().await.unwrap();
        assert_ne!(metadata.modified().unwrap(), time);
        file.sync_all().await.unwrap_err();
        file.sync_data().await.unwrap_err();
    });
}

/// Fails if the shutdown loses a write that was buffered, or hangs because a task waits for such a
/// write.
#[test]
fn shutdown_waits_for_buffered_writes() {
    let (mut file, mut reader, room) = full_pipe();
    let runtime = Runtime::new().unwrap();
    let (begun, waits) = mpsc::channel();
    drop(runtime.spawn(async move {
        file.write_all(b"abc").await.unwrap();
        begun.send(()).unwrap();
        file.flush().await.unwrap();
    }));
    waits.recv().unwrap();
    let read = std::thread::spawn(move || {
        let mut all = Vec::new();
        reader.read_to_end(&mut all).unwrap();
        all.split_off(room)
    });
    drop(runtime);
    assert_eq!(read.join().unwrap(), b"abc");
}
