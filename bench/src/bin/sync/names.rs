//! The names of the rows, each with what it measures. `xtask` includes this file too, to list them
//! without building `bench`.

macro_rules! mpsc {
    ($(($within:literal, $across:literal, $what:literal),)* ; $($row:tt,)*) => {
        /// The rows in the order of the page.
        pub(crate) const ROWS: &[(&str, &str)] = &[
            $(
                ($within, concat!($what, ", within one worker")),
                ($across, concat!($what, ", across two workers")),
            )*
            $($row,)*
        ];
    };
}

mpsc! {
    ("mpsc_1", "mpsc_1_across", "1 sender and 1 receiver, for 100 messages"),
    ("mpsc_8", "mpsc_8_across", "8 senders and 1 receiver, for 100 messages"),
    (
        "mpsc_unbounded_1",
        "mpsc_unbounded_1_across",
        "1 sender that yields after 256 messages, and 1 receiver"
    ),
    (
        "mpsc_unbounded_8",
        "mpsc_unbounded_8_across",
        "8 senders that yield after 256 messages, and 1 receiver"
    ),
    ;
    (
        "mpmc_8_8",
        "8 senders and 8 receivers that share the messages, for 100 messages. task-sync and tokio \
         have no such channel: the receivers share one behind the crate's own `Mutex`"
    ),
    (
        "oneshot",
        "2 tasks send each other a value in turns, each over a channel of its own. async-channel, \
         flume and kanal: a channel for one message"
    ),
    (
        "broadcast_1000",
        "a message to 1,000 tasks; the next one when all have it"
    ),
    (
        "watch_1000",
        "a new value, which 1,000 tasks see; the next one when all have seen it"
    ),
    ("watch_ping_pong", "2 tasks show each other a new value in turns"),
    ("notify_ping_pong", "2 tasks notify each other in turns"),
    ("mutex_1", "1 task locks a mutex that nobody else locks"),
    (
        "mutex_64",
        "64 tasks lock a mutex, and add to a number. tokio's lock goes to the tasks strictly in \
         turn; ours, and async-lock's, may be taken again before the woken task runs"
    ),
    (
        "mutex_64_strict",
        "as `mutex_64`, but all of the crates hand over strictly in turn: a semaphore of one \
         permit for ours and tokio. async-lock has no such lock"
    ),
    (
        "mutex_64_held",
        "64 tasks lock a mutex, and yield while they hold it; as fair as in `mutex_64`"
    ),
    (
        "mutex_64_held_strict",
        "as `mutex_64_held`, but strictly in turn, as `mutex_64_strict`"
    ),
    (
        "rwlock_95",
        "64 tasks lock a `RwLock`, 95 % of the times to read. tokio's lock goes to the tasks \
         strictly in turn; ours, and async-lock's, may be taken again before the woken task runs"
    ),
    ("rwlock_95_held", "the same, and they yield while they hold it"),
    ("semaphore_10", "1,000 tasks acquire one of 10 permits"),
    ("semaphore_10_held", "the same, and they yield while they hold it"),
}
