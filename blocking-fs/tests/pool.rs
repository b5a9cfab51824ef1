//! The pool that runs the operations, and their errors where no pool does.
#![cfg(not(any(selvedge_loom, selvedge_shuttle, selvedge_count)))]
use blocking_fs::{self as fs, DirBuilder, DirEntry, File, OpenOptions, ReadDir};
use blocking_threads::{Boxed, CurrentPool, NoPool, Pool, RunBlocking, Settings};
use futures_lite::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt, future::block_on};
use static_assertions::assert_impl_all;
use std::{
    collections::BTreeSet,
    ffi::OsString,
    io::{self, ErrorKind, Read, SeekFrom},
    panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind},
    path::Path,
    pin::{Pin, pin},
    sync::mpsc,
    task::{Context, Poll, Waker},
};

assert_impl_all!(File: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(OpenOptions: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(DirBuilder: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(DirEntry: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(ReadDir: Send, Sync, Unpin);

fn pool() -> Pool<Boxed> {
    Pool::new(Settings::default())
}

/// Runs a future where a pool of its own is entered. Returns when the threads have ended.
fn run<F: Future>(future: F) -> F::Output {
    let pool = pool();
    let entered = pool.enter();
    let output = block_on(future);
    drop(entered);
    pool.finish();
    pool.join();
    output
}

/// A pool with one thread, which waits until the sender is dropped.
fn stuck_pool() -> (Pool<Boxed>, mpsc::Sender<()>) {
    let mut settings = Settings::default();
    settings.cap = 1;
    let pool: Pool<Boxed> = Pool::new(settings);
    let (gate, waits) = mpsc::channel();
    let job = Box::new(move || waits.recv().unwrap_or(()));
    pool.submit(job).unwrap();
    (pool, gate)
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Asserts that an operation was refused because the thread is in no pool.
#[track_caller]
fn assert_no_pool<T>(result: io::Result<T>) {
    let error = result.err().expect("there is no pool");
    assert_eq!(error.kind(), ErrorKind::Other);
    assert!(error.get_ref().unwrap().is::<NoPool>(), "{error}");
}

/// Asserts that an operation was refused because its pool has ended.
#[track_caller]
fn assert_closed<T>(result: io::Result<T>) {
    let error = result.err().expect("the pool is closed");
    assert_eq!(error.kind(), ErrorKind::Other);
    assert!(error.to_string().contains("closed"), "{error}");
}

fn read_to_end(mut file: std::fs::File) -> Vec<u8> {
    let mut all = Vec::new();
    file.read_to_end(&mut all).unwrap();
    all
}

/// Opens a new file that has these bytes, at its start.
fn file_of(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    io::Write::write_all(&mut file, bytes).unwrap();
    io::Seek::rewind(&mut file).unwrap();
    File::from_std(file)
}

#[test]
fn functions_without_a_pool_fail_and_do_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let at = &directory.path().join("a");
    let other = &directory.path().join("b");
    std::fs::write(at, "a").unwrap();
    let permissions = std::fs::metadata(at).unwrap().permissions();
    block_on(async {
        assert_no_pool(fs::read(at).await);
        assert_no_pool(fs::read_to_string(at).await);
        assert_no_pool(fs::write(at, "other").await);
        assert_no_pool(fs::canonicalize(at).await);
        assert_no_pool(fs::create_dir(other).await);
        assert_no_pool(fs::create_dir_all(other).await);
        assert_no_pool(DirBuilder::new().create(other).await);
        assert_no_pool(fs::metadata(at).await);
        assert_no_pool(fs::symlink_metadata(at).await);
        assert_no_pool(fs::read_link(at).await);
        assert_no_pool(fs::read_dir(directory.path()).await);
        assert_no_pool(fs::remove_dir(directory.path()).await);
        assert_no_pool(fs::remove_dir_all(directory.path()).await);
        assert_no_pool(fs::remove_file(at).await);
        assert_no_pool(fs::copy(at, other).await);
        assert_no_pool(fs::hard_link(at, other).await);
        assert_no_pool(fs::rename(at, other).await);
        assert_no_pool(fs::set_permissions(at, permissions).await);
        #[cfg(unix)]
        assert_no_pool(fs::symlink(at, other).await);
        assert_no_pool(fs::try_exists(at).await);
        assert_no_pool(OpenOptions::new().read(true).open(at).await);
        assert_no_pool(File::open(at).await);
        assert_no_pool(File::create(at).await);
        assert_no_pool(File::create_new(other).await);
    });
    assert_eq!(std::fs::read(at).unwrap(), b"a");
    assert!(!other.exists());
}

/// Fails if an operation that finds no pool moves the file's position, drops bytes, or leaves the
/// file waiting for a job that no thread has.
#[test]
fn file_without_a_pool_is_as_before_in_the_next_pool() {
    let mut file = file_of(b"0123456789");
    let refuse = async |file: &mut File| {
        assert_no_pool(file.read(&mut [0]).await);
        assert_no_pool(file.write(b"x").await);
        assert_no_pool(file.seek(SeekFrom::Current(1)).await);
        assert_no_pool(file.metadata().await);
        assert_no_pool(file.sync_all().await);
        assert_no_pool(file.set_len(1).await);
        assert_no_pool(file.try_clone().await);
        file.flush().await.unwrap(); // There is nothing to flush.
    };
    let mut two = [0; 2];
    block_on(refuse(&mut file));
    run(file.read_exact(&mut two)).unwrap();
    assert_eq!(&two, b"01");
    block_on(refuse(&mut file));
    assert_eq!(run(file.seek(SeekFrom::Current(1))).unwrap(), 3);
    block_on(refuse(&mut file));
    run(async {
        file.write_all(b"ab").await.unwrap();
        file.flush().await.unwrap();
        assert_eq!(file.metadata().await.unwrap().len(), 10);
    });
    block_on(refuse(&mut file));
    assert_eq!(read_to_end(block_on(file.into_std())), b"56789");
}

/// Fails if the bytes of a dropped read need a pool, or are lost where there is none.
#[test]
fn bytes_of_a_dropped_read_need_no_pool() {
    let mut file = file_of(b"0123456789");
    let (pool, gate) = stuck_pool();
    let entered = pool.enter();
    assert!(poll(pin!(file.read(&mut [0; 4]))).is_pending());
    drop((entered, gate));
    pool.finish();
    pool.join(); // The read has ended by now.
    let mut bytes = [0; 3];
    block_on(file.read_exact(&mut bytes)).unwrap();
    assert_eq!(&bytes, b"012");
    assert_no_pool(block_on(file.seek(SeekFrom::Current(0))));
    run(file.read_exact(&mut bytes)).unwrap();
    assert_eq!(&bytes, b"345");
}

/// Fails if the error of a write is lost where there is no pool.
#[test]
fn error_of_a_write_needs_no_pool() {
    let named = tempfile::NamedTempFile::new().unwrap();
    let readable = std::fs::File::open(named.path()).unwrap();
    let mut file = File::from_std(readable); // It is not open for writing.
    run(file.write_all(b"a")).unwrap();
    run(file.metadata()).unwrap(); // The write has ended.
    let error = block_on(file.sync_all()).unwrap_err();
    assert_ne!(error.kind(), ErrorKind::Other);
    assert_no_pool(block_on(file.sync_all()));
    run(file.write_all(b"a")).unwrap();
    assert_eq!(block_on(file.flush()).unwrap_err().kind(), error.kind());
}

fn directory_of(count: usize) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for n in 0..count {
        std::fs::write(directory.path().join(n.to_string()), "").unwrap();
    }
    directory
}

/// Takes entries up to the end, or to the first error.
async fn collect(entries: &mut ReadDir, names: &mut BTreeSet<OsString>) -> io::Result<()> {
    while let Some(entry) = entries.next_entry().await? {
        assert!(names.insert(entry.file_name()), "an entry came twice");
    }
    Ok(())
}

/// Fails if a poll without a pool ends the listing, or loses the entry at which it fails.
#[test]
fn read_dir_goes_on_after_a_poll_without_a_pool() {
    let directory = directory_of(1_100);
    let mut entries = run(fs::read_dir(directory.path())).unwrap();
    let mut names = BTreeSet::new();
    assert_no_pool(block_on(collect(&mut entries, &mut names)));
    assert_eq!(names.len(), 1_024, "the first batch needs no pool");
    assert_no_pool(block_on(entries.next_entry()));
    run(collect(&mut entries, &mut names)).unwrap();
    assert_eq!(names.len(), 1_100);
}

/// Fails if an operation hangs in a closed pool, or spoils the file for the next pool.
#[test]
fn operations_in_a_closed_pool_fail() {
    let directory = directory_of(1_100);
    let mut entries = run(fs::read_dir(directory.path())).unwrap();
    let mut file = file_of(b"0123456789");
    let pool = pool();
    pool.close();
    let entered = pool.enter();
    block_on(async {
        assert_closed(fs::read("/dev/null").await);
        assert_closed(file.read(&mut [0]).await);
        assert_closed(file.seek(SeekFrom::Start(5)).await);
        assert_closed(file.metadata().await);
        assert_closed(file.set_len(0).await);
        // The bytes of a write are buffered, so the next operation returns the error.
        file.write_all(b"x").await.unwrap();
        assert_closed(file.flush().await);
        let mut names = BTreeSet::new();
        assert_closed(collect(&mut entries, &mut names).await);
        assert_eq!(names.len(), 1_024);
        assert!(
            entries.next_entry().await.unwrap().is_none(),
            "that ends the listing"
        );
    });
    drop(entered);
    let mut all = Vec::new();
    run(file.read_to_end(&mut all)).unwrap();
    assert_eq!(all, b"0123456789");
}

/// Fails if the jobs that a pool has when it is finished are dropped.
#[test]
fn operations_queued_before_the_finish_are_done() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().join("a");
    let mut file = file_of(b"");
    let (pool, gate) = stuck_pool();
    let entered = pool.enter();
    let mut write = pin!(fs::write(&at, "abc"));
    assert!(poll(write.as_mut()).is_pending());
    block_on(file.write_all(b"def")).unwrap();
    let dropped = directory.path().join("b");
    assert!(poll(pin!(fs::write(&dropped, "ghi"))).is_pending());
    pool.finish();
    assert_closed(block_on(fs::read(&at)));
    drop(gate);
    block_on(write).unwrap();
    block_on(file.flush()).unwrap();
    drop(entered);
    pool.join();
    assert_eq!(std::fs::read(&at).unwrap(), b"abc");
    assert_eq!(std::fs::read(&dropped).unwrap(), b"ghi");
    let mut file = block_on(file.into_std());
    io::Seek::rewind(&mut file).unwrap();
    assert_eq!(read_to_end(file), b"def");
}

/// Writes, reads and lists where `current` is entered.
fn use_files(current: CurrentPool) {
    let directory = tempfile::tempdir().unwrap();
    let _entered = current.enter();
    block_on(async {
        let at: &Path = &directory.path().join("a");
        let options = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .clone();
        let mut file = options.open(at).await.unwrap();
        file.write_all(b"hello").await.unwrap();
        file.seek(SeekFrom::Start(1)).await.unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "ello");
        file.sync_all().await.unwrap();
        assert_eq!(fs::metadata(at).await.unwrap().len(), 5);
        let mut entries = fs::read_dir(directory.path()).await.unwrap();
        assert_eq!(entries.next_entry().await.unwrap().unwrap().path(), at);
        assert!(entries.next_entry().await.unwrap().is_none());
    });
}

/// Runs each job before it returns.
struct InPlace;

impl RunBlocking for InPlace {
    fn run_blocking(&self, job: Boxed) {
        job();
    }
}

/// Fails if an operation holds a lock while it queues its job.
#[test]
fn jobs_may_run_in_the_thread_that_queues_them() {
    use_files(CurrentPool::of(InPlace));
}

/// Fails if the operations take another pool than the one that was entered last.
#[test]
fn operations_use_the_pool_that_was_entered_last() {
    let closed = pool();
    closed.close();
    let _outer = closed.enter();
    use_files(CurrentPool::of(pool()));
    assert_closed(block_on(fs::read("/dev/null")));
    let _inner = pool().enter();
    block_on(fs::read("/dev/null")).unwrap();
}

/// Panics at each job.
struct Broken;

impl RunBlocking for Broken {
    fn run_blocking(&self, _: Boxed) {
        panic!("on purpose");
    }
}

/// Fails if a file waits for a job that was dropped by a panic.
#[test]
fn file_is_usable_after_a_panic_of_its_pool() {
    let mut file = file_of(b"0123456789");
    {
        let _entered = CurrentPool::of(Broken).enter();
        let mut panics = |what: &str, f: &mut dyn FnMut(&mut File)| {
            let f = AssertUnwindSafe(|| f(&mut file));
            assert!(catch_unwind(f).is_err(), "{what}");
        };
        panics("metadata", &mut |file| drop(block_on(file.metadata())));
        panics("set_len", &mut |file| drop(block_on(file.set_len(0))));
        panics("seek", &mut |file| {
            drop(block_on(file.seek(SeekFrom::Start(9))))
        });
        panics("read", &mut |file| drop(block_on(file.read(&mut [0]))));
    }
    run(async {
        assert_closed(file.read(&mut [0]).await); // The error of the read that panicked.
        let mut all = Vec::new();
        file.read_to_end(&mut all).await.unwrap();
        assert_eq!(all, b"0123456789");
    });
    file.try_into_std().expect("no job has it");
}

/// Fails if a listing whose pool has panicked ends as if it were complete.
#[test]
fn listing_says_that_its_pool_has_panicked() {
    let directory = tempfile::tempdir().unwrap();
    for number in 0..1_100 {
        std::fs::write(directory.path().join(number.to_string()), "").unwrap();
    }
    let mut entries = run(fs::read_dir(directory.path().to_owned())).unwrap();
    let mut count = 0;
    let _entered = CurrentPool::of(Broken).enter();
    let list = AssertUnwindSafe(|| {
        while block_on(entries.next_entry()).unwrap().is_some() {
            count += 1;
        }
    });
    catch_unwind(list).unwrap_err();
    assert!((1..1_100).contains(&count), "{count} entries");
    block_on(entries.next_entry()).unwrap_err();
    assert!(block_on(entries.next_entry()).unwrap().is_none());
}

/// Fails if a write of nothing needs a pool.
#[test]
fn empty_write_needs_no_pool() {
    let mut file = file_of(b"");
    assert_eq!(block_on(file.write(b"")).unwrap(), 0);
}

/// Fails if an operation whose job is ready at once is not charged: a loop of such operations would
/// never yield.
#[cfg(feature = "coop-budget")]
#[test]
fn operations_are_charged_to_the_budget() {
    use coop_budget::{Budget, Scope};
    use std::{future::Future, pin::pin, task::Context};

    fn ready<T>(operation: impl Future<Output = T>) -> bool {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        pin!(operation).poll(&mut cx).is_ready()
    }

    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a"), "").unwrap();
    let mut file = file_of(b"a");
    let _entered = CurrentPool::of(InPlace).enter();
    let charged = |operation: &mut dyn FnMut() -> bool| {
        Scope::new(Budget::new(3)).run(|| (0..10).take_while(|_| operation()).count())
    };
    assert_eq!(charged(&mut || ready(fs::metadata("/"))), 3);
    assert_eq!(charged(&mut || ready(file.metadata())), 3);
    assert_eq!(charged(&mut || ready(file.set_len(1))), 3);
    assert_eq!(charged(&mut || ready(fs::read_dir("/"))), 3);
    assert_eq!(charged(&mut || ready(file.seek(SeekFrom::Start(0)))), 3);
}
