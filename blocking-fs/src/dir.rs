use crate::{on_blocking_thread, poll_job, pool};
use blocking_threads::Running;
use std::{
    collections::VecDeque,
    ffi::OsString,
    fmt,
    fs::{self, FileType, Metadata},
    future::poll_fn,
    io, mem,
    path::{Path, PathBuf},
    sync::Arc,
    task::{Context, Poll},
};

/// The largest number of entries that one job collects. With names of usual length, two system
/// calls read about that many entries. std keeps about 100 bytes for each entry.
const BATCH: usize = 1_024;

/// Lists a directory.
///
/// ```
/// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
/// #     blocking_threads::Pool::new(Default::default());
/// # let _entered = pool.enter();
/// # futures_lite::future::block_on(async {
/// use blocking_fs::{self as fs, DirEntry, ReadDir};
///
/// let mut entries: ReadDir = fs::read_dir("/").await?;
/// while let Some(entry) = entries.next_entry().await? {
///     let entry: DirEntry = entry;
///     println!("{}", entry.path().display());
/// }
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// As [`std::fs::read_dir`].
pub async fn read_dir(path: impl AsRef<Path>) -> io::Result<ReadDir> {
    let path = path.as_ref().to_owned();
    let batch = on_blocking_thread(|| Ok(Batch::of(fs::read_dir(path)?))).await?;
    Ok(ReadDir(State::Here(batch)))
}

/// The entries of a directory, without `.` and `..`, in no particular order.
///
/// ```
/// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
/// #     blocking_threads::Pool::new(Default::default());
/// # let _entered = pool.enter();
/// # futures_lite::future::block_on(async {
/// let mut entries = blocking_fs::read_dir("/").await?;
/// let first = entries.next_entry().await?;
/// let second = std::future::poll_fn(|cx| entries.poll_next_entry(cx)).await?;
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Batches
/// [`read_dir`] reads up to 1,024 entries, and so does each further job on a blocking thread. Each
/// job also finds the type of each entry. If the file system does not give types with names, this
/// costs one more system call for each entry.
#[derive(Debug)]
pub struct ReadDir(State);

enum State {
    Here(Batch),
    Fetching(Running<Batch>),
    /// A job or its pool has panicked. The next poll says so.
    Lost,
}

/// Entries, and the rest of the directory if there may be more.
#[derive(Default)]
struct Batch {
    entries: VecDeque<io::Result<DirEntry>>,
    rest: Option<fs::ReadDir>,
}

impl Batch {
    /// Collects entries, up to the first error.
    fn of(mut rest: fs::ReadDir) -> Self {
        let mut entries = VecDeque::new();
        while entries.len() < BATCH {
            let Some(entry) = rest.next() else {
                return Self {
                    entries,
                    rest: None,
                };
            };
            let is_error = entry.is_err();
            entries.push_back(entry.map(DirEntry::new));
            if is_error {
                break;
            }
        }
        let rest = Some(rest);
        Self { entries, rest }
    }
}

impl ReadDir {
    /// Returns the next entry, or `None` at the end. A dropped future loses no entry.
    ///
    /// # Errors
    /// If the directory cannot be read further. If this thread has entered no pool: a later call
    /// then goes on with the listing. If the pool is closed: this ends the listing.
    pub async fn next_entry(&mut self) -> io::Result<Option<DirEntry>> {
        poll_fn(|cx| self.poll_next_entry(cx)).await
    }

    /// Polls for the next entry. Only the last task that polled is woken.
    ///
    /// # Errors
    /// As [`next_entry`](Self::next_entry).
    pub fn poll_next_entry(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<DirEntry>>> {
        loop {
            match mem::replace(&mut self.0, State::Lost) {
                State::Here(mut batch) => {
                    if let Some(entry) = batch.entries.pop_front() {
                        self.0 = State::Here(batch);
                        return Poll::Ready(entry.map(Some));
                    }
                    let pool = pool();
                    match (batch.rest, pool) {
                        (None, _) => {
                            self.0 = State::Here(Batch::default());
                            return Poll::Ready(Ok(None));
                        }
                        (Some(rest), Ok(pool)) => {
                            self.0 = State::Fetching(pool.run(|| Batch::of(rest)));
                        }
                        (rest, Err(error)) => {
                            self.0 = State::Here(Batch { rest, ..batch });
                            return Poll::Ready(Err(error));
                        }
                    }
                }
                State::Fetching(mut job) => match poll_job(&mut job, cx) {
                    Poll::Ready(Ok(batch)) => self.0 = State::Here(batch),
                    Poll::Ready(Err(error)) => {
                        self.0 = State::Here(Batch::default());
                        return Poll::Ready(Err(io::Error::other(error)));
                    }
                    Poll::Pending => {
                        self.0 = State::Fetching(job);
                        return Poll::Pending;
                    }
                },
                State::Lost => {
                    self.0 = State::Here(Batch::default());
                    let why = "the rest of the directory was lost: the pool has panicked";
                    return Poll::Ready(Err(io::Error::other(why)));
                }
            }
        }
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here(batch) => f.debug_tuple("Here").field(&batch.entries.len()).finish(),
            Self::Fetching(_) => f.write_str("Fetching"),
            Self::Lost => f.write_str("Lost"),
        }
    }
}

