//! Programs of several hosts, under faults. What a program must not lose is on a *disk*: a value
//! that outlives the crashes of its host.
use crate::mistakes::is_planted;
use net_driver::{
    net::{TcpListener, TcpSocket, TcpStream, UdpSocket},
    time::{Instant, sleep, timeout},
};
use selvedge_executor::{spawn, yield_now};
use selvedge_sim::{Faults, Net, Run, Sim, random_below};
use std::{
    collections::BTreeSet,
    future::Future,
    io::{self, ErrorKind},
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use task_io::{AsyncReadExt, AsyncWriteExt};

pub const MS: Duration = Duration::from_millis(1);

/// A value on a disk.
#[derive(Default)]
pub struct Disk<T>(Arc<Mutex<T>>);

impl<T> Clone for Disk<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Disk<T> {
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

pub fn ms(range: Range<u32>) -> Range<Duration> {
    MS * range.start..MS * range.end
}

pub fn lossy() -> Net {
    Net::new().latency(ms(1..20)).loss(0.02).duplicates(0.02)
}

/// Serves each connection in a task of its own.
pub async fn serve<F: Future<Output = io::Result<()>> + Send + 'static>(
    port: u16,
    serve_one: impl Fn(TcpStream) -> F,
) {
    let listener = TcpListener::bind(("0.0.0.0", port)).await.unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        spawn(serve_one(stream));
    }
}

/// Makes a connection, sends these numbers, and returns the number that comes back.
pub async fn call(to: &str, words: impl AsRef<[u64]>) -> io::Result<u64> {
    let mut stream = TcpStream::connect(to).await?;
    for word in words.as_ref() {
        stream.write_u64(*word).await?;
    }
    stream.read_u64().await
}

/// Repeats a request until it succeeds in time.
pub async fn until_done<R, F: Future<Output = io::Result<R>>>(
    limit: Duration,
    mut request: impl FnMut(u8) -> F,
) -> R {
    for attempt in 0..=u8::MAX {
        if let Ok(Ok(done)) = timeout(limit, request(attempt)).await {
            return done;
        }
        sleep(MS * (10 + random_below(20) as u32)).await;
    }
    panic!("no request has succeeded");
}

/// The data on the disk of the store.
#[derive(Default)]
struct Ledger {
    known: BTreeSet<u64>,
    sum: u64,
}

/// Adds 1 to the sum for each request, once for each number.
async fn add(disk: Disk<Ledger>, mut stream: TcpStream) -> io::Result<()> {
    loop {
        let number = stream.read_u64().await?;
        if is_planted("answer before the write") {
            stream.write_u64(number).await?;
        }
        sleep(MS * random_below(3) as u32).await;
        disk.with(|ledger| {
            if ledger.known.insert(number) {
                ledger.sum += 1;
            }
        });
        stream.write_u64(number).await?;
    }
}

/// Passes requests on to the store.
async fn relay(mut from: TcpStream) -> io::Result<()> {
    let mut to = TcpStream::connect("store:1").await?;
    loop {
        let number = from.read_u64().await?;
        to.write_u64(number).await?;
        from.write_u64(to.read_u64().await?).await?;
    }
}

async fn request(number: u64) -> io::Result<()> {
    let mut stream = TcpStream::connect("front:1").await?;
    stream.write_u64(number).await?;
    assert_eq!(stream.read_u64().await?, number);
    Ok(())
}

/// Three hosts: each request is counted once, whatever crashes.
pub fn requests(sim: Sim) -> Run {
    const REQUESTS: u64 = 4;
    let disk = Disk::<Ledger>::default();
    let (store, checked) = (disk.clone(), disk);
    sim.hosts()
        .server("store", 2, move || {
            let disk = store.clone();
            serve(1, move |stream| add(disk.clone(), stream))
        })
        .server("front", 1, || serve(1, relay))
        .client("web", 2, || async {
            for number in 0..REQUESTS {
                let is_new = is_planted("retry has a new number");
                until_done(400 * MS, |attempt| {
                    request(number + u64::from(is_new) * 100 * u64::from(attempt))
                })
                .await;
            }
        })
        .net(lossy())
        .faults(
            Faults::new()
                .crashes(2)
                .partitions(1)
                .during(400 * MS)
                .longest(300 * MS),
        )
        .check(move || checked.with(|ledger| assert_eq!(ledger.sum, REQUESTS)))
        .run()
}

