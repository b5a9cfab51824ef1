//! An echo server over TCP.
//!
//! `cargo run --release -p selvedge --example echo -- 127.0.0.1:7000`, then `nc 127.0.0.1 7000`.
mod cli;

use futures::{AsyncReadExt, AsyncWriteExt};
use selvedge::{
    Runtime,
    net::{TcpListener, TcpStream},
    spawn,
};
use std::{io, process::ExitCode};

async fn echo(mut stream: TcpStream) -> io::Result<()> {
    // The kernel then sends each answer at once.
    stream.set_nodelay(true)?;
    let mut buffer = [0; 4_096];
    loop {
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return stream.close().await;
        }
        stream.write_all(&buffer[..count]).await?;
    }
}

const HELP: &str = "\
Answers each client with what it sends. Ctrl-C ends it.

Usage: echo [ADDRESS]

ADDRESS  where it listens [127.0.0.1:7000]";

fn main() -> ExitCode {
    cli::run(HELP, |arguments| {
        cli::at_most(&arguments, 1)?;
        let address = arguments.into_iter().next();
        Ok(serve(address.unwrap_or_else(|| "127.0.0.1:7000".into()))?)
    })
}

fn serve(address: String) -> io::Result<()> {
    let runtime = Runtime::new()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await?;
        println!("listens on {}", listener.local_addr()?);
        loop {
            match listener.accept().await {
                Ok((stream, from)) => drop(spawn(async move {
                    if let Err(error) = echo(stream).await {
                        eprintln!("{from}: {error}");
                    }
                })),
                // If no descriptor is free, `accept` reports that once. The next call then waits
                // until it can accept, so this loop does not spin.
                Err(error) => eprintln!("accept: {error}"),
            }
        }
    })
}
