//! A key-value server over TCP.
//!
//! A client sends lines, and gets a line for each:
//!
//! | request | answer |
//! |---|---|
//! | `GET key` | the value, or `(none)` |
//! | `SET key value` | `ok` |
//! | `SETEX key milliseconds value` | `ok`; the key is gone after that time |
//! | `DEL key` | `1` if the key was there, or `0` |
//! | `KEYS` | the keys, sorted |
//! | `WATCH key` | `ok`, and from then on a line for each change of the key |
//! | `SAVE` | `ok` and a checksum, once the snapshot is on the disk |
//! | `QUIT` | `bye`, and the end of the connection |
//!
//! One task owns the map. The clients' tasks send requests to it over a channel. A request holds a
//! channel for its answer. Ctrl-C or SIGTERM ends the server: it tells each client, and saves the
//! map.
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    fmt, io,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use selvedge::{
    fs,
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    signal::unix::{SignalKind, signal},
    sync::{OwnedSemaphorePermit, Semaphore, broadcast, mpsc, oneshot, watch},
    task::{self, JoinHandle, JoinSet},
    time::{self, Duration, Instant, MissedTickBehavior},
};

/// How many clients are served at a time. Further clients wait.
const CLIENTS: usize = 1_000;
/// How many requests may wait for the owner of the map.
const REQUESTS: usize = 64;
/// How many changes a slow watcher may be behind before it misses some.
const CHANGES: usize = 256;
/// The time between two snapshots.
const PERIOD: Duration = Duration::from_secs(30);
/// The time after which a silent client is told to go.
const PATIENCE: Duration = Duration::from_secs(300);
/// The time that the clients' tasks have to finish at the server's end.
const FAREWELL: Duration = Duration::from_secs(5);

selvedge::task_local! {
    /// The number of the client that a task serves.
    static CLIENT: u64;
}

/// Writes a line to standard error. In a client's task the line names the client.
fn log(what: impl fmt::Display) {
    match CLIENT.try_with(|client| *client) {
        Ok(client) => eprintln!("kv: client {client}: {what}"),
        Err(_) => eprintln!("kv: {what}"),
    }
}

/// A request to the owner of the map.
#[derive(Debug)]
enum Request {
    Get(String),
    Set(String, String, Option<Duration>),
    Delete(String),
    Keys,
    Save,
}

/// A line of a client: a request, or a line that the client's own task handles.
#[derive(Debug)]
enum Line {
    Request(Request),
    Watch(String),
    Quit,
}

impl Line {
    fn parse(line: &str) -> Result<Self, &'static str> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let key = || match rest {
            "" => Err("a key is missing"),
            key if key.contains(' ') => Err("a key has no space"),
            key => Ok(key.to_owned()),
        };
        let request = match word {
            "GET" => Request::Get(key()?),
            "DEL" => Request::Delete(key()?),
            "KEYS" => Request::Keys,
            "SAVE" => Request::Save,
            "SET" => {
                let (key, value) = rest.split_once(' ').ok_or("SET key value")?;
                Request::Set(key.to_owned(), value.to_owned(), None)
            }
            "SETEX" => {
                let mut parts = rest.splitn(3, ' ');
                let mut part = || parts.next().ok_or("SETEX key milliseconds value");
                let (key, time, value) = (part()?, part()?, part()?);
                let time = time.parse().map_err(|_| "no number of milliseconds")?;
                let time = Some(Duration::from_millis(time));
                Request::Set(key.to_owned(), value.to_owned(), time)
            }
            "WATCH" => return Ok(Self::Watch(key()?)),
            "QUIT" => return Ok(Self::Quit),
            _ => return Err("no such request"),
        };
        Ok(Self::Request(request))
    }
}

/// A request, and where its answer goes.
type Asked = (Request, oneshot::Sender<String>);

/// A change of a key: its new value, if it has one.
#[derive(Clone, Debug)]
struct Change {
    key: String,
    value: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    value: String,
    /// Distinguishes this entry from earlier entries of the same key.
    version: u64,
}

