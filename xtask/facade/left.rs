//! A library that a test program loads first. As the program's process ends, the library writes
//! into a file what the process leaves: how many descriptors it has more than at its beginning, how
//! many threads beside the one that ends it, and how many bytes of memory it has allocated.
use std::{env, ffi::OsString, fs, process, sync::OnceLock, thread, time::Duration};

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

static BEGUN: OnceLock<Begun> = OnceLock::new();

struct Begun {
    file: OsString,
    process: u32,
    descriptors: usize,
}

extern "C" fn begin() {
    let Some(file) = env::var_os("FACADE_LEFT") else {
        return;
    };
    // SAFETY: the process has one thread, as the program has not begun.
    unsafe { env::remove_var("LD_PRELOAD") };
    let _ = BEGUN.set(Begun {
        file,
        process: process::id(),
        descriptors: count("/proc/self/fd"),
    });
}

extern "C" fn end() {
    // A child that was forked, and runs no other program, ends here too.
    let Some(begun) = BEGUN.get().filter(|begun| begun.process == process::id()) else {
        return;
    };
    // A thread that nobody joins may be about to end.
    for _ in 0..100 {
        if count("/proc/self/task") == 1 {
            break;
        }
        thread::sleep(Duration::from_millis(2));
    }
    let heap = mallinfo2();
    let descriptors = count("/proc/self/fd").saturating_sub(begun.descriptors);
    let threads = count("/proc/self/task").saturating_sub(1);
    let bytes = heap.in_blocks + heap.in_maps;
    let _ = fs::write(&begun.file, format!("{descriptors} {threads} {bytes}"));
}

/// Returns the number of entries. The folder's own descriptor is open meanwhile.
fn count(folder: &str) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

unsafe extern "C" {
    /// Returns the state of the allocator. It has no preconditions.
    safe fn mallinfo2() -> Heap;
}

/// The C library's `struct mallinfo2`, with two of its fields named.
#[repr(C)]
struct Heap {
    _before: [usize; 4],
    in_maps: usize,
    _between: [usize; 2],
    in_blocks: usize,
    _after: [usize; 2],
}
