#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
use blocking_threads::{CurrentPool, Dropped, Pool, Running};
use std::{
    fs::{self, Metadata, Permissions},
    future::{Future, poll_fn},
    io,
    path::{Path, PathBuf},
    pin::Pin,
    task::{Context, Poll, ready},
};

mod budget;
mod cursor;
mod dir;
mod file;
mod open_options;
#[cfg(target_os = "linux")]
mod part;
#[cfg_attr(not(target_os = "linux"), path = "read_ahead/none.rs")]
mod read_ahead;
pub mod stdio;
mod traits;
mod waiters;

pub use dir::{DirBuilder, DirEntry, ReadDir, read_dir};
pub use file::File;
pub use open_options::OpenOptions;
#[cfg(target_os = "linux")]
pub use part::Part;
pub use std::fs::FileTimes;

/// Returns the pool of this thread.
fn pool() -> io::Result<CurrentPool> {
    Pool::current().map_err(io::Error::other)
}

/// Polls for the result of a job, which is charged as one operation.
fn poll_job<T>(job: &mut Running<T>, cx: &mut Context<'_>) -> Poll<Result<T, Dropped>> {
    let progress = ready!(budget::poll_proceed(cx));
    let Poll::Ready(result) = Pin::new(job).poll(cx) else {
        budget::note_wait("a call of the system on a blocking thread");
        return Poll::Pending;
    };
    progress.made_progress();
    Poll::Ready(result)
}

/// Runs `f` in a thread of this thread's pool.
async fn on_blocking_thread<T: Send + 'static>(
    f: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let mut job = pool()?.run(f);
    let result = poll_fn(|cx| poll_job(&mut job, cx)).await;
    result.unwrap_or_else(|error| Err(io::Error::other(error)))
}

/// Returns the error of a job that was dropped and did not run.
fn dropped() -> io::Error {
    io::Error::other("the pool for calls that block is closed, or can start no thread")
}

/// Reads a whole file.
///
/// ```
/// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
/// #     blocking_threads::Pool::new(Default::default());
/// # let _entered = pool.enter();
/// # futures_lite::future::block_on(async {
/// assert_eq!(blocking_fs::read("/dev/null").await?, b"");
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// As [`std::fs::read`].
pub async fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let path = path.as_ref().to_owned();
    on_blocking_thread(|| fs::read(path)).await
}

/// Reads a whole file, which must be UTF-8.
///
/// ```
/// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
/// #     blocking_threads::Pool::new(Default::default());
/// # let _entered = pool.enter();
/// # futures_lite::future::block_on(async {
/// assert_eq!(blocking_fs::read_to_string("/dev/null").await?, "");
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// As [`std::fs::read_to_string`].
pub async fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    let path = path.as_ref().to_owned();
    on_blocking_thread(|| fs::read_to_string(path)).await
}

/// Makes `contents` the whole contents of a file. The function copies `contents` once.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let at = directory.path().join("a");
/// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
/// #     blocking_threads::Pool::new(Default::default());
/// # let _entered = pool.enter();
/// # futures_lite::future::block_on(async {
/// blocking_fs::write(&at, "abc").await?;
/// assert_eq!(blocking_fs::read(&at).await?, b"abc");
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// As [`std::fs::write`].
pub async fn write(path: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> io::Result<()> {
    let (path, contents) = (path.as_ref().to_owned(), contents.as_ref().to_owned());
    on_blocking_thread(|| fs::write(path, contents)).await
}

/// Returns the absolute path without links and dots.
///
/// ```
/// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
/// #     blocking_threads::Pool::new(Default::default());
/// # let _entered = pool.enter();
/// # futures_lite::future::block_on(async {
/// assert!(blocking_fs::canonicalize(".").await?.is_absolute());
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// As [`std::fs::canonicalize`].
pub async fn canonicalize(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    let path = path.as_ref().to_owned();
    on_blocking_thread(|| fs::canonicalize(path)).await
}

/// Makes a directory.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path();
/// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
/// #     blocking_threads::Pool::new(Default::default());
/// # let _entered = pool.enter();
/// # futures_lite::future::block_on(async {
/// use blocking_fs as fs;
///
/// fs::create_dir(directory.join("a")).await?;
/// assert!(fs::create_dir(directory.join("b/c")).await.is_err(), "there is no `b`");
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// As [`std::fs::create_dir`].
pub async fn create_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    on_blocking_thread(|| fs::create_dir(path)).await
}

