//! Tests of sockets in the runtime, and of the example servers `echo` and `chat`. The servers'
//! clients are sockets of std, and `nc`.
#![cfg(all(feature = "net", target_os = "linux"))]

use futures::{AsyncReadExt, AsyncWriteExt};
use selvedge::{
    Builder, Handle, LocalRuntime, Runtime,
    net::{TcpListener, TcpStream, UnixStream, lookup_host, unix::pipe},
    park::{Park, ThreadPark},
    spawn,
};
use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    net,
    panic::{AssertUnwindSafe, catch_unwind},
    process::{Child, ChildStdout, Command, Stdio},
    sync::mpsc,
    task::Waker,
    thread,
    time::Duration,
};

fn runtime(workers: usize) -> Runtime {
    Builder::new().workers(workers).build().unwrap()
}

async fn serve_echo() -> net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    drop(spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            drop(spawn(async move {
                let mut buffer = [0; 64];
                loop {
                    let count = stream.read(&mut buffer).await.unwrap();
                    if count == 0 {
                        return;
                    }
                    stream.write_all(&buffer[..count]).await.unwrap();
                }
            }));
        }
    }));
    at
}

fn exchange(at: net::SocketAddr, rounds: u32) {
    let mut client = net::TcpStream::connect(at).unwrap();
    for round in 0..rounds {
        client.write_all(&round.to_le_bytes()).unwrap();
        let mut back = [0; 4];
        client.read_exact(&mut back).unwrap();
        assert_eq!(back, round.to_le_bytes());
    }
}

/// Sends a message to the echo server. Returns whether the answer came in the time `within`.
fn answers(client: &mut net::TcpStream, within: Duration) -> bool {
    client.set_read_timeout(Some(within)).unwrap();
    client.write_all(b"ping").unwrap();
    client.read_exact(&mut [0; 4]).is_ok()
}

#[test]
fn poller_of_long_polls_hands_over_to_a_sleeper() {
    let runtime = Builder::new().workers(2).monitor(false).build().unwrap();
    let at = runtime.block_on(serve_echo());
    let mut client = net::TcpStream::connect(at).unwrap();
    let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut other = net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (end, ended) = mpsc::channel();
    let (accepted, _) = listener.accept().unwrap();
    drop(runtime.spawn(async move {
        let mut stream = TcpStream::from_std(accepted).unwrap();
        let mut message = [0; 1];
        while stream.read_exact(&mut message).await.is_ok() {
            match message[0] {
                b'l' => thread::sleep(Duration::from_millis(2)),
                _ => drop(ended.recv()),
            }
        }
    }));
    // On a busy machine a worker may be late, and then a try fails.
    let mut tries = 0;
    loop {
        other.write_all(b"l").unwrap();
        thread::sleep(Duration::from_millis(20));
        other.write_all(b"b").unwrap();
        thread::sleep(Duration::from_millis(5));
        let answered = answers(&mut client, Duration::from_millis(500));
        end.send(()).unwrap();
        if answered {
            break;
        }
        tries += 1;
        assert!(tries < 30, "nobody takes the role");
        client = net::TcpStream::connect(at).unwrap();
    }
}

#[test]
fn echo_in_tasks_serves_clients_of_std() {
    for workers in [1, 2, 4] {
        let runtime = runtime(workers);
        let at = runtime.block_on(serve_echo());
        let clients: Vec<_> = (0..4)
            .map(|_| thread::spawn(move || exchange(at, 200)))
            .collect();
        for client in clients {
            client.join().unwrap();
        }
    }
}

/// The workers are never idle, so no worker waits in the kernel's poller.
#[test]
fn echo_is_served_beside_tasks_that_never_end() {
    let runtime = runtime(2);
    for _ in 0..4 {
        drop(runtime.spawn(async {
            loop {
                selvedge::yield_now().await;
            }
        }));
    }
    let at = runtime.block_on(async { spawn(serve_echo()).await.unwrap() });
    exchange(at, 100);
}

#[test]
fn local_runtime_serves_sockets() {
    let runtime = LocalRuntime::new().unwrap();
    runtime.block_on(async {
        let (mut one, mut other) = UnixStream::pair().unwrap();
        let echo = selvedge::spawn_local(async move {
            let mut buffer = [0; 3];
            other.read_exact(&mut buffer).await.unwrap();
            other.write_all(&buffer).await.unwrap();
        });
        one.write_all(b"abc").await.unwrap();
        let mut back = [0; 3];
        one.read_exact(&mut back).await.unwrap();
        assert_eq!(&back, b"abc");
        echo.await.unwrap();
    });
}

