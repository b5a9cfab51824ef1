//! Measures the stand-in `adopt::tasks`, a thread that runs tasks, against the same thread built
//! from async-task and std's channel.
//!
//! async-task's own example uses a channel of flume instead. That example is not measured.
use crate::Row;
use adopt::tasks::TaskThread;
use async_task::{Runnable, Task};
use futures_lite::future::{block_on, yield_now};
use std::{future::Future, sync::mpsc, thread};

const TASKS: usize = 100_000;
const YIELDERS: usize = 100;
const YIELDS: usize = 1_000;

/// A thread of tasks as a user of async-task writes it.
struct AsyncTaskThread(mpsc::Sender<Runnable>);

impl AsyncTaskThread {
    fn start() -> Self {
        let (queue, runnables) = mpsc::channel::<Runnable>();
        thread::spawn(move || {
            runnables
                .into_iter()
                .for_each(|runnable| _ = runnable.run())
        });
        Self(queue)
    }

    fn spawn<T: Send + 'static>(&self, f: impl Future<Output = T> + Send + 'static) -> Task<T> {
        let queue = self.0.clone();
        let (runnable, task) = async_task::spawn(f, move |task| queue.send(task).unwrap());
        runnable.schedule();
        task
    }
}

/// Makes a row whose work is `$work`, on the thread `$thread`.
macro_rules! row {
    ($name:literal, $thread:ident, $work:expr) => {{
        let (ours, theirs) = (TaskThread::start("ours").unwrap(), AsyncTaskThread::start());
        let ours = move || {
            let $thread = &ours;
            $work
        };
        let theirs = move || {
            let $thread = &theirs;
            $work
        };
        let (ours, theirs) = (Box::new(ours), Box::new(theirs));
        Row {
            name: $name,
            host: "async-task, a channel",
            ours,
            theirs,
        }
    }};
}

pub fn spawn() -> Row {
    row!("tasks_spawn_100000", thread, {
        let tasks: Vec<_> = (0..TASKS).map(|n| thread.spawn(async move { n })).collect();
        let mut sum = 0;
        for task in tasks {
            sum += block_on(task);
        }
        assert_eq!(sum, TASKS * (TASKS - 1) / 2);
    })
}

pub fn yields() -> Row {
    row!("tasks_yield_100000", thread, {
        let yielder = |_| {
            thread.spawn(async {
                for _ in 0..YIELDS {
                    yield_now().await;
                }
            })
        };
        let yielders: Vec<_> = (0..YIELDERS).map(yielder).collect();
        yielders.into_iter().for_each(block_on);
    })
}
