//! The calls with paths of files.
use super::{Call, FIRST, descriptor};
use crate::{
    disk::{Access, Ino, Kind, Opened, ROOT, Stats, Times},
    net::{Done, Errno},
    world::World,
};
use libc::{c_char, c_int, c_uint, size_t, stat64, statx, statx_timestamp, timespec};
use std::{ffi::CStr, mem, ptr, time::Duration};

/// The permissions that the system takes from a new file.
const MASK: u32 = 0o022;

/// The major number of the devices on which simulated files are.
const DEVICE: u32 = 0x5e;

/// A path on a disk: the disk, the directory from which the path leads, and the rest.
pub(super) type At<'p> = (usize, Ino, &'p [u8]);

/// Reads a path of C. Null is none: the system has an error for it.
///
/// # Safety
/// The pointer is null, or that of a text with its end.
pub(super) unsafe fn text<'a>(path: *const c_char) -> Option<&'a [u8]> {
    // SAFETY: the caller's.
    (!path.is_null()).then(|| unsafe { CStr::from_ptr(path) }.to_bytes())
}

/// Runs `f` for a path on a simulated disk, which may lead from a directory. Returns `None` for a
/// path of the system, without a call.
///
/// # Safety
/// As for [`text`].
unsafe fn on_path<R>(
    directory: c_int,
    path: *const c_char,
    f: impl FnOnce(&Call<'_>, At<'_>) -> Done<R>,
) -> Option<Done<R>> {
    // SAFETY: the caller's.
    let path = unsafe { text(path) }?;
    if path.starts_with(b"/") {
        let (disk, rest) = World::with_current(|world| world.find_disk(path))??;
        return Call::begin(|call| f(call, (disk, ROOT, rest)));
    }
    if directory < FIRST {
        return None;
    }
    Call::of(directory, |call, at| {
        let file = call.file(at)?;
        let start = call.opened(file, |opened, _, _| Ok((opened.disk, opened.ino)));
        let (disk, start) = start.map_err(|_| Errno::NotDirectory)?;
        if path.is_empty() {
            return Err(Errno::NoEntry);
        }
        f(call, (disk, start, path))
    })
}

/// Runs `f` for two paths, both on one disk. A path of the system and one of a disk are on two
/// devices.
///
/// # Safety
/// As for [`text`], for both paths.
unsafe fn on_paths(
    (from, old): (c_int, *const c_char),
    (to, new): (c_int, *const c_char),
    f: impl FnOnce(&Call<'_>, At<'_>, At<'_>) -> Done<i64>,
) -> Option<Done<i64>> {
    // SAFETY: the caller's.
    let done = unsafe {
        on_path(from, old, |call, one| {
            let place = call.place(to, new)?;
            let Some(other) = place.filter(|place| place.0 == one.0) else {
                return Err(Errno::CrossDevice);
            };
            f(call, one, other)
        })
    };
    done.or_else(|| {
        // SAFETY: the caller's.
        unsafe { on_path(to, new, |_, _| Err(Errno::CrossDevice)) }
    })
}

impl Call<'_> {
    /// Returns the place of a second path.
    fn place<'p>(&self, directory: c_int, path: *const c_char) -> Done<Option<At<'p>>> {
        // SAFETY: the path is one of the call that runs.
        let Some(path) = (unsafe { text(path) }) else {
            return Ok(None);
        };
        if path.starts_with(b"/") {
            let found = self.world.find_disk(path);
            return Ok(found.map(|(disk, rest)| (disk, ROOT, rest)));
        }
        let Some(at) = directory
            .checked_sub(FIRST)
            .and_then(|at| usize::try_from(at).ok())
        else {
            return Ok(None);
        };
        let file = self.file(at)?;
        let start = self.opened(file, |opened, _, _| Ok((opened.disk, opened.ino)));
        let (disk, start) = start.map_err(|_| Errno::NotDirectory)?;
        Ok(Some((disk, start, path)))
    }
}

/// # Safety
/// As for the function of libc.
pub(super) unsafe fn open(
    directory: c_int,
    path: *const c_char,
    flags: c_int,
    mode: c_uint,
) -> Option<Done<i64>> {
    // SAFETY: the caller's.
    unsafe {
        on_path(directory, path, |call, at| {
            let access = access_of(flags)?;
            open_on_disk(call, at, access, mode & 0o7777 & !MASK)
        })
    }
}

