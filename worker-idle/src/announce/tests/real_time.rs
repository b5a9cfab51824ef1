//! A real-time thread waits for a thread of a lower priority on the same CPU. The other thread runs
//! only while the real-time thread sleeps.
use super::super::Registry;
use std::{
    mem, process,
    ptr::NonNull,
    sync::{
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc::{self, Sender},
    },
    thread,
    time::Duration,
};
use sync_shim::sync::Arc;

/// Limit of the CPU time that the wait uses. A wait that never sleeps uses more: the system gives
/// other threads a turn only after a real-time thread has run for about a second.
const SPUN: Duration = Duration::from_millis(250);

/// Restricts this thread to one CPU.
fn pin(processor: usize) {
    // SAFETY: a CPU set is an array of integers, for which zeros are valid.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: the system named the CPU, and the set has room for it.
    unsafe { libc::CPU_SET(processor, &mut set) };
    // SAFETY: 0 means this thread, and the set has the given size.
    let pinned = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
    assert_eq!(pinned, 0);
}

/// Gives this thread a real-time priority, if the process is allowed to.
fn become_real_time(priority: i32) -> bool {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: 0 means this thread, and the pointer is valid.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) == 0 }
}

/// Returns the CPU time of this thread.
fn processor_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is valid for the write.
    let read = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(read, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Starts a thread that ends the process if the test hangs. That thread has a higher priority than
/// the threads of the test: otherwise it would not run on a machine with a single CPU. Returns
/// `None` if the process may use no real-time priority.
fn watch() -> Option<Sender<()>> {
    let (over, ends) = mpsc::channel();
    let (sender, may) = mpsc::channel();
    thread::spawn(move || {
        sender.send(become_real_time(2)).unwrap();
        if let Err(mpsc::RecvTimeoutError::Timeout) = ends.recv_timeout(Duration::from_secs(120)) {
            eprintln!(
                "a real-time thread waits for one of a lower priority, and never lets it run"
            );
            process::abort();
        }
    });
    may.recv().unwrap().then_some(over)
}

#[test]
fn wait_of_a_real_time_thread_lets_a_lower_one_run() {
    let Some(_over) = watch() else {
        println!("skipped: this process may not use SCHED_FIFO");
        return;
    };
    // SAFETY: the function has no preconditions.
    let processor = usize::try_from(unsafe { libc::sched_getcpu() }).unwrap();
    let registry = Arc::new(Registry::new());
    let (announcing, waiting) = (AtomicBool::new(false), AtomicBool::new(false));
    let used = thread::scope(|scope| {
        scope.spawn(|| {
            pin(processor);
            let push = || {
                announcing.store(true, SeqCst);
                // The other thread sets `waiting` when it has the higher priority. This thread must
                // then run once more, to end the announcement.
                while !waiting.load(SeqCst) {
                    thread::sleep(Duration::from_millis(1));
                }
            };
            // SAFETY: the registry is valid, and nothing is pushed.
            unsafe { Registry::announce(NonNull::from(&registry), push) };
        });
        let waits = scope.spawn(|| {
            pin(processor);
            while !announcing.load(SeqCst) {
                thread::sleep(Duration::from_millis(1));
            }
            assert!(become_real_time(1));
            waiting.store(true, SeqCst);
            let begun = processor_time();
            registry.wait();
            processor_time() - begun
        });
        waits.join().unwrap()
    });
    assert!(used < SPUN, "it has spun for {used:?}");
}
