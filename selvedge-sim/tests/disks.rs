//! Disks of hosts: what a crash leaves, and their errors.
#![cfg(all(
    selvedge_sim,
    target_os = "linux",
    target_env = "gnu",
    target_pointer_width = "64"
))]

use net_driver::{net::AsyncFd, time::sleep};
use selvedge_executor::spawn_blocking;
use selvedge_sim::{Disk, Faults, Sim, explore, thread};
use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Write},
    os::{fd::AsRawFd, unix::fs::FileExt},
    ptr,
    sync::{Arc, Mutex},
    time::{Duration, Instant, SystemTime},
};
use task_io::{AsyncReadExt, AsyncWriteExt};

const MS: Duration = Duration::from_millis(1);

/// The number of seeds of a test.
const SEEDS: u64 = 60;

/// Runs `before` on a host, crashes it, and runs `after` on the disk that is left. Returns what
/// `after` has returned.
fn crash<T: Send + 'static>(
    seed: u64,
    disk: &Disk,
    before: fn() -> io::Result<()>,
    after: fn() -> T,
) -> T {
    let found = Arc::new(Mutex::new((false, None)));
    let place = found.clone();
    let host = move || {
        let place = place.clone();
        async move {
            let is_back = std::mem::replace(&mut place.lock().unwrap().0, true);
            if is_back {
                let found = after();
                place.lock().unwrap().1 = Some(found);
            } else {
                before().unwrap();
                std::future::pending::<()>().await;
            }
        }
    };
    let hosts = Sim::new(seed).hosts().client("db", 1, host);
    let hosts = hosts.disk("db", "/data", disk.clone());
    let hosts = hosts.client("other", 1, || sleep(2_000 * MS));
    let run = hosts.crash("db", 1_000 * MS..1_000 * MS, Some(MS)).run();
    run.unwrap();
    let found = found.lock().unwrap().1.take();
    found.unwrap()
}

fn read(path: &str) -> Option<Vec<u8>> {
    match fs::read(path) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
            None
        }
    }
}

#[test]
fn written_file_is_read_and_outlives_a_crash() {
    let left = crash(
        1,
        &Disk::new(),
        || {
            fs::create_dir_all("/data/a/b")?;
            fs::write("/data/a/b/c", "hello")?;
            assert_eq!(fs::read_to_string("/data/a/b/c")?, "hello");
            fs::rename("/data/a/b", "/data/d")
        },
        || read("/data/d/c"),
    );
    assert_eq!(left.unwrap(), b"hello");
}

/// Returns what is left after a crash, of all seeds.
fn all_left<T: Ord + Send + 'static>(
    disk: &Disk,
    before: fn() -> io::Result<()>,
    after: fn() -> T,
) -> BTreeSet<T> {
    (0..SEEDS)
        .map(|seed| crash(seed, disk, before, after))
        .collect()
}

fn sync_directory() -> io::Result<()> {
    File::open("/data")?.sync_all()
}

/// Makes a file whose bytes and name are durable.
fn write_durably(name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(name)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    sync_directory()
}

#[test]
fn unsynced_write_may_be_lost_at_a_crash() {
    let write = || {
        write_durably("/data/a", b"synced")?;
        let mut file = File::options().append(true).open("/data/a")?;
        file.write_all(b", and more")
    };
    let read = || read("/data/a").unwrap();
    let left = all_left(&Disk::new().lost_unsynced(), write, read);
    assert_eq!(
        left,
        [b"synced".to_vec(), b"synced, and more".to_vec()].into()
    );
    let left = all_left(&Disk::new(), write, read);
    assert_eq!(left, [b"synced, and more".to_vec()].into());
}

#[test]
fn sync_data_and_o_sync_make_writes_durable() {
    let write = || {
        use std::os::unix::fs::OpenOptionsExt;
        write_durably("/data/a", b"1")?;
        let mut file = File::options().append(true).open("/data/a")?;
        file.write_all(b"2")?;
        file.sync_data()?;
        let mut options = File::options();
        let mut file = options
            .append(true)
            .custom_flags(libc::O_DSYNC)
            .open("/data/a")?;
        file.write_all(b"3")?;
        file.set_len(9)?;
        file.sync_all()
    };
    let left = all_left(&Disk::new().torn_writes(), write, || read("/data/a"));
    assert_eq!(left, [Some(b"123\0\0\0\0\0\0".to_vec())].into());
}

