//! A WebSocket that echoes, without an HTTP server, until Ctrl-C.
//!
//! ```sh
//! cargo run --manifest-path ecosystem/Cargo.toml --bin websocket -- 127.0.0.1:8080
//! ```
//!
//! tokio-tungstenite runs over our stream: the feature `tokio` of `selvedge` gives it tokio's
//! traits. It needs no runtime of tokio's.
#[path = "../../../selvedge/examples/cli/mod.rs"]
mod cli;

use futures_util::{SinkExt, StreamExt};
use selvedge::{
    Runtime,
    net::{TcpListener, TcpStream},
};
use std::{io, process::ExitCode};
use tokio_tungstenite::{accept_async, tungstenite};

const HELP: &str = "\
Answers each message of a WebSocket with the message itself. Ctrl-C ends it.

Usage: websocket [ADDRESS]

ADDRESS  where it listens [127.0.0.1:8080]";

fn main() -> ExitCode {
    cli::run(HELP, |arguments| {
        cli::at_most(&arguments, 1)?;
        let address = arguments.into_iter().next();
        Ok(run(address.unwrap_or_else(|| "127.0.0.1:8080".into()))?)
    })
}

fn run(address: String) -> io::Result<()> {
    Runtime::new()?.block_on(async {
        let listener = TcpListener::bind(address).await?;
        println!("listens on {}", listener.local_addr()?);
        selvedge::select! {
            failed = accept(listener) => failed,
            stopped = selvedge::signal::ctrl_c() => stopped,
        }
    })
}

async fn accept(listener: TcpListener) -> io::Result<()> {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => selvedge::spawn_detached(async move {
                if let Err(error) = echo(stream).await {
                    eprintln!("{peer}: {error}");
                }
            }),
            Err(error) if is_fatal(&error) => return Err(error),
            // If no descriptor is free, the listener itself waits, and then goes on.
            Err(error) => eprintln!("accept: {error}"),
        }
    }
}

/// Returns whether the listener itself has failed: other errors are those of a connection, or a
/// shortage.
fn is_fatal(error: &io::Error) -> bool {
    use libc::{EBADF, EINVAL, ENOTSOCK};
    matches!(error.raw_os_error(), None | Some(EBADF | EINVAL | ENOTSOCK))
}

async fn echo(stream: TcpStream) -> tungstenite::Result<()> {
    stream.set_nodelay(true)?;
    let mut socket = accept_async(stream).await?;
    while let Some(message) = socket.next().await {
        let message = message?;
        if message.is_text() || message.is_binary() {
            socket.send(message).await?;
        }
    }
    Ok(())
}
