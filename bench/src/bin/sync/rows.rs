//! The rows: a workload, its size, its number of workers and its peers.
use crate::{
    names::ROWS,
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
        ($name:literal, $senders:literal, $bounded:literal) => {
            [(1, $name), (2, concat!($name, "_across"))].map(|(workers, name)| Row {
                workers,
                ..row(
                    name,
                    200_000,
                    entries!(
                        <R, C>(n) workloads::mpsc::<R, C>($senders, $bounded, n);
                        Ours, Tokio, AsyncChannel, Flume, Kanal
                    ),
                )
            })
        };
    }
    [
        row!("mpsc_1", 1, true),
        row!("mpsc_8", 8, true),
        row!("mpsc_unbounded_1", 1, false),
        row!("mpsc_unbounded_8", 8, false),
    ]
    .into_iter()
    .flatten()
}

fn mutexes() -> [Row; 5] {
    [
        Row {
            workers: 1,
            ..row(
                "mutex_1",
                1_000_000,
                entries!(
                    <R, L>(n) workloads::mutex::<R, L>(1, Yields::Never, n);
                    Ours, Tokio, AsyncLock
                ),
            )
        },
        row(
            "mutex_64",
            200_000,
            entries!(
                <R, L>(n) workloads::mutex::<R, L>(64, Yields::Never, n); Ours, Tokio, AsyncLock
            ),
        ),
        row(
            "mutex_64_strict",
            200_000,
            entries!(
                <R, L>(n) workloads::semaphore::<R, L>(1, 64, Yields::Never, n); Ours, Tokio
            ),
        ),
        row(
            "mutex_64_held",
            100_000,
            entries!(
                <R, L>(n) workloads::mutex::<R, L>(64, Yields::Held, n); Ours, Tokio, AsyncLock
            ),
        ),
        row(
            "mutex_64_held_strict",
            100_000,
            entries!(
                <R, L>(n) workloads::semaphore::<R, L>(1, 64, Yields::Held, n); Ours, Tokio
            ),
        ),
    ]
}

/// Returns a row of two workers.
fn row(name: &'static str, operations: u64, entries: Vec<Entry>) -> Row {
    let named = ROWS.iter().find(|(known, _)| *known == name);
    let &(name, what) = named.expect("each row is named in `names.rs`");
    Row {
        name,
        what,
        workers: 2,
        operations,
        entries,
    }
}

pub(crate) fn rows() -> Vec<Row> {
    let mut rows: Vec<_> = mpsc().collect();
    rows.push(row(
        "mpmc_8_8",
        100_000,
        entries!(
            <R, C>(n) workloads::mpmc::<R, C>(n); Ours, Tokio, AsyncChannel, Flume, Kanal
        ),
    ));
    rows.push(row(
        "oneshot",
        100_000,
        entries!(
            <R, C>(n) workloads::oneshot::<R, C>(n);
            Ours, Tokio, Futures, AsyncChannel, Flume, Kanal
        ),
    ));
    rows.push(row(
        "broadcast_1000",
        200_000,
        entries!(<R, S>(n) workloads::broadcast::<R, S>(1_000, n); Ours, Tokio),
    ));
    rows.push(row(
        "watch_1000",
        200_000,
        entries!(<R, S>(n) workloads::watch::<R, S>(1_000, n); Ours, Tokio),
    ));
    rows.push(row(
        "watch_ping_pong",
        100_000,
        entries!(<R, S>(n) workloads::watch_ping_pong::<R, S>(n); Ours, Tokio),
    ));
    rows.push(row(
        "notify_ping_pong",
        100_000,
        entries!(<R, S>(n) workloads::notify::<R, S>(n); Ours, Tokio),
    ));
    rows.extend(mutexes());
    rows.push(row(
        "rwlock_95",
        200_000,
        entries!(<R, L>(n) workloads::rwlock::<R, L>(Yields::Never, n); Ours, Tokio, AsyncLock),
    ));
    rows.push(row(
        "rwlock_95_held",
        100_000,
        entries!(<R, L>(n) workloads::rwlock::<R, L>(Yields::Held, n); Ours, Tokio, AsyncLock),
    ));
    rows.push(row(
        "semaphore_10",
        200_000,
        entries!(
            <R, L>(n) workloads::semaphore::<R, L>(10, 1_000, Yields::Never, n);
            Ours, Tokio, AsyncLock
        ),
    ));
    rows.push(row(
        "semaphore_10_held",
        100_000,
        entries!(
            <R, L>(n) workloads::semaphore::<R, L>(10, 1_000, Yields::Held, n);
            Ours, Tokio, AsyncLock
        ),
    ));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_those_of_the_list_in_its_order() {
        let names: Vec<_> = rows().iter().map(|row| row.name).collect();
        let listed: Vec<_> = ROWS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, listed);
    }
}