/// The write begins within a sector, and covers four.
#[test]
fn torn_write_leaves_whole_sectors() {
    let write = || {
        write_durably("/data/a", &[1; 3_000])?;
        let file = File::options().write(true).open("/data/a")?;
        file.write_all_at(&[2; 1_800], 500)
    };
    let left = all_left(&Disk::new().torn_writes(), write, || {
        let bytes = read("/data/a").unwrap();
        assert_eq!(bytes.len(), 3_000);
        let sectors: Vec<_> = bytes
            .chunks(512)
            .enumerate()
            .map(|(number, sector)| {
                let from = number * 512;
                let is_new = sector.contains(&2);
                for (at, byte) in sector.iter().enumerate() {
                    let is_within = (500..2_300).contains(&(from + at));
                    assert_eq!(*byte == 2, is_new && is_within);
                }
                is_new
            })
            .collect();
        sectors
    });
    let counts: BTreeSet<_> = left
        .iter()
        .map(|sectors| sectors.iter().filter(|is_new| **is_new).count())
        .collect();
    assert!(counts.contains(&0) && counts.contains(&5), "{counts:?}");
    assert!(counts.len() > 3, "{counts:?}");
    let whole = all_left(&Disk::new().lost_unsynced(), write, || {
        read("/data/a")
            .unwrap()
            .iter()
            .filter(|byte| **byte == 2)
            .count()
    });
    assert_eq!(whole, [0, 1_800].into());
}

/// Each write changes a byte of the same sector, so the last ones are lost, not the first alone.
#[test]
fn writes_of_one_sector_are_lost_from_the_end() {
    let write = || {
        write_durably("/data/a", &[0; 5])?;
        let file = File::options().write(true).open("/data/a")?;
        (0..5).try_for_each(|at| file.write_all_at(&[1], at))
    };
    let left = all_left(&Disk::new().torn_writes(), write, || {
        read("/data/a").unwrap()
    });
    assert!(left.len() > 2, "{left:?}");
    for bytes in &left {
        assert!(bytes.is_sorted_by(|one, other| one >= other), "{left:?}");
    }
}

/// Each write is to a sector of its own.
#[test]
fn writes_of_several_sectors_are_lost_in_any_order() {
    let write = || {
        write_durably("/data/a", &[0; 2_048])?;
        let file = File::options().write(true).open("/data/a")?;
        (0..4).try_for_each(|at| file.write_all_at(&[1], at * 512))
    };
    let left = all_left(&Disk::new().lost_unsynced(), write, || {
        let bytes = read("/data/a").unwrap();
        bytes.iter().step_by(512).copied().collect::<Vec<_>>()
    });
    assert!(
        left.iter()
            .any(|kept| !kept.is_sorted_by(|one, other| one >= other)),
        "{left:?}"
    );
}

/// The length may be that of the whole write, with zeros in the place of what was lost.
#[test]
fn torn_append_may_leave_zeros() {
    let write = || {
        write_durably("/data/a", b"")?;
        let mut file = File::options().append(true).open("/data/a")?;
        file.write_all(&[7; 2_000])
    };
    let left = all_left(&Disk::new().torn_writes(), write, || {
        let bytes = read("/data/a").unwrap();
        (bytes.len(), bytes.iter().filter(|byte| **byte == 7).count())
    });
    assert!(
        left.iter()
            .any(|(len, sevens)| *len == 2_000 && *sevens < 2_000),
        "{left:?}"
    );
    assert!(
        left.iter()
            .any(|(len, sevens)| *len < 2_000 && len == sevens && *len > 0),
        "{left:?}"
    );
}

fn replace() -> io::Result<()> {
    write_durably("/data/a", b"old")?;
    let mut file = File::create("/data/new")?;
    file.write_all(b"new")?;
    file.sync_all()?;
    fs::rename("/data/new", "/data/a")
}

