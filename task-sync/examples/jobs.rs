//! A service with a queue of jobs: at most two run at a time, each answers its client, and a
//! shutdown lets those that were accepted end.
//!
//! `cargo run -p task-sync --example jobs -- smol` runs it under smol, and without the argument
//! under tokio. Nothing in `run` names a runtime: it needs only a function that spawns.
use std::{future::Future, pin::Pin, sync::Arc};
use task_sync::{Semaphore, mpsc, oneshot, watch};

/// A future that a runtime spawns.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A number, and the way back for its square.
type Job = (u64, oneshot::Sender<u64>);

async fn serve(
    mut jobs: mpsc::Receiver<Job>,
    mut is_open: watch::Receiver<bool>,
    spawn: impl Fn(Task),
) {
    let slots = Arc::new(Semaphore::new(2));
    // The loop ends once the queue is closed and empty.
    while let Some((number, answer)) = jobs.recv().await {
        if is_open.has_changed().is_ok_and(|changed| changed) && !*is_open.borrow_and_update() {
            jobs.close();
        }
        let slot = slots.clone().acquire_owned().await;
        spawn(Box::pin(async move {
            let _ = answer.send(number * number); // An error: the client has given up.
            drop(slot);
        }));
    }
    // All slots are free: no job runs any more.
    let _all = slots.acquire_many(2).await;
}

/// Runs the service and four clients. Returns the sum of the squares from 1 to 100.
pub async fn run(spawn: impl Fn(Task) + Clone + Send + 'static) -> u64 {
    let (jobs, queue) = mpsc::channel(8);
    let (shutdown, is_open) = watch::channel(true);
    let (ended, end) = oneshot::channel();
    let service = serve(queue, is_open, spawn.clone());
    spawn(Box::pin(async move {
        service.await;
        let _ = ended.send(());
    }));
    let (sums, mut partial) = mpsc::unbounded_channel();
    for client in 0..4 {
        let (jobs, sums) = (jobs.clone(), sums.clone());
        spawn(Box::pin(async move {
            let mut sum = 0;
            for number in (1..=100).filter(|number| number % 4 == client) {
                let (answer, result) = oneshot::channel();
                jobs.send((number, answer)).await.expect("it is open");
                sum += result.await.expect("each job answers");
            }
            let _ = sums.send(sum);
        }));
    }
    drop((jobs, sums));
    let mut total = 0;
    while let Some(sum) = partial.recv().await {
        total += sum;
    }
    let _ = shutdown.send(false); // An error: the service has ended, as no client is left.
    let _ = end.await;
    total
}

#[allow(dead_code, reason = "a test includes this file, and calls `run` alone")]
fn main() {
    let sum = match std::env::args().nth(1).as_deref() {
        Some("smol") => smol::block_on(run(|task| smol::spawn(task).detach())),
        _ => {
            let runtime = tokio::runtime::Runtime::new().expect("tokio starts");
            runtime.block_on(run(|task| drop(tokio::spawn(task))))
        }
    };
    println!("the sum of the squares from 1 to 100 is {sum}");
}
