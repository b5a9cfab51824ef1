//! Writes standard output. It is no failure if the reader has gone; a full disk is a failure.
use std::{
    fmt,
    io::{self, Write},
    sync::Mutex,
};

/// The first error of a write. The command continues, and fails at its end.
static FAILED: Mutex<Option<io::Error>> = Mutex::new(None);

/// Writes to standard output, and keeps the first error.
pub fn write(text: fmt::Arguments<'_>) {
    let mut out = io::stdout().lock();
    note(out.write_fmt(text).and_then(|()| out.flush()));
}

/// Keeps the first error. It is no error that the reader has gone.
pub fn note(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        let mut failed = FAILED.lock().unwrap_or_else(|broken| broken.into_inner());
        failed.get_or_insert(error);
    }
}

/// Takes the first error out.
pub fn failure() -> Option<io::Error> {
    let mut failed = FAILED.lock().unwrap_or_else(|broken| broken.into_inner());
    failed.take()
}
