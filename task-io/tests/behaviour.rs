//! Ends, errors and flushes of the utilities, one by one.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
mod support;

use std::{
    future::Future,
    io::{self, Cursor, ErrorKind, IoSlice, SeekFrom},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    string::FromUtf8Error,
    task::{Context, Poll, Waker},
};
use support::{Reader, Reads, Writer, Writes, finish};
use task_io::{
    AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncSeek, AsyncSeekExt, AsyncWrite, AsyncWriteExt,
    BufReader, BufStream, BufWriter, Interest, ReadBuf, Ready,
};

fn bytes(bytes: &[u8]) -> Reads {
    Reads::Bytes(bytes.to_vec())
}

fn poll<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn loops_repeat_interrupted_operations() {
    let again = Reads::Fail(ErrorKind::Interrupted);
    let reader = || Reader::new([again.clone(), bytes(b"a\n"), again.clone(), bytes(b"b")]);
    let mut all = Vec::new();
    finish(reader().read_to_end(&mut all)).unwrap();
    assert_eq!(all, b"a\nb");
    finish(reader().read_exact(&mut [0; 3])).unwrap();
    assert_eq!(finish(reader().read_u16()).unwrap(), 0x610a);
    finish(reader().read_until(b'b', &mut all)).unwrap();
    assert_eq!(all, b"a\nba\nb");
    assert_eq!(finish(reader().lines().next_line()).unwrap().unwrap(), "a");
    let again = Writes::Fail(ErrorKind::Interrupted);
    let mut writer = Writer::new([again.clone(), Writes::Take(1), again]);
    assert_eq!(
        finish(task_io::copy(&mut reader(), &mut writer)).unwrap(),
        3
    );
    // A single read is not repeated.
    assert_eq!(
        finish(reader().read(&mut [0])).unwrap_err().kind(),
        ErrorKind::Interrupted
    );
}

#[test]
fn reader_that_ends_early_is_an_unexpected_end() {
    let kind = |error: io::Error| error.kind();
    assert_eq!(
        finish((&b"ab"[..]).read_u32()).map_err(kind),
        Err(ErrorKind::UnexpectedEof)
    );
    let read = finish((&b"ab"[..]).read_exact(&mut [0; 3]));
    assert_eq!(read.map_err(kind), Err(ErrorKind::UnexpectedEof));
    assert_eq!(finish((&b""[..]).read_exact(&mut [])).unwrap(), 0);
}

#[test]
fn writer_that_takes_nothing_is_an_error() {
    let full = || Writer::new(vec![Writes::Take(0); 9]);
    let failures = [
        finish(full().write_all(b"a")),
        finish(full().write_all_buf(&mut &b"a"[..])),
        finish(full().write_u16(1)),
        finish(task_io::copy(&mut &b"a"[..], &mut full())).map(drop),
        finish(task_io::copy_buf(&mut &b"a"[..], &mut full())).map(drop),
    ];
    for failure in failures {
        assert_eq!(failure.unwrap_err().kind(), ErrorKind::WriteZero);
    }
    let mut writer = BufWriter::new(full());
    finish(writer.write_all(b"a")).unwrap();
    assert_eq!(
        finish(writer.flush()).unwrap_err().kind(),
        ErrorKind::WriteZero
    );
    assert_eq!(writer.buffer(), b"a");
    assert_eq!(finish(full().write(b"a")).unwrap(), 0);
}

