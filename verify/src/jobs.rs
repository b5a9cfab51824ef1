//! Runs a few jobs at a time.
use anyhow::{Result, ensure};
use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
};

/// Runs `work` on all items, `jobs` at a time, and returns the results in order. The first error
/// ends it.
pub(crate) fn each<T: Sync, R: Send>(
    jobs: usize,
    all: &[T],
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<_>> = Mutex::new(all.iter().map(|_| None).collect());
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                // Ordering: Relaxed, only the number is shared; a lock guards the results.
                while let Some((index, item)) =
                    Some(next.fetch_add(1, Relaxed)).and_then(|i| Some((i, all.get(i)?)))
                {
                    let result = work(item);
                    if result.is_err() {
                        next.store(all.len(), Relaxed);
                    }
                    results.lock().expect("no job panics")[index] = Some(result);
                }
            });
        }
    });
    let results: Result<Vec<_>> = results
        .into_inner()
        .expect("no job panics")
        .into_iter()
        .flatten()
        .collect();
    let results = results?;
    ensure!(results.len() == all.len(), "a job ended early");
    Ok(results)
}