/// Makes a directory, and its parents where they are missing.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path();
/// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
/// #     blocking_threads::Pool::new(Default::default());
/// # let _entered = pool.enter();
/// # futures_lite::future::block_on(async {
/// blocking_fs::create_dir_all(directory.join("a/b/c")).await?;
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// As [`std::fs::create_dir_all`].
pub async fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    on_blocking_thread(|| fs::create_dir_all(path)).await
}

/// Returns the metadata of a file or directory. Follows links.
///
/// ```
/// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
/// #     blocking_threads::Pool::new(Default::default());
/// # let _entered = pool.enter();
/// # futures_lite::future::block_on(async {
/// assert!(blocking_fs::metadata("/").await?.is_dir());
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// As [`std::fs::metadata`].
pub async fn metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    let path = path.as_ref().to_owned();
    on_blocking_thread(|| fs::metadata(path)).await
}

/// Returns the path to which a link leads.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path();
/// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
/// #     blocking_threads::Pool::new(Default::default());
/// # let _entered = pool.enter();
/// # futures_lite::future::block_on(async {
/// use blocking_fs as fs;
///
/// fs::symlink("a", directory.join("link")).await?;
/// assert_eq!(fs::read_link(directory.join("link")).await?.to_str(), Some("a"));
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// As [`std::fs::read_link`].
pub async fn read_link(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    let path = path.as_ref().to_owned();
    on_blocking_thread(|| fs::read_link(path)).await
}

/// Removes an empty directory.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path();
/// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
/// #     blocking_threads::Pool::new(Default::default());
/// # let _entered = pool.enter();
/// # futures_lite::future::block_on(async {
/// use blocking_fs as fs;
///
/// fs::create_dir(directory.join("a")).await?;
/// fs::remove_dir(directory.join("a")).await?;
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// As [`std::fs::remove_dir`].
pub async fn remove_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    on_blocking_thread(|| fs::remove_dir(path)).await
}

/// Removes a directory with all that is in it.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path();
/// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
/// #     blocking_threads::Pool::new(Default::default());
/// # let _entered = pool.enter();
/// # futures_lite::future::block_on(async {
/// use blocking_fs as fs;
///
/// fs::create_dir_all(directory.join("a/b")).await?;
/// fs::remove_dir_all(directory.join("a")).await?;
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// As [`std::fs::remove_dir_all`].
pub async fn remove_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    on_blocking_thread(|| fs::remove_dir_all(path)).await
}

/// Removes a file.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path();
/// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
/// #     blocking_threads::Pool::new(Default::default());
/// # let _entered = pool.enter();
/// # futures_lite::future::block_on(async {
/// use blocking_fs as fs;
///
/// fs::write(directory.join("a"), "").await?;
/// fs::remove_file(directory.join("a")).await?;
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// As [`std::fs::remove_file`].
pub async fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    on_blocking_thread(|| fs::remove_file(path)).await
}

/// Returns the metadata of a file, a directory or a link. Follows no link.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path();
/// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
/// #     blocking_threads::Pool::new(Default::default());
/// # let _entered = pool.enter();
/// # futures_lite::future::block_on(async {
/// use blocking_fs as fs;
///
/// fs::symlink("nowhere", directory.join("link")).await?;
/// assert!(fs::symlink_metadata(directory.join("link")).await?.is_symlink());
/// assert!(fs::metadata(directory.join("link")).await.is_err());
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// As [`std::fs::symlink_metadata`].
pub async fn symlink_metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    let path = path.as_ref().to_owned();
    on_blocking_thread(|| fs::symlink_metadata(path)).await
}

/// Copies the contents and the permissions of a file. Returns the number of bytes.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path();
/// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
/// #     blocking_threads::Pool::new(Default::default());
/// # let _entered = pool.enter();
/// # futures_lite::future::block_on(async {
/// use blocking_fs as fs;
///
/// let (from, to) = (directory.join("a"), directory.join("b"));
/// fs::write(&from, "abc").await?;
/// assert_eq!(fs::copy(&from, &to).await?, 3);
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// As [`std::fs::copy`].
pub async fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<u64> {
    let (from, to) = (from.as_ref().to_owned(), to.as_ref().to_owned());
    on_blocking_thread(|| fs::copy(from, to)).await
}

