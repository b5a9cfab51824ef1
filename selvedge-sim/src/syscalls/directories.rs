//! The streams of directories: `opendir`, `readdir` and those like them.
//!
//! A stream of the C library is at an even address. A simulated one has an odd address: that of its
//! state, and one more. So a function knows whose stream it has, on any thread and at any time.
use super::{Call, answer, files, functions::next, paths, sockets};
use crate::{
    disk::{Ino, Kind},
    net::{Done, Errno},
};
use libc::{DIR, c_char, c_int, c_long, dirent64};
use std::{hint::black_box, mem, ptr};

/// An open directory.
struct Stream {
    fd: c_int,
    /// The entries, once the first one is read.
    list: Option<Vec<(Vec<u8>, Ino, Kind)>>,
    next: usize,
    entry: dirent64,
}

/// Keeps the functions in the program.
pub(super) fn keep() {
    for function in [
        opendir as *const (),
        fdopendir as *const (),
        readdir as *const (),
        readdir64 as *const (),
        closedir as *const (),
        dirfd as *const (),
        rewinddir as *const (),
        telldir as *const (),
        seekdir as *const (),
    ] {
        black_box(function);
    }
}

/// Allocates a stream.
fn allocate(fd: c_int) -> *mut DIR {
    // SAFETY: all zeros are a value of this type.
    let entry: dirent64 = unsafe { mem::zeroed() };
    let stream = Box::new(Stream {
        fd,
        list: None,
        next: 0,
        entry,
    });
    Box::into_raw(stream).cast::<u8>().wrapping_add(1).cast()
}

/// Returns the state of a simulated stream, or `None` for one of the C library.
fn state_of(stream: *mut DIR) -> Option<*mut Stream> {
    let is_ours = stream.addr() % 2 == 1;
    is_ours.then(|| stream.cast::<u8>().wrapping_sub(1).cast())
}

/// Returns the result of a call, and sets `errno` after an error.
fn or_null<T>(done: Done<*mut T>) -> *mut T {
    done.unwrap_or_else(|error| {
        answer(Err(error));
        ptr::null_mut()
    })
}

/// The function of libc, for the threads of a simulation.
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
unsafe extern "C" fn opendir(path: *const c_char) -> *mut DIR {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY;
    // SAFETY: the caller's.
    let Some(opened) = (unsafe { paths::open(libc::AT_FDCWD, path, flags, 0) }) else {
        let function = next!(opendir, unsafe extern "C" fn(*const c_char) -> *mut DIR);
        // SAFETY: the caller's.
        return unsafe { function(path) };
    };
    or_null(opened.map(|fd| allocate(fd as c_int)))
}

/// The function of libc, for the threads of a simulation.
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
unsafe extern "C" fn fdopendir(fd: c_int) -> *mut DIR {
    let Some(is_directory) = Call::of(fd, |call, at| {
        let file = call.file(at)?;
        Ok(files::is_directory(call, file))
    }) else {
        let function = next!(fdopendir, unsafe extern "C" fn(c_int) -> *mut DIR);
        // SAFETY: the caller's.
        return unsafe { function(fd) };
    };
    or_null(is_directory.and_then(|is_directory| match is_directory {
        true => Ok(allocate(fd)),
        false => Err(Errno::NotDirectory),
    }))
}

/// Reads the next entry of a simulated stream. Returns `None` at the end.
fn advance(stream: &mut Stream) -> Done<Option<(Vec<u8>, Ino, Kind)>> {
    if stream.list.is_none() {
        let list = Call::of(stream.fd, |call, at| {
            let file = call.file(at)?;
            call.opened(file, |opened, volume, (_, dice)| {
                volume.list(opened.ino, dice)
            })
        });
        stream.list = Some(list.unwrap_or(Err(Errno::BadDescriptor))?);
    }
    let list = stream.list.as_deref().unwrap_or_default();
    let entry = list.get(stream.next).cloned();
    stream.next += usize::from(entry.is_some());
    Ok(entry)
}