/// Two clients send bytes through a wire that loses some of them, and get each back.
pub fn echo(sim: Sim) -> Run {
    async fn answer(mut stream: TcpStream) -> io::Result<()> {
        let mut part = [0; 1_000];
        loop {
            let count = stream.read(&mut part).await?;
            if count == 0 {
                return stream.shutdown().await;
            }
            stream.write_all(&part[..count]).await?;
        }
    }
    let client = || async {
        let stream = TcpStream::connect("server:7").await.unwrap();
        let (mut read, mut write) = stream.into_split();
        let sent: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
        let expected = sent.clone();
        let writer = spawn(async move {
            write.write_all(&sent).await.unwrap();
            write.shutdown().await.unwrap();
        });
        let mut back = Vec::new();
        read.read_to_end(&mut back).await.unwrap();
        assert!(back == expected, "{} bytes came back", back.len());
        writer.await.unwrap();
    };
    sim.hosts()
        .server("server", 2, move || serve(7, answer))
        .client("one", 1, client)
        .client("other", 2, client)
        .net(lossy().bandwidth(10 << 20))
        .faults(
            Faults::new()
                .partitions(2)
                .during(300 * MS)
                .longest(500 * MS),
        )
        .run()
}

/// A server that gives up after a while ends its stream early. A client must notice.
pub fn transfers(sim: Sim) -> Run {
    const LEN: usize = 150_000;
    async fn send(mut stream: TcpStream) -> io::Result<()> {
        let attempt = stream.read_u8().await?;
        let limit = MS * 40 * (u32::from(attempt) + 1);
        let body = async {
            stream.write_u32(LEN as u32).await?;
            stream.write_all(&vec![7; LEN]).await
        };
        timeout(limit, body).await.unwrap_or(Ok(()))
    }
    async fn fetch(attempt: u8) -> io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect("server:1").await?;
        stream.write_u8(attempt).await?;
        let len = stream.read_u32().await? as usize;
        let mut body = Vec::new();
        stream.read_to_end(&mut body).await?;
        if body.len() < len && !is_planted("part of a stream is taken for the whole") {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(body)
    }
    sim.hosts()
        .server("server", 1, move || serve(1, send))
        .client("web", 2, || async {
            let body = until_done(10_000 * MS, fetch).await;
            assert_eq!(body.len(), LEN);
        })
        .net(Net::new().latency(ms(1..20)))
        .run()
}

/// A lock that is granted for some time has one holder at a time, also after a crash of its server.
pub fn leases(sim: Sim) -> Run {
    const LEASE: Duration = Duration::from_millis(200);
    type Granted = Arc<Mutex<Option<Instant>>>;
    async fn grant(granted: Granted, mut stream: TcpStream) -> io::Result<()> {
        stream.read_u8().await?;
        let is_free = {
            let mut granted = granted.lock().unwrap();
            let now = Instant::now();
            let is_free = granted.is_none_or(|until| until < now);
            if is_free {
                *granted = Some(now + LEASE);
            }
            is_free
        };
        stream.write_u8(u8::from(is_free)).await
    }
    /// Returns the end of the lease.
    async fn acquire() -> io::Result<Instant> {
        let begun = Instant::now();
        let mut stream = TcpStream::connect("locks:1").await?;
        stream.write_u8(1).await?;
        match stream.read_u8().await? {
            1 => Ok(begun + LEASE),
            _ => Err(ErrorKind::WouldBlock.into()),
        }
    }
    let held = Disk::<Vec<Range<Instant>>>::default();
    let client = move || {
        let held = held.clone();
        async move {
            for _ in 0..3 {
                let until = until_done(100 * MS, |_| acquire()).await;
                let now = Instant::now();
                if now < until {
                    held.with(|held| {
                        let meets = |other: &Range<Instant>| other.start < until && now < other.end;
                        assert!(!held.iter().any(meets), "two have the lock");
                        held.push(now..until);
                    });
                    sleep(LEASE / 2).await;
                }
            }
        }
    };
    sim.hosts()
        .server("locks", 1, || async {
            // An earlier incarnation may have granted a lease.
            if !is_planted("leases are forgotten at a restart") {
                sleep(LEASE).await;
            }
            let granted = Granted::default();
            serve(1, move |stream| grant(granted.clone(), stream)).await;
        })
        .client("one", 1, client.clone())
        .client("other", 1, client)
        .net(Net::new().latency(ms(1..10)))
        .crash("locks", ms(200..900), Some(20 * MS))
        .run()
}

