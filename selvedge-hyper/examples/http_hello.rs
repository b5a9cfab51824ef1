//! An HTTP server that says hello, until Ctrl-C.
//!
//! ```sh
//! cargo run --release -p selvedge-hyper --example http_hello -- 127.0.0.1:8080
//! curl http://127.0.0.1:8080/
//! ```
mod cli;

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Response, body::Incoming, service::service_fn};
use selvedge::{Runtime, net::TcpListener};
use std::{convert::Infallible, io, process::ExitCode, time::Duration};

async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::new(Bytes::from_static(b"hello\n"))))
}

const HELP: &str = "\
Answers each request over HTTP with a line. Ctrl-C ends it, once no request is left.

Usage: http_hello [ADDRESS]

ADDRESS  where it listens [127.0.0.1:8080]";

fn main() -> ExitCode {
    cli::run(HELP, |arguments| {
        cli::at_most(&arguments, 1)?;
        let address = arguments.into_iter().next();
        Ok(serve(address.unwrap_or_else(|| "127.0.0.1:8080".into()))?)
    })
}

fn serve(address: String) -> io::Result<()> {
    let runtime = Runtime::new()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await?;
        println!("listens on {}", listener.local_addr()?);
        selvedge_hyper::serve(listener, service_fn(hello))
            .header_read_timeout(Duration::from_secs(10))
            .shutdown_on_ctrl_c()
            .await?;
        println!("all connections have ended");
        Ok(())
    })
}
