use super::{
    OpenOptions,
    cursor::Cursor,
    on_blocking_thread,
    traits::{impl_read, impl_seek, impl_write},
};
use std::{
    fmt,
    fs::{self, FileTimes, Metadata, Permissions},
    io::{self, IoSlice},
    path::Path,
    task::{Context, Poll},
    time::SystemTime,
};

/// The most bytes that one system call reads or writes, unless a program sets another number.
const BUFFER: usize = 2 * 1024 * 1024;

/// An open file.
///
/// `File` has the traits of `futures_io` and of `task_io` for reading, writing and seeking. With
/// the feature `tokio` it also has tokio's.
///
/// ```
/// use futures_lite::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
/// use blocking_fs::File;
///
/// # let directory = tempfile::tempdir()?;
/// # let at = directory.path().join("a");
/// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
/// #     blocking_threads::Pool::new(Default::default());
/// # let _entered = pool.enter();
/// # futures_lite::future::block_on(async {
/// let mut file = File::create(&at).await?;
/// file.write_all(b"hello").await?;
/// file.flush().await?; // Now the text is in the file, or `flush` has failed.
/// file.sync_all().await?;
///
/// let mut file = File::options().read(true).write(true).open(&at).await?;
/// file.seek(std::io::SeekFrom::Start(1)).await?;
/// let mut text = String::new();
/// file.read_to_string(&mut text).await?;
/// assert_eq!(text, "ello");
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Reads
/// A read makes one system call for as much as its buffer takes, up to
/// [`max_buf_size`](Self::max_buf_size). Bytes that arrive after the read's future was dropped are
/// kept for the next read. A seek, a write, [`set_len`](Self::set_len),
/// [`try_clone`](Self::try_clone) and [`into_std`](Self::into_std) first move the file's position
/// back, if bytes were kept. So these operations act at the place up to which the program has read.
///
/// A small read costs as much as a large one: wrap the file in a `BufReader`.
///
/// # Reads ahead
/// With [`OpenOptions::read_ahead`], and on Linux, reads that follow each other are read ahead:
/// from the second one on, one job of the pool reads pieces of 64 KiB or more while the task takes
/// the bytes. It is ahead by two pieces, and by up to 1 MiB if reads wait for it, but by no more
/// than `max_buf_size`. A read then returns what is left of a piece, which may be less than its
/// buffer takes.
///
/// - It is for files that do not change while they are read. A read looks at the file's length and
///   its time of change (`ctime`), and returns no byte that was read before a change that these
///   show. They do not show a store through a writable mapping, nor the end of a write that began
///   more than 50 ms before the first read.
/// - It lasts until the program has used the file's descriptor, by `as_fd`, `as_raw_fd`,
///   `try_clone` or `into_std`. So nobody sees a position of the file other than the place up to
///   which the program has read.
/// - A file that is read ahead keeps 128 KiB to 1 MiB, and a seek throws that away. So it is not
///   for many small reads at several places.
/// - Only regular files of ext2 to ext4, XFS, Btrfs, F2FS and tmpfs are read ahead: there a look at
///   a file waits for nothing. Files that were changed within the last 50 ms are not read ahead,
///   nor do reads with room for 256 KiB or more.
///
/// # Writes
/// **A write returns when its bytes are buffered.** The buffered bytes are on the way to the file,
/// and get there even if the `File` is dropped. Writes that come while a system call runs are
/// gathered for the next system call, up to `max_buf_size` bytes. So a file has at most two buffers
/// of that size for its writes, and small writes need no `BufWriter`. `flush` and `close` wait
/// until the system has taken all bytes. [`sync_all`](Self::sync_all) waits until the disk has
/// them.
///
/// **If a buffered write fails**, the bytes that wait behind it are dropped. The error is returned
/// once, by the first of these operations that follows: a write, `flush`, `close`,
/// [`sync_all`](Self::sync_all), [`sync_data`](Self::sync_data), [`set_len`](Self::set_len),
/// [`try_clone`](Self::try_clone). Reads and seeks do not return it. A dropped `File` drops its
/// error: end with a `flush`.
///
/// # Cancellation
/// If the future of a seek is dropped, and the next operation is a seek with the same argument, the
/// seek takes place once. Any other operation acts as if the first seek had ended before it.
///
/// A read of a pipe or a terminal may wait for ever, even after its future was dropped. The next
/// operation that needs the file's position waits for that read. Such operations are a read, a
/// write, a seek, [`set_len`](Self::set_len), [`try_clone`](Self::try_clone),
/// [`into_std`](Self::into_std). The other operations do not: they wait for earlier writes alone.
/// On Windows they wait for that read, too.
pub struct File {
    pub(super) cursor: Cursor,
    limit: usize,
}

