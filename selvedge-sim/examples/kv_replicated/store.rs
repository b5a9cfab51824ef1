//! A store of numbers with three replicas. A write is done when two of them have it on their disks,
//! and a read asks two, of which at least one has the last write. The newest version counts.
//!
//! With `two_files` a replica keeps the version of a key in one file and its value in another one:
//! a mistake that shows after a crash between the two writes.
use net_driver::{
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};
use selvedge_executor::spawn;
use selvedge_sim::{Disk, Faults, Run, Sim};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind},
    os::unix::fs::FileExt,
    sync::{Arc, Mutex},
    time::Duration,
};
use task_io::{AsyncReadExt, AsyncWriteExt};

const REPLICAS: [&str; 3] = ["one", "two", "three"];
const MAJORITY: usize = 2;
const KEYS: usize = 2;
const MS: Duration = Duration::from_millis(1);

/// A version of a key, and its value.
type Entry = [u64; 2];

/// The entries of a replica, and its files.
struct Store {
    entries: [Entry; KEYS],
    files: Vec<File>,
    two_files: bool,
}

impl Store {
    /// Opens the files, which an earlier start of this replica may have written.
    fn open(two_files: bool) -> io::Result<Self> {
        let names = match two_files {
            true => &["/data/versions", "/data/values"][..],
            false => &["/data/entries"],
        };
        let mut store = Self {
            entries: Default::default(),
            files: Vec::new(),
            two_files,
        };
        for (number, name) in names.iter().enumerate() {
            let mut options = OpenOptions::new();
            let options = options.read(true).write(true).create(true).truncate(false);
            store.files.push(options.open(name)?);
            let bytes = fs::read(name)?;
            let words = bytes.chunks_exact(8).map(|word| word.try_into());
            let words: Vec<_> = words
                .map(|word| word.map_or(0, u64::from_be_bytes))
                .collect();
            for (at, word) in words.into_iter().enumerate() {
                match two_files {
                    true => store.entries[at][number] = word,
                    false => store.entries[at / 2][at % 2] = word,
                }
            }
        }
        File::open("/data")?.sync_all()?;
        Ok(store)
    }

    /// Writes an entry, unless the store has a newer one. It is durable when this returns.
    fn put(&mut self, key: usize, entry: Entry) -> io::Result<()> {
        let [version, value] = entry;
        if version <= self.entries[key][0] {
            return Ok(());
        }
        if self.two_files {
            self.files[0].write_all_at(&version.to_be_bytes(), key as u64 * 8)?;
            self.files[0].sync_data()?;
            self.files[1].write_all_at(&value.to_be_bytes(), key as u64 * 8)?;
            self.files[1].sync_data()?;
        } else {
            // 16 bytes of one sector, which the disk writes as a whole.
            let bytes = [version.to_be_bytes(), value.to_be_bytes()].concat();
            self.files[0].write_all_at(&bytes, key as u64 * 16)?;
            self.files[0].sync_data()?;
        }
        self.entries[key] = entry;
        Ok(())
    }
}

/// Answers a request: the key, a version and a value. Version 0 is a read.
async fn answer(store: Arc<Mutex<Store>>, mut stream: TcpStream) -> io::Result<()> {
    let key = stream.read_u64().await? as usize;
    let entry = [stream.read_u64().await?, stream.read_u64().await?];
    let [version, value] = {
        let mut store = store.lock().unwrap();
        store.put(key, entry)?;
        store.entries[key]
    };
    stream.write_u64(version).await?;
    stream.write_u64(value).await
}

async fn replica(two_files: bool) {
    let store = Arc::new(Mutex::new(Store::open(two_files).unwrap()));
    let listener = TcpListener::bind("0.0.0.0:1").await.unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        spawn(answer(store.clone(), stream));
    }
}

async fn ask(replica: &str, key: usize, entry: Entry) -> io::Result<Entry> {
    let request = async {
        let mut stream = TcpStream::connect((replica, 1)).await?;
        for word in [key as u64, entry[0], entry[1]] {
            stream.write_u64(word).await?;
        }
        Ok([stream.read_u64().await?, stream.read_u64().await?])
    };
    let answered = timeout(200 * MS, request).await;
    answered.unwrap_or(Err(ErrorKind::TimedOut.into()))
}

/// Asks all replicas until a majority has answered. Returns the newest of its entries.
async fn ask_all(key: usize, entry: Entry) -> Entry {
    loop {
        let asked = REPLICAS.map(|replica| spawn(ask(replica, key, entry)));
        let mut answers = Vec::new();
        for asked in asked {
            if answers.len() < MAJORITY {
                answers.extend(asked.await.unwrap());
            } else {
                asked.abort();
            }
        }
        if answers.len() == MAJORITY {
            return answers.into_iter().max_by_key(|entry| entry[0]).unwrap();
        }
        sleep(20 * MS).await;
    }
}

/// Each value that was written is read until the next write.
async fn client() {
    for version in 1..4 {
        for key in 0..KEYS {
            let value = 100 * version + key as u64;
            ask_all(key, [version, value]).await;
            let [_, read] = ask_all(key, [0, 0]).await;
            assert_eq!(read, value, "key {key} has an old value");
        }
    }
}

pub fn scenario(sim: Sim, two_files: bool) -> Run {
    let mut hosts = sim.hosts().client("client", 1, client);
    for name in REPLICAS {
        hosts = hosts.server(name, 1, move || replica(two_files));
        let disk = Disk::new().lost_unsynced().fsync_time(2 * MS..20 * MS);
        hosts = hosts.disk(name, "/data", disk);
    }
    let faults = Faults::new().crashes(2).during(200 * MS);
    hosts.faults(faults.longest(200 * MS)).run()
}
