//! The scenarios: which programs run on which hosts, and what must be true of them.
use crate::{greeter, journal, kv, process};
use axum::{
    Router,
    extract::{Path, State},
    http::StatusCode,
    routing::{get, post},
};
use selvedge_sim::{Disk, Faults, Net, Run, Sim, random_below};
use std::{
    collections::BTreeSet,
    io,
    ops::Range,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};

pub type Scenario = fn(Sim) -> Run;

pub const ALL: &[(&str, Scenario)] = &[
    ("web", web),
    ("greeter", greetings),
    ("kv", counters),
    ("journal", texts),
];

const MS: Duration = Duration::from_millis(1);

fn ms(range: Range<u32>) -> Range<Duration> {
    MS * range.start..MS * range.end
}

fn lossy() -> Net {
    Net::new().latency(ms(1..20)).loss(0.02).duplicates(0.02)
}

/// The numbers of the orders that the store has taken. They outlive a crash of the store.
type Orders = Arc<Mutex<BTreeSet<u32>>>;

/// A store behind axum: an order counts once, however often it is sent.
async fn store(orders: Orders) {
    async fn add(State(orders): State<Orders>, Path(number): Path<u32>) -> String {
        sleep(MS * random_below(3) as u32).await;
        orders.lock().unwrap().insert(number);
        number.to_string()
    }
    async fn count(State(orders): State<Orders>) -> String {
        orders.lock().unwrap().len().to_string()
    }
    let app = Router::new()
        .route("/orders/{number}", post(add))
        .route("/orders", get(count))
        .with_state(orders);
    let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
    axum::serve(listener, app).await.unwrap();
}

/// A front of axum that passes requests on by reqwest and its pool of connections.
async fn front() {
    async fn pass_on(
        State(client): State<reqwest::Client>,
        Path(number): Path<u32>,
    ) -> Result<String, StatusCode> {
        let sent = client.post(format!("http://store/orders/{number}")).send();
        let response = sent.await.map_err(|_| StatusCode::BAD_GATEWAY)?;
        response.text().await.map_err(|_| StatusCode::BAD_GATEWAY)
    }
    let app = Router::new()
        .route("/orders/{number}", post(pass_on))
        .with_state(client(250 * MS));
    let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
    axum::serve(listener, app).await.unwrap();
}

fn client(limit: Duration) -> reqwest::Client {
    let builder = reqwest::Client::builder().no_proxy().timeout(limit);
    builder.build().unwrap()
}

/// Sends a request until it succeeds. Returns the body of the answer.
async fn until_done(request: reqwest::RequestBuilder) -> String {
    for _ in 0..200 {
        let request = request.try_clone().expect("the request has no stream");
        if let Ok(response) = request.send().await
            && response.status() == StatusCode::OK
            && let Ok(text) = response.text().await
        {
            return text;
        }
        sleep(MS * (10 + random_below(20) as u32)).await;
    }
    panic!("no request has succeeded");
}

/// axum, hyper and reqwest on three hosts: each order is counted once, whatever crashes.
fn web(sim: Sim) -> Run {
    const ORDERS: u32 = 4;
    let orders = Orders::default();
    let (of_store, checked) = (orders.clone(), orders);
    sim.hosts()
        .server("store", 2, move || store(of_store.clone()))
        .server("front", 1, front)
        .client("user", 2, || async {
            let client = client(600 * MS);
            for number in 0..ORDERS {
                let order = client.post(format!("http://front/orders/{number}"));
                assert_eq!(until_done(order).await, number.to_string());
            }
            let count = until_done(client.get("http://store/orders")).await;
            assert_eq!(count, ORDERS.to_string());
        })
        .net(lossy())
        .partition("front", "store", ms(100..400))
        .faults(
            Faults::new()
                .crashes(2)
                .partitions(1)
                .during(600 * MS)
                .longest(300 * MS),
        )
        .check(move || assert_eq!(checked.lock().unwrap().len() as u32, ORDERS))
        .run()
}

/// tonic's server and channel: the program `greeter` prints the same lines on any network that is
/// slow, and that loses packets.
fn greetings(sim: Sim) -> Run {
    const LINES: &[&str] = &[
        "hello, you",
        "with a deadline: Cancelled",
        "the server's limit: Some(Cancelled)",
        "one, one",
        "two, two",
        "three, three",
    ];
    sim.hosts()
        .server("server", 2, || async {
            let args = ["greeter", "serve", "0.0.0.0:50051"];
            let ended = process::run(&args, greeter::main).await;
            panic!("the server has ended: {ended:?}");
        })
        .client("client", 2, || async {
            // The server may not listen yet.
            sleep(5 * MS).await;
            let args = ["greeter", "call", "http://server:50051"];
            process::run(&args, greeter::main).await.unwrap();
        })
        .net(lossy())
        .faults(
            Faults::new()
                .partitions(1)
                .during(1_200 * MS)
                .longest(300 * MS),
        )
        .check(|| {
            let lines = process::output();
            let mut lines = lines.iter().filter(|line| !line.starts_with("listens"));
            assert!(lines.by_ref().eq(LINES), "{:?}", process::output());
        })
        .run()
}

