//! The functions of the C library for sockets and files, as simulated threads call them.
//!
//! On 64-bit Linux with glibc these files define the functions that std, socket2 and the driver
//! call, such as `connect` and `epoll_wait`, as `system` does for the clocks. The linker prefers
//! them to those of the shared library.
//!
//! 1. A simulated thread that makes a socket, an epoll or an eventfd gets a *simulated descriptor*,
//!    a number from [`FIRST`] on. Any other thread gets one of the system.
//! 2. A call with a simulated descriptor goes to the network or to a disk of the run. A call with
//!    another one goes to the system. So what a test harness prints is the system's.
//! 3. A descriptor belongs to the host of the thread that made it, as one of a process does. On
//!    another host, after a crash, and outside of a run it is not open, so a drop there does
//!    nothing. The numbers of two runs are the same.
//! 4. A call takes time, and another thread may run before it. If it has to wait, others run
//!    meanwhile.
//! 5. A call with a path goes to the disk that the host has there (`paths`). It goes to the system
//!    without a lapse of time if the host has none.
//! 6. A lock of std, too, is simulated where a thread has to wait for it: `futexes` tells how.
//!
//! Why here, and not at a seam of the driver: so the driver's own calls, those of std and those of
//! other crates are the code that runs in production, and a thread that blocks in a socket of std
//! is simulated, too.
mod addresses;
mod batches;
mod buffers;
mod directories;
mod file_functions;
mod files;
mod functions;
mod futexes;
mod lookups;
mod options;
mod paths;
mod polls;
mod refused;
mod segments;
mod sockets;
mod threads;
mod times;

use crate::{
    choice::{About, Dice},
    disk::{Opened, Volume},
    net::{Done, Errno, FileId, HostId, Moment, Network},
    system,
    world::World,
};
use libc::c_int;
use std::time::Duration;

/// The first simulated descriptor. The system gives the lowest number that is free, so it never
/// comes so far in a process that has fewer files open.
const FIRST: c_int = 1 << 16;

/// Keeps the functions in the program: nothing else refers to their file.
pub(crate) fn keep() {
    functions::keep();
    file_functions::keep_all();
    directories::keep();
    lookups::keep();
    refused::keep();
    threads::keep();
    times::keep();
}

/// A call of a simulated thread.
struct Call<'a> {
    world: &'a World,
}