impl File {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// As [`std::fs::File::open`].
    pub async fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref().to_owned();
        on_blocking_thread(|| fs::File::open(path))
            .await
            .map(Self::from_std)
    }

    /// Opens a file for writing. Empties the file if it exists, and makes it otherwise.
    ///
    /// # Errors
    /// As [`std::fs::File::create`].
    pub async fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref().to_owned();
        on_blocking_thread(|| fs::File::create(path))
            .await
            .map(Self::from_std)
    }

    /// Makes a file, and opens it for reading and writing.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let at = directory.path().join("a");
    /// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
    /// #     blocking_threads::Pool::new(Default::default());
    /// # let _entered = pool.enter();
    /// # futures_lite::future::block_on(async {
    /// use blocking_fs::File;
    ///
    /// drop(File::create_new(&at).await?);
    /// assert!(File::create_new(&at).await.is_err());
    /// # std::io::Result::Ok(())
    /// # })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`std::fs::File::create_new`].
    pub async fn create_new(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref().to_owned();
        on_blocking_thread(|| fs::File::create_new(path))
            .await
            .map(Self::from_std)
    }

    /// Returns options for opening a file.
    pub fn options() -> OpenOptions {
        OpenOptions::new()
    }

    /// Takes over a file of std.
    ///
    /// ```
    /// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
    /// #     blocking_threads::Pool::new(Default::default());
    /// # let _entered = pool.enter();
    /// # futures_lite::future::block_on(async {
    /// use blocking_fs::File;
    ///
    /// let file = File::from_std(std::fs::File::open("/dev/null")?);
    /// let file = file.try_into_std().expect("it does nothing");
    /// let file: std::fs::File = File::from(file).into_std().await;
    /// # std::io::Result::Ok(())
    /// # })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn from_std(file: fs::File) -> Self {
        Self::new(file, false)
    }

    /// Takes over a file that this crate has just opened. So nobody else has its position.
    pub(super) fn opened(file: fs::File, reads_ahead: bool) -> Self {
        Self::new(file, reads_ahead)
    }

    fn new(file: fs::File, reads_ahead: bool) -> Self {
        Self {
            cursor: Cursor::new(file, reads_ahead),
            limit: BUFFER,
        }
    }

    /// Writes the contents and the metadata to the disk, after all earlier writes.
    ///
    /// # Errors
    /// The error of a buffered write, or as [`std::fs::File::sync_all`].
    pub async fn sync_all(&self) -> io::Result<()> {
        self.cursor.run_beside(true, fs::File::sync_all).await
    }

    /// Writes the contents to the disk, and the metadata that is needed to read them.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let at = directory.path().join("a");
    /// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
    /// #     blocking_threads::Pool::new(Default::default());
    /// # let _entered = pool.enter();
    /// # futures_lite::future::block_on(async {
    /// use blocking_fs::File;
    ///
    /// let file = File::create(&at).await?;
    /// file.set_len(100).await?;
    /// file.sync_data().await?;
    /// assert_eq!(file.metadata().await?.len(), 100);
    /// # std::io::Result::Ok(())
    /// # })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error of a buffered write, or as [`std::fs::File::sync_data`].
    pub async fn sync_data(&self) -> io::Result<()> {
        self.cursor.run_beside(true, fs::File::sync_data).await
    }

    /// Cuts the file off at `size` bytes, or adds zeros up to that length.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let at = directory.path().join("a");
    /// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
    /// #     blocking_threads::Pool::new(Default::default());
    /// # let _entered = pool.enter();
    /// # futures_lite::future::block_on(async {
    /// let file = blocking_fs::File::create(&at).await?;
    /// file.set_len(100).await?;
    /// # std::io::Result::Ok(())
    /// # })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error of a buffered write, or as [`std::fs::File::set_len`].
    pub async fn set_len(&self, size: u64) -> io::Result<()> {
        self.cursor.set_len(size).await
    }

    /// Returns the file's metadata, after all earlier writes.
    ///
    /// ```
    /// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
    /// #     blocking_threads::Pool::new(Default::default());
    /// # let _entered = pool.enter();
    /// # futures_lite::future::block_on(async {
    /// let file = blocking_fs::File::open("/dev/null").await?;
    /// assert!(!file.metadata().await?.is_dir());
    /// # std::io::Result::Ok(())
    /// # })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`std::fs::File::metadata`].
    pub async fn metadata(&self) -> io::Result<Metadata> {
        self.cursor.run_beside(false, fs::File::metadata).await
    }

    /// Returns another descriptor of the file. Both descriptors share one position.
    ///
    /// ```
    /// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
    /// #     blocking_threads::Pool::new(Default::default());
    /// # let _entered = pool.enter();
    /// # futures_lite::future::block_on(async {
    /// let file = blocking_fs::File::open("/dev/null").await?;
    /// let same = file.try_clone().await?;
    /// # std::io::Result::Ok(())
    /// # })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error of a buffered write, or as [`std::fs::File::try_clone`].
    pub async fn try_clone(&self) -> io::Result<Self> {
        let file = self.cursor.try_clone().await?;
        Ok(Self {
            limit: self.limit,
            ..Self::from_std(file)
        })
    }

    /// Returns the file of std, once all written bytes are in it.
    ///
    /// The error of a buffered write is lost, unless you call `flush` before.
    ///
    /// ```
    /// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
    /// #     blocking_threads::Pool::new(Default::default());
    /// # let _entered = pool.enter();
    /// # futures_lite::future::block_on(async {
    /// let file = blocking_fs::File::open("Cargo.toml").await?.into_std().await;
    /// assert!(file.metadata()?.is_file());
    /// # std::io::Result::Ok(())
    /// # })?;
    /// # std::io::Result::Ok(())
    /// ```
    pub async fn into_std(self) -> fs::File {
        let mut this = self;
        loop {
            this.cursor.idle().await;
            match this.try_into_std() {
                Ok(file) => return file,
                Err(file) => this = file,
            }
        }
    }

    /// Returns the file of std, if no operation is under way.
    ///
    /// The error of a buffered write is lost, unless you call `flush` before.
    ///
    /// # Errors
    /// Returns the file itself, if an operation is under way, or a job that reads ahead.
    ///
    /// ```
    /// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
    /// #     blocking_threads::Pool::new(Default::default());
    /// # let _entered = pool.enter();
    /// # futures_lite::future::block_on(async {
    /// let file = blocking_fs::File::open("Cargo.toml").await?;
    /// assert!(file.try_into_std().is_ok()); // Nothing was read or written.
    /// # std::io::Result::Ok(())
    /// # })?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn try_into_std(self) -> Result<fs::File, Self> {
        let Self { cursor, limit } = self;
        cursor.into_file().map_err(|cursor| Self { cursor, limit })
    }

    /// Sets the file's permissions.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let at = directory.path().join("a");
    /// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
    /// #     blocking_threads::Pool::new(Default::default());
    /// # let _entered = pool.enter();
    /// # futures_lite::future::block_on(async {
    /// let file = blocking_fs::File::create(&at).await?;
    /// let mut permissions = file.metadata().await?.permissions();
    /// permissions.set_readonly(true);
    /// file.set_permissions(permissions).await?;
    /// # std::io::Result::Ok(())
    /// # })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`std::fs::File::set_permissions`].
    pub async fn set_permissions(&self, permissions: Permissions) -> io::Result<()> {
        let set = move |file: &fs::File| file.set_permissions(permissions);
        self.cursor.run_beside(false, set).await
    }

    /// Sets the times of the last read and the last write.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let at = directory.path().join("a");
    /// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
    /// #     blocking_threads::Pool::new(Default::default());
    /// # let _entered = pool.enter();
    /// # futures_lite::future::block_on(async {
    /// use blocking_fs::{File, FileTimes};
    /// use std::time::SystemTime;
    ///
    /// let file = File::create(&at).await?;
    /// file.set_times(FileTimes::new().set_accessed(SystemTime::now())).await?;
    /// file.set_modified(SystemTime::UNIX_EPOCH).await?;
    /// assert_eq!(file.metadata().await?.modified()?, SystemTime::UNIX_EPOCH);
    /// # std::io::Result::Ok(())
    /// # })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`std::fs::File::set_times`].
    pub async fn set_times(&self, times: FileTimes) -> io::Result<()> {
        self.cursor
            .run_beside(false, move |file| file.set_times(times))
            .await
    }

    /// Sets the time of the last write.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let at = directory.path().join("a");
    /// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
    /// #     blocking_threads::Pool::new(Default::default());
    /// # let _entered = pool.enter();
    /// # futures_lite::future::block_on(async {
    /// let file = blocking_fs::File::create(&at).await?;
    /// file.set_modified(std::time::SystemTime::UNIX_EPOCH).await?;
    /// # std::io::Result::Ok(())
    /// # })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`std::fs::File::set_modified`].
    pub async fn set_modified(&self, time: SystemTime) -> io::Result<()> {
        self.cursor
            .run_beside(false, move |file| file.set_modified(time))
            .await
    }

    /// Sets how many bytes one system call reads or writes at most. 2 MiB by default.
    ///
    /// ```
    /// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
    /// #     blocking_threads::Pool::new(Default::default());
    /// # let _entered = pool.enter();
    /// # futures_lite::future::block_on(async {
    /// let mut file = blocking_fs::File::open("/dev/null").await?;
    /// file.set_max_buf_size(64 * 1024);
    /// assert_eq!(file.max_buf_size(), 64 * 1024);
    /// # std::io::Result::Ok(())
    /// # })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    /// If `bytes` is 0.
    #[track_caller]
    pub fn set_max_buf_size(&mut self, bytes: usize) {
        assert!(bytes > 0, "a file's buffer has at least 1 byte, not 0");
        self.limit = bytes;
    }

    /// Returns how many bytes one system call reads or writes at most.
    ///
    /// ```
    /// let null = std::fs::File::open("/dev/null")?;
    /// assert_eq!(blocking_fs::File::from_std(null).max_buf_size(), 2 << 20);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn max_buf_size(&self) -> usize {
        self.limit
    }
}

