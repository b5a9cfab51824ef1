//! An engine over TCP on this machine, for the examples: nodes find each other in a folder.
//!
//! Each node listens on a port of the loopback and writes it to a file of the folder. Of two nodes
//! the one whose name comes first dials. A connection begins with the dialer's name and the
//! listener's, each in a frame. A frame is its length, in four bytes, and its bytes.
//!
//! This is no engine for a network: nobody checks who a peer is.
use process_cluster::{Engine, PeerId, Sink, Unsent};
use std::{
    collections::HashMap,
    fs,
    io::{self, Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

/// The most bytes of a frame. Those of a cluster are shorter.
const MOST: usize = 2 << 20;

/// How often a node looks for others.
const INTERVAL: Duration = Duration::from_millis(20);

pub struct Tcp(Arc<Node>);

struct Node {
    name: String,
    folder: PathBuf,
    /// The peers, each by the name of its node and the port of its end.
    peers: Mutex<HashMap<PeerId, Arc<Mutex<TcpStream>>>>,
    address: Mutex<Option<SocketAddr>>,
    has_stopped: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tcp {
    /// Makes the engine of a node, whose name must be fit for a file.
    pub fn new(name: &str, folder: &Path) -> Self {
        Self(Arc::new(Node {
            name: name.to_owned(),
            folder: folder.to_owned(),
            peers: Mutex::default(),
            address: Mutex::default(),
            has_stopped: AtomicBool::new(false),
        }))
    }
}

impl Engine for Tcp {
    fn start(&self, sink: Sink) -> Result<(), String> {
        let start = || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let address = listener.local_addr()?;
            *lock(&self.0.address) = Some(address);
            fs::create_dir_all(&self.0.folder)?;
            // Nobody reads a half of it.
            let new = self.0.file("new");
            fs::write(&new, address.to_string())?;
            fs::rename(new, self.0.file("address"))?;
            let (accepts, dials) = (self.0.clone(), self.0.clone());
            let other = sink.clone();
            thread::Builder::new().spawn(move || accepts.accept(&listener, &other))?;
            thread::Builder::new().spawn(move || dials.dial(&sink))?;
            io::Result::Ok(())
        };
        start().map_err(|error| error.to_string())
    }

    fn send(&self, to: &PeerId, frame: &[u8]) -> Result<(), Unsent> {
        let peer = lock(&self.0.peers).get(to).cloned().ok_or(Unsent)?;
        let mut stream = lock(&peer);
        write(&mut *stream, frame).map_err(|_| Unsent)
    }

    fn stop(&self) {
        self.0.has_stopped.store(true, SeqCst);
        let peers = std::mem::take(&mut *lock(&self.0.peers));
        for stream in peers.into_values() {
            let _ = lock(&stream).shutdown(Shutdown::Both);
        }
        let _ = fs::remove_file(self.0.file("address"));
        // The thread that accepts looks at the flag.
        if let Some(address) = *lock(&self.0.address) {
            drop(TcpStream::connect(address));
        }
    }
}

impl Node {
    fn file(&self, extension: &str) -> PathBuf {
        self.folder.join(&self.name).with_extension(extension)
    }

    fn accept(self: Arc<Self>, listener: &TcpListener, sink: &Sink) {
        for stream in listener.incoming() {
            if self.has_stopped.load(SeqCst) {
                return;
            }
            let Ok(stream) = stream else { continue };
            let (node, sink) = (self.clone(), sink.clone());
            // A dialer that says nothing keeps a thread, and no other one.
            thread::spawn(move || node.serve(stream, None, &sink));
        }
    }

    /// Dials the nodes of the folder that have no connection.
    fn dial(self: Arc<Self>, sink: &Sink) {
        let dialed = Arc::new(Mutex::new(HashMap::new()));
        while !self.has_stopped.load(SeqCst) {
            for (name, address) in self.others() {
                if name <= self.name || lock(&dialed).contains_key(&name) {
                    continue;
                }
                let Ok(stream) = TcpStream::connect(address) else {
                    continue;
                };
                lock(&dialed).insert(name.clone(), ());
                let (node, sink, dialed) = (self.clone(), sink.clone(), dialed.clone());
                thread::spawn(move || {
                    node.serve(stream, Some(&name), &sink);
                    lock(&dialed).remove(&name);
                });
            }
            thread::sleep(INTERVAL);
        }
    }

    /// Returns the nodes of the folder. Those that were killed are among them.
    fn others(&self) -> Vec<(String, SocketAddr)> {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let node = |path: PathBuf| {
            let is_address = path.extension().is_some_and(|of| of == "address");
            let name = path.file_stem()?.to_str()?.to_owned();
            let address = fs::read_to_string(&path).ok()?.parse().ok()?;
            is_address.then_some((name, address))
        };
        files.filter_map(|file| node(file.path())).collect()
    }

    /// Greets a peer, which has this name if this node has dialed it, and takes its frames until
    /// the connection ends.
    fn serve(&self, stream: TcpStream, dialed: Option<&str>, sink: &Sink) {
        let Ok(id) = self.greet(&stream, dialed) else {
            return;
        };
        let Ok(mut reader) = stream.try_clone() else {
            return;
        };
        lock(&self.peers).insert(id.clone(), Arc::new(Mutex::new(stream)));
        // `stop` has perhaps taken the peers before.
        if !self.has_stopped.load(SeqCst) {
            sink.up(id.clone());
            while let Ok(frame) = read(&mut reader) {
                sink.frame(&id, &frame);
            }
            sink.down(&id);
        }
        lock(&self.peers).remove(&id);
        let _ = reader.shutdown(Shutdown::Both);
    }

    fn greet(&self, mut stream: &TcpStream, dialed: Option<&str>) -> io::Result<PeerId> {
        stream.set_nodelay(true)?;
        let name = match dialed {
            Some(name) => {
                write(&mut stream, self.name.as_bytes())?;
                write(&mut stream, name.as_bytes())?;
                name.to_owned()
            }
            None => {
                let [theirs, ours] = [read(&mut stream)?, read(&mut stream)?];
                // The port of a node that has ended may be that of another one now.
                if ours != self.name.as_bytes() {
                    return Err(io::ErrorKind::NotFound.into());
                }
                String::from_utf8(theirs).map_err(|_| io::ErrorKind::InvalidData)?
            }
        };
        Ok(PeerId(format!("{name} at {}", stream.peer_addr()?.port())))
    }
}

fn write(stream: &mut impl Write, frame: &[u8]) -> io::Result<()> {
    let length = u32::try_from(frame.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // One call for both: a packet for each would cost more.
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.extend_from_slice(frame);
    stream.write_all(&bytes)
}

fn read(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MOST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut frame = vec![0; length];
    stream.read_exact(&mut frame)?;
    Ok(frame)
}
