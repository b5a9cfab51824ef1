//! The rows: a workload, its size, its number of workers and its peers.
use crate::{
    peers::{AsyncChannel, AsyncLock, Flume, Futures, Kanal, Ours, Peer, Tokio},
    runtimes::{OnSelvedge, OnTokio, Work},
    workloads::{self, Yields},
};

/// A peer's name, and the row's workload with this peer on each of the runtimes.
pub(crate) struct Entry {
    pub(crate) peer: &'static str,
    pub(crate) start: [fn(u64) -> Work; 2],
}

pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) workers: usize,
    pub(crate) operations: u64,
    /// Ours first, then tokio's.
    pub(crate) entries: Vec<Entry>,
}

/// Compiles a workload for each peer on each runtime.
macro_rules! entries {
    (<$Rt:ident, $Peer:ident>($n:ident) $workload:expr; $($peer:ident),*) => {
        vec![$({
            type $Peer = $peer;
            Entry {
                peer: <$peer as Peer>::NAME,
                start: [
                    {
                        type $Rt = OnSelvedge;
                        |$n| Box::pin($workload)
                    },
                    {
                        type $Rt = OnTokio;
                        |$n| Box::pin($workload)
                    },
                ],
            }
        }),*]
    };
}

/// Returns the rows of messages to one receiver: bounded or not, from one sender or from eight,
/// with one worker or with two.
fn mpsc() -> impl Iterator<Item = Row> {
    macro_rules! row {
        ($name:literal, $what:literal, $senders:literal, $bounded:literal) => {
            [
                (1, $name, concat!($what, ", within one worker")),
                (2, concat!($name, "_across"), concat!($what, ", across two workers")),
            ]
            .map(|(workers, name, what)| Row {
                name,
                what,
                workers,
                operations: 200_000,
                entries: entries!(
                    <R, C>(n) workloads::mpsc::<R, C>($senders, $bounded, n);
                    Ours, Tokio, AsyncChannel, Flume, Kanal
                ),
            })
        };
    }
    [
        row!(
            "mpsc_1",
            "1 sender and 1 receiver, for 100 messages",
            1,
            true
        ),
        row!(
            "mpsc_8",
            "8 senders and 1 receiver, for 100 messages",
            8,
            true
        ),
        row!(
            "mpsc_unbounded_1",
            "1 sender that yields after 256 messages, and 1 receiver",
            1,
            false
        ),
        row!(
            "mpsc_unbounded_8",
            "8 senders that yield after 256 messages, and 1 receiver",
            8,
            false
        ),
    ]
    .into_iter()
    .flatten()
}

fn mutexes() -> [Row; 5] {
    let row = |name, what, workers, operations, entries| Row {
        name,
        what,
        workers,
        operations,
        entries,
    };
    [
        row(
            "mutex_1",
            "1 task locks a mutex that nobody else locks",
            1,
            1_000_000,
            entries!(
                <R, L>(n) workloads::mutex::<R, L>(1, Yields::Never, n); Ours, Tokio, AsyncLock
            ),
        ),
        row(
            "mutex_64",
            "64 tasks lock a mutex, and add to a number. tokio's lock goes to the tasks strictly in \
             turn; ours, and async-lock's, may be taken again before the woken task runs",
            2,
            200_000,
            entries!(
                <R, L>(n) workloads::mutex::<R, L>(64, Yields::Never, n); Ours, Tokio, AsyncLock
            ),
        ),
        row(
            "mutex_64_strict",
            "as `mutex_64`, but all of the crates hand over strictly in turn: a semaphore of one \
             permit for ours and tokio. async-lock has no such lock",
            2,
            200_000,
            entries!(
                <R, L>(n) workloads::semaphore::<R, L>(1, 64, Yields::Never, n); Ours, Tokio
            ),
        ),
        row(
            "mutex_64_held",
            "64 tasks lock a mutex, and yield while they hold it; as fair as in `mutex_64`",
            2,
            100_000,
            entries!(
                <R, L>(n) workloads::mutex::<R, L>(64, Yields::Held, n); Ours, Tokio, AsyncLock
            ),
        ),
        row(
            "mutex_64_held_strict",
            "as `mutex_64_held`, but strictly in turn, as `mutex_64_strict`",
            2,
            100_000,
            entries!(
                <R, L>(n) workloads::semaphore::<R, L>(1, 64, Yields::Held, n); Ours, Tokio
            ),
        ),
    ]
}

pub(crate) fn rows() -> Vec<Row> {
    let row = |name, what, operations, entries| Row {
        name,
        what,
        workers: 2,
        operations,
        entries,
    };
    let mut rows: Vec<_> = mpsc().collect();
    rows.push(row(
        "mpmc_8_8",
        "8 senders and 8 receivers that share the messages, for 100 messages. task-sync and tokio \
         have no such channel: the receivers share one behind the crate's own `Mutex`",
        100_000,
        entries!(
            <R, C>(n) workloads::mpmc::<R, C>(n); Ours, Tokio, AsyncChannel, Flume, Kanal
        ),
    ));
    rows.push(row(
        "oneshot",
        "2 tasks send each other a value in turns, each over a channel of its own. async-channel, \
         flume and kanal: a channel for one message",
        100_000,
        entries!(
            <R, C>(n) workloads::oneshot::<R, C>(n);
            Ours, Tokio, Futures, AsyncChannel, Flume, Kanal
        ),
    ));
    rows.push(row(
        "broadcast_1000",
        "a message to 1,000 tasks; the next one when all have it",
        200_000,
        entries!(<R, S>(n) workloads::broadcast::<R, S>(1_000, n); Ours, Tokio),
    ));
    rows.push(row(
        "watch_1000",
        "a new value, which 1,000 tasks see; the next one when all have seen it",
        200_000,
        entries!(<R, S>(n) workloads::watch::<R, S>(1_000, n); Ours, Tokio),
    ));
    rows.push(row(
        "watch_ping_pong",
        "2 tasks show each other a new value in turns",
        100_000,
        entries!(<R, S>(n) workloads::watch_ping_pong::<R, S>(n); Ours, Tokio),
    ));
    rows.push(row(
        "notify_ping_pong",
        "2 tasks notify each other in turns",
        100_000,
        entries!(<R, S>(n) workloads::notify::<R, S>(n); Ours, Tokio),
    ));
    rows.extend(mutexes());
    rows.push(row(
        "rwlock_95",
        "64 tasks lock a `RwLock`, 95 % of the times to read",
        200_000,
        entries!(<R, L>(n) workloads::rwlock::<R, L>(Yields::Never, n); Ours, Tokio, AsyncLock),
    ));
    rows.push(row(
        "rwlock_95_held",
        "the same, and they yield while they hold it",
        100_000,
        entries!(<R, L>(n) workloads::rwlock::<R, L>(Yields::Held, n); Ours, Tokio, AsyncLock),
    ));
    rows.push(row(
        "semaphore_10",
        "1,000 tasks acquire one of 10 permits",
        200_000,
        entries!(
            <R, L>(n) workloads::semaphore::<R, L>(10, 1_000, Yields::Never, n);
            Ours, Tokio, AsyncLock
        ),
    ));
    rows.push(row(
        "semaphore_10_held",
        "the same, and they yield while they hold it",
        100_000,
        entries!(
            <R, L>(n) workloads::semaphore::<R, L>(10, 1_000, Yields::Held, n);
            Ours, Tokio, AsyncLock
        ),
    ));
    rows
}
