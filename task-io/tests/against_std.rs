//! Random operations on readers and writers that wait, fail and take little, against the functions
//! of `std::io`, which never do.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
mod support;

use proptest::{collection::vec, prelude::*};
use std::io::{self, BufRead, Cursor, IoSlice, Read, Seek, SeekFrom, Write};
use support::{Reader, Reads, Writer, Writes, finish};
use task_io::{AsyncBufReadExt, AsyncReadExt, AsyncSeekExt, AsyncWriteExt, BufReader, BufWriter};

/// Few different bytes, so that delimiters and line ends are frequent, and some that are no UTF-8.
fn byte() -> impl Strategy<Value = u8> {
    prop_oneof![
        4 => Just(b'a'),
        2 => Just(b'\n'),
        1 => Just(b'\r'),
        1 => Just(b','),
        1 => Just(0xc3),
        1 => Just(0xa9),
    ]
}

fn ascii() -> impl Strategy<Value = u8> {
    prop_oneof![4 => Just(b'a'), 2 => Just(b'\n'), 1 => Just(b'\r'), 1 => Just(b',')]
}

/// A reader that waits and is interrupted, but does not fail.
fn reader() -> impl Strategy<Value = Reader> {
    let step = prop_oneof![
        4 => vec(byte(), 1..20).prop_map(Reads::Bytes),
        2 => Just(Reads::Wait),
        1 => Just(Reads::Fail(io::ErrorKind::Interrupted)),
    ];
    vec(step, 0..20).prop_map(Reader::new)
}

/// A writer that waits and is interrupted, but does not fail.
fn writer() -> impl Strategy<Value = Writer> {
    let step = prop_oneof![
        4 => (1usize..20).prop_map(Writes::Take),
        2 => Just(Writes::Wait),
        1 => Just(Writes::Fail(io::ErrorKind::Interrupted)),
    ];
    (vec(step, 0..40), any::<bool>()).prop_map(|(script, is_vectored)| Writer {
        is_vectored,
        ..Writer::new(script)
    })
}