/// A connection of a client of Redis's protocol.
struct Redis(BufReader<TcpStream>);

impl Redis {
    async fn connect() -> io::Result<Self> {
        let stream = TcpStream::connect("store:6380").await?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends commands by one write.
    async fn send(&mut self, commands: &[&[&str]]) -> io::Result<()> {
        let mut text = String::new();
        for command in commands {
            text += &format!("*{}\r\n", command.len());
            for arg in *command {
                text += &format!("${}\r\n{arg}\r\n", arg.len());
            }
        }
        self.0.write_all(text.as_bytes()).await
    }

    /// Receives an answer: its first line, or the string that follows it.
    async fn answer(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.0.read_line(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end();
        let Some(len) = line.strip_prefix('$').filter(|len| *len != "-1") else {
            return Ok(line.to_owned());
        };
        let mut text = vec![0; len.parse::<usize>().unwrap() + 2];
        self.0.read_exact(&mut text).await?;
        text.truncate(text.len() - 2);
        Ok(String::from_utf8(text).unwrap())
    }
}

/// Counts up, and sets a long string, by commands that leave together. Returns the counter.
async fn round(redis: &mut Redis, key: &str, round: usize) -> io::Result<u64> {
    let (long_key, long) = (format!("{key}-long"), "x".repeat(round * 9_000));
    let commands: &[&[&str]] = &[
        &["INCR", key],
        &["SET", &long_key, &long],
        &["GET", &long_key],
        &["LPUSH", "list", key],
    ];
    redis.send(commands).await?;
    let count = redis.answer().await?;
    assert_eq!(redis.answer().await?, "+OK");
    assert!(redis.answer().await? == long, "another string came back");
    assert!(redis.answer().await?.starts_with(':'));
    Ok(count.strip_prefix(':').unwrap().parse().unwrap())
}

/// Two clients of the program `kv` count. A command whose answer does not come has happened once
/// or not at all.
fn counters(sim: Sim) -> Run {
    async fn count(key: &'static str) {
        const ROUNDS: usize = 6;
        let (mut sent, mut answered, mut last) = (0, 0, 0);
        let mut redis = None;
        while answered < ROUNDS {
            let attempt = async {
                let redis = match &mut redis {
                    Some(redis) => redis,
                    none => none.insert(Redis::connect().await?),
                };
                sent += 1;
                round(redis, key, answered).await
            };
            match timeout(400 * MS, attempt).await {
                Ok(Ok(counter)) => {
                    assert!(counter > last, "{counter} comes after {last}");
                    answered += 1;
                    last = counter;
                }
                Ok(Err(_)) | Err(_) => {
                    redis = None;
                    sleep(MS * (10 + random_below(20) as u32)).await;
                }
            }
            assert!(last <= sent, "{last} of {sent} commands were counted");
        }
        assert!(last >= answered as u64);
    }
    sim.hosts()
        .server("store", 2, || async {
            let ended = process::run(&["kv", "0.0.0.0:6380"], kv::main).await;
            panic!("the server has ended: {ended:?}");
        })
        .client("one", 1, || count("one"))
        .client("other", 2, || count("other"))
        .net(lossy())
        .faults(
            Faults::new()
                .partitions(2)
                .during(500 * MS)
                .longest(500 * MS),
        )
        .run()
}

/// Sends a line to the program `journal`, and returns the answer.
async fn ask_journal(line: &str) -> io::Result<String> {
    let mut stream = BufReader::new(TcpStream::connect("store:7000").await?);
    stream.write_all(format!("{line}\n").as_bytes()).await?;
    let mut answer = String::new();
    if stream.read_line(&mut answer).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(answer.trim_end().to_owned())
}

/// Sends a line until there is an answer.
async fn until_answered(line: &str) -> String {
    for _ in 0..200 {
        if let Ok(Ok(answer)) = timeout(200 * MS, ask_journal(line)).await {
            return answer;
        }
        sleep(MS * (10 + random_below(20) as u32)).await;
    }
    panic!("nobody answers");
}

/// The program `journal`, which keeps its texts by `tokio::fs` on a disk that loses and tears what
/// is not synced: what it has acknowledged outlives each crash of its host.
fn texts(sim: Sim) -> Run {
    let disk = Disk::new().torn_writes().fsync_time(ms(1..10));
    sim.hosts()
        .server("store", 2, || async {
            let args = ["journal", "0.0.0.0:7000", "/data"];
            let ended = process::run(&args, journal::main).await;
            panic!("the server has ended: {ended:?}");
        })
        .client("user", 1, || async {
            // A line that was sent twice may arrive late, so each key has one text.
            let text = |key: u64| "x".repeat(300 * key as usize) + "end";
            for key in 0..8 {
                let answer = until_answered(&format!("put {key} {}", text(key))).await;
                assert_eq!(answer, "ok");
                let earlier = random_below(key + 1);
                let answer = until_answered(&format!("get {earlier}")).await;
                assert!(
                    answer == text(earlier),
                    "key {earlier} has the text {answer}"
                );
            }
        })
        .disk("store", "/data", disk)
        .net(lossy())
        .faults(Faults::new().crashes(3).during(500 * MS).longest(100 * MS))
        .run()
}
