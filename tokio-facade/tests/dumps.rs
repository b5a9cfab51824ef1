//! A dump of a program that is written for tokio names what its tasks wait for.
use selvedge::{DumpOutcome, TaskDump, wait_cycles};
use std::{future::Future, sync::Arc, thread, time::Duration};
use tokio::{
    io::AsyncReadExt,
    net::{TcpListener, UdpSocket},
    sync::{Mutex, Notify, RwLock, Semaphore, broadcast, mpsc, oneshot, watch},
    task::{JoinSet, spawn_blocking},
    time::{interval_at, sleep, timeout},
};

type Waits = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

const LONG: Duration = Duration::from_secs(3_650);

macro_rules! cases {
    ($($what:literal => $code:block)*) => {
        vec![$(($what, Box::pin(async move { $code }) as Waits)),*]
    };
}

fn cases() -> Vec<(&'static str, Waits)> {
    cases! {
        "a mutex 0x" => {
            let mutex = Mutex::new(());
            let _guard = mutex.lock().await;
            drop(mutex.lock().await);
        }
        "a writer's lock 0x" => {
            let lock = RwLock::new(());
            let _guard = lock.read().await;
            drop(lock.write().await);
        }
        "permits of a semaphore 0x" => { drop(Semaphore::new(0).acquire().await); }
        "a message of an mpsc channel 0x" => {
            let (_send, mut receive) = mpsc::channel::<u8>(1);
            receive.recv().await;
        }
        "the value of a oneshot channel 0x" => {
            let (_send, receive) = oneshot::channel::<u8>();
            let _ = receive.await;
        }
        "a message of a broadcast channel 0x" => {
            let (_send, mut receive) = broadcast::channel::<u8>(1);
            let _ = receive.recv().await;
        }
        "a value of a watch channel 0x" => {
            let (_send, mut receive) = watch::channel(1);
            let _ = receive.changed().await;
        }
        "a notification of a notify 0x" => { Notify::new().notified().await; }
        "a timer, which ends in 36" => { sleep(LONG).await; }
        "a timer, which ends in 36" => {
            interval_at(tokio::time::Instant::now() + LONG, LONG).tick().await;
        }
        "a timer, which ends in" => { let _ = timeout(LONG, std::future::pending::<()>()).await; }
        "to be readable" => {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            listener.accept().await.unwrap();
        }
        "to be readable" => {
            let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            socket.recv(&mut [0]).await.unwrap();
        }
        "bytes in a pipe in memory 0x" => {
            let (mut one, _other) = tokio::io::duplex(8);
            one.read_u8().await.unwrap();
        }
        "the end of task 0x" => { let _ = tokio::spawn(std::future::pending::<()>()).await; }
        "the end of task 0x" => {
            let mut set = JoinSet::new();
            set.spawn(std::future::pending::<()>());
            set.join_next().await;
        }
        "which is a blocking closure" => {
            let (_send, receive) = oneshot::channel::<u8>();
            let blocks = spawn_blocking(|| receive.blocking_recv());
            let _ = blocks.await;
        }
    }
}

/// Dumps until each task waits: a busy machine may leave a worker no time within a dump's limit.
fn dump(handle: &selvedge::Handle, ids: &[selvedge::Id]) -> Vec<TaskDump> {
    loop {
        let dump = handle.block_on(handle.dump()).unwrap();
        let of = |id| dump.iter().find(|dump| dump.task.id == id).cloned();
        let dumps: Vec<_> = ids.iter().filter_map(|id| of(*id)).collect();
        let waits = |dump: &TaskDump| dump.outcome == DumpOutcome::Waits && !dump.waits.is_empty();
        if dumps.len() == ids.len() && dumps.iter().all(waits) {
            return dumps;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn listing() -> selvedge::Runtime {
    let builder = selvedge::Builder::new().workers(2).list_tasks(true);
    builder.build().unwrap()
}

#[test]
fn resources_of_tokios_names_say_what_they_wait_for() {
    let runtime = listing();
    let (says, waits): (Vec<_>, Vec<_>) = cases().into_iter().unzip();
    let tasks: Vec<_> = waits.into_iter().map(|waits| runtime.spawn(waits)).collect();
    let ids: Vec<_> = tasks.iter().map(|task| task.id()).collect();
    for (what, dump) in says.into_iter().zip(dump(runtime.handle(), &ids)) {
        let said = |wait: &selvedge::TaskWait| wait.what.as_ref().unwrap().contains(what);
        assert!(dump.waits.iter().any(said), "{what}: {dump}");
    }
    tasks.iter().for_each(|task| task.abort());
}

/// The sender of the channel waits for the lock that the receiver holds. And two tasks wait for
/// each other's lock.
#[test]
fn deadlocks_of_locks_and_channels_are_named() {
    let runtime = listing();
    let mutex = Arc::new(Mutex::new(()));
    let (send, mut receive) = mpsc::channel::<()>(1);
    let (has_lock, locked) = oneshot::channel();
    let holds = mutex.clone();
    let first = runtime.spawn(async move {
        let _guard = holds.lock().await;
        has_lock.send(()).unwrap();
        receive.recv().await;
    });
    let second = runtime.spawn(async move {
        locked.await.unwrap();
        let _guard = mutex.lock().await;
        send.send(()).await.unwrap();
    });
    let locks = Arc::new([(); 2].map(Mutex::new));
    let barrier = Arc::new(tokio::sync::Barrier::new(2));
    let circle = [0, 1].map(|n: usize| {
        let (locks, barrier) = (locks.clone(), barrier.clone());
        runtime.spawn(async move {
            let _one = locks[n].lock().await;
            barrier.wait().await;
            let _other = locks[1 - n].lock().await;
        })
    });
    let ids = [first.id(), second.id(), circle[0].id(), circle[1].id()];
    let dump = loop {
        let dump = dump(runtime.handle(), &ids);
        let says = |at: usize, what| dump[at].waits[0].what.as_ref().unwrap().contains(what);
        if says(1, "a mutex 0x") && says(2, "a mutex 0x") && says(3, "a mutex 0x") {
            break dump;
        }
    };
    let what = |at: usize| dump[at].waits[0].what.clone().unwrap();
    assert!(what(0).contains("a message of an mpsc channel"), "{}", what(0));
    assert!(what(1).ends_with(&format!("held by task {}", first.id())), "{}", what(1));
    let cycles = wait_cycles(&dump);
    assert_eq!(cycles.len(), 1, "{dump:?}");
    let mut tasks = cycles[0].tasks.clone();
    tasks.sort_unstable();
    let mut expected = [ids[2], ids[3]];
    expected.sort_unstable();
    assert_eq!(tasks, expected);
}
