//! Files in the tasks of `async-executor`.
//!
//! The threads of the executor enter a pool, so that the files of their tasks find it. An executor
//! that has blocking threads of its own needs no such pool: the second part shows it.
//!
//! `cargo run -p blocking-fs --example async_executor_files`
use async_executor::Executor;
use blocking_fs as fs;
use blocking_threads::{Boxed, CurrentPool, Pool, RunBlocking, Settings};
use futures_lite::{AsyncWriteExt, future::block_on};
use std::{
    io,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
};

const WORKERS: usize = 2;
const FILES: usize = 100;

/// Appends lines to a file, each when the one before is in the file, and reads the file.
async fn write_lines(at: &Path, count: usize) -> io::Result<()> {
    let mut file = fs::File::create(at).await?;
    for n in 0..count {
        file.write_all(format!("{n}\n").as_bytes()).await?;
        file.flush().await?;
    }
    let text = fs::read_to_string(at).await?;
    assert!(text.lines().map(str::parse).eq((0..count).map(Ok)));
    Ok(())
}

/// Returns the number of files in a directory, and the number of their bytes.
async fn size(directory: &Path) -> io::Result<(usize, u64)> {
    let (mut files, mut bytes) = (0, 0);
    let mut entries = fs::read_dir(directory).await?;
    while let Some(entry) = entries.next_entry().await? {
        files += 1;
        bytes += entry.metadata().await?.len();
    }
    Ok((files, bytes))
}

/// Runs the tasks of one worker. While these wait, the worker runs those of the other workers too.
fn work(executor: &Executor<'_>, directory: &Path, worker: usize) -> io::Result<()> {
    let write = |n: usize| {
        let at = directory.join(format!("{worker}-{n}"));
        async move { write_lines(&at, n % 10).await }
    };
    let tasks: Vec<_> = (0..FILES).map(|n| executor.spawn(write(n))).collect();
    block_on(executor.run(async {
        for task in tasks {
            task.await?;
        }
        Ok(())
    }))
}

fn in_a_pool(directory: &Path) -> io::Result<()> {
    let pool: Pool<Boxed> = Pool::new(Settings::named("files"));
    let executor = Executor::new();
    thread::scope(|scope| {
        let run = |worker| {
            let (pool, executor) = (&pool, &executor);
            scope.spawn(move || {
                let _entered = pool.enter();
                work(executor, directory, worker)
            })
        };
        let workers: Vec<_> = (0..WORKERS).map(run).collect();
        let mut ends = workers.into_iter().map(|worker| worker.join());
        ends.try_for_each(|end| end.expect("a worker does not panic"))
    })?;
    let entered = pool.enter();
    let (files, bytes) = block_on(size(directory))?;
    drop(entered);
    assert_eq!(files, WORKERS * FILES);
    println!("wrote {files} files with {bytes} bytes");
    println!("the pool has {} threads", pool.counts().threads);
    pool.finish();
    pool.join();
    Ok(())
}

/// Stands for an executor's own `spawn_blocking`.
struct SpawnBlocking;

static SPAWNED: AtomicUsize = AtomicUsize::new(0);

impl RunBlocking for SpawnBlocking {
    fn run_blocking(&self, job: Boxed) {
        SPAWNED.fetch_add(1, Relaxed);
        thread::spawn(job);
    }
}

fn on_other_threads(directory: &Path) -> io::Result<()> {
    let _entered = CurrentPool::of(SpawnBlocking).enter();
    let executor = Executor::new();
    let task = executor.spawn(async { fs::remove_dir_all(directory).await });
    block_on(executor.run(task))?;
    assert!(!directory.exists());
    println!("removed them in {} job", SPAWNED.load(Relaxed));
    assert_eq!(SPAWNED.load(Relaxed), 1);
    Ok(())
}

fn main() -> io::Result<()> {
    let directory = tempfile::tempdir()?;
    let files = directory.path().join("files");
    std::fs::create_dir(&files)?;
    in_a_pool(&files)?;
    on_other_threads(&files)
}
