use super::{File, on_blocking_thread};
use std::{fs, io, path::Path};

/// How to open a file, as [`std::fs::OpenOptions`].
///
/// ```
/// use futures_lite::{AsyncReadExt, AsyncWriteExt};
/// use blocking_fs::OpenOptions;
///
/// # let directory = tempfile::tempdir()?;
/// # let at = directory.path().join("log");
/// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
/// #     blocking_threads::Pool::new(Default::default());
/// # let _entered = pool.enter();
/// # futures_lite::future::block_on(async {
/// let mut log = OpenOptions::new().append(true).create(true).open(&at).await?;
/// log.write_all(b"one\n").await?;
/// log.flush().await?;
///
/// let mut both = OpenOptions::new().read(true).write(true).truncate(false).open(&at).await?;
/// let mut line = [0; 4];
/// both.read_exact(&mut line).await?;
/// assert!(OpenOptions::new().write(true).create_new(true).open(&at).await.is_err());
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct OpenOptions {
    std: fs::OpenOptions,
    reads_ahead: bool,
}

impl OpenOptions {
    /// Returns options of which none is set.
    pub fn new() -> Self {
        Self {
            std: fs::OpenOptions::new(),
            reads_ahead: false,
        }
    }

    /// Reads ahead of reads that follow each other: for files that are read from one end to the
    /// other, and that do not change meanwhile. See [`File`](File#reads-ahead).
    ///
    /// ```
    /// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
    /// #     blocking_threads::Pool::new(Default::default());
    /// # let _entered = pool.enter();
    /// # futures_lite::future::block_on(async {
    /// use blocking_fs::File;
    /// use futures_lite::AsyncReadExt;
    ///
    /// let mut file = File::options().read(true).read_ahead(true).open("Cargo.toml").await?;
    /// let mut text = String::new();
    /// file.read_to_string(&mut text).await?;
    /// # std::io::Result::Ok(())
    /// # })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn read_ahead(&mut self, on: bool) -> &mut Self {
        self.reads_ahead = on;
        self
    }

    /// Opens the file for reading.
    pub fn read(&mut self, on: bool) -> &mut Self {
        self.std.read(on);
        self
    }

    /// Opens the file for writing.
    pub fn write(&mut self, on: bool) -> &mut Self {
        self.std.write(on);
        self
    }

    /// Opens the file for writing at its end, wherever the end is at the time of the write.
    pub fn append(&mut self, on: bool) -> &mut Self {
        self.std.append(on);
        self
    }

    /// Empties the file.
    pub fn truncate(&mut self, on: bool) -> &mut Self {
        self.std.truncate(on);
        self
    }

    /// Makes the file if it does not exist.
    pub fn create(&mut self, on: bool) -> &mut Self {
        self.std.create(on);
        self
    }

    /// Makes the file, and fails if it exists.
    pub fn create_new(&mut self, on: bool) -> &mut Self {
        self.std.create_new(on);
        self
    }

    /// Opens the file.
    ///
    /// # Errors
    /// As [`std::fs::OpenOptions::open`].
    pub async fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let (options, path) = (self.std.clone(), path.as_ref().to_owned());
        on_blocking_thread(move || options.open(path))
            .await
            .map(|file| File::opened(file, self.reads_ahead))
    }
}

/// ```
/// # let directory = tempfile::tempdir()?;
/// # let at = directory.path().join("key");
/// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
/// #     blocking_threads::Pool::new(Default::default());
/// # let _entered = pool.enter();
/// # futures_lite::future::block_on(async {
/// use blocking_fs::OpenOptions;
///
/// let mut options = OpenOptions::new();
/// options.write(true).create(true).mode(0o600).custom_flags(0);
/// drop(options.open(&at).await?);
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[cfg(unix)]
impl OpenOptions {
    /// Sets the permissions of a file that [`open`](Self::open) makes.
    pub fn mode(&mut self, mode: u32) -> &mut Self {
        std::os::unix::fs::OpenOptionsExt::mode(&mut self.std, mode);
        self
    }

    /// Adds flags of `open(2)`.
    pub fn custom_flags(&mut self, flags: i32) -> &mut Self {
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut self.std, flags);
        self
    }
}

/// ```no_run
/// # #[cfg(windows)]
/// # async fn open() -> std::io::Result<()> {
/// use blocking_fs::OpenOptions;
///
/// let mut options = OpenOptions::new();
/// options.access_mode(0x8000_0000).share_mode(0).custom_flags(0);
/// options.attributes(0x80).security_qos_flags(0);
/// let file = options.open("key").await?;
/// # Ok(())
/// # }
/// ```
#[cfg(windows)]
impl OpenOptions {
    /// Replaces the `dwDesiredAccess` of `CreateFile` that the other options choose.
    pub fn access_mode(&mut self, access: u32) -> &mut Self {
        std::os::windows::fs::OpenOptionsExt::access_mode(&mut self.std, access);
        self
    }

    /// Replaces the `dwShareMode` of `CreateFile`. By default others may read, write and delete the
    /// file.
    pub fn share_mode(&mut self, mode: u32) -> &mut Self {
        std::os::windows::fs::OpenOptionsExt::share_mode(&mut self.std, mode);
        self
    }

    /// Adds flags to the `dwFlagsAndAttributes` of `CreateFile`.
    pub fn custom_flags(&mut self, flags: u32) -> &mut Self {
        std::os::windows::fs::OpenOptionsExt::custom_flags(&mut self.std, flags);
        self
    }

    /// Adds attributes to the `dwFlagsAndAttributes` of `CreateFile`. They are those of a file that
    /// [`open`](Self::open) makes.
    pub fn attributes(&mut self, attributes: u32) -> &mut Self {
        std::os::windows::fs::OpenOptionsExt::attributes(&mut self.std, attributes);
        self
    }

    /// Adds flags of `SECURITY_SQOS_PRESENT` to the `dwFlagsAndAttributes` of `CreateFile`.
    pub fn security_qos_flags(&mut self, flags: u32) -> &mut Self {
        std::os::windows::fs::OpenOptionsExt::security_qos_flags(&mut self.std, flags);
        self
    }
}

impl Default for OpenOptions {
    /// Returns options of which none is set.
    fn default() -> Self {
        Self::new()
    }
}

impl From<fs::OpenOptions> for OpenOptions {
    fn from(options: fs::OpenOptions) -> Self {
        Self {
            std: options,
            reads_ahead: false,
        }
    }
}
