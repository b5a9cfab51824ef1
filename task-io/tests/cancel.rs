//! Drops each future at each of its waits, and checks that no byte is lost or doubled, where the
//! documentation says so. Seeks are in `tests/seeks.rs`.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
mod support;

use std::io::IoSlice;
use support::{Reader, Writer, at_each_wait, cancel_after, finish};
use task_io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufWriter};

const TEXT: &[u8] = b"one\ntwo\nthree\n";

fn reader() -> Reader {
    Reader::waiting(TEXT.chunks(3))
}

#[test]
fn dropped_reads_lose_no_byte() {
    at_each_wait(|waits| {
        let (mut reader, mut bytes) = (reader(), [0; 2]);
        let read = cancel_after(waits, reader.read(&mut bytes));
        let len = read.as_ref().map_or(0, |read| *read.as_ref().unwrap());
        assert_eq!([&bytes[..len], &reader.rest()].concat(), TEXT);
        read.is_some()
    });
    at_each_wait(|waits| {
        let (mut reader, mut bytes) = (reader(), Vec::new());
        let read = cancel_after(waits, reader.read_buf(&mut bytes));
        assert_eq!(read.is_none(), bytes.is_empty());
        assert_eq!([&bytes[..], &reader.rest()].concat(), TEXT);
        read.is_some()
    });
    at_each_wait(|waits| {
        let mut reader = reader();
        let read = cancel_after(waits, reader.read_u8()).map(Result::unwrap);
        let read = Vec::from_iter(read);
        assert_eq!([&read[..], &reader.rest()].concat(), TEXT);
        !read.is_empty()
    });
    at_each_wait(|waits| {
        let mut reader = reader();
        let filled = cancel_after(waits, reader.fill_buf()).is_some();
        assert_eq!(reader.rest(), TEXT);
        filled
    });
}

#[test]
fn dropped_read_until_keeps_the_bytes_for_the_next() {
    at_each_wait(|waits| {
        let (mut reader, mut bytes) = (reader(), Vec::new());
        let read = cancel_after(waits, reader.read_until(b'w', &mut bytes));
        assert_eq!([&bytes[..], &reader.rest()].concat(), TEXT);
        if read.is_none() {
            finish(reader.read_until(b'w', &mut bytes)).unwrap();
        }
        assert_eq!(bytes, b"one\ntw");
        read.is_some()
    });
}

#[test]
fn dropped_read_to_end_keeps_the_bytes_for_the_next() {
    for capacity in [0, 3, TEXT.len(), 100] {
        at_each_wait(|waits| {
            let (mut reader, mut bytes) = (reader(), Vec::with_capacity(capacity));
            let read = cancel_after(waits, reader.read_to_end(&mut bytes));
            assert_eq!([&bytes[..], &reader.rest()].concat(), TEXT);
            if read.is_none() {
                finish(reader.read_to_end(&mut bytes)).unwrap();
            }
            assert_eq!(bytes, TEXT);
            read.is_some()
        });
    }
}

#[test]
fn dropped_reads_of_text_restore_the_string() {
    at_each_wait(|waits| {
        let (mut reader, mut text) = (reader(), String::from("before "));
        let read = cancel_after(waits, reader.read_line(&mut text)).is_some();
        assert_eq!(text, if read { "before one\n" } else { "before " });
        read
    });
    at_each_wait(|waits| {
        let (mut reader, mut text) = (reader(), String::from("before "));
        let read = cancel_after(waits, reader.read_to_string(&mut text)).is_some();
        assert_eq!(text.len(), if read { 7 + TEXT.len() } else { 7 });
        assert!(text.starts_with("before "));
        read
    });
}

#[test]
fn dropped_next_line_loses_no_byte() {
    at_each_wait(|waits| {
        let mut lines = reader().lines();
        let first = cancel_after(waits, lines.next_line());
        let was_ready = first.is_some();
        let first = first.unwrap_or_else(|| finish(lines.next_line()));
        assert_eq!(first.unwrap().unwrap(), "one");
        assert_eq!(finish(lines.next_line()).unwrap().unwrap(), "two");
        was_ready
    });
}

#[test]
fn dropped_next_segment_loses_no_byte() {
    at_each_wait(|waits| {
        let mut parts = reader().split(b'w');
        let first = cancel_after(waits, parts.next_segment());
        let was_ready = first.is_some();
        let first = first.unwrap_or_else(|| finish(parts.next_segment()));
        assert_eq!(first.unwrap().unwrap(), b"one\nt");
        assert_eq!(
            finish(parts.next_segment()).unwrap().unwrap(),
            b"o\nthree\n"
        );
        was_ready
    });
}