/// Asserts that two results have the same value, or errors of the same kind.
fn same<T: PartialEq + std::fmt::Debug>(ours: io::Result<T>, std: io::Result<T>) {
    match (ours, std) {
        (Ok(ours), Ok(std)) => assert_eq!(ours, std),
        (Err(ours), Err(std)) => assert_eq!(ours.kind(), std.kind()),
        (ours, std) => panic!("{ours:?} is not {std:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn reads_to_the_end_equal_std(mut reader in reader(), capacity in 0usize..80) {
        let bytes = reader.rest();
        let mut text_reader = reader.clone();
        let mut ours = Vec::with_capacity(capacity);
        ours.push(b'x');
        prop_assert_eq!(finish(reader.read_to_end(&mut ours)).unwrap(), bytes.len());
        prop_assert_eq!(&ours[1..], &bytes[..]);

        let (mut ours, mut std) = (String::from("é"), String::from("é"));
        same(finish(text_reader.read_to_string(&mut ours)), Read::read_to_string(&mut &bytes[..], &mut std));
        prop_assert_eq!(ours, std);
    }

    #[test]
    fn exact_reads_equal_std(mut reader in reader(), lens in vec(0usize..30, 0..8)) {
        let bytes = reader.rest();
        let mut source = &bytes[..];
        for len in lens {
            let (mut ours, mut std) = (vec![0; len], vec![0; len]);
            let (read, expected) = (
                finish(reader.read_exact(&mut ours)).map(drop),
                Read::read_exact(&mut source, &mut std),
            );
            let is_end = expected.is_err();
            same(read, expected);
            if is_end {
                break;
            }
            prop_assert_eq!(ours, std);
            prop_assert_eq!(reader.rest(), source);
        }
    }

    #[test]
    fn reads_up_to_a_delimiter_equal_std(mut reader in reader()) {
        let bytes = reader.rest();
        let mut source = &bytes[..];
        loop {
            let (mut ours, mut std) = (b"x".to_vec(), b"x".to_vec());
            let read = finish(reader.read_until(b',', &mut ours)).unwrap();
            prop_assert_eq!(read, BufRead::read_until(&mut source, b',', &mut std).unwrap());
            prop_assert_eq!(ours, std);
            let (mut ours, mut std) = (String::from("x"), String::from("x"));
            same(finish(reader.read_line(&mut ours)), BufRead::read_line(&mut source, &mut std));
            prop_assert_eq!(ours, std);
            prop_assert_eq!(reader.rest(), source);
            if read == 0 {
                break;
            }
        }
    }

    #[test]
    fn lines_and_segments_equal_std(reader in reader()) {
        let bytes = reader.rest();
        let (mut lines, mut parts) = (reader.clone().lines(), reader.split(b','));
        for line in BufRead::lines(&bytes[..]) {
            same(finish(lines.next_line()).map(Option::unwrap), line);
        }
        prop_assert_eq!(finish(lines.next_line()).unwrap(), None);
        for part in BufRead::split(&bytes[..], b',') {
            same(finish(parts.next_segment()).map(Option::unwrap), part);
        }
        prop_assert_eq!(finish(parts.next_segment()).unwrap(), None);
    }

    /// Small reads alternate between the two ways to read.
    #[test]
    fn chain_and_take_equal_std(
        first in reader(),
        second in reader(),
        limit in 0u64..200,
        lens in vec((0usize..20, any::<bool>()), 0..20),
    ) {
        let (head, tail) = (first.rest(), second.rest());
        let all = Read::take(Read::chain(&head[..], &tail[..]), limit);
        let all: Vec<u8> = all.bytes().map(Result::unwrap).collect();
        let mut ours = AsyncReadExt::take(AsyncReadExt::chain(first, second), limit);
        let mut seen = Vec::new();
        for (len, by_read) in lens {
            if by_read {
                let mut bytes = vec![0; len];
                let read = finish(ours.read(&mut bytes));
                match read {
                    Ok(read) => seen.extend(&bytes[..read]),
                    Err(error) => prop_assert_eq!(error.kind(), io::ErrorKind::Interrupted),
                }
            } else if let Ok(bytes) = finish(ours.fill_buf()) {
                let len = len.min(bytes.len());
                seen.extend(&bytes[..len]);
                ours.consume(len);
            }
        }
        prop_assert_eq!(ours.limit(), limit - seen.len() as u64);
        finish(ours.read_to_end(&mut seen)).unwrap();
        prop_assert_eq!(seen, all);
    }

    #[test]
    fn writes_of_all_equal_std(
        mut writer in writer(),
        parts in vec((vec(byte(), 0..30), any::<bool>()), 0..10),
    ) {
        let mut std = Vec::new();
        for (part, by_buf) in &parts {
            if *by_buf {
                let (head, tail) = part.split_at(part.len() / 2);
                let mut both = bytes::Buf::chain(head, tail);
                finish(writer.write_all_buf(&mut both)).unwrap();
            } else {
                finish(writer.write_all(part)).unwrap();
            }
            std.extend(part);
        }
        prop_assert_eq!(&writer.written, &std);
    }

    #[test]
    fn copies_equal_std(
        mut reader in reader(),
        mut writer in writer(),
        capacity in 1usize..40,
        by_buf in any::<bool>(),
    ) {
        let bytes = reader.rest();
        let copied = if by_buf {
            let mut reader = BufReader::with_capacity(capacity, reader);
            finish(task_io::copy_buf(&mut reader, &mut writer))
        } else {
            finish(task_io::copy(&mut reader, &mut writer))
        };
        // A writer that is interrupted in a flush fails the copy, as a flush is not repeated.
        match copied {
            Ok(copied) => prop_assert_eq!(copied, bytes.len() as u64),
            Err(error) => {
                prop_assert_eq!(error.kind(), io::ErrorKind::Interrupted);
                return Ok(());
            }
        }
        prop_assert_eq!(writer.flushed, bytes.len());
        prop_assert_eq!(writer.written, bytes);
    }

    #[test]
    fn copies_both_ways_equal_std(
        readers in (reader(), reader()),
        writers in (writer(), writer()),
        sizes in (1usize..40, 1usize..40),
    ) {
        let (there, back) = (readers.0.rest(), readers.1.rest());
        let mut a = task_io::join(readers.0, writers.0);
        let mut b = task_io::join(readers.1, writers.1);
        let copy = task_io::copy_bidirectional_with_sizes(&mut a, &mut b, sizes.0, sizes.1);
        match finish(copy) {
            Ok(copied) => prop_assert_eq!(copied, (there.len() as u64, back.len() as u64)),
            Err(error) => {
                prop_assert_eq!(error.kind(), io::ErrorKind::Interrupted);
                return Ok(());
            }
        }
        prop_assert!(a.writer().is_shut_down && b.writer().is_shut_down);
        prop_assert_eq!(&a.writer().written, &back);
        prop_assert_eq!(&b.writer().written, &there);
    }
}

/// An operation of a buffer.
#[derive(Debug, Clone)]
enum Op {
    Read(usize),
    Until,
    Fill(usize),
    Seek(SeekFrom),
}

fn position() -> impl Strategy<Value = SeekFrom> {
    prop_oneof![
        (0u64..80).prop_map(SeekFrom::Start),
        (-40i64..40).prop_map(SeekFrom::Current),
        (-80i64..10).prop_map(SeekFrom::End),
        Just(SeekFrom::Current(i64::MIN)),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (0usize..20).prop_map(Op::Read),
        Just(Op::Until),
        (0usize..20).prop_map(Op::Fill),
        position().prop_map(Op::Seek),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Each result is the same, and the bytes that are left in the buffer.
    #[test]
    fn buf_reader_equals_std(
        bytes in vec(ascii(), 0..60),
        capacity in 1usize..16,
        ops in vec(op(), 0..30),
    ) {
        let mut ours = BufReader::with_capacity(capacity, Cursor::new(bytes.clone()));
        let mut std = io::BufReader::with_capacity(capacity, Cursor::new(bytes));
        for op in ops {
            match op {
                Op::Read(len) => {
                    let (mut a, mut b) = (vec![0; len], vec![0; len]);
                    same(finish(ours.read(&mut a)), std.read(&mut b));
                    prop_assert_eq!(a, b);
                }
                Op::Until => {
                    let (mut a, mut b) = (Vec::new(), Vec::new());
                    same(finish(ours.read_until(b'\n', &mut a)), std.read_until(b'\n', &mut b));
                    prop_assert_eq!(a, b);
                }
                Op::Fill(len) => {
                    let bytes = finish(ours.fill_buf()).unwrap();
                    prop_assert_eq!(bytes, std.fill_buf().unwrap());
                    let len = len.min(bytes.len());
                    ours.consume(len);
                    std.consume(len);
                }
                Op::Seek(position) => same(finish(ours.seek(position)), std.seek(position)),
            }
            prop_assert_eq!(ours.buffer(), std.buffer());
            prop_assert_eq!(ours.get_ref().position(), std.get_ref().position());
        }
    }

    #[test]
    fn buf_writer_equals_std(
        capacity in 0usize..16,
        inner in writer(),
        ops in vec(vec(vec(byte(), 0..8), 0..5), 0..20),
    ) {
        let mut ours = BufWriter::with_capacity(capacity, inner);
        let mut std = io::BufWriter::with_capacity(capacity, Vec::new());
        for bufs in &ops {
            let slices: Vec<IoSlice> = bufs.iter().map(|buf| IoSlice::new(buf)).collect();
            let written = match finish(ours.write_vectored(&slices)) {
                Ok(written) => written,
                // The inner writer was interrupted in a write past the buffer.
                Err(error) => {
                    prop_assert_eq!(error.kind(), io::ErrorKind::Interrupted);
                    continue;
                }
            };
            let all = bufs.concat();
            prop_assert!(written <= all.len() && (written > 0 || all.is_empty()));
            std.write_all(&all[..written]).unwrap();
            prop_assert!(ours.buffer().len() <= capacity);
        }
        while let Err(error) = finish(ours.flush()) {
            prop_assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        }
        std.flush().unwrap();
        prop_assert!(ours.buffer().is_empty());
        prop_assert_eq!(&ours.get_ref().written, std.get_ref());
    }

    #[test]
    fn buf_writer_that_seeks_equals_std(
        capacity in 0usize..16,
        ops in vec((vec(byte(), 1..20), position()), 0..10),
    ) {
        let mut ours = BufWriter::with_capacity(capacity, Cursor::new(Vec::new()));
        let mut std = io::BufWriter::with_capacity(capacity, Cursor::new(Vec::new()));
        for (bytes, position) in &ops {
            finish(ours.write_all(bytes)).unwrap();
            std.write_all(bytes).unwrap();
            same(finish(ours.seek(*position)), std.seek(*position));
        }
        finish(ours.flush()).unwrap();
        std.flush().unwrap();
        prop_assert_eq!(ours.get_ref(), std.get_ref());
    }
}
