//! The examples as users run them: clients of this machine speak to the servers, and `sha256sum`
//! checks the manifest.
use crate::cases::end_of;
use anyhow::{Context, Result, bail, ensure};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

/// How long a server may take for a step. The machine may be busy, and emulate a slow one.
const PATIENCE: Duration = Duration::from_secs(120);

/// The examples, each with its package.
pub(super) const EXAMPLES: &[(&str, &[&str])] = &[
    ("selvedge", &["echo", "chat", "manifest"]),
    ("selvedge-hyper", &["http_hello"]),
];

/// Runs an example, and checks its answers. `folder` is the one in which the command starts it.
pub(super) fn check(name: &str, command: &mut Command, folder: &Path) -> Result<()> {
    match name {
        "echo" => echo(Server::start(command)?),
        "chat" => chat(Server::start(command)?),
        "http_hello" => http_hello(Server::start(command)?),
        "manifest" => manifest(command, folder),
        _ => bail!("no check is known"),
    }
}

fn echo(server: Server) -> Result<()> {
    let mut client = server.connect()?;
    // The answer is longer than the buffers of both sockets.
    let sent: Vec<u8> = (0..8 << 20).map(|at: u32| (at % 251) as u8).collect();
    let mut writer = client.try_clone()?;
    thread::scope(|scope| {
        let writing = scope.spawn(|| writer.write_all(&sent));
        let mut answer = vec![0; sent.len()];
        client.read_exact(&mut answer)?;
        writing.join().expect("a write does not panic")?;
        ensure!(answer == sent, "another answer");
        Ok(())
    })?;
    client.shutdown(std::net::Shutdown::Write)?;
    ensure!(client.read(&mut [0])? == 0, "the server does not close");
    server.interrupt("")
}

fn chat(server: Server) -> Result<()> {
    let mut one = BufReader::new(server.connect()?);
    expect(&mut one, "guest1 is here")?;
    let mut two = BufReader::new(server.connect()?);
    expect(&mut one, "guest2 is here")?;
    two.get_mut().write_all(b"/name weaver\nhello\n")?;
    expect(&mut one, "weaver")?;
    expect(&mut one, "hello")?;
    server.interrupt("ends")?;
    expect(&mut one, "goodbye")
}

fn http_hello(server: Server) -> Result<()> {
    let mut client = server.connect()?;
    for close in ["", "Connection: close\r\n"] {
        write!(client, "GET / HTTP/1.1\r\nHost: localhost\r\n{close}\r\n")?;
        let mut client = BufReader::new(&mut client);
        expect(&mut client, "200 OK")?;
        expect(&mut client, "hello")?;
    }
    server.interrupt("all connections have ended")
}

/// Has the example write the manifest of a folder, and `sha256sum` check it.
fn manifest(command: &mut Command, folder: &Path) -> Result<()> {
    let output = command.arg("src").stdin(Stdio::null()).output()?;
    ensure!(output.status.success(), "{output:?}");
    // On Windows a path has backslashes. So they are doubled, and one more begins the line.
    let lines = String::from_utf8(output.stdout)?;
    let lines = lines.lines().map(|line| match line.strip_prefix('\\') {
        Some(line) => line.replace("\\\\", "/") + "\n",
        None => line.to_owned() + "\n",
    });
    let lines: Vec<_> = lines.collect();
    let files = walkdir::WalkDir::new(folder.join("src")).into_iter();
    let files = files.filter(|entry| {
        entry
            .as_ref()
            .is_ok_and(|entry| entry.file_type().is_file())
    });
    ensure!(lines.len() == files.count(), "not all files: {lines:?}");
    let mut check = Command::new("sha256sum");
    check.args(["--check", "--quiet"]).current_dir(folder);
    let mut check = check.stdin(Stdio::piped()).spawn().context("sha256sum")?;
    let mut input = check.stdin.take().context("it is a pipe")?;
    input.write_all(lines.concat().as_bytes())?;
    drop(input);
    ensure!(check.wait()?.success(), "another digest");
    Ok(())
}

/// Reads lines up to one that contains the text.
fn expect(lines: &mut impl BufRead, text: &str) -> Result<()> {
    let mut seen = String::new();
    while lines.read_line(&mut seen).context(text.to_owned())? > 0 {
        if seen
            .lines()
            .next_back()
            .is_some_and(|line| line.contains(text))
        {
            return Ok(());
        }
    }
    bail!("no `{text}` in: {seen}")
}

/// A server that runs, and has written its address.
struct Server {
    child: Child,
    /// The lines of the server's output.
    lines: mpsc::Receiver<String>,
    address: String,
}

impl Server {
    fn start(command: &mut Command) -> Result<Self> {
        command.arg("127.0.0.1:0").stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let output = BufReader::new(child.stdout.take().context("it is a pipe")?);
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return; // The test has failed.
                }
            }
        });
        let mut server = Self {
            child,
            lines,
            address: String::new(),
        };
        let first = server.lines.recv_timeout(PATIENCE);
        let first = first.context("the server does not listen")?;
        let address = first.trim_end().strip_prefix("listens on ");
        server.address = address.context("no address")?.to_owned();
        Ok(server)
    }

    fn connect(&self) -> Result<TcpStream> {
        let client = TcpStream::connect(&self.address).context("connecting")?;
        client.set_read_timeout(Some(PATIENCE))?;
        client.set_write_timeout(Some(PATIENCE))?;
        Ok(client)
    }

    /// Presses Ctrl-C, and waits for the server's end and for its last words.
    fn interrupt(mut self, words: &str) -> Result<()> {
        // SAFETY: the call has no preconditions. The child is not reaped yet, so its id names no
        // other process.
        unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGINT) };
        let end = end_of(&mut self.child, PATIENCE)?;
        end.context("the server does not end")?;
        while !words.is_empty() {
            let line = self.lines.recv_timeout(PATIENCE);
            if line
                .with_context(|| format!("no `{words}`"))?
                .contains(words)
            {
                break;
            }
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = end_of(&mut self.child, Duration::ZERO);
    }
}
