//! The names of the runtimes and the rows.
//!
//! `xtask` includes this file too. So `cargo xtask bench` lists these names, and refuses other
//! names, without building `bench`.

/// The runtimes, ours first.
pub(crate) const RUNTIMES: &[&str] = &[
    "selvedge",
    "selvedge-current-thread",
    "selvedge-no-budget",
    "tokio",
    "tokio-current-thread",
    "async-executor",
    "async-executor-static",
    "smol",
    "futures-threadpool",
    "nexosim",
    "epoll",
];

/// The rows but those of [`OUTSIDE`], each with its description.
const ROWS: &[(&str, &str)] = &[
    ("spawn_many_remote", "10,000 tasks spawned from outside"),
    (
        "spawn_many_remote_join",
        "10,000 tasks spawned from outside, every handle awaited there",
    ),
    (
        "spawn_busy_remote",
        "10,000 tasks spawned from outside while every worker is busy with tasks that yield",
    ),
    (
        "spawn_busy_1us_remote",
        "1,000 tasks spawned from outside while every worker is busy with polls of 1 microsecond",
    ),
    (
        "spawn_busy_10us_remote",
        "1,000 tasks spawned from outside while every worker is busy with polls of 10 microseconds",
    ),
    (
        "spawn_busy_100us_remote",
        "1,000 tasks spawned from outside while every worker is busy with polls of 100 microseconds",
    ),
    ("spawn_many_local", "10,000 tasks spawned from a task"),
    (
        "chained_spawn",
        "a task that spawns one that spawns one, 1,000 deep",
    ),
    (
        "spawn_join",
        "a task that spawns one and awaits it, 1,000 times",
    ),
    (
        "fork_join",
        "a binary tree of tasks, 16 deep, each awaiting both that it spawned",
    ),
    (
        "yield_many",
        "200 tasks that yield 1,000 times each; futures' pool and NeXosim poll such a task again \
             at once",
    ),
    (
        "yield_one",
        "one task that yields 10,000 times; see yield_many for futures' pool and NeXosim",
    ),
    ("wake_one", "one task that wakes itself 10,000 times"),
    (
        "wake_many",
        "200 tasks that wake themselves 1,000 times each; see yield_many for futures' pool and \
             NeXosim",
    ),
    (
        "wake_threads",
        "4 outside threads wake one task, 100,000 times each",
    ),
    (
        "ping_pong",
        "1,000 pairs that exchange a message each way, over futures' oneshots",
    ),
    ("ping_pong_tokio", "the same over tokio's oneshots"),
    (
        "ring_100",
        "100 tasks in a ring pass one message on, 100 times round",
    ),
    (
        "ring_1000",
        "1,000 tasks in a ring pass 100 messages on, each once round",
    ),
    (
        "wake_storm",
        "1,000 tasks meet; the last to come wakes all others, 20 times",
    ),
    (
        "wake_storm_remote",
        "1,000 tasks wait; an outside thread wakes all, 20 times",
    ),
    (
        "skew",
        "a task spawns 512 of 1 to 64 microseconds' work; efficiency is of all workers",
    ),
    (
        "bursty",
        "64 tasks of 2 microseconds' work from outside, after a pause; efficiency is of all \
             workers",
    ),
    (
        "idle_wake",
        "from an outside thread's wake to the poll, the runtime being idle: median and p99",
    ),
    (
        "busy_spawn",
        "from a spawn outside to the task's run, every worker being busy with polls of 100 \
             microseconds: median and p99",
    ),
    (
        "spawn_blocking",
        "a task hands work to a thread for it and awaits it, 100 times",
    ),
    ("new_drop", "start a runtime, run a task on it, drop it"),
    (
        "coop",
        "one worker, from a ticker's wake beside an always-ready task to its poll: median and p99; \
             efficiency is the other's pace, to that without budget and ticker",
    ),
    (
        "idle_task",
        "resident bytes a task, of a million that wait, each a future of 16 bytes that holds its \
             waker, handles dropped",
    ),
    (
        "timeout_ready",
        "a limit of a second for a future that is ready at once",
    ),
    (
        "timeout_pending",
        "a limit of a second for a future that is pending once, and wakes itself",
    ),
    ("timeout_2", "the same in two tasks at a time"),
    (
        "sleep_1ms",
        "how late a sleep of 1 millisecond ends, the runtime being idle: median and p99",
    ),
    (
        "sleep_100us",
        "how late a sleep of 100 microseconds ends, the runtime being idle: median and p99",
    ),
    (
        "interval_100",
        "how late the ticks of 100 intervals of 10 milliseconds are: p99; the processor time is of a \
             tick",
    ),
    (
        "interval_1k",
        "how late the ticks of 1,000 intervals of 10 milliseconds are: p99; the processor time is \
             of a tick",
    ),
    (
        "interval_10k",
        "how late the ticks of 10,000 intervals of 10 milliseconds are: p99; the processor time is \
             of a tick",
    ),
    (
        "sleep_storm",
        "how late 100,000 sleeps of 1 to 100 milliseconds end, each in a task: p99; the processor \
             time is also that of the spawns",
    ),
    (
        "sleepers_1m",
        "resident bytes a task, of a million that sleep and end over 10 seconds; the processor \
             time is of all of it",
    ),
    (
        "echo_1_inside",
        "64 bytes echoed on a TCP connection, by one worker; the client, a thread of the process, \
             has the other processor",
    ),
    (
        "echo_50_inside",
        "the same on 50 connections at a time, by one client thread",
    ),
    (
        "echo_busy",
        "an echo every 300 microseconds beside a task for each worker that wakes itself in each of \
             its polls of 1 millisecond: p99",
    ),
    (
        "echo_saturated",
        "echoes on 50 connections beside 16 that always have data, read by 64 bytes: p99",
    ),
    (
        "connect_inside",
        "connect, send a byte, get it back, close; one worker, and another processor for the client, \
             a thread of the process",
    ),
    (
        "idle_conns",
        "wakes of threads in a second beside 9,000 idle connections, each limited to an hour; one \
             is the measuring thread's",
    ),
    (
        "http_50",
        "HTTP/1 requests on 50 connections at a time, by one client thread that shares the \
             processors; hyper with a time limit for heads",
    ),
    ("http_foreign", "the same over sockets of async-io"),
    (
        "http_saturated",
        "HTTP/1 requests on 199 connections, beside one that pipelines requests without end: p99; \
             one worker, and the clients' own processor",
    ),
    (
        "http_mixed",
        "HTTP/1 requests on 50 connections, of which each tenth takes a millisecond of processor \
             time: p99 of the others; one worker, and the client's own processor",
    ),
    (
        "h2_streams",
        "HTTP/2 requests on one connection, 100 at a time",
    ),
    (
        "fs_tree",
        "a file, in a walk through 100 folders that reads and adds up 19 files of 4 KiB and one of \
             1 MiB in each; a task for each folder",
    ),
];

