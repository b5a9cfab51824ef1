//! Seeks of buffered objects that fail, or whose futures are dropped.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
mod support;

use std::{
    future::poll_fn,
    io::{self, Cursor, ErrorKind, IoSlice, SeekFrom},
    pin::Pin,
    task::{Context, Poll},
};
use support::{at_each_wait, cancel_after, finish};
use task_io::{
    AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncSeek, AsyncSeekExt, AsyncWrite,
    AsyncWriteExt, BufReader, BufStream, BufWriter, ReadBuf,
};

/// A file whose operations wait or fail first.
#[derive(Default)]
struct File {
    cursor: Cursor<Vec<u8>>,
    /// How often the next write waits.
    write_waits: u8,
    /// How often each seek waits.
    seek_waits: u8,
    /// How often the seek that has started still waits.
    waits: u8,
    fails_write: bool,
    fails_complete: bool,
}

impl File {
    fn new() -> Self {
        Self {
            cursor: Cursor::new((0..10).collect()),
            ..Self::default()
        }
    }
}

impl AsyncRead for File {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.cursor).poll_read(cx, buf)
    }
}

impl AsyncBufRead for File {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        Pin::new(&mut self.get_mut().cursor).poll_fill_buf(cx)
    }

    fn consume(mut self: Pin<&mut Self>, amt: usize) {
        Pin::new(&mut self.cursor).consume(amt);
    }
}