fn access_of(flags: c_int) -> Done<Access> {
    let has = |flag: c_int| flags & flag == flag;
    if has(libc::O_CREAT | libc::O_DIRECTORY) || has(libc::O_DIRECT) {
        return Err(Errno::Invalid);
    }
    if has(libc::O_TMPFILE) {
        return Err(Errno::NotSupported);
    }
    let kind = flags & libc::O_ACCMODE;
    let is_path = has(libc::O_PATH);
    Ok(Access {
        reads: kind != libc::O_WRONLY && !is_path,
        writes: kind != libc::O_RDONLY && !is_path,
        appends: has(libc::O_APPEND),
        creates: has(libc::O_CREAT) && !is_path,
        is_new: has(libc::O_EXCL),
        truncates: has(libc::O_TRUNC) && !is_path,
        is_directory: has(libc::O_DIRECTORY),
        follows: !has(libc::O_NOFOLLOW),
        syncs: flags & (libc::O_SYNC | libc::O_DSYNC) != 0,
    })
}

fn open_on_disk(
    call: &Call<'_>,
    (disk, start, path): At<'_>,
    access: Access,
    mode: u32,
) -> Done<i64> {
    let ino = call.volume(disk, |volume, (now, _)| {
        volume.open(start, path, access, mode, now)
    })?;
    let opened = Opened {
        disk,
        ino,
        at: 0,
        access,
    };
    call.net(|net, host, _| {
        net.note(host, "open", ino);
        net.add_on_disk(host, opened)
    })
    .map(descriptor)
}

/// The function `stat`, and those like it.
///
/// # Safety
/// As for the function of libc.
pub(super) unsafe fn stat(
    directory: c_int,
    path: *const c_char,
    flags: c_int,
    to: *mut stat64,
) -> Option<Done<i64>> {
    // SAFETY: the caller's.
    let (disk, stats) = match unsafe { stats_of(directory, path, flags) }? {
        Ok(stats) => stats,
        Err(error) => return Some(Err(error)),
    };
    // SAFETY: all zeros are a value of this type.
    let mut stat: stat64 = unsafe { mem::zeroed() };
    stat.st_dev = libc::makedev(DEVICE, disk as u32);
    stat.st_ino = stats.ino;
    stat.st_mode = mode_of(&stats);
    stat.st_nlink = stats.links;
    (stat.st_uid, stat.st_gid) = stats.owner;
    stat.st_size = stats.len as i64;
    stat.st_blksize = 4_096;
    stat.st_blocks = stats.blocks as i64;
    let Times {
        read,
        written,
        changed,
        ..
    } = stats.times;
    (stat.st_atime, stat.st_atime_nsec) = (read.as_secs() as i64, read.subsec_nanos().into());
    (stat.st_mtime, stat.st_mtime_nsec) = (written.as_secs() as i64, written.subsec_nanos().into());
    (stat.st_ctime, stat.st_ctime_nsec) = (changed.as_secs() as i64, changed.subsec_nanos().into());
    // SAFETY: the caller's.
    unsafe { to.write(stat) };
    Some(Ok(0))
}

/// The function `statx`.
///
/// # Safety
/// As for the function of libc.
pub(super) unsafe fn stat_more(
    directory: c_int,
    path: *const c_char,
    flags: c_int,
    to: *mut statx,
) -> Option<Done<i64>> {
    // SAFETY: the caller's.
    let (disk, stats) = match unsafe { stats_of(directory, path, flags) }? {
        Ok(stats) => stats,
        Err(error) => return Some(Err(error)),
    };
    // SAFETY: all zeros are a value of this type.
    let mut stat: statx = unsafe { mem::zeroed() };
    let time = |time: Duration, to: &mut statx_timestamp| {
        to.tv_sec = time.as_secs() as i64;
        to.tv_nsec = time.subsec_nanos();
    };
    stat.stx_mask = libc::STATX_BASIC_STATS | libc::STATX_BTIME;
    stat.stx_blksize = 4_096;
    stat.stx_nlink = stats.links as u32;
    (stat.stx_uid, stat.stx_gid) = stats.owner;
    stat.stx_mode = mode_of(&stats) as u16;
    stat.stx_ino = stats.ino;
    stat.stx_size = stats.len;
    stat.stx_blocks = stats.blocks;
    time(stats.times.read, &mut stat.stx_atime);
    time(stats.times.born, &mut stat.stx_btime);
    time(stats.times.changed, &mut stat.stx_ctime);
    time(stats.times.written, &mut stat.stx_mtime);
    (stat.stx_dev_major, stat.stx_dev_minor) = (DEVICE, disk as u32);
    // SAFETY: the caller's.
    unsafe { to.write(stat) };
    Some(Ok(0))
}

fn mode_of(stats: &Stats) -> u32 {
    let kind = match stats.kind {
        Kind::File => libc::S_IFREG,
        Kind::Directory => libc::S_IFDIR,
        Kind::Link => libc::S_IFLNK,
    };
    kind | stats.mode
}