#[test]
fn dropped_runtime_ends_waits_of_its_sockets() {
    let first = runtime(1);
    let (mut stream, _peer) = first.block_on(async { UnixStream::pair().unwrap() });
    let (send, receive) = mpsc::channel();
    let waiter = thread::spawn(move || {
        futures::executor::block_on(async {
            let mut buffer = [0; 8];
            let mut read = stream.read(&mut buffer);
            assert!(futures::poll!(&mut read).is_pending());
            send.send(()).unwrap();
            read.await
        })
    });
    receive.recv().unwrap();
    drop(first);
    waiter.join().unwrap().unwrap_err();
}

#[test]
fn socket_needs_a_runtime_or_an_entered_handle() {
    let make = || net_pair().map(drop);
    let panic = catch_unwind(AssertUnwindSafe(make)).unwrap_err();
    let said = panic.downcast_ref::<String>().cloned();
    let said = said.or_else(|| panic.downcast_ref::<&str>().map(|&said| said.to_owned()));
    assert!(said.unwrap().contains("Handle::enter"));
    let runtime = runtime(1);
    let _entered = runtime.handle().enter();
    net_pair().map(drop).unwrap();
}

fn net_pair() -> std::io::Result<(UnixStream, UnixStream)> {
    UnixStream::pair()
}

#[test]
fn names_are_looked_up_on_a_blocking_thread() {
    let runtime = runtime(1);
    runtime.block_on(async {
        assert!(Handle::try_current().is_ok());
        assert!(lookup_host("localhost:1").await.unwrap().count() > 0);
        TcpStream::connect("no.such.host.invalid:1")
            .await
            .unwrap_err();
    });
}

/// A server program. It is killed when the test ends.
struct Server {
    child: Child,
    output: BufReader<ChildStdout>,
    at: net::SocketAddr,
}

impl Server {
    fn start(example: &str) -> Self {
        // Cargo builds the examples with the tests, and puts them into a folder beside that of the
        // tests.
        let tests = env::current_exe().unwrap();
        let program = tests
            .ancestors()
            .nth(2)
            .unwrap()
            .join("examples")
            .join(example);
        assert!(
            program.exists(),
            "{} is not built: run all tests of the package, or `cargo build --examples`",
            program.display()
        );
        let mut server = Command::new(program);
        server.arg("127.0.0.1:0").stdout(Stdio::piped());
        let mut child = server.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let at = line.trim().strip_prefix("listens on ").unwrap();
        let at = at.parse().unwrap();
        Self { child, output, at }
    }

