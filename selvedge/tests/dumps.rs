//! Each resource of the project says to a dump what it waits for, and the dump names the lines that
//! wait.
#![cfg(all(
    target_os = "linux",
    feature = "fs",
    feature = "net",
    feature = "process"
))]

use selvedge::{
    Builder, DumpOutcome, Runtime, TaskDump, TaskState, Tick, fs,
    io::{self, AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixStream},
    process::Command,
    signal::unix::{SignalKind, signal},
    sync::{
        Barrier, Mutex, Notify, OnceCell, RwLock, Semaphore, SetOnce, broadcast, mpsc, oneshot,
        watch,
    },
    task::{self, JoinSet},
    time,
};
use std::{
    env,
    fs::File,
    future::{Future, pending, poll_fn},
    io::Write,
    path::PathBuf,
    pin::Pin,
    process::Stdio,
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    task::{Context, Poll, Wake, Waker, ready},
    thread,
    time::{Duration, Instant},
};

type Waits = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A task that waits for ever.
struct Case {
    /// The words of its waits.
    what: &'static [&'static str],
    waits: Waits,
}

/// Makes the cases `[what the dump says] => code of the task;`.
macro_rules! cases {
    ($([$($what:expr),*] => $code:block)*) => {
        vec![$(Case {
            what: &[$($what),*],
            waits: Box::pin(async move { $code }),
        }),*]
    };
}

const LONG: Duration = Duration::from_secs(3_650);

fn sync_cases() -> Vec<Case> {
    cases! {
        ["a mutex 0x"] => {
            let mutex = Mutex::new(());
            let _guard = mutex.lock().await;
            drop(mutex.lock().await);
        }
        ["a mutex 0x"] => {
            let mutex = Arc::new(Mutex::new(()));
            let _guard = mutex.clone().lock_owned().await;
            drop(mutex.lock_owned().await);
        }
        ["a reader's lock 0x"] => {
            let lock = RwLock::new(());
            let _guard = lock.write().await;
            drop(lock.read().await);
        }
        ["a writer's lock 0x"] => {
            let lock = Arc::new(RwLock::new(()));
            let _guard = lock.clone().read_owned().await;
            drop(lock.write_owned().await);
        }
        ["permits of a semaphore 0x"] => {
            let semaphore = Semaphore::new(1);
            drop(semaphore.acquire_many(2).await);
        }
        ["a message of an mpsc channel 0x"] => {
            let (_send, mut receive) = mpsc::channel::<u8>(1);
            receive.recv().await;
        }
        ["a message of an mpsc channel 0x"] => {
            let (_send, mut receive) = mpsc::unbounded_channel::<u8>();
            receive.recv_many(&mut Vec::new(), 5).await;
        }
        ["room in an mpsc channel 0x"] => {
            let (send, _receive) = mpsc::channel(1);
            send.send(1).await.unwrap();
            send.send(2).await.unwrap();
        }
        ["the end of the receiver of an mpsc channel 0x"] => {
            let (send, _receive) = mpsc::channel::<u8>(1);
            send.closed().await;
        }
        ["the value of a oneshot channel 0x"] => {
            let (_send, receive) = oneshot::channel::<u8>();
            let _ = receive.await;
        }
        ["the end of the receiver of a oneshot channel 0x"] => {
            let (mut send, _receive) = oneshot::channel::<u8>();
            send.closed().await;
        }
        ["a message of a broadcast channel 0x"] => {
            let (_send, mut receive) = broadcast::channel::<u8>(1);
            let _ = receive.recv().await;
        }
        ["the end of the receivers of a broadcast channel 0x"] => {
            let (send, _receive) = broadcast::channel::<u8>(1);
            send.closed().await;
        }
        ["a value of a watch channel 0x"] => {
            let (_send, mut receive) = watch::channel(1);
            let _ = receive.changed().await;
        }
        ["a value of a watch channel 0x"] => {
            let (_send, mut receive) = watch::channel(1);
            let _ = receive.wait_for(|value| *value == 2).await;
        }
        ["the end of the receivers of a watch channel 0x"] => {
            let (send, _receive) = watch::channel(1);
            send.closed().await;
        }
        ["a notification of a notify 0x"] => {
            Notify::new().notified().await;
        }
        ["a notification of a notify 0x"] => {
            Arc::new(Notify::new()).notified_owned().await;
        }
        ["the other tasks at a barrier 0x"] => {
            Barrier::new(2).wait().await;
        }
        ["the value of a once cell 0x", "a notification of a notify 0x"] => {
            let (cell, notify) = (OnceCell::new(), Notify::new());
            let make = || cell.get_or_init(|| notify.notified());
            futures::join!(make(), make());
        }
        ["the value of a once cell 0x"] => {
            SetOnce::<u8>::new().wait().await;
        }
    }
}

