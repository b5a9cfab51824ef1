//! Reads that follow each other: how many jobs they take, which bytes they see, and where the
//! position is meanwhile. The reader must not be able to tell that it reads ahead.
#![cfg(all(
    target_os = "linux",
    not(any(selvedge_loom, selvedge_shuttle, selvedge_count))
))]
use blocking_fs::{File, OpenOptions};
use blocking_threads::{Boxed, CurrentPool, Pool, RunBlocking, Settings};
use futures_lite::{
    AsyncReadExt, AsyncSeekExt, AsyncWriteExt,
    future::{block_on, poll_once},
};
use proptest::{collection, prelude::*, strategy::Union};
use std::{
    fs,
    io::{self, ErrorKind, Read, Seek, SeekFrom, Write},
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::fs::{FileExt, MetadataExt},
    },
    path::Path,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, SystemTime},
};
use tempfile::NamedTempFile;

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

/// Keeps the jobs until the test runs them.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Boxed>>>);

impl RunBlocking for Kept {
    fn run_blocking(&self, job: Boxed) {
        self.0.lock().unwrap().push(job);
    }
}

impl Kept {
    /// Runs the jobs, and those that they start. Returns how many there were.
    fn run(&self) -> usize {
        let mut count = 0;
        loop {
            let Some(job) = self.0.lock().unwrap().pop() else {
                return count;
            };
            job();
            count += 1;
        }
    }
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

/// Waits until the file's last change is so long ago that the file may be read ahead.
fn settle(path: &Path) {
    let metadata = fs::metadata(path).unwrap();
    let since = Duration::new(metadata.ctime() as u64, metadata.ctime_nsec() as u32);
    let changed = SystemTime::UNIX_EPOCH + since;
    while changed
        .elapsed()
        .is_ok_and(|age| age < Duration::from_millis(60))
    {
        thread::sleep(Duration::from_millis(5));
    }
}

fn file_of(bytes: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    settle(file.path());
    file
}

/// Reads until there is no room or the file ends.
async fn fill(file: &mut File, room: usize) -> io::Result<Vec<u8>> {
    let (mut to, mut count) = (vec![0; room], 0);
    while count < room {
        match file.read(&mut to[count..]).await? {
            0 => break,
            more => count += more,
        }
    }
    to.truncate(count);
    Ok(to)
}

/// Does the same with a file of std.
fn fill_std(file: &mut fs::File, room: usize) -> Vec<u8> {
    let mut to = Vec::new();
    file.take(room as u64).read_to_end(&mut to).unwrap();
    to
}

/// Opens a file that is to be read ahead.
async fn open(path: &Path) -> std::io::Result<File> {
    File::options().read(true).read_ahead(true).open(path).await
}

/// Opens a file and reads from it until it is read ahead. Returns the file, and how much was read.
async fn reading_ahead(path: &Path) -> (File, u64) {
    let mut file = open(path).await.unwrap();
    for _ in 0..4 {
        file.read_exact(&mut [0; 1_000]).await.unwrap();
    }
    (file, 4_000)
}

#[test]
fn reads_in_order_share_jobs() {
    let (pool, all) = (Counted::default(), bytes(4 << 20));
    let on_disk = file_of(&all);
    let _entered = CurrentPool::of(pool.clone()).enter();
    block_on(async {
        let mut file = open(on_disk.path()).await.unwrap();
        let mut read = vec![0; all.len()];
        for part in read.chunks_mut(4096) {
            file.read_exact(part).await.unwrap();
        }
        assert!(read == all);
        assert_eq!(file.read(&mut [0]).await.unwrap(), 0);
        assert!(pool.jobs() <= 40, "{} jobs for 1,024 reads", pool.jobs());
    });
}

// Fails if each read of a stream begins a new one, or if the end of the file needs a job.
#[test]
fn file_of_one_read_takes_two_jobs() {
    let pool = Counted::default();
    let on_disk = file_of(&bytes(60_000));
    let _entered = CurrentPool::of(pool.clone()).enter();
    block_on(async {
        let mut file = open(on_disk.path()).await.unwrap();
        assert_eq!(file.read(&mut [0; 60_000]).await.unwrap(), 60_000);
        assert_eq!(file.read(&mut [0; 60_000]).await.unwrap(), 0);
        assert_eq!(pool.jobs(), 2, "one opens the file, and one reads it");
    });
}

// Fails if the first read of a place reads more than it has room for.
#[test]
fn read_after_a_seek_reads_no_more_than_its_room() {
    let pool = Kept::default();
    let on_disk = file_of(&bytes(1 << 20));
    let _entered = CurrentPool::of(pool.clone()).enter();
    let run = |mut future: Pin<&mut dyn Future<Output = io::Result<()>>>| loop {
        match block_on(poll_once(&mut future)) {
            Some(result) => return result,
            None => assert_eq!(pool.run(), 1),
        }
    };
    let path = on_disk.path();
    let mut file = None;
    run(Box::pin(async {
        file = Some(open(path).await?);
        Ok(())
    })
    .as_mut())
    .unwrap();
    let mut file = file.unwrap();
    for at in 0..20 {
        run(Box::pin(async {
            file.seek(SeekFrom::Start(at * 10_000)).await?;
            file.read_exact(&mut [0; 100]).await
        })
        .as_mut())
        .unwrap();
        assert_eq!(pool.run(), 0, "the read has left a job behind");
    }
}

// Fails if a task takes bytes without a look at the file's time of change.
#[test]
fn write_of_another_is_seen_by_the_next_read() {
    let on_disk = file_of(&bytes(1 << 20));
    let _entered = CurrentPool::of(Counted::default()).enter();
    block_on(async {
        for round in 0..5 {
            settle(on_disk.path());
            let (mut file, at) = reading_ahead(on_disk.path()).await;
            on_disk.as_file().write_all_at(&[round; 3], at).unwrap();
            assert_eq!(fill(&mut file, 3).await.unwrap(), [round; 3]);
            on_disk
                .as_file()
                .write_all_at(&[round + 100; 3], at + 3)
                .unwrap();
            assert_eq!(fill(&mut file, 3).await.unwrap(), [round + 100; 3]);
        }
    });
}

// Fails if a file is read ahead whose last change is of the present tick of the kernel's clock. A
// kernel since 6.13 gives each change that was looked at a time of its own.
#[test]
fn two_writes_of_one_tick_are_both_seen() {
    let on_disk = file_of(&bytes(1 << 20));
    let _entered = CurrentPool::of(Counted::default()).enter();
    block_on(async {
        for round in 0..100 {
            on_disk.as_file().write_all_at(&[round], 4_500).unwrap();
            let (mut file, at) = reading_ahead(on_disk.path()).await;
            on_disk.as_file().write_all_at(&[round + 1; 3], at).unwrap();
            assert_eq!(fill(&mut file, 3).await.unwrap(), [round + 1; 3]);
        }
    });
}

#[test]
fn truncated_file_ends_at_its_new_length() {
    let on_disk = file_of(&bytes(1 << 20));
    let _entered = CurrentPool::of(Counted::default()).enter();
    block_on(async {
        let (mut file, at) = reading_ahead(on_disk.path()).await;
        on_disk.as_file().set_len(at + 2).unwrap();
        assert_eq!(fill(&mut file, 100).await.unwrap().len(), 2);
        on_disk.as_file().set_len(0).unwrap();
        assert_eq!(fill(&mut file, 100).await.unwrap(), []);
    });
}

// Fails if the end of the file is remembered: then the reader misses the bytes that were added.
#[test]
fn bytes_added_at_the_end_are_read() {
    let mut on_disk = file_of(b"0");
    let _entered = CurrentPool::of(Counted::default()).enter();
    block_on(async {
        let mut file = open(on_disk.path()).await.unwrap();
        assert_eq!(fill(&mut file, 10).await.unwrap(), b"0");
        for round in 0..100 {
            on_disk.write_all(&[round; 10]).unwrap();
            if round % 20 == 0 {
                settle(on_disk.path());
            }
            assert_eq!(fill(&mut file, 5).await.unwrap(), [round; 5]);
            assert_eq!(fill(&mut file, 10).await.unwrap(), [round; 5]);
        }
    });
}

#[test]
fn descriptor_is_where_the_program_has_read() {
    let on_disk = file_of(&bytes(1 << 20));
    let _entered = CurrentPool::of(Counted::default()).enter();
    block_on(async {
        let (mut file, at) = reading_ahead(on_disk.path()).await;
        let descriptor = file.as_fd().try_clone_to_owned().unwrap();
        let mut same = fs::File::from(descriptor);
        assert_eq!(same.stream_position().unwrap(), at);
        // From now on both share the position.
        for round in 1..50 {
            fill(&mut file, 10).await.unwrap();
            assert_eq!(same.stream_position().unwrap(), at + round * 20 - 10);
            fill_std(&mut same, 10);
        }
        assert_eq!(
            fill(&mut file, 1).await.unwrap()[0],
            ((at + 980) % 251) as u8
        );
    });
}

#[test]
fn clones_share_the_position() {
    let on_disk = file_of(&bytes(1 << 20));
    let _entered = CurrentPool::of(Counted::default()).enter();
    block_on(async {
        let (mut file, at) = reading_ahead(on_disk.path()).await;
        let mut same = file.try_clone().await.unwrap();
        for round in 0..50 {
            assert_eq!(
                fill(&mut file, 1).await.unwrap()[0],
                ((at + 2 * round) % 251) as u8
            );
            assert_eq!(
                fill(&mut same, 1).await.unwrap()[0],
                ((at + 2 * round + 1) % 251) as u8
            );
        }
    });
}

#[test]
fn file_of_std_is_not_read_ahead() {
    let on_disk = file_of(&bytes(1 << 20));
    let _entered = CurrentPool::of(Counted::default()).enter();
    block_on(async {
        let mut file = fs::File::open(on_disk.path()).unwrap();
        let mut same = file.try_clone().unwrap();
        let mut reader = File::from_std(file);
        for round in 1..100 {
            fill(&mut reader, 10).await.unwrap();
            assert_eq!(same.stream_position().unwrap(), round * 10);
        }
        file = reader.try_into_std().unwrap();
        assert_eq!(file.stream_position().unwrap(), 990);
        let mut reader = File::from(OwnedFd::from(file));
        for round in 1..100 {
            fill(&mut reader, 10).await.unwrap();
            assert_eq!(same.stream_position().unwrap(), 990 + round * 10);
        }
    });
}

#[test]
fn files_become_those_of_std_while_a_job_reads_ahead() {
    let on_disk = file_of(&bytes(1 << 20));
    let pool = Kept::default();
    let _entered = CurrentPool::of(pool.clone()).enter();
    // Each poll before the last one waits for a job.
    let read = |path: &Path| {
        let mut opens = Box::pin(reading_ahead(path));
        loop {
            if let Some((file, at)) = block_on(poll_once(&mut opens)) {
                return (file, at);
            }
            pool.run();
        }
    };
    let of = |path: &Path| {
        let (mut file, mut at) = read(path);
        // The bytes ahead run low, which starts a job.
        while pool.0.lock().unwrap().is_empty() {
            assert!(block_on(poll_once(fill(&mut file, 10_000))).is_some());
            at += 10_000;
        }
        (file, at)
    };
    let (file, at) = of(on_disk.path());
    // The job's descriptor must not be closed beside the file: that would end the program's locks.
    let file = file.try_into_std().unwrap_err();
    assert_eq!(pool.run(), 1);
    let mut std = file.try_into_std().expect("no operation is under way");
    assert_eq!(std.stream_position().unwrap(), at);
    assert_eq!(fill_std(&mut std, 1)[0], (at % 251) as u8);

    // The program may hold a lock by the descriptor, which must not be closed beside the file.
    let (file, at) = of(on_disk.path());
    let descriptor = file.as_raw_fd();
    let file = file.try_into_std().unwrap_err();
    assert_eq!(pool.run(), 1);
    let mut std = file.try_into_std().unwrap();
    assert_eq!(std.as_raw_fd(), descriptor);
    assert_eq!(std.stream_position().unwrap(), at);

    // A seek in steps waits for no job either.
    let (mut file, _) = of(on_disk.path());
    assert_eq!(
        block_on(poll_once(file.seek(SeekFrom::Start(3))))
            .unwrap()
            .unwrap(),
        3
    );
    let seek = task_io::AsyncSeekExt::seek(&mut file, SeekFrom::Start(5));
    assert_eq!(block_on(poll_once(seek)).unwrap().unwrap(), 5);
    // The second seek takes the result of the first one.
    task_io::AsyncSeek::start_seek(Pin::new(&mut file), SeekFrom::Current(1)).unwrap();
    assert_eq!(
        block_on(poll_once(file.seek(SeekFrom::Current(1))))
            .unwrap()
            .unwrap(),
        6
    );
    assert_eq!(pool.run(), 1);

    let (file, at) = of(on_disk.path());
    let mut becomes = Box::pin(file.into_std());
    assert!(block_on(poll_once(&mut becomes)).is_none());
    assert_eq!(pool.run(), 1);
    assert_eq!(block_on(becomes).stream_position().unwrap(), at);
}

#[test]
fn seek_in_a_stream_needs_no_job() {
    let pool = Counted::default();
    let on_disk = file_of(&bytes(1 << 20));
    let _entered = CurrentPool::of(pool.clone()).enter();
    block_on(async {
        let (mut file, at) = reading_ahead(on_disk.path()).await;
        let jobs = pool.jobs();
        assert_eq!(file.seek(SeekFrom::Current(5)).await.unwrap(), at + 5);
        assert_eq!(pool.jobs(), jobs);
        assert_eq!(fill(&mut file, 1).await.unwrap()[0], ((at + 5) % 251) as u8);
        let error = file.seek(SeekFrom::Current(-10_000)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert_eq!(fill(&mut file, 1).await.unwrap()[0], ((at + 6) % 251) as u8);
        assert_eq!(file.seek(SeekFrom::End(-1)).await.unwrap(), (1 << 20) - 1);
        assert_eq!(fill(&mut file, 5).await.unwrap().len(), 1);
    });
}

// Fails if the job that reads ahead counts as an operation of the program.
#[test]
fn seek_in_steps_starts_beside_a_job_that_reads_ahead() {
    use task_io::{AsyncReadExt, AsyncSeek, AsyncSeekExt};

    let on_disk = file_of(&bytes(8 << 20));
    let pool: Pool<Boxed> = Pool::new(Settings::default());
    let _entered = pool.enter();
    block_on(async {
        let mut file = open(on_disk.path()).await.unwrap();
        for round in 0..500 {
            for _ in 0..3 {
                AsyncReadExt::read(&mut file, &mut [0; 4_096])
                    .await
                    .unwrap();
            }
            let to = SeekFrom::Start(round * 7);
            Pin::new(&mut file).start_seek(to).unwrap();
            assert_eq!(
                AsyncSeekExt::stream_position(&mut file).await.unwrap(),
                round * 7
            );
            let byte = AsyncReadExt::read_u8(&mut file).await.unwrap();
            assert_eq!(byte, (round * 7 % 251) as u8);
        }
    });
}

#[test]
fn writes_go_where_the_program_has_read() {
    let on_disk = file_of(&bytes(100_000));
    let _entered = CurrentPool::of(Counted::default()).enter();
    block_on(async {
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .write(true)
            .open(on_disk.path())
            .await
            .unwrap();
        for round in 0..3 {
            settle(on_disk.path());
            fill(&mut file, 1_000).await.unwrap();
            fill(&mut file, 1_000).await.unwrap();
            file.write_all(b"abc").await.unwrap();
            file.flush().await.unwrap();
            let at = 2_003 * round + 2_000;
            assert_eq!(
                &fs::read(on_disk.path()).unwrap()[at..at + 4],
                [b'a', b'b', b'c', ((at + 3) % 251) as u8]
            );
        }
    });
}

// Fails if an error of the job that reads ahead is lost, or comes before the bytes.
#[test]
fn file_that_cannot_be_read_returns_its_error() {
    let on_disk = file_of(&bytes(100_000));
    let _entered = CurrentPool::of(Counted::default()).enter();
    block_on(async {
        let mut file = OpenOptions::new()
            .write(true)
            .open(on_disk.path())
            .await
            .unwrap();
        for _ in 0..3 {
            let error = file.read(&mut [0; 10]).await.unwrap_err();
            let expected = fs::OpenOptions::new().write(true).open(on_disk.path());
            let expected = expected.unwrap().read(&mut [0]).unwrap_err();
            assert_eq!(error.raw_os_error(), expected.raw_os_error());
        }
    });
}

#[test]
fn pool_that_ends_leaves_what_was_read_ahead() {
    const LEN: usize = 20 << 20; // A job that runs when the pool is closed reads less than that.
    let on_disk = file_of(&bytes(LEN));
    let pool = || Pool::<Boxed>::new(Settings::default());
    let first = pool();
    let entered = first.enter();
    let (mut file, at) = block_on(reading_ahead(on_disk.path()));
    first.close();
    let mut read = at as usize;
    let error = loop {
        match block_on(file.read(&mut [0; 1_000])) {
            Ok(0) => panic!("the file has more than one job reads"),
            Ok(count) => read += count,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Other);
    assert!(read < LEN);
    drop(entered);
    let second = pool();
    let _entered = second.enter();
    let rest = block_on(fill(&mut file, LEN)).unwrap();
    assert!(rest == bytes(LEN)[read..]);
}

#[test]
fn largest_buffer_bounds_what_is_read_ahead() {
    let pool = Counted::default();
    let on_disk = file_of(&bytes(100_000));
    let _entered = CurrentPool::of(pool.clone()).enter();
    block_on(async {
        let mut file = open(on_disk.path()).await.unwrap();
        file.set_max_buf_size(1_000);
        for _ in 0..100 {
            file.read_exact(&mut [0; 1_000]).await.unwrap();
        }
        assert_eq!(pool.jobs(), 101);
    });
}

#[test]
fn dropped_reads_lose_no_byte() {
    let all = bytes(3 << 20);
    let on_disk = file_of(&all);
    let pool: Pool<Boxed> = Pool::new(Settings::default());
    let _entered = pool.enter();
    block_on(async {
        let mut file = open(on_disk.path()).await.unwrap();
        let (mut read, mut block) = (Vec::new(), vec![0; 10_000]);
        loop {
            // A poll that returns `Pending` has taken no byte.
            let polled = poll_once(file.read(&mut block)).await;
            let count = match polled {
                Some(count) => count.unwrap(),
                None => continue,
            };
            if count == 0 {
                break;
            }
            read.extend_from_slice(&block[..count]);
        }
        assert!(read == all);
    });
}

#[derive(Clone, Debug)]
enum Op {
    Read(usize),
    Drop(usize),
    Seek(SeekFrom),
    Write(Vec<u8>),
    SetLen(u64),
    Clone,
    Std,
    Expose,
    Metadata,
    /// Another descriptor of another opening writes.
    Other(u64, Vec<u8>),
    OtherLen(u64),
    Settle,
}

const LEN: u64 = 600_000;

fn op() -> impl Strategy<Value = Op> {
    let some = || collection::vec(any::<u8>(), 0..3_000);
    let room = prop_oneof![0..5_000_usize, Just(65_536), 0..400_000_usize];
    let seek = prop_oneof![
        (0..LEN).prop_map(SeekFrom::Start),
        (-5_000..5_000_i64).prop_map(SeekFrom::Current),
        (-5_000..100_i64).prop_map(SeekFrom::End),
    ];
    let rare = Union::new([
        some().prop_map(Op::Write).boxed(),
        (0..LEN).prop_map(Op::SetLen).boxed(),
        Just(Op::Clone).boxed(),
        Just(Op::Std).boxed(),
        Just(Op::Expose).boxed(),
        Just(Op::Metadata).boxed(),
        (0..LEN).prop_map(Op::OtherLen).boxed(),
    ]);
    prop_oneof![
        40 => room.prop_map(Op::Read),
        6 => (0..5_000_usize).prop_map(Op::Drop),
        4 => seek.prop_map(Op::Seek),
        3 => ((0..LEN), some()).prop_map(|(at, bytes)| Op::Other(at, bytes)),
        3 => rare,
        3 => Just(Op::Settle),
    ]
}

/// Does the same on a `File` and on a file of std, which are two openings of one file.
async fn agree(ops: Vec<Op>) {
    let on_disk = file_of(&bytes(LEN as usize));
    let path = on_disk.path();
    let mut options = OpenOptions::new();
    let mut file = options.read(true).write(true).open(path).await.unwrap();
    let mut model = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut has_dropped = false;
    for op in ops {
        if has_dropped && matches!(op, Op::Other(..) | Op::OtherLen(_)) {
            // The bytes of a dropped read stay for the next one, whatever others write. A seek
            // forgets them.
            file.seek(SeekFrom::Current(0)).await.unwrap();
            has_dropped = false;
        }
        match op {
            Op::Read(room) => {
                let read = fill(&mut file, room).await.unwrap();
                assert!(read == fill_std(&mut model, room), "a read of {room}");
            }
            Op::Drop(room) => {
                let mut block = vec![0; room];
                let polled = poll_once(file.read(&mut block)).await;
                has_dropped |= polled.is_none();
                if let Some(read) = polled {
                    let count = read.unwrap();
                    assert!(block[..count] == fill_std(&mut model, count));
                    // Such a read may be short, but only the end of the file has no byte.
                    assert!(count > 0 || room == 0 || fill_std(&mut model, 1).is_empty());
                }
            }
            Op::Seek(to) => {
                let (sought, expected) = (file.seek(to).await, model.seek(to));
                assert_eq!(sought.map_err(|e| e.kind()), expected.map_err(|e| e.kind()));
            }
            Op::Write(from) => {
                file.write_all(&from).await.unwrap();
                file.flush().await.unwrap();
                model.write_all(&from).unwrap();
            }
            Op::SetLen(len) => file.set_len(len).await.unwrap(),
            Op::Clone => {
                let same = file.try_clone().await.unwrap();
                file = same;
            }
            Op::Std => file = File::from_std(file.into_std().await),
            Op::Expose => drop(file.as_fd()),
            Op::Metadata => {
                let metadata = file.metadata().await.unwrap();
                assert_eq!(metadata.len(), model.metadata().unwrap().len());
            }
            Op::Other(at, from) => on_disk.as_file().write_all_at(&from, at).unwrap(),
            Op::OtherLen(len) => on_disk.as_file().set_len(len).unwrap(),
            Op::Settle => settle(path),
        }
    }
    let position = file.into_std().await.stream_position().unwrap();
    assert_eq!(position, model.stream_position().unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 32,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn operations_agree_with_those_of_std(ops in collection::vec(op(), 1..60)) {
        let pool: Pool<Boxed> = Pool::new(Settings::default());
        let _entered = pool.enter();
        block_on(agree(ops));
    }

    #[test]
    fn operations_agree_where_jobs_run_at_once(ops in collection::vec(op(), 1..60)) {
        let _entered = CurrentPool::of(Counted::default()).enter();
        block_on(agree(ops));
    }
}
