//! Disks of hosts: what a crash leaves, and their errors.
#![cfg(all(
    selvedge_sim,
    target_os = "linux",
    target_env = "gnu",
    target_pointer_width = "64"
))]

use net_driver::time::sleep;
use selvedge_sim::{Disk, Sim, thread};
use std::{
    fs::{self, File},
    io::{self, Write},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

const MS: Duration = Duration::from_millis(1);

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

/// Of 40 seeds some lose the unsynced write, and some do not. None loses the synced one.
#[test]
fn unsynced_write_may_be_lost_at_a_crash() {
    let disk = Disk::new().lost_unsynced();
    let left = (0..40).map(|seed| {
        crash(
            seed,
            &disk,
            || {
                let mut file = File::create("/data/a")?;
                file.write_all(b"synced")?;
                file.sync_all()?;
                File::open("/data")?.sync_all()?;
                file.write_all(b", and more")
            },
            || read("/data/a").unwrap(),
        )
    });
    let left: Vec<_> = left.collect();
    assert!(left.iter().all(|bytes| bytes.starts_with(b"synced")));
    let whole = left.iter().filter(|bytes| bytes.ends_with(b"more")).count();
    assert!((1..40).contains(&whole), "{whole}");
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
