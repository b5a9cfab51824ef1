//! Scenarios of the channels and locks of `task-sync`.
use crate::scenarios::{SOON, all, run};
use net_driver::time::{sleep, timeout};
use selvedge_executor::{spawn, yield_now};
use selvedge_sim::{Run, Sim, random_below};
use std::{sync::Arc, time::Duration};
use task_sync::{Notify, RwLock, Semaphore, broadcast, mpsc, watch};

fn micros(below: u64) -> Duration {
    Duration::from_micros(random_below(below))
}

/// Readers and writers wait for a lock, and some give up.
pub fn rwlocks(sim: Sim) -> Run {
    run(&sim, || async {
        let lock = Arc::new(RwLock::new((0_u64, 0_u64)));
        let tasks = (0..8_u64).map(|n| {
            let lock = lock.clone();
            spawn(async move {
                let mut writes = 0;
                for _ in 0..4 {
                    if n % 2 == 0 {
                        if let Ok(pair) = timeout(micros(600), lock.read()).await {
                            yield_now().await;
                            assert_eq!(pair.0, pair.1, "a writer writes beside a reader");
                        }
                    } else if let Ok(mut pair) = timeout(micros(600), lock.write()).await {
                        pair.0 += 1;
                        sleep(micros(200)).await;
                        pair.1 += 1;
                        writes += 1;
                        if random_below(2) == 0 {
                            drop(pair.downgrade());
                        }
                    }
                }
                writes
            })
        });
        let tasks: Vec<_> = tasks.collect();
        let writes: u64 = all(tasks).await.iter().sum();
        let pair = timeout(SOON, lock.write()).await.expect("it is free");
        assert_eq!(*pair, (writes, writes));
    })
}

/// Receivers of a broadcast are slow, give up, and come late.
pub fn broadcasts(sim: Sim) -> Run {
    const SENT: u64 = 24;
    run(&sim, || async {
        let (sender, receiver) = broadcast::channel::<u64>(4);
        let tasks = (0..4).map(|_| {
            let mut receiver = receiver.resubscribe();
            spawn(async move {
                let (mut next, mut missed) = (0, 0);
                loop {
                    match timeout(micros(900), receiver.recv()).await {
                        Err(_) => {}
                        Ok(Ok(n)) => {
                            assert!(n >= next, "{n} comes after {next}");
                            missed += n - next;
                            next = n + 1;
                        }
                        Ok(Err(broadcast::error::RecvError::Lagged(lag))) => {
                            assert!(lag > 0);
                        }
                        Ok(Err(broadcast::error::RecvError::Closed)) => return next,
                    }
                    if random_below(3) == 0 {
                        sleep(micros(400)).await;
                    }
                    assert!(missed <= SENT);
                }
            })
        });
        let tasks: Vec<_> = tasks.collect();
        drop(receiver);
        for n in 0..SENT {
            sender.send(n).unwrap();
            if random_below(3) == 0 {
                sleep(micros(300)).await;
            }
        }
        drop(sender);
        let last = timeout(2 * SOON, all(tasks)).await.expect("each ends");
        assert_eq!(last, [SENT; 4], "each receiver gets the last value");
    })
}

/// Channels and semaphores close while tasks wait for them.
pub fn closes(sim: Sim) -> Run {
    run(&sim, || async {
        let (sender, mut receiver) = mpsc::channel::<u64>(2);
        let (watched, value) = watch::channel(0_u64);
        let (permits, notify) = (Arc::new(Semaphore::new(1)), Arc::new(Notify::new()));
        let senders = (0..3).map(|_| {
            let sender = sender.clone();
            spawn(async move {
                let mut sent = 0;
                while sender.send(1).await.is_ok() {
                    sent += 1;
                }
                sent
            })
        });
        let mut senders: Vec<_> = senders.collect();
        let waits = (0..3).map(|_| {
            let (permits, notify, mut value) = (permits.clone(), notify.clone(), value.clone());
            spawn(async move {
                while let Ok(permit) = permits.acquire().await {
                    sleep(micros(100)).await;
                    drop(permit);
                }
                notify.notified().await;
                notify.notify_one(); // The next wait ends, too.
                while value.changed().await.is_ok() {}
                *value.borrow()
            })
        });
        let waits: Vec<_> = waits.collect();
        let mut received = 0;
        while random_below(12) > 0 {
            received += receiver.recv().await.unwrap();
        }
        sleep(micros(500)).await;
        receiver.close();
        while let Some(n) = receiver.recv().await {
            received += n;
        }
        permits.close();
        notify.notify_one();
        for n in 1..4 {
            watched.send(n).unwrap();
        }
        drop(watched);
        let sent = timeout(SOON, all(senders.drain(..)))
            .await
            .expect("each send ends");
        assert_eq!(sent.iter().sum::<u64>(), received);
        let last = timeout(2 * SOON, all(waits)).await.expect("each wait ends");
        assert_eq!(last, [3; 3]);
    })
}