/// An entry of a directory.
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
/// fs::write(directory.join("a"), "abc").await?;
/// let entry = fs::read_dir(directory).await?.next_entry().await?.unwrap();
/// assert_eq!(entry.file_name(), "a");
/// assert_eq!(entry.path(), directory.join("a"));
/// assert_eq!(entry.metadata().await?.len(), 3);
/// assert!(entry.file_type().await?.is_file());
/// # #[cfg(unix)]
/// println!("inode {}", entry.ino());
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct DirEntry {
    entry: Arc<fs::DirEntry>,
    file_type: Option<FileType>,
}

impl DirEntry {
    /// Finds the type on the thread that reads the directory: std makes another system call for the
    /// type if the directory does not give it.
    fn new(entry: fs::DirEntry) -> Self {
        let file_type = entry.file_type().ok();
        let entry = Arc::new(entry);
        Self { entry, file_type }
    }

    /// Returns the path of the directory, with the entry's name appended.
    pub fn path(&self) -> PathBuf {
        self.entry.path()
    }

    /// Returns the name.
    pub fn file_name(&self) -> OsString {
        self.entry.file_name()
    }

    /// Returns the metadata of the entry. Does not follow a symbolic link.
    ///
    /// # Errors
    /// As [`std::fs::DirEntry::metadata`].
    pub async fn metadata(&self) -> io::Result<Metadata> {
        let entry = self.entry.clone();
        on_blocking_thread(move || entry.metadata()).await
    }

    /// Returns the type, as a rule without a job on another thread. Does not follow a symbolic
    /// link.
    ///
    /// # Errors
    /// As [`std::fs::DirEntry::file_type`].
    pub async fn file_type(&self) -> io::Result<FileType> {
        if let Some(file_type) = self.file_type {
            return Ok(file_type);
        }
        let entry = self.entry.clone();
        on_blocking_thread(move || entry.file_type()).await
    }

    /// Returns the number of the inode. Available only on Unix.
    #[cfg(unix)]
    pub fn ino(&self) -> u64 {
        std::os::unix::fs::DirEntryExt::ino(&*self.entry)
    }
}

impl fmt::Debug for DirEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entry.fmt(f)
    }
}

/// Makes directories with options, as [`std::fs::DirBuilder`] does.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let at = directory.path().join("a/b");
/// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
/// #     blocking_threads::Pool::new(Default::default());
/// # let _entered = pool.enter();
/// # futures_lite::future::block_on(async {
/// use blocking_fs::DirBuilder;
///
/// DirBuilder::new().recursive(true).create(&at).await?;
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct DirBuilder {
    recursive: bool,
    #[cfg(unix)]
    mode: Option<u32>,
}

impl DirBuilder {
    /// Returns the default: the parent must exist.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether missing parents are made too. With `true`, a directory that exists already is
    /// no error.
    pub fn recursive(&mut self, on: bool) -> &mut Self {
        self.recursive = on;
        self
    }

    /// Sets the permissions of the directories that the builder makes. Available only on Unix.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let at = directory.path().join("a");
    /// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
    /// #     blocking_threads::Pool::new(Default::default());
    /// # let _entered = pool.enter();
    /// # futures_lite::future::block_on(async {
    /// blocking_fs::DirBuilder::new().mode(0o700).create(&at).await?;
    /// # std::io::Result::Ok(())
    /// # })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(unix)]
    pub fn mode(&mut self, mode: u32) -> &mut Self {
        self.mode = Some(mode);
        self
    }

    /// Makes the directory.
    ///
    /// # Errors
    /// As [`std::fs::DirBuilder::create`].
    pub async fn create(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(self.recursive);
        #[cfg(unix)]
        if let Some(mode) = self.mode {
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, mode);
        }
        let path = path.as_ref().to_owned();
        on_blocking_thread(move || builder.create(path)).await
    }
}
