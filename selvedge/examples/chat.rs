//! A chat server over TCP: lines go to everybody in the room.
//!
//! `cargo run --release -p selvedge --example chat -- 127.0.0.1:7001`, then several
//! `nc 127.0.0.1 7001`. The lines `/name NAME`, `/join ROOM` and `/quit` are commands.
//!
//! Each member has a queue of bounded length. A member who reads so slowly that its queue fills up
//! is dropped. The room gets a message about that, and the member gets a goodbye. Ctrl-C ends the
//! server: the members get a message, and the server still writes the lines that are queued for
//! them, for 3 seconds at most.
mod cli;

use async_channel::{Receiver, Sender, TrySendError};
use futures::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, io::BufReader};
use selvedge::{
    JoinSet, Runtime,
    net::{TcpListener, TcpStream, tcp::OwnedWriteHalf},
    signal, spawn,
    time::{Duration, sleep, timeout},
    yield_now,
};
use std::{
    collections::HashMap,
    io,
    process::ExitCode,
    sync::{Arc, Mutex},
};

/// The largest number of lines that wait for a member.
const QUEUE: usize = 256;
/// A line of this many bytes, or a longer one, ends the connection of the member that sent it.
const LONGEST: u64 = 4_096;
/// How long the server may take to write the remaining lines of a member whose queue is closed.
const FAREWELL: Duration = Duration::from_secs(20);

type Line = Arc<str>;

struct Member {
    name: String,
    room: String,
    queue: Sender<Line>,
}

/// The members, by the numbers of their connections.
#[derive(Default)]
struct Chat(Mutex<HashMap<u64, Member>>);

impl Chat {
    fn enter(&self, id: u64, queue: Sender<Line>) {
        let (name, room) = (format!("guest{id}"), "lobby".to_owned());
        self.0
            .lock()
            .unwrap()
            .insert(id, Member { name, room, queue });
        self.announce(id, "is here");
    }

    fn leave(&self, id: u64) {
        self.announce(id, "has left");
        self.0.lock().unwrap().remove(&id);
    }

    /// Sends the member's room a line about the member.
    fn announce(&self, id: u64, what: &str) {
        let members = self.0.lock().unwrap();
        let Some(member) = members.get(&id) else {
            return;
        };
        let (room, line) = (member.room.clone(), format!("* {} {what}\n", member.name));
        drop(members);
        self.send(&room, line);
    }

    fn say(&self, id: u64, text: &str) {
        let members = self.0.lock().unwrap();
        let Some(member) = members.get(&id) else {
            return;
        };
        let (room, line) = (member.room.clone(), format!("{}: {text}\n", member.name));
        drop(members);
        self.send(&room, line);
    }

    /// Queues a line for everybody in a room. Drops the members whose queue is full.
    fn send(&self, room: &str, line: String) {
        let mut lines: Vec<Line> = vec![line.into()];
        let mut members = self.0.lock().unwrap();
        while let Some(line) = lines.pop() {
            let mut slow = Vec::new();
            for (id, member) in members.iter().filter(|(_, member)| member.room == room) {
                if let Err(TrySendError::Full(_)) = member.queue.try_send(line.clone()) {
                    slow.push(*id);
                }
            }
            for id in slow {
                let member = members.remove(&id).expect("it was found above");
                member.queue.close();
                lines.push(format!("* {} read too slowly and was dropped\n", member.name).into());
            }
        }
    }

    fn rename(&self, id: u64, name: &str) {
        self.announce(id, &format!("is now called {name}"));
        if let Some(member) = self.0.lock().unwrap().get_mut(&id) {
            member.name = name.to_owned();
        }
    }

    fn join(&self, id: u64, room: &str) {
        self.announce(id, &format!("goes to {room}"));
        if let Some(member) = self.0.lock().unwrap().get_mut(&id) {
            member.room = room.to_owned();
        }
        self.announce(id, &format!("has come to {room}"));
    }

    /// Queues the line "the server ends" for each member, and closes the members' queues. The lines
    /// in a closed queue are still written.
    fn end(&self) {
        for (_, member) in self.0.lock().unwrap().drain() {
            let _ = member.queue.try_send("* the server ends\n".into());
            member.queue.close();
        }
    }

    fn is_member(&self, id: u64) -> bool {
        self.0.lock().unwrap().contains_key(&id)
    }
}

