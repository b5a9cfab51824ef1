//! Tests of `selvedge::sync`, the channels and locks of `task-sync`, on this runtime's workers.
use selvedge::{Runtime, runtime, sync};
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

fn one_worker() -> Runtime {
    runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap()
}

/// Fails if a receive charges no budget: the reader then keeps its worker for all messages.
#[test]
fn neighbour_of_a_reader_of_ready_messages_runs_after_128() {
    let (tx, mut rx) = sync::mpsc::unbounded_channel();
    (0..100_000).for_each(|n| tx.send(n).unwrap());
    drop(tx);
    let read = Arc::new(AtomicU32::new(0));
    let runtime = one_worker();
    let count = read.clone();
    runtime.block_on(async {
        let both = selvedge::spawn(async move {
            let reader = selvedge::spawn(async move {
                while rx.recv().await.is_some() {
                    count.fetch_add(1, Relaxed);
                }
            });
            let neighbour = selvedge::spawn(async move { read.load(Relaxed) });
            (reader, neighbour)
        });
        let (reader, neighbour) = both.await.unwrap();
        let before = neighbour.await.unwrap();
        reader.await.unwrap();
        assert!(before <= 128, "{before} messages before the neighbour ran");
    });
}

#[test]
fn tasks_of_two_workers_share_a_lock_and_channels() {
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    runtime.block_on(async {
        let sum = Arc::new(sync::Mutex::new(0));
        let (tx, mut rx) = sync::mpsc::channel(4);
        for n in 0..64 {
            let (sum, tx) = (sum.clone(), tx.clone());
            selvedge::spawn(async move {
                let mut sum = sum.lock().await;
                *sum += n;
                selvedge::yield_now().await;
                drop(sum);
                tx.send(n).await.unwrap();
            });
        }
        drop(tx);
        let mut got = Vec::new();
        while let Some(n) = rx.recv().await {
            got.push(n);
        }
        got.sort_unstable();
        assert_eq!(got, (0..64).collect::<Vec<_>>());
        assert_eq!(*sum.lock().await, 63 * 64 / 2);
    });
}
