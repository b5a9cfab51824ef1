//! The settings of a host's disk.
use crate::net_settings::Chance;
use std::{ops::Range, time::Duration};

/// A disk of a simulated host, for [`Hosts::disk`](crate::Hosts::disk) and
/// [`Sim::disk`](crate::Sim::disk).
///
/// The files are those that `std::fs` and the C library's functions find below the path at which
/// the disk is. The disk is empty at first, and outlives the crashes of its host. A program reads
/// what it has written, as it has a page cache; what a crash leaves of that, the settings say.
///
/// ```
/// use selvedge_sim::{Disk, Sim};
/// use std::{fs, time::Duration};
///
/// let ms = Duration::from_millis;
/// let disk = Disk::new().torn_writes().fsync_time(ms(1)..ms(20)).capacity(1 << 20);
/// # if cfg!(selvedge_sim) {
/// let run = Sim::new(7).disk("/data", disk).run_main(|| {
///     fs::write("/data/a", "hello").unwrap();
///     assert_eq!(fs::read_to_string("/data/a").unwrap(), "hello");
/// });
/// run.unwrap();
/// # }
/// # let _ = disk;
/// ```
#[derive(Clone, Debug)]
#[must_use = "the disk is that of the host that takes it"]
pub struct Disk {
    pub(crate) loses: bool,
    pub(crate) tears: bool,
    pub(crate) is_ordered: bool,
    pub(crate) errors: Chance,
    pub(crate) capacity: Option<u64>,
    pub(crate) fsync_time: Range<Duration>,
    pub(crate) access_time: Range<Duration>,
}

impl Default for Disk {
    fn default() -> Self {
        Self::new()
    }
}

impl Disk {
    /// Makes a disk without faults: a crash loses nothing, as if the system had written its cache
    /// back. A sync takes 0.1 to 2 ms.
    pub fn new() -> Self {
        Self {
            loses: false,
            tears: false,
            is_ordered: false,
            errors: Chance::default(),
            capacity: None,
            fsync_time: Duration::from_micros(100)..Duration::from_millis(2),
            access_time: Duration::ZERO..Duration::ZERO,
        }
    }

    /// Lets a crash lose writes, lengths and names that no sync has made durable. The seed chooses
    /// which. A sync of a file (`sync_all`, `sync_data`) makes its bytes and its length durable; a
    /// sync of a directory does so for the names in it. A rename happens as a whole, or not at all.
    pub fn lost_unsynced(mut self) -> Self {
        self.loses = true;
        self
    }

    /// Lets a crash also lose a part of a write: the sectors of 512 bytes that the seed chooses. An
    /// appended part may then be read as zeros. A sector is written as a whole. Implies
    /// [`lost_unsynced`](Self::lost_unsynced).
    pub fn torn_writes(mut self) -> Self {
        (self.loses, self.tears) = (true, true);
        self
    }

    /// Keeps the changes of names in their order, as the journal of ext4 does: a crash loses the
    /// last ones alone, and a sync of any file or directory makes all earlier ones durable.
    /// Without it each change of a name needs a sync of the directory, and the seed chooses freely
    /// among the others.
    pub fn ordered_metadata(mut self) -> Self {
        self.is_ordered = true;
        self
    }

    /// Sets which share of the reads, writes and syncs fails with `EIO`. A failed read or write has
    /// no effect. After a failed sync of a file the system holds its bytes for written, as Linux
    /// does: a program reads them, the next sync succeeds, and a crash may lose them still.
    ///
    /// # Panics
    /// If `share` is not from 0 to 1.
    #[track_caller]
    pub fn errors(mut self, share: f64) -> Self {
        self.errors = Chance::of(share);
        self
    }

    /// Sets how many bytes the files take at most, in blocks of 4 KiB. Beyond that a write fails
    /// with `ENOSPC`, or writes a part. Without a limit by default.
    pub fn capacity(mut self, bytes: u64) -> Self {
        self.capacity = Some(bytes);
        self
    }

    /// Sets how long a sync takes: the seed chooses. The thread waits, and others run.
    pub fn fsync_time(mut self, span: Range<Duration>) -> Self {
        self.fsync_time = span;
        self
    }

    /// Sets how long the thread of a read or a write waits: the seed chooses. By default it does
    /// not wait, as the page cache answers: each call takes the time of its copy alone.
    pub fn access_time(mut self, span: Range<Duration>) -> Self {
        self.access_time = span;
        self
    }
}

/// # Panics
/// If the path is not absolute, or is `/`, or has a part `.` or `..`.
#[track_caller]
pub(crate) fn check_path(path: &str) {
    let mut parts = path.split('/').filter(|part| !part.is_empty()).peekable();
    let is_path = path.starts_with('/') && parts.peek().is_some();
    let is_plain = parts.all(|part| part != "." && part != "..");
    assert!(is_path && is_plain, "a disk cannot be at {path}");
}