#[test]
fn rename_leaves_the_old_file_or_the_new_one() {
    for disk in [
        Disk::new().torn_writes(),
        Disk::new().torn_writes().ordered_metadata(),
    ] {
        let left = all_left(&disk, replace, || read("/data/a").unwrap());
        assert_eq!(left, [b"new".to_vec(), b"old".to_vec()].into());
        let synced = || {
            replace()?;
            sync_directory()
        };
        let left = all_left(&disk, synced, || (read("/data/a"), read("/data/new")));
        assert_eq!(left, [(Some(b"new".to_vec()), None)].into());
    }
}

/// The new directory, and the names in it, are not durable. The file that was moved is.
#[test]
fn moved_file_keeps_a_name_at_a_crash() {
    let write = || {
        write_durably("/data/a", b"kept")?;
        fs::create_dir_all("/data/x/y")?;
        fs::rename("/data/a", "/data/x/y/a")?;
        fs::rename("/data/x/y", "/data/z")
    };
    for disk in [
        Disk::new().lost_unsynced(),
        Disk::new().lost_unsynced().ordered_metadata(),
    ] {
        let after = || {
            let names = ["/data/a", "/data/x/y/a", "/data/z/a"];
            let left = names.map(|name| read(name).is_some());
            let count = left.iter().filter(|is_there| **is_there).count();
            assert_eq!(count, 1, "{left:?}");
            left
        };
        let left = (0..400).map(|seed| crash(seed, &disk, write, after));
        let left: BTreeSet<_> = left.collect();
        assert_eq!(left.len(), 3, "{left:?}");
    }
}

/// The content is durable, but nothing leads to it.
#[test]
fn new_file_needs_a_sync_of_its_directory() {
    let write = || {
        let mut file = File::create("/data/a")?;
        file.write_all(b"a")?;
        file.sync_all()
    };
    let left = all_left(&Disk::new().lost_unsynced(), write, || read("/data/a"));
    assert_eq!(left, [None, Some(b"a".to_vec())].into());
    let ordered = Disk::new().lost_unsynced().ordered_metadata();
    let left = all_left(&ordered, write, || read("/data/a"));
    assert_eq!(left, [Some(b"a".to_vec())].into());
}

#[test]
fn new_directory_needs_a_sync_of_the_one_above() {
    let write = || {
        fs::create_dir("/data/dir")?;
        let mut file = File::create("/data/dir/a")?;
        file.write_all(b"a")?;
        file.sync_all()?;
        File::open("/data/dir")?.sync_all()
    };
    let left = all_left(&Disk::new().lost_unsynced(), write, || read("/data/dir/a"));
    assert_eq!(left, [None, Some(b"a".to_vec())].into());
}

#[test]
fn removed_name_may_come_back_after_a_crash() {
    let write = || {
        write_durably("/data/a", b"a")?;
        fs::remove_file("/data/a")
    };
    let left = all_left(&Disk::new().lost_unsynced(), write, || read("/data/a"));
    assert_eq!(left, [None, Some(b"a".to_vec())].into());
}

/// The names are `0` to `4`, in the order of their creation.
#[test]
fn ordered_names_are_lost_from_the_end() {
    let write = || (0..5).try_for_each(|name| File::create(format!("/data/{name}")).map(drop));
    let names = || {
        let entries = fs::read_dir("/data").unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect::<String>()
    };
    let left = all_left(
        &Disk::new().lost_unsynced().ordered_metadata(),
        write,
        names,
    );
    assert!(left.len() > 2, "{left:?}");
    assert!(
        left.iter().all(|names| "01234".starts_with(names.as_str())),
        "{left:?}"
    );
    let left = all_left(&Disk::new().lost_unsynced(), write, names);
    assert!(
        left.iter()
            .any(|names| !"01234".starts_with(names.as_str())),
        "{left:?}"
    );
}

/// A thread syncs when the host crashes.
#[test]
fn crash_during_a_sync_may_lose_what_it_syncs() {
    let disk = Disk::new()
        .lost_unsynced()
        .fsync_time(2_000 * MS..3_000 * MS);
    let write = || {
        let file = File::create("/data/a")?;
        thread::spawn(move || {
            (&file).write_all(b"a").unwrap();
            file.sync_all().unwrap();
            unreachable!("the host has crashed");
        });
        Ok(())
    };
    let left = all_left(&disk.ordered_metadata(), write, || {
        read("/data/a").unwrap_or_default()
    });
    assert_eq!(left, [b"".to_vec(), b"a".to_vec()].into());
}

