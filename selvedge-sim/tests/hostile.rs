//! Programs with things that cannot be simulated: each fails, or the report says so. Nothing
//! reaches the system in silence.
#![cfg(all(
    selvedge_sim,
    target_os = "linux",
    target_env = "gnu",
    target_pointer_width = "64"
))]

use selvedge_sim::{Disk, Sim, thread};
use std::{
    collections::BTreeSet,
    ffi::CString,
    fs::{self, File},
    io::{self, ErrorKind, Read, Seek, SeekFrom, Write},
    net::TcpStream,
    os::{
        fd::AsRawFd,
        unix::fs::{FileExt, OpenOptionsExt},
    },
    process::Command,
    ptr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant, SystemTime},
};

/// Runs a program whose disk is at `/data`.
fn run_with_disk(program: fn()) {
    let sim = Sim::new(1).disk("/data", Disk::new().lost_unsynced());
    sim.run_main(program).unwrap();
}

/// Returns the error of a call that has failed with -1, or null.
fn error_of(result: i64) -> Option<i32> {
    let failed = matches!(result, -1 | 0);
    failed.then(|| io::Error::last_os_error().raw_os_error().unwrap())
}

#[test]
fn sleep_of_std_takes_virtual_time() {
    let begun = Instant::now();
    Sim::new(1)
        .run(|| async {
            let (begun, date) = (Instant::now(), SystemTime::now());
            let sleep = || std::thread::sleep(Duration::from_secs(100));
            selvedge_executor::spawn_blocking(sleep).await.unwrap();
            assert!((100..101).contains(&begun.elapsed().as_secs()));
            assert!((100..101).contains(&date.elapsed().unwrap().as_secs()));
        })
        .unwrap();
    assert!(begun.elapsed() < Duration::from_secs(100));
}

#[test]
fn loop_that_yields_in_std_lets_others_run() {
    let run = Sim::new(1).run_main(|| {
        let is_done = Arc::new(AtomicBool::new(false));
        let flag = is_done.clone();
        // Ordering: Relaxed, as it is only a flag.
        let other = thread::spawn(move || flag.store(true, Relaxed));
        // Ordering: Relaxed, as above.
        while !is_done.load(Relaxed) {
            std::thread::yield_now();
        }
        other.join().unwrap();
    });
    run.unwrap();
}

#[test]
fn older_clocks_of_c_show_the_date_of_the_run() {
    let run = Sim::new(1).run_main(|| {
        let date = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let date = date.unwrap().as_secs() as i64;
        // SAFETY: null is allowed.
        assert_eq!(unsafe { libc::time(ptr::null_mut()) }, date);
        let mut time = libc::timeval {
            tv_sec: 0,
            tv_usec: 0,
        };
        // SAFETY: the pointer is valid.
        unsafe { libc::gettimeofday(&mut time, ptr::null_mut()) };
        assert_eq!(time.tv_sec, date);
    });
    run.unwrap();
}

/// Each of these calls would reach a file of the system.
#[test]
fn call_that_no_disk_has_is_refused_there() {
    run_with_disk(|| {
        fs::write("/data/file", "text").unwrap();
        let file = CString::new("/data/file").unwrap();
        let path = file.as_ptr();
        let mode = c"r".as_ptr();
        let room = &mut [0_u8; 256];
        let room = room.as_mut_ptr();
        let refused = [
            // SAFETY: the arguments are texts, or buffers with room.
            unsafe { libc::chdir(path) }.into(),
            // SAFETY: as above.
            unsafe { libc::statvfs(path, room.cast()) }.into(),
            // SAFETY: as above.
            unsafe { libc::statfs(path, room.cast()) }.into(),
            // SAFETY: as above.
            unsafe { libc::mkfifo(path, 0o600) }.into(),
            // SAFETY: as above.
            unsafe { libc::remove(path) }.into(),
            // SAFETY: as above.
            unsafe { libc::getxattr(path, mode, room.cast(), 256) } as i64,
            // SAFETY: as above.
            unsafe { libc::fopen(path, mode) }.addr() as i64,
            // SAFETY: as above.
            unsafe { libc::inotify_add_watch(3, path, libc::IN_MODIFY) }.into(),
            // SAFETY: as above.
            unsafe { libc::syscall(libc::SYS_openat2, libc::AT_FDCWD, path, room, 24) },
            // SAFETY: as above.
            unsafe { libc::syscall(libc::SYS_mkdirat, libc::AT_FDCWD, path, 0o700) },
            // SAFETY: as above.
            unsafe { libc::syscall(libc::SYS_renameat, -100, mode, -100, path) },
        ];
        assert_eq!(error_of(*refused.last().unwrap()), Some(libc::EOPNOTSUPP));
        assert!(
            refused.iter().all(|result| matches!(result, -1 | 0)),
            "{refused:?}"
        );
        assert_eq!(fs::read_to_string("/data/file").unwrap(), "text");
    });
}

