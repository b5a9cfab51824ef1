//! Runs the systems in turn, and prints a table.
use std::{
    env, fs,
    io::{BufRead, BufReader},
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

pub const HELP: &str = "\
cluster-bench all [--rounds N] [--millis N] [--messages N] [--rows call,flood_1,flood_100,bytes]
                  [--peer NAME[/MESSAGES]=PROGRAM]...";

struct System {
    name: String,
    /// The program, and its first words.
    program: Vec<String>,
    messages: u64,
}

impl System {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program[0]);
        command.args(&self.program[1..]).args(words);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        command
    }

    fn serve(&self, port: &str, pairs: &str) -> Server {
        let mut child = self.command(&["serve", port, pairs]).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready", "{}", self.name);
        Server(child)
    }

    /// Runs a client. Returns the numbers that it prints, or none if it takes too long or fails.
    fn client(&self, words: &[&str]) -> Vec<f64> {
        let mut child = self.command(words).spawn().unwrap();
        let begun = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if begun.elapsed() > Duration::from_secs(60) {
                let _ = child.kill();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let numbers = text.split_whitespace().skip(1);
        numbers.map(|number| number.parse().unwrap()).collect()
    }
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port().to_string()
}

/// The bytes that the loopback of this network namespace has carried.
fn loopback_bytes() -> f64 {
    let interfaces = fs::read_to_string("/proc/self/net/dev").unwrap();
    let line = interfaces
        .lines()
        .find_map(|line| line.trim().strip_prefix("lo:"));
    let bytes = line.unwrap().split_whitespace().next().unwrap();
    bytes.parse().unwrap()
}

/// Returns what a row measures, in one round.
fn measure(system: &System, row: &str, millis: &str) -> Vec<f64> {
    let port = free_port();
    let pairs = if row == "flood_100" { "100" } else { "1" };
    let _server = system.serve(&port, pairs);
    let messages = system.messages.to_string();
    match row {
        "call" => {
            let call = system.client(&["call", &port, millis]);
            call.iter().take(2).map(|nanos| nanos / 1_000.0).collect()
        }
        // The bytes of a run with messages, less those of a run with a tenth of them.
        "bytes" => {
            let tenth = (system.messages / 10).to_string();
            let begin = loopback_bytes();
            if system.client(&["flood", &port, "1", &tenth]).is_empty() {
                return Vec::new();
            }
            let middle = loopback_bytes();
            if system.client(&["flood", &port, "1", &messages]).is_empty() {
                return Vec::new();
            }
            let (few, many) = (middle - begin, loopback_bytes() - middle);
            vec![(many - few) / (system.messages * 9 / 10) as f64 - 64.0]
        }
        _ => system.client(&["flood", &port, pairs, &messages]),
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

pub fn all(words: &[&str]) {
    let (mut rounds, mut millis, mut messages) = (5, "1000", 200_000);
    let mut rows = "call,flood_1,flood_100";
    let own = env::current_exe().unwrap().to_str().unwrap().to_owned();
    let mut systems = Vec::new();
    let mut words = words.iter();
    while let (Some(key), Some(value)) = (words.next(), words.next()) {
        match *key {
            "--rounds" => rounds = value.parse().expect("a number"),
            "--millis" => millis = value,
            "--messages" => messages = value.parse().expect("a number"),
            "--rows" => rows = value,
            "--peer" => {
                let (name, program) = value.split_once('=').expect("NAME=PROGRAM");
                let (name, messages) = name.split_once('/').unwrap_or((name, "0"));
                systems.push(System {
                    name: name.to_owned(),
                    program: program.split_whitespace().map(str::to_owned).collect(),
                    messages: messages.parse().expect("a number"),
                });
            }
            _ => panic!("{HELP}"),
        }
    }
    for name in ["ours", "zenoh"] {
        systems.push(System {
            name: name.to_owned(),
            program: vec![own.clone(), name.to_owned()],
            messages: 0,
        });
    }
    for system in &mut systems {
        if system.messages == 0 {
            system.messages = messages;
        }
    }
    println!("| row | system | median of {rounds} rounds | rounds |\n|---|---|---|---|");
    for row in rows.split(',') {
        let mut taken = vec![Vec::new(); systems.len()];
        for _ in 0..rounds {
            for (system, taken) in systems.iter().zip(&mut taken) {
                taken.push(measure(system, row, millis));
            }
        }
        for (system, taken) in systems.iter().zip(taken) {
            let column = |at: usize| {
                let values = taken.iter().filter_map(|values| values.get(at)).copied();
                median(values.collect())
            };
            let medians = [column(0), column(1)].into_iter().flatten();
            let medians: Vec<_> = medians.map(|value| format!("{value:.1}")).collect();
            let rounds: Vec<_> = taken
                .iter()
                .map(|values| {
                    values
                        .first()
                        .map_or("-".to_owned(), |value| format!("{value:.0}"))
                })
                .collect();
            let (medians, rounds) = (medians.join(" / "), rounds.join(" "));
            println!("| {row} | {} | {medians} | {rounds} |", system.name);
        }
    }
}
