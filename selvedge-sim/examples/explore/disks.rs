//! Programs whose data is on the disk of a host that crashes.
use net_driver::time::sleep;
use selvedge_executor::spawn_blocking;
use selvedge_sim::{Disk, Run, Sim, random_below};
use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, ErrorKind, Read, Seek, SeekFrom, Write},
    ops::Range,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use task_io::{AsyncReadExt, AsyncWriteExt};

const MS: Duration = Duration::from_millis(1);

fn ms(range: Range<u32>) -> Range<Duration> {
    MS * range.start..MS * range.end
}

/// The knowledge of a store's users, which no crash of the store takes from them.
#[derive(Default)]
struct Known<T>(Arc<Mutex<T>>);

impl<T> Clone for Known<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Known<T> {
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn on_pool<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> T {
    spawn_blocking(f).await.unwrap()
}

fn sync_directory() -> io::Result<()> {
    File::open("/data")?.sync_all()
}

/// Repeats a call that fails with `EIO`.
fn until_read<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.raw_os_error() == Some(libc::EIO) => {}
            done => return done,
        }
    }
}

/// FNV-1a, by Fowler, Noll and Vo.
fn checksum(bytes: &[u8]) -> u64 {
    let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, add)
}

/// A file of records. Each is its number, the length of its payload, the payload, and then the
/// commit: the checksum of all that.
struct Log {
    file: File,
    len: u64,
    numbers: Vec<u64>,
}

const HEADER: usize = 16;

