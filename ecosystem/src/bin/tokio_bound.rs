//! A crate that needs tokio's runtime, reqwest, in tasks of ours: two ways.
//!
//! ```sh
//! cargo run --manifest-path ecosystem/Cargo.toml --bin tokio_bound -- http://example.com/
//! ```
//!
//! - [`Compat`] around each future. It enters the handle of a tokio runtime, which it starts at its
//!   first use, during each poll.
//! - A handle that each worker has entered: then no future needs a wrapper. Our hook
//!   `on_thread_start` enters it; the thread in `block_on` is not a worker, and enters it by
//!   itself.
//!
//! In both ways one thread drives tokio's sockets and sleeps. It wakes our tasks, which run on our
//! workers; `tokio::spawn` in them spawns on that thread.
use async_compat::Compat;
use selvedge::Builder;
use std::{env, error::Error, future::pending, io, mem, thread};
use tokio::runtime::Handle;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<()> {
    let url = env::args().nth(1).ok_or("usage: tokio_bound URL")?;
    println!("async-compat: {}", by_compat(&url)?);
    println!("entered: {}", by_entered_handle(&url)?);
    Ok(())
}

/// GETs a page, and says its status and length.
async fn get(url: String) -> Result<String> {
    let response = reqwest::Client::builder().no_proxy().build()?;
    let response = response.get(url).send().await?;
    let status = response.status();
    let body = response.bytes().await?;
    Ok(format!("{} {}", status.as_u16(), body.len()))
}

fn by_compat(url: &str) -> Result<String> {
    let runtime = Builder::new().build()?;
    let task = runtime.spawn(Compat::new(get(url.to_owned())));
    runtime.block_on(task)?
}

fn by_entered_handle(url: &str) -> Result<String> {
    let tokio = tokio_thread()?;
    let enter = tokio.clone();
    let runtime = Builder::new()
        // The guard would leave the handle. The worker keeps it until its end.
        .on_thread_start(move || mem::forget(enter.enter()))
        .build()?;
    let task = runtime.spawn(get(url.to_owned()));
    let by_task = runtime.block_on(task)??;

    let _entered = tokio.enter();
    let by_main = runtime.block_on(get(url.to_owned()))?;
    assert_eq!(by_task, by_main);
    Ok(by_task)
}

/// Starts a thread that drives a tokio runtime until the process ends.
fn tokio_thread() -> io::Result<Handle> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build()?;
    let handle = runtime.handle().clone();
    let driver = thread::Builder::new().name("tokio".into());
    driver.spawn(move || runtime.block_on(pending::<()>()))?;
    Ok(handle)
}