fn time_and_task_cases() -> Vec<Case> {
    cases! {
        ["a timer, which ends in 36"] => {
            time::sleep(LONG).await;
        }
        ["a timer, which ends in 36"] => {
            let mut ticks = time::interval_at(time::Instant::now() + LONG, LONG);
            ticks.tick().await;
        }
        ["a notification of a notify 0x", "a timer, which ends in"] => {
            let _ = time::timeout(LONG, Notify::new().notified()).await;
        }
        ["the end of task 0x"] => {
            let _ = selvedge::spawn(pending::<()>()).await;
        }
        ["the end of task 0x"] => {
            let mut set = JoinSet::new();
            set.spawn(async {});
            set.spawn(pending::<()>());
            set.join_next().await;
            set.join_next().await;
        }
        ["the end of a task of the set 0x"] => {
            let mut set = JoinSet::new();
            set.spawn(pending::<()>());
            set.spawn(pending::<()>());
            set.join_next().await;
        }
        ["which is a blocking closure"] => {
            // Ordering: Acquire, of the store at the test's end.
            let blocks = || while !IS_DONE.load(Acquire) { thread::sleep(LOOK) };
            task::spawn_blocking(blocks).await.unwrap();
        }
        ["the end of the child process "] => {
            let mut child = Command::new("sleep").arg("3600").kill_on_drop(true).spawn().unwrap();
            child.wait().await.unwrap();
        }
        ["to be readable"] => {
            let mut child = Command::new("cat")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .kill_on_drop(true)
                .spawn()
                .unwrap();
            child.stdout.take().unwrap().read_u8().await.unwrap();
        }
        ["signal 12"] => {
            signal(SignalKind::user_defined2()).unwrap().recv().await;
        }
    }
}

fn io_cases() -> Vec<Case> {
    let (empty, unread) = (fifo(), fifo());
    cases! {
        ["descriptor ", "to be readable"] => {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            listener.accept().await.unwrap();
        }
        ["to be readable"] => {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            client.read_u8().await.unwrap();
        }
        ["to be writable"] => {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let bytes = vec![0; 1 << 26];
            client.write_all(&bytes).await.unwrap();
        }
        ["to be readable"] => {
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
            let listener = socket.listen(1).unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            client.readable().await.unwrap();
        }
        ["to be readable"] => {
            let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            socket.recv_from(&mut [0]).await.unwrap();
        }
        ["to be readable"] => {
            let (mut one, _other) = UnixStream::pair().unwrap();
            one.read_u8().await.unwrap();
        }
        ["to be readable"] => {
            let (one, _other) = UnixDatagram::pair().unwrap();
            one.recv(&mut [0]).await.unwrap();
        }
        ["to be readable"] => {
            let folder = tempfile::tempdir().unwrap();
            let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
            listener.accept().await.unwrap();
        }
        ["to be readable"] => {
            let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
            one.set_nonblocking(true).unwrap();
            let one = io::unix::AsyncFd::new(one).unwrap();
            drop(one.readable().await.unwrap());
        }
        ["bytes in a pipe in memory 0x"] => {
            let (mut one, _other) = io::duplex(8);
            one.read_u8().await.unwrap();
        }
        ["room in a pipe in memory 0x"] => {
            let (mut one, _other) = io::duplex(8);
            one.write_all(&[0; 9]).await.unwrap();
        }
        ["an operation of the file"] => {
            // A read of an empty FIFO blocks its thread.
            let mut open = fs::OpenOptions::new();
            let mut file = open.read(true).write(true).open(empty).await.unwrap();
            file.read_u8().await.unwrap();
        }
        ["a call of the system on a blocking thread"] => {
            // So does the open of a FIFO, until there is a reader.
            fs::OpenOptions::new().write(true).open(unread).await.unwrap();
        }
    }
}