/// The owner of the map.
struct Store {
    map: BTreeMap<String, Entry>,
    /// When entries expire: the time, the key and the version.
    expiries: BinaryHeap<Reverse<(Instant, String, u64)>>,
    versions: u64,
    changes: broadcast::Sender<Change>,
    file: PathBuf,
    /// Whether the map has changed since the last snapshot.
    is_dirty: bool,
    /// The snapshot that is being written.
    saving: Option<JoinHandle<io::Result<u64>>>,
    /// Channels to the clients that wait for the snapshot in `saving`.
    waiting: Vec<oneshot::Sender<String>>,
    /// Channels to the clients that wait for the snapshot after that.
    waiting_for_next: Vec<oneshot::Sender<String>>,
}

impl Store {
    async fn load(file: PathBuf, changes: broadcast::Sender<Change>) -> io::Result<Self> {
        let text = match fs::read_to_string(&file).await {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let mut store = Self {
            map: BTreeMap::new(),
            expiries: BinaryHeap::new(),
            versions: 0,
            changes,
            file,
            is_dirty: false,
            saving: None,
            waiting: Vec::new(),
            waiting_for_next: Vec::new(),
        };
        for (key, value) in text.lines().filter_map(|line| line.split_once(' ')) {
            store.insert(key.to_owned(), value.to_owned(), None);
        }
        store.is_dirty = false;
        Ok(store)
    }

    /// Serves requests until the server ends and no client is left. Then saves the map.
    async fn run(mut self, mut requests: mpsc::Receiver<Asked>) -> io::Result<()> {
        let mut period = time::interval_at(Instant::now() + PERIOD, PERIOD);
        period.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let expiry = self.expiries.peek().map(|Reverse((at, _, _))| *at);
            selvedge::select! {
                biased;
                saved = saved(&mut self.saving) => self.note_saved(saved),
                () = until(expiry) => self.expire(),
                asked = requests.recv() => match asked {
                    Some((request, answer)) => self.answer(request, answer),
                    None => break,
                },
                _ = period.tick() => {
                    if self.is_dirty && self.saving.is_none() {
                        self.save();
                    }
                }
            }
        }
        self.expire();
        while self.saving.is_some() {
            let saved = saved(&mut self.saving).await;
            self.note_saved(saved);
        }
        self.save();
        saved(&mut self.saving).await.map(drop)
    }

    fn answer(&mut self, request: Request, answer: oneshot::Sender<String>) {
        let text = match request {
            Request::Get(key) => match self.map.get(&key) {
                Some(entry) => entry.value.clone(),
                None => "(none)".to_owned(),
            },
            Request::Set(key, value, time) => {
                self.insert(key, value, time);
                "ok".to_owned()
            }
            Request::Delete(key) => u8::from(self.remove(&key)).to_string(),
            Request::Keys => {
                let keys: Vec<_> = self.map.keys().map(String::as_str).collect();
                keys.join(" ")
            }
            Request::Save => {
                self.waiting_for_next.push(answer);
                if self.saving.is_none() {
                    self.save();
                }
                return;
            }
        };
        // A client that is gone needs no answer.
        let _ = answer.send(text);
    }

    fn insert(&mut self, key: String, value: String, time: Option<Duration>) {
        self.versions += 1;
        let version = self.versions;
        if let Some(time) = time {
            let at = Instant::now() + time;
            self.expiries.push(Reverse((at, key.clone(), version)));
        }
        let entry = Entry {
            value: value.clone(),
            version,
        };
        self.map.insert(key.clone(), entry);
        self.changed(key, Some(value));
    }

    fn remove(&mut self, key: &str) -> bool {
        let was_there = self.map.remove(key).is_some();
        if was_there {
            self.changed(key.to_owned(), None);
        }
        was_there
    }

    fn changed(&mut self, key: String, value: Option<String>) {
        self.is_dirty = true;
        // An error says that no client is connected, so no client needs the change.
        let _ = self.changes.send(Change { key, value });
    }

    /// Removes the entries whose time is over.
    fn expire(&mut self) {
        let now = Instant::now();
        while let Some(Reverse((at, _, _))) = self.expiries.peek() {
            if *at > now {
                return;
            }
            let Some(Reverse((_, key, version))) = self.expiries.pop() else {
                return;
            };
            let is_same = self.map.get(&key).map(|entry| entry.version) == Some(version);
            if is_same {
                self.remove(&key);
            }
        }
    }

