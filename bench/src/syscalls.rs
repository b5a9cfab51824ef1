//! Counts the system calls of threads of this process, by the kernel's tracepoint for entries of
//! system calls.
//!
//! While the tracepoint is in use, each system call of the machine takes a longer way. So a sample
//! counts in an interval of its own, after the one that it times.
use std::{
    fs, io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    process::Command,
};

/// A file of the tracepoint, below the folder of the kernel's tracing.
const ID: &str = "events/raw_syscalls/sys_enter/id";

const FOLDERS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The counts of a number of threads, and of the threads that they spawn.
pub(crate) struct Counter(Vec<OwnedFd>);

impl Counter {
    /// Begins to count. Fails, and says why, if the kernel or the user's rights do not allow it.
    pub(crate) fn start(threads: impl Iterator<Item = i32>) -> Result<Self, String> {
        let id = tracepoint().ok_or("the kernel's tracepoints are out of reach; root has them")?;
        let events = threads.map(|thread| open(id, thread));
        let events = events.collect::<io::Result<_>>();
        events
            .map(Self)
            .map_err(|error| format!("perf_event_open: {error}"))
    }

    /// Returns the number of system calls since the start.
    pub(crate) fn total(&self) -> io::Result<u64> {
        self.0.iter().map(count).sum()
    }
}

/// Returns the tracepoint's number. If nobody has mounted the file system of tracing, a process
/// mounts it in a namespace that ends with the process.
fn tracepoint() -> Option<u64> {
    let mut files = FOLDERS.iter();
    let number = files.find_map(|folder| fs::read_to_string(format!("{folder}/{ID}")).ok());
    let number = number.or_else(|| {
        let folder = FOLDERS[0];
        let mount = format!("mount -t tracefs tracefs {folder} && cat {folder}/{ID}");
        let mut unshare = Command::new("unshare");
        let output = unshare
            .args(["--mount", "sh", "-c", &mount])
            .output()
            .ok()?;
        String::from_utf8(output.stdout).ok()
    })?;
    number.trim().parse().ok()
}

/// Opens a count of a thread's passes of a tracepoint.
fn open(tracepoint: u64, thread: i32) -> io::Result<OwnedFd> {
    const TRACEPOINT: u64 = 2;
    /// Also counts the threads that the thread spawns from now on.
    const INHERIT: u64 = 1 << 1;
    const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
    // The first version of the kernel's `perf_event_attr`: the kind and the length of the struct,
    // the tracepoint, three fields for samples, the flags, and two fields for other kinds.
    let mut attr = [0_u64; 8];
    attr[0] = TRACEPOINT | (size_of_val(&attr) as u64) << 32;
    attr[1] = tracepoint;
    attr[5] = INHERIT;
    let (any_processor, no_group) = (-1, -1);
    // SAFETY: the pointer is valid for a read of as many bytes as the struct says that it has.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attr.as_ptr(),
            thread,
            any_processor,
            no_group,
            CLOSE_ON_EXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just opened `fd`, and nothing else owns the descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

fn count(event: &OwnedFd) -> io::Result<u64> {
    let mut count = 0_u64;
    let (to, len) = ((&raw mut count).cast(), size_of::<u64>());
    // SAFETY: the pointer is valid for a write of `len` bytes.
    match unsafe { libc::read(event.as_raw_fd(), to, len) } {
        8 => Ok(count),
        _ => Err(io::Error::last_os_error()),
    }
}
