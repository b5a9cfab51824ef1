//! Nodes as processes of the system: their start, their lines, and what they have counted.
#![allow(dead_code, reason = "each test uses a part")]
use std::{
    collections::HashMap,
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant, SystemTime},
};

pub const LONG: Duration = Duration::from_secs(60);

/// The lease of the nodes of the tests.
pub const LEASE: Duration = Duration::from_millis(1_000);

/// A folder that is removed with this value.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        // Ordering: Relaxed; the count only makes names differ.
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("cluster-zenoh-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// An authority of certificates, in a folder.
pub struct Authority {
    folder: PathBuf,
    issuer: rcgen::CertifiedIssuer<'static, rcgen::KeyPair>,
}

impl Authority {
    pub fn new(folder: &Path) -> Self {
        let mut params = rcgen::CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        let issuer = rcgen::CertifiedIssuer::self_signed(params, key).unwrap();
        Self {
            folder: folder.to_owned(),
            issuer,
        }
    }

    /// Writes the files of a node that has these addresses. Returns their folder.
    pub fn issue(&self, name: &str, addresses: &[&str]) -> PathBuf {
        let names: Vec<_> = addresses.iter().map(|&name| name.to_owned()).collect();
        let mut params = rcgen::CertificateParams::new(names).unwrap();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let folder = self.folder.join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("ca.pem"), self.issuer.pem()).unwrap();
        fs::write(folder.join("node.pem"), certificate.pem()).unwrap();
        fs::write(folder.join("node.key"), key.serialize_pem()).unwrap();
        folder
    }
}

/// Returns a port that nothing uses now.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

pub fn micros() -> u128 {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    time.unwrap().as_micros()
}

/// The counts of a keeper in one life of its node. See `tests/node`.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    pub delivered: u64,
    pub next: u64,
    pub gaps: u64,
    pub missing: u64,
    pub repeated: u64,
    pub stale: u64,
    pub asked: u64,
}

/// A line that a node said of another one, and when.
#[derive(Clone, Debug)]
pub struct News {
    pub is_up: bool,
    pub name: String,
    pub micros: u128,
    pub why: String,
}

/// A node that runs. It is killed with this value.
pub struct Node {
    pub name: String,
    child: Child,
    input: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
    pub news: Vec<News>,
    /// The files of what its lives have taken.
    taken: PathBuf,
    /// The lines that it has logged.
    log: std::sync::Arc<Mutex<String>>,
}

impl Node {
    /// Starts a node. `within` are the words of a command that runs another one, or nothing.
    pub fn start(folder: &Folder, within: &[&str], name: &str, arguments: &[String]) -> Self {
        static LIVES: AtomicU64 = AtomicU64::new(0);
        // Ordering: Relaxed; the count only makes names differ.
        let life = LIVES.fetch_add(1, Ordering::Relaxed);
        let taken = folder.0.join(format!("{name}.{life}"));
        let program = env!("CARGO_BIN_EXE_cluster-node");
        let words: Vec<_> = within.iter().copied().chain([program]).collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        command.arg(format!("name={name}"));
        command.arg(format!("taken={}", taken.display()));
        command.arg(format!("lease={}", LEASE.as_millis()));
        command.args(arguments);
        command.env("RUST_LOG", "zenoh_link_tls=warn");
        command.env("ZENOH_RUNTIME", process_cluster_zenoh::RUNTIME);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = mpsc::channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        let log = std::sync::Arc::new(Mutex::new(String::new()));
        let kept = log.clone();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // Zenoh logs there, too.
                if line.contains("zenoh") {
                    let mut log = kept.lock().unwrap();
                    log.push_str(&line);
                    log.push('\n');
                } else {
                    let _ = sender.send(line);
                }
            }
        });
        let (errors, kept) = (BufReader::new(child.stderr.take().unwrap()), log.clone());
        thread::spawn(move || {
            for line in errors.lines().map_while(Result::ok) {
                let mut log = kept.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
        });
        let mut node = Self {
            name: name.to_owned(),
            input: child.stdin.take(),
            child,
            lines,
            news: Vec::new(),
            taken,
            log,
        };
        node.wait_for_line("ready");
        node
    }

    /// Returns what the node has logged.
    pub fn log(&self) -> String {
        let log = self.log.lock();
        log.unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn command(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    fn note(&mut self, line: &str) {
        let words: Vec<_> = line.split_whitespace().collect();
        if let ["up" | "down", name, micros, ..] = words[..] {
            self.news.push(News {
                is_up: words[0] == "up",
                name: name.to_owned(),
                micros: micros.parse().unwrap(),
                why: words.get(3).copied().unwrap_or_default().to_owned(),
            });
        }
    }

    #[track_caller]
    fn wait_for_line(&mut self, begins: &str) -> String {
        let limit = Instant::now() + LONG;
        loop {
            let left = limit.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("{} says no {begins:?}: {}", self.name, self.log());
            };
            if line.starts_with(begins) {
                return line;
            }
            self.note(&line);
        }
    }

    /// Takes the lines that have come.
    pub fn look(&mut self) {
        while let Ok(line) = self.lines.try_recv() {
            self.note(&line);
        }
    }

    /// Waits until the node has said so many times that another one is up, or down.
    #[track_caller]
    pub fn wait_news(&mut self, is_up: bool, of: &str, times: usize) -> News {
        let limit = Instant::now() + LONG;
        loop {
            let matches = |news: &&News| news.is_up == is_up && news.name == of;
            if let Some(news) = self.news.iter().filter(matches).nth(times - 1) {
                return news.clone();
            }
            let left = limit.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                let (name, log) = (&self.name, self.log());
                panic!(
                    "{name}: {of} up: {is_up}, {times} times: {:?}\n{log}",
                    self.news
                );
            };
            self.note(&line);
        }
    }

    /// Returns how many times the node has said that another one is down.
    pub fn downs(&mut self, of: &str) -> usize {
        self.look();
        let downs = self
            .news
            .iter()
            .filter(|news| !news.is_up && news.name == of);
        downs.count()
    }

    #[track_caller]
    pub fn report(&mut self) -> HashMap<String, u64> {
        self.command("report");
        let line = self.wait_for_line("report");
        let fields = line.split_whitespace().skip(1).map(|field| {
            let (key, value) = field.split_once('=').unwrap();
            (key.to_owned(), value.parse().unwrap())
        });
        fields.collect()
    }

    /// Waits until a report has this.
    #[track_caller]
    pub fn wait_report(&mut self, holds: impl Fn(&HashMap<String, u64>) -> bool) {
        let limit = Instant::now() + LONG;
        loop {
            let report = self.report();
            if holds(&report) {
                return;
            }
            assert!(Instant::now() < limit, "{}: {report:?}", self.name);
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns whether a message to the held pid was accepted.
    #[track_caller]
    pub fn poke(&mut self) -> bool {
        self.command("poke");
        self.wait_for_line("poked") == "poked true"
    }

    pub fn taken(&self) -> Taken {
        let bytes = fs::read(&self.taken).unwrap();
        let field = |at: usize| u64::from_le_bytes(bytes[8 * at..8 * at + 8].try_into().unwrap());
        Taken {
            delivered: field(0),
            next: field(1),
            gaps: field(2),
            missing: field(3),
            repeated: field(4),
            stale: field(5),
            asked: field(6),
        }
    }

    /// Returns the memory that the program uses, in KiB.
    pub fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS"))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    pub fn signal(&self, signal: i32) {
        let pid = i32::try_from(self.pid()).unwrap();
        // SAFETY: `kill` takes any numbers. The child was not waited for, so the pid is its own.
        let result = unsafe { libc::kill(pid, signal) };
        assert_eq!(result, 0);
    }

    /// Kills the node. Returns when.
    pub fn kill(&mut self) -> u128 {
        let when = micros();
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        when
    }

    /// Lets the node leave, and waits for its end.
    pub fn leave(&mut self) {
        self.input = None;
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{}: {}", self.name, self.log());
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            self.look();
            let log = self.log();
            eprintln!("{}: {:?}\n{log}", self.name, self.news);
        }
    }
}