#[test]
fn dropped_writes_have_written_nothing() {
    let mut twice = Writer::waiting(2);
    twice.script.push_front(support::Writes::Wait);
    at_each_wait(|waits| {
        let mut writer = twice.clone();
        let written = cancel_after(waits, writer.write(TEXT)).is_some();
        assert_eq!(writer.written, TEXT[..if written { 2 } else { 0 }]);
        written
    });
    at_each_wait(|waits| {
        let mut writer = twice.clone();
        let bufs = [IoSlice::new(b""), IoSlice::new(TEXT)];
        let written = cancel_after(waits, writer.write_vectored(&bufs)).is_some();
        assert_eq!(writer.written, TEXT[..if written { 2 } else { 0 }]);
        written
    });
    at_each_wait(|waits| {
        let (mut writer, mut rest) = (twice.clone(), TEXT);
        let written = cancel_after(waits, writer.write_buf(&mut rest)).is_some();
        assert_eq!(rest.len(), TEXT.len() - if written { 2 } else { 0 });
        assert_eq!([&writer.written, rest].concat(), TEXT);
        written
    });
}

#[test]
fn dropped_write_all_buf_keeps_the_rest_for_the_next() {
    for is_vectored in [false, true] {
        at_each_wait(|waits| {
            let (mut writer, mut rest) = (Writer::waiting(3), TEXT);
            writer.is_vectored = is_vectored;
            let written = cancel_after(waits, writer.write_all_buf(&mut rest)).is_some();
            assert_eq!([&writer.written, rest].concat(), TEXT);
            finish(writer.write_all_buf(&mut rest)).unwrap();
            assert_eq!(writer.written, TEXT);
            written
        });
    }
}

#[test]
fn dropped_write_all_has_written_a_prefix() {
    at_each_wait(|waits| {
        let mut writer = Writer::waiting(3);
        let written = cancel_after(waits, writer.write_all(TEXT)).is_some();
        assert!(TEXT.starts_with(&writer.written));
        written
    });
}

#[test]
fn dropped_flush_of_a_buffer_writes_each_byte_once() {
    at_each_wait(|waits| {
        let mut writer = BufWriter::with_capacity(64, Writer::waiting(3));
        finish(writer.write_all(TEXT)).unwrap();
        let flushed = cancel_after(waits, writer.flush()).is_some();
        assert_eq!([&writer.get_ref().written, writer.buffer()].concat(), TEXT);
        finish(writer.write_all(b"more")).unwrap();
        finish(writer.shutdown()).unwrap();
        assert_eq!(writer.get_ref().written, [TEXT, b"more"].concat());
        assert!(writer.get_ref().is_shut_down);
        flushed
    });
}

#[test]
fn dropped_write_to_a_full_buffer_writes_each_byte_once() {
    at_each_wait(|waits| {
        let mut writer = BufWriter::with_capacity(4, Writer::waiting(1));
        finish(writer.write_all(b"abc")).unwrap();
        let written = cancel_after(waits, writer.write(b"de"));
        if written.is_none() {
            finish(writer.write_all(b"de")).unwrap();
        }
        finish(writer.flush()).unwrap();
        assert_eq!(writer.get_ref().written, b"abcde");
        written.is_some()
    });
}

#[test]
fn dropped_copy_buf_loses_no_byte() {
    at_each_wait(|waits| {
        let (mut reader, mut writer) = (reader(), Writer::waiting(2));
        let copied = cancel_after(waits, task_io::copy_buf(&mut reader, &mut writer));
        assert_eq!([&writer.written[..], &reader.rest()].concat(), TEXT);
        finish(task_io::copy_buf(&mut reader, &mut writer)).unwrap();
        assert_eq!((&writer.written[..], writer.flushed), (TEXT, TEXT.len()));
        copied.is_some()
    });
}

#[test]
fn dropped_copies_have_written_a_prefix() {
    at_each_wait(|waits| {
        let (mut reader, mut writer) = (reader(), Writer::waiting(2));
        let copied = cancel_after(waits, task_io::copy(&mut reader, &mut writer)).is_some();
        assert!(TEXT.starts_with(&writer.written));
        assert!(TEXT.ends_with(&reader.rest()));
        copied
    });
    at_each_wait(|waits| {
        let mut a = task_io::join(reader(), Writer::waiting(2));
        let mut b = task_io::join(reader(), Writer::waiting(3));
        let copied = cancel_after(waits, task_io::copy_bidirectional(&mut a, &mut b)).is_some();
        for side in [&a, &b] {
            assert!(TEXT.starts_with(&side.writer().written));
            assert_eq!(
                side.writer().is_shut_down,
                copied || side.writer().is_shut_down
            );
        }
        copied
    });
}