/// The second write comes while the sync of the first one runs.
#[test]
fn write_during_a_sync_is_not_made_durable_by_it() {
    let disk = Disk::new().lost_unsynced().fsync_time(100 * MS..101 * MS);
    let write = || {
        write_durably("/data/a", b"")?;
        let file = Arc::new(File::options().append(true).open("/data/a")?);
        (&*file).write_all(b"1")?;
        let syncs = file.clone();
        let sync = thread::spawn(move || syncs.sync_all().unwrap());
        thread::sleep(50 * MS);
        (&*file).write_all(b"2")?;
        sync.join().unwrap();
        Ok(())
    };
    let left = all_left(&disk, write, || read("/data/a").unwrap());
    assert_eq!(left, [b"1".to_vec(), b"12".to_vec()].into());
}

/// A failed sync has dropped the write, so the one after it has nothing to do.
#[test]
fn write_behind_a_failed_sync_may_be_lost_after_the_next() {
    let write = || {
        let mut file = loop {
            match write_durably("/data/a", b"old") {
                Ok(()) => break File::options().append(true).open("/data/a")?,
                Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EIO)),
            }
        };
        // A write fails without an effect. A failed sync ends the loop.
        loop {
            while file.write_all(b"+").is_err() {}
            if file.sync_all().is_err() {
                break;
            }
        }
        while file.sync_all().is_err() {}
        // The cache has the last byte still.
        let len = file.metadata()?.len() as u8;
        while file.write_all_at(&[len], 0).is_err() {}
        Ok(())
    };
    let left = all_left(&Disk::new().lost_unsynced().errors(0.3), write, || {
        loop {
            if let Ok(bytes) = fs::read("/data/a") {
                break bytes.ends_with(b"+");
            }
        }
    });
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn errors_of_a_disk_are_eio() {
    let disk = Disk::new().errors(0.5);
    let run = Sim::new(1).disk("/data", disk).run_main(|| {
        let mut counts = [0; 3];
        let file = File::options()
            .create(true)
            .read(true)
            .append(true)
            .open("/data/a");
        let file = file.unwrap();
        for _ in 0..100 {
            let results = [
                (&file).write(b"a").map(drop),
                file.read_at(&mut [0], 0).map(drop),
                file.sync_all(),
            ];
            for (count, result) in counts.iter_mut().zip(results) {
                if let Err(error) = result {
                    assert_eq!(error.raw_os_error(), Some(libc::EIO));
                    *count += 1;
                }
            }
        }
        assert!(
            counts.iter().all(|count| (20..80).contains(count)),
            "{counts:?}"
        );
        let written = file.metadata().unwrap().len();
        assert_eq!(written, 100 - counts[0]);
    });
    run.unwrap();
}

#[test]
fn full_disk_takes_a_part_and_then_fails() {
    let disk = Disk::new().capacity(3 * 4_096).torn_writes();
    let run = Sim::new(1).disk("/data", disk).run_main(|| {
        let is_full = |result: io::Result<usize>| {
            assert_eq!(result.unwrap_err().kind(), io::ErrorKind::StorageFull);
        };
        let mut file = File::create("/data/a").unwrap();
        assert_eq!(file.write(&[1; 5_000]).unwrap(), 5_000);
        assert_eq!(file.write(&[2; 50_000]).unwrap(), 3 * 4_096 - 5_000);
        is_full(file.write(&[3]));
        assert_eq!(file.metadata().unwrap().len(), 3 * 4_096);
        // There is no room for a page of another file, but for the bytes of one that is there.
        let mut other = File::create("/data/b").unwrap();
        is_full(other.write(&[1]));
        assert_eq!(file.write_at(&[4; 100], 4_000).unwrap(), 100);
        file.set_len(4_096).unwrap();
        assert_eq!(other.write(&[1]).unwrap(), 1);
        // A hole takes no room.
        other.set_len(1 << 30).unwrap();
        assert_eq!(other.write_at(&[1], 1 << 29).unwrap(), 1);
        is_full(other.write_at(&[1], 1 << 28));
        // A file without a name has its room until it is closed.
        fs::remove_file("/data/a").unwrap();
        is_full(other.write_at(&[1], 1 << 28));
        drop(file);
        assert_eq!(other.write_at(&[1], 1 << 28).unwrap(), 1);
    });
    run.unwrap();
}