/// Returns what there is to say of a file, and its disk.
///
/// # Safety
/// As for [`text`].
unsafe fn stats_of(
    directory: c_int,
    path: *const c_char,
    flags: c_int,
) -> Option<Done<(usize, Stats)>> {
    // SAFETY: the caller's.
    let is_empty = unsafe { text(path) }.is_none_or(<[u8]>::is_empty);
    if is_empty && flags & libc::AT_EMPTY_PATH != 0 {
        return Call::of(directory, |call, at| {
            let file = call.file(at)?;
            let stats = call.opened(file, |opened, volume, _| {
                Ok((opened.disk, volume.stats(opened.ino)))
            });
            // A simulated socket has no file.
            stats.map_err(|_| Errno::BadDescriptor)
        });
    }
    // SAFETY: the caller's.
    unsafe {
        on_path(directory, path, |call, (disk, start, path)| {
            let follows = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
            call.volume(disk, |volume, _| {
                let ino = volume.look_up(start, path, follows)?;
                Ok((disk, volume.stats(ino)))
            })
        })
    }
}

/// The function `access`: the program may do all.
///
/// # Safety
/// As for the function of libc.
pub(super) unsafe fn access(directory: c_int, path: *const c_char) -> Option<Done<i64>> {
    // SAFETY: the caller's.
    let stats = unsafe { stats_of(directory, path, 0) }?;
    Some(stats.map(|_| 0))
}

/// # Safety
/// As for the function of libc.
pub(super) unsafe fn rename(
    old: (c_int, *const c_char),
    new: (c_int, *const c_char),
    flags: c_uint,
) -> Option<Done<i64>> {
    // SAFETY: the caller's.
    unsafe {
        on_paths(old, new, |call, (disk, from, old), (_, to, new)| {
            if flags & !libc::RENAME_NOREPLACE != 0 {
                return Err(Errno::Invalid);
            }
            call.volume(disk, |volume, (now, _)| {
                volume.rename((from, old), (to, new), flags == 0, now)
            })?;
            call.note("rename", 0);
            Ok(0)
        })
    }
}

/// # Safety
/// As for the function of libc.
pub(super) unsafe fn link(
    old: (c_int, *const c_char),
    new: (c_int, *const c_char),
    flags: c_int,
) -> Option<Done<i64>> {
    // SAFETY: the caller's.
    unsafe {
        on_paths(old, new, |call, (disk, from, old), (_, to, new)| {
            let follows = flags & libc::AT_SYMLINK_FOLLOW != 0;
            call.volume(disk, |volume, (now, _)| {
                volume.link((from, old), (to, new), follows, now)
            })?;
            call.note("link", 0);
            Ok(0)
        })
    }
}

/// # Safety
/// As for the function of libc.
pub(super) unsafe fn symlink(
    target: *const c_char,
    directory: c_int,
    path: *const c_char,
) -> Option<Done<i64>> {
    // SAFETY: the caller's.
    let target = unsafe { text(target) }?;
    // SAFETY: the caller's.
    unsafe {
        on_path(directory, path, |call, (disk, start, path)| {
            call.volume(disk, |volume, (now, _)| {
                volume.make_link(target, start, path, now)
            })?;
            call.note("symlink", 0);
            Ok(0)
        })
    }
}

/// # Safety
/// As for the function of libc.
pub(super) unsafe fn read_link(
    directory: c_int,
    path: *const c_char,
    to: *mut c_char,
    len: size_t,
) -> Option<Done<i64>> {
    // SAFETY: the caller's.
    let target = unsafe {
        on_path(directory, path, |call, (disk, start, path)| {
            call.volume(disk, |volume, _| volume.read_link(start, path))
        })
    };
    let target = match target? {
        Ok(target) if len > 0 => target,
        Ok(_) => return Some(Err(Errno::Invalid)),
        Err(error) => return Some(Err(error)),
    };
    let count = target.len().min(len);
    // SAFETY: the caller's: there is room for `len` bytes.
    unsafe { ptr::copy_nonoverlapping(target.as_ptr(), to.cast::<u8>(), count) };
    Some(Ok(count as i64))
}

/// # Safety
/// As for the function of libc.
pub(super) unsafe fn unlink(
    directory: c_int,
    path: *const c_char,
    flags: c_int,
) -> Option<Done<i64>> {
    // SAFETY: the caller's.
    unsafe {
        on_path(directory, path, |call, (disk, start, path)| {
            let is_directory = flags & libc::AT_REMOVEDIR != 0;
            call.volume(disk, |volume, (now, _)| match is_directory {
                true => volume.remove_directory(start, path, now),
                false => volume.unlink(start, path, now),
            })?;
            call.note("unlink", 0);
            Ok(0)
        })
    }
}

