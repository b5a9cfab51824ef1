//! Runs the examples as processes of the system.
#![cfg(unix)]
use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

const LONG: Duration = Duration::from_secs(120);

/// Cargo builds the examples with the tests, and puts them into a folder beside that of the tests.
fn example(name: &str) -> Command {
    let test = env::current_exe().unwrap();
    let profile = test.parent().unwrap().parent().unwrap();
    let path = profile.join("examples").join(name);
    let path_text = path.display();
    assert!(
        path.exists(),
        "{path_text} is not built: run all tests of the package"
    );
    Command::new(path)
}

/// Returns a new folder.
fn folder(name: &str) -> PathBuf {
    let folder = env::temp_dir().join(format!("{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A program that runs, its input, and the lines that it prints.
struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { child, lines }
    }

    /// Waits for a line that contains a text.
    #[track_caller]
    fn prints(&self, text: &str) -> String {
        let mut before = Vec::new();
        loop {
            match self.lines.recv_timeout(LONG) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => before.push(line),
                Err(_) => panic!("it does not print {text:?}:\n{}", before.join("\n")),
            }
        }
    }

    fn says(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
    }

    fn is_told(&self, signal: &str) {
        let mut kill = Command::new("kill");
        kill.args([signal, &self.child.id().to_string()]);
        assert!(kill.status().unwrap().success());
    }

    #[track_caller]
    fn succeeds(mut self) {
        drop(self.child.stdin.take());
        let ended = self.child.wait().unwrap();
        let lines: Vec<_> = self.lines.iter().collect();
        assert!(ended.success(), "{ended}:\n{}", lines.join("\n"));
    }
}

fn bank(folder: &Path, transfers: u32, kills: u32) -> Running {
    let mut bank = example("cluster_bank");
    bank.args(["--accounts", "30", "--transfers", &transfers.to_string()]);
    bank.args(["--kills", &kills.to_string(), "--folder"])
        .arg(folder);
    Running::start(bank)
}

fn is_alive(process: &str) -> bool {
    Path::new("/proc").join(process).exists()
}

/// Fails if a transfer that a kill interrupts is lost or comes twice.
#[test]
fn bank_that_loses_nodes_loses_no_money() {
    let folder = folder("bank-kills");
    let bank = bank(&folder, 1_000, 4);
    for _ in 0..4 {
        bank.prints("was killed");
    }
    bank.prints("add up to 30000 of 30000");
    bank.succeeds();
    fs::remove_dir_all(folder).unwrap();
}

/// The whole bank is killed amid its transfers, and goes on later; then Ctrl-C ends it.
#[test]
fn bank_that_is_killed_goes_on_from_its_journals() {
    let folder = folder("bank-again");
    for signal in ["-KILL", "-INT"] {
        let mut bank = bank(&folder, 300, 0);
        let nodes = [(); 3].map(|()| {
            let line = bank.prints(" is process ");
            line.rsplit(' ').next().unwrap().to_owned()
        });
        bank.prints("unfinished");
        bank.prints("unfinished");
        bank.is_told(signal);
        let ended = bank.child.wait().unwrap();
        assert_eq!(ended.success(), signal == "-INT", "{ended}");
        // The nodes end with the command that has started them.
        let begun = Instant::now();
        while cfg!(target_os = "linux") && nodes.iter().any(|node| is_alive(node)) {
            assert!(begun.elapsed() < LONG, "the nodes outlive their command");
            thread::sleep(Duration::from_millis(1));
        }
    }
    let bank = bank(&folder, 300, 1);
    bank.prints("add up to 30000 of 30000");
    bank.succeeds();
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn chat_brings_lines_to_all_nodes() {
    let folder = folder("chat");
    let start = |name: &str| {
        let mut chat = example("cluster_chat");
        chat.arg(name).arg(&folder);
        Running::start(chat)
    };
    let [mut ann, mut bob, mut cas] = ["ann", "bob", "cas"].map(start);
    for (chat, others) in [
        (&ann, ["bob", "cas"]),
        (&bob, ["ann", "cas"]),
        (&cas, ["ann", "bob"]),
    ] {
        let is_other = |line: String| others.iter().any(|other| line.contains(other));
        assert!((0..2).all(|_| is_other(chat.prints("is here"))));
    }
    // The group may come after the node.
    thread::sleep(Duration::from_millis(300));
    ann.says("hello");
    for chat in [&ann, &bob, &cas] {
        chat.prints("ann: hello");
    }
    cas.says("/nodes");
    cas.prints("cas and 2 more");
    bob.is_told("-KILL");
    bob.child.wait().unwrap();
    ann.prints("bob is gone: its transport has ended");
    cas.is_told("-INT");
    ann.prints("cas is gone: it has left");
    cas.succeeds();
    ann.says("/quit");
    ann.succeeds();
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn examples_show_their_help_and_refuse_bad_options() {
    for name in ["cluster_bank", "cluster_chat"] {
        let help = example(name).arg("--help").output().unwrap();
        assert!(help.status.success());
        assert!(String::from_utf8(help.stdout).unwrap().contains("Usage: "));
        let bad = example(name).args(["--bad", "1"]).output().unwrap();
        assert_eq!(bad.status.code(), Some(2));
    }
}