/// An open file without a name is gone after a crash, and so is its room.
#[test]
fn crash_frees_the_room_of_files_without_a_name() {
    for disk in [Disk::new(), Disk::new().lost_unsynced()] {
        let left = crash(
            1,
            &disk.capacity(2 * 4_096),
            || {
                let mut file = File::create("/data/a")?;
                file.write_all(&[1; 8_192])?;
                fs::remove_file("/data/a")?;
                sync_directory()?;
                std::mem::forget(file);
                Ok(())
            },
            || fs::write("/data/b", [2; 8_192]).is_ok(),
        );
        assert!(left);
    }
}

/// The choices of the run are all the simplest ones.
#[test]
fn simplest_choices_lose_nothing() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = seen.clone();
    let host = move || {
        let notes = notes.clone();
        async move {
            let is_back = fs::exists("/data/a").unwrap();
            notes.lock().unwrap().push(read("/data/a"));
            if !is_back {
                fs::write("/data/a", [7; 5_000]).unwrap();
                std::future::pending::<()>().await;
            }
        }
    };
    let disk = Disk::new().torn_writes().errors(0.5);
    let hosts = Sim::new(1).choices(Vec::new()).hosts();
    let hosts = hosts.client("db", 1, host).disk("db", "/data", disk);
    hosts.crash("db", 50 * MS..60 * MS, Some(MS)).run().unwrap();
    assert!(*seen.lock().unwrap() == [None, Some(vec![7; 5_000])]);
}

/// The order of threads and the lengths of syncs decide when the two writes are. Without them the
/// crash of the seed comes at another moment, so it has to be moved.
#[test]
fn crash_that_must_hit_a_moment_is_shrunk_to_few_choices() {
    const FILES: [&str; 2] = ["/data/one", "/data/other"];
    let explored = explore(0..200, |sim: Sim| {
        let server = || async {
            let lens = FILES.map(|name| fs::read(name).map_or(0, |bytes| bytes.len()));
            assert_eq!(lens[0], lens[1], "the crash came between the writes");
            loop {
                for name in FILES {
                    let mut file = File::options()
                        .create(true)
                        .append(true)
                        .open(name)
                        .unwrap();
                    file.write_all(b"x").unwrap();
                    file.sync_all().unwrap();
                }
                sync_directory().unwrap();
                sleep(30 * MS).await;
            }
        };
        let client = || async {
            let sleeps = (1..20).map(|count| selvedge_executor::spawn(sleep(20 * count * MS)));
            for task in sleeps.collect::<Vec<_>>() {
                task.await.unwrap();
            }
        };
        let hosts = sim.hosts().server("db", 2, server).client("web", 2, client);
        let disk = Disk::new().fsync_time(MS..5 * MS);
        let faults = Faults::new().crashes(1).during(200 * MS).longest(50 * MS);
        hosts.disk("db", "/data", disk).faults(faults).run()
    });
    let found = explored.found.expect("a seed hits the moment");
    assert!(found.choices_before > 100, "{found}");
    // A crash happens, and when, and how long the host is down.
    assert!(found.count_choices() <= Some(3), "{found}");
}

#[test]
fn sync_takes_virtual_time_in_which_others_run() {
    let run = Sim::new(3)
        .disk("/data", Disk::new().fsync_time(50 * MS..60 * MS))
        .run_main(|| {
            let begun = Instant::now();
            let other = thread::spawn(Instant::now);
            File::create("/data/a").unwrap().sync_all().unwrap();
            assert!(begun.elapsed() >= 50 * MS);
            assert!(other.join().unwrap() - begun < 40 * MS);
        });
    run.unwrap();
}