/// Returns the number of the first record, and its length with the commit, if it is whole.
fn parse(bytes: &[u8]) -> Option<(u64, usize)> {
    let number = |at: usize| {
        let bytes = bytes.get(at..at + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    let len = usize::try_from(number(8)?)
        .ok()
        .filter(|len| *len < 1 << 20)?;
    let commit = number(HEADER + len)?;
    let is_whole = checksum(&bytes[..HEADER + len]) == commit;
    is_whole.then_some((number(0)?, HEADER + len + 8))
}

impl Log {
    /// Opens a log, and cuts off what was not written as a whole.
    fn open(path: &Path) -> io::Result<Self> {
        let mut file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path)?;
        until_read(sync_directory)?;
        let mut bytes = Vec::new();
        until_read(|| {
            bytes.clear();
            file.rewind()?;
            file.read_to_end(&mut bytes)
        })?;
        let (mut numbers, mut len) = (Vec::new(), 0);
        while let Some((number, more)) = parse(&bytes[len..]) {
            let payload = &bytes[len + HEADER..len + more - 8];
            assert!(
                payload.iter().all(|byte| *byte == number as u8),
                "a record is torn"
            );
            numbers.push(number);
            len += more;
        }
        file.set_len(len as u64)?;
        let len = len as u64;
        Ok(Self { file, len, numbers })
    }

    /// Appends a record, which is durable then.
    fn append(&mut self, number: u64, payload: usize) -> io::Result<()> {
        let mut record = number.to_le_bytes().to_vec();
        record.extend((payload as u64).to_le_bytes());
        record.resize(HEADER + payload, number as u8);
        let commit = checksum(&record).to_le_bytes();
        self.file.seek(SeekFrom::Start(self.len))?;
        self.file.write_all(&record)?;
        self.file.write_all(&commit)?;
        self.file.sync_data()?;
        self.len += (record.len() + commit.len()) as u64;
        Ok(())
    }

    /// Cuts off what a failed append may have left.
    fn cut(&self) -> io::Result<()> {
        self.file.set_len(self.len)
    }
}

/// A log outlives crashes: what it has acknowledged is there, and no record is torn.
pub fn log(sim: Sim) -> Run {
    const RECORDS: u64 = 8;
    let acknowledged = Known::<u64>::default();
    let store = move || {
        let acknowledged = acknowledged.clone();
        async move {
            let opened = on_pool(|| Log::open(Path::new("/data/log"))).await;
            let mut log = opened.unwrap();
            let known = acknowledged.with(|known| *known);
            let count = log.numbers.len() as u64;
            assert!(
                log.numbers.iter().copied().eq(0..count),
                "{:?}",
                log.numbers
            );
            assert!(count >= known, "{count} of {known} records are left");
            for number in count..RECORDS {
                let payload = random_below(1_500) as usize;
                log = on_pool(move || {
                    log.append(number, payload).unwrap();
                    log
                })
                .await;
                acknowledged.with(|known| *known = number + 1);
                sleep(MS * random_below(3) as u32).await;
            }
        }
    };
    sim.hosts()
        .client("store", 2, store)
        .disk("store", "/data", Disk::new().torn_writes())
        .crash("store", ms(1..20), Some(2 * MS))
        .crash("store", ms(8..40), Some(2 * MS))
        .run()
}

/// A file is replaced as a whole: after a crash there is the last version that was acknowledged, or
/// a later one.
pub fn replace(sim: Sim) -> Run {
    replace_on(Disk::new().torn_writes(), &sim)
}

/// As [`replace`], on a file system that keeps the order of names.
pub fn replace_in_order(sim: Sim) -> Run {
    replace_on(Disk::new().torn_writes().ordered_metadata(), &sim)
}

fn replace_on(disk: Disk, sim: &Sim) -> Run {
    const VERSIONS: u8 = 6;
    const LEN: usize = 3_000;
    async fn read() -> io::Result<u8> {
        let mut bytes = Vec::new();
        match blocking_fs::File::open("/data/settings").await {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
            file => file?.read_to_end(&mut bytes).await?,
        };
        assert_eq!(bytes.len(), LEN, "a part of the file is lost");
        assert!(
            bytes.iter().all(|byte| *byte == bytes[0]),
            "the file is torn"
        );
        Ok(bytes[0])
    }
    async fn write(version: u8) -> io::Result<()> {
        let mut file = blocking_fs::File::create("/data/settings.new").await?;
        file.write_all(&[version; LEN]).await?;
        file.sync_all().await?;
        blocking_fs::rename("/data/settings.new", "/data/settings").await?;
        blocking_fs::File::open("/data").await?.sync_all().await
    }
    let acknowledged = Known::<u8>::default();
    let store = move || {
        let acknowledged = acknowledged.clone();
        async move {
            let found = read().await.unwrap();
            let known = acknowledged.with(|known| *known);
            assert!(found >= known, "version {found} is left, not {known}");
            for version in found + 1..=VERSIONS {
                write(version).await.unwrap();
                acknowledged.with(|known| *known = version);
                sleep(MS * random_below(3) as u32).await;
            }
        }
    };
    sim.hosts()
        .client("store", 2, store)
        .disk("store", "/data", disk)
        .crash("store", ms(1..25), Some(2 * MS))
        .crash("store", ms(8..50), Some(2 * MS))
        .run()
}

/// Segments of a log on a small disk, whose calls fail at times. A full disk costs the oldest
/// segment, and an error of the disk costs nothing.
pub fn errors(sim: Sim) -> Run {
    const RECORDS: u64 = 12;
    fn segments() -> io::Result<Vec<u64>> {
        let names = fs::read_dir("/data")?.map(|entry| Ok(entry?.file_name()));
        let names: Vec<_> = names.collect::<io::Result<_>>()?;
        let numbers = names.iter().filter_map(|name| name.to_str()?.parse().ok());
        let mut numbers: Vec<u64> = numbers.collect();
        numbers.sort_unstable();
        Ok(numbers)
    }
    fn path(segment: u64) -> PathBuf {
        Path::new("/data").join(segment.to_string())
    }
    /// Removes the oldest segment, of which nobody needs the records any more.
    fn remove_oldest(expected: &Known<BTreeSet<u64>>) -> io::Result<()> {
        let oldest = segments()?[0];
        let log = Log::open(&path(oldest))?;
        expected.with(|expected| expected.retain(|number| !log.numbers.contains(number)));
        fs::remove_file(path(oldest))
    }
    fn append(
        segment: &mut (u64, Log),
        number: u64,
        payload: usize,
        expected: &Known<BTreeSet<u64>>,
    ) -> io::Result<()> {
        loop {
            let (name, log) = segment;
            match log.append(number, payload) {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::StorageFull => {
                    log.cut()?;
                    remove_oldest(expected)?;
                    *segment = (*name + 1, Log::open(&path(*name + 1))?);
                }
                // After a failed sync nobody knows what is on the disk. A failed write has left a
                // part at most.
                Err(error) if error.raw_os_error() == Some(libc::EIO) => {
                    log.cut()?;
                    *segment = (*name + 1, Log::open(&path(*name + 1))?);
                }
                Err(error) => return Err(error),
            }
        }
    }
    let expected = Known::<BTreeSet<u64>>::default();
    let next = Known::<u64>::default();
    let store = move || {
        let (expected, next) = (expected.clone(), next.clone());
        async move {
            let (known, mut segment) = on_pool(|| {
                let mut found = BTreeSet::new();
                let segments = segments().unwrap();
                for segment in &segments {
                    found.extend(Log::open(&path(*segment)).unwrap().numbers);
                }
                let new = segments.last().map_or(0, |last| last + 1);
                (found, (new, Log::open(&path(new)).unwrap()))
            })
            .await;
            expected.with(|expected| {
                let lost: Vec<_> = expected.difference(&known).collect();
                assert!(lost.is_empty(), "the records {lost:?} are lost");
            });
            while next.with(|next| *next) < RECORDS {
                let number = next.with(|next| {
                    *next += 1;
                    *next
                });
                let payload = 100 + random_below(3_000) as usize;
                let needed = expected.clone();
                segment = on_pool(move || {
                    append(&mut segment, number, payload, &needed).unwrap();
                    segment
                })
                .await;
                expected.with(|expected| expected.insert(number));
                sleep(MS * random_below(3) as u32).await;
            }
        }
    };
    sim.hosts()
        .client("store", 2, store)
        .disk(
            "store",
            "/data",
            Disk::new().torn_writes().errors(0.05).capacity(6 * 4_096),
        )
        .crash("store", ms(1..30), Some(2 * MS))
        .crash("store", ms(8..60), Some(2 * MS))
        .run()
}
