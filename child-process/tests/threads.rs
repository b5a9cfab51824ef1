//! Counts the threads of this process. So it has one test.
#![cfg(all(
    target_os = "linux",
    not(any(selvedge_loom, selvedge_shuttle, selvedge_polling))
))]
use child_process::Command;
use net_driver::Driver;
use std::{fs, process::Stdio};

fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

/// Fails if a child, or the wait for it, takes a thread.
#[test]
fn children_take_no_thread() {
    Driver::new(1).park(0).block_on(async {
        let before = threads();
        let mut command = Command::new("cat");
        let mut children: Vec<_> = (0..10)
            .map(|_| command.stdin(Stdio::piped()).spawn().unwrap())
            .collect();
        for child in &mut children {
            assert!(child.wait().await.unwrap().success());
            assert_eq!(threads(), before);
        }
    });
}
