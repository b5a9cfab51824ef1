//! Reading ahead: the bytes of a file that a job has read before a task asked for them.
//!
//! A *stream* begins with a read, and lasts as long as reads follow each other. Its job reads by
//! `pread`, so the position that the kernel has of the file stays where the stream began. The end
//! of the stream sets that position to where tasks have read.
//!
//! A task must not get bytes that are no longer in the file. So a stream has the file's *stamp*:
//! its length, and the time of its last change (`ctime`), before the first byte was read. A task
//! compares the stamp before it takes a byte, and ends the stream if the file has another one.
//! Two changes within a tick of the kernel's clock have the same time. So no stream begins until
//! the file's last change is older than a tick ([`Stamp::is_settled`]). The kernel sets the time at
//! the begin of a write, so the end of a longer write than a tick is not seen: a program asks for
//! this only where files do not change.
//!
//! The comparison asks for the file's attributes, on the thread of the task. This must not wait for
//! another machine or program. So only files of [`LOCAL`] kinds of file systems are read ahead.
//!
//! A stream that meets an error, or the end of the file before its length, stops there. Tasks take
//! the bytes before that place. The read that follows reads the file itself, and gets the error.
use std::{
    collections::VecDeque,
    fs::{File, Metadata},
    io::{ErrorKind, Seek, SeekFrom},
    mem,
    ops::Range,
    os::{
        fd::AsRawFd,
        unix::fs::{FileExt, MetadataExt},
    },
    time::{Duration, SystemTime},
};

/// The most bytes that a stream has ahead of its reader. Four times as many are no faster.
const MOST_AHEAD: usize = 1024 * 1024;

/// A job that has read so many bytes ends, and the next one waits its turn behind the jobs of
/// others. Until then the job goes on while its reader keeps up with it, which spares hand-overs.
pub(crate) const MOST_IN_A_JOB: usize = 8 * 1024 * 1024;

/// The fewest bytes of a system call that reads ahead.
const PIECE: usize = 64 * 1024;

/// A read with room for so many bytes has a job of its own, for which it is worth its while.
const LARGE: usize = 256 * 1024;

/// A tick of the clock by which the kernel notes changes takes 10 ms at most.
const TICK: Duration = Duration::from_millis(50);

/// The tick of a file system that notes changes by whole seconds.
const COARSE_TICK: Duration = Duration::from_secs(2);

/// File systems whose attributes are in memory while a file is open: ext2 to ext4, XFS, Btrfs,
/// F2FS, tmpfs. They are magic numbers of `statfs(2)`. Not overlayfs: a look at a file there may
/// wait for another layer, and a seek for a copy between layers.
const LOCAL: [u32; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x0102_1994];

/// When a file was changed last, and its length.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    seconds: i64,
    nanoseconds: i64,
    len: u64,
}

/// Bytes that were read and that no task has taken.
pub(crate) struct Chunk {
    buffer: Vec<u8>,
    rest: Range<usize>,
}

/// A range of the file for a job to read.
pub(crate) struct Piece {
    buffer: Vec<u8>,
    offset: u64,
    len: usize,
}

/// The result of a look of the next read into its stream.
pub(crate) enum Found {
    /// A chunk. It has no byte if tasks have read the whole file.
    Chunk(Chunk),
    /// There is nothing until a job reads more.
    Empty,
    /// There is nothing, and a job must read the file without a stream.
    Stopped,
}

pub(crate) struct Stream {
    stamp: Stamp,
    /// The place up to which tasks have read.
    position: u64,
    /// The place up to which jobs have read.
    end: u64,
    /// The place up to which jobs read.
    goal: u64,
    /// The number of bytes to have ahead of the reader. 0 until a second read.
    window: usize,
    most: usize,
    limit: usize,
    piece: usize,
    chunks: VecDeque<Chunk>,
    spare: Vec<Vec<u8>>,
    stopped: bool,
}

impl Stamp {
    pub(crate) fn of(file: &File) -> Option<Self> {
        file.metadata().ok().map(|metadata| Self::from(&metadata))
    }

    /// Returns whether any change from `now` on changes the stamp.
    fn is_settled(self, now: SystemTime) -> bool {
        let is_coarse = self.nanoseconds == 0;
        let tick = if is_coarse { COARSE_TICK } else { TICK };
        let (Ok(seconds), Ok(nanoseconds)) = (self.seconds.try_into(), self.nanoseconds.try_into())
        else {
            return false; // A change before 1970: the clock was wrong.
        };
        let changed = SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds));
        let age = changed.and_then(|changed| now.duration_since(changed).ok());
        age.is_some_and(|age| age > tick)
    }
}

impl From<&Metadata> for Stamp {
    fn from(metadata: &Metadata) -> Self {
        Self {
            seconds: metadata.ctime(),
            nanoseconds: metadata.ctime_nsec(),
            len: metadata.len(),
        }
    }
}

impl Chunk {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.rest.clone()]
    }
}

impl Piece {
    /// Reads the piece. Returns the number of bytes.
    pub(crate) fn read(&mut self, file: &File) -> usize {
        let to = &mut self.buffer[..self.len];
        loop {
            match file.read_at(to, self.offset) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => return result.unwrap_or(0),
            }
        }
    }
}

