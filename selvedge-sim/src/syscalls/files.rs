//! The calls of files, by descriptor.
use super::{
    Call, FIRST,
    buffers::{self, Sink},
    paths::Attribute,
    sockets,
};
use crate::{
    disk::{Kind, Syncing, Whence},
    net::{Done, Errno, FileId},
};
use libc::{c_int, iovec};
use std::ptr;

/// Runs `f` for a simulated descriptor that leads to a disk. `other` is the error of another one.
fn of_disk<R>(
    fd: c_int,
    other: Errno,
    f: impl FnOnce(&Call<'_>, FileId) -> Done<R>,
) -> Option<Done<R>> {
    Call::of(fd, |call, at| {
        let file = call.file(at)?;
        match call.net(|net, _, _| net.is_on_disk(file)) {
            true => f(call, file),
            false => Err(other),
        }
    })
}

/// Waits as long as the disk takes for a read or a write.
fn wait_for_access(call: &Call<'_>, file: FileId) -> Done<()> {
    let time = call.opened(file, |_, volume, (_, dice)| Ok(volume.access_time(dice)))?;
    if !time.is_zero() {
        call.world.wait_for(0, Some(time));
    }
    Ok(())
}

/// Reads into the parts: at a place, or at that of the descriptor.
///
/// # Safety
/// Each part is valid for writes.
pub(super) unsafe fn read_parts(
    call: &Call<'_>,
    file: FileId,
    parts: &[iovec],
    at: Option<u64>,
) -> Done<i64> {
    wait_for_access(call, file)?;
    // SAFETY: the caller's.
    let mut sink = unsafe { Sink::new(parts) };
    let most = buffers::len(parts) as u64;
    let count = call.opened(file, |opened, volume, moment| {
        let to = |bytes: &[u8]| sink.take(bytes);
        match at {
            Some(at) => volume.read_at(opened, at, most, to, moment),
            None => volume.read(opened, most, to, moment),
        }
    });
    finish(call, "file read", count)
}

/// Writes from the parts: at a place, or at that of the descriptor.
///
/// # Safety
/// Each part is valid for reads.
pub(super) unsafe fn write_parts(
    call: &Call<'_>,
    file: FileId,
    parts: &[iovec],
    at: Option<u64>,
) -> Done<i64> {
    wait_for_access(call, file)?;
    // SAFETY: the caller's.
    let bytes = unsafe { buffers::bytes(parts) };
    let count = call.opened(file, |opened, volume, moment| match at {
        Some(at) => volume
            .write_at(opened, at, &bytes, moment)
            .map(|(_, count)| count),
        None => volume.write(opened, &bytes, moment),
    });
    let count = finish(call, "file written", count)?;
    if call.opened(file, |opened, _, _| Ok(opened.access.syncs))? {
        sync_file(call, file)?;
    }
    Ok(count)
}

/// Notes the result of a read or a write, which takes the time of its copy: 8 bytes a nanosecond.
fn finish(call: &Call<'_>, what: &'static str, count: Done<u64>) -> Done<i64> {
    let count = call.noted(what, count)?;
    call.world.spend(count / 8);
    Ok(count as i64)
}

/// Makes a file durable.
fn sync_file(call: &Call<'_>, file: FileId) -> Done<()> {
    let (disk, sync): (usize, Syncing) = call.opened(file, |opened, volume, (_, dice)| {
        Ok((opened.disk, volume.begin_sync(opened.ino, dice)))
    })?;
    if !sync.takes().is_zero() {
        call.world.wait_for(0, Some(sync.takes()));
    }
    let done = call.volume(disk, |volume, (_, dice)| volume.end_sync(sync, dice));
    call.noted("fsync", done.map(|()| 0)).map(drop)
}

/// The functions `fsync` and `fdatasync`.
pub(super) fn sync(fd: c_int) -> Option<Done<i64>> {
    of_disk(fd, Errno::Invalid, |call, file| {
        sync_file(call, file)?;
        Ok(0)
    })
}

/// The function `syncfs`.
pub(super) fn sync_all(fd: c_int) -> Option<Done<i64>> {
    of_disk(fd, Errno::Invalid, |call, file| {
        sync_file(call, file)?;
        call.opened(file, |_, volume, _| {
            volume.sync_all();
            Ok(0)
        })
    })
}

/// A call that succeeds and does nothing for a file on a disk: `sync_file_range`, which promises
/// nothing.
pub(super) fn nothing(fd: c_int) -> Option<Done<i64>> {
    of_disk(fd, Errno::NoSeek, |_, _| Ok(0))
}

/// The function `read`.
///
/// # Safety
/// Each part is valid for writes.
pub(super) unsafe fn read(fd: c_int, parts: &[iovec]) -> Option<Done<i64>> {
    if let Some(done) = of_kind(fd, |call, file| {
        // SAFETY: the caller's.
        unsafe { read_parts(call, file, parts, None) }
    })? {
        return Some(done);
    }
    let nobody = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: the caller's.
    let received = unsafe { sockets::receive(fd, parts, 0, nobody) }?;
    Some(received.map(|received| received.count))
}

/// The function `write`.
///
/// # Safety
/// Each part is valid for reads.
pub(super) unsafe fn write(fd: c_int, parts: &[iovec]) -> Option<Done<i64>> {
    if let Some(done) = of_kind(fd, |call, file| {
        // SAFETY: the caller's.
        unsafe { write_parts(call, file, parts, None) }
    })? {
        return Some(done);
    }
    // SAFETY: the caller's.
    unsafe { sockets::send(fd, parts, 0, (ptr::null(), 0)) }
}

/// Runs `f` if a descriptor leads to a disk. Returns `None` for a descriptor of the system, and
/// `Some(None)` for another simulated one, without a call.
fn of_kind(fd: c_int, f: impl FnOnce(&Call<'_>, FileId) -> Done<i64>) -> Option<Option<Done<i64>>> {
    let at = usize::try_from(fd.checked_sub(FIRST)?).ok()?;
    let is_on_disk = Call::look(|call| {
        let file = call.file(at);
        file.is_ok_and(|file| call.net(|net, _, _| net.is_on_disk(file)))
    });
    match is_on_disk {
        Some(true) => Some(of_disk(fd, Errno::BadDescriptor, f)),
        _ => Some(None),
    }
}

/// Runs `f` with the parts of a call with a list, if its descriptor is simulated. The list of a
/// call with a descriptor of the system may be wrong in a way of which the system says so.
///
/// # Safety
/// As for the functions of libc.
pub(super) unsafe fn with_list(
    fd: c_int,
    (list, count): (*const iovec, c_int),
    writes: bool,
    f: impl FnOnce(&[iovec]) -> Option<Done<i64>>,
) -> Option<Done<i64>> {
    if fd < FIRST {
        return None;
    }
    let Ok(count) = usize::try_from(count) else {
        return Some(Err(wrong_list(fd, writes)));
    };
    // SAFETY: the caller's.
    f(unsafe { buffers::parts(list, count) })
}

/// Returns the error of a list with a negative count: that of the descriptor comes first.
fn wrong_list(fd: c_int, writes: bool) -> Errno {
    let done = Call::of(fd, |call, at| {
        let file = call.file(at)?;
        let access = call.opened(file, |opened, _, _| Ok(opened.access));
        match access {
            Ok(access) if !(if writes { access.writes } else { access.reads }) => {
                Err(Errno::BadDescriptor)
            }
            _ => Err::<(), _>(Errno::Invalid),
        }
    });
    match done {
        Some(Err(error)) => error,
        _ => Errno::Invalid,
    }
}

/// The functions `pread` and `preadv`.
///
/// # Safety
/// Each part is valid for writes.
pub(super) unsafe fn read_at(fd: c_int, parts: &[iovec], at: i64) -> Option<Done<i64>> {
    of_disk(fd, Errno::NoSeek, |call, file| {
        let at = u64::try_from(at).map_err(|_| Errno::Invalid)?;
        // SAFETY: the caller's.
        unsafe { read_parts(call, file, parts, Some(at)) }
    })
}

/// The functions `pwrite` and `pwritev`.
///
/// # Safety
/// Each part is valid for reads.
pub(super) unsafe fn write_at(fd: c_int, parts: &[iovec], at: i64) -> Option<Done<i64>> {
    of_disk(fd, Errno::NoSeek, |call, file| {
        let at = u64::try_from(at).map_err(|_| Errno::Invalid)?;
        // SAFETY: the caller's.
        unsafe { write_parts(call, file, parts, Some(at)) }
    })
}

pub(super) fn seek(fd: c_int, by: i64, whence: c_int) -> Option<Done<i64>> {
    of_disk(fd, Errno::NoSeek, |call, file| {
        let from = match whence {
            libc::SEEK_SET => Whence::Start,
            libc::SEEK_CUR => Whence::Here,
            libc::SEEK_END => Whence::End,
            _ => return Err(Errno::Invalid),
        };
        let at = call.opened(file, |opened, volume, _| volume.seek(opened, from, by))?;
        Ok(at as i64)
    })
}

pub(super) fn truncate(fd: c_int, len: i64) -> Option<Done<i64>> {
    of_disk(fd, Errno::Invalid, |call, file| {
        let len = u64::try_from(len).map_err(|_| Errno::Invalid)?;
        call.opened(file, |opened, volume, (now, _)| {
            match opened.access.writes {
                true => volume.set_len(opened.ino, len, now),
                false => Err(Errno::Invalid),
            }
        })?;
        call.note("truncate", len);
        Ok(0)
    })
}

/// The functions `fchmod`, `fchown` and `futimens`.
pub(super) fn set(fd: c_int, attribute: Attribute) -> Option<Done<i64>> {
    of_disk(fd, Errno::BadDescriptor, |call, file| {
        let (disk, ino) = call.opened(file, |opened, _, _| Ok((opened.disk, opened.ino)))?;
        attribute.set(call, disk, ino);
        Ok(0)
    })
}

/// The function `mmap`. The memory of a program cannot be simulated, so a file on a disk is refused
/// as one of a file system without maps.
pub(super) fn map(fd: c_int, flags: c_int) -> Option<Done<i64>> {
    if flags & libc::MAP_ANONYMOUS != 0 {
        return None;
    }
    of_disk(fd, Errno::NoDevice, |call, _| {
        call.note("mmap refused", 0);
        Err(Errno::NoDevice)
    })
}

/// The functions that copy between descriptors in the system. A caller copies itself then.
pub(super) fn copy(one: c_int, other: c_int) -> Option<Done<i64>> {
    (one >= FIRST || other >= FIRST).then_some(Err(Errno::Invalid))
}

/// Returns whether a descriptor leads to a directory.
pub(super) fn is_directory(call: &Call<'_>, file: FileId) -> bool {
    let kind = call.opened(file, |opened, volume, _| Ok(volume.stats(opened.ino).kind));
    kind == Ok(Kind::Directory)
}

/// The functions `fallocate` and `posix_fallocate`.
pub(super) fn allocate(fd: c_int, mode: c_int, at: i64, len: i64) -> Option<Done<i64>> {
    of_disk(fd, Errno::NoDevice, |call, file| {
        if mode & !libc::FALLOC_FL_KEEP_SIZE != 0 {
            return Err(Errno::NotSupported);
        }
        let (Ok(at), 1..) = (u64::try_from(at), len) else {
            return Err(Errno::Invalid);
        };
        let keeps_len = mode == libc::FALLOC_FL_KEEP_SIZE;
        let done = call.opened(file, |opened, volume, (now, _)| {
            volume.allocate(opened, (at, len as u64), keeps_len, now)
        });
        call.noted("fallocate", done.map(|()| len as u64))?;
        Ok(0)
    })
}

/// The function `flock`.
pub(super) fn lock(fd: c_int, operation: c_int) -> Option<Done<i64>> {
    of_disk(fd, Errno::BadDescriptor, |call, file| {
        let waits = operation & libc::LOCK_NB == 0;
        let is_exclusive = match operation & !libc::LOCK_NB {
            libc::LOCK_SH => false,
            libc::LOCK_EX => true,
            libc::LOCK_UN => {
                call.net(|net, _, _| net.unlock_file(file));
                return Ok(0);
            }
            _ => return Err(Errno::Invalid),
        };
        loop {
            if call.net(|net, _, _| net.lock_file(file, is_exclusive))? {
                call.note("flock", u64::from(is_exclusive));
                return Ok(0);
            }
            if !waits {
                return Err(Errno::Again);
            }
            call.wait(file, None);
        }
    })
}

/// The function `fcntl`, for a file on a disk. Locks of records belong to a process, and the
/// programs of a host are one, so they never have to wait.
pub(super) fn control(call: &Call<'_>, file: FileId, command: c_int, value: usize) -> Done<i64> {
    let has = |flag: c_int| value & flag as usize != 0;
    match command {
        libc::F_GETFL => call.opened(file, |opened, _, _| {
            let access = opened.access;
            let kind = match (access.reads, access.writes) {
                (true, true) => libc::O_RDWR,
                (false, true) => libc::O_WRONLY,
                _ => libc::O_RDONLY,
            };
            let appends = if access.appends { libc::O_APPEND } else { 0 };
            let syncs = if access.syncs { libc::O_SYNC } else { 0 };
            Ok(i64::from(kind | appends | syncs))
        }),
        libc::F_SETFL => call.opened(file, |opened, _, _| {
            opened.access.appends = has(libc::O_APPEND);
            Ok(0)
        }),
        libc::F_GETLK => {
            let lock = ptr::with_exposed_provenance_mut::<libc::flock>(value);
            // SAFETY: this command has a pointer to a lock.
            let lock = unsafe { lock.as_mut() }.ok_or(Errno::Invalid)?;
            lock.l_type = libc::F_UNLCK as i16;
            Ok(0)
        }
        _ => Ok(0),
    }
}