impl Call<'_> {
    /// Runs `f` for a simulated thread. Returns `None` for another one.
    fn begin<R>(f: impl FnOnce(&Call<'_>) -> R) -> Option<R> {
        World::with_current(|world| {
            world.begin_call();
            f(&Call { world })
        })
    }

    /// Runs `f` for a simulated descriptor: with the call and the number of the descriptor, from 0.
    /// Returns `None` for a descriptor of the system.
    fn of<R>(fd: c_int, f: impl FnOnce(&Call<'_>, usize) -> Done<R>) -> Option<Done<R>> {
        let at = usize::try_from(fd.checked_sub(FIRST)?).ok()?;
        let done = Self::begin(|call| f(call, at));
        Some(done.unwrap_or(Err(Errno::BadDescriptor)))
    }

    fn net<R>(&self, f: impl FnOnce(&mut Network, HostId, Moment<'_>) -> R) -> R {
        self.world.with_network(f)
    }

    fn file(&self, at: usize) -> Done<FileId> {
        self.net(|net, host, _| net.file_of(host, at))
    }

    /// Repeats a call that may have to wait for a file, unless the file does not block.
    fn waiting<R>(
        &self,
        file: FileId,
        may_wait: bool,
        mut f: impl FnMut(&mut Network, HostId, Moment<'_>) -> Done<R>,
    ) -> Done<R> {
        loop {
            let done = self.net(&mut f);
            let waits = matches!(done, Err(Errno::Again)) && may_wait;
            if !waits || !self.net(|net, _, _| net.blocks(file)) {
                return done;
            }
            self.world.wait_for(file, None);
            if !self.net(|net, _, _| net.has_file(file)) {
                return Err(Errno::BadDescriptor);
            }
        }
    }

    /// Runs `f` for a simulated thread, in no time. Returns `None` for another one.
    fn look<R>(f: impl FnOnce(&Call<'_>) -> R) -> Option<R> {
        World::with_current(|world| f(&Call { world }))
    }

    /// Runs `f` with a disk, the date, and the choices.
    fn volume<R>(&self, disk: usize, f: impl FnOnce(&mut Volume, (Duration, &dyn Dice)) -> R) -> R {
        let date = system::date(self.world.time());
        let dice = self.world.dice(About::Disks);
        self.net(|net, _, _| f(net.disks.volume(disk), (date, &dice)))
    }

    /// Runs `f` with an open file, its disk, the date, and the choices.
    fn opened<R>(
        &self,
        file: FileId,
        f: impl FnOnce(&mut Opened, &mut Volume, (Duration, &dyn Dice)) -> Done<R>,
    ) -> Done<R> {
        let date = system::date(self.world.time());
        let dice = self.world.dice(About::Disks);
        self.net(|net, _, _| {
            let (opened, volume) = net.on_disk(file)?;
            f(opened, volume, (date, &dice))
        })
    }

    fn note(&self, what: &'static str, number: u64) {
        self.net(|net, host, _| net.note(host, what, number));
    }

    /// Notes the result of a call, or its error.
    fn noted(&self, what: &'static str, done: Done<u64>) -> Done<u64> {
        match done {
            Ok(number) => self.note(what, number),
            Err(Errno::Io) => self.note("disk error", 0),
            Err(Errno::NoSpace) => self.note("disk full", 0),
            Err(_) => {}
        }
        done
    }

    /// Waits for news of a file. Returns false if the time ran out.
    fn wait(&self, file: FileId, limit: Option<Duration>) -> bool {
        self.world.wait_for(file, limit)
    }
}

/// Returns the date, if a simulated thread calls this.
fn date_of_current() -> Option<Duration> {
    World::with_current(|world| system::date(world.time()))
}

/// Returns the descriptor that the program gets for one of a host.
fn descriptor(at: usize) -> i64 {
    at as i64 + i64::from(FIRST)
}

/// Returns the system's number of an error.
fn number_of(error: Errno) -> c_int {
    match error {
        Errno::Again => libc::EAGAIN,
        Errno::Already => libc::EALREADY,
        Errno::AddressInUse => libc::EADDRINUSE,
        Errno::AddressNotAvailable => libc::EADDRNOTAVAIL,
        Errno::BadDescriptor => libc::EBADF,
        Errno::Busy => libc::EBUSY,
        Errno::ConnectionRefused => libc::ECONNREFUSED,
        Errno::ConnectionReset => libc::ECONNRESET,
        Errno::CrossDevice => libc::EXDEV,
        Errno::DestinationRequired => libc::EDESTADDRREQ,
        Errno::DirectoryNotEmpty => libc::ENOTEMPTY,
        Errno::Exists => libc::EEXIST,
        Errno::FamilyNotSupported => libc::EAFNOSUPPORT,
        Errno::FileTooLarge => libc::EFBIG,
        Errno::InProgress => libc::EINPROGRESS,
        Errno::Invalid => libc::EINVAL,
        Errno::Io => libc::EIO,
        Errno::IsDirectory => libc::EISDIR,
        Errno::IsConnected => libc::EISCONN,
        Errno::Loop => libc::ELOOP,
        Errno::MessageSize => libc::EMSGSIZE,
        Errno::NameTooLong => libc::ENAMETOOLONG,
        Errno::NetworkUnreachable => libc::ENETUNREACH,
        Errno::NoDevice => libc::ENODEV,
        Errno::NoEntry => libc::ENOENT,
        Errno::NoProtocolOption => libc::ENOPROTOOPT,
        Errno::NoSeek => libc::ESPIPE,
        Errno::NoSpace => libc::ENOSPC,
        Errno::NotConnected => libc::ENOTCONN,
        Errno::NotDirectory => libc::ENOTDIR,
        Errno::NotPermitted => libc::EPERM,
        Errno::NotSocket => libc::ENOTSOCK,
        Errno::NotSupported => libc::EOPNOTSUPP,
        Errno::Pipe => libc::EPIPE,
        Errno::TimedOut => libc::ETIMEDOUT,
        Errno::TooManyFiles => libc::EMFILE,
    }
}

/// Returns what a function of C returns, and sets `errno` after an error.
fn answer(done: Done<i64>) -> i64 {
    done.unwrap_or_else(|error| {
        // SAFETY: the call takes no pointers.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: the pointer is that of this thread's `errno`.
        unsafe { errno.write(number_of(error)) };
        -1
    })
}
