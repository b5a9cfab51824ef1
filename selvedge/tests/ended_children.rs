//! Tests of children whose handles outlive them. Each test counts the descriptors of this process,
//! so the tests run one after the other.
#![cfg(all(feature = "process", target_os = "linux"))]
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]

use futures::FutureExt;
use selvedge::{
    Runtime,
    process::{Child, Command},
};
use std::{
    fs,
    process::Stdio,
    ptr,
    sync::{Mutex, PoisonError},
};

static ALONE: Mutex<()> = Mutex::new(());

/// Returns how many descriptors of processes this process has.
fn pidfds() -> usize {
    let links = fs::read_dir("/proc/self/fd").unwrap();
    let links = links.map(|entry| fs::read_link(entry.unwrap().path()));
    links
        .filter(|link| {
            // The descriptor of the directory itself is gone by now, and has no link.
            link.as_ref()
                .is_ok_and(|to| to.to_string_lossy().contains("pidfd"))
        })
        .count()
}

/// Asserts that `end`, which ends a child and takes the child's status, leaves no descriptor of the
/// process, although the handle lives on.
fn assert_end_closes(end: impl AsyncFn(&mut Child)) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    Runtime::new().unwrap().block_on(async {
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        assert_eq!(pidfds(), 1, "one for the wait");
        end(&mut child).await;
        assert_eq!(child.id(), None);
        assert_eq!(pidfds(), 0);
        // The status stays.
        assert_eq!(child.try_wait().unwrap(), Some(child.wait().await.unwrap()));
    });
    assert_eq!(pidfds(), 0);
}

/// Fails if a child keeps its descriptor after a wait.
#[test]
fn wait_closes_the_descriptor() {
    assert_end_closes(async |child| assert!(child.wait().await.unwrap().success()));
}

/// Fails if a child keeps its descriptor after a look that found its end.
#[test]
fn try_wait_closes_the_descriptor() {
    assert_end_closes(async |child| {
        child.stdin = None;
        while child.try_wait().unwrap().is_none() {
            selvedge::yield_now().await;
        }
    });
}

/// Fails if a child keeps its descriptor after a kill.
#[test]
fn kill_closes_the_descriptor() {
    assert_end_closes(async |child| child.kill().await.unwrap());
}

/// Fails if a child keeps its descriptor although a look or a wait has failed, because other code
/// has reaped the child.
#[test]
fn error_of_a_wait_closes_the_descriptor() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    Runtime::new().unwrap().block_on(async {
        for looks in [true, false] {
            let mut child = Command::new("true").spawn().unwrap();
            let id = child.id().unwrap() as libc::pid_t;
            // SAFETY: the call takes no pointer but null.
            let reaped = unsafe { libc::waitpid(id, ptr::null_mut(), 0) };
            assert_eq!((reaped, pidfds()), (id, 1));
            let failed = match looks {
                true => child.try_wait().map(drop),
                false => child.wait().await.map(drop),
            };
            assert_eq!(failed.unwrap_err().raw_os_error(), Some(libc::ECHILD));
            assert_eq!(pidfds(), 0);
            // The error stays.
            let again = child.wait().await.unwrap_err();
            assert_eq!(again.raw_os_error(), Some(libc::ECHILD));
        }
    });
}

/// Fails if the drop of a child whose wait was cancelled leaves a descriptor once the child is
/// reaped.
#[test]
fn drop_after_a_cancelled_wait_closes_the_descriptor() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    Runtime::new().unwrap().block_on(async {
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        assert!(child.wait().now_or_never().is_none());
        drop(child);
        drop(stdin);
        while pidfds() > 0 {
            selvedge::yield_now().await;
        }
    });
}