/// Gives a file another name.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path();
/// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
/// #     blocking_threads::Pool::new(Default::default());
/// # let _entered = pool.enter();
/// # futures_lite::future::block_on(async {
/// use blocking_fs as fs;
///
/// let (one, other) = (directory.join("a"), directory.join("b"));
/// fs::write(&one, "abc").await?;
/// fs::hard_link(&one, &other).await?;
/// assert_eq!(fs::read(&other).await?, b"abc");
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// As [`std::fs::hard_link`].
pub async fn hard_link(original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    let (original, link) = (original.as_ref().to_owned(), link.as_ref().to_owned());
    on_blocking_thread(|| fs::hard_link(original, link)).await
}

/// Renames a file or directory. A file that has the new name is replaced.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path();
/// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
/// #     blocking_threads::Pool::new(Default::default());
/// # let _entered = pool.enter();
/// # futures_lite::future::block_on(async {
/// use blocking_fs as fs;
///
/// let (from, to) = (directory.join("a"), directory.join("b"));
/// fs::write(&from, "abc").await?;
/// fs::rename(&from, &to).await?;
/// assert!(!fs::try_exists(&from).await?);
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// As [`std::fs::rename`].
pub async fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    let (from, to) = (from.as_ref().to_owned(), to.as_ref().to_owned());
    on_blocking_thread(|| fs::rename(from, to)).await
}

/// Sets the permissions of a file or directory.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path();
/// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
/// #     blocking_threads::Pool::new(Default::default());
/// # let _entered = pool.enter();
/// # futures_lite::future::block_on(async {
/// use blocking_fs as fs;
///
/// let at = directory.join("a");
/// fs::write(&at, "abc").await?;
/// let mut permissions = fs::metadata(&at).await?.permissions();
/// permissions.set_readonly(true);
/// fs::set_permissions(&at, permissions).await?;
/// assert!(fs::metadata(&at).await?.permissions().readonly());
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// As [`std::fs::set_permissions`].
pub async fn set_permissions(path: impl AsRef<Path>, permissions: Permissions) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    on_blocking_thread(|| fs::set_permissions(path, permissions)).await
}

/// Makes a link that leads to `original`. On Unix.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path();
/// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
/// #     blocking_threads::Pool::new(Default::default());
/// # let _entered = pool.enter();
/// # futures_lite::future::block_on(async {
/// blocking_fs::symlink("nowhere", directory.join("link")).await?;
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// As [`std::os::unix::fs::symlink`].
#[cfg(unix)]
pub async fn symlink(original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    let (original, link) = (original.as_ref().to_owned(), link.as_ref().to_owned());
    on_blocking_thread(|| std::os::unix::fs::symlink(original, link)).await
}

/// Makes a link that leads to `original`, a directory. On Windows.
///
/// ```no_run
/// # #[cfg(windows)]
/// # async fn link() -> std::io::Result<()> {
/// blocking_fs::symlink_dir("original", "link").await
/// # }
/// ```
///
/// # Errors
/// As [`std::os::windows::fs::symlink_dir`].
#[cfg(windows)]
pub async fn symlink_dir(original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    let (original, link) = (original.as_ref().to_owned(), link.as_ref().to_owned());
    on_blocking_thread(|| std::os::windows::fs::symlink_dir(original, link)).await
}

/// Makes a link that leads to `original`, a file. On Windows.
///
/// ```no_run
/// # #[cfg(windows)]
/// # async fn link() -> std::io::Result<()> {
/// blocking_fs::symlink_file("original", "link").await
/// # }
/// ```
///
/// # Errors
/// As [`std::os::windows::fs::symlink_file`].
#[cfg(windows)]
pub async fn symlink_file(original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    let (original, link) = (original.as_ref().to_owned(), link.as_ref().to_owned());
    on_blocking_thread(|| std::os::windows::fs::symlink_file(original, link)).await
}

/// Returns whether a path leads to something. Follows links.
///
/// ```
/// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
/// #     blocking_threads::Pool::new(Default::default());
/// # let _entered = pool.enter();
/// # futures_lite::future::block_on(async {
/// assert!(!blocking_fs::try_exists("/nowhere").await?);
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// As [`std::path::Path::try_exists`].
pub async fn try_exists(path: impl AsRef<Path>) -> io::Result<bool> {
    let path = path.as_ref().to_owned();
    on_blocking_thread(move || path.try_exists()).await
}
