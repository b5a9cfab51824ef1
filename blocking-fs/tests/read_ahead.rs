//! Reads that follow each other: how many jobs they take, and where the position is meanwhile.
#![cfg(not(any(selvedge_loom, selvedge_shuttle, selvedge_count)))]
use blocking_fs::File;
use blocking_threads::{Boxed, CurrentPool, RunBlocking};
use futures_lite::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt, future::block_on};
use std::{
    io::{Read, Seek, SeekFrom, Write},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Counts the jobs, and runs each before it returns.
#[derive(Clone, Default)]
struct Counted(Arc<AtomicUsize>);

impl RunBlocking for Counted {
    fn run_blocking(&self, job: Boxed) {
        // Ordering: the count alone is of interest, and the same thread reads it.
        self.0.fetch_add(1, Ordering::Relaxed);
        job();
    }
}

impl Counted {
    fn jobs(&self) -> usize {
        // Ordering: as in `run_blocking`.
        self.0.load(Ordering::Relaxed)
    }
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

fn file_of(bytes: &[u8]) -> std::fs::File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    file
}

#[test]
fn reads_in_order_share_jobs() {
    let (pool, all) = (Counted::default(), bytes(1 << 20));
    let _entered = CurrentPool::of(pool.clone()).enter();
    block_on(async {
        let mut file = File::from_std(file_of(&all));
        let mut read = vec![0; all.len()];
        for part in read.chunks_mut(4096) {
            file.read_exact(part).await.unwrap();
        }
        assert!(read == all);
        assert!(pool.jobs() <= 12, "{} jobs for 256 reads", pool.jobs());
        assert_eq!(file.read(&mut [0]).await.unwrap(), 0);
    });
}

#[test]
fn reads_after_seeks_ask_for_no_more_than_their_room() {
    let _entered = CurrentPool::of(Counted::default()).enter();
    block_on(async {
        let file = file_of(&bytes(1 << 20));
        let mut position = file.try_clone().unwrap(); // It shares the position.
        let mut file = File::from_std(file);
        for round in 0..20 {
            file.seek(SeekFrom::Start(round * 1_000)).await.unwrap();
            file.read_exact(&mut [0; 100]).await.unwrap();
            assert_eq!(position.stream_position().unwrap(), round * 1_000 + 100);
        }
    });
}

#[test]
fn reads_ahead_stay_within_the_largest_buffer() {
    let _entered = CurrentPool::of(Counted::default()).enter();
    block_on(async {
        let file = file_of(&bytes(1 << 20));
        let mut position = file.try_clone().unwrap();
        let mut file = File::from_std(file);
        file.set_max_buf_size(512);
        for read in 1..1_000 {
            file.read_exact(&mut [0; 100]).await.unwrap();
            assert!(position.stream_position().unwrap() < read * 100 + 512);
        }
    });
}

// Fails if the end of the file is remembered: then the reader misses what was added.
#[test]
fn bytes_added_at_the_end_are_read() {
    let _entered = CurrentPool::of(Counted::default()).enter();
    block_on(async {
        let mut writer = tempfile::NamedTempFile::new().unwrap();
        let mut file = File::open(writer.path()).await.unwrap();
        for round in 0..100 {
            writer.write_all(&[round; 10]).unwrap();
            for _ in 0..5 {
                let mut two = [0; 2];
                file.read_exact(&mut two).await.unwrap();
                assert_eq!(two, [round; 2]);
            }
        }
    });
}

#[cfg(unix)]
#[test]
fn stream_keeps_what_nobody_asked_for() {
    use std::os::{fd::OwnedFd, unix::net::UnixStream};

    let _entered = CurrentPool::of(Counted::default()).enter();
    let (mut read, mut write) = UnixStream::pair().unwrap();
    write.write_all(b"0123456789").unwrap();
    block_on(async {
        let same = OwnedFd::from(read.try_clone().unwrap());
        let mut file = File::from(same);
        for expected in b"012345" {
            let mut byte = [0];
            file.read_exact(&mut byte).await.unwrap();
            assert_eq!(byte, [*expected]);
        }
    });
    let mut rest = [0; 4];
    read.read_exact(&mut rest).unwrap();
    assert_eq!(&rest, b"6789");
}

/// Runs the same operations, drawn from a seed, on a `File` and on a file of std.
#[test]
fn operations_agree_with_those_of_std() {
    let _entered = CurrentPool::of(Counted::default()).enter();
    for seed in 1..200_u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut draw = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        let mut model = file_of(&bytes(20_000));
        let mut file = File::from_std(file_of(&bytes(20_000)));
        block_on(async {
            for _ in 0..60 {
                match draw(12) {
                    0 => {
                        let to = SeekFrom::Start(draw(25_000));
                        assert_eq!(file.seek(to).await.unwrap(), model.seek(to).unwrap());
                    }
                    1 => {
                        let to = SeekFrom::Current(draw(100) as i64);
                        assert_eq!(file.seek(to).await.unwrap(), model.seek(to).unwrap());
                    }
                    2 => {
                        let from = vec![draw(256) as u8; draw(3_000) as usize];
                        file.write_all(&from).await.unwrap();
                        model.write_all(&from).unwrap();
                    }
                    3 => {
                        let size = draw(30_000);
                        file.set_len(size).await.unwrap();
                        model.set_len(size).unwrap();
                    }
                    4 => {
                        let same = file.try_clone().await.unwrap();
                        file = same;
                    }
                    5 => file = File::from_std(file.into_std().await),
                    _ => {
                        let room = draw(2_000) as usize;
                        let (mut to, mut expected) = (vec![0; room], vec![0; room]);
                        let mut count = 0;
                        while count < room {
                            match file.read(&mut to[count..]).await.unwrap() {
                                0 => break,
                                more => count += more,
                            }
                        }
                        let mut reached = 0;
                        while reached < room {
                            match model.read(&mut expected[reached..]).unwrap() {
                                0 => break,
                                more => reached += more,
                            }
                        }
                        assert_eq!((count, to), (reached, expected), "seed {seed}");
                    }
                }
            }
        });
    }
}