/// Lists each row twice: free, and pinned.
macro_rules! placed {
    ($($name:literal: $what:expr,)*) => {
        &[$(
            ($name, $what),
            (
                concat!($name, "_pinned"),
                concat!($what, "; server and client pinned"),
            ),
        )*]
    };
}

/// The rows whose client is a process of its own, each with its description.
pub(crate) const OUTSIDE: &[(&str, &str)] = placed! {
    "hello_open_1k": "1,000 HTTP/1 requests a second by a clock, over 50 connections: p50",
    "hello_open_5k": "5,000 HTTP/1 requests a second by a clock, over 50 connections: p50",
    "hello_open_20k": "20,000 HTTP/1 requests a second by a clock, over 50 connections: p50",
    "mixed_capacity": "messages on 50 connections, each with one of several kinds of work before \
             its answer, as fast as they are answered",
    "mixed_10": "the same messages by a clock, at 10 % of tokio's pace in mixed_capacity: p50",
    "mixed_30": "the same messages by a clock, at 30 % of tokio's pace in mixed_capacity: p50",
    "mixed_60": "the same messages by a clock, at 60 % of tokio's pace in mixed_capacity: p50",
    "mixed_80": "the same messages by a clock, at 80 % of tokio's pace in mixed_capacity: p50",
    "tcp_1": "64 bytes echoed on a TCP connection",
    "tcp_50": "64 bytes echoed on 50 TCP connections",
    "udp_1": "a datagram of 64 bytes echoed",
    "udp_16": "datagrams of 64 bytes echoed, 16 from one peer on their way",
    "udp_50": "datagrams of 64 bytes echoed, one of each of 50 peers on its way",
    "uds_1": "64 bytes echoed on a connection of Unix sockets",
    "uds_50": "64 bytes echoed on 50 connections of Unix sockets",
    "fan_out_1000": "a message to 1,000 TCP connections, until the last one has it",
    "big_1gib": "a mebibyte, of 1 GiB from memory to a TCP connection",
    "file_1gib": "a mebibyte, of 1 GiB from a file in memory to a TCP connection, by 64 KiB",
};

/// The rows whose client is a process of its own, in one placement.
pub(crate) const PLACED: &[(&str, &str)] = &[
    (
        "loaded_host",
        "5,000 HTTP/1 requests a second by a clock, beside two threads that compute: p50",
    ),
    (
        "echo_1",
        "64 bytes echoed on a TCP connection; one worker on a processor, the client on another",
    ),
    (
        "echo_50",
        "64 bytes echoed on 50 TCP connections; one worker on a processor, the client on another",
    ),
    (
        "connect",
        "connect, send a byte, get it back, close; one worker on a processor, the client on another",
    ),
];

/// Returns all rows.
pub(crate) fn rows() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    ROWS.iter().chain(OUTSIDE).chain(PLACED)
}