#[test]
fn files_of_blocking_fs_are_simulated() {
    let explored = explore(0..100, |sim| {
        let disk = Disk::new().fsync_time(MS..5 * MS).access_time(MS / 10..MS);
        sim.disk("/data", disk).run(|| async {
            let mut file = blocking_fs::File::create("/data/a").await.unwrap();
            let sent: Vec<u8> = (0..100_000_u32).map(|n| n as u8).collect();
            for part in sent.chunks(7_000) {
                file.write_all(part).await.unwrap();
            }
            file.sync_all().await.unwrap();
            let mut back = Vec::new();
            let mut file = blocking_fs::File::open("/data/a").await.unwrap();
            file.read_to_end(&mut back).await.unwrap();
            assert!(back == sent);
            blocking_fs::create_dir_all("/data/b/c").await.unwrap();
            blocking_fs::rename("/data/a", "/data/b/a").await.unwrap();
            let mut entries = blocking_fs::read_dir("/data/b").await.unwrap();
            let mut names = Vec::new();
            while let Some(entry) = entries.next_entry().await.unwrap() {
                names.push(entry.file_name().into_string().unwrap());
            }
            names.sort();
            assert_eq!(names, ["a", "c"]);
            let copied = blocking_fs::copy("/data/b/a", "/data/d").await.unwrap();
            assert_eq!(copied, 100_000);
            blocking_fs::remove_dir_all("/data/b").await.unwrap();
            assert!(blocking_fs::metadata("/data/b").await.is_err());
        })
    });
    assert!(explored.found.is_none(), "{}", explored.found.unwrap());
    assert!(!fs::exists("/data").unwrap());
}

#[test]
fn other_paths_and_threads_have_files_of_the_system() {
    let folder = std::env::temp_dir().join(format!("selvedge-disks-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let at = folder.join("file");
    let path = at.clone();
    let run = Sim::new(1).disk("/data", Disk::new()).run_main(move || {
        fs::write(&path, "real").unwrap();
        let real = std::thread::spawn(|| fs::exists("/data").unwrap());
        assert!(!real.join().unwrap());
        assert!(fs::exists("//data/.//").unwrap());
        assert!(!fs::exists("/database").unwrap());
        // The mount point is the root of its disk.
        fs::write("/data/../x", "x").unwrap();
        assert_eq!(read("/data/x").unwrap(), b"x");
        for result in [
            fs::rename(&path, "/data/file"),
            fs::rename("/data/x", &path),
        ] {
            assert_eq!(result.unwrap_err().kind(), io::ErrorKind::CrossesDevices);
        }
        assert_eq!(fs::copy(&path, "/data/copy").unwrap(), 4);
        assert_eq!(fs::copy("/data/copy", &path).unwrap(), 4);
        assert!(fs::remove_dir("/data").is_err());
    });
    run.unwrap();
    assert_eq!(fs::read_to_string(&at).unwrap(), "real");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn each_host_has_its_own_disk() {
    let write = |text: &'static str| {
        move || async move {
            assert!(!fs::exists("/data/a").unwrap());
            fs::write("/data/a", text).unwrap();
            sleep(10 * MS).await;
            assert_eq!(fs::read_to_string("/data/a").unwrap(), text);
        }
    };
    let hosts = Sim::new(1).hosts();
    let hosts = hosts
        .client("one", 1, write("one"))
        .client("other", 1, write("other"));
    let hosts = hosts.disk("one", "/data", Disk::new());
    let hosts = hosts.disk("other", "/data", Disk::new());
    hosts.run().unwrap();
}

/// A map cannot be simulated, and a file is always ready.
#[test]
fn map_and_readiness_of_a_file_are_refused() {
    let run = Sim::new(1).disk("/data", Disk::new()).run(|| async {
        fs::write("/data/a", "hello").unwrap();
        let file = File::open("/data/a").unwrap();
        let (read, shared, fd) = (libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd());
        // SAFETY: the call makes a new map, which nothing uses.
        let map = unsafe { libc::mmap(ptr::null_mut(), 5, read, shared, fd, 0) };
        assert_eq!(map, libc::MAP_FAILED);
        assert_eq!(
            io::Error::last_os_error().raw_os_error(),
            Some(libc::ENODEV)
        );
        let error = AsyncFd::new(file).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    });
    run.unwrap();
}

#[test]
fn times_of_a_file_are_virtual() {
    let run = Sim::new(1).disk("/data", Disk::new()).run_main(|| {
        let before = SystemTime::now();
        fs::write("/data/a", "hello").unwrap();
        thread::sleep(100 * MS);
        let of = fs::metadata("/data/a").unwrap();
        let (born, written) = (of.created().unwrap(), of.modified().unwrap());
        assert!(before <= born && born <= written);
        assert!(SystemTime::now().duration_since(written).unwrap() >= 100 * MS);
        let file = File::options().write(true).open("/data/a").unwrap();
        let set = before - Duration::from_secs(3_600);
        file.set_modified(set).unwrap();
        assert_eq!(file.metadata().unwrap().modified().unwrap(), set);
    });
    run.unwrap();
}

/// The lock is that of an open file: the second thread waits for the drop of the first one's.
#[test]
fn lock_of_a_file_is_waited_for() {
    let run = Sim::new(1).disk("/data", Disk::new()).run_main(|| {
        let file = File::create("/data/lock").unwrap();
        let lock = |file: &File, how| {
            // SAFETY: the call takes no pointers.
            assert_eq!(unsafe { libc::flock(file.as_raw_fd(), how) }, 0);
        };
        lock(&file, libc::LOCK_EX);
        let waits = thread::spawn(move || {
            let file = File::open("/data/lock").unwrap();
            lock(&file, libc::LOCK_SH);
            Instant::now()
        });
        thread::sleep(100 * MS);
        let ended = Instant::now();
        drop(file);
        assert!(waits.join().unwrap() >= ended);
    });
    run.unwrap();
}

/// A lock ends with its host, and so does an open file.
#[test]
fn lock_and_descriptor_end_at_a_crash() {
    let kept = Arc::new(Mutex::new(Vec::<File>::new()));
    let host = move || {
        let kept = kept.clone();
        async move {
            let file = File::create("/data/lock").unwrap();
            // SAFETY: the call takes no pointers.
            let locked = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
            assert_eq!(locked, 0);
            let old = kept.lock().unwrap().pop();
            let Some(old) = old else {
                kept.lock().unwrap().push(file);
                return std::future::pending().await;
            };
            let error = (&old).write(b"a").unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EBADF));
            drop(old);
            assert_eq!((&file).write(b"a").unwrap(), 1);
        }
    };
    let hosts = Sim::new(1).hosts().client("db", 1, host);
    let hosts = hosts.disk("db", "/data", Disk::new());
    hosts.crash("db", 50 * MS..50 * MS, Some(MS)).run().unwrap();
}