    fn connect(&self) -> Client {
        let stream = net::TcpStream::connect(self.at).unwrap();
        // With this timeout a missing answer fails the test, instead of hanging it.
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        Client(BufReader::new(stream))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Client(BufReader<net::TcpStream>);

impl Client {
    fn say(&mut self, line: &str) {
        self.0
            .get_mut()
            .write_all(format!("{line}\n").as_bytes())
            .unwrap();
    }

    /// Reads lines up to one that contains `text`, and returns it.
    fn read_until(&mut self, text: &str) -> String {
        loop {
            let mut line = String::new();
            let count = self.0.read_line(&mut line).unwrap();
            assert!(count > 0, "the end before {text:?}");
            if line.contains(text) {
                return line;
            }
        }
    }
}

#[test]
fn program_echo_serves_many_clients_and_nc() {
    let server = Server::start("echo");
    let at = server.at;
    let clients: Vec<_> = (0..20)
        .map(|_| thread::spawn(move || exchange(at, 50)))
        .collect();
    for client in clients {
        client.join().unwrap();
    }
    let mut nc = Command::new("nc");
    nc.args(["-q", "1", &at.ip().to_string(), &at.port().to_string()]);
    nc.stdin(Stdio::piped()).stdout(Stdio::piped());
    match nc.spawn() {
        Ok(mut nc) => {
            nc.stdin.take().unwrap().write_all(b"hello, nc\n").unwrap();
            let mut said = String::new();
            nc.stdout.take().unwrap().read_to_string(&mut said).unwrap();
            assert_eq!(said, "hello, nc\n");
            nc.wait().unwrap();
        }
        Err(_) => println!("there is no nc here"),
    }
}

#[test]
fn program_chat_has_rooms_and_names() {
    let server = Server::start("chat");
    let (mut one, mut other) = (server.connect(), server.connect());
    one.read_until("is here");
    other.read_until("is here");
    one.say("/name ann");
    one.read_until("ann");
    other.say("/name bob");
    one.read_until("bob");
    one.say("hello");
    assert_eq!(other.read_until("hello"), "ann: hello\n");
    other.say("/join cellar");
    other.read_until("has come to cellar");
    one.read_until("goes to cellar");
    one.say("still there?");
    one.read_until("still there?");
    other.say("quiet here");
    // This member got no line from the other room.
    assert_eq!(other.read_until(":"), "bob: quiet here\n");
    other.say("/quit");
    let mut rest = String::new();
    other.0.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("still"), "{rest}");
}

#[test]
fn program_chat_drops_a_slow_reader_with_a_message() {
    let server = Server::start("chat");
    let mut slow = server.connect();
    slow.say("/name slow");
    // Two members may enter in either order, and only the first of them gets a line about the
    // second.
    slow.read_until("now called slow");
    let mut fast = server.connect();
    slow.read_until("guest2");
    // This member reads each of its lines back before it sends the next one, so it is never slow
    // itself.
    let line = "x".repeat(4_000);
    loop {
        fast.say(&line);
        if fast
            .read_until("")
            .contains("slow read too slowly and was dropped")
        {
            break;
        }
    }
    slow.read_until("goodbye");
}

#[test]
fn program_chat_ends_gracefully_at_an_interrupt() {
    let mut server = Server::start("chat");
    let mut client = server.connect();
    client.read_until("is here");
    let pid = libc::pid_t::try_from(server.child.id()).unwrap();
    // SAFETY: the call takes no pointers, and the child has not been waited for.
    let sent = unsafe { libc::kill(pid, libc::SIGINT) };
    assert_eq!(sent, 0);
    client.read_until("the server ends");
    let mut rest = String::new();
    client.0.read_to_string(&mut rest).unwrap();
    drop(client);
    let mut said = String::new();
    server.output.read_to_string(&mut said).unwrap();
    assert_eq!(said, "ends\n");
    assert!(server.child.wait().unwrap().success());
}

/// Lets 100 tasks wait for a pipe each, makes all pipes readable, and returns how many tasks are
/// queued when the first of them runs.
fn queued_beside_the_first(events: Option<usize>) -> u64 {
    let mut builder = Builder::new_current_thread();
    if let Some(events) = events {
        builder = builder.max_io_events_per_tick(events);
    }
    let runtime = builder.build().unwrap();
    let (sender, depths) = mpsc::channel();
    let (mut senders, mut tasks) = (Vec::new(), Vec::new());
    for _ in 0..100 {
        let (near, far) = {
            let _entered = runtime.enter();
            pipe::pipe().unwrap()
        };
        let sender = sender.clone();
        senders.push(near);
        tasks.push(runtime.spawn(async move {
            assert!(far.try_read(&mut [0]).is_err());
            far.readable().await.unwrap();
            let metrics = Handle::current().snapshot();
            sender.send(metrics.per_worker[0].ring_depth).unwrap();
        }));
    }
    runtime.run_until_stalled();
    for sender in &senders {
        sender.try_write(b"a").unwrap();
    }
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
    });
    depths.recv().unwrap()
}

/// Fails if a wait, or a look of a busy worker, takes another number of events.
#[test]
fn worker_takes_as_many_events_as_the_builder_says() {
    assert_eq!(queued_beside_the_first(Some(1)), 0);
    assert!(queued_beside_the_first(Some(8)) < 8);
    assert!(queued_beside_the_first(None) < 64);
    assert_eq!(queued_beside_the_first(Some(1_000)), 99);
}

/// A parker that records the limits of its polls.
struct Recorder(ThreadPark, mpsc::Sender<usize>);

impl Park for Recorder {
    fn park(&mut self) {
        self.0.park();
    }

    fn park_timeout(&mut self, limit: Duration) {
        self.0.park_timeout(limit);
    }

    fn poll(&mut self, max: usize) {
        self.1.send(max).unwrap();
    }

    fn waker(&self) -> Waker {
        self.0.waker()
    }
}

#[test]
fn busy_worker_polls_for_as_many_events_as_the_builder_says() {
    let polled = |builder: Builder| {
        let (sender, limits) = mpsc::channel();
        let builder = builder.global_interval(1);
        let (runtime, mut workers) = builder.build_driven([Recorder(ThreadPark::new(), sender)]);
        let task = runtime.spawn(async {
            for _ in 0..9 {
                selvedge::yield_now().await;
            }
        });
        while !task.is_finished() {
            let _ = workers[0].tick();
        }
        limits.try_iter().next().unwrap()
    };
    assert_eq!(polled(Builder::new()), 64);
    assert_eq!(polled(Builder::new().max_io_events_per_tick(9)), 9);
    let builder = Builder::new().max_io_events_per_tick(9);
    assert_eq!(polled(builder.max_io_events_per_busy_tick(3)), 3);
}

#[test]
fn builder_refuses_to_take_no_events() {
    for build in [
        Builder::max_io_events_per_tick,
        Builder::max_io_events_per_busy_tick,
    ] {
        let refused = catch_unwind(|| drop(build(Builder::new(), 0))).unwrap_err();
        assert!(
            refused
                .downcast::<&str>()
                .unwrap()
                .contains("at least 1 event")
        );
    }
}
