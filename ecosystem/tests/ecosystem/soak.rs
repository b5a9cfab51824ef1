//! Ten minutes of load on `axum_app` by 500 connections of `wrk`, whose processes are killed at
//! random:
//!
//! ```sh
//! cargo test --release --manifest-path ecosystem/Cargo.toml -- --ignored --nocapture soak
//! ```
//!
//! `SOAK_SECONDS` sets another length.
use crate::{
    http::get,
    program::{LIMIT, Server, start_tool},
};
use std::{
    env, fs,
    hash::{BuildHasher, RandomState},
    io::Read,
    net::TcpStream,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Processes of `wrk` at a time.
const CLIENTS: usize = 5;

/// The length of a run of `wrk` that is not killed, in seconds.
const RUN: u64 = 20;

/// The server's memory may grow by this much after the first quarter of the time, in KiB.
const MOST: u64 = 32 << 10;

/// A random number below `limit`.
fn below(limit: u64) -> u64 {
    RandomState::new().hash_one(limit) % limit
}

/// A run of `wrk`, and when it is killed.
struct Client {
    child: Child,
    kill_at: Option<Instant>,
}

impl Client {
    /// Starts a run of 100 connections. Every second run is killed before its end.
    fn start(url: &str) -> Self {
        let run = format!("-d{RUN}s");
        let mut wrk = Command::new("wrk");
        // Without its own limit of two seconds for an answer: a busy machine may take longer.
        wrk.args(["-t1", "-c100", &run, "--timeout", "600s", url])
            .stdout(Stdio::piped());
        let child = start_tool(&mut wrk).expect("this test needs wrk");
        let is_killed = below(2) == 0;
        let kill_at = is_killed.then(|| Instant::now() + Duration::from_millis(below(RUN * 1_000)));
        Self { child, kill_at }
    }

    /// Kills the run if it is time. Returns the report of a run that has ended: an empty one if the
    /// run was killed.
    fn end(&mut self) -> Option<String> {
        if self.kill_at.is_some_and(|at| at <= Instant::now()) {
            self.child.kill().unwrap();
        }
        let status = self.child.try_wait().unwrap()?;
        let mut report = String::new();
        let output = self.child.stdout.as_mut();
        output.unwrap().read_to_string(&mut report).unwrap();
        // A run that ends while it is being killed has a report.
        assert!(status.success() || self.kill_at.is_some(), "{status}");
        Some(report)
    }
}

/// The number of requests in a report of `wrk`.
fn requests(report: &str) -> u64 {
    let line = report.lines().find(|line| line.contains(" requests in "));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.expect("a number of requests").parse().unwrap()
}

// Fails if a run that was not killed reports an error, if the server's memory grows, if a
// descriptor of the server is left open, or if the server does not end by itself after Ctrl-C while
// a client keeps a connection.
#[test]
#[ignore = "takes ten minutes"]
fn soak_by_wrk_with_kills_leaves_nothing_behind() {
    let given = env::var("SOAK_SECONDS").ok();
    let seconds = given.map_or(600, |text| text.parse().expect("a number of seconds"));
    let (length, begun) = (Duration::from_secs(seconds), Instant::now());
    let server = Server::start(env!("CARGO_BIN_EXE_axum_app"), &["127.0.0.1:0"]);
    let url = server.url("/hello/you");
    // The first request opens descriptors that stay open.
    assert_eq!(get(&url).1, "hello, you\n");
    let proc = format!("/proc/{}", server.id());
    let descriptors = || fs::read_dir(format!("{proc}/fd")).unwrap().count();
    let memory = || {
        let status = fs::read_to_string(format!("{proc}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let number = line.unwrap().split_whitespace().nth(1);
        number.unwrap().parse::<u64>().unwrap()
    };
    let expect_descriptors = |wanted: usize| {
        let begun = Instant::now();
        while descriptors() != wanted && begun.elapsed() < LIMIT {
            thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(descriptors(), wanted);
    };
    // The server may close the first connection late, so the fewest in a second count.
    let pause = || thread::sleep(Duration::from_millis(10));
    let before = (0..100).map(|_| (descriptors(), pause()).0).min().unwrap();
    println!("{before} descriptors, {} KiB", memory());

    let mut clients: Vec<_> = (0..CLIENTS).map(|_| Client::start(&url)).collect();
    let (mut answers, mut runs, mut killed, mut early) = (0, 0, 0, 0);
    for quarter in 1..=4 {
        while begun.elapsed() < length * quarter / 4 {
            thread::sleep(Duration::from_millis(10));
            for client in &mut clients {
                let Some(report) = client.end() else { continue };
                if report.is_empty() {
                    killed += 1;
                } else {
                    let has_errors = report.contains("Socket errors") || report.contains("Non-2xx");
                    assert!(!has_errors, "{report}");
                    answers += requests(&report);
                    runs += 1;
                }
                *client = Client::start(&url);
            }
        }
        let now = memory();
        println!(
            "{answers} answers in {runs} runs, {killed} runs killed, {} descriptors, {now} KiB",
            descriptors()
        );
        early = if quarter == 1 { now } else { early };
        assert!(
            now <= early + MOST,
            "the memory grows from {early} to {now} KiB"
        );
    }
    for client in &mut clients {
        client.child.kill().unwrap();
        client.child.wait().unwrap();
    }
    expect_descriptors(before);
    println!("{before} descriptors, {} KiB at the end", memory());

    let mut stays = TcpStream::connect(&server.address).unwrap();
    expect_descriptors(before + 1);
    server.stop();
    assert!(
        matches!(stays.read(&mut [0]), Ok(0)),
        "the server closes it"
    );
}
