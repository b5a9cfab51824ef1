//! A test of child processes whose handles were dropped. It is the only test of its process, as it
//! looks at all children of the process.
#![cfg(all(feature = "process", target_os = "linux"))]
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]

use selvedge::{Runtime, process::Command};
use std::{fs, process::Stdio, thread, time::Duration};

/// Returns how many children this process has, and how many of these are zombies.
fn children() -> (usize, usize) {
    let own = std::process::id().to_string();
    let (mut all, mut zombies) = (0, 0);
    for entry in fs::read_dir("/proc").unwrap() {
        let Ok(stat) = fs::read_to_string(entry.unwrap().path().join("stat")) else {
            continue;
        };
        // The name is in parentheses, and may have any characters.
        let fields = stat.rsplit_once(") ").unwrap().1;
        let mut fields = fields.split(' ');
        let state = fields.next().unwrap();
        if fields.next() == Some(&own) {
            all += 1;
            zombies += usize::from(state == "Z");
        }
    }
    (all, zombies)
}

fn has_thread(name: &str) -> bool {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let mut names = tasks.map(|task| fs::read_to_string(task.unwrap().path().join("comm")));
    names.any(|found| found.is_ok_and(|found| name.starts_with(found.trim())))
}

/// Returns whether a thread of this name sleeps.
fn sleeps(name: &str) -> bool {
    let mut tasks = fs::read_dir("/proc/self/task").unwrap();
    tasks.any(|task| {
        let stat = fs::read_to_string(task.unwrap().path().join("stat")).unwrap_or_default();
        let parts = stat
            .split_once(" (")
            .and_then(|(_, rest)| rest.rsplit_once(") "));
        parts.is_some_and(|(found, rest)| name.starts_with(found) && rest.starts_with('S'))
    })
}

/// Forks, and returns whether the copy reaps an orphan of its own.
fn reaps_in_a_copy() -> bool {
    // SAFETY: the copy only runs this function. No other thread of the process holds a lock: the
    // harness's thread waits for the test, and the orphans' thread sleeps in a system call. The
    // caller has waited for that sleep.
    let copy = unsafe { libc::fork() };
    if copy == 0 {
        // SAFETY: the call takes no pointers. The alarm ends a copy that hangs.
        unsafe { libc::alarm(600) };
        let mut builder = selvedge::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().unwrap();
        runtime.block_on(async {
            let mut command = Command::new("cat");
            let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
            let stdin = child.stdin.take();
            drop(child);
            drop(stdin);
        });
        while children() != (0, 0) {
            thread::sleep(Duration::from_millis(1));
        }
        // SAFETY: the copy has nothing to clean up.
        unsafe { libc::_exit(0) };
    }
    let mut status = 1;
    // SAFETY: the pointer is valid for a write.
    assert_eq!(unsafe { libc::waitpid(copy, &raw mut status, 0) }, copy);
    status == 0
}

/// Fails if a dropped child stays a zombie, before or after the end of the runtime. Fails also if
/// the thread that waits for such children stays when no such child is left.
#[test]
fn orphans_leave_no_zombie_and_no_thread() {
    let runtime = Runtime::new().unwrap();
    let spawn = || {
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap()
    };
    let early: Vec<_> = runtime.block_on(async { (0..50).map(|_| spawn()).collect() });
    let late: Vec<_> = runtime.block_on(async { (0..50).map(|_| spawn()).collect() });
    assert_eq!(children(), (100, 0));
    drop(early);
    while children() != (50, 0) {
        thread::sleep(Duration::from_millis(1));
    }
    drop(runtime);
    assert_eq!(children().0, 50);
    drop(late);
    while children() != (0, 0) || has_thread("child-orphans") {
        thread::sleep(Duration::from_millis(1));
    }

    // For the next dropped child the thread starts again.
    let held = Runtime::new().unwrap().block_on(async { spawn() });
    // The thread has yet to set its name, and to find its first child.
    while !sleeps("child-orphans") {
        thread::sleep(Duration::from_millis(1));
    }
    let copied = reaps_in_a_copy();
    drop(held);
    assert!(copied, "a copy of the process has no thread yet");
    while children() != (0, 0) || has_thread("child-orphans") {
        thread::sleep(Duration::from_millis(1));
    }
}