/// Datagrams are lost, repeated and overtaken. The answer to an earlier question is not taken for
/// that to a later one.
pub fn datagrams(sim: Sim) -> Run {
    async fn answer() {
        let socket = UdpSocket::bind("0.0.0.0:53").await.unwrap();
        let mut question = [0; 16];
        loop {
            let (count, from) = socket.recv_from(&mut question).await.unwrap();
            let answer: Vec<u8> = question[..count].iter().rev().copied().collect();
            socket.send_to(&answer, from).await.unwrap();
        }
    }
    async fn ask(socket: &UdpSocket, number: u8) {
        loop {
            socket.send(&[number, 7]).await.unwrap();
            let answered = async {
                let mut answer = [0; 16];
                loop {
                    // A server that starts anew refuses datagrams for a moment.
                    let Ok(count) = socket.recv(&mut answer).await else {
                        continue;
                    };
                    let any = is_planted("answer to an earlier question is taken");
                    assert!(!any || answer[..count] == [7, number], "a wrong answer");
                    if answer[..count] == [7, number] {
                        return;
                    }
                }
            };
            if timeout(100 * MS, answered).await.is_ok() {
                return;
            }
        }
    }
    sim.hosts()
        .server("names", 1, answer)
        .client("web", 2, || async {
            let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
            socket.connect("names:53").await.unwrap();
            for number in 0..20 {
                ask(&socket, number).await;
            }
        })
        .net(Net::new().latency(ms(1..60)).loss(0.1).duplicates(0.1))
        .faults(
            Faults::new()
                .crashes(1)
                .partitions(1)
                .during(500 * MS)
                .longest(300 * MS),
        )
        .run()
}

/// More clients than the queue of a listener takes: all are served in the end.
pub fn full_queue(sim: Sim) -> Run {
    sim.hosts()
        .server("server", 1, || async {
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind("0.0.0.0:1".parse().unwrap()).unwrap();
            let listener = socket.listen(1).unwrap();
            loop {
                sleep(50 * MS).await;
                let (mut stream, _) = listener.accept().await.unwrap();
                stream.write_u8(1).await.unwrap();
            }
        })
        .client("web", 2, || async {
            let clients = (0..6).map(|_| {
                spawn(async {
                    let mut stream = TcpStream::connect("server:1").await.unwrap();
                    stream.read_u8().await.unwrap();
                })
            });
            for client in clients.collect::<Vec<_>>() {
                client.await.unwrap();
            }
        })
        .run()
}

/// Each side ends its stream, drops it, or resets it, at some time. The other side sees what was
/// sent before, and then an end, or an error that says so. A reset is sent once: if it is lost, a
/// side that only reads hears nothing more, as with any TCP, so it waits for a minute at most.
pub fn endings(sim: Sim) -> Run {
    async fn read(stream: &mut TcpStream, part: &mut [u8]) -> io::Result<usize> {
        let read = timeout(MS * 60_000, stream.read(part)).await;
        read.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
    }
    async fn talk(mut stream: TcpStream) -> io::Result<()> {
        let mut part = [0; 64];
        for _ in 0..random_below(4) {
            stream.write_all(b"some bytes").await?;
            match random_below(3) {
                0 => sleep(MS * random_below(10) as u32).await,
                1 => yield_now().await,
                _ => drop(read(&mut stream, &mut part).await?),
            }
        }
        match random_below(4) {
            0 => drop(stream.shutdown().await),
            1 => {
                stream.shutdown().await?;
                while read(&mut stream, &mut part).await? > 0 {}
            }
            2 => stream.set_zero_linger()?,
            _ => {}
        }
        Ok(())
    }
    /// Returns the error, if it is one that no ending explains.
    fn unknown(done: io::Result<()>) -> Option<String> {
        let known = [
            ErrorKind::BrokenPipe,
            ErrorKind::ConnectionReset,
            ErrorKind::NotConnected,
            ErrorKind::TimedOut,
        ];
        let error = done.err().filter(|error| !known.contains(&error.kind()));
        error.map(|error| error.to_string())
    }
    let errors = Disk::<Vec<String>>::default();
    let (of_server, checked) = (errors.clone(), errors);
    sim.hosts()
        .server("server", 2, move || {
            let errors = of_server.clone();
            serve(1, move |stream| {
                let errors = errors.clone();
                async move {
                    let error = unknown(talk(stream).await);
                    errors.with(|errors| errors.extend(error));
                    Ok(())
                }
            })
        })
        .client("web", 2, || async {
            let talks = (0..4).map(|_| {
                spawn(async {
                    // The server may reset the connection before this sees it.
                    let done = match TcpStream::connect("server:1").await {
                        Ok(stream) => talk(stream).await,
                        Err(error) => Err(error),
                    };
                    assert_eq!(unknown(done), None);
                })
            });
            for talk in talks.collect::<Vec<_>>() {
                talk.await.unwrap();
            }
        })
        .net(lossy())
        .check(move || checked.with(|errors| assert!(errors.is_empty(), "{errors:?}")))
        .run()
}
