//! Tests of pipes.
#![cfg(target_os = "linux")]
mod support;

use futures_lite::{AsyncReadExt, AsyncWriteExt, FutureExt, future};
use net_driver::net::unix::pipe::{OpenOptions, Receiver, pipe};
use std::{
    ffi::CString,
    fs,
    io::{ErrorKind, IoSliceMut},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};
use support::run;

/// Makes a pipe with a name, which no process has open.
fn fifo() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fifo");
    let name = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: the pointer leads to a string that ends with a zero byte.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    (folder, path)
}

/// Opens the pipe, writes to it and closes it.
async fn write(path: &Path, bytes: &[u8]) {
    let mut sender = OpenOptions::new().open_sender(path).unwrap();
    sender.write_all(bytes).await.unwrap();
}

/// Polls a read twice, with a turn of the driver between the polls. Fails if it ends.
async fn assert_waits(receiver: &mut Receiver) {
    let mut to = [0; 8];
    let mut read = receiver.read(&mut to);
    for _ in 0..2 {
        let poll = future::poll_once(&mut read).await;
        assert!(poll.is_none(), "{poll:?}");
        future::yield_now().await;
    }
}

/// Fails if a read before the first writer is taken for the end of the stream.
#[test]
fn read_before_the_first_writer_waits() {
    let (_folder, path) = fifo();
    run(async {
        let mut receiver = OpenOptions::new().open_receiver(&path).unwrap();
        assert_waits(&mut receiver).await;
        let read = async {
            let mut all = Vec::new();
            receiver.read_to_end(&mut all).await.unwrap();
            all
        };
        let (all, ()) = future::zip(read, write(&path, b"hello")).await;
        assert_eq!(all, b"hello");
        assert_eq!(receiver.read(&mut [0; 8]).await.unwrap(), 0, "it has left");
        write(&path, b"again").await;
        let mut to = [0; 5];
        receiver.read_exact(&mut to).await.unwrap();
        assert_eq!(&to, b"again");
    });
}

/// Fails if a read without a wait, before the first writer, is taken for the end of the stream.
#[test]
fn try_read_before_the_first_writer_would_block() {
    let (_folder, path) = fifo();
    run(async {
        let receiver = OpenOptions::new().open_receiver(&path).unwrap();
        let mut to = [0; 8];
        let error = receiver.try_read(&mut to).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);

        let receiver = OpenOptions::new().open_receiver(&path).unwrap();
        assert_eq!(receiver.try_read(&mut []).unwrap(), 0, "nothing was wanted");
        let mut parts = [IoSliceMut::new(&mut to)];
        let error = receiver.try_read_vectored(&mut parts).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    });
}

/// Fails if a pipe that was opened by other code, before the first writer, reads the end.
#[test]
fn read_of_a_file_before_the_first_writer_waits() {
    use std::os::unix::fs::OpenOptionsExt;

    let (_folder, path) = fifo();
    run(async {
        let mut options = fs::OpenOptions::new();
        let file = options.read(true).custom_flags(libc::O_NONBLOCK);
        let mut receiver = Receiver::from_file(file.open(&path).unwrap()).unwrap();
        assert_waits(&mut receiver).await;
        write(&path, b"").await; // It comes, and leaves without a word.
        assert_eq!(receiver.read(&mut [0; 8]).await.unwrap(), 0);
    });
}

/// Fails if the end of the stream is found only after an event of the driver.
#[test]
fn end_is_read_at_once_after_the_last_writer() {
    let (_folder, path) = fifo();
    run(async {
        let receiver = OpenOptions::new().open_receiver(&path).unwrap();
        drop(OpenOptions::new().open_sender(&path).unwrap());
        assert_eq!(receiver.try_read(&mut [0; 8]).unwrap(), 0);

        let (sender, mut receiver) = pipe().unwrap();
        drop(sender);
        let mut to = [0; 8];
        let read = receiver.read(&mut to).boxed_local();
        assert_eq!(future::poll_once(read).await.unwrap().unwrap(), 0);
    });
}
