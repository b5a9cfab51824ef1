//! Runs the program of the chapter about tokio, once with `tokio` and once with `selvedge`.
#![cfg(target_os = "linux")]
use std::{
    fs,
    io::{BufRead, BufReader, Lines, Write},
    net::{Shutdown, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
};

struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(program: &str, file: &Path) -> Self {
        let child = Command::new(program)
            .arg("127.0.0.1:0")
            .arg(file)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut server = Self {
            child,
            address: String::new(),
        };
        let stdout = server.child.stdout.take().unwrap();
        let line = BufReader::new(stdout).lines().next().unwrap().unwrap();
        server.address = line.strip_prefix("listening on ").unwrap().to_owned();
        server
    }

    /// Sends Ctrl-C, and returns the exit code.
    fn interrupt(mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        let killed = Command::new("kill").args(["-INT", &id]).status().unwrap();
        assert!(killed.success());
        self.child.wait().unwrap().code()
    }
}

/// A test that fails leaves no program behind.
impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Client {
    stream: TcpStream,
    lines: Lines<BufReader<TcpStream>>,
}

impl Client {
    fn connect(server: &Server) -> Self {
        let stream = TcpStream::connect(&server.address).unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap()).lines();
        Self { stream, lines }
    }

    fn ask(&mut self, request: &str) -> String {
        writeln!(self.stream, "{request}").unwrap();
        self.read_line().unwrap()
    }

    fn read_line(&mut self) -> Option<String> {
        self.lines.next().map(Result::unwrap)
    }
}

/// Talks to a server, ends it, and starts it again. Returns what the server said, and the file that
/// it saved.
fn talk(program: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("map");
    let server = Server::start(program, &file);
    let (mut one, mut other) = (Client::connect(&server), Client::connect(&server));
    let mut answers = Vec::new();
    for request in [
        "GET a",
        "SET a 1",
        "GET a",
        "SET b two words",
        "KEYS",
        "DEL b",
        "DEL b",
        "SAVE",
        "SET",
        "SETEX a soon 1",
        "SHOUT",
        "GET a b",
    ] {
        answers.push(one.ask(request));
    }
    answers.push(other.ask("WATCH c"));
    answers.push(one.ask("SETEX c 20 soon"));
    // `other` watches the key `c`. It reads the new value, and then that the key has expired.
    answers.extend([other.read_line().unwrap(), other.read_line().unwrap()]);
    answers.push(one.ask("GET c"));
    answers.push(one.ask("SET d 4"));
    answers.push(one.ask("QUIT"));
    assert_eq!(one.read_line(), None);
    // The client `last` stays connected, so the server tells it of the end.
    let mut last = Client::connect(&server);
    answers.push(last.ask("GET d"));
    assert_eq!(server.interrupt(), Some(0));
    answers.extend([last.read_line().unwrap(), other.read_line().unwrap()]);
    assert_eq!((last.read_line(), other.read_line()), (None, None));
    answers.push(fs::read_to_string(&file).unwrap());

    let server = Server::start(program, &file);
    let mut again = Client::connect(&server);
    answers.push(again.ask("GET d"));
    again.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(again.read_line(), None);
    assert_eq!(server.interrupt(), Some(0));
    answers
}

/// Fails if the program does not run with one of the two crates, or answers differently with one of
/// them.
#[test]
fn program_says_the_same_with_both_crates() {
    let there = talk(env!("CARGO_BIN_EXE_kv-tokio"));
    let expected = [
        "(none)",
        "ok",
        "1",
        "ok",
        "a b",
        "1",
        "0",
        "ok c2562782abdd28bf",
        "error: SET key value",
        "error: no number of milliseconds",
        "error: no such request",
        "error: a key has no space",
        "ok",
        "ok",
        "c is soon",
        "c is (none)",
        "(none)",
        "ok",
        "bye",
        "4",
        "the server ends",
        "the server ends",
        "a 1\nd 4\n",
        "4",
    ];
    assert_eq!(there, expected);
    assert_eq!(talk(env!("CARGO_BIN_EXE_kv-selvedge")), expected);
}

/// Fails if a signal that comes as soon as the program listens kills it: it would not save its map.
#[test]
fn program_that_listens_catches_the_signals() {
    for program in [
        env!("CARGO_BIN_EXE_kv-tokio"),
        env!("CARGO_BIN_EXE_kv-selvedge"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(program, &folder.path().join("map"));
        let status = fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
        let caught = status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:\t"));
        let caught = u64::from_str_radix(caught.unwrap(), 16).unwrap();
        for (name, signal) in [("SIGINT", 2), ("SIGTERM", 15)] {
            assert_ne!(caught & 1 << (signal - 1), 0, "{program}, {name}");
        }
        assert_eq!(server.interrupt(), Some(0));
    }
}

/// Fails if the program accepts missing arguments, or does not show its usage.
#[test]
fn program_without_arguments_exits_with_2() {
    for program in [
        env!("CARGO_BIN_EXE_kv-tokio"),
        env!("CARGO_BIN_EXE_kv-selvedge"),
    ] {
        let output = Command::new(program).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stderr.starts_with(b"usage: "));
    }
}

/// Fails if the two programs differ in more than the crate's name, or if the chapter shows another
/// difference.
#[test]
fn programs_differ_by_the_name_as_the_chapter_shows() {
    let read =
        |file: &str| fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let (there, here) = (read("port/tokio.rs"), read("port/selvedge.rs"));
    assert_eq!(there.lines().count(), here.lines().count());
    let mut shown = String::new();
    for (there, here) in there.lines().zip(here.lines()) {
        if there != here {
            assert_eq!(there.replacen("tokio::", "selvedge::", 1), here);
            shown += &format!("-{there}\n+{here}\n");
        }
    }
    let chapter = read("src/from-tokio.md");
    assert!(
        chapter.contains(&shown),
        "the chapter should show:\n{shown}"
    );
}