/// Whether the closure that blocks is to end.
static IS_DONE: AtomicBool = AtomicBool::new(false);
const LOOK: Duration = Duration::from_millis(5);

static FIFOS: std::sync::Mutex<Vec<PathBuf>> = std::sync::Mutex::new(Vec::new());

fn fifo() -> PathBuf {
    let mut fifos = FIFOS.lock().unwrap();
    let (process, number) = (std::process::id(), fifos.len());
    let path = env::temp_dir().join(format!("selvedge-dumps-{process}-{number}"));
    let status = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(status.unwrap().success());
    fifos.push(path.clone());
    path
}

/// Ends the calls of files that block, so that the runtime can end.
fn end_fifos() {
    for path in FIFOS.lock().unwrap().drain(..) {
        let mut both = File::options().read(true).write(true).open(&path).unwrap();
        both.write_all(b"end").unwrap();
        std::fs::remove_file(path).unwrap();
        // The threads of the runtime may read it later.
        std::mem::forget(both);
    }
}

fn listing(workers: usize) -> Runtime {
    let builder = Builder::new().workers(workers).list_tasks(true);
    builder.build().unwrap()
}

/// Dumps until each of these tasks was seen to wait: a busy machine may leave a worker no time
/// within a dump's limit.
fn dump(runtime: &Runtime, ids: &[selvedge::Id]) -> Vec<TaskDump> {
    let begun = Instant::now();
    let mut seen = vec![None; ids.len()];
    while seen.iter().any(Option::is_none) {
        for dump in runtime.block_on(runtime.handle().dump()).unwrap() {
            let waits = dump.outcome == DumpOutcome::Waits && !dump.waits.is_empty();
            let place = ids.iter().position(|id| *id == dump.task.id);
            if let Some(place) = place.filter(|_| waits) {
                seen[place] = Some(dump);
            } else if begun.elapsed() > Duration::from_secs(600) {
                panic!("{dump}");
            }
        }
        thread::sleep(Duration::from_millis(5));
    }
    seen.into_iter().flatten().collect()
}

/// Checks what a dump says of these cases. `finish` ends what blocks threads.
fn check(cases: Vec<Case>, finish: fn()) {
    struct Finish(fn());

    impl Drop for Finish {
        fn drop(&mut self) {
            self.0();
        }
    }

    let runtime = listing(2);
    // Dropped before the runtime, after a panic too: the runtime waits for its threads.
    let _finish = Finish(finish);
    let expected: Vec<_> = cases.iter().map(|case| case.what).collect();
    let tasks: Vec<_> = cases
        .into_iter()
        .map(|case| runtime.spawn(case.waits))
        .collect();
    let ids: Vec<_> = tasks.iter().map(|task| task.id()).collect();
    let mut last_line = 0;
    for (what, dump) in expected.into_iter().zip(dump(&runtime, &ids)) {
        let said = dump
            .waits
            .iter()
            .map(|wait| wait.what.clone().unwrap())
            .collect::<Vec<_>>()
            .join(", ");
        assert!(what.iter().all(|what| said.contains(what)), "{dump}");
        if cfg!(not(target_arch = "x86_64")) {
            continue;
        }
        // The cases are in the order of their lines.
        let here = |frame: &&selvedge::Frame| {
            let file = frame.file.as_ref();
            file.is_some_and(|file| file.ends_with(file!()))
        };
        for wait in &dump.waits {
            let line = wait.frames.iter().rfind(here).and_then(|frame| frame.line);
            assert!(line > Some(last_line), "after line {last_line}: {dump}");
        }
        let mut frames = dump.waits[0].frames.iter();
        last_line = frames.rfind(here).and_then(|frame| frame.line).unwrap();
    }
    tasks.iter().for_each(|task| task.abort());
}