    /// Begins a snapshot. The caller makes sure that no other snapshot is being written.
    fn save(&mut self) {
        self.is_dirty = false;
        self.waiting.append(&mut self.waiting_for_next);
        let expiring: Vec<_> = self.expiries.iter().map(|Reverse((_, _, v))| *v).collect();
        let mut text = String::new();
        for (key, entry) in &self.map {
            // A key that expires is not worth keeping.
            if !expiring.contains(&entry.version) {
                text.push_str(&format!("{key} {}\n", entry.value));
            }
        }
        self.saving = Some(task::spawn(write_snapshot(self.file.clone(), text)));
    }

    fn note_saved(&mut self, saved: io::Result<u64>) {
        let text = match saved {
            Ok(sum) => format!("ok {sum:016x}"),
            Err(error) => {
                self.is_dirty = true;
                log(format_args!("the snapshot failed: {error}"));
                format!("error: {error}")
            }
        };
        for waiting in self.waiting.drain(..) {
            let _ = waiting.send(text.clone());
        }
        if !self.waiting_for_next.is_empty() {
            self.save();
        }
    }
}

/// Waits for the snapshot that is being written. If there is none, waits forever.
async fn saved(saving: &mut Option<JoinHandle<io::Result<u64>>>) -> io::Result<u64> {
    let Some(task) = saving else {
        return std::future::pending().await;
    };
    let saved = task.await;
    *saving = None;
    saved?
}

/// Sleeps until `time`. If it is `None`, sleeps forever.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Writes a snapshot into a new file, and then replaces the last snapshot by it. Returns the
/// checksum of the new snapshot.
async fn write_snapshot(file: PathBuf, text: String) -> io::Result<u64> {
    let text = Arc::new(text);
    let summed = text.clone();
    // The checksum may take long, so a blocking thread computes it.
    let sum = task::spawn_blocking(move || checksum(summed.as_bytes()));
    let beside = file.with_extension("new");
    let mut new = fs::File::create(&beside).await?;
    new.write_all(text.as_bytes()).await?;
    new.sync_all().await?;
    fs::rename(&beside, &file).await?;
    Ok(sum.await?)
}

/// The checksum FNV-1a.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The state that each client's task has.
#[derive(Clone)]
struct Server {
    requests: mpsc::Sender<Asked>,
    changes: broadcast::Sender<Change>,
    /// True once the server ends.
    ends: watch::Receiver<bool>,
}

/// One client, as its task serves it.
struct Client {
    server: Server,
    lines: Lines<BufReader<OwnedReadHalf>>,
    out: OwnedWriteHalf,
    /// The changes of all keys. The client is told of those in `watched`.
    changes: broadcast::Receiver<Change>,
    watched: Vec<String>,
    /// The client's place among the `CLIENTS` that are served at a time.
    _place: OwnedSemaphorePermit,
}

