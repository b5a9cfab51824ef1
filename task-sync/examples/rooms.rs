//! A chat in memory: each guest hears all that is said in the room, the room counts it, and the
//! host waits until all have come and until all have left.
//!
//! `cargo run -p task-sync --example rooms -- smol` runs it under smol, and without the argument
//! under tokio.
use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::AcqRel},
    },
};
use task_sync::{Barrier, Mutex, Notify, broadcast};

/// A future that a runtime spawns.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Room {
    said: broadcast::Sender<String>,
    all_here: Barrier,
    heard: Mutex<Vec<String>>,
    here: AtomicUsize,
    is_empty: Notify,
}

async fn visit(room: Arc<Room>, name: &'static str) {
    let mut hears = room.said.subscribe();
    room.all_here.wait().await;
    let words = format!("{name}: hello");
    room.said.send(words).expect("it hears itself");
    for _ in 0..3 {
        let words = hears.recv().await.expect("the room has a place for each");
        room.heard.lock().await.push(words);
    }
    // Ordering: the last guest sees what the others have done.
    if room.here.fetch_sub(1, AcqRel) == 1 {
        room.is_empty.notify_one();
    }
}

/// Lets three guests greet. Returns what was heard, in the order of the names.
pub async fn run(spawn: impl Fn(Task)) -> Vec<String> {
    let room = Arc::new(Room {
        said: broadcast::Sender::new(4),
        all_here: Barrier::new(3),
        heard: Mutex::new(Vec::new()),
        here: AtomicUsize::new(3),
        is_empty: Notify::new(),
    });
    for name in ["Ada", "Bob", "Cy"] {
        spawn(Box::pin(visit(room.clone(), name)));
    }
    room.is_empty.notified().await;
    let mut heard = std::mem::take(&mut *room.heard.lock().await);
    heard.sort();
    heard
}

#[allow(dead_code, reason = "a test includes this file, and calls `run` alone")]
fn main() {
    let heard = match std::env::args().nth(1).as_deref() {
        Some("smol") => smol::block_on(run(|task| smol::spawn(task).detach())),
        _ => {
            let runtime = tokio::runtime::Runtime::new().expect("tokio starts");
            runtime.block_on(run(|task| drop(tokio::spawn(task))))
        }
    };
    println!("{}", heard.join("\n"));
}
