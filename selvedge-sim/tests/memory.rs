//! A run gives all of its memory back.
#![cfg(selvedge_sim)]

use net_driver::net::{TcpListener, TcpStream};
use selvedge_sim::Sim;
use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};
use task_io::{AsyncReadExt, AsyncWriteExt};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the calls go to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Ordering: Relaxed, as it is only a count.
        LIVE.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // Ordering: Relaxed, as it is only a count.
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's.
        unsafe { System.dealloc(block, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn run(seed: u64) {
    let run = Sim::new(seed).workers(3).run(|| async {
        let tasks: Vec<_> = (0..20_u32)
            .map(|n| {
                selvedge_executor::spawn(async move {
                    net_driver::time::sleep(Duration::from_millis(1) * n).await;
                    selvedge_executor::spawn_blocking(move || n).await.unwrap()
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    run.unwrap();
}

/// Two hosts with a connection.
fn run_hosts(seed: u64) {
    let hosts = Sim::new(seed).hosts().server("db", 2, || async {
        let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
        while let Ok((mut stream, _)) = listener.accept().await {
            stream.write_all(&[7; 1_000]).await.unwrap();
        }
    });
    let hosts = hosts.client("web", 1, || async {
        let mut stream = TcpStream::connect("db:80").await.unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.unwrap();
        assert_eq!(all.len(), 1_000);
    });
    hosts.run().unwrap();
}

/// The caches of the process, such as that of task cells, are full after a number of runs.
#[test]
fn memory_after_many_runs_is_that_before() {
    // Ordering: Relaxed, as it is only a count.
    let live = || LIVE.load(Relaxed);
    for run in [run, run_hosts] {
        (0..200).for_each(run);
        let before = live();
        (200..400).for_each(run);
        let after = live();
        assert!(
            after <= before + 16 * 1024,
            "{before} bytes, and then {after}"
        );
    }
}
