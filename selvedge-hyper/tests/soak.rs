//! Ten minutes of load by 500 clients, each of which has one connection at a time. At random, a
//! client leaves its connection in the middle of a request. A graceful shutdown ends the test:
//!
//! ```sh
//! cargo test --release -p selvedge-hyper --test soak -- --ignored --nocapture
//! ```
//!
//! `SOAK_SECONDS` sets another length, and `SOAK_SEED` repeats the choices of a run. The test
//! prints the numbers of answers and errors, and the process's memory and descriptors. The clients
//! and the server share the process; they have a runtime each. The test is a program of its own,
//! because it counts the process's descriptors.
mod common;

use common::Server;
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use selvedge::net::TcpStream;
use std::{
    env, fs,
    io::{self, ErrorKind},
    net::{self, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

const CONNECTIONS: u64 = 500;

/// The longest body.
const LONGEST: u64 = 64 << 10;

/// The memory may grow by this much after the first quarter of the time, in KiB.
const MOST: u64 = 32 << 10;

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Returns the resident memory, in KiB.
fn memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

fn number(name: &str, otherwise: u64) -> u64 {
    let given = env::var(name).ok();
    given.map_or(otherwise, |text| text.parse().expect("a number"))
}

/// Random numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

#[derive(Default)]
struct Counts {
    answers: AtomicU64,
    connections: AtomicU64,
    killed: AtomicU64,
    ends: AtomicBool,
}

/// Makes requests on one connection after the other, and checks each answer, until the test's end.
async fn client(to: SocketAddr, mut random: Random, counts: Arc<Counts>) -> io::Result<()> {
    while !counts.ends.load(SeqCst) {
        counts.connections.fetch_add(1, SeqCst);
        connection(to, &mut random, &counts).await?;
    }
    Ok(())
}

async fn connection(to: SocketAddr, random: &mut Random, counts: &Counts) -> io::Result<()> {
    let mut stream = TcpStream::connect(to).await?;
    for _ in 0..random.below(200) {
        if counts.ends.load(SeqCst) {
            break;
        }
        let body = vec![b'a'; random.below(LONGEST) as usize >> random.below(16)];
        let head = format!(
            "POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let request = [head.as_bytes(), &body].concat();
        if random.below(50) == 0 {
            counts.killed.fetch_add(1, SeqCst);
            return kill(stream, &request, random).await;
        }
        stream.write_all(&request).await?;
        answer(&mut stream, &body).await?;
        counts.answers.fetch_add(1, SeqCst);
    }
    Ok(())
}

/// Sends a part of a request or all of it, and drops the connection: half of the time by a reset.
async fn kill(mut stream: TcpStream, request: &[u8], random: &mut Random) -> io::Result<()> {
    let sent = random.below(request.len() as u64 + 1) as usize;
    stream.write_all(&request[..sent]).await?;
    if random.below(2) == 0 {
        stream.set_zero_linger()?;
    }
    Ok(())
}

async fn answer(stream: &mut TcpStream, body: &[u8]) -> io::Result<()> {
    let (mut read, mut part) = (Vec::new(), [0; 4096]);
    let end = |read: &[u8]| read.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let head = loop {
        match end(&read) {
            Some(at) => break at + 4,
            None => match stream.read(&mut part).await? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                count => read.extend_from_slice(&part[..count]),
            },
        }
    };
    let early = read.len() - head;
    read.resize(head + body.len(), 0);
    stream.read_exact(&mut read[head + early..]).await?;
    let is_right = read.starts_with(b"HTTP/1.1 200 ") && &read[head..] == body;
    if is_right {
        Ok(())
    } else {
        Err(io::Error::other("a wrong answer"))
    }
}

// Fails if a client that was not killed sees an error, if more errors are reported than clients
// were killed, if the memory grows, or if a descriptor or a connection is left.
#[test]
#[ignore = "takes ten minutes"]
fn load_with_kills_leaves_nothing_behind() {
    let length = Duration::from_secs(number("SOAK_SECONDS", 600));
    let seed = number("SOAK_SEED", u64::from(std::process::id()));
    // The first runtime and server of a process open descriptors that stay open until its end.
    Server::new().end().unwrap();
    let before = descriptors();
    let server = Server::new();
    let clients = selvedge::Runtime::new().unwrap();
    println!(
        "seed {seed}: {length:?}, {before} descriptors, {} KiB",
        memory()
    );

    let (counts, begun) = (Arc::new(Counts::default()), Instant::now());
    let tasks: Vec<_> = (1..=CONNECTIONS)
        .map(|n| {
            let random = Random(seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15 ^ n) | 1);
            clients.spawn(client(server.address, random, counts.clone()))
        })
        .collect();
    let mut early = 0;
    for quarter in 1..=4 {
        thread::sleep((length * quarter / 4).saturating_sub(begun.elapsed()));
        let now = memory();
        let (answers, killed) = (counts.answers.load(SeqCst), counts.killed.load(SeqCst));
        println!(
            "{answers} answers, {killed} killed, {} descriptors, {now} KiB",
            descriptors()
        );
        early = if quarter == 1 { now } else { early };
        assert!(
            now <= early + MOST,
            "the memory grows from {early} to {now} KiB"
        );
    }
    counts.ends.store(true, SeqCst);
    for task in tasks {
        clients
            .block_on(task)
            .unwrap()
            .expect("no error of a client that was not killed");
    }
    let (state, address) = (server.state.clone(), server.address);
    server.end().expect("a graceful shutdown");
    assert_eq!(state.open.load(SeqCst), 0);
    assert!(net::TcpStream::connect(address).is_err(), "it listens");
    let errors = state.errors.1.len() as u64;
    let killed = counts.killed.load(SeqCst);
    drop(clients);
    let after = descriptors();
    println!(
        "{} answers on {} connections, {killed} killed, {errors} errors of connections, \
         {after} descriptors, {} KiB",
        counts.answers.load(SeqCst),
        counts.connections.load(SeqCst),
        memory()
    );
    assert!(counts.answers.load(SeqCst) > 0);
    assert!(errors <= killed, "{:?}", state.errors.1.try_recv());
    assert_eq!(after, before);
}
