//! The hook for the panics of processes, and the line that it writes by default.
use crate::Info;
use std::io::{self, Write};

/// Gets each panic of a process: see [`Builder::on_panic`](crate::Builder::on_panic).
pub(crate) type PanicHook = dyn Fn(&Info, &str) + Send + Sync;

/// Writes the panic of a process to standard error, in one line.
pub(crate) fn write_panic(process: &Info, text: &str) {
    // A program without a standard error goes on.
    let _ = writeln!(io::stderr().lock(), "{}", panic_line(process, text));
}

fn panic_line(process: &Info, text: &str) -> String {
    let mut line = format!("process {}", process.pid);
    for name in &process.names {
        line += &format!(" {name:?}");
    }
    line += &format!(" ({}", process.kind);
    if let Some(supervisor) = process.supervisor {
        line += &format!(", child of {supervisor}, {} restarts", process.restarts);
    }
    line + ") panicked: " + text
}