impl Client {
    fn new(server: Server, stream: TcpStream, place: OwnedSemaphorePermit) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let (read, out) = stream.into_split();
        Ok(Self {
            changes: server.changes.subscribe(),
            server,
            lines: BufReader::new(read).lines(),
            out,
            watched: Vec::new(),
            _place: place,
        })
    }

    /// Serves the client until it goes, is silent for too long, or is told that the server ends.
    async fn serve(mut self) -> io::Result<()> {
        let mut last_request = Instant::now();
        loop {
            let mut ends = self.server.ends.clone();
            selvedge::select! {
                biased;
                () = ended(&mut ends) => return self.say("the server ends").await,
                change = self.changes.recv() => match change {
                    Ok(change) if self.watched.contains(&change.key) => {
                        let value = change.value.as_deref().unwrap_or("(none)");
                        let line = format!("{} is {value}", change.key);
                        self.say(&line).await?;
                    }
                    Ok(_) => {}
                    Err(broadcast::error::RecvError::Lagged(missed)) => {
                        self.say(&format!("{missed} changes were missed")).await?;
                    }
                    Err(broadcast::error::RecvError::Closed) => return Ok(()),
                },
                line = time::timeout_at(last_request + PATIENCE, self.lines.next_line()) => {
                    let Ok(line) = line else {
                        return self.say("too long without a request").await;
                    };
                    last_request = Instant::now();
                    match line? {
                        Some(line) if self.request(line.trim()).await? => {}
                        _ => return Ok(()),
                    }
                }
            }
        }
    }

    /// Does what a line says. Returns whether the client stays.
    async fn request(&mut self, line: &str) -> io::Result<bool> {
        match Line::parse(line) {
            Ok(Line::Request(request)) => {
                let (answer, answered) = oneshot::channel();
                let sent = self.server.requests.send((request, answer)).await;
                match answered.await {
                    Ok(text) if sent.is_ok() => self.say(&text).await?,
                    _ => self.say("error: the server ends").await?,
                }
            }
            Ok(Line::Watch(key)) => {
                self.watched.push(key);
                self.say("ok").await?;
            }
            Ok(Line::Quit) => {
                self.say("bye").await?;
                return Ok(false);
            }
            Err(why) => self.say(&format!("error: {why}")).await?,
        }
        Ok(true)
    }

    async fn say(&mut self, line: &str) -> io::Result<()> {
        self.out.write_all(format!("{line}\n").as_bytes()).await
    }
}

/// Accepts clients until the server ends. Then waits up to `FAREWELL` for the remaining clients.
async fn accept(listener: TcpListener, server: Server) {
    let mut clients = JoinSet::new();
    let places = Arc::new(Semaphore::new(CLIENTS));
    let mut ends = server.ends.clone();
    let mut number = 0;
    loop {
        let next = async {
            let place = places.clone().acquire_owned().await;
            let place = place.expect("nobody closes the semaphore");
            listener.accept().await.map(|(stream, _)| (stream, place))
        };
        let accepted = selvedge::select! {
            biased;
            () = ended(&mut ends) => break,
            accepted = next => accepted,
        };
        while let Some(ended) = clients.try_join_next() {
            note(ended);
        }
        match accepted {
            Ok((stream, place)) => {
                number += 1;
                let client = Client::new(server.clone(), stream, place);
                clients.spawn(CLIENT.scope(number, async move {
                    let served = async { client?.serve().await };
                    if let Err(error) = served.await {
                        log(error);
                    }
                }));
            }
            Err(error) => {
                log(format_args!("accept: {error}"));
                time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    let left = clients.len();
    let all = async {
        while let Some(ended) = clients.join_next().await {
            note(ended);
        }
    };
    if time::timeout(FAREWELL, all).await.is_err() {
        log(format_args!("{left} clients were too slow"));
        clients.shutdown().await;
    }
}

/// Logs the panic of a client's task, if the task has ended by a panic.
fn note(ended: Result<(), task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        log(error);
    }
}

/// Waits for the end of the server.
async fn ended(ends: &mut watch::Receiver<bool>) {
    // An error says that the server has gone, which is an end, too.
    let _ = ends.wait_for(|ends| *ends).await;
}

/// Returns a future that waits for Ctrl-C or SIGTERM. From this call on neither kills the process.
fn end_is_asked() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        selvedge::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

async fn run(address: &str, file: &Path) -> io::Result<()> {
    let (changes, _) = broadcast::channel(CHANGES);
    let store = Store::load(file.to_owned(), changes.clone()).await?;
    let listener = TcpListener::bind(address).await?;
    // A program that reads the line below may send a signal at once.
    let end_is_asked = end_is_asked()?;
    println!("listening on {}", listener.local_addr()?);
    let (requests, asked) = mpsc::channel(REQUESTS);
    let (ending, ends) = watch::channel(false);
    let store = task::spawn(store.run(asked));
    let server = Server {
        requests,
        changes,
        ends,
    };
    let clients = task::spawn(accept(listener, server));
    end_is_asked.await;
    ending.send_replace(true);
    clients.await?;
    store.await?
}

#[selvedge::main]
async fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [address, file] = &arguments[..] else {
        eprintln!("usage: kv ADDRESS FILE");
        return ExitCode::from(2);
    };
    match run(address, Path::new(file)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log(error);
            ExitCode::FAILURE
        }
    }
}
