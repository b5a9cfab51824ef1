//! Each program is started as a user starts it, and gets requests. The tests are written for tokio,
//! too: the façade runs them, and drives the child processes.
use futures_util::{SinkExt, StreamExt};
use std::{env, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::{Child, ChildStdout, Command},
    time::timeout,
};
use tokio_tungstenite::tungstenite::Message;

/// How long a step may take, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

struct Program {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Program {
    fn start(program: &str, arguments: &[&str]) -> Self {
        let mut child = Command::new(program)
            .args(arguments)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("cargo has built the program");
        let stdout = child.stdout.take().map(BufReader::new);
        Self {
            child,
            stdout: stdout.expect("its output is a pipe"),
        }
    }

    /// Reads the line in which a server says its address.
    async fn address(&mut self) -> String {
        let mut line = String::new();
        let read = timeout(LIMIT, self.stdout.read_line(&mut line)).await;
        read.expect("it listens").unwrap();
        let address = line.trim().strip_prefix("listens on ");
        address.expect("it says where it listens").to_owned()
    }

    async fn interrupt(&self) {
        let id = self.child.id().expect("it runs").to_string();
        let killed = Command::new("kill").args(["-INT", &id]).status().await;
        assert!(killed.unwrap().success());
    }

    /// Waits for the end, which must be a success. Returns the rest of the output.
    async fn end(mut self) -> String {
        let mut rest = String::new();
        let read = timeout(LIMIT, self.stdout.read_to_string(&mut rest)).await;
        read.expect("it ends").unwrap();
        let status = timeout(LIMIT, self.child.wait()).await.expect("it ends");
        let status = status.unwrap();
        assert!(status.success(), "{status}, after\n{rest}");
        rest
    }
}

async fn get(url: &str) -> String {
    let client = reqwest::Client::builder().no_proxy().timeout(LIMIT);
    let got = client.build().unwrap().get(url).send().await.unwrap();
    got.error_for_status().unwrap().text().await.unwrap()
}

#[tokio::test]
async fn service_of_axum_sqlx_and_reqwest_answers() {
    let folder = env::temp_dir().join(format!("ecosystem-facade-{}", std::process::id()));
    tokio::fs::create_dir_all(&folder).await.unwrap();
    let file = folder.join("squares.db");
    let mut service = Program::start(
        env!("CARGO_BIN_EXE_service"),
        &["127.0.0.1:0", file.to_str().unwrap()],
    );
    let address = service.address().await;
    let url = |path: &str| format!("http://{address}{path}");

    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let inserts = (1..=100).map(|n| {
        let insert = client.post(url(&format!("/squares/{n}"))).send();
        tokio::spawn(async move { insert.await.unwrap().error_for_status().unwrap() })
    });
    for insert in inserts.collect::<Vec<_>>() {
        insert.await.unwrap();
    }
    // The service asks itself, by reqwest.
    let fetched = get(&url(&format!("/fetch?url={}", url("/squares")))).await;
    assert_eq!(fetched, "338350\n");

    let (mut socket, _) = tokio_tungstenite::connect_async(format!("ws://{address}/echo"))
        .await
        .unwrap();
    for message in ["one", "two"] {
        socket.send(Message::text(message)).await.unwrap();
        let echo = timeout(LIMIT, socket.next())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        assert_eq!(echo, Message::text(message));
    }
    socket.close(None).await.unwrap();

    // The façade's runtime names its threads as ours, and no thread is one of tokio's.
    let threads = get(&url("/threads")).await;
    assert!(threads.contains("selvedge"), "{threads}");
    assert!(!threads.contains("tokio"), "{threads}");

    // A graceful end waits for the answer of a request that has begun.
    let slow = tokio::spawn({
        let url = url("/slow");
        async move { get(&url).await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    service.interrupt().await;
    assert_eq!(slow.await.unwrap(), "slow\n");
    assert_eq!(service.end().await, "closed\n");
    tokio::fs::remove_dir_all(folder).await.unwrap();
}

/// Sends a line to the program `journal`, and returns its answer.
async fn ask_journal(address: &str, line: &str) -> String {
    let mut stream = BufReader::new(TcpStream::connect(address).await.unwrap());
    stream.write_all(line.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_line(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn journal_has_its_texts_after_a_kill() {
    let folder = env::temp_dir().join(format!("ecosystem-journal-{}", std::process::id()));
    tokio::fs::create_dir_all(&folder).await.unwrap();
    let arguments = ["127.0.0.1:0", folder.to_str().unwrap()];
    let mut journal = Program::start(env!("CARGO_BIN_EXE_journal"), &arguments);
    let address = journal.address().await;
    assert_eq!(ask_journal(&address, "put one a text\n").await, "ok\n");
    assert_eq!(ask_journal(&address, "get none\n").await, "\n");
    journal.child.kill().await.unwrap();
    let mut journal = Program::start(env!("CARGO_BIN_EXE_journal"), &arguments);
    let address = journal.address().await;
    assert_eq!(ask_journal(&address, "get one\n").await, "a text\n");
    tokio::fs::remove_dir_all(folder).await.unwrap();
}

#[tokio::test]
async fn greeter_of_tonic_keeps_deadlines_and_streams() {
    // tonic's server does not say its port, so this takes one that was free.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let mut server = Program::start(env!("CARGO_BIN_EXE_greeter"), &["serve", &address]);
    server.address().await;
    let mut waits = 0;
    while TcpStream::connect(&address).await.is_err() {
        waits += 1;
        assert!(waits < 600, "the server does not listen");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let client = Program::start(
        env!("CARGO_BIN_EXE_greeter"),
        &["call", &format!("http://{address}")],
    );
    let said = client.end().await;
    let lines: Vec<&str> = said.lines().collect();
    let [hello, hasty, limited, words @ ..] = &lines[..] else {
        panic!("{said}");
    };
    assert_eq!(*hello, "hello, you");
    assert!(hasty.starts_with("with a deadline: "), "{hasty}");
    assert!(
        limited.starts_with("the server's limit: Some("),
        "{limited}"
    );
    assert_eq!(words, ["one, one", "two, two", "three, three"]);
    server.interrupt().await;
    assert_eq!(server.end().await, "");
}

#[tokio::test]
async fn tls_echo_of_tokio_rustls_answers() {
    let said = Program::start(env!("CARGO_BIN_EXE_tls_echo"), &[])
        .end()
        .await;
    assert_eq!(said, "a line over TLS\n16 bytes\n");
}
