//! Measures the stand-in `adopt::async_executor` beside the executors of the crate async-executor.
//! One thread runs the executor and spawns the tasks.
//!
//! The host `async-executor` is the crate's `Executor`. It keeps a list of its tasks, so that its
//! drop can cancel them, as the stand-in does. The host `async-executor static` is the crate's
//! `StaticExecutor`, which keeps no such list and lives forever.
use crate::Row;
use adopt::async_executor::Executor;
use async_executor::StaticExecutor;
use futures_lite::future::{block_on, yield_now};
use std::sync::Arc;

const TASKS: usize = 100_000;
const SPAWNERS: usize = 4;
const YIELDERS: usize = 100;
const YIELDS: usize = 1_000;
const ROUND_TRIPS: usize = 50_000;

/// The work of each row. A task's handle returns a `Result` or the output itself. `$unwrap` turns
/// that value into the output.
macro_rules! work {
    (spawn_await, $executor:ident, $unwrap:expr) => {{
        let tasks: Vec<_> = (0..TASKS)
            .map(|n| $executor.spawn(async move { n }))
            .collect();
        let mut sum = 0;
        for task in tasks {
            sum += $unwrap(task.await);
        }
        assert_eq!(sum, TASKS * (TASKS - 1) / 2);
    }};
    (spawn_4x25000, $executor:ident, $unwrap:expr) => {{
        let spawner = || {
            let executor = $executor.clone();
            $executor.spawn(async move {
                let each = TASKS / SPAWNERS;
                let tasks: Vec<_> = (0..each).map(|_| executor.spawn(async {})).collect();
                for task in tasks {
                    $unwrap(task.await);
                }
            })
        };
        let spawners: Vec<_> = (0..SPAWNERS).map(|_| spawner()).collect();
        for spawner in spawners {
            $unwrap(spawner.await);
        }
    }};
    (yields, $executor:ident, $unwrap:expr) => {{
        let yielder = |_| {
            $executor.spawn(async {
                for _ in 0..YIELDS {
                    yield_now().await;
                }
            })
        };
        let yielders: Vec<_> = (0..YIELDERS).map(yielder).collect();
        for yielder in yielders {
            $unwrap(yielder.await);
        }
    }};
    (ping_pong, $executor:ident, $unwrap:expr) => {{
        let (ping, pings) = async_channel::bounded(1);
        let (pong, pongs) = async_channel::bounded(1);
        let first = $executor.spawn(async move {
            for n in 0..ROUND_TRIPS {
                ping.send(n).await.unwrap();
                assert_eq!(pongs.recv().await, Ok(n));
            }
        });
        let second = $executor.spawn(async move {
            while let Ok(n) = pings.recv().await {
                if pong.send(n).await.is_err() {
                    break;
                }
            }
        });
        $unwrap(first.await);
        $unwrap(second.await);
    }};
}

/// Makes a module for each row, with the functions that make the row beside either host.
macro_rules! rows {
    ($($work:ident),*) => {$(
        pub mod $work {
            use super::*;

            fn ours() -> Box<dyn FnMut()> {
                let executor = Arc::new(Executor::new(1));
                Box::new(move || {
                    block_on(executor.run(async { work!($work, executor, Result::unwrap) }))
                })
            }

            pub fn beside_executor() -> Row {
                let executor = Arc::new(async_executor::Executor::<'static>::new());
                let theirs = move || {
                    block_on(executor.run(async { work!($work, executor, |output| output) }))
                };
                let (ours, theirs) = (ours(), Box::new(theirs));
                Row { name: stringify!($work), host: "async-executor", ours, theirs }
            }

            pub fn beside_static() -> Row {
                let executor: &StaticExecutor = Box::leak(Box::new(StaticExecutor::new()));
                let executor = Arc::new(executor);
                let theirs = move || {
                    block_on(executor.run(async { work!($work, executor, |output| output) }))
                };
                let (ours, theirs) = (ours(), Box::new(theirs));
                Row { name: stringify!($work), host: "async-executor static", ours, theirs }
            }
        }
    )*};
}

rows!(spawn_await, spawn_4x25000, yields, ping_pong);