/// Returns whether a read with that much room may begin a stream.
pub(crate) fn is_worthwhile(room: usize, limit: usize) -> bool {
    room < LARGE.min(limit)
}

impl Stream {
    /// Begins a stream at the file's position, if the file is fit for it.
    pub(crate) fn open(mut file: &File, room: usize, limit: usize) -> Option<Self> {
        let metadata = file.metadata().ok()?;
        let stamp = Stamp::from(&metadata);
        if !metadata.is_file() || !stamp.is_settled(SystemTime::now()) || !is_local(file) {
            return None;
        }
        let position = file.stream_position().ok()?;
        if position >= stamp.len {
            return None;
        }
        let piece = room.clamp(PIECE, LARGE).min(limit);
        Some(Self {
            stamp,
            position,
            end: position,
            goal: position.saturating_add(room as u64).min(stamp.len),
            window: 0,
            most: MOST_AHEAD.min(limit),
            limit,
            piece,
            chunks: VecDeque::new(),
            spare: Vec::new(),
            stopped: false,
        })
    }

    /// Ends the stream: sets the kernel's position to where tasks have read.
    pub(crate) fn close(self, mut file: &File) -> std::io::Result<()> {
        file.seek(SeekFrom::Start(self.position)).map(drop)
    }

    pub(crate) fn stamp(&self) -> Stamp {
        self.stamp
    }

    pub(crate) fn has_bytes(&self) -> bool {
        !self.chunks.is_empty()
    }

    /// Returns what there is for a read with that much room. A chunk goes back by
    /// [`give_back`](Self::give_back).
    pub(crate) fn find(&mut self, room: usize) -> Found {
        if let Some(chunk) = self.chunks.pop_front() {
            Found::Chunk(chunk)
        } else if self.position >= self.stamp.len {
            self.spare = Vec::new();
            let (buffer, rest) = (Vec::new(), 0..0);
            Found::Chunk(Chunk { buffer, rest })
        } else if self.stopped || !is_worthwhile(room, self.limit) {
            Found::Stopped
        } else {
            Found::Empty
        }
    }

    /// Takes the chunk back, of which a task has read `count` bytes.
    pub(crate) fn give_back(&mut self, mut chunk: Chunk, count: usize) {
        self.position += count as u64;
        chunk.rest.start += count;
        if !chunk.rest.is_empty() {
            self.chunks.push_front(chunk);
        } else if count > 0 && (self.chunks.len() + self.spare.len()) * self.piece < self.window {
            self.spare.push(chunk.buffer);
        }
    }

    /// Lets no further job read for the stream.
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
    }

    /// Returns whether a job should read more while tasks take the rest.
    pub(crate) fn is_low(&self) -> bool {
        let ahead = self.end - self.position;
        !self.stopped && self.end < self.stamp.len && ahead < (self.window / 2) as u64
    }

    /// Makes the window wider, as the reader found no byte or waits for one. A server has streams
    /// of many readers that never wait, as their clients are slow: these keep a window of two
    /// pieces.
    pub(crate) fn widen(&mut self) {
        let wider = (self.window * 2).max(self.piece * 2);
        self.window = wider.min(self.most);
    }

    /// Returns whether the stream has a window, and so has seen a second read.
    pub(crate) fn has_window(&self) -> bool {
        self.window > 0
    }

    /// Sets the goal of the next job.
    pub(crate) fn extend(&mut self) {
        let ahead = (self.end - self.position) as usize;
        let pieces = self
            .window
            .saturating_sub(ahead)
            .div_ceil(self.piece)
            .max(1);
        let goal = self.end.saturating_add((pieces * self.piece) as u64);
        self.goal = goal.min(self.stamp.len);
    }

    /// Returns the next piece for the job, if the job has not reached its goal. If `may_extend` is
    /// true, the goal moves on when there are few bytes left.
    pub(crate) fn next_piece(&mut self, may_extend: bool) -> Option<Piece> {
        if may_extend && self.end == self.goal && self.is_low() {
            self.extend();
        }
        let len = self.piece.min((self.goal - self.end) as usize);
        if len == 0 || self.stopped {
            return None;
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        if buffer.len() < len {
            buffer.resize(len, 0);
        }
        Some(Piece {
            buffer,
            offset: self.end,
            len,
        })
    }

    /// Adds the piece, of which the job has read `count` bytes.
    pub(crate) fn add(&mut self, piece: Piece, count: usize) {
        let Piece {
            mut buffer, len, ..
        } = piece;
        self.stopped = count < len;
        self.end += count as u64;
        if count > 0 {
            let (buffer, rest) = (mem::take(&mut buffer), 0..count);
            self.chunks.push_back(Chunk { buffer, rest });
        }
    }
}

fn is_local(file: &File) -> bool {
    let mut found = mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the descriptor is open, and the pointer is to memory for the result.
    if unsafe { libc::fstatfs(file.as_raw_fd(), found.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: the call has succeeded, so it has written the whole result.
    let found = unsafe { found.assume_init() };
    LOCAL.contains(&(found.f_type as u32))
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle, selvedge_count))))]
mod tests;