#[test]
fn line_that_is_no_text_is_in_the_error() {
    let mut lines = Reader::new([bytes(b"\xff\nnext")]).lines();
    let error = finish(lines.next_line()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    let inner = error
        .into_inner()
        .unwrap()
        .downcast::<FromUtf8Error>()
        .unwrap();
    assert_eq!(inner.into_bytes(), b"\xff");
    assert_eq!(finish(lines.next_line()).unwrap().unwrap(), "next");
}

#[test]
fn line_outlives_an_error_of_its_reader() {
    let script = [
        bytes(b"on"),
        Reads::Fail(ErrorKind::TimedOut),
        bytes(b"e\n"),
    ];
    let mut lines = Reader::new(script.clone()).lines();
    assert_eq!(
        finish(lines.next_line()).unwrap_err().kind(),
        ErrorKind::TimedOut
    );
    assert_eq!(finish(lines.next_line()).unwrap().unwrap(), "one");
    let (mut reader, mut line) = (Reader::new(script), String::from("> "));
    assert_eq!(
        finish(reader.read_line(&mut line)).unwrap_err().kind(),
        ErrorKind::TimedOut
    );
    assert_eq!(line, "> on");
    // Of two errors, the reader's is returned.
    let script = [bytes(b"\xff"), Reads::Fail(ErrorKind::TimedOut)];
    let read = finish(Reader::new(script).read_line(&mut line));
    assert_eq!(read.unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(line, "> on");
}

#[test]
fn text_that_is_none_leaves_the_string() {
    let mut text = String::from("é");
    let error = finish((&b"a\xff"[..]).read_to_string(&mut text)).unwrap_err();
    let inner = error
        .into_inner()
        .unwrap()
        .downcast::<std::str::Utf8Error>()
        .unwrap();
    assert_eq!((inner.valid_up_to(), text.as_str()), (3, "é"));
    let failing = [bytes(b"a"), Reads::Fail(ErrorKind::TimedOut)];
    assert!(finish(Reader::new(failing).read_to_string(&mut text)).is_err());
    assert_eq!(text, "é");
}

/// The writer has the bytes that came before the wait, and has flushed them.
#[test]
fn copy_flushes_while_the_reader_waits() {
    let reader = || Reader::new([bytes(b"ab"), Reads::Wait, bytes(b"c")]);
    for by_buf in [false, true] {
        let (mut reader, mut writer) = (reader(), Writer::default());
        let polled = if by_buf {
            poll(task_io::copy_buf(&mut reader, &mut writer))
        } else {
            poll(task_io::copy(&mut reader, &mut writer))
        };
        assert!(polled.is_pending());
        assert_eq!((&writer.written[..], writer.flushed), (&b"ab"[..], 2));
    }
}

#[test]
fn copy_fills_its_buffer_while_the_writer_waits() {
    let mut reader = Reader::new([bytes(&[1; 100]), bytes(&[2; 100]), bytes(&[3; 9_000])]);
    let mut writer = Writer::new([Writes::Wait]);
    assert!(poll(task_io::copy(&mut reader, &mut writer)).is_pending());
    assert_eq!(reader.rest().len(), 9_200 - 8_192);
    assert!(writer.written.is_empty());
}

#[test]
fn copy_both_ways_goes_on_after_one_end() {
    let mut a = task_io::join(Reader::new([]), Writer::default());
    let mut b = task_io::join(Reader::waiting([&b"ab"[..], b"c"]), Writer::default());
    {
        let mut copy = pin!(task_io::copy_bidirectional(&mut a, &mut b));
        assert!(
            copy.as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
        assert_eq!(finish(copy).unwrap(), (0, 3));
    }
    assert!(a.writer().is_shut_down && b.writer().is_shut_down);
    assert_eq!(a.writer().written, b"abc");
}

#[test]
fn vectored_writes_reach_a_writer_that_takes_them() {
    let bufs = [IoSlice::new(b""), IoSlice::new(b"ab"), IoSlice::new(b"cd")];
    for is_vectored in [false, true] {
        let written: &[u8] = if is_vectored { b"abcd" } else { b"ab" };
        let writer = Writer {
            is_vectored,
            ..Writer::default()
        };
        let mut boxed: Box<dyn AsyncWrite + Unpin> = Box::new(task_io::join(&b""[..], writer));
        assert_eq!(boxed.is_write_vectored(), is_vectored);
        assert_eq!(finish(boxed.write_vectored(&bufs)).unwrap(), written.len());
    }
    let (_reader, mut half) = task_io::split(task_io::join(&b""[..], Vec::new()));
    assert!(half.is_write_vectored());
    assert_eq!(finish(half.write_vectored(&bufs)).unwrap(), 4);
    let mut chain = bytes::Buf::chain(&b"ab"[..], &b"cd"[..]);
    assert_eq!(finish(half.write_buf(&mut chain)).unwrap(), 4);
}

#[test]
fn read_without_room_does_not_end_a_chain() {
    let mut both = (&b"a"[..]).chain(&b"b"[..]);
    assert_eq!(finish(both.read(&mut [])).unwrap(), 0);
    assert_eq!(finish(both.read_u16()).unwrap(), 0x6162);
}

#[test]
fn take_at_its_limit_reads_nothing_from_its_reader() {
    let mut part = Reader::new([Reads::Fail(ErrorKind::Other)]).take(0);
    assert_eq!(finish(part.read(&mut [0])).unwrap(), 0);
    assert!(finish(part.fill_buf()).unwrap().is_empty());
    assert_eq!(part.get_ref().script.len(), 1);
}

#[test]
fn failed_seek_keeps_the_buffer() {
    let mut reader = BufReader::with_capacity(4, Cursor::new(b"abcdef"));
    assert_eq!(finish(reader.read_u8()).unwrap(), b'a');
    assert!(finish(reader.seek(SeekFrom::Current(-3))).is_err());
    assert_eq!(reader.buffer(), b"bcd");
    assert_eq!(finish(reader.stream_position()).unwrap(), 1);
    assert_eq!(finish(reader.read_u8()).unwrap(), b'b');
}

/// A file whose seeks fail when they complete.
struct BadFile(Cursor<&'static [u8]>, bool);

impl AsyncRead for BadFile {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncSeek for BadFile {
    fn start_seek(mut self: Pin<&mut Self>, _: SeekFrom) -> io::Result<()> {
        self.1 = true;
        Ok(())
    }

    fn poll_complete(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let has_sought = std::mem::take(&mut self.1);
        Poll::Ready(if has_sought {
            Err(ErrorKind::Other.into())
        } else {
            Ok(0)
        })
    }
}

#[test]
fn seek_that_fails_late_keeps_the_buffer() {
    for position in [SeekFrom::Start(1), SeekFrom::Current(i64::MIN)] {
        let mut reader = BufReader::new(BadFile(Cursor::new(b"ab"), false));
        assert_eq!(finish(reader.read_u8()).unwrap(), b'a');
        assert!(finish(reader.seek(position)).is_err());
        assert_eq!(finish(reader.read_u8()).unwrap(), b'b');
    }
}

#[test]
fn stream_made_of_either_nesting_keeps_both_buffers() {
    let object = || task_io::join(&b"input"[..], Vec::new());
    let mut outer = BufWriter::new(BufReader::new(object()));
    finish(outer.write_all(b"out")).unwrap();
    finish(outer.fill_buf()).unwrap();
    let mut inner = BufReader::new(BufWriter::new(object()));
    finish(inner.write_all(b"out")).unwrap();
    finish(inner.fill_buf()).unwrap();
    for mut stream in [BufStream::from(outer), BufStream::from(inner)] {
        assert_eq!(*stream.get_ref().reader(), b"");
        assert_eq!(finish(stream.read_u8()).unwrap(), b'i');
        finish(stream.shutdown()).unwrap();
        assert_eq!(stream.into_inner().writer(), b"out");
    }
}

#[test]
fn read_after_the_end_of_a_cursor_leaves_its_position() {
    let mut cursor = Cursor::new(b"ab");
    cursor.set_position(u64::MAX);
    assert_eq!(finish(cursor.read(&mut [0])).unwrap(), 0);
    assert!(finish(cursor.fill_buf()).unwrap().is_empty());
    assert_eq!(cursor.position(), u64::MAX);
}

#[test]
#[should_panic(expected = "polled after it was ready")]
fn fill_buf_that_is_polled_again_panics() {
    let mut reader: &[u8] = b"a";
    let mut fill = pin!(reader.fill_buf());
    let mut cx = Context::from_waker(Waker::noop());
    assert!(fill.as_mut().poll(&mut cx).is_ready());
    let _ = fill.as_mut().poll(&mut cx);
}

/// Polls the future until it is ready, and then once more, which must panic.
fn poll_again<F: Future<Output = io::Result<usize>>>(future: F) -> io::Result<usize> {
    let mut future = pin!(future);
    let output = finish(future.as_mut());
    let again = catch_unwind(AssertUnwindSafe(|| finish(future)));
    let panic = again.unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"polled after it was ready"));
    output
}

/// Fails if the poll takes the text from the string, or puts other text into it.
#[test]
fn read_of_text_that_is_polled_again_keeps_the_text() {
    let mut text = String::from("0");
    let reader = || &b"1\n2\n"[..];
    assert_eq!(poll_again(reader().read_line(&mut text)).unwrap(), 2);
    assert_eq!(text, "01\n");
    assert_eq!(poll_again(reader().read_to_string(&mut text)).unwrap(), 4);
    assert_eq!(text, "01\n1\n2\n");
    let bad = || &b"3\xff\n"[..];
    poll_again(bad().read_line(&mut text)).unwrap_err();
    poll_again(bad().read_to_string(&mut text)).unwrap_err();
    assert_eq!(text, "01\n1\n2\n");
}

#[test]
fn sets_keep_a_drivers_bits() {
    let set = Ready::from_bits(0b1100_0001);
    assert_eq!(
        (set & Ready::ALL, set.bits()),
        (Ready::READABLE, 0b1100_0001)
    );
    assert_eq!((set - Ready::READABLE).bits(), 0b1100_0000);
    assert_eq!(
        Interest::from_bits(Ready::WRITABLE.bits()),
        Interest::WRITABLE
    );
    assert_eq!(Interest::READABLE.bits(), Ready::READABLE.bits());
    assert_eq!(Interest::PRIORITY.bits(), Ready::PRIORITY.bits());
    assert_eq!(Interest::ERROR.bits(), Ready::ERROR.bits());
}