/// Tasks wait for syncs in blocking closures, while others run.
#[test]
fn syncs_in_the_pool_do_not_stop_the_workers() {
    let explored = explore(0..50, |sim| {
        let disk = Disk::new().fsync_time(5 * MS..100 * MS).torn_writes();
        sim.disk("/data", disk).run(|| async {
            let syncs = (0..4).map(|name| {
                spawn_blocking(move || write_durably(&format!("/data/{name}"), b"a").unwrap())
            });
            let syncs: Vec<_> = syncs.collect();
            for _ in 0..20 {
                let begun = Instant::now();
                sleep(MS).await;
                assert!(begun.elapsed() < 25 * MS, "{:?}", begun.elapsed());
            }
            for sync in syncs {
                sync.await.unwrap();
            }
        })
    });
    assert!(explored.found.is_none(), "{}", explored.found.unwrap());
}

/// The order of the entries is a choice, but an entry is listed once.
#[test]
fn order_of_a_directory_depends_on_the_seed() {
    let orders = (0..20).map(|seed| {
        let (sender, receiver) = std::sync::mpsc::channel();
        let run = Sim::new(seed).disk("/data", Disk::new()).run_main(move || {
            for name in ["a", "b", "c"] {
                File::create(format!("/data/{name}")).unwrap();
            }
            let entries = fs::read_dir("/data").unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            sender.send(names.collect::<Vec<_>>()).unwrap();
        });
        run.unwrap();
        receiver.recv().unwrap()
    });
    let orders: BTreeSet<_> = orders.collect();
    assert!(orders.len() > 3, "{orders:?}");
    for mut names in orders {
        names.sort();
        assert_eq!(names, ["a", "b", "c"]);
    }
}

#[test]
#[should_panic(expected = "a disk cannot be at /")]
fn disk_at_the_root_is_refused() {
    let _ = Sim::new(1).disk("/", Disk::new());
}

#[test]
#[should_panic(expected = "there is no host db")]
fn disk_of_an_unknown_host_is_refused() {
    let _ = Sim::new(1).hosts().disk("db", "/data", Disk::new());
}
