use super::{COARSE_TICK, Found, LARGE, MOST_AHEAD, PIECE, Stamp, Stream, TICK, is_worthwhile};
use std::{
    fs::{self, File},
    io::Write,
    thread,
    time::{Duration, SystemTime},
};

/// Opens a file of that length that may be read ahead.
fn settled(len: u64) -> File {
    let file = tempfile::tempfile().unwrap();
    file.set_len(len).unwrap();
    while !Stamp::of(&file).unwrap().is_settled(SystemTime::now()) {
        thread::sleep(Duration::from_millis(10));
    }
    file
}

/// Reads for the stream as its job does. Returns the lengths of the pieces.
fn job(stream: &mut Stream, file: &File) -> Vec<usize> {
    let mut lens = Vec::new();
    while let Some(mut piece) = stream.next_piece(false) {
        let count = piece.read(file);
        stream.add(piece, count);
        lens.push(count);
    }
    lens
}

/// Takes all bytes that were read. Returns their number.
fn take(stream: &mut Stream) -> usize {
    let mut total = 0;
    while stream.has_bytes() {
        let Found::Chunk(chunk) = stream.find(PIECE) else {
            panic!("the stream has bytes");
        };
        let count = chunk.bytes().len();
        stream.give_back(chunk, count);
        total += count;
    }
    total
}

#[test]
fn window_doubles_up_to_its_limit() {
    let file = settled(100 << 20);
    let mut stream = Stream::open(&file, 1_000, usize::MAX).unwrap();
    assert_eq!(job(&mut stream, &file), [1_000]);
    assert!(!stream.is_low(), "one read alone begins no window");
    let mut windows = Vec::new();
    for _ in 0..6 {
        take(&mut stream);
        assert!(matches!(stream.find(1_000), Found::Empty));
        stream.widen();
        stream.extend();
        windows.push(job(&mut stream, &file).iter().sum::<usize>());
    }
    assert_eq!(windows, [2, 4, 8, 16, 16, 16].map(|pieces| pieces * PIECE));
    assert_eq!(windows[5], MOST_AHEAD);
}

// Fails if the buffers of a stream are not used again: then a long file takes memory without end.
#[test]
fn buffers_of_a_stream_are_used_again() {
    let file = settled(30 << 20);
    let mut stream = Stream::open(&file, PIECE, usize::MAX).unwrap();
    loop {
        job(&mut stream, &file);
        if take(&mut stream) == 0 {
            break;
        }
        assert!(stream.spare.len() <= MOST_AHEAD / PIECE);
        if matches!(stream.find(PIECE), Found::Empty) {
            stream.widen();
            stream.extend();
        }
    }
    assert_eq!(stream.position, 30 << 20);
    assert_eq!(stream.spare.len(), 0, "the end of the file frees them");
}

// Fails if a stream goes on behind an error or a short read, or drops the bytes before it.
#[test]
fn stream_stops_behind_a_short_piece() {
    let file = settled(10 << 20);
    let mut stream = Stream::open(&file, PIECE, usize::MAX).unwrap();
    job(&mut stream, &file);
    take(&mut stream);
    stream.widen();
    stream.extend();
    for count in [PIECE, 10] {
        let piece = stream.next_piece(true).unwrap();
        stream.add(piece, count);
    }
    assert!(stream.next_piece(true).is_none());
    assert!(!stream.is_low());
    assert_eq!(take(&mut stream), PIECE + 10);
    assert!(matches!(stream.find(PIECE), Found::Stopped));
    let position = stream.position;
    stream.close(&file).unwrap();
    assert_eq!(
        std::io::Seek::stream_position(&mut &file).unwrap(),
        position
    );
}

#[test]
fn job_goes_on_while_its_reader_keeps_up() {
    let file = settled(30 << 20);
    let mut stream = Stream::open(&file, PIECE, usize::MAX).unwrap();
    job(&mut stream, &file);
    take(&mut stream);
    stream.widen();
    stream.extend();
    let mut read = 0;
    while let Some(mut piece) = stream.next_piece(true) {
        let count = piece.read(&file);
        stream.add(piece, count);
        read += take(&mut stream);
    }
    assert_eq!(read, (30 << 20) - PIECE);
}

#[test]
fn unfit_files_begin_no_stream() {
    let open = |file: &File| Stream::open(file, 100, usize::MAX);
    let mut file = settled(1_000);
    assert!(open(&file).is_some());
    // A tick may pass before the look at the file, but not each time.
    let is_unsettled = (0..1_000_000).any(|_| {
        file.write_all(b"x").unwrap();
        open(&file).is_none()
    });
    assert!(is_unsettled);
    assert!(open(&settled(0)).is_none(), "it has no length to rely on");
    for path in ["/proc/version", "/sys/kernel/notes", "/dev/zero", "/"] {
        if let Ok(file) = fs::File::open(path) {
            assert!(open(&file).is_none(), "{path}");
        }
    }
}

#[test]
fn stamps_settle_when_their_tick_has_passed() {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
    let is_settled = |seconds, nanoseconds| {
        let stamp = Stamp {
            seconds,
            nanoseconds,
            len: 1,
        };
        stamp.is_settled(now)
    };
    let nanoseconds = |age: Duration| (Duration::from_secs(1) - age).as_nanos() as i64;
    assert!(!is_settled(999, nanoseconds(TICK)));
    assert!(is_settled(999, nanoseconds(TICK) - 1));
    let coarse = 1_000 - COARSE_TICK.as_secs() as i64;
    assert!(!is_settled(coarse, 0));
    assert!(is_settled(coarse - 1, 0));
    for strange in [1_001, i64::MAX, i64::MIN, -1] {
        assert!(!is_settled(strange, 1));
    }
}

#[test]
fn large_reads_are_not_worthwhile() {
    assert!(is_worthwhile(1, 2) && is_worthwhile(LARGE - 1, usize::MAX));
    assert!(!is_worthwhile(LARGE, usize::MAX) && !is_worthwhile(10, 10));
}