/// # Safety
/// As for the function of libc.
pub(super) unsafe fn make_directory(
    directory: c_int,
    path: *const c_char,
    mode: c_uint,
) -> Option<Done<i64>> {
    // SAFETY: the caller's.
    unsafe {
        on_path(directory, path, |call, (disk, start, path)| {
            let mode = mode & 0o7777 & !MASK;
            call.volume(disk, |volume, (now, _)| {
                volume.make_directory(start, path, mode, now)
            })?;
            call.note("mkdir", 0);
            Ok(0)
        })
    }
}

/// # Safety
/// As for the function of libc.
pub(super) unsafe fn truncate(path: *const c_char, len: i64) -> Option<Done<i64>> {
    // SAFETY: the caller's.
    unsafe {
        on_path(libc::AT_FDCWD, path, |call, (disk, start, path)| {
            let len = u64::try_from(len).map_err(|_| Errno::Invalid)?;
            call.volume(disk, |volume, (now, _)| {
                let ino = volume.look_up(start, path, true)?;
                if volume.stats(ino).kind == Kind::Directory {
                    return Err(Errno::IsDirectory);
                }
                volume.set_len(ino, len, now)
            })?;
            call.note("truncate", len);
            Ok(0)
        })
    }
}

/// A change of what a file has beside its bytes.
#[derive(Clone, Copy)]
pub(super) enum Attribute {
    Mode(u32),
    Owner(Option<u32>, Option<u32>),
    Times(Option<Duration>, Option<Duration>),
}

impl Attribute {
    pub(super) fn owner(user: u32, group: u32) -> Self {
        let given = |id: u32| (id != u32::MAX).then_some(id);
        Self::Owner(given(user), given(group))
    }

    /// Reads the times of `utimensat`. Null means now.
    ///
    /// # Safety
    /// The pointer is null, or valid for reads of two times.
    pub(super) unsafe fn times(from: *const timespec) -> Self {
        let now = super::date_of_current();
        // SAFETY: the caller's.
        let Some(times) = (unsafe { from.cast::<[timespec; 2]>().as_ref() }) else {
            return Self::Times(now, now);
        };
        let time = |time: &timespec| match time.tv_nsec {
            libc::UTIME_NOW => now,
            libc::UTIME_OMIT => None,
            nanos => {
                let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
                Some(Duration::new(seconds, nanos.clamp(0, 999_999_999) as u32))
            }
        };
        Self::Times(time(&times[0]), time(&times[1]))
    }

    pub(super) fn set(self, call: &Call<'_>, disk: usize, ino: Ino) {
        call.volume(disk, |volume, (now, _)| match self {
            Self::Mode(mode) => volume.set_mode(ino, mode, now),
            Self::Owner(user, group) => volume.set_owner(ino, (user, group), now),
            Self::Times(read, written) => volume.set_times(ino, (read, written), now),
        });
    }
}

/// The functions `chmod`, `chown`, `utimensat` and those like them.
///
/// # Safety
/// As for the functions of libc.
pub(super) unsafe fn set(
    directory: c_int,
    path: *const c_char,
    flags: c_int,
    attribute: Attribute,
) -> Option<Done<i64>> {
    // SAFETY: the caller's.
    unsafe {
        on_path(directory, path, |call, (disk, start, path)| {
            let follows = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
            let ino = call.volume(disk, |volume, _| volume.look_up(start, path, follows))?;
            attribute.set(call, disk, ino);
            Ok(0)
        })
    }
}

/// The function `realpath`: returns the path, or null after an error.
///
/// # Safety
/// As for the function of libc.
pub(super) unsafe fn real_path(path: *const c_char, to: *mut c_char) -> Option<Done<*mut c_char>> {
    // SAFETY: the caller's.
    let path = unsafe {
        on_path(libc::AT_FDCWD, path, |call, (disk, start, path)| {
            call.volume(disk, |volume, _| volume.real_path(start, path))
        })
    };
    let mut path = match path? {
        Ok(path) if path.len() < libc::PATH_MAX as usize => path,
        Ok(_) => return Some(Err(Errno::NameTooLong)),
        Err(error) => return Some(Err(error)),
    };
    path.push(0);
    let room = match to.is_null() {
        // SAFETY: the length is not 0.
        true => unsafe { libc::malloc(path.len()) }.cast::<c_char>(),
        false => to,
    };
    if !room.is_null() {
        // SAFETY: the caller's room has as many bytes as a path has at most, and the other room has
        // as many as this one.
        unsafe { ptr::copy_nonoverlapping(path.as_ptr(), room.cast::<u8>(), path.len()) };
    }
    Some(Ok(room))
}
