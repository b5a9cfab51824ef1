//! Pipes of Windows as files.
use super::{cancel, cancel_waiting, run, run_one_by_one};
use futures::{AsyncReadExt, AsyncSeekExt};
use selvedge::fs::File;
use std::{
    io::{ErrorKind, PipeWriter, SeekFrom, Write, pipe},
    os::windows::io::OwnedHandle,
};

fn file_and_writer() -> (File, PipeWriter) {
    let (reader, writer) = pipe().unwrap();
    (File::from_std(OwnedHandle::from(reader).into()), writer)
}

/// Fails if a seek, which does nothing to a pipe, drops the bytes that were read ahead.
#[test]
fn seek_and_clone_of_a_pipe_keep_what_was_read() {
    run_one_by_one(async {
        let (mut file, mut writer) = file_and_writer();
        writer.write_all(b"hello").unwrap();
        cancel_waiting(file.read(&mut [0; 5]));
        file.read_exact(&mut [0; 2]).await.unwrap();
        let sought = file.seek(SeekFrom::Current(0)).await;
        assert_eq!(sought.unwrap_err().kind(), ErrorKind::NotSeekable);
        drop(file.try_clone().await.unwrap());
        let mut rest = [0; 3];
        file.read_exact(&mut rest).await.unwrap();
        assert_eq!(&rest, b"llo");
    });
}

/// Fails if an operation beside a read takes a thread, on which it would wait for that read.
#[test]
fn operation_beside_a_read_waits_without_a_thread() {
    run(async {
        let (mut file, mut writer) = file_and_writer();
        let mut to = [0; 4];
        assert!(cancel(file.read(&mut to)).is_none(), "nothing to read");
        let debug = format!("{file:?}");
        assert!(debug.starts_with("File(0x"), "{debug}");
        let mut metadata = Box::pin(file.metadata());
        assert!(cancel(&mut metadata).is_none());
        writer.write_all(b"abcd").unwrap();
        let _ = metadata.await; // A pipe need have none.
        file.read_exact(&mut to).await.unwrap();
        assert_eq!(&to, b"abcd");
    });
}