#[test]
fn locks_and_channels_say_what_they_wait_for() {
    check(sync_cases(), || ());
}

#[test]
fn timers_tasks_and_children_say_what_they_wait_for() {
    // Ordering: Release, read by the closure that blocks.
    check(time_and_task_cases(), || IS_DONE.store(true, Release));
}

#[test]
fn sockets_and_files_say_what_they_wait_for() {
    check(io_cases(), end_fifos);
}

/// The wakes by a channel, and the polls, of a task.
#[derive(Default)]
struct Counts {
    wakes: AtomicU64,
    polls: AtomicU64,
}

/// Counts the wakes that it passes on.
struct CountsWakes(Arc<Counts>, Waker);

impl Wake for CountsWakes {
    fn wake(self: Arc<Self>) {
        // Ordering: Relaxed, here and below: it is only a count.
        self.0.wakes.fetch_add(1, Relaxed);
        self.1.wake_by_ref();
    }
}

/// Receives until the senders are gone. Returns the number of messages.
async fn receive_all(mut receive: mpsc::UnboundedReceiver<u8>, counts: Arc<Counts>) -> u64 {
    let (mut received, mut wakers) = (0, None::<[Waker; 2]>);
    poll_fn(move |cx| {
        counts.polls.fetch_add(1, Relaxed);
        if wakers
            .as_ref()
            .is_none_or(|[of_task, _]| !of_task.will_wake(cx.waker()))
        {
            let waker = cx.waker();
            let counting = Arc::new(CountsWakes(counts.clone(), waker.clone()));
            wakers = Some([waker.clone(), counting.into()]);
        }
        let [_, counting] = wakers.as_ref().expect("set above");
        let mut cx = Context::from_waker(counting);
        while ready!(receive.poll_recv(&mut cx)).is_some() {
            received += 1;
        }
        Poll::Ready(received)
    })
    .await
}