/// Checks what must hold of the items from `sender` to the lives of one node: what was accepted is
/// what was delivered, or was lost at an end of a session that the sender was told of.
#[track_caller]
pub fn check_items(sender: &mut Node, to: &str, lives: &[Taken], dead_letters: u64) {
    let downs = sender.downs(to) as u64;
    let accepted = sender.report()["accepted"];
    let delivered: u64 = lives.iter().map(|taken| taken.delivered).sum();
    let lost = accepted - delivered - dead_letters;
    let text = format!("{accepted} accepted, {downs} downs, dead {dead_letters}: {lives:?}");
    println!("{text}");
    let mut before = 0;
    let mut gaps = 0;
    for life in lives {
        assert_eq!(life.repeated, 0, "an item came twice or late: {text}");
        assert_eq!(life.stale, 0, "an old pid reached a process: {text}");
        assert!(
            life.delivered == 0 || life.next > before,
            "out of order: {text}"
        );
        gaps += life.gaps;
        before = life.next.max(before);
    }
    // The items behind the last one that came.
    gaps += u64::from(before < accepted);
    if dead_letters == 0 {
        assert!(gaps <= downs, "lost without a report: {text}");
    }
    assert!(lost == 0 || downs > 0, "lost without a report: {text}");
}

/// Checks that each call has ended once, in its time.
#[track_caller]
pub fn check_calls(caller: &mut Node) {
    caller.wait_report(|report| report["busy"] == 0);
    let report = caller.report();
    let ended = ["answered", "timeouts", "lost", "refused_calls"];
    let ended: u64 = ended.iter().map(|key| report[*key]).sum();
    assert_eq!(report["begun"], ended, "{report:?}");
    assert_eq!(report["wrong"], 0, "{report:?}");
    assert!(report["answered"] > 0, "{report:?}");
    // The limit of a call is two seconds.
    assert!(report["slowest"] < 2_500, "{report:?}");
}

#[track_caller]
pub fn wait_for(holds: impl FnMut() -> bool) {
    wait_within(LONG, holds);
}

#[track_caller]
fn wait_within(limit: Duration, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < limit, "it does not come to hold");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Connects by TLS without a certificate of its own. Fails if the other side takes that.
pub fn knock_without_certificate(authority: &Path, port: u16) {
    use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(authority).unwrap())
        .unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let mut client = rustls::ClientConnection::new(config.into(), name).unwrap();
    let mut socket = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    let mut stream = rustls::Stream::new(&mut client, &mut socket);
    let error = std::io::Read::read(&mut stream, &mut [0; 100]).unwrap_err();
    assert!(error.to_string().contains("CertificateRequired"), "{error}");
}
