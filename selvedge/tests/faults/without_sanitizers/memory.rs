//! A test in which each allocation fails in turn. Then the process aborts, as Rust's collections
//! and task cells do, or the program gets an error, or the failure has no effect.
use crate::process::{self, role};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    os::unix::process::ExitStatusExt,
    ptr,
    sync::atomic::{AtomicI64, Ordering::Relaxed},
};

/// Allocator that passes all calls but one to the system's allocator. It counts the live blocks.
struct Failing;

/// Number of allocations before the one that fails. If it is negative, no allocation fails.
static LEFT: AtomicI64 = AtomicI64::new(-1);

static LIVE: AtomicI64 = AtomicI64::new(0);

/// Returns the number of blocks that are allocated and not freed.
pub fn live() -> i64 {
    LIVE.load(Relaxed)
}

fn fails() -> bool {
    LEFT.load(Relaxed) >= 0 && LEFT.fetch_sub(1, Relaxed) == 0
}

// SAFETY: each method passes its call to `System`, or returns null, by which an allocator fails.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if fails() {
            return ptr::null_mut();
        }
        LIVE.fetch_add(1, Relaxed);
        // SAFETY: the premises of `System` are those of this method, which the caller upholds.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(1, Relaxed);
        // SAFETY: the premises of `System` are those of this method, which the caller upholds.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if fails() {
            return ptr::null_mut();
        }
        // SAFETY: the premises of `System` are those of this method, which the caller upholds.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Failing = Failing;

/// Runs a little of everything that allocates.
fn work() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = selvedge::Builder::new()
        .workers(2)
        .ring_capacity(4)
        .build()?;
    let sum = runtime.block_on(async {
        let tasks: Vec<_> = (0..20)
            .map(|n| {
                selvedge::spawn(async move {
                    selvedge::yield_now().await;
                    [n; 100].iter().sum::<usize>()
                })
            })
            .collect();
        let mut sum = selvedge::spawn_blocking(|| 1).await?;
        for task in tasks {
            sum += task.await?;
        }
        let mut set = task_set::JoinSet::new();
        for n in 0..5 {
            set.insert(selvedge::spawn(async move { n }));
        }
        while let Some(done) = set.join_next().await {
            sum += done?;
        }
        Ok::<_, selvedge::JoinError>(sum)
    })?;
    assert_eq!(sum, 19_000 + 1 + 10);
    drop(runtime);
    Ok(())
}

#[test]
fn an_allocation_that_fails_aborts_or_is_an_error() {
    const NAME: &str = "without_sanitizers::memory::an_allocation_that_fails_aborts_or_is_an_error";
    if let Some(at) = role() {
        LEFT.store(at.parse().unwrap(), Relaxed);
        let done = work();
        let left = LEFT.swap(-1, Relaxed);
        // An error is a valid end, too, if a thread could not be started.
        let refused = done.is_err_and(|error| !error.to_string().is_empty());
        std::process::exit(if refused || left < 0 { 10 } else { 0 });
    }
    let (mut aborts, mut errors, mut at) = (0, 0, 0);
    loop {
        let ended = process::run(NAME, at);
        match ended.status.code() {
            Some(0) => break,
            Some(10) => errors += 1,
            _ => {
                let signal = ended.status.signal();
                assert_eq!(signal, Some(libc::SIGABRT), "allocation {at}: {ended:?}");
                assert!(
                    ended.said.contains("memory allocation of"),
                    "allocation {at}: {ended:?}"
                );
                aborts += 1;
            }
        }
        at += 1;
    }
    println!("{at} allocations: {aborts} aborts, {errors} others");
    assert!(aborts > 50, "{aborts} aborts only");
}