#[test]
fn call_with_a_path_of_the_system_goes_there() {
    run_with_disk(|| {
        let room = &mut [0_u8; 256];
        // SAFETY: the path is a text, and the buffer has room.
        let result = unsafe { libc::statvfs(c"/".as_ptr(), room.as_mut_ptr().cast()) };
        assert_eq!(result, 0);
        // SAFETY: as above.
        let stream = unsafe { libc::fopen(c"/dev/null".as_ptr(), c"r".as_ptr()) };
        assert!(!stream.is_null());
        // SAFETY: the stream is open.
        unsafe { libc::fclose(stream) };
        // SAFETY: the call takes null.
        assert_eq!(unsafe { libc::chdir(ptr::null()) }, -1);
        assert_eq!(error_of(-1), Some(libc::EFAULT));
    });
}

#[test]
fn ring_of_io_uring_is_refused() {
    let run = Sim::new(1).run_main(|| {
        let room = &mut [0_u8; 256];
        // SAFETY: the buffer has room for the parameters.
        let ring = unsafe { libc::syscall(libc::SYS_io_uring_setup, 8, room.as_mut_ptr()) };
        assert_eq!(error_of(ring), Some(libc::EOPNOTSUPP));
    });
    run.unwrap();
}

#[test]
fn descriptor_of_the_system_takes_no_simulated_ones_place() {
    run_with_disk(|| {
        let simulated = File::create("/data/file").unwrap();
        let of_system = File::open("/dev/null").unwrap();
        let (one, other) = (simulated.as_raw_fd(), of_system.as_raw_fd());
        for (from, to) in [(one, other), (other, one), (one, one)] {
            // SAFETY: the call takes no pointers, and fails.
            assert_eq!(unsafe { libc::dup2(from, to) }, -1);
            assert_eq!(error_of(-1), Some(libc::EOPNOTSUPP));
            // SAFETY: as above.
            assert_eq!(unsafe { libc::dup3(from, to, libc::O_CLOEXEC) }, -1);
        }
        (&simulated).write_all(b"text").unwrap();
        assert_eq!(fs::read("/data/file").unwrap(), b"text");
    });
}

#[test]
fn child_process_gets_no_simulated_descriptor() {
    run_with_disk(|| {
        fs::write("/data/file", "text").unwrap();
        let file = File::open("/data/file").unwrap();
        let child = Command::new("cat").stdin(file).spawn();
        assert_eq!(child.unwrap_err().raw_os_error(), Some(libc::EBADF));
    });
}

#[test]
fn thread_of_the_system_is_counted_and_gets_no_socket() {
    let run = Sim::new(1).run_main(|| {
        let connect = || TcpStream::connect("127.0.0.1:9").unwrap_err().kind();
        let failed = std::thread::spawn(connect).join().unwrap();
        assert_eq!(failed, ErrorKind::PermissionDenied);
        let nested = move || std::thread::spawn(connect).join().unwrap();
        let failed = std::thread::spawn(nested).join().unwrap();
        assert_eq!(failed, ErrorKind::PermissionDenied);
    });
    assert!(run.failure().is_none(), "{run}");
    assert_eq!(run.stats().system_threads, 2);
    let words = "the program has started 2 threads of the system";
    assert!(run.to_string().contains(words), "{run}");
    // A thread of the test itself has sockets of the system.
    let connect = || TcpStream::connect("127.0.0.1:9").map(drop);
    let failed = std::thread::spawn(connect).join().unwrap().unwrap_err();
    assert_ne!(failed.kind(), ErrorKind::PermissionDenied);
}

