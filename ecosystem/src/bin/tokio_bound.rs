//! Runs reqwest, a crate that needs tokio's runtime, in tasks of Selvedge. There are two ways.
//!
//! ```sh
//! cargo run --manifest-path ecosystem/Cargo.toml --bin tokio_bound -- http://example.com/
//! ```
//!
//! - A [`Compat`] around each future. During each poll of the future, the `Compat` enters the
//!   handle of a tokio runtime, which the first `Compat` of the process starts.
//! - A tokio handle that every worker enters in our hook `on_thread_start`. Then no future needs a
//!   wrapper. The thread that calls `block_on` is not a worker, so it enters the handle itself.
//!
//! In both ways one thread drives tokio's sockets and sleeps. That thread wakes our tasks, which
//! run on our workers. If such a task calls `tokio::spawn`, the new task runs on tokio's thread.
#[path = "../../../selvedge/examples/cli/mod.rs"]
mod cli;
#[path = "../sources.rs"]
mod sources;
#[path = "../tokio_thread.rs"]
mod tokio_thread;

use async_compat::Compat;
use selvedge::Builder;
use sources::with_sources;
use std::{error::Error, mem, process::ExitCode};
use tokio_thread::tokio_thread;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// A way to run reqwest.
type Way = fn(&str) -> Result<String>;

const HELP: &str = "\
GETs a page by reqwest, in two ways, and says its status and its length.

Usage: tokio_bound URL";

fn main() -> ExitCode {
    cli::run(HELP, |arguments| {
        cli::at_most(&arguments, 1)?;
        let url = arguments.first();
        let url = url.ok_or_else(|| cli::Usage("which URL?".into()))?;
        for (way, get) in [
            ("async-compat", by_compat as Way),
            ("entered", by_entered_handle),
        ] {
            let got = get(url).map_err(|error| with_sources(&*error))?;
            println!("{way}: {got}");
        }
        Ok(())
    })
}

/// GETs a page, and returns its status and length as text.
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
        // A drop of the guard would leave the handle. The worker stays in the handle until the
        // worker ends.
        .on_thread_start(move || mem::forget(enter.enter()))
        .build()?;
    let task = runtime.spawn(get(url.to_owned()));
    let by_task = runtime.block_on(task)??;

    let _entered = tokio.enter();
    let by_main = runtime.block_on(get(url.to_owned()))?;
    assert_eq!(by_task, by_main);
    Ok(by_task)
}