impl File {
    fn poll_take(
        &self,
        cx: &mut Context<'_>,
        room: usize,
        take: impl FnOnce(&[u8]),
    ) -> Poll<io::Result<usize>> {
        self.cursor.poll_read(cx, room, self.limit, take)
    }

    fn poll_put(&self, cx: &mut Context<'_>, from: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.cursor.poll_write(cx, from, self.limit)
    }

    fn poll_done(&self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        self.cursor.poll_flush(cx)
    }
}

impl_read!(File);
impl_write!(File);
impl_seek!(File);

impl From<fs::File> for File {
    fn from(file: fs::File) -> Self {
        Self::from_std(file)
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // On Windows std would ask the system for the path, which waits for a read of the file.
        #[cfg(windows)]
        let file = std::os::windows::io::AsRawHandle::as_raw_handle(self.cursor.file());
        #[cfg(not(windows))]
        let file = self.cursor.file();
        f.debug_tuple("File").field(&file).finish()
    }
}

#[cfg(unix)]
mod unix {
    use super::{File, fs};
    use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

    impl AsFd for File {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.cursor.expose().as_fd()
        }
    }

    impl AsRawFd for File {
        fn as_raw_fd(&self) -> RawFd {
            self.cursor.expose().as_raw_fd()
        }
    }

    impl From<OwnedFd> for File {
        fn from(fd: OwnedFd) -> Self {
            Self::from_std(fd.into())
        }
    }

    impl FromRawFd for File {
        unsafe fn from_raw_fd(fd: RawFd) -> Self {
            // SAFETY: the caller vouches that `fd` is open, and gives up its ownership.
            Self::from_std(unsafe { fs::File::from_raw_fd(fd) })
        }
    }
}

#[cfg(windows)]
mod windows {
    use super::{File, fs};
    use std::os::windows::io::{
        AsHandle, AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle, RawHandle,
    };

    impl AsHandle for File {
        fn as_handle(&self) -> BorrowedHandle<'_> {
            self.cursor.expose().as_handle()
        }
    }

    impl AsRawHandle for File {
        fn as_raw_handle(&self) -> RawHandle {
            self.cursor.expose().as_raw_handle()
        }
    }

    impl From<OwnedHandle> for File {
        fn from(handle: OwnedHandle) -> Self {
            Self::from_std(handle.into())
        }
    }

    impl FromRawHandle for File {
        unsafe fn from_raw_handle(handle: RawHandle) -> Self {
            // SAFETY: the caller vouches that `handle` is open, and gives up its ownership.
            Self::from_std(unsafe { fs::File::from_raw_handle(handle) })
        }
    }
}
