//! Standard output. A reader that has gone is no failure; a disk that is full is one.
use std::{
    fmt,
    io::{self, IsTerminal, Write},
    sync::Mutex,
};

/// The first error of a write, which ends the command with a failure once it is done.
static FAILED: Mutex<Option<io::Error>> = Mutex::new(None);

/// Writes to standard output, and remembers why that failed.
pub(crate) fn write(text: fmt::Arguments<'_>) {
    let mut out = io::stdout().lock();
    note(out.write_fmt(text).and_then(|()| out.flush()));
}

/// Remembers the first error, unless it is that the reader has gone.
pub(crate) fn note(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        let mut failed = FAILED.lock().unwrap_or_else(|broken| broken.into_inner());
        failed.get_or_insert(error);
    }
}

/// Takes the first error out.
pub(crate) fn failure() -> Option<io::Error> {
    let mut failed = FAILED.lock().unwrap_or_else(|broken| broken.into_inner());
    failed.take()
}

/// On a terminal only: what is being done, in place of what was.
pub(crate) fn progress(text: &str) {
    let mut err = io::stderr().lock();
    if err.is_terminal() {
        let _ = write!(err, "\r\x1b[K{text}").and_then(|()| err.flush());
    }
}