/// Reads a member's lines until the member leaves or has been dropped.
async fn read(chat: &Chat, id: u64, stream: impl futures::AsyncRead + Unpin) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    loop {
        line.clear();
        let count = (&mut stream).take(LONGEST).read_line(&mut line).await?;
        if count == 0 || !chat.is_member(id) {
            return Ok(());
        }
        if count as u64 == LONGEST {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the line is too long",
            ));
        }
        match line
            .trim_end()
            .split_once(' ')
            .unwrap_or((line.trim_end(), ""))
        {
            ("/quit", _) => return Ok(()),
            ("/name", name) if !name.is_empty() => chat.rename(id, name),
            ("/join", room) if !room.is_empty() => chat.join(id, room),
            _ => chat.say(id, line.trim_end()),
        }
        // Lets the writers run, so that a burst of one member's lines does not fill the queues of
        // the other members.
        yield_now().await;
    }
}

/// Writes the lines that are queued for a member, until the queue is closed and empty.
async fn write(queue: Receiver<Line>, mut stream: OwnedWriteHalf) {
    {
        let all = async {
            while let Ok(line) = queue.recv().await {
                stream.write_all(line.as_bytes()).await?;
            }
            io::Result::Ok(())
        };
        // Some members do not read at all. Once a member's queue is closed, the remaining lines may
        // take at most `FAREWELL`.
        let closed = async {
            while !queue.is_closed() {
                sleep(Duration::from_millis(100)).await;
            }
            sleep(FAREWELL).await;
        };
        futures::pin_mut!(all, closed);
        futures::future::select(all, closed).await;
    }
    let goodbye = stream.write_all(b"* goodbye\n");
    let _ = timeout(Duration::from_secs(1), goodbye).await;
}

async fn serve(chat: Arc<Chat>, id: u64, stream: TcpStream) {
    let (read_half, write_half) = stream.into_split();
    let (queue, lines) = async_channel::bounded(QUEUE);
    let writer = spawn(write(lines, write_half));
    chat.enter(id, queue.clone());
    if let Err(error) = read(&chat, id, read_half).await {
        eprintln!("member {id}: {error}");
    }
    chat.leave(id);
    queue.close();
    let _ = writer.await;
}

/// Returns a future that waits for Ctrl-C. From this call on Ctrl-C does not kill the process.
fn interrupted() -> io::Result<impl Future<Output = ()>> {
    #[cfg(unix)]
    let mut pressed = signal::unix::signal(signal::unix::SignalKind::interrupt())?;
    #[cfg(windows)]
    let mut pressed = signal::windows::ctrl_c()?;
    Ok(async move {
        pressed.recv().await;
    })
}

const HELP: &str = "\
Sends each line of a member to everybody in the room. Ctrl-C tells the members, and ends it.

Usage: chat [ADDRESS]

ADDRESS  where it listens [127.0.0.1:7001]";

fn main() -> ExitCode {
    cli::run(HELP, |arguments| {
        cli::at_most(&arguments, 1)?;
        let address = arguments.into_iter().next();
        Ok(listen(address.unwrap_or_else(|| "127.0.0.1:7001".into()))?)
    })
}

fn listen(address: String) -> io::Result<()> {
    let runtime = Runtime::new()?;
    runtime.block_on(async {
        let (chat, mut members) = (Arc::new(Chat::default()), JoinSet::new());
        let listener = TcpListener::bind(address).await?;
        let interrupted = interrupted()?;
        futures::pin_mut!(interrupted);
        println!("listens on {}", listener.local_addr()?);
        for id in 1.. {
            let accept = Box::pin(listener.accept());
            match futures::future::select(accept, &mut interrupted).await {
                futures::future::Either::Left((Ok((stream, _)), _)) => {
                    members.spawn(serve(chat.clone(), id, stream));
                }
                futures::future::Either::Left((Err(error), _)) => eprintln!("accept: {error}"),
                futures::future::Either::Right(((), _)) => {
                    break;
                }
            }
            while members.try_join_next().is_some() {}
        }
        drop(listener);
        println!("ends");
        chat.end();
        // The limit of 3 seconds is for members that do not close their side: they do not keep the
        // server.
        let all = async { while members.join_next().await.is_some() {} };
        let _ = timeout(Duration::from_secs(3), all).await;
        Ok(())
    })
}
