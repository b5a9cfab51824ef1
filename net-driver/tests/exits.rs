//! Tests of `process::exit` in a scope of a driver.
//!
//! `process::exit` runs the destructors of the calling thread's thread-locals, while the scope's
//! stack frame stays. So a driver in a thread-local is dropped in its own scope, and a later
//! destructor may ask for the current driver. Each test runs itself again, in a child process that
//! exits in this way.
#![cfg(target_os = "linux")]
use net_driver::Driver;
use std::{
    cell::RefCell,
    env,
    process::{Command, exit},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    task::{Wake, Waker},
};

const CHILD: &str = "NET_DRIVER_EXITS";

static IS_FREED: AtomicBool = AtomicBool::new(false);

/// A waker that the driver drops when it is freed.
struct Watch;

impl Wake for Watch {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Watch {
    fn drop(&mut self) {
        IS_FREED.store(true, SeqCst);
    }
}

struct Last;

impl Drop for Last {
    fn drop(&mut self) {
        let is_kept = DRIVER.try_with(|_| ()).is_err() && !IS_FREED.load(SeqCst);
        if is_kept && Driver::current().is_some() {
            eprintln!("the current driver was kept");
        }
    }
}

thread_local! {
    // `keeps_its_driver` uses this thread-local first, so that its destructor runs last.
    static LAST: Last = const { Last };
    static DRIVER: RefCell<Option<Driver>> = const { RefCell::new(None) };
}

/// Runs `case` with a driver that is in a thread-local, in a child process. Asserts that the driver
/// was kept.
fn keeps_its_driver(test: &str, case: impl FnOnce(&Driver)) {
    if env::var_os(CHILD).is_some() {
        LAST.with(|_| ());
        return DRIVER.with(|at| {
            *at.borrow_mut() = Some(Driver::with_wakers([Waker::from(Arc::new(Watch))]));
            case(at.borrow().as_ref().unwrap());
        });
    }
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]).env(CHILD, "1");
    let output = child.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert!(said.contains("the current driver was kept"), "{said}");
}

#[test]
fn driver_dropped_in_its_scope_is_kept() {
    keeps_its_driver("driver_dropped_in_its_scope_is_kept", |driver| {
        driver.scope(None, || exit(7));
    });
}

#[cfg(feature = "test-util")]
#[test]
fn driver_dropped_in_its_block_on_is_kept() {
    keeps_its_driver("driver_dropped_in_its_block_on_is_kept", |driver| {
        driver.block_on(async { exit(7) });
    });
}