/// The task that sends makes progress in each poll, whether a dump asks it or not.
fn under_load(dumps: usize) {
    const TASKS: usize = 64;
    let runtime = listing(2);
    let stop = Arc::new(AtomicBool::new(false));
    let total = Arc::new(Mutex::new(0));
    let mut rings = Vec::new();
    for _ in 0..TASKS {
        let (to, mut from_other) = mpsc::channel::<(u64, Instant)>(1);
        let (back, mut from_this) = mpsc::channel::<(u64, Instant)>(1);
        let echo = runtime.spawn(async move {
            let mut next = 0;
            while let Some((number, at)) = from_other.recv().await {
                assert_eq!(number, next, "a message is lost, or comes twice");
                next += 1;
                if back.send((number, at)).await.is_err() {
                    break;
                }
            }
        });
        let (stop, total) = (stop.clone(), total.clone());
        let drives = runtime.spawn(async move {
            let (mut number, mut slowest) = (0, Duration::ZERO);
            // Ordering: Relaxed, as the flag publishes nothing else.
            while !stop.load(Relaxed) {
                to.send((number, Instant::now())).await.unwrap();
                let (answer, begun) = from_this.recv().await.unwrap();
                assert_eq!(answer, number);
                number += 1;
                *total.lock().await += 1;
                slowest = slowest.max(begun.elapsed());
                time::sleep(Duration::from_micros(200)).await;
            }
            (number, slowest)
        });
        rings.push((echo, drives));
    }
    let (send, receive) = mpsc::unbounded_channel::<u8>();
    let counts = Arc::new(Counts::default());
    let counted = runtime.spawn(receive_all(receive, counts.clone()));
    let id = counted.id();
    let sends = {
        let (send, stop) = (send.clone(), stop.clone());
        thread::spawn(move || {
            let (mut sent, mut random) = (0, 1_u64);
            // Ordering: as above.
            while !stop.load(Relaxed) {
                send.send(1).unwrap();
                sent += 1;
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                thread::sleep(Duration::from_micros((random >> 33) % 2_000));
            }
            sent
        })
    };
    // The polls for dumps: all that may have been, and those that may count as the task's own.
    let (mut asked, mut progressed) = (0, 0);
    for _ in 0..dumps {
        let dump = runtime.block_on(runtime.handle().dump()).unwrap();
        assert!(dump.len() > 2 * TASKS, "{}", dump.len());
        let of_counted = dump.iter().find(|dump| dump.task.id == id).unwrap();
        match of_counted.outcome {
            DumpOutcome::Waits => asked += 1,
            DumpOutcome::NotPolled => {}
            _ => (asked, progressed) = (asked + 1, progressed + 1),
        }
    }
    // Ordering: as above.
    stop.store(true, Relaxed);
    let (mut messages, mut slowest) = (0, Duration::ZERO);
    for (echo, drives) in rings {
        let (number, slow) = runtime.block_on(drives).unwrap();
        runtime.block_on(echo).unwrap();
        messages += number;
        slowest = slowest.max(slow);
    }
    println!("{dumps} dumps, {messages} messages, the slowest took {slowest:?}");
    assert_eq!(runtime.block_on(total.lock()).clone(), messages);
    let limit = match env::var_os("SELVEDGE_DUMPS") {
        Some(_) => Duration::from_secs(1),
        None => Duration::from_secs(60),
    };
    assert!(slowest < limit, "{slowest:?}");
    let sent: u64 = sends.join().unwrap();
    let own_polls = loop {
        let task = runtime.handle().tasks().unwrap().remove(0);
        if task.state == TaskState::Waiting {
            break task.polls;
        }
        thread::yield_now();
    };
    drop(send);
    assert_eq!(runtime.block_on(counted).unwrap(), sent);
    let [wakes, polls] = [&counts.wakes, &counts.polls].map(|count| count.load(Relaxed));
    // A message wakes the task once, and so does the end. A wake leads to one poll at most.
    assert!(wakes <= sent + 1, "{wakes} wakes by {sent} messages");
    assert!(
        polls <= 1 + wakes + asked,
        "{polls} polls: {wakes} wakes, {asked} for dumps"
    );
    assert!(
        own_polls <= 1 + wakes + progressed,
        "{own_polls} polls of its own: {wakes} wakes, {progressed} in dumps"
    );
}

/// Fails if a dump loses a message or a wake, or if a poll for a dump counts as one of the task.
/// No message may take a minute. `SELVEDGE_DUMPS` sets the number of dumps, and then none may take
/// a second: this is for an idle machine.
#[test]
fn dumps_under_load_lose_nothing_and_wake_nobody_twice() {
    let dumps = env::var("SELVEDGE_DUMPS").map_or(200, |dumps| dumps.parse().unwrap());
    under_load(dumps);
}

