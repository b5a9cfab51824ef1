//! Programs that run on tokio and on selvedge, and log the same on both. They use the items that
//! the table `docs/from-tokio.md` calls the same, by their paths.
//!
//! `cargo xtask tokio-items` checks that each such item of `net`, of `io` and of the attributes is
//! here. A program is a macro, so that its paths begin with the crate's name.
#![cfg(target_os = "linux")]
#![allow(deprecated)]

/// Logs each value on a line.
macro_rules! log {
    ($log:ident, $($value:expr),+ $(,)?) => {
        $($log.push(format!("{:?}", $value));)+
    };
}

mod attributes;
mod fs;
mod io;
mod net;
mod process;
mod signal;
mod time;
mod utilities;

/// Asserts that the program has logged something, and the same on both.
fn assert_same(theirs: &[String], ours: &[String]) {
    assert!(theirs.len() > 3, "{theirs:#?}");
    for (n, (theirs, ours)) in theirs.iter().zip(ours).enumerate() {
        assert_eq!(ours, theirs, "line {n}");
    }
    assert_eq!(ours.len(), theirs.len());
}
