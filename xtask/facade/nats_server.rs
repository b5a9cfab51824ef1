//! Starts `nats-server` for the tests of `async-nats`, whose own crate for this is not on the
//! registry. The functions have the names that the tests call.
use std::{
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

/// A server, which ends when the value is dropped.
pub struct Server {
    settings: Option<PathBuf>,
    folder: PathBuf,
    port: u16,
    child: Child,
}

/// Starts a server without settings.
pub fn run_basic_server() -> Server {
    run_server("")
}

/// Starts a server with the settings of a file, at a free port.
pub fn run_server(settings: &str) -> Server {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    run_server_with_port(settings, Some(&port.to_string()))
}

/// Starts a server with the settings of a file, at this port or a free one.
pub fn run_server_with_port(settings: &str, port: Option<&str>) -> Server {
    let Some(port) = port else {
        return run_server(settings);
    };
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    // Ordering: the numbers only differ.
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = format!("nats-{}-{number}", std::process::id());
    let folder = std::env::temp_dir().join(folder);
    std::fs::create_dir_all(&folder).unwrap();
    let settings = (!settings.is_empty()).then(|| {
        // Debian's server is older than this setting. Certificates have paths from this folder.
        let text = std::fs::read_to_string(settings).unwrap();
        let known = text.lines().filter(|line| !line.trim().starts_with("strict:"));
        let file = folder.join("settings.conf");
        std::fs::write(&file, known.collect::<Vec<_>>().join("\n")).unwrap();
        file
    });
    let port = port.parse().unwrap();
    let child = start(settings.as_ref(), &folder, port);
    Server {
        settings,
        folder,
        port,
        child,
    }
}

/// Asks a server to send its clients elsewhere, and to end.
pub fn set_lame_duck_mode(server: &Server) {
    let id = server.child.id().to_string();
    let mut signal = Command::new("nats-server");
    signal.arg("--signal").arg(format!("ldm={id}"));
    assert!(signal.status().unwrap().success());
}

fn start(settings: Option<&PathBuf>, folder: &PathBuf, port: u16) -> Child {
    let mut command = Command::new("nats-server");
    command.args(["--addr", "127.0.0.1", "--port", &port.to_string()]);
    command.arg("--store_dir").arg(folder);
    if let Some(settings) = settings {
        command.arg("--config").arg(settings);
    }
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let begun = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        let ended = child.try_wait().unwrap();
        assert!(ended.is_none(), "nats-server has ended");
        assert!(begun.elapsed() < Duration::from_secs(30), "nats-server does not listen");
        thread::sleep(Duration::from_millis(10));
    }
    child
}

impl Server {
    /// Returns the address for a client.
    pub fn client_url(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the port for clients.
    pub fn client_port(&self) -> u16 {
        self.port
    }

    /// Kills the server and starts it anew, with the same data.
    pub fn restart(&mut self) {
        self.end();
        self.child = start(self.settings.as_ref(), &self.folder, self.port);
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Servers that know each other.
pub struct Cluster {
    pub servers: Vec<Server>,
}

/// Is not supported.
pub fn run_cluster(_: &str) -> Cluster {
    panic!("this stand-in has no clusters");
}