/// Tasks of a runtime of one thread, of a driven worker, and of a runtime in a task.
#[test]
fn tasks_of_any_runtime_are_dumped() {
    let waits = || Notify::new();
    let asserts = |dump: &[TaskDump]| {
        assert_eq!(dump.len(), 1);
        assert_eq!(dump[0].waits.len(), 1, "{}", dump[0]);
    };
    // A worker whose loop is this thread's.
    let (driven, mut workers) = Builder::new()
        .list_tasks(true)
        .build_driven([selvedge::park::ThreadPark::new()]);
    let mut worker = workers.remove(0);
    let task = driven.spawn(async move { waits().notified().await });
    while worker.tick() == Tick::Ran {}
    let handle = driven.handle().clone();
    let id = task.id();
    let dumped = thread::spawn(move || handle.block_on(handle.dump_task(id)).unwrap());
    while !dumped.is_finished() {
        if worker.tick() == Tick::Idle {
            worker.park_timeout(Duration::from_millis(1));
        }
    }
    asserts(&[dumped.join().unwrap()]);
    drop((driven, task));
    worker.run();
    // A runtime of one thread, whose worker is the thread in `block_on`.
    let builder = Builder::new_current_thread().list_tasks(true);
    let local = builder.build().unwrap();
    let task = local.spawn(async move { waits().notified().await });
    local.block_on(async {
        while local.handle().tasks().unwrap()[0].state != TaskState::Waiting {
            task::yield_now().await;
        }
        let dump = loop {
            let dump = local.handle().dump().await.unwrap();
            if dump[0].outcome == DumpOutcome::Waits {
                break dump;
            }
        };
        asserts(&dump);
    });
    drop(task);
    // A runtime that a task of another one has built.
    let outer = listing(1);
    let inner = outer.spawn(async move {
        let inner = listing(1);
        let task = inner.spawn(async move { waits().notified().await });
        let id = task.id();
        let (dump, inner) = task::spawn_blocking(move || (dump(&inner, &[id]), inner))
            .await
            .unwrap();
        task::spawn_blocking(move || drop(inner)).await.unwrap();
        dump
    });
    asserts(&outer.block_on(inner).unwrap());
}

