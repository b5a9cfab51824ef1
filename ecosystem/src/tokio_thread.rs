//! A runtime of tokio on a thread of its own, for the programs whose crates need one.
use std::{future::pending, io, thread};
use tokio::runtime::{Builder, Handle};

/// Starts a thread that drives a tokio runtime until the process ends.
pub fn tokio_thread() -> io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let driver = thread::Builder::new().name("tokio".into());
    driver.spawn(move || runtime.block_on(pending::<()>()))?;
    Ok(handle)
}
