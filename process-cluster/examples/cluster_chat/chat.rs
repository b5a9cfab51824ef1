//! The chat: a process in a group prints what comes, and the lines of the user are published.
use crate::cli::{Usage, at_most};
use process_cluster::{Cluster, DecodeError, Decoder, Encoder, Engine, Message, NodeChange};
use process_scheduler::{Inbox, Scheduler};
use std::{
    collections::HashMap,
    env,
    error::Error,
    io::{self, BufRead},
    path::{Path, PathBuf},
    sync::{Mutex, mpsc},
    thread,
    time::Duration,
};

pub const HELP: &str = "\
Chats with the other nodes of this machine. Start it in several terminals.

Usage: cluster_chat NAME [FOLDER]

NAME    your name, and that of the node
FOLDER  where nodes find each other [a folder of the system for temporary files]

A line goes to all. /nodes shows the nodes, /quit or Ctrl-C ends.";

const ROOM: &str = "room";

#[derive(Clone)]
struct Line {
    from: String,
    text: String,
}

impl Message for Line {
    fn encode(self, out: &mut Encoder<'_>) {
        out.str(&self.from);
        out.str(&self.text);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            from: input.str()?.to_owned(),
            text: input.str()?.to_owned(),
        })
    }
}

/// Returns a hook that prints who comes and goes.
fn tells_of_nodes() -> impl Fn(&NodeChange) + Send + Sync {
    let names = Mutex::new(HashMap::new());
    move |change| {
        let mut names = names.lock().unwrap();
        match change {
            NodeChange::Up { node, name } => {
                println!("* {name} is here");
                names.insert(*node, name.clone());
            }
            NodeChange::Down { node, why } => {
                let name = names.remove(node).unwrap_or_default();
                println!("* {name} is gone: {why}");
            }
            _ => {}
        }
    }
}

/// Runs the command.
pub fn run<E: Engine>(
    arguments: &[String],
    engine: impl Fn(&str, &Path) -> E,
) -> Result<(), Box<dyn Error>> {
    at_most(arguments, 2)?;
    let name = arguments
        .first()
        .ok_or_else(|| Usage("no name".to_owned()))?;
    if !name.chars().all(char::is_alphanumeric) {
        return Err(Usage("a name has letters and digits alone".to_owned()).into());
    }
    let default = || env::temp_dir().join("cluster_chat");
    let folder = arguments.get(1).map_or_else(default, PathBuf::from);
    let scheduler = Scheduler::builder().workers(1).build();
    let cluster = Cluster::builder(name)
        .codec::<Line>("line/1")
        .on_change(tells_of_nodes())
        .join(&scheduler, engine(name, &folder))?;
    let prints = scheduler.spawn_fn(|Line { from, text }, _| println!("{from}: {text}"))?;
    cluster.join(ROOM, prints.pid())?;

    let (lines, inputs) = mpsc::channel();
    let interrupts = lines.clone();
    scheduler.spawn_async(|_: Inbox<()>| async move {
        let _ = net_driver::signal::ctrl_c().await;
        let _ = interrupts.send(None);
    })?;
    thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let _ = lines.send(line.ok());
        }
        let _ = lines.send(None);
    });
    while let Ok(Some(text)) = inputs.recv() {
        match &*text {
            "/quit" => break,
            "/nodes" => {
                let nodes = cluster.nodes();
                println!("* nodes: {name} and {} more", nodes.len());
                nodes.iter().for_each(|node| println!("*   {}", node.name));
            }
            _ => {
                let from = name.clone();
                let published = cluster.publish(ROOM, &Line { from, text });
                if published.refused > 0 {
                    println!("* not sent to {} of the nodes", published.refused);
                }
            }
        }
    }
    cluster.leave(Duration::from_secs(1));
    Ok(())
}