/// Returns the dump of the task of this name, which another thread asks for. The first one that
/// says that the task waits.
fn dump_of(handle: &selvedge::Handle, name: &str) -> TaskDump {
    let begun = Instant::now();
    loop {
        let dump = handle.block_on(handle.dump()).unwrap();
        let waits = |dump: &TaskDump| dump.outcome == DumpOutcome::Waits && !dump.waits.is_empty();
        let mut named = dump
            .iter()
            .filter(|dump| dump.task.name.as_deref() == Some(name));
        if let Some(found) = named.find(|dump| waits(dump)) {
            return found.clone();
        }
        assert!(begun.elapsed() < Duration::from_secs(600), "{dump:?}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Whether a function awaits in one of the two lines after this one.
fn awaits_after(dump: &TaskDump, begin: u32) -> bool {
    let mut frames = dump.waits.iter().flat_map(|wait| wait.frames.iter());
    let lines = begin..begin + 3;
    cfg!(not(target_arch = "x86_64"))
        || frames.any(|frame| {
            let file = frame.file.as_deref();
            file.is_some_and(|file| file.ends_with(file!()))
                && frame.line.is_some_and(|line| lines.contains(&line))
        })
}

const MAIN_WAITS: u32 = line!();
async fn main_waits(notify: Arc<Notify>) {
    notify.notified().await;
}

/// The future of `block_on` is dumped as a task, in each kind of runtime. The one that asks is not.
#[test]
fn future_of_block_on_is_dumped() {
    for builder in [Builder::new(), Builder::new_current_thread()] {
        let runtime = builder.list_tasks(true).build().unwrap();
        let (handle, end) = (runtime.handle().clone(), Arc::new(Notify::new()));
        let ends = end.clone();
        let dumps = thread::spawn(move || {
            let dump = dump_of(&handle, "block_on");
            let all = handle.block_on(handle.dump()).unwrap();
            let shown = handle.tasks().unwrap();
            ends.notify_one();
            (dump, all.len(), shown.len())
        });
        runtime.block_on(main_waits(end));
        let (dump, all, shown) = dumps.join().unwrap();
        assert!(awaits_after(&dump, MAIN_WAITS), "{dump}");
        assert!(dump.task.location.file().ends_with(file!()));
        assert_eq!((dump.waits.len(), all, shown), (1, 1, 1), "{dump}");
        assert!(runtime.handle().tasks().unwrap().is_empty());
    }
}

const LOCAL_WAITS: u32 = line!();
async fn local_waits(notify: std::rc::Rc<Notify>) {
    notify.notified().await;
}

/// The tasks of a local runtime and of a `LocalSet`. Their waits are not those of the `block_on`
/// that polls them.
#[test]
fn local_tasks_are_dumped() {
    let local = Builder::new_current_thread()
        .list_tasks(true)
        .build_local(selvedge::runtime::LocalOptions::default())
        .unwrap();
    let (handle, end) = (local.handle().clone(), Arc::new(Notify::new()));
    let ends = end.clone();
    let dumps = thread::spawn(move || {
        let dump = dump_of(&handle, "home");
        let main = dump_of(&handle, "block_on");
        // A dump's poll does not count. On a busy machine the first poll may be one of these.
        let polls = |_| {
            let again = handle.block_on(handle.dump_task(dump.task.id));
            again.unwrap().task.polls
        };
        let polls: Vec<_> = (0..20).map(polls).collect();
        ends.notify_one();
        (dump, main, polls)
    });
    let never = std::rc::Rc::new(Notify::new());
    let named = task::Builder::new().name("home");
    let mut task = None;
    local.block_on(async {
        task = Some(named.spawn_local(local_waits(never)));
        main_waits(end).await;
    });
    let task = task.unwrap();
    let (dump, main, polls) = dumps.join().unwrap();
    assert!(awaits_after(&dump, LOCAL_WAITS), "{dump}");
    assert!(awaits_after(&main, MAIN_WAITS), "{main}");
    assert_eq!(
        (dump.waits.len(), main.waits.len()),
        (1, 1),
        "{dump} {main}"
    );
    assert!(polls.iter().all(|polls| *polls < 10), "{polls:?}");
    assert_eq!(dump.task.id, task.id());
    assert_eq!(local.handle().tasks().unwrap().len(), 1);
    task.abort();
    assert!(local.block_on(task).unwrap_err().is_cancelled());
    assert!(local.handle().tasks().unwrap().is_empty());
}

/// The future of `block_on` joins a task that waits for a lock of that future. The dump also wakes
/// 100 local tasks, which that future polls.
#[test]
fn cycle_through_block_on_is_found() {
    let runtime = Builder::new().workers(1).list_tasks(true);
    let runtime = runtime.build().unwrap();
    let local = task::LocalSet::new();
    for _ in 0..100 {
        local.spawn_local(async { Notify::new().notified().await });
    }
    let handle = runtime.handle().clone();
    let (sender, cut) = std::sync::mpsc::channel::<task::AbortHandle>();
    let dumps = thread::spawn(move || {
        let cut = cut.recv().unwrap();
        let begun = Instant::now();
        let (dump, cycles) = loop {
            let dump = handle.block_on(handle.dump()).unwrap();
            let cycles = selvedge::wait_cycles(&dump);
            let is_whole = !cycles.is_empty() && dump.len() == 102;
            if is_whole || begun.elapsed() > Duration::from_secs(300) {
                break (dump, cycles);
            }
            thread::sleep(Duration::from_millis(1));
        };
        cut.abort();
        (dump, cycles)
    });
    local.block_on(&runtime, async {
        let mutex = Arc::new(Mutex::new(()));
        let _guard = mutex.lock().await;
        let waits = mutex.clone();
        let task = task::spawn(async move { drop(waits.lock().await) });
        sender.send(task.abort_handle()).unwrap();
        assert!(task.await.unwrap_err().is_cancelled());
    });
    let (dump, cycles) = dumps.join().unwrap();
    assert_eq!(cycles.len(), 1, "{dump:?}");
    assert_eq!((dump.len(), cycles[0].tasks.len()), (102, 2));
    let text = cycles[0].to_string();
    assert!(
        text.contains("\"block_on\"") && text.contains("a mutex"),
        "{text}"
    );
}

#[cfg(feature = "groups")]
#[test]
fn tasks_of_a_group_are_dumped_with_its_name() {
    let runtime = listing(2);
    let group = runtime.group("night").build().unwrap();
    let waits = async { Notify::new().notified().await };
    let task = selvedge::spawn_in(&group, waits).unwrap();
    let dump = dump(&runtime, &[task.id()]).remove(0);
    assert_eq!(dump.task.group.as_deref(), Some("night"));
    task.abort();
}