/// Reads the next entry of a simulated stream, or returns null at its end.
fn read(stream: &mut Stream) -> Done<*mut dirent64> {
    let Some((name, ino, kind)) = advance(stream)? else {
        return Ok(ptr::null_mut());
    };
    let entry = &mut stream.entry;
    entry.d_ino = ino;
    entry.d_off = stream.next as i64;
    entry.d_reclen = size_of::<dirent64>() as u16;
    entry.d_type = match kind {
        Kind::File => libc::DT_REG,
        Kind::Directory => libc::DT_DIR,
        Kind::Link => libc::DT_LNK,
    };
    // A name has 255 bytes at most, so a zero follows.
    for (to, byte) in entry.d_name.iter_mut().zip(name.iter().chain(&[0])) {
        *to = *byte as c_char;
    }
    Ok(entry)
}

/// The function of libc, for the threads of a simulation.
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
unsafe extern "C" fn readdir64(stream: *mut DIR) -> *mut dirent64 {
    let Some(state) = state_of(stream) else {
        let function = next!(readdir64, unsafe extern "C" fn(*mut DIR) -> *mut dirent64);
        // SAFETY: the caller's.
        return unsafe { function(stream) };
    };
    // SAFETY: the caller's: the stream is open, and no other thread uses it.
    or_null(read(unsafe { &mut *state }))
}

/// The function of libc, for the threads of a simulation. An entry of 64-bit Linux is the same in
/// both functions.
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
unsafe extern "C" fn readdir(stream: *mut DIR) -> *mut dirent64 {
    // SAFETY: the caller's.
    unsafe { readdir64(stream) }
}

/// The function of libc, for the threads of a simulation. A stream of an earlier incarnation has no
/// descriptor any more.
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
unsafe extern "C" fn closedir(stream: *mut DIR) -> c_int {
    let Some(state) = state_of(stream) else {
        let function = next!(closedir, unsafe extern "C" fn(*mut DIR) -> c_int);
        // SAFETY: the caller's.
        return unsafe { function(stream) };
    };
    // SAFETY: `allocate` has leaked the box, and the caller closes the stream once.
    let stream = unsafe { Box::from_raw(state) };
    _ = sockets::close(stream.fd);
    0
}

/// The function of libc, for the threads of a simulation.
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
unsafe extern "C" fn dirfd(stream: *mut DIR) -> c_int {
    let Some(state) = state_of(stream) else {
        let function = next!(dirfd, unsafe extern "C" fn(*mut DIR) -> c_int);
        // SAFETY: the caller's.
        return unsafe { function(stream) };
    };
    // SAFETY: the caller's: the stream is open.
    unsafe { (*state).fd }
}

/// The function of libc, for the threads of a simulation.
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
unsafe extern "C" fn rewinddir(stream: *mut DIR) {
    let Some(state) = state_of(stream) else {
        let function = next!(rewinddir, unsafe extern "C" fn(*mut DIR));
        // SAFETY: the caller's.
        return unsafe { function(stream) };
    };
    // SAFETY: the caller's: the stream is open, and no other thread uses it.
    let state = unsafe { &mut *state };
    (state.list, state.next) = (None, 0);
}

/// The function of libc, for the threads of a simulation.
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
unsafe extern "C" fn telldir(stream: *mut DIR) -> c_long {
    let Some(state) = state_of(stream) else {
        let function = next!(telldir, unsafe extern "C" fn(*mut DIR) -> c_long);
        // SAFETY: the caller's.
        return unsafe { function(stream) };
    };
    // SAFETY: the caller's: the stream is open.
    unsafe { (*state).next as c_long }
}

/// The function of libc, for the threads of a simulation.
///
/// # Safety
/// As for the function of libc.
#[unsafe(no_mangle)]
unsafe extern "C" fn seekdir(stream: *mut DIR, to: c_long) {
    let Some(state) = state_of(stream) else {
        let function = next!(seekdir, unsafe extern "C" fn(*mut DIR, c_long));
        // SAFETY: the caller's.
        return unsafe { function(stream, to) };
    };
    // SAFETY: the caller's: the stream is open, and no other thread uses it.
    unsafe { (*state).next = to as usize };
}