impl AsyncWrite for File {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.write_waits > 0 {
            self.write_waits -= 1;
            return Poll::Pending;
        }
        if std::mem::take(&mut self.fails_write) {
            return Poll::Ready(Err(ErrorKind::StorageFull.into()));
        }
        Pin::new(&mut self.cursor).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncSeek for File {
    fn start_seek(mut self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        assert_eq!(self.waits, 0, "another seek has not completed");
        self.waits = self.seek_waits;
        Pin::new(&mut self.cursor).start_seek(position)
    }

    fn poll_complete(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        if self.waits > 0 {
            self.waits -= 1;
            return Poll::Pending;
        }
        if std::mem::take(&mut self.fails_complete) {
            return Poll::Ready(Err(ErrorKind::NetworkDown.into()));
        }
        Pin::new(&mut self.cursor).poll_complete(cx)
    }
}

/// Starts a seek, and polls it once, which fails. The future of `seek` would first complete another
/// seek.
fn fail<S: AsyncSeek + Unpin>(object: &mut S, position: SeekFrom) -> ErrorKind {
    Pin::new(&mut *object).start_seek(position).unwrap();
    let mut cx = Context::from_waker(std::task::Waker::noop());
    match Pin::new(object).poll_complete(&mut cx) {
        Poll::Ready(Err(error)) => error.kind(),
        other => panic!("{other:?}"),
    }
}

/// After a seek whose future was dropped, a read returns the bytes of the old position or of the
/// new one, but no mixture; a further seek from the start is right.
#[test]
fn dropped_seek_of_a_buffer_leaves_no_stale_bytes() {
    for position in [SeekFrom::Start(8), SeekFrom::Current(6), SeekFrom::End(-2)] {
        at_each_wait(|waits| {
            let seek_waits = 2;
            let file = File {
                seek_waits,
                ..File::new()
            };
            let mut reader = BufReader::with_capacity(4, file);
            assert_eq!(finish(reader.read_u16()).unwrap(), 0x0001);
            let sought = cancel_after(waits, reader.seek(position));
            if let Some(at) = &sought {
                assert_eq!(*at.as_ref().unwrap(), 8);
            }
            let next = finish(reader.read_u8()).unwrap();
            assert!(next == 8 || next == 2 && waits == 0, "{next} after {waits}");
            assert_eq!(finish(reader.seek(SeekFrom::Start(5))).unwrap(), 5);
            assert_eq!(finish(reader.read_u8()).unwrap(), 5);
            sought.is_some()
        });
    }
}

#[test]
fn dropped_seek_of_a_stream_writes_its_buffer_once() {
    let stream = || BufStream::with_capacity(2, 8, Cursor::new(vec![0; 4]));
    let mut stream = stream();
    finish(stream.write_all(b"ab")).unwrap();
    assert!(cancel_after(0, stream.seek(SeekFrom::Start(3))).is_none());
    finish(stream.write_all(b"c")).unwrap();
    assert_eq!(finish(stream.seek(SeekFrom::Start(3))).unwrap(), 3);
    finish(stream.write_all(b"d")).unwrap();
    finish(stream.flush()).unwrap();
    assert_eq!(stream.get_ref().get_ref(), b"abcd");
}

/// Fails if a seek that the buffer's write has failed is done by the next one.
#[test]
fn seek_whose_write_fails_is_not_done_later() {
    let file = File {
        fails_write: true,
        ..File::new()
    };
    let mut writer = BufWriter::new(file);
    finish(writer.write_all(b"ab")).unwrap();
    let seek = finish(writer.seek(SeekFrom::Current(1)));
    assert_eq!(seek.unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(finish(writer.seek(SeekFrom::Current(1))).unwrap(), 3);
}

/// Fails if a seek is done by the next one, after the inner object's last operation has failed.
#[test]
fn seek_after_a_failed_operation_is_not_done_later() {
    let file = || File {
        fails_complete: true,
        ..File::new()
    };
    let mut writer = BufWriter::new(file());
    assert_eq!(
        fail(&mut writer, SeekFrom::Current(1)),
        ErrorKind::NetworkDown
    );
    assert_eq!(finish(writer.seek(SeekFrom::Current(1))).unwrap(), 1);
    let mut reader = BufReader::new(file());
    assert_eq!(
        fail(&mut reader, SeekFrom::Current(1)),
        ErrorKind::NetworkDown
    );
    assert_eq!(finish(reader.seek(SeekFrom::Current(1))).unwrap(), 1);
}

/// Starts a seek to 6 and polls it, but ever fewer times than it takes. Then `then` reads or writes
/// one byte. The buffer of a writer has `buffered` bytes at first.
///
/// Fails if the seek begins after `then`.
fn cancels_a_seek<S: AsyncSeek + Unpin>(
    make: impl Fn(File) -> S,
    file: impl Fn(&S) -> &File,
    buffered: u64,
    then: impl Fn(&mut S) -> usize,
) {
    at_each_wait(|waits| {
        let mut object = make(File {
            write_waits: 2,
            seek_waits: 2,
            waits: 2,
            ..File::new()
        });
        Pin::new(&mut object)
            .start_seek(SeekFrom::Start(6))
            .unwrap();
        let complete = poll_fn(|cx| Pin::new(&mut object).poll_complete(cx));
        let is_complete = cancel_after(waits, complete).is_some();
        let has_begun = file(&object).cursor.position() == 6;
        assert_eq!(then(&mut object), 1);
        let at = finish(object.stream_position()).unwrap();
        assert_eq!(
            at,
            if has_begun { 7 } else { buffered + 1 },
            "after {waits}"
        );
        is_complete
    });
}

#[test]
fn read_or_write_of_a_writer_cancels_a_dropped_seek() {
    let make = |file| {
        let mut writer = BufWriter::with_capacity(8, file);
        finish(writer.write_all(b"ab")).unwrap();
        writer
    };
    let cancels = |then: fn(&mut BufWriter<File>) -> io::Result<usize>| {
        cancels_a_seek(make, BufWriter::get_ref, 2, |writer| then(writer).unwrap());
    };
    cancels(|writer| finish(writer.write(b"c")));
    cancels(|writer| finish(writer.write_vectored(&[IoSlice::new(b"c")])));
    cancels(|writer| finish(writer.read(&mut [0])));
    cancels(|writer| {
        finish(writer.fill_buf())?;
        writer.consume(1);
        Ok(1)
    });
}

#[test]
fn read_or_write_of_a_reader_cancels_a_dropped_seek() {
    let cancels = |then: fn(&mut BufReader<File>) -> io::Result<usize>| {
        let make = |file| BufReader::with_capacity(4, file);
        cancels_a_seek(make, BufReader::get_ref, 0, |reader| then(reader).unwrap());
    };
    cancels(|reader| finish(reader.write(b"c")));
    cancels(|reader| finish(reader.write_vectored(&[IoSlice::new(b"c")])));
    cancels(|reader| finish(reader.read(&mut [0])));
    cancels(|reader| {
        finish(reader.fill_buf())?;
        reader.consume(1);
        Ok(1)
    });
}