#[test]
fn copies_between_disks_and_the_system_have_all_bytes() {
    run_with_disk(|| {
        let bytes: Vec<u8> = (0..100_000_u32).map(|number| number as u8).collect();
        let outside = std::env::temp_dir().join(format!("selvedge-sim-{}", std::process::id()));
        fs::write("/data/one", &bytes).unwrap();
        fs::copy("/data/one", "/data/other").unwrap();
        fs::copy("/data/other", &outside).unwrap();
        fs::copy(&outside, "/data/third").unwrap();
        fs::remove_file(&outside).unwrap();
        assert!(fs::read("/data/third").unwrap() == bytes);
        let mut from = File::open("/data/third").unwrap();
        let mut to = File::create("/data/last").unwrap();
        io::copy(&mut from, &mut to).unwrap();
        assert!(fs::read("/data/last").unwrap() == bytes);
    });
}

#[test]
fn sparse_file_has_huge_offsets() {
    run_with_disk(|| {
        let options = File::options().read(true).write(true).create(true).clone();
        let mut file = options.open("/data/sparse").unwrap();
        let end = (1 << 44) - 4096;
        file.write_all_at(b"end", end - 3).unwrap();
        assert_eq!(file.metadata().unwrap().len(), end);
        assert_eq!(file.seek(SeekFrom::End(-4)).unwrap(), end - 4);
        let mut text = Vec::new();
        file.read_to_end(&mut text).unwrap();
        assert_eq!(text, b"\0end");
        for at in [end, 1 << 44, i64::MAX as u64] {
            let error = file.write_at(b"x", at).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EFBIG), "{at}");
        }
        assert_eq!(file.read_at(&mut [0], i64::MAX as u64).unwrap(), 0);
        file.sync_all().unwrap();
        file.set_len(1 << 43).unwrap();
        file.set_len(0).unwrap();
        file.sync_all().unwrap();
        assert_eq!(file.metadata().unwrap().len(), 0);
    });
}

#[test]
fn large_file_is_written_read_and_synced() {
    run_with_disk(|| {
        let part: Vec<u8> = (0..1 << 20).map(|number| (number / 7) as u8).collect();
        let mut file = File::create("/data/large").unwrap();
        for _ in 0..64 {
            file.write_all(&part).unwrap();
        }
        file.sync_all().unwrap();
        let mut file = File::open("/data/large").unwrap();
        let mut read = vec![0; part.len()];
        for _ in 0..64 {
            file.read_exact(&mut read).unwrap();
            assert!(read == part);
        }
    });
}

#[test]
fn listing_during_renames_has_each_file_once() {
    run_with_disk(|| {
        for number in 0..50 {
            File::create(format!("/data/old-{number}")).unwrap();
        }
        let mut seen = BTreeSet::new();
        for entry in fs::read_dir("/data").unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let (_, number) = name.split_once('-').unwrap();
            assert!(seen.insert(number.to_owned()), "{name} comes twice");
            let _ = fs::rename(format!("/data/old-{number}"), format!("/data/new-{number}"));
        }
        assert_eq!(seen.len(), 50);
    });
}

#[test]
fn direct_access_to_a_disk_is_refused() {
    run_with_disk(|| {
        let mut options = File::options();
        options
            .write(true)
            .create(true)
            .custom_flags(libc::O_DIRECT);
        let error = options.open("/data/file").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    });
}

#[test]
fn locks_of_two_hosts_do_not_meet() {
    let lock = || async {
        let file = File::create("/data/lock").unwrap();
        let exclusive = libc::LOCK_EX | libc::LOCK_NB;
        // SAFETY: the call takes no pointers.
        assert_eq!(unsafe { libc::flock(file.as_raw_fd(), exclusive) }, 0);
        net_driver::time::sleep(Duration::from_millis(100)).await;
    };
    let hosts = Sim::new(1).hosts().client("one", 1, lock);
    let hosts = hosts.client("other", 1, lock);
    let hosts = hosts.disk("one", "/data", Disk::new());
    hosts.disk("other", "/data", Disk::new()).run().unwrap();
}
